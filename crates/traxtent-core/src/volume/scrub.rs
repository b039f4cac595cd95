//! Scrubs: what disagrees is found and reported, and changed only where it is certain, or said, which side is right.
//!
//! | found | without repair | repaired by |
//! |---|---|---|
//! | a sector that cannot be read, and that the others tell | reported | [`Repair::sectors`] |
//! | copies that differ, more than half of them alike | reported | [`Repair::sectors`]: the majority |
//! | copies that differ, no majority | reported | [`Repair::from`]: the member that is named |
//! | parity that does not match | reported | [`Repair::parity`]: computed from the data as they are |

use smallvec::SmallVec;

use super::stripe_rows::StripeRows;
use super::{Failures, Members, State, Volume, VolumeError};
use crate::layout::raid::{Level, Members as MemberSet, Stripe};
use crate::units::{Lbn, Sectors};

/// What a scrub may change. Nothing, unless it is said.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Sectors that cannot be read are written from the others; of three and more copies, those that a majority disagrees
    /// with.
    pub sectors: bool,
    /// The member whose copy is right where there is no majority.
    pub from: Option<usize>,
    /// Parity that does not match is computed from the data. Data that are wrong stay wrong, and can no longer be found.
    pub parity: bool,
}

impl Repair {
    /// Nothing is changed.
    pub const NONE: Repair = Repair {
        sectors: false,
        from: None,
        parity: false,
    };
}

/// What a scrub found in a stripe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// What does not agree, ascending by row.
    pub differences: Vec<Difference>,
}

/// Rows of a stripe, one after the other, with the same fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The stripe.
    pub stripe: u64,
    /// The volume's sector that the first row is about; of parity, the one on the first member that has data there.
    pub first: Lbn,
    /// How many rows.
    pub rows: Sectors,
    /// The fault.
    pub fault: Fault,
    /// The members that have it: those that cannot read, whose copies differ, or the one with the parity.
    pub members: MemberSet,
    /// Whether it was repaired.
    pub repaired: bool,
}

/// What can be wrong with a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// A sector cannot be read, and the other members tell what it holds.
    Unreadable,
    /// Sectors cannot be read, and the other members do not tell what they hold.
    Lost,
    /// Copies differ from the majority.
    Outvoted,
    /// Copies differ, and none has a majority.
    Tied,
    /// Parity does not match the data.
    Parity,
}

impl Fault {
    /// All of them.
    pub const ALL: [Fault; 5] = [
        Fault::Unreadable,
        Fault::Lost,
        Fault::Outvoted,
        Fault::Tied,
        Fault::Parity,
    ];

    /// The name by which it is reported.
    pub fn name(self) -> &'static str {
        match self {
            Fault::Unreadable => "unreadable",
            Fault::Lost => "lost",
            Fault::Outvoted => "outvoted",
            Fault::Tied => "tied",
            Fault::Parity => "parity",
        }
    }
}

impl Scrubbed {
    /// Notes a row, together with the one before if the same is wrong there.
    fn note(&mut self, stripe: &Stripe<'_>, first: Lbn, found: RowFault) {
        let RowFault {
            fault,
            members,
            repaired,
        } = found;
        if let Some(last) = self.differences.last_mut() {
            let goes_on = last.first + last.rows == first;
            if goes_on && (last.fault, last.members, last.repaired) == (fault, members, repaired) {
                last.rows.0 += 1;
                return;
            }
        }
        self.differences.push(Difference {
            stripe: stripe.number(),
            first,
            rows: Sectors(1),
            fault,
            members,
            repaired,
        });
    }

    /// How many rows have a fault.
    pub fn rows(&self, fault: Fault) -> u64 {
        let of = self.differences.iter().filter(|one| one.fault == fault);
        of.map(|one| one.rows.0).sum()
    }

    /// How many rows do not agree: copies or parity that differ.
    pub fn wrong(&self) -> u64 {
        [Fault::Outvoted, Fault::Tied, Fault::Parity]
            .map(|fault| self.rows(fault))
            .iter()
            .sum()
    }
}

/// What is wrong with a row.
#[derive(Clone, Copy)]
struct RowFault {
    fault: Fault,
    members: MemberSet,
    repaired: bool,
}

impl<M: Members> Volume<M> {
    /// Compares the parity or the copies of a stripe with its data, and changes what `repair` allows. Rows whose data are
    /// noted as lost are left out. A member that refuses what is written to it has failed.
    ///
    /// # Errors
    /// If something is to be repaired while a member is doubtful, the named member is none of the volume's, or so
    /// many members fail that the volume cannot do without.
    pub async fn scrub(&self, number: u64, repair: Repair) -> Result<Scrubbed, VolumeError> {
        let (scrubbed, failed) = {
            let state = self.gate.read().await;
            check(&state, repair)?;
            let stripe = self.stripe(number);
            let _lock = self.stripes[self.lock_of(number)].lock().await;
            let mut rows = self.read_rows(&state, &stripe).await;
            let mut scrubbed = Scrubbed::default();
            match (self.level(), stripe.parity_member()) {
                (_, Some(parity)) => {
                    self.compare_parity(&state, &stripe, parity, &mut rows, repair, &mut scrubbed);
                }
                (Level::Raid1, None) => {
                    self.compare_copies(&stripe, &mut rows, repair, &mut scrubbed);
                }
                (_, None) => self.report_unreadable(&stripe, &rows, &mut scrubbed),
            }
            (scrubbed, self.write_repaired(&rows).await?)
        };
        self.fail_all(failed).await?;
        Ok(scrubbed)
    }

    async fn write_repaired(&self, rows: &StripeRows<M::Buffer>) -> Result<Failures, VolumeError> {
        let failed = self.write_changed(rows).await?;
        if failed.is_empty() {
            self.count_repair(rows.changed());
        }
        Ok(failed)
    }

    fn compare_parity(
        &self,
        state: &State,
        stripe: &Stripe<'_>,
        parity: usize,
        rows: &mut StripeRows<M::Buffer>,
        repair: Repair,
        scrubbed: &mut Scrubbed,
    ) {
        let mut sum = vec![0; self.sector_bytes];
        for row in rows.rows() {
            let unreadable = rows.unreadable_at(row);
            let set = |chunks: &[usize]| members_of(rows, chunks);
            let (fault, members, target) = match unreadable[..] {
                [] => {
                    rows.sum(row, None, &mut sum);
                    let is_right = !rows.is_complete || sum.iter().all(|byte| *byte == 0);
                    if is_right || !Self::is_kept(state, stripe, row) {
                        continue;
                    }
                    let mut with = rows.with(row);
                    let of_parity = with.find(|index| rows.chunks[*index].chunk.member == parity);
                    let target = of_parity.filter(|_| repair.parity);
                    (Fault::Parity, MemberSet::only(parity), target)
                }
                [one] if rows.is_complete && Self::is_kept(state, stripe, row) => (
                    Fault::Unreadable,
                    set(&unreadable),
                    Some(one).filter(|_| repair.sectors),
                ),
                _ => (Fault::Lost, set(&unreadable), None),
            };
            let repaired = target.is_some();
            if let Some(target) = target {
                rows.sum(row, Some(target), &mut sum);
                rows.chunks[target].set_row(row, &sum);
            }
            let first = Self::sector_of(stripe, row);
            scrubbed.note(
                stripe,
                first,
                RowFault {
                    fault,
                    members,
                    repaired,
                },
            );
        }
    }

    fn compare_copies(
        &self,
        stripe: &Stripe<'_>,
        rows: &mut StripeRows<M::Buffer>,
        repair: Repair,
        scrubbed: &mut Scrubbed,
    ) {
        if rows.all_alike() {
            return;
        }
        for row in rows.rows() {
            let unreadable = rows.unreadable_at(row);
            let readable: SmallVec<[usize; 8]> = rows
                .with(row)
                .filter(|index| !unreadable.contains(index))
                .collect();
            let bytes = |index: usize| rows.chunks[index].row(row, self.sector_bytes);
            let alike = |index: usize| {
                readable
                    .iter()
                    .filter(move |one| bytes(**one) == bytes(index))
            };
            let most = readable
                .iter()
                .copied()
                .max_by_key(|index| alike(*index).count());
            let agreed = most.filter(|most| alike(*most).count() * 2 > readable.len());
            let all_agree = agreed.is_some_and(|most| alike(most).count() == readable.len());
            if all_agree && unreadable.is_empty() {
                continue;
            }
            let named = readable
                .iter()
                .copied()
                .find(|index| Some(rows.chunks[*index].chunk.member) == repair.from);
            let (fault, wrong) = match agreed {
                _ if readable.is_empty() => (Fault::Lost, unreadable.to_vec()),
                Some(_) if all_agree => (Fault::Unreadable, unreadable.to_vec()),
                Some(agreed) => {
                    let differs = |index: &usize| bytes(*index) != bytes(agreed);
                    (
                        Fault::Outvoted,
                        readable.iter().copied().filter(differs).collect(),
                    )
                }
                None => (Fault::Tied, readable.to_vec()),
            };
            let right = agreed
                .filter(|_| repair.sectors)
                .or(named.filter(|_| agreed.is_none()));
            let members = members_of(rows, &wrong);
            let first = Self::sector_of(stripe, row);
            let repaired = right.is_some();
            if let Some(right) = right {
                let right = bytes(right).to_vec();
                for index in unreadable.iter().chain(&readable) {
                    let chunk = &mut rows.chunks[*index];
                    if !chunk.can_read(row) || chunk.row(row, self.sector_bytes) != right {
                        chunk.set_row(row, &right);
                    }
                }
            }
            scrubbed.note(
                stripe,
                first,
                RowFault {
                    fault,
                    members,
                    repaired,
                },
            );
        }
    }

    /// Reports what cannot be read where nothing is kept twice.
    fn report_unreadable(
        &self,
        stripe: &Stripe<'_>,
        rows: &StripeRows<M::Buffer>,
        scrubbed: &mut Scrubbed,
    ) {
        for chunk in &rows.chunks {
            for &row in &chunk.unreadable {
                let member = chunk.chunk.member;
                let first = stripe.logical_at(member, row);
                let found = RowFault {
                    fault: Fault::Lost,
                    members: MemberSet::only(member),
                    repaired: false,
                };
                scrubbed.note(stripe, first.unwrap_or(stripe.logical().start), found);
            }
        }
    }

    /// Takes the doubt from members whose superblocks were found missing or damaged: their data are good, their keeper says.
    /// All superblocks are written anew.
    ///
    /// # Errors
    /// If so many members fail that the volume cannot do without.
    pub async fn repair_superblocks(&self) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        for member in &mut state.superblock.members {
            member.doubtful = false;
        }
        self.persist(&mut state).await
    }

    /// Makes durable how far a scrub has come: the next one begins there.
    ///
    /// # Errors
    /// If too many members fail.
    pub async fn scrub_checkpoint(&self, next: u64) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        self.settle(&mut state, true).await?;
        state.superblock.scrubbed = if next >= self.array.stripes() {
            0
        } else {
            next
        };
        self.persist(&mut state).await
    }
}

fn members_of<B>(rows: &StripeRows<B>, chunks: &[usize]) -> MemberSet {
    let members = chunks.iter().map(|index| rows.chunks[*index].chunk.member);
    members.collect()
}

/// Whether a repair may begin.
fn check(state: &State, repair: Repair) -> Result<(), VolumeError> {
    if repair == Repair::NONE {
        return Ok(());
    }
    let members = &state.superblock.members;
    if let Some(member) = members.iter().position(|member| member.doubtful) {
        return Err(VolumeError::Doubtful { member });
    }
    match repair.from {
        Some(member) if member >= members.len() => Err(VolumeError::Member {
            member,
            problem: "does not exist",
        }),
        _ => Ok(()),
    }
}

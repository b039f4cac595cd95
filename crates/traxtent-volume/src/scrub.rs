//! Scrubs, which find and report inconsistencies. A scrub makes only the repairs that are
//! requested, and only if the right data is certain or specified.
//!
//! | found | without repair | repaired by |
//! |---|---|---|
//! | an unreadable sector that the others determine | reported | [`Repair::sectors`] |
//! | an unreadable sector that they do not determine | reported | nothing |
//! | differing replicas, a majority of them equal | reported | [`Repair::sectors`]: the majority |
//! | differing replicas, no majority | reported | [`Repair::preferred`]: the specified member |
//! | parity that does not match | reported | [`Repair::parity`]: computed from the data |

use smallvec::SmallVec;

use super::stripe_rows::StripeRows;
use super::{Failures, MemberIo, State, Volume, VolumeError};
use traxtent_layout::raid::{Level, MemberSet, Stripe};
use traxtent_units::{Lbn, Sectors};

/// The changes that a scrub may make. The default is none.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Repair {
    /// Rewrite sectors that cannot be read, from the others. With three or more replicas, also
    /// rewrite sectors that differ from the majority.
    pub sectors: bool,
    /// The member whose data is right if there is no majority.
    pub preferred: Option<usize>,
    /// Recompute mismatched parity from the data. Wrong data stays wrong, and can no longer be
    /// detected.
    pub parity: bool,
}

impl Repair {
    /// No changes.
    pub const NONE: Repair = Repair {
        sectors: false,
        preferred: None,
        parity: false,
    };
}

/// The findings of a scrub in one stripe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Scrubbed {
    /// The inconsistencies, in ascending order of rows; in RAID-0, chunk by chunk.
    pub differences: Vec<Difference>,
}

/// Consecutive rows of a stripe with the same fault.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Difference {
    /// The stripe.
    pub stripe: u64,
    /// The volume's sector in the first row. With parity, it is the sector on the first member that
    /// has data there.
    pub first: Lbn,
    /// The number of rows.
    pub rows: Sectors,
    /// The fault.
    pub fault: Fault,
    /// The members at fault: members that cannot read, members whose replicas differ, or the member
    /// with the parity.
    pub members: MemberSet,
    /// Whether the fault was repaired, except on members that failed the write.
    pub repaired: bool,
}

/// A fault of a row.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Fault {
    /// Sectors cannot be read, but the other members determine their contents.
    Unreadable,
    /// Sectors cannot be read, and the other members do not determine their contents.
    Lost,
    /// Replicas differ from the majority.
    Outvoted,
    /// Replicas differ, and there is no majority.
    Tied,
    /// Parity does not match the data.
    Parity,
}

impl Fault {
    /// All faults.
    pub const ALL: [Fault; 5] = [
        Fault::Unreadable,
        Fault::Lost,
        Fault::Outvoted,
        Fault::Tied,
        Fault::Parity,
    ];

    /// Returns the name of the fault in reports.
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
    /// Records a row, merging it with the preceding one if it has the same fault, members and
    /// repair.
    fn note(&mut self, stripe: &Stripe<'_>, first: Lbn, found: RowFault) {
        let RowFault {
            fault,
            members,
            repaired,
        } = found;
        if let Some(last) = self.differences.last_mut() {
            let continues = last.first + last.rows == first;
            if continues && (last.fault, last.members, last.repaired) == (fault, members, repaired)
            {
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

    /// Returns the number of rows with a fault.
    pub fn rows(&self, fault: Fault) -> u64 {
        let of = self.differences.iter().filter(|one| one.fault == fault);
        of.map(|one| one.rows.0).sum()
    }

    /// Returns the number of rows whose replicas differ or whose parity does not match.
    pub fn wrong(&self) -> u64 {
        [Fault::Outvoted, Fault::Tied, Fault::Parity]
            .map(|fault| self.rows(fault))
            .iter()
            .sum()
    }
}

/// The fault found in a row.
#[derive(Clone, Copy)]
struct RowFault {
    fault: Fault,
    members: MemberSet,
    repaired: bool,
}

impl<M: MemberIo> Volume<M> {
    /// Checks the parity or the replicas of a stripe, and makes the repairs that `repair` allows.
    /// Parity is not checked in rows with sectors recorded as lost, or if a member of the stripe is
    /// absent. A member that fails a write is marked as failed.
    ///
    /// # Errors
    /// Returns an error if a repair is requested while a member is doubtful or the volume is open
    /// for reading only, if the preferred member does not exist, if a member has no space for a
    /// repair, or if too many members fail.
    ///
    /// # Panics
    /// Panics if there is no such stripe.
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
                    self.compare_replicas(&stripe, &mut rows, repair, &mut scrubbed);
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

    fn compare_replicas(
        &self,
        stripe: &Stripe<'_>,
        rows: &mut StripeRows<M::Buffer>,
        repair: Repair,
        scrubbed: &mut Scrubbed,
    ) {
        if rows.all_equal() {
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
            let popular = readable
                .iter()
                .copied()
                .max_by_key(|index| alike(*index).count());
            let agreed = popular.filter(|index| alike(*index).count() * 2 > readable.len());
            let all_agree = agreed.is_some_and(|index| alike(index).count() == readable.len());
            if all_agree && unreadable.is_empty() {
                continue;
            }
            let preferred = readable
                .iter()
                .copied()
                .find(|index| Some(rows.chunks[*index].chunk.member) == repair.preferred);
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
                .or(preferred.filter(|_| agreed.is_none()));
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

    /// Reports unreadable sectors of a volume without redundancy.
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

    /// Clears the doubtful state of members whose superblocks were missing, damaged or too old: the
    /// administrator confirms that their data is good. The superblocks of all members that have not
    /// failed are rewritten.
    ///
    /// # Errors
    /// Returns an error if too many members fail.
    pub async fn repair_superblocks(&self) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        for member in &mut state.superblock.members {
            member.doubtful = false;
        }
        self.persist(&mut state).await
    }

    /// Makes the progress of a scrub durable. The next scrub begins at the stripe `next`. It begins
    /// at stripe 0 if that is the end, or if a member is doubtful or not active. The caller must
    /// have found no difference before `next`. `found` says whether differences were found and not
    /// repaired.
    ///
    /// # Errors
    /// Returns an error if too many members fail.
    pub async fn scrub_checkpoint(&self, next: u64, found: bool) -> Result<(), VolumeError> {
        let mut state = self.gate.write().await;
        self.settle(&mut state, true).await?;
        let is_complete = next >= self.array.stripes();
        state.superblock.scrubbed = if is_complete { 0 } else { next };
        state.superblock.unrepaired = found || (state.superblock.unrepaired && !is_complete);
        self.persist(&mut state).await
    }
}

fn members_of<B>(rows: &StripeRows<B>, chunks: &[usize]) -> MemberSet {
    let members = chunks.iter().map(|index| rows.chunks[*index].chunk.member);
    members.collect()
}

/// Checks that a repair may begin.
fn check(state: &State, repair: Repair) -> Result<(), VolumeError> {
    if repair == Repair::NONE {
        return Ok(());
    }
    if state.read_only {
        return Err(VolumeError::ReadOnly);
    }
    let members = &state.superblock.members;
    if let Some(member) = members.iter().position(|member| member.doubtful) {
        return Err(VolumeError::Doubtful { member });
    }
    match repair.preferred {
        Some(member) if member >= members.len() => Err(VolumeError::Member {
            member,
            problem: "does not exist",
        }),
        _ => Ok(()),
    }
}

//! Stripe plans: the operations that carry out a request on one stripe.
//!
//! A plan covers one stripe. All its reads can be issued at once. When they are complete, its
//! exclusive ors are computed in order. Then all its writes can be issued at once. The executor
//! needs two buffers for each chunk of the stripe: one for the present contents (*old*) and one for
//! the new contents (*new*). A *row* is a sector of a chunk, counted from the chunk's first. An
//! exclusive or combines sectors of several chunks in the same row.
//!
//! A write that does not cover a stripe needs reads for the new parity. It reads either the data
//! that it overwrites and the old parity ([`ParityUpdate::Modify`]), or the data that it does not
//! overwrite ([`ParityUpdate::Reconstruct`]). The planner takes the cheaper method. A read costs
//! its sectors plus [`StripePlanner::positioning`]. If members cannot be used ([`StripeHealth`]),
//! perhaps only the other method is possible. The write hole is not closed here: a crash between
//! the writes of a plan leaves inconsistent parity, which a journal must repair.
//!
//! When the executor finds that something cannot be read, it adds this to the health of the stripe
//! and plans again, until a plan can be carried out or none exists.

use std::ops::Range;

use smallvec::SmallVec;

use super::{Array, ChunkContents, Level, MemberSet, RaidError, Stripe};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Sectors};

/// The parameters for making plans.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct StripePlanner {
    /// The cost of a read in addition to its sectors: the number of sectors that pass during a seek
    /// and half a revolution. It is about a track.
    pub positioning: Sectors,
    /// Whether a read from all data chunks of a stripe also reads the parity in the same rows, and
    /// drops it (paper Q, section 3). The requests to a member then have no gap there.
    pub dummy_reads: bool,
}

/// How a partial stripe write computes the new parity.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ParityUpdate {
    /// From the old parity and the data that is overwritten.
    Modify,
    /// From the data that is not overwritten.
    Reconstruct,
}

impl ParityUpdate {
    /// All update methods.
    pub const ALL: [ParityUpdate; 2] = [ParityUpdate::Modify, ParityUpdate::Reconstruct];

    /// The method's usual name.
    pub fn name(self) -> &'static str {
        match self {
            ParityUpdate::Modify => "read-modify-write",
            ParityUpdate::Reconstruct => "reconstruct-write",
        }
    }
}

/// The usability of a stripe's members.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct StripeHealth {
    /// Members that are neither read nor written.
    pub failed: MemberSet,
    /// Members that cannot read some part of the stripe. They are still written.
    pub unreadable: MemberSet,
    /// Whether the stripe's parity may never have been initialized. Rows that have been written
    /// have correct parity all the same, unless their writes had to use the old parity. The parity
    /// of such a stripe is not used to reconstruct data of a member that may become readable again.
    pub unsynced: bool,
}

impl StripeHealth {
    /// All members are usable, and the parity is initialized.
    pub const GOOD: StripeHealth = StripeHealth {
        failed: MemberSet::NONE,
        unreadable: MemberSet::NONE,
        unsynced: false,
    };

    /// Returns the health of a stripe whose members `failed` have failed.
    pub fn without(failed: MemberSet) -> StripeHealth {
        StripeHealth {
            failed,
            ..StripeHealth::GOOD
        }
    }

    /// Returns the members that are not read.
    pub fn absent(self) -> MemberSet {
        self.failed.union(self.unreadable)
    }
}

/// Consecutive rows of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RowExtent {
    /// The member that has the chunk.
    pub member: usize,
    /// The rows.
    pub rows: Range<u64>,
    /// The first row's LBN on that member.
    pub lbn: Lbn,
    /// The array sector of the first row; `None` for parity.
    pub logical: Option<Lbn>,
}

/// The exclusive or of rows. A chunk counts as zero beyond its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct XorStep {
    /// The member whose chunk the result belongs to.
    pub member: usize,
    /// Whether the result is the chunk's present contents, because they cannot be read, or its new
    /// contents.
    pub age: Version,
    /// The rows.
    pub rows: Range<u64>,
    /// The members whose old rows are combined.
    pub old: MemberSet,
    /// The members whose new rows are combined.
    pub new: MemberSet,
}

/// A version of a member's rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Version {
    /// The present contents.
    Old,
    /// The contents to be written.
    New,
}

/// The operations on one stripe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct StripePlan {
    /// The stripe's number.
    pub stripe: u64,
    /// The extents to read first. Those of one member are in ascending order.
    pub reads: Vec<RowExtent>,
    /// An extent that is also read, and whose data is dropped.
    pub dummy: Option<RowExtent>,
    /// The exclusive ors to compute next, in this order.
    pub sums: Vec<XorStep>,
    /// The extents to write last. Those of one member are in ascending order.
    pub writes: Vec<RowExtent>,
}

impl StripePlan {
    fn clear(&mut self, stripe: &Stripe<'_>) {
        self.stripe = stripe.number();
        self.reads.clear();
        self.sums.clear();
        self.writes.clear();
        self.dummy = None;
    }

    fn cost(&self, positioning: Sectors) -> u64 {
        let of = |extent: &RowExtent| positioning.0 + extent.rows.end - extent.rows.start;
        self.reads.iter().map(of).sum()
    }
}

impl Array {
    /// Returns the stripes that hold sectors of a range, each with its part of the range. Sectors
    /// beyond the end of the array are omitted.
    pub fn stripes_of(
        &self,
        sectors: Range<Lbn>,
    ) -> impl Iterator<Item = (Stripe<'_>, Range<Lbn>)> {
        let mut next = sectors.start;
        std::iter::from_fn(move || {
            let stripe = self.locate(next).filter(|_| next < sectors.end)?.stripe;
            let part = next..stripe.logical().end.min(sectors.end);
            next = part.end;
            Some((stripe, part))
        })
    }
}

impl StripePlanner {
    /// Plans a read of sectors of the array that lie in one stripe.
    ///
    /// # Errors
    /// Returns an error if too many members cannot be read, or if parity would be needed that may
    /// not be used ([`StripeHealth::unsynced`]).
    ///
    /// # Panics
    /// Panics if the sectors are not all in the stripe.
    pub fn read(
        &self,
        stripe: &Stripe<'_>,
        sectors: Range<Lbn>,
        health: StripeHealth,
        plan: &mut StripePlan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        let mut requested = MemberSet::NONE;
        for (k, rows) in rows_of(stripe, &sectors) {
            let member = source(stripe, k, rows.start, health.absent())?;
            requested = requested.with(member);
            if !health.absent().has(member) {
                plan.reads.push(extent(stripe, member, rows));
                continue;
            }
            self.reconstruct(stripe, member, Version::Old, rows, health, plan)?;
        }
        merge(&mut plan.reads);
        let parity = stripe.parity_member();
        let parity = parity.filter(|parity| self.dummy_reads && !health.absent().has(*parity));
        if let Some(parity) = parity {
            let first = plan.reads.iter().map(|read| read.rows.start).min();
            let end = plan.reads.iter().map(|read| read.rows.end).max();
            let end = end.unwrap_or(0).min(stripe.chunk_on(parity).sectors.0);
            let only_parity_missing = requested.count() == stripe.data_chunks()
                && plan.reads.iter().all(|read| read.member != parity);
            if let Some(first) = first.filter(|first| only_parity_missing && *first < end) {
                plan.dummy = Some(extent(stripe, parity, first..end));
            }
        }
        Ok(())
    }

    /// Plans a write of sectors of the array that lie in one stripe.
    ///
    /// # Errors
    /// Returns an error if too many members have failed, or if data needed for the new parity
    /// cannot be read.
    ///
    /// # Panics
    /// Panics if the sectors are not all in the stripe.
    pub fn write(
        &self,
        stripe: &Stripe<'_>,
        sectors: Range<Lbn>,
        health: StripeHealth,
        plan: &mut StripePlan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        for (k, rows) in rows_of(stripe, &sectors) {
            source(stripe, k, rows.start, health.failed)?;
            let members = match stripe.level() {
                Level::Raid1 => 0..stripe.members(),
                Level::Raid0 | Level::Raid4 | Level::Raid5 => {
                    let member = stripe.data_member(k);
                    member..member + 1
                }
            };
            for member in members.filter(|member| !health.failed.has(*member)) {
                plan.writes.push(extent(stripe, member, rows.clone()));
            }
        }
        let parity = stripe.parity_member();
        let Some(parity) = parity.filter(|parity| !health.failed.has(*parity)) else {
            return Ok(());
        };
        let parts = parts_of(stripe, &sectors);
        let mut costs = [0; 2];
        for (update, cost) in std::iter::zip(ParityUpdate::ALL, &mut costs) {
            parity_of(stripe, parity, &parts, health, update, plan)?;
            *cost = plan.cost(self.positioning);
        }
        // The plan already holds the method that was tried last.
        if costs[0] <= costs[1] && costs[1] > 0 {
            parity_of(stripe, parity, &parts, health, ParityUpdate::Modify, plan)?;
        }
        for index in 0..plan.sums.len() {
            let rows = plan.sums[index].rows.clone();
            plan.writes.push(extent(stripe, parity, rows));
        }
        merge(&mut plan.writes);
        Ok(())
    }

    /// Plans the restoration of a member's chunk of a stripe from the other members, after the
    /// member has failed or could not read the chunk.
    ///
    /// # Errors
    /// Returns an error if the level has no redundancy, if too many other members cannot be read,
    /// or if parity would be needed that may not be used ([`StripeHealth::unsynced`]).
    ///
    /// # Panics
    /// Panics if there is no such member.
    pub fn rebuild(
        &self,
        stripe: &Stripe<'_>,
        member: usize,
        health: StripeHealth,
        plan: &mut StripePlan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        let chunk = stripe.chunk_on(member);
        let rows = 0..chunk.sectors.0;
        match chunk.holds {
            ChunkContents::Data(k) if stripe.parity_member().is_none() => {
                let from = source(stripe, k, 0, health.absent().with(member))?;
                plan.reads.push(extent(stripe, from, rows.clone()));
                plan.sums.push(copy(from, member, rows.clone()));
            }
            _ => self.reconstruct(stripe, member, Version::New, rows.clone(), health, plan)?,
        }
        plan.writes.push(extent(stripe, member, rows));
        Ok(())
    }

    /// Plans a read of a whole stripe, and the computation of its correct parity or replicas. The
    /// plan's writes are needed only where the members hold something else. The plan has no writes
    /// if there is nothing to compare.
    pub fn verify(&self, stripe: &Stripe<'_>, health: StripeHealth, plan: &mut StripePlan) {
        plan.clear(stripe);
        let all = |member: usize| 0..stripe.chunk_on(member).sectors.0;
        match (stripe.level(), stripe.parity_member()) {
            (Level::Raid1, _) => {
                let mut members = (0..stripe.members()).filter(|one| !health.absent().has(*one));
                let Some(first) = members.next() else { return };
                plan.reads.push(extent(stripe, first, all(first)));
                for member in members {
                    plan.reads.push(extent(stripe, member, all(member)));
                    plan.sums.push(copy(first, member, all(member)));
                    plan.writes.push(extent(stripe, member, all(member)));
                }
            }
            (_, Some(parity)) if health.absent().is_empty() => {
                // This cannot fail: no member is absent.
                let _ = self.reconstruct(stripe, parity, Version::New, all(parity), health, plan);
                plan.reads.push(extent(stripe, parity, all(parity)));
                plan.writes.push(extent(stripe, parity, all(parity)));
            }
            _ => {}
        }
    }

    /// Adds the reads and the exclusive or that reconstruct rows of a member.
    fn reconstruct(
        &self,
        stripe: &Stripe<'_>,
        member: usize,
        age: Version,
        rows: Range<u64>,
        health: StripeHealth,
        plan: &mut StripePlan,
    ) -> Result<(), RaidError> {
        let can_become_readable = health.unsynced && !health.failed.has(member);
        let of_parity = stripe.parity_member() == Some(member);
        let mut old = MemberSet::NONE;
        for chunk in stripe.chunks().filter(|chunk| chunk.member != member) {
            let there = rows.start..rows.end.min(chunk.sectors.0);
            if there.is_empty() {
                continue;
            }
            if health.absent().has(chunk.member) || can_become_readable && !of_parity {
                let lost = health.absent().with(member);
                return Err(lost_at(stripe, member, rows.start, lost));
            }
            plan.reads.push(extent(stripe, chunk.member, there));
            old = old.with(chunk.member);
        }
        plan.sums.push(XorStep {
            member,
            age,
            rows,
            old,
            new: MemberSet::NONE,
        });
        Ok(())
    }
}

/// Returns the step that copies the rows of one replica to another.
fn copy(from: usize, member: usize, rows: Range<u64>) -> XorStep {
    XorStep {
        member,
        age: Version::New,
        rows,
        old: MemberSet::only(from),
        new: MemberSet::NONE,
    }
}

/// A data chunk, and the rows of it that are written.
struct Part {
    member: usize,
    sectors: u64,
    written: Range<u64>,
}

type Parts = SmallVec<[Part; 8]>;

fn parts_of(stripe: &Stripe<'_>, sectors: &Range<Lbn>) -> Parts {
    let part = |(k, written)| Part {
        member: stripe.data_member(k),
        sectors: stripe.data_sectors(k).0,
        written,
    };
    all_rows_of(stripe, sectors).map(part).collect()
}

/// Replaces the plan's reads and exclusive ors by those that compute the parity of a write.
fn parity_of(
    stripe: &Stripe<'_>,
    parity: usize,
    parts: &Parts,
    health: StripeHealth,
    prefer: ParityUpdate,
    plan: &mut StripePlan,
) -> Result<(), RaidError> {
    plan.reads.clear();
    plan.sums.clear();
    let broken = |set: MemberSet, by: MemberSet| !set.intersection(by).is_empty();
    let mut from = 0;
    // Rows between which no written range begins or ends, and no chunk ends, are treated alike.
    while let Some(to) = next_end(parts, from) {
        let rows = from..to;
        from = to;
        let (mut written, mut kept) = (MemberSet::NONE, MemberSet::NONE);
        for part in parts {
            if part.written.contains(&rows.start) {
                written = written.with(part.member);
            } else if rows.start < part.sectors {
                kept = kept.with(part.member);
            }
        }
        if written.is_empty() {
            continue;
        }
        let reconstruct = !broken(kept, health.absent());
        // Parity that was never initialized must not be used for a member that may become readable
        // again with different contents.
        let modify = !broken(written.with(parity), health.absent())
            && !(health.unsynced && (reconstruct || broken(kept, health.unreadable)));
        let old = match (modify, reconstruct, prefer) {
            (true, true, ParityUpdate::Modify) | (true, false, _) if !kept.is_empty() => {
                written.with(parity)
            }
            (_, true, _) => kept,
            _ => {
                let first = parts.iter().find(|part| written.has(part.member));
                let member = first.map_or(parity, |part| part.member);
                return Err(lost_at(stripe, member, rows.start, health.absent()));
            }
        };
        for member in old.iter() {
            plan.reads.push(extent(stripe, member, rows.clone()));
        }
        plan.sums.push(XorStep {
            member: parity,
            age: Version::New,
            rows,
            old,
            new: written,
        });
    }
    merge(&mut plan.reads);
    Ok(())
}

/// Returns the first start or end of a written range, or end of a chunk, after the row `from`.
/// `None` after the last written row.
fn next_end(parts: &Parts, from: u64) -> Option<u64> {
    let last = parts.iter().map(|part| part.written.end).max()?;
    let ends = parts
        .iter()
        .flat_map(|part| [part.written.start, part.written.end, part.sectors]);
    ends.filter(|end| *end > from && *end <= last).min()
}

/// Returns the rows of each data chunk that hold sectors of a range. They are empty for chunks that
/// hold none.
fn all_rows_of<'a>(
    stripe: &'a Stripe<'_>,
    sectors: &Range<Lbn>,
) -> impl Iterator<Item = (usize, Range<u64>)> + use<'a> {
    let Range { start, end } = sectors.clone();
    (0..stripe.data_chunks()).map(move |k| {
        let chunk = stripe.logical_of(k);
        let row = |sector: Lbn| sector.clamp(chunk.start, chunk.end).0 - chunk.start.0;
        let rows = row(start)..row(end);
        // If nothing of a chunk is written, its position must not split the rows of others.
        (k, if rows.is_empty() { 0..0 } else { rows })
    })
}

fn rows_of<'a>(
    stripe: &'a Stripe<'_>,
    sectors: &Range<Lbn>,
) -> impl Iterator<Item = (usize, Range<u64>)> + use<'a> {
    let logical = stripe.logical();
    assert!(
        logical.start <= sectors.start && sectors.end <= logical.end,
        "{sectors:?} are not sectors of stripe {}, which has {logical:?}",
        stripe.number()
    );
    all_rows_of(stripe, sectors).filter(|(_, rows)| !rows.is_empty())
}

/// Returns the member from which a data chunk is read. With parity, that member may be absent; the
/// chunk is then computed from the others.
fn source(stripe: &Stripe<'_>, k: usize, row: u64, absent: MemberSet) -> Result<usize, RaidError> {
    let members = stripe.members();
    match stripe.level() {
        Level::Raid0 | Level::Raid4 | Level::Raid5 => {
            let member = stripe.data_member(k);
            let others = usize::from(stripe.level() != Level::Raid0);
            if absent.has(member) && absent.count() > others {
                return Err(lost_at(stripe, member, row, absent));
            }
            Ok(member)
        }
        // Reads rotate over the members.
        Level::Raid1 => {
            let turn = (stripe.number() % members as u64) as usize;
            let mut order = (0..members).map(|next| (turn + next) % members);
            order
                .find(|member| !absent.has(*member))
                .ok_or(lost_at(stripe, turn, row, absent))
        }
    }
}

fn lost_at(stripe: &Stripe<'_>, member: usize, row: u64, absent: MemberSet) -> RaidError {
    RaidError::Lost {
        sector: stripe
            .logical_at(member, row)
            .unwrap_or(stripe.logical().start),
        absent,
    }
}

fn extent(stripe: &Stripe<'_>, member: usize, rows: Range<u64>) -> RowExtent {
    RowExtent {
        member,
        lbn: stripe.lbn(member) + Sectors(rows.start),
        logical: stripe.logical_at(member, rows.start),
        rows,
    }
}

/// Sorts extents, and merges those that overlap or are adjacent.
fn merge(extents: &mut Vec<RowExtent>) {
    extents.sort_unstable_by_key(|extent| (extent.member, extent.rows.start));
    extents.dedup_by(|next, before| {
        let touch = next.member == before.member && next.rows.start <= before.rows.end;
        if touch {
            before.rows.end = before.rows.end.max(next.rows.end);
        }
        touch
    });
}

/// Combines extents into requests to members. Extents of consecutive stripes that are adjacent on a
/// member become one request of up to `most` sectors. The order of the requests follows that of the
/// extents.
///
/// # Panics
/// Panics if `most` is 0.
pub fn member_requests<'a>(
    extents: impl IntoIterator<Item = &'a RowExtent>,
    most: u32,
    request: fn(Lbn, u32) -> Request,
) -> Vec<(usize, Request)> {
    assert!(most > 0, "a request needs at least one sector");
    let mut all: Vec<(usize, Request)> = Vec::new();
    for extent in extents {
        let mut next = extent.lbn;
        let end = next + Sectors(extent.rows.end - extent.rows.start);
        let last = all
            .iter_mut()
            .rev()
            .find(|(member, _)| *member == extent.member);
        if let Some((_, last)) = last.filter(|(_, last)| last.end() == next) {
            let more = (end.0 - next.0).min(u64::from(most - last.sectors));
            last.sectors += more as u32;
            next += Sectors(more);
        }
        while next < end {
            let sectors = (end.0 - next.0).min(u64::from(most)) as u32;
            all.push((extent.member, request(next, sectors)));
            next += Sectors(u64::from(sectors));
        }
    }
    all
}

//! Requests as plans: what is read, what is summed, what is written.
//!
//! A plan is of one stripe: all reads may go out at once; when they are there, the sums are made in order; then all
//! writes may go out at once. Whoever executes it has, for each chunk of the stripe, room for what is on the member
//! (*old*) and for what is to be there (*new*). A *row* is a sector of a chunk, counted from the chunk's first; the
//! sum of a row is that of the sectors of all chunks in it.
//!
//! A write that does not cover a stripe needs something of the rest for the new parity: what it overwrites and the
//! old parity ([`Update::Modify`]), or all that it does not overwrite ([`Update::Reconstruct`]). The cheaper one is
//! taken, where a read costs its sectors and [`Planner::positioning`]. What members are not good for ([`Health`]) forces
//! the other. Nothing here closes the write hole: a crash between the writes of a plan leaves parity that does not
//! fit, which a journal has to mend.
//!
//! Whoever executes a plan finds out what cannot be read, adds it to the health of the stripe, and asks again, until
//! there is a plan that can be executed or none.

use std::ops::Range;

use smallvec::SmallVec;

use super::{Array, Holds, Level, Members, RaidError, Stripe};
use crate::request::Request;
use crate::units::{Lbn, Sectors};

/// How plans are made.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Planner {
    /// What a read costs beside its sectors, as so many more: the sectors that pass in a seek and half a revolution,
    /// about a track.
    pub positioning: Sectors,
    /// Whether parity is read too, and dropped, where it is all that a read leaves out of a stripe (paper Q, section
    /// 3), so that what a member is asked for has no gap there.
    pub dummy_reads: bool,
}

/// How the parity of a stripe that is written in part is found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Update {
    /// From the old parity and what is overwritten.
    Modify,
    /// From what is not overwritten.
    Reconstruct,
}

impl Update {
    /// All of them.
    pub const ALL: [Update; 2] = [Update::Modify, Update::Reconstruct];

    /// The name by which it is known.
    pub fn name(self) -> &'static str {
        match self {
            Update::Modify => "read-modify-write",
            Update::Reconstruct => "reconstruct-write",
        }
    }
}

/// What the members of a stripe are good for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Health {
    /// They are neither read nor written.
    pub failed: Members,
    /// They cannot read something of the stripe. They are written.
    pub unreadable: Members,
    /// The stripe's parity may never have been made. It is right in those rows that have been written since, if none of their
    /// writes could do with what it was before; nothing is computed from it for a member that may yet read.
    pub unsynced: bool,
}

impl Health {
    /// Good for everything.
    pub const GOOD: Health = Health {
        failed: Members::NONE,
        unreadable: Members::NONE,
        unsynced: false,
    };

    /// Of a stripe some of whose members have failed.
    pub fn without(failed: Members) -> Health {
        Health {
            failed,
            ..Health::GOOD
        }
    }

    /// Those that are not read.
    pub fn absent(self) -> Members {
        self.failed.union(self.unreadable)
    }
}

/// Rows of a chunk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Extent {
    /// The member that has the chunk.
    pub member: usize,
    /// The rows.
    pub rows: Range<u64>,
    /// The first row's LBN there.
    pub lbn: Lbn,
    /// The first row's sector of the array; none of parity.
    pub logical: Option<Lbn>,
}

/// A sum of rows, by exclusive or. A chunk counts as zero beyond its end.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Sum {
    /// Whose chunk it is for.
    pub member: usize,
    /// Whether it is what the chunk holds, because that cannot be read, or what it will hold.
    pub age: Age,
    /// The rows.
    pub rows: Range<u64>,
    /// Whose old rows are summed.
    pub old: Members,
    /// Whose new rows are.
    pub new: Members,
}

/// What a member's rows are about.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Age {
    /// What is on the member.
    Old,
    /// What is to be there.
    New,
}

/// What is to be done with a stripe.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Plan {
    /// The stripe's number.
    pub stripe: u64,
    /// What is read first, by member and row.
    pub reads: Vec<Extent>,
    /// What is read along and dropped.
    pub dummy: Option<Extent>,
    /// What is summed then, in this order.
    pub sums: Vec<Sum>,
    /// What is written at last, by member and row.
    pub writes: Vec<Extent>,
}

impl Plan {
    fn clear(&mut self, stripe: &Stripe<'_>) {
        self.stripe = stripe.number();
        self.reads.clear();
        self.sums.clear();
        self.writes.clear();
        self.dummy = None;
    }

    fn cost(&self, positioning: Sectors) -> u64 {
        let of = |extent: &Extent| positioning.0 + extent.rows.end - extent.rows.start;
        self.reads.iter().map(of).sum()
    }
}

impl Array {
    /// The stripes that have sectors of a range, and which sectors of the array each has of it. What is beyond the
    /// last is left out.
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

impl Planner {
    /// Makes the plan that reads sectors of the array, which lie in one stripe.
    ///
    /// # Errors
    /// If too many members cannot be read.
    ///
    /// # Panics
    /// If the sectors are not those of the stripe.
    pub fn read(
        &self,
        stripe: &Stripe<'_>,
        sectors: Range<Lbn>,
        health: Health,
        plan: &mut Plan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        let mut asked = Members::NONE;
        for (k, rows) in rows_of(stripe, &sectors) {
            let member = source(stripe, k, rows.start, health.absent())?;
            asked = asked.with(member);
            if !health.absent().has(member) {
                plan.reads.push(extent(stripe, member, rows));
                continue;
            }
            self.reconstruct(stripe, member, Age::Old, rows, health, plan)?;
        }
        merge(&mut plan.reads);
        let parity = stripe.parity_member();
        let parity = parity.filter(|parity| self.dummy_reads && !health.absent().has(*parity));
        if let Some(parity) = parity {
            let first = plan.reads.iter().map(|read| read.rows.start).min();
            let end = plan.reads.iter().map(|read| read.rows.end).max();
            let end = end.unwrap_or(0).min(stripe.on(parity).sectors.0);
            let lone = asked.count() == stripe.data_chunks()
                && plan.reads.iter().all(|read| read.member != parity);
            if let Some(first) = first.filter(|first| lone && *first < end) {
                plan.dummy = Some(extent(stripe, parity, first..end));
            }
        }
        Ok(())
    }

    /// Makes the plan that writes sectors of the array, which lie in one stripe.
    ///
    /// # Errors
    /// If too many members have failed, or what the new parity needs cannot be read.
    ///
    /// # Panics
    /// If the sectors are not those of the stripe.
    pub fn write(
        &self,
        stripe: &Stripe<'_>,
        sectors: Range<Lbn>,
        health: Health,
        plan: &mut Plan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        for (k, rows) in rows_of(stripe, &sectors) {
            source(stripe, k, rows.start, health.failed)?;
            let mirrors = match stripe.level() {
                Level::Raid1 => 0..stripe.members(),
                Level::Raid0 | Level::Raid4 | Level::Raid5 => {
                    let member = stripe.data_member(k);
                    member..member + 1
                }
            };
            for member in mirrors.filter(|member| !health.failed.has(*member)) {
                plan.writes.push(extent(stripe, member, rows.clone()));
            }
        }
        let parity = stripe.parity_member();
        let Some(parity) = parity.filter(|parity| !health.failed.has(*parity)) else {
            return Ok(());
        };
        let parts = parts_of(stripe, &sectors);
        let mut costs = [0; 2];
        for (update, cost) in std::iter::zip(Update::ALL, &mut costs) {
            parity_of(stripe, parity, &parts, health, update, plan)?;
            *cost = plan.cost(self.positioning);
        }
        // The last one tried is there already.
        if costs[0] <= costs[1] && costs[1] > 0 {
            parity_of(stripe, parity, &parts, health, Update::Modify, plan)?;
        }
        for index in 0..plan.sums.len() {
            let rows = plan.sums[index].rows.clone();
            plan.writes.push(extent(stripe, parity, rows));
        }
        merge(&mut plan.writes);
        Ok(())
    }

    /// Makes the plan that writes what a member has of a stripe, from what the others have. The member has failed, or cannot
    /// read.
    ///
    /// # Errors
    /// If too many others cannot be read.
    pub fn rebuild(
        &self,
        stripe: &Stripe<'_>,
        member: usize,
        health: Health,
        plan: &mut Plan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        let chunk = stripe.on(member);
        let rows = 0..chunk.sectors.0;
        match chunk.holds {
            Holds::Data(k) if stripe.parity_member().is_none() => {
                let from = source(stripe, k, 0, health.absent().with(member))?;
                plan.reads.push(extent(stripe, from, rows.clone()));
                plan.sums.push(copy(from, member, rows.clone()));
            }
            _ => self.reconstruct(stripe, member, Age::New, rows.clone(), health, plan)?,
        }
        plan.writes.push(extent(stripe, member, rows));
        Ok(())
    }

    /// Makes the plan that reads all of a stripe and says what its parity, or its copies, have to be. What it writes is to be
    /// written where something else stands. Nothing is planned where there is nothing to compare.
    pub fn verify(&self, stripe: &Stripe<'_>, health: Health, plan: &mut Plan) {
        plan.clear(stripe);
        let all = |member: usize| 0..stripe.on(member).sectors.0;
        match (stripe.level(), stripe.parity_member()) {
            (Level::Raid1, _) => {
                let mut mirrors = (0..stripe.members()).filter(|one| !health.absent().has(*one));
                let Some(first) = mirrors.next() else { return };
                plan.reads.push(extent(stripe, first, all(first)));
                for member in mirrors {
                    plan.reads.push(extent(stripe, member, all(member)));
                    plan.sums.push(copy(first, member, all(member)));
                    plan.writes.push(extent(stripe, member, all(member)));
                }
            }
            (_, Some(parity)) if health.absent().is_empty() => {
                // All that there is: nothing is left out that could make it impossible.
                let _ = self.reconstruct(stripe, parity, Age::New, all(parity), health, plan);
                plan.reads.push(extent(stripe, parity, all(parity)));
                plan.writes.push(extent(stripe, parity, all(parity)));
            }
            _ => {}
        }
    }

    /// Reads what tells rows of a member, and sums it.
    fn reconstruct(
        &self,
        stripe: &Stripe<'_>,
        member: usize,
        age: Age,
        rows: Range<u64>,
        health: Health,
        plan: &mut Plan,
    ) -> Result<(), RaidError> {
        let may_yet_read = health.unsynced && !health.failed.has(member);
        let of_parity = stripe.parity_member() == Some(member);
        let mut old = Members::NONE;
        for chunk in stripe.chunks().filter(|chunk| chunk.member != member) {
            let there = rows.start..rows.end.min(chunk.sectors.0);
            if there.is_empty() {
                continue;
            }
            if health.absent().has(chunk.member) || may_yet_read && !of_parity {
                let lost = health.absent().with(member);
                return Err(lost_at(stripe, member, rows.start, lost));
            }
            plan.reads.push(extent(stripe, chunk.member, there));
            old = old.with(chunk.member);
        }
        plan.sums.push(Sum {
            member,
            age,
            rows,
            old,
            new: Members::NONE,
        });
        Ok(())
    }
}

/// What a mirror has, as another is to have it.
fn copy(from: usize, member: usize, rows: Range<u64>) -> Sum {
    Sum {
        member,
        age: Age::New,
        rows,
        old: Members::only(from),
        new: Members::NONE,
    }
}

/// A chunk of data, and which rows of it are written.
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

/// Reads and sums for the parity of a write.
fn parity_of(
    stripe: &Stripe<'_>,
    parity: usize,
    parts: &Parts,
    health: Health,
    prefer: Update,
    plan: &mut Plan,
) -> Result<(), RaidError> {
    plan.reads.clear();
    plan.sums.clear();
    let broken = |set: Members, by: Members| !set.intersection(by).is_empty();
    let mut from = 0;
    // Rows between two ends of what is written, or of chunks, are alike.
    while let Some(to) = next_end(parts, from) {
        let rows = from..to;
        from = to;
        let (mut written, mut kept) = (Members::NONE, Members::NONE);
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
        // Parity that was never made tells nothing of a member that may read again, with something else.
        let modify = !broken(written.with(parity), health.absent())
            && !(health.unsynced && (reconstruct || broken(kept, health.unreadable)));
        let old = match (modify, reconstruct, prefer) {
            (true, true, Update::Modify) | (true, false, _) if !kept.is_empty() => {
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
        plan.sums.push(Sum {
            member: parity,
            age: Age::New,
            rows,
            old,
            new: written,
        });
    }
    merge(&mut plan.reads);
    Ok(())
}

/// The first end of a chunk, or of what is written of one, behind a row; none behind the last that is written.
fn next_end(parts: &Parts, from: u64) -> Option<u64> {
    let last = parts.iter().map(|part| part.written.end).max()?;
    let ends = parts
        .iter()
        .flat_map(|part| [part.written.start, part.written.end, part.sectors]);
    ends.filter(|end| *end > from && *end <= last).min()
}

/// Which rows of each chunk of data have sectors of a range; those of chunks that have none are empty.
fn all_rows_of<'a>(
    stripe: &'a Stripe<'_>,
    sectors: &Range<Lbn>,
) -> impl Iterator<Item = (usize, Range<u64>)> + use<'a> {
    let Range { start, end } = sectors.clone();
    (0..stripe.data_chunks()).map(move |k| {
        let chunk = stripe.logical_of(k);
        let row = |sector: Lbn| sector.clamp(chunk.start, chunk.end).0 - chunk.start.0;
        let rows = row(start)..row(end);
        // Nothing is written of a chunk: no end of it may part the rows of others.
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

/// The member that a chunk of data is read from: if it cannot be, the others make up for it.
fn source(stripe: &Stripe<'_>, k: usize, row: u64, absent: Members) -> Result<usize, RaidError> {
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
        // Mirrors take turns.
        Level::Raid1 => {
            let turn = (stripe.number() % members as u64) as usize;
            let mut mirrors = (0..members).map(|next| (turn + next) % members);
            mirrors
                .find(|member| !absent.has(*member))
                .ok_or(lost_at(stripe, turn, row, absent))
        }
    }
}

fn lost_at(stripe: &Stripe<'_>, member: usize, row: u64, absent: Members) -> RaidError {
    RaidError::Lost {
        sector: stripe
            .logical_at(member, row)
            .unwrap_or(stripe.logical().start),
        absent,
    }
}

fn extent(stripe: &Stripe<'_>, member: usize, rows: Range<u64>) -> Extent {
    Extent {
        member,
        lbn: stripe.lbn(member) + Sectors(rows.start),
        logical: stripe.logical_at(member, rows.start),
        rows,
    }
}

/// Puts extents in order, and those that touch together.
fn merge(extents: &mut Vec<Extent>) {
    extents.sort_unstable_by_key(|extent| (extent.member, extent.rows.start));
    extents.dedup_by(|next, before| {
        let touch = next.member == before.member && next.rows.start <= before.rows.end;
        if touch {
            before.rows.end = before.rows.end.max(next.rows.end);
        }
        touch
    });
}

/// What members are asked for in one piece: extents of consecutive stripes that lie one behind the other on a member,
/// up to `most` sectors. What is given first is asked for first.
///
/// # Panics
/// If `most` is none.
pub fn joined<'a>(
    extents: impl IntoIterator<Item = &'a Extent>,
    most: u32,
    request: fn(Lbn, u32) -> Request,
) -> Vec<(usize, Request)> {
    assert!(most > 0, "a request has sectors");
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

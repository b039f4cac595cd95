//! Requests as plans: what is read, what is summed, what is written.
//!
//! A plan is of one stripe: all reads may go out at once; when they are there, the sums are made in order; then all
//! writes may go out at once. Whoever executes it has, for each chunk of the stripe, room for what is on the member
//! (*old*) and for what is to be there (*new*). A *row* is a sector of a chunk, counted from the chunk's first; the
//! sum of a row is that of the sectors of all chunks in it.
//!
//! A write that does not cover a stripe needs something of the rest for the new parity: what it overwrites and the
//! old parity ([`Update::Modify`]), or all that it does not overwrite ([`Update::Reconstruct`]). The cheaper one is
//! taken, where a read costs its sectors and [`Planner::positioning`]. A failed member forces the one that does
//! without it. Nothing here closes the write hole: a crash between the writes of a plan leaves parity that does not
//! fit, which a journal has to mend.

use std::ops::Range;

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
    /// If too many members have failed.
    ///
    /// # Panics
    /// If the sectors are not those of the stripe.
    pub fn read(
        &self,
        stripe: &Stripe<'_>,
        sectors: Range<Lbn>,
        failed: Members,
        plan: &mut Plan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        let mut asked = Members::NONE;
        for (k, rows) in rows_of(stripe, &sectors) {
            let member = source(stripe, k, failed)?;
            asked = asked.with(member);
            if !failed.has(member) {
                plan.reads.push(extent(stripe, member, rows));
                continue;
            }
            self.reconstruct(stripe, member, rows, plan);
        }
        merge(&mut plan.reads);
        let parity = stripe.parity_member();
        if let Some(parity) = parity.filter(|parity| self.dummy_reads && !failed.has(*parity)) {
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
    /// If too many members have failed.
    ///
    /// # Panics
    /// If the sectors are not those of the stripe.
    pub fn write(
        &self,
        stripe: &Stripe<'_>,
        sectors: Range<Lbn>,
        failed: Members,
        plan: &mut Plan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        for (k, rows) in rows_of(stripe, &sectors) {
            source(stripe, k, failed)?;
            for chunk in stripe
                .chunks()
                .filter(|chunk| chunk.holds == Holds::Data(k))
            {
                if !failed.has(chunk.member) {
                    plan.writes.push(extent(stripe, chunk.member, rows.clone()));
                }
            }
        }
        let Some(parity) = stripe.parity_member().filter(|parity| !failed.has(*parity)) else {
            return Ok(());
        };
        let costs = Update::ALL.map(|update| {
            parity_of(stripe, parity, &sectors, failed, update, plan);
            plan.cost(self.positioning)
        });
        // The last one tried is there already.
        if costs[0] <= costs[1] {
            parity_of(stripe, parity, &sectors, failed, Update::Modify, plan);
        }
        for index in 0..plan.sums.len() {
            let rows = plan.sums[index].rows.clone();
            plan.writes.push(extent(stripe, parity, rows));
        }
        merge(&mut plan.writes);
        Ok(())
    }

    /// Makes the plan that writes what a member has of a stripe, from what the others have.
    ///
    /// # Errors
    /// If too many others have failed.
    pub fn rebuild(
        &self,
        stripe: &Stripe<'_>,
        member: usize,
        failed: Members,
        plan: &mut Plan,
    ) -> Result<(), RaidError> {
        plan.clear(stripe);
        let chunk = stripe.on(member);
        let rows = 0..chunk.sectors.0;
        match chunk.holds {
            Holds::Data(k) if stripe.parity_member().is_none() => {
                let from = source(stripe, k, failed.with(member))?;
                plan.reads.push(extent(stripe, from, rows.clone()));
                plan.sums.push(Sum {
                    member,
                    age: Age::New,
                    rows: rows.clone(),
                    old: Members::only(from),
                    new: Members::NONE,
                });
            }
            _ if !failed.without(member).is_empty() => return Err(lost(failed.with(member))),
            _ => {
                self.reconstruct(stripe, member, rows.clone(), plan);
                for sum in &mut plan.sums {
                    sum.age = Age::New;
                }
            }
        }
        plan.writes.push(extent(stripe, member, rows));
        Ok(())
    }

    /// Reads what tells rows of a member, and sums it.
    fn reconstruct(&self, stripe: &Stripe<'_>, member: usize, rows: Range<u64>, plan: &mut Plan) {
        let mut old = Members::NONE;
        for chunk in stripe.chunks().filter(|chunk| chunk.member != member) {
            let there = rows.start..rows.end.min(chunk.sectors.0);
            if !there.is_empty() {
                plan.reads.push(extent(stripe, chunk.member, there));
                old = old.with(chunk.member);
            }
        }
        plan.sums.push(Sum {
            member,
            age: Age::Old,
            rows,
            old,
            new: Members::NONE,
        });
    }
}

/// Reads and sums for the parity of a write.
fn parity_of(
    stripe: &Stripe<'_>,
    parity: usize,
    sectors: &Range<Lbn>,
    failed: Members,
    prefer: Update,
    plan: &mut Plan,
) {
    plan.reads.clear();
    plan.sums.clear();
    let mut from = 0;
    // Rows between two ends of what is written, or of chunks, are alike.
    while let Some(to) = next_end(stripe, sectors, from) {
        let rows = from..to;
        from = to;
        let (mut written, mut kept) = (Members::NONE, Members::NONE);
        for (k, covered) in all_rows_of(stripe, sectors) {
            let chunk = stripe.data(k);
            if covered.contains(&rows.start) {
                written = written.with(chunk.member);
            } else if rows.start < chunk.sectors.0 {
                kept = kept.with(chunk.member);
            }
        }
        if written.is_empty() {
            continue;
        }
        let broken = |set: Members| failed.iter().any(|member| set.has(member));
        let update = match prefer {
            _ if kept.is_empty() || broken(written) => Update::Reconstruct,
            _ if broken(kept) => Update::Modify,
            prefer => prefer,
        };
        let old = match update {
            Update::Modify => written.with(parity),
            Update::Reconstruct => kept,
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
}

/// The first end of a chunk, or of what is written of one, behind a row; none behind the last that is written.
fn next_end(stripe: &Stripe<'_>, sectors: &Range<Lbn>, from: u64) -> Option<u64> {
    let last = all_rows_of(stripe, sectors)
        .map(|(_, rows)| rows.end)
        .max()?;
    let ends = all_rows_of(stripe, sectors)
        .flat_map(|(k, rows)| [rows.start, rows.end, stripe.data_sectors(k).0]);
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

/// The member that a chunk of data is read from: if it has failed, the others make up for it.
fn source(stripe: &Stripe<'_>, k: usize, failed: Members) -> Result<usize, RaidError> {
    let members = stripe.chunks().count();
    match stripe.level() {
        Level::Raid0 | Level::Raid4 | Level::Raid5 => {
            let member = stripe.data(k).member;
            let others = usize::from(stripe.level() != Level::Raid0);
            if failed.has(member) && failed.count() > others {
                return Err(lost(failed));
            }
            Ok(member)
        }
        // Mirrors take turns.
        Level::Raid1 => {
            let turn = (stripe.number() % members as u64) as usize;
            let mut mirrors = (0..members).map(|next| (turn + next) % members);
            mirrors
                .find(|member| !failed.has(*member))
                .ok_or(lost(failed))
        }
    }
}

fn lost(failed: Members) -> RaidError {
    RaidError::Lost { failed }
}

fn extent(stripe: &Stripe<'_>, member: usize, rows: Range<u64>) -> Extent {
    let chunk = stripe.on(member);
    let logical = match chunk.holds {
        Holds::Data(k) => Some(stripe.logical_of(k).start + Sectors(rows.start)),
        Holds::Parity => None,
    };
    Extent {
        member,
        lbn: chunk.lbn + Sectors(rows.start),
        logical,
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

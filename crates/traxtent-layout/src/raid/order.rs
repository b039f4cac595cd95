//! The tracks of a member in the order in which stripes use them.
//!
//! Tracks are ordered by size, largest first, and by LBN among those of one size. The n-th tracks
//! of drives that are numbered differently then have similar sizes. An [`Order`] stores the
//! positions of the tracks of one size as the distances between them, which repeat like the sizes
//! in the map.
//!
//! A track that lost a few sectors to defects is ordered by the size of tracks without defects. It
//! keeps its position among its neighbours although it is slightly shorter. A track that lost more
//! than [`DEFECTS_MAX`] sectors is not used (as in Atropos; paper Q, section 3). A map does not
//! record the lost sectors, so tracks with defects are recognized by how rare their size is.
//!
//! All this is the order for chunks that are tracks of similar size ([`Order::by_size`]).
//! [`Order::by_lbn`] orders tracks by LBN, with or without defects.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::ops::Range;

use traxtent_map::TrackMap;
use traxtent_map::pattern::{Measure, RunPattern};
use traxtent_units::{Lbn, Sectors};

/// The largest number of sectors that a used track can have lost to defects.
pub const DEFECTS_MAX: u32 = 8;

/// Tracks of a size have defects if another size, larger by at most [`DEFECTS_MAX`], has at least
/// this many times as many tracks.
const COMMON_RATIO_MIN: u64 = 16;

/// A size is rare if fewer than one in this many tracks has it. Its tracks are assumed to have too
/// many defects.
const RARE_ONE_IN: u64 = 4096;

/// The tracks of a member in the order of use. See [the module](self).
#[derive(Clone, Debug, Default)]
pub(super) struct Order {
    segments: Vec<Segment>,
    /// The sizes by rank, each with the number of consecutive tracks that have it. Neighbours
    /// differ.
    sizes: Vec<(u32, u64)>,
    tracks: u64,
}

/// Tracks of consecutive ranks, as the distance from each to the next.
#[derive(Clone, Debug)]
struct Segment {
    rank: u64,
    first: Lbn,
    distances: RunPattern,
}

impl Order {
    /// Returns the tracks within `lbns` that have at least `least` sectors and not too many
    /// defects, ordered by size.
    pub(super) fn by_size(map: &TrackMap, lbns: &Range<Lbn>, least: u32) -> Order {
        let mut counts: BTreeMap<u32, u64> = BTreeMap::new();
        let mut tracks = 0;
        for run in runs_within(map, lbns) {
            *counts.entry(run.size).or_default() += run.times;
            tracks += run.times;
        }
        let class_of = |size: u32| -> Option<u32> {
            let count = counts[&size];
            let larger = counts.range(size + 1..=size.saturating_add(DEFECTS_MAX));
            let whole = larger.max_by_key(|(size, count)| (**count, Reverse(**size)));
            match whole {
                Some((&whole, &many)) if many >= count.saturating_mul(COMMON_RATIO_MIN) => {
                    Some(whole)
                }
                _ => (count * RARE_ONE_IN >= tracks && size >= least).then_some(size),
            }
        };
        let class_of: BTreeMap<u32, Option<u32>> =
            counts.keys().map(|&size| (size, class_of(size))).collect();
        let mut classes: BTreeMap<Reverse<u32>, Order> = BTreeMap::new();
        let mut ends = BTreeMap::new();
        for run in runs_within(map, lbns).filter(|run| run.size >= least) {
            if let Some(class) = class_of[&run.size] {
                let order = classes.entry(Reverse(class)).or_default();
                order.push(&run, ends.entry(class).or_default());
            }
        }
        let mut all = Order::default();
        for (Reverse(class), mut order) in classes {
            order.end(ends.get(&class).expect("the class has tracks"));
            all.append(order);
        }
        all
    }

    /// Returns the tracks within `lbns` that have at least `least` sectors, ordered by LBN.
    pub(super) fn by_lbn(map: &TrackMap, lbns: &Range<Lbn>, least: u32) -> Order {
        let (mut order, mut last) = (Order::default(), Last::default());
        for run in runs_within(map, lbns).filter(|run| run.size >= least) {
            order.push(&run, &mut last);
        }
        order.end(&last);
        order
    }

    /// Returns the number of tracks.
    pub(super) fn len(&self) -> u64 {
        self.tracks
    }

    /// Returns the first LBN of the track with this rank.
    ///
    /// # Panics
    /// Panics if there is none.
    pub(super) fn lbn(&self, rank: u64) -> Lbn {
        let next = self
            .segments
            .partition_point(|segment| segment.rank <= rank);
        let segment = &self.segments[next - 1];
        let found = segment.distances.find(rank - segment.rank, Measure::Count);
        let (before, _) = found.expect("the rank is in the order");
        segment.first + Sectors(before.sum)
    }

    /// Returns the sizes from a rank on, each with the number of consecutive tracks that have it.
    pub(super) fn sizes_from(&self, rank: u64) -> impl Iterator<Item = (u32, u64)> {
        let mut skip = rank;
        self.sizes.iter().filter_map(move |&(size, times)| {
            let skipped = skip.min(times);
            skip -= skipped;
            (times > skipped).then_some((size, times - skipped))
        })
    }

    fn push(&mut self, run: &TrackRun, last: &mut Last) {
        let distance = last.0.map(|(lbn, _)| u32::try_from(run.lbn.0 - lbn.0));
        match (distance, self.segments.last_mut()) {
            (Some(Ok(distance)), Some(segment)) => segment.distances.push(distance, 1),
            _ => {
                self.end(last);
                self.segments.push(Segment {
                    rank: self.tracks,
                    first: run.lbn,
                    distances: RunPattern::default(),
                });
            }
        }
        let segment = self.segments.last_mut().expect("a segment was added");
        if run.times > 1 {
            segment.distances.push(run.size, run.times as u32 - 1);
        }
        let before = u64::from(run.size) * (run.times - 1);
        last.0 = Some((run.lbn + Sectors(before), run.size));
        push_size(&mut self.sizes, run.size, run.times);
        self.tracks += run.times;
    }

    /// Completes the last segment.
    fn end(&mut self, last: &Last) {
        if let (Some((_, size)), Some(segment)) = (last.0, self.segments.last_mut()) {
            segment.distances.push(size, 1);
            segment.distances.fold();
        }
    }

    fn append(&mut self, mut other: Order) {
        for segment in &mut other.segments {
            segment.rank += self.tracks;
        }
        self.segments.append(&mut other.segments);
        for (size, times) in other.sizes {
            push_size(&mut self.sizes, size, times);
        }
        self.tracks += other.tracks;
    }
}

fn push_size(sizes: &mut Vec<(u32, u64)>, size: u32, times: u64) {
    match sizes.last_mut() {
        Some((last, count)) if *last == size => *count += times,
        _ => sizes.push((size, times)),
    }
}

/// The first LBN and the size of the last track of an order under construction.
#[derive(Clone, Copy, Debug, Default)]
struct Last(Option<(Lbn, u32)>);

/// Consecutive tracks of one size.
struct TrackRun {
    lbn: Lbn,
    size: u32,
    times: u64,
}

/// Returns the tracks that lie entirely within a range.
fn runs_within(map: &TrackMap, lbns: &Range<Lbn>) -> impl Iterator<Item = TrackRun> {
    let Range { start, end } = lbns.clone();
    let mut next = map.first();
    map.runs().filter_map(move |(size, times)| {
        let (first, size_sectors) = (next, u64::from(size));
        next += Sectors(size_sectors * u64::from(times));
        let from = start.0.saturating_sub(first.0).div_ceil(size_sectors);
        let to = end.0.saturating_sub(first.0) / size_sectors;
        let to = to.min(u64::from(times));
        (from < to).then(|| TrackRun {
            lbn: first + Sectors(from * size_sectors),
            size,
            times: to - from,
        })
    })
}

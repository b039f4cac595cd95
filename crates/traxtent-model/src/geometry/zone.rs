//! The assignment of a zone's LBNs to its tracks: spares, slips, reserved sectors, remapped tracks.
//!
//! The input is a tree of the zone's tracks in which every slot is in use. The tracks are divided
//! into the regions of the sparing scheme. Regions without defects are stored as one repeated
//! region. A region with slips is stored track by track where necessary.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::error::GeometryError;
use super::shape::Shape;
use super::tree::{Branch, BranchOf, NodeId, Offset, Tree};
use traxtent_units::Angle;

/// Consecutive bad slots of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadSlots {
    pub(super) track: u64,
    pub(super) slot: u32,
    pub(super) len: u32,
}

/// The tracks of a zone, and their sectors that do not hold LBNs.
pub(super) struct ZoneTracks {
    /// The name for messages.
    pub(super) name: String,
    /// The tracks with all slots in use.
    pub(super) full: NodeId,
    /// The same tracks without the spares at the end of each.
    pub(super) trimmed: NodeId,
    /// The number of tracks that share spares.
    pub(super) region: u64,
    /// The number of sectors that a complete region reserves as spares.
    pub(super) spares: u64,
    /// The number of tracks at the end of the zone that are spares.
    pub(super) spare_tracks: u64,
    /// Whether spares are at the front of a region.
    pub(super) at_front: bool,
    /// Whether a slip shortens the zone.
    pub(super) slips_to_end: bool,
    /// The number of tracks after which the order repeats.
    pub(super) period: u64,
    /// Bad slots, ascending. If slips use spare sectors, each entry is a single slot.
    pub(super) bad: Vec<BadSlots>,
    /// Irregularities of the skew as (track, sectors): from this track, tracks begin this many
    /// sectors later. Ascending by track; the sectors are totals.
    pub(super) turns: Vec<(u64, i64)>,
    /// Tracks kept at the place of another track.
    pub(super) moved: BTreeMap<u64, u64>,
    /// The tracks at whose places others are kept.
    pub(super) replacement_tracks: BTreeSet<u64>,
}

/// The result: tracks with LBNs, in LBN order, and tracks without.
#[derive(Default)]
pub(super) struct ZoneBranches {
    pub(super) mapped: Vec<Branch>,
    pub(super) blank: Vec<Branch>,
}

impl ZoneTracks {
    fn tracks(&self, tree: &Tree) -> u64 {
        tree.node(self.full).tracks
    }

    /// Adds the whole zone to the tree.
    pub(super) fn add_zone(&self, tree: &mut Tree) -> Result<ZoneBranches, GeometryError> {
        let mut out = ZoneBranches::default();
        let tracks = self.tracks(tree);
        if self.spares == 0 || self.region >= tracks {
            self.add_region(tree, 0..tracks, &mut out)?;
            return Ok(out);
        }
        let whole = tracks / self.region;
        let mut region = 0;
        while region < whole {
            let first = region * self.region;
            let bad = self.bad.get(self.bad_from(first)).map(|b| b.track);
            let turn = self.turns.get(self.turns_from(first)).map(|t| t.0);
            let irregular = bad.into_iter().chain(turn).min();
            let regular = irregular.map_or(whole, |track| (track / self.region).min(whole));
            if regular > region {
                self.add_regular_regions(tree, region..regular, &mut out)?;
            }
            if regular < whole {
                self.add_region(
                    tree,
                    regular * self.region..(regular + 1) * self.region,
                    &mut out,
                )?;
            }
            region = regular + 1;
        }
        if whole * self.region < tracks {
            self.add_region(tree, whole * self.region..tracks, &mut out)?;
        }
        Ok(out)
    }

    /// The index of the first entry of `bad` at or after a track.
    fn bad_from(&self, track: u64) -> usize {
        self.bad.partition_point(|b| b.track < track)
    }

    /// The index of the first entry of `turns` at or after a track.
    fn turns_from(&self, track: u64) -> usize {
        self.turns.partition_point(|t| t.0 < track)
    }

    /// Adds complete regions that have neither defects nor irregularities of the skew.
    fn add_regular_regions(
        &self,
        tree: &mut Tree,
        regions: Range<u64>,
        out: &mut ZoneBranches,
    ) -> Result<(), GeometryError> {
        let count = regions.end - regions.start;
        let group = lcm(self.region, self.period) / self.region;
        let mut next = regions.start;
        if count >= 2 * group {
            let repeat = count / group;
            let tracks = next * self.region..(next + group) * self.region;
            let mut one = ZoneBranches::default();
            for region in next..next + group {
                self.add_region(
                    tree,
                    region * self.region..(region + 1) * self.region,
                    &mut one,
                )?;
            }
            let step = tree
                .spot(self.full, tracks.end)
                .minus(tree.spot(self.full, tracks.start));
            for (from, to) in [(one.mapped, &mut out.mapped), (one.blank, &mut out.blank)] {
                let node = tree.add_node(from);
                to.push(tree.branch(BranchOf::Node(node), Offset::default(), step, repeat));
            }
            next += repeat * group;
        }
        for region in next..regions.end {
            self.add_region(tree, region * self.region..(region + 1) * self.region, out)?;
        }
        Ok(())
    }

    /// The positions of a region that may hold LBNs, including bad ones.
    fn data(&self, tree: &Tree, tracks: &Range<u64>) -> Result<Range<u64>, GeometryError> {
        let (start, end) = (
            tree.sectors_before(self.full, tracks.start),
            tree.sectors_before(self.full, tracks.end),
        );
        let is_whole = tracks.end - tracks.start == self.region;
        let spares = if is_whole { self.spares } else { 0 };
        let bad = &self.bad[self.bad_from(tracks.start)..self.bad_from(tracks.end)];
        if self.spare_tracks > 0 {
            let mut last = tracks.end - self.spare_tracks;
            for b in bad {
                last += u64::from(b.track < last);
            }
            if last > tracks.end {
                let spares = self.spare_tracks;
                let problem = format!("the {spares} spare tracks are too few for the slips");
                return Err(GeometryError::inconsistent(&self.name, problem));
            }
            return Ok(start..tree.sectors_before(self.full, last));
        }
        if self.slips_to_end {
            return Ok(if self.at_front {
                start + spares..end
            } else {
                start..end - spares
            });
        }
        let position = |b: &BadSlots| tree.sectors_before(self.full, b.track) + u64::from(b.slot);
        let mut left = spares;
        let mut take = |b: &BadSlots| {
            left = left.checked_sub(b.len.into()).ok_or_else(|| {
                GeometryError::inconsistent(
                    &self.name,
                    format!(
                        "the {spares} spare sectors of tracks {}..{} are too few for their slips",
                        tracks.start, tracks.end
                    ),
                )
            })?;
            Ok::<(), GeometryError>(())
        };
        if self.at_front {
            let mut first = start + spares;
            for b in bad.iter().rev() {
                if position(b) >= first {
                    take(b)?;
                    first -= u64::from(b.len);
                }
            }
            Ok(first..end)
        } else {
            let mut last = end - spares;
            for b in bad {
                if position(b) < last && self.trimmed == self.full {
                    take(b)?;
                    last += u64::from(b.len);
                }
            }
            Ok(start..last)
        }
    }

    /// Adds one region to the tree.
    fn add_region(
        &self,
        tree: &mut Tree,
        tracks: Range<u64>,
        out: &mut ZoneBranches,
    ) -> Result<(), GeometryError> {
        let data = self.data(tree, &tracks)?;
        let bad = self.bad_from(tracks.start)..self.bad_from(tracks.end);
        // Single tracks that are added one by one, and points where a run of tracks must end.
        let mut single: Vec<u64> = self.bad[bad].iter().map(|b| b.track).collect();
        let mut cuts = vec![tracks.start, tracks.end];
        for edge in [data.start, data.end] {
            if edge == tree.node(self.full).sectors {
                cuts.push(tree.node(self.full).tracks);
                continue;
            }
            let found = tree.find_sector(self.full, edge);
            cuts.push(found.index);
            if found.first != edge {
                single.push(found.index);
            }
        }
        for (&from, &to) in self.moved.range(tracks.clone()) {
            single.extend([from, to]);
        }
        for &track in &single {
            cuts.extend([track, track + 1]);
        }
        let turns = self.turns_from(tracks.start)..self.turns_from(tracks.end);
        cuts.extend(self.turns[turns].iter().map(|t| t.0));
        cuts.retain(|cut| (tracks.start..=tracks.end).contains(cut));
        cuts.sort_unstable();
        cuts.dedup();
        single.sort_unstable();
        for pair in cuts.windows(2) {
            if single.binary_search(&pair[0]).is_ok() {
                self.add_track(tree, pair[0], &data, out)?;
            } else {
                let by = Offset::new(0, 0, self.shift(tree, pair[0]));
                let inside = data.start <= tree.sectors_before(self.full, pair[0])
                    && tree.sectors_before(self.full, pair[1]) <= data.end;
                let (node, to) = if inside {
                    (self.trimmed, &mut out.mapped)
                } else {
                    (self.full, &mut out.blank)
                };
                tree.slice(node, pair[0]..pair[1], by, to);
            }
        }
        Ok(())
    }

    /// Adds a track that differs from its neighbours.
    fn add_track(
        &self,
        tree: &mut Tree,
        track: u64,
        data: &Range<u64>,
        out: &mut ZoneBranches,
    ) -> Result<(), GeometryError> {
        let found = tree.find_track(self.full, track);
        let slots = found.shape.slots;
        let bad = &self.bad[self.bad_from(track)..self.bad_from(track + 1)];
        let slot = |position: u64| {
            let used = position
                .saturating_sub(found.first)
                .min(found.shape.sectors.into());
            found.shape.begin + used as u32
        };
        let (begin, mut end) = (slot(data.start), slot(data.end));
        if self.trimmed != self.full {
            // This track's own spares replace its slipped sectors.
            end = end.min(tree.find_track(self.trimmed, track).shape.sectors);
            for b in bad.iter().filter(|_| !self.slips_to_end) {
                end += if b.slot < end { b.len } else { 0 };
            }
            if end > slots {
                let spares = slots - tree.find_track(self.trimmed, track).shape.sectors;
                return Err(GeometryError::inconsistent(
                    &self.name,
                    format!(
                        "the {spares} spare sectors of track {track} are too few for its slips"
                    ),
                ));
            }
        }
        let lost: u32 = bad
            .iter()
            .map(|b| overlap(b.slot..b.slot + b.len, begin..end))
            .sum();
        let sectors = end.saturating_sub(begin) - lost;
        let gaps: Vec<_> = bad.iter().map(|b| (b.slot, b.len)).collect();
        let shape = Shape::with_gaps(slots, begin, sectors, gaps, &mut tree.gaps);
        let shape = tree.add_shape(shape);
        let mut spot = found.spot;
        spot.angle = spot.angle + self.shift(tree, track);
        let own = tree.branch(BranchOf::Track(shape), spot, Offset::default(), 1);
        if sectors == 0 {
            // The place to which a track is moved is added with that track.
            if !self.replacement_tracks.contains(&track) {
                out.blank.push(own);
            }
        } else if let Some(&to) = self.moved.get(&track) {
            let mut place = tree.spot(self.full, to);
            place.angle = place.angle + self.shift(tree, to);
            out.mapped.push(Branch { at: place, ..own });
            let gone = Shape::with_gaps(slots, 0, 0, [(0, slots)], &mut tree.gaps);
            let gone = tree.add_shape(gone);
            out.blank
                .push(tree.branch(BranchOf::Track(gone), spot, Offset::default(), 1));
        } else {
            out.mapped.push(own);
        }
        Ok(())
    }

    /// The angle of a track's origin in addition to the regular skew.
    fn shift(&self, tree: &Tree, track: u64) -> Angle {
        let Some(last) = self.turns_from(track + 1).checked_sub(1) else {
            return Angle::ZERO;
        };
        let slots = tree.find_track(self.full, track).shape.slots;
        let by = self.turns[last].1.rem_euclid(slots.into());
        Angle::from_ratio(by as u64, slots.into())
    }
}

/// Limits a list of tracks to the LBNs in `keep`. Tracks entirely outside go to `blank`. A track
/// that is partly outside holds only its LBNs in `keep`.
pub(super) fn keep_lbns(tree: &mut Tree, node: NodeId, keep: Range<u64>, out: &mut ZoneBranches) {
    let (sectors, tracks) = (tree.node(node).sectors, tree.node(node).tracks);
    if keep.is_empty() {
        tree.slice(node, 0..tracks, Offset::default(), &mut out.blank);
        return;
    }
    if keep == (0..sectors) {
        tree.slice(node, 0..tracks, Offset::default(), &mut out.mapped);
        return;
    }
    let (first, last) = (
        tree.find_sector(node, keep.start),
        tree.find_sector(node, keep.end - 1),
    );
    tree.slice(node, 0..first.index, Offset::default(), &mut out.blank);
    let mut whole = first.index;
    let mut ends = vec![first, last];
    ends.dedup_by_key(|found| found.index);
    for end in ends {
        let from = keep.start.saturating_sub(end.first) as u32;
        let to = (keep.end - end.first).min(end.shape.sectors.into()) as u32;
        if (from, to) == (0, end.shape.sectors) {
            continue;
        }
        tree.slice(node, whole..end.index, Offset::default(), &mut out.mapped);
        let gaps: Vec<_> = end.shape.bad(&tree.gaps).collect();
        let begin = end.shape.slot(from, &tree.gaps);
        let shape = Shape::with_gaps(end.shape.slots, begin, to - from, gaps, &mut tree.gaps);
        let shape = tree.add_shape(shape);
        out.mapped
            .push(tree.branch(BranchOf::Track(shape), end.spot, Offset::default(), 1));
        whole = end.index + 1;
    }
    tree.slice(
        node,
        whole..last.index + 1,
        Offset::default(),
        &mut out.mapped,
    );
    tree.slice(
        node,
        last.index + 1..tracks,
        Offset::default(),
        &mut out.blank,
    );
}

/// The size of the intersection of two ranges.
fn overlap(a: Range<u32>, b: Range<u32>) -> u32 {
    a.end.min(b.end).saturating_sub(a.start.max(b.start))
}

fn lcm(a: u64, b: u64) -> u64 {
    let (mut x, mut y) = (a, b);
    while y > 0 {
        (x, y) = (y, x % y);
    }
    a / x * b
}

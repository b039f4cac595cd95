//! The layout of a drive that does not translate, from skews and seek times.
//!
//! Consecutive tracks with a constant skew are the heads of a cylinder or a pass over a surface.
//! Where the skew changes, a cylinder or a pass ends. The minimum time from the first track of such
//! a run to its last shows whether the steps between are head switches or seeks. The minimum times
//! between passes show how many passes share their cylinders.
//!
//! Properties that affect neither skews nor times are not found: whether every cylinder begins with
//! the same head, unless a head switch takes longer than a step of one cylinder; the order of the
//! passes' surfaces, unless a head switch takes longer than the seeks; and heads or passes
//! between which the skew is the same as within them. Zones are recognized by the track sizes in
//! the map.

use std::collections::BTreeMap;

use super::angles::AngleMeter;
use super::layout::{TrackLayout, TrackPosition, learn};
use super::min_time::{SectorPair, min_time};
use super::stopwatch::{STEADY_MS, Stopwatch};
use crate::ProbeError;
use traxtent_map::MappedTrack;
use traxtent_model::geometry::{Geometry, GeometrySpec, Order, PerSurface, ZoneSpec};
use traxtent_units::Sectors;

/// The largest number of tracks in a run whose skew is measured. A pass must be narrower to be
/// recognized.
const WIDTH_MAX: usize = 1 << 15;
/// The number of passes that are compared: two groups of up to 20 surfaces.
const PASSES: usize = 40;
/// The number of tracks in a run above which it is a pass, not a cylinder, regardless of its times.
const HEADS_MAX: usize = 32;
/// The difference, in milliseconds, below which times count as equal.
const ALIKE_MS: f64 = 0.06;
/// The same for the times of passes on a steady host.
const ALIKE_STEADY_MS: f64 = 0.015;

/// The number of runs of constant skew that are measured. The most frequent length counts.
const RUNS: usize = 6;
/// The width of the range in which the search for a time between two tracks begins, in
/// milliseconds.
const TIME_RANGE_MS: f64 = 12.0;
/// The precision of this search, in milliseconds.
const TIME_WITHIN_MS: f64 = 0.006;
/// The number of searches for a time on an unsteady host, where the error of one is as large as the
/// difference between seeks.
const SEARCHES_UNSTEADY: u32 = 3;
/// The smallest number of tracks of one size that can be a zone. Rarer sizes are due to defects.
const ZONE_TRACKS_MIN: usize = 8;

/// The pattern of the first tracks.
struct Pattern {
    order: Order,
    surfaces: usize,
    width: usize,
}

/// Determines the layout, and adds a note on the evidence.
pub(super) fn layout(
    watch: &mut Stopwatch<'_>,
    tracks: &[MappedTrack],
    notes: &mut Vec<String>,
) -> Result<TrackLayout, ProbeError> {
    let runs = runs(watch, tracks)?;
    let length = usual(&runs);
    // Use a complete run, because the first may begin in the middle of a cylinder.
    let first: usize = runs.iter().take_while(|run| **run != length).sum();
    let pattern = pattern(watch, tracks, first, length)?;
    notes.push(format!(
        "The drive does not translate addresses. Its skew changes every {length} tracks; according to their times, these are {}.",
        match (pattern.order.is_head_first(), pattern.surfaces) {
            (true, 1) => "cylinders of one surface".to_owned(),
            (true, heads) => format!("the {heads} heads of a cylinder"),
            (false, surfaces) => format!("passes over one of {surfaces} surfaces"),
        }
    ));
    let spec = spec(tracks, &pattern, first);
    let geometry = Geometry::build(&spec).map_err(|error| ProbeError::Inconsistent {
        lbn: tracks[0].first_lbn,
        problem: format!("the skews do not result in a valid layout: {error}"),
    })?;
    learn(tracks.len(), &super::test_points(tracks), &mut |index| {
        let track = geometry
            .track(index as u64)
            .expect("the zones hold all tracks");
        Ok(TrackPosition {
            cylinder: track.cylinder.0 as i32,
            surface: track.surface.0.into(),
        })
    })
}

/// Returns the lengths of the first runs of constant skew.
fn runs(watch: &mut Stopwatch<'_>, tracks: &[MappedTrack]) -> Result<Vec<usize>, ProbeError> {
    let starts: Vec<_> = tracks.iter().map(|track| track.first_lbn).collect();
    let sectors: Vec<u32> = tracks.iter().map(|track| track.sectors.0 as u32).collect();
    let mut meter = AngleMeter {
        watch,
        starts: &starts,
        sectors: &sectors,
        trusting: false,
    };
    let mut found = Vec::new();
    let mut first = 0;
    while found.len() < RUNS && first + 1 < tracks.len() {
        let most = (tracks.len() - first).min(WIDTH_MAX);
        let (_, length) = meter.constant(most, None, &mut |meter, k| {
            Ok(meter.begins(first + k, sectors[first + k])?.value)
        })?;
        found.push(length);
        first += length;
    }
    Ok(found)
}

/// Returns the most frequent length of the runs. If two are equally frequent, returns the longer
/// one.
fn usual(runs: &[usize]) -> usize {
    let mut counts: BTreeMap<usize, usize> = BTreeMap::new();
    for &run in runs {
        *counts.entry(run).or_default() += 1;
    }
    counts
        .into_iter()
        .max_by_key(|&(length, count)| (count, length))
        .map_or(1, |(length, _)| length)
}

/// Returns the minimum time from the middle of a track to the middle of another, in milliseconds.
/// On an unsteady host, it is the mean of several searches.
fn seek_time(
    watch: &mut Stopwatch<'_>,
    from: &MappedTrack,
    to: &MappedTrack,
) -> Result<f64, ProbeError> {
    let middle = |track: &MappedTrack| track.first_lbn + Sectors(track.sectors.0 / 2);
    let pair = SectorPair {
        sectors: 1,
        from: middle(from),
        to: middle(to),
        lower: 0.0,
        upper: TIME_RANGE_MS,
        within: TIME_WITHIN_MS,
    };
    let searches = if watch.deviation() < STEADY_MS {
        1
    } else {
        SEARCHES_UNSTEADY
    };
    let mut sum = 0.0;
    for _ in 0..searches {
        sum += min_time(watch, pair)?.value;
    }
    Ok(sum / f64::from(searches))
}

/// Determines whether runs of `length` tracks are cylinders or passes.
fn pattern(
    watch: &mut Stopwatch<'_>,
    tracks: &[MappedTrack],
    first: usize,
    length: usize,
) -> Result<Pattern, ProbeError> {
    let time = |watch: &mut Stopwatch<'_>, from: usize, to: usize| {
        seek_time(watch, &tracks[first + from], &tracks[first + to])
    };
    let single = Pattern {
        order: Order::HeadFirstForward,
        surfaces: 1,
        width: 1,
    };
    if !(2..WIDTH_MAX).contains(&length) || first + 2 * length >= tracks.len() {
        return Ok(single);
    }
    let step = time(watch, 0, 1)?;
    let across = time(watch, 0, length - 1)?;
    if length <= HEADS_MAX && across - step < ALIKE_MS {
        // These are the heads of a cylinder. If a head switch takes longer than a step of one
        // cylinder, a step without a switch is detectable.
        let onward = time(watch, length - 1, length)?;
        let order = if onward < step - ALIKE_MS {
            Order::HeadFirstAlternating
        } else {
            Order::HeadFirstForward
        };
        return Ok(Pattern {
            order,
            surfaces: length,
            width: 1,
        });
    }
    let onward = time(watch, length - 1, length)?;
    // The track on the first track's cylinder in pass number `pass`, if the two passes share their
    // cylinders.
    let opposite = |pass: usize, back: bool| {
        if back && pass % 2 == 1 {
            (pass + 1) * length - 1
        } else {
            pass * length
        }
    };
    let tolerance_ms = if watch.deviation() < STEADY_MS {
        ALIKE_STEADY_MS
    } else {
        ALIKE_MS
    };
    let mut times = |back: bool| {
        (1..=PASSES)
            .take_while(|&pass| first + opposite(pass, back) < tracks.len())
            .map(|pass| time(watch, 0, opposite(pass, back)))
            .collect::<Result<Vec<f64>, ProbeError>>()
    };
    // If the move to the next pass is shorter than the seek across a pass, that pass runs back.
    // Otherwise, the move is such a seek, or a head switch that takes as long.
    let back = times(true)?;
    let (order, surfaces) = if onward < across - ALIKE_MS {
        (
            Order::SeekAlternatingSurfaceForward,
            surfaces(&back, tolerance_ms),
        )
    } else {
        let forward = times(false)?;
        own_surface(&back, &forward, tolerance_ms).unwrap_or_else(|| {
            // The direction for which more passes have equal times is right.
            let (back, forward) = (
                surfaces(&back, tolerance_ms),
                surfaces(&forward, tolerance_ms),
            );
            if forward >= back {
                (Order::SeekForwardSurfaceForward, forward)
            } else {
                (Order::SeekAlternatingSurfaceForward, back)
            }
        })
    };
    if surfaces == 1 {
        return Ok(single);
    }
    Ok(Pattern {
        order,
        surfaces,
        width: length,
    })
}

/// Returns the order and the number of surfaces, if a head switch takes longer than the seeks. A
/// pass on the first pass's own surface is then recognizable, because it saves the switch. If
/// surfaces come in the same order each time, this happens once per group. In alternating order, it
/// happens at the end of one group and the beginning of the next. A pass that runs back has the
/// nearer track at its end (`back`), others at their beginning (`forward`).
fn own_surface(back: &[f64], forward: &[f64], tolerance_ms: f64) -> Option<(Order, usize)> {
    let switch = back.first()?;
    let saves = |times: &[f64], pass: usize| {
        times
            .get(pass - 1)
            .is_some_and(|t| *t < switch - tolerance_ms)
    };
    let own: Vec<usize> = (1..=back.len())
        .filter(|&pass| saves(back, pass) || saves(forward, pass))
        .collect();
    let (&pass, rest) = own.split_first()?;
    let alternates = rest.first() == Some(&(pass + 1));
    let surfaces = if alternates { pass.div_ceil(2) } else { pass };
    // Passes on other surfaces save no switch. If one seems to, something else affects the times.
    let expected = |pass: usize| {
        if alternates {
            matches!(pass % (2 * surfaces), 0) || pass % (2 * surfaces) == 2 * surfaces - 1
        } else {
            pass.is_multiple_of(surfaces)
        }
    };
    if surfaces < 2 || !own.iter().all(|pass| expected(*pass)) {
        return None;
    }
    let runs_back = back[pass - 1] < forward[pass - 1] - tolerance_ms;
    Some(match (alternates, runs_back) {
        (true, true) => (Order::SeekAlternatingSurfaceAlternating, surfaces),
        (true, false) => (Order::SeekForwardSurfaceAlternating, surfaces),
        (false, true) => (Order::SeekAlternatingSurfaceForward, surfaces),
        (false, false) => return None,
    })
}

/// Returns how many passes share their cylinders. The times are from the first track of a group to
/// the track on its cylinder in each later pass. The result is the largest number by which they
/// divide into groups with equal times. The times grow from group to group like seeks. If no time
/// grows, nothing is known, and every pass counts as a group of its own.
fn surfaces(times: &[f64], tolerance_ms: f64) -> usize {
    let alike = |surfaces: usize| {
        (0..=times.len() / surfaces).all(|group| {
            // The first pass of a group is left out: it may be on the first track's own surface,
            // which saves the switch.
            let passes = (group * surfaces + 1)..((group + 1) * surfaces).min(times.len() + 1);
            let times: Vec<f64> = passes.map(|pass| times[pass - 1]).collect();
            let (low, high) = bounds(&times);
            times.is_empty() || high - low < tolerance_ms
        })
    };
    let (low, high) = bounds(times);
    if times.is_empty() || high - low < 2.0 * tolerance_ms {
        return 1;
    }
    (1..=times.len() / 2)
        .rev()
        .find(|&surfaces| alike(surfaces))
        .unwrap_or(1)
}

fn bounds(times: &[f64]) -> (f64, f64) {
    let fold = |start: f64, pick: fn(f64, f64) -> f64| times.iter().copied().fold(start, pick);
    (
        fold(f64::INFINITY, f64::min),
        fold(f64::NEG_INFINITY, f64::max),
    )
}

/// Returns a geometry with the pattern in every zone, and with one sector per track. In the first
/// zone, the first complete run begins at track `partial`. The tracks that the run before it lacks
/// are assumed to be reserved.
fn spec(tracks: &[MappedTrack], pattern: &Pattern, partial: usize) -> GeometrySpec {
    let mut counts: BTreeMap<u64, usize> = BTreeMap::new();
    for track in tracks {
        *counts.entry(track.sectors.0).or_default() += 1;
    }
    let group = pattern.surfaces * pattern.width;
    let mut seen: BTreeMap<u64, ()> = BTreeMap::new();
    let mut starts = vec![0];
    for track in tracks {
        let new = seen.insert(track.sectors.0, ()).is_none();
        let usual = counts[&track.sectors.0] >= pattern.width.max(ZONE_TRACKS_MIN);
        let start = starts[starts.len() - 1];
        if new && usual && track.index >= start + group {
            starts.push(track.index);
        }
    }
    starts.push(tracks.len());
    let mut cylinder = 0;
    let zones = starts
        .windows(2)
        .map(|bounds| {
            let count = bounds[1] - bounds[0];
            let run = if pattern.order.is_head_first() {
                pattern.surfaces
            } else {
                pattern.width
            };
            let reserved = if bounds[0] == 0 {
                (run - partial % run) % run
            } else {
                0
            };
            let cylinders = (reserved + count).div_ceil(pattern.surfaces) as u32;
            let first_cylinder = cylinder;
            cylinder += cylinders;
            ZoneSpec {
                first_cylinder,
                last_cylinder: cylinder - 1,
                sectors_per_track: PerSurface::Same(1),
                reserved_sectors: reserved as u64,
                lbns: Some(count as u64),
                ..ZoneSpec::default()
            }
        })
        .collect();
    GeometrySpec {
        surfaces: pattern.surfaces as u16,
        cylinders: cylinder,
        order: pattern.order,
        width_tracks: (!pattern.order.is_head_first()).then_some(pattern.width as u32),
        zones,
        ..GeometrySpec::default()
    }
}

#[cfg(test)]
mod tests {
    use super::{ALIKE_MS, surfaces};

    /// Is the number of surfaces found from the times of passes, even if a switch takes as long as
    /// the shortest seek? Is it 1 if all times are equal?
    #[test]
    fn passes_that_share_cylinders() {
        for count in [2, 3, 4, 6, 10] {
            for switch in [0.5, 1.0] {
                let time = |pass: usize| {
                    let seek = 0.7 + 0.3 * ((pass / count) as f64).sqrt();
                    let seek = if pass < count { 0.0 } else { seek };
                    if pass.is_multiple_of(count) {
                        seek
                    } else {
                        seek.max(switch)
                    }
                };
                let times: Vec<f64> = (1..=40).map(time).collect();
                assert_eq!(surfaces(&times, ALIKE_MS), count, "{switch} {times:?}");
            }
        }
        assert_eq!(surfaces(&[1.0; 40], ALIKE_MS), 1);
    }
}

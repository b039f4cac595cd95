//! Overhead, head switch and seek curve.
//!
//! These follow from the minimum time from one sector to another ([`super::min_time`]). On a drive
//! with zero-latency access, the seek curve is faster to measure: a read of a whole track begins
//! where the head arrives and ends a revolution later, so one timing gives one seek time.

use super::angles::Angles;
use super::layout::{TrackLayout, TrackPosition};
use super::measurement::{Estimate, Measurement};
use super::min_time::{SectorPair, min_time, min_time_again};
use super::sector_grouping::SectorGrouping;
use super::stopwatch::{STEADY_MS, Stopwatch};
use crate::{ProbeError, TargetError};
use traxtent_map::{MappedTrack, TrackMap};
use traxtent_units::stats::median;
use traxtent_units::turns::fraction;
use traxtent_units::{Lbn, Sectors};

/// The approximate number of distances on the curve of a drive with zero-latency access.
const ARRIVAL_DISTANCES: usize = 190;
/// The number of timings of each of these distances.
const ARRIVAL_TIMINGS: usize = 5;
/// The largest number of timings for a whole curve. Only those of the last distance may exceed it.
pub(super) const TIMINGS_MAX: u64 = 1_000;

/// The approximate number of distances on the curve of a drive without zero-latency access, each of
/// which needs a search.
const SEARCHED_DISTANCES: usize = 105;
/// The number of timings that must be left if another distance is to be measured.
const TIMINGS_LEFT_MIN: u64 = 8;

/// The number of places at which the overhead is measured, on a steady and on an unsteady host. The
/// method for an unsteady host takes many more readings at each.
const OVERHEAD_PLACES: (usize, usize) = (7, 3);
/// The width of the range in which the search for the overhead begins, in milliseconds. The search
/// extends it if necessary.
const OVERHEAD_RANGE_MS: f64 = 2.0;
/// The number of head switches that are measured.
const HEAD_SWITCHES: i32 = 7;
/// The width of the range in which the search for the first head switch begins, in milliseconds.
const SWITCH_RANGE_MS: f64 = 3.0;
/// The distance on either side of the first result at which later searches begin, in milliseconds.
const SWITCH_NEAR_MS: f64 = 0.06;
/// The precision of a search, in milliseconds, on a steady and on an unsteady host: less than a
/// sector takes to pass, if the host allows it.
const FINEST_MS: (f64, f64) = (0.0003, 0.005);
/// The number of reads of whole tracks from random angles.
const WHOLE_TRACKS: usize = 32;

/// The distance, in milliseconds, on either side of the value expected from many points of the
/// curve, at which the search for a seek time begins.
const SEEK_NEAR_MS: f64 = 0.16;
/// The range in which the search begins if the curve has few points, as shares of the expected
/// value.
const SEEK_NEAR_SHARE: (f64, f64) = (0.6, 1.4);
/// The range in which the search begins if the curve has no points, in milliseconds.
const SEEK_RANGE_MS: (f64, f64) = (0.1, 20.0);
/// The number of points above which the curve is known well.
const POINTS_MANY: usize = 8;
/// The precision of the search for a seek time, in milliseconds.
const SEEK_WITHIN_MS: f64 = 0.012;

/// The number of random positions tried for a pair of tracks.
const PAIR_ATTEMPTS: usize = 64;
/// The part of a revolution over which the head's arrivals on a track are spread.
const ARRIVAL_SPREAD_TURNS: f64 = 0.1;

/// The properties of the drive known so far.
pub(super) struct KnownDrive<'a> {
    pub(super) map: &'a TrackMap,
    pub(super) tracks: &'a [MappedTrack],
    pub(super) layout: &'a TrackLayout,
    pub(super) angles: &'a Angles,
    /// The grouping of LBNs into physical sectors, as reads show it.
    pub(super) grouping: SectorGrouping,
}

impl KnownDrive<'_> {
    /// Returns an LBN in the middle of a track. A read of this LBN ends when the LBN has passed,
    /// because it is the last of its physical sector.
    pub(super) fn middle(&self, track: usize) -> Lbn {
        let MappedTrack {
            first_lbn, sectors, ..
        } = self.tracks[track];
        let following = self.grouping.end(first_lbn + Sectors(sectors.0 / 2));
        Lbn(following.0.min(first_lbn.0 + sectors.0) - 1)
    }

    /// The time in which one sector of a track passes, in milliseconds.
    pub(super) fn sector_ms(&self, track: usize, period: f64) -> f64 {
        period / f64::from(self.angles.start(self.layout, track).1)
    }

    /// Returns two random tracks that are `distance` cylinders and `surface_step` surfaces apart,
    /// in either order. The first surface follows the last one. Returns `None` if none are found.
    pub(super) fn pair(
        &self,
        watch: &mut Stopwatch<'_>,
        distance: u32,
        surface_step: i32,
    ) -> Option<(usize, usize)> {
        let surfaces = i32::from(self.layout.surfaces);
        for _ in 0..PAIR_ATTEMPTS {
            let outer = watch.rng.below(u64::from(self.layout.cylinders - distance)) as i32;
            let surface = watch.rng.below(surfaces as u64) as i32;
            let from = self.layout.track(TrackPosition {
                cylinder: outer,
                surface,
            });
            let other = (surface + surface_step).rem_euclid(surfaces);
            let to = self.layout.track(TrackPosition {
                cylinder: outer + distance as i32,
                surface: other,
            });
            if let (Some(from), Some(to)) = (from, to) {
                return Some(if watch.rng.chance(0.5) {
                    (from, to)
                } else {
                    (to, from)
                });
            }
        }
        None
    }
}

/// Measures the command overhead: the time of a read without movement, rotation and transfer.
pub(super) fn overhead(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
) -> Result<Estimate, ProbeError> {
    let (mut samples, mut widths) = (Vec::new(), Vec::new());
    let mut timings = 0;
    let steady = watch.deviation() < STEADY_MS;
    for _ in 0..if steady {
        OVERHEAD_PLACES.0
    } else {
        OVERHEAD_PLACES.1
    } {
        let Some((track, _)) = known.pair(watch, 0, 0) else {
            continue;
        };
        let lbn = known.middle(track);
        let mut least = min_time(
            watch,
            SectorPair {
                sectors: 1,
                from: lbn,
                to: lbn,
                lower: 0.0,
                upper: OVERHEAD_RANGE_MS,
                within: finest(watch),
            },
        )?;
        if !steady {
            // On an unsteady host, the more precise method is necessary, because catching a sector
            // is a matter of microseconds.
            least = min_time_again(watch, lbn, least.value)?;
        }
        timings += least.samples;
        widths.push(least.half_width);
        samples.push(least.value - known.sector_ms(track, watch.period));
    }
    Ok(Estimate {
        samples: timings,
        ..spread(&samples, &widths)
    })
}

/// Measures the time to switch heads in a cylinder. Returns `None` if no cylinder with two tracks
/// is found, as on drives with one surface.
pub(super) fn head_switch(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    overhead: Estimate,
) -> Result<Option<Estimate>, ProbeError> {
    let (mut samples, mut widths) = (Vec::new(), Vec::new());
    let mut timings = 0;
    for number in 0..HEAD_SWITCHES {
        let step = 1 + number % (i32::from(known.layout.surfaces) - 1).max(1);
        let Some((from, to)) = known.pair(watch, 0, step).filter(|(a, b)| a != b) else {
            continue;
        };
        let lower = overhead.value + samples.first().map_or(0.0, |s: &f64| s - SWITCH_NEAR_MS);
        let upper = overhead.value
            + samples
                .first()
                .map_or(SWITCH_RANGE_MS, |s: &f64| s + SWITCH_NEAR_MS);
        let (from, lbn) = (known.middle(from), known.middle(to));
        let least = min_time(
            watch,
            SectorPair {
                sectors: 1,
                from,
                to: lbn,
                lower,
                upper,
                within: finest(watch),
            },
        )?;
        timings += least.samples;
        widths.push(least.half_width);
        samples.push(least.value - known.sector_ms(to, watch.period) - overhead.value);
    }
    Ok((!samples.is_empty()).then(|| {
        let switch = Estimate {
            samples: timings,
            ..spread(&samples, &widths)
        };
        switch.minus(Estimate {
            samples: 0,
            value: 0.0,
            ..overhead
        })
    }))
}

/// The precision of a search, in milliseconds.
fn finest(watch: &Stopwatch<'_>) -> f64 {
    if watch.deviation() < STEADY_MS {
        FINEST_MS.0
    } else {
        FINEST_MS.1
    }
}

/// Returns the mean of a few searches. Its interval is no narrower than the one that follows from
/// the half widths of the searches, `widths`.
fn spread(samples: &[f64], widths: &[f64]) -> Estimate {
    if samples.is_empty() {
        return Estimate::default();
    }
    let squares: f64 = widths.iter().map(|width| width * width).sum();
    Estimate::of(samples).at_least(squares.sqrt() / widths.len() as f64)
}

/// Measures how many revolutions a read of a whole track takes from random angles: about 1.0 with
/// zero-latency access, about 1.5 without.
pub(super) fn turns_of_a_track(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    overhead: f64,
) -> Result<Estimate, ProbeError> {
    let mut samples = Vec::new();
    for _ in 0..WHOLE_TRACKS {
        let Some((track, _)) = known.pair(watch, 0, 0) else {
            continue;
        };
        let MappedTrack {
            first_lbn, sectors, ..
        } = known.tracks[track];
        watch.refresh()?;
        watch.media(first_lbn, 1)?;
        let pause = watch.rng.fraction() * watch.period;
        watch.pause(pause);
        let timing = watch.media(first_lbn, sectors.0 as u32)?;
        samples.push((timing.response() - overhead) / watch.period);
    }
    Ok(Estimate::of(&samples))
}

/// Measures the seek curve. Returns distances with their times.
pub(super) fn curve(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    overhead: f64,
    zero_latency: bool,
    progress: &mut dyn FnMut(f64),
) -> Result<Vec<(u32, Estimate)>, ProbeError> {
    let longest = known.layout.cylinders.saturating_sub(1);
    if longest == 0 {
        return Ok(Vec::new());
    }
    let mut points: Vec<(u32, Estimate)> = Vec::new();
    let mut timings = 0;
    let distances = distances(
        longest,
        if zero_latency {
            ARRIVAL_DISTANCES
        } else {
            SEARCHED_DISTANCES
        },
    );
    let count = distances.len();
    for (done, distance) in outside_in(distances).into_iter().enumerate() {
        progress(done as f64 / count as f64);
        if timings + TIMINGS_LEFT_MIN > TIMINGS_MAX {
            break;
        }
        let found = if zero_latency {
            let expected = interpolate(&points, distance);
            arrival(watch, known, overhead, distance, expected)?
        } else {
            least(watch, known, overhead, distance, &points)?
        };
        if let Some(found) = found {
            timings += found.samples;
            let at = points.partition_point(|point| point.0 < distance);
            points.insert(at, (distance, found));
        }
    }
    Ok(points)
}

/// Returns the mean seek time over random pairs of different cylinders, according to the curve.
pub(super) fn average(
    points: &[(u32, Estimate)],
    cylinders: u32,
    zero_latency: bool,
) -> Measurement {
    let all = f64::from(cylinders);
    let mut before = 0.0;
    let (mut sum, mut width, mut weights, mut samples) = (0.0, 0.0, 0.0, 0);
    for (i, (distance, time)) in points.iter().enumerate() {
        // Each point represents the distances up to half-way to its neighbours.
        let next = points
            .get(i + 1)
            .map_or(all - 1.0, |next| f64::from(distance + next.0) / 2.0);
        let middle = (before + next) / 2.0;
        let weight = (next - before).max(0.0) * (all - middle);
        sum += weight * time.value;
        width += weight * weight * time.half_width * time.half_width;
        weights += weight;
        samples += time.samples;
        before = next;
    }
    let estimate = Estimate {
        value: sum / weights,
        half_width: width.sqrt() / weights,
        samples,
    };
    let how = if zero_latency {
        "the mean of the curve over random pairs of cylinders; the curve by reads of whole tracks, which take a revolution plus the seek"
    } else {
        "the mean of the curve over random pairs of cylinders; the curve by the minimum time between completions"
    };
    Measurement::around("mechanics.seek", estimate, "ms", how)
}

/// Measures one distance by reads of whole tracks.
fn arrival(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    overhead: f64,
    distance: u32,
    expected: Option<f64>,
) -> Result<Option<Estimate>, ProbeError> {
    let mut samples = Vec::new();
    for _ in 0..ARRIVAL_TIMINGS {
        let Some((from, to)) = known.pair(watch, distance, 0) else {
            return Ok(None);
        };
        let MappedTrack {
            first_lbn, sectors, ..
        } = known.tracks[to];
        let (start, slots) = known.angles.start(known.layout, to);
        // The head arrives in the middle of the track, so that it can read at once: all sectors
        // that pass next are requested.
        let middle = fraction(
            start
                + 0.5 * sectors.0 as f64 / f64::from(slots)
                + ARRIVAL_SPREAD_TURNS * watch.rng.fraction(),
        );
        watch.refresh()?;
        watch.media(known.middle(from), 1)?;
        let lead = overhead + expected.unwrap_or(watch.period);
        let due = watch.next(watch.now() + lead, middle);
        watch.wait_until(due - lead);
        match watch.media(first_lbn, sectors.0 as u32) {
            Ok(timing) => {
                let half_sector = 0.5 * watch.period / f64::from(slots);
                samples.push(timing.response() - overhead - watch.period - half_sector);
            }
            Err(ProbeError::Target(TargetError::Unreadable { .. })) => {}
            Err(error) => return Err(error),
        }
    }
    // For so few samples, the median is safer than the mean.
    Ok((!samples.is_empty()).then(|| {
        let middle = median(&samples);
        let sector = watch.period / f64::from(known.angles.patches[0].runs[0].slots);
        let apart: Vec<f64> = samples.iter().map(|s| (s - middle).abs()).collect();
        Estimate {
            value: middle.max(0.0),
            half_width: (2.0 * median(&apart)).max(0.5 * sector),
            samples: samples.len() as u64,
        }
    }))
}

/// Measures one distance by the minimum time between completions. The search begins near the time
/// that the points known so far suggest.
fn least(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    overhead: f64,
    distance: u32,
    points: &[(u32, Estimate)],
) -> Result<Option<Estimate>, ProbeError> {
    let Some((from, to)) = known.pair(watch, distance, 0) else {
        return Ok(None);
    };
    let sector = known.sector_ms(to, watch.period);
    let (lower, upper) = match interpolate(points, distance) {
        Some(ms) if points.len() > POINTS_MANY => (ms - SEEK_NEAR_MS, ms + SEEK_NEAR_MS),
        Some(ms) => (ms * SEEK_NEAR_SHARE.0, ms * SEEK_NEAR_SHARE.1),
        None => SEEK_RANGE_MS,
    };
    let (from, lbn) = (known.middle(from), known.middle(to));
    let shift = overhead + sector;
    let pair = SectorPair {
        sectors: 1,
        from,
        to: lbn,
        lower: (lower + shift).max(shift),
        upper: upper + shift,
        within: SEEK_WITHIN_MS,
    };
    let found = min_time(watch, pair)?;
    Ok(Some(Estimate {
        value: (found.value - shift).max(0.0),
        ..found
    }))
}

/// Returns distances from 1 to the longest, spaced more closely where they are short.
fn distances(longest: u32, count: usize) -> Vec<u32> {
    let mut all: Vec<u32> = (1..=count)
        .map(|i| {
            let part = i as f64 / count as f64;
            (f64::from(longest) * part * part * part.sqrt())
                .round()
                .max(1.0) as u32
        })
        .chain((1..=4).filter(|&d| d <= longest))
        .collect();
    all.sort_unstable();
    all.dedup();
    all
}

/// Orders the distances: the longest and the shortest first, then those that halve the gaps. The
/// curve is thus known roughly before it is known finely.
fn outside_in(distances: Vec<u32>) -> Vec<u32> {
    let count = distances.len();
    let mut order: Vec<usize> = vec![count - 1, 0];
    let mut step = count.next_power_of_two();
    while step > 1 {
        step /= 2;
        order.extend((0..count).step_by(step));
    }
    let mut seen = vec![false; count];
    order.retain(|&i| !std::mem::replace(&mut seen[i], true));
    order.into_iter().map(|i| distances[i]).collect()
}

/// Interpolates the time of a distance between the points measured so far. Outside them, returns
/// the time of the nearest point. Returns `None` if there are no points.
fn interpolate(points: &[(u32, Estimate)], distance: u32) -> Option<f64> {
    let after = points.partition_point(|point| point.0 < distance);
    match (after.checked_sub(1).map(|i| points[i]), points.get(after)) {
        (Some((d0, t0)), Some(&(d1, t1))) => {
            // The interpolation is linear in the square root of the distance, with which the times
            // of short seeks grow.
            let root = |d: u32| f64::from(d).sqrt();
            let part = (root(distance) - root(d0)) / (root(d1) - root(d0));
            Some(t0.value + part * (t1.value - t0.value))
        }
        (Some((_, t)), None) => Some(t.value),
        (None, Some((_, t))) => Some(t.value),
        (None, None) => None,
    }
}

//! Properties that only writes show: overheads, settling, write-back and the room in the buffer for
//! writes.

use super::crossing::{bounds, crossings};
use super::figure::{Estimate, Measurement};
use super::min_time::{SectorPair, min_time_by};
use super::physical::SectorGrouping;
use super::seek::KnownDrive;
use super::stopwatch::{STEADY, Stopwatch};
use crate::ProbeError;
use crate::median::median;
use traxtent_units::request::{Op, Request};

/// The measured properties of writes.
#[derive(Clone, Debug, Default, PartialEq)]
pub(super) struct Writes {
    pub(super) settle_ms: f64,
    pub(super) read_after_write_ms: Option<f64>,
    pub(super) hit_after_read_ms: Option<f64>,
    pub(super) hit_after_write_ms: Option<f64>,
    pub(super) miss_after_read_ms: Option<f64>,
    pub(super) miss_after_write_ms: Option<f64>,
    pub(super) sector_ms: Option<f64>,
    pub(super) zero_latency: Option<bool>,
    /// By distance: how much longer a seek before a write takes than one before a read, apart from
    /// settling.
    pub(super) seek_extra: Vec<(u32, f64)>,
    /// Whether a write completes once it is in the buffer, and how many writes fit.
    pub(super) write_back: bool,
    pub(super) write_segments: u32,
}

impl Writes {
    /// Returns how much longer a seek before a write takes over a distance, apart from settling.
    pub(super) fn extra(&self, distance: u32) -> f64 {
        let after = self.seek_extra.partition_point(|point| point.0 < distance);
        match (
            after.checked_sub(1).map(|i| self.seek_extra[i]),
            self.seek_extra.get(after),
        ) {
            (Some((d0, e0)), Some(&(d1, e1))) => {
                e0 + (e1 - e0) * f64::from(distance - d0) / f64::from(d1 - d0)
            }
            (Some((_, e)), None) => e,
            (None, first) => first.map_or(0.0, |point| point.1),
        }
    }
}

/// The kind of request that writes to the media.
const WRITE: (Op, bool) = (Op::Write, true);

/// Measures the properties of writes. Overwritten data is lost.
pub(super) fn writes(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    (overhead, head_switch): (f64, f64),
    segments: u32,
    (grain, sector_ms): (SectorGrouping, f64),
    curve: &[(u32, Estimate)],
    figures: &mut Vec<Measurement>,
) -> Result<Writes, ProbeError> {
    let mut found = Writes::default();
    let sectors = grain.sectors;
    let read = watch.media;
    let crossings = crossings(watch, known, WRITE, sectors)?;
    let (switch_most, step_most) = bounds(&crossings);
    let mut least = |from: (Op, bool), to: (Op, bool), turn: i32, low: f64| {
        let (mut samples, mut timings) = (Vec::new(), 0);
        for _ in 0..5 {
            let Some((a, b)) = known.pair(watch, 0, turn) else {
                continue;
            };
            let (a, b) = (known.middle(a), grain.begin(known.middle(b)));
            let journey = SectorPair {
                sectors,
                from: a,
                to: b,
                low,
                high: low + 3.0,
                within: 0.006,
            };
            let time = min_time_by(watch, journey, from, to)?;
            timings += time.samples;
            let track = known.map.track_of(b).map_or(0, |track| track.index);
            samples.push(time.value - f64::from(sectors) * known.sector_ms(track, watch.period));
        }
        Ok::<Estimate, ProbeError>(Estimate {
            samples: timings,
            ..Estimate::of(&samples).at_least(0.012)
        })
    };
    // The time consists of the command, the transfer of the first sector over the bus, and the
    // media. The transfer is subtracted.
    let less = |time: Estimate| Estimate {
        value: time.value - sector_ms,
        ..time
    };
    let after_read = less(least(read, WRITE, 0, 0.0)?);
    let after_write = less(least(WRITE, WRITE, 0, 0.0)?);
    let read_after = least(WRITE, read, 0, 0.0)?;
    let switched = match known.layout.surfaces {
        1 => None,
        _ => Some(least(
            read,
            WRITE,
            1,
            after_read.value + (head_switch - 0.5).max(0.0),
        )?),
    };
    let how = "the least time between completions, the second a write with FUA";
    figures.push(Measurement::around(
        "overheads.write_miss_after_read_ms",
        after_read,
        "ms",
        how,
    ));
    figures.push(Measurement::around(
        "overheads.write_miss_after_write_ms",
        after_write,
        "ms",
        how,
    ));
    figures.push(Measurement::around(
        "overheads.read_miss_after_write_ms",
        read_after,
        "ms",
        "the least time between completions, the first a write with FUA",
    ));
    found.miss_after_read_ms = Some(after_read.or_none().max(0.0));
    found.miss_after_write_ms = Some(after_write.or_none().max(0.0));
    // The same overhead as after a read, which is known more precisely, unless the interval
    // excludes it.
    let differs = (read_after.value - overhead).abs() > read_after.half_width;
    found.read_after_write_ms = differs.then(|| read_after.or_none().max(0.0));
    if let Some(switched) = switched {
        // The switch hides the sector's transfer over the bus, for which a write on the same track
        // waits.
        let settle = switched.minus(after_read);
        let settle = Estimate {
            value: settle.value - head_switch,
            ..settle
        };
        found.settle_ms = settle.or_none();
        // As for reads: a crossing that was made in time on the drive must be made in time with the
        // fitted profile.
        found.settle_ms = found.settle_ms.min(switch_most - head_switch);
        figures.push(Measurement::around(
            "mechanics.write_settle_ms",
            settle,
            "ms",
            "the least time between completions on two surfaces of a cylinder, a write less a read",
        ));
    }
    found.seek_extra = seek_extra(
        watch,
        known,
        curve,
        (after_read.value, found.settle_ms),
        grain,
        figures,
    )?;
    let single = curve
        .first()
        .filter(|point| point.0 == 1)
        .map_or(0.0, |point| point.1.value);
    if let Some((1, extra)) = found.seek_extra.first_mut() {
        *extra = extra.min(step_most - single - found.settle_ms);
    } else if single + found.settle_ms > step_most {
        found.seek_extra = vec![(1, step_most - single - found.settle_ms), (2, 0.0)];
    }
    back(watch, known, segments, &mut found, figures)?;
    full_tracks(watch, known, after_read.value, &mut found, figures)?;
    Ok(found)
}

/// Measures, at a few distances, how much longer than settling a seek before a write takes than one
/// before a read. Returns an empty list if it is no longer.
fn seek_extra(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    curve: &[(u32, Estimate)],
    (overhead, settle): (f64, f64),
    grain: SectorGrouping,
    figures: &mut Vec<Measurement>,
) -> Result<Vec<(u32, f64)>, ProbeError> {
    const DISTANCES: usize = 9;
    let sectors = grain.sectors;
    let mut extra: Vec<(u32, f64)> = Vec::new();
    let read = watch.media;
    let mut timings = 0;
    for part in 0..DISTANCES {
        let Some(&(distance, seek)) =
            curve.get(part * curve.len().saturating_sub(1) / (DISTANCES - 1))
        else {
            continue;
        };
        let Some((from, to)) = known.pair(watch, distance, 0) else {
            continue;
        };
        let sector = known.sector_ms(to, watch.period);
        let low = overhead + f64::from(sectors) * sector + seek.value;
        let journey = SectorPair {
            sectors,
            from: known.middle(from),
            to: grain.begin(known.middle(to)),
            low,
            high: low + 1.5,
            within: 0.012,
        };
        let time = min_time_by(watch, journey, read, WRITE)?;
        timings += time.samples;
        extra.push((distance, time.value - low - settle));
    }
    extra.dedup_by_key(|point| point.0);
    let all: Vec<f64> = extra.iter().map(|point| point.1).collect();
    if all.is_empty() {
        return Ok(extra);
    }
    let mean = Estimate::of(&all);
    figures.push(Measurement::around(
        "mechanics.seek.write",
        Estimate {
            samples: timings,
            ..mean
        },
        "ms more than for reads",
        "seeks to write less seeks to read less settling, at nine distances",
    ));
    // A difference within the uncertainty of the angles of so few sectors does not count.
    if mean.value.abs() < 0.04 {
        extra.clear();
    }
    Ok(extra)
}

/// Measures whether writes complete in the buffer, how long that takes, and how many fit.
fn back(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    segments: u32,
    found: &mut Writes,
    figures: &mut Vec<Measurement>,
) -> Result<(), ProbeError> {
    let count = known.tracks.len() as u64;
    let place = |watch: &mut Stopwatch<'_>| {
        known.tracks[watch.rng.below(count - count / 16) as usize].first_lbn
    };
    let mut times: Vec<(u32, Vec<f64>)> = vec![(1, Vec::new()), (64, Vec::new())];
    // Whether the next sector is caught after a write is a matter of microseconds.
    let count = match watch.deviation() < STEADY {
        true => 12,
        false => 300,
    };
    for (sectors, times) in &mut times {
        for _ in 0..count {
            let lbn = place(watch);
            // On another cylinder, so that the media take long.
            let far = place(watch);
            watch.media(far, 1)?;
            watch.pause(2.0 * watch.period);
            times.push(watch.write(lbn, *sectors)?.response());
            watch.send(Request::flush())?;
        }
    }
    let one = median(&times[0].1);
    found.write_back = one < 0.4 * watch.period && {
        let slow = times[0]
            .1
            .iter()
            .filter(|time| **time > 0.4 * watch.period)
            .count();
        slow <= count / 6
    };
    figures.push(Measurement {
        name: "cache.write_back".to_owned(),
        value: f64::from(u8::from(found.write_back)),
        low: f64::from(u8::from(found.write_back)),
        high: f64::from(u8::from(found.write_back)),
        unit: "(1 = yes)",
        how: "writes on distant cylinders: whether they are complete before the media can have them",
        samples: 2 * count as u64,
    });
    if !found.write_back {
        return Ok(());
    }
    let slope = Estimate::of(&times[1].1).minus(Estimate::of(&times[0].1));
    let slope = Estimate {
        value: slope.value / 63.0,
        half_width: slope.half_width / 63.0,
        ..slope
    };
    found.sector_ms = Some(slope.value.max(0.0));
    figures.push(Measurement::around(
        "bus.write_sector_ms",
        slope,
        "ms per sector",
        "writes that the buffer takes: the slope",
    ));
    let after_read = Estimate::of(&times[0].1);
    found.hit_after_read_ms = Some((after_read.value - slope.value).max(0.0));
    figures.push(Measurement::around(
        "overheads.write_hit_after_read_ms",
        Estimate {
            value: after_read.value - slope.value,
            ..after_read
        },
        "ms",
        "writes that the buffer takes, less the transfer",
    ));
    // After a write: wait until the first write is on the media.
    let mut samples = Vec::new();
    for _ in 0..12 {
        let (a, b) = (place(watch), place(watch));
        watch.write(a, 1)?;
        watch.pause(6.0 * watch.period);
        samples.push(watch.write(b, 1)?.response());
        watch.pause(6.0 * watch.period);
    }
    let after_write = Estimate::of(&samples);
    found.hit_after_write_ms = Some((after_write.value - slope.value).max(0.0));
    figures.push(Measurement::around(
        "overheads.write_hit_after_write_ms",
        Estimate {
            value: after_write.value - slope.value,
            ..after_write
        },
        "ms",
        "writes that the buffer takes, less the transfer",
    ));
    // A burst: the number of writes accepted until one has to wait.
    let mut bursts = Vec::new();
    for _ in 0..5 {
        watch.send(Request::flush())?;
        let mut taken = 0;
        while taken < segments + 4 {
            let lbn = place(watch);
            if watch.write(lbn, 1)?.response() > one + 0.25 * watch.period {
                break;
            }
            taken += 1;
        }
        bursts.push(f64::from(taken));
    }
    watch.send(Request::flush())?;
    let room = median(&bursts);
    found.write_segments = (room as u32).max(1);
    figures.push(Measurement {
        name: "cache.write_segments".to_owned(),
        value: room,
        low: bursts.iter().copied().fold(f64::INFINITY, f64::min),
        high: bursts.iter().copied().fold(0.0, f64::max),
        unit: "segments",
        how: "bursts of writes in different places: how many are taken before one waits for the media",
        samples: 5 * u64::from(found.write_segments),
    });
    Ok(())
}

/// Measures whether writes begin wherever the head arrives.
fn full_tracks(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    overhead: f64,
    found: &mut Writes,
    figures: &mut Vec<Measurement>,
) -> Result<(), ProbeError> {
    let mut samples = Vec::new();
    for _ in 0..24 {
        let Some((track, _)) = known.pair(watch, 0, 0) else {
            continue;
        };
        let (first, sectors) = (
            known.tracks[track].first_lbn,
            known.tracks[track].sectors.0 as u32,
        );
        watch.media(first, 1)?;
        let pause = watch.rng.fraction() * watch.period;
        watch.pause(pause);
        let time = watch
            .send(Request {
                fua: true,
                ..Request::write(first, sectors)
            })?
            .response();
        samples.push((time - overhead) / watch.period);
    }
    let turns = Estimate::of(&samples);
    found.zero_latency = Some(turns.value < 1.3);
    figures.push(Measurement::around(
        "access.zero_latency_write",
        turns,
        "revolutions",
        "writes of whole tracks from random angles: about 1.0 with zero-latency access, about 1.5 without",
    ));
    Ok(())
}

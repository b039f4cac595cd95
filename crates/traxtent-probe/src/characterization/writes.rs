//! Properties that only writes show: their overheads, bus time, settling, seeks and zero-latency
//! access, write-back, and the buffer space for writes.

use super::crossing::{bounds, crossings};
use super::measurement::{Estimate, Measurement};
use super::min_time::{SectorPair, min_time_by};
use super::sector_grouping::SectorGrouping;
use super::seek::KnownDrive;
use super::stopwatch::{STEADY_MS, Stopwatch};
use crate::ProbeError;
use traxtent_units::Lbn;
use traxtent_units::request::{Op, Request};
use traxtent_units::stats::median;

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
    /// By distance: the additional time, in milliseconds, of a seek before a write compared with
    /// one before a read, apart from settling.
    pub(super) seek_extra: Vec<(u32, f64)>,
    /// Whether a write completes once it is in the buffer.
    pub(super) write_back: bool,
    /// The number of writes that fit in the buffer.
    pub(super) write_segments: u32,
}

impl Writes {
    /// Returns the additional time, apart from settling, of a seek over `distance` before a write.
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

/// Figures of reads with which those of writes are compared.
#[derive(Clone, Copy)]
pub(super) struct ReadFigures<'a> {
    pub(super) overhead_ms: f64,
    pub(super) head_switch_ms: f64,
    /// The time of a sector on the bus.
    pub(super) sector_ms: f64,
    /// The number of segments of the cache.
    pub(super) segments: u32,
    /// The grouping of LBNs into physical sectors, which are written as a whole.
    pub(super) grouping: SectorGrouping,
    /// The seek curve.
    pub(super) seek: &'a [(u32, Estimate)],
}

/// The kind of request that writes to the media.
const WRITE: (Op, bool) = (Op::Write, true);

/// The number of places at which an overhead is measured.
const OVERHEAD_PLACES: usize = 5;
/// The precision of the search for an overhead, in milliseconds.
const OVERHEAD_WITHIN_MS: f64 = 0.006;
/// The width of the range in which this search begins, in milliseconds.
const OVERHEAD_RANGE_MS: f64 = 3.0;
/// The smallest half width of an overhead's interval, in milliseconds: twice the precision of one
/// search.
const OVERHEAD_HALF_WIDTH_MS_MIN: f64 = 2.0 * OVERHEAD_WITHIN_MS;
/// The search for the time of a head switch before a write begins this many milliseconds below the
/// time of one before a read.
const SWITCH_EARLIER_MS: f64 = 0.5;

/// The number of distances at which seeks before writes are timed.
const SEEK_DISTANCES: usize = 9;
/// The precision of the search for a seek before a write, in milliseconds.
const SEEK_WITHIN_MS: f64 = 0.012;
/// The width of the range in which this search begins, in milliseconds.
const SEEK_RANGE_MS: f64 = 1.5;
/// The mean difference between seeks before writes and before reads, in milliseconds, below which
/// it does not count: the uncertainty of the angles of a few sectors.
const SEEK_EXTRA_MS_MIN: f64 = 0.04;

/// The lengths of the writes that show whether the drive buffers writes, in sectors.
const BUFFERED_LENGTHS: [u32; 2] = [1, 64];
/// The number of buffered writes of each length, on a steady and on an unsteady host. An unsteady
/// host needs many, because microseconds decide whether the next sector is caught after a write.
const BUFFERED_WRITES: (usize, usize) = (12, 300);
/// The pause after a read, in revolutions. At its end, the arm is idle.
const IDLE_TURNS: f64 = 2.0;
/// The response time, in revolutions, below which a write counts as not on the media: reaching a
/// distant cylinder usually takes a seek and half a revolution.
const BUFFERED_TURNS_MAX: f64 = 0.4;
/// One in this many buffered writes may take longer than [`BUFFERED_TURNS_MAX`], because the host
/// received its completion late.
const LATE_WRITES_ONE_IN: usize = 6;
/// The number of writes that follow another write.
const FOLLOWING_WRITES: usize = 12;
/// The time after which a write is on the media, in revolutions.
const WRITTEN_TURNS: f64 = 6.0;
/// The number of bursts of writes.
const BURSTS: usize = 5;
/// The largest number of writes by which a burst exceeds the number of segments.
const BURST_EXCESS: u32 = 4;
/// The minimum additional time of a write that waits for the media, compared with one that the
/// buffer accepts, in revolutions.
const WAITING_TURNS_MIN: f64 = 0.25;

/// The number of writes of whole tracks.
const WHOLE_TRACKS: usize = 24;
/// The number of revolutions of a write of a whole track below which it begins wherever the head
/// arrives. Such a write takes about 1.0, and about 1.5 otherwise.
const ZERO_LATENCY_TURNS_MAX: f64 = 1.3;

/// Measures the properties of writes. Overwritten data is lost.
pub(super) fn writes(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    reads: ReadFigures<'_>,
    figures: &mut Vec<Measurement>,
) -> Result<Writes, ProbeError> {
    let crossings = crossings(watch, known, WRITE, reads.grouping.sectors)?;
    let (switch_most, step_most) = bounds(&crossings);
    let mut probe = WriteProbe {
        watch,
        known,
        reads,
        found: Writes::default(),
        figures,
    };
    let overhead = probe.overheads()?;
    probe.settling(overhead, switch_most)?;
    probe.seeks(overhead.value, step_most)?;
    probe.buffering()?;
    probe.whole_tracks(overhead.value)?;
    Ok(probe.found)
}

struct WriteProbe<'a, 'b> {
    watch: &'a mut Stopwatch<'b>,
    known: &'a KnownDrive<'a>,
    reads: ReadFigures<'a>,
    found: Writes,
    figures: &'a mut Vec<Measurement>,
}

impl WriteProbe<'_, '_> {
    fn figure(&mut self, name: &str, estimate: Estimate, unit: &'static str, how: &'static str) {
        self.figures
            .push(Measurement::around(name, estimate, unit, how));
    }

    /// Measures the overheads of requests on one track. Returns the overhead of a write after a
    /// read.
    fn overheads(&mut self) -> Result<Estimate, ProbeError> {
        let read = self.watch.media;
        // The time consists of the command, the transfer of the first sector over the bus, and the
        // media. The transfer is subtracted.
        let sector_ms = self.reads.sector_ms;
        let less = |time: Estimate| time.plus(-sector_ms);
        let after_read = less(self.least(read, WRITE, 0, 0.0)?);
        let after_write = less(self.least(WRITE, WRITE, 0, 0.0)?);
        let read_after = self.least(WRITE, read, 0, 0.0)?;
        let how = "the minimum time between two completions, the second of a write with FUA";
        self.figure("overheads.write_miss_after_read_ms", after_read, "ms", how);
        self.figure(
            "overheads.write_miss_after_write_ms",
            after_write,
            "ms",
            how,
        );
        self.figure(
            "overheads.read_miss_after_write_ms",
            read_after,
            "ms",
            "the minimum time between two completions, the first of a write with FUA",
        );
        self.found.miss_after_read_ms = Some(after_read.or_zero().max(0.0));
        self.found.miss_after_write_ms = Some(after_write.or_zero().max(0.0));
        // The overhead of a read after a read is known more precisely. It is used unless the
        // interval of the measured overhead excludes it.
        let differs = (read_after.value - self.reads.overhead_ms).abs() > read_after.half_width;
        self.found.read_after_write_ms = differs.then(|| read_after.or_zero().max(0.0));
        Ok(after_read)
    }

    /// Returns the minimum time between completions of two requests, `surface_step` surfaces apart
    /// in a cylinder, less the time in which the sectors pass. The search begins at `lower`.
    fn least(
        &mut self,
        from: (Op, bool),
        to: (Op, bool),
        surface_step: i32,
        lower: f64,
    ) -> Result<Estimate, ProbeError> {
        let (known, grouping) = (self.known, self.reads.grouping);
        let (mut samples, mut timings) = (Vec::new(), 0);
        for _ in 0..OVERHEAD_PLACES {
            let Some((a, b)) = known.pair(self.watch, 0, surface_step) else {
                continue;
            };
            let (a, b) = (known.middle(a), grouping.begin(known.middle(b)));
            let pair = SectorPair {
                sectors: grouping.sectors,
                from: a,
                to: b,
                lower,
                upper: lower + OVERHEAD_RANGE_MS,
                within: OVERHEAD_WITHIN_MS,
            };
            let time = min_time_by(self.watch, pair, from, to)?;
            timings += time.samples;
            let track = known.map.track_of(b).map_or(0, |track| track.index);
            let sector_ms = known.sector_ms(track, self.watch.period);
            samples.push(time.value - f64::from(grouping.sectors) * sector_ms);
        }
        Ok(Estimate {
            samples: timings,
            ..Estimate::of(&samples).at_least(OVERHEAD_HALF_WIDTH_MS_MIN)
        })
    }

    /// Measures how much longer a head switch before a write takes than one before a read.
    fn settling(&mut self, overhead: Estimate, switch_most: f64) -> Result<(), ProbeError> {
        if self.known.layout.surfaces == 1 {
            return Ok(());
        }
        let head_switch = self.reads.head_switch_ms;
        let lower = overhead.value + (head_switch - SWITCH_EARLIER_MS).max(0.0);
        let switched = self.least(self.watch.media, WRITE, 1, lower)?;
        // The switch hides the sector's transfer over the bus, for which a write on the same track
        // waits.
        let settle = switched.minus(overhead).plus(-head_switch);
        // As for reads: a crossing that was made in time on the drive must be made in time with the
        // fitted profile.
        self.found.settle_ms = settle.or_zero().min(switch_most - head_switch);
        self.figure(
            "mechanics.write_settle_ms",
            settle,
            "ms",
            "the minimum time between completions on two surfaces of a cylinder, for writes minus that for reads",
        );
        Ok(())
    }

    /// Measures the additional time, apart from settling, of a seek before a write compared with
    /// one before a read. A one-cylinder seek before a write takes at most `step_most`.
    fn seeks(&mut self, overhead: f64, step_most: f64) -> Result<(), ProbeError> {
        let settle = self.found.settle_ms;
        self.found.seek_extra = self.seek_extra(overhead, settle)?;
        let single = self
            .reads
            .seek
            .first()
            .filter(|point| point.0 == 1)
            .map_or(0.0, |point| point.1.value);
        if let Some((1, extra)) = self.found.seek_extra.first_mut() {
            *extra = extra.min(step_most - single - settle);
        } else if single + settle > step_most {
            self.found.seek_extra = vec![(1, step_most - single - settle), (2, 0.0)];
        }
        Ok(())
    }

    /// Measures seeks before writes at a few distances. Returns an empty list if, on average, they
    /// take nearly as long as seeks before reads plus settling.
    fn seek_extra(&mut self, overhead: f64, settle: f64) -> Result<Vec<(u32, f64)>, ProbeError> {
        let (known, grouping, curve) = (self.known, self.reads.grouping, self.reads.seek);
        let mut extra: Vec<(u32, f64)> = Vec::new();
        let read = self.watch.media;
        let mut timings = 0;
        for part in 0..SEEK_DISTANCES {
            let index = part * curve.len().saturating_sub(1) / (SEEK_DISTANCES - 1);
            let Some(&(distance, seek)) = curve.get(index) else {
                continue;
            };
            let Some((from, to)) = known.pair(self.watch, distance, 0) else {
                continue;
            };
            let sector = known.sector_ms(to, self.watch.period);
            let lower = overhead + f64::from(grouping.sectors) * sector + seek.value;
            let pair = SectorPair {
                sectors: grouping.sectors,
                from: known.middle(from),
                to: grouping.begin(known.middle(to)),
                lower,
                upper: lower + SEEK_RANGE_MS,
                within: SEEK_WITHIN_MS,
            };
            let time = min_time_by(self.watch, pair, read, WRITE)?;
            timings += time.samples;
            extra.push((distance, time.value - lower - settle));
        }
        extra.dedup_by_key(|point| point.0);
        let all: Vec<f64> = extra.iter().map(|point| point.1).collect();
        if all.is_empty() {
            return Ok(extra);
        }
        let mean = Estimate::of(&all);
        self.figure(
            "mechanics.seek.write",
            Estimate {
                samples: timings,
                ..mean
            },
            "ms more than for reads",
            "seeks before writes minus seeks before reads minus settling, at up to nine distances",
        );
        if mean.value.abs() < SEEK_EXTRA_MS_MIN {
            extra.clear();
        }
        Ok(extra)
    }

    /// Measures whether writes complete in the buffer, how long that takes, and how many fit.
    fn buffering(&mut self) -> Result<(), ProbeError> {
        let [one, many] = self.after_reads()?;
        let one_ms = median(&one);
        self.found.write_back = self.is_buffered(&one, one_ms);
        let write_back = f64::from(u8::from(self.found.write_back));
        self.figures.push(Measurement {
            name: "cache.write_back".to_owned(),
            value: write_back,
            low: write_back,
            high: write_back,
            unit: "(1 = yes)",
            how: "writes on distant cylinders: whether they complete before they can be on the media",
            samples: (one.len() + many.len()) as u64,
        });
        if !self.found.write_back {
            return Ok(());
        }
        let one = Estimate::of(&one);
        let sector_ms = self.bus_sector(one, Estimate::of(&many));
        self.found.hit_after_read_ms =
            Some(self.hit("overheads.write_hit_after_read_ms", one, sector_ms));
        let after_write = self.after_writes()?;
        self.found.hit_after_write_ms =
            Some(self.hit("overheads.write_hit_after_write_ms", after_write, sector_ms));
        self.bursts(one_ms)
    }

    /// Returns the first LBN of a random track. Tracks at the end of the drive are excluded.
    fn random_lbn(&mut self) -> Lbn {
        let count = self.known.tracks.len() as u64;
        self.known.tracks[self.watch.rng.below(count - count / 16) as usize].first_lbn
    }

    /// Times writes of one sector and of many, each after a read.
    fn after_reads(&mut self) -> Result<[Vec<f64>; 2], ProbeError> {
        let count = if self.watch.deviation() < STEADY_MS {
            BUFFERED_WRITES.0
        } else {
            BUFFERED_WRITES.1
        };
        let mut times = [Vec::new(), Vec::new()];
        for (sectors, times) in BUFFERED_LENGTHS.into_iter().zip(&mut times) {
            for _ in 0..count {
                let lbn = self.random_lbn();
                // A read of a random track, most often a distant one, makes the write need a long
                // seek.
                let far = self.random_lbn();
                self.watch.media(far, 1)?;
                self.watch.pause(IDLE_TURNS * self.watch.period);
                times.push(self.watch.write(lbn, sectors)?.response());
                self.watch.send(Request::flush())?;
            }
        }
        Ok(times)
    }

    /// Returns whether writes with these response times were complete before they were on the
    /// media.
    fn is_buffered(&self, times: &[f64], median: f64) -> bool {
        let bound = BUFFERED_TURNS_MAX * self.watch.period;
        let slow = times.iter().filter(|time| **time > bound).count();
        median < bound && slow <= times.len() / LATE_WRITES_ONE_IN
    }

    /// Returns the bus time of a sector, by the difference between writes of one and of many.
    fn bus_sector(&mut self, one: Estimate, many: Estimate) -> f64 {
        let sectors = f64::from(BUFFERED_LENGTHS[1] - BUFFERED_LENGTHS[0]);
        let slope = many.minus(one);
        let slope = Estimate {
            value: slope.value / sectors,
            half_width: slope.half_width / sectors,
            ..slope
        };
        self.found.sector_ms = Some(slope.value.max(0.0));
        self.figure(
            "bus.write_sector_ms",
            slope,
            "ms per sector",
            "buffered writes of different lengths: the slope",
        );
        slope.value
    }

    /// Returns the overhead of one-sector writes that the buffer accepts, and records it as a
    /// figure.
    fn hit(&mut self, name: &str, one: Estimate, sector_ms: f64) -> f64 {
        let overhead = one.plus(-sector_ms);
        let how = "buffered writes minus the transfer";
        self.figure(name, overhead, "ms", how);
        overhead.value.max(0.0)
    }

    /// Times writes of one sector after other writes, once these are on the media.
    fn after_writes(&mut self) -> Result<Estimate, ProbeError> {
        let mut samples = Vec::new();
        for _ in 0..FOLLOWING_WRITES {
            let (a, b) = (self.random_lbn(), self.random_lbn());
            self.watch.write(a, 1)?;
            self.watch.pause(WRITTEN_TURNS * self.watch.period);
            samples.push(self.watch.write(b, 1)?.response());
            self.watch.pause(WRITTEN_TURNS * self.watch.period);
        }
        Ok(Estimate::of(&samples))
    }

    /// Measures how many writes of a burst the buffer accepts until one has to wait.
    fn bursts(&mut self, one_ms: f64) -> Result<(), ProbeError> {
        let mut bursts = Vec::new();
        for _ in 0..BURSTS {
            self.watch.send(Request::flush())?;
            let mut taken = 0;
            while taken < self.reads.segments + BURST_EXCESS {
                let lbn = self.random_lbn();
                let waiting = one_ms + WAITING_TURNS_MIN * self.watch.period;
                if self.watch.write(lbn, 1)?.response() > waiting {
                    break;
                }
                taken += 1;
            }
            bursts.push(f64::from(taken));
        }
        self.watch.send(Request::flush())?;
        let room = median(&bursts);
        self.found.write_segments = (room as u32).max(1);
        self.figures.push(Measurement {
            name: "cache.write_segments".to_owned(),
            value: room,
            low: bursts.iter().copied().fold(f64::INFINITY, f64::min),
            high: bursts.iter().copied().fold(0.0, f64::max),
            unit: "segments",
            how: "bursts of writes in different places: the number accepted before one waits for the media",
            samples: BURSTS as u64 * u64::from(self.found.write_segments),
        });
        Ok(())
    }

    /// Measures whether writes begin wherever the head arrives.
    fn whole_tracks(&mut self, overhead: f64) -> Result<(), ProbeError> {
        let mut samples = Vec::new();
        for _ in 0..WHOLE_TRACKS {
            let Some((track, _)) = self.known.pair(self.watch, 0, 0) else {
                continue;
            };
            let track = self.known.tracks[track];
            self.watch.media(track.first_lbn, 1)?;
            let pause = self.watch.rng.fraction() * self.watch.period;
            self.watch.pause(pause);
            let write = Request {
                fua: true,
                ..Request::write(track.first_lbn, track.sectors.0 as u32)
            };
            let time = self.watch.send(write)?.response();
            samples.push((time - overhead) / self.watch.period);
        }
        let turns = Estimate::of(&samples);
        self.found.zero_latency = Some(turns.value < ZERO_LATENCY_TURNS_MAX);
        self.figure(
            "access.zero_latency_write",
            turns,
            "revolutions",
            "writes of whole tracks from random angles: about 1.0 with zero-latency access, about 1.5 without",
        );
        Ok(())
    }
}

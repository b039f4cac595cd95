//! Bus and cache: the properties of a drive's buffer that a host can measure.
//!
//! The method follows Worthington 1995, section 5. A sector is in the buffer if its read is fast
//! although it would have to wait for more than half a revolution if it came from the media.

use super::measurement::{Estimate, Measurement};
use super::reporter::Reporter;
use super::seek::KnownDrive;
use super::stopwatch::Stopwatch;
use crate::ProbeError;
use traxtent_map::MappedTrack;
use traxtent_model::profile::{BusHold, CacheSpec, Delivery, ReadAhead, ReadAheadUntil, WriteBack};
use traxtent_units::stats::median;
use traxtent_units::turns::fraction;
use traxtent_units::{Lbn, Sectors};

/// The largest request, in sectors.
pub(super) const REQUEST_SECTORS_MAX: u32 = 16_384;
/// The largest number of sectors that a drive is expected to read ahead.
const AHEAD_SECTORS_MAX: u64 = 1 << 16;
/// The largest number of segments that a cache is expected to have.
const SEGMENTS_MAX: u32 = 256;

/// The response time, in revolutions, above which a sector that was just read came from the media.
/// A full revolution passes before it arrives under the head again.
const HIT_TURNS_MAX: f64 = 0.7;
/// The distance from the line through the hits, in revolutions, beyond which a read was not a hit,
/// because it was longer than a segment.
const OFF_LINE_TURNS: f64 = 0.2;
/// The time from a test read to the arrival of its sector under the head, in revolutions, in
/// addition to the command overhead. A miss takes at least this long.
const TEST_LEAD_TURNS: f64 = 0.6;
/// The largest excess over the time of a hit, in revolutions, of a test read that counts as a hit.
const TEST_TURNS_MAX: f64 = 0.3;
/// The same for a test read that is sent at once, whatever the angle. A miss needs the seek and
/// half a revolution on average, so few are this fast.
const TEST_TURNS_MAX_AT_ONCE: f64 = 0.08;
/// The shortest read, in sectors, that shows how far the drive has read on.
const READ_ON_SECTORS_MIN: u64 = 128;

/// The number of reads, and of verifications, in a comparison of the two.
const COMPARED_READS: usize = 15;
/// The time from the arrival of the head to the first sector in this comparison, in revolutions.
const EARLY_TURNS: f64 = 0.1;
/// The largest excess of the bus time over the media time, in milliseconds per sector, that is
/// taken for zero. The comparison cannot resolve less.
const BUS_EXCESS_MS_MIN: f64 = 0.001;
/// The longest connection time, in milliseconds, that is taken for zero.
const CONNECT_MS_MIN: f64 = 0.04;
/// The uncertainty of a comparison, in milliseconds.
const BEHIND_UNCERTAINTY_MS: f64 = 0.03;

/// The number of reads that show whether a drive keeps sectors that pass before the requested one.
const ARRIVALS: usize = 12;
/// The share of these reads above which the drive keeps such sectors.
const ARRIVALS_SHARE_MIN: f64 = 0.5;

/// The constant part of the pause in which a drive reads ahead, in revolutions: the seek and the
/// first track.
const AHEAD_TURNS: f64 = 3.0;
/// The additional pause for each track that it reads ahead, in revolutions: the sectors and the
/// skew.
const AHEAD_TURNS_PER_TRACK: f64 = 1.6;

/// One in this many tracks, those at the end of the drive, is excluded from random choices. This
/// leaves room for reads after the chosen track.
const END_ONE_IN: u64 = 16;
/// The number of attempts to find another track like a given one.
const ANOTHER_ATTEMPTS: usize = 32;
/// The number of attempts to find a place that no trial has used.
const FRESH_ATTEMPTS: usize = 200;
/// The minimum distance of such a place from the used ones, in tracks.
const FRESH_TRACKS: u64 = 4;
/// The number of further hits in one place on an unsteady host. They cost no movement of the arm.
const HITS_AGAIN: usize = 100;
/// The uncertainty of a segment's size, as a share of it. It is assumed, not measured.
const SIZE_UNCERTAINTY: f64 = 0.02;
/// The places on a track, as shares of its length, after which read-ahead is measured.
const AHEAD_PARTS: [f64; 3] = [0.1, 0.5, 0.9];
/// The largest size, in sectors, of the hit after which an idle drive may continue its read-ahead.
const CONTINUED_SECTORS: u64 = 16;

/// The measured properties of bus and cache.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Buffer {
    /// The time of a hit without its transfer.
    pub(super) hit_ms: f64,
    /// The time from the media transfer of a sector to its transfer on the bus.
    pub(super) connect_ms: f64,
    /// The part of the overheads that follows the transfers on the media and the bus.
    pub(super) completion_ms: f64,
    /// The time on the bus per sector.
    pub(super) sector_ms: f64,
    /// The additional time of the bus compared with the media, per sector.
    pub(super) bus_excess_ms: f64,
    pub(super) delivery: Delivery,
    pub(super) hold: BusHold,
    pub(super) read_on_arrival: bool,
    pub(super) cache: CacheSpec,
}

impl Buffer {
    /// Returns the values for a drive on which nothing was measured: a drive without a cache.
    fn unknown() -> Buffer {
        Buffer {
            hit_ms: 0.0,
            connect_ms: 0.0,
            completion_ms: 0.0,
            sector_ms: 0.0,
            bus_excess_ms: 0.0,
            delivery: Delivery::InOrder,
            hold: BusHold::default(),
            read_on_arrival: false,
            cache: CacheSpec {
                enabled: false,
                segments: 1,
                write_segments: 1,
                segment_sectors: 1,
                dedicated_write_segment: false,
                write_back: WriteBack::None,
                combine_writes: true,
                read_hits_on_written: true,
                writes_update: false,
                hits_while_busy: false,
                writes_while_busy: false,
                almost_hits: true,
                drop_delivered: false,
                read_watermark: 0.0,
                write_watermark: 1.0,
                watermark_of_request: true,
                read_ahead: ReadAhead::default(),
            },
        }
    }
}

/// Measures bus and cache by reads and verifications.
pub(super) fn buffer(
    watch: &mut Stopwatch<'_>,
    known: &KnownDrive<'_>,
    overhead: f64,
    zero_latency: bool,
    reporter: &mut Reporter<'_>,
) -> Result<Buffer, ProbeError> {
    let figures = &mut reporter.figures;
    let mut found = Buffer::unknown();
    let mut probe = BufferProbe {
        watch,
        known,
        overhead,
        hit_ms: 0.0,
        timings: 0,
        used: Vec::new(),
    };
    let Some((hit, sector)) = probe.hits()? else {
        reporter.notes.push(
            "Sectors read a second time come from the media: the drive has no read cache."
                .to_owned(),
        );
        probe.misses(&mut found, zero_latency, figures)?;
        return Ok(found);
    };
    found.cache.enabled = true;
    (found.hit_ms, found.sector_ms) = (hit.value.max(0.0), sector.value.max(0.0));
    probe.hit_ms = found.hit_ms + found.sector_ms;
    figures.push(Measurement::around(
        "overheads.read_hit_after_read_ms",
        hit,
        "ms",
        "rereads of different lengths: the fitted line at length 0",
    ));
    figures.push(Measurement::around(
        "bus.read_sector_ms",
        sector,
        "ms per sector",
        "rereads of different lengths: the slope of the fitted line",
    ));
    probe.misses(&mut found, zero_latency, figures)?;

    let before = probe.timings;
    let arrivals = probe.on_arrival()?;
    found.read_on_arrival = arrivals.value > ARRIVALS_SHARE_MIN;
    figures.push(Measurement { samples: probe.timings - before, ..Measurement::around(
        "access.read_on_arrival",
        arrivals,
        "of reads",
        "reads of a sector that passed shortly before a requested one: the share served from the buffer",
    )});
    probe.read_ahead(&mut found.cache, figures)?;
    let ahead = found.cache.read_ahead.max_sectors;
    // If the bus transfer follows the media transfer, or falls behind it, the drive has read ahead
    // in the meantime.
    let falls_behind =
        found.bus_excess_ms > 0.0 && found.cache.read_ahead.until == ReadAheadUntil::SegmentEnd;
    let ahead = (found.hold.during_read || falls_behind).then_some(ahead);
    let when_complete = found.delivery == Delivery::InOrderWhenComplete;
    let size = probe.segment_size(ahead, when_complete, found.sector_ms, found.bus_excess_ms)?;
    found.cache.segment_sectors = size.value as u32;
    figures.push(Measurement::around(
        "cache.segment_sectors",
        size,
        "sectors",
        "the longest read whose first sector is in the buffer afterwards",
    ));
    let segments = probe.segments()?;
    found.cache.segments = segments.value as u32;
    found.cache.write_segments = 1;
    figures.push(Measurement::around(
        "cache.segments",
        segments,
        "segments",
        "the largest number of reads in different places after which the first is still in the buffer",
    ));
    let size = segments.value * size.value;
    figures.push(Measurement {
        name: "cache.size".to_owned(),
        value: size,
        low: (1.0 - SIZE_UNCERTAINTY) * size,
        high: (1.0 + SIZE_UNCERTAINTY) * size,
        unit: "sectors",
        how: "the number of segments that reads use, times their size",
        samples: probe.timings,
    });
    Ok(found)
}

/// The pause after which a drive has read `ahead` sectors ahead on tracks of `track` sectors, in
/// revolutions.
fn ahead_turns(ahead: f64, track: Sectors) -> f64 {
    AHEAD_TURNS + AHEAD_TURNS_PER_TRACK * (ahead / track.0 as f64)
}

struct BufferProbe<'a, 'b> {
    watch: &'a mut Stopwatch<'b>,
    known: &'a KnownDrive<'a>,
    overhead: f64,
    /// The time of a hit of one sector.
    hit_ms: f64,
    timings: u64,
    /// The places whose sectors may still be in the buffer.
    used: Vec<u64>,
}

impl BufferProbe<'_, '_> {
    /// Returns a random track with others after it.
    fn track(&mut self) -> MappedTrack {
        let count = self.known.tracks.len() as u64;
        let excluded = count / END_ONE_IN;
        self.known.tracks[self.watch.rng.below((count - excluded).max(1)) as usize]
    }

    /// Returns a random track of the same patch that has the same position in the repeating section
    /// and the same number of sectors. Returns `track` itself if none is found.
    fn another(&mut self, track: MappedTrack) -> MappedTrack {
        let patch = self.known.angles.patch(track.index);
        let period = self.known.layout.sections[patch.section].period();
        let (phase, times) = ((track.index - patch.first) % period, patch.tracks / period);
        for _ in 0..ANOTHER_ATTEMPTS {
            let k = self.watch.rng.below(times.max(1) as u64) as usize;
            let other = self.known.tracks
                [(patch.first + k * period + phase).min(self.known.tracks.len() - 1)];
            if other.sectors == track.sectors {
                return other;
            }
        }
        track
    }

    /// The angle at which a sector begins.
    fn angle(&self, lbn: Lbn) -> f64 {
        let track = self.known.map.track_of(lbn).expect("it is on the drive");
        let (start, slots) = self.known.angles.start(self.known.layout, track.index);
        fraction(start + (lbn.0 - track.first_lbn.0) as f64 / f64::from(slots))
    }

    /// Waits until `lbn` is due in `lead` milliseconds.
    fn lead(&mut self, lbn: Lbn, lead: f64) {
        let due = self.watch.next(self.watch.now() + lead, self.angle(lbn));
        self.watch.wait_until(due - lead);
    }

    /// Returns whether a sector is in the buffer. The request is sent at a time at which a miss is
    /// distinguishable.
    fn is_hit(&mut self, lbn: Lbn) -> Result<bool, ProbeError> {
        self.timings += 1;
        self.lead(lbn, self.overhead + TEST_LEAD_TURNS * self.watch.period);
        let timing = self.watch.read(lbn, 1)?;
        Ok(timing.response() < self.hit_ms + TEST_TURNS_MAX * self.watch.period)
    }

    /// Returns whether `test` finds a hit in one of two attempts. A late interrupt makes a hit look
    /// like a miss, but nothing makes a miss look like a hit.
    fn in_either_attempt(
        &mut self,
        test: &mut dyn FnMut(&mut Self) -> Result<bool, ProbeError>,
    ) -> Result<bool, ProbeError> {
        Ok(test(self)? || test(self)?)
    }

    /// Finds the largest number up to `most` for which `test` holds, by doubling from `least`,
    /// then by bisection. Returns `None` if it never holds.
    fn largest(
        &mut self,
        least: u64,
        most: u64,
        test: &mut dyn FnMut(&mut Self, u64) -> Result<bool, ProbeError>,
    ) -> Result<Option<u64>, ProbeError> {
        let mut good = None;
        let mut at = least;
        while at <= most {
            if self.in_either_attempt(&mut |probe| test(probe, at))? {
                good = Some(at);
            } else if good.is_some() {
                break;
            }
            at *= 2;
        }
        let Some(mut good) = good else {
            return Ok(None);
        };
        let mut bad = (2 * good).min(most + 1);
        while bad - good > 1 {
            let middle = good + (bad - good) / 2;
            if self.in_either_attempt(&mut |probe| test(probe, middle))? {
                good = middle;
            } else {
                bad = middle;
            }
        }
        Ok(Some(good))
    }

    /// Measures the time of a hit without its transfer, and the bus time per sector. Returns `None`
    /// if there are no hits.
    fn hits(&mut self) -> Result<Option<(Estimate, Estimate)>, ProbeError> {
        const LENGTHS: [u32; 5] = [1, 16, 32, 64, 128];
        let mut points: Vec<(f64, Estimate)> = Vec::new();
        for length in LENGTHS {
            points.push((f64::from(length), self.hits_of(length)?));
        }
        if points[0].1.value > HIT_TURNS_MAX * self.watch.period {
            return Ok(None);
        }
        // A read longer than a segment is not a hit: its time is off the line through the first two
        // lengths.
        let rise = (points[1].1.value - points[0].1.value) / (points[1].0 - points[0].0);
        let line = |length: f64| points[0].1.value + rise * (length - points[0].0);
        let bound = OFF_LINE_TURNS * self.watch.period;
        let hits = points
            .iter()
            .take_while(|(length, time)| (time.value - line(*length)).abs() < bound)
            .count();
        points.truncate(hits.max(2));
        let (first, last) = (points[0], points[points.len() - 1]);
        let slope = last.1.minus(first.1);
        let span = last.0 - first.0;
        let slope = Estimate {
            value: slope.value / span,
            half_width: slope.half_width / span,
            samples: self.timings,
        };
        let intercepts: Vec<f64> = points
            .iter()
            .map(|(n, t)| t.value - n * slope.value)
            .collect();
        let width = points.iter().map(|(_, t)| t.half_width).fold(0.0, f64::max);
        let hit = Estimate {
            samples: self.timings,
            ..Estimate::of(&intercepts).at_least(width)
        };
        Ok(Some((hit, slope)))
    }

    /// Measures the time of a hit of `length` sectors, in different places, and in each place as
    /// often as an unsteady host requires.
    ///
    /// If a host sends its next read immediately, microseconds decide whether it catches the next
    /// sector or loses a revolution. The time of a hit must therefore be known to better than a
    /// microsecond.
    fn hits_of(&mut self, length: u32) -> Result<Estimate, ProbeError> {
        const PLACES: usize = 12;
        /// Half the desired width of the confidence interval, in milliseconds.
        const HALF_WIDTH_MS: f64 = 0.0003;
        /// The drive time after which no more samples are taken, in milliseconds.
        const DRIVE_TIME_MAX_MS: f64 = 4_000.0;
        let began = self.watch.now();
        let mut samples = Vec::new();
        let mut again = 1;
        loop {
            for _ in 0..PLACES {
                let MappedTrack { first_lbn, .. } = self.track();
                self.watch.read(first_lbn, length)?;
                for _ in 0..again {
                    samples.push(self.watch.read(first_lbn, length)?.response());
                    self.timings += 1;
                }
            }
            let time = Estimate::of(&samples);
            // A sector needs less than a millisecond on the bus.
            let cached = time.value < HIT_TURNS_MAX * self.watch.period + f64::from(length);
            let elapsed = self.watch.now() - began;
            if !cached || time.half_width < HALF_WIDTH_MS || elapsed > DRIVE_TIME_MAX_MS {
                return Ok(time);
            }
            again = HITS_AGAIN;
        }
    }

    /// Measures the delay of a read compared with a verification of the same sectors, in
    /// milliseconds. The head arrives `early` revolutions before the first of them.
    fn behind_media(&mut self, lbn: Lbn, sectors: u32, early: f64) -> Result<f64, ProbeError> {
        let mut times = [0.0; 2];
        for (way, time) in times.iter_mut().enumerate() {
            let mut samples = Vec::new();
            for _ in 0..COMPARED_READS {
                self.watch.refresh()?;
                self.watch.media(lbn, 1)?;
                let lead = self.overhead + early * self.watch.period;
                self.lead(lbn, lead);
                let timing = if way == 0 {
                    self.watch.media(lbn, sectors)?
                } else {
                    self.watch.send(traxtent_units::request::Request {
                        fua: true,
                        ..traxtent_units::request::Request::read(lbn, sectors)
                    })?
                };
                samples.push(timing.response());
                self.timings += 1;
            }
            *time = median(&samples);
        }
        Ok(times[1] - times[0])
    }

    /// Measures the bus transfer of reads from the media.
    fn misses(
        &mut self,
        found: &mut Buffer,
        zero_latency: bool,
        figures: &mut Vec<Measurement>,
    ) -> Result<(), ProbeError> {
        let track = self.track();
        let (_, slots) = self.known.angles.start(self.known.layout, track.index);
        let media = self.watch.period / f64::from(slots);
        let long = (track.sectors.0 as u32 / 3).max(2);
        let one = self.behind_media(track.first_lbn, 1, EARLY_TURNS)?;
        let many = self.behind_media(track.first_lbn, long, EARLY_TURNS)?;
        let slope = (many - one) / f64::from(long - 1);
        found.bus_excess_ms = if slope > BUS_EXCESS_MS_MIN {
            slope
        } else {
            0.0
        };
        let bus = found.sector_ms;
        // A bus transfer that overlaps the media transfer falls behind if the bus is slower. A bus
        // transfer that follows the media transfer adds its full time.
        let along = (bus - media).max(0.0);
        let after = bus;
        let waits = (slope - after).abs() < (slope - along).abs();
        if waits {
            found.cache.read_watermark = 1.0;
            found.hold.during_read = true;
        }
        let connect = one - bus;
        found.connect_ms = if connect > CONNECT_MS_MIN {
            connect
        } else {
            0.0
        };
        figures.push(Measurement {
            name: "cache.read_watermark".to_owned(),
            value: slope,
            low: slope - BEHIND_UNCERTAINTY_MS / f64::from(long),
            high: slope + BEHIND_UNCERTAINTY_MS / f64::from(long),
            unit: "ms per sector",
            how: "reads minus verifications of the same sectors: near 0 if the bus transfer overlaps the media \
                  transfer, near a sector's time on the bus if it follows",
            samples: 4 * COMPARED_READS as u64,
        });
        if zero_latency && bus > 0.0 {
            // The head arrives in the middle: half of the track is read before its first sector.
            let MappedTrack {
                first_lbn, sectors, ..
            } = track;
            let behind = self.behind_media(first_lbn, sectors.0 as u32, 0.5)?;
            let all = sectors.0 as f64 * bus;
            // The time from the end of the media transfer to the end of the bus transfer. If the
            // bus is slower, it transfers without a pause after the first sector that it may send.
            let turn = self.watch.period;
            let ways = [
                (Delivery::OutOfOrder, bus.max(all - turn)),
                (Delivery::InOrder, (0.5 * all).max(all - 0.5 * turn)),
                (Delivery::InOrderWhenComplete, all),
            ];
            let nearest = ways
                .into_iter()
                .min_by(|a, b| (a.1 - behind).abs().total_cmp(&(b.1 - behind).abs()))
                .expect("there are three");
            found.delivery = nearest.0;
            figures.push(Measurement {
                name: "bus.delivery".to_owned(),
                value: behind / all,
                low: (behind - BEHIND_UNCERTAINTY_MS) / all,
                high: (behind + BEHIND_UNCERTAINTY_MS) / all,
                unit: "of the transfer",
                how: "reads of a track from its middle minus verifications: the share of the bus transfer after \
                      the media transfer (in order: half; in order when complete: all; out of order: none)",
                samples: 2 * COMPARED_READS as u64,
            });
        }
        Ok(())
    }

    /// Measures the share of sectors that are served from the buffer although they passed under the
    /// head before the requested one.
    fn on_arrival(&mut self) -> Result<Estimate, ProbeError> {
        let mut samples = Vec::new();
        for _ in 0..ARRIVALS {
            let MappedTrack {
                first_lbn, sectors, ..
            } = self.track();
            let at = |part: f64| first_lbn + Sectors((sectors.0 as f64 * part) as u64);
            self.watch.refresh()?;
            self.watch.media(at(0.2), 1)?;
            // The head arrives half a revolution before the sector.
            self.lead(at(0.75), self.overhead + 0.5 * self.watch.period);
            self.watch.read(at(0.75), 1)?;
            let hit = self.is_hit(at(0.5))?;
            samples.push(f64::from(u8::from(hit)));
        }
        let share = samples.iter().sum::<f64>() / samples.len() as f64;
        Ok(Estimate {
            value: share,
            half_width: 1.0 / (samples.len() as f64).sqrt(),
            samples: ARRIVALS as u64,
        })
    }

    /// Measures the size of a segment, in sectors. If the bus transfer follows the media transfer,
    /// or falls behind it, the drive reads `ahead` sectors ahead in the meantime. The measurement
    /// then waits for them and includes them.
    fn segment_size(
        &mut self,
        ahead: Option<u32>,
        when_complete: bool,
        sector_ms: f64,
        bus_excess_ms: f64,
    ) -> Result<Estimate, ProbeError> {
        let before = self.timings;
        // The largest number of sectors that a segment held: a read whose first sector was still
        // in the buffer, and the sectors that the drive read on until then.
        let mut most = 0;
        let size = self.largest(16, u64::from(REQUEST_SECTORS_MAX), &mut |probe, sectors| {
            // The read ends with a track. Read-ahead must then wait for the skew.
            let track = loop {
                let track = probe.track();
                if track.first_lbn.0 >= sectors {
                    break track;
                }
            };
            let lbn = Lbn(track.first_lbn.0 - sectors);
            probe.watch.refresh()?;
            let first = probe.watch.read(lbn, sectors as u32)?;
            probe.timings += 1;
            // The time from the end of the media transfer to the completion.
            let last = probe.known.tracks[track.index - 1].sectors.0.min(sectors);
            let lag = if when_complete {
                last as f64 * sector_ms
            } else {
                sectors as f64 * bus_excess_ms
            };
            if let Some(ahead) = ahead {
                let turns = ahead_turns(f64::from(ahead), track.sectors);
                probe.watch.pause(turns * probe.watch.period);
                return probe.is_hit(lbn);
            }
            let timing = probe.watch.read(lbn, 1)?;
            let hit =
                timing.response() < probe.hit_ms + TEST_TURNS_MAX_AT_ONCE * probe.watch.period;
            if hit && sectors >= READ_ON_SECTORS_MIN {
                most = most.max(
                    sectors
                        + probe.read_on(track, timing.sent, timing.sent - first.completed + lag),
                );
            }
            Ok(hit)
        })?;
        let size = size.unwrap_or(1).max(most) + u64::from(ahead.unwrap_or(0));
        let half_width = SIZE_UNCERTAINTY * size as f64;
        Ok(Estimate {
            value: size as f64,
            half_width,
            samples: self.timings - before,
        })
    }

    /// Returns how many sectors of `track` the head had read on by the time `sent`. It had finished
    /// the previous track `since` milliseconds earlier.
    fn read_on(&self, track: MappedTrack, sent: f64, since: f64) -> u64 {
        let (start, slots) = self.known.angles.start(self.known.layout, track.index);
        let since_start = fraction(self.watch.angle(sent) - start);
        if since_start > since / self.watch.period {
            return 0;
        }
        (since_start * f64::from(slots)) as u64
    }

    /// Measures the number of segments.
    fn segments(&mut self) -> Result<Estimate, ProbeError> {
        let before = self.timings;
        let count = self.largest(1, u64::from(SEGMENTS_MAX), &mut |probe, count| {
            probe.watch.refresh()?;
            let places: Vec<Lbn> = (0..count).map(|_| probe.track().first_lbn).collect();
            for &place in &places {
                probe.watch.read(place, 1)?;
                probe.timings += 1;
            }
            probe.is_hit(places[0])
        })?;
        let samples = self.timings - before;
        Ok(Estimate {
            value: count.unwrap_or(1) as f64,
            half_width: 0.0,
            samples,
        })
    }

    /// Returns a track like `like`, and the LBN `offset` sectors after the first LBN of that track.
    /// Both are away from the places of earlier trials if such a track is found, because sectors of
    /// those places may still be in the buffer. The LBN is before `end`.
    fn fresh(&mut self, like: MappedTrack, offset: i64, end: u64) -> (MappedTrack, Lbn) {
        let near = FRESH_TRACKS * like.sectors.0;
        let mut found = (like, Lbn(end - 1));
        for _ in 0..FRESH_ATTEMPTS {
            let track = self.another(like);
            let last = track.first_lbn.0.saturating_add_signed(offset);
            let places = [track.first_lbn.0, last];
            let new = |place: &u64| !self.used.iter().any(|used| used.abs_diff(*place) < near);
            if last < end {
                found = (track, Lbn(last));
                if places.iter().all(new) {
                    self.used.extend(places);
                    break;
                }
            }
        }
        found
    }

    /// Measures how many sectors after a read are in the buffer some time later. The read has
    /// `read` sectors. It begins `into` sectors after the start of a track like `like`, or before
    /// the start if `into` is negative.
    fn extent(&mut self, like: MappedTrack, into: i64, read: u32) -> Result<u64, ProbeError> {
        self.used.clear();
        let end = self.known.map.end().0;
        let extent = self.largest(
            1,
            AHEAD_SECTORS_MAX.min(end / END_ONE_IN),
            &mut |probe, ahead| {
                let (track, last) =
                    probe.fresh(like, into + i64::from(read) + ahead as i64 - 1, end);
                let lbn = Lbn(track.first_lbn.0.saturating_add_signed(into));
                probe.timings += 1;
                probe.watch.refresh()?;
                probe.watch.read(lbn, read)?;
                let turns = ahead_turns(ahead as f64, track.sectors);
                probe.watch.pause(turns * probe.watch.period);
                probe.is_hit(last)
            },
        )?;
        Ok(extent.unwrap_or(0))
    }

    /// Measures how far the drive reads ahead.
    fn read_ahead(
        &mut self,
        cache: &mut CacheSpec,
        figures: &mut Vec<Measurement>,
    ) -> Result<(), ProbeError> {
        let before = self.timings;
        let mut extents = Vec::new();
        for part in AHEAD_PARTS {
            let track = self.track();
            let MappedTrack {
                index,
                first_lbn,
                sectors,
            } = track;
            let into = (sectors.0 as f64 * part) as u64;
            let extent = self.extent(track, into as i64, 1)?;
            let past = first_lbn.0 + into + 1 + extent;
            let cylinder = self.known.layout.spot(index).cylinder;
            let last = (index..self.known.tracks.len())
                .take_while(|&track| self.known.layout.spot(track).cylinder == cylinder)
                .last()
                .unwrap_or(index);
            let ends = |track: usize| {
                self.known.tracks[track].first_lbn.0 + self.known.tracks[track].sectors.0
            };
            extents.push((
                extent,
                past.abs_diff(ends(index)) <= 1,
                past.abs_diff(ends(last)) <= 1,
            ));
        }
        let ahead = &mut cache.read_ahead;
        let middle = extents[1].0;
        let what;
        if extents.iter().all(|extent| extent.0 == 0) {
            what = "later reads of the sectors after a read: none are in the buffer";
        } else if extents.iter().all(|extent| extent.1) {
            // Read-ahead ends with the track. Does it go further after a read that crossed from
            // another track?
            let track = self.track();
            let extent = self.extent(track, -1, 2)?;
            let further = extent > track.sectors.0;
            ahead.until = if further {
                ReadAheadUntil::AdaptiveTrackEnd
            } else {
                ReadAheadUntil::TrackEnd
            };
            what = "later reads of the sectors after a read: those up to the end of its track are in the buffer";
        } else if extents.iter().all(|extent| extent.2) {
            ahead.until = ReadAheadUntil::CylinderEnd;
            what = "later reads of the sectors after a read: those up to the end of its cylinder are in the buffer";
        } else {
            ahead.until = ReadAheadUntil::SegmentEnd;
            ahead.max_sectors =
                median(&extents.iter().map(|e| e.0 as f64).collect::<Vec<_>>()) as u32;
            what = "later reads of the sectors after a read: those in the buffer end neither with the track nor with the cylinder";
        }
        let all = extents.iter().map(|extent| extent.0 as f64);
        figures.push(Measurement {
            name: "cache.read_ahead".to_owned(),
            value: middle as f64,
            low: all.clone().fold(f64::INFINITY, f64::min),
            high: all.fold(0.0, f64::max),
            unit: "sectors",
            how: what,
            samples: self.timings - before,
        });
        if ahead.until == ReadAheadUntil::SegmentEnd {
            ahead.on_idle_hit = self.continues_on_idle_hit(u64::from(ahead.max_sectors))?;
        }
        Ok(())
    }

    /// Returns whether a hit makes an idle drive continue its read-ahead.
    fn continues_on_idle_hit(&mut self, extent: u64) -> Result<bool, ProbeError> {
        let more = CONTINUED_SECTORS.min(extent / 2).max(1);
        self.in_either_attempt(&mut |probe| {
            let MappedTrack {
                first_lbn: lbn,
                sectors,
                ..
            } = probe.track();
            probe.watch.refresh()?;
            let turns = ahead_turns(extent as f64, sectors);
            probe.watch.read(lbn, 1)?;
            probe.watch.pause(turns * probe.watch.period);
            probe
                .watch
                .read(lbn + Sectors(extent - more), more as u32)?;
            probe.watch.pause(turns * probe.watch.period);
            probe.is_hit(lbn + Sectors(extent + more / 2 + 1))
        })
    }
}

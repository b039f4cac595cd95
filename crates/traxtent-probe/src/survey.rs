//! Surveying a drive whose tracks are known: the angle at which each track begins, and the times
//! that the arm needs. A host uses them to predict when a sector passes the head
//! ([`traxtent_map::head::HeadTracker`]).
//!
//! The first sector of each track is read one or more times. In between, one reference sector is
//! read repeatedly. This keeps the effects of an inexact period or a wandering spindle from
//! accumulating over the minutes that a survey takes. Then, for distances from zero to that between
//! the first and the last surveyed track, a bisection finds the shortest time after which a sector
//! is not missed (Worthington et al., "On-Line Extraction of SCSI Disk Drive Parameters", 1995:
//! minimum time between request completions).

use std::ops::Range;

use super::clock::{Clock, MISSED_TURNS};
use super::extraction::ProbeError;
use super::target::Target;
use traxtent_map::TrackMap;
use traxtent_map::head::{PositioningCurve, Survey};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::stats::upper_median;
use traxtent_units::turns::{fraction, wrap};
use traxtent_units::{Lbn, SimTime};

/// The number of readings between two readings of the reference sector.
const READINGS_BETWEEN: u32 = 24;

/// The shares of a reference reading's error by which the drift and its rate are corrected.
const DRIFT_CORRECTIONS: (f64, f64) = (0.15, 0.01);

/// The number by which the longest distance is divided to get the largest step between distances.
const DISTANCES: usize = 160;

/// The number of measurements per distance. The longest of them is the arm's time.
const TRIALS: usize = 3;

/// The number of reads that measure the delay from a read's last sector to its completion.
const TAILS: usize = 101;

/// The resolution of the arm's time, in revolutions.
const RESOLUTION_TURNS: f64 = 1.0 / 512.0;

/// The number of sectors at the beginning of a track that are tried until one can be read.
const READABLE: u64 = 8;

/// The number of attempts to time a pair of reads until one has sectors that can be read.
const PAIR_ATTEMPTS: usize = 8;

/// Surveys the given tracks of a map, reading each of them `readings` times, for a host that will
/// read `sectors` at a time. `tracks` must be a non-empty range of the map's tracks. `progress`
/// receives the number of tracks done.
///
/// # Errors
/// Returns an error if the drive cannot be timed, if every attempt to time the arm between two
/// tracks meets a sector that cannot be read, or if the drive fails. A track at whose beginning no
/// sector can be read gets the angle 0.
pub fn survey(
    target: &mut dyn Target,
    map: &TrackMap,
    tracks: Range<usize>,
    readings: u32,
    sectors: u32,
    progress: &mut dyn FnMut(usize),
) -> Result<Survey, ProbeError> {
    let mut clock = Clock::start(target)?;
    let first = map
        .track(tracks.start)
        .map_or(map.first(), |track| track.first_lbn);
    let mut drift = Drift::new(first);
    let mut angles: Vec<u16> = Vec::with_capacity(tracks.len());
    let all = map.tracks().skip(tracks.start).take(tracks.len());
    let between = (READINGS_BETWEEN / readings.max(1)).max(1) as usize;
    for (index, track) in all.enumerate() {
        if index % between == 0 {
            drift.follow(&mut clock)?;
            progress(index);
        }
        let mut sum = 0.0;
        let mut counted = 0;
        let mut base = 0.0;
        // If a sector cannot be read, the next one is used.
        for lbn in track.first_lbn.0..track.end().0.min(track.first_lbn.0 + READABLE) {
            let into = (lbn - track.first_lbn.0) as f64 / track.sectors.0 as f64;
            for _ in 0..readings.max(1) {
                let Some(pass) = clock.pass(lbn)? else { break };
                let angle = pass.angle - drift.now(&clock) - into;
                if counted == 0 {
                    base = angle;
                }
                sum += wrap(angle - base);
                counted += 1;
            }
            if counted > 0 {
                break;
            }
        }
        let angle = fraction(base + sum / f64::from(counted.max(1)));
        angles.push((angle * 65_536.0) as u64 as u16);
    }
    let mut arm = Arm {
        clock: &mut clock,
        map,
        tracks: tracks.clone(),
        angles: &angles,
        drift,
        rng: Rng::new(0x0074_7572_6e73),
    };
    let reach = arm.reach()?;
    let tail = arm.tail(sectors)?;
    let drift = arm.drift;
    let now = clock.target.now();
    Ok(Survey {
        first_track: tracks.start,
        angles,
        reach: reach.delayed_by(tail),
        period: clock.period * (1.0 + drift.rate),
        phase: (now, fraction(clock.turns(now) - drift.now(&clock) - tail)),
    })
}

/// Measures the arm's times between tracks whose angles are known.
struct Arm<'a, 'b> {
    clock: &'a mut Clock<'b>,
    map: &'a TrackMap,
    tracks: Range<usize>,
    angles: &'a [u16],
    drift: Drift,
    rng: Rng,
}

/// The drift of the platter against the clock, measured by rereading a reference sector.
#[derive(Clone, Copy, Debug)]
struct Drift {
    sector: Lbn,
    /// The angle of the sector at its first reading.
    angle: Option<f64>,
    /// The time of the last update.
    at: SimTime,
    /// The drift at that time, in revolutions.
    turns: f64,
    /// The rate of the drift, per revolution.
    rate: f64,
}

impl Drift {
    fn new(sector: Lbn) -> Drift {
        Drift {
            sector,
            angle: None,
            at: SimTime::ZERO,
            turns: 0.0,
            rate: 0.0,
        }
    }

    /// Rereads the reference sector and updates the drift.
    fn follow(&mut self, clock: &mut Clock<'_>) -> Result<(), ProbeError> {
        let Some(pass) = clock.pass(self.sector.0)? else {
            // A sector that has become unreadable no longer updates the drift.
            return Ok(());
        };
        let expected = self.now(clock);
        let angle = *self.angle.get_or_insert(pass.angle);
        let error = wrap(pass.angle - expected - angle);
        let now = clock.target.now();
        let turns = now.saturating_since(self.at).0 as f64 / clock.period;
        if self.at > SimTime::ZERO && turns > 0.5 {
            self.rate += DRIFT_CORRECTIONS.1 * error / turns;
        }
        self.turns = expected + DRIFT_CORRECTIONS.0 * error;
        self.at = now;
        Ok(())
    }

    /// The drift now, in revolutions.
    fn now(&self, clock: &Clock<'_>) -> f64 {
        let since = clock.target.now().saturating_since(self.at).0 as f64;
        match self.angle {
            Some(_) => self.turns + self.rate * since / clock.period,
            None => 0.0,
        }
    }
}

impl Arm<'_, '_> {
    /// Measures the arm's time for each distance: the longest of a few shortest times.
    fn reach(&mut self) -> Result<PositioningCurve, ProbeError> {
        let most = self.tracks.len() - 1;
        let mut points: Vec<(usize, f64)> = Vec::new();
        let step = most.div_ceil(DISTANCES).max(1);
        let mut distance = 0;
        loop {
            let mut longest = 0.0_f64;
            for _ in 0..TRIALS {
                longest = longest.max(self.least(distance)?);
            }
            points.push((distance, longest));
            if distance == most {
                return Ok(PositioningCurve::new(points));
            }
            // The steps are smaller at short distances, where the curve is steep.
            distance = (distance + (distance / 8 + 1).min(step)).min(most);
        }
    }

    /// Returns the median delay, in revolutions, from the end of a read's last sector, timed as in
    /// this survey, to the completion of the read. The read has `sectors` sectors. Buses and
    /// buffers cause the delay.
    fn tail(&mut self, sectors: u32) -> Result<f64, ProbeError> {
        let mut later = Vec::new();
        for _ in 0..TAILS * PAIR_ATTEMPTS {
            if later.len() == TAILS {
                break;
            }
            let track = self.tracks.start + self.rng.below(self.tracks.len() as u64) as usize;
            let track = self.map.track(track).expect("it is in the map");
            let first = self
                .rng
                .below(track.sectors.0.saturating_sub(sectors.into()).max(1));
            let lbn = Lbn(track.first_lbn.0 + first);
            let last = lbn.0 + u64::from(sectors.max(1)) - 1;
            let Some(pass) = self.clock.pass(last.min(track.end().0 - 1))? else {
                continue;
            };
            let timing = self
                .clock
                .target
                .request(Request::read(lbn, sectors.max(1)))?;
            later.push(wrap(self.clock.turns(timing.completed) - pass.angle));
        }
        upper_median(later).ok_or_else(|| ProbeError::Inconsistent {
            lbn: self.map.first(),
            problem: "the sectors of the surveyed tracks cannot be read".to_owned(),
        })
    }

    /// Returns the shortest time over a distance between two random tracks, in revolutions, found
    /// by bisection.
    fn least(&mut self, distance: usize) -> Result<f64, ProbeError> {
        self.drift.follow(self.clock)?;
        let from =
            self.tracks.start + self.rng.below((self.tracks.len() - distance) as u64) as usize;
        let (from, to) = if self.rng.chance(0.5) {
            (from, from + distance)
        } else {
            (from + distance, from)
        };
        // A read sent at a random time takes the shortest time plus up to one revolution.
        let took = self.took(from, to, None)?;
        let (mut lower, mut upper) = ((took - 1.0).max(0.0), took);
        while upper - lower > RESOLUTION_TURNS {
            let middle = f64::midpoint(lower, upper);
            if self.took(from, to, Some(middle))? < middle + MISSED_TURNS {
                upper = middle;
            } else {
                lower = middle;
            }
        }
        Ok(upper)
    }

    /// Returns the time of a read on track `to` that is sent when a read on track `from` completes.
    /// The read is of the sector due after `due` revolutions, or of any sector if `due` is `None`.
    /// The time is in revolutions.
    fn took(&mut self, from: usize, to: usize, due: Option<f64>) -> Result<f64, ProbeError> {
        for _ in 0..PAIR_ATTEMPTS {
            let lbn = |track: usize, sector: u64| {
                self.map
                    .track(track)
                    .map_or(0, |track| track.first_lbn.0 + sector)
            };
            let size = self.map.track(to).map_or(1, |track| track.sectors.0);
            let start = lbn(
                from,
                self.rng
                    .below(size.min(self.map.track(from).map_or(1, |t| t.sectors.0))),
            );
            let Some(_) = self.clock.pass(start)? else {
                continue;
            };
            let sector = match due {
                Some(due) => {
                    let first = f64::from(self.angles[to - self.tracks.start]) / 65_536.0;
                    let now = self.clock.now() - self.drift.now(self.clock);
                    // Rounded up, because a sector that is due slightly later is not missed either.
                    (fraction(now + due - first) * size as f64).ceil() as u64 % size
                }
                None => self.rng.below(size),
            };
            if let Some(pass) = self.clock.pass(lbn(to, sector))? {
                return Ok(pass.took);
            }
        }
        Err(ProbeError::Inconsistent {
            lbn: self
                .map
                .track(to)
                .map_or(self.map.first(), |track| track.first_lbn),
            problem: "the sectors of its track cannot be read".to_owned(),
        })
    }
}

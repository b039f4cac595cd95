//! A drive's platter as a clock, which measures the angle of a sector, and whether a read continues
//! without a break.
//!
//! The completion time of a one-sector read gives the angle at which the sector ends, modulo a
//! revolution and except for a constant (Worthington et al., "On-Line Extraction of SCSI Disk Drive
//! Parameters", 1995; Wong 2019 finds boundaries this way). Angles here are fractions of a
//! revolution. Only angles measured shortly after one another are compared. An error of the period
//! and a wandering spindle therefore do not matter.

use std::collections::VecDeque;

use super::extraction::ProbeError;
use super::method::{QualifiedMethod, TimingMethod, qualify};
use super::target::{Target, TargetError};
use traxtent_units::request::Timing;
use traxtent_units::stats::upper_median;
use traxtent_units::turns::{fraction, wrap};
use traxtent_units::{Lbn, SimTime, Span};

/// The largest number of readings of one sector until enough of them agree.
const READINGS_MAX: usize = 20;

/// The number of recent readings that are stored: about as many as finding one track takes.
const RECENT_MAX: usize = 16;

/// The standard deviation of angles, in revolutions, above which the clock counts as noisy: about a
/// tenth of a sector on a track of 4,000 sectors. A host with more jitter than that cannot
/// distinguish single sectors by one reading, and is also delayed now and then.
const NOISY_TURNS: f64 = 0.000_03;

/// The time after which a disturbance of a noisy clock has ended, in milliseconds. It exceeds the
/// time for which Linux keeps a runnable thread waiting by default: 50 ms for real-time threads
/// (`sched_rt_runtime_us`), and less than 100 ms for others in a control group with a quota
/// (`cpu.max`).
const DISTURBANCE_MS: f64 = 250.0;

/// The number of distance classes for the time that the arm needs between two reads.
const REACHES: usize = 48;

/// The number of classes of neighbouring tracks. They are classified by their skew, because the
/// skew is chosen for the movement between them.
const NEIGHBOURS: usize = 12;

/// The number of readings of one sector that determine period and jitter.
const CALIBRATION_READS: usize = 400;
/// The same if each reading requires reads elsewhere first. Fewer have to suffice then.
const CALIBRATION_READS_INTERLEAVED: usize = 40;

/// The longest time of an undisturbed read nearby, in revolutions: one revolution and the movement
/// of the arm.
const UNDISTURBED_TURNS_MAX: f64 = 1.4;
/// The same after reads elsewhere, when the arm may come from anywhere.
const UNDISTURBED_TURNS_MAX_INTERLEAVED: f64 = 8.0;

/// The tolerance between two readings of one angle, in standard deviations. A larger one would
/// conflate different angles; a smaller one would require more readings.
const SAME_ANGLE_SIGMAS: f64 = 6.0;
/// The lower limit of that tolerance, in revolutions.
const SAME_ANGLE_TURNS: f64 = 0.0012;

/// The number of readings that must agree on a noisy clock. The standard deviation of their mean is
/// a third of that of a single reading.
const AGREEING_NOISY: usize = 9;
/// The same on a steady clock, where agreement is required only if no reading was in time.
const AGREEING_STEADY: usize = 2;

/// The largest number of attempts to time a read without a disturbance.
const EXCESS_ATTEMPTS: u32 = 4;
/// The minimum time from sending such a read to the end of its first sector, in revolutions.
const EXCESS_LEAD_TURNS: f64 = 0.25;
/// The increase of that time with each attempt, in revolutions.
const EXCESS_LEAD_STEP_TURNS: f64 = 0.15;
/// The excess, in revolutions, below which a read was undisturbed. If two reads differ by less,
/// their excess is not caused by a disturbance.
const EXCESS_SETTLED_TURNS: f64 = 0.02;

/// The number of attempts to read one sector directly after another.
const FOLLOW_ATTEMPTS: u32 = 3;
/// The time, in revolutions, below which such a read has caught its sector: less than the whole
/// revolution after which the sector comes round again.
const FOLLOWS_TURNS_MAX: f64 = 0.95;

/// The initial assumption for the time from sending a read to the end of its sector, in
/// revolutions. It is deliberately too short: a missed sector corrects it quickly, whereas a time
/// that is too long is corrected only slowly.
const LEAD_FIRST_TURNS: f64 = 0.02;
/// The ratio of that time after a missed sector to the time tried: slightly more than 1.
const LEAD_MISSED: f64 = 1.02;
/// The largest factor by which one missed sector lengthens that time, because the cause may be
/// another disturbance.
const LEAD_GROWTH_MAX: f64 = 1.3;
/// The upper limit of that time after a missed sector, in revolutions.
const LEAD_TURNS_MAX: f64 = 1.0;
/// The factor by which each sector that is not missed shortens that time: a compromise between
/// reads that wait too long and sectors that are missed.
const LEAD_DECAY: f64 = 0.9985;
/// The lower limit of that time, in revolutions.
const LEAD_TURNS_MIN: f64 = 0.002;

/// The delay after the due time above which a read has missed its sector, in revolutions: half of
/// the revolution that a miss costs.
pub(super) const MISSED_TURNS: f64 = 0.5;

/// The excess above which a boundary has interrupted a read, in revolutions: half of the revolution
/// that an interruption costs.
pub(super) const INTERRUPTED_TURNS: f64 = 0.5;

/// The distance that the arm must move, estimated from the order of tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct ArmDistance(usize);

impl ArmDistance {
    /// To a sector on the same track.
    pub(super) const SAME: ArmDistance = ArmDistance(0);

    /// To the next or the previous track, classified by the skew between them.
    pub(super) fn neighbour(skew: f64) -> ArmDistance {
        ArmDistance(1 + (fraction(skew) * NEIGHBOURS as f64) as usize % NEIGHBOURS)
    }

    /// Over `count` tracks.
    pub(super) fn tracks(count: usize) -> ArmDistance {
        let log = (usize::BITS - count.leading_zeros()) as usize;
        ArmDistance((NEIGHBOURS + log).min(REACHES - 1))
    }
}

/// A drive used as a clock.
pub(super) struct Clock<'a> {
    pub(super) target: &'a mut dyn Target,
    method: QualifiedMethod,
    /// The number of distant reads before each timed one, if no other reads come in between.
    between: u32,
    /// The period of revolution in picoseconds.
    pub(super) period: f64,
    /// The standard deviation of an angle, in revolutions.
    pub(super) sigma: f64,
    /// The time from sending a read to the end of its sector, in revolutions, by distance class.
    lead: [f64; REACHES],
    /// The recent readings of a steady clock: LBN and angle.
    recent: VecDeque<(u64, f64)>,
    /// LBNs that could not be read.
    pub(super) unreadable: Vec<Lbn>,
}

/// One reading of a sector.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorPass {
    /// The angle of the platter at completion.
    pub(super) angle: f64,
    /// The time from sending to completion, in revolutions.
    pub(super) took: f64,
}

impl<'a> Clock<'a> {
    /// Creates a calibrated clock: finds a timing method and measures the period.
    ///
    /// # Errors
    /// Returns an error if no timing method works, or if the drive fails.
    pub(super) fn start(target: &'a mut dyn Target) -> Result<Clock<'a>, ProbeError> {
        let method = qualify(target)?;
        let mut clock = Clock {
            target,
            period: method.revolution.0 as f64,
            between: method.between,
            method,
            sigma: 0.0,
            lead: [LEAD_FIRST_TURNS; REACHES],
            recent: VecDeque::new(),
            unreadable: Vec::new(),
        };
        clock.calibrate()?;
        Ok(clock)
    }

    /// Measures period and jitter by reading one sector repeatedly.
    fn calibrate(&mut self) -> Result<(), ProbeError> {
        let readings = if self.is_interleaved() {
            CALIBRATION_READS_INTERLEAVED
        } else {
            CALIBRATION_READS
        };
        let capacity = self.target.identity().capacity.0;
        let mut times: Vec<f64> = Vec::new();
        // Usually, a readable sector is found after a few attempts.
        for lbn in capacity / 3..capacity {
            times.clear();
            while times.len() < readings {
                let Some(timing) = self.read(lbn, 1)? else {
                    break;
                };
                times.push(timing.completed.0 as f64);
            }
            if times.len() == readings {
                break;
            }
        }
        self.unreadable.clear();
        let half = times.len() / 2;
        // Each reading is compared with the one `half` readings later. The two are a whole number
        // of revolutions apart (Theil-Sen estimator).
        let slopes = (0..half).map(|i| {
            let apart = times[i + half] - times[i];
            apart / (apart / self.period).round().max(1.0)
        });
        self.period = upper_median(slopes).unwrap_or(self.period);
        let steps = times
            .windows(2)
            .map(|pair| wrap((pair[1] - pair[0]) / self.period).abs());
        // Converts the median of the differences to the standard deviation of one reading.
        let spread = upper_median(steps).unwrap_or(0.0);
        self.sigma = spread / 0.6745 / std::f64::consts::SQRT_2;
        Ok(())
    }

    /// Prepares for reads at another place or time. The recent readings do not apply there.
    pub(super) fn begin(&mut self) {
        self.recent.clear();
        self.unreadable.clear();
        self.method.between = self.between;
    }

    /// Waits until a disturbance of the readings so far has ended. Later readings are new ones.
    pub(super) fn wait_out_disturbance(&mut self) {
        self.recent.clear();
        let until = self.target.now() + Span::from_ms(DISTURBANCE_MS);
        self.target.wait_until(until);
    }

    /// Returns whether distant reads come before each timed one. If so, no read can directly follow
    /// another.
    pub(super) fn is_interleaved(&self) -> bool {
        self.method.between > 0
    }

    /// The longest time of an undisturbed read nearby, in revolutions.
    pub(super) fn undisturbed_turns_max(&self) -> f64 {
        if self.is_interleaved() {
            UNDISTURBED_TURNS_MAX_INTERLEAVED
        } else {
            UNDISTURBED_TURNS_MAX
        }
    }

    /// The number of LBNs of the drive.
    pub(super) fn capacity(&self) -> u64 {
        self.target.identity().capacity.0
    }

    /// The number of logical sectors per physical sector, as the drive reports it.
    pub(super) fn physical_ratio(&self) -> u64 {
        let identity = self.target.identity();
        u64::from(identity.physical_bytes / identity.logical_bytes.max(1)).max(1)
    }

    /// The method by which the drive is timed.
    pub(super) fn method(&self) -> TimingMethod {
        self.method.method
    }

    /// The angle of the platter now.
    pub(super) fn now(&self) -> f64 {
        self.turns(self.target.now())
    }

    /// The angle of the platter at an instant.
    pub(super) fn turns(&self, at: SimTime) -> f64 {
        // Whole revolutions are subtracted first. Their product with the period is exact enough,
        // and the remainder is small.
        let whole = (at.0 as f64 / self.period).floor();
        fraction((at.0 as f64 - whole * self.period) / self.period)
    }

    /// Sends a timed read, after any reads that flush the cache. Returns `None` if the sectors
    /// cannot be read.
    fn read(&mut self, lbn: u64, sectors: u32) -> Result<Option<Timing>, ProbeError> {
        self.method.flush(self.target)?;
        self.read_now(lbn, sectors)
    }

    fn read_now(&mut self, lbn: u64, sectors: u32) -> Result<Option<Timing>, ProbeError> {
        match self
            .target
            .request(self.method.method.request(Lbn(lbn), sectors))
        {
            Ok(timing) => Ok(Some(timing)),
            Err(TargetError::Unreadable { lbn, sectors }) => {
                if sectors == 1 && !self.unreadable.contains(&lbn) {
                    self.unreadable.push(lbn);
                }
                Ok(None)
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Measures the angle of a sector by one reading. Returns `None` if the sector cannot be read.
    pub(super) fn pass(&mut self, lbn: u64) -> Result<Option<SectorPass>, ProbeError> {
        let timing = self.read(lbn, 1)?;
        Ok(timing.map(|timing| SectorPass {
            angle: self.turns(timing.completed),
            took: timing.response().0 as f64 / self.period,
        }))
    }

    /// The largest difference between two readings that count as the same angle, in revolutions.
    pub(super) fn tolerance(&self) -> f64 {
        (SAME_ANGLE_SIGMAS * self.sigma).max(SAME_ANGLE_TURNS)
    }

    /// Returns whether the clock is noisy: one reading is not enough to determine an angle.
    pub(super) fn is_noisy(&self) -> bool {
        self.sigma > NOISY_TURNS
    }

    /// Measures the angle of a sector with as many readings as needed. Returns `None` if the sector
    /// cannot be read.
    ///
    /// On a steady clock, a recent reading is reused, and one reading that is in time is enough. If
    /// none is in time, two must agree. On a noisy clock, nine readings must agree, and the result
    /// is their mean.
    pub(super) fn angle(&mut self, lbn: u64) -> Result<Option<f64>, ProbeError> {
        let enough = if self.is_noisy() {
            AGREEING_NOISY
        } else {
            AGREEING_STEADY
        };
        if let Some((_, angle)) = self.recent.iter().find(|(read, _)| *read == lbn) {
            return Ok(Some(*angle));
        }
        let mut seen: Vec<f64> = Vec::new();
        while seen.len() < READINGS_MAX {
            let Some(SectorPass { angle, took }) = self.pass(lbn)? else {
                return Ok(None);
            };
            if !self.is_noisy() && took <= self.undisturbed_turns_max() {
                self.recent.push_back((lbn, angle));
                if self.recent.len() > RECENT_MAX {
                    self.recent.pop_front();
                }
                return Ok(Some(angle));
            }
            seen.push(angle);
            let near: Vec<f64> = seen
                .iter()
                .map(|other| wrap(other - angle))
                .filter(|off| off.abs() <= self.tolerance())
                .collect();
            if near.len() >= enough {
                return Ok(Some(angle + near.iter().sum::<f64>() / near.len() as f64));
            }
        }
        Err(ProbeError::Inconsistent {
            lbn: Lbn(lbn),
            problem: format!("{READINGS_MAX} reads of one sector gave inconsistent angles"),
        })
    }

    /// Returns how much longer a read of several sectors takes than the sectors take to pass, in
    /// revolutions. It is about 0 if they follow each other on one track. It is the skew, or an
    /// additional revolution, if a boundary lies between them. Returns `None` if they cannot be
    /// read.
    ///
    /// `angle` is the angle of the first sector, and `pitch` is the angular length of one sector.
    pub(super) fn excess(
        &mut self,
        lbn: u64,
        sectors: u32,
        angle: f64,
        pitch: f64,
    ) -> Result<Option<f64>, ProbeError> {
        let mut least = f64::INFINITY;
        // Every disturbance makes the read longer, so the shortest of several counts.
        for attempt in 0..EXCESS_ATTEMPTS {
            let lead =
                EXCESS_LEAD_TURNS.max(self.lead[0]) + EXCESS_LEAD_STEP_TURNS * f64::from(attempt);
            let Some(excess) = self.overrun(lead, lbn, sectors, angle, pitch)? else {
                return Ok(None);
            };
            let settled = (excess - least).abs() < EXCESS_SETTLED_TURNS;
            least = least.min(excess);
            if least < EXCESS_SETTLED_TURNS || settled {
                break;
            }
        }
        Ok(Some(least))
    }

    /// Returns the excess of a single read, sent `lead` revolutions before its first sector ends.
    pub(super) fn overrun(
        &mut self,
        lead: f64,
        lbn: u64,
        sectors: u32,
        angle: f64,
        pitch: f64,
    ) -> Result<Option<f64>, ProbeError> {
        self.method.flush(self.target)?;
        if self.is_interleaved() {
            self.approach(lbn, sectors, pitch)?;
        }
        let wait = fraction(angle - lead - self.now());
        let at = self.target.now() + Span((wait * self.period) as u64);
        self.target.wait_until(at);
        let Some(timing) = self.read_now(lbn, sectors)? else {
            return Ok(None);
        };
        let took = timing.completed.saturating_since(at).0 as f64 / self.period;
        Ok(Some(took - lead - f64::from(sectors - 1) * pitch))
    }

    /// Moves the arm near the sectors to be timed, because it may come from anywhere. Reads a
    /// sector after them, because read-ahead from there does not fetch them. Near the drive's end,
    /// reads a sector far enough before them.
    fn approach(&mut self, lbn: u64, sectors: u32, pitch: f64) -> Result<(), ProbeError> {
        // If the pitch is not known yet, this exceeds any track.
        let track = (1.0 / pitch.max(1e-4)) as u64;
        let following = lbn + u64::from(sectors) + 2 * track;
        let near = if following < self.capacity() {
            following
        } else {
            lbn.saturating_sub(16 * track)
        };
        self.read_now(near, 1).map(|_| ())
    }

    /// Accounts for reads in `others` other places between two reads in one place. Flushing the
    /// cache then requires that many fewer reads.
    pub(super) fn count_other_reads(&mut self, others: usize) {
        self.method.between = self.between.saturating_sub(others as u32);
    }

    /// Returns whether a read of `v`, sent directly after a read of `u`, catches the first pass of
    /// `v` after `u`.
    pub(super) fn follows(&mut self, u: u64, v: u64) -> Result<bool, ProbeError> {
        // Every disturbance makes the read later, so one success is enough.
        for _ in 0..FOLLOW_ATTEMPTS {
            if let (Some(_), Some(pass)) = (self.pass(u)?, self.pass(v)?)
                && pass.took < FOLLOWS_TURNS_MAX
            {
                return Ok(true);
            }
        }
        Ok(false)
    }

    /// Returns the earliest time at which a sector at `angle` and at this distance can be read, in
    /// revolutions from now. `now` is the angle of the platter now.
    pub(super) fn due(&self, now: f64, angle: f64, reach: ArmDistance) -> f64 {
        let lead = self.lead[reach.0];
        lead + fraction(angle - now - lead)
    }

    /// The time from sending a read to the end of the first sector at this distance that it can
    /// reach, in revolutions.
    pub(super) fn lead(&self, ArmDistance(class): ArmDistance) -> f64 {
        self.lead[class]
    }

    /// Corrects the lead by a read that was due after `due` revolutions and took `took`.
    pub(super) fn learn(&mut self, ArmDistance(class): ArmDistance, due: f64, took: f64) {
        let lead = &mut self.lead[class];
        if took > due + MISSED_TURNS {
            *lead = (LEAD_MISSED * due)
                .min(LEAD_GROWTH_MAX * *lead)
                .min(LEAD_TURNS_MAX);
        } else {
            *lead = (*lead * LEAD_DECAY).max(LEAD_TURNS_MIN);
        }
    }
}

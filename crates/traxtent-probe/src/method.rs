//! The ways to time the media, best first, and the tests that qualify them on a drive.
//!
//! Timed sectors must come from the media, never from a cache. A method must therefore pass these
//! tests on the drive itself before it is used:
//!
//! 1. Reading the same LBN again takes at least one revolution of the fastest disk (20,000 RPM).
//! 2. However long the host waits in between, the same LBN completes a whole number of revolutions
//!    later; without a wait, one revolution later.
//! 3. The next LBN, requested after it has passed the head, does not arrive before it passes the
//!    head again.
//! 4. LBNs far apart complete at different phases of the revolution. A device that completes
//!    requests at timer ticks would pass the other tests.
//!
//! With distant reads in between, the head reaches an LBN at a random angle. Then test 1 requires
//! only half a revolution, test 2 is run only with waits, and test 3 is measured but cannot fail.
//! Before these tests, LBNs that have not been read before must take at least half a revolution of
//! the fastest disk.
//!
//! The bound of 20,000 RPM is H. Wong's (hdubench, 2019). The random waits and the fourth test are
//! additions. Not covered: switching off the look-ahead of an ATA disk, which requires ATA
//! commands.

use super::extraction::ProbeError;
use super::spindle::{REVOLUTION_MS, Spindle, distance_from_revolution};
use super::target::{Target, TargetError};
use traxtent_units::Rng;
use traxtent_units::request::Timing;
use traxtent_units::request::{Op, Request};
use traxtent_units::stats::upper_median;
use traxtent_units::{Lbn, SimTime, Span};

/// A way to time sectors as they pass under the head.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum TimingMethod {
    /// VERIFY: reads the media and returns no data.
    Verify,
    /// Reads with force unit access, and with caching switched off if the drive allows it.
    ReadFua,
    /// Reads, with caching and read-ahead switched off if the drive allows it.
    Read,
    /// Reads, each preceded by reads of distant LBNs that flush its sectors from any cache.
    ReadInterleaved,
}

impl TimingMethod {
    /// All methods, the best first.
    pub const ALL: [TimingMethod; 4] = [
        TimingMethod::Verify,
        TimingMethod::ReadFua,
        TimingMethod::Read,
        TimingMethod::ReadInterleaved,
    ];

    /// The name in reports.
    pub fn name(self) -> &'static str {
        match self {
            TimingMethod::Verify => "verify",
            TimingMethod::ReadFua => "read-fua",
            TimingMethod::Read => "read",
            TimingMethod::ReadInterleaved => "read-interleaved",
        }
    }

    /// Returns the request that is timed. [`TimingMethod::ReadInterleaved`] requires other requests
    /// before it: see [`QualifiedMethod::timed`].
    pub fn request(self, lbn: Lbn, sectors: u32) -> Request {
        let read = Request::read(lbn, sectors);
        match self {
            TimingMethod::Verify => Request {
                op: Op::Verify,
                ..read
            },
            TimingMethod::ReadFua => Request { fua: true, ..read },
            TimingMethod::Read | TimingMethod::ReadInterleaved => read,
        }
    }

    /// The numbers of distant reads before each timed one, in the order in which they are tried.
    fn distant_reads(self) -> &'static [u32] {
        match self {
            TimingMethod::ReadInterleaved => &[2, 8, 32, 128, 512],
            TimingMethod::Verify | TimingMethod::ReadFua | TimingMethod::Read => &[0],
        }
    }
}

/// A method that has passed its tests on a drive.
#[derive(Clone, Debug)]
pub struct QualifiedMethod {
    /// The method.
    pub method: TimingMethod,
    /// The time of one revolution, accurate to one part in ten thousand.
    pub revolution: Span,
    /// The number of distant reads before each timed request; 0 for all methods except
    /// [`TimingMethod::ReadInterleaved`].
    pub between: u32,
    /// The measurements of the tests.
    pub evidence: MethodEvidence,
    /// The better methods, and why each of them failed.
    pub rejected: Vec<RejectedMethod>,
    rng: Rng,
}

/// The measurements of the tests of a method.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct MethodEvidence {
    /// The median time until the same LBN can be read again, in revolutions. `None` if other reads
    /// must come in between.
    pub same_again: Option<f64>,
    /// The share of completions that came a whole number of revolutions after the previous one.
    pub on_time: f64,
    /// The number of times that the next LBN arrived early although it had just passed the head.
    pub early: u32,
    /// The number of trials for `early`.
    pub neighbours: u32,
    /// The number of distant LBNs that completed at a phase other than the most frequent one.
    pub own_phase: u32,
    /// The number of trials for `own_phase`.
    pub phases: u32,
}

/// A method that failed its tests.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RejectedMethod {
    /// The method.
    pub method: TimingMethod,
    /// The reason, with measurements.
    pub why: String,
}

impl QualifiedMethod {
    /// Revolutions per minute.
    pub fn rpm(&self) -> f64 {
        60_000.0 / self.revolution.as_ms()
    }

    /// Times sectors on the media, after reads of distant LBNs if the method requires them.
    ///
    /// # Errors
    /// Returns the target's error.
    pub fn timed(
        &mut self,
        target: &mut dyn Target,
        lbn: Lbn,
        sectors: u32,
    ) -> Result<Timing, TargetError> {
        self.flush(target)?;
        target.request(self.method.request(lbn, sectors))
    }

    /// Reads distant LBNs if the method requires them before each timed request.
    pub(super) fn flush(&mut self, target: &mut dyn Target) -> Result<(), TargetError> {
        flush(target, &mut self.rng, self.between)
    }
}

/// Finds the best method that the drive allows.
///
/// Unless that is [`TimingMethod::Verify`], caching stays switched off if the drive obeys;
/// [`Target::switch_caching`] switches it on again.
///
/// # Errors
/// Returns [`ProbeError::NotRotating`] with the reason for each method if all of them fail, or
/// [`TargetError::Gone`] if the drive is gone.
pub fn qualify(target: &mut dyn Target) -> Result<QualifiedMethod, ProbeError> {
    let mut rejected = Vec::new();
    for method in TimingMethod::ALL {
        let uncached = matches!(method, TimingMethod::ReadFua | TimingMethod::Read);
        let refusal = match uncached.then(|| target.switch_caching(false)) {
            Some(Err(gone @ TargetError::Gone(_))) => return Err(gone.into()),
            Some(Err(error)) => format!(" (caching stays on: {error})"),
            _ => String::new(),
        };
        match attempt(target, method) {
            Ok(mut qualified) => {
                qualified.rejected = rejected;
                return Ok(qualified);
            }
            Err(Failure::Target(gone @ TargetError::Gone(_))) => return Err(gone.into()),
            Err(Failure::Target(error)) => rejected.push(RejectedMethod {
                method,
                why: error.to_string(),
            }),
            Err(Failure::Test(why) | Failure::NotRotating(why)) => rejected.push(RejectedMethod {
                method,
                why: why + &refusal,
            }),
        }
    }
    // No method needs caching switched off any more. The loop has already handled a drive that
    // cannot switch it.
    let _ = target.switch_caching(true);
    let reasons = rejected
        .iter()
        .map(|r| format!("{}: {}", r.method.name(), r.why));
    Err(ProbeError::NotRotating(
        reasons.collect::<Vec<_>>().join("; "),
    ))
}

/// The smallest drive that is tested, in sectors: enough for places far apart.
const SECTORS_MIN: u64 = 1024;
/// The number of random LBNs that are tried until one can be read together with its neighbour.
const READABLE_TRIALS: usize = 16;
/// The largest accepted difference between one revolution and the time to read the same LBN again,
/// in revolutions.
const AGAIN_TURNS_OFF: f64 = 0.02;
/// The longest random wait, in milliseconds: more than the slowest revolution that is recognized.
/// With distant reads in between, it grows with their number.
const WAIT_MS_MAX: f64 = 40.0;
/// The number of distant reads in between that double the longest wait.
const WAIT_READS: f64 = 16.0;
/// The time, in revolutions, within which an LBN that has just passed the head cannot return to it.
/// The host waits one to two times as long for the LBN to pass the head.
const EARLY_TURNS: f64 = 0.25;
/// One in this many trials may be early, because the host may have received the previous completion
/// late.
const EARLY_ONE_IN: u32 = 10;
/// The distance from a whole number of revolutions below which two completions count as having the
/// same phase, in revolutions.
const SAME_PHASE_TURNS: f64 = 0.05;

/// If fewer than one in this many responses are as fast as a cache, the target is not a disk with a
/// cache. A few fast responses may come from a disk whose sector happened to pass at once.
const CACHED_ONE_IN: usize = 10;

/// The reason why a method fails.
enum Failure {
    Target(TargetError),
    Test(String),
    /// The cause is not a cache, so reads elsewhere in between would not help.
    NotRotating(String),
}

impl From<TargetError> for Failure {
    fn from(error: TargetError) -> Failure {
        Failure::Target(error)
    }
}

fn attempt(target: &mut dyn Target, method: TimingMethod) -> Result<QualifiedMethod, Failure> {
    if method == TimingMethod::ReadInterleaved {
        check_unread_lbns(target)?;
    }
    let mut failure = None;
    for &between in method.distant_reads() {
        let mut test = Test {
            base: Lbn(0),
            method,
            between,
            rng: Rng::new(SEED),
            target: &mut *target,
        };
        match test.run() {
            Err(Failure::Test(why)) => {
                let others = match between {
                    0 => String::new(),
                    n => format!(" (with {n} distant reads before each timed one)"),
                };
                failure = Some(Failure::Test(why + &others));
            }
            other => return other,
        }
    }
    Err(failure.expect("each method is tried at least once"))
}

/// The response time, in milliseconds, above which data cannot come from a drive's cache.
const CACHED_MS: f64 = 1.0;

/// An arbitrary constant that makes probes reproducible.
const SEED: u64 = 0x7472_6163_6b73;

/// Returns an error if LBNs that have not been read before take less time than a disk's arm and
/// spindle need.
fn check_unread_lbns(target: &mut dyn Target) -> Result<(), Failure> {
    const READS: usize = 31;
    let mut rng = Rng::new(!SEED);
    let mut responses = Vec::with_capacity(READS);
    for _ in 0..READS {
        let lbn = anywhere(target, &mut rng);
        match target.request(Request::read(lbn, 1)) {
            Ok(timing) => responses.push(timing.response().as_ms()),
            Err(TargetError::Unreadable { .. }) => {}
            Err(error) => return Err(error.into()),
        }
    }
    let typical = typical_ms(responses);
    if typical < REVOLUTION_MS.0 / 2.0 {
        return Err(Failure::NotRotating(format!(
            "distant sectors that have not been read before arrive in {typical:.3} ms, \
             faster than half a revolution at 20,000 RPM"
        )));
    }
    Ok(())
}

fn anywhere(target: &dyn Target, rng: &mut Rng) -> Lbn {
    Lbn(rng.below(target.identity().capacity.0.max(1)))
}

/// Reads random LBNs to flush the cache. Reads of unreadable LBNs count too.
fn flush(target: &mut dyn Target, rng: &mut Rng, reads: u32) -> Result<(), TargetError> {
    for _ in 0..reads {
        let lbn = anywhere(target, rng);
        match target.request(Request::read(lbn, 1)) {
            Ok(_) | Err(TargetError::Unreadable { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    Ok(())
}

/// The tests of one method.
struct Test<'a> {
    target: &'a mut dyn Target,
    method: TimingMethod,
    between: u32,
    rng: Rng,
    /// The LBN that is timed repeatedly.
    base: Lbn,
}

impl Test<'_> {
    fn run(&mut self) -> Result<QualifiedMethod, Failure> {
        if self.target.identity().capacity.0 < SECTORS_MIN {
            return Err(Failure::Test(format!(
                "the drive has fewer than {SECTORS_MIN} sectors"
            )));
        }
        self.base = self.readable()?;
        let again_ms = self.same_again()?;
        let turning = self.turning()?;
        let revolution = turning.revolution_ms;
        let turns = again_ms / revolution;
        if self.between == 0 && (turns - 1.0).abs() > AGAIN_TURNS_OFF {
            return Err(Failure::Test(format!(
                "reading the same sector again takes {turns:.3} revolutions of {revolution:.3} ms; expected 1"
            )));
        }
        let (early, neighbours) = self.neighbours(revolution)?;
        let (own_phase, phases) = self.phases(revolution)?;
        Ok(QualifiedMethod {
            method: self.method,
            revolution: Span::from_ms(revolution),
            between: self.between,
            evidence: MethodEvidence {
                same_again: (self.between == 0).then_some(turns),
                on_time: turning.on_time,
                early,
                neighbours,
                own_phase,
                phases,
            },
            rejected: Vec::new(),
            rng: self.rng.clone(),
        })
    }

    fn timed(&mut self, lbn: Lbn) -> Result<Timing, TargetError> {
        flush(self.target, &mut self.rng, self.between)?;
        self.target.request(self.method.request(lbn, 1))
    }

    /// Returns an LBN that can be read together with its neighbour.
    fn readable(&mut self) -> Result<Lbn, TargetError> {
        let mut last = None;
        for _ in 0..READABLE_TRIALS {
            let lbn = Lbn(self.rng.below(self.target.identity().capacity.0 - 1));
            match self.timed(lbn).and(self.timed(Lbn(lbn.0 + 1))) {
                Ok(_) => return Ok(lbn),
                Err(error @ TargetError::Unreadable { .. }) => last = Some(error),
                Err(error) => return Err(error),
            }
        }
        Err(last.expect("every trial has failed"))
    }

    /// Returns the time to read the same LBN again, in milliseconds. Fails if no disk is that fast.
    fn same_again(&mut self) -> Result<f64, Failure> {
        const REPEATS: usize = 15;
        let mut before = self.timed(self.base)?.completed;
        let (mut gaps, mut responses) = (Vec::new(), Vec::new());
        for _ in 0..REPEATS {
            let timing = self.timed(self.base)?;
            responses.push(timing.response().as_ms());
            gaps.push(timing.completed.saturating_since(before).as_ms());
            before = timing.completed;
        }
        let typical = typical_ms(if self.between == 0 {
            gaps
        } else {
            responses.clone()
        });
        // After reads elsewhere, the head arrives at a random angle, and half a revolution is
        // typical.
        let least = if self.between == 0 { 1.0 } else { 0.5 };
        if typical < least * REVOLUTION_MS.0 {
            return Err(Failure::Test(format!(
                "reading the same sector again takes {:.3} ms, faster than any disk turns \
                 (3 ms at 20,000 RPM)",
                typical_ms(responses)
            )));
        }
        Ok(typical)
    }

    /// Reads one LBN after random waits, and returns the spindle that its completions follow.
    fn turning(&mut self) -> Result<Spindle, Failure> {
        const REPEATS: usize = 41;
        let (mut completions, mut responses) = (Vec::new(), Vec::new());
        while completions.len() < REPEATS {
            let longest = WAIT_MS_MAX * (1.0 + f64::from(self.between) / WAIT_READS);
            let wait = longest * self.rng.fraction();
            self.wait(wait);
            let timing = self.timed(self.base)?;
            responses.push(timing.response().as_ms());
            completions.push(timing.completed.as_ms());
        }
        Spindle::of_completions(&completions).ok_or_else(|| {
            let cached = responses.iter().filter(|ms| **ms < CACHED_MS).count();
            let why = format!(
                "the same sector, read at random times, takes a median of {:.3} ms, but its \
                 completions are not multiples of any revolution from 3 to 30 ms apart",
                typical_ms(responses)
            );
            if CACHED_ONE_IN * cached < REPEATS {
                Failure::NotRotating(why)
            } else {
                Failure::Test(why)
            }
        })
    }

    fn wait(&mut self, ms: f64) {
        let until = self.target.now() + Span::from_ms(ms);
        self.target.wait_until(until);
    }

    /// Returns the number of times that the next LBN arrives early although it has just passed the
    /// head, and the number of trials. Fails if that happens too often, or if too few rereads take
    /// whole revolutions.
    fn neighbours(&mut self, revolution: f64) -> Result<(u32, u32), Failure> {
        const TRIALS: u32 = 24;
        let (mut early, mut trials) = (0, 0);
        let mut before = self.timed(self.base)?.completed;
        for _ in 0..4 * TRIALS {
            let completed = self.timed(self.base)?.completed;
            let steady = whole_revolutions_apart(before, completed, revolution);
            before = completed;
            // If the host received the completion late, it cannot know which LBNs have passed.
            if !steady {
                continue;
            }
            let turns = EARLY_TURNS + EARLY_TURNS * self.rng.fraction();
            self.wait(turns * revolution);
            let next = self.timed(Lbn(self.base.0 + 1))?;
            early += u32::from(next.response().as_ms() < EARLY_TURNS * revolution);
            trials += 1;
            if trials == TRIALS {
                break;
            }
        }
        // After reads elsewhere, the head may arrive just before the sector.
        if self.between == 0 && trials < TRIALS {
            return Err(Failure::Test(format!(
                "only {trials} of {} rereads of a sector took whole revolutions; expected {TRIALS}",
                4 * TRIALS
            )));
        }
        if self.between == 0 && EARLY_ONE_IN * early > trials {
            return Err(Failure::Test(format!(
                "the sector after the one just read arrives early in {early} of {trials} trials"
            )));
        }
        Ok((early, trials))
    }

    /// Returns the number of random LBNs that complete at a phase other than the most frequent one,
    /// and the number of trials. Fails if fewer than half of the LBNs do.
    fn phases(&mut self, revolution: f64) -> Result<(u32, u32), Failure> {
        const PLACES: u32 = 24;
        let mut seen: Vec<SimTime> = Vec::new();
        for _ in 0..PLACES {
            let lbn = anywhere(self.target, &mut self.rng);
            match self.timed(lbn) {
                Ok(timing) => seen.push(timing.completed),
                Err(TargetError::Unreadable { .. }) => {}
                Err(error) => return Err(error.into()),
            }
        }
        let alike = |a: &SimTime| {
            seen.iter()
                .filter(|b| whole_revolutions_apart(*a.min(b), *a.max(b), revolution))
                .count()
        };
        let most = seen.iter().map(alike).max().unwrap_or(0);
        let own = (seen.len() - most) as u32;
        let phases = seen.len() as u32;
        if 2 * own < phases {
            return Err(Failure::NotRotating(format!(
                "{most} of {phases} distant sectors arrive at the same phase of {revolution:.3} \
                 ms: this is a timer, not a rotating disk"
            )));
        }
        Ok((own, phases))
    }
}

/// Returns whether a whole number of revolutions lies between two completions.
fn whole_revolutions_apart(from: SimTime, to: SimTime, revolution_ms: f64) -> bool {
    distance_from_revolution(to.saturating_since(from).as_ms(), revolution_ms).abs()
        < SAME_PHASE_TURNS
}

/// Returns the median of measured times, or 0 if there are none.
fn typical_ms(times_ms: Vec<f64>) -> f64 {
    upper_median(times_ms).unwrap_or(0.0)
}

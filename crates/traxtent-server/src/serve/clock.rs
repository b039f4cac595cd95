//! The real clock: simulated time that advances with CLOCK_MONOTONIC, and waits that end on time.
//!
//! A sleep ends late by the time that the kernel and an idle processor take to wake up. A wait
//! therefore sleeps until shortly before its end, and spins for the rest. The margin is measured
//! when the clock starts, and updated after every such sleep. At least one processor is always free
//! of spinning threads. On a machine with one processor, every wait sleeps to its end.

use std::fmt;
use std::num::NonZeroU64;
use std::str::FromStr;
use std::sync::atomic::{AtomicU64, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use traxtent_units::{SimTime, Span};

/// The speed of simulated time: 2 is twice real time. Exact to a millionth.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Speed(u64);

impl Speed {
    /// Real time.
    pub const REAL: Speed = Speed(MILLION);

    /// Returns the simulated picoseconds in a real duration.
    fn simulated(self, real: Duration) -> u64 {
        let ps = real.as_nanos() * u128::from(self.0) / 1000;
        u64::try_from(ps).unwrap_or(u64::MAX)
    }

    /// Returns the real duration of a simulated span, rounded up to whole nanoseconds.
    pub(super) fn real(self, span: Span) -> Duration {
        let ns = (u128::from(span.0) * 1000).div_ceil(u128::from(self.0));
        Duration::from_nanos(u64::try_from(ns).unwrap_or(u64::MAX))
    }
}

const MILLION: u64 = 1_000_000;

impl FromStr for Speed {
    type Err = &'static str;

    fn from_str(text: &str) -> Result<Speed, &'static str> {
        let speed: Option<f64> = text.parse().ok();
        let speed = speed.filter(|speed| (0.001..=1000.0).contains(speed));
        speed
            .map(|speed| Speed((speed * MILLION as f64).round() as u64))
            .ok_or("expected a number from 0.001 to 1000")
    }
}

impl fmt::Display for Speed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        (self.0 as f64 / MILLION as f64).fmt(f)
    }
}

/// A running clock of simulated time.
#[derive(Debug)]
pub(super) struct Clock {
    zero: Instant,
    speed: Speed,
    /// The time before the end of a wait at which it stops sleeping, in nanoseconds.
    margin_ns: AtomicU64,
    /// The maximum number of threads that may spin at once.
    spinners_max: usize,
    /// The number of threads that spin.
    spinners: AtomicUsize,
}

/// The maximum time that a wait spins. A longer oversleep makes the wait late.
const MARGIN_MAX: Duration = Duration::from_millis(1);
/// The number of sleeps in which the effect of a late sleep on the margin decays to about a third.
/// It is large enough for the margin to cover one late sleep in a hundred.
const SLEEPS_REMEMBERED: u64 = 1000;
/// The number of trial sleeps that measure the oversleep.
const TRIALS: u32 = 20;
/// The duration of a trial sleep: long enough for an idle processor to enter a sleep state, as it
/// does while a disk rotates.
const TRIAL: Duration = Duration::from_millis(2);

impl Clock {
    /// Starts a clock at 0. Measuring the margin first takes about 40 ms.
    pub(super) fn start(speed: Speed) -> Clock {
        let spinners_max = cpus() - 1;
        Clock {
            speed,
            margin_ns: AtomicU64::new(match spinners_max {
                0 => 0,
                _ => as_margin(oversleep()),
            }),
            spinners_max,
            spinners: AtomicUsize::new(0),
            zero: Instant::now(),
        }
    }

    /// Sets the clock back to 0.
    pub(super) fn restart(&mut self) {
        self.zero = Instant::now();
    }

    pub(super) fn now(&self) -> SimTime {
        SimTime(self.speed.simulated(self.zero.elapsed()))
    }

    pub(super) fn speed(&self) -> Speed {
        self.speed
    }

    pub(super) fn margin(&self) -> Duration {
        Duration::from_nanos(self.margin_ns.load(Ordering::Relaxed))
    }

    /// Waits for the time `at`, but may return early, like [`std::thread::park`]; the caller checks
    /// the clock and calls again.
    pub(super) fn wait_towards(&self, at: SimTime) {
        let left = self.left(at);
        let margin = self.margin();
        if left > margin {
            let (asked, begun) = (left - margin, Instant::now());
            sleep(asked);
            self.update_margin(begun.elapsed().saturating_sub(asked));
        } else if self.spinners.fetch_add(1, Ordering::Relaxed) < self.spinners_max {
            while self.now() < at {
                std::hint::spin_loop();
            }
            self.spinners.fetch_sub(1, Ordering::Relaxed);
        } else {
            self.spinners.fetch_sub(1, Ordering::Relaxed);
            sleep(left);
        }
    }

    /// Waits for a real duration, by the same method as a request's wait.
    pub(super) fn wait_for(&self, time: Duration) {
        let until = self.now() + self.simulated(time);
        while self.now() < until {
            self.wait_towards(until);
        }
    }

    /// Returns the simulated span in a real duration.
    pub(super) fn simulated(&self, real: Duration) -> Span {
        Span(self.speed.simulated(real))
    }

    /// Widens the margin to the lateness of a sleep, or lets it decay.
    fn update_margin(&self, late: Duration) {
        if self.spinners_max > 0 {
            let margin = self.margin_ns.load(Ordering::Relaxed);
            let faded = margin - margin / SLEEPS_REMEMBERED;
            // If two threads update the margin at once, one update is lost, which is harmless.
            let next = faded.max(as_margin(late));
            self.margin_ns.store(next, Ordering::Relaxed);
        }
    }

    /// Sleeps until `at` without spinning, but may return early.
    pub(super) fn sleep_towards(&self, at: SimTime) {
        sleep(self.left(at));
    }

    fn left(&self, at: SimTime) -> Duration {
        self.speed.real(at.saturating_since(self.now()))
    }
}

/// Returns the number of processors that this process may use.
pub(super) fn cpus() -> usize {
    std::thread::available_parallelism().map_or(1, usize::from)
}

fn as_margin(late: Duration) -> u64 {
    late.min(MARGIN_MAX).as_nanos() as u64
}

/// Parks the thread for `time`. Unparking ends the sleep early.
fn sleep(time: Duration) {
    thread_local! {
        /// Initialized once per thread, which reduces its timer slack to 1 ns. The kernel may end
        /// sleeps late by that slack, which is usually 50 microseconds.
        static SHARP: () = {
            // If the kernel refuses, waits end later, and the receipt shows the lateness.
            let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        };
    }
    SHARP.with(|()| std::thread::park_timeout(time));
}

/// Returns the maximum oversleep among the trials.
fn oversleep() -> Duration {
    (0..TRIALS)
        .map(|_| {
            let before = Instant::now();
            sleep(TRIAL);
            before.elapsed().saturating_sub(TRIAL)
        })
        .max()
        .unwrap_or_default()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a repeated wait reach its end at several speeds, and does time never run backwards?
    #[test]
    fn repeated_waits_reach_their_end() {
        for speed in ["0.5", "1", "100"] {
            let clock = Clock::start(speed.parse().unwrap());
            let mut last = clock.now();
            for ms in [0.0, 0.05, 0.4, 3.0] {
                let until = last + Span::from_ms(ms);
                while clock.now() < until {
                    clock.wait_towards(until);
                }
                let now = clock.now();
                assert!(now >= until && now >= last);
                last = now;
            }
        }
    }

    /// Does a late sleep widen the margin immediately, up to its bound, and does the margin decay
    /// afterwards?
    #[test]
    fn margins_follow_sleeps() {
        let clock = Clock::start(Speed::REAL);
        if clock.spinners_max == 0 {
            clock.update_margin(MARGIN_MAX);
            assert_eq!(clock.margin(), Duration::ZERO);
            return;
        }
        clock.update_margin(2 * MARGIN_MAX);
        assert_eq!(clock.margin(), MARGIN_MAX);
        let late = Duration::from_micros(10);
        (0..100).for_each(|_| clock.update_margin(late));
        assert!(clock.margin() > MARGIN_MAX / 2);
        (0..10_000).for_each(|_| clock.update_margin(late));
        assert_eq!(clock.margin(), late);
    }

    /// Do real and simulated time convert exactly, is a simulated day at maximum speed within
    /// range, and are invalid speeds refused?
    #[test]
    fn speeds_convert() {
        let tenth: Speed = "0.1".parse().unwrap();
        assert_eq!(tenth.simulated(Duration::from_nanos(70)), 7_000);
        assert_eq!(tenth.real(Span(7_000)), Duration::from_nanos(70));
        assert_eq!(Speed::REAL.real(Span(1)), Duration::from_nanos(1));
        let most: Speed = "1000".parse().unwrap();
        let day = Duration::from_secs(86_400) / 1000;
        assert_eq!(most.simulated(day), 86_400_000_000_000_000);
        for wrong in ["0", "-1", "1001", "nan", "inf", "", "fast"] {
            assert!(wrong.parse::<Speed>().is_err(), "{wrong}");
        }
    }
}

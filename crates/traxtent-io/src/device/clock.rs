//! The clock of real devices: CLOCK_MONOTONIC_RAW, which is neither set nor slewed.

use std::time::Duration;

use rustix::time::{ClockId, Timespec, clock_gettime};
use traxtent_units::SimTime;

/// A clock that shows the time since its creation.
#[derive(Clone, Copy, Debug)]
pub(super) struct Clock {
    zero: Timespec,
}

/// The last part of a wait, which is spent spinning because a sleep can end this late.
const SPIN_PS: u64 = 150_000_000;

impl Clock {
    pub(super) fn start() -> Clock {
        Clock {
            zero: clock_gettime(ClockId::MonotonicRaw),
        }
    }

    pub(super) fn now(&self) -> SimTime {
        let now = clock_gettime(ClockId::MonotonicRaw);
        let seconds = now.tv_sec - self.zero.tv_sec;
        let nanoseconds = seconds * 1_000_000_000 + now.tv_nsec - self.zero.tv_nsec;
        SimTime(nanoseconds as u64 * 1000)
    }

    pub(super) fn wait_until(&self, at: SimTime) {
        loop {
            let left = at.saturating_since(self.now()).0;
            if left == 0 {
                return;
            } else if left > SPIN_PS {
                std::thread::sleep(Duration::from_nanos((left - SPIN_PS) / 1000));
            } else {
                std::hint::spin_loop();
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traxtent_units::Span;

    /// Does a wait never end before its time, and does it end at once if that time has passed?
    #[test]
    fn waits_do_not_end_early() {
        let clock = Clock::start();
        for ms in [0.0, 0.05, 0.4, 3.0] {
            let until = clock.now() + Span::from_ms(ms);
            clock.wait_until(until);
            assert!(clock.now() >= until);
        }
        let past = clock.now();
        clock.wait_until(SimTime::ZERO);
        assert!(clock.now().since(past) < Span::from_ms(50.0));
    }
}

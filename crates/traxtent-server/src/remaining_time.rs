//! The remaining time of long work, estimated from its recent rate. The caller supplies the time.

use std::time::Duration;

/// The shortest time over which a rate is measured.
const MEASURED_MIN: Duration = Duration::from_secs(2);

/// The smallest completed share of the work for which the remaining time is estimated.
const SHARE_MIN: f64 = 0.001;

/// The shortest time between two marks.
const MARK_INTERVAL: Duration = Duration::from_secs(5);

/// An estimator of the remaining time of work.
///
/// The rate is measured from an earlier completion to the present: over the last five to ten
/// seconds or, in long work, over the last quarter to half of the elapsed time. A resumed run
/// counts only its own work.
#[derive(Clone, Debug)]
pub struct RemainingTime {
    first: u64,
    total: u64,
    done: u64,
    /// The time of the first completion. No rate is measured from an earlier time, because that
    /// would include the preparation.
    begun: Option<Duration>,
    /// The times and counts of the last two marks, each at a completion.
    marks: [(Duration, u64); 2],
}

impl RemainingTime {
    /// Creates an estimator for `total` items, `first` of which an earlier run has completed.
    pub fn new(first: u64, total: u64) -> RemainingTime {
        RemainingTime {
            first,
            total,
            done: first,
            begun: None,
            marks: [(Duration::ZERO, first); 2],
        }
    }

    /// Records that `done` items are complete at `now`, a time since a fixed instant.
    pub fn update(&mut self, now: Duration, done: u64) {
        if done <= self.done {
            return;
        }
        self.done = done;
        let Some(begun) = self.begun else {
            self.begun = Some(now);
            self.marks = [(now, done); 2];
            return;
        };
        let interval = MARK_INTERVAL.max(now.saturating_sub(begun) / 4);
        if now.saturating_sub(self.marks[1].0) >= interval {
            self.marks = [self.marks[1], (now, done)];
        }
    }

    /// Returns the rate in items per second; `None` until an item and two seconds have been
    /// measured.
    pub fn rate(&self, now: Duration) -> Option<f64> {
        let (since, before) = self.marks[0];
        let (passed, done) = (now.saturating_sub(since), self.done - before);
        let measured = self.begun.is_some() && passed >= MEASURED_MIN && done > 0;
        measured.then(|| done as f64 / passed.as_secs_f64())
    }

    /// Returns the remaining time; `None` until enough of the work has been measured, and after its
    /// end.
    pub fn left(&self, now: Duration) -> Option<Duration> {
        let left = self.total.saturating_sub(self.done);
        let own = (self.done - self.first) as f64;
        if left == 0 || own < SHARE_MIN * self.total.saturating_sub(self.first) as f64 {
            return None;
        }
        Duration::try_from_secs_f64(left as f64 / self.rate(now)?).ok()
    }
}

/// Returns a remaining time as text, rounded up and never zero.
pub fn time_left(left: Duration) -> String {
    format!("{} left", estimated(left))
}

/// Returns an estimated time as text, rounded up and never zero.
pub fn estimated(time: Duration) -> String {
    let seconds = time.as_secs() + u64::from(time.subsec_nanos() > 0);
    match seconds {
        _ if time < Duration::from_secs(1) => "less than a second".to_owned(),
        0..=119 => format!("{seconds} s"),
        120..=7199 => format!("{} min", seconds.div_ceil(60)),
        _ => {
            let minutes = seconds.div_ceil(60);
            format!("{} h {} min", minutes / 60, minutes % 60)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(seconds: f64) -> Duration {
        Duration::from_secs_f64(seconds)
    }

    /// Asserts that an estimate is within a tenth of the true remaining seconds.
    fn assert_near(left: Option<Duration>, expected: f64) {
        let left = left.expect("an estimate").as_secs_f64();
        assert!((left / expected - 1.0).abs() < 0.1, "{left} {expected}");
    }

    /// Is there no estimate before enough is measured and after the end, and is it right in
    /// between?
    #[test]
    fn steady_work() {
        for (total, every) in [(100, 1.0), (1_000, 0.05), (40, 90.0), (1_000_000, 0.003)] {
            // The preparation takes 20 s.
            let mut remaining = RemainingTime::new(0, total);
            for done in 1..=total {
                let now = at(20.0 + done as f64 * every);
                remaining.update(now, done);
                let measured = (done - 1) as f64 * every;
                if measured < 1.99 || (done as f64) < SHARE_MIN * total as f64 {
                    assert_eq!(remaining.left(now), None, "{done} of {total}");
                } else if done == total {
                    assert_eq!(remaining.left(now), None);
                } else if measured > 2.01 {
                    assert_near(remaining.left(now), (total - done) as f64 * every);
                }
            }
        }
    }

    /// Does the estimate follow work that becomes slower, once the slower part has taken more than
    /// half of the elapsed time?
    #[test]
    fn slowing_work() {
        let mut remaining = RemainingTime::new(0, 2_000);
        for done in 1..=1_000 {
            remaining.update(at(done as f64 * 0.1), done);
        }
        for done in 1_001..=1_200 {
            remaining.update(at(100.0 + (done - 1_000) as f64), done);
        }
        assert_near(remaining.left(at(300.0)), 800.0);
    }

    /// Does the estimate grow while nothing completes, although work remains?
    #[test]
    fn stalled_work() {
        let mut remaining = RemainingTime::new(0, 100);
        for done in 1..=99 {
            remaining.update(at(done as f64), done);
        }
        let left = [100.0, 200.0, 1_000.0].map(|now| remaining.left(at(now)).unwrap());
        assert!(left[0] < left[1] && left[1] < left[2], "{left:?}");
        assert!(left[2] > at(10.0), "{left:?}");
    }

    /// Does a resumed run count only its own work? Its rate is 64 KiB per second in steps of 1 MiB,
    /// and the first step completes immediately.
    #[test]
    fn resumed_work() {
        let mut remaining = RemainingTime::new(900, 1_000);
        remaining.update(at(0.0001), 901);
        assert_eq!(remaining.rate(at(0.0002)), None);
        assert_eq!(remaining.left(at(15.0)), None);
        for done in 902..=910 {
            remaining.update(at(16.0 * (done - 901) as f64), done);
        }
        assert_near(remaining.left(at(16.0 * 9.0)), 16.0 * 90.0);
    }

    /// Are remaining times rounded up in the right unit, and never zero?
    #[test]
    fn text() {
        for (seconds, expected) in [
            (0.0, "less than a second left"),
            (0.4, "less than a second left"),
            (1.2, "2 s left"),
            (119.0, "119 s left"),
            (121.0, "3 min left"),
            (7_200.0, "2 h 0 min left"),
            (9_000.5, "2 h 31 min left"),
        ] {
            assert_eq!(time_left(at(seconds)), expected);
        }
    }
}

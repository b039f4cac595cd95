//! An estimate of a search's requests and time, from its first tracks. Time is an argument.
//!
//! The estimate assumes that all tracks take equally long. It is too high if the algorithm learns
//! from the first tracks.

use std::time::Duration;

/// The minimum time between the first track and the estimate. Algorithms that predict tracks need
/// few requests for most tracks and many for the others, so a few tracks would not be
/// representative.
const MEASURED_MIN: Duration = Duration::from_secs(3);

/// The shortest remaining time for which an estimate is returned.
const REMAINING_MIN: Duration = Duration::from_secs(10);

/// The first tracks of a search.
pub(super) struct FirstTracks {
    /// The number of LBNs of the search.
    lbns: u64,
    /// The time, the number of requests and the number of LBNs when the first track was known.
    first: Option<(Duration, u64, u64)>,
    /// The number of LBNs on the tracks found so far.
    found: u64,
    is_reported: bool,
}

/// The number of requests and the time that the rest of a search will take.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct SearchEstimate {
    pub(super) requests: u64,
    pub(super) time: Duration,
}

impl FirstTracks {
    pub(super) fn new(lbns: u64) -> FirstTracks {
        FirstTracks {
            lbns,
            first: None,
            found: 0,
            is_reported: false,
        }
    }

    /// Counts a track. `now` is the time since the start, and `requests` the number so far. Returns
    /// the estimate once, if the remaining time is at least [`REMAINING_MIN`].
    pub(super) fn add(
        &mut self,
        sectors: u32,
        now: Duration,
        requests: u64,
    ) -> Option<SearchEstimate> {
        self.found += u64::from(sectors);
        let Some((since, before, found)) = self.first else {
            self.first = Some((now, requests, self.found));
            return None;
        };
        let measured = now.saturating_sub(since);
        if self.is_reported || measured < MEASURED_MIN {
            return None;
        }
        self.is_reported = true;
        let scale = self.lbns.saturating_sub(self.found) as f64 / (self.found - found) as f64;
        let time = measured.as_secs_f64() * scale;
        let time = Duration::try_from_secs_f64(time).ok()?;
        (time >= REMAINING_MIN).then(|| SearchEstimate {
            requests: ((requests - before) as f64 * scale) as u64,
            time,
        })
    }
}

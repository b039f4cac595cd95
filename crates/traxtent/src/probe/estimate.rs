//! An estimate of a search's requests and time, from its first tracks. Time is an argument.

use std::time::Duration;

/// The number of tracks after the first that are measured.
const TRACKS: u64 = 4;

/// The time that is measured.
const MEASURED_MIN: Duration = Duration::from_secs(2);

/// The shortest remaining time that is worth an estimate.
const WORTHWHILE: Duration = Duration::from_secs(10);

/// The first tracks of a search.
pub(super) struct FirstTracks {
    /// The number of LBNs of the search.
    lbns: u64,
    /// The time, the requests and the LBNs when the first track was known.
    first: Option<(Duration, u64, u64)>,
    tracks: u64,
    found: u64,
    is_told: bool,
}

/// What the rest of a search takes.
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
            tracks: 0,
            found: 0,
            is_told: false,
        }
    }

    /// Counts a track that is known at a time since the start, after a number of requests. Returns
    /// the estimate once, if the search is long.
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
        self.tracks += 1;
        if self.is_told || self.tracks < TRACKS || now < MEASURED_MIN {
            return None;
        }
        self.is_told = true;
        let scale = self.lbns.saturating_sub(self.found) as f64 / (self.found - found) as f64;
        let time = now.saturating_sub(since).as_secs_f64() * scale;
        let time = Duration::try_from_secs_f64(time).ok()?;
        (time >= WORTHWHILE).then(|| SearchEstimate {
            requests: ((requests - before) as f64 * scale) as u64,
            time,
        })
    }
}

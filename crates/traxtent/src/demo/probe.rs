//! The demo's first step: finding the drive's tracks by probing, and comparing them with the true
//! ones.

use std::ops::ControlFlow;

use serde_json::{Value, json};
use traxtent_map::{MapBuilder, TrackMap, differences};
use traxtent_probe::{
    Algorithm, Found, ObservedTarget, Region, RequestCounts, Target, Verify, extract,
};
use traxtent_sim::TestDrive;
use traxtent_units::{Count, Span};

use crate::failure::{Failure, Result};

/// The result of probing the demo's drive.
pub(super) struct BlindProbe {
    /// The algorithm of the probe.
    algorithm: Algorithm,
    /// The tracks found.
    pub(super) tracks: TrackMap,
    /// The number of tracks that only the probe or only the drive has.
    differences: usize,
    counts: RequestCounts,
    drive_time: Span,
}

impl BlindProbe {
    /// Probes a drive. The probe sees only requests and responses; the layout is used only for the
    /// comparison.
    pub(super) fn of(drive: &TestDrive, algorithm: Algorithm) -> Result<BlindProbe> {
        let target = drive.target();
        let target = if algorithm.translates() {
            target
        } else {
            target.without_translation()
        };
        let mut target = ObservedTarget::new(target, RequestCounts::default());
        let whole = Region::whole(target.identity().capacity);
        let mut found = MapBuilder::default();
        let mut keep = |track: Found| match found.push(track) {
            Ok(()) => ControlFlow::Continue(()),
            Err(_) => ControlFlow::Break(()),
        };
        extract(algorithm, &mut target, whole, Verify::Full, &mut keep)
            .map_err(|error| Failure::input(format!("demo: {}: {error}", algorithm.name())))?;
        let (tracks, _) = found
            .finish()
            .ok_or_else(|| Failure::input("demo: the probe found no tracks"))?;
        Ok(BlindProbe {
            algorithm,
            differences: differences(&tracks, &TrackMap::from_sizes(drive.geometry.track_sizes()))
                .count(),
            tracks,
            counts: target.observer,
            drive_time: Span(target.now().0),
        })
    }

    /// Returns a one-line summary.
    pub(super) fn summary_line(&self) -> String {
        let (how, count, what) = if self.algorithm.translates() {
            (
                "by translating addresses",
                self.counts.translations,
                "translations",
            )
        } else {
            ("by timing reads alone", self.counts.requests, "reads")
        };
        let tracks = self.tracks.len();
        let verdict = match self.differences {
            0 => "every boundary exact".to_owned(),
            found => format!("{} from the drive's own tracks", Count(found, "difference")),
        };
        format!(
            "{how} ({}): {tracks} tracks, {:.2} {what} per track, {:.0} s of the drive's time; {verdict}",
            self.algorithm.name(),
            count as f64 / tracks as f64,
            self.drive_time.as_ms() / 1000.0,
        )
    }

    pub(super) fn json(&self) -> Value {
        json!({
            "algorithm": self.algorithm.name(),
            "tracks": self.tracks.len(),
            "reads": self.counts.requests,
            "translations": self.counts.translations,
            "drive_time_s": self.drive_time.as_ms() / 1000.0,
            "wrong": self.differences,
        })
    }
}

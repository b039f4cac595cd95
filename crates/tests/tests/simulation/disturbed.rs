//! Probes of drives without translation through hosts that are disturbed now and then.

use std::ops::ControlFlow;
use std::sync::Arc;

use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::builtin::builtin;
use traxtent_probe::{
    Algorithm, Extraction, Identity, ObservedTarget, Region, RequestCounts, Target, TargetError,
    Timing, Verify, extract,
};
use traxtent_sim::SimTarget;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Rng, SimTime, Span};

/// The disturbances of a host. Its fault model is jitter, bursts in which all completions are late
/// by the same time, and requests that are split in two.
#[derive(Clone, Copy, Debug)]
struct Disturbance {
    /// The largest jitter of a completion in microseconds. Jitter is uniform from 0.
    jitter_us: f64,
    /// The probability that a request begins a burst.
    bursts: f64,
    /// The duration of a burst in milliseconds.
    burst_ms: f64,
    /// The length above which requests are split, in sectors. The second part is sent once the
    /// first has completed.
    split_sectors: u32,
}

/// The largest lateness of completions in a burst, in milliseconds: half a revolution at 7,200 RPM.
/// Such a read is not longer than one that has just missed its sector.
const LATE_MS_MAX: f64 = 4.0;

impl Disturbance {
    const NONE: Disturbance = Disturbance {
        jitter_us: 0.0,
        bursts: 0.0,
        burst_ms: 0.0,
        split_sectors: u32::MAX,
    };
}

/// A drive whose host is disturbed.
struct DisturbedTarget {
    drive: SimTarget,
    disturbance: Disturbance,
    rng: Rng,
    /// The lateness of completions in the latest burst.
    late: Span,
    /// The end of that burst.
    burst_end: SimTime,
}

impl Target for DisturbedTarget {
    fn identity(&self) -> &Identity {
        self.drive.identity()
    }

    fn now(&self) -> SimTime {
        self.drive.now()
    }

    fn wait_until(&mut self, at: SimTime) {
        self.drive.wait_until(at);
    }

    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        let first = Request {
            sectors: request.sectors.min(self.disturbance.split_sectors),
            ..request
        };
        let Timing {
            sent,
            mut completed,
        } = self.drive.request(first)?;
        if first.sectors < request.sectors {
            let second = Request {
                lbn: Lbn(request.lbn.0 + u64::from(first.sectors)),
                sectors: request.sectors - first.sectors,
                ..request
            };
            completed = self.drive.request(second)?.completed;
        }
        if completed >= self.burst_end && self.rng.chance(self.disturbance.bursts) {
            self.late = Span::from_ms(LATE_MS_MAX * self.rng.fraction());
            self.burst_end = completed + Span::from_ms(self.disturbance.burst_ms);
        }
        if completed < self.burst_end {
            completed += self.late;
        }
        completed += Span::from_ms(self.disturbance.jitter_us / 1000.0 * self.rng.fraction());
        self.drive.wait_until(completed);
        Ok(Timing { sent, completed })
    }
}

/// The result of a probe: sizes of tracks, findings, and the number of requests.
struct Probed {
    sizes: Vec<u64>,
    findings: Extraction,
    requests: u64,
}

/// Probes the first million LBNs of a drive with two zones in this region.
fn probe(disturbance: Disturbance, seed: u64) -> (Probed, Vec<u64>) {
    let profile = Arc::new(builtin("toshiba-p300").unwrap());
    let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
    let map = TrackMap::from_sizes(geometry.track_sizes());
    let target = DisturbedTarget {
        drive: SimTarget::new(profile, geometry).without_translation(),
        disturbance,
        rng: Rng::new(seed),
        late: Span(0),
        burst_end: SimTime::ZERO,
    };
    let mut target = ObservedTarget::new(target, RequestCounts::default());
    let region = Region {
        first: Lbn(0),
        end: Lbn(1_000_000),
        aligned: true,
    };
    let mut sizes = Vec::new();
    let findings = extract(
        Algorithm::Angle,
        &mut target,
        region,
        Verify::Sample,
        &mut |track| {
            sizes.push(u64::from(track.sectors));
            ControlFlow::Continue(())
        },
    );
    let findings = findings.unwrap_or_else(|error| panic!("{disturbance:?}, seed {seed}: {error}"));
    let requests = target.observer.requests;
    let wanted = map
        .tracks()
        .take_while(|track| track.first_lbn < region.end);
    let wanted = wanted.map(|track| track.sectors.0).collect();
    let probed = Probed {
        sizes,
        findings,
        requests,
    };
    (probed, wanted)
}

/// Asserts that a probe finds every track and nothing else.
fn assert_exact(disturbance: Disturbance, seed: u64) {
    let (probed, wanted) = probe(disturbance, seed);
    let wrong = probed.sizes.iter().zip(&wanted).position(|(a, b)| a != b);
    println!("{disturbance:?}, seed {seed}: {} requests", probed.requests);
    assert!(
        probed.sizes == wanted,
        "{disturbance:?}, seed {seed}: {} of {} tracks, the first wrong one is {wrong:?}",
        probed.sizes.len(),
        wanted.len()
    );
    let Extraction {
        remapped,
        unconfirmed_remapped,
        ..
    } = probed.findings;
    assert!(
        remapped.is_empty() && unconfirmed_remapped.is_empty(),
        "{disturbance:?}, seed {seed}: {remapped:?}, {unconfirmed_remapped:?}"
    );
}

/// If bursts delay several reads by the same time, are the tracks nevertheless found exactly, with
/// little jitter and with much? A boundary must not rest on the readings of one burst.
#[test]
fn bursts_of_late_completions() {
    for seed in 0..4 {
        for (jitter_us, burst_ms) in [(8.0, 30.0), (40.0, 200.0)] {
            let disturbance = Disturbance {
                jitter_us,
                bursts: 0.002,
                burst_ms,
                ..Disturbance::NONE
            };
            assert_exact(disturbance, seed);
        }
    }
}

/// Are tracks found exactly if the jitter is about as long as a sector takes to pass? One reading
/// then does not determine an angle.
#[test]
fn jitter_of_a_sector() {
    for seed in 0..4 {
        let disturbance = Disturbance {
            jitter_us: 8.0,
            ..Disturbance::NONE
        };
        assert_exact(disturbance, seed);
    }
}

/// If the host splits long requests, and sends the second part after the first, are the tracks
/// nevertheless found exactly? Each split costs a revolution, like a boundary.
#[test]
fn split_requests() {
    for seed in 0..2 {
        for split_sectors in [256, 1024] {
            let disturbance = Disturbance {
                jitter_us: 40.0,
                bursts: 0.002,
                burst_ms: 30.0,
                split_sectors,
            };
            assert_exact(disturbance, seed);
        }
    }
}

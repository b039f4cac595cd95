//! The host in front of a simulated drive: its clock, and how unsteady it is.
//!
//! It is ideal: it sends the next command at the instant it may. [`Noise`] makes its clock and its
//! drive as unsteady as real ones.

use traxtent_core::profile::Profile;
use traxtent_core::units::{SimTime, Span};
use traxtent_core::workload::{Distribution, Rng};

/// How unsteady a host's times are.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// Standard deviation of each completion as the host sees it, in milliseconds.
    pub deviation_ms: f64,
    /// The share of requests that the host sees late by a whole while.
    pub outliers: f64,
    /// How late, in milliseconds: uniform between these.
    pub outlier_ms: (f64, f64),
    /// The share of requests that the drive itself serves a revolution late.
    pub extra_revolutions: f64,
}

impl Noise {
    /// What probes must stand: 30 microseconds; 1 % outliers of 5 to 50 ms; an additional
    /// revolution in one request of a thousand.
    pub const TYPICAL: Noise = Noise {
        deviation_ms: 0.030,
        outliers: 0.01,
        outlier_ms: (5.0, 50.0),
        extra_revolutions: 0.001,
    };
}

/// A host on the virtual clock.
#[derive(Clone, Debug)]
pub(crate) struct Host {
    pub(crate) now: SimTime,
    revolution: Span,
    noise: Option<(Noise, Rng)>,
    gone_after: Option<u64>,
    requests: u64,
}

impl Host {
    /// A steady host of a drive that stays.
    pub(crate) fn new(profile: &Profile) -> Host {
        Host {
            now: SimTime::ZERO,
            revolution: Span::from_ms(profile.revolution_ms()),
            noise: None,
            gone_after: None,
            requests: 0,
        }
    }

    /// Makes its times unsteady.
    pub(crate) fn set_noise(&mut self, noise: Noise, seed: u64) {
        self.noise = Some((noise, Rng::new(seed)));
    }

    /// Lets the drive leave after so many requests and translations.
    pub(crate) fn set_gone_after(&mut self, gone_after: Option<u64>) {
        self.gone_after = gone_after;
    }

    /// Counts a request or translation.
    ///
    /// # Errors
    /// As of [`Host::reach`].
    pub(crate) fn count(&mut self) -> Result<(), String> {
        self.requests += 1;
        self.reach()
    }

    /// Looks whether the drive is there.
    ///
    /// # Errors
    /// Why not.
    pub(crate) fn reach(&self) -> Result<(), String> {
        match self.gone_after {
            Some(limit) if self.requests > limit => Err(format!("it left after {limit} requests")),
            _ => Ok(()),
        }
    }

    /// Lets time pass until a request is served; returns when the host sees that.
    pub(crate) fn see(&mut self, served: SimTime) -> SimTime {
        let seen = SimTime(served.0.saturating_add_signed(self.lateness())).max(self.now);
        // What the host sees early has not been done earlier.
        self.now = seen.max(served);
        seen
    }

    /// How late the host sees a completion, as a signed number of picoseconds.
    fn lateness(&mut self) -> i64 {
        let Some((noise, rng)) = &mut self.noise else {
            return 0;
        };
        let jitter = Distribution::Normal {
            mean: 0.0,
            deviation: noise.deviation_ms,
        };
        let mut late_ms = jitter.sample(rng);
        if rng.chance(noise.outliers) {
            let (least, most) = noise.outlier_ms;
            late_ms += least + (most - least) * rng.fraction();
        }
        let mut late = (late_ms * 1e9) as i64;
        if rng.chance(noise.extra_revolutions) {
            late += self.revolution.0 as i64;
        }
        late
    }
}

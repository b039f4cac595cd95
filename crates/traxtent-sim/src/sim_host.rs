//! The host of a simulated drive: its clock, and the noise of that clock.
//!
//! The host is ideal: it sends the next command at the earliest permitted instant. [`Noise`] makes
//! its clock and its drive as unsteady as real ones.

use traxtent_model::profile::Profile;
use traxtent_units::Rng;
use traxtent_units::{SimTime, Span};
use traxtent_workload::Distribution;

/// The noise of a host's measured times.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Noise {
    /// The standard deviation of the measured completion times, in milliseconds.
    pub deviation_ms: f64,
    /// The fraction of requests that are outliers, whose completion the host sees much too late.
    pub outliers: f64,
    /// The lateness of outliers, in milliseconds: uniform between these limits.
    pub outlier_ms: (f64, f64),
    /// The fraction of requests that the drive serves a revolution late.
    pub extra_revolutions: f64,
}

impl Noise {
    /// The noise that probes must tolerate: a standard deviation of 30 microseconds, 1 % outliers
    /// of 5 to 50 ms, and an additional revolution in one request out of a thousand.
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
    disconnect_after: Option<u64>,
    /// The number of counted commands.
    commands: u64,
}

impl Host {
    /// Creates a steady host whose drive stays connected.
    pub(crate) fn new(profile: &Profile) -> Host {
        Host {
            now: SimTime::ZERO,
            revolution: Span::from_ms(profile.revolution_ms()),
            noise: None,
            disconnect_after: None,
            commands: 0,
        }
    }

    /// Adds noise to the host's times.
    pub(crate) fn set_noise(&mut self, noise: Noise, seed: u64) {
        self.noise = Some((noise, Rng::new(seed)));
    }

    /// Disconnects the drive after this number of counted commands; `None` keeps it connected.
    pub(crate) fn set_disconnect_after(&mut self, commands: Option<u64>) {
        self.disconnect_after = commands;
    }

    /// Counts a command, such as a request or a translation.
    ///
    /// # Errors
    /// Returns the same errors as [`Host::check_connected`].
    pub(crate) fn count(&mut self) -> Result<(), String> {
        self.commands += 1;
        self.check_connected()
    }

    /// Checks that the drive is connected.
    ///
    /// # Errors
    /// Returns the reason if it is not.
    pub(crate) fn check_connected(&self) -> Result<(), String> {
        match self.disconnect_after {
            Some(limit) if self.commands > limit => {
                Err(format!("disconnected after {limit} requests"))
            }
            _ => Ok(()),
        }
    }

    /// Advances the clock to the time at which the host sees a request complete; returns the
    /// completion time that it measures.
    pub(crate) fn observe_completion(&mut self, served: SimTime) -> SimTime {
        let seen = SimTime(served.0.saturating_add_signed(self.lateness())).max(self.now);
        // A completion that is measured too early has not happened earlier.
        self.now = seen.max(served);
        seen
    }

    /// Returns the error of a measured completion time, as a signed number of picoseconds.
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

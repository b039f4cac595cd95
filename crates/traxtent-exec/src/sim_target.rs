//! A simulated drive as a probe's target, on the virtual clock.
//!
//! The host is ideal: it sends the next request at the instant it may. [`Noise`] makes its clock
//! and its drive as unsteady as real ones, [`Faults`] makes the drive fail.

use std::sync::Arc;

use traxtent_core::drive::{Caching, Drive};
use traxtent_core::geometry::{Geometry, Occupant, Place};
use traxtent_core::probe::{Identity, Target, TargetError, Timing};
use traxtent_core::profile::Profile;
use traxtent_core::request::{Op, Request};
use traxtent_core::units::{Lbn, Sectors, SimTime, Span};
use traxtent_core::workload::{Distribution, Rng};

/// What a translation takes where the profile does not say (papers T and Q both come to about this).
pub const TRANSLATION: Span = Span(2_000_000_000);

/// A simulated drive that answers a probe.
#[derive(Clone, Debug)]
pub struct SimTarget {
    drive: Drive,
    identity: Identity,
    now: SimTime,
    revolution: Span,
    translates: bool,
    noise: Option<(Noise, Rng)>,
    faults: Faults,
    requests: u64,
}

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

/// What goes wrong on a drive.
#[derive(Clone, Debug, Default)]
pub struct Faults {
    /// LBNs that cannot be read, ascending.
    pub unreadable: Vec<Lbn>,
    /// The kinds of request that the drive does not know.
    pub unsupported: Vec<Op>,
    /// The drive is gone after this many requests and translations.
    pub gone_after: Option<u64>,
}

impl SimTarget {
    /// A drive that translates, on a steady clock.
    pub fn new(profile: Arc<Profile>, geometry: Arc<Geometry>) -> SimTarget {
        let revolution = profile.mechanics.as_ref().map_or(Span::ZERO, |mechanics| {
            Span::from_ms(60_000.0 / mechanics.rpm)
        });
        SimTarget {
            identity: Identity {
                vendor: "TRAXTENT".to_owned(),
                product: profile.name.clone(),
                serial: String::new(),
                capacity: geometry.capacity(),
                logical_bytes: profile.sector.logical_bytes,
                physical_bytes: profile.sector.physical_bytes,
            },
            drive: Drive::with_geometry(profile, geometry),
            now: SimTime::ZERO,
            revolution,
            translates: true,
            noise: None,
            faults: Faults::default(),
            requests: 0,
        }
    }

    /// The same drive, but it does not translate and has no defect lists.
    pub fn without_translation(mut self) -> SimTarget {
        self.translates = false;
        self
    }

    /// The same drive with unsteady times.
    pub fn with_noise(mut self, noise: Noise, seed: u64) -> SimTarget {
        self.noise = Some((noise, Rng::new(seed)));
        self
    }

    /// The same drive with faults.
    pub fn with_faults(mut self, faults: Faults) -> SimTarget {
        self.faults = faults;
        self
    }

    /// Orders the drive's buffer to work so from now on.
    pub fn set_caching(&mut self, caching: Caching) {
        self.drive.set_caching(self.now, caching);
    }

    fn count(&mut self) -> Result<(), TargetError> {
        self.requests += 1;
        match self.faults.gone_after {
            Some(limit) if self.requests > limit => {
                Err(TargetError::Gone(format!("it left after {limit} requests")))
            }
            _ => Ok(()),
        }
    }

    /// Lets the drive work for a request, and says when it was done.
    fn serve(&mut self, request: Request) -> Result<SimTime, TargetError> {
        let refused = |error: &dyn ToString| TargetError::Refused(error.to_string());
        self.drive
            .submit(self.now, request)
            .map_err(|error| refused(&error))?;
        loop {
            let wake = self.drive.next_wakeup().expect("a request is outstanding");
            if let Some(completion) = self.drive.poll(wake) {
                return Ok(completion.completed);
            }
        }
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

    fn translating(&mut self) -> Result<(), TargetError> {
        self.count()?;
        if !self.translates {
            return Err(TargetError::Unsupported("address translation"));
        }
        self.now += TRANSLATION;
        Ok(())
    }
}

impl Target for SimTarget {
    fn identity(&self) -> &Identity {
        &self.identity
    }

    fn now(&self) -> SimTime {
        self.now
    }

    fn wait_until(&mut self, at: SimTime) {
        self.now = self.now.max(at);
    }

    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        self.count()?;
        if self.faults.unsupported.contains(&request.op) {
            return Err(TargetError::Unsupported("this kind of request"));
        }
        let sent = self.now;
        let served = self.serve(request)?;
        let seen = served.0.saturating_add_signed(self.lateness());
        let completed = SimTime(seen).max(sent);
        // What the host sees early has not been done earlier.
        self.now = completed.max(served);
        let first = self
            .faults
            .unreadable
            .partition_point(|lbn| *lbn < request.lbn);
        match self.faults.unreadable.get(first) {
            Some(lbn) if *lbn < request.end() => Err(TargetError::Unreadable {
                lbn: request.lbn,
                sectors: request.sectors,
            }),
            _ => Ok(Timing { sent, completed }),
        }
    }

    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        self.translating()?;
        let place = self.drive.geometry().locate(lbn);
        place.ok_or_else(|| {
            let Sectors(end) = self.identity.capacity;
            TargetError::Refused(format!("LBN {lbn}: the drive ends at LBN {end}"))
        })
    }

    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        self.translating()?;
        Ok(match self.drive.geometry().lbn_at(place) {
            Occupant::Lbn(lbn) => Some(lbn),
            Occupant::Bad | Occupant::Empty | Occupant::NoSuchPlace => None,
        })
    }

    fn defects(&mut self) -> Result<Vec<Place>, TargetError> {
        self.translating()?;
        let each = self.drive.geometry().defects().flat_map(|defect| {
            (0..defect.slots).map(move |k| Place {
                slot: defect.place.slot + k,
                ..defect.place
            })
        });
        Ok(each.collect())
    }
}

//! A drive on which workloads are measured, and the metrics that the papers report.

use std::ops::Range;
use std::sync::Arc;

use traxtent_model::drive::{Breakdown, Drive};
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{Profile, ProfileError};
use traxtent_units::stats::{ComponentMeans, Moments};
use traxtent_units::{Lbn, SimTime};
use traxtent_workload::{Synthetic, WorkloadRegion, WorkloadSpec};

use crate::{Host, Outcome, SimTarget, SimulateError, simulate};

/// A drive under test. Every measurement begins with the drive at rest.
#[derive(Clone, Debug)]
pub struct TestDrive {
    /// The profile of the drive.
    pub profile: Arc<Profile>,
    /// The layout of the drive.
    pub geometry: Arc<Geometry>,
    /// The seed of all workloads.
    pub seed: u64,
}

/// The results of a run of a workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadResult {
    /// The head time per request in milliseconds: the reciprocal of the throughput.
    pub head_time_ms: f64,
    /// Response times in milliseconds.
    pub response_ms: Moments,
    /// The means of the parts of response times in milliseconds, in the order of the breakdown's
    /// names. Time in the host's queue is not included.
    pub parts_ms: [f64; 8],
    /// The mean time in milliseconds in which a request's sectors pass under the head, at the rate
    /// of their zone.
    pub transfer_ms: f64,
}

impl WorkloadResult {
    /// Returns the media transfer time of the requested sectors, at the rate of their zone, over
    /// the head time.
    pub fn efficiency(&self) -> f64 {
        self.transfer_ms / self.head_time_ms
    }

    /// The mean of one part of the response times in milliseconds.
    ///
    /// # Panics
    /// Panics if the breakdown has no part of this name.
    pub fn part_ms(&self, name: &str) -> f64 {
        let index = Breakdown::NAMES.iter().position(|part| *part == name);
        self.parts_ms[index.expect("a part of the breakdown")]
    }
}

impl TestDrive {
    /// Creates the drive of a profile.
    ///
    /// # Errors
    /// Returns an error if its geometry is invalid.
    pub fn new(profile: Profile, seed: u64) -> Result<TestDrive, ProfileError> {
        let geometry = Geometry::build(&profile.geometry);
        let geometry = geometry.map_err(|error| ProfileError::Geometry(error.to_string()))?;
        Ok(TestDrive {
            geometry: Arc::new(geometry),
            profile: Arc::new(profile),
            seed,
        })
    }

    /// Returns the drive at rest.
    pub fn at_rest(&self) -> Drive {
        Drive::with_geometry(Arc::clone(&self.profile), Arc::clone(&self.geometry))
    }

    /// Returns the drive at rest as a probe sees it, with an ideal host.
    pub fn target(&self) -> SimTarget {
        SimTarget::new(Arc::clone(&self.profile), Arc::clone(&self.geometry))
    }

    /// The number of LBNs on the first track.
    pub fn track_sectors(&self) -> u32 {
        self.geometry
            .track_of(Lbn(0))
            .map_or(1, |track| track.sectors)
    }

    /// The LBNs of the first zone as paper T defines zones (section 3.1): the leading tracks with
    /// the same number of slots. Zones of a profile may also end where spare sectors or reserved
    /// cylinders separate them.
    fn first_zone(&self) -> Range<Lbn> {
        let zones = self.geometry.zones();
        let alike = zones.iter().take_while(|zone| zone.slots == zones[0].slots);
        Lbn(0)..alike.last().map_or(Lbn(0), |zone| zone.end_lbn)
    }

    /// Converts sectors to units of 1,024 bytes.
    pub fn kb(&self, sectors: u32) -> f64 {
        f64::from(sectors) * f64::from(self.profile.sector.logical_bytes) / 1024.0
    }

    /// Runs a workload on the drive at rest, with the seed of this test drive. Zone 0 of the
    /// workload means the leading tracks with the same number of slots, as paper T defines zones
    /// (section 3.1).
    ///
    /// # Errors
    /// Returns an error if the workload does not fit the drive, or if the simulation ends early.
    pub fn run(&self, workload: WorkloadSpec) -> Result<WorkloadResult, SimulateError> {
        let mut response_ms = Moments::default();
        let mut parts = ComponentMeans::<8>::default();
        let mut revolutions = 0.0;
        let end = self.run_observed(workload, |outcome| {
            response_ms.push(outcome.response().as_ms());
            parts.push(&outcome.completion.breakdown.parts());
            let request = &outcome.arrival.request;
            let track = self.geometry.track_of(request.lbn);
            let slots = track.map_or(1, |track| track.slots);
            revolutions += f64::from(request.sectors) / f64::from(slots);
        })?;
        let count = response_ms.count().max(1) as f64;
        Ok(WorkloadResult {
            head_time_ms: end.as_ms() / count,
            response_ms,
            parts_ms: parts.means_ms(),
            transfer_ms: revolutions / count * self.profile.revolution_ms(),
        })
    }

    /// Runs a workload like [`TestDrive::run`], but passes each outcome to `look`, and returns the
    /// time at which the last request was complete.
    ///
    /// # Errors
    /// Returns the same errors as [`TestDrive::run`].
    pub fn run_observed(
        &self,
        mut workload: WorkloadSpec,
        mut look: impl FnMut(&Outcome),
    ) -> Result<SimTime, SimulateError> {
        workload.seed = self.seed;
        if workload.region == WorkloadRegion::Zone(0) {
            workload.region = WorkloadRegion::Lbns(self.first_zone());
        }
        let bytes = self.profile.sector.logical_bytes;
        let mut source = Synthetic::new(&workload, bytes, &*self.geometry)?;
        simulate(
            &mut Host::new(vec![self.at_rest()]),
            &mut source,
            |outcome| {
                look(outcome);
                true
            },
        )
    }
}

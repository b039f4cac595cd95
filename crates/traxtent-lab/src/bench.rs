//! Combines drives with workloads, and computes the metrics that the papers report.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_layout::LayoutError;
use traxtent_layout::log::LogError;
use traxtent_layout::raid::RaidError;
use traxtent_layout::tpl::TplError;
use traxtent_model::disk::DiskError;
use traxtent_model::drive::{Breakdown, Drive};
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{self, Profile, ProfileError};
use traxtent_probe::{ProbeError, TargetError};
use traxtent_sim::{Host, Outcome, SimTarget, SimulateError, simulate};
use traxtent_units::stats::{ComponentMeans, Moments};
use traxtent_units::{Lbn, SimTime};
use traxtent_volume::copies::CopiesError;
use traxtent_workload::{Synthetic, WorkloadError, WorkloadRegion, WorkloadSpec};

use crate::video::VideoError;

/// The reasons why a measurement cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// No built-in drive has this name.
    #[error("no built-in drive is named {0:?}")]
    UnknownDrive(String),
    /// The drive's profile is invalid.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The workload does not fit the drive.
    #[error(transparent)]
    Workload(#[from] WorkloadError),
    /// The simulation ended early.
    #[error(transparent)]
    Simulation(#[from] SimulateError),
    /// The probe did not find what it was looking for.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The drive has no room for the layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The drives cannot form an array.
    #[error(transparent)]
    Raid(#[from] RaidError),
    /// The drive does not respond.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The drive cannot serve video in this way.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// The log does not fit, or cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// The track partition layout does not fit, or is used incorrectly.
    #[error(transparent)]
    Tpl(#[from] TplError),
    /// The volume with replicas cannot be made, or fails.
    #[error(transparent)]
    ReplicaVolume(#[from] CopiesError),
    /// The disk fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A measured trace is missing.
    #[error("no trace of {drive}: {why}")]
    NoTrace {
        /// The drive on which the trace was measured.
        drive: String,
        /// The reason why it is missing.
        why: String,
    },
    /// A file cannot be used, or a program cannot be run.
    #[error("{}: {error}", path.display())]
    File {
        /// The path of the file or program.
        path: PathBuf,
        /// The cause.
        error: io::Error,
    },
    /// The kernel or the tools of this machine lack something.
    #[error("{0}")]
    Host(String),
}

impl LabError {
    pub(crate) fn file(path: &Path, error: io::Error) -> LabError {
        LabError::File {
            path: path.to_owned(),
            error,
        }
    }
}

/// A drive under test.
#[derive(Clone, Debug)]
pub struct Bench {
    /// The profile of the drive.
    pub profile: Arc<Profile>,
    /// The layout of the drive.
    pub geometry: Arc<Geometry>,
    /// The seed of all workloads.
    pub seed: u64,
    /// Whether an approximate result is sufficient; see [`Bench::scaled_count`].
    pub approximate: bool,
    /// The directory with the traces that come with DiskSim.
    pub traces: Option<PathBuf>,
    /// The directory in which a measurement may keep its recordings for later runs.
    pub recordings: Option<PathBuf>,
    /// Profile parameters that replace those of this drive and of every other drive that a
    /// measurement takes.
    pub changes: Vec<(String, String)>,
}

/// The factor by which the work is reduced if an approximate result is sufficient.
const QUICK: u64 = 10;

/// The results of a run of a workload.
#[derive(Clone, Copy, Debug)]
pub struct WorkloadResult {
    /// The head time per request in milliseconds: the reciprocal of the throughput.
    pub head_time_ms: f64,
    /// Response times in milliseconds.
    pub response_ms: Moments,
    /// The means of the parts of response times in milliseconds, in the order of the breakdown's
    /// names.
    pub parts_ms: [f64; 8],
    /// The mean time in milliseconds in which a request's sectors pass under the head, at the rate
    /// of their zone.
    pub transfer_ms: f64,
}

impl WorkloadResult {
    /// Returns the media transfer time of the requested sectors, at the rate of their zone, over
    /// the total time.
    pub fn efficiency(&self) -> f64 {
        self.transfer_ms / self.head_time_ms
    }

    /// The mean of one part of the response times.
    pub fn part_ms(&self, name: &str) -> f64 {
        let index = Breakdown::NAMES.iter().position(|part| *part == name);
        self.parts_ms[index.expect("a part of the breakdown")]
    }
}

impl Bench {
    /// Returns the bench of another built-in drive, with the same settings.
    ///
    /// # Errors
    /// Returns an error if there is no drive of that name, or if it cannot have the
    /// [changed](Bench::with_parameters) parameters.
    pub fn with_drive(&self, name: &str) -> Result<Bench, LabError> {
        Bench {
            approximate: self.approximate,
            traces: self.traces.clone(),
            recordings: self.recordings.clone(),
            ..Bench::new(name, self.seed)?
        }
        .with_parameters(&self.changes)
    }

    /// Creates a bench with a built-in drive.
    ///
    /// # Errors
    /// Returns an error if there is no drive of that name.
    pub fn new(name: &str, seed: u64) -> Result<Bench, LabError> {
        let profile =
            profile::builtin(name).ok_or_else(|| LabError::UnknownDrive(name.to_owned()))?;
        Bench::with_profile(profile, seed)
    }

    /// Creates a bench with a drive of any profile.
    ///
    /// # Errors
    /// Returns an error if its geometry is invalid.
    pub fn with_profile(profile: Profile, seed: u64) -> Result<Bench, LabError> {
        Ok(Bench {
            geometry: built(&profile)?,
            profile: Arc::new(profile),
            seed,
            approximate: false,
            traces: None,
            recordings: None,
            changes: Vec::new(),
        })
    }

    /// Sets whether an approximate result is sufficient.
    pub fn quick(self, quick: bool) -> Bench {
        Bench {
            approximate: quick,
            ..self
        }
    }

    /// Sets the directory with the traces.
    pub fn with_traces(self, traces: Option<PathBuf>) -> Bench {
        Bench { traces, ..self }
    }

    /// Sets the directory for recordings.
    pub fn with_recordings(self, recordings: Option<PathBuf>) -> Bench {
        Bench { recordings, ..self }
    }

    /// Returns `many`, or a tenth of it if an approximate result is sufficient.
    pub fn scaled_count(&self, many: u64) -> u64 {
        if self.approximate {
            many.div_ceil(QUICK)
        } else {
            many
        }
    }

    /// Returns the same drive with one parameter changed.
    ///
    /// # Errors
    /// Returns an error if it has no such parameter, or if the value is invalid.
    pub fn with_parameter(&self, key: &str, value: &str) -> Result<Bench, LabError> {
        let profile = self.profile.with_value(key, value)?;
        let geometry = match key.starts_with("geometry") {
            true => built(&profile)?,
            false => Arc::clone(&self.geometry),
        };
        Ok(Bench {
            profile: Arc::new(profile),
            geometry,
            ..self.clone()
        })
    }

    /// Returns the same bench with the parameters changed, by key, to measure a hypothetical drive.
    ///
    /// # Errors
    /// Returns the errors of [`Bench::with_parameter`].
    pub fn with_parameters(self, changes: &[(String, String)]) -> Result<Bench, LabError> {
        let bench = changes
            .iter()
            .try_fold(self, |bench, (key, value)| bench.with_parameter(key, value))?;
        Ok(Bench {
            changes: changes.to_vec(),
            ..bench
        })
    }

    /// Returns the drive at rest as a probe sees it, with an ideal host.
    pub fn target(&self) -> SimTarget {
        SimTarget::new(Arc::clone(&self.profile), Arc::clone(&self.geometry))
    }

    /// The number of LBNs on the first track, and on every other track of the first zone.
    pub fn track_sectors(&self) -> u32 {
        self.geometry
            .track_of(Lbn(0))
            .map_or(1, |track| track.sectors)
    }

    /// The LBNs of the first zone as paper T defines zones (section 3.1): all tracks with as many
    /// sectors as the first. Zones of a profile may also end where spare sectors or reserved
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

    /// Runs a workload, given in the workload grammar, from a drive at rest. It runs all of its
    /// requests, or [a few](Bench::scaled_count). Zone 0 of the workload means all tracks with as
    /// many sectors as the first, as paper T defines zones (section 3.1).
    ///
    /// # Errors
    /// Returns an error if the workload does not fit the drive.
    pub fn run(&self, workload: &str) -> Result<WorkloadResult, LabError> {
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

    /// Runs a workload in the same way, passes each outcome to `look`, and returns the time at
    /// which the last request was complete.
    ///
    /// # Errors
    /// Returns an error if the workload does not fit the drive.
    pub fn run_observed(
        &self,
        workload: &str,
        mut look: impl FnMut(&Outcome),
    ) -> Result<SimTime, LabError> {
        let mut spec: WorkloadSpec = workload.parse()?;
        spec.seed = self.seed;
        spec.count = self.scaled_count(spec.count);
        if spec.region == WorkloadRegion::Zone(0) {
            spec.region = WorkloadRegion::Lbns(self.first_zone());
        }
        let bytes = self.profile.sector.logical_bytes;
        let mut source = Synthetic::new(&spec, bytes, &*self.geometry)?;
        let drive = Drive::with_geometry(Arc::clone(&self.profile), Arc::clone(&self.geometry));
        let end = simulate(&mut Host::new(vec![drive]), &mut source, |outcome| {
            look(outcome);
            true
        })?;
        Ok(end)
    }
}

fn built(profile: &Profile) -> Result<Arc<Geometry>, LabError> {
    let geometry = Geometry::build(&profile.geometry);
    Ok(Arc::new(geometry.map_err(|error| {
        ProfileError::Geometry(error.to_string())
    })?))
}

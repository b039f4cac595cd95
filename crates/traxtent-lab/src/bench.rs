//! Combines drives with workloads, and computes the metrics that the papers report.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_layout::LayoutError;
use traxtent_layout::log::LogError;
use traxtent_layout::raid::RaidError;
use traxtent_layout::tpl::TplError;
use traxtent_model::disk::DiskError;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{self, Profile, ProfileError};
use traxtent_probe::{ProbeError, TargetError};
use traxtent_sim::video::VideoError;
use traxtent_sim::{Outcome, SimTarget, SimulateError, TestDrive, WorkloadResult};
use traxtent_units::SimTime;
use traxtent_volume::copies::CopiesError;
use traxtent_workload::{WorkloadError, WorkloadSpec};

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
    /// The probe failed.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// The drive has no room for the layout.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// The drives cannot form an array.
    #[error(transparent)]
    Raid(#[from] RaidError),
    /// A request to the drive failed.
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
    /// There is no measured trace of the drive, or it cannot be opened.
    #[error("no trace of {drive}: {why}")]
    NoTrace {
        /// The drive.
        drive: String,
        /// The reason.
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
    /// A kernel feature or a tool is missing on this machine, a program failed, or a trace cannot
    /// be read.
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
    /// measurement uses.
    pub changes: Vec<(String, String)>,
}

/// The divisor of counts, such as numbers of requests, if an approximate result is sufficient.
const APPROXIMATE_DIVISOR: u64 = 10;

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
        let drive = TestDrive::new(profile, seed)?;
        Ok(Bench {
            profile: drive.profile,
            geometry: drive.geometry,
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

    /// Returns `count`, or a tenth of it, rounded up, if an approximate result is sufficient.
    pub fn scaled_count(&self, count: u64) -> u64 {
        if self.approximate {
            count.div_ceil(APPROXIMATE_DIVISOR)
        } else {
            count
        }
    }

    /// Returns the same drive with one parameter changed.
    ///
    /// # Errors
    /// Returns an error if it has no such parameter, or if the value is invalid.
    pub fn with_parameter(&self, key: &str, value: &str) -> Result<Bench, LabError> {
        let profile = self.profile.with_value(key, value)?;
        let (profile, geometry) = if key.starts_with("geometry") {
            let drive = TestDrive::new(profile, self.seed)?;
            (drive.profile, drive.geometry)
        } else {
            (Arc::new(profile), Arc::clone(&self.geometry))
        };
        Ok(Bench {
            profile,
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

    /// Returns the drive on which the measurements run their workloads.
    pub fn drive(&self) -> TestDrive {
        TestDrive {
            profile: Arc::clone(&self.profile),
            geometry: Arc::clone(&self.geometry),
            seed: self.seed,
        }
    }

    /// Returns the drive at rest as a probe sees it, with an ideal host.
    pub fn target(&self) -> SimTarget {
        self.drive().target()
    }

    /// Returns the number of LBNs on the first track.
    pub fn track_sectors(&self) -> u32 {
        self.drive().track_sectors()
    }

    /// Converts sectors to units of 1,024 bytes.
    pub fn kb(&self, sectors: u32) -> f64 {
        self.drive().kb(sectors)
    }

    /// Runs a workload, given in the workload grammar, like [`TestDrive::run`]. If an approximate
    /// result is sufficient, only [a tenth](Bench::scaled_count) of its requests run.
    ///
    /// # Errors
    /// Returns an error if the workload is malformed or does not fit the drive.
    pub fn run(&self, workload: &str) -> Result<WorkloadResult, LabError> {
        Ok(self.drive().run(self.scaled(workload)?)?)
    }

    /// Runs a workload in the same way and passes each outcome to `look`. Returns the completion
    /// time of the last request.
    ///
    /// # Errors
    /// Returns an error if the workload is malformed or does not fit the drive.
    pub fn run_observed(
        &self,
        workload: &str,
        look: impl FnMut(&Outcome),
    ) -> Result<SimTime, LabError> {
        Ok(self.drive().run_observed(self.scaled(workload)?, look)?)
    }

    fn scaled(&self, workload: &str) -> Result<WorkloadSpec, LabError> {
        let mut spec: WorkloadSpec = workload.parse()?;
        spec.count = self.scaled_count(spec.count);
        Ok(spec)
    }
}

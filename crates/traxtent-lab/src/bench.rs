//! Drives and workloads put together, and the figures that the papers speak of.

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_core::disk::DiskError;
use traxtent_core::drive::{Breakdown, Drive};
use traxtent_core::geometry::Geometry;
use traxtent_core::layout::LayoutError;
use traxtent_core::layout::log::LogError;
use traxtent_core::layout::raid::RaidError;
use traxtent_core::layout::tpl::TplError;
use traxtent_core::probe::{ProbeError, TargetError};
use traxtent_core::profile::{self, Profile, ProfileError};
use traxtent_core::stats::{ComponentMeans, Moments};
use traxtent_core::units::{Lbn, SimTime};
use traxtent_core::volume::copies::CopiesError;
use traxtent_core::workload::{Region, SpecError, Synthetic, WorkloadSpec};
use traxtent_exec::{Host, Outcome, SimTarget, SimulateError, simulate};

use crate::video::VideoError;

/// Why a measurement cannot be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum LabError {
    /// A drive that is not built in.
    #[error("no built-in drive is called {0:?}")]
    UnknownDrive(String),
    /// A figure that a drive does not have.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// A workload that does not fit the drive.
    #[error(transparent)]
    Workload(#[from] SpecError),
    /// A simulation that ends early.
    #[error(transparent)]
    Simulation(#[from] SimulateError),
    /// A probe that does not find what it looks for.
    #[error(transparent)]
    Probe(#[from] ProbeError),
    /// A layout that the drive has no room for.
    #[error(transparent)]
    Layout(#[from] LayoutError),
    /// Drives that cannot be an array.
    #[error(transparent)]
    Raid(#[from] RaidError),
    /// A drive that does not answer.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// A video server that a drive cannot have.
    #[error(transparent)]
    Video(#[from] VideoError),
    /// A log that does not fit, or cannot be read.
    #[error(transparent)]
    Log(#[from] LogError),
    /// A layout in partitions that does not fit, or is not used as it must be.
    #[error(transparent)]
    Tpl(#[from] TplError),
    /// A volume with copies that cannot be made, or fails.
    #[error(transparent)]
    Copies(#[from] CopiesError),
    /// A disk with data that fails.
    #[error(transparent)]
    Disk(#[from] DiskError),
    /// A measured trace that is not there.
    #[error("no trace of {drive}: {why}")]
    NoTrace {
        /// The drive that it was measured on.
        drive: String,
        /// Why not.
        why: String,
    },
    /// A file that cannot be used, or a program that cannot be run.
    #[error("{}: {error}", path.display())]
    File {
        /// Which.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Something that this machine's kernel or tools do not do.
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
    /// Its figures.
    pub profile: Arc<Profile>,
    /// Its layout.
    pub geometry: Arc<Geometry>,
    /// The seed of all workloads.
    pub seed: u64,
    /// Whether a rough answer will do: see [`Bench::few`].
    pub quick: bool,
    /// The folder with the traces that come with DiskSim.
    pub traces: Option<PathBuf>,
    /// Where a measurement may keep what it has recorded, so that it need not be recorded again.
    pub recordings: Option<PathBuf>,
    /// Figures that this drive has in place of its own, and so have all others that are taken.
    pub changes: Vec<(String, String)>,
}

/// How much less is done where a rough answer will do.
const QUICK: u64 = 10;

/// What a run of a workload comes to.
#[derive(Clone, Copy, Debug)]
pub struct Measured {
    /// The time a request takes of the drive: the reciprocal of the throughput, in milliseconds.
    pub head_time_ms: f64,
    /// Response times in milliseconds.
    pub response_ms: Moments,
    /// The means of their parts in milliseconds, in the order of the breakdown's names.
    pub parts_ms: [f64; 8],
    /// The time in which the media pass a request's sectors at the rate of their zone, in milliseconds: the mean.
    pub transfer_ms: f64,
}

impl Measured {
    /// Media transfer time of the requested sectors at the rate of their zone over total time.
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
    /// A built-in drive.
    ///
    /// # Errors
    /// If there is none of that name, or it cannot have what is [changed](Bench::changed).
    pub fn with_drive(&self, name: &str) -> Result<Bench, LabError> {
        Bench {
            quick: self.quick,
            traces: self.traces.clone(),
            recordings: self.recordings.clone(),
            ..Bench::new(name, self.seed)?
        }
        .changed(&self.changes)
    }

    /// A built-in drive and a seed.
    ///
    /// # Errors
    /// If there is none of that name.
    pub fn new(name: &str, seed: u64) -> Result<Bench, LabError> {
        let profile =
            profile::builtin(name).ok_or_else(|| LabError::UnknownDrive(name.to_owned()))?;
        Bench::of(profile, seed)
    }

    /// A drive of any figures and a seed.
    ///
    /// # Errors
    /// If its geometry cannot be.
    pub fn of(profile: Profile, seed: u64) -> Result<Bench, LabError> {
        Ok(Bench {
            geometry: built(&profile)?,
            profile: Arc::new(profile),
            seed,
            quick: false,
            traces: None,
            recordings: None,
            changes: Vec::new(),
        })
    }

    /// The same where a rough answer will do.
    pub fn quick(self, quick: bool) -> Bench {
        Bench { quick, ..self }
    }

    /// The same with the traces of a folder.
    pub fn traces(self, traces: Option<PathBuf>) -> Bench {
        Bench { traces, ..self }
    }

    /// The same with a folder for recordings.
    pub fn keeping(self, recordings: Option<PathBuf>) -> Bench {
        Bench { recordings, ..self }
    }

    /// How many of something to do: so many, or a tenth where a rough answer will do.
    pub fn few(&self, many: u64) -> u64 {
        if self.quick {
            many.div_ceil(QUICK)
        } else {
            many
        }
    }

    /// The same drive with a figure changed.
    ///
    /// # Errors
    /// If it has no such figure, or it cannot have that value.
    pub fn with(&self, key: &str, value: &str) -> Result<Bench, LabError> {
        let profile = self.profile.with(key, value)?;
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

    /// The same with figures, by key, in place of the drive's own: to ask what would be.
    ///
    /// # Errors
    /// As of [`Bench::with`].
    pub fn changed(self, changes: &[(String, String)]) -> Result<Bench, LabError> {
        let bench = changes
            .iter()
            .try_fold(self, |bench, (key, value)| bench.with(key, value))?;
        Ok(Bench {
            changes: changes.to_vec(),
            ..bench
        })
    }

    /// The drive at rest, as a probe sees it, with an ideal host.
    pub fn target(&self) -> SimTarget {
        SimTarget::new(Arc::clone(&self.profile), Arc::clone(&self.geometry))
    }

    /// LBNs on the first track, as on all of the first zone.
    pub fn track_sectors(&self) -> u32 {
        self.geometry
            .track_of(Lbn(0))
            .map_or(1, |track| track.sectors)
    }

    /// The LBNs of the first zone as paper T has zones (section 3.1): all tracks with as many sectors as the first. Zones
    /// of a profile may also end where spare sectors or reserved cylinders part them.
    fn first_zone(&self) -> Range<Lbn> {
        let zones = self.geometry.zones();
        let alike = zones.iter().take_while(|zone| zone.slots == zones[0].slots);
        Lbn(0)..alike.last().map_or(Lbn(0), |zone| zone.end_lbn)
    }

    /// Sectors in units of 1,024 bytes.
    pub fn kb(&self, sectors: u32) -> f64 {
        f64::from(sectors) * f64::from(self.profile.sector.logical_bytes) / 1024.0
    }

    /// Runs a workload of the grammar from a drive at rest: all of its requests, or [a few](Bench::few). Its zone 0 is all
    /// tracks with as many sectors as the first, as paper T has zones (section 3.1).
    ///
    /// # Errors
    /// If the workload does not fit the drive.
    pub fn run(&self, workload: &str) -> Result<Measured, LabError> {
        let mut response_ms = Moments::default();
        let mut parts = ComponentMeans::<8>::default();
        let mut revolutions = 0.0;
        let end = self.each(workload, |outcome| {
            response_ms.push(outcome.response().as_ms());
            parts.push(&outcome.completion.breakdown.parts());
            let request = &outcome.arrival.request;
            let track = self.geometry.track_of(request.lbn);
            let slots = track.map_or(1, |track| track.slots);
            revolutions += f64::from(request.sectors) / f64::from(slots);
        })?;
        let count = response_ms.count().max(1) as f64;
        Ok(Measured {
            head_time_ms: end.as_ms() / count,
            response_ms,
            parts_ms: parts.means_ms(),
            transfer_ms: revolutions / count * self.profile.revolution_ms(),
        })
    }

    /// Runs a workload likewise, looks at each request, and says when the last was complete.
    ///
    /// # Errors
    /// If the workload does not fit the drive.
    pub fn each(
        &self,
        workload: &str,
        mut look: impl FnMut(&Outcome),
    ) -> Result<SimTime, LabError> {
        let mut spec: WorkloadSpec = workload.parse()?;
        spec.seed = self.seed;
        spec.count = self.few(spec.count);
        if spec.region == Region::Zone(0) {
            spec.region = Region::Lbns(self.first_zone());
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

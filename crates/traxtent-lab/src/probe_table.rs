//! The cost and the correctness of each way to find tracks, on each drive with a known layout.
//!
//! The drives are the built-in ones and those of DiskSim's parameter files, if these are available.
//! All drives are simulated, so each result is compared with the drive's own layout.

use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{self, Profile};
use traxtent_probe::{
    Algorithm, ObservedTarget, TargetError, TargetObserver, TargetOperation, Verify,
};
use traxtent_sim::SimTarget;
use traxtent_units::Lbn;

use crate::blind::{Differences, ProbeResult, compare_with_layout, probe};
use crate::cpu_time;

/// A way to find tracks: an algorithm and its verification.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Method {
    /// The algorithm that finds the tracks.
    pub algorithm: Algorithm,
    /// How much of the result is verified.
    pub verify: Verify,
}

impl Method {
    /// All methods of the table.
    pub const ALL: [Method; 7] = [
        Method::new(Algorithm::Tree, Verify::None),
        Method::new(Algorithm::Walk, Verify::None),
        Method::new(Algorithm::Jump, Verify::None),
        Method::new(Algorithm::Dixtrac, Verify::None),
        Method::new(Algorithm::Angle, Verify::Sample),
        Method::new(Algorithm::Angle, Verify::Full),
        Method::new(Algorithm::Scan, Verify::None),
    ];

    const fn new(algorithm: Algorithm, verify: Verify) -> Method {
        Method { algorithm, verify }
    }

    /// The name of the method, such as `angle-full`.
    pub fn name(self) -> String {
        let name = self.algorithm.name();
        match self.verify {
            Verify::None => name.to_owned(),
            Verify::Sample => format!("{name}-sample"),
            Verify::Full => format!("{name}-full"),
        }
    }
}

/// A drive of the table.
#[derive(Clone, Debug)]
pub struct Subject {
    /// The name of a built-in drive; or the prefix `disksim:` and the name of DiskSim's file, or of
    /// the file's directory if it has one of its own; or `disksim:*` if DiskSim's files are
    /// missing.
    pub name: String,
    /// The profile, or the reason why the drive is left out.
    pub profile: Result<Box<Profile>, String>,
}

/// Returns the built-in drives, then those of the files in DiskSim's directory. If no directory is
/// given, or if it cannot be read, the last subject gives the reason.
pub fn subjects(disksim: Option<&Path>) -> Vec<Subject> {
    let built_in = profile::builtin::names().map(|name| Subject {
        name: name.to_owned(),
        profile: profile::builtin(name)
            .filter(|profile| profile.mechanics.is_some())
            .map(Box::new)
            .ok_or("its tracks take no time".to_owned()),
    });
    let mut all: Vec<Subject> = built_in.collect();
    match disksim.map(specifications) {
        Some(Ok(files)) => all.extend(files.iter().map(|file| disksim_drive(file))),
        Some(Err(error)) => all.push(absent(error.to_string())),
        None => all.push(absent(
            "no directory with DiskSim's parameter files is given".to_owned(),
        )),
    }
    all
}

fn absent(reason: String) -> Subject {
    Subject {
        name: "disksim:*".to_owned(),
        profile: Err(reason),
    }
}

/// Finds DiskSim's drive specifications in a directory and its subdirectories, sorted by path.
fn specifications(folder: &Path) -> io::Result<Vec<PathBuf>> {
    let mut files = Vec::new();
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() {
            files.extend(specifications(&path)?);
        } else if path.extension().is_some_and(|end| end == "diskspecs") {
            files.push(path);
        }
    }
    files.sort();
    Ok(files)
}

fn disksim_drive(file: &Path) -> Subject {
    let load = || {
        let read = |path: &str| fs::read(path).map_err(|error| error.to_string());
        let path = file.to_string_lossy();
        let system = traxtent_disksim::load_system(&path, &read(&path)?, None, &read)
            .map_err(|error| error.to_string())?;
        let disk = system.disks.into_iter().next().ok_or("it has no disk")?;
        Ok(Box::new(disk.profile))
    };
    let stem = |path: &Path| {
        path.file_stem()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned()
    };
    // A drive with a directory of its own has the name of the directory.
    let own = file.parent().filter(|folder| stem(folder) != "disksim");
    Subject {
        name: format!("disksim:{}", stem(own.unwrap_or(file))),
        profile: load(),
    }
}

/// A row of the table.
#[derive(Clone, Debug)]
pub struct TableMeasurement {
    /// The result of the probe. If it took too long, the part up to that time.
    pub findings: ProbeResult,
    /// The differences between the result and the drive's own layout.
    pub differences: Differences,
    /// The share of the drive that was probed.
    pub covered: f64,
}

impl TableMeasurement {
    /// Returns whether every boundary was found and nothing else.
    pub fn is_exact(&self) -> bool {
        self.findings.failure.is_none() && self.differences.is_exact()
    }
}

/// Measures a method on a drive. The probe is stopped soon after it has taken `bound` of processor
/// time. `reached` receives the first LBN after each track.
pub fn measure(
    profile: &Arc<Profile>,
    geometry: &Arc<Geometry>,
    method: Method,
    bound: Duration,
    reached: impl FnMut(Lbn),
) -> TableMeasurement {
    let mut target = SimTarget::new(Arc::clone(profile), Arc::clone(geometry));
    if !method.algorithm.translates() {
        target = target.without_translation();
    }
    let limit = TimeLimit {
        end: cpu_time() + bound,
        operations: 0,
    };
    let target = ObservedTarget::new(target, limit);
    let findings = probe(target, method.algorithm, method.verify, reached);
    let end = findings.bounds.last().map_or(0, |lbn| lbn.0);
    TableMeasurement {
        differences: compare_with_layout(&findings, geometry, method.algorithm),
        covered: end as f64 / geometry.capacity().0 as f64,
        findings,
    }
}

/// The error text of a probe that took too long.
pub const TOO_LONG: &str = "the time limit of the table is reached";

/// The number of operations between two checks of the processor time, which is a system call.
const OPERATIONS_PER_CHECK: u64 = 1 << 12;

/// An observer that makes the target disappear once a limit of processor time is reached.
struct TimeLimit {
    end: Duration,
    operations: u64,
}

impl TargetObserver for TimeLimit {
    fn before(&mut self, _: TargetOperation) -> Result<(), TargetError> {
        self.operations += 1;
        if self.operations.is_multiple_of(OPERATIONS_PER_CHECK) && cpu_time() > self.end {
            return Err(TargetError::Gone(TOO_LONG.to_owned()));
        }
        Ok(())
    }
}

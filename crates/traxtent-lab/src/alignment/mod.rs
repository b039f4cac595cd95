//! The cost of a partition that begins within a physical sector: file systems of Linux on emulated
//! drives with 4 KB physical and 512 B logical sectors (R. W. Smith, Linux on 4 KB sector disks).
//!
//! The experiment makes a file system on a partition at sector 34 and on one at sector 40. It then
//! runs five more phases on each, every one of which mounts and unmounts the file system. The
//! result is the ratio of the times that the drive takes. The requests of a kernel are first
//! recorded on a drive whose time passes fast ([`Session`]), then replayed on the virtual clock
//! ([`RequestStream`]). Therefore, neither the load of the machine nor the speed of its processor
//! affects the result.
//!
//! Most file systems run in the running kernel. JFS and ReiserFS, which few kernels have today, run
//! in a kernel on a machine that qemu emulates (`guest`).
//!
//! Left out: the host's own time, and the paper's kernels; today's are used instead.

mod coalesce;
mod file_system;
mod guest;
mod replay;
mod session;
mod tree;

use std::env;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

pub use file_system::FileSystem;
pub use guest::missing as missing_guest;
pub use replay::RequestStream;
pub use session::{KernelHost, Phase, Session, unavailable_reason};
pub use tree::write_tarball;

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};

/// The largest request, in logical sectors, that Linux sent to a SATA drive at the time of the
/// paper (`max_sectors_kb` of 512). Recorded kernels have the same limit, and send larger requests
/// only to write zeros.
const REQUEST_MAX: u32 = 1024;

/// The first sectors of the aligned and of the unaligned partition.
const FIRST_SECTORS: [u64; 2] = [40, 34];

/// The drives, and the MiB of the tarball on each.
pub const DRIVES: [(&str, u64); 3] = [("wd10ears", 365), ("st2000l003", 451), ("dt01aca300", 451)];

/// The seconds that a drive takes for the phases of [`Phase::ALL`].
#[derive(Clone, Debug)]
pub struct Times {
    /// The file system.
    pub kind: FileSystem,
    /// The times on an aligned partition.
    pub aligned: Vec<f64>,
    /// The times on an unaligned partition.
    pub unaligned: Vec<f64>,
}

impl Times {
    /// Returns unaligned over aligned, phase by phase.
    pub fn ratios(&self) -> Vec<f64> {
        let pairs = self.unaligned.iter().zip(&self.aligned);
        pairs
            .map(|(unaligned, aligned)| unaligned / aligned)
            .collect()
    }
}

/// Runs the phases on a file system of a machine twice, aligned and unaligned, on the drive of a
/// bench.
///
/// The tarball has `mib` MiB, and the program at `traxtent` serves the drive. The drive holds up to
/// `held_sectors` sectors of writes (0: none, as in the model). Recordings are kept in `folder` and
/// reused from there.
///
/// # Errors
/// Returns the errors of [`Session::seconds`].
pub fn times(
    bench: &Bench,
    (machine, kind): (KernelHost, FileSystem),
    mib: u64,
    held_sectors: u64,
    traxtent: &Path,
    folder: &Path,
) -> Result<Times, LabError> {
    let seconds = |first_sector| {
        let session = Session {
            drive: bench.profile.name.clone(),
            machine,
            kind,
            first_sector,
            mib,
            seed: bench.seed,
        };
        session.seconds(traxtent, folder, bench, held_sectors)
    };
    let [aligned, unaligned] = FIRST_SECTORS.map(seconds);
    Ok(Times {
        kind,
        aligned: aligned?,
        unaligned: unaligned?,
    })
}

/// Measures file systems of a machine on the drive of a bench, with the paper's tarball.
fn all(bench: &Bench, machine: KernelHost, kinds: &[FileSystem]) -> Result<Vec<Times>, LabError> {
    let missing = match machine {
        KernelHost::Host => unavailable_reason(),
        KernelHost::Guest => missing_guest(),
    };
    if let Some(reason) = missing {
        return Err(LabError::Host(reason));
    }
    let traxtent = server()?;
    let temporary = TempDir::new().map_err(|error| LabError::file(&env::temp_dir(), error))?;
    let folder = bench.recordings.as_deref().unwrap_or(temporary.path());
    let drive = DRIVES.iter().find(|(name, _)| *name == bench.profile.name);
    let mib = bench.scaled_count(drive.map_or(451, |(_, mib)| *mib));
    let of = |kind: &FileSystem| times(bench, (machine, *kind), mib, 0, &traxtent, folder);
    kinds.iter().map(of).collect()
}

/// Returns the program that serves drives: this one if it is `traxtent`, otherwise an installed
/// one.
fn server() -> Result<PathBuf, LabError> {
    const NAME: &str = "traxtent";
    let own = env::current_exe().ok();
    own.filter(|path| path.file_stem().is_some_and(|stem| stem == NAME))
        .or_else(|| guest::found(NAME))
        .ok_or_else(|| LabError::Host(format!("{NAME} is not installed")))
}

/// Returns the mean ratios of unaligned to aligned times over the file systems of this machine:
/// making the file system, extracting, copying, removing; the smallest of these four; reading the
/// tree, reading the tarball.
pub(crate) fn penalties(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let all = all(bench, KernelHost::Host, &FileSystem::OF_HOST)?;
    let mean = |phase: Phase| {
        let index = Phase::ALL.iter().position(|known| *known == phase);
        let index = index.expect("a phase is in the list");
        all.iter().map(|times| times.ratios()[index]).sum::<f64>() / all.len() as f64
    };
    let mut means = [Phase::Make, Phase::Extract, Phase::Copy, Phase::Remove]
        .map(mean)
        .to_vec();
    means.push(means.iter().copied().fold(f64::INFINITY, f64::min));
    means.extend([Phase::ReadTree, Phase::ReadTarball].map(mean));
    Ok(means)
}

/// Returns the ratio of unaligned to aligned times in each phase, for a file system of a guest.
pub(crate) fn penalties_in_guest(bench: &Bench, kind: FileSystem) -> Result<Vec<f64>, LabError> {
    let times = all(bench, KernelHost::Guest, &[kind])?;
    Ok(times.iter().flat_map(Times::ratios).collect())
}

/// Draws the ratios of unaligned to aligned times, for the file systems of this machine.
pub(crate) fn figure(bench: &Bench) -> Result<Figure, LabError> {
    drawn(bench, KernelHost::Host, &FileSystem::OF_HOST)
}

/// Draws the ratios of unaligned to aligned times, for the file systems of a guest.
pub(crate) fn figure_of_guest(bench: &Bench) -> Result<Figure, LabError> {
    drawn(bench, KernelHost::Guest, &FileSystem::OF_GUEST)
}

/// Draws one panel per drive, one cluster per phase, and one point per file system.
fn drawn(bench: &Bench, machine: KernelHost, kinds: &[FileSystem]) -> Result<Figure, LabError> {
    let panel = |(name, _): &(&str, u64)| {
        let all = all(&bench.with_drive(name)?, machine, kinds)?;
        let points = |(kind, times): (u32, &Times)| {
            let place = |phase: u32| f64::from(1 + phase) + 0.15 * (f64::from(kind) - 1.5);
            Series {
                name: times.kind.name().to_owned(),
                style: Style::Dots,
                points: (0..).map(place).zip(times.ratios()).collect(),
            }
        };
        let names = (1..)
            .zip(Phase::ALL)
            .map(|(number, phase)| format!("{number} {}", phase.name()));
        Ok(Panel {
            title: (*name).to_owned(),
            x: names.collect::<Vec<_>>().join(", "),
            y: "unaligned over aligned".to_owned(),
            series: (0..).zip(&all).map(points).collect(),
            ..Panel::default()
        })
    };
    let panels = DRIVES.iter().map(panel).collect::<Result<_, LabError>>()?;
    Ok(Figure { panels })
}

//! Runs file systems of a kernel on a served drive, and records the requests that they send.
//!
//! The drive is served by `traxtent serve`, and its time passes [`SPEED`] times as fast as the
//! kernel's. The running kernel reaches it through nbdfuse and a loop device (`phase.sh`). File
//! systems that this kernel lacks run on a machine that qemu emulates, with the drive as its disk
//! (`guest.sh`). Only the drive's request log is kept.

use std::env;
use std::fs::{self, File};
use std::path::Path;
use std::process::{Command, Stdio};

use traxtent_model::profile::Profile;
use traxtent_units::Lbn;

use super::file_system::FileSystem;
use super::guest::{self, found};
use super::replay::RequestStream;
use super::tree;
use crate::bench::{Bench, LabError};

/// A phase of a session. All but the first begin with mounting the file system and end with
/// unmounting it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Phase {
    /// Make a file system.
    Make,
    /// Extract the tarball.
    Extract,
    /// Copy the tarball.
    Copy,
    /// Read every file of the tree.
    ReadTree,
    /// Read the tarball.
    ReadTarball,
    /// Remove the tree.
    Remove,
}

impl Phase {
    /// All phases, in order.
    pub const ALL: [Phase; 6] = [
        Phase::Make,
        Phase::Extract,
        Phase::Copy,
        Phase::ReadTree,
        Phase::ReadTarball,
        Phase::Remove,
    ];

    /// The name of the phase, for the scripts and in tables.
    pub fn name(self) -> &'static str {
        match self {
            Phase::Make => "mkfs",
            Phase::Extract => "extract",
            Phase::Copy => "copy",
            Phase::ReadTree => "read-tree",
            Phase::ReadTarball => "read-tarball",
            Phase::Remove => "remove",
        }
    }
}

/// The machine whose kernel does the work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum KernelHost {
    /// This machine.
    Host,
    /// A machine that qemu emulates, with the kernel that `guest` finds.
    Guest,
}

/// One run through all phases.
#[derive(Clone, Debug)]
pub struct Session {
    /// The name of a built-in drive.
    pub drive: String,
    /// The machine whose kernel does the work.
    pub machine: KernelHost,
    /// The file system.
    pub kind: FileSystem,
    /// The sector at which the partition begins.
    pub first_sector: u64,
    /// The size of the tarball in MiB.
    pub mib: u64,
    /// The seed of the tree.
    pub seed: u64,
}

/// The factor by which the drive's time is accelerated while a session is recorded.
const SPEED: u32 = 1000;
/// The size of the partition in bytes. The paper does not state it.
const PARTITION_BYTES: u64 = 20 << 30;

/// Returns the reason why the requests of this machine's kernel cannot be recorded, if there is
/// one.
pub fn unavailable_reason() -> Option<String> {
    let programs = [
        "nbdfuse",
        "losetup",
        "mount",
        "umount",
        "tar",
        "find",
        "mke2fs",
        "mkfs.xfs",
        "mkfs.btrfs",
    ];
    if let Some(name) = programs.iter().find(|name| found(name).is_none()) {
        return Some(format!("{name} is not installed"));
    }
    let closed = |path: &&str| File::options().write(true).open(path).is_err();
    let devices = ["/dev/fuse", "/dev/loop-control"];
    if let Some(device) = devices.iter().find(|path| closed(path)) {
        return Some(format!("{device} cannot be opened for writing"));
    }
    let unknown = FileSystem::OF_HOST
        .into_iter()
        .find(|kind| !kind.is_supported())?;
    Some(format!("this kernel does not support {}", unknown.name()))
}

impl Session {
    /// The name of the session's directory among the recordings.
    fn name(&self) -> String {
        let Session {
            drive,
            machine,
            kind,
            first_sector,
            mib,
            seed,
        } = self;
        let machine = match machine {
            KernelHost::Host => "",
            KernelHost::Guest => "guest-",
        };
        format!(
            "{drive}-{machine}{}-{first_sector}-{mib}-{seed}",
            kind.name()
        )
    }

    /// Returns the requests that the kernel sends in each phase. They are read from `folder` if
    /// they have been recorded there; otherwise they are recorded now with the program `traxtent`,
    /// and kept.
    ///
    /// # Errors
    /// Returns an error if the drive is unknown, if the kernel has no such file system, if a
    /// program fails, or if a file cannot be used.
    pub fn streams(&self, traxtent: &Path, folder: &Path) -> Result<Vec<RequestStream>, LabError> {
        let place = folder.join(self.name());
        if !place.exists() {
            self.record(traxtent, folder, &place)?;
        }
        let sectors = PARTITION_BYTES / sector_bytes(&self.drive)?;
        let partition = Lbn(self.first_sector)..Lbn(self.first_sector + sectors);
        let read = |phase: &Phase| {
            let log = place.join(phase.name()).with_extension("csv");
            RequestStream::read(&log, &partition)
        };
        Phase::ALL.iter().map(read).collect()
    }

    /// Records into a directory that appears only once it is complete.
    fn record(&self, traxtent: &Path, folder: &Path, place: &Path) -> Result<(), LabError> {
        let at = |path: &Path| {
            let path = path.to_owned();
            move |error| LabError::file(&path, error)
        };
        fs::create_dir_all(folder).map_err(at(folder))?;
        let partial = tempfile::TempDir::new_in(folder).map_err(at(folder))?;
        // The source must not be on the disk under test, and must be fast: in memory where
        // possible.
        let fast = tempfile::TempDir::new_in("/dev/shm").or_else(|_| {
            let usual = env::temp_dir();
            tempfile::TempDir::new_in(&usual).map_err(at(&usual))
        })?;
        let tarball = fast.path().join("tarball");
        tree::write_tarball(&tarball, self.mib, self.seed).map_err(at(&tarball))?;
        for phase in Phase::ALL {
            let log = partial.path().join(phase.name()).with_extension("csv");
            self.phase(traxtent, phase, fast.path(), &tarball, &log)?;
        }
        match fs::rename(partial.path(), place) {
            // Another process has recorded the same session in the meantime.
            Err(_) if place.exists() => Ok(()),
            renamed => renamed.map_err(at(place)),
        }
    }

    fn phase(
        &self,
        traxtent: &Path,
        phase: Phase,
        folder: &Path,
        tarball: &Path,
        log: &Path,
    ) -> Result<(), LabError> {
        let sector = sector_bytes(&self.drive)?;
        let mut command = Command::new(traxtent);
        command.args([
            "serve",
            &self.drive,
            "--speed",
            &SPEED.to_string(),
            "--file",
        ]);
        command.arg(folder.join("data")).arg("--log").arg(log);
        let partition = [self.first_sector * sector, PARTITION_BYTES];
        let (name, script, unit) = match self.machine {
            KernelHost::Host => ("phase.sh", include_str!("phase.sh"), 1),
            KernelHost::Guest => ("guest.sh", include_str!("guest.sh"), sector),
        };
        command.args(["--", "sh", "-c", script, name]);
        command.args([phase.name(), self.kind.name()]);
        command.args(partition.map(|bytes| (bytes / unit).to_string()));
        command.arg(folder).arg(tarball).stdin(Stdio::null());
        if self.machine == KernelHost::Guest {
            let kernel = guest::Kernel::find().map_err(LabError::Host)?;
            command.arg(kernel.root).arg(kernel.release);
        }
        let output = command
            .output()
            .map_err(|error| LabError::file(traxtent, error))?;
        if output.status.success() {
            return Ok(());
        }
        let stderr = String::from_utf8_lossy(&output.stderr);
        // Drop the notes of `serve` itself.
        let lines = stderr
            .lines()
            .filter(|line| !line.starts_with("traxtent: note: "));
        Err(LabError::Host(format!(
            "{} on {}, {}: {}",
            self.kind.name(),
            self.drive,
            phase.name(),
            lines.collect::<Vec<_>>().join("; ")
        )))
    }

    /// Returns the seconds that the drive takes for each phase. The drive holds up to
    /// `held_sectors` sectors of writes (0: none, as in the model).
    ///
    /// # Errors
    /// Returns the errors of [`Session::streams`], or an error if the drive refuses a request.
    pub fn seconds(
        &self,
        traxtent: &Path,
        folder: &Path,
        on: &Bench,
        held_sectors: u64,
    ) -> Result<Vec<f64>, LabError> {
        let streams = self.streams(traxtent, folder)?;
        let time = |stream: &RequestStream| Ok(stream.time(on, held_sectors)?.as_ms() / 1000.0);
        streams.iter().map(time).collect()
    }
}

fn sector_bytes(drive: &str) -> Result<u64, LabError> {
    let profile: Option<Profile> = traxtent_model::profile::builtin(drive);
    let profile = profile.ok_or_else(|| LabError::UnknownDrive(drive.to_owned()))?;
    Ok(u64::from(profile.sector.logical_bytes))
}

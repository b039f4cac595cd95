//! The subject of a probe: a simulated drive, or a device.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_io::device::guard::check_unused;
use traxtent_io::device::{self, Device, DeviceError};
use traxtent_probe::Target;
use traxtent_sim::{Noise, SimTarget};

use super::Args;
use crate::failure::{Failure, Result, note, warn};
use crate::machine::load;
use traxtent_check::content::all_content;

/// Whether a probe may write to a device.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Writes {
    /// Never.
    None,
    /// Only if no content is recognized.
    ToBlank,
    /// Also over content.
    Forced,
}

impl Writes {
    pub(super) fn of(args: &Args) -> Writes {
        match (args.destructive, args.force) {
            (false, _) => Writes::None,
            (true, false) => Writes::ToBlank,
            (true, true) => Writes::Forced,
        }
    }
}

/// A drive to probe, with its name.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) target: Box<dyn Target>,
    /// The files that describe a simulated drive, or the device.
    pub(super) files: Arc<[PathBuf]>,
}

impl Subject {
    /// Opens a target. `noise` is the seed of the noise on a simulated drive's clock.
    pub(super) fn open(text: &str, noise: Option<u64>, writes: Writes) -> Result<Subject> {
        if let traxtent_run::Target::File(path) = traxtent_run::Target::parse(text)?
            && is_device(&path)
        {
            if noise.is_some() {
                return Err(Failure::input(format!(
                    "--noise: {text} is not a simulated drive"
                )));
            }
            traxtent_run::refuse_parameters(&path)?;
            return Ok(Subject {
                name: text.to_owned(),
                target: Box::new(open_device(&path, writes)?),
                files: [path].into(),
            });
        }
        let drive = load(text)?.only_drive()?;
        if drive.profile.mechanics.is_none() {
            return Err(Failure::Finding(format!(
                "{}: not a rotating disk: its profile has no mechanics",
                drive.name
            )));
        }
        let mut simulated = SimTarget::new(Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
        if let Some(seed) = noise {
            simulated = simulated.with_noise(Noise::TYPICAL, seed);
        }
        Ok(Subject {
            name: drive.name,
            target: Box::new(simulated),
            files: drive.files,
        })
    }
}

/// Returns whether a path names a device, or an image of one, and not a profile. The type of the
/// file and its name decide. In `/dev`, missing files and directories count as devices too, so that
/// the error is about a device, not about a profile.
fn is_device(path: &Path) -> bool {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    match std::fs::metadata(path) {
        Ok(there) if there.is_dir() => path.starts_with("/dev"),
        Ok(there) if there.is_file() => !name.contains(".toml"),
        Ok(_) => true,
        Err(_) => path.starts_with("/dev"),
    }
}

/// Opens a device, or an image of one, for a probe.
pub(super) fn open_device(path: &Path, writes: Writes) -> Result<Device> {
    let destructive = writes != Writes::None;
    if destructive {
        check_unused(path).map_err(|error| Failure::Io(format!("--destructive {error}")))?;
    }
    if writes == Writes::ToBlank
        && let Some(what) = all_content(path)
    {
        let why = format!("the device holds {what}; --force overwrites parts of it");
        return Err(Failure::at(
            format!("--destructive: {}", path.display()),
            why,
        ));
    }
    let failed = |error: DeviceError| Failure::Io(error.to_string());
    let mut opened = device::open(path).map_err(failed)?;
    for says in opened.notes() {
        note(says);
    }
    if destructive {
        let Device::Scsi(drive) = &mut opened else {
            return Err(Failure::Io(format!(
                "--destructive: {}: needs a drive that accepts SCSI commands",
                path.display()
            )));
        };
        warn(format!(
            "parts of the content of {} will be overwritten",
            path.display()
        ));
        drive.allow_writes();
    }
    Ok(opened)
}

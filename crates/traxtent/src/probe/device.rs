//! What is probed: a simulated drive, or a device.

use std::fs;
use std::os::unix::fs::FileTypeExt;
use std::path::Path;
use std::sync::Arc;

use traxtent_core::probe::Target;
use traxtent_exec::{Noise, SimTarget};

use crate::failure::{Failure, Result};
use crate::target::{self, Machine};

/// A drive that answers, and what it is called.
pub(super) struct Subject {
    pub(super) name: String,
    pub(super) target: Box<dyn Target>,
}

impl Subject {
    /// Opens a target; the seed is that of the noise on its clock.
    pub(super) fn open(text: &str, noise: Option<u64>) -> Result<Subject> {
        if let target::Target::File(path) = target::Target::parse(text)?
            && is_device(&path)?
        {
            if noise.is_some() {
                return Err(Failure::input(format!(
                    "--noise: {text} is no simulated drive"
                )));
            }
            return Ok(Subject {
                name: text.to_owned(),
                target: open_device(&path)?,
            });
        }
        let drive = Machine::load(text)?.only_drive()?;
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
        })
    }
}

/// Whether a path is a device node.
fn is_device(path: &Path) -> Result<bool> {
    match fs::metadata(path) {
        Ok(meta) => {
            let kind = meta.file_type();
            Ok(kind.is_block_device() || kind.is_char_device())
        }
        Err(error) if path.starts_with("/dev") => Err(Failure::file(path, &error)),
        Err(_) => Ok(false),
    }
}

fn open_device(path: &Path) -> Result<Box<dyn Target>> {
    Err(Failure::Io(format!(
        "{}: this build probes no devices",
        path.display()
    )))
}

//! The checkpoint of a probe: its results so far, in a file that is replaced atomically.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use traxtent_check::plan::fix::quoted;
use traxtent_map::MapFile;
use traxtent_run::read_map;

use super::Args;
use crate::failure::{Failure, Result, note};
use crate::invocation;
use crate::output;

/// The interval at which the file is written. A shorter probe has no checkpoint, unless it
/// ends early.
const WRITE_INTERVAL: Duration = Duration::from_secs(5);

/// Returns the path of the checkpoint: the one in the options, or else one next to the map, or else
/// one in the current directory.
pub(super) fn path(args: &Args, name: &str) -> PathBuf {
    args.checkpoint.clone().unwrap_or_else(|| {
        let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
        let drive: String = name.trim_matches('/').chars().map(plain).collect();
        let mut path = args.map.clone().unwrap_or_else(|| drive.into());
        path.as_mut_os_string().push(".checkpoint");
        path
    })
}

/// A checkpoint file, which possibly does not exist yet.
pub(super) struct Checkpoint {
    path: PathBuf,
    /// The time of the last write, or the start of the probe.
    last: Instant,
    /// Whether the file belongs to this probe.
    ours: bool,
}

impl Checkpoint {
    /// Returns the checkpoint at the [`path`] of the probe, without creating the file.
    pub(super) fn new(args: &Args, name: &str) -> Checkpoint {
        Checkpoint {
            path: path(args, name),
            last: Instant::now(),
            ours: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads the checkpoint of a stopped probe.
    pub(super) fn read(&mut self) -> Result<MapFile> {
        let file = read_map(&self.path)?;
        self.ours = true;
        file.ok_or_else(|| Failure::at(self.path.display(), "is not a probe's checkpoint"))
    }

    /// Refuses to begin if a stopped probe has left a checkpoint.
    pub(super) fn refuse_existing(&self) -> Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        Err(Failure::at(
            self.path.display(),
            "a probe was stopped here; use --resume to continue it, or remove the file to start again",
        ))
    }

    /// Returns whether the file should be written again.
    pub(super) fn due(&self) -> bool {
        self.last.elapsed() >= WRITE_INTERVAL
    }

    /// Makes the checkpoint due, as if the interval had passed.
    #[cfg(test)]
    pub(super) fn be_due(&mut self) {
        self.last -= WRITE_INTERVAL;
    }

    /// Writes a new file, and synchronizes it to the disk before it replaces the old one.
    pub(super) fn write(&mut self, file: &MapFile) -> Result<()> {
        self.last = Instant::now();
        self.ours = true;
        output::write_synced(&self.path, file.to_text().as_bytes())
    }

    /// Prints the command that continues from the file, if it belongs to this probe.
    pub(super) fn say_how_to_continue(&self) {
        if self.ours {
            let path = self.path.display();
            note(format!(
                "{path} has the tracks; to continue: {}",
                resume_with()
            ));
        }
    }

    /// Removes the file if it belongs to this probe.
    pub(super) fn remove(&self) {
        if self.ours {
            // A file that cannot be removed does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

/// Returns the command that continues from the checkpoint. It repeats the options, which determine
/// the checkpoint's path.
pub(super) fn resume_with() -> String {
    let given = invocation::current().arguments;
    let given = given.iter().map(|word| quoted(&word.to_string_lossy()));
    let mut words: Vec<String> = given.collect();
    if !words.iter().any(|word| word == "--resume") {
        words.push("--resume".to_owned());
    }
    format!("traxtent {}", words.join(" "))
}

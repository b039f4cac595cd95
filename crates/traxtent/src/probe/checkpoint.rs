//! What has been found so far, in a file that is always whole.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use traxtent_core::trackmap::MapFile;

use super::Args;
use crate::failure::{Failure, Result};
use crate::map::read_map;
use crate::output;

/// So often the file is written. A probe that takes less has none, unless it is stopped.
const EVERY: Duration = Duration::from_secs(5);

/// A checkpoint file, which may not be there yet.
pub(super) struct Checkpoint {
    path: PathBuf,
    /// When it was written last, or the probe began.
    last: Instant,
    /// Whether it is this probe's own.
    ours: bool,
}

impl Checkpoint {
    /// Where the options say, or beside the map, or in the current folder.
    pub(super) fn new(args: &Args, name: &str) -> Checkpoint {
        let path = args.checkpoint.clone().unwrap_or_else(|| {
            let plain = |c: char| if c.is_alphanumeric() { c } else { '-' };
            let drive: String = name.trim_matches('/').chars().map(plain).collect();
            let mut path = args.map.clone().unwrap_or_else(|| drive.into());
            path.as_mut_os_string().push(".checkpoint");
            path
        });
        Checkpoint {
            path,
            last: Instant::now(),
            ours: false,
        }
    }

    pub(super) fn path(&self) -> &Path {
        &self.path
    }

    /// Reads what a stopped probe has left.
    pub(super) fn read(&mut self) -> Result<MapFile> {
        let file = read_map(&self.path)?;
        self.ours = true;
        file.ok_or_else(|| Failure::at(self.path.display(), "is no checkpoint of a probe"))
    }

    /// Refuses to begin where a stopped probe has left something.
    pub(super) fn refuse_existing(&self) -> Result<()> {
        if !self.path.exists() {
            return Ok(());
        }
        Err(Failure::at(
            self.path.display(),
            "a probe was stopped here: --resume goes on with it; remove the file to begin again",
        ))
    }

    /// Whether it is time to write it again.
    pub(super) fn due(&self) -> bool {
        self.last.elapsed() >= EVERY
    }

    /// Writes the file: a new one beside it takes its name when it is on the disk.
    pub(super) fn write(&mut self, file: &MapFile) -> Result<()> {
        self.last = Instant::now();
        self.ours = true;
        output::write_synced(&self.path, file.to_text().as_bytes())
    }

    /// Removes the file when it is no longer needed.
    pub(super) fn remove(&self) {
        if self.ours {
            // One that cannot be removed does no harm.
            let _ = fs::remove_file(&self.path);
        }
    }
}

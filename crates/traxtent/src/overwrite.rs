//! Refusal of outputs that would overwrite an input of the same command, or each other.
//!
//! Existing files are compared by device and inode, so that another spelling of a path, a symbolic
//! link and a hard link are recognized. Replacing an older result remains possible. Pipes,
//! terminals and other special files are not checked.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};

/// Checks the outputs of a command, each with its option, before anything is written.
pub(crate) fn check<'a>(
    inputs: impl IntoIterator<Item = &'a Path>,
    outputs: &[(&str, Option<&Path>)],
) -> Result<()> {
    let existing = |identity: &FileIdentity| !matches!(identity, FileIdentity::New(_));
    let inputs = inputs.into_iter().filter_map(FileIdentity::of);
    let inputs: Vec<FileIdentity> = inputs.filter(existing).collect();
    let mut earlier: Vec<(FileIdentity, &str)> = Vec::new();
    for (option, path) in outputs {
        let Some(path) = path else { continue };
        let Some(identity) = FileIdentity::of(path) else {
            continue;
        };
        let subject = format!("{option} {}", path.display());
        if inputs.contains(&identity) {
            let why = "is a file that this command reads; name another file";
            return Err(Failure::at(subject, why));
        }
        if let Some((_, other)) = earlier.iter().find(|(other, _)| *other == identity) {
            let why = format!("is also the file of {other}; name another file");
            return Err(Failure::at(subject, why));
        }
        earlier.push((identity, option));
    }
    Ok(())
}

/// The identity of a regular file, or of a file to be created.
#[derive(PartialEq, Eq)]
enum FileIdentity {
    Existing {
        device: u64,
        inode: u64,
    },
    /// A file that does not exist yet: its path, with the links in its directory resolved.
    New(PathBuf),
}

impl FileIdentity {
    /// Returns the identity of a file; `None` if the path names something else.
    fn of(path: &Path) -> Option<FileIdentity> {
        match fs::metadata(path) {
            Ok(meta) => meta.is_file().then(|| FileIdentity::Existing {
                device: meta.dev(),
                inode: meta.ino(),
            }),
            Err(_) => {
                let path = std::path::absolute(path).ok()?;
                let folder = fs::canonicalize(path.parent()?).ok();
                let new = folder.map(|folder| folder.join(path.file_name().unwrap_or_default()));
                Some(FileIdentity::New(new.unwrap_or(path)))
            }
        }
    }
}

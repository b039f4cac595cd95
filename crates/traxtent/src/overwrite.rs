//! Refusal of outputs that would overwrite an input of the same command, each other, or a file that
//! is no older output.
//!
//! Existing files are compared by device and inode, so that another spelling of a path, a symbolic
//! link and a hard link are recognized. A file that is empty or has the output's format can be
//! replaced, so that scripts can run again; a disk image, for example, cannot. Pipes, terminals and
//! other special files are not checked.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::path::{Path, PathBuf};

use crate::failure::{Failure, Result};
use traxtent_check::content::known_content;

pub(crate) use traxtent_run::OutputFormat;

/// An output of a command: its option, its path if the option is given, and its format.
///
/// Without a format, existing files are not examined. The command then handles them itself.
pub(crate) type OutputFile<'a> = (&'a str, Option<&'a Path>, Option<OutputFormat>);

/// Checks the outputs of a command. Called before anything is written, and before long work.
pub(crate) fn check<'a>(
    inputs: impl IntoIterator<Item = &'a Path>,
    outputs: &[OutputFile<'_>],
) -> Result<()> {
    let existing = |identity: &FileIdentity| !matches!(identity, FileIdentity::New(_));
    let inputs = inputs.into_iter().filter_map(FileIdentity::of);
    let inputs: Vec<FileIdentity> = inputs.filter(existing).collect();
    let mut earlier: Vec<(FileIdentity, &str)> = Vec::new();
    for (option, path, format) in outputs {
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
        if let (FileIdentity::Existing { .. }, Some(format)) = (&identity, format) {
            check_replaceable(&subject, path, *format)?;
        }
        earlier.push((identity, option));
    }
    Ok(())
}

/// Refuses to replace a file of another format. The name of its content is part of the message.
fn check_replaceable(subject: &str, path: &Path, format: OutputFormat) -> Result<()> {
    if format.can_replace(path)? {
        return Ok(());
    }
    let why = format.refusal(known_content(path).as_deref());
    Err(Failure::at(subject, why))
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

//! A stack in a file, written by `--collect`, to be checked elsewhere.
//!
//! It holds the name of the machine, the parsed layers and the kernel's I/O limits of the devices.
//! From the media it holds only what the parsers returned: no user data, no key material, no
//! labels. A later version of traxtent therefore cannot extract more from an old file.

use serde::{Deserialize, Serialize};

use crate::stack::{Stack, StackError};

/// The value of the `format` field.
const FORMAT: &str = "traxtent stack";

/// The version of the file format that is written and read.
pub const VERSION: u32 = 1;

/// The stack of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct StackArchive {
    /// [`FORMAT`].
    format: String,
    /// [`VERSION`].
    version: u32,
    /// The name of the machine.
    pub host: String,
    /// The layers that were found there.
    pub stack: Stack,
}

/// The reasons why bytes are not a valid archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// They are not JSON, or do not have an archive's fields.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// The file has another format or version.
    #[error(
        "the format is {found:?}, version {version}; only {FORMAT:?}, version {VERSION}, can be read"
    )]
    Version {
        /// The format that the file states.
        found: String,
        /// The version that the file states.
        version: u32,
    },
    /// Its layers do not fit together.
    #[error(transparent)]
    Stack(#[from] StackError),
}

impl StackArchive {
    /// Wraps the stack of a machine.
    pub fn new(host: String, stack: Stack) -> StackArchive {
        StackArchive {
            format: FORMAT.to_owned(),
            version: VERSION,
            host,
            stack,
        }
    }

    /// Returns whether the first bytes of a file, `start`, look like an archive.
    pub fn recognize(start: &[u8]) -> bool {
        let start = &start[..start.len().min(64)];
        start.first() == Some(&b'{')
            && start
                .windows(FORMAT.len())
                .any(|bytes| bytes == FORMAT.as_bytes())
    }

    /// Returns the archive as the bytes of a file.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes = serde_json::to_vec_pretty(self).expect("a stack can be serialized");
        bytes.push(b'\n');
        bytes
    }

    /// Parses the bytes of a file.
    ///
    /// # Errors
    /// Returns an error if the bytes are not an archive of this version, or if the layers do not
    /// fit together.
    pub fn read(bytes: &[u8]) -> Result<StackArchive, ArchiveError> {
        let archive: StackArchive = serde_json::from_slice(bytes)?;
        if archive.format != FORMAT || archive.version != VERSION {
            return Err(ArchiveError::Version {
                found: archive.format,
                version: archive.version,
            });
        }
        archive.stack.check()?;
        Ok(archive)
    }
}

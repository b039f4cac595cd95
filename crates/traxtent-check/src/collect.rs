//! A stack in a file, so that it is checked elsewhere: what `--collect` writes.
//!
//! It holds the layers as they were understood, and what the kernel says of devices. No byte of the media is in it: no
//! data of users, no key material, no labels. So a later version learns nothing new from an old file.

use serde::{Deserialize, Serialize};

use crate::stack::{Stack, StackError};

/// What such a file says that it is.
const FORMAT: &str = "traxtent stack";

/// The version of such files that is written and read.
pub const VERSION: u32 = 1;

/// The stack of a machine.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Archive {
    /// [`FORMAT`].
    format: String,
    /// [`VERSION`].
    version: u32,
    /// The machine that it is of.
    pub host: String,
    /// What was found there.
    pub stack: Stack,
}

/// Why bytes are no archive.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ArchiveError {
    /// They are no JSON, or something in them has no place there.
    #[error("{0}")]
    Json(#[from] serde_json::Error),
    /// It is of another version.
    #[error("is a {found:?} of version {version}; {FORMAT:?} of version {VERSION} is read")]
    Version {
        /// What it says that it is.
        found: String,
        /// Its version.
        version: u32,
    },
    /// Its layers do not fit together.
    #[error(transparent)]
    Stack(#[from] StackError),
}

impl Archive {
    /// The stack of a machine.
    pub fn new(host: String, stack: Stack) -> Archive {
        Archive {
            format: FORMAT.to_owned(),
            version: VERSION,
            host,
            stack,
        }
    }

    /// Whether bytes begin as an archive does.
    pub fn recognize(start: &[u8]) -> bool {
        let start = &start[..start.len().min(64)];
        start.first() == Some(&b'{')
            && start
                .windows(FORMAT.len())
                .any(|bytes| bytes == FORMAT.as_bytes())
    }

    /// The bytes of a file.
    pub fn write(&self) -> Vec<u8> {
        let mut bytes =
            serde_json::to_vec_pretty(self).expect("a stack has nothing that JSON cannot hold");
        bytes.push(b'\n');
        bytes
    }

    /// Reads the bytes of a file.
    ///
    /// # Errors
    /// If they are no archive of this version, or its layers do not fit together.
    pub fn read(bytes: &[u8]) -> Result<Archive, ArchiveError> {
        let archive: Archive = serde_json::from_slice(bytes)?;
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

//! Bytes at offsets: a device, an image, a part of either, or bytes in memory.
//!
//! Everything is opened for reading only. Reads are positioned, so the work on a sparse image of
//! terabytes depends only on the parts that are read.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::rc::Rc;

use traxtent_units::system_message;

/// A readable sequence of bytes.
pub trait Source {
    /// Returns the length in bytes.
    fn bytes(&self) -> u64;

    /// Fills `buffer` with the bytes that start at `offset`.
    ///
    /// # Errors
    /// Returns an error if any of the bytes lies beyond the end, is absent, or cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError>;
}

/// The reason why bytes cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// Some of the bytes lie beyond the end.
    #[error("bytes {offset}..{} extend beyond the end at {bytes}", offset.saturating_add(*wanted))]
    Beyond {
        /// The first byte requested.
        offset: u64,
        /// The number of bytes requested.
        wanted: u64,
        /// The length of the source.
        bytes: u64,
    },
    /// Some of the bytes lie on a device that is not available.
    #[error("the bytes from {offset} lie on a member that is not available")]
    Absent {
        /// The first byte that is not available.
        offset: u64,
    },
    /// The system reports an error.
    #[error("cannot read at byte {offset}: {reason}")]
    Io {
        /// The first byte requested.
        offset: u64,
        /// The system's message.
        reason: String,
    },
}

impl dyn Source + '_ {
    /// Returns `count` bytes that start at `offset`.
    ///
    /// # Errors
    /// See [`Source::read_at`].
    pub fn read(&self, offset: u64, count: usize) -> Result<Vec<u8>, SourceError> {
        // This check precedes the allocation, because a header may state any length.
        check_range(offset, count as u64, self.bytes())?;
        let mut buffer = vec![0; count];
        self.read_at(offset, &mut buffer)?;
        Ok(buffer)
    }

    /// Returns up to `count` bytes that start at `offset`, fewer if the end comes first.
    ///
    /// # Errors
    /// See [`Source::read_at`].
    pub fn read_up_to(&self, offset: u64, count: usize) -> Result<Vec<u8>, SourceError> {
        let left = self.bytes().saturating_sub(offset);
        self.read(offset.min(self.bytes()), left.min(count as u64) as usize)
    }
}

fn check_range(offset: u64, wanted: u64, bytes: u64) -> Result<(), SourceError> {
    match offset.checked_add(wanted) {
        Some(end) if end <= bytes => Ok(()),
        _ => Err(SourceError::Beyond {
            offset,
            wanted,
            bytes,
        }),
    }
}

/// An image file or a block device.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    bytes: u64,
}

impl FileSource {
    /// Opens a regular file or a block device for reading.
    ///
    /// # Errors
    /// Returns an error if the path is neither, or cannot be opened.
    pub fn open(path: &Path) -> io::Result<FileSource> {
        let kind = std::fs::metadata(path)?.file_type();
        // Opening a pipe would wait for its other end.
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::Error::other(
                "neither a regular file nor a block device",
            ));
        }
        let file = File::open(path)?;
        let bytes = if kind.is_block_device() {
            // The metadata of a device has no length, but its end can be found by seeking.
            io::Seek::seek(&mut &file, io::SeekFrom::End(0))?
        } else {
            file.metadata()?.len()
        };
        Ok(FileSource { file, bytes })
    }
}

impl Source for FileSource {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        check_range(offset, buffer.len() as u64, self.bytes)?;
        self.file
            .read_exact_at(buffer, offset)
            .map_err(|error| SourceError::Io {
                offset,
                reason: system_message(&error),
            })
    }
}

/// Bytes in memory.
impl Source for [u8] {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        check_range(offset, buffer.len() as u64, self.len() as u64)?;
        let first = offset as usize;
        buffer.copy_from_slice(&self[first..first + buffer.len()]);
        Ok(())
    }
}

impl Source for Vec<u8> {
    fn bytes(&self) -> u64 {
        self.len() as u64
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        self.as_slice().read_at(offset, buffer)
    }
}

/// Pieces of other sources, one after another. The bytes of a piece without a source are absent.
#[derive(Clone, Default)]
pub struct JoinedSource {
    pieces: Vec<Piece>,
    bytes: u64,
}

#[derive(Clone)]
struct Piece {
    /// The position of the first byte of the piece in the sequence.
    at: u64,
    source: Option<Rc<dyn Source>>,
    /// The position of that byte in the piece's source.
    start: u64,
}

impl JoinedSource {
    /// Returns an empty sequence.
    pub fn new() -> JoinedSource {
        JoinedSource::default()
    }

    /// Returns a part of a source: `bytes` bytes that start at `start`.
    pub fn part(source: Rc<dyn Source>, start: u64, bytes: u64) -> JoinedSource {
        JoinedSource::new().with(Some(source), start, bytes)
    }

    /// Appends `bytes` bytes of `source`, from `start`. Without a source, they are absent.
    #[must_use]
    pub fn with(mut self, source: Option<Rc<dyn Source>>, start: u64, bytes: u64) -> JoinedSource {
        self.pieces.push(Piece {
            at: self.bytes,
            source,
            start,
        });
        self.bytes = self.bytes.saturating_add(bytes);
        self
    }
}

impl Source for JoinedSource {
    fn bytes(&self) -> u64 {
        self.bytes
    }

    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError> {
        check_range(offset, buffer.len() as u64, self.bytes)?;
        let mut done = 0;
        while done < buffer.len() {
            let at = offset + done as u64;
            let index = self.pieces.partition_point(|piece| piece.at <= at) - 1;
            let piece = &self.pieces[index];
            let end = self
                .pieces
                .get(index + 1)
                .map_or(self.bytes, |next| next.at);
            let count = (end - at).min((buffer.len() - done) as u64) as usize;
            let source = piece
                .source
                .as_ref()
                .ok_or(SourceError::Absent { offset: at })?;
            let from = piece.start.saturating_add(at - piece.at);
            source.read_at(from, &mut buffer[done..done + count])?;
            done += count;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do reads cross the seams of pieces, and are absent bytes and bytes beyond the end reported
    /// as errors?
    #[test]
    fn pieces_join() {
        let letters: Rc<dyn Source> = Rc::new(b"abcdefgh".to_vec());
        let pieces = JoinedSource::part(Rc::clone(&letters), 4, 3)
            .with(Some(letters), 0, 2)
            .with(None, 0, 2);
        let pieces: &dyn Source = &pieces;
        assert_eq!(pieces.read(1, 4).unwrap(), b"fgab");
        assert_eq!(pieces.read(4, 2), Err(SourceError::Absent { offset: 5 }));
        assert!(matches!(pieces.read(6, 2), Err(SourceError::Beyond { .. })));
        assert!(matches!(
            pieces.read(u64::MAX, usize::MAX),
            Err(SourceError::Beyond { .. })
        ));
        assert_eq!(pieces.read_up_to(9, 5).unwrap(), b"");
    }
}

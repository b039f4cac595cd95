//! Bytes at offsets: a device, an image, a part of either, or bytes in memory.
//!
//! Everything is opened for reading only. Reads are positioned, so that a sparse image of terabytes costs what is
//! looked at.

use std::fs::File;
use std::io;
use std::os::unix::fs::{FileExt, FileTypeExt};
use std::path::Path;
use std::rc::Rc;

/// Something that bytes can be read from.
pub trait Source {
    /// How many bytes there are.
    fn bytes(&self) -> u64;

    /// Fills `buffer` with the bytes from `offset` on.
    ///
    /// # Errors
    /// If any of them is beyond the end, unknown, or cannot be read.
    fn read_at(&self, offset: u64, buffer: &mut [u8]) -> Result<(), SourceError>;
}

/// Why bytes cannot be had.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SourceError {
    /// They are not all there.
    #[error("bytes {offset} to {} lie beyond the end at {bytes}", offset.saturating_add(*wanted))]
    Beyond {
        /// The first wanted.
        offset: u64,
        /// How many.
        wanted: u64,
        /// How many there are in all.
        bytes: u64,
    },
    /// They lie on a device that has not been given.
    #[error("the bytes from {offset} on lie on a member that is not here")]
    Absent {
        /// The first wanted.
        offset: u64,
    },
    /// The system says no.
    #[error("cannot read at byte {offset}: {reason}")]
    Io {
        /// The first wanted.
        offset: u64,
        /// The system's words.
        reason: String,
    },
}

impl dyn Source + '_ {
    /// The `count` bytes from `offset` on.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn take(&self, offset: u64, count: usize) -> Result<Vec<u8>, SourceError> {
        // Asked before memory is: a header may state any length.
        check_range(offset, count as u64, self.bytes())?;
        let mut buffer = vec![0; count];
        self.read_at(offset, &mut buffer)?;
        Ok(buffer)
    }

    /// As many of the `count` bytes from `offset` on as there are before the end.
    ///
    /// # Errors
    /// As [`Source::read_at`].
    pub fn up_to(&self, offset: u64, count: usize) -> Result<Vec<u8>, SourceError> {
        let left = self.bytes().saturating_sub(offset);
        self.take(offset.min(self.bytes()), left.min(count as u64) as usize)
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

/// The system's words without its number.
pub(crate) fn reason(error: &io::Error) -> String {
    let text = error.to_string();
    match text.find(" (os error") {
        Some(end) => text[..end].to_owned(),
        None => text,
    }
}

/// An image file or a block device.
#[derive(Debug)]
pub struct FileSource {
    file: File,
    bytes: u64,
}

impl FileSource {
    /// Opens a regular file or a block device, for reading.
    ///
    /// # Errors
    /// If it cannot be opened, or is neither.
    pub fn open(path: &Path) -> io::Result<FileSource> {
        let kind = std::fs::metadata(path)?.file_type();
        // Opening a pipe would wait for its other end.
        if !kind.is_file() && !kind.is_block_device() {
            return Err(io::Error::other("is no file and no block device"));
        }
        let file = File::open(path)?;
        let bytes = if kind.is_block_device() {
            // A device has no length of its own; its end can be sought.
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
                reason: reason(&error),
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

/// Pieces of other sources, one behind another. Where a piece has no source its bytes are absent.
#[derive(Clone, Default)]
pub struct Pieces {
    pieces: Vec<Piece>,
    bytes: u64,
}

#[derive(Clone)]
struct Piece {
    at: u64,
    source: Option<Rc<dyn Source>>,
    start: u64,
}

impl Pieces {
    /// Nothing yet.
    pub fn new() -> Pieces {
        Pieces::default()
    }

    /// A part of a source: `bytes` from `start` on.
    pub fn part(source: Rc<dyn Source>, start: u64, bytes: u64) -> Pieces {
        Pieces::new().with(Some(source), start, bytes)
    }

    /// Adds a piece at the end.
    #[must_use]
    pub fn with(mut self, source: Option<Rc<dyn Source>>, start: u64, bytes: u64) -> Pieces {
        self.pieces.push(Piece {
            at: self.bytes,
            source,
            start,
        });
        self.bytes = self.bytes.saturating_add(bytes);
        self
    }
}

impl Source for Pieces {
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

    /// Do pieces read across their seams, and is what is absent or beyond said rather than made up?
    #[test]
    fn pieces_join() {
        let letters: Rc<dyn Source> = Rc::new(b"abcdefgh".to_vec());
        let pieces = Pieces::part(Rc::clone(&letters), 4, 3)
            .with(Some(letters), 0, 2)
            .with(None, 0, 2);
        let pieces: &dyn Source = &pieces;
        assert_eq!(pieces.take(1, 4).unwrap(), b"fgab");
        assert_eq!(pieces.take(4, 2), Err(SourceError::Absent { offset: 5 }));
        assert!(matches!(pieces.take(6, 2), Err(SourceError::Beyond { .. })));
        assert!(matches!(
            pieces.take(u64::MAX, usize::MAX),
            Err(SourceError::Beyond { .. })
        ));
        assert_eq!(pieces.up_to(9, 5).unwrap(), b"");
    }
}

//! Input files, with decompression and with the file's name in errors.

use std::fs::File;
use std::io::{self, BufRead, BufReader, Read};
use std::path::Path;

use flate2::bufread::MultiGzDecoder;
use rustix::io::Errno;
use ruzstd::decoding::errors::{FrameDecoderError, ReadFrameHeaderError};
use ruzstd::decoding::{BlockDecodingStrategy, FrameDecoder};

use crate::error::{FileProblem, Result, RunError};

/// The size of a read buffer, in bytes.
const BUFFER_BYTES: usize = 1 << 16;

/// Opens a file, or standard input for `-`, and decompresses it if it is a gzip or zstd file.
///
/// # Errors
/// Returns an error if the file cannot be opened or read.
pub fn open(path: &Path) -> Result<Box<dyn BufRead + Send>> {
    let raw: Box<dyn Read + Send> = if path == Path::new("-") {
        Box::new(io::stdin())
    } else {
        let file = File::open(path).map_err(|error| RunError::file(path, &error))?;
        // Opening a directory succeeds, and reading it fails with a less useful message.
        if file.metadata().is_ok_and(|meta| meta.is_dir()) {
            let line = format!("{}: is a directory", path.display());
            return Err(RunError::Io(FileProblem::new(
                line,
                path,
                Some(&Errno::ISDIR.into()),
            )));
        }
        Box::new(file)
    };
    let mut raw = BufReader::with_capacity(BUFFER_BYTES, raw);
    let start = raw
        .fill_buf()
        .map_err(|error| RunError::file(path, &error))?;
    Ok(match start {
        [0x1f, 0x8b, ..] => Box::new(BufReader::with_capacity(
            BUFFER_BYTES,
            MultiGzDecoder::new(raw),
        )),
        [0x28, 0xb5, 0x2f, 0xfd, ..] | [0x50..=0x5f, 0x2a, 0x4d, 0x18, ..] => {
            Box::new(BufReader::with_capacity(BUFFER_BYTES, Zstd::new(raw)))
        }
        _ => Box::new(raw),
    })
}

/// Reads a text file, which [`open`] decompresses if necessary.
///
/// # Errors
/// Returns an error if the file cannot be read, if its decompressed text is longer than `limit`
/// bytes, or if it is not UTF-8.
pub fn text(path: &Path, limit: u64) -> Result<String> {
    let mut bytes = Vec::new();
    open(path)?
        .take(limit + 1)
        .read_to_end(&mut bytes)
        .map_err(|error| RunError::file(path, &error))?;
    if bytes.len() as u64 > limit {
        return Err(RunError::at(
            path.display(),
            format!("is longer than {limit} bytes"),
        ));
    }
    String::from_utf8(bytes).map_err(|error| {
        let line = 1 + error.as_bytes()[..error.utf8_error().valid_up_to()]
            .iter()
            .filter(|&&byte| byte == b'\n')
            .count();
        RunError::at(format!("{}:{line}", path.display()), "is not UTF-8 text")
    })
}

/// A reader of consecutive zstd frames that verifies their checksums.
struct Zstd<R> {
    source: R,
    decoder: FrameDecoder,
    in_frame: bool,
}

impl<R: BufRead> Zstd<R> {
    fn new(source: R) -> Zstd<R> {
        Zstd {
            source,
            decoder: FrameDecoder::new(),
            in_frame: false,
        }
    }

    /// Begins the next frame; returns false at the end of the file.
    fn next_frame(&mut self) -> io::Result<bool> {
        while !self.source.fill_buf()?.is_empty() {
            match self.decoder.init(&mut self.source) {
                Ok(()) => return Ok(true),
                Err(FrameDecoderError::ReadFrameHeaderError(ReadFrameHeaderError::SkipFrame {
                    length,
                    ..
                })) => {
                    let mut skipped = (&mut self.source).take(length.into());
                    io::copy(&mut skipped, &mut io::sink())?;
                }
                Err(error) => return Err(corrupt(error)),
            }
        }
        Ok(false)
    }
}

impl<R: BufRead> Read for Zstd<R> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        loop {
            if !self.in_frame {
                if !self.next_frame()? {
                    return Ok(0);
                }
                self.in_frame = true;
            }
            let count = self.decoder.read(buffer)?;
            if count > 0 || buffer.is_empty() {
                return Ok(count);
            }
            if self.decoder.is_finished() {
                let stated = self.decoder.get_checksum_from_data();
                if stated.is_some() && stated != self.decoder.get_calculated_checksum() {
                    return Err(corrupt("the checksum of a zstd frame does not match"));
                }
                self.in_frame = false;
            } else {
                self.decoder
                    .decode_blocks(
                        &mut self.source,
                        BlockDecodingStrategy::UptoBytes(BUFFER_BYTES),
                    )
                    .map_err(corrupt)?;
            }
        }
    }
}

fn corrupt(error: impl std::fmt::Display) -> io::Error {
    io::Error::new(
        io::ErrorKind::InvalidData,
        error.to_string().replace('\n', " "),
    )
}

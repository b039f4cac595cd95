//! Output that is compressed according to the extension of its file name.

use std::io::{self, Write};
use std::path::Path;

use flate2::Compression;
use flate2::write::GzEncoder;
use ruzstd::encoding::{CompressionLevel, compress_to_vec};

/// A writer that compresses its input if the name ends in `.gz` or `.zst`. Call
/// [`CompressedWriter::finish`] at the end.
#[derive(Debug)]
pub struct CompressedWriter<W: Write>(Form<W>);

#[derive(Debug)]
enum Form<W: Write> {
    Plain(W),
    Gzip(GzEncoder<W>),
    Zstd { sink: W, waiting: Vec<u8> },
}

/// The number of buffered bytes at which a frame of a zstd file is compressed and written.
const FRAME_BYTES: usize = 1 << 20;

impl<W: Write> CompressedWriter<W> {
    /// Creates a writer to `sink`. The extension of `name` selects the compression.
    pub fn new(sink: W, name: &Path) -> CompressedWriter<W> {
        CompressedWriter(match name.extension().and_then(|ending| ending.to_str()) {
            Some("gz") => Form::Gzip(GzEncoder::new(sink, Compression::default())),
            Some("zst") => Form::Zstd {
                sink,
                waiting: Vec::with_capacity(FRAME_BYTES),
            },
            _ => Form::Plain(sink),
        })
    }

    /// Writes the remaining buffered data, and returns the sink.
    ///
    /// # Errors
    /// Returns the errors of the sink.
    pub fn finish(self) -> io::Result<W> {
        match self.0 {
            Form::Plain(sink) => Ok(sink),
            Form::Gzip(encoder) => encoder.finish(),
            Form::Zstd { mut sink, waiting } => {
                sink.write_all(&compress_to_vec(&waiting[..], CompressionLevel::Fastest))?;
                Ok(sink)
            }
        }
    }
}

impl<W: Write> Write for CompressedWriter<W> {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.0 {
            Form::Plain(sink) => sink.write(bytes),
            Form::Gzip(encoder) => encoder.write(bytes),
            Form::Zstd { sink, waiting } => {
                waiting.extend_from_slice(bytes);
                if waiting.len() >= FRAME_BYTES {
                    sink.write_all(&compress_to_vec(&waiting[..], CompressionLevel::Fastest))?;
                    waiting.clear();
                }
                Ok(bytes.len())
            }
        }
    }

    /// Flushes uncompressed output only. Flushing compressed output would make it larger.
    fn flush(&mut self) -> io::Result<()> {
        match &mut self.0 {
            Form::Plain(sink) => sink.flush(),
            Form::Gzip(_) | Form::Zstd { .. } => Ok(()),
        }
    }
}

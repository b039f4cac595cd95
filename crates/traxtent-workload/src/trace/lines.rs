//! The input of a trace: lines or binary words of bounded length, with their positions.

use std::borrow::Cow;
use std::io::{BufRead, ErrorKind, Read};

use super::TraceFormat;
use super::error::{TraceError, TracePosition, TraceProblem};

/// The longest line accepted. No format comes near it; the limit bounds the memory used.
const LINE_BYTES_MAX: usize = 64 * 1024;

/// Input with counted lines and bytes.
pub(super) struct TraceInput<R> {
    format: TraceFormat,
    input: R,
    line: Vec<u8>,
    /// The position of the last record.
    at: TracePosition,
    /// The line or record being read, counted from 1.
    number: u64,
    offset: u64,
}

impl<R: BufRead> TraceInput<R> {
    pub(super) fn new(format: TraceFormat, input: R) -> TraceInput<R> {
        TraceInput {
            format,
            input,
            line: Vec::new(),
            at: TracePosition::Line(0),
            number: 0,
            offset: 0,
        }
    }

    pub(super) fn format(&self) -> TraceFormat {
        self.format
    }

    /// The position of the last record. It is the last line read, unless the format sets it by
    /// [`TraceInput::set_position`].
    pub(super) fn place(&self) -> TracePosition {
        self.at
    }

    /// Sets the position of the record that is returned.
    pub(super) fn set_position(&mut self, place: TracePosition) {
        self.at = place;
    }

    /// Returns the next line that is neither empty nor a `#` comment, without white space at its
    /// end.
    pub(super) fn next_line(&mut self) -> Result<Option<Line<'_>>, TraceError> {
        loop {
            self.line.clear();
            self.number += 1;
            let place = TracePosition::Line(self.number);
            let format = self.format;
            let at = |problem| TraceError::At {
                format,
                place,
                problem,
            };
            let mut limited = (&mut self.input).take(LINE_BYTES_MAX as u64 + 1);
            let read = limited.read_until(b'\n', &mut self.line);
            let read = read.map_err(|error| at(TraceProblem::Io(error)))?;
            if read == 0 {
                return Ok(None);
            }
            if read > LINE_BYTES_MAX {
                let expected = format!("the line is longer than {LINE_BYTES_MAX} bytes");
                return Err(at(TraceProblem::Malformed { expected }));
            }
            let end = self.line.trim_ascii_end().len();
            self.line.truncate(end);
            if end > 0 && self.line[0] != b'#' {
                break;
            }
        }
        let text = std::str::from_utf8(&self.line).map_err(|error| TraceError::At {
            format: self.format,
            place: TracePosition::Line(self.number),
            problem: TraceProblem::Malformed {
                expected: format!("byte {} is not valid UTF-8", error.valid_up_to()),
            },
        })?;
        self.at = TracePosition::Line(self.number);
        Ok(Some(Line {
            format: self.format,
            place: self.at,
            text,
        }))
    }

    /// Returns one byte of a binary header.
    pub(super) fn byte(&mut self) -> Result<Option<u8>, TraceError> {
        let mut byte = [0];
        Ok(self.fill(&mut byte)?.then_some(byte[0]))
    }

    /// Fills `words` with big-endian words. Returns false if the input ends before the first word
    /// of a record. Any other end is an error.
    pub(super) fn words(
        &mut self,
        words: &mut [u32],
        begins_record: bool,
    ) -> Result<bool, TraceError> {
        if begins_record {
            self.number += 1;
        }
        for (index, word) in words.iter_mut().enumerate() {
            let mut bytes = [0; 4];
            if !self.fill(&mut bytes)? {
                if index == 0 && begins_record {
                    return Ok(false);
                }
                return Err(self.truncated("a record"));
            }
            *word = u32::from_be_bytes(bytes);
        }
        Ok(true)
    }

    /// Fills the buffer. Returns false if the input was already at its end.
    fn fill(&mut self, buffer: &mut [u8]) -> Result<bool, TraceError> {
        let mut done = 0;
        while done < buffer.len() {
            match self.input.read(&mut buffer[done..]) {
                Ok(0) if done == 0 => return Ok(false),
                Ok(0) => return Err(self.truncated("a record")),
                Ok(read) => done += read,
                Err(error) if error.kind() == ErrorKind::Interrupted => {}
                Err(error) => {
                    return Err(TraceError::At {
                        format: self.format,
                        place: self.record_place(),
                        problem: TraceProblem::Io(error),
                    });
                }
            }
        }
        self.offset += done as u64;
        Ok(true)
    }

    /// The number of bytes read so far as binary.
    pub(super) fn offset(&self) -> u64 {
        self.offset
    }

    pub(super) fn record_place(&self) -> TracePosition {
        TracePosition::Record {
            number: self.number,
            offset: self.offset,
        }
    }

    pub(super) fn truncated(&self, within: &'static str) -> TraceError {
        TraceError::At {
            format: self.format,
            place: self.record_place(),
            problem: TraceProblem::Truncated { within },
        }
    }

    /// Returns the error for a text trace that ends before its first record.
    pub(super) fn ends_within(&self, within: &'static str) -> TraceError {
        TraceError::At {
            format: self.format,
            place: TracePosition::Line(self.number),
            problem: TraceProblem::Truncated { within },
        }
    }
}

/// A line of text and its position.
#[derive(Clone, Copy)]
pub(super) struct Line<'a> {
    pub(super) format: TraceFormat,
    pub(super) place: TracePosition,
    pub(super) text: &'a str,
}

impl Line<'_> {
    /// Returns the error for a request for no sectors or bytes.
    pub(super) fn empty(&self, unit: &'static str) -> TraceError {
        self.at(TraceProblem::Empty { unit })
    }

    pub(super) fn shape(&self, expected: impl Into<String>) -> TraceError {
        self.at(TraceProblem::Malformed {
            expected: expected.into(),
        })
    }

    pub(super) fn field(
        &self,
        field: impl Into<Cow<'static, str>>,
        value: &str,
        expected: impl Into<String>,
    ) -> TraceError {
        let cut = value
            .char_indices()
            .map(|(at, _)| at)
            .find(|&at| at >= 60)
            .unwrap_or(value.len());
        self.at(TraceProblem::Field {
            field: field.into(),
            value: value[..cut].to_owned(),
            expected: expected.into(),
        })
    }

    fn at(&self, problem: TraceProblem) -> TraceError {
        TraceError::At {
            format: self.format,
            place: self.place,
            problem,
        }
    }

    /// Returns the fields, separated by commas if `comma` is set, otherwise by blanks. There must
    /// be exactly `N` of them, unless `more` allows further ones after them.
    pub(super) fn split<const N: usize>(
        &self,
        comma: bool,
        more: bool,
        names: &'static str,
    ) -> Result<[&str; N], TraceError> {
        let mut fields = [""; N];
        let mut count = 0;
        let mut put = |field| {
            if let Some(place) = fields.get_mut(count) {
                *place = field;
            }
            count += 1;
        };
        if comma {
            self.text.split(',').for_each(|field| put(field.trim()));
        } else {
            self.text.split_ascii_whitespace().for_each(put);
        }
        if count < N || (count > N && !more) {
            return Err(self.shape(format!("expected {N} fields ({names}), found {count}")));
        }
        Ok(fields)
    }
}

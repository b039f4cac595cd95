//! fio's iolog, versions 2 and 3 (fio(1), "Trace file format").
//!
//! The first line names the version. After it, a line is `filename action` or `filename action
//! offset length`; version 3 puts a time before it. Files are numbered in the order in which they
//! appear. `read` and `write` become requests, `sync` and `datasync` become flushes; `add`, `open`,
//! `close` and `trim` are skipped.
//!
//! Times: version 2 has only `wait N`, N µs after the previous wait, so an arrival is the sum of
//! the waits. The times of version 3 are in µs from the start of the job, as fio 3.33 writes them;
//! its manual names no unit.

use std::collections::BTreeMap;
use std::io::BufRead;

use super::TraceRecord;
use super::error::TraceError;
use super::fields::{PS_PER_US, TIME_MAX_PS};
use super::lines::{Line, TraceInput};
use traxtent_units::SimTime;
use traxtent_units::request::{Op, Request};

/// The maximum number of files, whose names are kept in memory. A fio job has fewer.
const FILES_MAX: usize = 16_384;

/// The longest file name in bytes: the longest path in Linux.
const NAME_BYTES_MAX: usize = 4096;

pub(super) const V2: &str = "fio version 2 iolog";
pub(super) const V3: &str = "fio version 3 iolog";

pub(super) struct Fio {
    sector_bytes: u32,
    heading: &'static str,
    timed: bool,
    begun: bool,
    /// The names of files so far, with their device numbers.
    pub(super) files: BTreeMap<String, u32>,
    waited: u64,
}

impl Fio {
    pub(super) fn v2(sector_bytes: u32) -> Fio {
        Fio {
            sector_bytes,
            heading: V2,
            timed: false,
            begun: false,
            files: BTreeMap::new(),
            waited: 0,
        }
    }

    pub(super) fn v3(sector_bytes: u32) -> Fio {
        Fio {
            heading: V3,
            timed: true,
            ..Fio::v2(sector_bytes)
        }
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        if !self.begun {
            match lines.next_line()? {
                Some(line) if line.text == self.heading => self.begun = true,
                Some(line) => {
                    return Err(
                        line.shape(format!("expected {:?} as the first line", self.heading))
                    );
                }
                None => return Err(lines.ends_within("its first line")),
            }
        }
        while let Some(line) = lines.next_line()? {
            if let Some(record) = self.record(&line)? {
                return Ok(Some(record));
            }
        }
        Ok(None)
    }

    fn record(&mut self, line: &Line<'_>) -> Result<Option<TraceRecord>, TraceError> {
        let mut text = line.text;
        let mut time = self.waited;
        if self.timed {
            let (stamp, rest) = text.split_once(' ').ok_or_else(|| {
                line.shape("expected timestamp, filename, action, and offset and length for I/O")
            })?;
            time = line.time("timestamp", stamp, PS_PER_US)?;
            text = rest;
        }
        let (file, action, range) = split(text).ok_or_else(|| {
            line.shape("expected filename, action, and offset and length for I/O")
        })?;
        let bytes = |op, range: Option<(&str, &str)>| {
            let (offset, length) = range
                .ok_or_else(|| line.shape(format!("{action} needs an offset and a length")))?;
            let offset = u128::from(line.whole("offset", offset, u64::MAX)?);
            line.bytes(
                op,
                offset,
                line.whole("length", length, u64::MAX)?,
                self.sector_bytes,
            )
        };
        let request = match action {
            "read" => bytes(Op::Read, range)?,
            "write" => bytes(Op::Write, range)?,
            "sync" | "datasync" => Request::flush(),
            "add" | "open" | "close" | "trim" => {
                self.number(line, file)?;
                return Ok(None);
            }
            "wait" if !self.timed => {
                let wait = range.map_or("", |range| range.0);
                self.waited = self
                    .waited
                    .saturating_add(line.time("wait", wait, PS_PER_US)?)
                    .min(TIME_MAX_PS);
                return Ok(None);
            }
            _ => {
                return Err(line.field(
                    "action",
                    action,
                    "expected add, open, close, read, write, sync, datasync, trim, or wait in version 2",
                ));
            }
        };
        let device = self.number(line, file)?;
        Ok(Some(TraceRecord {
            arrival: Some(SimTime(time)),
            pause: None,
            completed: None,
            measured: None,
            device,
            request,
        }))
    }

    fn number(&mut self, line: &Line<'_>, file: &str) -> Result<u32, TraceError> {
        if let Some(&number) = self.files.get(file) {
            return Ok(number);
        }
        if self.files.len() == FILES_MAX || file.len() > NAME_BYTES_MAX {
            let expected = format!(
                "expected at most {FILES_MAX} files with names of at most {NAME_BYTES_MAX} bytes"
            );
            return Err(line.field("filename", file, expected));
        }
        let number = self.files.len() as u32;
        self.files.insert(file.to_owned(), number);
        Ok(number)
    }
}

/// File, action, and the optional offset and length.
type Parts<'a> = (&'a str, &'a str, Option<(&'a str, &'a str)>);

/// Splits a line into file, action, and the optional offset and length. File names may hold blanks,
/// so the line is split from its end.
fn split(text: &str) -> Option<Parts<'_>> {
    let number = |text: &str| text.bytes().all(|byte| byte.is_ascii_digit()) && !text.is_empty();
    let (rest, last) = text.trim_end().rsplit_once(' ')?;
    if !number(last) {
        return Some((rest, last, None));
    }
    let (rest, offset) = rest.rsplit_once(' ')?;
    if number(offset) {
        let (file, action) = rest.rsplit_once(' ')?;
        return Some((file, action, Some((offset, last))));
    }
    // `wait` has only one number.
    Some((rest, offset, Some((last, ""))))
}

//! HP Labs' SRT traces, versions 1 to 4 of the short I/O record (as DiskSim's `hpl` and `hpl2`
//! formats read them).
//!
//! A text header ends with a form feed; `hpl2` files have no header and begin with a record.
//! Records are big-endian 32-bit words: size in bytes, version (high half) and type, seconds and µs
//! since the beginning, µs from this time to the start and to the end of service, bytes, address,
//! device, driver, cylinder, flags (bit 0 marks a read), origin. Version 4 adds the queue length.
//! Suspect records, which are skipped as in DiskSim, add a word of flags.
//!
//! The address counts sectors of the header's `sectorsize`. This is 256 bytes on the disks of the
//! trace that comes with DiskSim: its cylinder field is always the address divided by the 8 x 113
//! such sectors of a cylinder. (DiskSim takes the address as 512-byte sectors.) Without a header,
//! or if the disks differ, 512 bytes are assumed. The device is the unit in bits 8 to 15 of the
//! device word.

use std::io::BufRead;

use super::TraceRecord;
use super::error::{TraceError, TracePosition, TraceProblem};
use super::fields::{PS_PER_S, PS_PER_US, covering};
use super::lines::TraceInput;
use traxtent_units::request::{Op, Request};
use traxtent_units::{SimTime, Span};

/// The first bytes of files with a header.
pub(super) const MAGIC: &[u8] = b"$$TR_IOREC";

/// The longest header. A longer text without a form feed is not a header.
const HEADER_BYTES_MAX: u64 = 1 << 20;

const FORM_FEED: u8 = 0x0c;
const SHORT_IO: u32 = 1;
const SUSPECT_IO: u32 = 4;
/// The number of words of a record after id and size: seconds, µs, and nine more.
const WORDS: usize = 11;
/// The index of the word that holds the length.
const LENGTH_WORD: usize = 4;

pub(super) struct Srt {
    sector_bytes: u32,
    /// The size of the sectors that addresses count, once the header has been read.
    unit_bytes: Option<u32>,
}

/// Returns whether a record can begin with these two words: its size, and its version and type.
pub(super) fn plausible(size: u32, id: u32) -> bool {
    let (version, kind) = (id >> 16, id & 0xffff);
    (1..=4).contains(&version)
        && (kind == SHORT_IO || kind == SUSPECT_IO)
        && size == record_bytes(version, kind)
}

fn record_bytes(version: u32, kind: u32) -> u32 {
    52 + 4 * u32::from(version == 4) + 4 * u32::from(kind == SUSPECT_IO)
}

impl Srt {
    pub(super) fn new(sector_bytes: u32) -> Srt {
        Srt {
            sector_bytes,
            unit_bytes: None,
        }
    }

    pub(super) fn next<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
    ) -> Result<Option<TraceRecord>, TraceError> {
        loop {
            let mut head = [0; 2];
            let unit_bytes = match self.unit_bytes {
                Some(unit) => {
                    if !lines.words(&mut head, true)? {
                        return Ok(None);
                    }
                    unit
                }
                None => self.begin(lines, &mut head)?,
            };
            let place = TracePosition::Record {
                number: match lines.record_place() {
                    TracePosition::Record { number, .. } | TracePosition::Line(number) => number,
                },
                offset: lines.offset().saturating_sub(8),
            };
            let format = lines.format();
            let at = |problem| TraceError::At {
                format,
                place,
                problem,
            };
            let [size, id] = head;
            if !plausible(size, id) {
                let expected = format!(
                    "expected a short or suspect I/O record of version 1 to 4, found type {:#x}, version {}, \
                     {size} bytes",
                    id & 0xffff,
                    id >> 16
                );
                return Err(at(TraceProblem::Malformed { expected }));
            }
            let mut body = [0; WORDS];
            lines.words(&mut body, false)?;
            let mut rest = [0; 2];
            lines.words(&mut rest[..(size as usize - 52) / 4], false)?;
            if id & 0xffff == SHORT_IO {
                lines.set_position(place);
                if body[LENGTH_WORD] == 0 {
                    return Err(at(TraceProblem::Empty { unit: "bytes" }));
                }
                let record = self.record(&body, unit_bytes).map(Some);
                return record.map_err(|(field, value, expected)| {
                    at(TraceProblem::Field {
                        field: field.into(),
                        value: value.to_string(),
                        expected,
                    })
                });
            }
        }
    }

    /// Reads the header, if there is one, and the first two words after it. Returns the size in
    /// bytes of the sectors that addresses count.
    fn begin<R: BufRead>(
        &mut self,
        lines: &mut TraceInput<R>,
        head: &mut [u32; 2],
    ) -> Result<u32, TraceError> {
        if !lines.words(head, true)? {
            return Err(lines.truncated("its header"));
        }
        let start: Vec<u8> = head.iter().flat_map(|word| word.to_be_bytes()).collect();
        if start[..] != MAGIC[..8] {
            self.unit_bytes = Some(512);
            return Ok(512);
        }
        let mut sizes = HeaderSectorSizes::default();
        loop {
            match lines.byte()? {
                Some(_) if lines.offset() > HEADER_BYTES_MAX => {
                    return Err(TraceError::At {
                        format: lines.format(),
                        place: lines.record_place(),
                        problem: TraceProblem::Malformed {
                            expected: format!(
                                "the header has no form feed in its first {HEADER_BYTES_MAX} bytes"
                            ),
                        },
                    });
                }
                None => return Err(lines.truncated("its header, without a form feed")),
                Some(FORM_FEED) => break,
                Some(byte) => sizes.push(byte),
            }
        }
        let unit = sizes.common();
        self.unit_bytes = Some(unit);
        lines.words(head, false)?;
        Ok(unit)
    }

    fn record(
        &self,
        body: &[u32; WORDS],
        unit_bytes: u32,
    ) -> Result<TraceRecord, (&'static str, u32, String)> {
        let &[
            seconds,
            micros,
            start,
            stop,
            bytes,
            address,
            device,
            _driver,
            _cylinder,
            flags,
            _origin,
        ] = body;
        let seconds_max = (super::fields::TIME_MAX_PS / PS_PER_S) as u32;
        if seconds > seconds_max {
            return Err((
                "seconds",
                seconds,
                format!("expected at most {seconds_max}"),
            ));
        }
        let arrival = u64::from(seconds) * PS_PER_S + u64::from(micros) * PS_PER_US;
        if stop < start {
            return Err((
                "end of service",
                stop,
                format!("expected at least the start of service, {start} us"),
            ));
        }
        let offset = u128::from(address) * u128::from(unit_bytes);
        let Some((lbn, sectors)) = covering(offset, u128::from(bytes), self.sector_bytes) else {
            let expected = format!("expected a range below sector {}", i64::MAX);
            return Err(("bytes", bytes, expected));
        };
        let op = if flags & 1 == 1 { Op::Read } else { Op::Write };
        Ok(TraceRecord {
            arrival: Some(SimTime(arrival)),
            pause: None,
            completed: None,
            measured: Some(Span(u64::from(stop - start) * PS_PER_US)),
            device: device >> 8 & 0xff,
            request: Request {
                op,
                lbn,
                sectors,
                fua: false,
            },
        })
    }
}

/// Extracts `sectorsize = N` from the header while it is read.
#[derive(Default)]
struct HeaderSectorSizes {
    line: Vec<u8>,
    found: Option<u32>,
    differ: bool,
}

impl HeaderSectorSizes {
    fn push(&mut self, byte: u8) {
        if byte != b'\n' {
            // The lines of interest are short.
            if self.line.len() < 200 {
                self.line.push(byte);
            }
            return;
        }
        let line = String::from_utf8_lossy(&self.line);
        let size = line.trim().strip_prefix("sectorsize").and_then(|rest| {
            let digits = |text: &str| text.trim_end_matches([',', ';']).trim().parse::<u32>();
            digits(rest.trim().strip_prefix('=')?.trim())
                .ok()
                .filter(|size| (1..=65_536).contains(size))
        });
        if let Some(size) = size {
            self.differ |= self.found.is_some_and(|found| found != size);
            self.found = Some(size);
        }
        self.line.clear();
    }

    fn common(&self) -> u32 {
        self.found.filter(|_| !self.differ).unwrap_or(512)
    }
}

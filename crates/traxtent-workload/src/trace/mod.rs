//! Traces of real disks, read as a stream.
//!
//! [`TraceReader`] turns any [`BufRead`] into an iterator of records. It buffers one line and, in
//! formats whose records must be put in order or matched with completions, at most 65,536 records.
//! The caller opens and decompresses files. [`TraceFormat`] lists the formats; [`detect()`]
//! distinguishes them by the first bytes. A [`ColumnSpec`] describes any other text file with one
//! request per line.
//!
//! Sectors: a record's request counts logical sectors of the simulated drive
//! ([`TraceOptions::sector_bytes`]). Formats that count bytes are converted: a request that begins
//! or ends within a sector covers the whole sector. Formats that count sectors of a stated size
//! (SPC, blkparse: 512 bytes; HP SRT: in the header) are converted the same way. DiskSim's two
//! formats and our own log count sectors of the drive itself and are used unchanged.
//!
//! Left out: DiskSim's formats whose traces are no longer available (raw, dec, emcsymm, emcbackend,
//! batch), and fields of records beyond the request (process names, directors, cylinders).

mod blkparse;
mod columns;
mod detect;
mod disksim;
mod error;
mod fields;
mod fio;
mod fio_latency;
mod lines;
mod log;
mod msr;
mod order;
mod reorder;
mod responses;
mod spc;
mod srt;
mod units;

use std::fmt;
use std::io::BufRead;
use std::str::FromStr;

pub use columns::{
    BLOCK_BYTES_MAX, BlockColumn, BlockUnit, COLUMN_KEYS, COLUMN_NUMBER_MAX, ColumnError,
    ColumnFilter, ColumnId, ColumnSpec, ColumnText, Delimiter, PLACE_BYTES, TimeColumn, TimeUnit,
};
pub use detect::{DETECT_BYTES, detect};
pub use error::{TraceError, TracePosition, TraceProblem};
pub use log::COLUMNS as LOG_COLUMNS;
pub use order::OrderWarning;
pub use responses::{RESPONSES_CHECKED, ResponseWarning};
pub use units::{GAPS_CHECKED, GapSuspicion, GapWarning};

use columns::{Columns, PlacedDrive};
use order::OrderCheck;
use responses::ResponseCheck;
use traxtent_units::request::Request;
use traxtent_units::{SimTime, Span};
use units::GapCheck;

/// One request of a trace.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceRecord {
    /// The arrival time. It counts from the first record in MSR's format and in blkparse's, and, if
    /// the first record arrives before time 0 or after more than an hour, in fio's latency logs and
    /// specified columns. Otherwise it is as recorded.
    pub arrival: Option<SimTime>,
    /// The pause between this request's completion and the next request.
    pub pause: Option<Span>,
    /// The completion time, if the trace records it in addition to `measured`. In a request log, it
    /// is the completion of the logged run, and `measured` may belong to another drive.
    pub completed: Option<SimTime>,
    /// The time that the real drive took for the request.
    pub measured: Option<Span>,
    /// The device: the format's own number, or the order of appearance if the format gives names.
    pub device: u32,
    /// The request.
    pub request: Request,
}

impl TraceRecord {
    /// Returns the end of the request in the recording: its completion time, or else its arrival
    /// plus the measured time. `None` if the trace records neither.
    pub fn end(&self) -> Option<SimTime> {
        let arrival_and_time = self.arrival.zip(self.measured);
        let measured_end =
            arrival_and_time.map(|(arrival, time)| SimTime(arrival.0.saturating_add(time.0)));
        self.completed.or(measured_end)
    }
}

/// The formats of traces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum TraceFormat {
    /// DiskSim's default: arrival in ms, device, block, blocks, flags in hexadecimal; bit 0 of the
    /// flags marks a read.
    DiskSimAscii,
    /// DiskSim's validation traces: R or W, the buffer's action, block, blocks, service time and
    /// pause in µs.
    DiskSimValidate,
    /// HP Labs' SRT, binary.
    HpSrt,
    /// The Storage Performance Council's format, as used by the UMass repository: ASU, LBA, bytes,
    /// opcode, seconds.
    Spc,
    /// MSR Cambridge's CSV: file time, host, disk, type, offset, bytes, response time.
    Msr,
    /// The default text output of blkparse.
    Blkparse,
    /// fio's iolog, version 2.
    FioV2,
    /// fio's iolog, version 3.
    FioV3,
    /// fio's latency log with offsets: completion in ms, latency in ns, direction, bytes, offset.
    FioLatency,
    /// Our own request log, from a simulation or a served drive.
    // It stays the last format before `Csv`, because an assertion counts the formats by it.
    RequestLog,
    /// Columns named by a [`ColumnSpec`]. This format is never detected, and [`TraceFormat::all`]
    /// omits it.
    Csv,
}

/// The name of each format on a command line.
const NAMES: &[(TraceFormat, &str)] = &[
    (TraceFormat::DiskSimAscii, "disksim-ascii"),
    (TraceFormat::DiskSimValidate, "disksim-validate"),
    (TraceFormat::HpSrt, "hp-srt"),
    (TraceFormat::Spc, "spc"),
    (TraceFormat::Msr, "msr"),
    (TraceFormat::Blkparse, "blkparse"),
    (TraceFormat::FioV2, "fio-v2"),
    (TraceFormat::FioV3, "fio-v3"),
    (TraceFormat::RequestLog, "request-log"),
    (TraceFormat::FioLatency, "fio-latency"),
];

/// The name of [`TraceFormat::Csv`] in messages.
const CSV_NAME: &str = "csv";

const _: () = assert!(
    NAMES.len() == TraceFormat::RequestLog as usize + 1,
    "NAMES lists every format that can be detected"
);

impl TraceFormat {
    /// Returns all formats that can be detected.
    pub fn all() -> impl Iterator<Item = TraceFormat> {
        NAMES.iter().map(|entry| entry.0)
    }

    /// The format's name.
    pub fn name(self) -> &'static str {
        let mut names = NAMES.iter();
        names
            .find(|entry| entry.0 == self)
            .map_or(CSV_NAME, |entry| entry.1)
    }
}

impl fmt::Display for TraceFormat {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for TraceFormat {
    type Err = TraceError;

    fn from_str(name: &str) -> Result<TraceFormat, TraceError> {
        let found = NAMES.iter().find(|entry| entry.1 == name);
        found
            .map(|entry| entry.0)
            .ok_or_else(|| TraceError::UnknownFormat {
                name: name.to_owned(),
            })
    }
}

/// The event of a request in blkparse output that counts as its arrival.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum BlkparseEvent {
    /// `D`: the request is sent to the drive, after merging and scheduling. This is the drive's
    /// view, so it is the default.
    #[default]
    Dispatch,
    /// `Q`: the request enters the queue, as the application sent it.
    Queue,
}

/// Parameters for reading a trace that the trace itself does not record.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TraceOptions {
    /// The size of the simulated drive's logical sectors.
    pub sector_bytes: u32,
    /// The number of the drive's logical sectors, or 0 if it is unknown. Only traces without disk
    /// addresses need it ([`ColumnSpec::file`]).
    pub capacity_sectors: u64,
    /// The blkparse event that counts as the arrival.
    pub blkparse_event: BlkparseEvent,
    /// Whether the order of arrivals is checked. Arrivals out of order are refused or counted,
    /// depending on the format. False for a replay that does not use arrival times.
    pub check_order: bool,
}

impl Default for TraceOptions {
    fn default() -> TraceOptions {
        TraceOptions {
            sector_bytes: 512,
            capacity_sectors: 0,
            blkparse_event: BlkparseEvent::default(),
            check_order: true,
        }
    }
}

/// An iterator over the records of a trace. It ends at the first error.
pub struct TraceReader<R> {
    lines: lines::TraceInput<R>,
    parser: Parser,
    gaps: GapCheck,
    order: OrderCheck,
    responses: ResponseCheck,
    ended: bool,
}

/// The state that a format keeps between records.
enum Parser {
    Ascii(disksim::Ascii),
    Validate(disksim::Validate),
    Srt(srt::Srt),
    Spc(spc::Spc),
    Msr(msr::Msr),
    Blkparse(blkparse::Blkparse),
    Fio(fio::Fio),
    FioLatency(fio_latency::FioLatency),
    Columns(Box<Columns>),
    Log(log::Log),
}

impl<R: BufRead> TraceReader<R> {
    /// Creates a reader of `input` in the given format.
    ///
    /// # Panics
    /// Panics if the format is [`TraceFormat::Csv`], which needs [`TraceReader::with_columns`].
    pub fn new(format: TraceFormat, input: R, options: TraceOptions) -> TraceReader<R> {
        let sector_bytes = options.sector_bytes.max(1);
        let parser = match format {
            TraceFormat::DiskSimAscii => Parser::Ascii(disksim::Ascii),
            TraceFormat::DiskSimValidate => Parser::Validate(disksim::Validate),
            TraceFormat::HpSrt => Parser::Srt(srt::Srt::new(sector_bytes)),
            TraceFormat::Spc => Parser::Spc(spc::Spc { sector_bytes }),
            TraceFormat::Msr => Parser::Msr(msr::Msr::new(sector_bytes)),
            TraceFormat::Blkparse => Parser::Blkparse(blkparse::Blkparse::new(
                sector_bytes,
                options.blkparse_event,
            )),
            TraceFormat::FioV2 => Parser::Fio(fio::Fio::v2(sector_bytes)),
            TraceFormat::FioV3 => Parser::Fio(fio::Fio::v3(sector_bytes)),
            TraceFormat::FioLatency => {
                Parser::FioLatency(fio_latency::FioLatency::new(sector_bytes))
            }
            TraceFormat::RequestLog => Parser::Log(log::Log::default()),
            TraceFormat::Csv => panic!("a trace in columns needs their specification"),
        };
        TraceReader::of(parser, format, input, options)
    }

    /// Creates a reader of `input` whose columns are specified.
    pub fn with_columns(spec: ColumnSpec, input: R, options: TraceOptions) -> TraceReader<R> {
        let drive = PlacedDrive {
            sector_bytes: options.sector_bytes.max(1),
            capacity: options.capacity_sectors,
        };
        let parser = Parser::Columns(Box::new(Columns::new(spec, drive)));
        TraceReader::of(parser, TraceFormat::Csv, input, options)
    }

    fn of(parser: Parser, format: TraceFormat, input: R, options: TraceOptions) -> TraceReader<R> {
        TraceReader {
            lines: lines::TraceInput::new(format, input),
            parser,
            gaps: GapCheck::new(format),
            order: OrderCheck::new(format, options.check_order),
            responses: ResponseCheck::new(format),
            ended: false,
        }
    }

    /// The format being read.
    pub fn format(&self) -> TraceFormat {
        self.lines.format()
    }

    /// Returns whether the records have pauses instead of arrivals.
    pub fn records_pauses(&self) -> bool {
        match &self.parser {
            Parser::Validate(_) => true,
            Parser::Columns(columns) => columns.records_pauses(),
            _ => false,
        }
    }

    /// The names of devices so far, in the order of their numbers, which count from 0. Empty if the
    /// trace gives numbers instead of names.
    pub fn device_names(&self) -> Vec<&str> {
        let numbered = match &self.parser {
            Parser::Columns(columns) => columns.device_names(),
            Parser::Fio(fio) => &fio.files,
            _ => return Vec::new(),
        };
        let mut names: Vec<_> = numbered.iter().collect();
        names.sort_unstable_by_key(|(_, number)| **number);
        names.into_iter().map(|(name, _)| name.as_str()).collect()
    }

    /// The values of the conditions on lines ([`ColumnText::filters`]) that no line has, by
    /// condition; available once the trace has ended.
    pub fn absent_values(&self) -> Vec<TraceError> {
        match &self.parser {
            Parser::Columns(columns) => columns.absent_values(),
            _ => Vec::new(),
        }
    }

    /// A suspicion about the unit of times, available once [`GAPS_CHECKED`] gaps have been read or
    /// the trace has ended.
    pub fn gap_warning(&self) -> Option<GapWarning> {
        self.gaps.warning()
    }

    /// A suspicion about the unit of measured times, available once [`RESPONSES_CHECKED`] of them
    /// have been read or the trace has ended.
    pub fn response_warning(&self) -> Option<ResponseWarning> {
        self.responses.warning()
    }

    /// The arrivals so far that precede the arrival of an earlier record, in formats whose records
    /// need not be in order.
    pub fn order_warning(&self) -> Option<OrderWarning> {
        self.order.warning()
    }
}

impl<R: BufRead> Iterator for TraceReader<R> {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        if self.ended {
            return None;
        }
        let lines = &mut self.lines;
        let record = match &mut self.parser {
            Parser::Ascii(parser) => parser.next(lines),
            Parser::Validate(parser) => parser.next(lines),
            Parser::Srt(parser) => parser.next(lines),
            Parser::Spc(parser) => parser.next(lines),
            Parser::Msr(parser) => parser.next(lines),
            Parser::Blkparse(parser) => parser.next(lines),
            Parser::Fio(parser) => parser.next(lines),
            Parser::FioLatency(parser) => parser.next(lines),
            Parser::Columns(parser) => parser.next(lines),
            Parser::Log(parser) => parser.next(lines),
        };
        match record {
            Ok(Some(record)) => {
                let early = match &self.parser {
                    Parser::Msr(parser) => parser.early,
                    Parser::Blkparse(parser) => parser.before_origin,
                    Parser::FioLatency(parser) => parser.held.early,
                    Parser::Columns(parser) => parser.early(),
                    _ => Span::ZERO,
                };
                if let Err(error) = self.order.check(&record, early, self.lines.place()) {
                    self.ended = true;
                    return Some(Err(error));
                }
                self.gaps.add(&record);
                self.responses.add(&record);
                return Some(Ok(record));
            }
            Ok(None) => {
                self.gaps.end();
                self.responses.end();
            }
            Err(_) => {}
        }
        self.ended = true;
        record.transpose()
    }
}

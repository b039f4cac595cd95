//! Detection of a trace's format.

use super::error::{TraceError, TraceProblem};
use super::lines::TraceInput;
use super::{TraceFormat, blkparse, disksim, fio, fio_latency, log, msr, spc, srt};

/// The maximum number of bytes that [`detect`] uses.
pub const DETECT_BYTES: usize = 16 * 1024;

/// The maximum number of lines that are tried.
const LINES_TRIED: usize = 20;

/// Detects the format of a trace from its first [`DETECT_BYTES`] bytes, or all of them if there are
/// fewer.
///
/// Binary files, fio's iologs and our own log are recognized by their first bytes. Another format
/// is recognized if its parser accepts the first lines, or at least the first one.
///
/// # Errors
/// Returns [`TraceError::Unrecognized`] if no format fits, with the beginning of the first line, or
/// if the file is empty or compressed. Returns [`TraceError::SeveralRuns`] for a request log of
/// several runs.
pub fn detect(bytes: &[u8]) -> Result<TraceFormat, TraceError> {
    let unrecognized = |reason: String| Err(TraceError::Unrecognized { reason });
    if bytes.is_empty() {
        return unrecognized("the file is empty".to_owned());
    }
    if bytes.starts_with(srt::MAGIC) {
        return Ok(TraceFormat::HpSrt);
    }
    if let [a, b, c, d, e, f, g, h, ..] = *bytes
        && srt::plausible(
            u32::from_be_bytes([a, b, c, d]),
            u32::from_be_bytes([e, f, g, h]),
        )
    {
        return Ok(TraceFormat::HpSrt);
    }
    for (magic, compression) in [
        (&[0x1f, 0x8b][..], "gzip"),
        (&[0x28, 0xb5, 0x2f, 0xfd], "zstd"),
        (b"BZh", "bzip2"),
    ] {
        if bytes.starts_with(magic) {
            return unrecognized(format!("the file is {compression}-compressed"));
        }
    }
    // The last line may be incomplete.
    let bytes = &bytes[..bytes.len().min(DETECT_BYTES)];
    let whole = match bytes.iter().rposition(|&byte| byte == b'\n') {
        Some(end) => &bytes[..=end],
        None => bytes,
    };
    if whole.starts_with(fio::V2.as_bytes()) {
        return Ok(TraceFormat::FioV2);
    }
    if whole.starts_with(fio::V3.as_bytes()) {
        return Ok(TraceFormat::FioV3);
    }
    // The columns of later versions begin with those of version 1.
    if whole.starts_with(log::COLUMNS_1.as_bytes()) {
        return Ok(TraceFormat::RequestLog);
    }
    if let Some(first_line) = whole.split(|&byte| byte == b'\n').next()
        && log::is_of_several_runs(first_line.trim_ascii_end())
    {
        return Err(TraceError::SeveralRuns);
    }
    let tried: Vec<_> = TraceFormat::all()
        .map(|format| (format, fit_of(format, whole)))
        .collect();
    let fits = |least| tried.iter().find(|(_, fit)| *fit >= least);
    // If a format parses the first line, or finds an empty request there, reading the trace in that
    // format reports the error and its line.
    if let Some((format, _)) = fits(Fit::All).or_else(|| fits(Fit::FirstLine)) {
        return Ok(*format);
    }
    let first = whole
        .split(|&byte| byte == b'\n')
        .find(|line| !line.trim_ascii().is_empty())
        .unwrap_or_default();
    let shown: String = String::from_utf8_lossy(&first[..first.len().min(60)])
        .escape_debug()
        .collect();
    let is_text = |byte: &u8| byte.is_ascii_graphic() || byte.is_ascii_whitespace();
    let hint = match first.iter().all(is_text) {
        true if is_five_numbers(&shown) => {
            "; --columns reads text with other columns, where op 0 is a read; for the columns of \
             disksim-ascii between commas, whose flags are 1 for a read, add --columns \
             time=1,device=2,lbn=3,sectors=4,op=5 --units ms --reads 1 --writes 0"
        }
        true => "; --columns reads text with other columns",
        false => "",
    };
    unrecognized(format!("it begins with \"{shown}\"{hint}"))
}

/// Returns whether a line has five numbers between commas, like a line of DiskSim's ASCII format
/// that a spreadsheet has written.
fn is_five_numbers(line: &str) -> bool {
    let mut fields = line.split(',').map(str::trim);
    let numbers = fields.by_ref().take(5);
    numbers.filter(|field| field.parse::<f64>().is_ok()).count() == 5 && fields.next().is_none()
}

/// The degree to which the first lines fit a format.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Fit {
    /// The first line does not fit.
    No,
    /// The first line fits, but a later one does not; or a line of this format is in error, such as
    /// an empty request.
    FirstLine,
    /// All lines tried fit, and there is at least one.
    All,
}

fn fit_of(format: TraceFormat, bytes: &[u8]) -> Fit {
    let so_far = |tried: usize| if tried > 0 { Fit::FirstLine } else { Fit::No };
    let mut lines = TraceInput::new(format, bytes);
    let mut origin = None;
    for tried in 0..LINES_TRIED {
        let line = match lines.next_line() {
            Ok(Some(line)) => line,
            Ok(None) if tried > 0 => return Fit::All,
            Ok(None) => return Fit::No,
            Err(_) => return so_far(tried),
        };
        let read = match format {
            TraceFormat::DiskSimValidate => disksim::validate(&line).map(drop),
            TraceFormat::DiskSimAscii => disksim::ascii(&line).map(drop),
            TraceFormat::Msr if tried == 0 && msr::is_heading(&line) => Ok(()),
            TraceFormat::Msr => msr::msr(&line, 512, &mut origin).map(drop),
            TraceFormat::Spc => spc::spc(&line, 512).map(drop),
            // Lines after a summary are no longer events.
            TraceFormat::Blkparse if tried > 0 && blkparse::is_summary(&line) => return Fit::All,
            TraceFormat::Blkparse => blkparse::Event::parse(&line).map(drop),
            // The reader's error states what is missing.
            TraceFormat::FioLatency if fio_latency::lacks_offset(&line) => return Fit::FirstLine,
            TraceFormat::FioLatency => fio_latency::check(&line),
            TraceFormat::HpSrt
            | TraceFormat::FioV2
            | TraceFormat::FioV3
            | TraceFormat::RequestLog
            | TraceFormat::Csv => return Fit::No,
        };
        match read {
            Ok(()) => {}
            Err(TraceError::At {
                problem: TraceProblem::Empty { .. },
                ..
            }) => return Fit::FirstLine,
            Err(_) => return so_far(tried),
        }
    }
    Fit::All
}

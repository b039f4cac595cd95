//! Reading a map file.

use std::io::Read;
use std::ops::Range;

use super::builder::Confidence;
use super::error::TrackMapError;
use super::file::{LbnRanges, MapFile, MapSource, ProbeCost};
use super::pattern::{DEPTH_MAX, Group, RunPattern, Term};
use super::write::LETTERS;
use super::{FILE_BYTES_MAX, MAGIC, TRACKS_MAX, TrackMap, VERSION};
use crate::{Identity, Region};
use traxtent_units::{Lbn, Sectors, Span};

/// The longest line that is accepted, in bytes.
const LINE_BYTES_MAX: usize = 4096;

type Result<T> = std::result::Result<T, TrackMapError>;

impl MapFile {
    /// Reads a file that [`MapFile::write`] has written.
    ///
    /// # Errors
    /// Returns an error if the file has another format or version, is truncated or altered, has an
    /// invalid line, or contradicts itself.
    pub fn read(bytes: &[u8]) -> Result<MapFile> {
        let body = sealed(bytes)?;
        let text = std::str::from_utf8(body).map_err(|error| {
            let before = &body[..error.valid_up_to()];
            let line = 1 + before.iter().filter(|&&byte| byte == b'\n').count() as u64;
            wrong(line, "is not UTF-8 text")
        })?;
        let mut lines = Lines::new(text)?;
        let header = Header::read(&mut lines)?;
        header.file(&mut lines)
    }

    /// Reads a map file from a stream. If the stream does not begin like a map file, its rest is
    /// not read.
    ///
    /// # Errors
    /// Returns the errors of [`read`](Self::read), and an error if the stream cannot be read or has
    /// more than [`FILE_BYTES_MAX`] bytes.
    pub fn read_from(mut input: impl Read) -> Result<MapFile> {
        let failed = |error| TrackMapError::Io { line: 1, error };
        let mut bytes = Vec::new();
        let mut start = input.by_ref().take(MAGIC.len() as u64);
        let start = start.read_to_end(&mut bytes).map_err(failed)?;
        if !MapFile::recognize(&bytes) {
            return Err(TrackMapError::NotATrackMap);
        }
        let rest = (FILE_BYTES_MAX + 1).saturating_sub(start as u64);
        input.take(rest).read_to_end(&mut bytes).map_err(failed)?;
        if bytes.len() as u64 > FILE_BYTES_MAX {
            return Err(TrackMapError::TooLong);
        }
        MapFile::read(&bytes)
    }

    /// Returns whether the bytes begin like a map file.
    pub fn recognize(start: &[u8]) -> bool {
        start.starts_with(MAGIC.as_bytes())
    }
}

/// Returns the bytes that the checksum covers, after checking the version and the checksum.
fn sealed(bytes: &[u8]) -> Result<&[u8]> {
    let version = bytes.strip_prefix(MAGIC.as_bytes());
    let version = version.and_then(|rest| rest.strip_prefix(b" "));
    let version = version.ok_or(TrackMapError::NotATrackMap)?;
    let Some(end) = version.iter().position(|&byte| byte == b'\n') else {
        return Err(TrackMapError::Truncated);
    };
    if &version[..end] != VERSION.as_bytes() {
        let shown = String::from_utf8_lossy(&version[..end.min(20)]);
        let found = shown.escape_debug().to_string();
        return Err(TrackMapError::Version { found });
    }
    const SEAL: &[u8] = b"checksum: ";
    let at = bytes.len().saturating_sub(SEAL.len() + 9);
    let (body, last) = bytes.split_at(at);
    let stated = last
        .strip_prefix(SEAL)
        .and_then(|rest| rest.strip_suffix(b"\n"))
        .and_then(|digits| std::str::from_utf8(digits).ok())
        .filter(|digits| {
            digits
                .bytes()
                .all(|digit| matches!(digit, b'0'..=b'9' | b'a'..=b'f'))
        })
        .and_then(|digits| u32::from_str_radix(digits, 16).ok())
        .filter(|_| body.ends_with(b"\n"))
        .ok_or(TrackMapError::Truncated)?;
    let computed = crc32fast::hash(body);
    if stated != computed {
        return Err(TrackMapError::Altered { stated, computed });
    }
    Ok(body)
}

fn wrong(line: u64, problem: impl Into<String>) -> TrackMapError {
    TrackMapError::Line {
        line,
        problem: problem.into(),
    }
}

/// The lines of a file with their numbers.
struct Lines<'a> {
    lines: std::iter::Peekable<std::iter::Zip<std::ops::RangeFrom<u64>, std::str::Lines<'a>>>,
    /// The number of the line after the last: that of the checksum.
    end: u64,
}

impl<'a> Lines<'a> {
    /// Returns the lines after the first.
    fn new(text: &'a str) -> Result<Lines<'a>> {
        for (number, line) in (1..).zip(text.lines()) {
            if line.len() > LINE_BYTES_MAX {
                return Err(wrong(
                    number,
                    format!("is longer than {LINE_BYTES_MAX} bytes"),
                ));
            }
        }
        let mut lines = (1..).zip(text.lines()).peekable();
        lines.next();
        let end = 1 + text.lines().count() as u64;
        Ok(Lines { lines, end })
    }

    /// Returns whether the section called `name` begins here. If so, consumes its title.
    fn section(&mut self, name: &str) -> bool {
        let is = |line: &str| line.strip_suffix(':') == Some(name);
        self.lines.next_if(|(_, line)| is(line)).is_some()
    }

    /// Returns the next line of a section.
    fn next_of_section(&mut self) -> Option<(u64, &'a str)> {
        self.lines.next_if(|(_, line)| !line.contains(':'))
    }

    /// The number of the next line.
    fn number(&mut self) -> u64 {
        self.lines.peek().map_or(self.end, |(number, _)| *number)
    }
}

/// The lines before the sections.
struct Header<'a> {
    /// The entries that have not been consumed: line number, key and value.
    entries: Vec<(u64, &'a str, &'a str)>,
    /// The number of the line after the header.
    end: u64,
}

impl<'a> Header<'a> {
    fn read(lines: &mut Lines<'a>) -> Result<Header<'a>> {
        let mut entries: Vec<(u64, &str, &str)> = Vec::new();
        while let Some((number, line)) = lines.lines.next_if(|(_, line)| *line != "sizes:") {
            let (key, value) = line
                .split_once(':')
                .ok_or_else(|| wrong(number, "expected a key, a colon and a value"))?;
            if key != "note" && entries.iter().any(|entry| entry.1 == key) {
                return Err(wrong(number, format!("{key}: occurs twice")));
            }
            entries.push((number, key, value.trim()));
        }
        let end = lines.number();
        Ok(Header { entries, end })
    }

    /// Consumes the value of a key and parses it.
    fn optional<T>(
        &mut self,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>> {
        let Some(at) = self.entries.iter().position(|entry| entry.1 == key) else {
            return Ok(None);
        };
        let (number, _, value) = self.entries.remove(at);
        match parse(value) {
            Some(value) => Ok(Some(value)),
            None => Err(wrong(
                number,
                format!("{key}: {value:?}: expected {expected}"),
            )),
        }
    }

    fn required<T>(
        &mut self,
        key: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<T> {
        let end = self.end;
        self.optional(key, expected, parse)?
            .ok_or_else(|| wrong(end, format!("the key {key} is missing before this line")))
    }

    fn number(&mut self, key: &str) -> Result<u64> {
        self.required(key, "a whole number", whole)
    }

    fn text(&mut self, key: &str) -> Result<String> {
        self.required(key, "text", |value| Some(value.to_owned()))
    }

    /// Parses the header's entries, and reads the sections.
    fn file(mut self, lines: &mut Lines<'_>) -> Result<MapFile> {
        let complete = self.required("state", "complete or incomplete", |value| match value {
            "complete" => Some(true),
            "incomplete" => Some(false),
            _ => None,
        })?;
        let bytes = |value: &str| value.parse::<u32>().ok();
        let identity = Identity {
            vendor: self.text("vendor")?,
            product: self.text("product")?,
            serial: self.text("serial")?,
            capacity: Sectors(self.number("capacity")?),
            logical_bytes: self.required("logical-bytes", "a number of bytes", bytes)?,
            physical_bytes: self.required("physical-bytes", "a number of bytes", bytes)?,
        };
        let method = self.required(
            "method",
            "model, list, volume, or an algorithm followed by none, sample or full",
            MapSource::parse,
        )?;
        let region = self.optional("region", "FIRST..END and aligned or unaligned", region)?;
        let cost = ProbeCost {
            reads: self.number("reads")?,
            translations: self.number("translations")?,
            drive_time: self.required("drive-time-us", "a number of microseconds", |value| {
                whole(value)?.checked_mul(1_000_000).map(Span)
            })?,
        };
        let stated = [
            self.number("tracks")?,
            self.number("predicted")?,
            self.number("sampled")?,
            self.number("tested")?,
        ];
        let lbns = self.required("lbns", "FIRST..END", range)?;
        let mut notes = Vec::new();
        while let Some(note) = self.optional("note", "text", |value| Some(value.to_owned()))? {
            notes.push(note);
        }
        if let Some((number, key, _)) = self.entries.first() {
            return Err(wrong(*number, format!("{key:?}: unknown key")));
        }

        let size = |word: &str| word.parse::<u32>().ok().filter(|&size| size > 0);
        let sizes = section(lines, "sizes", "1 to 4294967295", size)?;
        let letter = |word: &str| LETTERS.iter().position(|letter| *letter == word);
        let confidence = section(lines, "confidence", "p, s or t", |word| {
            letter(word).map(|k| k as u32)
        })?;
        let confidence = Confidence(confidence);
        let [predicted, sampled, tested] = confidence.counts();
        let count = predicted + sampled + tested;
        if [count, predicted, sampled, tested] != stated || sizes.extent().count != count {
            return Err(wrong(
                self.end,
                "the counts of tracks differ from those in the header",
            ));
        }
        if lbns.start.0.checked_add(sizes.extent().sum) != Some(lbns.end.0)
            || lbns.end.0 > identity.capacity.0
        {
            return Err(wrong(
                self.end,
                "the tracks do not match the LBNs or the capacity that the header states",
            ));
        }
        let file = MapFile {
            identity,
            method,
            complete,
            region,
            cost,
            tracks: TrackMap {
                first: lbns.start,
                sizes,
            },
            confidence,
            unreadable: list(lines, "unreadable")?,
            remapped: list(lines, "moved")?,
            notes,
        };
        match lines.lines.next() {
            None => Ok(file),
            Some((number, _)) => Err(wrong(number, "unexpected text after the last section")),
        }
    }
}

/// Parses a whole number that consists of digits only.
fn whole(text: &str) -> Option<u64> {
    let digits = !text.is_empty() && text.bytes().all(|byte| byte.is_ascii_digit());
    digits.then(|| text.parse().ok()).flatten()
}

fn range(text: &str) -> Option<Range<Lbn>> {
    let (start, end) = text.split_once("..")?;
    let (start, end) = (whole(start)?, whole(end)?);
    (start < end).then_some(Lbn(start)..Lbn(end))
}

fn region(text: &str) -> Option<Region> {
    let (lbns, how) = text.split_once(' ')?;
    let Range { start, end } = range(lbns)?;
    let aligned = match how {
        "aligned" => true,
        "unaligned" => false,
        _ => return None,
    };
    Some(Region {
        first: start,
        end,
        aligned,
    })
}

/// Reads an optional section of LBNs.
fn list(lines: &mut Lines<'_>, name: &str) -> Result<LbnRanges> {
    let mut ranges = LbnRanges::new();
    if !lines.section(name) {
        return Ok(ranges);
    }
    while let Some((number, line)) = lines.next_of_section() {
        for word in line.split_ascii_whitespace() {
            let single = || whole(word).and_then(|lbn| Some(Lbn(lbn)..Lbn(lbn.checked_add(1)?)));
            let found = range(word).or_else(single);
            let after = ranges.last().map(|last: &Range<Lbn>| last.end);
            match found.filter(|found| after.is_none_or(|after| found.start > after)) {
                Some(found) => ranges.push(found),
                None => {
                    let says = "expected an LBN or FIRST..END beyond the previous range, not adjacent to it";
                    return Err(wrong(number, format!("{name}: {word:?}: {says}")));
                }
            }
        }
    }
    Ok(ranges)
}

/// Reads a section of numbers and groups. `expected` describes a number in messages.
fn section(
    lines: &mut Lines<'_>,
    name: &str,
    expected: &str,
    number: impl Fn(&str) -> Option<u32>,
) -> Result<RunPattern> {
    if !lines.section(name) {
        let line = lines.number();
        return Err(wrong(line, format!("expected the section {name}")));
    }
    let mut terms = Terms::default();
    let mut last = 0;
    while let Some((line, text)) = lines.next_of_section() {
        last = line;
        terms
            .line(text, expected, &number)
            .map_err(|problem| wrong(line, format!("{name}: {problem}")))?;
    }
    terms
        .finish()
        .map_err(|problem| wrong(last, format!("{name}: {problem}")))
}

/// The terms read so far: complete terms, and the terms of open groups.
#[derive(Default)]
struct Terms {
    pattern: RunPattern,
    open: Vec<Vec<Term>>,
}

impl Terms {
    /// Reads a line of numbers and groups, separated by blanks, each with an optional repeat count.
    fn line(
        &mut self,
        mut rest: &str,
        expected: &str,
        number: &impl Fn(&str) -> Option<u32>,
    ) -> std::result::Result<(), String> {
        const MOST: u64 = TRACKS_MAX as u64;
        loop {
            rest = rest.trim_start_matches(' ');
            if let Some(after) = rest.strip_prefix('(') {
                if self.open.len() == DEPTH_MAX {
                    return Err(format!("groups are nested more than {DEPTH_MAX} deep"));
                }
                self.open.push(Vec::new());
                rest = after;
                continue;
            }
            let Some(first) = rest.chars().next() else {
                return Ok(());
            };
            let term = if first == ')' {
                let terms = self
                    .open
                    .pop()
                    .ok_or("a closing parenthesis has no opening one")?;
                if terms.is_empty() {
                    return Err("a group is empty".to_owned());
                }
                let times = times(&mut rest, 1)?;
                let group = Group::new(terms, times, MOST);
                Term::Group(Box::new(group.ok_or_else(too_many)?))
            } else {
                let end = rest.find(['*', ' ', '(', ')']).unwrap_or(rest.len());
                let word = &rest[..end];
                let number =
                    number(word).ok_or_else(|| format!("{word:?}: expected {expected}"))?;
                let times = times(&mut rest, end)?;
                Term::Run { number, times }
            };
            match self.open.last_mut() {
                Some(group) => group.push(term),
                None => self
                    .pattern
                    .append_checked(term, MOST)
                    .ok_or_else(too_many)?,
            }
        }
    }

    fn finish(self) -> std::result::Result<RunPattern, &'static str> {
        if !self.open.is_empty() {
            return Err("a group is not closed");
        }
        if self.pattern.extent().count == 0 {
            return Err("there are no tracks");
        }
        Ok(self.pattern)
    }
}

fn too_many() -> String {
    format!("more than {TRACKS_MAX} tracks")
}

/// Skips `skip` bytes, then consumes and returns the repeat count: 1 if there is none.
fn times(rest: &mut &str, skip: usize) -> std::result::Result<u32, String> {
    let after = &rest[skip..];
    let Some(factor) = after.strip_prefix('*') else {
        *rest = after;
        return Ok(1);
    };
    let end = factor
        .find(|c: char| !c.is_ascii_digit())
        .unwrap_or(factor.len());
    let times = factor[..end].parse().ok();
    let times = times.filter(|times| (1..=TRACKS_MAX as u32).contains(times));
    *rest = &factor[end..];
    times.ok_or_else(|| format!("*{}: expected 1 to {TRACKS_MAX} times", &factor[..end]))
}

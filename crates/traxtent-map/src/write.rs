//! Writing a map file.

use std::fmt::Write;
use std::io;

use super::file::{LbnRanges, MapFile, one_line};
use super::pattern::{RunPattern, Term};
use super::{MAGIC, VERSION};
use crate::Region;

/// The maximum length of a section's lines in bytes, except for a single word that is longer.
const LINE_BYTES: usize = 96;

/// The letters for the variants of [`crate::Confirm`], in their order.
pub(super) const LETTERS: [&str; 3] = ["p", "s", "t"];

impl MapFile {
    /// Writes the file; [`MapFile::read`] reads it back.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn write(&self, out: &mut impl io::Write) -> io::Result<()> {
        out.write_all(self.to_text().as_bytes())
    }

    /// The text of the file.
    pub fn to_text(&self) -> String {
        let mut text = format!("{MAGIC} {VERSION}\n");
        let mut line = |key: &str, value: &dyn std::fmt::Display| {
            let line = format!("{key}: {value}");
            text.push_str(line.trim_end());
            text.push('\n');
        };
        line(
            "state",
            &if self.complete {
                "complete"
            } else {
                "incomplete"
            },
        );
        line("vendor", &one_line(&self.identity.vendor));
        line("product", &one_line(&self.identity.product));
        line("serial", &one_line(&self.identity.serial));
        line("capacity", &self.identity.capacity.0);
        line("logical-bytes", &self.identity.logical_bytes);
        line("physical-bytes", &self.identity.physical_bytes);
        line("method", &self.method);
        if let Some(Region {
            first,
            end,
            aligned,
        }) = self.region
        {
            let how = if aligned { "aligned" } else { "unaligned" };
            line("region", &format_args!("{first}..{end} {how}"));
        }
        line("reads", &self.cost.reads);
        line("translations", &self.cost.translations);
        line("drive-time-us", &(self.cost.drive_time.0 / 1_000_000));
        line("tracks", &self.tracks.len());
        line(
            "lbns",
            &format_args!("{}..{}", self.tracks.first(), self.tracks.end()),
        );
        let [predicted, sampled, tested] = self.confidence.counts();
        line("predicted", &predicted);
        line("sampled", &sampled);
        line("tested", &tested);
        for note in &self.notes {
            line("note", &one_line(note));
        }
        text.push_str("sizes:\n");
        let size = |number: u32, out: &mut String| _ = write!(out, "{number}");
        pattern(&self.tracks.sizes, size, &mut text);
        text.push_str("confidence:\n");
        let letter = |number: u32, out: &mut String| out.push_str(LETTERS[number as usize]);
        pattern(&self.confidence.0, letter, &mut text);
        ranges("unreadable:\n", &self.unreadable, &mut text);
        ranges("moved:\n", &self.remapped, &mut text);
        seal(&mut text);
        text
    }
}

/// Appends the last line: the checksum of the preceding text.
pub fn seal(text: &mut String) {
    let sum = crc32fast::hash(text.as_bytes());
    _ = writeln!(text, "checksum: {sum:08x}");
}

/// A writer of a section's words that wraps the lines.
struct Words<'a> {
    out: &'a mut String,
    column: usize,
    word: String,
}

impl Words<'_> {
    fn end_word(&mut self) {
        if self.column > 0 && self.column + 1 + self.word.len() > LINE_BYTES {
            self.out.push('\n');
            self.column = 0;
        }
        if self.column > 0 {
            self.out.push(' ');
            self.column += 1;
        }
        self.out.push_str(&self.word);
        self.column += self.word.len();
        self.word.clear();
    }

    fn end(mut self) {
        if !self.word.is_empty() {
            self.end_word();
        }
        self.out.push('\n');
    }

    /// Adds terms. A parenthesis is part of the word before or after it.
    fn terms(&mut self, terms: &[Term], number: &impl Fn(u32, &mut String)) {
        for term in terms {
            if !self.word.is_empty() && !self.word.ends_with('(') {
                self.end_word();
            }
            let times = match term {
                Term::Run {
                    number: value,
                    times,
                } => {
                    number(*value, &mut self.word);
                    times
                }
                Term::Group(group) => {
                    self.word.push('(');
                    self.terms(&group.terms, number);
                    self.word.push(')');
                    &group.times
                }
            };
            if *times > 1 {
                _ = write!(self.word, "*{times}");
            }
        }
    }
}

fn words(out: &mut String) -> Words<'_> {
    Words {
        out,
        column: 0,
        word: String::new(),
    }
}

fn pattern(pattern: &RunPattern, number: impl Fn(u32, &mut String), out: &mut String) {
    let mut words = words(out);
    words.terms(pattern.terms(), &number);
    words.end();
}

fn ranges(name: &str, ranges: &LbnRanges, out: &mut String) {
    if ranges.is_empty() {
        return;
    }
    out.push_str(name);
    let mut words = words(out);
    for (index, range) in ranges.iter().enumerate() {
        if index > 0 {
            words.end_word();
        }
        _ = if range.end.0 - range.start.0 == 1 {
            write!(words.word, "{}", range.start)
        } else {
            write!(words.word, "{}..{}", range.start, range.end)
        };
    }
    words.end();
}

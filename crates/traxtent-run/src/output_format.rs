//! The formats of output files, and their recognition in existing files.
//!
//! A file is recognized by its first bytes. An edited output, or that of another version, counts as
//! the same format. The command and the Python package refuse to replace a file of another format.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::Path;

use traxtent_map::MapFile;

use crate::error::{Result, RunError};
use crate::{data_file, input};

/// The number of bytes that are read to recognize a file. The header of every format is shorter.
const HEAD_BYTES: u64 = 64 << 10;

/// The first bytes of a Parquet file.
const PARQUET: &[u8] = b"PAR1";

/// The value of the first key in a file that `traxtent check --collect` wrote.
const STACK: &str = "\"traxtent stack\"";

/// The number of bytes from the start of a file that contain [`STACK`].
const STACK_BYTES: usize = 64;

/// The format of an output file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OutputFormat {
    /// Bad blocks as `mke2fs -l` reads them.
    BlockList,
    /// A track map.
    Map,
    /// A report in HTML.
    Page,
    /// A picture in SVG or PNG.
    Picture,
    /// The profile of a drive.
    Profile,
    /// The receipt of a served drive.
    Receipt,
    /// A request log: Parquet or, possibly compressed, CSV.
    RequestLog,
    /// A shell script.
    Script,
    /// The stack of layers that `traxtent check --collect` writes.
    Stack,
    /// The figures of runs, in the formats of a request log.
    Summary,
    /// A list of tracks as CSV.
    TrackList,
}

impl OutputFormat {
    /// Refuses to replace an existing file of another format. Pipes, terminals and other special
    /// files are not examined.
    ///
    /// # Errors
    /// Returns an error if a regular file at `path` has another format or cannot be read.
    pub fn check_output(self, path: &Path) -> Result<()> {
        let is_file = fs::metadata(path).is_ok_and(|meta| meta.is_file());
        match !is_file || self.can_replace(path)? {
            true => Ok(()),
            false => Err(RunError::at(path.display(), self.refusal(None))),
        }
    }

    /// Returns whether a file is empty or has this format.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn can_replace(self, path: &Path) -> Result<bool> {
        let fail = |error: io::Error| RunError::file(path, &error);
        let mut head = Vec::new();
        File::open(path)
            .map_err(fail)?
            .take(HEAD_BYTES)
            .read_to_end(&mut head)
            .map_err(fail)?;
        if head.is_empty() {
            return Ok(true);
        }
        if !matches!(self, OutputFormat::RequestLog | OutputFormat::Summary) {
            return Ok(self.begins(&head));
        }
        if data_file::is_parquet(path) {
            return Ok(head.starts_with(PARQUET));
        }
        if is_compressed(path) {
            head.clear();
            // The log of a server that was killed ends early. What can be read decides.
            let _ = input::open(path)?.take(HEAD_BYTES).read_to_end(&mut head);
        }
        Ok(self.begins(&head))
    }

    /// Returns whether a file that begins with these bytes has this format.
    fn begins(self, head: &[u8]) -> bool {
        let is_png = head.starts_with(b"\x89PNG\r\n\x1a\n");
        if self == OutputFormat::Picture && is_png {
            return true;
        }
        if head.contains(&0) {
            return false;
        }
        let text = String::from_utf8_lossy(head);
        let first = text.lines().next().unwrap_or_default();
        match self {
            // The last line may be cut.
            OutputFormat::BlockList => {
                let complete = text.rsplit_once('\n').map_or("", |(complete, _)| complete);
                !complete.is_empty() && complete.lines().all(|line| line.parse::<u64>().is_ok())
            }
            OutputFormat::Map => MapFile::recognize(head),
            OutputFormat::TrackList => has_columns(first, &["first_lbn", "sectors"]),
            OutputFormat::Page => text.starts_with("<!DOCTYPE html>"),
            OutputFormat::Picture => text.starts_with("<svg"),
            // No other TOML file of the command has this table. A heading precedes it.
            OutputFormat::Profile => text.lines().any(|line| {
                let line = line.trim_start().trim_start_matches('[');
                let rest = line.strip_prefix("geometry");
                rest.is_some_and(|rest| rest.trim_start().starts_with([']', '.', '=']))
            }),
            OutputFormat::Receipt => text
                .strip_prefix('{')
                .is_some_and(|rest| rest.trim_start().starts_with("\"receipt\":")),
            OutputFormat::RequestLog => has_columns(first, &["request", "op", "lbn"]),
            OutputFormat::Script => {
                first.starts_with("#!/bin/sh") && text.contains("\n# All data on ")
            }
            OutputFormat::Stack => {
                let start = &head[..head.len().min(STACK_BYTES)];
                first.starts_with('{') && String::from_utf8_lossy(start).contains(STACK)
            }
            OutputFormat::Summary => has_columns(first, &["workload", "requests"]),
        }
    }

    /// Returns the reason why a file of another format is not replaced. `content` describes the
    /// file's content, if it is known.
    pub fn refusal(self, content: Option<&str>) -> String {
        let holds = content.map(|content| format!(" (it holds {content})"));
        format!(
            "exists and is not {}{}; name another file",
            self.name(),
            holds.unwrap_or_default()
        )
    }

    /// Returns the format's name with its article.
    fn name(self) -> &'static str {
        match self {
            OutputFormat::BlockList => "a list of bad blocks",
            OutputFormat::Map => "a track map",
            OutputFormat::Page => "an HTML page",
            OutputFormat::Picture => "an SVG or PNG picture",
            OutputFormat::Profile => "a profile",
            OutputFormat::Receipt => "a receipt",
            OutputFormat::RequestLog => "a request log",
            OutputFormat::Script => "a shell script",
            OutputFormat::Stack => "a file that --collect wrote",
            OutputFormat::Summary => "a summary of runs",
            OutputFormat::TrackList => "a list of tracks",
        }
    }
}

fn is_compressed(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("gz" | "zst"))
}

/// Returns whether a line of CSV has all these column names.
fn has_columns(line: &str, names: &[&str]) -> bool {
    names
        .iter()
        .all(|name| line.split(',').any(|column| column == *name))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are the formats told apart, and are images and other texts refused?
    #[test]
    fn formats_by_their_first_bytes() {
        let examples: [(OutputFormat, &[u8]); 12] = [
            (OutputFormat::BlockList, b"4711\n4712\n"),
            (OutputFormat::Map, b"traxtent track map 1\n"),
            (OutputFormat::Page, b"<!DOCTYPE html>\n<html>"),
            (OutputFormat::Picture, b"<svg width=\"1\">"),
            (OutputFormat::Picture, b"\x89PNG\r\n\x1a\n\0\0\0\x0d"),
            (
                OutputFormat::Profile,
                b"# a: a profile copied from b.\n\nname = \"a\"\n\n[geometry]\nsurfaces = 1\n",
            ),
            (OutputFormat::Receipt, b"{\n  \"receipt\": 1"),
            (
                OutputFormat::RequestLog,
                b"drive,request,device,op,fua,lbn\n",
            ),
            (
                OutputFormat::Script,
                b"#!/bin/sh -e\n# All data on /dev/DISK will be lost.\n",
            ),
            (OutputFormat::Stack, b"{\n  \"format\": \"traxtent stack\""),
            (OutputFormat::Summary, b"drive,seed,workload,requests\n"),
            (OutputFormat::TrackList, b"first_lbn,sectors\n0,528\n"),
        ];
        for (format, own) in examples {
            for (other, text) in examples {
                let same = format == other;
                assert_eq!(format.begins(text), same, "{format:?}: a text of {other:?}");
            }
            for foreign in [
                &b"\0\0\0\0"[..],
                b"{\"a\": 1}",
                b"[package]\nname = \"a\"\nformat = 1\n",
                b"time,value\n1,2\n",
                b"4711 is the number of blocks.\n",
                b"4711\nand notes\n",
                b"#!/bin/sh -e\necho of the user\n",
                b"\xeb\x3c\x90mkfs.fat",
            ] {
                assert!(!format.begins(foreign), "{format:?}: {foreign:?}");
            }
            let binary = [own, b"\0"].concat();
            let is_png = own.starts_with(b"\x89");
            assert_eq!(format.begins(&binary), is_png, "{format:?}");
        }
    }
}

//! `traxtent file show`: the share of each file that is on whole tracks.

use std::fs::File;
use std::io::{self, Write};
use std::path::Path;

use serde_json::{Value, json};
use traxtent_file::{PieceKind, Summary, file_extents, summarize};

use super::ShowArgs;
use super::subject::{FileSystems, failure, files_below};
use crate::drives::bytes;
use crate::failure::{Failure, Result, warn};
use crate::output;
use crate::table::{Side, Table};

/// The number of bars in a picture.
const BARS: u64 = 64;

/// Bars of height 0 to 8.
const HEIGHTS: [char; 9] = [' ', '▁', '▂', '▃', '▄', '▅', '▆', '▇', '█'];

/// Runs the command.
pub(super) fn run(args: &ShowArgs) -> Result<()> {
    let mut systems = FileSystems::new(&args.map.maps)?;
    let (mut found, mut left_out) = (Vec::new(), 0);
    for file in files_below(&args.paths)? {
        match examine(&file.path, &mut systems) {
            Ok(Some(summary)) => found.push((file.path.display().to_string(), summary)),
            Ok(None) => left_out += 1,
            Err(_) if file.is_gone() => {}
            Err(error) => return Err(error),
        }
    }
    if args.json {
        let rows: Vec<Value> = found
            .iter()
            .map(|(name, summary)| json_of(name, summary))
            .collect();
        output::json(&rows)?;
    } else if !found.is_empty() || left_out == 0 {
        print(&found)?;
    }
    match left_out {
        0 => Ok(()),
        left_out => Err(Failure::Finding(format!(
            "{left_out} of {} left out",
            traxtent_units::Count(found.len() + left_out, "file")
        ))),
    }
}

/// Measures a file; `None`, with a warning, if its file system does not support that.
fn examine(path: &Path, systems: &mut FileSystems) -> Result<Option<Summary>> {
    let fail = |error| Failure::file(path, &error);
    if !std::fs::metadata(path).map_err(fail)?.is_file() {
        return Err(Failure::at(path.display(), "not a regular file"));
    }
    systems.warn_of_other_drives(path)?;
    let (system, drives) = systems.of(path)?;
    let file = File::open(path).map_err(fail)?;
    let extents = match file_extents(&file) {
        Err(error) if error.kind() == io::ErrorKind::Unsupported => {
            warn(format!("{}: left out: {error}", path.display()));
            return Ok(None);
        }
        extents => extents.map_err(fail)?,
    };
    Ok(Some(summarize(&extents, system, drives).map_err(failure)?))
}

/// Prints the table and the bars.
fn print(found: &[(String, Summary)]) -> Result<()> {
    let columns = [
        ("FILE", Side::Left),
        ("ON DISK", Side::Right),
        ("WHOLE TRACKS", Side::Right),
        ("PARTS OF TRACKS", Side::Right),
        ("ACROSS TRACKS", Side::Right),
        ("PIECES", Side::Right),
    ];
    let mut table = Table::new(columns);
    for (name, summary) in found {
        let share = |part: u64| percent(part, summary.bytes);
        table.row([
            name.clone(),
            bytes(summary.bytes),
            share(summary.whole_bytes),
            share(summary.part_bytes),
            share(summary.spanning_bytes),
            summary.pieces.to_string(),
        ]);
    }
    let mut out = output::stdout();
    table.write(&mut out)?;
    for (name, summary) in found {
        writeln!(
            out,
            "\n{name}: share on whole tracks, from its beginning to its end"
        )?;
        writeln!(out, "|{}|", bars(summary))?;
    }
    output::finish(out)
}

/// Returns a JSON object that describes how a file lies on tracks.
pub(super) fn json_of(name: &str, summary: &Summary) -> Value {
    json!({
        "file": name,
        "bytes": summary.bytes,
        "whole_bytes": summary.whole_bytes,
        "part_bytes": summary.part_bytes,
        "spanning_bytes": summary.spanning_bytes,
        "whole_share": summary.whole_share(),
        "whole_tracks": summary.whole_tracks,
        "pieces": summary.pieces,
    })
}

/// Returns a share as a percentage.
pub(super) fn percent(part: u64, of: u64) -> String {
    match of {
        0 => "-".to_owned(),
        of => format!("{:.1} %", 100.0 * part as f64 / of as f64),
    }
}

/// Draws a bar for each of [`BARS`] equal parts of a file: its share on whole tracks.
fn bars(summary: &Summary) -> String {
    let total = summary.bytes.max(1);
    let mut whole = [0.0; BARS as usize];
    let mut at = 0;
    for &(kind, length) in &summary.runs {
        if kind == PieceKind::Whole {
            let position = |byte: u64| byte as f64 * BARS as f64 / total as f64;
            let (start, end) = (position(at), position(at + length));
            for (bar, share) in whole.iter_mut().enumerate() {
                let bar = bar as f64;
                *share += (end.min(bar + 1.0) - start.max(bar)).max(0.0);
            }
        }
        at += length;
    }
    let height = |share: &f64| HEIGHTS[((share * 8.0).round() as usize).min(8)];
    whole.iter().map(height).collect()
}

//! Summaries of maps.

use std::io::{self, Write};

use traxtent_map::{LbnRanges, MapFile, MapSource};
use traxtent_probe::{Algorithm, Confirm};
use traxtent_units::Count;

use super::Subject;

/// Writes a summary of a map or drive.
pub(super) fn write(subject: &Subject, out: &mut impl Write) -> io::Result<()> {
    of_file(subject.name(), &subject.file(), out)?;
    if let Some(geometry) = subject.geometry() {
        writeln!(
            out,
            "{:>12}  {}, {}, {}",
            "geometry",
            Count(geometry.cylinders(), "cylinder"),
            Count(geometry.surfaces(), "head"),
            Count(geometry.zones().len(), "zone")
        )?;
    }
    Ok(())
}

/// Writes a summary of a map alone.
pub(crate) fn of_file(name: &str, file: &MapFile, out: &mut impl Write) -> io::Result<()> {
    let (first, end) = (file.tracks.first(), file.tracks.end());
    writeln!(
        out,
        "{name}: {}, LBNs {first} to {}{}",
        Count(file.tracks.len(), "track"),
        end.0 - 1,
        if first.0 == 0 && end.0 == file.identity.capacity.0 {
            String::new()
        } else {
            format!(" of {}", file.identity.capacity.0)
        }
    )?;
    let mut line = |name: &str, text: String| writeln!(out, "{name:>12}  {text}");
    line("drive", drive(file))?;
    line("sizes", sizes(file))?;
    line("known from", method(file))?;
    if let MapSource::Probe(..) = file.method {
        line("confidence", confidence(file))?;
    }
    if !file.complete {
        let text = "incomplete: the checkpoint of an unfinished probe";
        line("state", text.to_owned())?;
    }
    if let Some(region) = file.region {
        line(
            "region",
            format!("LBNs {} to {}", region.first, region.end.0 - 1),
        )?;
    }
    for (name, ranges) in [("unreadable", &file.unreadable), ("moved", &file.remapped)] {
        if !ranges.is_empty() {
            line(name, listed(ranges))?;
        }
    }
    for note in &file.notes {
        line("note", note.clone())?;
    }
    Ok(())
}

fn drive(file: &MapFile) -> String {
    let identity = &file.identity;
    let mut text = format!("{} {}", identity.vendor, identity.product);
    if !identity.serial.is_empty() {
        text = format!("{text}, serial number {}", identity.serial);
    }
    let text = text.trim();
    format!(
        "{}, sectors of {} bytes ({} physical)",
        if text.is_empty() { "unknown" } else { text },
        identity.logical_bytes,
        identity.physical_bytes
    )
}

fn sizes(file: &MapFile) -> String {
    let (mut least, mut most, mut changes, mut last) = (u32::MAX, 0, 0_u64, None);
    for (sectors, _) in file.tracks.runs() {
        least = least.min(sectors);
        most = most.max(sectors);
        if last.is_some_and(|last| last != sectors) {
            changes += 1;
        }
        last = Some(sectors);
    }
    if least == most {
        format!("{} on every track", Count(most, "sector"))
    } else {
        let changes = Count(changes, "change");
        format!("{least} to {most} sectors, {changes} of size between consecutive tracks")
    }
}

fn method(file: &MapFile) -> String {
    match file.method {
        MapSource::Model => "the drive's model".to_owned(),
        MapSource::List => "a list of tracks".to_owned(),
        MapSource::Volume => "a volume, whose chunks are the tracks".to_owned(),
        MapSource::Probe(algorithm, verify) => format!(
            "a probe by {}{}: {}, {}, {:.1} s of the drive's time",
            algorithm.name(),
            // The other algorithms predict no boundaries.
            match algorithm {
                Algorithm::Angle => format!(", verification {}", verify.name()),
                _ => String::new(),
            },
            Count(file.cost.reads, "read"),
            Count(file.cost.translations, "translation"),
            file.cost.drive_time.as_ms() / 1000.0
        ),
    }
}

fn confidence(file: &MapFile) -> String {
    let all = file.tracks.len() as f64;
    let counts = Confirm::ALL.into_iter().zip(file.confidence.counts());
    let shares: Vec<String> = counts
        .filter(|(_, count)| *count > 0)
        .map(|(confirm, count)| {
            format!(
                "{count} {} ({:.2} %)",
                confirm.name(),
                count as f64 / all * 100.0
            )
        })
        .collect();
    shares.join(", ")
}

fn listed(ranges: &LbnRanges) -> String {
    const SHOWN: usize = 8;
    let count: u64 = ranges.iter().map(|range| range.end.0 - range.start.0).sum();
    let mut shown: Vec<String> = ranges
        .iter()
        .take(SHOWN)
        .map(|range| match range.end.0 - range.start.0 {
            1 => range.start.to_string(),
            _ => format!("{}..{}", range.start, range.end),
        })
        .collect();
    if ranges.len() > SHOWN {
        shown.push("…".to_owned());
    }
    format!("{}: {}", Count(count, "LBN"), shown.join(" "))
}

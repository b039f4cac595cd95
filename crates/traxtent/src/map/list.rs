//! Lists of individual tracks.

use std::io::Write;

use serde_json::{Value, json};
use traxtent_map::{LbnRanges, MapFile, MapSource};
use traxtent_model::geometry::{Geometry, Track, write_csv};
use traxtent_run::NamedDrive;
use traxtent_units::{Count, Lbn};

use super::{Format, Subject};
use crate::failure::{Failure, Result};

/// Writes every track.
pub(super) fn all_tracks(subject: &Subject, format: Format, out: &mut impl Write) -> Result<()> {
    match (subject, format) {
        (Subject::Drive(drive), Format::Csv) => Ok(write_csv(&drive.geometry, out)?),
        (Subject::Drive(drive), Format::Json) => write_json(drive, out),
        (Subject::Drive(drive), _) => write_text(drive, out),
        (Subject::Map(_, file), Format::Csv) => Ok(file.tracks.write_csv(out)?),
        (Subject::Map(_, file), Format::Json) => write_map_json(file, out),
        (Subject::Map(_, file), _) => write_map_text(file, out),
    }
}

/// Writes the track that holds an LBN.
pub(super) fn one_track(
    subject: &Subject,
    lbn: Lbn,
    format: Option<Format>,
    out: &mut impl Write,
) -> Result<()> {
    let format = format.unwrap_or(Format::Text);
    if matches!(format, Format::Map | Format::Badblocks) {
        return Err(Failure::input("--lbn prints text, CSV or JSON"));
    }
    match subject {
        Subject::Drive(drive) => write_track(drive, lbn, format, out),
        Subject::Map(_, file) => write_mapped_track(file, lbn, format, out),
    }
}

fn write_mapped_track(
    file: &MapFile,
    lbn: Lbn,
    format: Format,
    out: &mut impl Write,
) -> Result<()> {
    let map = &file.tracks;
    let track = map.track_of(lbn).ok_or_else(|| {
        Failure::input(format!(
            "--lbn {lbn}: not in the map, which has LBNs {} to {}",
            map.first(),
            map.end().0 - 1
        ))
    })?;
    let (first, sectors) = (track.first_lbn.0, track.sectors.0);
    match format {
        Format::Csv => writeln!(out, "first_lbn,sectors\n{first},{sectors}")?,
        Format::Json => {
            let mut object =
                json!({ "track": track.index, "first_lbn": first, "sectors": sectors });
            add_confirm(file, track.index, &mut object);
            object["lbn"] = json!(lbn.0);
            writeln!(out, "{object}")?;
        }
        _ => writeln!(
            out,
            "LBN {lbn} is sector {} of track {}: LBNs {first} to {}{}",
            lbn.0 - first,
            track.index,
            first + sectors - 1,
            confirm(file, track.index).map_or(String::new(), |name| format!(", {name}"))
        )?,
    }
    Ok(())
}

/// Returns the confidence in a track's end, if a probe found it.
fn confirm(file: &MapFile, index: usize) -> Option<&'static str> {
    let probed = matches!(file.method, MapSource::Probe(..));
    let confirm = probed.then(|| file.confidence.of(index)).flatten();
    confirm.map(|confirm| confirm.name())
}

fn add_confirm(file: &MapFile, index: usize, object: &mut Value) {
    if let Some(name) = confirm(file, index) {
        object["confirm"] = json!(name);
    }
}

fn write_map_text(file: &MapFile, out: &mut impl Write) -> Result<()> {
    let map = &file.tracks;
    writeln!(out, "{} up to LBN {}", Count(map.len(), "track"), map.end())?;
    writeln!(out, "{:>12} {:>14} {:>8}", "track", "first LBN", "sectors")?;
    for track in map.tracks() {
        let (index, first, sectors) = (track.index, track.first_lbn.0, track.sectors.0);
        write!(out, "{index:>12} {first:>14} {sectors:>8}")?;
        match confirm(file, index) {
            Some(name) => writeln!(out, " {name}")?,
            None => writeln!(out)?,
        }
    }
    Ok(())
}

/// Writes one object, with each track on its own line.
fn write_map_json(file: &MapFile, out: &mut impl Write) -> Result<()> {
    let map = &file.tracks;
    let identity = &file.identity;
    let head = json!({
        "vendor": identity.vendor,
        "product": identity.product,
        "serial": identity.serial,
        "lbns": identity.capacity.0,
        "sector_bytes": identity.logical_bytes,
        "physical_sector_bytes": identity.physical_bytes,
        "method": file.method.to_string(),
        "complete": file.complete,
        "region": file.region.map(|region| [region.first.0, region.end.0]),
        "reads": file.cost.reads,
        "translations": file.cost.translations,
        "drive_time_s": file.cost.drive_time.as_ms() / 1000.0,
        "unreadable": pairs(&file.unreadable),
        "moved": pairs(&file.remapped),
        "notes": file.notes,
        "first_lbn": map.first().0,
        "end_lbn": map.end().0,
    })
    .to_string();
    let head = head.strip_suffix('}').unwrap_or(&head);
    writeln!(out, "{head},\"tracks\":[")?;
    for track in map.tracks() {
        let mut object = json!({
            "track": track.index,
            "first_lbn": track.first_lbn.0,
            "sectors": track.sectors.0,
        });
        add_confirm(file, track.index, &mut object);
        let last = track.index + 1 == map.len();
        writeln!(out, "{object}{}", if last { "" } else { "," })?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

fn pairs(ranges: &LbnRanges) -> Vec<[u64; 2]> {
    ranges
        .iter()
        .map(|range| [range.start.0, range.end.0])
        .collect()
}

/// Writes the track that holds an LBN and, except as CSV, the LBN's location.
fn write_track(drive: &NamedDrive, lbn: Lbn, format: Format, out: &mut impl Write) -> Result<()> {
    let geometry = &*drive.geometry;
    let (Some(track), Some(place)) = (geometry.track_of(lbn), geometry.locate(lbn)) else {
        return Err(Failure::input(format!(
            "--lbn {lbn}: {} ends before LBN {}",
            drive.name,
            geometry.capacity().0
        )));
    };
    let angle = geometry
        .slot_angle(&geometry.piece(lbn, 1).track, place.slot)
        .as_turns();
    match format {
        Format::Csv => {
            writeln!(out, "first_lbn,sectors,cylinder,head")?;
            writeln!(
                out,
                "{},{},{},{}",
                track.first_lbn, track.sectors, track.cylinder, track.surface
            )?;
        }
        Format::Json => {
            let mut object = track_json(&track);
            object["lbn"] = json!(lbn.0);
            object["place"] = json!({
                "cylinder": place.cylinder.0,
                "head": place.surface.0,
                "slot": place.slot,
                "angle_turns": angle,
            });
            writeln!(out, "{object}")?;
        }
        _ => {
            writeln!(
                out,
                "LBN {lbn} is sector {} of track {}: LBNs {} to {}, cylinder {}, head {}",
                lbn.0 - track.first_lbn.0,
                track.index,
                track.first_lbn,
                track.end_lbn().0 - 1,
                track.cylinder,
                track.surface
            )?;
            writeln!(
                out,
                "its location is cylinder {}, head {}, slot {} of {}, at {:.3} degrees",
                place.cylinder,
                place.surface,
                place.slot,
                track.slots,
                angle * 360.0
            )?;
        }
    }
    Ok(())
}

fn write_text(drive: &NamedDrive, out: &mut impl Write) -> Result<()> {
    let geometry: &Geometry = &drive.geometry;
    writeln!(
        out,
        "{}: {} on {} of {} and {}",
        drive.name,
        Count(geometry.capacity().0, "LBN"),
        Count(geometry.track_count(), "track"),
        Count(geometry.cylinders(), "cylinder"),
        Count(geometry.surfaces(), "head")
    )?;
    writeln!(
        out,
        "{:>12} {:>14} {:>8} {:>10} {:>5}",
        "track", "first LBN", "sectors", "cylinder", "head"
    )?;
    for track in geometry.tracks() {
        writeln!(
            out,
            "{:>12} {:>14} {:>8} {:>10} {:>5}",
            track.index, track.first_lbn.0, track.sectors, track.cylinder.0, track.surface.0
        )?;
    }
    Ok(())
}

/// Writes one object, with each track on its own line, so that the list can be read incrementally.
fn write_json(drive: &NamedDrive, out: &mut impl Write) -> Result<()> {
    let geometry = &drive.geometry;
    writeln!(
        out,
        "{{\"name\": {}, \"lbns\": {}, \"cylinders\": {}, \"heads\": {}, \"tracks\": [",
        json!(drive.name),
        geometry.capacity().0,
        geometry.cylinders(),
        geometry.surfaces()
    )?;
    let last = geometry.track_count().saturating_sub(1);
    for track in geometry.tracks() {
        let comma = if track.index == last { "" } else { "," };
        writeln!(out, "{}{comma}", track_json(&track))?;
    }
    writeln!(out, "]}}")?;
    Ok(())
}

fn track_json(track: &Track) -> serde_json::Value {
    json!({
        "track": track.index,
        "first_lbn": track.first_lbn.0,
        "sectors": track.sectors,
        "cylinder": track.cylinder.0,
        "head": track.surface.0,
    })
}

//! `traxtent map`: a drive's tracks.

use std::io::{BufRead, Write};
use std::path::Path;

use clap::ValueEnum;
use serde_json::json;
use traxtent_core::geometry::{Geometry, Track, write_csv};
use traxtent_core::trackmap::{TrackMap, TrackMapError};
use traxtent_core::units::Lbn;

use crate::failure::{Failure, Result};
use crate::input;
use crate::output;
use crate::target::{Machine, NamedDrive, TARGET_HELP, Target};

/// Print where a drive's tracks lie
///
/// The list is in LBN order. CSV has a line for each run of LBNs on one surface of one cylinder:
/// its first LBN, its sectors, its cylinder and head. TARGET may also be such a list; where it has no
/// cylinders and heads, none are printed.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(help = TARGET_HELP)]
    target: String,
    /// How to print the list
    #[arg(long, value_enum, default_value_t = Format::Text)]
    format: Format,
    /// Print only the track that holds this LBN
    #[arg(long, value_name = "LBN")]
    lbn: Option<u64>,
    /// Print JSON: the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    Text,
    Csv,
    Json,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let format = if args.json { Format::Json } else { args.format };
    let lbn = args.lbn.map(Lbn);
    let mut out = output::stdout();
    match Target::parse(&args.target)? {
        Target::File(path) if is_track_map(&path)? => {
            let map = read(&path)?;
            match lbn {
                Some(lbn) => write_mapped_track(&map, lbn, format, &mut out)?,
                None => write_map(&map, format, &mut out)?,
            }
        }
        _ => {
            let drive = the_drive(&args.target)?;
            match (lbn, format) {
                (Some(lbn), _) => write_track(&drive, lbn, format, &mut out)?,
                (None, Format::Csv) => write_csv(&drive.geometry, &mut out)?,
                (None, Format::Text) => write_text(&drive, &mut out)?,
                (None, Format::Json) => write_json(&drive, &mut out)?,
            }
        }
    }
    output::finish(out)
}

/// The one drive of a target.
fn the_drive(target: &str) -> Result<NamedDrive> {
    let mut drives = Machine::load(target)?.drives;
    if drives.len() == 1 {
        return Ok(drives.remove(0));
    }
    let names: Vec<&str> = drives.iter().map(|drive| drive.name.as_str()).collect();
    Err(Failure::input(format!(
        "{target} has {} drives; name one of them behind a #: {}",
        names.len(),
        names.join(", ")
    )))
}

fn is_track_map(path: &Path) -> Result<bool> {
    let mut file = input::open(path)?;
    let start = file.fill_buf().map_err(|error| Failure::file(path, &error))?;
    Ok(start.starts_with(b"first_lbn,"))
}

fn read(path: &Path) -> Result<TrackMap> {
    TrackMap::read_csv(input::open(path)?).map_err(|error| match error {
        TrackMapError::Line { line, problem } => {
            Failure::at(format!("{}:{line}", path.display()), problem)
        }
        TrackMapError::Io { error, .. } => Failure::file(path, &error),
        _ => Failure::at(path.display(), error),
    })
}

fn write_mapped_track(map: &TrackMap, lbn: Lbn, format: Format, out: &mut impl Write) -> Result<()> {
    let track = map
        .track_of(lbn)
        .ok_or_else(|| Failure::input(format!("--lbn {lbn}: is not in the map, which ends at LBN {}", map.end())))?;
    let (first, sectors) = (track.first_lbn.0, track.sectors.0);
    match format {
        Format::Csv => writeln!(out, "first_lbn,sectors\n{first},{sectors}")?,
        Format::Json => {
            let object = json!({ "track": track.index, "first_lbn": first, "sectors": sectors, "lbn": lbn.0 });
            writeln!(out, "{object}")?;
        }
        Format::Text => writeln!(
            out,
            "LBN {lbn} is sector {} of track {}: LBNs {first} to {}",
            lbn.0 - first,
            track.index,
            first + sectors - 1
        )?,
    }
    Ok(())
}

fn write_map(map: &TrackMap, format: Format, out: &mut impl Write) -> Result<()> {
    match format {
        Format::Csv => map.write_csv(out)?,
        Format::Text => {
            writeln!(out, "{} tracks up to LBN {}", map.len(), map.end())?;
            writeln!(out, "{:>12} {:>14} {:>8}", "track", "first LBN", "sectors")?;
            for track in map.tracks() {
                writeln!(out, "{:>12} {:>14} {:>8}", track.index, track.first_lbn.0, track.sectors.0)?;
            }
        }
        Format::Json => {
            writeln!(out, "{{\"end_lbn\": {}, \"tracks\": [", map.end())?;
            for track in map.tracks() {
                let comma = if track.index + 1 == map.len() { "" } else { "," };
                let object = json!({
                    "track": track.index,
                    "first_lbn": track.first_lbn.0,
                    "sectors": track.sectors.0,
                });
                writeln!(out, "{object}{comma}")?;
            }
            writeln!(out, "]}}")?;
        }
    }
    Ok(())
}

/// One track, and where on it the LBN is.
fn write_track(drive: &NamedDrive, lbn: Lbn, format: Format, out: &mut impl Write) -> Result<()> {
    let geometry = &*drive.geometry;
    let (Some(track), Some(place)) = (geometry.track_of(lbn), geometry.locate(lbn)) else {
        return Err(Failure::input(format!(
            "--lbn {lbn}: {} ends at LBN {}",
            drive.name,
            geometry.capacity().0
        )));
    };
    let angle = geometry.slot_angle(&geometry.piece(lbn, 1).track, place.slot).as_turns();
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
        Format::Text => {
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
                "it lies on cylinder {}, head {}, in slot {} of {}, {:.3} degrees round",
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
        "{}: {} LBNs on {} tracks of {} cylinders and {} heads",
        drive.name,
        geometry.capacity().0,
        geometry.track_count(),
        geometry.cylinders(),
        geometry.surfaces()
    )?;
    writeln!(out, "{:>12} {:>14} {:>8} {:>10} {:>5}", "track", "first LBN", "sectors", "cylinder", "head")?;
    for track in geometry.tracks() {
        writeln!(
            out,
            "{:>12} {:>14} {:>8} {:>10} {:>5}",
            track.index, track.first_lbn.0, track.sectors, track.cylinder.0, track.surface.0
        )?;
    }
    Ok(())
}

/// One object, its tracks a line each, so that the list can be read as it comes.
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

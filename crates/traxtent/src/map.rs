//! `traxtent map`: a drive's tracks.

use std::io::Write;

use clap::ValueEnum;
use serde_json::json;
use traxtent_core::geometry::{Geometry, Track, write_csv};
use traxtent_core::units::Lbn;

use crate::failure::{Failure, Result};
use crate::output;
use crate::target::{Machine, NamedDrive, TARGET_HELP};

/// Print where a drive's tracks lie
///
/// The list is in LBN order. CSV has a line for each run of LBNs on one surface of one cylinder:
/// its first LBN, its sectors, its cylinder and head.
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
    let machine = Machine::load(&args.target)?;
    let [drive] = &machine.drives[..] else {
        let names: Vec<&str> = machine.drives.iter().map(|drive| drive.name.as_str()).collect();
        return Err(Failure::input(format!(
            "{} has {} drives; name one of them behind a #: {}",
            args.target,
            names.len(),
            names.join(", ")
        )));
    };
    let format = if args.json { Format::Json } else { args.format };
    let mut out = output::stdout();
    match args.lbn {
        Some(lbn) => write_track(drive, Lbn(lbn), format, &mut out)?,
        None => match format {
            Format::Csv => write_csv(&drive.geometry, &mut out)?,
            Format::Text => write_text(drive, &mut out)?,
            Format::Json => write_json(drive, &mut out)?,
        },
    }
    output::finish(out)
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

//! `traxtent drives`: the built-in drives, and the sources of their figures.

use std::io::Write;

use serde::Serialize;
use serde_json::json;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{self, OriginKind, Profile};

use crate::failure::{Failure, Result};
use crate::output;
use crate::table::{Side, Table};
use crate::target::Target;

/// List the built-in drives, or show one
///
/// The last columns show how well founded a drive's figures are: the share that was measured on a
/// real drive, published by its maker or in a paper, fitted to measurements, and assumed.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Option<Verb>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Show a drive: its profile, with the source of every figure
    Show {
        /// The drive's name
        name: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        None => list(args.json),
        Some(Verb::Show { name, json }) => show(name, args.json || *json),
    }
}

/// A drive in the list.
#[derive(Serialize)]
struct Entry {
    name: String,
    model: String,
    year: Option<u16>,
    rpm: Option<f64>,
    capacity_bytes: u64,
    sectors: u64,
    sector_bytes: u32,
    physical_sector_bytes: u32,
    tracks: u64,
    surfaces: u16,
    zones: usize,
    /// The sectors of the longest and the shortest track.
    sectors_per_track_most: u32,
    sectors_per_track_least: u32,
    figures: Figures,
}

/// The number of figures by kind of origin.
#[derive(Serialize)]
struct Figures {
    measured: usize,
    published: usize,
    fitted: usize,
    assumed: usize,
}

impl Entry {
    fn of(profile: &Profile) -> Result<Entry> {
        let geometry = Geometry::build(&profile.geometry)
            .map_err(|error| Failure::at(&profile.name, format!("geometry: {error}")))?;
        let slots = || geometry.zones().iter().map(|zone| zone.slots);
        let paths = profile.value_paths();
        let tally = profile.provenance.tally(paths.iter().map(String::as_str));
        let of = |kind: OriginKind| tally[kind as usize];
        let sectors = geometry.capacity().0;
        Ok(Entry {
            name: profile.name.clone(),
            model: profile.model.clone(),
            year: profile.year,
            rpm: profile.mechanics.as_ref().map(|mechanics| mechanics.rpm),
            capacity_bytes: sectors * u64::from(profile.sector.logical_bytes),
            sectors,
            sector_bytes: profile.sector.logical_bytes,
            physical_sector_bytes: profile.sector.physical_bytes,
            tracks: geometry.track_count(),
            surfaces: geometry.surfaces(),
            zones: geometry.zones().len(),
            sectors_per_track_most: slots().max().unwrap_or(0),
            sectors_per_track_least: slots().min().unwrap_or(0),
            figures: Figures {
                measured: of(OriginKind::Measured),
                published: of(OriginKind::Published),
                fitted: of(OriginKind::Fitted),
                assumed: of(OriginKind::Assumed),
            },
        })
    }
}

fn list(json: bool) -> Result<()> {
    let entries: Vec<Entry> = profile::builtin::names()
        .filter_map(profile::builtin)
        .map(|profile| Entry::of(&profile))
        .collect::<Result<_>>()?;
    if json {
        return output::json(&entries);
    }
    let mut table = Table::new([
        ("NAME", Side::Left),
        ("MODEL", Side::Left),
        ("YEAR", Side::Right),
        ("RPM", Side::Right),
        ("CAPACITY", Side::Right),
        ("SECTORS/TRACK", Side::Right),
        ("TRACKS", Side::Right),
        ("MEASURED", Side::Right),
        ("PUBLISHED", Side::Right),
        ("FITTED", Side::Right),
        ("ASSUMED", Side::Right),
    ]);
    let or_dash = |text: Option<String>| text.unwrap_or_else(|| "-".to_owned());
    for entry in entries {
        let Figures {
            measured,
            published,
            fitted,
            assumed,
        } = entry.figures;
        let all = (measured + published + fitted + assumed).max(1);
        let share = |count: usize| format!("{} %", (count * 100 + all / 2) / all);
        let (most, least) = (entry.sectors_per_track_most, entry.sectors_per_track_least);
        table.row([
            entry.name,
            entry.model,
            or_dash(entry.year.map(|year| year.to_string())),
            or_dash(entry.rpm.map(|rpm| rpm.to_string())),
            bytes(entry.capacity_bytes),
            if most == least {
                most.to_string()
            } else {
                format!("{most}-{least}")
            },
            entry.tracks.to_string(),
            share(measured),
            share(published),
            share(fitted),
            share(assumed),
        ]);
    }
    let mut out = output::stdout();
    table.write(&mut out)?;
    output::finish(out)
}

fn show(name: &str, json: bool) -> Result<()> {
    let Target::Builtin(name) = Target::parse(name)? else {
        return Err(Failure::input(format!(
            "{name}: is a file, not a built-in drive"
        )));
    };
    if json {
        let profile = profile::builtin(name).expect("names come from the list");
        let entry = Entry::of(&profile)?;
        return output::json(&json!({ "drive": entry, "profile": profile }));
    }
    let mut out = output::stdout();
    let text = profile::builtin::text(name).expect("names come from the list");
    out.write_all(text.as_bytes())?;
    output::finish(out)
}

/// Formats a number of bytes in the decimal units by which drives are sold.
pub(crate) fn bytes(count: u64) -> String {
    let (unit, size) = [("TB", 1e12), ("GB", 1e9), ("MB", 1e6)]
        .into_iter()
        .find(|(_, size)| count as f64 >= *size)
        .unwrap_or(("kB", 1e3));
    let value = count as f64 / size;
    let decimals = if value < 10.0 { 2 } else { 1 };
    format!("{value:.decimals$} {unit}")
}

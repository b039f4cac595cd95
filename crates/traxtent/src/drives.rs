//! `traxtent drives`: the built-in drives, and the sources of their figures.

#[cfg(feature = "lab")]
mod assumed;

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use serde_json::json;
use traxtent_io::AtomicFile;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{self, OriginKind, Profile, ProfileError};
use traxtent_run::{OutputFormat, Target, profile_schema};

use crate::failure::{Failure, Result};
use crate::machine::{TARGET_HELP, load};
use crate::output;
use crate::overwrite;
use crate::table::{Side, Table};

/// List the built-in drives, show one, or begin a profile
///
/// The last columns of the list show how well founded each drive's figures are: the share of those
/// that were measured on a real drive, of those published by its maker or in a paper, of those
/// fitted to measurements, and of those assumed.
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
        #[arg(help = TARGET_HELP)]
        target: String,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Show how strongly a drive's assumed figures affect random and sequential reads
    ///
    /// Assumed figures are moved to the ends of their plausible ranges, first each one alone, then
    /// all together. The table has the mean time of a random read of 4 KiB, the throughput of such
    /// reads with 32 outstanding, and the rates of sequential reads in the first zone and over the
    /// whole drive.
    #[cfg(feature = "lab")]
    Assumed {
        #[arg(help = TARGET_HELP)]
        target: String,
        /// The seed for the requests' positions
        #[arg(long, value_name = "N", default_value_t = 1)]
        seed: u64,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Write NAME.toml, a copy of another drive's profile, for you to edit
    New {
        /// The name of the new drive
        name: String,
        /// The drive to copy: a built-in drive, a profile, or DiskSim parameters
        #[arg(long, value_name = "DRIVE")]
        like: String,
        /// Replace an existing profile
        #[arg(long)]
        force: bool,
    },
    /// Print the JSON schema for profiles, for use in an editor
    Schema,
    /// Print a reference of all profile keys, in Markdown
    Reference,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        None => list(args.json),
        Some(Verb::Show { target, json }) => show(target, args.json || *json),
        #[cfg(feature = "lab")]
        Some(Verb::Assumed { target, seed, json }) => {
            assumed::run(target, *seed, args.json || *json)
        }
        Some(Verb::New { name, like, force }) => new(name, like, *force),
        Some(Verb::Schema) => output::json(&profile_schema::json_schema()),
        Some(Verb::Reference) => print(&profile_schema::reference()),
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
    /// The number of slots on the longest track.
    sectors_per_track_most: u32,
    /// The number of slots on the shortest track.
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

impl Figures {
    fn of(profile: &Profile) -> Figures {
        let paths = profile.value_paths();
        let tally = profile.provenance.tally(paths.iter().map(String::as_str));
        let of = |kind: OriginKind| tally[kind as usize];
        Figures {
            measured: of(OriginKind::Measured),
            published: of(OriginKind::Published),
            fitted: of(OriginKind::Fitted),
            assumed: of(OriginKind::Assumed),
        }
    }
}

/// Returns the number of a profile's figures by kind of origin, as a sentence.
fn origins_in_words(profile: &Profile) -> String {
    let Figures {
        measured,
        published,
        fitted,
        assumed,
    } = Figures::of(profile);
    let all = measured + published + fitted + assumed;
    let are = |count: usize| if count == 1 { "is" } else { "are" };
    format!(
        "{assumed} of {all} figures {} assumed; {measured} {} measured, {published} published and \
         {fitted} fitted.",
        are(assumed),
        are(measured)
    )
}

impl Entry {
    fn of(profile: &Profile) -> Result<Entry> {
        let geometry = Geometry::build(&profile.geometry).map_err(|error| {
            Failure::at(&profile.name, ProfileError::Geometry(error.to_string()))
        })?;
        let slots = || geometry.zones().iter().map(|zone| zone.slots);
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
            figures: Figures::of(profile),
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

fn show(target: &str, json: bool) -> Result<()> {
    let profile = load(target)?.only_drive()?.profile;
    if json {
        let entry = Entry::of(&profile)?;
        return output::json(&json!({ "drive": entry, "profile": *profile }));
    }
    match Target::parse(target)? {
        Target::Builtin(name) => {
            let text = profile::builtin::text(name).expect("names come from the list");
            print(&format!("# {}\n{text}", origins_in_words(&profile)))
        }
        _ => print(&commented(&profile, target)),
    }
}

fn new(name: &str, like: &str, force: bool) -> Result<()> {
    if profile::builtin::names().any(|builtin| builtin == name) {
        let why = "is the name of a built-in drive; choose another name";
        return Err(Failure::at(name, why));
    }
    let original = load(like)?.only_drive()?;
    let profile = Profile {
        name: name.to_owned(),
        ..Profile::clone(&original.profile)
    };
    profile.check().map_err(Failure::input)?;
    let heading = format!(
        "{name}: a profile copied from {like}. If you change a value, change its origin too; the origins \
         are at the end."
    );
    let path = PathBuf::from(format!("{name}.toml"));
    let inputs = original.files.iter().map(PathBuf::as_path);
    let format = Some(OutputFormat::Profile);
    overwrite::check(inputs, &[("drives new:", Some(&path), format)])?;
    write_new(&path, &commented(&profile, &heading), force)
}

fn print(text: &str) -> Result<()> {
    let mut out = output::stdout();
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

/// Returns a profile as TOML with comments. It begins with a heading and the number of figures of
/// each origin.
pub(crate) fn commented(profile: &Profile, heading: &str) -> String {
    let heading = format!("{heading}\n{}", origins_in_words(profile));
    profile.to_commented_toml(&heading)
}

/// Writes a profile to a new file. An existing file is replaced only with `force`. A symbolic link
/// stays, and the profile is written to its target.
pub(crate) fn write_new(path: &Path, text: &str, force: bool) -> Result<()> {
    check_new(path, force)?;
    output::write(&target_of(path), text.as_bytes())
}

/// Refuses the path of an existing file, unless `force` is set, and a path at which no file can be
/// created. Long work calls this first.
pub(crate) fn check_new(path: &Path, force: bool) -> Result<()> {
    let exists = match fs::metadata(path) {
        // Pipes, terminals and other special files are written to.
        Ok(meta) => meta.is_file(),
        // A symbolic link without a target.
        Err(_) => path.is_symlink(),
    };
    if !force && exists {
        let what = "already exists; use --force to replace it";
        return Err(Failure::at(path.display(), what));
    }
    let target = target_of(path);
    AtomicFile::check(&target).map_err(|error| Failure::cannot_create(&target, &error))
}

/// The number of symbolic links in a path that the kernel follows (path_resolution(7)).
const LINKS_MAX: u32 = 40;

/// Returns the file to which a chain of symbolic links leads, or the path itself if it is no link.
/// The file need not exist.
fn target_of(path: &Path) -> PathBuf {
    let mut target = path.to_owned();
    // The links of /proc, such as those of /dev/stdout, do not always name a file.
    if fs::metadata(path).is_ok_and(|meta| !meta.is_file()) {
        return target;
    }
    for _ in 0..LINKS_MAX {
        match fs::read_link(&target) {
            Ok(next) => target = target.parent().unwrap_or(Path::new("")).join(next),
            Err(_) => break,
        }
    }
    target
}

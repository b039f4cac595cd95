//! `traxtent map`: prints the layout of tracks.

mod badblocks;
mod diff;
mod draw;
mod list;
mod subject;
mod summary;

use std::ops::Range;
use std::path::PathBuf;

use clap::ValueEnum;
use traxtent_units::Lbn;

use crate::failure::{Failure, Result, be_quiet};
use crate::machine::TARGET_HELP;
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::parse;
use crate::plot;
pub(crate) use draw::draw_tracks;
pub(crate) use subject::Subject;
pub(crate) use summary::of_file as write_summary;

/// Show the track layout of a drive, or of a map that a probe has written
///
/// Without options, prints a summary. TARGET can also be a map file (see `traxtent probe --map`) or
/// a list of tracks as CSV. Cylinders and heads are printed only if they are known.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(help = format!("{TARGET_HELP}, or a track map"))]
    target: String,
    /// Print every track, or the blocks that span two tracks, instead of a summary
    #[arg(long, value_enum)]
    format: Option<Format>,
    /// Print only the track that holds this LBN
    #[arg(long, value_name = "LBN", conflicts_with_all = ["diff", "draw"])]
    lbn: Option<u64>,
    /// Print the tracks that differ from those of another map or drive; exit status 1 if there are
    /// any
    #[arg(long, value_name = "TARGET", conflicts_with = "draw")]
    diff: Option<String>,
    /// Draw the map against LBNs: cylinders and surfaces if they are known, otherwise track sizes;
    /// .svg or .png
    #[arg(long, value_name = "FILE")]
    draw: Option<PathBuf>,
    /// Draw only these LBNs
    #[arg(long, value_name = "FIRST..END", value_parser = parse::lbns, requires = "draw")]
    lbn_range: Option<Range<Lbn>>,
    #[command(flatten)]
    partition: badblocks::Partition,
    /// Omit notes and warnings
    #[arg(long)]
    quiet: bool,
    /// Print JSON: the same as --format json
    #[arg(long, conflicts_with = "format")]
    json: bool,
}

/// The output formats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Format {
    /// A table
    Text,
    /// One line for each run of LBNs on one surface of one cylinder: first LBN, sectors, cylinder,
    /// head
    Csv,
    /// One object
    Json,
    /// A map file (docs/reference/trackmap.md)
    Map,
    /// File-system blocks that span two tracks, in the format of `mke2fs -l`
    Badblocks,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    be_quiet(args.quiet);
    let format = if args.json {
        Some(Format::Json)
    } else {
        args.format
    };
    if let Some(path) = &args.draw {
        plot::check_ending(path)?;
    }
    args.partition.check(format == Some(Format::Badblocks))?;
    let subject = Subject::load(&args.target)?;
    let drawn = args.draw.as_deref();
    overwrite::check(
        subject.inputs(),
        &[("--draw", drawn, Some(OutputFormat::Picture))],
    )?;
    if let Some(path) = &args.draw {
        draw::draw(&subject, args.lbn_range.clone(), path)?;
        if format.is_none() {
            return Ok(());
        }
    }
    let mut out = output::stdout();
    match (&args.diff, args.lbn, format) {
        (Some(other), _, None | Some(Format::Text)) => {
            return diff::text(&subject, &Subject::load(other)?, out);
        }
        (Some(other), _, Some(Format::Json)) => {
            return diff::json(&subject, &Subject::load(other)?, out);
        }
        (Some(_), _, Some(_)) => {
            return Err(Failure::input("--diff prints text or JSON"));
        }
        (None, Some(lbn), format) => list::one_track(&subject, Lbn(lbn), format, &mut out)?,
        (None, None, Some(Format::Map)) => subject.file().write(&mut out)?,
        (None, None, Some(Format::Badblocks)) => {
            badblocks::write(&subject.file(), &args.partition, &mut out)?;
        }
        (None, None, Some(format)) => list::all_tracks(&subject, format, &mut out)?,
        (None, None, None) => summary::write(&subject, &mut out)?,
    }
    output::finish(out)
}

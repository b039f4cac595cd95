//! `traxtent probe`: finds a drive's tracks by asking the drive.

mod character;
mod check;
mod checkpoint;
mod device;
mod meter;
mod report;
mod search;

use std::ops::Range;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use traxtent_core::probe::{Algorithm, Target, TargetError, Verify};
use traxtent_core::units::Lbn;

use crate::failure::{Failure, Result, note};
use crate::output;
use crate::parse;
use crate::target::TARGET_HELP;
use device::Subject;
use meter::Meter;
use search::Plan;

/// Find where a drive's tracks lie, by asking the drive
///
/// Only reads. A simulated drive answers on a virtual clock: its hours take seconds. Ctrl-C leaves
/// a checkpoint, from which --resume goes on.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(help = format!("{TARGET_HELP}, a device (/dev/sg1, /dev/sdb), or an image file"))]
    target: String,
    /// How to look for tracks [default: tree if the drive translates addresses, else angle]
    #[arg(long, value_name = "NAME", value_parser = algorithms())]
    algorithm: Option<Algorithm>,
    /// How much of what timing predicts to test by reads of its own: none of it, something in
    /// every cylinder, or every boundary
    #[arg(long, value_name = "HOW", default_value = "sample", value_parser = verifications())]
    verify: Verify,
    /// Probe only these LBNs
    #[arg(long, value_name = "FIRST..END", value_parser = parse::lbns, conflicts_with_all = ["profile", "fit"])]
    region: Option<Range<Lbn>>,
    /// Write the track map to this file (docs/trackmap.md)
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Write what the drive is like to this file, as a profile that `traxtent sim` runs
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Say how close the profile comes to the drive, on requests that it was not made from
    #[arg(long)]
    fit: bool,
    /// Find the tracks and nothing else, as for a --region
    #[arg(long, conflicts_with_all = ["profile", "fit", "destructive"])]
    tracks_only: bool,
    /// Write to the drive, too: what only writes show needs it, and what the drive holds is lost
    #[arg(long)]
    destructive: bool,
    /// Where to keep what has been found until the probe ends [default: the map's name, or the
    /// target's, and .checkpoint]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Go on from the checkpoint
    #[arg(long)]
    resume: bool,
    /// Test a random sample of the boundaries of an old map instead; exit status 1 if one has moved
    #[arg(long, value_name = "MAP", conflicts_with_all = ["algorithm", "map", "checkpoint", "resume", "region", "profile", "fit", "destructive"])]
    check: Option<PathBuf>,
    /// Make the times of a simulated drive unsteady: 30 microseconds of jitter, outliers, extra
    /// revolutions
    #[arg(long)]
    noise: bool,
    /// Of --noise and of the sample of --check
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let noise = args.noise.then_some(args.seed);
    let Subject { name, mut target } = Subject::open(&args.target, noise, args.destructive)?;
    let meter = Meter::start(&*target)?;
    if let Some(map) = &args.check {
        return check::check(&mut *target, &meter, map, args.seed)?.print(args.json);
    }
    let (algorithm, why) = choose(args.algorithm, &mut meter.watch(&mut *target))?;
    let plan = Plan::new(args, &name, target.identity(), algorithm)?;
    if !args.json {
        note(format!("{name} by {}, {why}", algorithm.name()));
    }
    let done = search::run(plan, &mut *target, &meter)?;
    if let Some(path) = &args.map {
        output::write(path, done.file.to_text().as_bytes())?;
    }
    // The map is safe; whoever wants none has what is printed.
    done.checkpoint.remove();
    let measured = if character::wanted(args) {
        character::measure(&mut *target, &meter, &done.file.tracks, args)?
    } else {
        None
    };
    if let (Some(path), Some(measured)) = (&args.profile, &measured) {
        output::write(path, measured.profile.to_toml().as_bytes())?;
    }
    report::print(&name, &done, measured.as_ref(), why, args)?;
    match done.doubtful {
        0 => Ok(()),
        count => Err(Failure::Finding(format!(
            "{name}: tracks are irregular, and {count} boundaries are predicted, not tested; to test all: --verify full"
        ))),
    }
}

/// The algorithm, and why it.
fn choose(wanted: Option<Algorithm>, target: &mut dyn Target) -> Result<(Algorithm, &'static str)> {
    if let Some(algorithm) = wanted.filter(|algorithm| !algorithm.translates()) {
        return Ok((algorithm, "as asked"));
    }
    let translates = match target.translate(Lbn(0)) {
        Ok(_) => true,
        Err(error @ TargetError::Gone(_)) => return Err(Failure::Io(error.to_string())),
        Err(_) => false,
    };
    Ok(match (wanted, translates) {
        (Some(algorithm), true) => (algorithm, "as asked"),
        (None, true) => (Algorithm::Tree, "as the drive translates addresses"),
        (None, false) => (
            Algorithm::Angle,
            "as the drive does not translate addresses",
        ),
        (Some(_), false) => (
            Algorithm::Angle,
            "not as asked, since the drive does not translate addresses",
        ),
    })
}

fn algorithms() -> impl TypedValueParser<Value = Algorithm> {
    let names = Algorithm::ALL.map(Algorithm::name);
    PossibleValuesParser::new(names)
        .map(|name| Algorithm::by_name(&name).expect("only names of algorithms pass"))
}

fn verifications() -> impl TypedValueParser<Value = Verify> {
    PossibleValuesParser::new(Verify::ALL.map(Verify::name)).map(|name| {
        let mut all = Verify::ALL.into_iter();
        all.find(|verify| verify.name() == name)
            .expect("only names of verifications pass")
    })
}

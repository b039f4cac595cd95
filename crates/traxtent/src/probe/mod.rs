//! `traxtent probe`: finds a drive's tracks by measuring the drive.

mod characterization;
mod check;
mod checkpoint;
mod device;
mod estimate;
mod meter;
mod report;
mod search;

use std::ops::Range;
use std::path::PathBuf;

use clap::builder::{PossibleValuesParser, TypedValueParser};
use traxtent_probe::{Algorithm, Target, TargetError, Verify};
use traxtent_units::{Count, Lbn};

use crate::drives::{check_new, write_new};
use crate::failure::{Failure, Result, note};
use crate::machine::TARGET_HELP;
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::parse;
use characterization::MeasuredDrive;
pub(crate) use check::{mismatch, verify_map};
use device::{Subject, Writes};
use meter::ProbeMeter;
use search::{ProbePlan, ProbeResult};

/// Find a drive's tracks by measuring the drive
///
/// Only reads, unless --destructive is given. A simulated drive runs on a virtual clock, so its
/// hours take seconds. Ctrl-C leaves a checkpoint, from which --resume continues.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(help = format!("{TARGET_HELP}, a device (/dev/sg1, /dev/sdb), or an image file"))]
    target: String,
    /// The algorithm that finds tracks [default: tree if the drive translates addresses, otherwise
    /// angle]
    #[arg(long, value_name = "NAME", value_parser = algorithms())]
    algorithm: Option<Algorithm>,
    /// Which predicted boundaries the algorithm `angle` tests by additional reads: none, some in
    /// every cylinder, or all. Refused with other algorithms [default: sample]
    #[arg(long, value_name = "HOW", value_parser = verifications())]
    verify: Option<Verify>,
    /// Probe only these LBNs
    #[arg(long, value_name = "FIRST..END", value_parser = parse::lbns, conflicts_with_all = ["profile", "fit"])]
    region: Option<Range<Lbn>>,
    /// Write the track map to this file (docs/reference/trackmap.md)
    #[arg(long, value_name = "FILE")]
    map: Option<PathBuf>,
    /// Write the drive's characterization to this file, as a profile that `traxtent sim` runs
    #[arg(long, value_name = "FILE")]
    profile: Option<PathBuf>,
    /// Compare the fitted profile with the drive, using requests that it was not fitted to. The
    /// demerit is the root mean square of the horizontal distance between the two distributions of
    /// response times
    #[arg(long)]
    fit: bool,
    /// Find only the tracks, as with --region
    #[arg(long, conflicts_with_all = ["profile", "fit", "destructive"])]
    tracks_only: bool,
    /// Also write to the drive, to measure properties that only writes reveal; the drive's data is
    /// lost
    #[arg(long)]
    destructive: bool,
    /// Replace an existing profile, and with --destructive, also overwrite a drive that holds data
    #[arg(long)]
    force: bool,
    /// The file that stores results until the probe ends [default: the name of the map, or of the
    /// target, with .checkpoint]
    #[arg(long, value_name = "FILE")]
    checkpoint: Option<PathBuf>,
    /// Continue from the checkpoint
    #[arg(long)]
    resume: bool,
    /// Test a random sample of the boundaries of an old map instead; exit status 1 if one has moved
    #[arg(long, value_name = "MAP", conflicts_with_all = ["algorithm", "verify", "map", "checkpoint", "resume", "region", "profile", "fit", "tracks_only", "destructive", "force"])]
    check: Option<PathBuf>,
    /// Add noise to the times of a simulated drive: 30 microseconds of jitter, outliers,
    /// additional revolutions
    #[arg(long)]
    noise: bool,
    /// The seed of --noise, of the sample of --check, and of the characterization
    #[arg(long, value_name = "NUMBER", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if args.force && args.profile.is_none() && !args.destructive {
        return Err(Failure::input(
            "--force: has an effect only with --profile or --destructive",
        ));
    }
    let noise = args.noise.then_some(args.seed);
    let Subject {
        name,
        mut target,
        files,
    } = Subject::open(&args.target, noise, Writes::of(args))?;
    overwrite::check(
        files.iter().map(PathBuf::as_path),
        &[
            ("--map", args.map.as_deref(), Some(OutputFormat::Map)),
            (
                "--profile",
                args.profile.as_deref(),
                Some(OutputFormat::Profile),
            ),
            ("--checkpoint", Some(&checkpoint::path(args, &name)), None),
        ],
    )?;
    if let Some(path) = &args.profile {
        check_new(path, args.force)?;
    }
    let meter = ProbeMeter::start(&*target)?;
    if let Some(map) = &args.check {
        return check::check(&mut *target, &meter, map, args.seed)?.print(args.json);
    }
    let (algorithm, why) = choose(args.algorithm, &mut meter.watch(&mut *target))?;
    if args.verify.is_some() && algorithm != Algorithm::Angle {
        return Err(Failure::input(format!(
            "--verify: only the algorithm `angle` predicts boundaries, and {name} is probed by `{}`, {why}",
            algorithm.name()
        )));
    }
    let plan = ProbePlan::new(args, &name, target.identity(), algorithm)?;
    if !args.json {
        note(format!("{name} by {}, {why}", algorithm.name()));
    }
    let done = search::run(plan, &mut *target, &meter)?;
    if let Some(path) = &args.map {
        output::write(path, done.file.to_text().as_bytes())?;
    }
    // The checkpoint outlives a failure: with --profile alone, nothing else has the tracks.
    let measured = characterize(&mut *target, &meter, &done, args)
        .inspect_err(|_| done.checkpoint.say_how_to_continue())?;
    done.checkpoint.remove();
    report::print(&name, &done, measured.as_ref(), why, args)?;
    match (done.untested, done.doubtful) {
        (_, 0) => Ok(()),
        (0, count) => Err(Failure::Finding(format!(
            "{name}: {} of sectors may be tracks of their own; use --algorithm tree on a drive that translates addresses",
            Count(count, "group")
        ))),
        (count, _) => Err(Failure::Finding(format!(
            "{name}: tracks are irregular, and {} predicted, not tested; use --verify full to test all",
            match count {
                1 => "1 boundary is".to_owned(),
                count => format!("{count} boundaries are"),
            }
        ))),
    }
}

/// Characterizes the drive if the options ask for it, and writes the profile.
fn characterize(
    target: &mut dyn Target,
    meter: &ProbeMeter,
    done: &ProbeResult,
    args: &Args,
) -> Result<Option<MeasuredDrive>> {
    if !characterization::wanted(args) {
        return Ok(None);
    }
    let measured = characterization::measure(target, meter, &done.file.tracks, args)?;
    if let (Some(path), Some(measured)) = (&args.profile, &measured) {
        write_new(path, &measured.profile.to_toml(), args.force)?;
    }
    Ok(measured)
}

/// Returns the algorithm, and the reason for choosing it.
fn choose(wanted: Option<Algorithm>, target: &mut dyn Target) -> Result<(Algorithm, &'static str)> {
    if let Some(algorithm) = wanted.filter(|algorithm| !algorithm.translates()) {
        return Ok((algorithm, "as requested"));
    }
    let translates = match target.translate(Lbn(0)) {
        Ok(_) => true,
        Err(error @ TargetError::Gone(_)) => return Err(Failure::Io(error.to_string())),
        Err(_) => false,
    };
    Ok(match (wanted, translates) {
        (Some(algorithm), true) => (algorithm, "as requested"),
        (None, true) => (Algorithm::Tree, "because the drive translates addresses"),
        (None, false) => (
            Algorithm::Angle,
            "because the drive does not translate addresses",
        ),
        (Some(_), false) => (
            Algorithm::Angle,
            "not as requested, because the drive does not translate addresses",
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

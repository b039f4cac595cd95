//! `traxtent calibrate`: fits a drive's figures to measured response times.

use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use traxtent_calibrate::{
    CalibrateError, Calibration, CalibrationObserver, ChangedSetting, FittedFigure, Judgement,
    MeasuredTrace, Options, Stage, calibrate,
};
use traxtent_model::profile::Profile;
use traxtent_run::validation::ClassVerdict;
use traxtent_run::{Machine, OutputFormat, TracePlan, simulation_error, trace_error};

use crate::drives::{check_new, commented, write_new};
use crate::failure::{Failure, Result, be_quiet};
use crate::machine::{Printer, TARGET_HELP, load};
use crate::output;
use crate::overwrite;
use crate::parse::output_file;
use crate::progress::Progress;
use crate::sim::TraceArguments;
use crate::table::{Side, Table};
use crate::validate::noise;

/// Fit the figures of a drive's profile to the measured response times of traces
///
/// The geometry and the speed of rotation of TARGET must be those of the drive; other figures can
/// be those of a similar drive. Command overheads, seek times, bus times and the settings of the
/// buffer are fitted to the first part of each trace (by default, the first half). The rest of the
/// trace is held out: the profile is written only if it agrees better with the held-out part than
/// TARGET does. Figures that the traces do not determine stay as they are.
///
/// The demerit is the root mean square of the horizontal distance between the distributions of
/// simulated and measured response times. NOISE is the demerit that a perfect model would stay
/// below in 19 cases of 20. DISAGREE is the share of reads that only the model or only the drive
/// served from its buffer.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[arg(help = TARGET_HELP)]
    target: String,
    /// Traces of the drive with measured response times
    #[arg(required = true, value_name = "TRACE")]
    traces: Vec<PathBuf>,
    /// Write the calibrated profile to this file
    #[arg(long, value_name = "FILE", value_parser = output_file)]
    out: Option<PathBuf>,
    /// Replace an existing profile; needs --out
    #[arg(long, requires = "out")]
    force: bool,
    /// The share of each trace, at its end, that is held out
    #[arg(long, value_name = "SHARE", default_value = "0.5", value_parser = share)]
    holdout: f64,
    /// Do not change this figure or those below it; KEY is for example `cache` or
    /// `mechanics.seek`; may be repeated
    #[arg(long, value_name = "KEY")]
    keep: Vec<String>,
    #[command(flatten)]
    trace: TraceArguments,
    /// Omit notes and warnings, except those about omitted requests
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Parses the share that is held out.
fn share(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(share) if (0.1..=0.9).contains(&share) => Ok(share),
        _ => Err("expected a share from 0.1 to 0.9".to_owned()),
    }
}

/// A [`Calibration`] as JSON.
#[derive(Serialize)]
struct Report<'a> {
    is_improvement: bool,
    settings: Vec<SettingJson<'a>>,
    figures: Vec<FigureJson<'a>>,
    fitted: PartJson,
    held_out: PartJson,
}

#[derive(Serialize)]
struct SettingJson<'a> {
    key: &'a str,
    start: &'a str,
    value: &'a str,
}

#[derive(Serialize)]
struct FigureJson<'a> {
    name: &'a str,
    start_ms: f64,
    value_ms: f64,
    plus_minus_ms: f64,
    is_determined: bool,
}

#[derive(Serialize)]
struct PartJson {
    before: JudgementJson,
    after: JudgementJson,
}

#[derive(Serialize)]
struct JudgementJson {
    requests: usize,
    rms_ms: f64,
    noise_p95_ms: Option<f64>,
    reads: usize,
    disagreement: f64,
    classes: Vec<ClassVerdict>,
}

impl<'a> From<&'a Calibration> for Report<'a> {
    fn from(found: &'a Calibration) -> Report<'a> {
        Report {
            is_improvement: found.is_improvement(),
            settings: found.settings.iter().map(SettingJson::from).collect(),
            figures: found.figures.iter().map(FigureJson::from).collect(),
            fitted: PartJson {
                before: (&found.fitted_before).into(),
                after: (&found.fitted_after).into(),
            },
            held_out: PartJson {
                before: (&found.held_out_before).into(),
                after: (&found.held_out_after).into(),
            },
        }
    }
}

impl<'a> From<&'a ChangedSetting> for SettingJson<'a> {
    fn from(one: &'a ChangedSetting) -> SettingJson<'a> {
        SettingJson {
            key: one.key,
            start: &one.start,
            value: &one.value,
        }
    }
}

impl<'a> From<&'a FittedFigure> for FigureJson<'a> {
    fn from(one: &'a FittedFigure) -> FigureJson<'a> {
        FigureJson {
            name: &one.name,
            start_ms: one.start_ms,
            value_ms: one.value_ms,
            plus_minus_ms: one.plus_minus_ms,
            is_determined: one.is_determined,
        }
    }
}

impl From<&Judgement> for JudgementJson {
    fn from(of: &Judgement) -> JudgementJson {
        JudgementJson {
            requests: of.requests,
            rms_ms: of.demerit_ms,
            noise_p95_ms: of.noise_p95_ms,
            reads: of.reads,
            disagreement: of.disagreement(),
            classes: of.classes.iter().cloned().map(ClassVerdict::from).collect(),
        }
    }
}

impl CalibrationObserver for Progress {
    fn at_work(&self, stage: Stage) {
        self.add(1);
        self.tell(|| match stage {
            Stage::Buffer => "searching for the settings of the buffer".to_owned(),
            Stage::Times => "fitting times".to_owned(),
        });
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    be_quiet(args.quiet);
    let machine = load(&args.target)?;
    let inputs = machine.files().map(Path::to_owned).collect::<Vec<_>>();
    let inputs = inputs.iter().chain(&args.traces).map(PathBuf::as_path);
    let format = Some(OutputFormat::Profile);
    overwrite::check(inputs, &[("--out", args.out.as_deref(), format)])?;
    if let Some(path) = &args.out {
        check_new(path, args.force)?;
    }
    let traces = read_traces(args, &machine)?;
    let drive = machine.only_drive()?;
    check_keys(args, &drive.profile)?;
    let options = Options {
        held_out: args.holdout,
        keep: args.keep.clone(),
        source: source(args),
    };
    let progress = Progress::new("steps", None);
    let found = calibrate(&drive.profile, &traces, &options, &progress);
    let found = found.map_err(|error| failure(args, &error))?;
    if args.json {
        output::json(&Report::from(&found))?;
    } else {
        write(&found)?;
    }
    if !found.is_improvement() {
        return Err(Failure::Finding(format!(
            "the calibrated profile agrees no better with the part that was held out than {} does; \
             no profile was written",
            args.target
        )));
    }
    if let Some(path) = &args.out {
        let heading = format!(
            "{} calibrated with {}. If you change a value, change its origin too; the origins are \
             at the end.",
            args.target,
            source(args)
        );
        write_new(path, &commented(&found.profile, &heading), args.force)?;
    }
    Ok(())
}

/// Checks that the profile has the figures that are to be kept.
fn check_keys(args: &Args, profile: &Profile) -> Result<()> {
    let paths = profile.value_paths();
    for key in &args.keep {
        let below = format!("{key}.");
        let is_known = |path: &String| path == key || path.starts_with(&below);
        if !paths.iter().any(is_known) && profile.value_text(key).is_none() {
            let what = format!("{} has no such figure", args.target);
            return Err(Failure::at(format!("--keep {key}"), what));
        }
    }
    Ok(())
}

/// Reads the traces, and prints their warnings.
fn read_traces(args: &Args, machine: &Machine) -> Result<Vec<MeasuredTrace>> {
    let plan = args.trace.plan()?;
    let read = |path: &PathBuf| {
        let none = || Failure::at(path.display(), CalibrateError::NotMeasured);
        let plan: TracePlan = plan
            .for_comparison(path, machine, &Printer)?
            .ok_or_else(none)?;
        let source = plan.open(path, machine)?;
        let pace = source.pace();
        let mut trace = source.into_records();
        let records = trace.by_ref().collect::<Result<_, _>>();
        let records = records.map_err(|error| trace_error(path, &error))?;
        trace.report(&Printer);
        Ok(MeasuredTrace::new(records, pace))
    };
    args.traces.iter().map(read).collect()
}

/// Describes the part of the traces to which the figures are fitted.
fn source(args: &Args) -> String {
    let names: Vec<String> = args
        .traces
        .iter()
        .map(|path| {
            path.file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned()
        })
        .collect();
    let share = 100.0 * (1.0 - args.holdout);
    format!("the first {share:.0} % of {}", names.join(", "))
}

fn failure(args: &Args, error: &CalibrateError) -> Failure {
    let paths: Vec<_> = args
        .traces
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    match error {
        CalibrateError::Simulate(error) if args.traces.len() == 1 => {
            simulation_error(&args.traces[0], error).into()
        }
        CalibrateError::Geometry(_) | CalibrateError::Profile(_) => {
            Failure::at(&args.target, error)
        }
        _ => Failure::at(paths.join(", "), error),
    }
}

fn write(found: &Calibration) -> Result<()> {
    let mut out = output::stdout();
    if !found.settings.is_empty() {
        let mut table = Table::new([
            ("SETTING", Side::Left),
            ("BEFORE", Side::Right),
            ("AFTER", Side::Right),
        ]);
        for one in &found.settings {
            table.row([one.key.to_owned(), one.start.clone(), one.value.clone()]);
        }
        table.write(&mut out)?;
        writeln!(out)?;
    }
    let mut table = Table::new([
        ("TIME IN MS", Side::Left),
        ("BEFORE", Side::Right),
        ("AFTER", Side::Right),
        ("95 % INTERVAL", Side::Right),
    ]);
    let (known, unknown): (Vec<_>, Vec<_>) =
        found.figures.iter().partition(|one| one.is_determined);
    for one in known {
        // The time of one sector on the bus is short.
        let decimals = if one.key().starts_with("bus.") { 4 } else { 3 };
        table.row([
            one.name.clone(),
            format!("{:.decimals$}", one.start_ms),
            format!("{:.decimals$}", one.value_ms),
            format!("± {:.decimals$}", one.plus_minus_ms),
        ]);
    }
    table.write(&mut out)?;
    if !unknown.is_empty() {
        writeln!(out, "\nNot determined by the traces:")?;
        for one in unknown {
            writeln!(out, "  {}", one.name)?;
        }
    }
    writeln!(out)?;
    part_table(found).write(&mut out)?;
    writeln!(out)?;
    class_table(found).write(&mut out)?;
    out.flush()?;
    output::finish(out)
}

/// Returns the table of the agreement with both parts of the traces.
fn part_table(found: &Calibration) -> Table {
    let mut table = Table::new([
        ("PART", Side::Left),
        ("REQUESTS", Side::Right),
        ("DEMERIT BEFORE", Side::Right),
        ("AFTER", Side::Right),
        ("NOISE", Side::Right),
        ("DISAGREE BEFORE", Side::Right),
        ("AFTER", Side::Right),
    ]);
    for (name, before, after) in [
        ("fitted", &found.fitted_before, &found.fitted_after),
        ("held out", &found.held_out_before, &found.held_out_after),
    ] {
        table.row([
            name.to_owned(),
            after.requests.to_string(),
            format!("{:.3} ms", before.demerit_ms),
            format!("{:.3} ms", after.demerit_ms),
            noise(after.noise_p95_ms),
            format!("{:.2} %", before.disagreement() * 100.0),
            format!("{:.2} %", after.disagreement() * 100.0),
        ]);
    }
    table
}

/// Returns the table of the classes of requests in the part that was held out.
fn class_table(found: &Calibration) -> Table {
    let mut table = Table::new([
        ("HELD OUT, BY CLASS IN THE MODEL", Side::Left),
        ("REQUESTS", Side::Right),
        ("SIMULATED MEAN", Side::Right),
        ("MEASURED MEAN", Side::Right),
        ("DEMERIT", Side::Right),
    ]);
    for class in &found.held_out_after.classes {
        table.row([
            class.name.to_owned(),
            class.all.requests.to_string(),
            format!("{:.3} ms", class.all.mean_ms),
            format!("{:.3} ms", class.all.measured_mean_ms),
            format!("{:.3} ms", class.all.rms_ms),
        ]);
    }
    table
}

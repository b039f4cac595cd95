//! `traxtent sim`: simulates a workload on drives.

mod arguments;
mod picture;
mod report;

use std::path::PathBuf;

use traxtent_run::{
    Case, Figures, Log, Machine, ResultsFile, RunError, Setting, Summary, SweepPlan, TracePlan,
    Workload, case_notes, combinations, data_file, run_each, run_logged, runs_with_cases,
    simulation_facts, total_requests,
};

use crate::failure::{Failure, Result, be_quiet, left_out, note};
use crate::machine::{Printer, TARGET_HELP};
use crate::overwrite::{self, OutputFormat};
use crate::progress::Progress;
use picture::{Axes, Picture};
use report::Report;

pub(crate) use arguments::TraceArguments;

/// Simulate a workload on a drive
///
/// A WORKLOAD is one of:
///   random,read=66%,size=8,count=100000   a line of the workload grammar
///   my.toml                               the same in a TOML file
///   my.trace                              a trace, plain or compressed with gzip or zstd; - is
///                                         standard input
///
/// Lengths are in sectors, such as 8, or in bytes, such as 4096B, 4K or 4KiB; 4kB is 4000 bytes.
/// docs/reference/workloads.md lists the keys. Random requests start at multiples of their size, as
/// in fio; align=none lets them start at any sector. Without a WORKLOAD, a DiskSim TARGET runs the
/// synthetic workload in its parameter file.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, override_usage = USAGE)]
pub(crate) struct Args {
    #[arg(help = TARGET_HELP, required_unless_present = "drives")]
    target: Option<String>,
    /// The workload: a line such as random,count=1000, a TOML file, or a trace
    workload: Option<String>,

    /// Simulate the workload on each of these drives (a comma-separated list) instead of on TARGET
    #[arg(
        long,
        value_name = "TARGETS",
        value_delimiter = ',',
        conflicts_with = "more"
    )]
    drives: Vec<String>,
    /// The drive for the next device of a trace, after those of TARGET; give it once for each
    /// further device
    #[arg(long = "drive", value_name = "TARGET")]
    more: Vec<String>,
    #[command(flatten)]
    trace: TraceArguments,

    /// The seed of a synthetic workload's random numbers
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run with this many seeds, and print means with their 95 % confidence intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: Option<u32>,
    /// Exclude the first REQUESTS requests to complete from all results
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    warmup: u64,
    /// Change a parameter of the drive or, as workload.KEY, of the workload. A list a,b,c or a
    /// range a..b:step gives one row per value; several such options give all combinations
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Write one row per request: Parquet if FILE ends in .parquet, otherwise CSV, which is
    /// compressed if FILE ends in .gz or .zst
    #[arg(long, value_name = "FILE", value_parser = data_file::name)]
    log: Option<PathBuf>,
    /// Write one row per run with all its figures, in the same formats as --log
    #[arg(long, value_name = "FILE", value_parser = data_file::name)]
    summary: Option<PathBuf>,
    /// Draw the distribution of response times and, for a single run, the components of their mean;
    /// .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// With --plot, draw the throughput and the response times of a sweep over the numeric values
    /// of this KEY of --set, with curves for each combination of the others
    #[arg(long, value_name = "KEY", requires = "plot")]
    plot_over: Option<String>,
    /// Draw the times of --plot, or the values of --plot-over, on a logarithmic axis
    #[arg(long, requires = "plot")]
    log_x: bool,
    /// Draw the share of slower requests in --plot on a logarithmic axis, to show the slowest ones;
    /// with --plot-over, the response times
    #[arg(long, requires = "plot")]
    log_y: bool,
    /// Omit notes and warnings, except those about omitted requests
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const USAGE: &str = "traxtent sim [OPTIONS] TARGET [WORKLOAD]
       traxtent sim [OPTIONS] --drives TARGET,TARGET… [WORKLOAD]";

/// Returns the number of points of a sweep; 0 if the options are malformed.
pub(crate) fn sweep_points(options: &[String]) -> usize {
    Setting::parse_all(options).map_or(0, |settings| combinations(&settings).len())
}

/// Parses the `--set` options of a command that accepts one value for each.
pub(crate) fn single_values(options: &[String]) -> Result<Vec<(String, String)>> {
    let mut points = combinations(&Setting::parse_all(options)?);
    match points.pop() {
        Some(point) if points.is_empty() => Ok(point),
        _ => Err(Failure::input(
            "--set: only `sim` accepts several values for a key",
        )),
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    be_quiet(args.quiet);
    let cases = plan(args)?.cases(&Printer)?;
    let is_sweep = cases.len() > 1;
    let picture = args.plot.as_ref().map(|path| Picture {
        path,
        over: args.plot_over.as_deref(),
        axes: Axes {
            log_x: args.log_x,
            log_y: args.log_y,
        },
    });
    if let Some(picture) = &picture {
        picture.check(&cases)?;
    }
    check_outputs(args, &cases)?;
    case_notes(&cases).iter().for_each(note);
    let facts = simulation_facts(&cases);
    let summary = args.summary.as_ref();
    let summary = summary.map(|path| ResultsFile::create(path, &cases, &facts));
    let summary = summary.transpose()?;
    let log = args.log.as_ref();
    let log = log.map(|path| Log::create(path, &cases, &facts));
    let log = log.transpose()?;
    let Simulated {
        cases,
        mut summaries,
        failures,
    } = simulate(cases, log)?;
    if let Some(file) = summary {
        file.write(&cases, &mut summaries)?;
    }
    let seeds = cases[0].runs.len();
    let remedies: Vec<Option<String>> = cases
        .iter()
        .zip(summaries.chunks(seeds))
        .map(|(case, summaries)| case.runs[0].alignment_fix(&summaries[0]))
        .collect();
    let figures: Vec<Figures> = summaries.chunks_mut(seeds).map(Figures::of).collect();
    if let Some(picture) = &picture {
        picture.draw(&cases, &mut summaries, &figures)?;
    }
    let report = Report {
        cases: &cases,
        is_sweep,
        remedies: &remedies,
        figures: &figures,
    };
    if args.json {
        report.print_json()?;
    } else {
        report.print()?;
    }
    left_out("not simulated", &failures)
}

/// The results of the cases that could be simulated.
struct Simulated {
    cases: Vec<Case>,
    /// The summaries of all runs of these cases.
    summaries: Vec<Summary>,
    /// The names of the other cases, with the reasons.
    failures: Vec<(String, RunError)>,
}

/// Simulates all cases. A case that is refused, such as a drive that is too small for the trace,
/// does not end the others, unless some of its requests are in a log already.
fn simulate(cases: Vec<Case>, log: Option<Log>) -> Result<Simulated> {
    let progress = Progress::new("requests", total_requests(&cases));
    let results = match log {
        None => run_each(&cases, &progress)?,
        Some(log) => run_logged(&cases, log, &progress)?,
    };
    let mut simulated = Simulated {
        cases: Vec::new(),
        summaries: Vec::new(),
        failures: Vec::new(),
    };
    for (case, result) in cases.into_iter().zip(results) {
        match result.and_then(|summaries| check_requests(&case, summaries)) {
            Ok(summaries) => {
                simulated.summaries.extend(summaries);
                simulated.cases.push(case);
            }
            Err(error) => simulated.failures.push((case.name(), error)),
        }
    }
    if simulated.cases.is_empty() {
        return Err(simulated.failures.remove(0).1.into());
    }
    Ok(simulated)
}

/// Checks that each run of a case has a request in its summary.
fn check_requests(case: &Case, summaries: Vec<Summary>) -> Result<Vec<Summary>, RunError> {
    for (run, summary) in case.runs.iter().zip(&summaries) {
        run.check_requests(summary)?;
    }
    Ok(summaries)
}

/// Refuses outputs that would overwrite an input, each other, or a file that is no older output.
fn check_outputs(args: &Args, cases: &[Case]) -> Result<()> {
    let machines = runs_with_cases(cases).map(|(_, run)| &run.machine);
    // With --drives, the workload is in the place of the target.
    let workload = match args.drives[..] {
        [] => &args.workload,
        _ => &args.target,
    };
    let workload = workload.as_deref().and_then(Workload::file);
    overwrite::check(
        machines.flat_map(Machine::files).chain(workload),
        &[
            ("--log", args.log.as_deref(), Some(OutputFormat::RequestLog)),
            (
                "--summary",
                args.summary.as_deref(),
                Some(OutputFormat::Summary),
            ),
            ("--plot", args.plot.as_deref(), Some(OutputFormat::Picture)),
        ],
    )
}

/// Returns the plan that the options describe.
fn plan(args: &Args) -> Result<SweepPlan> {
    let (targets, workload) = match (&args.target, &args.workload, &args.drives[..]) {
        (Some(target), workload, []) => (vec![target.clone()], workload.clone()),
        // With --drives, the only positional argument is the workload.
        (workload, None, drives) => (drives.to_vec(), workload.clone()),
        (Some(target), Some(_), _) => {
            return Err(Failure::input(format!(
                "{target}: --drives replaces the TARGET; add it to --drives, or omit it"
            )));
        }
        (None, Some(_), _) => unreachable!("clap fills the target first"),
    };
    Ok(SweepPlan {
        targets,
        more_drives: args.more.clone(),
        workload,
        trace: TracePlan {
            can_add_drives: args.drives.is_empty(),
            ..args.trace.plan()?
        },
        settings: Setting::parse_all(&args.set)?,
        seed: args.seed,
        seeds: args.seeds,
        warmup: args.warmup,
    })
}

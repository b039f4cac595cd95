//! `traxtent sim`: simulates a workload on drives.

mod arguments;
mod labels;
mod log;
mod notes;
mod picture;
mod report;
mod results;
mod run;
mod summary;
mod sweep;
mod workload;

use std::path::PathBuf;

use traxtent_workload::RequestSizes;

use crate::data_file;
use crate::failure::{Failure, Result, be_quiet, note};
use crate::overwrite;
use crate::target::{Machine, TARGET_HELP};
use labels::LabelColumns;
use log::Log;
use report::Report;
use run::{Case, SimulationRun};
use summary::{Figures, Summary};
use sweep::Setting;
use workload::Workload;

pub(crate) use arguments::TraceArguments;
pub(crate) use run::{TracePlan, simulation_failure};
pub(crate) use workload::trace_failure;

/// Simulate a workload on a drive
///
/// A WORKLOAD is one of:
///   random,read=66%,size=8,count=100000   a line of the workload grammar
///   my.toml                               the same in a TOML file
///   my.trace                              a trace, plain or as gzip or zstd; - is standard input
///
/// Lengths are in sectors (8), or in bytes (4096B, 4K, 4KiB; 4kB is 4000).
/// docs/reference/workloads.md lists the keys. Random requests start at multiples of their size, as
/// in fio; align=none lets them start at any sector. Without a WORKLOAD, DiskSim parameters run the
/// synthetic workload that they contain.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, override_usage = USAGE)]
pub(crate) struct Args {
    #[arg(help = TARGET_HELP, required_unless_present = "drives")]
    target: Option<String>,
    /// The workload: a line such as random,count=1000, a TOML file, or a trace
    workload: Option<String>,

    /// Simulate the workload on each of these drives, separated by commas, instead of on TARGET
    #[arg(
        long,
        value_name = "TARGETS",
        value_delimiter = ',',
        conflicts_with = "more"
    )]
    drives: Vec<String>,
    /// The drive of the next device of a trace; may be repeated
    #[arg(long = "drive", value_name = "TARGET")]
    more: Vec<String>,
    #[command(flatten)]
    trace: TraceArguments,

    /// The seed of a synthetic workload's random numbers
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run with this many seeds, and print means with their 95 % intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: Option<u32>,
    /// Exclude this many requests, the first to complete, from all figures
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    warmup: u64,
    /// Change a figure of the drive or, as workload.KEY, of the workload. Values a,b,c or a range
    /// a..b:step give one row each; several such options give all combinations
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Write one row per request: Parquet if FILE ends in .parquet, otherwise CSV, which is
    /// compressed if FILE ends in .gz or .zst
    #[arg(long, value_name = "FILE", value_parser = data_file::name)]
    log: Option<PathBuf>,
    /// Write one row per run with all its figures; the same formats
    #[arg(long, value_name = "FILE", value_parser = data_file::name)]
    summary: Option<PathBuf>,
    /// Draw the distribution of response times, with their components if there is one run; .svg or
    /// .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Draw the times of --plot on a logarithmic axis
    #[arg(long, requires = "plot")]
    log_x: bool,
    /// Draw the share of slower requests in --plot on a logarithmic axis, to show the slowest ones
    #[arg(long, requires = "plot")]
    log_y: bool,
    /// Omit notes and warnings
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
    Setting::parse_all(options).map_or(0, |settings| sweep::points(&settings).len())
}

/// Parses `--set` options that have one value each.
pub(crate) fn single_values(options: &[String]) -> Result<Vec<(String, String)>> {
    let mut points = sweep::points(&Setting::parse_all(options)?);
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
    let cases = cases(args)?;
    if let Some(path) = &args.plot {
        picture::check(path, &cases)?;
    }
    check_outputs(args, &cases)?;
    notes::of(&cases).iter().for_each(note);
    let facts = facts(args, &cases);
    let labels = LabelColumns::of(&cases);
    let summary = args.summary.as_ref();
    let summary = summary.map(|path| results::create(path, &labels, &facts));
    let summary = summary.transpose()?;
    let mut summaries = match &args.log {
        Some(path) => log::run_logged(&cases, Log::create(path, &cases, &facts)?)?,
        None => run::all(&cases)?,
    };
    let mut served = run::pairs(&cases).zip(&summaries);
    if let Some(((_, run), _)) = served.find(|(_, summary)| summary.requests() == 0) {
        return Err(no_requests(run));
    }
    if let Some(file) = summary {
        results::write(file, &labels, &cases, &mut summaries)?;
    }
    let seeds = cases[0].runs.len();
    if let Some(path) = &args.plot {
        let axes = picture::Axes {
            log_x: args.log_x,
            log_y: args.log_y,
        };
        picture::draw(path, &cases, &mut summaries, axes)?;
    }
    let remedies: Vec<Option<String>> = cases
        .iter()
        .zip(summaries.chunks(seeds))
        .map(|(case, summaries)| alignment_fix(&case.runs[0], &summaries[0]))
        .collect();
    let figures: Vec<Figures> = summaries
        .chunks_mut(seeds)
        .map(|summaries| match summaries {
            [one] => Figures::of_one(one),
            several => Figures::of_runs(several),
        })
        .collect();
    let report = Report {
        settings: &args.set,
        cases: &cases,
        remedies: &remedies,
        figures: &figures,
    };
    if args.json {
        report.print_json()
    } else {
        report.print()
    }
}

/// Refuses outputs that would overwrite an input or each other.
fn check_outputs(args: &Args, cases: &[Case]) -> Result<()> {
    let machines = run::pairs(cases).map(|(_, run)| &run.machine);
    // With --drives, the workload is in the place of the target.
    let workload = match args.drives[..] {
        [] => &args.workload,
        _ => &args.target,
    };
    let workload = workload.as_deref().and_then(Workload::file);
    overwrite::check(
        machines.flat_map(Machine::files).chain(workload),
        &[
            ("--log", args.log.as_deref()),
            ("--summary", args.summary.as_deref()),
            ("--plot", args.plot.as_deref()),
        ],
    )
}

/// Returns the rows of the results: each drive with each combination of the values of `--set`.
fn cases(args: &Args) -> Result<Vec<Case>> {
    let (targets, text) = match (&args.target, &args.workload, &args.drives[..]) {
        (Some(target), workload, []) => (std::slice::from_ref(target), workload.as_ref()),
        // With --drives, the only positional argument is the workload.
        (workload, None, drives) => (drives, workload.as_ref()),
        (Some(target), Some(_), _) => {
            return Err(Failure::input(format!(
                "{target}: --drives replaces the TARGET; add it to --drives, or omit it"
            )));
        }
        (None, Some(_), _) => unreachable!("clap fills the target first"),
    };
    let trace = args.trace.plan()?;
    let points = sweep::points(&Setting::parse_all(&args.set)?);
    let mut cases = Vec::new();
    for (index, target) in targets.iter().enumerate() {
        if targets[..index].contains(target) {
            return Err(Failure::input(format!("--drives: {target} is given twice")));
        }
        let mut machine = Machine::load(target.trim())?;
        for target in &args.more {
            machine.extend(Machine::load(target)?);
        }
        let workload = workload(args, text, &machine)?;
        let seeds = seeds(args, &workload, machine.seed)?;
        let drive = (targets.len() > 1).then(|| machine.target.clone());
        for set in &points {
            let (mut machine, mut workload) = (machine.clone(), workload.clone());
            for (key, value) in set {
                match key.strip_prefix("workload.") {
                    Some(key) => workload.set(key, value)?,
                    None => machine.set(key, value)?,
                }
            }
            let runs = seeds.iter().map(|&seed| SimulationRun {
                machine: machine.clone(),
                workload: workload.clone(),
                seed,
                warmup: args.warmup,
                trace: trace.clone(),
            });
            cases.push(Case {
                drive: drive.clone(),
                set: set.clone(),
                runs: runs.collect(),
            });
        }
    }
    Ok(cases)
}

/// Returns the facts about the simulation for the metadata of data files.
fn facts(args: &Args, cases: &[Case]) -> Vec<(String, String)> {
    let run = &cases[0].runs[0];
    let mut facts = vec![("traxtent".to_owned(), env!("CARGO_PKG_VERSION").to_owned())];
    if let [case] = cases {
        facts.push(("drive".to_owned(), run.machine.target.clone()));
        facts.push(("workload".to_owned(), run.workload.describe()));
        if let ([run], false) = (&case.runs[..], matches!(run.workload, Workload::Trace(_))) {
            facts.push(("seed".to_owned(), run.seed.to_string()));
        }
    }
    if args.warmup > 0 {
        facts.push(("warmup".to_owned(), args.warmup.to_string()));
    }
    facts
}

fn workload(args: &Args, text: Option<&String>, machine: &Machine) -> Result<Workload> {
    let workload = match (text, &machine.synthio) {
        (Some(text), _) => Workload::parse(text)?,
        (None, Some(spec)) => Workload::Synthio(spec.clone()),
        (None, None) => {
            return Err(Failure::input(format!(
                "{} contains no workload; give one, such as random,count=10000 (see `traxtent help sim`)",
                machine.target
            )));
        }
    };
    let drive = (!args.more.is_empty()).then_some("--drive");
    if !matches!(workload, Workload::Trace(_))
        && let Some(option) = args.trace.first_given().or(drive)
    {
        return Err(Failure::input(format!("{option} applies only to traces")));
    }
    Ok(workload)
}

/// Returns the seed of each run; a trace needs none.
fn seeds(args: &Args, workload: &Workload, stated: Option<u64>) -> Result<Vec<u64>> {
    let first = match workload {
        Workload::Drawn(spec) => args.seed.unwrap_or(spec.seed),
        Workload::Synthio(_) => args.seed.or(stated).unwrap_or(1),
        Workload::Trace(_) if args.seed.is_some() || args.seeds.is_some() => {
            return Err(Failure::input(
                "--seed and --seeds apply only to synthetic workloads, not to traces",
            ));
        }
        Workload::Trace(_) => 0,
    };
    let count = u64::from(args.seeds.unwrap_or(1));
    Ok((0..count).map(|index| first.wrapping_add(index)).collect())
}

/// Returns the keys to add to a synthetic workload so that its writes cover whole physical sectors.
fn alignment_fix(run: &SimulationRun, summary: &Summary) -> Option<String> {
    let Workload::Drawn(spec) = &run.workload else {
        return None;
    };
    let sector = run.machine.drives[0].profile.sector;
    // Track sizes cannot be rounded.
    let keys = summary.alignment(sector)?;
    (spec.size != RequestSizes::Track || !keys.contains("round")).then_some(keys)
}

fn no_requests(run: &SimulationRun) -> Failure {
    let of = run.workload.describe();
    match run.warmup {
        0 => Failure::input(format!("{of}: no request was served")),
        warmup => Failure::input(format!("{of}: --warmup {warmup} excludes all requests")),
    }
}

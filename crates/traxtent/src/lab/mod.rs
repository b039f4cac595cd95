//! `traxtent lab`: the papers' experiments, and common benchmark jobs.

mod jobs;
mod markdown;
mod page;
mod report;
mod today;

use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::json;
use traxtent_experiments::{
    Experiment, PAPERS, RunOutcome, RunPlan, Seeds, Selection, Store, Verdict, experiments,
};

use traxtent_plot::ExperimentFigure;

use crate::claims::{self, Findings};
use crate::failure::{Failure, Result, note};
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::parse;
use crate::plot;
use crate::table::{Side, Table};

/// Repeat the papers' experiments
///
/// Each experiment measures published numbers on built-in drives, and compares them with the paper.
/// A tolerance that was fixed beforehand decides whether a claim is met or missed. A claim that
/// says nothing about a realistic model is only reported. Exit status 1 means that a scored claim
/// is missed.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the experiments and their claims
    List {
        /// Only these claims, groups of claims or papers
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run experiments
    Run {
        /// Claims, groups of claims or papers, as named by `traxtent lab list`: Q1a, Q1, Q, linux;
        /// or all, except A1, A7 and A8, which need root or an emulated machine
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        how: RunArgs,
        /// Change a parameter of the drives to explore its effect; may be repeated
        #[arg(long, value_name = "KEY=VALUE", value_parser = parse::setting, conflicts_with = "resume")]
        set: Vec<(String, String)>,
        /// Draw the experiments' pictures as SVG in this directory
        #[arg(long, value_name = "DIR")]
        pictures: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run experiments and write a self-contained page with a report and pictures
    Report(report::Args),
    /// Run the papers' experiments on current drives: the benefit of traxtents, with and without
    /// zero-latency access
    ///
    /// The drives are the papers' drive for reference, one of 3 TB and one of 20 TB.
    /// docs/results/today.md explains the results.
    Today(today::Args),
    /// Run common benchmark jobs on drives, and compare the results with the makers' figures
    ///
    /// The jobs are sequential and random reads and writes, a random mix of both, and sequential
    /// reads of 4 KiB to 4 MiB at depths of 1 to 32, in powers of two. Exit status 1 means that a
    /// bound is violated. docs/results/jobs.md has the bounds and the table.
    Jobs(jobs::Args),
}

#[derive(clap::Args, Debug)]
struct RunArgs {
    /// The number of seeds; a verdict must hold with each. Experiments that list one seed use
    /// that one
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: u16,
    /// Use only this seed
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// Run a tenth of the requests: less accurate, but quick
    #[arg(long)]
    quick: bool,
    /// Store each result in this directory once it is available, and reuse results that an earlier
    /// run of the same build stored there
    #[arg(long, value_name = "DIR")]
    resume: Option<PathBuf>,
    /// The directory of the traces that come with DiskSim, which some experiments replay
    #[arg(long, value_name = "DIR", default_value = "../shared/data/disksim")]
    traces: PathBuf,
}

impl RunArgs {
    fn plan(&self, pictures: bool) -> Result<RunPlan> {
        let seeds = match self.seed {
            Some(seed) => Seeds::Only(seed),
            None => Seeds::First(usize::from(self.seeds)),
        };
        let open = |folder: &PathBuf| {
            Store::open(folder, &build()?).map_err(|error| Failure::Io(error.to_string()))
        };
        Ok(RunPlan {
            quick: self.quick,
            pictures,
            store: self.resume.as_ref().map(open).transpose()?,
            traces: self.traces.is_dir().then(|| self.traces.clone()),
            ..claims::plan(seeds)
        })
    }
}

/// Identifies the build of the program, because results of other builds must not be reused.
fn build() -> Result<String> {
    let own = std::env::current_exe().and_then(std::fs::read);
    let bytes = own.map_err(|error| Failure::Io(format!("the program's own file: {error}")))?;
    let version = env!("CARGO_PKG_VERSION");
    Ok(format!(
        "{version} {} {:08x}",
        bytes.len(),
        crc32fast::hash(&bytes)
    ))
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::List { ids, json } => list(ids, *json),
        Verb::Run {
            ids,
            how,
            set,
            pictures,
            json,
        } => run_some(ids, how, set, pictures.as_deref(), *json),
        Verb::Report(args) => report::run(args),
        Verb::Jobs(args) => jobs::run(args),
        Verb::Today(args) => today::run(args),
    }
}

fn list(ids: &[String], json: bool) -> Result<()> {
    let listed = match ids {
        [] => experiments().iter().collect(),
        _ => selection(ids)?.experiments(),
    };
    if json {
        let claim = |claim: &traxtent_experiments::Claim| {
            json!({
                "id": claim.id,
                "says": claim.says,
                "unit": claim.unit,
                "published": claim.published,
                "tolerance": claim.within,
                "scored": claim.scored,
                "reason": claim.reason,
            })
        };
        let experiment = |experiment: &Experiment| {
            json!({
                "number": experiment.number,
                "title": experiment.title,
                "drives": experiment.drives,
                "layout": experiment.layout,
                "workload": experiment.workload,
                "seeds": experiment.seeds,
                "measurement": experiment.measurement.name,
                "differences": experiment.differences,
                "figure": experiment.figure.as_ref().map(|figure| &figure.name),
                "claims": experiment.claims.iter().map(claim).collect::<Vec<_>>(),
            })
        };
        return output::json(&listed.into_iter().map(experiment).collect::<Vec<_>>());
    }
    let mut table = Table::new([
        ("CLAIMS", Side::Left),
        ("EXPERIMENT", Side::Left),
        ("PICTURE", Side::Left),
    ]);
    for experiment in listed {
        let picture = experiment.figure.as_ref().map(|figure| figure.name.clone());
        table.row([
            claims_of(experiment),
            experiment.title.clone(),
            picture.unwrap_or_default(),
        ]);
    }
    let mut out = output::stdout();
    table.write(&mut out)?;
    writeln!(out)?;
    for paper in PAPERS {
        writeln!(out, "{} or {}: {}", paper.letter, paper.name, paper.title)?;
    }
    output::finish(out)
}

/// Returns the range of an experiment's claims, from the first to the last.
fn claims_of(experiment: &Experiment) -> String {
    match &experiment.claims[..] {
        [only] => only.id.clone(),
        [first, .., last] => format!("{} to {}", first.id, last.id),
        [] => String::new(),
    }
}

fn run_some(
    ids: &[String],
    how: &RunArgs,
    set: &[(String, String)],
    pictures: Option<&Path>,
    json: bool,
) -> Result<()> {
    let selection = selection(ids)?;
    if let Some(folder) = pictures {
        check_pictures(folder, &selection)?;
    }
    let plan = RunPlan {
        changes: set.to_vec(),
        ..how.plan(pictures.is_some())?
    };
    let (findings, outcome) = measure(&selection, &plan)?;
    if !set.is_empty() {
        note(CHANGED_FIGURES);
    }
    let drawn = match pictures {
        Some(folder) => draw(&outcome, folder)?,
        None => Vec::new(),
    };
    if json {
        output::json(&findings.json())?;
    } else {
        print(&findings, how, set.is_empty(), &drawn)?;
    }
    verdict(&findings)
}

/// Returns the claims with these names; without names, those of [`Selection::all`].
fn selection(ids: &[String]) -> Result<Selection> {
    if ids.is_empty() {
        return Ok(Selection::all());
    }
    Selection::of(ids)
        .map_err(|error| Failure::input(format!("{error}: `traxtent lab list` lists them")))
}

/// Runs the experiments of the selected claims, and drops the findings for their other claims.
fn measure(selection: &Selection, plan: &RunPlan) -> Result<(Findings, RunOutcome)> {
    let mut outcome = claims::measure(&selection.experiments(), plan)?;
    for (experiment, reason) in &outcome.skipped {
        note(format!("{} is skipped: {reason}", experiment.number));
    }
    if outcome.findings.is_empty() {
        return Err(Failure::Io("nothing can be measured here".to_owned()));
    }
    selection.retain(&mut outcome.findings);
    Ok((Findings(std::mem::take(&mut outcome.findings)), outcome))
}

/// Prints the findings. Reasons apply only to the drives' own figures.
fn print(findings: &Findings, how: &RunArgs, reasons: bool, drawn: &[PathBuf]) -> Result<()> {
    let mut out = output::stdout();
    findings.table().write(&mut out)?;
    writeln!(out, "\n{}", findings.score())?;
    if how.quick {
        writeln!(out, "{ROUGH}")?;
    }
    for reason in findings.reasons().iter().filter(|_| reasons) {
        writeln!(out, "  {reason}")?;
    }
    for picture in drawn {
        writeln!(out, "wrote {}", picture.display())?;
    }
    output::finish(out)
}

/// The note about a quick run.
const ROUGH: &str = "A quick run: a tenth of the requests, so a claim near its bound can fall on either side of it.";

/// The note about a run with changed figures.
const CHANGED_FIGURES: &str =
    "the drives' figures were changed (--set); the verdicts are hypothetical";

/// Refuses pictures that would overwrite another file, and any picture if this build cannot draw.
/// Creates the directory if needed. Called before anything is measured.
fn check_pictures(folder: &Path, selection: &Selection) -> Result<()> {
    let paths = selection.experiments().into_iter();
    let paths: Vec<PathBuf> = paths.map(|one| picture(folder, one)).collect();
    paths.iter().try_for_each(|path| plot::check_ending(path))?;
    let outputs: Vec<_> = paths
        .iter()
        .map(|path| {
            (
                "--pictures",
                Some(path.as_path()),
                Some(OutputFormat::Picture),
            )
        })
        .collect();
    overwrite::check([], &outputs)?;
    output::folder(folder)
}

/// Returns the path of an experiment's picture, which is named after the experiment's number.
fn picture(folder: &Path, experiment: &Experiment) -> PathBuf {
    folder.join(format!("{}.svg", experiment.number.to_lowercase()))
}

/// Draws pictures into a directory.
fn draw(outcome: &RunOutcome, folder: &Path) -> Result<Vec<PathBuf>> {
    let draw = |(experiment, figure): &(&Experiment, _)| {
        let path = picture(folder, experiment);
        let spec = experiment.figure.as_ref();
        plot::write(&path, &ExperimentFigure { figure, spec })?;
        Ok(path)
    };
    outcome.pictures.iter().map(draw).collect()
}

/// Returns the error for the exit status.
fn verdict(findings: &Findings) -> Result<()> {
    match findings.count(Verdict::Missed) {
        0 => Ok(()),
        1 => Err(Failure::Finding("a scored claim is missed".to_owned())),
        n => Err(Failure::Finding(format!("{n} scored claims are missed"))),
    }
}

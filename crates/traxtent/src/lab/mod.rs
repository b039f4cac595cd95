//! `traxtent lab`: the experiments of the papers.

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
    Experiment, Outcome, PAPERS, Plan, Seeds, Selection, Store, Verdict, experiments,
};

use crate::claims::{self, Findings};
use crate::failure::{Failure, Result, note};
use crate::output;
use crate::parse;
use crate::plot;
use crate::table::{Side, Table};

/// Repeat the experiments of the papers
///
/// Each experiment measures, on built-in drives, numbers that a paper publishes, and sets them side by side. A claim is
/// met or missed by a tolerance that was fixed beforehand, or it is only reported, where no honest model could be
/// judged by it. Exit status 1 means that a scored claim is missed.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

#[derive(Subcommand, Debug)]
enum Verb {
    /// List the experiments and their claims
    List {
        /// Only these: claims, groups of claims or papers
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run experiments
    Run {
        /// Claims, groups of claims or papers, as `traxtent lab list` names them: Q1a, Q1, Q, linux; or all, but for A, which needs root, nbdkit and some 20 minutes
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        how: How,
        /// Ask what would be if a figure of the drives were another; may be repeated
        #[arg(long, value_name = "KEY=VALUE", value_parser = parse::setting, conflicts_with = "resume")]
        set: Vec<(String, String)>,
        /// Draw the pictures of the experiments that have one, as SVG in this folder
        #[arg(long, value_name = "FOLDER")]
        pictures: Option<PathBuf>,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run experiments and write a report with pictures: a page that needs no other file
    Report(report::Args),
    /// Ask the papers' questions of drives of today: what do traxtents buy, with zero-latency access and without?
    ///
    /// Takes the papers' drive for reference, one of 3 TB and one of 20 TB. docs/today.md says what the answers mean.
    Today(today::Args),
    /// Run fio's usual jobs on drives, and hold them against what their makers publish
    ///
    /// Reads and writes in sequence and at random, and reads in sequence of every size from 4 KiB to 4 MiB at every depth from 1 to
    /// 32. Exit status 1 means that a bound does not hold. docs/jobs.md says what the bounds are, and has the table.
    Jobs(jobs::Args),
}

#[derive(clap::Args, Debug)]
struct How {
    /// With so many seeds: a verdict has to hold with each. Where nothing is random, one is enough
    #[arg(long, value_name = "N", default_value_t = 1, value_parser = clap::value_parser!(u16).range(1..=1000))]
    seeds: u16,
    /// With this seed alone
    #[arg(long, value_name = "N", conflicts_with = "seeds")]
    seed: Option<u64>,
    /// A tenth of the requests: rough, but soon done
    #[arg(long)]
    quick: bool,
    /// Keep each result in this folder as soon as it is there, and take from it what an earlier run of the same build
    /// has left
    #[arg(long, value_name = "FOLDER")]
    resume: Option<PathBuf>,
    /// The folder with the traces that come with DiskSim, which some experiments replay
    #[arg(long, value_name = "FOLDER", default_value = "../shared/data/disksim")]
    traces: PathBuf,
}

impl How {
    fn plan(&self, pictures: bool) -> Result<Plan> {
        let seeds = match self.seed {
            Some(seed) => Seeds::Only(seed),
            None => Seeds::First(usize::from(self.seeds)),
        };
        let open = |folder: &PathBuf| {
            Store::open(folder, &build()?).map_err(|error| Failure::Io(error.to_string()))
        };
        Ok(Plan {
            quick: self.quick,
            pictures,
            store: self.resume.as_ref().map(open).transpose()?,
            traces: self.traces.is_dir().then(|| self.traces.clone()),
            ..claims::plan(seeds)
        })
    }
}

/// Which build of the program this is: results of another are not taken for its own.
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

/// The names of an experiment's claims, from the first to the last.
fn claims_of(experiment: &Experiment) -> String {
    match &experiment.claims[..] {
        [only] => only.id.clone(),
        [first, .., last] => format!("{} to {}", first.id, last.id),
        [] => String::new(),
    }
}

fn run_some(
    ids: &[String],
    how: &How,
    set: &[(String, String)],
    pictures: Option<&Path>,
    json: bool,
) -> Result<()> {
    let selection = selection(ids)?;
    if let Some(folder) = pictures {
        plot::check_ending(&folder.join("any.svg"))?;
        output::folder(folder)?;
    }
    let plan = Plan {
        changes: set.to_vec(),
        ..how.plan(pictures.is_some())?
    };
    let (findings, outcome) = measure(&selection, &plan)?;
    if !set.is_empty() {
        note(OTHERWISE);
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

/// The claims of these names; all, if there are none.
fn selection(ids: &[String]) -> Result<Selection> {
    if ids.is_empty() {
        return Ok(Selection::all());
    }
    Selection::of(ids)
        .map_err(|error| Failure::input(format!("{error}: `traxtent lab list` lists them")))
}

/// Does the experiments with chosen claims, and forgets their other claims.
fn measure(selection: &Selection, plan: &Plan) -> Result<(Findings, Outcome)> {
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

/// Reasons are told of the drives as they are.
fn print(findings: &Findings, how: &How, reasons: bool, drawn: &[PathBuf]) -> Result<()> {
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

/// What a quick run is worth.
const ROUGH: &str = "A quick run: a tenth of the requests, so a claim near its bound may fall on either side of it.";

/// What a run with figures set is worth.
const OTHERWISE: &str =
    "figures of the drives are not their own (--set): verdicts say what would be";

/// Draws pictures into a folder, each a file by its experiment's number.
fn draw(outcome: &Outcome, folder: &Path) -> Result<Vec<PathBuf>> {
    let draw = |(experiment, figure): &(&Experiment, _)| {
        let path = folder.join(format!("{}.svg", experiment.number.to_lowercase()));
        plot::figure(&path, figure, experiment.figure.as_ref())?;
        Ok(path)
    };
    outcome.pictures.iter().map(draw).collect()
}

/// The exit status.
fn verdict(findings: &Findings) -> Result<()> {
    match findings.count(Verdict::Missed) {
        0 => Ok(()),
        1 => Err(Failure::Finding("a scored claim is missed".to_owned())),
        n => Err(Failure::Finding(format!("{n} scored claims are missed"))),
    }
}

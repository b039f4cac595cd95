//! `traxtent lab`: the experiments of the papers.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use clap::Subcommand;
use serde_json::{Value, json};
use traxtent_lab::traxtents::MAIN_DRIVE;
use traxtent_lab::{Bench, EXPERIMENTS, Experiment, Figure, Finding, PAPERS, Verdict};

use crate::claims::{Findings, each};
use crate::failure::{Failure, Result};
use crate::output;
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
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run experiments
    Run {
        /// Claims or groups of claims, as `traxtent lab list` names them: Q1a, Q1, Q
        #[arg(value_name = "ID", required = true)]
        ids: Vec<String>,
        #[command(flatten)]
        how: How,
        /// Print JSON
        #[arg(long)]
        json: bool,
    },
    /// Run experiments and print a report as Markdown
    Report {
        /// Claims or groups of claims; all, if none is named
        #[arg(value_name = "ID")]
        ids: Vec<String>,
        #[command(flatten)]
        how: How,
    },
}

#[derive(clap::Args, Debug)]
struct How {
    /// The seed of every random choice
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw the pictures of the experiments that have one, as SVG in this folder
    #[arg(long, value_name = "FOLDER")]
    pictures: Option<PathBuf>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::List { json } => list(*json),
        Verb::Run { ids, how, json } => {
            let outcome = Outcome::of(ids, how)?;
            if *json {
                output::json(&outcome.json())?;
            } else {
                outcome.print()?;
            }
            outcome.verdict()
        }
        Verb::Report { ids, how } => {
            let outcome = Outcome::of(ids, how)?;
            outcome.report()?;
            outcome.verdict()
        }
    }
}

fn all() -> impl Iterator<Item = &'static Experiment> {
    EXPERIMENTS.iter().copied().flatten()
}

/// The experiments with claims of these names; all, if there are none.
fn chosen(ids: &[String]) -> Result<Vec<&'static Experiment>> {
    if ids.is_empty() {
        return Ok(all().collect());
    }
    let has = |experiment: &Experiment, id: &String| {
        let mut claims = experiment.claims.iter();
        claims.any(|claim| claim.is_called(id))
    };
    if let Some(id) = ids.iter().find(|id| !all().any(|e| has(e, id))) {
        return Err(Failure::input(format!(
            "no claim is called {id:?}: `traxtent lab list` lists them"
        )));
    }
    let called = |experiment: &&Experiment| ids.iter().any(|id| has(experiment, id));
    Ok(all().filter(called).collect())
}

fn list(json: bool) -> Result<()> {
    if json {
        let claim = |claim: &traxtent_lab::Claim| {
            json!({
                "claim": claim.id,
                "says": claim.says,
                "published": claim.published,
                "within": claim.tolerance(),
                "scored": claim.scored,
            })
        };
        let experiment = |experiment: &Experiment| {
            json!({
                "title": experiment.title,
                "claims": experiment.claims.iter().map(claim).collect::<Vec<_>>(),
                "picture": experiment.figure.is_some(),
            })
        };
        return output::json(&all().map(experiment).collect::<Vec<_>>());
    }
    let mut table = Table::new([
        ("CLAIMS", Side::Left),
        ("EXPERIMENT", Side::Left),
        ("PICTURE", Side::Left),
    ]);
    for experiment in all() {
        table.row([
            ids(experiment),
            experiment.title.to_owned(),
            if experiment.figure.is_some() {
                "yes"
            } else {
                ""
            }
            .to_owned(),
        ]);
    }
    let mut out = output::stdout();
    table.write(&mut out)?;
    writeln!(out)?;
    for (letter, paper) in PAPERS {
        writeln!(out, "{letter}: {paper}")?;
    }
    output::finish(out)
}

/// The names of an experiment's claims, from the first to the last.
fn ids(experiment: &Experiment) -> String {
    match experiment.claims {
        [only] => only.id.to_owned(),
        [first, .., last] => format!("{} to {}", first.id, last.id),
        [] => String::new(),
    }
}

/// What experiments come to.
struct Outcome {
    findings: Findings,
    pictures: Vec<PathBuf>,
}

impl Outcome {
    /// Does what is asked for, and forgets the other claims of the same experiments.
    fn of(ids: &[String], how: &How) -> Result<Outcome> {
        let experiments = chosen(ids)?;
        let bench = Bench::new(MAIN_DRIVE, how.seed).map_err(Failure::input)?;
        let mut findings = Findings::measure(&bench, &experiments)?;
        let asked_for = |id: &String, finding: &Finding| finding.claim.is_called(id);
        if !ids.is_empty() {
            findings
                .0
                .retain(|finding| ids.iter().any(|id| asked_for(id, finding)));
        }
        let pictures = match &how.pictures {
            Some(folder) => draw(&bench, &experiments, folder)?,
            None => Vec::new(),
        };
        Ok(Outcome { findings, pictures })
    }

    fn json(&self) -> Value {
        json!({
            "claims": self.findings.json(),
            "met": self.findings.count(Verdict::Met),
            "missed": self.findings.count(Verdict::Missed),
            "pictures": self.pictures,
        })
    }

    fn print(&self) -> Result<()> {
        let mut out = output::stdout();
        self.findings.table().write(&mut out)?;
        writeln!(out, "\n{}", self.findings.score())?;
        for reason in self.findings.reasons() {
            writeln!(out, "  {reason}")?;
        }
        for picture in &self.pictures {
            writeln!(out, "wrote {}", picture.display())?;
        }
        output::finish(out)
    }

    /// All of it as Markdown, claim by claim with the command that measures it.
    fn report(&self) -> Result<()> {
        let mut out = output::stdout();
        for (letter, paper) in PAPERS {
            let of_paper = |finding: &&Finding| finding.claim.id.starts_with(letter);
            let findings: Vec<&Finding> = self.findings.0.iter().filter(of_paper).collect();
            if findings.is_empty() {
                continue;
            }
            writeln!(out, "## {letter}: {paper}\n")?;
            writeln!(
                out,
                "| claim | | published | measured | within | verdict | command |\n|---|---|---|---|---|---|---|"
            )?;
            for finding in findings {
                let claim = finding.claim;
                writeln!(
                    out,
                    "| {} | {} | {} | {} | {} | {} | `traxtent lab run {}` |",
                    claim.id,
                    claim.says,
                    claim.published(),
                    claim.unit.show(finding.measured),
                    claim.tolerance(),
                    finding.verdict().word(),
                    claim.id,
                )?;
            }
            writeln!(out)?;
        }
        writeln!(out, "{}\n", self.findings.score())?;
        for reason in self.findings.reasons() {
            writeln!(out, "- {reason}")?;
        }
        for picture in &self.pictures {
            let name = picture.file_stem().unwrap_or_default().to_string_lossy();
            writeln!(out, "\n![{name}]({})", picture.display())?;
        }
        output::finish(out)
    }

    /// The exit status.
    fn verdict(&self) -> Result<()> {
        match self.findings.count(Verdict::Missed) {
            0 => Ok(()),
            1 => Err(Failure::Finding("a scored claim is missed".to_owned())),
            n => Err(Failure::Finding(format!("{n} scored claims are missed"))),
        }
    }
}

/// Draws the pictures of experiments into a folder.
fn draw(bench: &Bench, experiments: &[&Experiment], folder: &Path) -> Result<Vec<PathBuf>> {
    let place = |name: &str| folder.join(format!("{name}.svg"));
    plot::check_ending(&place("any"))?;
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let figures = each(experiments, |experiment| {
        experiment.figure.map(|figure| figure(bench))
    });
    let mut drawn = Vec::new();
    for (experiment, figure) in experiments.iter().zip(figures) {
        let Some(figure) = figure else { continue };
        let figure: Figure = figure.map_err(|error| Failure::at(experiment.title, error))?;
        let path = place(figure.name);
        plot::figure(&path, &figure)?;
        drawn.push(path);
    }
    Ok(drawn)
}

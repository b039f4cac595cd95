//! Findings as Markdown, with a section for each experiment, for the pages in docs/results.

use std::io::Write;
use std::path::PathBuf;

use traxtent_experiments::{Experiment, Finding, PAPERS, Verdict, experiments, reasons};

use crate::claims::{Findings, measured};
use crate::failure::Result;
use crate::output;

/// Prints each experiment with its picture, its claims, and the reasons for those that are not met.
pub(super) fn print(findings: &Findings, pictures: &[PathBuf]) -> Result<()> {
    let mut out = output::stdout();
    let mut paper = None;
    for findings in findings.0.chunk_by(|a, b| number(a) == number(b)) {
        let its = PAPERS
            .iter()
            .find(|paper| number(&findings[0]).starts_with(paper.letter));
        if let Some(its) = its.filter(|its| paper != Some(its.letter)) {
            writeln!(out, "# {}: {}\n", its.letter, its.title)?;
            paper = Some(its.letter);
        }
        section(&mut out, findings, pictures)?;
    }
    writeln!(out, "{}", findings.score())?;
    output::finish(out)
}

/// Prints the findings of one experiment.
fn section(out: &mut impl Write, findings: &[Finding], pictures: &[PathBuf]) -> Result<()> {
    let experiment = experiment(&findings[0]);
    let heading = heading(experiment);
    writeln!(out, "## {heading}\n")?;
    let stem = experiment.number.to_lowercase();
    let picture = pictures
        .iter()
        .find(|path| path.file_stem().is_some_and(|name| *name == *stem));
    if let Some(path) = picture {
        writeln!(out, "![{heading}]({})\n", path.display())?;
    }
    writeln!(
        out,
        "| claim | verdict | measured | published | within |\n|---|---|---|---|---|"
    )?;
    for finding in findings {
        let claim = finding.claim;
        let verdict = match finding.verdict() {
            Verdict::Missed => "**missed**",
            other => other.word(),
        };
        writeln!(
            out,
            "| **{}** {} | {verdict} | {} | {} | {} |",
            claim.id,
            claim.says,
            measured(finding),
            claim.published(),
            claim.tolerance(),
        )?;
    }
    writeln!(out)?;
    let reasons = reasons(findings);
    for reason in &reasons {
        writeln!(out, "- {reason}")?;
    }
    if !reasons.is_empty() {
        writeln!(out)?;
    }
    Ok(())
}

/// Returns the number and the title of an experiment. A place in the paper with which the title
/// begins, such as `Fig. 1`, is in parentheses.
fn heading(experiment: &Experiment) -> String {
    let (number, title) = (&experiment.number, &experiment.title);
    let is_place = |text: &str| {
        ["Fig", "Table ", "Section "]
            .iter()
            .any(|word| text.starts_with(word))
    };
    match title.split_once(": ") {
        Some((place, rest)) if is_place(place) => format!("{number} ({place}): {rest}"),
        _ => format!("{number}: {title}"),
    }
}

/// Returns the experiment that measured this finding.
fn experiment(finding: &Finding) -> &'static Experiment {
    let id = &finding.claim.id;
    experiments()
        .iter()
        .find(|experiment| experiment.claims.iter().any(|claim| claim.id == *id))
        .expect("a finding is for a claim of an experiment")
}

/// Returns the number of the experiment that measured this finding, such as T2.
fn number(finding: &Finding) -> &'static str {
    &experiment(finding).number
}

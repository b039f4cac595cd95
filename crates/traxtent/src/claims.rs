//! Findings of experiments, compared with published claims, for people and for scripts.

use std::thread;

use serde_json::{Value, json};
use traxtent_experiments::{
    Experiment, Finding, RunError, RunOutcome, RunPlan, Seeds, Verdict, reasons, run, score,
};

use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::table::{Side, Table};

/// Findings in the order of their claims.
pub(crate) struct Findings(pub(crate) Vec<Finding>);

/// Returns a plan with as many workers as the machine has processors.
pub(crate) fn plan(seeds: Seeds) -> RunPlan {
    RunPlan {
        seeds,
        quick: false,
        pictures: false,
        workers: thread::available_parallelism().map_or(1, usize::from),
        store: None,
        traces: None,
        changes: Vec::new(),
    }
}

/// Runs experiments, with a progress bar on a terminal.
pub(crate) fn measure(experiments: &[&'static Experiment], plan: &RunPlan) -> Result<RunOutcome> {
    let progress = Progress::new("measurements", Some(plan.measurements(experiments) as u64));
    run(experiments, plan, &|| progress.add(1)).map_err(|error| match error {
        RunError::Store(_) => Failure::Io(error.to_string()),
        _ => Failure::input(error),
    })
}

impl Findings {
    /// Returns the finding for one claim.
    pub(crate) fn claim(&self, id: &str) -> Option<&Finding> {
        self.0.iter().find(|finding| finding.claim.id == id)
    }

    /// Returns the number of findings with this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        let findings = self.0.iter();
        findings.filter(|f| f.verdict() == verdict).count()
    }

    /// Returns a one-line summary of the verdicts.
    pub(crate) fn score(&self) -> String {
        score(&self.0)
    }

    /// Returns a table of every claim and its finding.
    pub(crate) fn table(&self) -> Table {
        let mut table = Table::new([
            ("CLAIM", Side::Left),
            ("", Side::Left),
            ("PUBLISHED", Side::Right),
            ("MEASURED", Side::Right),
            ("WITHIN", Side::Right),
            ("VERDICT", Side::Left),
        ]);
        for finding in &self.0 {
            let claim = finding.claim;
            table.row([
                claim.id.clone(),
                claim.says.clone(),
                claim.published(),
                measured(finding),
                claim.tolerance(),
                finding.verdict().word().to_owned(),
            ]);
        }
        table
    }

    /// Returns the reasons why claims are missed or only reported, one per line.
    pub(crate) fn reasons(&self) -> Vec<String> {
        reasons(&self.0).iter().map(ToString::to_string).collect()
    }

    /// Returns the findings for a script.
    pub(crate) fn json(&self) -> Value {
        self.0.iter().map(finding_json).collect()
    }
}

/// Returns the measured value, with its range if it differs between seeds.
pub(crate) fn measured(finding: &Finding) -> String {
    let unit = finding.claim.unit;
    let (measured, spread) = (unit.format(finding.measured()), finding.spread());
    if unit.format(spread.min) == unit.format(spread.max) {
        measured
    } else {
        format!("{measured} ({})", unit.format_range(spread.min, spread.max))
    }
}

/// Returns a finding as JSON. Numbers are in the claim's unit. A missing value is null, for example
/// if a curve never reaches its target.
fn finding_json(finding: &Finding) -> Value {
    let claim = finding.claim;
    let seed = |sample: &traxtent_experiments::Sample| json!({ "seed": sample.seed, "measured": sample.measured, "candidates": sample.candidates });
    json!({
        "id": claim.id,
        "says": claim.says,
        "unit": claim.unit,
        "published": claim.published,
        "measured": finding.measured(),
        "tolerance": claim.within,
        "within": finding.within(),
        "scored": claim.scored,
        "verdict": finding.verdict().word(),
        "reason": (finding.verdict() != Verdict::Met).then_some(&claim.reason),
        "seeds": finding.samples.iter().map(seed).collect::<Vec<_>>(),
    })
}

//! The comparison of the demo's drive with the paper's claims, made by the crates of the feature
//! `lab`.

use serde_json::Value;
use traxtent_plot::PublishedMark;

use crate::failure::Result;
use crate::html::{escape, prose};
use crate::table::Table;

/// The claims of the paper, and the results of the built-in profile.
pub(super) struct Comparison {
    /// Every claim and its finding.
    pub(super) table: Table,
    /// A summary of the verdicts.
    pub(super) score: String,
    /// The reasons why claims are missed or only reported.
    pub(super) reasons: Vec<String>,
    /// The published changes of head time with one request outstanding, and with two.
    pub(super) head_time_changes: [String; 2],
    /// The findings for a script.
    pub(super) claims: Value,
    /// The number of claims that are met.
    pub(super) met: usize,
    /// The number of claims that are missed.
    pub(super) missed: usize,
}

impl Comparison {
    /// Returns the table, the score, and the list of reasons without its end tag, so that the
    /// caller can add an item.
    pub(super) fn html(&self) -> String {
        let reasons: String = self
            .reasons
            .iter()
            .map(|reason| format!("<li>{}</li>\n", prose(reason)))
            .collect();
        format!(
            "{}\n<p>{}</p>\n<ul>\n{reasons}",
            self.table.html(),
            escape(&self.score)
        )
    }
}

#[cfg(feature = "lab")]
mod lab {
    use traxtent_experiments::{Experiment, PublishedPoint, Seeds, Verdict, experiments};

    use super::*;
    use crate::claims::{self, Findings};
    use crate::demo::{ALIGNED, SEED};

    /// The paper's experiments on efficiency, head times and response times.
    const EXPERIMENTS: [&str; 12] = [
        "T2", "T3", "T4", "T5", "T8", "T9", "T10", "T11", "T12", "T13", "T14", "T15",
    ];

    /// Runs [`EXPERIMENTS`], and compares the results with the paper.
    pub(in crate::demo) fn compare() -> Result<Option<Comparison>> {
        let plan = claims::plan(Seeds::Only(SEED));
        let findings = Findings(claims::measure(&compared_experiments(), &plan)?.findings);
        let published = |id| {
            let finding = findings.claim(id);
            finding.map_or_else(String::new, |finding| finding.claim.published())
        };
        Ok(Some(Comparison {
            table: findings.table(),
            score: findings.score(),
            reasons: findings.reasons(),
            head_time_changes: ["T8a", "T8b"].map(published),
            claims: findings.json(),
            met: findings.count(Verdict::Met),
            missed: findings.count(Verdict::Missed),
        }))
    }

    /// Returns the experiments whose numbers are in [`EXPERIMENTS`].
    fn compared_experiments() -> Vec<&'static Experiment> {
        let chosen = experiments().iter();
        chosen
            .filter(|experiment| EXPERIMENTS.contains(&experiment.number.as_str()))
            .collect()
    }

    /// Returns the points of the paper's Fig. 1 that its text states.
    pub(in crate::demo) fn marks() -> Vec<PublishedMark> {
        let of_figure = experiments()
            .iter()
            .find(|experiment| experiment.number == "T2");
        let figure = of_figure.and_then(|experiment| experiment.figure.as_ref());
        let points = figure.map_or(&[][..], |figure| &figure.published).iter();
        let mark = |point: &PublishedPoint| PublishedMark {
            at: point.at.into(),
            curve: usize::from(point.series != ALIGNED),
        };
        points.map(mark).collect()
    }
}
#[cfg(feature = "lab")]
pub(super) use lab::{compare, marks};

#[cfg(not(feature = "lab"))]
mod none {
    //! Substitutes for builds without the feature `lab`, which compare nothing.
    use super::*;

    pub(in crate::demo) fn compare() -> Result<Option<Comparison>> {
        Ok(None)
    }

    pub(in crate::demo) fn marks() -> Vec<PublishedMark> {
        Vec::new()
    }
}
#[cfg(not(feature = "lab"))]
pub(super) use none::{compare, marks};

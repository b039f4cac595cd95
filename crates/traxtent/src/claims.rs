//! What experiments find, beside what papers claim: for people and for scripts.

use std::sync::atomic::{AtomicUsize, Ordering};
use std::thread;

use serde_json::{Value, json};
use traxtent_lab::{Bench, Experiment, Finding, Verdict};

use crate::failure::{Failure, Result};
use crate::progress::Progress;
use crate::table::{Side, Table};

/// Findings in the order of their claims.
pub(crate) struct Findings(pub(crate) Vec<Finding>);

impl Findings {
    /// Does experiments, as many at a time as the machine has processors.
    pub(crate) fn measure(bench: &Bench, experiments: &[&Experiment]) -> Result<Findings> {
        let results = each(experiments, |experiment| experiment.run(bench));
        let mut findings = Vec::new();
        for (experiment, result) in experiments.iter().zip(results) {
            let title = experiment.title;
            findings.extend(result.map_err(|error| Failure::at(title, error))?);
        }
        Ok(Findings(findings))
    }

    /// The finding for one claim.
    pub(crate) fn claim(&self, id: &str) -> Option<&Finding> {
        self.0.iter().find(|finding| finding.claim.id == id)
    }

    /// How many have this verdict.
    pub(crate) fn count(&self, verdict: Verdict) -> usize {
        let findings = self.0.iter();
        findings.filter(|f| f.verdict() == verdict).count()
    }

    /// How the claims fared, in a line.
    pub(crate) fn score(&self) -> String {
        let (met, missed) = (self.count(Verdict::Met), self.count(Verdict::Missed));
        format!(
            "{met} of {} scored claims are met, {missed} missed; {} more are reported.",
            met + missed,
            self.count(Verdict::Reported)
        )
    }

    /// Every finding beside its claim.
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
                claim.id.to_owned(),
                claim.says.to_owned(),
                claim.published(),
                claim.unit.show(finding.measured),
                claim.tolerance(),
                finding.verdict().word().to_owned(),
            ]);
        }
        table
    }

    /// Why claims are missed, and why those that are only reported lie apart, a line a reason.
    pub(crate) fn reasons(&self) -> Vec<String> {
        let mut reasons: Vec<((Verdict, &str), Vec<&str>)> = Vec::new();
        for finding in &self.0 {
            let reason = match (finding.verdict(), finding.claim.if_missed) {
                (Verdict::Met, _) | (Verdict::Reported, "") => continue,
                (Verdict::Missed, "") => "the reason is not known",
                (_, known) => known,
            };
            let reason = (finding.verdict(), reason);
            match reasons.iter_mut().find(|(known, _)| *known == reason) {
                Some((_, ids)) => ids.push(finding.claim.id),
                None => reasons.push((reason, vec![finding.claim.id])),
            }
        }
        let line = |((verdict, reason), ids): ((Verdict, &str), Vec<&str>)| {
            let (ids, what) = (ids.join(", "), verdict.word());
            let what = what[..1].to_uppercase() + &what[1..];
            format!("{what} {ids}: {reason}.")
        };
        reasons.into_iter().map(line).collect()
    }

    /// The findings for a script.
    pub(crate) fn json(&self) -> Value {
        let finding = |finding: &Finding| {
            let claim = finding.claim;
            json!({
                "claim": claim.id,
                "says": claim.says,
                "published": claim.published,
                "measured": finding.measured,
                "within": claim.tolerance(),
                "verdict": finding.verdict().word(),
            })
        };
        self.0.iter().map(finding).collect()
    }
}

/// Does something with each experiment, several at a time; results in the order of the experiments.
pub(crate) fn each<T: Send>(
    experiments: &[&Experiment],
    work: impl Fn(&Experiment) -> T + Sync,
) -> Vec<T> {
    let progress = Progress::new("experiments", Some(experiments.len() as u64));
    let next = AtomicUsize::new(0);
    let take = || {
        let mut done = Vec::new();
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(experiment) = experiments.get(index) else {
                return done;
            };
            done.push((index, work(experiment)));
            progress.add(1);
        }
    };
    let mut done = thread::scope(|scope| {
        let workers = thread::available_parallelism().map_or(1, usize::from);
        let workers: Vec<_> = (0..workers).map(|_| scope.spawn(take)).collect();
        let results = workers.into_iter();
        let results = results.flat_map(|worker| worker.join().expect("no experiment panics"));
        results.collect::<Vec<_>>()
    });
    done.sort_by_key(|(index, _)| *index);
    done.into_iter().map(|(_, result)| result).collect()
}

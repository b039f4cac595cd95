//! A claim and what was measured, and what many of them come to.

use crate::claim::Claim;

/// What one seed gives.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The seed.
    pub seed: u64,
    /// The number that is judged.
    pub measured: f64,
    /// All that were measured for the claim: one, unless it is judged by the nearest of several.
    pub candidates: Vec<f64>,
}

/// A claim and what was measured.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The claim.
    pub claim: &'static Claim,
    /// The measured numbers, seed by seed.
    pub samples: Vec<Sample>,
}

/// The least and the greatest of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The least.
    pub least: f64,
    /// The greatest.
    pub most: f64,
}

/// Whether a claim is met.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance, with every seed.
    Met,
    /// Outside it, with any seed.
    Missed,
    /// Not judged.
    Reported,
}

impl Finding {
    /// What was measured: the mean over the seeds.
    pub fn measured(&self) -> f64 {
        match &self.samples[..] {
            [one] => one.measured,
            several => {
                let sum: f64 = several.iter().map(|sample| sample.measured).sum();
                sum / several.len() as f64
            }
        }
    }

    /// How far the seeds lie apart.
    pub fn spread(&self) -> Spread {
        let measured = || self.samples.iter().map(|sample| sample.measured);
        Spread {
            least: measured().fold(f64::INFINITY, f64::min),
            most: measured().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Whether every seed's number is within the tolerance.
    pub fn within(&self) -> bool {
        let mut samples = self.samples.iter();
        samples.all(|sample| self.claim.allows(sample.measured))
    }

    /// Whether the claim is met.
    pub fn verdict(&self) -> Verdict {
        match (self.claim.scored, self.within()) {
            (false, _) => Verdict::Reported,
            (true, true) => Verdict::Met,
            (true, false) => Verdict::Missed,
        }
    }
}

impl Verdict {
    /// The word for it.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Reported => "reported",
        }
    }
}

/// How claims fared, in a line.
pub fn score(findings: &[Finding]) -> String {
    let count = |verdict| {
        let findings = findings.iter();
        findings
            .filter(|finding| finding.verdict() == verdict)
            .count()
    };
    let (met, missed) = (count(Verdict::Met), count(Verdict::Missed));
    format!(
        "{met} of {} scored claims are met, {missed} missed; {} more are reported.",
        met + missed,
        count(Verdict::Reported)
    )
}

/// Why claims are missed or only reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// Missed, or reported.
    pub verdict: Verdict,
    /// The claims that this is the reason of.
    pub ids: Vec<&'static str>,
    /// The reason.
    pub why: &'static str,
}

/// Why claims are missed, and why others are only reported, a reason once.
pub fn reasons(findings: &[Finding]) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for finding in findings {
        let verdict = finding.verdict();
        let why = match (verdict, finding.claim.reason.as_str()) {
            (Verdict::Met, _) => continue,
            (_, "") => "the reason is not known",
            (_, known) => known,
        };
        let same = |reason: &&mut Reason| reason.verdict == verdict && reason.why == why;
        match reasons.iter_mut().find(same) {
            Some(reason) => reason.ids.push(&finding.claim.id),
            None => reasons.push(Reason {
                verdict,
                ids: vec![&finding.claim.id],
                why,
            }),
        }
    }
    reasons
}

impl std::fmt::Display for Reason {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let word = self.verdict.word();
        let ids = self.ids.join(", ");
        write!(
            f,
            "{}{} {ids}: {}.",
            word[..1].to_uppercase(),
            &word[1..],
            self.why
        )
    }
}

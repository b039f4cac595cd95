//! Findings: claims with their measured numbers, and summaries of findings.

use crate::claim::Claim;

/// The result for one seed.
#[derive(Clone, Debug, PartialEq)]
pub struct Sample {
    /// The seed.
    pub seed: u64,
    /// The number that is judged.
    pub measured: f64,
    /// All numbers measured for the claim: one, unless the claim is judged by the nearest of
    /// several.
    pub candidates: Vec<f64>,
}

/// A claim and the numbers measured for it.
#[derive(Clone, Debug, PartialEq)]
pub struct Finding {
    /// The claim.
    pub claim: &'static Claim,
    /// The measured numbers, seed by seed.
    pub samples: Vec<Sample>,
}

/// The smallest and the largest of several numbers.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Spread {
    /// The smallest.
    pub min: f64,
    /// The largest.
    pub max: f64,
}

/// Whether a claim is met, missed, or not scored.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Verdict {
    /// Within the tolerance, with every seed.
    Met,
    /// Outside the tolerance, with at least one seed.
    Missed,
    /// Not scored.
    Reported,
}

impl Finding {
    /// The measured value: the mean over the seeds.
    pub fn measured(&self) -> f64 {
        match &self.samples[..] {
            [one] => one.measured,
            several => {
                let sum: f64 = several.iter().map(|sample| sample.measured).sum();
                sum / several.len() as f64
            }
        }
    }

    /// The spread over the seeds.
    pub fn spread(&self) -> Spread {
        let measured = || self.samples.iter().map(|sample| sample.measured);
        Spread {
            min: measured().fold(f64::INFINITY, f64::min),
            max: measured().fold(f64::NEG_INFINITY, f64::max),
        }
    }

    /// Returns whether every seed's number is within the tolerance.
    pub fn within(&self) -> bool {
        let mut samples = self.samples.iter();
        samples.all(|sample| self.claim.allows(sample.measured))
    }

    /// The verdict on the claim.
    pub fn verdict(&self) -> Verdict {
        match (self.claim.scored, self.within()) {
            (false, _) => Verdict::Reported,
            (true, true) => Verdict::Met,
            (true, false) => Verdict::Missed,
        }
    }
}

impl Verdict {
    /// The verdict as a word.
    pub fn word(self) -> &'static str {
        match self {
            Verdict::Met => "met",
            Verdict::Missed => "missed",
            Verdict::Reported => "reported",
        }
    }
}

/// Summarizes the verdicts in one line.
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

/// A reason why claims are missed or only reported.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Reason {
    /// The verdict: missed or reported.
    pub verdict: Verdict,
    /// The claims to which the reason applies.
    pub ids: Vec<&'static str>,
    /// The reason.
    pub text: &'static str,
}

/// Lists the reasons why claims are missed or only reported, each reason once.
pub fn reasons(findings: &[Finding]) -> Vec<Reason> {
    let mut reasons: Vec<Reason> = Vec::new();
    for finding in findings {
        let verdict = finding.verdict();
        let text = match (verdict, finding.claim.reason.as_str()) {
            (Verdict::Met, _) => continue,
            (_, "") => "the reason is not known",
            (_, known) => known,
        };
        let same = |reason: &&mut Reason| reason.verdict == verdict && reason.text == text;
        match reasons.iter_mut().find(same) {
            Some(reason) => reason.ids.push(&finding.claim.id),
            None => reasons.push(Reason {
                verdict,
                ids: vec![&finding.claim.id],
                text,
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
            self.text
        )
    }
}

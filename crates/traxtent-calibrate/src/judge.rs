//! The agreement of a profile with a part of a trace.

use traxtent_sim::agreement::{ClassAgreement, ReplayedRequest, class_agreement};
use traxtent_units::Rng;
use traxtent_units::stats::{demerit, noise_floor};

use crate::fit::Fit;
use crate::trace::Replayed;

/// The seed of the samples that estimate the noise.
const NOISE_SEED: u64 = 1;

/// The agreement of a profile with a part of a trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Judgement {
    /// The number of measured requests.
    pub requests: usize,
    /// The root mean square of the horizontal distance between the modelled and the measured
    /// distribution of response times, in milliseconds.
    pub demerit_ms: f64,
    /// The demerit that a perfect model would stay below in 19 cases of 20, in milliseconds; `None`
    /// if there are too few requests to estimate it.
    pub noise_p95_ms: Option<f64>,
    /// The number of reads.
    pub reads: usize,
    /// The number of reads that only the model or only the drive served from its buffer. A read
    /// counts as served from the drive's buffer if it took less than 0.5 ms longer than a hit. The
    /// time of a hit is found in the measured times of the part that was fitted. The model's time
    /// decides too if only the first sectors of a read were in the model's buffer.
    pub disagreements: usize,
    /// The means and demerits of classes of requests.
    pub classes: Vec<ClassAgreement>,
}

impl Judgement {
    pub(crate) fn of(fit: &Fit, requests: &[Replayed]) -> Judgement {
        let mut simulated: Vec<f64> = requests.iter().map(|one| one.simulated_ms).collect();
        let mut measured: Vec<f64> = requests.iter().map(|one| one.measured_ms).collect();
        let noise = noise_floor(&measured, &mut Rng::new(NOISE_SEED));
        let reads = requests.iter().filter(|one| one.is_read);
        let reads: Vec<Replayed> = reads.copied().collect();
        let replayed: Vec<ReplayedRequest> = requests.iter().map(|one| (*one).into()).collect();
        Judgement {
            requests: requests.len(),
            demerit_ms: demerit(&mut simulated, &mut measured).unwrap_or(0.0),
            noise_p95_ms: noise.map(|noise| noise.p95),
            reads: reads.len(),
            disagreements: reads.iter().filter(|one| !fit.agrees_by_time(one)).count(),
            classes: class_agreement(&replayed),
        }
    }

    /// The share of the reads on which the model and the drive disagree.
    pub fn disagreement(&self) -> f64 {
        self.disagreements as f64 / self.reads.max(1) as f64
    }

    /// Whether its disagreements exceed those of another judgement of the same part by more than
    /// two standard deviations of their difference.
    pub(crate) fn disagrees_more_than(&self, other: &Judgement) -> bool {
        let deviation = ((self.disagreements + other.disagreements) as f64).sqrt();
        self.disagreements as f64 > other.disagreements as f64 + 2.0 * deviation
    }
}

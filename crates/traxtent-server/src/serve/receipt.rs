//! The fidelity receipt: how closely a run followed the model.
//!
//! The *lateness* of a request is the time between its completion in the model and the instant at
//! which its thread continues with the response. The client also sees the delays of the network,
//! the kernel and the client itself, which a server cannot measure.

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use traxtent_model::disk::{Command, FaultEvent};
use traxtent_model::profile::Profile;
use traxtent_units::Span;
use traxtent_units::stats::Quantiles;

use super::clock::{Clock, cpus};
use super::load::{Load, MachineLoad};
use super::paced::{Delivered, FAULTS_KEPT};

/// The receipt, format 1. Times are in simulated milliseconds, lateness in real microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// Version of this format.
    pub receipt: u32,
    /// Version of the program.
    pub version: String,
    /// The drive as it was named.
    pub drive: String,
    /// SHA-256 of the profile as `Profile::to_toml` writes it.
    pub profile_sha256: String,
    /// The seed of random faults.
    pub seed: u64,
    /// The speed of simulated time.
    pub speed: f64,
    /// The simulated time that passed.
    pub simulated_ms: f64,
    /// Requests that were completed.
    pub requests: u64,
    /// Reads among these.
    pub reads: u64,
    /// Writes among these, including those of zeros.
    pub writes: u64,
    /// Flushes among these.
    pub flushes: u64,
    /// Requests that failed.
    pub errors: u64,
    /// The faults that have happened, of the scenario and of `traxtent fault`, with their simulated
    /// time; only the last thousand.
    pub faults: Vec<String>,
    /// The lateness of responses, in real time.
    pub lateness_us: Percentiles,
    /// How much before their arrival the model saw requests, in real time. This is the transport
    /// time as measured at the start.
    #[serde(default)]
    pub transport_us: Percentiles,
    /// The share of requests whose lateness exceeds 1 % of their response time in the model.
    pub share_late_1_percent: f64,
    /// The response times in the model.
    pub modelled_ms: Percentiles,
    /// The response times as delivered.
    pub delivered_ms: Percentiles,
    /// The state of the machine during the run.
    pub machine: MachineLoad,
    /// Whether the delivered times are accurate enough to represent the model's.
    pub verdict: ReceiptVerdict,
    /// The reasons for any other verdict than trustworthy.
    pub reasons: Vec<String>,
    /// The criteria of the verdict.
    pub bounds: String,
}

/// Percentiles by the nearest rank; all 0 if there are no values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Percentiles {
    /// The median.
    pub p50: f64,
    /// The 99th percentile.
    pub p99: f64,
    /// The 99.9th percentile.
    pub p99_9: f64,
    /// The maximum.
    pub max: f64,
}

/// Whether the delivered times are accurate enough to represent the model's.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum ReceiptVerdict {
    /// They are.
    Trustworthy,
    /// They are not.
    NotTrustworthy,
    /// No request was completed, or the drive takes no time.
    NothingToJudge,
}

/// The bounds of a trustworthy run.
const P50_SHARE: f64 = 0.01;
const P99_SHARE: f64 = 0.02;
const LATE_P50_US: f64 = 50.0;
const LATE_P99_US: f64 = 1000.0;
/// The response time in milliseconds below which a drive counts as taking no time. Lateness cannot
/// be judged as a share of it.
const JUDGED_MS: f64 = 0.001;
/// The bounds as text.
const BOUNDS: &str = "delivered p50 within 1 % and p99 within 2 % of the model's; lateness p50 at most 50 us and p99 at most 1 ms";
/// The share of processor time used by others above which a late run's receipt mentions it.
const OTHERS_SHARE: f64 = 0.5;
const STOLEN_SHARE: f64 = 0.01;

/// The subject of a receipt.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) drive: &'a str,
    pub(super) sha256: &'a str,
    pub(super) seed: u64,
}

/// The statistics of a receipt, accumulated during the run. They take constant memory, however long
/// the run.
#[derive(Debug, Default)]
pub(super) struct ReceiptStatistics {
    reads: u64,
    writes: u64,
    flushes: u64,
    errors: u64,
    faults: VecDeque<String>,
    late: u64,
    /// In simulated time.
    lateness: Quantiles,
    transport: Quantiles,
    modelled: Quantiles,
    delivered: Quantiles,
}

impl ReceiptStatistics {
    /// Counts a completed request.
    pub(super) fn add(&mut self, delivered: &Delivered) {
        let completion = &delivered.completion;
        match completion.command {
            Command::Read { .. } => self.reads += 1,
            Command::Write { .. } | Command::WriteZeroes { .. } => self.writes += 1,
            Command::Flush => self.flushes += 1,
            // A trim takes no time in the model.
            Command::Trim { .. } => return,
        }
        let lateness = delivered
            .delivered_at
            .saturating_since(completion.completed);
        let modelled = completion.completed.since(delivered.arrival.at);
        if u128::from(lateness.0) * 100 > u128::from(modelled.0) {
            self.late += 1;
        }
        self.lateness.push(lateness);
        if let Some(dated_back) = delivered.transport_subtracted {
            self.transport.push(dated_back);
        }
        self.modelled.push(modelled);
        self.delivered.push(modelled + lateness);
    }

    /// Counts a failed request.
    pub(super) fn add_error(&mut self) {
        self.errors += 1;
    }

    /// Records a fault.
    pub(super) fn add_event(&mut self, event: &FaultEvent) {
        let what = match &event.outcome {
            Ok(None) => String::new(),
            Ok(Some(cut)) => format!(": {cut}"),
            Err(error) => format!(": {error}"),
        };
        if self.faults.len() == FAULTS_KEPT {
            self.faults.pop_front();
        }
        let at = event.at.as_ms();
        self.faults
            .push_back(format!("{at:.3} ms: {}{what}", event.fault));
    }

    /// Returns the receipt so far.
    pub(super) fn receipt(&mut self, subject: &Subject<'_>, clock: &Clock, load: &Load) -> Receipt {
        let speed = clock.speed();
        let us = |span| as_us(speed.real(span));
        let ms = |span: Span| span.as_ms();
        let requests = self.lateness.count();
        let mut receipt = Receipt {
            receipt: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            drive: subject.drive.to_owned(),
            profile_sha256: subject.sha256.to_owned(),
            seed: subject.seed,
            speed: speed.to_string().parse().unwrap_or(1.0),
            simulated_ms: clock.now().as_ms(),
            requests,
            reads: self.reads,
            writes: self.writes,
            flushes: self.flushes,
            errors: self.errors,
            faults: self.faults.iter().cloned().collect(),
            lateness_us: Percentiles::of(&mut self.lateness, us),
            transport_us: Percentiles::of(&mut self.transport, us),
            share_late_1_percent: self.late as f64 / requests.max(1) as f64,
            modelled_ms: Percentiles::of(&mut self.modelled, ms),
            delivered_ms: Percentiles::of(&mut self.delivered, ms),
            machine: MachineLoad {
                cpus: cpus(),
                spin_us: as_us(clock.margin()),
                ..load.since_start()
            },
            verdict: ReceiptVerdict::NothingToJudge,
            reasons: Vec::new(),
            bounds: BOUNDS.to_owned(),
        };
        receipt.judge();
        receipt
    }
}

impl Receipt {
    fn judge(&mut self) {
        let nothing = if self.requests == 0 {
            Some("no request was completed")
        } else if self.modelled_ms.max < JUDGED_MS {
            Some("the drive takes no time")
        } else {
            None
        };
        if let Some(reason) = nothing {
            self.verdict = ReceiptVerdict::NothingToJudge;
            self.reasons = vec![reason.to_owned()];
            return;
        }
        let (modelled, delivered, late) = (self.modelled_ms, self.delivered_ms, self.lateness_us);
        // If a response takes no time in the model, only its lateness can be judged.
        let off = |delivered: f64, modelled: f64| {
            if modelled > 0.0 {
                (delivered - modelled) / modelled
            } else {
                0.0
            }
        };
        let mut reasons = Vec::new();
        for (name, delivered, modelled, bound) in [
            ("p50", delivered.p50, modelled.p50, P50_SHARE),
            ("p99", delivered.p99, modelled.p99, P99_SHARE),
        ] {
            if off(delivered, modelled) > bound {
                reasons.push(format!(
                    "delivered {name} is {:.2} % above the model's",
                    100.0 * off(delivered, modelled)
                ));
            }
        }
        for (name, late, bound) in [
            ("p50", late.p50, LATE_P50_US),
            ("p99", late.p99, LATE_P99_US),
        ] {
            if late > bound {
                reasons.push(format!("lateness {name} is {late:.0} us"));
            }
        }
        self.verdict = if reasons.is_empty() {
            ReceiptVerdict::Trustworthy
        } else {
            reasons.extend(self.machine.remarks());
            ReceiptVerdict::NotTrustworthy
        };
        self.reasons = reasons;
    }

    /// Returns the receipt as human-readable lines.
    pub fn lines(&self) -> Vec<String> {
        let row = |name: &str, p: &Percentiles, unit: &str| {
            format!(
                "{name:<11} p50 {:.3}, p99 {:.3}, p99.9 {:.3}, max {:.3} {unit}",
                p.p50, p.p99, p.p99_9, p.max
            )
        };
        let mut lines = vec![match (self.requests, self.errors) {
            (0, 0) => "requests    none".to_owned(),
            (0, errors) => format!("requests    none completed, {errors} failed"),
            (requests, errors) => format!(
                "requests    {requests} ({} reads, {} writes, {} flushes), {errors} failed",
                self.reads, self.writes, self.flushes
            ),
        }];
        if self.requests > 0 {
            lines.extend([
                row("modelled", &self.modelled_ms, "ms"),
                row("delivered", &self.delivered_ms, "ms"),
                row("lateness", &self.lateness_us, "us"),
                row("transport", &self.transport_us, "us, subtracted"),
                format!(
                    "late        {:.2} % of requests, by more than 1 % of their response time",
                    100.0 * self.share_late_1_percent
                ),
            ]);
        }
        if let Some(last) = self.faults.last() {
            lines.push(format!(
                "faults      {}; the last at {last}",
                self.faults.len()
            ));
        }
        let verdict = match self.verdict {
            ReceiptVerdict::Trustworthy => "trustworthy",
            ReceiptVerdict::NotTrustworthy => "not trustworthy",
            ReceiptVerdict::NothingToJudge => "nothing to judge",
        };
        lines.push(if self.reasons.is_empty() {
            format!("verdict     {verdict}")
        } else {
            format!("verdict     {verdict}: {}", self.reasons.join("; "))
        });
        if self.verdict != ReceiptVerdict::NothingToJudge {
            lines.push(format!("bounds      {}", self.bounds));
        }
        lines
    }
}

impl MachineLoad {
    fn remarks(self) -> impl Iterator<Item = String> {
        let one = (self.cpus == 1).then(|| "the machine has one processor".to_owned());
        let busy = (self.others_share > OTHERS_SHARE).then(|| {
            format!(
                "the machine was not idle: other processes used {:.0} % of its processors",
                100.0 * self.others_share
            )
        });
        let stolen = (self.stolen_share > STOLEN_SHARE).then(|| {
            format!(
                "the hypervisor took {:.1} % of the processor time",
                100.0 * self.stolen_share
            )
        });
        [one, busy, stolen].into_iter().flatten()
    }
}

impl Percentiles {
    fn of(times: &mut Quantiles, unit: impl Fn(Span) -> f64) -> Percentiles {
        let mut at = |share| times.at(share).map_or(0.0, &unit);
        Percentiles {
            p50: at(0.5),
            p99: at(0.99),
            p99_9: at(0.999),
            max: at(1.0),
        }
    }
}

/// Returns the hash of a profile, in hexadecimal digits.
pub(super) fn sha256(profile: &Profile) -> String {
    let digest = Sha256::digest(profile.to_toml().as_bytes());
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}

fn as_us(time: Duration) -> f64 {
    time.as_nanos() as f64 / 1000.0
}

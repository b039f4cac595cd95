//! The fidelity receipt: how closely a run followed the model.
//!
//! The *lateness* of a request is the time between its completion in the model and the instant at
//! which its thread continues with the response, plus the time for which the request could not
//! enter the model although it had arrived. The client also sees the delays of the network,
//! the kernel and the client itself, which a server cannot measure.

#[cfg(test)]
mod tests;

use std::collections::VecDeque;
use std::time::Duration;

use serde::{Deserialize, Serialize};
use sha2::{Digest, Sha256};
use traxtent_model::disk::{Command, Completion, Fault, FaultEvent};
use traxtent_model::drive::ServedBy;
use traxtent_model::profile::{Profile, Scheduler};
use traxtent_units::stats::{Moments, Quantiles};
use traxtent_units::{Count, SimTime, Span};

use super::clock::{Clock, Speed, cpus};
use super::file_times::FileTimes;
use super::load::{Load, MachineLoad};
use super::paced::{Delivered, FAULTS_KEPT, NO_WRITE_CACHE};
use crate::service::ServiceError;

/// The receipt, format 1. Times are in simulated milliseconds, lateness in real microseconds.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Receipt {
    /// The version of this format.
    pub receipt: u32,
    /// The version of the program.
    pub version: String,
    /// The drive's name as the user gave it.
    pub drive: String,
    /// The SHA-256 of the profile in the form of `Profile::to_toml`.
    pub profile_sha256: String,
    /// The seed for power cuts that specify none.
    pub seed: u64,
    /// The speed of simulated time.
    pub speed: f64,
    /// The simulated time that passed.
    pub simulated_ms: f64,
    /// The number of successful requests, without trims.
    pub requests: u64,
    /// The reads among these.
    pub reads: u64,
    /// The writes among these, including requests to write zeros.
    pub writes: u64,
    /// The writes among these with forced unit access (FUA), which must reach the media.
    #[serde(default)]
    pub fua_writes: u64,
    /// The flushes among these.
    pub flushes: u64,
    /// The number of failed requests. Of the other figures, only `storage_errors` counts them.
    pub errors: u64,
    /// The number of requests among these that failed because of the storage below the drive, such
    /// as a full disk that holds the data file.
    #[serde(default)]
    pub storage_errors: u64,
    /// The last error of that storage.
    #[serde(default)]
    pub storage_error: Option<String>,
    /// The last thousand faults that occurred, from the scenario and from `traxtent fault`, with
    /// their simulated times.
    pub faults: Vec<String>,
    /// The number of all faults that occurred.
    #[serde(default)]
    pub fault_count: u64,
    /// The last thousand faults that could not be injected, with their simulated times and the
    /// reasons. They are among `faults` too.
    #[serde(default)]
    pub failed_faults: Vec<String>,
    /// The faults of the scenario whose time has not come, with their simulated times.
    #[serde(default)]
    pub pending_faults: Vec<String>,
    /// The lateness of responses, in real time.
    pub lateness_us: Percentiles,
    /// The time before their arrival at which requests entered the model, in real time. It
    /// compensates for the transport time, which is measured at the start.
    #[serde(default)]
    pub transport_us: Percentiles,
    /// The share of requests whose lateness exceeds 1 % of their response time in the model.
    pub share_late_1_percent: f64,
    /// The response times in the model.
    pub modelled_ms: Percentiles,
    /// The response times as delivered.
    pub delivered_ms: Percentiles,
    /// The response times of each kind of request.
    #[serde(default)]
    pub kinds: KindsOfRequests,
    /// The state of the machine during the run.
    pub machine: MachineLoad,
    /// The time that the data file took; `None` if the data is in memory.
    #[serde(default)]
    pub data_file: Option<FileTimes>,
    /// Whether the delivered times are accurate enough to represent the model's.
    pub verdict: ReceiptVerdict,
    /// The reasons for a verdict other than trustworthy.
    pub reasons: Vec<String>,
    /// The criteria of the verdict.
    pub bounds: String,
    /// Starvation of requests, and deviations that the verdict accepts.
    #[serde(default)]
    pub notes: Vec<String>,
}

/// The response times of each kind of request. Writes include requests to write zeros.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindsOfRequests {
    /// The reads.
    pub reads: KindTimes,
    /// The writes.
    pub writes: KindTimes,
    /// The flushes.
    pub flushes: KindTimes,
}

/// The response times of one kind of request in milliseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct KindTimes {
    /// In the model.
    pub modelled_ms: MeanAndPercentiles,
    /// As delivered.
    pub delivered_ms: MeanAndPercentiles,
}

/// A mean and percentiles; all 0 if there are no values.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MeanAndPercentiles {
    /// The mean.
    pub mean: f64,
    /// The percentiles.
    #[serde(flatten)]
    pub percentiles: Percentiles,
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
    /// They are accurate enough.
    Trustworthy,
    /// They are not accurate enough.
    NotTrustworthy,
    /// No request was completed, or none took time in the model.
    NothingToJudge,
}

/// The share of the modelled median by which the delivered median may exceed it.
const P50_SHARE: f64 = 0.01;
/// The same for the 99th percentile.
const P99_SHARE: f64 = 0.02;
/// The bound on the median of the lateness, in microseconds of the drive's time.
const LATE_P50_US: f64 = 50.0;
/// The same for the 99th percentile.
const LATE_P99_US: f64 = 1000.0;
/// The deviation in simulated milliseconds that is accepted at any response time. It is the
/// lateness that half of the responses may have. One percent of a response from the buffer would be
/// a microsecond, which no host can deliver.
const ACCEPTED_MS: f64 = 0.05;
/// The response time in milliseconds below which a request counts as taking no time.
const JUDGED_MS: f64 = 0.001;
/// A kind of request is rare if it has a lower share of the requests than this, and fewer requests
/// than [`RARE_COUNT`].
const RARE_SHARE: f64 = 0.01;
/// The smallest number of requests whose 99th percentile is not simply the slowest one.
const RARE_COUNT: u64 = 100;
/// The bounds as text.
const BOUNDS: &str = "for each kind of request, delivered p50 within 1 % (and p99 within 2 % if the media serve it) or 50 us of the model's; for a kind with less than 1 % of the requests and fewer than 100, p50 within 1 % or 1 ms; for a kind that takes no time in the model, its excess at most 2 % of the time of all requests; lateness p50 (of the requests that take time in the model) at most 50 us and p99 at most 1 ms of the drive's time";
/// The most important bounds.
const BOUNDS_IN_SHORT: &str = "p50 within 1 % or 50 us of the model's, p99 within 2 % or 50 us, lateness p50 50 us, p99 1 ms of the drive's time; `bounds` in JSON has all";
/// The wait for other requests above which a receipt mentions starvation.
const STARVED: Span = Span(1_000_000_000_000);
/// The share of processor time used by others above which a late run's receipt mentions it.
const OTHERS_SHARE: f64 = 0.5;
/// The same for processor time taken by the hypervisor.
const STOLEN_SHARE: f64 = 0.01;

/// The subject of a receipt.
#[derive(Debug)]
pub(super) struct Subject<'a> {
    pub(super) drive: &'a str,
    pub(super) sha256: &'a str,
    pub(super) seed: u64,
    pub(super) scheduler: Scheduler,
    pub(super) has_write_back: bool,
    pub(super) file: Option<FileTimes>,
}

/// The kinds of requests. The response times of a kind have the same magnitude. If a program writes
/// and flushes in turn, the median of all its requests would lie between those of the two kinds.
#[derive(Clone, Copy, Debug)]
enum Kind {
    ReadFromBuffer,
    ReadFromMedia,
    WriteToBuffer,
    WriteToMedia,
    Flush,
}

impl Kind {
    /// All kinds, in the order of their numbers.
    const ALL: [Kind; 5] = [
        Kind::ReadFromBuffer,
        Kind::ReadFromMedia,
        Kind::WriteToBuffer,
        Kind::WriteToMedia,
        Kind::Flush,
    ];

    /// Returns the kind of a request; `None` for a trim, which takes no time in the model.
    fn of(completion: &Completion) -> Option<Kind> {
        let uses_media = matches!(completion.served, Some(ServedBy::Media | ServedBy::Both));
        match (completion.command, uses_media) {
            (Command::Read { .. }, false) => Some(Kind::ReadFromBuffer),
            (Command::Read { .. }, true) => Some(Kind::ReadFromMedia),
            (Command::Write { .. } | Command::WriteZeroes { .. }, false) => {
                Some(Kind::WriteToBuffer)
            }
            (Command::Write { .. } | Command::WriteZeroes { .. }, true) => Some(Kind::WriteToMedia),
            (Command::Flush, _) => Some(Kind::Flush),
            (Command::Trim { .. }, _) => None,
        }
    }

    /// Returns the name in receipts.
    fn name(self) -> &'static str {
        match self {
            Kind::ReadFromBuffer => "reads from the buffer",
            Kind::ReadFromMedia => "reads from the media",
            Kind::WriteToBuffer => "writes to the buffer",
            Kind::WriteToMedia => "writes to the media",
            Kind::Flush => "flushes",
        }
    }

    /// Returns the operation. A receipt has a mean for each operation, not for each kind.
    fn operation(self) -> Operation {
        match self {
            Kind::ReadFromBuffer | Kind::ReadFromMedia => Operation::Read,
            Kind::WriteToBuffer | Kind::WriteToMedia => Operation::Write,
            Kind::Flush => Operation::Flush,
        }
    }

    /// Returns whether the media's time dominates. Only then is the 99th percentile judged.
    fn is_dominated_by_media(self) -> bool {
        !matches!(self, Kind::ReadFromBuffer | Kind::WriteToBuffer)
    }
}

/// The operations whose means a receipt states.
#[derive(Clone, Copy, Debug)]
enum Operation {
    Read,
    Write,
    Flush,
}

impl Operation {
    const COUNT: usize = 3;
}

/// The response times of one operation.
#[derive(Debug, Default)]
struct OperationTimes {
    modelled_ms: Moments,
    delivered_ms: Moments,
    times: ResponseTimes,
}

impl OperationTimes {
    fn count(&self) -> u64 {
        self.modelled_ms.count()
    }

    fn add(&mut self, modelled: Span, delivered: Span) {
        self.modelled_ms.push(modelled.as_ms());
        self.delivered_ms.push(delivered.as_ms());
        self.times.add(modelled, delivered);
    }

    fn times(&mut self) -> KindTimes {
        let of = |moments: &Moments, times: &mut Quantiles| MeanAndPercentiles {
            mean: moments.mean(),
            percentiles: Percentiles::of(times, Span::as_ms),
        };
        KindTimes {
            modelled_ms: of(&self.modelled_ms, &mut self.times.modelled),
            delivered_ms: of(&self.delivered_ms, &mut self.times.delivered),
        }
    }
}

/// Response times in the model and as delivered.
#[derive(Debug, Default)]
struct ResponseTimes {
    modelled: Quantiles,
    delivered: Quantiles,
}

impl ResponseTimes {
    fn add(&mut self, modelled: Span, delivered: Span) {
        self.modelled.push(modelled);
        self.delivered.push(delivered);
    }
}

/// The statistics of a receipt, accumulated during the run. Their memory does not grow with the
/// run.
#[derive(Debug, Default)]
pub(super) struct ReceiptStatistics {
    operations: [OperationTimes; Operation::COUNT],
    fua_writes: u64,
    errors: u64,
    storage_errors: u64,
    storage_error: Option<String>,
    faults: VecDeque<String>,
    fault_count: u64,
    failed_faults: VecDeque<String>,
    /// Whether a fault concerned the write cache.
    had_write_cache_fault: bool,
    /// The number of requests later than 1 % of their response time in the model.
    late: u64,
    /// In simulated time.
    lateness: Quantiles,
    /// The lateness of the requests that take time in the model.
    timed_lateness: Quantiles,
    /// The sum of the lateness, in simulated milliseconds.
    lateness_sum_ms: f64,
    /// The part of the lateness of reads that the data file explains, in real microseconds.
    reads_late_us: f64,
    transport: Quantiles,
    /// The response times of all requests.
    all: ResponseTimes,
    /// The response times by kind.
    kinds: [ResponseTimes; Kind::ALL.len()],
    starved: u64,
    longest_wait: Span,
}

impl ReceiptStatistics {
    /// Counts a completed request, unless it is a trim.
    pub(super) fn add(&mut self, delivered: &Delivered, speed: Speed) {
        let completion = &delivered.completion;
        let Some(kind) = Kind::of(completion) else {
            return;
        };
        if let Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } = completion.command {
            self.fua_writes += u64::from(fua);
        }
        let wait = completion.breakdown.queue;
        self.starved += u64::from(wait > STARVED);
        self.longest_wait = self.longest_wait.max(wait);
        let lateness = delivered
            .delivered_at
            .saturating_since(completion.completed)
            + delivered.held_up;
        let modelled = completion.completed.since(delivered.arrival.at);
        if u128::from(lateness.0) * 100 > u128::from(modelled.0) {
            self.late += 1;
        }
        self.lateness.push(lateness);
        if modelled.as_ms() >= JUDGED_MS {
            self.timed_lateness.push(lateness);
        }
        self.lateness_sum_ms += lateness.as_ms();
        self.reads_late_us += as_us(delivered.file_time.min(speed.real(lateness)));
        if let Some(subtracted) = delivered.transport_subtracted {
            self.transport.push(subtracted);
        }
        let delivered = modelled + lateness;
        self.operations[kind.operation() as usize].add(modelled, delivered);
        self.kinds[kind as usize].add(modelled, delivered);
        self.all.add(modelled, delivered);
    }

    /// Counts a failed request.
    pub(super) fn add_error(&mut self, error: &ServiceError) {
        self.errors += 1;
        if error.is_of_storage() {
            self.storage_errors += 1;
            self.storage_error = Some(error.to_string());
        }
    }

    /// Records a fault.
    pub(super) fn add_event(&mut self, event: &FaultEvent) {
        let what = match &event.outcome {
            Ok(None) => String::new(),
            Ok(Some(cut)) => format!(": {cut}"),
            Err(error) => format!(": {error}"),
        };
        self.had_write_cache_fault |= event.fault.concerns_write_cache();
        self.fault_count += 1;
        let fault = format!("{}{what}", timed(event.at, &event.fault));
        if event.outcome.is_err() {
            keep_last(&mut self.failed_faults, fault.clone());
        }
        keep_last(&mut self.faults, fault);
    }

    /// Returns the receipt so far.
    pub(super) fn receipt(&mut self, subject: &Subject<'_>, clock: &Clock, load: &Load) -> Receipt {
        let speed = clock.speed();
        let us = |span| as_us(speed.real(span));
        let ms = |span: Span| span.as_ms();
        let requests = self.lateness.count();
        let [reads, writes, flushes] = &mut self.operations;
        let mut receipt = Receipt {
            receipt: 1,
            version: env!("CARGO_PKG_VERSION").to_owned(),
            drive: subject.drive.to_owned(),
            profile_sha256: subject.sha256.to_owned(),
            seed: subject.seed,
            speed: speed.to_string().parse().unwrap_or(1.0),
            simulated_ms: clock.now().as_ms(),
            requests,
            reads: reads.count(),
            writes: writes.count(),
            fua_writes: self.fua_writes,
            flushes: flushes.count(),
            errors: self.errors,
            storage_errors: self.storage_errors,
            storage_error: self.storage_error.clone(),
            kinds: KindsOfRequests {
                reads: reads.times(),
                writes: writes.times(),
                flushes: flushes.times(),
            },
            faults: self.faults.iter().cloned().collect(),
            fault_count: self.fault_count,
            failed_faults: self.failed_faults.iter().cloned().collect(),
            pending_faults: Vec::new(),
            lateness_us: Percentiles::of(&mut self.lateness, us),
            transport_us: Percentiles::of(&mut self.transport, us),
            share_late_1_percent: self.late as f64 / requests.max(1) as f64,
            modelled_ms: Percentiles::of(&mut self.all.modelled, ms),
            delivered_ms: Percentiles::of(&mut self.all.delivered, ms),
            machine: MachineLoad {
                cpus: cpus(),
                spin_us: as_us(clock.margin()),
                ..load.since_start()
            },
            data_file: subject
                .file
                .map(|times| self.with_lateness_share(times, speed)),
            verdict: ReceiptVerdict::NothingToJudge,
            reasons: Vec::new(),
            bounds: BOUNDS.to_owned(),
            notes: self.starvation(subject.scheduler).into_iter().collect(),
        };
        if self.had_write_cache_fault && !subject.has_write_back {
            receipt.notes.push(NO_WRITE_CACHE.to_owned());
        }
        let (reasons, notes) = self.deviations();
        receipt.notes.extend(notes);
        let timed_p50_us = self.timed_lateness.at(0.5).map_or(0.0, us);
        receipt.judge(timed_p50_us, reasons);
        receipt
    }

    /// Returns `times` with the share of the lateness that the data file accounts for. Writes and
    /// fdatasync always follow a completion in the model; reads may overlap with a wait.
    fn with_lateness_share(&self, times: FileTimes, speed: Speed) -> FileTimes {
        let file_us = times.writes.total_us + times.syncs.total_us + self.reads_late_us;
        let late_us = as_us(speed.real(Span::from_ms(self.lateness_sum_ms)));
        FileTimes {
            lateness_share: (file_us / late_us.max(f64::MIN_POSITIVE)).min(1.0),
            ..times
        }
    }

    /// Returns the deviations from the model's response times that make a run untrustworthy, and
    /// notes on deviations that the verdict accepts because the kind of request is rare, or takes
    /// no time in the model and adds little to that of all.
    fn deviations(&mut self) -> (Vec<String>, Vec<String>) {
        let (mut reasons, mut notes) = (Vec::new(), Vec::new());
        let requests = self.all.modelled.count();
        let rare_below = RARE_SHARE * requests as f64;
        // A rare kind lies in the last percent of all requests, for which the lateness has no
        // bound. Its median may therefore be as late as the 99th percentile of all.
        let accepted_if_rare = LATE_P99_US / 1000.0;
        // A flush takes no time if nothing is cached. Its delivered time is that of the path to the
        // server, which no machine can avoid, so it is judged by its effect on the whole.
        let accepted_if_immediate = P99_SHARE * self.modelled_sum_ms();
        for (kind, times) in Kind::ALL.into_iter().zip(&mut self.kinds) {
            let count = times.modelled.count();
            if count == 0 {
                continue;
            }
            let is_rare = count < RARE_COUNT && (count as f64) < rare_below;
            let modelled = Percentiles::of(&mut times.modelled, Span::as_ms);
            let delivered = Percentiles::of(&mut times.delivered, Span::as_ms);
            let mut compare = |name: &str, delivered: f64, modelled: f64, share: f64| {
                let excess = delivered - modelled;
                if excess <= ACCEPTED_MS.max(share * modelled) {
                    return;
                }
                let excess = if modelled < JUDGED_MS {
                    format!("{:.0} us", 1000.0 * excess)
                } else {
                    // Rounded up, so that an excess never reads like the bound itself.
                    format!("{:.2} %", (1e4 * excess / modelled).ceil() / 100.0)
                };
                let deviation = format!(
                    "delivered {name} of {} is {excess} above the model's",
                    kind.name()
                );
                let added = (delivered - modelled) * count as f64;
                if modelled < JUDGED_MS && added <= accepted_if_immediate {
                    notes.push(format!(
                        "{deviation}; the verdict accepts it, because they take no time in the model, and add at most 2 % to the time of all requests"
                    ));
                } else if !is_rare && name == "p99" && count < RARE_COUNT {
                    reasons.push(format!(
                        "{deviation} (the slowest of only {count}; of {RARE_COUNT} or more, one may be late)"
                    ));
                } else if !is_rare {
                    reasons.push(deviation);
                } else if delivered - modelled > accepted_if_rare {
                    reasons.push(format!("{deviation} ({count} of {requests} requests)"));
                } else {
                    notes.push(format!(
                        "{deviation}; the verdict accepts up to 1 ms, because these are only {count} of {requests} requests"
                    ));
                }
            };
            compare("p50", delivered.p50, modelled.p50, P50_SHARE);
            if kind.is_dominated_by_media() && !is_rare {
                compare("p99", delivered.p99, modelled.p99, P99_SHARE);
            }
        }
        (reasons, notes)
    }

    /// The sum of all response times in the model, in milliseconds.
    fn modelled_sum_ms(&self) -> f64 {
        let sum = |times: &OperationTimes| times.modelled_ms.mean() * times.count() as f64;
        self.operations.iter().map(sum).sum()
    }

    /// Returns a note if requests have starved in the drive's queue. After a fault there is no
    /// note, because faults delay requests too.
    fn starvation(&self, scheduler: Scheduler) -> Option<String> {
        let name = match scheduler {
            Scheduler::Sptf => "sptf",
            Scheduler::Sstf => "sstf",
            _ => return None,
        };
        (self.starved > 0 && self.faults.is_empty()).then(|| {
            format!(
                "requests that waited more than 1 s for others: {}, the longest {:.1} s; \
                 queue.scheduler = {name} serves the nearest request first, regardless of the others' age; use aged-sptf to prevent this",
                self.starved,
                self.longest_wait.as_ms() / 1000.0
            )
        })
    }
}

impl Receipt {
    /// Sets the verdict. `timed_p50_us` is the median of the lateness of the requests that take
    /// time in the model, and `reasons` are the deviations that make the run untrustworthy.
    fn judge(&mut self, timed_p50_us: f64, mut reasons: Vec<String>) {
        let nothing = if self.requests == 0 {
            Some("no request was completed")
        } else if self.modelled_ms.max < JUDGED_MS {
            Some("no request took time in the model")
        } else {
            None
        };
        if let Some(reason) = nothing {
            self.verdict = ReceiptVerdict::NothingToJudge;
            self.reasons = vec![reason.to_owned()];
            return;
        }
        let late = self.lateness_us;
        for (name, late, bound) in [
            // Other requests are judged by their effect on the whole, see `deviations`.
            ("p50", timed_p50_us, LATE_P50_US),
            ("p99", late.p99, LATE_P99_US),
        ] {
            let late = late * self.speed;
            if late > bound {
                reasons.push(format!(
                    "lateness {name} is {late:.1} us, more than {bound:.0} us of the drive's time"
                ));
            }
        }
        self.verdict = if reasons.is_empty() {
            ReceiptVerdict::Trustworthy
        } else {
            let file = self.data_file.and_then(FileTimes::remark);
            reasons.extend(file.into_iter().chain(self.machine.remarks()));
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
                "requests    {requests} ({}, {}{}, {}), {errors} failed",
                Count(self.reads, "read"),
                Count(self.writes, "write"),
                match self.fua_writes {
                    0 => String::new(),
                    some => format!(" ({some} with FUA)"),
                },
                match self.flushes {
                    1 => "1 flush".to_owned(),
                    flushes => format!("{flushes} flushes"),
                }
            ),
        }];
        if self.requests > 0 {
            lines.extend([
                row("modelled", &self.modelled_ms, "ms"),
                row("delivered", &self.delivered_ms, "ms"),
                row("lateness", &self.lateness_us, "us of real time"),
                row(
                    "transport",
                    &self.transport_us,
                    "us of real time, subtracted",
                ),
                format!(
                    "late        {:.2} % of requests, by more than 1 % of their response time",
                    100.0 * self.share_late_1_percent
                ),
            ]);
            let kinds = &self.kinds;
            lines.extend(
                [
                    ("reads", self.reads, kinds.reads),
                    ("writes", self.writes, kinds.writes),
                    ("flushes", self.flushes, kinds.flushes),
                ]
                .into_iter()
                .filter(|(_, count, _)| *count > 0)
                .map(|(name, _, times)| times.line(name)),
            );
        }
        if let Some(error) = &self.storage_error {
            let failed = Count(self.storage_errors, "request");
            lines.push(format!(
                "storage     {failed} failed; the last error: {error}"
            ));
        }
        if let Some(last) = self.faults.last() {
            lines.push(format!(
                "faults      {}; the last at {last}",
                self.fault_count
            ));
        }
        if let Some(last) = self.failed_faults.last() {
            let failed = Count(self.failed_faults.len(), "fault");
            lines.push(format!("faults      {failed} failed; the last at {last}"));
        }
        if let Some(first) = self.pending_faults.first() {
            lines.push(format!(
                "faults      {} did not occur, because the run ended first; the earliest at {first}",
                Count(self.pending_faults.len(), "scheduled fault")
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
        if self.verdict == ReceiptVerdict::NotTrustworthy {
            lines.push(format!("bounds      {BOUNDS_IN_SHORT}"));
        }
        lines.extend(self.notes.iter().map(|note| format!("notes       {note}")));
        lines
    }
}

/// Adds a fault. Only the last ones are kept.
fn keep_last(faults: &mut VecDeque<String>, fault: String) {
    if faults.len() == FAULTS_KEPT {
        faults.pop_front();
    }
    faults.push_back(fault);
}

/// Returns a fault with its time.
pub(super) fn timed(at: SimTime, fault: &Fault) -> String {
    format!("{:.3} ms: {fault}", at.as_ms())
}

impl KindTimes {
    /// Returns the line of a receipt for the kind of request called `name`.
    fn line(&self, name: &str) -> String {
        let figures = |MeanAndPercentiles { mean, percentiles }| {
            let Percentiles { p99, max, .. } = percentiles;
            format!("mean {mean:.3}, p99 {p99:.3}, max {max:.3} ms")
        };
        let (delivered, modelled) = (figures(self.delivered_ms), figures(self.modelled_ms));
        format!("{name:<11} {delivered}; in the model {modelled}")
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

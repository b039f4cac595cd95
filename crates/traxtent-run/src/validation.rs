//! The comparison of simulated response times with measured ones.

use std::collections::btree_map::Entry;
use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::ops::RangeInclusive;
use std::path::{Path, PathBuf};

use parking_lot::Mutex;
use serde::Serialize;
use traxtent_model::drive::ServedBy;
use traxtent_sim::agreement::{
    ClassAgreement, HitAgreement, ReplayedRequest, SizeAgreement, TimeAgreement, class_agreement,
    hit_agreement,
};
use traxtent_sim::simulate;
use traxtent_units::request::Op;
use traxtent_units::stats::{demerit, demerit_binned, noise_floor};
use traxtent_units::{Count, Rng, Sectors, Span};

use crate::error::{Result, RunError};
use crate::observer::Observer;
use crate::run::{RequestCounter, TracePlan, simulation_error};
use crate::target::Machine;

/// The result for one trace. Its fields are the keys of `traxtent validate --json`.
#[derive(Clone, Debug, Serialize)]
pub struct Verdict {
    /// The name of the trace; see [`TracePair::name`].
    pub trace: String,
    /// The number of requests that were compared.
    pub requests: u64,
    /// The demerit: the root mean square of the horizontal distance between the distributions of
    /// simulated and measured times.
    pub rms_ms: f64,
    /// The demerit computed from histograms, as in DiskSim's `rms`.
    pub rms_binned_ms: f64,
    /// The demerit divided by the measured mean.
    pub rms_share: f64,
    /// The mean of the simulated response times.
    pub mean_ms: f64,
    /// The mean of the measured response times.
    pub measured_mean_ms: f64,
    /// The demerit that a perfect model would stay below in 19 cases of 20; `None` for 100 requests
    /// or fewer, which are too few to estimate it.
    pub noise_p95_ms: Option<f64>,
    /// The median of the demerits of perfect models; `None` as above.
    pub noise_median_ms: Option<f64>,
    /// The agreement on reads from the buffer; `None` if it cannot be determined.
    pub hits: Option<HitsVerdict>,
    /// The agreement for each class of requests, such as reads that the model serves from the
    /// buffer.
    pub classes: Vec<ClassVerdict>,
}

/// [`HitAgreement`] with the keys of its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct HitsVerdict {
    /// The number of reads.
    pub reads: u64,
    /// The number of reads that the model and the drive both served from the buffer.
    pub both_hit: u64,
    /// The number of reads that only the model served from the buffer.
    pub model_only: u64,
    /// The number of reads that only the drive served from the buffer.
    pub drive_only: u64,
    /// The largest part of `drive_only` that is expected by chance: reads from the media for which
    /// the sector happened to be near the head.
    pub by_chance_max: f64,
    /// The share of all reads on which the model and the drive differ.
    pub disagreement: f64,
}

/// [`ClassAgreement`] with the keys of its JSON.
#[derive(Clone, Debug, Serialize)]
pub struct ClassVerdict {
    /// The name of the class.
    pub name: &'static str,
    /// The times of all its requests.
    #[serde(flatten)]
    pub all: TimesVerdict,
    /// The times of the requests of each range of sizes that occurs.
    pub sizes: Vec<SizeVerdict>,
}

/// The times of the requests of one class whose sizes are in a range.
#[derive(Clone, Debug, Serialize)]
pub struct SizeVerdict {
    /// The smallest size of the range, in sectors.
    pub sectors_min: u32,
    /// The largest size of the range, in sectors.
    pub sectors_max: u32,
    /// The times.
    #[serde(flatten)]
    pub times: TimesVerdict,
}

/// [`TimeAgreement`] with the keys of its JSON.
#[derive(Clone, Copy, Debug, Serialize)]
pub struct TimesVerdict {
    /// The number of requests.
    pub requests: u64,
    /// The mean of the simulated response times.
    pub mean_ms: f64,
    /// The mean of the measured response times.
    pub measured_mean_ms: f64,
    /// Half the width of the 95 % interval of the difference of the means; `None` if there are too
    /// few requests.
    pub difference_half_width_ms: Option<f64>,
    /// The demerit.
    pub rms_ms: f64,
}

impl From<HitAgreement> for HitsVerdict {
    fn from(hits: HitAgreement) -> HitsVerdict {
        HitsVerdict {
            reads: hits.reads,
            both_hit: hits.both_hit,
            model_only: hits.model_only,
            drive_only: hits.drive_only,
            by_chance_max: hits.by_chance_max,
            disagreement: hits.disagreement(),
        }
    }
}

impl From<ClassAgreement> for ClassVerdict {
    fn from(class: ClassAgreement) -> ClassVerdict {
        let size = |size: &SizeAgreement| SizeVerdict {
            sectors_min: size.sectors.start,
            sectors_max: size.sectors.end - 1,
            times: size.times.into(),
        };
        ClassVerdict {
            name: class.name,
            all: class.all.into(),
            sizes: class.sizes.iter().map(size).collect(),
        }
    }
}

impl From<TimeAgreement> for TimesVerdict {
    fn from(times: TimeAgreement) -> TimesVerdict {
        TimesVerdict {
            requests: times.requests,
            mean_ms: times.mean_ms,
            measured_mean_ms: times.measured_mean_ms,
            difference_half_width_ms: times.difference_half_width_ms,
            rms_ms: times.rms_ms,
        }
    }
}

/// A verdict with the requests that it is about.
#[derive(Clone, Debug)]
pub struct Comparison {
    /// The verdict.
    pub verdict: Verdict,
    /// The requests in order of completion.
    pub requests: Vec<ReplayedRequest>,
    /// The simulated response times in milliseconds, in ascending order.
    pub simulated_ms: Vec<f64>,
    /// The measured response times in milliseconds, in ascending order.
    pub measured_ms: Vec<f64>,
}

/// The seed of the samples that estimate the noise.
const NOISE_SEED: u64 = 1;

/// A trace and the drive to replay it on.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TracePair {
    /// The file name of the trace, without the extensions `.gz`, `.zst`, `.trace`, `.parv` and
    /// `.diskspecs`.
    pub name: String,
    /// The path of the trace.
    pub trace: PathBuf,
    /// The target: the DiskSim parameters of the same name, or a drive for all traces.
    pub target: String,
    /// Whether the trace was named, and not found in a directory.
    pub is_named: bool,
}

/// The traces that some paths name, and the paths that cannot be used.
#[derive(Clone, Debug, Default)]
pub struct FoundTraces {
    /// The traces, in the order of the paths and of names within a directory.
    pub pairs: Vec<TracePair>,
    /// The names of the paths that cannot be used, with the reasons.
    pub failures: Vec<(String, RunError)>,
}

/// Finds the traces to replay. Each path is a trace, DiskSim's parameters, or a directory of both.
/// `drive` is a target for all traces; without it, `NAME.trace` needs a `NAME.parv`.
pub fn find_traces(paths: &[PathBuf], drive: Option<&str>, observer: &dyn Observer) -> FoundTraces {
    let search = TraceSearch { drive, observer };
    let mut found = FoundTraces::default();
    for path in paths {
        let mut pairs = Vec::new();
        if let Err(error) = search.add(path, &mut pairs) {
            found.failures.push((stem(path), error));
        }
        for pair in pairs {
            if found.pairs.iter().any(|other| other.trace == pair.trace) {
                let why = "is named twice; name each trace once";
                let error = RunError::at(pair.trace.display(), why);
                found.failures.push((pair.name, error));
            } else {
                found.pairs.push(pair);
            }
        }
    }
    found
}

struct TraceSearch<'a> {
    drive: Option<&'a str>,
    observer: &'a dyn Observer,
}

impl TraceSearch<'_> {
    /// Adds the trace that a path names, or those in a directory.
    fn add(&self, path: &Path, pairs: &mut Vec<TracePair>) -> Result<()> {
        let meta = fs::metadata(path).map_err(|error| RunError::file(path, &error))?;
        if meta.is_dir() {
            return self.in_folder(path, pairs);
        }
        let name = stem(path);
        let (trace, parameters) = match path.extension().and_then(|ending| ending.to_str()) {
            Some("parv" | "diskspecs") => (trace_beside(path), path.to_owned()),
            _ => (path.to_owned(), path.with_file_name(format!("{name}.parv"))),
        };
        if self.drive.is_none() && path.extension().is_some_and(|ending| ending == "toml") {
            let why = "is a profile, not a trace; name the trace, and the profile with --drive";
            return Err(RunError::at(path.display(), why));
        }
        if self.drive.is_none() && !parameters.exists() {
            let ending = path.extension().and_then(|ending| ending.to_str());
            let why = match ending {
                Some("seek") => {
                    "is a seek curve of DiskSim, not a trace; name the trace".to_owned()
                }
                Some("model") => "is a layout of DiskSim, not a trace; name the trace".to_owned(),
                _ => format!(
                    "there is no {}; name a drive with --drive",
                    parameters.display()
                ),
            };
            return Err(RunError::at(path.display(), why));
        }
        pairs.push(TracePair {
            is_named: true,
            ..self.pair(name, trace, &parameters)
        });
        Ok(())
    }

    fn in_folder(&self, folder: &Path, pairs: &mut Vec<TracePair>) -> Result<()> {
        let fail = |error: std::io::Error| RunError::file(folder, &error);
        let mut traces: BTreeMap<String, PathBuf> = BTreeMap::new();
        let mut parameters = BTreeSet::new();
        let entries = fs::read_dir(folder).map_err(fail)?;
        let paths = entries.map(|entry| Ok(entry.map_err(fail)?.path()));
        let mut paths = paths.collect::<Result<Vec<PathBuf>>>()?;
        // Of a trace that is there several times, the uncompressed file comes first.
        paths.sort();
        for path in paths {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            let plain = file.trim_end_matches(".gz").trim_end_matches(".zst");
            if let Some(name) = plain.strip_suffix(".trace") {
                match traces.entry(name.to_owned()) {
                    Entry::Vacant(place) => {
                        place.insert(path);
                    }
                    Entry::Occupied(first) => self.observer.note(&format!(
                        "{}: omitted, because {} has the same name",
                        path.display(),
                        first.get().display()
                    )),
                }
            } else if let Some(name) = file.strip_suffix(".parv") {
                parameters.insert(name.to_owned());
            }
        }
        for (name, trace) in &traces {
            if self.drive.is_some() || parameters.contains(name) {
                let parameters = folder.join(format!("{name}.parv"));
                pairs.push(self.pair(name.clone(), trace.clone(), &parameters));
            } else {
                self.observer.note(&format!(
                    "{}: omitted, because there is no {name}.parv",
                    trace.display()
                ));
            }
        }
        let alone: Vec<&str> = parameters
            .iter()
            .filter(|name| !traces.contains_key(*name))
            .map(String::as_str)
            .collect();
        if !alone.is_empty() && self.drive.is_none() {
            self.observer.note(&format!(
                "{}: parameters without a trace: {}",
                folder.display(),
                alone.join(", ")
            ));
        }
        Ok(())
    }

    fn pair(&self, name: String, trace: PathBuf, parameters: &Path) -> TracePair {
        let parameters = || format!("disksim:{}", parameters.display());
        TracePair {
            name,
            trace,
            target: self.drive.map_or_else(parameters, str::to_owned),
            is_named: false,
        }
    }
}

/// Returns the path of the trace with the name of a parameter file. It may be compressed.
fn trace_beside(parameters: &Path) -> PathBuf {
    let plain = parameters.with_extension("trace");
    let compressed = ["trace.gz", "trace.zst"].map(|ending| parameters.with_extension(ending));
    let found = compressed.into_iter().find(|path| path.exists());
    found.filter(|_| !plain.exists()).unwrap_or(plain)
}

/// Returns the name of a trace; see [`TracePair::name`].
fn stem(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".gz", ".zst", ".trace", ".parv", ".diskspecs"];
    let name = endings.iter().fold(&*file, |name, ending| {
        name.strip_suffix(ending).unwrap_or(name)
    });
    name.to_owned()
}

/// Replays a trace on its drive, in which the figures of `set` are changed, and compares the times.
/// If a trace of a directory has no measured times, passes a note to the observer and returns
/// `None`. Warnings about the drive are then omitted.
///
/// # Errors
/// Returns an error if the drive, a figure or the trace is invalid or cannot be read, if a trace
/// that was named has no measured times, or if the observer stops the replay.
pub fn compare(
    pair: &TracePair,
    plan: &TracePlan,
    set: &[(String, String)],
    observer: &dyn Observer,
) -> Result<Option<Comparison>> {
    let held = HeldWarnings::default();
    let mut machine = Machine::load(&pair.target, &held)?;
    let result = machine
        .set_all(set)
        .and_then(|()| compare_on(&machine, pair, plan, observer));
    if !matches!(result, Ok(None)) {
        let warnings = held.0.into_inner();
        warnings.iter().for_each(|line| observer.warn(line));
    }
    result
}

/// Warnings about a drive that may turn out not to be used.
#[derive(Default)]
struct HeldWarnings(Mutex<Vec<String>>);

impl Observer for HeldWarnings {
    fn warn(&self, line: &str) {
        self.0.lock().push(line.to_owned());
    }
}

/// Replays a trace like [`compare`], but on this machine instead of the trace's own drive.
///
/// # Errors
/// See [`compare`].
pub fn compare_on(
    machine: &Machine,
    pair: &TracePair,
    plan: &TracePlan,
    observer: &dyn Observer,
) -> Result<Option<Comparison>> {
    let trace = pair.trace.display();
    let unmeasured = match plan.device {
        Some(device) => format!("has no measured times of device {device}"),
        None => "has no measured times".to_owned(),
    };
    match replay(pair, machine, plan, observer)? {
        Some(replayed) => {
            let comparison = judge(pair.name.clone(), replayed);
            if let Some(relation) = unit_suspicion(&comparison.verdict) {
                let unit = match plan.columns {
                    Some(_) => "--units",
                    None => "the unit of the trace's times",
                };
                observer.warn(&format!("{trace}: {relation}; check {unit}"));
            }
            Ok(Some(comparison))
        }
        None if pair.is_named => Err(RunError::at(trace, unmeasured)),
        None => {
            observer.note(&format!("{trace}: omitted, because it {unmeasured}"));
            Ok(None)
        }
    }
}

/// The factors between the simulated and the measured mean that suggest a wrong unit. The usual
/// units differ by 1000. The bounds are about half a decade away from it, since the model and the
/// drive may differ as well.
const UNIT_FACTORS: RangeInclusive<f64> = 300.0..=3000.0;

/// Describes the relation of the means if the unit of the measured times may be wrong.
fn unit_suspicion(verdict: &Verdict) -> Option<String> {
    let (simulated, measured) = (verdict.mean_ms, verdict.measured_mean_ms);
    let (longer, shorter, factor) = match measured > simulated {
        true => ("measured", "simulated", measured / simulated),
        false => ("simulated", "measured", simulated / measured),
    };
    UNIT_FACTORS.contains(&factor).then(|| {
        format!("the mean of the {longer} times is {factor:.0} times that of the {shorter} ones")
    })
}

/// The replay of a trace.
struct Replayed {
    requests: Vec<ReplayedRequest>,
    revolution: Option<Span>,
}

/// Replays a trace. Returns `None` if there are no measured times to compare.
fn replay(
    pair: &TracePair,
    machine: &Machine,
    plan: &TracePlan,
    observer: &dyn Observer,
) -> Result<Option<Replayed>> {
    let Some(plan) = plan.for_comparison(&pair.trace, machine, observer)? else {
        return Ok(None);
    };
    let mut source = plan.open(&pair.trace, machine)?;
    let mut requests = Vec::new();
    // Flushes are not compared, because they belong to no class.
    let (mut flushes, mut unmeasured) = (0, 0);
    let mut counter = RequestCounter::new(observer);
    let mut arms = vec![None; machine.drives.len()];
    simulate(&mut machine.host()?, &mut source, |outcome| {
        let request = &outcome.completion.request;
        let device = outcome.arrival.device as usize;
        let seek_cylinders = match outcome.completion.served {
            _ if request.op == Op::Flush => None,
            ServedBy::Buffer => None,
            ServedBy::Media | ServedBy::Both => arms.get_mut(device).and_then(|arm| {
                let geometry = &machine.drives[device].geometry;
                let to = geometry.locate(request.lbn)?.cylinder.0;
                let last = request.end() - Sectors(1);
                let from = arm.replace(geometry.locate(last)?.cylinder.0);
                Some(to.abs_diff(from?))
            }),
        };
        match outcome.arrival.measured {
            _ if request.op == Op::Flush => flushes += 1,
            None => unmeasured += 1,
            Some(time) => requests.push(ReplayedRequest {
                is_read: request.op != Op::Write,
                sectors: request.sectors,
                served: outcome.completion.served,
                simulated_ms: outcome.response().as_ms(),
                rotation_ms: outcome.completion.breakdown.rotation.as_ms(),
                measured_ms: time.as_ms(),
                seek_cylinders,
            }),
        }
        counter.count_one()
    })
    .map_err(|error| simulation_error(&pair.trace, &error))?;
    if !counter.finish() {
        return Err(RunError::Stopped);
    }
    source.records().report(observer);
    for (count, which) in [
        (flushes, "that flush the cache"),
        (unmeasured, "without a measured time"),
    ] {
        if count > 0 && !requests.is_empty() {
            let count = Count(count, "request");
            let trace = pair.trace.display();
            observer.warn_of_omission(&format!(
                "{trace}: omitted {count} {which} from the comparison"
            ));
        }
    }
    Ok((!requests.is_empty()).then(|| Replayed {
        requests,
        revolution: machine.revolution(),
    }))
}

/// Compares the simulated times of a replay with the measured ones.
fn judge(trace: String, replayed: Replayed) -> Comparison {
    let requests = &replayed.requests;
    let mut simulated_ms: Vec<f64> = requests.iter().map(|one| one.simulated_ms).collect();
    let mut measured_ms: Vec<f64> = requests.iter().map(|one| one.measured_ms).collect();
    let noise = noise_floor(&measured_ms, &mut Rng::new(NOISE_SEED));
    let hits = hit_agreement(requests, replayed.revolution);
    let classes = class_agreement(requests).into_iter();
    let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
    let (mean_ms, measured_mean_ms) = (mean(&simulated_ms), mean(&measured_ms));
    let rms_binned_ms = demerit_binned(&simulated_ms, &measured_ms).unwrap_or(0.0);
    // `demerit` sorts both.
    let rms_ms = demerit(&mut simulated_ms, &mut measured_ms).unwrap_or(0.0);
    let verdict = Verdict {
        trace,
        requests: simulated_ms.len() as u64,
        rms_ms,
        rms_binned_ms,
        rms_share: rms_ms / measured_mean_ms,
        mean_ms,
        measured_mean_ms,
        noise_p95_ms: noise.map(|noise| noise.p95),
        noise_median_ms: noise.map(|noise| noise.median),
        hits: hits.map(HitsVerdict::from),
        classes: classes.map(ClassVerdict::from).collect(),
    };
    Comparison {
        verdict,
        requests: replayed.requests,
        simulated_ms,
        measured_ms,
    }
}

//! Blind probes of many random drives.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use parking_lot::Mutex;
use traxtent_model::geometry::Geometry;
use traxtent_probe::{
    Algorithm, Confirm, Found, ObservedTarget, ProbeError, Region, RequestCounts, Target, Verify,
    extract,
};
use traxtent_sim::Noise;
use traxtent_units::{Lbn, SimTime};

use crate::cpu_time;

use super::compare::{Differences, RemapTolerance, compare};
use super::{HardProperty, Layouts, RandomDrive};

/// The largest number of requests per track. A probe that exceeds it is assumed never to end.
const REQUESTS_PER_TRACK_MAX: u64 = 20_000;

/// The settings of a probe of random drives.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The kind of layouts that the drives have.
    pub layouts: Layouts,
    /// The algorithm that finds the tracks.
    pub algorithm: Algorithm,
    /// How much of the result is verified.
    pub verify: Verify,
    /// The noise in the measured times. Its seed is the drive's seed.
    pub noise: Option<Noise>,
}

impl Trial {
    /// Creates a trial without noise, on drives with [`Layouts::Any`].
    pub fn new(algorithm: Algorithm, verify: Verify) -> Trial {
        Trial {
            layouts: Layouts::Any,
            algorithm,
            verify,
            noise: None,
        }
    }

    /// Sets the kind of layouts.
    pub fn with_layouts(self, layouts: Layouts) -> Trial {
        Trial { layouts, ..self }
    }

    /// Adds noise to the measured times.
    pub fn with_noise(self, noise: Noise) -> Trial {
        Trial {
            noise: Some(noise),
            ..self
        }
    }
}

/// The result of a probe of a drive.
#[derive(Clone, Debug, Default)]
pub struct ProbeResult {
    /// The first LBN of each track found, and the first LBN after the last track.
    pub bounds: Vec<Lbn>,
    /// The number of tracks for each kind of confirmation.
    pub confirmed: BTreeMap<Confirm, u64>,
    /// The number of requests and translations.
    pub counts: RequestCounts,
    /// The time that passed on the drive.
    pub drive_time: SimTime,
    /// The processor time of the host.
    pub host_time: Duration,
    /// The reason why the probe ended early, if it did.
    pub failure: Option<String>,
    /// The LBNs reported as remapped, if the drive reports them.
    pub remapped: Option<Vec<Lbn>>,
    /// The number of boundaries reported as doubtful.
    pub doubtful: u64,
    /// Additional notes of the probe.
    pub notes: Vec<String>,
}

/// Probes a whole drive and collects the result. A panic counts as a failure.
///
/// `reached` receives the first LBN after each track.
pub fn probe(
    target: impl Target,
    algorithm: Algorithm,
    verify: Verify,
    mut reached: impl FnMut(Lbn),
) -> ProbeResult {
    let began = cpu_time();
    let mut target = ObservedTarget::new(target, RequestCounts::default());
    let region = Region::whole(target.identity().capacity);
    let mut findings = ProbeResult::default();
    let mut disorder = None;
    let mut sink = |found: Found| {
        let end = Lbn(found.first_lbn.0 + u64::from(found.sectors));
        let from = *findings.bounds.last().unwrap_or(&Lbn(0));
        if found.first_lbn != from || found.sectors == 0 {
            disorder = Some(format!("{found:?} after LBN {from}"));
            return ControlFlow::Break(());
        }
        if findings.bounds.is_empty() {
            findings.bounds.push(found.first_lbn);
        }
        findings.bounds.push(end);
        *findings.confirmed.entry(found.confirm).or_default() += 1;
        reached(end);
        ControlFlow::Continue(())
    };
    let whole = AssertUnwindSafe(|| extract(algorithm, &mut target, region, verify, &mut sink));
    let ended = catch_unwind(whole);
    findings.failure = match ended {
        Ok(Ok(extraction)) => {
            findings.doubtful = extraction.doubtful();
            findings.remapped = extraction.remapped_complete.then_some(extraction.remapped);
            findings.notes = extraction.notes;
            None
        }
        Ok(Err(ProbeError::Stopped)) => disorder,
        Ok(Err(error)) => Some(error.to_string()),
        Err(panic) => Some(panic_text(&*panic)),
    };
    findings.counts = target.observer;
    findings.drive_time = target.now();
    findings.host_time = cpu_time().saturating_sub(began);
    findings
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a message"))
}

/// A drive, and the result of a probe of it.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The drive's seed.
    pub seed: u64,
    /// The number of tracks of the drive.
    pub tracks: u64,
    /// The traps that the drive has.
    pub traps: Vec<HardProperty>,
    /// The result of the probe.
    pub findings: ProbeResult,
    /// The differences between the result and the drive.
    pub differences: Differences,
}

impl Outcome {
    /// Returns whether the probe did not fail, and found every boundary and nothing else.
    pub fn is_exact(&self) -> bool {
        self.findings.failure.is_none() && self.differences.is_exact()
    }

    /// Returns whether the result is wrong without a warning: no failure, and no doubtful
    /// boundaries.
    pub fn is_silently_wrong(&self) -> bool {
        !self.is_exact() && self.findings.failure.is_none() && self.findings.doubtful == 0
    }
}

impl fmt::Display for Outcome {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Differences {
            boundaries,
            missing,
            additional,
        } = &self.differences;
        let first = |list: &[Lbn]| {
            let some: Vec<String> = list.iter().take(4).map(ToString::to_string).collect();
            if list.len() > some.len() {
                some.join(", ") + ", …"
            } else {
                some.join(", ")
            }
        };
        write!(f, "seed {}: {boundaries} boundaries", self.seed)?;
        for (list, what) in [(missing, "missing"), (additional, "additional")] {
            if !list.is_empty() {
                write!(f, ", {} {what} ({})", list.len(), first(list))?;
            }
        }
        if let Some(failure) = &self.findings.failure {
            write!(f, ", ended early: {failure}")?;
        }
        write!(f, "; {:?}", self.traps)
    }
}

/// Compares the boundaries that an algorithm found on a drive with the drive's layout.
pub fn compare_with_layout(
    findings: &ProbeResult,
    geometry: &Geometry,
    algorithm: Algorithm,
) -> Differences {
    let bounds = findings.bounds.iter().copied();
    compare(bounds, geometry, RemapTolerance::of(algorithm))
}

/// Runs a trial on a drive.
pub fn run_trial(drive: &RandomDrive, trial: &Trial) -> Outcome {
    let tracks = drive.geometry.track_count();
    let mut target = drive.target_for(tracks * REQUESTS_PER_TRACK_MAX);
    if let Some(noise) = trial.noise {
        target = target.with_noise(noise, drive.seed);
    }
    if !trial.algorithm.translates() {
        target = target.without_translation();
    }
    let findings = probe(target, trial.algorithm, trial.verify, |_| ());
    Outcome {
        seed: drive.seed,
        tracks,
        traps: drive.traps.clone(),
        differences: compare_with_layout(&findings, &drive.geometry, trial.algorithm),
        findings,
    }
}

/// Runs a trial on the drives of all seeds on `threads` threads. Passes each outcome to `report`
/// once it is available, and returns all outcomes in the order of the seeds.
///
/// # Panics
/// Panics if `report` does.
pub fn run(
    seeds: Range<u64>,
    trial: &Trial,
    threads: usize,
    report: impl Fn(&Outcome) + Sync,
) -> Vec<Outcome> {
    let next = AtomicU64::new(seeds.start);
    let outcomes = Mutex::new(Vec::new());
    thread::scope(|scope| {
        for _ in 0..threads.max(1) {
            scope.spawn(|| {
                loop {
                    let seed = next.fetch_add(1, Ordering::Relaxed);
                    if !seeds.contains(&seed) {
                        break;
                    }
                    let outcome = run_trial(&trial.layouts.drive(seed), trial);
                    report(&outcome);
                    let mut outcomes = outcomes.lock();
                    outcomes.push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner();
    outcomes.sort_by_key(|outcome: &Outcome| outcome.seed);
    outcomes
}

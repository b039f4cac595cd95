//! Blind probes of many random drives.

use std::collections::BTreeMap;
use std::fmt;
use std::ops::{ControlFlow, Range};
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::thread;
use std::time::Duration;

use traxtent_core::geometry::Geometry;
use traxtent_core::probe::{
    Algorithm, Confirm, Counted, Counts, Found, ProbeError, Region, Target, Verify, extract,
};
use traxtent_core::units::{Lbn, SimTime};
use traxtent_exec::Noise;

use crate::cpu_time;

use super::compare::{AtMoved, Differences, compare};
use super::{Layouts, RandomDrive, Trap};

/// A probe may ask so much for each track before it counts as one that goes on for ever.
const REQUESTS_A_TRACK: u64 = 20_000;

/// What is tried on a drive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Trial {
    /// The kind of layouts that the drives have.
    pub layouts: Layouts,
    /// How tracks are found.
    pub algorithm: Algorithm,
    /// How much of it is verified.
    pub verify: Verify,
    /// How unsteady the times are; the drive's seed is that of its noise too.
    pub noise: Option<Noise>,
}

impl Trial {
    /// A trial on a steady clock.
    pub fn new(algorithm: Algorithm, verify: Verify) -> Trial {
        Trial {
            layouts: Layouts::Any,
            algorithm,
            verify,
            noise: None,
        }
    }

    /// The same on other drives.
    pub fn on(self, layouts: Layouts) -> Trial {
        Trial { layouts, ..self }
    }

    /// The same on an unsteady one.
    pub fn with_noise(self, noise: Noise) -> Trial {
        Trial {
            noise: Some(noise),
            ..self
        }
    }
}

/// What a probe of a drive came to.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    /// The beginning of each track found, and the LBN behind the last.
    pub bounds: Vec<Lbn>,
    /// How many of them are known in which way.
    pub confirmed: BTreeMap<Confirm, u64>,
    /// What was asked.
    pub counts: Counts,
    /// The drive's time.
    pub drive_time: SimTime,
    /// The host's processor time.
    pub host_time: Duration,
    /// Why it ended early, if it did.
    pub failure: Option<String>,
    /// LBNs said to be kept elsewhere, if the drive tells.
    pub moved: Option<Vec<Lbn>>,
    /// How many boundaries are said to be doubtful.
    pub doubtful: u64,
    /// What it says besides.
    pub notes: Vec<String>,
}

/// Probes a whole drive, and keeps what it says. A panic is a failure like others.
///
/// `reached` is told the LBN behind each track.
pub fn probe(
    target: impl Target,
    algorithm: Algorithm,
    verify: Verify,
    mut reached: impl FnMut(Lbn),
) -> Findings {
    let began = cpu_time();
    let mut target = Counted::new(target);
    let region = Region::whole(target.identity().capacity);
    let mut findings = Findings::default();
    let mut disorder = None;
    let mut sink = |found: Found| {
        let end = Lbn(found.first_lbn.0 + u64::from(found.sectors));
        let from = *findings.bounds.last().unwrap_or(&Lbn(0));
        if found.first_lbn != from || found.sectors == 0 {
            disorder = Some(format!("{found:?} behind LBN {from}"));
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
            findings.moved = extraction.moved_known.then_some(extraction.moved);
            findings.doubtful = extraction.doubtful;
            findings.notes = extraction.notes;
            None
        }
        Ok(Err(ProbeError::Stopped)) => disorder,
        Ok(Err(error)) => Some(error.to_string()),
        Err(panic) => Some(panic_text(&*panic)),
    };
    findings.counts = target.counts();
    findings.drive_time = target.now();
    findings.host_time = cpu_time().saturating_sub(began);
    findings
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> String {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    let text = text.or_else(|| panic.downcast_ref::<&str>().copied());
    format!("panicked: {}", text.unwrap_or("without a word"))
}

/// A drive, and what a probe of it came to.
#[derive(Clone, Debug)]
pub struct Outcome {
    /// The drive's seed.
    pub seed: u64,
    /// How many tracks it has.
    pub tracks: u64,
    /// What makes it hard.
    pub traps: Vec<Trap>,
    /// What was found.
    pub findings: Findings,
    /// How that differs from what is there.
    pub differences: Differences,
}

impl Outcome {
    /// Whether every boundary was found and nothing else.
    pub fn is_exact(&self) -> bool {
        self.findings.failure.is_none() && self.differences.is_exact()
    }

    /// Whether what was found is wrong and nothing says so: no failure, and no doubtful boundaries.
    pub fn misleads(&self) -> bool {
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

/// Compares what an algorithm found on a drive with its layout.
pub fn judge(findings: &Findings, geometry: &Geometry, algorithm: Algorithm) -> Differences {
    let bounds = findings.bounds.iter().copied();
    compare(bounds, geometry, AtMoved::of(algorithm))
}

/// Tries a drive.
pub fn attempt(drive: &RandomDrive, trial: &Trial) -> Outcome {
    let tracks = drive.geometry.track_count();
    let mut target = drive.target_for(tracks * REQUESTS_A_TRACK);
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
        differences: judge(&findings, &drive.geometry, trial.algorithm),
        findings,
    }
}

/// Tries the drives of all seeds on so many threads, tells each outcome as it is there, and returns
/// all by seed.
///
/// # Panics
/// If `tell` does.
pub fn run(
    seeds: Range<u64>,
    trial: &Trial,
    threads: usize,
    tell: impl Fn(&Outcome) + Sync,
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
                    let outcome = attempt(&trial.layouts.drive(seed), trial);
                    tell(&outcome);
                    let mut outcomes = outcomes.lock().expect("no thread panics here");
                    outcomes.push(outcome);
                }
            });
        }
    });
    let mut outcomes = outcomes.into_inner().expect("the threads have ended");
    outcomes.sort_by_key(|outcome: &Outcome| outcome.seed);
    outcomes
}

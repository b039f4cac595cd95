//! Runs experiments: one measurement for each seed and drive, several at the same time.

use std::path::PathBuf;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::thread;

use traxtent_lab::{Bench, Figure, LabError};

use crate::experiment::Experiment;
use crate::finding::Finding;
use crate::store::{Store, StoreError, Stored};

/// The settings of a run.
#[derive(Clone, Debug)]
pub struct RunPlan {
    /// The seeds.
    pub seeds: Seeds,
    /// Whether to run only a tenth of the requests, for an approximate result.
    pub quick: bool,
    /// Whether to draw figures too, with the first seed on the first drive.
    pub pictures: bool,
    /// The number of measurements that run at the same time.
    pub workers: usize,
    /// The store that results are loaded from and saved to.
    pub store: Option<Store>,
    /// The directory with the traces that come with DiskSim.
    pub traces: Option<PathBuf>,
    /// Profile parameters, by key, that replace those of the drives, to measure hypothetical
    /// drives. If there are any, results are neither loaded nor saved.
    pub changes: Vec<(String, String)>,
}

/// The seeds of a run.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Seeds {
    /// This number of seeds: an experiment's own and, if there are too few, the numbers after the
    /// largest. An experiment with only one seed keeps to that one.
    First(usize),
    /// Only this seed.
    Only(u64),
}

impl RunPlan {
    /// The number of measurements that the run makes, if all experiments can be run.
    pub fn measurements(&self, experiments: &[&'static Experiment]) -> usize {
        jobs(experiments, self).len()
    }
}

/// The results of a run.
#[derive(Clone, Debug)]
pub struct RunOutcome {
    /// The findings, in the order of the claims.
    pub findings: Vec<Finding>,
    /// The figures, in the order of the experiments.
    pub pictures: Vec<(&'static Experiment, Figure)>,
    /// The experiments that were not run because something that they need is missing, and why.
    pub skipped: Vec<Skipped>,
}

/// The reasons why a run ends early.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum RunError {
    /// A measurement cannot be made.
    #[error("{experiment} on {drive}, seed {seed}: {error}")]
    Lab {
        /// The experiment.
        experiment: &'static str,
        /// The drive.
        drive: &'static str,
        /// The seed.
        seed: u64,
        /// The cause.
        error: Box<LabError>,
    },
    /// The store cannot be used.
    #[error(transparent)]
    Store(#[from] StoreError),
}

/// Runs experiments. Calls `progress` after each measurement, from any thread.
///
/// # Errors
/// Returns an error if a measurement fails, or the store cannot be used.
///
/// # Panics
/// Panics if a measurement has a different number of values than its experiment's claims need.
pub fn run(
    experiments: &[&'static Experiment],
    plan: &RunPlan,
    progress: &(dyn Fn() + Sync),
) -> Result<RunOutcome, RunError> {
    let (skipped, experiments) = split_runnable(experiments, plan);
    let jobs = jobs(&experiments, plan);
    let mut results = run_all(&jobs, plan, progress)?.into_iter();
    let mut outcome = RunOutcome {
        findings: Vec::new(),
        pictures: Vec::new(),
        skipped,
    };
    for experiment in experiments {
        let mut by_seed = Vec::new();
        for seed in plan.seeds.of(experiment) {
            let of_drives = results.by_ref().take(experiment.drives.len());
            let numbers = of_drives.flat_map(|result| match result {
                Stored::Numbers(numbers) => numbers,
                Stored::Picture(_) => unreachable!("numbers come before the figure"),
            });
            by_seed.push((seed, numbers.collect()));
        }
        outcome.findings.extend(experiment.judge(&by_seed));
        if plan.pictures && experiment.figure.is_some() {
            let Some(Stored::Picture(figure)) = results.next() else {
                unreachable!("the figure comes last")
            };
            outcome.pictures.push((experiment, figure));
        }
    }
    Ok(outcome)
}

/// An experiment that cannot be run, and the reason.
pub type Skipped = (&'static Experiment, String);

/// Separates the experiments that cannot be run here from the others.
fn split_runnable(
    experiments: &[&'static Experiment],
    plan: &RunPlan,
) -> (Vec<Skipped>, Vec<&'static Experiment>) {
    let reason = |experiment: &Experiment| match experiment.measurement.missing {
        _ if experiment.traces && plan.traces.is_none() => Some(
            "needs the traces that come with DiskSim; give their directory with --traces"
                .to_owned(),
        ),
        Some(missing) => missing(),
        None => None,
    };
    let (mut skipped, mut runnable) = (Vec::new(), Vec::new());
    for experiment in experiments.iter().copied() {
        match reason(experiment) {
            Some(reason) => skipped.push((experiment, reason)),
            None => runnable.push(experiment),
        }
    }
    (skipped, runnable)
}

impl Seeds {
    /// The seeds for an experiment.
    pub fn of(self, experiment: &Experiment) -> Vec<u64> {
        let known = &experiment.seeds;
        match self {
            Seeds::Only(seed) => vec![seed],
            Seeds::First(_) if known.len() == 1 => known.clone(),
            Seeds::First(count) => {
                let next = known.iter().max().map_or(0, |max| max + 1);
                known
                    .iter()
                    .copied()
                    .chain(next..)
                    .take(count.max(1))
                    .collect()
            }
        }
    }
}

/// One measurement.
struct Job {
    experiment: &'static Experiment,
    drive: &'static str,
    seed: u64,
    picture: bool,
}

/// The measurements of each experiment, seed by seed and drive by drive, then its figure.
fn jobs(experiments: &[&'static Experiment], plan: &RunPlan) -> Vec<Job> {
    let mut jobs = Vec::new();
    for experiment in experiments.iter().copied() {
        let seeds = plan.seeds.of(experiment);
        let job = |drive: &'static String, seed, picture| Job {
            experiment,
            drive,
            seed,
            picture,
        };
        for &seed in &seeds {
            jobs.extend(
                experiment
                    .drives
                    .iter()
                    .map(|drive| job(drive, seed, false)),
            );
        }
        if plan.pictures && experiment.figure.is_some() {
            jobs.push(job(&experiment.drives[0], seeds[0], true));
        }
    }
    jobs
}

/// Runs jobs, several at the same time. Returns the results in the order of the jobs.
fn run_all(
    jobs: &[Job],
    plan: &RunPlan,
    progress: &(dyn Fn() + Sync),
) -> Result<Vec<Stored>, RunError> {
    let (next, failed) = (AtomicUsize::new(0), AtomicBool::new(false));
    let work = || -> Result<Vec<(usize, Stored)>, RunError> {
        let mut results = Vec::new();
        while !failed.load(Ordering::Relaxed) {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(job) = jobs.get(index) else { break };
            let result = job.load_or_run(plan);
            failed.fetch_or(result.is_err(), Ordering::Relaxed);
            results.push((index, result?));
            progress();
        }
        Ok(results)
    };
    let mut results = thread::scope(|scope| {
        let workers: Vec<_> = (0..plan.workers.max(1))
            .map(|_| scope.spawn(work))
            .collect();
        let mut results = Vec::new();
        for worker in workers {
            match worker.join() {
                Ok(done) => results.extend(done?),
                Err(panic) => std::panic::resume_unwind(panic),
            }
        }
        Ok::<_, RunError>(results)
    })?;
    results.sort_by_key(|(index, _)| *index);
    Ok(results.into_iter().map(|(_, result)| result).collect())
}

impl Job {
    fn load_or_run(&self, plan: &RunPlan) -> Result<Stored, RunError> {
        let store = plan.store.as_ref().filter(|_| plan.changes.is_empty());
        let Some(store) = store else {
            return self.run(plan);
        };
        let key = store.key(
            self.experiment,
            (self.drive, self.seed, plan.quick),
            self.picture,
        );
        if let Some(result) = store.load(&key)? {
            return Ok(result);
        }
        let result = self.run(plan)?;
        store.save(&key, &result)?;
        Ok(result)
    }

    fn run(&self, plan: &RunPlan) -> Result<Stored, RunError> {
        let measurement = self.experiment.measurement;
        let measure = || -> Result<Stored, LabError> {
            let bench = Bench::new(self.drive, self.seed)?
                .quick(plan.quick)
                .with_traces(plan.traces.clone())
                .with_recordings(plan.store.as_ref().map(Store::recordings))
                .with_parameters(&plan.changes)?;
            match measurement.draw {
                Some(draw) if self.picture => draw(&bench).map(Stored::Picture),
                _ => (measurement.measure)(&bench).map(Stored::Numbers),
            }
        };
        measure().map_err(|error| RunError::Lab {
            experiment: &self.experiment.number,
            drive: self.drive,
            seed: self.seed,
            error: Box::new(error),
        })
    }
}

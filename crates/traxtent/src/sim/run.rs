//! Simulation runs: one or several drives, one workload, one seed.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use traxtent_io::CompressedWriter;
use traxtent_model::profile::SectorSpec;
use traxtent_sim::{Host, Outcome, SimulateError, request_log, simulate};
use traxtent_workload::{
    Replay, ReplayPace, RequestSource, Synthetic, Synthio, TraceFormat, TraceOptions,
};

use super::summary::Summary;
use super::workload::{Trace, Workload, trace_failure};
use crate::failure::{Failure, Result, warn};
use crate::output::AtomicFile;
use crate::progress::Progress;
use crate::target::Machine;

/// One simulation.
pub(crate) struct SimulationRun {
    pub(crate) machine: Machine,
    pub(crate) workload: Workload,
    pub(crate) seed: u64,
    /// The number of requests to exclude.
    pub(crate) warmup: u64,
    pub(crate) trace: TracePlan,
}

/// The options for replaying a trace.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct TracePlan {
    pub(crate) format: Option<TraceFormat>,
    pub(crate) pace: Option<ReplayPace>,
    pub(crate) speed: Option<f64>,
    pub(crate) device: Option<u32>,
}

/// A request log that is being written.
pub(crate) struct Log {
    path: PathBuf,
    out: CompressedWriter<AtomicFile>,
}

impl Log {
    /// Begins a log.
    pub(crate) fn create(path: &Path) -> Result<Log> {
        let mut out = CompressedWriter::new(AtomicFile::create(path)?, path);
        request_log::write_head(&mut out).map_err(|error| Failure::file(path, &error))?;
        Ok(Log {
            path: path.to_owned(),
            out,
        })
    }
}

/// Runs one simulation, and writes one row per request.
pub(crate) fn logged(run: &SimulationRun, mut log: Log) -> Result<Summary> {
    let progress = Progress::new("requests", run.workload.count());
    let mut write_result: io::Result<()> = Ok(());
    let mut line = Vec::with_capacity(512);
    let summary = execute(run, &progress, |outcome| {
        line.clear();
        write_result =
            request_log::write_row(&mut line, outcome).and_then(|()| log.out.write_all(&line));
        write_result.is_ok()
    })?;
    write_result.map_err(|error| Failure::file(&log.path, &error))?;
    let finished = log.out.finish();
    finished
        .map_err(|error| Failure::file(&log.path, &error))?
        .finish()?;
    Ok(summary)
}

/// Runs simulations in parallel. Results are in the given order. The error returned is that of the
/// first run that failed.
pub(crate) fn all(runs: &[SimulationRun]) -> Result<Vec<Summary>> {
    let mut counts = runs.iter().map(|run| run.workload.count());
    let total = counts.try_fold(0, |sum: u64, count| Some(sum.saturating_add(count?)));
    let progress = Progress::new("requests", total);
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Summary>>>> =
        runs.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers.min(runs.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(run) = runs.get(index) else { break };
                    let result = execute(run, &progress, |_| true);
                    if result.is_err() {
                        next.store(runs.len(), Ordering::Relaxed);
                    }
                    *results[index].lock() = Some(result);
                }
            });
        }
    });
    // Runs after a failed one may not have begun.
    results.into_iter().map_while(Mutex::into_inner).collect()
}

/// Runs one simulation. `sink` receives each request that counts, and may end the run by returning
/// false.
fn execute(
    run: &SimulationRun,
    progress: &Progress,
    sink: impl FnMut(&Outcome) -> bool,
) -> Result<Summary> {
    let machine = &run.machine;
    let mut host = machine.host()?;
    match &run.workload {
        Workload::Drawn(spec) => {
            let drive = &machine.drives[0];
            let mut spec = spec.clone();
            spec.seed = run.seed;
            let bytes = drive.profile.sector.logical_bytes;
            let mut source =
                Synthetic::new(&spec, bytes, &*drive.geometry).map_err(Failure::input)?;
            simulate_source(run, &mut host, &mut source, progress, sink).map_err(
                |error| match error {
                    SimulateError::Overloaded { .. } => Failure::at(
                        "workload",
                        format!("{error}; use a longer arrive=, or outstanding= instead"),
                    ),
                    error => Failure::at("workload", error),
                },
            )
        }
        Workload::Synthio(spec) => {
            let at = |error: &dyn std::fmt::Display| Failure::at(&machine.target, error);
            let mut source = Synthio::new(spec, run.seed).map_err(|error| at(&error))?;
            simulate_source(run, &mut host, &mut source, progress, sink).map_err(|error| at(&error))
        }
        Workload::Trace(path) => {
            let mut source = run.trace.open(path, machine)?;
            let result = simulate_source(run, &mut host, &mut source, progress, sink);
            source.records().warnings().for_each(warn);
            result.map_err(|error| simulation_failure(path, &error))
        }
    }
}

impl TracePlan {
    /// Opens a trace for replay on a machine.
    pub(crate) fn open(&self, path: &Path, machine: &Machine) -> Result<Replay<Trace>> {
        let options = TraceOptions {
            sector_bytes: machine.drives[0].profile.sector.logical_bytes,
            check_order: !matches!(self.pace, Some(ReplayPace::Closed { .. })),
            ..TraceOptions::default()
        };
        let trace = Trace::open(path, self.format, options)?
            .placed(machine.system.clone())
            .only(self.device)
            .sole(machine.drives.len() == 1);
        let natural = ReplayPace::default_for(trace.format());
        let pace = match (self.pace.unwrap_or(natural), self.speed) {
            (pace, None) => pace,
            (ReplayPace::Recorded { .. }, Some(speed)) => ReplayPace::Recorded { speed },
            _ => {
                return Err(Failure::input(
                    "--speed applies only to recorded times; add --replay recorded",
                ));
            }
        };
        Ok(Replay::new(trace, pace))
    }
}

/// Runs a source to its end on its host.
fn simulate_source(
    run: &SimulationRun,
    host: &mut Host,
    source: &mut impl RequestSource,
    progress: &Progress,
    mut sink: impl FnMut(&Outcome) -> bool,
) -> Result<Summary, SimulateError> {
    let drives = &run.machine.drives;
    let sectors: Vec<SectorSpec> = drives.iter().map(|drive| drive.profile.sector).collect();
    let mut summary = Summary::after_warmup(run.warmup);
    let mut unreported = 0;
    simulate(host, source, |outcome| {
        unreported += 1;
        if unreported == Progress::STEP {
            progress.add(unreported);
            unreported = 0;
        }
        let sector = sectors[outcome.arrival.device as usize];
        !summary.add(outcome, sector) || sink(outcome)
    })?;
    progress.add(unreported);
    summary.drive_response_ms = host.drive_response_ms();
    Ok(summary)
}

/// Returns the error of a trace's simulation, preceded by the trace's path.
pub(crate) fn simulation_failure(path: &Path, error: &SimulateError) -> Failure {
    match error {
        SimulateError::Source(error) => trace_failure(path, error),
        SimulateError::Device { .. } => Failure::at(
            path.display(),
            format!("{error} (--drive adds one, --device selects one)"),
        ),
        SimulateError::Overloaded { .. } => Failure::at(
            path.display(),
            format!("{error}; replay with --speed below 1, or --replay closed:N"),
        ),
        _ => Failure::at(path.display(), error),
    }
}

//! Simulation runs: one or several drives, one workload, one seed.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use traxtent_disksim::ParamError;
use traxtent_model::profile::SectorSpec;
use traxtent_sim::{Host, Outcome, SimulateError, simulate};
use traxtent_units::SimTime;
use traxtent_workload::trace::{BlkparseEvent, ColumnSpec};
use traxtent_workload::{
    Replay, ReplayPace, RequestSource, Synthetic, Synthio, TraceFormat, TraceOptions,
};

use super::summary::Summary;
use super::sweep::Point;
use super::workload::{Trace, Workload, trace_failure};
use crate::failure::{Failure, Result, warn};
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

/// A row of the results: a drive with values for `--set`, simulated once with each seed.
pub(crate) struct Case {
    /// The name of the drive in `--drives`; `None` if there is only one.
    pub(crate) drive: Option<String>,
    /// The values of `--set`.
    pub(crate) set: Point,
    /// The runs, one for each seed.
    pub(crate) runs: Vec<SimulationRun>,
}

impl Case {
    /// Returns the names and values that distinguish this case from the others.
    pub(crate) fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let drive = self.drive.as_deref().map(|drive| ("drive", drive));
        let set = self.set.iter();
        drive
            .into_iter()
            .chain(set.map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// Returns a short name for a legend.
    pub(crate) fn name(&self) -> String {
        let short = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let drive = self.drive.iter().cloned();
        let set = self.set.iter();
        let set = set.map(|(key, value)| format!("{}={value}", short(key)));
        drive.chain(set).collect::<Vec<_>>().join(", ")
    }
}

/// A trace of which at most one request in this many arrived before the completion of another is
/// taken for one with a single outstanding request. The rest are requests of the system, such as
/// those of a journal.
const REQUESTS_PER_OVERLAP_MIN: u64 = 100;

/// The options for replaying a trace.
#[derive(Clone, Debug, Default)]
pub(crate) struct TracePlan {
    pub(crate) format: Option<TraceFormat>,
    /// The columns of a text file, instead of a format.
    pub(crate) columns: Option<ColumnSpec>,
    pub(crate) blkparse_event: BlkparseEvent,
    pub(crate) pace: Option<ReplayPace>,
    pub(crate) speed: Option<f64>,
    pub(crate) device: Option<u32>,
}

/// Returns all runs with their cases, in the order of the results.
pub(crate) fn pairs(cases: &[Case]) -> impl Iterator<Item = (&Case, &SimulationRun)> {
    cases
        .iter()
        .flat_map(|case| case.runs.iter().map(move |run| (case, run)))
}

/// Returns the number of requests of all runs, if it is known.
pub(crate) fn total(cases: &[Case]) -> Option<u64> {
    pairs(cases).try_fold(0, |sum: u64, (_, run)| {
        Some(sum.saturating_add(run.workload.count()?))
    })
}

/// Runs simulations in parallel. Results are in the given order. If runs fail, returns the error of
/// the first in this order.
pub(crate) fn all(cases: &[Case]) -> Result<Vec<Summary>> {
    let runs: Vec<(&Case, &SimulationRun)> = pairs(cases).collect();
    let progress = Progress::new("requests", total(cases));
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    let results: Vec<Mutex<Option<Result<Summary>>>> =
        runs.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers.min(runs.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some((case, run)) = runs.get(index) else {
                        break;
                    };
                    let result = execute(case, run, &progress, |_| true);
                    if result.is_err() {
                        next.store(runs.len(), Ordering::Relaxed);
                    }
                    *results[index].lock() = Some(result);
                }
            });
        }
    });
    // Runs after a failed one have possibly not begun.
    results.into_iter().map_while(Mutex::into_inner).collect()
}

/// Runs one simulation of a case. `sink` receives each request after the warm-up, and can end the
/// run by returning false. In a sweep over drives, an error names the drive.
pub(crate) fn execute(
    case: &Case,
    run: &SimulationRun,
    progress: &Progress,
    sink: impl FnMut(&Outcome) -> bool,
) -> Result<Summary> {
    simulate_run(run, progress, sink).map_err(|failure| match &case.drive {
        Some(drive) => failure.within(drive),
        None => failure,
    })
}

fn simulate_run(
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
            let system = machine.system.as_deref();
            let at = |placed: Option<ParamError>, error: &dyn std::fmt::Display| match placed {
                Some(placed) => Failure::input(placed),
                None => Failure::at(&machine.target, error),
            };
            let mut source = Synthio::new(spec, run.seed).map_err(|error| {
                at(
                    system.and_then(|system| system.synthio_error(&error)),
                    &error,
                )
            })?;
            simulate_source(run, &mut host, &mut source, progress, sink).map_err(|error| {
                let placed = system.and_then(|system| system.synthio_request_error(&error));
                at(placed, &error)
            })
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
            capacity_sectors: machine.drives[0].geometry.capacity().0,
            blkparse_event: self.blkparse_event,
            check_order: !matches!(self.pace, Some(ReplayPace::Closed { .. })),
        };
        let trace = match &self.columns {
            Some(columns) => Trace::open_columns(path, columns.clone(), options)?,
            None => Trace::open(path, self.format, options)?,
        };
        let trace = trace
            .placed(machine.system.clone())
            .only(self.device)
            .sole(machine.drives.len() == 1);
        let natural = match trace.records_pauses() {
            true => ReplayPace::SemiClosed,
            false => ReplayPace::Recorded { speed: 1.0 },
        };
        self.check_times(path, natural)?;
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

    /// Returns the plan for a comparison of simulated with measured times, or `None` if the trace
    /// has no measured times.
    ///
    /// Unless the pace is given, a trace is replayed semi-closed if it records pauses, or if its
    /// requests arrived one after the other: at recorded arrivals, a request that takes longer in
    /// the model than on the drive would delay the next one. Other traces are replayed at the
    /// recorded arrivals. The trace is read once to find out.
    pub(crate) fn for_comparison(
        &self,
        path: &Path,
        machine: &Machine,
    ) -> Result<Option<TracePlan>> {
        let (mut requests, mut measured, mut overlaps) = (0_u64, false, 0_u64);
        let mut latest_end = SimTime::ZERO;
        let trace = self.open(path, machine)?;
        if trace.records().records_pauses() && self.columns.is_none() {
            return Ok(Some(self.clone()));
        }
        for record in trace.into_records() {
            let record = record.map_err(|error| trace_failure(path, &error))?;
            measured |= record.measured.is_some();
            requests += 1;
            if let Some(arrival) = record.arrival {
                overlaps += u64::from(arrival < latest_end);
                let end = arrival
                    .0
                    .saturating_add(record.measured.unwrap_or_default().0);
                latest_end = latest_end.max(SimTime(end));
            }
        }
        let sequential = overlaps <= requests / REQUESTS_PER_OVERLAP_MIN;
        let pace = match self.pace {
            None if sequential && self.speed.is_none() => Some(ReplayPace::SemiClosed),
            pace => pace,
        };
        Ok(measured.then(|| TracePlan {
            pace,
            ..self.clone()
        }))
    }

    /// Refuses options that need arrival times if the trace records pauses instead.
    fn check_times(&self, path: &Path, natural: ReplayPace) -> Result<()> {
        let options = match (self.pace, self.speed) {
            (Some(ReplayPace::Recorded { .. }), Some(_)) => "--replay recorded and --speed",
            (Some(ReplayPace::Recorded { .. }), None) => "--replay recorded",
            (_, Some(_)) => "--speed",
            _ => return Ok(()),
        };
        if natural != ReplayPace::SemiClosed {
            return Ok(());
        }
        let why = format!("records pauses instead of arrival times; omit {options}");
        Err(Failure::at(path.display(), why))
    }
}

/// Simulates all requests of a source on a host.
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

/// Returns the failure of a trace's simulation, with the trace's path.
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

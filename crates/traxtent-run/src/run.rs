//! Simulation runs: one or several drives, one workload, one seed.

use std::path::Path;
use std::sync::atomic::{AtomicUsize, Ordering};

use parking_lot::Mutex;
use traxtent_disksim::ParamError;
use traxtent_model::drive::Drive;
use traxtent_model::profile::SectorSpec;
use traxtent_sim::{Host, Outcome, SimulateError, simulate};
use traxtent_units::{Count, SimTime};
use traxtent_workload::trace::{BlkparseEvent, ColumnSpec};
use traxtent_workload::{
    ArrivalModel, CapacityOnly, Replay, ReplayPace, RequestSource, Synthetic, Synthio,
    SynthioError, SynthioSpec, TraceError, TraceFormat, TraceOptions, TrackSource, WorkloadSpec,
};

use crate::error::{Result, RunError};
use crate::observer::{OBSERVED_REQUESTS, Observer};
use crate::overload::Counted;
use crate::summary::Summary;
use crate::sweep::Point;
use crate::target::Machine;
use crate::workload::{Trace, Workload, trace_error};

/// One simulation.
#[derive(Clone, Debug)]
pub struct SimulationRun {
    /// The drives.
    pub machine: Machine,
    /// The workload.
    pub workload: Workload,
    /// The seed of a synthetic workload.
    pub seed: u64,
    /// The number of requests to exclude from the summary. They are the first to complete.
    pub warmup: u64,
    /// The options for replaying a trace.
    pub trace: TracePlan,
}

/// A case of a sweep: a drive with values for `--set`, simulated once with each seed.
#[derive(Clone, Debug)]
pub struct Case {
    /// The name of the drive in `--drives`; `None` if there is only one.
    pub drive: Option<String>,
    /// The values of `--set`.
    pub set: Point,
    /// The runs, one for each seed.
    pub runs: Vec<SimulationRun>,
}

impl Case {
    /// Returns the names and values that distinguish this case from the others.
    pub fn labels(&self) -> impl Iterator<Item = (&str, &str)> {
        let drive = self.drive.as_deref().map(|drive| ("drive", drive));
        let set = self.set.iter();
        drive
            .into_iter()
            .chain(set.map(|(key, value)| (key.as_str(), value.as_str())))
    }

    /// Returns a short name for a legend.
    pub fn name(&self) -> String {
        self.name_without(&[])
    }

    /// Returns the name without the values of some keys, such as the one on the axis of a picture.
    pub fn name_without(&self, keys: &[&str]) -> String {
        let short = |key: &str| key.rsplit('.').next().unwrap_or_default().to_owned();
        let drive = self.drive.iter().cloned();
        let set = self
            .set
            .iter()
            .filter(|(key, _)| !keys.contains(&key.as_str()));
        let set = set.map(|(key, value)| format!("{}={value}", short(key)));
        drive.chain(set).collect::<Vec<_>>().join(", ")
    }
}

/// A trace counts as having one request outstanding at a time if at most one request in this many
/// arrived before an earlier one was complete. These few are assumed to be requests of the system,
/// such as those of a journal.
const REQUESTS_PER_OVERLAP_MIN: u64 = 100;

/// The options for replaying a trace.
#[derive(Clone, Debug, Default)]
pub struct TracePlan {
    /// The trace's format; `None` recognizes it.
    pub format: Option<TraceFormat>,
    /// The columns of a text file, instead of a format.
    pub columns: Option<ColumnSpec>,
    /// The event of blkparse output that counts as a request's arrival; `None` is dispatch.
    pub blkparse_event: Option<BlkparseEvent>,
    /// The rule for the times at which requests are issued. If it is `None`, the rule follows from
    /// what the trace records.
    pub pace: Option<ReplayPace>,
    /// The factor by which recorded arrivals are accelerated.
    pub speed: Option<f64>,
    /// The only device of the trace whose requests are replayed; `None` replays all.
    pub device: Option<u32>,
    /// Whether the user can add drives for further devices of the trace (`--drive`). The error for
    /// a trace of several devices then suggests it.
    pub can_add_drives: bool,
}

/// Returns all runs with their cases, in the order of the results.
pub fn runs_with_cases(cases: &[Case]) -> impl Iterator<Item = (&Case, &SimulationRun)> {
    cases
        .iter()
        .flat_map(|case| case.runs.iter().map(move |run| (case, run)))
}

/// Returns the number of requests of all runs, if it is known.
pub fn total_requests(cases: &[Case]) -> Option<u64> {
    runs_with_cases(cases).try_fold(0, |sum: u64, (_, run)| {
        Some(sum.saturating_add(run.workload.count()?))
    })
}

/// Runs simulations in parallel, with one thread per processor. Results are in the given order.
///
/// # Errors
/// If runs fail, returns the error of the first in this order.
pub fn run_all(cases: &[Case], observer: &dyn Observer) -> Result<Vec<Summary>> {
    let cases: Result<Vec<Vec<Summary>>> = run_each(cases, observer)?.into_iter().collect();
    Ok(cases?.into_iter().flatten().collect())
}

/// Runs simulations in parallel like [`run_all`]. Returns the summaries of each case's runs, or the
/// error of the first of them whose input is invalid, such as a trace that needs a larger drive.
/// The other cases are still simulated.
///
/// # Errors
/// Returns an error if a file cannot be used, or if the observer stops the runs.
pub fn run_each(cases: &[Case], observer: &dyn Observer) -> Result<Vec<Result<Vec<Summary>>>> {
    let runs: Vec<(usize, usize)> = cases
        .iter()
        .enumerate()
        .flat_map(|(case, of)| (0..of.runs.len()).map(move |run| (case, run)))
        .collect();
    let workers = std::thread::available_parallelism().map_or(1, usize::from);
    let next = AtomicUsize::new(0);
    // For each case, the first run that failed. Only later runs are skipped, so that the error does
    // not depend on the order in which threads run.
    let failed: Vec<AtomicUsize> = cases.iter().map(|_| AtomicUsize::new(usize::MAX)).collect();
    let results: Vec<Mutex<Option<Result<Summary>>>> =
        runs.iter().map(|_| Mutex::default()).collect();
    std::thread::scope(|scope| {
        for _ in 0..workers.min(runs.len()) {
            scope.spawn(|| {
                loop {
                    let index = next.fetch_add(1, Ordering::Relaxed);
                    let Some(&(case, run)) = runs.get(index) else {
                        break;
                    };
                    if failed[case].load(Ordering::Relaxed) < run {
                        continue;
                    }
                    let of = &cases[case];
                    let result = execute(of, &of.runs[run], observer, |_| true);
                    match &result {
                        Ok(_) => {}
                        Err(RunError::Input(_)) => {
                            failed[case].fetch_min(run, Ordering::Relaxed);
                        }
                        Err(_) => next.store(runs.len(), Ordering::Relaxed),
                    }
                    let result = result.map_err(|error| name_case(error, of, cases));
                    *results[index].lock() = Some(result);
                }
            });
        }
    });
    let mut results: Vec<Option<Result<Summary>>> =
        results.into_iter().map(Mutex::into_inner).collect();
    let is_fatal = |result: &Option<Result<Summary>>| match result {
        Some(Err(error)) => !matches!(error, RunError::Input(_)),
        Some(Ok(_)) | None => false,
    };
    if let Some(Err(error)) = results
        .iter()
        .position(is_fatal)
        .and_then(|at| results[at].take())
    {
        return Err(error);
    }
    // Runs after a failed one of the same case may not have begun.
    let mut results = results.into_iter();
    let of_case = |case: &Case| results.by_ref().take(case.runs.len()).flatten().collect();
    Ok(cases.iter().map(of_case).collect())
}

/// Prefixes an error of one of several cases without a drive, which [`execute`] would have named.
pub(crate) fn name_case(error: RunError, case: &Case, cases: &[Case]) -> RunError {
    match case.drive {
        None if cases.len() > 1 => error.within(case.name()),
        _ => error,
    }
}

/// Runs one simulation of a case. `sink` receives each request after the warm-up, and can end the
/// run by returning false. In a sweep over drives, an error in the input names the case.
///
/// # Errors
/// Returns an error if the machine's arrays, the workload or the trace are invalid, if the requests
/// must be supplied ([`Workload::Supplied`]), if the host refuses a request, if a file cannot be
/// read, or if the observer stops the run.
pub fn execute(
    case: &Case,
    run: &SimulationRun,
    observer: &dyn Observer,
    sink: impl FnMut(&Outcome) -> bool,
) -> Result<Summary> {
    let simulated = match run.machine.host() {
        Ok(mut host) => run.simulate(&mut host, observer, sink),
        Err(error) => Err(error),
    };
    simulated.map_err(|error| name_drive(error, case))
}

/// Prefixes an error of a case with a drive.
pub(crate) fn name_drive(error: RunError, case: &Case) -> RunError {
    match case.drive {
        Some(_) => error.within(case.name()),
        None => error,
    }
}

impl SimulationRun {
    /// Simulates the workload on a host: that of [`Machine::host`], or another one with the
    /// machine's drives. `sink` receives each request after the warm-up, and can end the run by
    /// returning false.
    ///
    /// # Errors
    /// Returns an error if the workload or the trace is invalid, if the requests must be supplied
    /// ([`Workload::Supplied`]), if the host refuses a request, if a file cannot be read, or if the
    /// observer stops the run.
    pub fn simulate(
        &self,
        host: &mut Host,
        observer: &dyn Observer,
        sink: impl FnMut(&Outcome) -> bool,
    ) -> Result<Summary> {
        let (summary, is_open) = match &self.workload {
            Workload::Drawn(spec) => (
                self.drawn(spec, host, observer, sink)?,
                matches!(spec.pace, ArrivalModel::Open { .. }),
            ),
            // Each process decides whether it waits. Those that do keep few requests outstanding.
            Workload::Synthio(spec) => (self.synthio(spec, host, observer, sink)?, true),
            Workload::Trace(path) => self.replayed(path, host, observer, sink)?,
            Workload::Supplied(description) => {
                return Err(RunError::at(
                    description,
                    "the requests must be supplied; call `simulate_source`",
                ));
            }
        };
        let summary = summary.ok_or(RunError::Stopped)?;
        if is_open {
            self.note_overload(&summary, observer);
        }
        Ok(summary)
    }

    fn drawn(
        &self,
        spec: &WorkloadSpec,
        host: &mut Host,
        observer: &dyn Observer,
        sink: impl FnMut(&Outcome) -> bool,
    ) -> Result<Option<Summary>> {
        let drive = &self.machine.drives[0];
        let mut spec = spec.clone();
        spec.seed = self.seed;
        let bytes = drive.profile.sector.logical_bytes;
        let array = host.capacity(0).filter(|_| host.has_arrays());
        let array = array.map(CapacityOnly);
        if array.is_some() && spec.needs_tracks() {
            return Err(RunError::at(
                "workload",
                "size=track, align=track and zone= apply to a drive, but the requests go to an array",
            ));
        }
        let tracks: &dyn TrackSource = match &array {
            Some(array) => array,
            None => &*drive.geometry,
        };
        let mut source = Synthetic::new(&spec, bytes, tracks).map_err(RunError::input)?;
        self.simulate_source(host, &mut source, observer, sink)
            .map_err(|error| match error {
                SimulateError::Overloaded { .. } => RunError::at(
                    "workload",
                    format!("{error}; use a longer arrive=, or outstanding= instead"),
                ),
                error => RunError::at("workload", error),
            })
    }

    fn synthio(
        &self,
        spec: &SynthioSpec,
        host: &mut Host,
        observer: &dyn Observer,
        sink: impl FnMut(&Outcome) -> bool,
    ) -> Result<Option<Summary>> {
        let system = self.machine.system.as_deref();
        let at = |placed: Option<ParamError>, error: &dyn std::fmt::Display| match placed {
            Some(placed) => RunError::input(placed),
            None => RunError::at(&self.machine.target, error),
        };
        let of_generator = |error: &SynthioError| {
            let placed = system.and_then(|system| system.synthio_error(error));
            at(placed, error)
        };
        let mut source = Synthio::new(spec, self.seed).map_err(|error| of_generator(&error))?;
        if let Some(error) = self.capacity_error(spec, host) {
            return Err(of_generator(&error));
        }
        let summary = self
            .simulate_source(host, &mut source, observer, sink)
            .map_err(|error| {
                let placed = system.and_then(|system| system.synthio_request_error(&error));
                at(placed, &error)
            })?;
        if summary.is_some() {
            self.note_end(spec, &source, observer);
        }
        Ok(summary)
    }

    /// Returns the error for the first generator that assumes more sectors than the smallest of its
    /// devices has, whether or not it would draw a request beyond that device's end.
    fn capacity_error(&self, spec: &SynthioSpec, host: &Host) -> Option<SynthioError> {
        let names = self.machine.device_names();
        spec.generators
            .iter()
            .enumerate()
            .find_map(|(number, one)| {
                let devices = one.devices.iter();
                let sized = devices.filter_map(|&device| Some((host.capacity(device)?, device)));
                let (capacity, smallest) = sized.min()?;
                (one.device_sectors > capacity.0).then(|| SynthioError::Generator {
                    generator: number,
                    name: "storage capacity per device",
                    value: one.device_sectors.to_string(),
                    expected: format!(
                        "expected at most {}, the sectors of {}",
                        capacity.0, names[smallest as usize]
                    ),
                })
            })
    }

    /// Notes why a synthetic workload has issued fewer requests than it states.
    fn note_end(&self, spec: &SynthioSpec, source: &Synthio, observer: &dyn Observer) {
        if source.ended_by_time() {
            observer.note(&format!(
                "{}: the synthetic workload ended at its time limit of {} s (Maximum time of trace \
                 generated), before its {}",
                self.machine.target,
                spec.time.as_ms() / 1e3,
                Count(spec.count, "request")
            ));
        }
        let (idle, unissued) = (source.idle_generators(), source.unissued());
        if !source.ended_by_time() && unissued > idle as u64 {
            observer.note(&format!(
                "{}: {unissued} of the {} were drawn but not issued: as in DiskSim, the workload \
                 ends when all are drawn and a generator would draw another",
                self.machine.target,
                Count(spec.count, "request")
            ));
        }
        if idle > 0 {
            observer.note(&format!(
                "{}: {idle} of {} never issued a request: the others kept the processors, as in \
                 DiskSim",
                self.machine.target,
                Count(spec.generators.len(), "generator")
            ));
        }
    }

    /// Simulates a trace, and returns whether its arrivals do not wait for completions.
    fn replayed(
        &self,
        path: &Path,
        host: &mut Host,
        observer: &dyn Observer,
        sink: impl FnMut(&Outcome) -> bool,
    ) -> Result<(Option<Summary>, bool)> {
        let mut source = self.trace.open(path, &self.machine)?;
        let is_open = matches!(source.pace(), ReplayPace::Recorded { .. });
        let summary = self.simulate_source(host, &mut source, observer, sink);
        source.records().report(observer);
        let summary = summary.map_err(|error| self.trace_error(path, &error))?;
        Ok((summary, is_open))
    }

    /// Checks, without a simulation, that the drives can serve every request of a trace. Does
    /// nothing for other workloads, for standard input, which can be read only once, and for
    /// arrays.
    ///
    /// # Errors
    /// Returns an error if a drive would refuse a request, if the trace is invalid or cannot be
    /// read, or if the observer stops the check.
    pub(crate) fn check_trace(&self, observer: &dyn Observer) -> Result<()> {
        let path = match &self.workload {
            Workload::Trace(path) if path != Path::new("-") => path,
            _ => return Ok(()),
        };
        let host = self.machine.host()?;
        let drives: Vec<&Drive> = host.drives().collect();
        if !self.machine.arrays().is_empty() {
            return Ok(());
        }
        let failed = |error: &SimulateError| self.trace_error(path, error);
        let records = self.trace.open(path, &self.machine)?.into_records();
        for (number, record) in (1..).zip(records) {
            let record = record.map_err(|error| failed(&SimulateError::Source(error)))?;
            // A drive that does not exist is left to the simulation.
            let drive = drives.get(record.device as usize);
            drive
                .map_or(Ok(()), |drive| drive.check(&record.request))
                .map_err(|error| failed(&SimulateError::Request { number, error }))?;
            if number.is_multiple_of(OBSERVED_REQUESTS) && observer.stop() {
                return Err(RunError::Stopped);
            }
        }
        Ok(())
    }

    /// Returns a summary without requests. It excludes the warm-up, and has a part for each device
    /// if there are several.
    pub fn new_summary(&self) -> Summary {
        Summary::after_warmup(self.warmup).with_devices(self.machine.several_names().len())
    }

    /// Simulates all requests of a source, instead of the workload, on a host. `sink` receives each
    /// request after the warm-up, and can end the run by returning false. Returns `None` if the
    /// observer has stopped the run.
    ///
    /// # Errors
    /// Returns an error if the source fails, or if the host refuses one of its requests.
    pub fn simulate_source(
        &self,
        host: &mut Host,
        source: &mut impl RequestSource,
        observer: &dyn Observer,
        mut sink: impl FnMut(&Outcome) -> bool,
    ) -> Result<Option<Summary>, SimulateError> {
        let drives = &self.machine.drives;
        let sectors: Vec<SectorSpec> = drives.iter().map(|drive| drive.profile.sector).collect();
        let mut summary = self.new_summary();
        let mut counter = RequestCounter::new(observer);
        if counter.is_stopped {
            return Ok(None);
        }
        let mut source = Counted::new(source);
        host.set_warmup(self.warmup);
        simulate(host, &mut source, |outcome| {
            let sector = sectors[outcome.arrival.device as usize];
            counter.count_one() && (!summary.add(outcome, sector) || sink(outcome))
        })?;
        summary.drive_response_ms = host.drive_response_ms();
        summary.arrivals = source.counts;
        Ok(counter.finish().then_some(summary))
    }

    /// Converts the error of the trace's simulation like [`simulation_error`], and suggests
    /// `--drive` if that option can be used.
    fn trace_error(&self, path: &Path, error: &SimulateError) -> RunError {
        match error {
            SimulateError::Source(TraceError::OtherDevice { .. })
            | SimulateError::Device { .. }
                if self.trace.can_add_drives && self.machine.arrays().is_empty() =>
            {
                let hint = "--drive adds a drive, --device selects a device";
                RunError::at(path.display(), format!("{error} ({hint})"))
            }
            _ => simulation_error(path, error),
        }
    }

    /// Passes a note to the observer if the requests of a workload whose arrivals do not wait for
    /// completions arrived too fast.
    fn note_overload(&self, summary: &Summary, observer: &dyn Observer) {
        if !summary.arrivals.is_overloaded() {
            return;
        }
        let remedy = match self.trace.columns {
            Some(_) => "; check --units",
            None => "",
        };
        observer.note(&format!(
            "{} on {}: requests arrive faster than they are served, so that response times grow \
             with the length of the run{remedy}",
            self.workload.describe(),
            self.machine.target
        ));
    }
}

/// Counts the requests of a run, and reports their number to the observer at intervals.
pub(crate) struct RequestCounter<'a> {
    observer: &'a dyn Observer,
    unreported: u64,
    is_stopped: bool,
}

impl RequestCounter<'_> {
    pub(crate) fn new(observer: &dyn Observer) -> RequestCounter<'_> {
        RequestCounter {
            observer,
            unreported: 0,
            is_stopped: observer.stop(),
        }
    }

    /// Counts a request; returns whether the run goes on.
    #[inline]
    pub(crate) fn count_one(&mut self) -> bool {
        self.unreported += 1;
        if self.unreported == OBSERVED_REQUESTS {
            self.report();
            self.is_stopped = self.observer.stop();
        }
        !self.is_stopped
    }

    /// Reports the last requests; returns whether the run was not stopped.
    pub(crate) fn finish(mut self) -> bool {
        self.report();
        !self.is_stopped
    }

    fn report(&mut self) {
        self.observer.add(std::mem::take(&mut self.unreported));
    }
}

impl TracePlan {
    /// Opens a trace for replay on a machine.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, if its format is not recognized, or if the
    /// options contradict each other or the trace.
    pub fn open(&self, path: &Path, machine: &Machine) -> Result<Replay<Trace>> {
        let options = TraceOptions {
            sector_bytes: machine.drives[0].profile.sector.logical_bytes,
            capacity_sectors: machine.drives[0].geometry.capacity().0,
            blkparse_event: self.blkparse_event.unwrap_or_default(),
            check_order: !matches!(self.pace, Some(ReplayPace::Closed { .. })),
        };
        let trace = match &self.columns {
            Some(columns) => Trace::open_columns(path, columns.clone(), options)?,
            None => Trace::open(path, self.format, options)?,
        };
        let trace = trace
            .placed(machine.system.clone())
            .only(self.device)
            .sole(machine.drives.len() == 1)
            .served_by(machine.several_names());
        let natural = match trace.records_pauses() {
            true => ReplayPace::SemiClosed,
            false => ReplayPace::Recorded { speed: 1.0 },
        };
        self.check_times(path, natural)?;
        let pace = match (self.pace.unwrap_or(natural), self.speed) {
            (pace, None) => pace,
            (ReplayPace::Recorded { .. }, Some(speed)) => ReplayPace::Recorded { speed },
            _ => {
                return Err(RunError::input(
                    "--speed applies only to recorded times; add --replay recorded",
                ));
            }
        };
        Ok(Replay::new(trace, pace))
    }

    /// Returns the plan for a comparison of simulated with measured times, or `None` if the trace
    /// has no measured times.
    ///
    /// Unless the pace or the speed is given, a trace is replayed semi-closed if it records pauses,
    /// or if nearly all its requests arrived after the earlier ones were complete: at recorded
    /// arrivals, a request that takes longer in the model than on the drive would delay the next
    /// one. Other traces are replayed at the recorded arrivals. The trace is read once to find out,
    /// unless its format records pauses.
    ///
    /// # Errors
    /// Returns the errors of [`open`](Self::open). Also returns an error if the trace is invalid,
    /// or if the observer stops the run.
    pub fn for_comparison(
        &self,
        path: &Path,
        machine: &Machine,
        observer: &dyn Observer,
    ) -> Result<Option<TracePlan>> {
        let (mut requests, mut measured, mut overlaps) = (0_u64, false, 0_u64);
        let mut latest_end = SimTime::ZERO;
        let trace = self.open(path, machine)?;
        if trace.records().records_pauses() && self.columns.is_none() {
            return Ok(Some(self.clone()));
        }
        for record in trace.into_records() {
            let record = record.map_err(|error| trace_error(path, &error))?;
            measured |= record.measured.is_some();
            requests += 1;
            if requests.is_multiple_of(OBSERVED_REQUESTS) && observer.stop() {
                return Err(RunError::Stopped);
            }
            if let Some(arrival) = record.arrival {
                overlaps += u64::from(arrival < latest_end);
                latest_end = latest_end.max(record.end().unwrap_or(arrival));
            }
        }
        let one_at_a_time = overlaps <= requests / REQUESTS_PER_OVERLAP_MIN;
        let pace = match self.pace {
            None if one_at_a_time && self.speed.is_none() => Some(ReplayPace::SemiClosed),
            pace => pace,
        };
        Ok(measured.then(|| TracePlan {
            pace,
            ..self.clone()
        }))
    }

    /// Returns the command's option for the first setting that differs from the default.
    pub fn first_option(&self) -> Option<&'static str> {
        let given = [
            ("--device", self.device.is_some()),
            ("--format", self.format.is_some()),
            ("--columns", self.columns.is_some()),
            ("--arrival", self.blkparse_event.is_some()),
            ("--replay", self.pace.is_some()),
            ("--speed", self.speed.is_some()),
        ];
        let mut given = given.iter().filter(|(_, given)| *given);
        given.next().map(|(option, _)| *option)
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
        Err(RunError::at(path.display(), why))
    }
}

/// Converts the error of a trace's simulation to the error of a run, which names the trace.
pub fn simulation_error(path: &Path, error: &SimulateError) -> RunError {
    match error {
        SimulateError::Source(error) => trace_error(path, error),
        SimulateError::Device { .. } => RunError::at(
            path.display(),
            format!("{error} (--device selects a device)"),
        ),
        SimulateError::Overloaded { .. } => RunError::at(
            path.display(),
            format!("{error}; replay with --speed below 1, or --replay closed:N"),
        ),
        _ => RunError::at(path.display(), error),
    }
}

#[cfg(test)]
mod tests {
    use std::sync::atomic::{AtomicU64, Ordering};

    use super::*;
    use crate::plan::SweepPlan;

    /// Stops runs once this many requests are reported.
    struct Limit {
        limit: u64,
        seen: AtomicU64,
    }

    impl Observer for Limit {
        fn add(&self, requests: u64) {
            self.seen.fetch_add(requests, Ordering::Relaxed);
        }

        fn stop(&self) -> bool {
            self.seen.load(Ordering::Relaxed) >= self.limit
        }
    }

    /// Runs four seeds of a workload; returns the result and the number of reported requests.
    fn run_with_limit(limit: u64, count: u64) -> (Result<Vec<Summary>>, u64) {
        let seen = AtomicU64::new(0);
        let observer = Limit { limit, seen };
        let plan = SweepPlan {
            targets: vec!["instant".to_owned()],
            workload: Some(format!("random,count={count}")),
            seeds: Some(4),
            ..SweepPlan::default()
        };
        let cases = plan.cases(&observer).unwrap();
        let result = run_all(&cases, &observer);
        (result, observer.seen.into_inner())
    }

    /// Do all runs end within the promised number of requests once the observer stops them, even if
    /// each is shorter than that number?
    #[test]
    fn observers_stop_runs() {
        let threads = std::thread::available_parallelism().map_or(1, |count| count.get() as u64);
        let (result, seen) = run_with_limit(1, 1_000_000);
        assert_eq!(result.err(), Some(RunError::Stopped));
        assert!(seen <= threads.min(4) * OBSERVED_REQUESTS, "{seen}");

        let (result, seen) = run_with_limit(1, 10);
        assert_eq!(result.err(), Some(RunError::Stopped));
        assert!(seen <= threads.min(4) * 10, "{seen}");

        let (result, seen) = run_with_limit(0, 10);
        assert_eq!((result.err(), seen), (Some(RunError::Stopped), 0));
    }

    /// Are all requests reported to the observer, whatever the length of the runs?
    #[test]
    fn all_requests_are_reported() {
        for count in [
            1,
            OBSERVED_REQUESTS - 1,
            OBSERVED_REQUESTS,
            OBSERVED_REQUESTS + 1,
        ] {
            let (result, seen) = run_with_limit(u64::MAX, count);
            let requests: Vec<u64> = result.unwrap().iter().map(Summary::requests).collect();
            assert_eq!((requests, seen), (vec![count; 4], 4 * count));
        }
    }
}

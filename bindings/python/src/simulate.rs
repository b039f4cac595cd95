//! Simulations.

use std::sync::{Arc, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyAny, PyDict, PyString};
use traxtent_run::{
    Case, Figures, Machine, OBSERVED_REQUESTS, Observer, ReportHead, RunError, SimulationRun,
    Summary, TracePlan, Workload, case_notes, parse_pace, parse_speed,
};
use traxtent_sim::{Host, Outcome, SimulateError, simulate};
use traxtent_workload::trace::{BlkparseEvent, ColumnSpec, ColumnText};
use traxtent_workload::{Replay, ReplayPace, RequestSource};

use crate::arrow::Batch;
use crate::drive::{Drive, settings, target_text};
use crate::errors::{guarded, input_error, run_error};
use crate::observer::PythonObserver;
use crate::policy::{PythonPlacement, PythonScheduler};
use crate::request_log::LogThread;
use crate::result::SimulationResult;
use crate::source::{ClientSource, Fault, TableRecords};
use crate::values::{Whole, optional, setting_text};

/// A simulation, as the arguments describe it.
pub(crate) struct Plan {
    drive: Drive,
    pub(crate) run: SimulationRun,
    set: Vec<(String, String)>,
    input: Input,
    scheduler: Option<PythonScheduler>,
    placement: Option<Arc<PythonPlacement>>,
    /// The exception of a table, a client or a policy.
    fault: Fault,
    pub(crate) observer: Arc<PythonObserver>,
}

/// The origin of the requests.
enum Input {
    /// The workload of the run.
    Named,
    /// A table.
    Table(Box<Replay<TableRecords>>),
    /// Clients in Python.
    Clients(Box<ClientSource>),
}

/// The arguments of `simulate` and `simulate_batches`.
pub(crate) struct Arguments<'py> {
    pub(crate) drive: Bound<'py, PyAny>,
    pub(crate) workload: Option<Bound<'py, PyAny>>,
    pub(crate) seed: Option<u64>,
    pub(crate) warmup: u64,
    pub(crate) set: Option<Bound<'py, PyDict>>,
    pub(crate) progress: Option<Bound<'py, PyAny>>,
    /// The arguments from which [`TraceOptions`] is made.
    pub(crate) options: Option<Bound<'py, PyDict>>,
    pub(crate) scheduler: Option<Bound<'py, PyAny>>,
    pub(crate) place: Option<Bound<'py, PyAny>>,
}

/// The further arguments of `simulate`, which only its signature in Python lists: the options of a
/// trace, and further drives.
#[derive(Default)]
pub(crate) struct TraceOptions {
    pub(crate) plan: TracePlan,
    more_drives: Vec<Drive>,
}

impl Plan {
    pub(crate) fn new(arguments: &Arguments<'_>) -> PyResult<Plan> {
        let py = arguments.drive.py();
        let drive = Drive::of_argument(&arguments.drive)?;
        let options = TraceOptions::of(arguments.options.as_ref())?;
        let set = settings(arguments.set.as_ref())?;
        let fault = Fault::default();
        let mut machine = (*drive.machine).clone();
        for more in &options.more_drives {
            machine.extend((*more.machine).clone()).map_err(run_error)?;
        }
        let trace = options.plan;
        let (mut workload, input) = match &arguments.workload {
            None => (synthio(&machine)?, Input::Named),
            Some(object) => match named(object)? {
                Some(text) => {
                    let workload = py.detach(|| Workload::parse(&text)).map_err(run_error)?;
                    (workload, Input::Named)
                }
                None if object.hasattr("__arrow_c_stream__")? => {
                    let records = TableRecords::open(object, is_ordered(&trace), fault.clone())?;
                    let pace = pace(&trace, &records)?;
                    let replay = Box::new(Replay::new(records, pace));
                    (Workload::Supplied("table".into()), Input::Table(replay))
                }
                None => {
                    let clients = Box::new(ClientSource::new(object, fault.clone())?);
                    let name = object.getattr("__name__").and_then(|name| name.extract());
                    let name: String = name.unwrap_or_else(|_| "requests".to_owned());
                    (Workload::Supplied(name.into()), Input::Clients(clients))
                }
            },
        };
        let is_trace = matches!(workload, Workload::Trace(_));
        let is_table = matches!(input, Input::Table(_));
        let given = trace
            .first_option()
            .map(|option| option.trim_start_matches('-'));
        let given = given.or_else(|| (!options.more_drives.is_empty()).then_some("more"));
        match given {
            Some("replay" | "speed" | "more") if is_table => {}
            Some("more") if matches!(input, Input::Clients(_)) => {}
            Some(option) if !is_trace => {
                return Err(input_error(format!("{option} applies only to traces")));
            }
            _ => {}
        }
        for (key, value) in &set {
            let changed = match key.strip_prefix("workload.") {
                Some(_) if !matches!(input, Input::Named) => Err(RunError::input(format!(
                    "{key}: only a workload in the grammar has such a value"
                ))),
                Some(key) => workload.set(key, value),
                None => machine.set(key, value),
            };
            changed.map_err(run_error)?;
        }
        let seed = match (&workload, arguments.seed) {
            (Workload::Drawn(spec), seed) => seed.unwrap_or(spec.seed),
            (Workload::Synthio(_), seed) => seed.or(machine.seed).unwrap_or(1),
            (Workload::Trace(_) | Workload::Supplied(_), None) => 0,
            (Workload::Trace(_) | Workload::Supplied(_), Some(_)) => {
                return Err(input_error("seed applies only to synthetic workloads"));
            }
        };
        let total = match &input {
            Input::Named => workload.count(),
            _ => None,
        };
        let progress = arguments.progress.clone().map(Bound::unbind);
        let scheduler = arguments.scheduler.as_ref();
        let scheduler = scheduler.map(|pick| PythonScheduler::new(pick, fault.clone()));
        let placement = arguments.place.as_ref();
        let placement = placement.map(|place| PythonPlacement::new(place, fault.clone()));
        Ok(Plan {
            drive,
            run: SimulationRun {
                machine,
                workload,
                seed,
                warmup: arguments.warmup,
                trace,
            },
            set,
            input,
            scheduler: scheduler.transpose()?,
            placement: placement.transpose()?.map(Arc::new),
            fault,
            observer: Arc::new(PythonObserver::new(progress, total)),
        })
    }

    /// Simulates. `sink` receives each request after the warm-up, and can end the run by returning
    /// false.
    pub(crate) fn execute(
        &mut self,
        mut sink: impl FnMut(&Outcome) -> bool,
    ) -> Result<Summary, RunError> {
        let (run, observer) = (&self.run, &*self.observer);
        let mut host = run.machine.host()?;
        if let Some(scheduler) = &self.scheduler {
            for drive in 0..run.machine.drives.len() {
                host = host.with_queue_policy(drive, Box::new(scheduler.clone()));
            }
        }
        if let Some(placement) = self.placement.clone() {
            host = host.with_placement(move |arrival| placement.place(arrival));
        }
        // A policy cannot end the run itself. Without policies, an exception ends the source.
        let fault =
            (self.scheduler.is_some() || self.placement.is_some()).then(|| self.fault.clone());
        let sink =
            |outcome: &Outcome| fault.as_ref().is_none_or(|fault| !fault.is_set()) && sink(outcome);
        let summary = match &mut self.input {
            Input::Named => run.simulate(&mut host, observer, sink),
            Input::Table(replay) => {
                let simulated = follow(run, &mut host, &mut **replay, observer, |_| {}, sink);
                simulated.map_err(|error| match error {
                    Some(error) => RunError::at("table", error),
                    None => RunError::Stopped,
                })
            }
            Input::Clients(clients) => {
                let completions = clients.completions();
                let tell = |outcome: &Outcome| {
                    let completions = completions.lock();
                    completions
                        .unwrap_or_else(PoisonError::into_inner)
                        .push(*outcome);
                };
                let simulated = follow(run, &mut host, &mut **clients, observer, tell, sink);
                simulated.map_err(|error| match error {
                    Some(error) => RunError::at("workload", error),
                    None => RunError::Stopped,
                })
            }
        }?;
        self.check_requests(&summary)?;
        Ok(summary)
    }

    fn check_requests(&self, summary: &Summary) -> Result<(), RunError> {
        self.run
            .check_requests(summary)
            .map_err(|error| match error {
                RunError::Input(text) => RunError::Input(text.replace("--warmup", "warmup")),
                other => other,
            })
    }

    /// Returns the summary, or the exception that has ended the run.
    pub(crate) fn outcome(
        &mut self,
        py: Python<'_>,
        summary: Result<Summary, RunError>,
    ) -> PyResult<Summary> {
        match self.fault.take() {
            Some(exception) => {
                // Ends the display of progress. The exception that has ended the run is the one to
                // raise.
                let _ = self.observer.finish::<()>(py, Err(RunError::Stopped));
                Err(exception)
            }
            None => self.observer.finish(py, summary),
        }
    }

    /// Returns the result, or the exception that has ended the run.
    pub(crate) fn finish(
        &mut self,
        py: Python<'_>,
        summary: Result<Summary, RunError>,
        batches: Option<Vec<Batch>>,
    ) -> PyResult<SimulationResult> {
        let mut summary = self.outcome(py, summary)?;
        let remedy = match self.input {
            Input::Named => self.run.alignment_fix(&summary),
            _ => None,
        };
        let case = Case {
            drive: None,
            set: self.set.clone(),
            runs: vec![self.run.clone()],
        };
        let mut noted = case.clone();
        if self.scheduler.is_some() {
            // A function may have no effect for the same reasons as a setting.
            noted
                .set
                .push(("queue.scheduler".into(), "scheduler".into()));
        }
        let mut notes = case_notes(&[noted]);
        for note in self.observer.take_notes() {
            if !notes.contains(&note) {
                notes.push(note);
            }
        }
        let head = ReportHead::of(&case);
        let json = head.json(&Figures::of_one(&mut summary), remedy.as_deref());
        let seed = head.seeds.first().copied();
        Ok(SimulationResult::new(
            self.drive.clone(),
            head.workload,
            seed,
            json,
            notes,
            &mut summary,
            batches,
        ))
    }
}

/// Simulates a source. Passes every outcome to `tell`, and those after the warm-up to `sink`.
///
/// # Errors
/// Returns the error of the simulation, or `None` if the observer has stopped the run.
fn follow(
    run: &SimulationRun,
    host: &mut Host,
    source: &mut impl RequestSource,
    observer: &dyn Observer,
    mut tell: impl FnMut(&Outcome),
    mut sink: impl FnMut(&Outcome) -> bool,
) -> Result<Summary, Option<SimulateError>> {
    let sectors: Vec<_> = run
        .machine
        .drives
        .iter()
        .map(|drive| drive.profile.sector)
        .collect();
    let mut summary = run.new_summary();
    let (mut unreported, mut stopped) = (0, observer.stop());
    if stopped {
        return Err(None);
    }
    simulate(host, source, |outcome| {
        tell(outcome);
        unreported += 1;
        if unreported == OBSERVED_REQUESTS {
            observer.add(std::mem::take(&mut unreported));
            stopped = observer.stop();
        }
        let sector = sectors[outcome.arrival.device as usize];
        !stopped && (!summary.add(outcome, sector) || sink(outcome))
    })
    .map_err(Some)?;
    observer.add(unreported);
    match stopped {
        true => Err(None),
        false => Ok(summary),
    }
}

/// Returns the text of a workload that is a text or a path, and `None` for other objects.
fn named(object: &Bound<'_, PyAny>) -> PyResult<Option<String>> {
    if object.is_instance_of::<PyString>() {
        return object.extract().map(Some);
    }
    match object.hasattr("__fspath__")? {
        true => target_text(object).map(Some),
        false => Ok(None),
    }
}

fn synthio(machine: &Machine) -> PyResult<Workload> {
    let spec = machine.synthio.clone().ok_or_else(|| {
        input_error(format!(
            "{} contains no workload; give one, such as random,count=10000",
            machine.target
        ))
    })?;
    Ok(Workload::Synthio(spec))
}

fn is_ordered(trace: &TracePlan) -> bool {
    !matches!(trace.pace, Some(ReplayPace::Closed { .. }))
}

/// Returns the pace at which the requests of a table are issued.
fn pace(trace: &TracePlan, records: &TableRecords) -> PyResult<ReplayPace> {
    let pace = trace.pace.unwrap_or(ReplayPace::Recorded { speed: 1.0 });
    if !records.has_times() && is_ordered(trace) {
        return Err(input_error(
            "the table has no column at_ms; add it, or replay the table as fast as completions \
             allow with replay=\"closed:1\"",
        ));
    }
    match (pace, trace.speed) {
        (pace, None) => Ok(pace),
        (ReplayPace::Recorded { .. }, Some(speed)) => Ok(ReplayPace::Recorded { speed }),
        _ => Err(input_error(
            "speed applies only to recorded times; use replay=\"recorded\"",
        )),
    }
}

impl TraceOptions {
    /// Reads the options; the names are the command's.
    pub(crate) fn of(options: Option<&Bound<'_, PyDict>>) -> PyResult<TraceOptions> {
        let mut read = TraceOptions::default();
        let mut texts: Vec<(String, Vec<String>)> = Vec::new();
        for (key, value) in options.into_iter().flat_map(|options| options.iter()) {
            let key: String = key.extract()?;
            if value.is_none() {
                continue;
            }
            let list = |value: &Bound<'_, PyAny>| -> PyResult<Vec<String>> {
                match value.is_instance_of::<PyString>() {
                    true => Ok(vec![value.extract()?]),
                    false => value.extract(),
                }
            };
            match key.as_str() {
                "more" => {
                    read.more_drives = match value.is_instance_of::<PyString>() {
                        true => vec![Drive::of_argument(&value)?],
                        false => value
                            .try_iter()?
                            .map(|item| Drive::of_argument(&item?))
                            .collect::<PyResult<_>>()?,
                    };
                }
                "device" => {
                    let device: Whole<u32> = value.extract()?;
                    read.plan.device = Some(device.named("device")?);
                }
                "format" => {
                    let name: String = value.extract()?;
                    read.plan.format = Some(name.parse().map_err(input_error)?);
                }
                "arrival" => {
                    let event: String = value.extract()?;
                    read.plan.blkparse_event = Some(match event.as_str() {
                        "dispatch" => BlkparseEvent::Dispatch,
                        "queue" => BlkparseEvent::Queue,
                        _ => {
                            let what = format!("arrival: {event:?}: expected dispatch or queue");
                            return Err(input_error(what));
                        }
                    });
                }
                "replay" => {
                    let text: String = value.extract()?;
                    let pace = parse_pace(&text);
                    read.plan.pace =
                        Some(pace.map_err(|why| input_error(format!("replay: {why}")))?);
                }
                "speed" => {
                    let text = setting_text("speed", &value)?;
                    let speed = parse_speed(&text);
                    read.plan.speed =
                        Some(speed.map_err(|why| input_error(format!("speed: {why}")))?);
                }
                _ => texts.push((key, list(&value)?)),
            }
        }
        read.plan.columns = columns(&texts)?;
        if read.plan.columns.is_some() && read.plan.format.is_some() {
            return Err(input_error("columns and format exclude each other"));
        }
        Ok(read)
    }
}

/// Returns the columns of a trace that the options describe.
fn columns(texts: &[(String, Vec<String>)]) -> PyResult<Option<ColumnSpec>> {
    let find = |name: &str| {
        let found = texts.iter().find(|(key, _)| key == name);
        found.map_or(&[][..], |(_, values)| &values[..])
    };
    let strs = |name: &str| find(name).iter().map(String::as_str).collect::<Vec<_>>();
    let columns = find("columns").join(",");
    if columns.is_empty() {
        return match texts.iter().find(|(key, _)| key != "columns") {
            Some((key, _)) => Err(input_error(format!("{key} needs columns"))),
            None => Ok(None),
        };
    }
    let spec = ColumnSpec::parse(&ColumnText {
        columns: &columns,
        units: &strs("units"),
        delimiter: find("delimiter").first().map(String::as_str),
        filters: &strs("where"),
        reads: &strs("reads"),
        writes: &strs("writes"),
    });
    spec.map(Some).map_err(input_error)
}

/// Simulates a workload on a drive.
///
/// The package's `simulate` describes the arguments, and passes them on.
#[pyfunction]
#[pyo3(signature = (drive, workload, seed, log, warmup, set, progress, options, scheduler, place))]
#[expect(clippy::too_many_arguments, reason = "they are keywords in Python")]
pub(crate) fn simulate_run(
    py: Python<'_>,
    drive: Bound<'_, PyAny>,
    workload: Option<Bound<'_, PyAny>>,
    seed: Option<Whole<u64>>,
    log: bool,
    warmup: Whole<u64>,
    set: Option<Bound<'_, PyDict>>,
    progress: Option<Bound<'_, PyAny>>,
    options: Option<Bound<'_, PyDict>>,
    scheduler: Option<Bound<'_, PyAny>>,
    place: Option<Bound<'_, PyAny>>,
) -> PyResult<SimulationResult> {
    guarded(|| {
        let arguments = Arguments {
            drive,
            workload,
            seed: optional("seed", seed)?,
            warmup: warmup.named("warmup")?,
            set,
            progress,
            options,
            scheduler,
            place,
        };
        let mut plan = Plan::new(&arguments)?;
        let (summary, batches) = py.detach(|| {
            if !log {
                return (plan.execute(|_| true), None);
            }
            let mut log = LogThread::start();
            let summary = plan.execute(|outcome| {
                log.push(outcome);
                true
            });
            (summary, Some(log.finish()))
        });
        plan.finish(py, summary, batches)
    })
}

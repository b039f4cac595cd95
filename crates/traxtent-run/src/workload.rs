//! WORKLOAD arguments: the name of a trace, a line of the workload grammar, or the name of a TOML
//! file with the same keys.

use std::collections::BTreeSet;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_disksim::System;
use traxtent_units::Count;
use traxtent_workload::trace::{ColumnSpec, DETECT_BYTES, TracePosition, detect};
use traxtent_workload::{
    SynthioSpec, TraceError, TraceFormat, TraceOptions, TraceProblem, TraceReader, TraceRecord,
    WORKLOAD_KEYS, WorkloadError, WorkloadKind, WorkloadSpec,
};

use crate::error::{FileProblem, Result, RunError};
use crate::input;
use crate::observer::Observer;

/// The maximum size of a workload file in bytes.
const SPEC_BYTES_MAX: u64 = 1 << 20;

/// The first bytes of a Parquet file.
const PARQUET_MAGIC: &[u8] = b"PAR1";

/// The maximum number of devices in the note that gives their numbers, so that it can be read.
const DEVICES_NOTED: usize = 16;

/// A workload for the drives.
#[derive(Clone, Debug)]
pub enum Workload {
    /// A synthetic workload in this project's grammar.
    Drawn(WorkloadSpec),
    /// A synthetic workload in DiskSim's parameters.
    Synthio(SynthioSpec),
    /// A recorded trace.
    Trace(PathBuf),
    /// Requests that the caller supplies to [`SimulationRun::simulate_source`], with their
    /// description.
    ///
    /// [`SimulationRun::simulate_source`]: crate::SimulationRun::simulate_source
    Supplied(Arc<str>),
}

impl Workload {
    /// Parses a WORKLOAD. A text that begins with one of the grammar's kinds is a specification;
    /// anything else is a file, or `-` for standard input.
    ///
    /// # Errors
    /// Returns an error if the specification is invalid, if its TOML file cannot be read, or if a
    /// text without `/` or `.`, or with a key of the grammar, names no file. A trace is opened
    /// later.
    pub fn parse(text: &str) -> Result<Workload> {
        if is_line(text) {
            return text.parse().map(Workload::Drawn).map_err(RunError::input);
        }
        let path = Path::new(text);
        let is_no_path = !text.contains(['/', '.']) || has_key(text);
        if text != "-" && is_no_path && !path.exists() {
            // The text is neither a specification nor a file. The error describes a valid
            // specification.
            return Err(match text.parse::<WorkloadSpec>() {
                Err(error) => RunError::input(format!("{error}; and there is no such file")),
                Ok(_) => unreachable!("it does not begin with a kind"),
            });
        }
        if path.extension().is_some_and(|ending| ending == "toml") {
            let toml = input::text(path, SPEC_BYTES_MAX)?;
            return match WorkloadSpec::from_toml(&toml) {
                Ok(spec) => Ok(Workload::Drawn(spec)),
                Err(WorkloadError {
                    line: Some(line),
                    problem,
                    ..
                }) => Err(RunError::at(format!("{text}:{line}"), problem)),
                Err(error) => Err(RunError::at(text, error)),
            };
        }
        Ok(Workload::Trace(path.to_owned()))
    }

    /// Returns the file that a WORKLOAD names, unless it is standard input or a line of the
    /// grammar.
    pub fn file(text: &str) -> Option<&Path> {
        (text != "-" && !is_line(text)).then(|| Path::new(text))
    }

    /// Replaces the value of a key of the grammar. In DiskSim's workload, only `count` can be set,
    /// and a trace or supplied requests have no keys.
    ///
    /// # Errors
    /// Returns an error if there is no such key, or if the value is invalid.
    pub fn set(&mut self, key: &str, value: &str) -> Result<()> {
        match self {
            Workload::Drawn(spec) => spec
                .set(key, value)
                .and_then(|()| spec.check())
                .map_err(RunError::input),
            Workload::Synthio(spec) if key == "count" => match value.parse() {
                Ok(count) if count > 0 => {
                    spec.count = count;
                    Ok(())
                }
                _ => Err(RunError::input(format!(
                    "workload: count: {value:?}: expected a whole number of at least 1"
                ))),
            },
            Workload::Synthio(_) => Err(RunError::input(format!(
                "--set workload.{key}: only count can be set in DiskSim's workload, and --seed sets the \
                 seed; change other parameters in the file's disksim_synthio block"
            ))),
            Workload::Trace(_) => Err(RunError::input(format!(
                "--set workload.{key}: a trace has no such value"
            ))),
            Workload::Supplied(_) => Err(RunError::input(format!(
                "workload.{key}: supplied requests have no such value"
            ))),
        }
    }

    /// Checks that the workload has a key, for an option that names only the key.
    ///
    /// # Errors
    /// Returns an error if there is no such key, or if it cannot be set in this kind of workload.
    pub fn check_key(&self, key: &str) -> Result<()> {
        match (self, self.clone().set(key, "1")) {
            (Workload::Drawn(_), _) if is_workload_key(key) => Ok(()),
            (_, result) => result,
        }
    }

    /// Returns whether a seed determines the requests.
    pub fn is_seeded(&self) -> bool {
        matches!(self, Workload::Drawn(_) | Workload::Synthio(_))
    }

    /// Returns the number of requests, if it is known.
    pub fn count(&self) -> Option<u64> {
        match self {
            Workload::Drawn(spec) => Some(spec.count),
            Workload::Synthio(spec) => Some(spec.count),
            Workload::Trace(_) | Workload::Supplied(_) => None,
        }
    }

    /// Returns a one-line description.
    pub fn describe(&self) -> String {
        match self {
            Workload::Drawn(spec) => spec.to_string(),
            Workload::Synthio(spec) => {
                format!("synthetic, as in the parameters, count={}", spec.count)
            }
            Workload::Trace(path) => path.display().to_string(),
            Workload::Supplied(description) => description.to_string(),
        }
    }
}

/// Returns whether a WORKLOAD begins with a kind of the grammar, and thus is a line of it.
fn is_line(text: &str) -> bool {
    let first = text.split(',').next().unwrap_or_default().trim();
    first.parse::<WorkloadKind>().is_ok()
}

/// Returns whether a part of a text is a key of the grammar with a value, as in a line whose kind
/// is missing or misspelt.
fn has_key(text: &str) -> bool {
    let keys = text.split(',').filter_map(|part| part.split_once('='));
    keys.map(|(key, _)| key.trim()).any(is_workload_key)
}

/// Returns whether a text is a key of the grammar.
fn is_workload_key(key: &str) -> bool {
    WORKLOAD_KEYS.iter().any(|(known, _)| *known == key)
}

/// The records of a trace file, mapped to the drives of a machine.
pub struct Trace {
    path: PathBuf,
    reader: TraceReader<Box<dyn BufRead + Send>>,
    system: Option<Arc<System>>,
    only: Option<u32>,
    /// For a machine with one drive: the first device in the trace, once known. It is mapped to the
    /// drive.
    sole: Option<Option<u32>>,
    /// The names of the drives or arrays of a machine with several, in the order of their numbers.
    several: Vec<String>,
    /// The number of records returned so far.
    returned: u64,
    /// Whether all records have been read.
    has_ended: bool,
    /// The number of records for devices that the DiskSim parameters do not map.
    misplaced: u64,
    /// The first devices that were excluded.
    others: BTreeSet<u32>,
}

impl Trace {
    /// Opens a trace. Recognizes its format unless one is given.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read, or if its format is not recognized.
    pub fn open(path: &Path, format: Option<TraceFormat>, options: TraceOptions) -> Result<Trace> {
        let mut bytes = input::open(path)?;
        let format = match format {
            Some(format) => format,
            None => {
                let mut head = Vec::new();
                let mut start = bytes.by_ref().take(DETECT_BYTES as u64);
                start
                    .read_to_end(&mut head)
                    .map_err(|error| unreadable(path, &error))?;
                if head.starts_with(PARQUET_MAGIC) {
                    let why = "is a Parquet file, not a trace; only a CSV log can be replayed";
                    return Err(RunError::at(path.display(), why));
                }
                let format = detect(&head).map_err(|error| RunError::at(path.display(), error))?;
                bytes = Box::new(std::io::Cursor::new(head).chain(bytes));
                format
            }
        };
        Ok(Trace::of(path, TraceReader::new(format, bytes, options)))
    }

    /// Opens a trace whose columns are specified.
    ///
    /// # Errors
    /// Returns an error if the file cannot be read.
    pub fn open_columns(path: &Path, columns: ColumnSpec, options: TraceOptions) -> Result<Trace> {
        let bytes = input::open(path)?;
        let reader = TraceReader::with_columns(columns, bytes, options);
        Ok(Trace::of(path, reader))
    }

    fn of(path: &Path, reader: TraceReader<Box<dyn BufRead + Send>>) -> Trace {
        Trace {
            path: path.to_owned(),
            reader,
            system: None,
            only: None,
            sole: None,
            several: Vec::new(),
            returned: 0,
            has_ended: false,
            misplaced: 0,
            others: BTreeSet::new(),
        }
    }

    /// Maps devices as defined by the DiskSim parameters. Those of a request log are the system's
    /// already.
    #[must_use]
    pub fn placed(mut self, system: Option<Arc<System>>) -> Trace {
        self.system = system.filter(|_| self.reader.format() != TraceFormat::RequestLog);
        self
    }

    /// Excludes all devices except `device`. `None` excludes none. If there is only one drive, it
    /// serves the device, whatever its number, unless the parameters map the device.
    #[must_use]
    pub fn only(mut self, device: Option<u32>) -> Trace {
        self.only = device;
        self
    }

    /// Maps the first device in the trace, whatever its number, to the only drive, unless the
    /// parameters map devices. Requests for other devices are errors.
    #[must_use]
    pub fn sole(mut self, sole: bool) -> Trace {
        self.sole = sole.then_some(None);
        self
    }

    /// Sets the names of the drives or arrays that serve the devices, if there are several. A note
    /// then states which of them serves which device, if the trace gives names of devices.
    #[must_use]
    pub fn served_by(mut self, names: Vec<String>) -> Trace {
        self.several = names;
        self
    }

    /// Returns whether the trace records pauses instead of arrivals.
    pub fn records_pauses(&self) -> bool {
        self.reader.records_pauses()
    }

    /// Returns the reasons to doubt the trace. They are complete once the trace has ended.
    fn warnings(&self) -> impl Iterator<Item = String> {
        let gaps = self.reader.gap_warning().map(|warning| warning.to_string());
        let responses = self.reader.response_warning();
        let responses = responses.map(|warning| warning.to_string());
        let order = self.reader.order_warning();
        let order = order.map(|warning| warning.to_string());
        let absent = self
            .only
            .filter(|_| self.has_ended && self.returned == 0 && self.misplaced == 0);
        let absent = absent.map(|only| {
            let others: Vec<String> = self.others.iter().map(u32::to_string).collect();
            match others.is_empty() {
                true => format!("has no request of device {only}"),
                false => format!(
                    "has no request of device {only}, but of {}",
                    others.join(", ")
                ),
            }
        });
        let values = self.reader.absent_values();
        let values = values.into_iter().map(|values| values.to_string());
        let doubts = [gaps, responses, order, absent].into_iter().flatten();
        let doubts = doubts.chain(values);
        doubts.map(|doubt| format!("{}: {doubt}", self.path.display()))
    }

    /// Returns the warning that requests are omitted, if any are. It is complete once the trace has
    /// ended.
    pub fn omission(&self) -> Option<String> {
        (self.misplaced > 0).then(|| {
            format!(
                "{}: omitted {} for devices that the parameters do not map",
                self.path.display(),
                Count(self.misplaced, "request")
            )
        })
    }

    /// Returns the note about the numbers of devices for which the trace has names, if several
    /// drives serve them or one is selected by its number. It is complete once the trace has ended.
    fn device_note(&self) -> Option<String> {
        let names = self.reader.device_names();
        if names.is_empty() || (self.several.is_empty() && self.only.is_none()) {
            return None;
        }
        let numbered = (0..).zip(names.iter().take(DEVICES_NOTED));
        let devices = numbered.map(|(number, name)| match self.drive_of(number) {
            Some(drive) => format!("{name} is device {number} ({drive})"),
            None => format!("{name} is device {number}"),
        });
        let mut devices = devices.collect::<Vec<_>>().join(", ");
        if names.len() > DEVICES_NOTED {
            devices += &format!(", and {} more", names.len() - DEVICES_NOTED);
        }
        let path = self.path.display();
        Some(format!("{path}: devices of the trace: {devices}"))
    }

    /// Returns the name of the drive or array that serves a device, if there are several and the
    /// device is one of theirs.
    fn drive_of(&self, device: u32) -> Option<&str> {
        let maps = self
            .system
            .as_ref()
            .map_or(&[][..], |system| &system.devices);
        if self.only.is_some_and(|only| only != device) {
            return None;
        }
        let drive = match maps {
            [] => device,
            maps => maps.iter().find(|map| map.trace_device == device)?.disk,
        };
        self.several.get(drive as usize).map(String::as_str)
    }

    /// Passes the note about names of devices and all warnings to the observer.
    pub fn report(&self, observer: &dyn Observer) {
        if let Some(note) = self.device_note() {
            observer.note(&note);
        }
        for warning in self.warnings() {
            observer.warn(&warning);
        }
        if let Some(omission) = self.omission() {
            observer.warn_of_omission(&omission);
        }
    }
}

impl Iterator for Trace {
    type Item = Result<TraceRecord, TraceError>;

    fn next(&mut self) -> Option<Self::Item> {
        loop {
            let mut record = match self.reader.next() {
                Some(Ok(record)) => record,
                Some(Err(error)) => return Some(Err(error)),
                None => {
                    self.has_ended = true;
                    return None;
                }
            };
            if self.only.is_some_and(|only| only != record.device) {
                if self.others.len() < DEVICES_NOTED {
                    self.others.insert(record.device);
                }
                continue;
            }
            let maps = self.system.as_ref().filter(|one| !one.devices.is_empty());
            match (maps, &mut self.sole) {
                (Some(system), _) => match system.map_record(record) {
                    Some(placed) => record = placed,
                    None if self.only.is_some() && self.several.is_empty() => record.device = 0,
                    None => {
                        self.misplaced += 1;
                        continue;
                    }
                },
                (None, _) if self.only.is_some() && self.several.is_empty() => record.device = 0,
                (None, Some(first)) => {
                    let first = *first.get_or_insert(record.device);
                    if record.device != first {
                        return Some(Err(TraceError::OtherDevice {
                            number: self.returned + 1,
                            device: record.device,
                            first,
                        }));
                    }
                    record.device = 0;
                }
                (None, None) => {}
            }
            self.returned += 1;
            return Some(Ok(record));
        }
    }
}

/// Returns the error of a run for an error in a trace, with the file and the line or record.
pub fn trace_error(path: &Path, error: &TraceError) -> RunError {
    let file = path;
    let path = path.display();
    if let TraceError::OtherDevice { .. } = error {
        return RunError::at(path, format!("{error} (--device selects a device)"));
    }
    let TraceError::At {
        format,
        place,
        problem,
    } = error
    else {
        return RunError::at(path, error);
    };
    let message = match place {
        TracePosition::Line(line) => format!("{path}:{line}: {format} trace: {problem}"),
        TracePosition::Record { .. } => format!("{path}: {error}"),
    };
    match problem {
        TraceProblem::Order { .. } => RunError::input(format!(
            "{message}, or replay it without its times (--replay closed:N)"
        )),
        TraceProblem::Io(error) if !is_content(error) => {
            RunError::Io(FileProblem::new(message, file, Some(error)))
        }
        _ => RunError::input(message),
    }
}

/// Returns whether the file's content, not its device, caused the error.
fn is_content(error: &std::io::Error) -> bool {
    use std::io::ErrorKind;
    matches!(
        error.kind(),
        ErrorKind::InvalidData | ErrorKind::UnexpectedEof | ErrorKind::InvalidInput
    )
}

fn unreadable(path: &Path, error: &std::io::Error) -> RunError {
    if is_content(error) {
        RunError::at(path.display(), error)
    } else {
        RunError::file(path, error)
    }
}

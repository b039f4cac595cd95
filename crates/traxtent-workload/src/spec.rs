//! Workload grammar 2: a synthetic workload in one line, or as a TOML table with the same keys.
//!
//! ```text
//! workload := kind { "," key "=" value }
//! kind     := "random" | "sequential" | "mixed"
//! ```
//!
//! `docs/reference/workloads.md` describes every key, and [`WORKLOAD_KEYS`] lists them.
//! [`WorkloadSpec::set`] is the only place where a value is parsed, so that a command line, a TOML
//! file and an override of a single value follow the same rules. The text form of a specification
//! ([`fmt::Display`]) parses back to the same specification.

use std::fmt;
use std::ops::Range;
use std::str::FromStr;

use super::distribution::Distribution;
use super::quantity::{self, Length, LengthUnit};
use traxtent_units::{Lbn, SimTime};

/// The version of the grammar. In grammar 1, the default of `align` was `none`.
pub const GRAMMAR_VERSION: u32 = 2;

/// Every key and its meaning, in the order in which a specification is written.
pub const WORKLOAD_KEYS: &[(&str, &str)] = &[
    ("count", "number of requests; default 10000"),
    (
        "time",
        "simulated time after which no request is issued; default none",
    ),
    ("seed", "whole number; default 1"),
    ("read", "share of reads, such as 0.66 or 66%; default 1"),
    (
        "fua",
        "share of the writes that force unit access; default 0",
    ),
    (
        "size",
        "a length or distribution of lengths, or track; default 8",
    ),
    (
        "round",
        "sizes are rounded up to multiples of this length; default 1",
    ),
    (
        "align",
        "where requests start: at any sector (none), at tracks (track), at multiples of a length, or at multiples of \
         the smallest size, as in fio, except that sequential requests start where the last one ended (size); \
         default size",
    ),
    ("offset", "length added to an aligned start; default 0"),
    (
        "seq",
        "probability that a request starts where the last one ended, or at the next aligned start; mixed only, \
         default 0.5",
    ),
    (
        "local",
        "probability that a request starts near the start of the last one; random and mixed only, default 0",
    ),
    (
        "distance",
        "distribution of the distance of local requests, of either sign; required with local",
    ),
    (
        "lbns",
        "range of LBNs used, such as 0..1000000, end excluded; default the whole drive",
    ),
    (
        "zone",
        "zone used, counted from 0 at the first LBN; cannot be combined with lbns",
    ),
    (
        "outstanding",
        "closed: number of outstanding requests; default 1",
    ),
    (
        "think",
        "closed: distribution of the pause between a completion and the next request; default 0",
    ),
    (
        "arrive",
        "open: distribution of the time between arrivals; cannot be combined with outstanding or think",
    ),
];

/// The largest number of outstanding requests of a closed workload.
pub const WORKLOAD_OUTSTANDING_MAX: u32 = 65_536;

/// The access pattern, unless keys override it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WorkloadKind {
    /// Anywhere in the region, with equal probability.
    Random,
    /// Each request starts at the first permitted LBN at or after the end of the last one. The
    /// first starts at the region's first permitted LBN. A request that does not fit the region
    /// restarts the sequence there.
    Sequential,
    /// Some requests are random and some sequential.
    Mixed,
}

/// The sizes of requests.
#[derive(Clone, Debug, PartialEq)]
pub enum RequestSizes {
    /// The size of the track on which the request starts.
    Track,
    /// Drawn from a distribution.
    Drawn(Length),
}

/// The LBNs at which requests may start.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum StartAlignment {
    /// Random and local requests start at multiples of the smallest size, like fio's `blockalign`;
    /// sequential requests start where the last one ended. If the size is that of a track, requests
    /// start at any sector.
    Size,
    /// At any sector.
    None,
    /// At the first LBN of a track.
    Track,
    /// At multiples of a length.
    Every(LengthUnit, u64),
}

/// The part of the drive that is used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum WorkloadRegion {
    /// All of it.
    Whole,
    /// The LBNs of a half-open range.
    Lbns(Range<Lbn>),
    /// One zone, counted from 0 in LBN order.
    Zone(u32),
}

/// The rule that determines when requests are issued.
#[derive(Clone, Debug, PartialEq)]
pub enum ArrivalModel {
    /// The number of outstanding requests is limited. Each completion is followed by a pause, and
    /// then by the next request.
    Closed {
        /// The number of outstanding requests; fewer during pauses.
        outstanding: u32,
        /// The pause in milliseconds.
        think: Distribution,
    },
    /// Arrivals do not wait for completions. The first request arrives one gap after time 0.
    Open {
        /// The time between arrivals in milliseconds.
        gap: Distribution,
    },
}

/// A synthetic workload. It is created by parsing, which checks it as a whole, or by
/// [`WorkloadSpec::new`].
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub struct WorkloadSpec {
    /// The access pattern.
    pub kind: WorkloadKind,
    /// The number of requests.
    pub count: u64,
    /// No request is issued after this instant.
    pub end_time: Option<SimTime>,
    /// The seed of all random numbers.
    pub seed: u64,
    /// The share of reads.
    pub read: f64,
    /// The share of the writes that force unit access.
    pub fua: f64,
    /// The sizes of requests.
    pub size: RequestSizes,
    /// Sizes are rounded up to multiples of this length.
    pub size_multiple: (LengthUnit, u64),
    /// The LBNs at which requests may start.
    pub align: StartAlignment,
    /// The length added to an aligned start.
    pub offset: (LengthUnit, u64),
    /// The probability of a sequential start.
    pub sequential: f64,
    /// The probability of a local start.
    pub local: f64,
    /// The distance of local starts.
    pub distance: Option<Length>,
    /// The part of the drive used.
    pub region: WorkloadRegion,
    /// The rule that determines when requests are issued.
    pub pace: ArrivalModel,
}

/// An error in a workload, described in one line.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("workload: {}{problem}", line_prefix(*line))]
#[non_exhaustive]
pub struct WorkloadError {
    /// The line of a TOML file, counted from 1.
    pub line: Option<usize>,
    /// The problem.
    pub problem: WorkloadProblem,
}

/// A problem of a workload, without its position.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum WorkloadProblem {
    /// A value that does not fit its key.
    #[error("{key}: {value:?}: {expected}")]
    Value {
        /// The key.
        key: String,
        /// The value found.
        value: String,
        /// The values expected.
        expected: String,
    },
    /// An unknown key.
    #[error("unknown key {key:?}{}; the keys are {}", hint(key), key_names())]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A key that is given twice.
    #[error("{key} is given twice")]
    Repeated {
        /// The key.
        key: String,
    },
    /// Text that is not `key=value`.
    #[error("{text:?}: expected KEY=VALUE; {}", grammar())]
    NoValue {
        /// The text found.
        text: String,
    },
    /// A missing or unknown kind.
    #[error("unknown kind {text:?}; {}", grammar())]
    Kind {
        /// The text found.
        text: String,
    },
    /// Keys that contradict each other, a key that needs another, or requests that do not fit the
    /// drive.
    #[error("{key}: {reason}")]
    Conflict {
        /// The key.
        key: &'static str,
        /// The reason for the conflict.
        reason: String,
    },
    /// Text that is not valid TOML, a value of a wrong type, an unknown grammar, or a missing kind.
    #[error("{message}")]
    Toml {
        /// A description of the error.
        message: String,
    },
}

impl From<WorkloadProblem> for WorkloadError {
    fn from(problem: WorkloadProblem) -> WorkloadError {
        WorkloadError {
            line: None,
            problem,
        }
    }
}

fn line_prefix(line: Option<usize>) -> String {
    line.map_or_else(String::new, |line| format!("line {line}: "))
}

/// Describes a line of the grammar.
fn grammar() -> String {
    format!(
        "a workload is KIND or KIND,KEY=VALUE,…; the kinds are random, sequential, mixed; the keys are {}",
        key_names()
    )
}

/// The question whether another key was meant, if this is fio's or another program's name for it.
fn hint(key: &str) -> String {
    let meant = match key {
        "iodepth" | "depth" | "queue_depth" | "qd" => "outstanding",
        "bs" | "blocksize" | "block_size" => "size",
        "rw" | "readwrite" | "rwmixread" => "read",
        "runtime" | "duration" => "time",
        "number_ios" | "requests" => "count",
        "blockalign" | "ba" => "align",
        "thinktime" => "think",
        "randseed" => "seed",
        _ => return String::new(),
    };
    format!(" (did you mean {meant}?)")
}

fn key_names() -> String {
    WORKLOAD_KEYS
        .iter()
        .map(|key| key.0)
        .collect::<Vec<_>>()
        .join(", ")
}

impl WorkloadSpec {
    /// Creates a specification of the given kind with every key at its default.
    pub fn new(kind: WorkloadKind) -> WorkloadSpec {
        WorkloadSpec {
            kind,
            count: 10_000,
            end_time: None,
            seed: 1,
            read: 1.0,
            fua: 0.0,
            size: RequestSizes::Drawn(Length::sectors(8)),
            size_multiple: (LengthUnit::Sectors, 1),
            align: StartAlignment::Size,
            offset: (LengthUnit::Sectors, 0),
            sequential: match kind {
                WorkloadKind::Random => 0.0,
                WorkloadKind::Sequential => 1.0,
                WorkloadKind::Mixed => 0.5,
            },
            local: 0.0,
            distance: None,
            region: WorkloadRegion::Whole,
            pace: ArrivalModel::Closed {
                outstanding: 1,
                think: Distribution::Constant(0.0),
            },
        }
    }

    /// Sets one key. Keys may come in any order; [`WorkloadSpec::check`] checks the whole.
    ///
    /// # Errors
    /// Returns an error if the key is unknown, if the value does not fit it, or if it is a key of
    /// closed workloads although `arrive` is set.
    pub fn set(&mut self, key: &str, value: &str) -> Result<(), WorkloadError> {
        let value = value.trim();
        let refuse = |expected: String| WorkloadProblem::Value {
            key: key.to_owned(),
            value: value.to_owned(),
            expected,
        };
        match key {
            "count" => self.count = quantity::whole(value, 1..=u64::MAX).map_err(refuse)?,
            "time" => {
                let ms = quantity::time_ms(value).map_err(refuse)?;
                self.end_time = if value == "none" {
                    None
                } else {
                    Some(SimTime::from_ms(ms))
                };
            }
            "seed" => self.seed = quantity::whole(value, 0..=u64::MAX).map_err(refuse)?,
            "read" => self.read = quantity::share(value).map_err(refuse)?,
            "fua" => self.fua = quantity::share(value).map_err(refuse)?,
            "size" if value == "track" => self.size = RequestSizes::Track,
            "size" => self.size = RequestSizes::Drawn(Length::parse(value).map_err(refuse)?),
            "round" => self.size_multiple = quantity::length(value, 1).map_err(refuse)?,
            "align" => {
                self.align = match value {
                    "size" => StartAlignment::Size,
                    "none" => StartAlignment::None,
                    "track" => StartAlignment::Track,
                    _ => {
                        let (unit, length) = quantity::length(value, 1).map_err(|why| {
                            refuse(format!("expected size, none, track or a length: {why}"))
                        })?;
                        StartAlignment::Every(unit, length)
                    }
                }
            }
            "offset" => self.offset = quantity::length(value, 0).map_err(refuse)?,
            "seq" => self.sequential = quantity::share(value).map_err(refuse)?,
            "local" => self.local = quantity::share(value).map_err(refuse)?,
            "distance" => self.distance = Some(Length::parse(value).map_err(refuse)?),
            "lbns" => self.region = WorkloadRegion::Lbns(quantity::lbns(value).map_err(refuse)?),
            "zone" => {
                let zone = quantity::whole(value, 0..=u64::from(u32::MAX)).map_err(refuse)?;
                self.region = WorkloadRegion::Zone(zone as u32);
            }
            "outstanding" => {
                let number = quantity::whole(value, 1..=u64::from(WORKLOAD_OUTSTANDING_MAX))
                    .map_err(refuse)? as u32;
                match &mut self.pace {
                    ArrivalModel::Closed { outstanding, .. } => *outstanding = number,
                    ArrivalModel::Open { .. } => return Err(open_and_closed("outstanding")),
                }
            }
            "think" => {
                let pause = quantity::times(value).map_err(refuse)?;
                match &mut self.pace {
                    ArrivalModel::Closed { think, .. } => *think = pause,
                    ArrivalModel::Open { .. } => return Err(open_and_closed("think")),
                }
            }
            "arrive" => {
                let gap = quantity::times(value).map_err(refuse)?;
                // A default may be replaced.
                let default = WorkloadSpec::new(self.kind).pace;
                if matches!(self.pace, ArrivalModel::Closed { .. }) && self.pace != default {
                    return Err(open_and_closed("arrive"));
                }
                self.pace = ArrivalModel::Open { gap };
            }
            _ => {
                return Err(WorkloadProblem::UnknownKey {
                    key: key.to_owned(),
                }
                .into());
            }
        }
        Ok(())
    }

    /// Sets several keys, each at most once, and checks the whole.
    ///
    /// # Errors
    /// Returns the first error found.
    pub fn set_all<'a>(
        &mut self,
        pairs: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Result<(), WorkloadError> {
        let mut seen: Vec<&str> = Vec::new();
        for (key, value) in pairs {
            self.set_once(&mut seen, key, value)?;
        }
        self.check()
    }

    /// Sets a key that occurs in the same text as the keys in `seen`, and adds it to them.
    pub(super) fn set_once<'a>(
        &mut self,
        seen: &mut Vec<&'a str>,
        key: &'a str,
        value: &str,
    ) -> Result<(), WorkloadError> {
        if seen.contains(&key) {
            return Err(WorkloadProblem::Repeated {
                key: key.to_owned(),
            }
            .into());
        }
        if (key == "zone" && seen.contains(&"lbns")) || (key == "lbns" && seen.contains(&"zone")) {
            return Err(WorkloadProblem::Conflict {
                key: "zone",
                reason: "cannot be combined with lbns".to_owned(),
            }
            .into());
        }
        if key == "arrive" && (seen.contains(&"outstanding") || seen.contains(&"think")) {
            return Err(open_and_closed("arrive"));
        }
        seen.push(key);
        self.set(key, value)
    }

    /// Returns whether the workload depends on a drive's tracks or zones.
    pub fn needs_tracks(&self) -> bool {
        self.size == RequestSizes::Track
            || self.align == StartAlignment::Track
            || matches!(self.region, WorkloadRegion::Zone(_))
    }

    /// Checks the constraints between keys.
    ///
    /// # Errors
    /// Returns an error if keys contradict each other, or if a key that another needs is missing.
    pub fn check(&self) -> Result<(), WorkloadError> {
        let conflict = |key, reason: &str| {
            Err(WorkloadError::from(WorkloadProblem::Conflict {
                key,
                reason: reason.to_owned(),
            }))
        };
        match self.kind {
            WorkloadKind::Random if self.sequential != 0.0 => {
                conflict("seq", "possible only in a mixed workload")
            }
            WorkloadKind::Sequential if self.sequential != 1.0 => {
                conflict("seq", "possible only in a mixed workload")
            }
            WorkloadKind::Sequential if self.local != 0.0 => {
                conflict("local", "possible only in a random or mixed workload")
            }
            _ if self.sequential + self.local > 1.0 => {
                let reason = format!(
                    "seq {} plus local exceeds 1; reduce one of them",
                    self.sequential
                );
                Err(WorkloadProblem::Conflict {
                    key: "local",
                    reason,
                }
                .into())
            }
            _ if self.local > 0.0 && self.distance.is_none() => {
                conflict("local", "needs distance, such as distance=normal:0:10000")
            }
            _ if self.local == 0.0 && self.distance.is_some() => {
                conflict("distance", "needs local, such as local=30%")
            }
            _ if matches!(self.align, StartAlignment::Size | StartAlignment::None)
                && self.offset.1 != 0 =>
            {
                conflict("offset", "needs align=track or align=LENGTH")
            }
            _ if self.size == RequestSizes::Track && self.size_multiple.1 != 1 => {
                conflict("round", "cannot be combined with size=track")
            }
            _ => Ok(()),
        }
    }
}

fn open_and_closed(key: &'static str) -> WorkloadError {
    WorkloadProblem::Conflict {
        key,
        reason: "a workload is open (arrive) or closed (outstanding, think), not both".into(),
    }
    .into()
}

impl FromStr for WorkloadKind {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<WorkloadKind, WorkloadError> {
        match text {
            "random" => Ok(WorkloadKind::Random),
            "sequential" => Ok(WorkloadKind::Sequential),
            "mixed" => Ok(WorkloadKind::Mixed),
            _ => Err(WorkloadProblem::Kind {
                text: text.to_owned(),
            }
            .into()),
        }
    }
}

impl fmt::Display for WorkloadKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(match self {
            WorkloadKind::Random => "random",
            WorkloadKind::Sequential => "sequential",
            WorkloadKind::Mixed => "mixed",
        })
    }
}

impl FromStr for WorkloadSpec {
    type Err = WorkloadError;

    fn from_str(text: &str) -> Result<WorkloadSpec, WorkloadError> {
        let mut parts = text.split(',').map(str::trim);
        let kind: WorkloadKind = parts.next().unwrap_or_default().parse()?;
        let mut spec = WorkloadSpec::new(kind);
        let pairs = parts
            .map(|part| match part.split_once('=') {
                Some((key, value)) => Ok((key.trim(), value)),
                None => Err(WorkloadProblem::NoValue {
                    text: part.to_owned(),
                }),
            })
            .collect::<Result<Vec<_>, _>>()?;
        spec.set_all(pairs)?;
        Ok(spec)
    }
}

impl fmt::Display for WorkloadSpec {
    /// Writes the kind and every key that differs from its default.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let default = WorkloadSpec::new(self.kind);
        write!(f, "{}", self.kind)?;
        if self.count != default.count {
            write!(f, ",count={}", self.count)?;
        }
        if let Some(time) = self.end_time {
            write!(f, ",time={}ms", time.as_ms())?;
        }
        if self.seed != default.seed {
            write!(f, ",seed={}", self.seed)?;
        }
        if self.read != default.read {
            write!(f, ",read={}", self.read)?;
        }
        if self.fua != default.fua {
            write!(f, ",fua={}", self.fua)?;
        }
        match &self.size {
            RequestSizes::Track => write!(f, ",size=track")?,
            size @ RequestSizes::Drawn(length) if *size != default.size => {
                write!(f, ",size={length}")?
            }
            RequestSizes::Drawn(_) => {}
        }
        if self.size_multiple != default.size_multiple {
            write!(f, ",round={}{}", self.size_multiple.1, self.size_multiple.0)?;
        }
        match self.align {
            StartAlignment::Size => {}
            StartAlignment::None => write!(f, ",align=none")?,
            StartAlignment::Track => write!(f, ",align=track")?,
            StartAlignment::Every(unit, length) => write!(f, ",align={length}{unit}")?,
        }
        if self.offset != default.offset {
            write!(f, ",offset={}{}", self.offset.1, self.offset.0)?;
        }
        if self.sequential != default.sequential {
            write!(f, ",seq={}", self.sequential)?;
        }
        if self.local != default.local {
            write!(f, ",local={}", self.local)?;
        }
        if let Some(distance) = &self.distance {
            write!(f, ",distance={distance}")?;
        }
        match &self.region {
            WorkloadRegion::Whole => {}
            WorkloadRegion::Lbns(range) => write!(f, ",lbns={}..{}", range.start, range.end)?,
            WorkloadRegion::Zone(zone) => write!(f, ",zone={zone}")?,
        }
        match &self.pace {
            ArrivalModel::Closed { outstanding, think } => {
                if *outstanding != 1 {
                    write!(f, ",outstanding={outstanding}")?;
                }
                if *think != Distribution::Constant(0.0) {
                    write!(f, ",think=")?;
                    think.write(f, "ms")?;
                }
            }
            ArrivalModel::Open { gap } => {
                write!(f, ",arrive=")?;
                gap.write(f, "ms")?;
            }
        }
        Ok(())
    }
}

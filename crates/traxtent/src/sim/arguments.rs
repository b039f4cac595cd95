//! Options for reading and replaying traces, shared by the commands that accept traces.

use traxtent_run::TracePlan;
use traxtent_workload::trace::{BlkparseEvent, ColumnSpec, ColumnText};
use traxtent_workload::{ReplayPace, TraceFormat};

use crate::failure::{Failure, Result};

/// The options. A command flattens them into its own.
#[derive(clap::Args, Clone, Debug)]
pub(crate) struct TraceArguments {
    /// Replay only the requests of this device of a trace, on the drive of this number or, if there
    /// is only one drive, on that
    #[arg(long, value_name = "NUMBER")]
    device: Option<u32>,
    /// The trace's format, if it is not detected automatically
    #[arg(long, value_name = "NAME", value_parser = crate::parse::formats())]
    format: Option<TraceFormat>,
    /// Read the trace as text with these columns, by number or by name in the first line, such as
    /// time=1,op=2,lbn=3,sectors=4,response=5; also completed=, pause=, offset=, bytes=, fua=,
    /// device= and file=
    #[arg(long, value_name = "KEY=COLUMN,…", conflicts_with = "format")]
    columns: Option<String>,
    /// One unit for all times (s, ms, us, 100ns or ns), or one for each column, such as
    /// time=us,response=ms; and the size in bytes of the blocks in which addresses and lengths are
    /// given, such as lbn=512
    #[arg(long, value_name = "UNIT,…", requires = "columns")]
    units: Vec<String>,
    /// The separator of columns: a single character, `tab` or `blanks` [default: detected from the
    /// first line]
    #[arg(long, value_name = "CHARACTER", requires = "columns")]
    delimiter: Option<String>,
    /// Use only the lines whose COLUMN has one of these values; may be repeated, and all conditions
    /// must hold
    #[arg(long = "where", value_name = "COLUMN=VALUE,…", requires = "columns")]
    filters: Vec<String>,
    /// Values of op= that mean a read [default: R, read or 0]
    #[arg(long, value_name = "VALUE,…", requires = "columns")]
    reads: Vec<String>,
    /// Values of op= that mean a write [default: W, write or 1]
    #[arg(long, value_name = "VALUE,…", requires = "columns")]
    writes: Vec<String>,
    /// The event of blkparse output that counts as a request's arrival: dispatch to the drive, or
    /// entry into the queue [default: dispatch]
    #[arg(long, value_name = "EVENT", value_enum)]
    arrival: Option<ArrivalEvent>,
    /// When a trace's requests are issued. `recorded`: at the recorded times. `semi-closed`: when
    /// the previous request has completed and the recorded pause has passed. `closed:N`: when fewer
    /// than N requests are outstanding. The default is semi-closed for traces that record pauses,
    /// otherwise recorded. In `validate` and `calibrate`, the default is semi-closed also for
    /// traces in which at most 1 % of the requests overlap
    #[arg(long, value_name = "PACE", value_parser = crate::parse::pace)]
    replay: Option<ReplayPace>,
    /// Multiply the speed of recorded arrivals by this factor
    #[arg(long, value_name = "FACTOR", value_parser = crate::parse::speed)]
    speed: Option<f64>,
}

#[derive(clap::ValueEnum, Clone, Copy, Debug)]
#[value(rename_all = "lower")]
enum ArrivalEvent {
    Dispatch,
    Queue,
}

impl TraceArguments {
    /// Returns the plan that the options describe.
    ///
    /// # Errors
    /// Returns an error if an option is malformed, or if the options contradict each other.
    pub(crate) fn plan(&self) -> Result<TracePlan> {
        Ok(TracePlan {
            format: self.format,
            columns: self.spec()?,
            blkparse_event: self.arrival.map(|event| match event {
                ArrivalEvent::Dispatch => BlkparseEvent::Dispatch,
                ArrivalEvent::Queue => BlkparseEvent::Queue,
            }),
            pace: self.replay,
            speed: self.speed,
            device: self.device,
            can_add_drives: false,
        })
    }

    fn spec(&self) -> Result<Option<ColumnSpec>> {
        let Some(columns) = &self.columns else {
            return Ok(None);
        };
        let spec = ColumnSpec::parse(&ColumnText {
            columns,
            units: &strs(&self.units),
            delimiter: self.delimiter.as_deref(),
            filters: &strs(&self.filters),
            reads: &strs(&self.reads),
            writes: &strs(&self.writes),
        });
        spec.map(Some)
            .map_err(|error| Failure::input(format!("--{error}")))
    }
}

fn strs(texts: &[String]) -> Vec<&str> {
    texts.iter().map(String::as_str).collect()
}

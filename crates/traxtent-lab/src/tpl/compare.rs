//! The alternatives to replicas around the track: the same drive used only up to the remaining
//! capacity (short-stroked), two drives with the same data, and a deep queue.

use std::fs::File;
use std::io::BufReader;

use traxtent_layout::tpl::{PartitionBounds, PartitionCount, Tpl};
use traxtent_units::request::Op;
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::{TraceFormat, TraceOptions, TraceReader};

use super::host::{
    BLOCK, ClosedLoad, HostRequest, Mirror, OpenLoad, ReplicaSync, RequestKind, RequestSource,
    RunResult, SurveyedDrive, TplHost, fill,
};
use super::writes::RATE;
use crate::bench::{Bench, LabError};

/// The number of requests of a measurement.
const REQUESTS: u64 = 5000;

/// The numbers of outstanding requests.
pub const DEPTHS: [usize; 3] = [1, 8, 32];

/// The placement of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPlacement {
    /// This number of replicas around the track, over the whole drive. Writes reach them as the
    /// head passes.
    Partitions(u32),
    /// One replica, on the first part of the drive: one in this number of LBNs.
    ShortStroke(u32),
    /// One replica on each of two drives, over the whole of both.
    Mirror,
}

/// The results of a layout.
#[derive(Clone, Copy, Debug)]
pub struct LayoutResult {
    /// The capacity, over the drive's.
    pub capacity: f64,
    /// The mean response time at [`RATE`], in milliseconds.
    pub response_ms: f64,
    /// The requests per second with each of [`DEPTHS`].
    pub rates: [f64; 3],
}

enum System {
    One(Box<TplHost>),
    Two(Box<Mirror>),
}

impl System {
    fn run(&mut self, load: &mut dyn RequestSource) -> Result<RunResult, LabError> {
        match self {
            System::One(host) => host.run(load),
            System::Two(mirror) => mirror.run(load),
        }
    }
}

fn layout(drive: &SurveyedDrive, layout: BlockPlacement) -> Result<Tpl, LabError> {
    let (count, part) = match layout {
        BlockPlacement::Partitions(count) => (PartitionCount::new(count)?, 1),
        BlockPlacement::ShortStroke(part) => (PartitionCount::ONE, part),
        BlockPlacement::Mirror => (PartitionCount::ONE, 1),
    };
    let end = Lbn(drive.map.end().0 / u64::from(part));
    let mut tpl = drive.layout(PartitionBounds::new(count, count)?, end)?;
    let blocks = tpl.shape().blocks();
    fill(&mut tpl, 0..blocks, false)?;
    Ok(tpl)
}

fn system(drive: &SurveyedDrive, of: BlockPlacement, tpl: &Tpl) -> System {
    let host = || drive.host(tpl.clone(), ReplicaSync::Passing);
    match of {
        BlockPlacement::Mirror => System::Two(Box::new(Mirror([host(), host()]))),
        _ => System::One(Box::new(host())),
    }
}

/// Measures random requests for single blocks, with a share `reads` of reads.
///
/// # Errors
/// Returns an error if the layout does not fit the drive.
pub fn random(
    bench: &Bench,
    drive: &SurveyedDrive,
    of: BlockPlacement,
    reads: f64,
) -> Result<LayoutResult, LabError> {
    let tpl = layout(drive, of)?;
    let blocks = tpl.shape().blocks();
    let count = bench.scaled_count(REQUESTS);
    let until = SimTime::from_ms(count as f64 / RATE * 1000.0);
    let mut open = OpenLoad::new(
        bench.seed,
        blocks,
        reads,
        (|_, rate| rate, RATE),
        (SimTime::ZERO, until),
    );
    let response_ms = system(drive, of, &tpl).run(&mut open)?.response_ms.mean();
    let mut rates = [0.0; 3];
    for (rate, depth) in rates.iter_mut().zip(DEPTHS) {
        let mut closed = ClosedLoad::new(bench.seed, blocks, reads, count, depth, SimTime::ZERO);
        *rate = system(drive, of, &tpl).run(&mut closed)?.rate();
    }
    Ok(LayoutResult {
        capacity: blocks as f64 * f64::from(BLOCK) / drive.map.end().0 as f64,
        response_ms,
        rates,
    })
}

/// Replays the trace that was measured on the drive and returns the mean response time. Each
/// request follows the previous completion after the recorded pause. Addresses are folded into the
/// first `1 / part` of the drive's.
///
/// # Errors
/// Returns an error if there is no trace, or the layout does not fit the drive.
pub fn trace(
    bench: &Bench,
    drive: &SurveyedDrive,
    of: BlockPlacement,
    part: u32,
) -> Result<f64, LabError> {
    let path = super::trace_of(bench)?;
    let file = File::open(&path).map_err(|error| LabError::file(&path, error))?;
    let format = TraceFormat::DiskSimValidate;
    let tpl = layout(drive, of)?;
    let blocks = tpl.shape().blocks();
    let mut asked = Vec::new();
    let mut pause = Span::ZERO;
    for record in TraceReader::new(format, BufReader::new(file), TraceOptions::default()) {
        let record = record.map_err(|error| LabError::Host(error.to_string()))?;
        let request = record.request;
        let first = request.lbn.0 / u64::from(part) / u64::from(BLOCK);
        let size = u64::from(request.sectors).div_ceil(u64::from(BLOCK)).max(1);
        let first = first.min(blocks.saturating_sub(size));
        let gap = std::mem::replace(&mut pause, record.pause.unwrap_or_default());
        asked.push((gap, request.op == Op::Write, first, size));
    }
    asked.truncate(bench.scaled_count(10_000) as usize);
    asked.reverse();
    let mut load = Traced {
        asked,
        last: SimTime::ZERO,
        waiting: false,
    };
    Ok(system(drive, of, &tpl).run(&mut load)?.response_ms.mean())
}

/// Requests one after another, with the recorded pauses.
struct Traced {
    /// The requests in reverse order.
    asked: Vec<(Span, bool, u64, u64)>,
    last: SimTime,
    waiting: bool,
}

impl RequestSource for Traced {
    fn due(&self) -> Option<SimTime> {
        let (gap, ..) = self.asked.last()?;
        (!self.waiting).then_some(self.last + *gap)
    }

    fn take(&mut self) -> HostRequest {
        let at = self.due().expect("one is due");
        let (_, write, block, blocks) = self.asked.pop().expect("one is due");
        self.waiting = true;
        HostRequest {
            at,
            what: if write {
                RequestKind::Write
            } else {
                RequestKind::Read
            },
            block,
            blocks,
        }
    }

    fn complete(&mut self, at: SimTime) {
        self.last = at;
        self.waiting = false;
    }
}

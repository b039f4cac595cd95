//! The alternatives to replicas around the track: the same drive short-stroked to the capacity that
//! the replicas would leave, two drives with the same data, and a deep queue.

use std::fs::File;
use std::io::BufReader;

use traxtent_layout::tpl::{PartitionBounds, PartitionCount, Tpl, TplError};
use traxtent_units::request::Op;
use traxtent_units::{Lbn, SimTime};
use traxtent_workload::{
    NextStep, Replay, ReplayPace, RequestSource, TraceError, TraceFormat, TraceOptions,
    TraceReader, TraceRecord,
};

use super::host::{
    BLOCK, ClosedLoad, HostLoad, HostRequest, Mirror, OpenLoad, ReplicaSync, RequestKind,
    RunResult, SurveyedDrive, TplHost, fill,
};
use super::writes::RATE;
use crate::bench::{Bench, LabError};

/// The number of requests in a measurement.
const REQUESTS: u64 = 5000;

/// The numbers of outstanding requests.
pub const DEPTHS: [usize; 3] = [1, 8, 32];

/// The placement of the blocks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum BlockPlacement {
    /// This number of replicas around the track, over the whole drive. A write updates the nearest
    /// replica; the others follow as in [`ReplicaSync::Passing`].
    Partitions(u32),
    /// One replica, on the first `1/n` of the drive, where `n` is this number.
    ShortStroke(u32),
    /// One replica on each of two drives, over the whole of both.
    Mirror,
}

/// The results of a layout.
#[derive(Clone, Copy, Debug)]
pub struct LayoutResult {
    /// The capacity, as a share of the drive's.
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
    fn run(&mut self, load: &mut dyn HostLoad) -> Result<RunResult, LabError> {
        match self {
            System::One(host) => host.run(load),
            System::Two(mirror) => mirror.run(load),
        }
    }
}

fn layout(drive: &SurveyedDrive, placement: BlockPlacement) -> Result<Tpl, LabError> {
    let (count, divisor) = match placement {
        BlockPlacement::ShortStroke(0) => {
            return Err(LabError::Tpl(TplError::InvalidValue {
                name: "the divisor of a short-stroked drive's capacity",
                value: 0,
                expected: "at least 1",
            }));
        }
        BlockPlacement::Partitions(count) => (PartitionCount::new(count)?, 1),
        BlockPlacement::ShortStroke(divisor) => (PartitionCount::ONE, divisor),
        BlockPlacement::Mirror => (PartitionCount::ONE, 1),
    };
    let end = Lbn(drive.map.end().0 / u64::from(divisor));
    let mut tpl = drive.layout(PartitionBounds::new(count, count)?, end)?;
    let blocks = tpl.shape().blocks();
    fill(&mut tpl, 0..blocks, false)?;
    Ok(tpl)
}

fn system(drive: &SurveyedDrive, placement: BlockPlacement, tpl: &Tpl) -> System {
    let host = || drive.host(tpl.clone(), ReplicaSync::Passing);
    match placement {
        BlockPlacement::Mirror => System::Two(Box::new(Mirror([host(), host()]))),
        _ => System::One(Box::new(host())),
    }
}

/// Measures random requests for single blocks, of which `read_share` are reads.
///
/// # Errors
/// Returns an error if the number of partitions or the short stroke's divisor is impossible, or the
/// layout does not fit the drive.
pub fn random(
    bench: &Bench,
    drive: &SurveyedDrive,
    placement: BlockPlacement,
    read_share: f64,
) -> Result<LayoutResult, LabError> {
    let tpl = layout(drive, placement)?;
    let blocks = tpl.shape().blocks();
    let count = bench.scaled_count(REQUESTS);
    let until = SimTime::from_ms(count as f64 / RATE * 1000.0);
    let mut open = OpenLoad::new(
        bench.seed,
        blocks,
        read_share,
        (|_, rate| rate, RATE),
        (SimTime::ZERO, until),
    );
    let response_ms = system(drive, placement, &tpl)
        .run(&mut open)?
        .response_ms
        .mean();
    let mut rates = [0.0; 3];
    for (rate, depth) in rates.iter_mut().zip(DEPTHS) {
        let mut closed =
            ClosedLoad::new(bench.seed, blocks, read_share, count, depth, SimTime::ZERO);
        *rate = system(drive, placement, &tpl).run(&mut closed)?.rate();
    }
    Ok(LayoutResult {
        capacity: blocks as f64 * f64::from(BLOCK) / drive.map.end().0 as f64,
        response_ms,
        rates,
    })
}

/// Replays up to 10,000 requests of the trace that was measured on the drive, and returns the mean
/// response time in milliseconds. Each request follows the previous completion after the recorded
/// pause. LBNs are divided by `divisor`, so that they fit a layout with `1/divisor` of the drive's
/// capacity.
///
/// # Errors
/// Returns an error if there is no trace, if it cannot be read, if the number of partitions or the
/// short stroke's divisor is impossible, or if the layout does not fit the drive.
pub fn trace(
    bench: &Bench,
    drive: &SurveyedDrive,
    placement: BlockPlacement,
    divisor: u32,
) -> Result<f64, LabError> {
    let path = super::trace_of(bench)?;
    let file = File::open(&path).map_err(|error| LabError::file(&path, error))?;
    let format = TraceFormat::DiskSimValidate;
    let tpl = layout(drive, placement)?;
    let blocks = tpl.shape().blocks();
    let records = TraceReader::new(format, BufReader::new(file), TraceOptions::default());
    let records = records.collect::<Result<Vec<TraceRecord>, _>>();
    let mut records = records.map_err(|error| LabError::Host(error.to_string()))?;
    records.truncate(bench.scaled_count(10_000) as usize);
    let mut load = Traced {
        replay: Replay::new(records.into_iter().map(Ok), ReplayPace::SemiClosed),
        divisor: u64::from(divisor),
        blocks,
    };
    Ok(system(drive, placement, &tpl)
        .run(&mut load)?
        .response_ms
        .mean())
}

/// A replayed trace, converted to blocks of a layout.
struct Traced<I> {
    replay: Replay<I>,
    /// The divisor of LBNs: the ratio of the drive's capacity to the layout's.
    divisor: u64,
    /// The number of blocks of the layout.
    blocks: u64,
}

impl<I: Iterator<Item = Result<TraceRecord, TraceError>>> HostLoad for Traced<I> {
    fn due(&mut self) -> Option<SimTime> {
        match self
            .replay
            .due()
            .expect("records of this format have pauses")
        {
            NextStep::At(at) => Some(at),
            NextStep::AfterCompletion | NextStep::Never => None,
        }
    }

    fn take(&mut self) -> HostRequest {
        let at = self.due().expect("one is due");
        let request = self.replay.take(at).expect("one is due").request;
        let first = request.lbn.0 / self.divisor / u64::from(BLOCK);
        let size = u64::from(request.sectors).div_ceil(u64::from(BLOCK)).max(1);
        HostRequest {
            at,
            kind: match request.op {
                Op::Write => RequestKind::Write,
                _ => RequestKind::Read,
            },
            block: first.min(self.blocks.saturating_sub(size)),
            blocks: size,
        }
    }

    fn complete(&mut self, at: SimTime) {
        // Only one request is outstanding at a time, so any tag will do.
        self.replay.complete(0, at);
    }
}

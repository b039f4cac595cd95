//! Writes that reach all replicas, for three synchronization policies and several numbers of
//! partitions (paper P, section 5).

use traxtent_layout::tpl::{PartitionBounds, PartitionCount};
use traxtent_units::SimTime;

use super::host::{ClosedLoad, OpenLoad, ReplicaSync, SurveyedDrive, TplHost, fill};
use crate::bench::{Bench, LabError};
use crate::figure::{BetterDirection, Figure, Panel, Series, Style};

/// The shares of reads.
pub const READ_SHARES: [f64; 4] = [1.0, 0.9, 0.66, 0.5];

/// The number of requests in a measurement.
const REQUESTS: u64 = 4000;

/// The number of requests that arrive per second, independently of completions: about 30 % of the
/// drive's maximum without replicas.
pub const RATE: f64 = 40.0;

/// The number of outstanding requests if the drive is always busy.
pub const DEPTH: usize = 8;

/// The results of a synchronization policy, with a share of reads and a number of partitions.
#[derive(Clone, Copy, Debug)]
pub struct SyncPoint {
    /// The synchronization policy.
    pub sync: ReplicaSync,
    /// The share of reads.
    pub read_share: f64,
    /// The number of partitions of each track.
    pub count: u32,
    /// The mean response time of requests that arrive independently, in milliseconds.
    pub response_ms: f64,
    /// The requests per second with [`DEPTH`] outstanding, including the time until all replicas
    /// are current.
    pub rate: f64,
}

/// Measures every combination of synchronization policy, share of reads and number of partitions.
/// All blocks of the layout are in use.
///
/// # Errors
/// Returns an error if the drive cannot be surveyed, or a layout does not fit.
pub fn surface(bench: &Bench) -> Result<Vec<SyncPoint>, LabError> {
    let drive = SurveyedDrive::new(bench)?;
    let mut points = Vec::new();
    for count in PartitionCount::ALL {
        let mut tpl = drive.layout(PartitionBounds::new(count, count)?, drive.map.end())?;
        let blocks = tpl.shape().blocks();
        // In the long run, writes have opened every page of the table.
        fill(&mut tpl, 0..blocks, false)?;
        for sync in ReplicaSync::ALL {
            for read_share in READ_SHARES {
                let mut host = drive.host(tpl.clone(), sync);
                let (response_ms, rate) = measure(bench, &mut host, blocks, read_share)?;
                points.push(SyncPoint {
                    sync,
                    read_share,
                    count: count.get(),
                    response_ms,
                    rate,
                });
            }
        }
    }
    Ok(points)
}

/// The mean response time at [`RATE`], and the throughput at [`DEPTH`].
fn measure(
    bench: &Bench,
    host: &mut TplHost,
    blocks: u64,
    read_share: f64,
) -> Result<(f64, f64), LabError> {
    let count = bench.scaled_count(REQUESTS);
    let mut busy = host.clone();
    let until = SimTime::from_ms(count as f64 / RATE * 1000.0);
    let mut open = OpenLoad::new(
        bench.seed,
        blocks,
        read_share,
        (|_, rate| rate, RATE),
        (host.now, until),
    );
    let response = host.run(&mut open)?.response_ms.mean();
    let mut closed = ClosedLoad::new(bench.seed, blocks, read_share, count, DEPTH, busy.now);
    Ok((response, busy.run(&mut closed)?.rate()))
}

/// The measurement with the lowest response time, for a synchronization policy and a share of
/// reads.
pub fn best(points: &[SyncPoint], sync: ReplicaSync, read_share: f64) -> Option<&SyncPoint> {
    let of = points
        .iter()
        .filter(|point| point.sync == sync && point.read_share == read_share);
    of.min_by(|a, b| a.response_ms.total_cmp(&b.response_ms))
}

/// Draws response time and throughput over partitions and shares of reads, one row of panels per
/// synchronization policy.
pub(crate) fn surfaces(bench: &Bench) -> Result<Figure, LabError> {
    let points = surface(bench)?;
    let panel =
        |sync: ReplicaSync, y: &str, better: BetterDirection, value: fn(&SyncPoint) -> f64| {
            let row = |read_share| Series {
                name: format!("{:.0} % reads", 100.0 * read_share),
                style: Style::Surface(better),
                points: points
                    .iter()
                    .filter(|point| point.sync == sync && point.read_share == read_share)
                    .map(|point| (f64::from(point.count), value(point)))
                    .collect(),
            };
            Panel {
                title: format!("Replicas are updated {}", sync.name()),
                x: "partitions of a track".to_owned(),
                y: y.to_owned(),
                series: READ_SHARES.into_iter().map(row).collect(),
                ..Panel::default()
            }
        };
    let panels = ReplicaSync::ALL.into_iter().flat_map(|sync| {
        let response = format!("mean response time (ms), {RATE} requests per second");
        let rate = format!("requests per second, {DEPTH} outstanding");
        [
            panel(sync, &response, BetterDirection::Less, |point| {
                point.response_ms
            }),
            panel(sync, &rate, BetterDirection::More, |point| point.rate),
        ]
    });
    Ok(Figure {
        panels: panels.collect(),
    })
}

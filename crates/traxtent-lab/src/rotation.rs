//! Rotational latency and head switches of random reads (paper T, section 2.2 and Fig. 3).

use traxtent_units::Span;

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series};

/// The number of reads, sufficient to determine a mean share of a revolution to a thousandth.
const READS: u32 = 100_000;

/// The number of steps of the request size in the figure.
const STEPS: u32 = 32;

/// The mean rotational latency of reads that begin at the start of a random track of the first
/// zone, as a share of a revolution. The drive's cache is disabled.
fn latency(bench: &Bench, sectors: u32, zero_latency: bool) -> Result<f64, LabError> {
    let access = if zero_latency { "true" } else { "false" };
    let bench = bench
        .with_parameter("access.zero_latency_read", access)?
        .with_parameter("cache.enabled", "false")?;
    let reads = format!("random,count={READS},size={sectors},align=track,zone=0");
    Ok(bench.run(&reads)?.part_ms("rotation") / bench.profile.revolution_ms())
}

/// The mean rotational latency in revolutions. With ordinary access: for one sector, a quarter,
/// half and three quarters of a track, and a track. With zero-latency access: for a track.
pub(crate) fn latencies(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let track = bench.track_sectors();
    let sizes = [1, track / 4, track / 2, track * 3 / 4, track];
    let mut latencies = Vec::new();
    for sectors in sizes {
        latencies.push(latency(bench, sectors, false)?);
    }
    latencies.push(latency(bench, track, true)?);
    Ok(latencies)
}

/// Draws rotational latency against request size (Fig. 3).
pub(crate) fn latency_curves(bench: &Bench) -> Result<Figure, LabError> {
    let track = bench.track_sectors();
    let curve = |name, zero_latency| -> Result<Series, LabError> {
        let points = (0..=STEPS).map(|step| {
            let sectors = (track * step / STEPS).max(1);
            let percent = 100.0 * f64::from(sectors) / f64::from(track);
            Ok((percent, latency(bench, sectors, zero_latency)?))
        });
        Ok(Series::line(name, points.collect::<Result<_, LabError>>()?))
    };
    Ok(Figure::of(Panel {
        title: "Rotational latency of reads that begin at a track".to_owned(),
        x: "request size, % of a track".to_owned(),
        y: "mean rotational latency, revolutions".to_owned(),
        series: vec![
            curve("ordinary access", false)?,
            curve("zero-latency access", true)?,
        ],
        ..Panel::default()
    }))
}

/// The share of random reads in the first zone that change tracks: 128 sectors, half a track, a
/// track.
pub(crate) fn switch_probabilities(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let track = bench.track_sectors();
    let share = |sectors| -> Result<f64, LabError> {
        let (mut reads, mut switches) = (0_u32, 0_u32);
        let workload = format!(
            "random,count={},size={sectors},align=none,zone=0",
            2 * READS
        );
        bench.run_observed(&workload, |read| {
            reads += 1;
            switches += u32::from(read.completion.breakdown.head_switch > Span::ZERO);
        })?;
        Ok(f64::from(switches) / f64::from(reads))
    };
    [128, track / 2, track].into_iter().map(share).collect()
}

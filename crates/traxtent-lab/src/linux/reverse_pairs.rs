//! Pairs of reads: a random sector, then the one before it. After half of the first reads, the main
//! drive keeps the sectors that its head passed before the requested one. The second sector is then
//! already in its buffer. All other second reads wait for most of a revolution.

use traxtent_probe::Target;
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_units::request::Request;

use super::{DRIVES_WITHOUT_ZERO_LATENCY, MAIN_DRIVE, host_ms};
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};

/// The number of pairs per drive.
const PAIRS: u64 = 10_000;

/// The number of steps of a distribution in the figure.
const STEPS: usize = 400;

/// The time to which each curve is extended, in milliseconds.
const SHOWN_MS: f64 = 7.0;

/// The upper bound on the time of a read that has not waited for the media: the fastest drive needs
/// 4 ms for a revolution.
const AT_ONCE_MS: f64 = 1.0;

/// The times of the second reads in milliseconds, ascending.
fn second_reads(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut target = bench.target();
    let mut rng = Rng::new(bench.seed);
    let last = target.identity().capacity.0 - 1;
    let mut times = Vec::new();
    for _ in 0..bench.scaled_count(PAIRS) {
        let lbn = Lbn(rng.below(last));
        target.request(Request::read(Lbn(lbn.0 + 1), 1))?;
        let time = target.request(Request::read(lbn, 1))?.response();
        times.push(time.as_ms() + host_ms());
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// The share of second reads that are served immediately, and the shortest and the longest response
/// time of the rest; then the shortest and the longest response time on
/// [`DRIVES_WITHOUT_ZERO_LATENCY`]. Times are in milliseconds.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let times = second_reads(bench)?;
    let (at_once, slow) = times.split_at(times.partition_point(|&ms| ms < AT_ONCE_MS));
    let mut others = Vec::new();
    for name in DRIVES_WITHOUT_ZERO_LATENCY {
        others.extend(second_reads(&bench.with_drive(name)?)?);
    }
    others.sort_unstable_by(f64::total_cmp);
    // An empty list of times has neither a shortest nor a longest one.
    let ends = |times: &[f64]| {
        let end = |end: Option<&f64>| end.copied().unwrap_or(f64::NAN);
        [end(times.first()), end(times.last())]
    };
    let mut values = vec![at_once.len() as f64 / times.len() as f64];
    values.extend(ends(slow));
    values.extend(ends(&others));
    Ok(values)
}

/// Draws the distributions of the times of second reads.
pub(crate) fn figure(bench: &Bench) -> Result<Figure, LabError> {
    let mut series = Vec::new();
    for name in [MAIN_DRIVE].into_iter().chain(DRIVES_WITHOUT_ZERO_LATENCY) {
        let times = second_reads(&bench.with_drive(name)?)?;
        let at = |step: usize| ((times.len() - 1) * step / STEPS, step as f64 / STEPS as f64);
        let steps = (0..=STEPS)
            .map(at)
            .map(|(index, share)| (times[index], share));
        series.push(Series {
            name: name.to_owned(),
            style: Style::Line,
            points: [(0.0, 0.0)]
                .into_iter()
                .chain(steps)
                .chain([(SHOWN_MS, 1.0)])
                .collect(),
        });
    }
    let panel = Panel {
        title: "Two sectors read in reverse order: the second read".to_owned(),
        x: "response time, ms".to_owned(),
        y: "share of reads".to_owned(),
        series,
        ..Panel::default()
    };
    Ok(Figure::of(panel))
}

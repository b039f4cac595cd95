//! A random sector is read, then the one before it. A drive that keeps what passed its head before the first
//! has the second in its buffer; any other waits for most of a revolution.

use traxtent_core::probe::Target;
use traxtent_core::request::Request;
use traxtent_core::units::Lbn;
use traxtent_core::workload::Rng;

use super::{MAIN_DRIVE, ORDINARY_DRIVES, host_ms};
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};

/// Pairs a drive.
const PAIRS: u64 = 10_000;

/// Steps of a distribution in the picture.
const STEPS: usize = 400;

/// Where the picture ends.
const SHOWN_MS: f64 = 7.0;

/// What is served sooner has not waited for the media: the fastest drive takes 4 ms a revolution.
const AT_ONCE_MS: f64 = 1.0;

/// Times of the second reads in milliseconds, ascending.
fn second_reads(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut target = bench.target();
    let mut rng = Rng::new(bench.seed);
    let last = target.identity().capacity.0 - 1;
    let mut times = Vec::new();
    for _ in 0..bench.few(PAIRS) {
        let lbn = Lbn(rng.below(last));
        target.request(Request::read(Lbn(lbn.0 + 1), 1))?;
        let time = target.request(Request::read(lbn, 1))?.response();
        times.push(time.as_ms() + host_ms());
    }
    times.sort_unstable_by(f64::total_cmp);
    Ok(times)
}

/// The share of second reads that is served at once, and the shortest and the longest wait of the rest; then the
/// shortest and the longest wait on the ordinary drives. In milliseconds.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let times = second_reads(bench)?;
    let (at_once, waits) = times.split_at(times.partition_point(|&ms| ms < AT_ONCE_MS));
    let mut others = Vec::new();
    for name in ORDINARY_DRIVES {
        others.extend(second_reads(&bench.with_drive(name)?)?);
    }
    others.sort_unstable_by(f64::total_cmp);
    // Nothing is both the shortest and the longest of no waits at all.
    let ends = |times: &[f64]| {
        let end = |end: Option<&f64>| end.copied().unwrap_or(f64::NAN);
        [end(times.first()), end(times.last())]
    };
    let mut values = vec![at_once.len() as f64 / times.len() as f64];
    values.extend(ends(waits));
    values.extend(ends(&others));
    Ok(values)
}

/// Distributions of the times of second reads.
pub(crate) fn figure(bench: &Bench) -> Result<Figure, LabError> {
    let mut series = Vec::new();
    for name in [MAIN_DRIVE].into_iter().chain(ORDINARY_DRIVES) {
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

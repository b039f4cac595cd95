//! The time to read 64 sectors that begin at an offset from a track boundary.
//!
//! As in the paper, the boundaries are those of the top surface within the first zone, in random
//! order, with random offsets. The host disables the buffer, but this drive can ignore that. For
//! this reason, no boundary is repeated before all have occurred once.

use traxtent_model::drive::Caching;
use traxtent_probe::{Algorithm, Target, Verify};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_units::request::Request;

use super::host_ms;
use super::layout::outermost;
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};
use crate::search::Search;

/// The number of sectors per read.
const SECTORS: u32 = 64;

/// The reach of the offsets: they range from `-REACH` to `REACH - 1` sectors.
const REACH: i64 = 256;

/// The number of rounds over all boundaries, sufficient to determine the means to two microseconds.
const ROUNDS: u64 = 256;

/// The number of points in the figure.
const SHOWN: usize = 2000;

/// A read: the offset of its first sector from a boundary, and its time in milliseconds.
type Point = (i64, f64);

/// Returns whether a read that begins at this offset crosses its boundary.
fn crosses(offset: i64) -> bool {
    (1 - i64::from(SECTORS)..0).contains(&offset)
}

/// The boundaries between two tracks of the top surface that have the size of the outermost one, as
/// a probe finds them.
fn boundaries(bench: &Bench) -> Result<Vec<Lbn>, LabError> {
    let tracks = Search::run(bench, Algorithm::Tree, Verify::None)?.tracks;
    let sizes = outermost(bench, &tracks)?;
    let zone = tracks
        .iter()
        .take_while(|track| sizes.contains(&track.sectors));
    let mut target = bench.target();
    let mut boundaries = Vec::new();
    let mut before_on_top = false;
    for track in zone {
        let surface = target.translate(track.first_lbn)?.surface.0;
        let on_top = surface == 0 && track.sectors == sizes[0];
        if on_top && before_on_top {
            boundaries.push(track.first_lbn);
        }
        before_on_top = on_top;
    }
    Ok(boundaries)
}

fn reads(bench: &Bench) -> Result<Vec<Point>, LabError> {
    let mut boundaries = boundaries(bench)?;
    let mut rng = Rng::new(bench.seed);
    let mut target = bench.target();
    target.set_caching(Caching::OFF);
    let mut points = Vec::new();
    for _ in 0..bench.scaled_count(ROUNDS) {
        shuffle(&mut boundaries, &mut rng);
        for boundary in &boundaries {
            let offset = rng.below(2 * REACH as u64) as i64 - REACH;
            let lbn = Lbn(boundary.0.saturating_add_signed(offset));
            let time = target.request(Request::read(lbn, SECTORS))?.response();
            points.push((offset, time.as_ms() + host_ms()));
        }
    }
    Ok(points)
}

/// Shuffles the items, with every order equally likely (Fisher and Yates).
fn shuffle(items: &mut [Lbn], rng: &mut Rng) {
    for last in (1..items.len()).rev() {
        items.swap(last, rng.below(last as u64 + 1) as usize);
    }
}

/// The times of the reads that cross their boundary, or of those that do not.
fn times(points: &[Point], across: bool) -> Vec<f64> {
    let chosen = points
        .iter()
        .filter(|(offset, _)| crosses(*offset) == across);
    chosen.map(|&(_, ms)| ms).collect()
}

fn mean(times: &[f64]) -> f64 {
    times.iter().sum::<f64>() / times.len() as f64
}

/// The mean times of reads within a track and across its end; the difference between the 99th and
/// the first percentile within a track; and the difference of the means, less the skew. All are in
/// milliseconds.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let points = reads(bench)?;
    let (mut within, across) = (times(&points, false), times(&points, true));
    within.sort_unstable_by(f64::total_cmp);
    let percentile = |p: usize| within[(within.len() - 1) * p / 100];
    let (mean_within, mean_across) = (mean(&within), mean(&across));
    Ok(vec![
        mean_within,
        mean_across,
        percentile(99) - percentile(1),
        mean_across - mean_within - skew_ms(bench),
    ])
}

/// The skew between the first two tracks in milliseconds: the minimum cost of crossing their
/// boundary.
fn skew_ms(bench: &Bench) -> f64 {
    let [one, two] = [0, 1].map(|index| bench.geometry.track(index).expect("it has tracks"));
    let last =
        bench.geometry.slot_angle(&one, one.slots - 1).as_turns() + 1.0 / f64::from(one.slots);
    let first = bench.geometry.slot_angle(&two, 0).as_turns();
    (first - last).rem_euclid(1.0) * bench.profile.revolution_ms()
}

/// Draws time against offset.
pub(crate) fn figure(bench: &Bench) -> Result<Figure, LabError> {
    let points = reads(bench)?;
    let series = |name: &str, across| Series {
        name: format!("{name}: mean {:.1} ms", mean(&times(&points, across))),
        style: Style::Dots,
        points: points
            .iter()
            .take(SHOWN)
            .filter(|(offset, _)| crosses(*offset) == across)
            .map(|&(offset, ms)| (offset as f64, ms))
            .collect(),
    };
    let panel = Panel {
        title: "Reads of 64 sectors around track boundaries".to_owned(),
        x: "first sector, counted from the boundary".to_owned(),
        y: "response time, ms".to_owned(),
        series: vec![
            series("within a track", false),
            series("across its end", true),
        ],
        ..Panel::default()
    };
    Ok(Figure::of(panel))
}

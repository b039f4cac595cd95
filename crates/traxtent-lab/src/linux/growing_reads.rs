//! A scan with reads that grow by one sector each. It takes the first cliff, a size beyond which
//! bandwidth drops, as the end of a track.
//!
//! The host has disabled the drive's buffer. A drive that nevertheless reads ahead serves the
//! growing reads from its buffer until they no longer fit in a segment. Bandwidth drops at that
//! size, wherever the reads begin.

use traxtent_model::drive::Caching;
use traxtent_probe::Target;
use traxtent_sim::SimTarget;
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::stats::Moments;
use traxtent_units::{Lbn, Span};

use super::host_ms;
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};

/// The largest read, in sectors.
const SECTORS_MAX: u32 = 2048;

/// The number of times that each size is read.
const PASSES: u32 = 32;

/// The upper bound of the host's random pause before its next read, in milliseconds. The pauses
/// make passes differ.
const PAUSE_MS: f64 = 0.1;

/// The number of sizes on each side of a cliff over which bandwidths are averaged.
const WINDOW: usize = 128;

/// At a cliff, the mean bandwidth falls by more than this share. A track switch takes a quarter of
/// a revolution, or a whole one.
const FALL: f64 = 0.1;

/// The number of sizes that make one point of the figure.
const SIZES_PER_POINT: usize = 16;

/// The size in sectors of the reads at cliffs, and of those elsewhere.
const PROOF_SECTORS: u32 = 512;

/// The number of reads at cliffs, and of reads elsewhere.
const PROOF_READS: u64 = 10_000;

/// The number of boundaries after which the scan stops.
const BOUNDARIES: usize = 20;

/// The LBN at which the growing reads begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All at this LBN.
    At(Lbn),
    /// Each at a random LBN below this one.
    Below(u64),
}

/// Measures mean bandwidth in MB/s against size in sectors, beginning with one sector.
///
/// # Errors
/// Returns an error if a read fails.
pub fn growing_reads(
    target: &mut SimTarget,
    start: Start,
    rng: &mut Rng,
) -> Result<Vec<f64>, LabError> {
    let bytes = f64::from(target.identity().logical_bytes);
    let mut bandwidths = vec![Moments::default(); SECTORS_MAX as usize];
    for _ in 0..PASSES {
        for (sectors, bandwidth) in (1..=SECTORS_MAX).zip(&mut bandwidths) {
            let lbn = match start {
                Start::At(lbn) => lbn,
                Start::Below(bound) => Lbn(rng.below(bound)),
            };
            target.wait_until(target.now() + Span::from_ms(PAUSE_MS * rng.fraction()));
            let time = target.request(Request::read(lbn, sectors))?.response();
            bandwidth.push(f64::from(sectors) * bytes / ((time.as_ms() + host_ms()) * 1e3));
        }
    }
    Ok(bandwidths.iter().map(Moments::mean).collect())
}

/// Finds the sizes, in sectors, beyond which bandwidth falls, ascending.
pub fn bandwidth_drops(bandwidths: &[f64]) -> Vec<u32> {
    let mean = |window: &[f64]| window.iter().sum::<f64>() / window.len() as f64;
    // The fall after each size that has a whole window on both sides.
    let falls: Vec<f64> = bandwidths
        .windows(2 * WINDOW)
        .map(|both| 1.0 - mean(&both[WINDOW..]) / mean(&both[..WINDOW]))
        .collect();
    let is_cliff = |&at: &usize| {
        let near = &falls[at.saturating_sub(WINDOW)..falls.len().min(at + WINDOW)];
        falls[at] > FALL && near.iter().all(|&fall| fall <= falls[at])
    };
    let size_at = |at| (at + WINDOW) as u32;
    (0..falls.len()).filter(is_cliff).map(size_at).collect()
}

/// The paper's scan: from each boundary to the first cliff.
fn boundaries(target: &mut SimTarget, rng: &mut Rng) -> Result<Vec<Lbn>, LabError> {
    let mut found = Vec::new();
    let mut from = Lbn(0);
    while found.len() < BOUNDARIES {
        let bandwidths = growing_reads(target, Start::At(from), rng)?;
        let Some(&sectors) = bandwidth_drops(&bandwidths).first() else {
            break;
        };
        from.0 += u64::from(sectors);
        found.push(from);
    }
    Ok(found)
}

/// Returns a drive whose buffer the host has disabled.
fn with_buffer_off(bench: &Bench) -> SimTarget {
    let mut target = bench.target();
    target.set_caching(Caching::OFF);
    target
}

/// The mean time of reads that begin at random multiples of `step`, in milliseconds.
fn mean_read_ms(bench: &Bench, step: u64, rng: &mut Rng) -> Result<f64, LabError> {
    let mut target = with_buffer_off(bench);
    let places = (target.identity().capacity.0 - u64::from(PROOF_SECTORS)) / step;
    let mut times = Moments::default();
    for _ in 0..bench.scaled_count(PROOF_READS) {
        let lbn = Lbn(step * rng.below(places));
        let timing = target.request(Request::read(lbn, PROOF_SECTORS))?;
        times.push(timing.response().as_ms() + host_ms());
    }
    Ok(times.mean())
}

/// The nth cliff, or infinity if there is none.
fn nth(cliffs: &[u32], n: usize) -> f64 {
    cliffs.get(n).map_or(f64::INFINITY, |&at| f64::from(at))
}

/// Returns the first cliff of the reads from sector 0, in sectors. Then the differences from it of
/// the first cliffs from sector 256 and from anywhere below 512, and the difference of the second
/// cliffs from sectors 256 and 0. Then how many of the first cliffs from sectors 0 and 256 are ends
/// of tracks, and how many boundaries of the scan are beginnings of tracks. Then the change of the
/// mean time of reads at multiples of [`PROOF_SECTORS`], relative to reads at any sector.
pub(crate) fn measure(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut rng = Rng::new(bench.seed);
    let [from_0, from_256, from_any] =
        starts(bench, &mut rng)?.map(|bandwidths| bandwidth_drops(&bandwidths));
    let found = boundaries(&mut with_buffer_off(bench), &mut rng)?;
    let begins_track = |lbn: &&Lbn| {
        let track = bench.geometry.track_of(**lbn);
        track.is_some_and(|track| track.first_lbn == **lbn)
    };
    let ends = [(0.0, &from_0), (256.0, &from_256)].map(|(from, cliffs)| from + nth(cliffs, 0));
    let at_cliffs = mean_read_ms(bench, u64::from(PROOF_SECTORS), &mut rng)?;
    let elsewhere = mean_read_ms(bench, 1, &mut rng)?;
    Ok(vec![
        nth(&from_0, 0),
        nth(&from_256, 0) - nth(&from_0, 0),
        nth(&from_any, 0) - nth(&from_0, 0),
        nth(&from_256, 1) - nth(&from_0, 1),
        ends.into_iter()
            .filter(|&end| ends_track(bench, end))
            .count() as f64,
        found.iter().filter(begins_track).count() as f64,
        at_cliffs / elsewhere - 1.0,
    ])
}

/// Returns whether one of the first eight tracks ends near `sector`, within 5 % of
/// [`PROOF_SECTORS`].
fn ends_track(bench: &Bench, sector: f64) -> bool {
    let ends = bench
        .geometry
        .tracks()
        .map(|track| track.end_lbn().0 as f64);
    ends.take(8)
        .any(|end| (end - sector).abs() <= 0.05 * f64::from(PROOF_SECTORS))
}

/// The starts of the growing reads, with their names in the figure.
const STARTS: [(Start, &str); 3] = [
    (Start::At(Lbn(0)), "from sector 0"),
    (Start::At(Lbn(256)), "from sector 256"),
    (Start::Below(512), "from anywhere below 512"),
];

fn starts(bench: &Bench, rng: &mut Rng) -> Result<[Vec<f64>; 3], LabError> {
    let mut scans = [const { Vec::new() }; 3];
    for (scan, (start, _)) in scans.iter_mut().zip(STARTS) {
        *scan = growing_reads(&mut with_buffer_off(bench), start, rng)?;
    }
    Ok(scans)
}

/// Averages a few sizes for each point.
fn points(scan: &[f64]) -> Vec<(f64, f64)> {
    let point = |(index, sizes): (usize, &[f64])| {
        let middle = (index * SIZES_PER_POINT) as f64 + (sizes.len() as f64 + 1.0) / 2.0;
        (middle, sizes.iter().sum::<f64>() / sizes.len() as f64)
    };
    scan.chunks(SIZES_PER_POINT)
        .enumerate()
        .map(point)
        .collect()
}

/// Draws bandwidth against size for a drive that ignores the command to disable its buffer, and for
/// the same drive if it obeyed.
pub(crate) fn figure(bench: &Bench) -> Result<Figure, LabError> {
    let ignoring_host = bench;
    let obeying_host = ignoring_host.with_parameter("cache.read_ahead.ignores_host", "false")?;
    let panel = |bench: &Bench, title: &str| -> Result<Panel, LabError> {
        let scans = starts(bench, &mut Rng::new(bench.seed))?;
        let series = scans
            .into_iter()
            .zip(STARTS)
            .map(|(scan, (_, name))| Series {
                name: name.to_owned(),
                style: Style::Line,
                points: points(&scan),
            });
        Ok(Panel {
            title: title.to_owned(),
            x: "request size, sectors (a track has 1144)".to_owned(),
            y: "bandwidth, MB/s".to_owned(),
            series: series.collect(),
            ..Panel::default()
        })
    };
    Ok(Figure {
        panels: vec![
            panel(
                ignoring_host,
                "Growing reads with the buffer ordered off: a drive that still reads ahead",
            )?,
            panel(&obeying_host, "The same drive, if it obeyed")?,
        ],
    })
}

//! The distance between a simulated and a measured distribution of times.
//!
//! The demerit figure of Ruemmler and Wilkes ("An introduction to disk drive modeling", IEEE
//! Computer, 1994) is the root mean square of the horizontal distance between the two cumulative
//! distributions.
//!
//! DiskSim's `rms` computes it from histograms whose classes grow by 1 %, with straight lines
//! between class bounds, at 10,000 quantiles; [`demerit_binned`] does the same. [`demerit`] uses
//! the samples themselves. On the measured traces that come with DiskSim, the two differ by less
//! than 0.001 ms on five drives, by 0.004 ms on the HP C2247A, and by 0.017 ms on the HP C3323A.

use crate::Rng;

/// The number of quantiles at which [`demerit`] compares samples of unequal size, and at which
/// [`demerit_binned`] compares all samples.
pub const DEMERIT_QUANTILES: usize = 10_000;

/// Returns the root mean square of the horizontal distance between the cumulative distributions of
/// two samples, in their unit. Returns `None` if a sample is empty.
///
/// Samples of equal size are compared rank by rank. Samples of unequal size are compared at the
/// middles of 10,000 equal shares, with straight lines between ranks. The share of rank `i` of `n`
/// is `(i - 0.5) / n`. The arguments are sorted in place.
pub fn demerit(simulated: &mut [f64], measured: &mut [f64]) -> Option<f64> {
    if simulated.is_empty() || measured.is_empty() {
        return None;
    }
    simulated.sort_unstable_by(f64::total_cmp);
    measured.sort_unstable_by(f64::total_cmp);
    let mean_square = if simulated.len() == measured.len() {
        mean(
            simulated
                .iter()
                .zip(&*measured)
                .map(|(a, b)| (a - b) * (a - b)),
        )
    } else {
        mean((0..DEMERIT_QUANTILES).map(|index| {
            let share = (index as f64 + 0.5) / DEMERIT_QUANTILES as f64;
            let apart = at_share(simulated, share) - at_share(measured, share);
            apart * apart
        }))
    };
    Some(libm::sqrt(mean_square))
}

/// Returns the demerit as DiskSim 4.0's `rms` prints it, for times in milliseconds. Returns `None`
/// if a sample is empty.
pub fn demerit_binned(simulated_ms: &[f64], measured_ms: &[f64]) -> Option<f64> {
    let simulated = binned_cdf(simulated_ms)?;
    let measured = binned_cdf(measured_ms)?;
    let mean_square = mean((0..DEMERIT_QUANTILES).map(|index| {
        let share = (index + 1) as f64 / DEMERIT_QUANTILES as f64;
        let apart = crossing(&simulated, share) - crossing(&measured, share);
        apart * apart
    }));
    Some(libm::sqrt(mean_square))
}

/// The demerit that a perfect model would have by chance.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct NoiseFloor {
    /// The median.
    pub median: f64,
    /// The 95th percentile: a perfect model is closer in 19 cases of 20.
    pub p95: f64,
}

/// The number of consecutive requests in a block of [`noise_floor`]. Within a block, the order of
/// requests, and with it their dependence on each other, is kept.
pub const NOISE_BLOCK: usize = 100;

/// The number of samples that [`noise_floor`] draws.
pub const NOISE_SAMPLES: usize = 200;

/// Returns the noise floor of measured times, given in the order of the requests: the demerit of
/// the times against samples of themselves, each drawn in blocks with replacement (block bootstrap;
/// Kuensch, The Annals of Statistics 17(3), 1989). Returns `None` if there is only one block, whose
/// samples all equal the times.
pub fn noise_floor(measured: &[f64], rng: &mut Rng) -> Option<NoiseFloor> {
    let blocks: Vec<&[f64]> = measured.chunks(NOISE_BLOCK).collect();
    if blocks.len() < 2 {
        return None;
    }
    let mut sorted = measured.to_vec();
    let mut found = Vec::with_capacity(NOISE_SAMPLES);
    for _ in 0..NOISE_SAMPLES {
        let mut sample = Vec::with_capacity(measured.len() + NOISE_BLOCK);
        while sample.len() < measured.len() {
            sample.extend_from_slice(blocks[rng.below(blocks.len() as u64) as usize]);
        }
        sample.truncate(measured.len());
        found.push(demerit(&mut sample, &mut sorted)?);
    }
    found.sort_unstable_by(f64::total_cmp);
    Some(NoiseFloor {
        median: found[NOISE_SAMPLES / 2],
        p95: found[NOISE_SAMPLES * 95 / 100],
    })
}

/// The mean of at least one number.
fn mean(numbers: impl ExactSizeIterator<Item = f64>) -> f64 {
    let count = numbers.len() as f64;
    numbers.sum::<f64>() / count
}

fn at_share(sorted: &[f64], share: f64) -> f64 {
    let place = (share * sorted.len() as f64 - 0.5).clamp(0.0, (sorted.len() - 1) as f64);
    let below = place as usize;
    let above = (below + 1).min(sorted.len() - 1);
    sorted[below] + (place - below as f64) * (sorted[above] - sorted[below])
}

/// Returns class bounds in ms, and the share of times below each bound. The classes are DiskSim's
/// for access times: 1,750 classes from 0. The width of each is 1 µs plus 1 % of its start. Longer
/// times count in the last class.
fn binned_cdf(times_ms: &[f64]) -> Option<Vec<(f64, f64)>> {
    const CLASSES: usize = 1750;
    if times_ms.is_empty() {
        return None;
    }
    let bounds: Vec<u64> = std::iter::successors(Some(0), |&bound| Some(bound + 1 + bound / 100))
        .take(CLASSES)
        .collect();
    let mut counts = [0_u64; CLASSES];
    for &time in times_ms {
        let micros = (time * 1000.0) as u64;
        counts[bounds
            .partition_point(|&bound| bound <= micros)
            .min(CLASSES - 1)] += 1;
    }
    let mut below = 0;
    let points = bounds.iter().zip(counts).map(|(&bound, count)| {
        below += count;
        (bound as f64 / 1000.0, below as f64 / times_ms.len() as f64)
    });
    Some(points.collect())
}

/// Returns the time at which a cumulative distribution reaches `share`, on the straight line
/// between two points.
fn crossing(cdf: &[(f64, f64)], share: f64) -> f64 {
    let above = cdf
        .partition_point(|point| point.1 < share)
        .clamp(1, cdf.len() - 1);
    let ((x0, y0), (x1, y1)) = (cdf[above - 1], cdf[above]);
    if y1 > y0 {
        x0 + (share - y0) / (y1 - y0) * (x1 - x0)
    } else {
        x1
    }
}

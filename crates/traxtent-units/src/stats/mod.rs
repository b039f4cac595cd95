//! Statistics of response times: means, medians, confidence intervals, percentiles, breakdowns, and
//! the distance between two distributions.
//!
//! [`Moments`], [`ComponentMeans`] and [`Quantiles`] use bounded memory; the others need whole
//! samples. No result depends on the order in which threads finish: counts and sums are added in
//! the caller's order.

mod demerit;
mod interval;
mod median;
mod moments;
mod quantiles;

pub use demerit::{
    DEMERIT_QUANTILES, NOISE_BLOCK, NOISE_SAMPLES, NoiseFloor, demerit, demerit_binned, noise_floor,
};
pub use interval::{ConfidenceInterval, ConfidenceLevel};
pub use median::{ascending, median, upper_median};
pub use moments::{ComponentMeans, Moments};
pub use quantiles::{QUANTILE_ERROR, Quantiles, SAMPLES_EXACT};

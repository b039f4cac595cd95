//! What is made of many response times: means, percentiles, breakdowns, and how far two distributions lie apart.
//!
//! All of it streams in bounded memory except [`demerit()`], which needs both samples whole. Nothing depends on the order
//! in which threads finish: counts and sums are added in the caller's order.

mod demerit;
mod interval;
mod moments;
mod quantiles;

pub use demerit::{DEMERIT_QUANTILES, demerit, demerit_binned};
pub use interval::{Confidence, Interval};
pub use moments::{ComponentMeans, Moments};
pub use quantiles::{QUANTILE_ERROR, Quantiles, SAMPLES_EXACT};

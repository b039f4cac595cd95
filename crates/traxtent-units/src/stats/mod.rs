//! Statistics of response times: means, percentiles, breakdowns, and the distance between two
//! distributions.
//!
//! All of them use bounded memory except [`demerit()`], which needs both samples as a whole. No
//! result depends on the order in which threads finish: counts and sums are added in the caller's
//! order.

mod demerit;
mod interval;
mod moments;
mod quantiles;

pub use demerit::{DEMERIT_QUANTILES, demerit, demerit_binned};
pub use interval::{ConfidenceInterval, ConfidenceLevel};
pub use moments::{ComponentMeans, Moments};
pub use quantiles::{QUANTILE_ERROR, Quantiles, SAMPLES_EXACT};

//! A measurement of a drive's property: value, confidence interval, and method.

use std::fmt;

use traxtent_units::stats::median;
use traxtent_units::stats::{ConfidenceInterval, ConfidenceLevel};

/// One measured property of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurement {
    /// The name, which is a dotted path of the profile if the profile has this property.
    pub name: String,
    /// The best estimate.
    pub value: f64,
    /// The lower end of the 95 % confidence interval.
    pub low: f64,
    /// The upper end of the 95 % confidence interval.
    pub high: f64,
    /// The unit of `value`, `low` and `high`.
    pub unit: &'static str,
    /// The method of measurement.
    pub how: &'static str,
    /// The number of timings.
    pub samples: u64,
}

impl Measurement {
    /// Creates a measurement with a symmetric interval.
    pub(super) fn around(
        name: &str,
        estimate: Estimate,
        unit: &'static str,
        how: &'static str,
    ) -> Measurement {
        Measurement {
            name: name.to_owned(),
            value: estimate.value,
            low: estimate.value - estimate.half_width,
            high: estimate.value + estimate.half_width,
            unit,
            how,
            samples: estimate.samples,
        }
    }

    /// Returns whether a value lies in the interval.
    pub fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl fmt::Display for Measurement {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Measurement {
            value,
            low,
            high,
            unit,
            how,
            samples,
            ..
        } = self;
        write!(
            f,
            "{value:.6} {unit} ({low:.6} to {high:.6}; {how}; {samples} timings)"
        )
    }
}

/// The factor that converts the median absolute deviation of normally distributed samples to their
/// standard deviation.
pub(super) const MEDIAN_TO_DEVIATION: f64 = 1.4826;

/// With fewer samples than this, [`NEAR_DEVIATIONS_FEW`] applies.
const SAMPLES_FEW: usize = 12;
/// The distance from the median, in standard deviations, beyond which a sample does not count.
const NEAR_DEVIATIONS: f64 = 5.0;
/// The same for few samples. Their spread is often too small by chance, so the limit is wider.
const NEAR_DEVIATIONS_FEW: f64 = 10.0;
/// The distance from the median within which a sample always counts, in the unit of the samples. It
/// covers the rounding of equal samples.
const NEAR_ALWAYS: f64 = 1e-9;

/// A value and the half width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) half_width: f64,
    pub(super) samples: u64,
}

impl Estimate {
    /// Returns the mean of the samples that lie near their median. A single late interrupt or
    /// additional revolution would change the mean of all samples by more than the quantity
    /// measured.
    ///
    /// # Panics
    /// Panics if there are no samples.
    pub(super) fn of(samples: &[f64]) -> Estimate {
        let centre = median(samples);
        let apart: Vec<f64> = samples.iter().map(|x| (x - centre).abs()).collect();
        let deviations = if samples.len() < SAMPLES_FEW {
            NEAR_DEVIATIONS_FEW
        } else {
            NEAR_DEVIATIONS
        };
        let reach = deviations * MEDIAN_TO_DEVIATION * median(&apart) + NEAR_ALWAYS;
        let near: Vec<f64> = samples
            .iter()
            .copied()
            .filter(|x| (x - centre).abs() <= reach)
            .collect();
        let interval = ConfidenceInterval::of(&near, ConfidenceLevel::P95)
            .expect("the samples nearest to the median are within reach");
        Estimate {
            value: interval.mean,
            half_width: interval.half_width.unwrap_or(0.0),
            samples: samples.len() as u64,
        }
    }

    /// Returns the difference of two independent estimates.
    pub(super) fn minus(self, other: Estimate) -> Estimate {
        let width = self.half_width * self.half_width + other.half_width * other.half_width;
        Estimate {
            value: self.value - other.value,
            half_width: width.sqrt(),
            samples: self.samples + other.samples,
        }
    }

    /// Returns the estimate moved by a known amount.
    pub(super) fn plus(self, amount: f64) -> Estimate {
        Estimate {
            value: self.value + amount,
            ..self
        }
    }

    /// Returns the value, or 0 if it does not differ significantly from 0. Noise must not become an
    /// overhead, because a drive with even a tiny overhead misses sectors that a drive without one
    /// catches.
    pub(super) fn or_zero(self) -> f64 {
        if self.value.abs() <= self.half_width {
            0.0
        } else {
            self.value
        }
    }

    /// Returns the same value with a half width of at least `half_width`.
    pub(super) fn at_least(self, half_width: f64) -> Estimate {
        Estimate {
            half_width: self.half_width.max(half_width),
            ..self
        }
    }
}

/// Returns a phase reduced to within half a revolution of zero.
pub(super) fn wrapped(turns: f64) -> f64 {
    turns - turns.round()
}

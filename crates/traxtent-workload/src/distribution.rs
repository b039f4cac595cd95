//! Distributions of sizes, distances and times, by name.
//!
//! The list covers DiskSim's five (uniform, normal, exponential, poisson, twovalue) plus constants
//! and weighted lists.

use std::fmt;

use traxtent_units::Rng;
use traxtent_units::Span;

/// The distribution of a size, a distance or a time. The unit is that of the key it belongs to.
#[derive(Clone, Debug, PartialEq)]
#[non_exhaustive]
pub enum Distribution {
    /// Always the same value.
    Constant(f64),
    /// Uniform in [low, high).
    Uniform {
        /// The lowest value.
        low: f64,
        /// The upper bound, which is excluded.
        high: f64,
    },
    /// Gaussian.
    Normal {
        /// The mean.
        mean: f64,
        /// The standard deviation.
        deviation: f64,
    },
    /// `base` plus an exponentially distributed value with the given mean. The overall mean is
    /// their sum.
    Exponential {
        /// The lowest value.
        base: f64,
        /// The mean of the added value.
        mean: f64,
    },
    /// `base` plus a Poisson-distributed count with the given mean.
    Poisson {
        /// The lowest value.
        base: f64,
        /// The mean of the added count.
        mean: f64,
    },
    /// One value from a weighted list.
    Choice(WeightedChoice),
}

/// A list of values with weights.
#[derive(Clone, Debug, PartialEq)]
pub struct WeightedChoice {
    /// Each value and its weight. Weights need not be normalized.
    items: Vec<(f64, f64)>,
    total: f64,
}

/// The number of negative draws of a time after which 0 is used instead.
const NEGATIVE_DRAWS_MAX: u32 = 1000;

/// The largest mean of a Poisson distribution, in the unit in which it is given. The time to draw a
/// value grows with the mean.
pub const POISSON_MEAN_MAX: f64 = 1e4;

/// The maximum number of values in a choice.
pub const CHOICES_MAX: usize = 1000;

/// The largest mean that is drawn in one part. exp(-500) is still a normal floating-point number.
const POISSON_PART: f64 = 500.0;

impl Distribution {
    /// Creates a distribution that yields `second` with the given probability, else `first`
    /// (DiskSim's `twovalue`).
    pub fn two_value(first: f64, second: f64, probability: f64) -> Distribution {
        Distribution::choice(vec![(first, 1.0 - probability), (second, probability)])
    }

    /// Creates a distribution that yields each listed value with a probability proportional to its
    /// weight.
    pub fn choice(items: Vec<(f64, f64)>) -> Distribution {
        let total = items.iter().map(|&(_, weight)| weight).sum();
        Distribution::Choice(WeightedChoice { items, total })
    }

    /// Checks the parameters. They must be finite, in order, and at most `limit` in absolute value.
    /// Deviations, means of added values, and weights must be 0 or more. The mean of a Poisson
    /// distribution must be at most [`POISSON_MEAN_MAX`]. A choice must have 1 to [`CHOICES_MAX`]
    /// values, and a weight above 0.
    ///
    /// # Errors
    /// Returns a phrase such as "the deviation must be 0 or more, not -1" if a parameter is wrong.
    pub fn check(&self, limit: f64) -> Result<(), String> {
        let within = |value: f64| {
            if value.is_finite() && value.abs() <= limit {
                Ok(())
            } else {
                Err(format!("{value} is not between {} and {limit}", -limit))
            }
        };
        let not_negative = |name: &str, value: f64| {
            if value >= 0.0 {
                within(value)
            } else {
                Err(format!("the {name} must be 0 or more, not {value}"))
            }
        };
        match *self {
            Distribution::Constant(value) => within(value),
            Distribution::Uniform { low, high } => {
                within(low)?;
                within(high)?;
                if low < high {
                    Ok(())
                } else {
                    Err(format!("the range {low}..{high} is empty"))
                }
            }
            Distribution::Normal { mean, deviation } => {
                within(mean)?;
                not_negative("deviation", deviation)
            }
            Distribution::Exponential { base, mean } => {
                within(base)?;
                not_negative("mean", mean)
            }
            Distribution::Poisson { base, mean } => {
                within(base)?;
                not_negative("mean", mean)?;
                if mean <= POISSON_MEAN_MAX {
                    Ok(())
                } else {
                    Err(format!(
                        "a Poisson mean must be at most {POISSON_MEAN_MAX}, not {mean}"
                    ))
                }
            }
            Distribution::Choice(ref choice) => {
                if choice.items.is_empty() || choice.items.len() > CHOICES_MAX {
                    return Err(format!(
                        "a choice needs 1 to {CHOICES_MAX} values, not {}",
                        choice.items.len()
                    ));
                }
                for &(value, weight) in &choice.items {
                    within(value)?;
                    not_negative("weight", weight)?;
                }
                if choice.total > 0.0 {
                    Ok(())
                } else {
                    Err("all weights are 0".to_owned())
                }
            }
        }
    }

    /// The mean of the drawn values, before values outside the allowed range are redrawn.
    pub fn mean(&self) -> f64 {
        match *self {
            Distribution::Constant(value) => value,
            Distribution::Uniform { low, high } => (low + high) / 2.0,
            Distribution::Normal { mean, .. } => mean,
            Distribution::Exponential { base, mean } | Distribution::Poisson { base, mean } => {
                base + mean
            }
            Distribution::Choice(ref choice) => {
                choice
                    .items
                    .iter()
                    .map(|&(value, weight)| value * weight)
                    .sum::<f64>()
                    / choice.total
            }
        }
    }

    /// The lower bound of the drawn values.
    pub fn lower_bound(&self) -> f64 {
        match *self {
            Distribution::Constant(value) => value,
            Distribution::Uniform { low, .. } => low,
            Distribution::Normal { .. } => f64::NEG_INFINITY,
            Distribution::Exponential { base, .. } | Distribution::Poisson { base, .. } => base,
            Distribution::Choice(ref choice) => choice
                .items
                .iter()
                .map(|item| item.0)
                .fold(f64::INFINITY, f64::min),
        }
    }

    /// Returns the same distribution in another unit: every value is multiplied by `factor`. The
    /// count of a Poisson distribution is drawn with the multiplied mean instead.
    pub fn scaled(&self, factor: f64) -> Distribution {
        match *self {
            Distribution::Constant(value) => Distribution::Constant(value * factor),
            Distribution::Uniform { low, high } => Distribution::Uniform {
                low: low * factor,
                high: high * factor,
            },
            Distribution::Normal { mean, deviation } => Distribution::Normal {
                mean: mean * factor,
                deviation: deviation * factor,
            },
            Distribution::Exponential { base, mean } => Distribution::Exponential {
                base: base * factor,
                mean: mean * factor,
            },
            // A count times a factor is no longer a count.
            Distribution::Poisson { base, mean } => Distribution::Poisson {
                base: base * factor,
                mean: mean * factor,
            },
            Distribution::Choice(ref choice) => Distribution::choice(
                choice
                    .items
                    .iter()
                    .map(|&(value, weight)| (value * factor, weight))
                    .collect(),
            ),
        }
    }

    /// Draws a value.
    pub fn sample(&self, rng: &mut Rng) -> f64 {
        match *self {
            Distribution::Constant(value) => value,
            Distribution::Uniform { low, high } => low + (high - low) * rng.fraction(),
            Distribution::Normal { mean, deviation } => mean + deviation * standard_normal(rng),
            Distribution::Exponential { base, mean } => {
                base - mean * libm::log(1.0 - rng.fraction())
            }
            Distribution::Poisson { base, mean } => base + poisson(mean, rng),
            Distribution::Choice(ref choice) => choice.sample(rng),
        }
    }

    /// Draws a whole number. A uniform distribution yields each number from low to high - 1 with
    /// equal probability; the others round the drawn value to the nearest whole number.
    pub fn sample_integer(&self, rng: &mut Rng) -> i64 {
        match *self {
            Distribution::Uniform { low, high } => {
                libm::floor(low + (high - low) * rng.fraction()) as i64
            }
            _ => libm::round(self.sample(rng)) as i64,
        }
    }

    /// Draws a time from a distribution in milliseconds. A negative value is redrawn, as in
    /// DiskSim.
    pub fn sample_time(&self, rng: &mut Rng) -> Span {
        for _ in 0..NEGATIVE_DRAWS_MAX {
            let ms = self.sample(rng);
            if ms >= 0.0 {
                return Span::from_ms(ms);
            }
        }
        Span::ZERO
    }

    /// Writes the distribution in the workload grammar, with `unit` after each value.
    pub(super) fn write(&self, f: &mut impl fmt::Write, unit: &str) -> fmt::Result {
        match *self {
            Distribution::Constant(value) => write!(f, "{value}{unit}"),
            Distribution::Uniform { low, high } => write!(f, "uniform:{low}{unit}..{high}{unit}"),
            Distribution::Normal { mean, deviation } => {
                write!(f, "normal:{mean}{unit}:{deviation}{unit}")
            }
            Distribution::Exponential { base, mean } => write!(f, "exp:{base}{unit}:{mean}{unit}"),
            Distribution::Poisson { base, mean } => write!(f, "poisson:{base}{unit}:{mean}{unit}"),
            Distribution::Choice(ref choice) => {
                for (i, (value, weight)) in choice.items.iter().enumerate() {
                    write!(
                        f,
                        "{}{value}{unit}@{weight}",
                        if i == 0 { "choice:" } else { "/" }
                    )?;
                }
                Ok(())
            }
        }
    }
}

impl WeightedChoice {
    fn sample(&self, rng: &mut Rng) -> f64 {
        let mut rest = rng.fraction() * self.total;
        for &(value, weight) in &self.items {
            if rest < weight {
                return value;
            }
            rest -= weight;
        }
        // Rounding may leave a remainder after the last weight.
        self.items
            .iter()
            .rev()
            .find(|item| item.1 > 0.0)
            .map_or(0.0, |item| item.0)
    }
}

/// Marsaglia's polar method. The second value of each pair is dropped, so that a sample does not
/// depend on an earlier one.
fn standard_normal(rng: &mut Rng) -> f64 {
    loop {
        let x = 2.0 * rng.fraction() - 1.0;
        let y = 2.0 * rng.fraction() - 1.0;
        let square = x * x + y * y;
        if square < 1.0 && square > 0.0 {
            return x * libm::sqrt(-2.0 * libm::log(square) / square);
        }
    }
}

/// Knuth's product of uniforms, computed in parts so that exp(-mean) does not underflow.
fn poisson(mean: f64, rng: &mut Rng) -> f64 {
    let mut count = 0.0;
    let mut left = mean;
    while left > 0.0 {
        let part = left.min(POISSON_PART);
        left -= part;
        let stop = libm::exp(-part);
        let mut product = rng.fraction();
        while product >= stop {
            product *= rng.fraction();
            count += 1.0;
        }
    }
    count
}

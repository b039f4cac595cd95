//! A measured figure: its value, how sure it is, and how it was found.

use std::fmt;

use crate::stats::{Confidence, Interval};

/// One figure of a drive.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What it is, as a dotted path of the profile where it has one.
    pub name: String,
    /// The best estimate.
    pub value: f64,
    /// The 95 % confidence interval from here.
    pub low: f64,
    /// To here.
    pub high: f64,
    /// Of all three.
    pub unit: &'static str,
    /// How it was measured.
    pub how: &'static str,
    /// From how many timings.
    pub samples: u64,
}

impl Figure {
    /// A figure with an interval that reaches equally far both ways.
    pub(super) fn around(
        name: &str,
        estimate: Estimate,
        unit: &'static str,
        how: &'static str,
    ) -> Figure {
        Figure {
            name: name.to_owned(),
            value: estimate.value,
            low: estimate.value - estimate.half_width,
            high: estimate.value + estimate.half_width,
            unit,
            how,
            samples: estimate.samples,
        }
    }

    /// Whether a value lies in the interval.
    pub fn covers(&self, value: f64) -> bool {
        (self.low..=self.high).contains(&value)
    }
}

impl fmt::Display for Figure {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Figure {
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

/// A value and the half width of its 95 % confidence interval.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(super) struct Estimate {
    pub(super) value: f64,
    pub(super) half_width: f64,
    pub(super) samples: u64,
}

impl Estimate {
    /// The mean of the samples that lie near their median: a late interrupt or an additional
    /// revolution moves the mean of all of them by more than any drive is off.
    ///
    /// # Panics
    /// Without samples.
    pub(super) fn of(samples: &[f64]) -> Estimate {
        let centre = median(samples);
        let apart: Vec<f64> = samples.iter().map(|x| (x - centre).abs()).collect();
        // 1.4826 makes of the median distance a standard deviation, where the samples are normal.
        // A few samples lie close together by chance more often than one is late.
        let deviations = if samples.len() < 12 { 10.0 } else { 5.0 };
        let reach = deviations * 1.4826 * median(&apart) + 1e-9;
        let near: Vec<f64> = samples
            .iter()
            .copied()
            .filter(|x| (x - centre).abs() <= reach)
            .collect();
        let interval = Interval::of(&near, Confidence::P95).expect("the median is near itself");
        Estimate {
            value: interval.mean,
            half_width: interval.half_width.unwrap_or(0.0),
            samples: samples.len() as u64,
        }
    }

    /// The difference of two independent estimates.
    pub(super) fn minus(self, other: Estimate) -> Estimate {
        let width = self.half_width * self.half_width + other.half_width * other.half_width;
        Estimate {
            value: self.value - other.value,
            half_width: width.sqrt(),
            samples: self.samples + other.samples,
        }
    }

    /// The value, or none at all where it cannot be told from none: a drive without an overhead catches
    /// sectors that one with the least overhead misses.
    pub(super) fn or_none(self) -> f64 {
        if self.value.abs() <= self.half_width {
            0.0
        } else {
            self.value
        }
    }

    /// The same value, no surer than to `half_width`.
    pub(super) fn at_least(self, half_width: f64) -> Estimate {
        Estimate {
            half_width: self.half_width.max(half_width),
            ..self
        }
    }
}

/// The middle of the samples, or of the two in the middle.
pub(super) fn median(samples: &[f64]) -> f64 {
    let mut sorted = samples.to_vec();
    sorted.sort_unstable_by(f64::total_cmp);
    let half = sorted.len() / 2;
    if sorted.len() % 2 == 1 {
        sorted[half]
    } else {
        (sorted[half - 1] + sorted[half]) / 2.0
    }
}

/// A phase taken to within half a turn of zero.
pub(super) fn wrapped(turns: f64) -> f64 {
    turns - turns.round()
}

/// What of a number of turns is not whole, from 0 to 1.
pub(super) fn fraction(turns: f64) -> f64 {
    turns - turns.floor()
}

//! Linear and logarithmic axes.

use std::ops::Range;

use plotters::coord::ranged1d::{DefaultFormatting, KeyPointHint, Ranged};
use plotters::coord::types::RangedCoordf64;

/// An axis as a mapping from values to pixels.
pub(super) enum Scale {
    Linear(RangedCoordf64),
    /// The ends are positive.
    Log {
        range: Range<f64>,
        ticks: Vec<f64>,
    },
}

impl Scale {
    pub(super) fn linear(range: Range<f64>) -> Scale {
        Scale::Linear(range.into())
    }

    /// Returns a logarithmic axis. The range must be positive and not empty.
    pub(super) fn log(range: Range<f64>) -> Scale {
        let ticks = log_ticks(&range);
        Scale::log_at(range, ticks)
    }

    /// Returns a logarithmic axis with ticks at these values. The range must be positive and not
    /// empty.
    pub(super) fn log_at(range: Range<f64>, ticks: Vec<f64>) -> Scale {
        assert!(0.0 < range.start && range.start < range.end, "{range:?}");
        Scale::Log { range, ticks }
    }

    /// Returns the values at both ends.
    pub(super) fn ends(&self) -> Range<f64> {
        self.range()
    }

    /// Returns the place of a value, from 0 at the axis's start to 1 at its end.
    pub(super) fn place(&self, value: f64) -> f64 {
        let of = |value: f64, Range { start, end }: Range<f64>| (value - start) / (end - start);
        match self {
            Scale::Linear(linear) => of(value, linear.range()),
            Scale::Log { range, .. } => of(value.ln(), range.start.ln()..range.end.ln()),
        }
    }
}

impl Ranged for Scale {
    type FormatOption = DefaultFormatting;
    type ValueType = f64;

    fn map(&self, value: &f64, limit: (i32, i32)) -> i32 {
        match self {
            Scale::Linear(linear) => linear.map(value, limit),
            Scale::Log { .. } => {
                let length = f64::from(limit.1 - limit.0);
                (f64::from(limit.0) + length * self.place(*value)).round() as i32
            }
        }
    }

    fn key_points<Hint: KeyPointHint>(&self, hint: Hint) -> Vec<f64> {
        match self {
            Scale::Linear(linear) => linear.key_points(hint),
            Scale::Log { ticks, .. } => ticks.clone(),
        }
    }

    fn range(&self) -> Range<f64> {
        match self {
            Scale::Linear(linear) => linear.range(),
            Scale::Log { range, .. } => range.clone(),
        }
    }
}

/// Returns the ticks of a logarithmic axis: powers of ten; on a short axis also their multiples by
/// 2 and 5, or by every digit.
fn log_ticks(range: &Range<f64>) -> Vec<f64> {
    let decades = (range.end / range.start).log10();
    let digits: &[f64] = if decades > 3.0 {
        &[1.0]
    } else if decades > 1.0 {
        &[1.0, 2.0, 5.0]
    } else {
        &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0, 9.0]
    };
    let powers = range.start.log10().floor() as i32..=range.end.log10().ceil() as i32;
    powers
        .flat_map(|power| digits.iter().map(move |digit| digit * 10f64.powi(power)))
        // Ends that are ticks themselves count, despite rounding errors.
        .filter(|tick| (range.start * 0.999_999..=range.end * 1.000_001).contains(tick))
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are all decades equally long, and does the axis end where its range does?
    #[test]
    fn decades() {
        let scale = Scale::log(0.01..100.0);
        let pixels = [0.01, 0.1, 1.0, 10.0, 100.0].map(|value| scale.map(&value, (0, 400)));
        assert_eq!(pixels, [0, 100, 200, 300, 400]);
    }

    /// Are ticks at round values, with more of them on shorter axes?
    #[test]
    fn ticks() {
        assert_eq!(log_ticks(&(0.01..100.0)), [0.01, 0.1, 1.0, 10.0, 100.0]);
        assert_eq!(log_ticks(&(1.5..30.0)), [2.0, 5.0, 10.0, 20.0]);
        assert_eq!(log_ticks(&(3.5..6.5)), [4.0, 5.0, 6.0]);
    }
}

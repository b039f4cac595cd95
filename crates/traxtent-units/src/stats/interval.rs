//! Confidence intervals of a mean over a few runs, by Student's t.

use super::moments::Moments;

/// The confidence level of an interval.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum ConfidenceLevel {
    /// 90 %.
    P90,
    /// 95 %.
    #[default]
    P95,
}

/// A mean and the half width of its confidence interval.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ConfidenceInterval {
    /// The mean of the runs.
    pub mean: f64,
    /// Half the width of the interval, which runs from mean - half_width to mean + half_width.
    /// `None` for a single run, which does not determine it.
    pub half_width: Option<f64>,
    /// The number of runs.
    pub runs: u64,
}

impl ConfidenceInterval {
    /// Returns the interval for the results of independent runs, or `None` if there are none.
    pub fn of(figures: &[f64], confidence: ConfidenceLevel) -> Option<ConfidenceInterval> {
        let mut moments = Moments::default();
        figures.iter().for_each(|&figure| moments.push(figure));
        let runs = moments.count();
        if runs == 0 {
            return None;
        }
        let half_width = (runs > 1).then(|| {
            student_t(runs - 1, confidence) * libm::sqrt(moments.variance() / runs as f64)
        });
        Some(ConfidenceInterval {
            mean: moments.mean(),
            half_width,
            runs,
        })
    }
}

/// Returns the bound below which |t| with `freedom` degrees of freedom lies with the given
/// confidence.
fn student_t(freedom: u64, confidence: ConfidenceLevel) -> f64 {
    let (table, normal) = match confidence {
        ConfidenceLevel::P90 => (&T90, 1.644_853_626_951_472_7),
        ConfidenceLevel::P95 => (&T95, 1.959_963_984_540_054),
    };
    match table.get(freedom as usize - 1) {
        Some(&value) => value,
        // Beyond the table, the first terms of the expansion in 1 / freedom are accurate to 5
        // digits (Abramowitz and Stegun, 26.7.5).
        None => {
            let n = freedom as f64;
            let z: f64 = normal;
            let (z2, z3) = (z * z, z * z * z);
            z + (z3 + z) / (4.0 * n) + (5.0 * z3 * z2 + 16.0 * z3 + 3.0 * z) / (96.0 * n * n)
        }
    }
}

/// The 90 % values for 1 to 30 degrees of freedom.
const T90: [f64; 30] = [
    6.3138, 2.9200, 2.3534, 2.1318, 2.0150, 1.9432, 1.8946, 1.8595, 1.8331, 1.8125, 1.7959, 1.7823,
    1.7709, 1.7613, 1.7531, 1.7459, 1.7396, 1.7341, 1.7291, 1.7247, 1.7207, 1.7171, 1.7139, 1.7109,
    1.7081, 1.7056, 1.7033, 1.7011, 1.6991, 1.6973,
];

/// The 95 % values for 1 to 30 degrees of freedom.
const T95: [f64; 30] = [
    12.7062, 4.3027, 3.1824, 2.7764, 2.5706, 2.4469, 2.3646, 2.3060, 2.2622, 2.2281, 2.2010,
    2.1788, 2.1604, 2.1448, 2.1314, 2.1199, 2.1098, 2.1009, 2.0930, 2.0860, 2.0796, 2.0739, 2.0687,
    2.0639, 2.0595, 2.0555, 2.0518, 2.0484, 2.0452, 2.0423,
];

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the function decrease, also where the tables end, and does it agree with the published
    /// values beyond them?
    #[test]
    fn student_t_decreases_and_has_the_published_values() {
        assert!((student_t(40, ConfidenceLevel::P95) - 2.0211).abs() < 1e-4);
        assert!((student_t(100, ConfidenceLevel::P95) - 1.9840).abs() < 1e-4);
        assert!((student_t(40, ConfidenceLevel::P90) - 1.6839).abs() < 1e-4);
        for confidence in [ConfidenceLevel::P90, ConfidenceLevel::P95] {
            for freedom in 1..200 {
                let (here, next) = (
                    student_t(freedom, confidence),
                    student_t(freedom + 1, confidence),
                );
                assert!(here > next, "{freedom} {confidence:?}: {here} {next}");
            }
        }
    }
}

//! Seek time as a function of distance.

use crate::profile::SeekSpec;
use traxtent_units::Span;

/// The seek time for each distance that the drive can seek.
#[derive(Clone, Debug)]
pub struct SeekCurve {
    /// Indexed by distance in cylinders.
    times: Vec<Span>,
}

impl SeekCurve {
    /// Creates the read curve of a drive with the given number of cylinders.
    pub fn new(spec: &SeekSpec, cylinders: u32) -> SeekCurve {
        let stroke = f64::from(cylinders.saturating_sub(1).max(1));
        match spec {
            SeekSpec::Constant { ms } => SeekCurve::from_fn(cylinders, |_| *ms),
            SeekSpec::ThreePointLine {
                single_ms,
                average_ms,
                full_ms,
            } => {
                let third = (stroke / 3.0).max(1.0);
                SeekCurve::from_fn(cylinders, |d| {
                    if d <= third {
                        line((1.0, *single_ms), (third, *average_ms), d)
                    } else {
                        line((third, *average_ms), (stroke, *full_ms), d)
                    }
                })
            }
            SeekSpec::ThreePointCurve {
                single_ms,
                average_ms,
                full_ms,
            } => {
                // E. K. Lee, "Performance modeling and analysis of disk arrays" (1993): the curve
                // single_ms + a sqrt(d-1) + b (d-1) with the given full-stroke time and the given
                // mean over random seeks.
                let c = f64::from(cylinders);
                let a = (-10.0 * single_ms + 15.0 * average_ms - 5.0 * full_ms) / (3.0 * c.sqrt());
                let b = (7.0 * single_ms - 15.0 * average_ms + 8.0 * full_ms) / (3.0 * c);
                SeekCurve::from_fn(cylinders, |d| {
                    single_ms + a * (d - 1.0).sqrt() + b * (d - 1.0)
                })
            }
            SeekSpec::Hpl {
                division,
                root_constant_ms,
                root_factor_ms,
                line_constant_ms,
                line_factor_ms,
                first_ms,
            } => SeekCurve::from_fn(cylinders, |d| match first_ms.get(d as usize - 1) {
                Some(&ms) => ms,
                None if d < f64::from(*division) => root_constant_ms + root_factor_ms * d.sqrt(),
                None => line_constant_ms + line_factor_ms * d,
            }),
            SeekSpec::Table { read, .. } => SeekCurve::from_table(read, cylinders),
        }
    }

    /// Creates a curve from straight lines between measured points. Distances before the first
    /// point take the same time as that point. The last line continues beyond the last point. A
    /// single point gives all distances its time.
    pub(super) fn from_table(points: &[(u32, f64)], cylinders: u32) -> SeekCurve {
        let mut next = 0;
        SeekCurve::from_fn(cylinders, |d| {
            while next + 1 < points.len() && f64::from(points[next].0) < d {
                next += 1;
            }
            let point = |i: usize| (f64::from(points[i].0), points[i].1);
            match next {
                0 => points[0].1,
                i => line(point(i - 1), point(i), d),
            }
        })
    }

    fn from_fn(cylinders: u32, mut ms: impl FnMut(f64) -> f64) -> SeekCurve {
        let beyond_zero = (1..cylinders).map(|d| Span::from_ms(ms(f64::from(d))));
        SeekCurve {
            times: std::iter::once(Span::ZERO).chain(beyond_zero).collect(),
        }
    }

    /// A curve on which every seek takes no time.
    pub(super) fn none() -> SeekCurve {
        SeekCurve {
            times: vec![Span::ZERO],
        }
    }

    /// The time to move the arm over `distance` cylinders. Distances beyond the full stroke take
    /// the time of the full stroke.
    #[inline]
    pub fn time(&self, distance: u32) -> Span {
        self.times[(distance as usize).min(self.times.len() - 1)]
    }

    /// The mean seek time over all ordered pairs of different cylinders, with equal weights.
    pub fn mean(&self) -> Span {
        let n = self.times.len() as u128;
        if n < 2 {
            return Span::ZERO;
        }
        let weighted: u128 = self
            .times
            .iter()
            .zip(0u128..)
            .map(|(t, d)| u128::from(t.0) * (n - d))
            .sum();
        Span((weighted / (n * (n - 1) / 2)) as u64)
    }

    /// The longest distance, in cylinders.
    pub fn stroke(&self) -> u32 {
        self.times.len() as u32 - 1
    }
}

fn line((x0, y0): (f64, f64), (x1, y1): (f64, f64), x: f64) -> f64 {
    if x1 == x0 {
        y1
    } else {
        y0 + (y1 - y0) * (x - x0) / (x1 - x0)
    }
}

//! Angles as numbers of revolutions, for measured angles and their differences. [`Angle`] is the
//! exact type.
//!
//! [`Angle`]: crate::Angle

/// Returns the fraction of a revolution, in [0, 1]. It is 1 for a tiny negative angle, because of
/// rounding.
pub fn fraction(turns: f64) -> f64 {
    turns - floor(turns)
}

/// Returns the angle reduced to [-1/2, 1/2).
pub fn wrap(turns: f64) -> f64 {
    turns - floor(turns + 0.5)
}

/// Returns the largest whole number that is not greater, as [`f64::floor`] does. Processors of the
/// x86-64 baseline have no instruction for it, so that `floor` is a call, but conversions are
/// instructions. The zero that results from a negative zero is positive.
fn floor(value: f64) -> f64 {
    /// From here on, every number is whole.
    const WHOLE: f64 = (1_u64 << 52) as f64;
    if value.abs() < WHOLE {
        let towards_zero = value as i64 as f64;
        towards_zero - f64::from(value < towards_zero)
    } else {
        value
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are angles reduced correctly on both sides of 0 and of half a revolution, and at the ends?
    #[test]
    fn reduced() {
        for (turns, part, nearest) in [
            (0.0, 0.0, 0.0),
            (0.25, 0.25, 0.25),
            (0.5, 0.5, -0.5),
            (0.75, 0.75, -0.25),
            (-0.25, 0.75, -0.25),
            (-0.5, 0.5, -0.5),
            (3.25, 0.25, 0.25),
            (-3.0, 0.0, 0.0),
            (-1e-20, 1.0, -1e-20),
        ] {
            assert_eq!((fraction(turns), wrap(turns)), (part, nearest), "{turns}");
        }
    }

    /// Is the floor that of the standard library, near whole numbers and at all magnitudes?
    #[test]
    fn floors() {
        let magnitudes = (-60..64).map(|exponent| 2_f64.powi(exponent));
        let near = magnitudes.flat_map(|value| {
            let whole = value.round();
            let near = [whole.next_down(), whole, whole.next_up()];
            near.into_iter().chain([value, 1.3 * value, whole + 0.5])
        });
        let special = [0.0, f64::MIN_POSITIVE, f64::MAX, f64::INFINITY];
        for value in near.chain(special).flat_map(|value| [value, -value]) {
            assert_eq!(floor(value), value.floor(), "{value}");
        }
        assert!(floor(f64::NAN).is_nan());
    }
}

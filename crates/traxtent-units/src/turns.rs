//! Angles as numbers of revolutions, for measured angles and their differences. [`Angle`] is the
//! exact type.
//!
//! [`Angle`]: crate::Angle

/// Returns the fraction of a revolution, in [0, 1]. It is 1 for a tiny negative angle, because of
/// rounding.
pub fn fraction(turns: f64) -> f64 {
    turns - turns.floor()
}

/// Returns the angle reduced to [-1/2, 1/2).
pub fn wrap(turns: f64) -> f64 {
    turns - (turns + 0.5).floor()
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
}

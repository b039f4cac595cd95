//! The errors in a description of a geometry.

use std::ops::RangeInclusive;

/// The reason why a [`GeometrySpec`](super::GeometrySpec) does not describe a possible drive.
///
/// Every message names the place in the description. The message about a number outside its bounds
/// also names the number and the bounds.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A number outside its bounds.
    #[error("{place}: {what} is {value}, but must be in {min}..={max}")]
    OutOfBounds {
        /// The part of the description that contains the number, such as `zone 3`.
        place: String,
        /// The key.
        what: &'static str,
        /// The given value.
        value: i128,
        /// The smallest value allowed.
        min: i128,
        /// The largest value allowed.
        max: i128,
    },
    /// Two entries that exclude or contradict each other, or an entry that requires a missing one.
    #[error("{place}: {problem}")]
    Inconsistent {
        /// The part of the description that contains the problem, such as `zone 3`.
        place: String,
        /// The problem, with its values.
        problem: String,
    },
}

impl GeometryError {
    pub(super) fn inconsistent(place: impl Into<String>, problem: impl Into<String>) -> Self {
        GeometryError::Inconsistent {
            place: place.into(),
            problem: problem.into(),
        }
    }
}

/// Returns an error unless `value` is within `bounds`.
pub(super) fn check<T: Into<i128> + Copy>(
    place: &str,
    what: &'static str,
    value: T,
    bounds: RangeInclusive<T>,
) -> Result<(), GeometryError> {
    let (value, min, max) = (
        value.into(),
        (*bounds.start()).into(),
        (*bounds.end()).into(),
    );
    if (min..=max).contains(&value) {
        Ok(())
    } else {
        Err(GeometryError::OutOfBounds {
            place: place.to_string(),
            what,
            value,
            min,
            max,
        })
    }
}

//! What can be wrong with a geometry's description.

use std::ops::RangeInclusive;

/// Why a [`GeometrySpec`](super::GeometrySpec) describes no possible drive.
///
/// Every message names the value, the bound and the place in the description.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum GeometryError {
    /// A number outside its bounds.
    #[error("{place}: {what} is {value}, but must be in {min}..={max}")]
    OutOfBounds {
        /// Which zone, node or list the number stands in.
        place: String,
        /// The key.
        what: &'static str,
        /// What was given.
        value: i128,
        /// The least value allowed.
        min: i128,
        /// The greatest value allowed.
        max: i128,
    },
    /// Two entries that exclude or contradict each other, or one that lacks another.
    #[error("{place}: {problem}")]
    Inconsistent {
        /// Which zone, node or list the problem is in.
        place: String,
        /// What is wrong, with its values.
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

/// Refuses `value` unless it lies in `bounds`.
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

//! The reasons why a calibration fails.

use traxtent_model::profile::ProfileError;
use traxtent_sim::SimulateError;

use crate::REQUESTS_LEAST;

/// The reason why a calibration fails.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CalibrateError {
    /// No record has a measured time.
    #[error("no request has a measured time")]
    NotMeasured,
    /// A part of the trace has too few measured requests.
    #[error(
        "{fitted} measured requests are fitted and {held_out} are held out; at least \
         {REQUESTS_LEAST} are needed in each part"
    )]
    TooFew {
        /// The number of measured requests that are fitted.
        fitted: usize,
        /// The number of measured requests that are held out.
        held_out: usize,
    },
    /// The profile's geometry is impossible.
    #[error("{0}")]
    Geometry(String),
    /// The drive cannot serve the trace.
    #[error(transparent)]
    Simulate(#[from] SimulateError),
    /// A fitted value is out of the profile's bounds.
    #[error(transparent)]
    Profile(#[from] ProfileError),
    /// The observer has stopped the calibration.
    #[error("stopped")]
    Stopped,
}

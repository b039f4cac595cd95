//! The error of the parsers.

use crate::source::SourceError;

/// The reason why a layer cannot be parsed.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The bytes cannot be read.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A header contradicts itself or its format.
    #[error("{format}: {problem}")]
    Invalid {
        /// The format that the header states.
        format: &'static str,
        /// The field, its value and its bound.
        problem: String,
    },
}

/// The result of a parser; `None` if the bytes are something else.
pub type Parsed<T> = Result<Option<T>, LayerError>;

/// Returns the error for a field whose value the format does not allow.
pub(super) fn contradiction(format: &'static str, problem: impl Into<String>) -> LayerError {
    LayerError::Invalid {
        format,
        problem: problem.into(),
    }
}

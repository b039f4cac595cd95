//! Why a layer cannot be read.

use crate::source::SourceError;

/// Bytes say that they are a layer, and it cannot be read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum LayerError {
    /// The bytes cannot be had.
    #[error(transparent)]
    Source(#[from] SourceError),
    /// A header contradicts itself or its format.
    #[error("{format}: {problem}")]
    Contradiction {
        /// The format it claims to be.
        format: &'static str,
        /// The field, its value, its bound.
        problem: String,
    },
}

/// What a parser returns: nothing if the bytes are something else.
pub type Parsed<T> = Result<Option<T>, LayerError>;

/// A field whose value its format does not allow.
pub(super) fn contradiction(format: &'static str, problem: impl Into<String>) -> LayerError {
    LayerError::Contradiction {
        format,
        problem: problem.into(),
    }
}

//! The errors in a profile.

/// The reason why a text is not a valid profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not TOML, or unknown keys.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the text, counted from 1.
        line: usize,
        /// The problem.
        message: String,
    },
    /// A value out of bounds.
    #[error("{key} = {value}: must be {bound}")]
    OutOfBounds {
        /// Dotted path of the value.
        key: String,
        /// The given value.
        value: String,
        /// The allowed values.
        bound: String,
    },
    /// A key that the profile does not have.
    #[error("{key} is not a key of the profile (see `traxtent drives show`)")]
    UnknownKey {
        /// The key.
        key: String,
    },
    /// A value of the wrong type.
    #[error("{key} = {value}: {problem}")]
    WrongType {
        /// Dotted path of the value.
        key: String,
        /// The given value.
        value: String,
        /// The problem.
        problem: String,
    },
    /// A value without an origin.
    #[error("{key}: no entry of [provenance] covers it")]
    MissingProvenance {
        /// Dotted path of the value.
        key: String,
    },
    /// An entry of `[provenance]` that covers no value, or has an unknown kind of origin.
    #[error("provenance.\"{key}\" = {value:?}: {problem}")]
    Provenance {
        /// The key of the entry.
        key: String,
        /// Its text.
        value: String,
        /// The problem.
        problem: String,
    },
    /// An impossible layout.
    #[error("geometry: {0}")]
    Geometry(String),
}

impl ProfileError {
    pub(super) fn syntax(text: &str, error: &toml::de::Error) -> ProfileError {
        let offset = error.span().map_or(0, |span| span.start.min(text.len()));
        let line = text.as_bytes()[..offset]
            .iter()
            .filter(|&&b| b == b'\n')
            .count()
            + 1;
        ProfileError::Syntax {
            line,
            message: error.message().replace('\n', " "),
        }
    }
}

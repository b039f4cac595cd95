//! What can be wrong with a profile.

/// Why a text is no profile.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not TOML, or not the keys of a profile.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the text, from 1.
        line: usize,
        /// What is wrong there.
        message: String,
    },
    /// A figure out of its bounds.
    #[error("{key} = {value}: must be {bound}")]
    OutOfBounds {
        /// Dotted path of the figure.
        key: String,
        /// What stands there.
        value: String,
        /// What may stand there.
        bound: String,
    },
    /// A value of the wrong kind for its figure.
    #[error("{key} = {value}: {problem}")]
    Kind {
        /// Dotted path of the figure.
        key: String,
        /// What stands there.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A figure without an origin.
    #[error("{key}: no entry of [provenance] covers it")]
    Unfounded {
        /// Dotted path of the figure.
        key: String,
    },
    /// An entry of `[provenance]` that covers nothing, or names no known origin.
    #[error("provenance.\"{key}\" = {value:?}: {problem}")]
    Provenance {
        /// The entry.
        key: String,
        /// Its text.
        value: String,
        /// What is wrong with it.
        problem: String,
    },
    /// A layout that cannot be.
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

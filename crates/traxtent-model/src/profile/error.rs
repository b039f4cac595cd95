//! The errors in a profile.

use toml::de::{DeTable, DeValue};

use super::mechanics::SeekSpec;
use traxtent_units::decimal_comma;

/// The form of the scheduler `aged-sptf`, which requires a weight.
pub(super) const AGED_SPTF_FORM: &str = "{aged-sptf={weight=0.1}}";

/// The reason why a profile is not valid.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProfileError {
    /// Not TOML, an unknown or missing key, a value of the wrong type, or an unknown word.
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
    /// A value of the wrong type, or an unknown word.
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
    /// An entry of `[provenance]` that covers no value, or lacks a known kind of origin or a note.
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
    #[error("{}", geometry(.0))]
    Geometry(String),
}

/// Returns a geometry problem with the prefix `geometry: `, unless it already has that prefix.
fn geometry(problem: &str) -> String {
    match problem.starts_with("geometry: ") {
        true => problem.to_owned(),
        false => format!("geometry: {problem}"),
    }
}

/// Returns a message of serde on one line, with descriptions in place of Rust's types, and with
/// the form of a scheduler that has a weight.
pub(super) fn in_words(message: &str) -> String {
    let bounds = [
        ("expected u8", "0 to 255"),
        ("expected u16", "0 to 65535"),
        ("expected u32", "0 to 4294967295"),
        ("expected i32", "-2147483648 to 2147483647"),
    ];
    let mut message = message.replace('\n', " ");
    // serde lists the name alone, which is not a valid value.
    if message.starts_with("unknown variant") {
        message = message.replace(", `aged-sptf`", &format!(", `{AGED_SPTF_FORM}`"));
    }
    // `PerSurface` is the only type with several forms.
    if message.ends_with("untagged enum PerSurface") {
        return "expected a whole number, or a list of them with one for each surface".to_owned();
    }
    if let Some(start) = message.strip_suffix("expected f64") {
        return format!("{start}expected a number");
    }
    if let Some((start, _)) = message.split_once("expected struct ") {
        return format!("{start}expected a table");
    }
    // `SeekSpec` is the only table whose keys depend on one of them.
    if message.ends_with("expected internally tagged enum SeekSpec") {
        return "expected a table with `curve` and its values, texts in quotes, such as \
                {curve = \"constant\", ms = 5.0}"
            .to_owned();
    }
    if is_unreadable(&message) {
        return "expected a number, true, false, or a text in quotes, with nothing after it"
            .to_owned();
    }
    match bounds.iter().find(|(name, _)| message.ends_with(name)) {
        Some((name, range)) => {
            let start = message.trim_end_matches(name);
            format!("{start}expected a whole number from {range}")
        }
        None => message,
    }
}

/// Returns whether the TOML reader cannot read a value. It says the first of any such value, such
/// as `15000;`, and the second if the value begins like true or false.
fn is_unreadable(message: &str) -> bool {
    message.starts_with("string values must be quoted") || message.starts_with("invalid boolean")
}

/// Returns the position of the key of `[mechanics.seek]` that an error is about; `None` if it is
/// about another table or a missing key. serde reads this table before it knows the curve, so the
/// error has only the position of the table. The key is the one whose removal removes the error.
fn wrong_key_of_seek(text: &str, error: &toml::de::Error) -> Option<usize> {
    let parsed = DeTable::parse(text).ok()?;
    let (_, mechanics) = parsed.get_ref().get_key_value("mechanics")?;
    let DeValue::Table(mechanics) = mechanics.get_ref() else {
        return None;
    };
    let (_, seek) = mechanics.get_key_value("seek")?;
    let DeValue::Table(keys) = seek.get_ref() else {
        return None;
    };
    if error.span()? != seek.span() || error.message().starts_with("missing field") {
        return None;
    }
    let root: toml::Table = toml::from_str(text).ok()?;
    let table = root.get("mechanics")?.get("seek")?.as_table()?;
    let mut keys: Vec<_> = keys.keys().filter(|key| key.get_ref() != "curve").collect();
    keys.sort_by_key(|key| key.span().start);
    let wrong = keys.into_iter().find(|key| {
        let mut others = table.clone();
        others.remove(key.get_ref().as_ref());
        let read = others.try_into::<SeekSpec>();
        read.map_or_else(|left| left.message() != error.message(), |_| true)
    })?;
    Some(wrong.span().start)
}

impl ProfileError {
    pub(super) fn syntax(text: &str, error: &toml::de::Error) -> ProfileError {
        let offset = error.span().map_or(0, |span| span.start);
        let offset = wrong_key_of_seek(text, error).unwrap_or(offset);
        let offset = offset.min(text.len());
        let line = text.as_bytes()[..offset]
            .iter()
            .filter(|&&b| b == b'\n')
            .count()
            + 1;
        let line_text = text.lines().nth(line - 1).unwrap_or_default();
        let in_words = || in_words(error.message());
        let message = decimal_comma(line_text).unwrap_or_else(in_words);
        let key = line_text.split_once('=').map(|(key, _)| key.trim());
        let message = match key.filter(|_| is_unreadable(error.message())) {
            Some(key) => format!("{key}: {message}"),
            None => message,
        };
        ProfileError::Syntax { line, message }
    }
}

//! The origins of a profile's values.

use super::ProfileError;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// Origins by the dotted path of the values that they cover.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Provenance(pub BTreeMap<String, String>);

/// The origin of a value that [`Profile::with_value`](super::Profile::with_value) has set.
pub(super) const BY_HAND: &str = "assumed: set by hand";

/// The kind of a value's origin, most reliable first.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum OriginKind {
    /// Measured on a real drive.
    Measured,
    /// Published by the manufacturer or in a paper.
    Published,
    /// Chosen so that the model agrees with measurements, which the note names.
    Fitted,
    /// A guess, which the note explains.
    Assumed,
}

/// The origin of a value.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Origin<'a> {
    /// The kind of origin.
    pub kind: OriginKind,
    /// The source, or the explanation.
    pub note: &'a str,
}

impl OriginKind {
    /// All kinds, most reliable first.
    pub const ALL: [OriginKind; 4] = [
        OriginKind::Measured,
        OriginKind::Published,
        OriginKind::Fitted,
        OriginKind::Assumed,
    ];

    /// The word for this kind in a profile.
    pub fn word(self) -> &'static str {
        match self {
            OriginKind::Measured => "measured",
            OriginKind::Published => "published",
            OriginKind::Fitted => "fitted",
            OriginKind::Assumed => "assumed",
        }
    }
}

impl fmt::Display for OriginKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.word())
    }
}

impl Provenance {
    /// Creates one origin for all values, for profiles made by a program.
    pub fn uniform(kind: OriginKind, note: &str) -> Provenance {
        Provenance(BTreeMap::from([(String::new(), format!("{kind}: {note}"))]))
    }

    /// Returns the origin of the value at `path`, from the entry with the longest key that is equal
    /// to the path, or to its beginning up to a dot, or is empty. Returns `None` if there is no
    /// such entry, or if it does not name an origin.
    pub fn of(&self, path: &str) -> Option<Origin<'_>> {
        let mut prefix = path;
        loop {
            if let Some(text) = self.0.get(prefix) {
                return parse(text);
            }
            if prefix.is_empty() {
                return None;
            }
            prefix = prefix.rfind('.').map_or("", |dot| &prefix[..dot]);
        }
    }

    /// Replaces the origins of the values at and below a key that has been set. A list counts as
    /// one value, and keeps its origin if an item is set. `paths` are the paths of all values.
    pub(super) fn set_by_hand(&mut self, key: &str, paths: &[String]) {
        let below = format!("{key}.");
        self.0
            .retain(|path, _| path != key && !path.starts_with(&below));
        if paths.iter().any(|path| covers(key, path)) {
            self.0.insert(key.to_owned(), BY_HAND.to_owned());
        }
    }

    /// Counts the given values by kind of origin, most reliable first.
    pub fn tally<'a>(&self, paths: impl IntoIterator<Item = &'a str>) -> [usize; 4] {
        let mut counts = [0; 4];
        for path in paths {
            if let Some(origin) = self.of(path) {
                counts[origin.kind as usize] += 1;
            }
        }
        counts
    }

    /// Adds entries for the values that no entry covers. The notes of the new entries tell defaults
    /// from values that the profile states without an origin. `text` is the profile.
    pub(super) fn assume_missing(&mut self, paths: &[String], text: &str) {
        let uncovered = |path: &&String| !self.is_covered(path);
        let missing: Vec<&String> = paths.iter().filter(uncovered).collect();
        if missing.is_empty() {
            return;
        }
        let stated = toml::from_str::<toml::Table>(text).unwrap_or_default();
        for path in missing {
            let (key, note) = match first_absent(&stated, path) {
                Some(key) => (key, "default of the profile format"),
                None => (path.as_str(), "no origin is stated"),
            };
            let text = format!("{}: {note}", OriginKind::Assumed);
            self.0.entry(key.to_owned()).or_insert(text);
        }
    }

    fn is_covered(&self, path: &str) -> bool {
        self.0.keys().any(|key| covers(key, path))
    }

    /// Checks that each entry names an origin and covers a value, and that each value is covered.
    pub(super) fn check(&self, paths: &[String]) -> Result<(), ProfileError> {
        for (key, value) in &self.0 {
            let problem = if parse(value).is_none() {
                Some(
                    "must be \"measured: \", \"published: \", \"fitted: \" or \"assumed: \" and a note",
                )
            } else if !paths.iter().any(|path| covers(key, path)) {
                Some("covers no value of this profile; remove this line of [provenance]")
            } else {
                None
            };
            if let Some(problem) = problem {
                return Err(ProfileError::Provenance {
                    key: key.clone(),
                    value: value.clone(),
                    problem: problem.to_owned(),
                });
            }
        }
        match paths.iter().find(|path| self.of(path).is_none()) {
            Some(path) => Err(ProfileError::MissingProvenance { key: path.clone() }),
            None => Ok(()),
        }
    }
}

/// Returns the shortest beginning of a dotted path that the table does not have.
fn first_absent<'a>(stated: &toml::Table, path: &'a str) -> Option<&'a str> {
    let mut table = Some(stated);
    let ends = path.match_indices('.').map(|(dot, _)| dot);
    let mut start = 0;
    for end in ends.chain([path.len()]) {
        let value = table.and_then(|table| table.get(&path[start..end]));
        let Some(value) = value else {
            return Some(&path[..end]);
        };
        table = value.as_table();
        start = end + 1;
    }
    None
}

fn covers(key: &str, path: &str) -> bool {
    key.is_empty() || path == key || (path.starts_with(key) && path.as_bytes()[key.len()] == b'.')
}

fn parse(text: &str) -> Option<Origin<'_>> {
    let (word, note) = text.split_once(": ")?;
    let kind = OriginKind::ALL.into_iter().find(|s| s.word() == word)?;
    (!note.trim().is_empty()).then_some(Origin {
        kind,
        note: note.trim(),
    })
}

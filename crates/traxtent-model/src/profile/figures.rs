//! The values of a profile by dotted path, as used by `--set`, `[provenance]` and listings.

use serde::Serialize;

use super::provenance::BY_HAND;
use super::schema::{Absent, Kind};
use super::{HostSpec, Profile, ProfileError};

/// Keys that do not count as values, and need no origin.
pub(super) const NO_FIGURES: [&str; 5] = ["format", "name", "model", "notes", "provenance"];

/// Returns the dotted path of every value of the profile. A list counts as one value.
pub(super) fn values(profile: &Profile) -> Vec<String> {
    let mut paths = Vec::new();
    for (key, value) in &table(profile) {
        if !NO_FIGURES.contains(&key.as_str()) {
            walk(key.clone(), value, &mut paths);
        }
    }
    paths
}

/// Returns the profile, or one of its tables, as TOML's own table. It goes through the text, so
/// that profiles are compiled for one serializer and one deserializer only.
pub(super) fn table(value: &impl Serialize) -> toml::Table {
    text(value).parse().expect("it was just written")
}

/// Returns the profile, or one of its tables, as TOML.
pub(super) fn text(value: &impl Serialize) -> String {
    toml::to_string(value).expect("a checked profile has no value that TOML cannot hold")
}

fn walk(path: String, value: &toml::Value, paths: &mut Vec<String>) {
    match value {
        toml::Value::Table(table) => {
            for (key, value) in table {
                walk(format!("{path}.{key}"), value, paths);
            }
        }
        _ => paths.push(path),
    }
}

/// Returns the default of a key whose default is false or 0.0. A profile may omit such a key.
fn absent_value(key: &str) -> Option<toml::Value> {
    let key = super::schema::key(key)?;
    match (key.kind, key.default) {
        (Kind::Boolean, Absent::Is("false")) => Some(toml::Value::Boolean(false)),
        (Kind::Number(..), Absent::Is("0.0")) => Some(toml::Value::Float(0.0)),
        _ => None,
    }
}

impl Profile {
    /// Returns the dotted path of every value.
    pub fn value_paths(&self) -> Vec<String> {
        values(self)
    }

    /// Returns the value at a dotted path as TOML, if the profile has one there. If the key is
    /// omitted and its default is false or 0.0, returns the default.
    pub fn value_text(&self, key: &str) -> Option<String> {
        let root = toml::Value::Table(table(self));
        let mut parts = key.split('.');
        let found = parts
            .try_fold(&root, |value, part| value.get(part))
            .cloned();
        found
            .or_else(|| absent_value(key))
            .map(|value| value.to_string())
    }

    /// Returns the profile with the value at a dotted path replaced, as with `--set KEY=VALUE`.
    ///
    /// # Errors
    /// Returns an error if the profile has no value at this path, if the new value has the wrong
    /// type, or if the changed profile does not pass [`Profile::check`].
    pub fn with_value(&self, key: &str, value: &str) -> Result<Profile, ProfileError> {
        let bad = |expected: &str| ProfileError::WrongType {
            key: key.to_owned(),
            value: value.to_owned(),
            problem: format!("must be {expected}"),
        };
        let mut tables = table(self);
        let lacks_scsi = key.starts_with("scsi.") && !tables.contains_key("scsi");
        let lacks_host = key.starts_with("host.") && self.host.is_none();
        // Tables that a profile may omit. If a value in one is set, the table also needs an origin.
        if lacks_scsi {
            tables.insert("scsi".to_owned(), table(&self.scsi).into());
        }
        if lacks_host {
            tables.insert("host".to_owned(), table(&HostSpec::default()).into());
        }
        let mut root = toml::Value::Table(tables);
        let mut place = &mut root;
        for part in key.split('.') {
            place = match place {
                toml::Value::Array(list) => part.parse().ok().and_then(|i: usize| list.get_mut(i)),
                toml::Value::Table(table) => {
                    // Some keys are written only if their value is not false or 0.0.
                    if !table.contains_key(part)
                        && let Some(value) = absent_value(key)
                    {
                        table.insert(part.to_owned(), value);
                    }
                    table.get_mut(part)
                }
                _ => None,
            }
            .ok_or_else(|| ProfileError::UnknownKey {
                key: key.to_owned(),
            })?;
        }
        let whole = |v: &str| v.parse::<i64>().ok();
        *place = match place {
            toml::Value::Float(_) => value
                .parse()
                .map(toml::Value::Float)
                .map_err(|_| bad("a number"))?,
            toml::Value::Integer(_) => whole(value)
                .map(toml::Value::Integer)
                .ok_or_else(|| bad("a whole number"))?,
            toml::Value::Boolean(_) => value
                .parse()
                .map(toml::Value::Boolean)
                .map_err(|_| bad("true or false"))?,
            // A text, even if it looks like a number.
            toml::Value::String(_) if key.starts_with("scsi.") => {
                toml::Value::String(value.to_owned())
            }
            _ if key == "queue.scheduler" && value == "aged-sptf" => {
                let form = super::error::AGED_SPTF_FORM;
                return Err(bad(&format!("aged-sptf with its weight, such as {form}")));
            }
            // One of several words. An unknown one is answered with the list of them.
            toml::Value::String(_) if !value.starts_with(['{', '"', '\'']) => {
                toml::Value::String(value.to_owned())
            }
            _ => toml::from_str::<toml::Table>(&format!("v = {value}"))
                .ok()
                .and_then(|mut t| t.remove("v"))
                .unwrap_or_else(|| toml::Value::String(value.to_owned())),
        };
        let mut changed: Profile =
            toml::from_str(&text(&root)).map_err(|e| ProfileError::WrongType {
                key: key.to_owned(),
                value: value.to_owned(),
                problem: match key {
                    "host.scheduler" => format!("must be {}", super::check::host_schedulers()),
                    _ => super::error::in_words(e.message()),
                },
            })?;
        let adds_scsi = lacks_scsi && !changed.scsi.is_default();
        for (table, added) in [("scsi", adds_scsi), ("host", lacks_host)] {
            if added && changed.provenance.of(table).is_none() {
                let origins = &mut changed.provenance.0;
                origins.insert(table.to_owned(), BY_HAND.to_owned());
            }
        }
        // A value that is set to itself keeps its origin.
        if changed != *self {
            let paths = values(&changed);
            changed.provenance.set_by_hand(key, &paths);
        }
        changed.check()?;
        Ok(changed)
    }
}

#[cfg(test)]
mod tests {
    use crate::profile::builtin;
    use crate::profile::schema::SCHEDULERS;

    /// Does the error for an unknown scheduler list only values that are accepted? `aged-sptf`
    /// requires a weight.
    #[test]
    fn listed_schedulers_are_accepted() {
        let profile = builtin("instant").unwrap();
        let set = |value: &str| profile.with_value("queue.scheduler", value);
        let error = set("elevator").unwrap_err().to_string();
        let (_, listed) = error.split_once("expected one of ").unwrap();
        let listed: Vec<&str> = listed
            .split(", ")
            .map(|word| word.trim_matches('`'))
            .collect();
        assert_eq!(listed.len(), SCHEDULERS.len() + 1, "{error}");
        for value in listed {
            assert!(set(value).is_ok(), "{value}");
        }
    }
}

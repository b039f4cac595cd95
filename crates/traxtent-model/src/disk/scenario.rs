//! The schedule of a disk's faults: a TOML file with a seed, and a list of faults in order of time.
//!
//! ```toml
//! seed = 7
//! faults = [
//!   { at = "2 s", fault = "latent-error", lbn = 1000, sectors = 8 },
//!   { at = "5 s", fault = "power-cut", tearing = "512" },
//! ]
//! ```

use std::fmt::Write as _;
use std::str::FromStr;

use toml::de::{DeTable, DeValue};

use super::duration_text;
use super::fault::{Fault, FaultError};
use traxtent_units::SimTime;

/// Faults and their times.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Scenario {
    /// The seed from which power cuts without a seed of their own draw theirs. Default: 1.
    pub seed: u64,
    /// The faults, ascending by time.
    pub faults: Vec<Scheduled>,
}

/// A fault and its time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Scheduled {
    /// The time of the fault on the disk's clock.
    pub at: SimTime,
    /// The fault.
    pub fault: Fault,
}

/// An entry of the list, for messages.
const EXAMPLE: &str = r#"{ at = "2 s", fault = "stall", for = "1 s" }"#;

/// An error in a scenario.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ScenarioError {
    /// Not TOML, or a key of the file that is unknown or has an invalid value.
    #[error("line {line}: {message}")]
    Syntax {
        /// Line of the text, counted from 1.
        line: usize,
        /// The problem.
        message: String,
    },
    /// An entry of the list that is not a valid fault.
    #[error("line {line}: faults[{index}].{error}")]
    Fault {
        /// Line of the text, counted from 1.
        line: usize,
        /// Index of the entry, counted from 0.
        index: usize,
        /// The problem.
        error: FaultError,
    },
}

impl Default for Scenario {
    fn default() -> Scenario {
        Scenario {
            seed: 1,
            faults: Vec::new(),
        }
    }
}

impl Scenario {
    /// Parses a scenario.
    ///
    /// # Errors
    /// Returns an error if the text is not a valid scenario. The error names the problem, the key
    /// unless the text is not TOML, and the line of the key. If a key is missing, this is the line
    /// on which the entry begins.
    pub fn from_toml(text: &str) -> Result<Scenario, ScenarioError> {
        let syntax = |offset: usize, message: String| ScenarioError::Syntax {
            line: line(text, offset),
            message,
        };
        let table = DeTable::parse(text).map_err(|error| {
            let offset = error.span().map_or(0, |span| span.start);
            syntax(offset, error.message().replace('\n', " "))
        })?;
        let mut scenario = Scenario::default();
        for (key, value) in table.get_ref() {
            let offset = key.span().start;
            match (key.get_ref().as_ref(), value.get_ref()) {
                ("seed", seed) => {
                    let seed = plain(seed).and_then(|seed| seed.parse().ok());
                    scenario.seed = seed.ok_or_else(|| {
                        syntax(
                            offset,
                            "seed: expected a decimal integer, 0 or greater".to_owned(),
                        )
                    })?;
                }
                ("faults", DeValue::Array(entries)) => {
                    for (index, entry) in entries.iter().enumerate() {
                        let line = line(text, entry.span().start);
                        let last = scenario.faults.last().map(|last| last.at);
                        let DeValue::Table(fields) = entry.get_ref() else {
                            let message = format!(
                                "faults[{index}]: expected a table such as {EXAMPLE}, not {}",
                                entry.get_ref().type_str()
                            );
                            return Err(ScenarioError::Syntax { line, message });
                        };
                        let scheduled =
                            entry_of(fields, last).map_err(|error| ScenarioError::Fault {
                                line: line_of_key(text, fields, &error.key).unwrap_or(line),
                                index,
                                error,
                            })?;
                        scenario.faults.push(scheduled);
                    }
                }
                ("faults", _) => {
                    return Err(syntax(
                        offset,
                        "faults: expected a list of tables".to_owned(),
                    ));
                }
                (key, _) => {
                    return Err(syntax(
                        offset,
                        format!("{key}: not a key of a scenario; its keys are seed, faults"),
                    ));
                }
            }
        }
        Ok(scenario)
    }

    /// Returns the scenario as TOML, which [`Scenario::from_toml`] can read.
    pub fn to_toml(&self) -> String {
        let mut text = format!("seed = {}\nfaults = [\n", self.seed);
        for Scheduled { at, fault } in &self.faults {
            let at = duration_text::write(at.since(SimTime::ZERO));
            let _ = write!(text, "  {{ at = \"{at}\", fault = \"{}\"", fault.name());
            for (key, value) in fault.fields() {
                let _ = match value.parse::<u64>() {
                    Ok(number) if number <= i64::MAX as u64 => write!(text, ", {key} = {number}"),
                    _ => write!(text, ", {key} = \"{value}\""),
                };
            }
            text.push_str(" },\n");
        }
        text + "]\n"
    }
}

impl FromStr for Scenario {
    type Err = ScenarioError;

    fn from_str(text: &str) -> Result<Scenario, ScenarioError> {
        Scenario::from_toml(text)
    }
}

/// Parses one entry of the list. It must not be earlier than `last`.
fn entry_of(table: &DeTable, last: Option<SimTime>) -> Result<Scheduled, FaultError> {
    let wrong = |key: &str, problem: String| FaultError {
        key: key.to_owned(),
        problem,
    };
    let mut fields = Vec::new();
    for (key, value) in table {
        let key: &str = key.get_ref();
        let value = plain(value.get_ref()).ok_or_else(|| {
            let given = match value.get_ref() {
                DeValue::Integer(number) => number.to_string(),
                other => other.type_str().to_owned(),
            };
            let problem = format!("expected a decimal integer or a string, not {given}");
            wrong(key, problem)
        })?;
        fields.push((key, value));
    }
    let mut take = |wanted: &str| {
        let found = fields.iter().position(|(key, _)| *key == wanted);
        found
            .map(|found| fields.remove(found).1)
            .ok_or_else(|| wrong(wanted, "missing".to_owned()))
    };
    let (at, name) = (take("at")?, take("fault")?);
    let bad_time = |problem| wrong("at", format!("{at:?}: {problem}"));
    let at = SimTime::ZERO + duration_text::parse(&at).map_err(bad_time)?;
    if last.is_some_and(|last| at < last) {
        let problem =
            "is earlier than the entry above it; the list must be in order of time".to_owned();
        return Err(wrong("at", problem));
    }
    let fields: Vec<(&str, &str)> = fields
        .iter()
        .map(|(key, value)| (*key, value.as_str()))
        .collect();
    let fault = Fault::from_fields(&name, &fields)?;
    Ok(Scheduled { at, fault })
}

/// Returns the line of a key of an entry; `None` if the entry does not have the key.
fn line_of_key(text: &str, entry: &DeTable, key: &str) -> Option<usize> {
    let (key, _) = entry.get_key_value(key)?;
    Some(line(text, key.span().start))
}

/// Returns the text of a string or a decimal integer.
fn plain(value: &DeValue) -> Option<String> {
    match value {
        DeValue::String(text) => Some(text.to_string()),
        DeValue::Integer(number) if number.radix() == 10 => Some(number.as_str().to_owned()),
        _ => None,
    }
}

/// The line, counted from 1, that contains the byte at `offset`.
fn line(text: &str, offset: usize) -> usize {
    let before = &text.as_bytes()[..offset.min(text.len())];
    1 + before.iter().filter(|&&byte| byte == b'\n').count()
}

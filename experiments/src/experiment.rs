//! An experiment as its text describes it, parsed strictly.

use std::collections::BTreeSet;

use serde::Deserialize;
use traxtent_lab::{Measurement, measurement};
use traxtent_model::profile;

use crate::claim::{Claim, Published, Tolerance};
use crate::finding::{Finding, Sample};

/// A measurement on named drives, and the claims with which its numbers are compared.
#[derive(Clone, Debug)]
pub struct Experiment {
    /// The common number of its claims, such as T2.
    pub number: String,
    /// A one-line description.
    pub title: String,
    /// The built-in drives on which the measurement is made.
    pub drives: Vec<String>,
    /// The layout of the data, in plain words.
    pub layout: Option<String>,
    /// The workload, in plain words.
    pub workload: String,
    /// The seeds with which the verdicts must hold. Only one if nothing is random.
    pub seeds: Vec<u64>,
    /// The measurement.
    pub measurement: &'static Measurement,
    /// Whether the experiment replays the traces that come with DiskSim.
    pub traces: bool,
    /// Known differences from the paper's set-up.
    pub differences: Option<String>,
    /// The paper's figure that is redrawn.
    pub figure: Option<FigureSpec>,
    /// The claims, in the order of the measurement's numbers, drive by drive.
    pub claims: Vec<Claim>,
    /// The text from which the experiment was parsed.
    pub text: String,
}

/// A figure of a paper.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct FigureSpec {
    /// The name of the figure in the paper.
    pub name: String,
    /// The points of the figure that the paper's text states.
    #[serde(default)]
    pub published: Vec<PublishedPoint>,
}

/// A point of a figure.
#[derive(Clone, Debug, PartialEq, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct PublishedPoint {
    /// The index of the panel, from 0 at the left.
    #[serde(default)]
    pub panel: usize,
    /// The name of the series.
    pub series: String,
    /// The position. For the end of a bar, the second value is its row.
    pub at: [f64; 2],
}

/// An error in an experiment's text, in one line.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum SpecError {
    /// The text cannot be parsed.
    #[error("experiments/{folder}/experiment.toml:{line}: {what}")]
    Syntax {
        /// The experiment's directory.
        folder: String,
        /// The line.
        line: usize,
        /// The error, in one line.
        what: String,
    },
    /// A value is invalid.
    #[error("experiments/{folder}/experiment.toml: {key} = {value}: {expected}")]
    Value {
        /// The experiment's directory.
        folder: String,
        /// The key.
        key: String,
        /// The invalid value.
        value: String,
        /// The valid values, or why this one is invalid.
        expected: &'static str,
    },
}

/// The keys of the text.
#[derive(Deserialize)]
#[serde(deny_unknown_fields)]
struct Text {
    title: String,
    drive: Drives,
    layout: Option<String>,
    workload: String,
    seeds: Vec<u64>,
    measure: String,
    #[serde(default)]
    traces: bool,
    differences: Option<String>,
    figure: Option<FigureSpec>,
    claim: Vec<Claim>,
}

#[derive(Deserialize)]
#[serde(untagged)]
enum Drives {
    One(String),
    Several(Vec<String>),
}

impl Experiment {
    /// Parses the text in a directory.
    ///
    /// # Errors
    /// Returns an error if the directory's name is invalid, or if the text cannot be parsed, has
    /// unknown keys, refers to something that does not exist, or has an invalid value.
    pub fn parse(folder: &str, text: &str) -> Result<Experiment, SpecError> {
        let read: Text = toml::from_str(text).map_err(|error| SpecError::Syntax {
            folder: folder.to_owned(),
            line: line_of(text, &error),
            what: error.message().replace('\n', " "),
        })?;
        let Some(number) = number_of(folder) else {
            let value = |key: &str, expected| SpecError::Value {
                folder: folder.to_owned(),
                key: key.to_owned(),
                value: folder.to_owned(),
                expected,
            };
            return Err(value(
                "folder",
                "a paper's letter and two digits, such as T02",
            ));
        };
        let check = Check {
            folder,
            number: &number,
        };
        let drives = match read.drive {
            Drives::One(drive) => vec![drive],
            Drives::Several(drives) => drives,
        };
        check.drives(&drives)?;
        check.ensure(!read.seeds.is_empty(), "seeds", "[]", "must not be empty")?;
        check.claims(&read.claim)?;
        let Some(measurement) = measurement(&read.measure) else {
            return Err(check.error(
                "measure",
                read.measure,
                "no measurement of the lab has this name",
            ));
        };
        check.ensure(
            read.figure.is_none() || measurement.draw.is_some(),
            "figure",
            &read.measure,
            "this measurement has no figure",
        )?;
        Ok(Experiment {
            number,
            title: read.title,
            drives,
            layout: read.layout,
            workload: read.workload,
            seeds: read.seeds,
            measurement,
            traces: read.traces,
            differences: read.differences,
            figure: read.figure,
            claims: read.claim,
            text: text.to_owned(),
        })
    }
}

impl Experiment {
    /// Compares the measured numbers, given seed by seed, with the claims.
    ///
    /// # Panics
    /// Panics if a seed has a different number of values than the claims need.
    pub fn judge(&'static self, by_seed: &[(u64, Vec<f64>)]) -> Vec<Finding> {
        let wanted: usize = self.claims.iter().map(|claim| claim.nearest_of).sum();
        for (_, numbers) in by_seed {
            assert_eq!(
                numbers.len(),
                wanted,
                "{}: the number of measured values differs from that of the claims",
                self.number
            );
        }
        let mut from = 0;
        let finding = |claim: &'static Claim| {
            let range = from..from + claim.nearest_of;
            from = range.end;
            let sample = |(seed, numbers): &(u64, Vec<f64>)| Sample {
                seed: *seed,
                measured: claim.nearest(&numbers[range.clone()]),
                candidates: numbers[range.clone()].to_vec(),
            };
            Finding {
                claim,
                samples: by_seed.iter().map(sample).collect(),
            }
        };
        self.claims.iter().map(finding).collect()
    }
}

/// Returns the line at which parsing failed.
fn line_of(text: &str, error: &toml::de::Error) -> usize {
    let read = error.span().map_or(0, |span| span.start.min(text.len()));
    1 + text.as_bytes()[..read]
        .iter()
        .filter(|byte| **byte == b'\n')
        .count()
}

/// Returns the number of the claims in a directory: T2 in T02. `None` if its name is invalid.
fn number_of(folder: &str) -> Option<String> {
    let (letter, digits) = folder.split_at_checked(1)?;
    let is_letter = letter.bytes().all(|byte| byte.is_ascii_uppercase());
    let are_digits = digits.len() == 2 && digits.bytes().all(|byte| byte.is_ascii_digit());
    let number: u32 = digits.parse().ok()?;
    (is_letter && are_digits && number > 0).then(|| format!("{letter}{number}"))
}

/// The checks of an experiment's values.
struct Check<'a> {
    folder: &'a str,
    number: &'a str,
}

impl Check<'_> {
    fn error(&self, key: &str, value: impl Into<String>, expected: &'static str) -> SpecError {
        SpecError::Value {
            folder: self.folder.to_owned(),
            key: key.to_owned(),
            value: value.into(),
            expected,
        }
    }

    fn ensure(
        &self,
        holds: bool,
        key: &str,
        value: &str,
        expected: &'static str,
    ) -> Result<(), SpecError> {
        if holds {
            Ok(())
        } else {
            Err(self.error(key, value, expected))
        }
    }

    fn drives(&self, drives: &[String]) -> Result<(), SpecError> {
        self.ensure(!drives.is_empty(), "drive", "[]", "must not be empty")?;
        for drive in drives {
            let known = profile::builtin::names().any(|name| name == drive);
            self.ensure(known, "drive", drive, "no built-in drive has this name")?;
        }
        Ok(())
    }

    fn claims(&self, claims: &[Claim]) -> Result<(), SpecError> {
        self.ensure(!claims.is_empty(), "claim", "[]", "must not be empty")?;
        let mut ids = BTreeSet::new();
        for claim in claims {
            let id = &claim.id;
            self.ensure(
                claim.is_named_by(self.number),
                "id",
                id,
                "must begin with the directory's number",
            )?;
            self.ensure(ids.insert(id), "id", id, "must be unique")?;
            self.ensure(
                (1..=16).contains(&claim.nearest_of),
                "nearest_of",
                &claim.nearest_of.to_string(),
                "must be 1 to 16",
            )?;
            self.numbers(claim)?;
            self.ensure(
                claim.scored || !claim.reason.is_empty(),
                &format!("{id}: reason"),
                "nothing",
                "a claim that is not scored needs a reason",
            )?;
        }
        Ok(())
    }

    fn numbers(&self, claim: &Claim) -> Result<(), SpecError> {
        let key = |key: &str| format!("{}: {key}", claim.id);
        let ends = claim.published.ends();
        let in_order = match claim.published {
            Published::Number(_) => true,
            Published::Range([from, to]) => from < to,
        };
        self.ensure(
            ends.iter().all(|end| end.is_finite()) && in_order,
            &key("published"),
            &format!("{ends:?}"),
            "must be a number, or a range in ascending order",
        )?;
        let (by, least) = match claim.within {
            Tolerance::Absolute(by) | Tolerance::Relative(by) => (by, 0.0),
            Tolerance::Factor(by) => (by, 1.0),
            Tolerance::AtMost(bound) => (bound, f64::MIN),
            Tolerance::Exact | Tolerance::AtLeast => return Ok(()),
        };
        self.ensure(
            by.is_finite() && by >= least,
            &key("within"),
            &by.to_string(),
            "must be a number; a tolerance of at least 0, or a factor of at least 1",
        )
    }
}

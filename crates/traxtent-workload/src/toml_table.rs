//! Workloads as TOML tables.

use toml::de::{DeTable, DeValue};

use super::spec::{
    GRAMMAR_VERSION, StartAlignment, WorkloadError, WorkloadKind, WorkloadProblem, WorkloadSpec,
};
use traxtent_units::decimal_comma;

impl WorkloadSpec {
    /// Reads a TOML table: `kind`, optionally `grammar`, and the keys of
    /// [`WORKLOAD_KEYS`](crate::WORKLOAD_KEYS). The values are numbers, or strings in the grammar.
    /// Tables with `grammar = 1` have the defaults of grammar 1.
    ///
    /// # Errors
    /// Returns an error with its line if the text is not TOML, if `kind` is missing, if the
    /// grammar, the kind or a key is unknown, if a value is invalid, if keys contradict each other,
    /// or if a key that another needs is missing.
    pub fn from_toml(text: &str) -> Result<WorkloadSpec, WorkloadError> {
        read(text)
    }
}

/// Returns the line, counted from 1, that holds the byte at `offset`.
fn line(text: &str, offset: usize) -> usize {
    1 + text.as_bytes()[..offset.min(text.len())]
        .iter()
        .filter(|&&byte| byte == b'\n')
        .count()
}

fn read(text: &str) -> Result<WorkloadSpec, WorkloadError> {
    let at = |offset: usize, problem: WorkloadProblem| WorkloadError {
        line: Some(line(text, offset)),
        problem,
    };
    let refused = |offset, message| at(offset, WorkloadProblem::Toml { message });
    let table = DeTable::parse(text).map_err(|error| {
        let offset = error.span().map_or(0, |span| span.start);
        let comma = text
            .lines()
            .nth(line(text, offset) - 1)
            .and_then(decimal_comma);
        refused(offset, comma.unwrap_or_else(|| error.message().to_owned()))
    })?;

    let mut kind = None;
    let mut grammar = GRAMMAR_VERSION;
    let mut pairs = Vec::new();
    // In file order, so that of several errors of one kind the first in the file is reported.
    let mut entries: Vec<_> = table.get_ref().iter().collect();
    entries.sort_by_key(|(_, value)| value.span().start);
    for (key, value) in entries {
        let offset = value.span().start;
        let name: &str = key.get_ref();
        let text = match value.get_ref() {
            DeValue::String(text) => text.to_string(),
            DeValue::Integer(number) if number.radix() == 10 => number.as_str().to_owned(),
            DeValue::Integer(number) => {
                return Err(refused(
                    offset,
                    format!("{name}: expected a decimal number or a string, not {number}"),
                ));
            }
            DeValue::Float(number) => number.as_str().to_owned(),
            other => {
                return Err(refused(
                    offset,
                    format!(
                        "{name}: expected a number or a string, not {}",
                        other.type_str()
                    ),
                ));
            }
        };
        match name {
            "kind" => {
                kind = Some(
                    text.parse::<WorkloadKind>()
                        .map_err(|error| at(offset, error.problem))?,
                )
            }
            "grammar" => {
                let known = |number: &u32| (1..=GRAMMAR_VERSION).contains(number);
                grammar = text.parse().ok().filter(known).ok_or_else(|| {
                    refused(
                        offset,
                        format!(
                            "grammar: {text}: this version reads grammars 1 to {GRAMMAR_VERSION}"
                        ),
                    )
                })?;
            }
            _ => pairs.push((offset, name, text)),
        }
    }
    let kind = kind.ok_or_else(|| {
        refused(
            0,
            "kind is missing; expected random, sequential or mixed".to_owned(),
        )
    })?;

    let mut spec = WorkloadSpec::new(kind);
    if grammar == 1 {
        spec.align = StartAlignment::None;
    }
    let mut seen = Vec::new();
    for (offset, name, text) in &pairs {
        spec.set_once(&mut seen, name, text)
            .map_err(|error| at(*offset, error.problem))?;
    }
    let last = pairs.last().map_or(0, |pair| pair.0);
    spec.check().map_err(|error| at(last, error.problem))?;
    Ok(spec)
}

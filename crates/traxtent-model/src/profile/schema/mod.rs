//! Every key of a profile: its meaning, unit, bounds and default.
//!
//! The checks of a profile take the bounds of its figures from here. The reference page, the JSON
//! schema and the comments of written profiles are made from it.

mod firmware;
mod geometry;
mod mechanics;
mod top;

pub use super::scheduler::{AGED_SPTF, HOST_SCHEDULERS, SCHEDULERS, WEIGHT};

/// A table of a profile.
#[derive(Clone, Copy, Debug)]
pub struct Section {
    /// The dotted path; `[]` marks a list of tables. Empty for the top level.
    pub path: &'static str,
    /// The value of `curve` for which these keys apply; `None` if they always apply.
    pub curve: Option<&'static str>,
    /// The purpose of the table.
    pub meaning: &'static str,
    /// Its keys.
    pub keys: &'static [Key],
}

/// A key of a table.
#[derive(Clone, Copy, Debug)]
pub struct Key {
    /// The name.
    pub name: &'static str,
    /// The kind of value.
    pub kind: Kind,
    /// The unit, or an empty text.
    pub unit: &'static str,
    /// The effect of an absent key.
    pub default: Absent,
    /// The meaning.
    pub meaning: &'static str,
}

/// The effect of an absent key.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Absent {
    /// The key is required.
    Refused,
    /// The key has this value, in TOML.
    Is(&'static str),
    /// The key has no default; its absence has this effect.
    Means(&'static str),
}

/// The kind of a value, with its bounds. Both bounds are inclusive.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Kind {
    /// Text.
    Text,
    /// Printable ASCII text, with the maximum number of characters.
    Ascii(usize),
    /// True or false.
    Boolean,
    /// A whole number.
    Whole(f64, f64),
    /// One of several whole numbers.
    OneOf(&'static [u32]),
    /// A number.
    Number(f64, f64),
    /// A word of a list, with meanings.
    Choice(&'static [(&'static str, &'static str)]),
    /// A word of [`SCHEDULERS`], or `{ aged-sptf = { weight = W } }`.
    Scheduler,
    /// `{ sectors = S }` or `{ revolutions = R }`, up to this absolute value.
    Skew(f64),
    /// A whole number, or a list of them with one for each surface.
    PerSurface(f64, f64),
    /// A list of numbers.
    Numbers(f64, f64),
    /// A list of `[distance, time]`, with ascending whole distances; the bounds are those of
    /// distances and of times.
    Points((f64, f64), (f64, f64)),
    /// A list of whole numbers.
    Wholes(f64, f64),
    /// A list of pairs of whole numbers; the bounds are those of the second number.
    Pairs(f64, f64),
    /// `{ track = I }` or `{ node = I }`.
    Part,
    /// A table or a list of tables, which has a section of its own.
    Table,
    /// Origins by the dotted path of the values that they cover.
    Origins,
}

/// The largest time that a profile may give for an overhead, a seek or a switch, in milliseconds.
pub const LONGEST_MS: f64 = 10_000.0;

/// Returns the tables of a profile, in the order in which profiles are written.
pub fn sections() -> impl Iterator<Item = &'static Section> {
    [
        top::SECTIONS,
        mechanics::SECTIONS,
        firmware::SECTIONS,
        geometry::SECTIONS,
    ]
    .into_iter()
    .flatten()
}

/// Returns a key by its dotted path.
pub fn key(path: &str) -> Option<&'static Key> {
    let (table, name) = path.rsplit_once('.').unwrap_or(("", path));
    sections()
        .filter(|section| section.path == table)
        .flat_map(|section| section.keys)
        .find(|key| key.name == name)
}

/// Returns the bounds of the numbers of a key.
pub(super) fn bounds(path: &str) -> (f64, f64) {
    match key(path).map(|key| key.kind) {
        Some(Kind::Whole(min, max) | Kind::Number(min, max) | Kind::Numbers(min, max)) => {
            (min, max)
        }
        _ => unreachable!("the schema has bounds for {path}"),
    }
}

impl Key {
    /// Returns the allowed values in words, or an empty text if any value of the type is allowed.
    pub fn bounds(&self) -> String {
        match self.kind {
            Kind::Whole(min, max) | Kind::Number(min, max) if min == max => format!("{min}"),
            Kind::Whole(min, max) | Kind::Number(min, max) => format!("from {min} to {max}"),
            Kind::PerSurface(min, max) | Kind::Numbers(min, max) | Kind::Wholes(min, max) => {
                format!("each from {min} to {max}")
            }
            Kind::Pairs(min, max) => format!("the second from {min} to {max}"),
            Kind::Points(distances, times) => format!(
                "distances ascending from {} to {}, times from {} to {}",
                distances.0, distances.1, times.0, times.1
            ),
            Kind::OneOf(values) => words(values.iter().map(u32::to_string)),
            Kind::Choice(words_of) => words(words_of.iter().map(|(word, _)| format!("\"{word}\""))),
            Kind::Scheduler => {
                let all = SCHEDULERS.iter().map(|(word, _)| format!("\"{word}\""));
                let aged = format!(
                    "{{ aged-sptf = {{ weight = W }} }}, W from {} to {} ms per ms",
                    WEIGHT.0, WEIGHT.1
                );
                words(all.chain([aged]))
            }
            Kind::Skew(most) => {
                format!("{{ sectors = S }} or {{ revolutions = R }}, from -{most} to {most}")
            }
            Kind::Ascii(longest) => format!("up to {longest} ASCII characters"),
            Kind::Part => "{ track = I } or { node = I }".to_owned(),
            Kind::Text | Kind::Boolean | Kind::Table | Kind::Origins => String::new(),
        }
    }
}

fn words(all: impl Iterator<Item = String>) -> String {
    let mut all: Vec<String> = all.collect();
    match all.pop() {
        Some(last) if !all.is_empty() => format!("{} or {last}", all.join(", ")),
        last => last.unwrap_or_default(),
    }
}

const fn key_of(
    name: &'static str,
    kind: Kind,
    unit: &'static str,
    default: Absent,
    meaning: &'static str,
) -> Key {
    Key {
        name,
        kind,
        unit,
        default,
        meaning,
    }
}

const fn section(path: &'static str, meaning: &'static str, keys: &'static [Key]) -> Section {
    Section {
        path,
        curve: None,
        meaning,
        keys,
    }
}

/// A duration in milliseconds.
const fn duration(name: &'static str, default: Absent, meaning: &'static str) -> Key {
    key_of(name, Kind::Number(0.0, LONGEST_MS), "ms", default, meaning)
}

/// A switch that is off if absent.
const fn switch(name: &'static str, meaning: &'static str) -> Key {
    key_of(name, Kind::Boolean, "", Absent::Is("false"), meaning)
}

/// A table or list of tables with a section of its own.
const fn table(name: &'static str, default: Absent, meaning: &'static str) -> Key {
    key_of(name, Kind::Table, "", default, meaning)
}

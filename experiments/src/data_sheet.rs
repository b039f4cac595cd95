//! What makers publish of the built-in drives' speed.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// Figures of a data sheet or a manual.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSheet {
    /// The sustained rate at the outer edge, in megabytes of 10^6 bytes a second.
    pub sustained_mb_per_s: Option<f64>,
    /// The sustained rate at the inner edge.
    pub sustained_min_mb_per_s: Option<f64>,
    /// The average seek to read, in milliseconds.
    pub average_read_seek_ms: Option<f64>,
    /// Where they stand.
    pub source: String,
}

static DATA_SHEETS: LazyLock<BTreeMap<String, DataSheet>> = LazyLock::new(|| {
    toml::from_str(include_str!("../data-sheets.toml")).expect("a table of data sheets")
});

/// What the maker of a built-in drive publishes, if that was found.
pub fn data_sheet(drive: &str) -> Option<&'static DataSheet> {
    DATA_SHEETS.get(drive)
}

/// The built-in drives whose makers' figures were found.
pub fn data_sheets() -> impl Iterator<Item = (&'static str, &'static DataSheet)> {
    DATA_SHEETS
        .iter()
        .map(|(name, sheet)| (name.as_str(), sheet))
}

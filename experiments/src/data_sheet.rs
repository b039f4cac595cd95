//! The performance that manufacturers publish for the built-in drives.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use serde::Deserialize;

/// The values of a data sheet or manual.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct DataSheet {
    /// The sustained rate at the outer edge, in megabytes (10^6 bytes) per second.
    pub sustained_mb_per_s: Option<f64>,
    /// The sustained rate at the inner edge, in megabytes per second.
    pub sustained_min_mb_per_s: Option<f64>,
    /// The average read seek, in milliseconds.
    pub average_read_seek_ms: Option<f64>,
    /// The document that states the values.
    pub source: String,
}

static DATA_SHEETS: LazyLock<BTreeMap<String, DataSheet>> = LazyLock::new(|| {
    toml::from_str(include_str!("../data-sheets.toml")).expect("a table of data sheets")
});

/// Returns the data sheet of a built-in drive, if one was found.
pub fn data_sheet(drive: &str) -> Option<&'static DataSheet> {
    DATA_SHEETS.get(drive)
}

/// Returns all data sheets, with the names of the built-in drives.
pub fn data_sheets() -> impl Iterator<Item = (&'static str, &'static DataSheet)> {
    DATA_SHEETS
        .iter()
        .map(|(name, sheet)| (name.as_str(), sheet))
}

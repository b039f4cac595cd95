//! Reference data in a directory next to the workspace.

use std::path::PathBuf;

/// Returns the path of a file of reference data. `relative` is its path within the directory `data`
/// of the reference data. If the file is missing, prints a line and returns `None`.
pub(crate) fn path(relative: &str) -> Option<PathBuf> {
    let default = concat!(env!("CARGO_MANIFEST_DIR"), "/../../../shared");
    let shared =
        std::env::var_os("TRAXTENT_SHARED").map_or_else(|| PathBuf::from(default), PathBuf::from);
    let path = shared.join("data").join(relative);
    if path.exists() {
        return Some(path);
    }
    eprintln!("skipped: reference data {relative} is missing");
    None
}

//! Reference data in a directory next to the project.

use std::path::PathBuf;

/// Returns the path of a file of reference data. `path` is relative to the directory of that data.
/// If the file is missing, prints a line and returns `None`.
pub(crate) fn shared(path: &str) -> Option<PathBuf> {
    let folder = std::env::var_os("TRAXTENT_SHARED").map_or_else(
        || PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
        PathBuf::from,
    );
    let file = folder.join(path);
    if file.exists() {
        return Some(file);
    }
    eprintln!("skipped: {} is missing", file.display());
    None
}

//! Track maps in files.

use std::io::BufRead;
use std::path::Path;

use traxtent_map::{Identity, MapFile, MapSource, TrackMap, TrackMapError};
use traxtent_units::Sectors;

use crate::error::{Result, RunError};
use crate::input;

/// The sector size assumed for a list of tracks, which does not state it.
const LIST_SECTOR_BYTES: u32 = 512;

/// Returns the map in a file, which is a map file or a list of tracks as CSV; `None` if the file is
/// not a map.
///
/// # Errors
/// Returns an error if the file cannot be read, if a map file is longer than 256 MiB, or if the map
/// is damaged.
pub fn read_map(path: &Path) -> Result<Option<MapFile>> {
    let mut file = input::open(path)?;
    let start = file
        .fill_buf()
        .map_err(|error| RunError::file(path, &error))?;
    if MapFile::recognize(start) {
        let map = MapFile::read_from(file).map_err(|error| map_error(path, error))?;
        return Ok(Some(map));
    }
    if !start.starts_with(b"first_lbn,") {
        return Ok(None);
    }
    let tracks = TrackMap::read_csv(file).map_err(|error| map_error(path, error))?;
    let identity = Identity {
        capacity: Sectors(tracks.end().0),
        logical_bytes: LIST_SECTOR_BYTES,
        physical_bytes: LIST_SECTOR_BYTES,
        ..Identity::default()
    };
    Ok(Some(MapFile::new(identity, MapSource::List, tracks)))
}

fn map_error(path: &Path, error: TrackMapError) -> RunError {
    match error {
        TrackMapError::Line { line, problem } => {
            RunError::at(format!("{}:{line}", path.display()), problem)
        }
        TrackMapError::Io { error, .. } => RunError::file(path, &error),
        _ => RunError::at(path.display(), error),
    }
}

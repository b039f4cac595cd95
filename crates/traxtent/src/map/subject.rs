//! The subjects of `traxtent map`: a drive, or a map in a file.

use std::borrow::Cow;
use std::io::{BufRead, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_map::{MapFile, MapSource, TrackMap, TrackMapError};
use traxtent_model::geometry::Geometry;
use traxtent_probe::{Identity, Target as _};
use traxtent_run::input;
use traxtent_run::{NamedDrive, Target};
use traxtent_sim::SimTarget;
use traxtent_units::Sectors;

use crate::failure::{Failure, Result};
use crate::machine::load;

/// The maximum size of a map file in bytes.
const FILE_BYTES: u64 = 256 << 20;

/// The sector size assumed for a list of tracks, which does not state it.
const LIST_SECTOR_BYTES: u32 = 512;

/// A drive, or a map.
pub(crate) enum Subject {
    /// A drive whose geometry is known.
    Drive(NamedDrive),
    /// A map, with its name.
    Map(String, Box<MapFile>),
}

impl Subject {
    /// Loads a target of `traxtent map`.
    pub(crate) fn load(text: &str) -> Result<Subject> {
        if let Target::File(path) = Target::parse(text)?
            && let Some(map) = read_map(&path)?
        {
            return Ok(Subject::Map(text.to_owned(), Box::new(map)));
        }
        Ok(Subject::Drive(load(text)?.only_drive()?))
    }

    /// Returns the name.
    pub(crate) fn name(&self) -> &str {
        match self {
            Subject::Drive(drive) => &drive.name,
            Subject::Map(name, _) => name,
        }
    }

    /// Returns the files that the subject was read from.
    pub(crate) fn inputs(&self) -> Vec<&Path> {
        match self {
            Subject::Drive(drive) => drive.files.iter().map(PathBuf::as_path).collect(),
            Subject::Map(name, _) => vec![Path::new(name)],
        }
    }

    /// Returns the geometry, if it is known.
    pub(crate) fn geometry(&self) -> Option<&Geometry> {
        match self {
            Subject::Drive(drive) => Some(&drive.geometry),
            Subject::Map(..) => None,
        }
    }

    /// Returns the map, with its identity and other information.
    pub(crate) fn file(&self) -> Cow<'_, MapFile> {
        match self {
            Subject::Drive(drive) => Cow::Owned(of_model(drive)),
            Subject::Map(_, file) => Cow::Borrowed(file),
        }
    }
}

fn of_model(drive: &NamedDrive) -> MapFile {
    // The identity is the one that a probe of the model would find.
    let target = SimTarget::new(Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
    let identity = target.identity().clone();
    MapFile::new(
        identity,
        MapSource::Model,
        TrackMap::of_sizes(drive.geometry.track_sizes()),
    )
}

/// Returns the map in a file; `None` if the file is not a map.
pub(crate) fn read_map(path: &Path) -> Result<Option<MapFile>> {
    let mut file = input::open(path)?;
    let start = file
        .fill_buf()
        .map_err(|error| Failure::file(path, &error))?;
    if MapFile::recognize(start) {
        let mut bytes = Vec::new();
        file.take(FILE_BYTES + 1)
            .read_to_end(&mut bytes)
            .map_err(|error| Failure::file(path, &error))?;
        if bytes.len() as u64 > FILE_BYTES {
            let problem = format!("is longer than {FILE_BYTES} bytes");
            return Err(Failure::at(path.display(), problem));
        }
        let map = MapFile::read(&bytes).map_err(|error| wrong(path, error))?;
        return Ok(Some(map));
    }
    if !start.starts_with(b"first_lbn,") {
        return Ok(None);
    }
    let tracks = TrackMap::read_csv(file).map_err(|error| wrong(path, error))?;
    let identity = Identity {
        capacity: Sectors(tracks.end().0),
        logical_bytes: LIST_SECTOR_BYTES,
        physical_bytes: LIST_SECTOR_BYTES,
        ..Identity::default()
    };
    Ok(Some(MapFile::new(identity, MapSource::List, tracks)))
}

fn wrong(path: &Path, error: TrackMapError) -> Failure {
    match error {
        TrackMapError::Line { line, problem } => {
            Failure::at(format!("{}:{line}", path.display()), problem)
        }
        TrackMapError::Io { error, .. } => Failure::file(path, &error),
        _ => Failure::at(path.display(), error),
    }
}

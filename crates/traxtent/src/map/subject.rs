//! The subjects of `traxtent map`: a drive, or a map in a file.

use std::borrow::Cow;
use std::io::BufRead;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_map::{MapFile, MapSource, TrackMap};
use traxtent_model::geometry::Geometry;
use traxtent_probe::Target as _;
use traxtent_run::{NamedDrive, Target, input, read_map};
use traxtent_sim::SimTarget;

use crate::failure::{Failure, Result};
use crate::machine::load;
use traxtent_check::content::known_content;

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
        if let Target::File(path) = Target::parse(text)? {
            if let Some(map) = read_map(&path)? {
                return Ok(Subject::Map(text.to_owned(), Box::new(map)));
            }
            refuse_binary(&path)?;
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

/// Refuses a file that is no text, such as an image of a disk. It can be too long to be read as a
/// profile.
fn refuse_binary(path: &Path) -> Result<()> {
    let mut file = input::open(path)?;
    let start = file
        .fill_buf()
        .map_err(|error| Failure::file(path, &error))?;
    if !start.contains(&0) {
        return Ok(());
    }
    let holds = known_content(path).map(|content| format!(" (it holds {content})"));
    let what = "is neither a track map nor a profile of a drive";
    let what = format!("{what}{}", holds.unwrap_or_default());
    Err(Failure::at(path.display(), what))
}

fn of_model(drive: &NamedDrive) -> MapFile {
    // The identity is the one that a probe of the model would find.
    let target = SimTarget::new(Arc::clone(&drive.profile), Arc::clone(&drive.geometry));
    let identity = target.identity().clone();
    MapFile::new(
        identity,
        MapSource::Model,
        TrackMap::from_sizes(drive.geometry.track_sizes()),
    )
}

//! Pictures in SVG or PNG files; the file's extension selects the format. Without the feature
//! `plot`, no pictures can be drawn.

use std::path::Path;

use traxtent_plot::{Draw, DrawError, Format};

use crate::failure::{Failure, Result};
use crate::output;

/// Refuses a file name without a picture's extension, and any name if this build cannot draw.
/// Called before anything is computed.
pub(crate) fn check_ending(path: &Path) -> Result<()> {
    format(path).map(drop)
}

/// Draws a picture into a file.
pub(crate) fn write(path: &Path, picture: &impl Draw) -> Result<()> {
    let bytes = picture
        .file(format(path)?)
        .map_err(|error| Failure::Io(format!("{}: {error}", path.display())))?;
    output::write(path, &bytes)
}

/// Returns whether a name has the extension of a picture.
pub(crate) fn is_picture(path: &Path) -> bool {
    format_of(path).is_some()
}

fn format(path: &Path) -> Result<Format> {
    if !cfg!(feature = "plot") {
        return Err(Failure::input(DrawError::NotBuilt));
    }
    format_of(path).ok_or_else(|| {
        let why = "expected a file name that ends in .svg or .png";
        Failure::at(path.display(), why)
    })
}

fn format_of(path: &Path) -> Option<Format> {
    match path.extension()?.to_str()? {
        "svg" => Some(Format::Svg),
        "png" => Some(Format::Png),
        _ => None,
    }
}

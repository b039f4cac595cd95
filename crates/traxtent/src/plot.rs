//! Pictures in SVG or PNG files, chosen by the file's extension. Without the feature `plot`, no
//! pictures can be drawn.

use std::path::Path;

use traxtent_plot::{Draw, DrawError, Format};

use crate::failure::{Failure, Result};
use crate::output;

/// Refuses a file name that is not suitable for a picture, before anything is computed.
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

fn format(path: &Path) -> Result<Format> {
    if !cfg!(feature = "plot") {
        return Err(Failure::input(DrawError::NotBuilt));
    }
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg") => Ok(Format::Svg),
        Some("png") => Ok(Format::Png),
        _ => Err(Failure::at(
            path.display(),
            "expected a file name that ends in .svg or .png",
        )),
    }
}

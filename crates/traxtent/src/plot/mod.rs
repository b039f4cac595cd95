//! Pictures, as SVG or PNG by the ending of the file.
//!
//! Text in a PNG is set in DejaVu Sans, which is built in, so no font need be installed; an SVG leaves the
//! choice of a sans-serif font to its viewer. Without the feature `plot` there are no pictures.

#[cfg(feature = "plot")]
mod canvas;
#[cfg(feature = "plot")]
mod chart;
#[cfg(feature = "plot")]
mod figure;
#[cfg(feature = "plot")]
mod pictures;
#[cfg(feature = "plot")]
mod tracks;

#[cfg(feature = "plot")]
pub(crate) use figure::{figure, inline};
#[cfg(feature = "plot")]
pub(crate) use pictures::{efficiency, response, validation};
#[cfg(feature = "plot")]
pub(crate) use tracks::tracks;

use std::path::Path;

use crate::failure::{Failure, Result};

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// As the legend has it.
    pub(crate) name: String,
    /// Ascending by x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A published value to compare a curve with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Mark {
    /// Where it is.
    pub(crate) at: (f64, f64),
    /// Which curve it belongs to.
    pub(crate) curve: usize,
}

/// Response times and where they come from.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// Above the picture.
    pub(crate) title: String,
    /// The cumulative distribution: milliseconds and share.
    pub(crate) cdf: Vec<(f64, f64)>,
    /// The time that all but a thousandth of the requests keep below, in milliseconds.
    pub(crate) p99_9_ms: f64,
    /// The mean of each part of the response time, in milliseconds.
    pub(crate) parts_ms: [f64; 8],
}

/// Simulated and measured response times of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Validation {
    /// Above the picture.
    pub(crate) title: String,
    /// Two cumulative distributions: milliseconds and share.
    pub(crate) curves: Vec<Curve>,
    /// Where the axis of times ends.
    pub(crate) until_ms: f64,
}

/// Efficiency against request size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Efficiency {
    /// Side by side.
    pub(crate) panels: Vec<EfficiencyPanel>,
}

/// One drive's efficiency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EfficiencyPanel {
    /// Above the panel.
    pub(crate) title: String,
    /// Request size in KB (1,024 bytes) and efficiency from 0 to 1.
    pub(crate) curves: Vec<Curve>,
    /// Published values.
    pub(crate) marks: Vec<Mark>,
    /// Size of a track in KB.
    pub(crate) track_kb: f64,
}

/// Something of each track against its LBNs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tracks {
    /// Above the picture.
    pub(crate) title: String,
    /// The LBNs that are shown.
    pub(crate) lbns: std::ops::Range<f64>,
    /// Above one another.
    pub(crate) panels: Vec<TracksPanel>,
}

/// One number of each track.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TracksPanel {
    /// What the number is.
    pub(crate) title: &'static str,
    /// What the colours mean, if anything.
    pub(crate) legend: Vec<String>,
    /// Tracks, or many tracks in one.
    pub(crate) bars: Vec<Bar>,
}

/// One track, or the range of many.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bar {
    /// From and to.
    pub(crate) lbns: (f64, f64),
    /// The least and the greatest number.
    pub(crate) values: (f64, f64),
    /// Which colour.
    pub(crate) colour: usize,
}

/// A panel for a page that has its title and its legend.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inline {
    /// The axes and what is drawn there.
    pub(crate) svg: String,
    /// The legend.
    pub(crate) keys: Vec<Key>,
}

/// An entry of a legend.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// Its sign: line, dot, bar, or mark for what is published.
    pub(crate) class: &'static str,
    /// Its colour, if it has one.
    pub(crate) colour: Option<usize>,
    /// Its name.
    pub(crate) name: String,
}

/// Refuses a file name that no picture can be written to, before anything is computed.
pub(crate) fn check_ending(path: &Path) -> Result<()> {
    if !cfg!(feature = "plot") {
        return Err(Failure::input(
            "this build draws no pictures: it lacks the feature `plot`",
        ));
    }
    match path.extension().and_then(|ending| ending.to_str()) {
        Some("svg" | "png") => Ok(()),
        _ => Err(Failure::at(
            path.display(),
            "a picture's name ends in .svg or .png",
        )),
    }
}

#[cfg(not(feature = "plot"))]
mod none {
    //! What draws nothing; `check_ending` has refused before.
    use traxtent_experiments::FigureSpec;
    use traxtent_lab::Figure;

    use super::*;

    pub(crate) fn figure(path: &Path, _: &Figure, _: Option<&FigureSpec>) -> Result<()> {
        check_ending(path)
    }

    pub(crate) fn inline(_: &Figure, _: usize, _: &FigureSpec) -> Result<Inline> {
        check_ending(Path::new("any.svg")).map(|()| Inline::default())
    }

    pub(crate) fn response(path: &Path, _: &Response) -> Result<()> {
        check_ending(path)
    }

    pub(crate) fn validation(path: &Path, _: &Validation) -> Result<()> {
        check_ending(path)
    }

    pub(crate) fn efficiency(path: &Path, _: &Efficiency) -> Result<()> {
        check_ending(path)
    }

    pub(crate) fn tracks(path: &Path, _: &Tracks) -> Result<()> {
        check_ending(path)
    }
}
#[cfg(not(feature = "plot"))]
pub(crate) use none::{efficiency, figure, inline, response, tracks, validation};

//! Pictures in SVG or PNG format, chosen by the file's extension.
//!
//! Text in a PNG is set in the built-in font DejaVu Sans, so that no font needs to be installed. An
//! SVG leaves the choice of a sans-serif font to its viewer. Without the feature `plot`, no
//! pictures can be drawn.

#[cfg(feature = "plot")]
mod canvas;
#[cfg(feature = "plot")]
#[cfg_attr(
    not(feature = "lab"),
    allow(dead_code, reason = "only the experiments' figures use all of it")
)]
mod chart;
#[cfg_attr(
    not(all(feature = "plot", feature = "lab")),
    allow(
        dead_code,
        reason = "only pages and the experiments' figures use all of it"
    )
)]
pub(crate) mod colours;
#[cfg(feature = "plot")]
mod distribution;
#[cfg(all(feature = "plot", feature = "lab"))]
mod figure;
#[cfg(feature = "plot")]
mod pictures;
#[cfg(feature = "plot")]
mod scale;
#[cfg(feature = "plot")]
mod tracks;

#[cfg(feature = "plot")]
pub(crate) use distribution::distributions;
#[cfg(all(feature = "plot", feature = "lab"))]
pub(crate) use figure::{figure, inline};
#[cfg(feature = "plot")]
pub(crate) use pictures::{efficiency, efficiency_svg, response, validation};
#[cfg(feature = "plot")]
pub(crate) use tracks::tracks;

use std::path::Path;

use crate::failure::{Failure, Result};

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Curve {
    /// The name in the legend.
    pub(crate) name: String,
    /// The points, in ascending order of x.
    pub(crate) points: Vec<(f64, f64)>,
}

/// A published value to compare a curve with.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct PublishedMark {
    /// The position.
    pub(crate) at: (f64, f64),
    /// The index of the curve that it belongs to.
    pub(crate) curve: usize,
}

/// The axes of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Axes {
    /// Whether the axis of times is logarithmic.
    pub(crate) log_x: bool,
    /// Whether the other axis shows the share of slower requests, and is logarithmic.
    pub(crate) log_y: bool,
}

/// The cumulative distribution of response times.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distribution {
    /// The name in the legend.
    pub(crate) name: String,
    /// Each time that occurs in milliseconds, and the share of requests that took no longer.
    pub(crate) steps: Vec<(f64, f64)>,
    /// The 99.9th percentile in milliseconds.
    pub(crate) p99_9_ms: f64,
}

/// Several distributions in one chart.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Distributions {
    /// The title above the picture.
    pub(crate) title: String,
    /// The distributions.
    pub(crate) distributions: Vec<Distribution>,
    /// The axes.
    pub(crate) axes: Axes,
}

/// Response times and their components.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Response {
    /// The title above the picture.
    pub(crate) title: String,
    /// The distribution.
    pub(crate) distribution: Distribution,
    /// The axes of the distribution.
    pub(crate) axes: Axes,
    /// The mean of each component of the response time, in milliseconds.
    pub(crate) parts_ms: [f64; 8],
}

/// Simulated and measured response times of a trace.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Validation {
    /// The title above the picture.
    pub(crate) title: String,
    /// Two cumulative distributions: milliseconds and share.
    pub(crate) curves: Vec<Curve>,
    /// The end of the time axis.
    pub(crate) until_ms: f64,
}

/// Efficiency against request size.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Efficiency {
    /// The panels, side by side.
    pub(crate) panels: Vec<EfficiencyPanel>,
    /// The displayed width of a panel.
    pub(crate) panel_width: u32,
}

/// One drive's efficiency.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct EfficiencyPanel {
    /// The title above the panel.
    pub(crate) title: String,
    /// Request size in KiB and efficiency from 0 to 1.
    pub(crate) curves: Vec<Curve>,
    /// Published values.
    pub(crate) marks: Vec<PublishedMark>,
    /// The size of a track in KiB.
    pub(crate) track_kib: f64,
}

/// Values of each track against its LBNs.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Tracks {
    /// The title above the picture.
    pub(crate) title: String,
    /// The panels, one above another.
    pub(crate) panels: Vec<TracksPanel>,
}

/// One value of each track.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct TracksPanel {
    /// The name of the value.
    pub(crate) title: &'static str,
    /// A heading above the panel, if it differs from the picture's title.
    pub(crate) heading: Option<String>,
    /// The LBNs that are shown.
    pub(crate) lbns: std::ops::Range<f64>,
    /// Whether the vertical axis begins at zero.
    pub(crate) from_zero: bool,
    /// The meaning of the colours; empty if they have none.
    pub(crate) legend: Vec<String>,
    /// The bars, each for one track or several.
    pub(crate) bars: Vec<Bar>,
}

/// One track, or the range of several tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Bar {
    /// The start and end.
    pub(crate) lbns: (f64, f64),
    /// The lowest and the highest value.
    pub(crate) values: (f64, f64),
    /// The index of the colour.
    pub(crate) colour: usize,
}

/// A panel for a page that provides its title and legend.
#[cfg(feature = "lab")]
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Inline {
    /// The axes and their content.
    pub(crate) svg: String,
    /// The entries of the legend.
    pub(crate) keys: Vec<Key>,
}

/// An entry of a legend.
#[cfg(feature = "lab")]
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Key {
    /// The kind of sign: line, dot, bar, or mark for published values.
    pub(crate) class: &'static str,
    /// The index of the colour, if it has one.
    pub(crate) colour: Option<usize>,
    /// The name.
    pub(crate) name: String,
}

/// Refuses a file name that is not suitable for a picture, before anything is computed.
pub(crate) fn check_ending(path: &Path) -> Result<()> {
    if !cfg!(feature = "plot") {
        return Err(Failure::input(
            "this build cannot draw pictures; rebuild it with the feature `plot`",
        ));
    }
    if is_picture(path) {
        return Ok(());
    }
    Err(Failure::at(
        path.display(),
        "expected a file name that ends in .svg or .png",
    ))
}

/// Returns whether a name has the extension of a picture.
pub(crate) fn is_picture(path: &Path) -> bool {
    let ending = path.extension().and_then(|ending| ending.to_str());
    matches!(ending, Some("svg" | "png"))
}

#[cfg(not(feature = "plot"))]
mod none {
    //! Stand-ins that draw nothing. `check_ending` refuses the picture beforehand.
    #[cfg(feature = "lab")]
    use traxtent_experiments::FigureSpec;
    #[cfg(feature = "lab")]
    use traxtent_lab::Figure;

    use super::*;

    #[cfg(feature = "lab")]
    pub(crate) fn figure(path: &Path, _: &Figure, _: Option<&FigureSpec>) -> Result<()> {
        check_ending(path)
    }

    #[cfg(feature = "lab")]
    pub(crate) fn inline(_: &Figure, _: usize, _: &FigureSpec, _: u32) -> Result<Inline> {
        check_ending(Path::new("any.svg")).map(|()| Inline::default())
    }

    pub(crate) fn distributions(path: &Path, _: &Distributions) -> Result<()> {
        check_ending(path)
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

    pub(crate) fn efficiency_svg(_: &Efficiency) -> Result<String> {
        check_ending(Path::new("any.svg")).map(|()| String::new())
    }

    pub(crate) fn tracks(path: &Path, _: &Tracks) -> Result<()> {
        check_ending(path)
    }
}
#[cfg(not(feature = "plot"))]
pub(crate) use none::{distributions, efficiency, efficiency_svg, response, tracks, validation};
#[cfg(all(not(feature = "plot"), feature = "lab"))]
pub(crate) use none::{figure, inline};

#![doc = include_str!("../README.md")]

#[cfg(feature = "draw")]
mod canvas;
#[cfg(feature = "draw")]
#[cfg_attr(
    not(feature = "lab"),
    allow(dead_code, reason = "only the experiments' figures use all of it")
)]
mod chart;
pub mod colours;
#[cfg(feature = "draw")]
mod distribution;
#[cfg(all(feature = "draw", feature = "lab"))]
mod figure;
#[cfg(feature = "draw")]
mod marker;
#[cfg(feature = "draw")]
mod pictures;
#[cfg(feature = "draw")]
mod scale;
#[cfg(feature = "draw")]
mod sweep;
#[cfg(feature = "draw")]
mod tracks;

#[cfg(all(feature = "draw", feature = "lab"))]
pub use figure::inline;

/// The format of a picture's file.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Format {
    /// Scalable Vector Graphics. The viewer chooses a sans-serif font and light or dark paper.
    Svg,
    /// Portable Network Graphics, on light paper, with the font DejaVu Sans.
    Png,
}

/// A picture that can be drawn.
pub trait Draw {
    /// Returns the picture as an SVG element for a page, which provides
    /// [the style for dark paper](colours::dark_style).
    ///
    /// # Errors
    /// Returns an error if the picture cannot be drawn.
    fn svg(&self) -> Result<String, DrawError>;

    /// Returns the content of the picture's file.
    ///
    /// # Errors
    /// Same as [`Draw::svg`].
    fn file(&self, format: Format) -> Result<Vec<u8>, DrawError>;
}

/// The reason why a picture cannot be drawn.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum DrawError {
    /// The crate was built without the feature `draw`.
    #[error("this build cannot draw pictures; rebuild it with the feature `plot`")]
    NotBuilt,
    /// The drawing library failed to draw the picture.
    #[error("cannot draw the picture: {0}")]
    Drawing(String),
}

/// The figure of an experiment, with the points that a paper states.
#[cfg(feature = "lab")]
#[derive(Clone, Copy, Debug)]
pub struct ExperimentFigure<'a> {
    /// The data.
    pub figure: &'a traxtent_lab::Figure,
    /// The published points, if the paper states any.
    pub spec: Option<&'a traxtent_experiments::FigureSpec>,
}

/// A named curve.
#[derive(Clone, Debug, PartialEq)]
pub struct Curve {
    /// The name in the legend.
    pub name: String,
    /// The points, in ascending order of x.
    pub points: Vec<(f64, f64)>,
}

/// A published value to compare a curve with.
#[derive(Clone, Debug, PartialEq)]
pub struct PublishedMark {
    /// The position.
    pub at: (f64, f64),
    /// The index of the curve that it belongs to.
    pub curve: usize,
}

/// The axes of a distribution.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Axes {
    /// Whether the axis of times is logarithmic.
    pub log_x: bool,
    /// Whether the other axis shows the share of slower requests, and is logarithmic.
    pub log_y: bool,
}

/// The cumulative distribution of response times.
#[derive(Clone, Debug, PartialEq)]
pub struct Distribution {
    /// The name in the legend.
    pub name: String,
    /// Each response time that occurs, in milliseconds, and the share of requests that took no
    /// longer.
    pub steps: Vec<(f64, f64)>,
    /// The 99.9th percentile in milliseconds.
    pub p99_9_ms: f64,
}

/// Several distributions in one chart.
#[derive(Clone, Debug, PartialEq)]
pub struct Distributions {
    /// The title above the picture.
    pub title: String,
    /// The distributions.
    pub distributions: Vec<Distribution>,
    /// The axes.
    pub axes: Axes,
}

/// Throughput and response times over the values of a parameter.
#[derive(Clone, Debug, PartialEq)]
pub struct Sweep {
    /// The title above the picture.
    pub title: String,
    /// The name of the parameter, with the unit of its values, if any.
    pub parameter: String,
    /// The unit of the throughput, such as `requests/s`.
    pub throughput_unit: &'static str,
    /// The series, each with its colour.
    pub series: Vec<SweepSeries>,
    /// The axes. `log_x` is for the parameter, and `log_y` for the response times. The axis of the
    /// parameter is also logarithmic if its values multiply.
    pub axes: Axes,
}

/// A series of a sweep.
#[derive(Clone, Debug, PartialEq)]
pub struct SweepSeries {
    /// The name in the legend.
    pub name: String,
    /// The points, in ascending order of the parameter's value.
    pub points: Vec<SweepPoint>,
}

/// The figures for one value of a parameter.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct SweepPoint {
    /// The value of the parameter.
    pub value: f64,
    /// The throughput, in the unit of the sweep.
    pub throughput: f64,
    /// The mean response time in milliseconds.
    pub mean_ms: f64,
    /// The 99th percentile of the response times in milliseconds.
    pub p99_ms: f64,
}

/// Response times and their components.
#[derive(Clone, Debug, PartialEq)]
pub struct Response {
    /// The title above the picture.
    pub title: String,
    /// The distribution.
    pub distribution: Distribution,
    /// The axes of the distribution.
    pub axes: Axes,
    /// The mean of each component of the response time, in milliseconds, in the order of
    /// `traxtent_model::drive::Breakdown::NAMES`.
    pub parts_ms: [f64; 8],
}

/// Simulated and measured response times of a trace: a panel for all requests, one for each class
/// of requests, and one for the differences.
#[derive(Clone, Debug, PartialEq)]
pub struct Validation {
    /// The title above the picture.
    pub title: String,
    /// The panels with distributions. Those after the first are two to a row.
    pub times: Vec<TimesPanel>,
    /// The differences between simulated and measured times, if distances are known.
    pub residuals: Option<Residuals>,
}

/// The distributions of simulated and measured response times of all requests, or of a class.
#[derive(Clone, Debug, PartialEq)]
pub struct TimesPanel {
    /// The heading.
    pub title: String,
    /// Two cumulative distributions: milliseconds and share.
    pub curves: Vec<Curve>,
    /// The end of the time axis in milliseconds.
    pub until_ms: f64,
}

/// Simulated minus measured response times over the seek distance.
#[derive(Clone, Debug, PartialEq)]
pub struct Residuals {
    /// The heading.
    pub title: String,
    /// Quantiles of the difference: cylinders and milliseconds.
    pub curves: Vec<Curve>,
}

/// Efficiency against request size.
#[derive(Clone, Debug, PartialEq)]
pub struct Efficiency {
    /// The panels, side by side.
    pub panels: Vec<EfficiencyPanel>,
    /// The displayed width of a panel, in pixels.
    pub panel_width: u32,
}

/// One drive's efficiency.
#[derive(Clone, Debug, PartialEq)]
pub struct EfficiencyPanel {
    /// The title above the panel.
    pub title: String,
    /// Request size in KiB and efficiency from 0 to 1.
    pub curves: Vec<Curve>,
    /// Published values.
    pub marks: Vec<PublishedMark>,
    /// The size of a track in KiB.
    pub track_kib: f64,
}

/// Values of each track against its LBNs.
#[derive(Clone, Debug, PartialEq)]
pub struct Tracks {
    /// The title above the picture.
    pub title: String,
    /// The panels, one above another.
    pub panels: Vec<TracksPanel>,
}

/// One value of each track.
#[derive(Clone, Debug, PartialEq)]
pub struct TracksPanel {
    /// The name of the value.
    pub title: &'static str,
    /// A heading above the panel, if it differs from the picture's title.
    pub heading: Option<String>,
    /// The LBNs that are shown.
    pub lbns: std::ops::Range<f64>,
    /// Whether the vertical axis begins at zero.
    pub from_zero: bool,
    /// The meaning of the colours; empty if they have none.
    pub legend: Vec<String>,
    /// The bars, each for one track or several.
    pub bars: Vec<Bar>,
}

/// One track, or the range of several tracks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Bar {
    /// The first LBN, and the end.
    pub lbns: (f64, f64),
    /// The lowest and the highest value.
    pub values: (f64, f64),
    /// The index of the colour, as for [`colours::other`].
    pub colour: usize,
}

/// A panel for a page that provides its title and legend.
#[cfg(feature = "lab")]
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Inline {
    /// The axes and their content.
    pub svg: String,
    /// The entries of the legend.
    pub keys: Vec<Key>,
}

/// An entry of a legend.
#[cfg(feature = "lab")]
#[derive(Clone, Debug, PartialEq)]
pub struct Key {
    /// The kind of sign: line, dot, bar, or mark for published values.
    pub class: &'static str,
    /// The index of the colour, if it has one.
    pub colour: Option<usize>,
    /// The name.
    pub name: String,
}

#[cfg(not(feature = "draw"))]
impl<T> Draw for T {
    fn svg(&self) -> Result<String, DrawError> {
        Err(DrawError::NotBuilt)
    }

    fn file(&self, _: Format) -> Result<Vec<u8>, DrawError> {
        Err(DrawError::NotBuilt)
    }
}

/// Draws one panel of a figure without a title and a legend, which the page provides.
///
/// # Errors
/// Same as [`Draw::svg`].
#[cfg(all(not(feature = "draw"), feature = "lab"))]
pub fn inline(_: ExperimentFigure<'_>, _: usize, _: u32) -> Result<Inline, DrawError> {
    Err(DrawError::NotBuilt)
}

//! Figures as data. They are drawn elsewhere.

use serde::{Deserialize, Serialize};

/// A figure: panels side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// The panels from left to right.
    pub panels: Vec<Panel>,
}

/// A pair of axes. Both begin at zero, unless there are points below zero.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// The title above the panel.
    pub title: String,
    /// The quantity on the horizontal axis, with its unit.
    pub x: String,
    /// The quantity on the vertical axis, with its unit.
    pub y: String,
    /// If the panel has bars ([`Style::Bar`]), the names of their rows from the top, in place of a
    /// vertical scale.
    #[serde(default)]
    pub rows: Vec<String>,
    /// The series, in drawing order.
    pub series: Vec<Series>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// The name in the legend.
    pub name: String,
    /// The style of the points.
    pub style: Style,
    /// The horizontal and vertical positions; for a bar, its length and its row.
    pub points: Vec<(f64, f64)>,
}

/// The style in which points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Joined by a line, in their order.
    Line,
    /// Joined by a dashed line, for a bound or a spread about a line.
    Dashed,
    /// Drawn separately.
    Dots,
    /// Bars, each after the bars of earlier series in its row.
    Bar,
    /// A surface seen from above: rows of cells with their values. The colour of a cell compares
    /// its value with the first of the row.
    Surface(BetterDirection),
}

/// The direction in which values are better.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum BetterDirection {
    /// Smaller values are better.
    Less,
    /// Larger values are better.
    More,
}

impl BetterDirection {
    /// Returns the factor by which a value is better than another.
    pub fn times(self, value: f64, than: f64) -> f64 {
        match self {
            BetterDirection::Less => than / value,
            BetterDirection::More => value / than,
        }
    }
}

impl Figure {
    /// Creates a figure with one panel.
    pub fn of(panel: Panel) -> Figure {
        Figure {
            panels: vec![panel],
        }
    }
}

impl Series {
    /// Creates a series of points joined by a line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            name: name.into(),
            style: Style::Line,
            points,
        }
    }
}

//! Pictures as data; whoever has pens draws them.

use serde::{Deserialize, Serialize};

/// A picture: panels side by side.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Figure {
    /// From left to right.
    pub panels: Vec<Panel>,
}

/// One pair of axes. Both begin at zero, unless there are points below it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What the horizontal axis shows, with its unit.
    pub x: String,
    /// What the vertical axis shows, with its unit.
    pub y: String,
    /// Names of rows from the top, in place of a vertical scale, where [`Style::Bar`] stacks bars.
    #[serde(default)]
    pub rows: Vec<String>,
    /// What is drawn, in this order.
    pub series: Vec<Series>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Series {
    /// As the legend has it.
    pub name: String,
    /// How they are drawn.
    pub style: Style,
    /// Horizontal and vertical position; of a bar, its length and its row.
    pub points: Vec<(f64, f64)>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Style {
    /// Joined by a line, in their order.
    Line,
    /// The same, for a bound or a spread about a line.
    Dashed,
    /// Each by itself.
    Dots,
    /// Bars, each behind those that earlier series have in its row.
    Bar,
    /// A surface seen from above: a row of cells, the value written in each, its colour by the first of the row.
    Surface(Better),
}

/// Which values are the better ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Better {
    /// The less, the better.
    Less,
    /// The more, the better.
    More,
}

impl Better {
    /// How many times better a value is than another.
    pub fn times(self, value: f64, than: f64) -> f64 {
        match self {
            Better::Less => than / value,
            Better::More => value / than,
        }
    }
}

impl Figure {
    /// A picture of one panel.
    pub fn of(panel: Panel) -> Figure {
        Figure {
            panels: vec![panel],
        }
    }
}

impl Series {
    /// Points joined by a line.
    pub fn line(name: impl Into<String>, points: Vec<(f64, f64)>) -> Series {
        Series {
            name: name.into(),
            style: Style::Line,
            points,
        }
    }
}

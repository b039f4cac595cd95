//! Pictures as data; whoever has pens draws them.

/// A picture.
#[derive(Clone, Debug, PartialEq)]
pub struct Figure {
    /// What a file of it is called, without ending.
    pub name: &'static str,
    /// Side by side.
    pub panels: Vec<Panel>,
}

/// One pair of axes.
#[derive(Clone, Debug, PartialEq)]
pub struct Panel {
    /// Above it.
    pub title: String,
    /// What the horizontal axis shows, with its unit.
    pub x: &'static str,
    /// What the vertical axis shows, with its unit. It begins at zero.
    pub y: &'static str,
    /// What is drawn, in this order.
    pub series: Vec<Series>,
}

/// Points that belong together.
#[derive(Clone, Debug, PartialEq)]
pub struct Series {
    /// As the legend has it.
    pub name: String,
    /// How they are drawn.
    pub style: Style,
    /// Horizontal and vertical position.
    pub points: Vec<(f64, f64)>,
}

/// How points are drawn.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Style {
    /// Joined by a line, in their order.
    Line,
    /// Each by itself.
    Dots,
}

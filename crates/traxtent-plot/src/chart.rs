//! Charts: axes, a legend above them, curves and marks.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};

use super::canvas::{DrawResult, FONT};
use super::colours;
use super::marker::Marker;
use super::scale::Scale;

/// The displayed distance from the middle of a mark to its edge.
const MARK_RADIUS: f64 = 4.5;

pub(super) const INK: RGBColor = rgb(colours::INK.light);
const FAINT: RGBColor = rgb(colours::GRID.light);
const GREY: RGBColor = rgb(colours::AXIS.light);

/// Sizes of text. The SVG backend writes a font size that is smaller by a factor of 1.24.
const TITLE: f64 = 18.0;
const TEXT: f64 = 17.0;

/// The displayed width for the labels of a linear vertical axis.
const LABELS: f64 = 58.0;
/// The displayed width for the labels of a logarithmic vertical axis: small shares have long ones.
const LOG_LABELS: f64 = 80.0;

/// The height of a line of an explanation.
pub(super) const NOTE_LINE: f64 = 20.0;

/// An area, and the number of its pixels per displayed pixel.
pub(super) struct ScaledArea<'a, DB: DrawingBackend> {
    pub(super) area: &'a DrawingArea<DB, Shift>,
    pub(super) scale: f64,
}

/// An axis.
pub(super) struct Axis<'a> {
    pub(super) title: &'a str,
    pub(super) range: Range<f64>,
    pub(super) format: &'a dyn Fn(&f64) -> String,
    pub(super) labels: usize,
}

/// An entry of a legend.
pub(super) enum LegendEntry<'a> {
    Line(usize, &'a str),
    /// A line with the marks of its points.
    MarkedLine(usize, Marker, &'a str),
    Dashes(usize, &'a str),
    Dot(usize, &'a str),
    Bar(usize, &'a str),
    PublishedMark(&'a str),
}

/// A chart with its axes drawn.
pub(super) type ChartArea<'a, DB> = ChartContext<'a, DB, Cartesian2d<Scale, Scale>>;

impl<'a, DB: DrawingBackend> ScaledArea<'a, DB> {
    /// Converts a displayed length to pixels of this area.
    pub(super) fn px(&self, length: f64) -> i32 {
        (length * self.scale).round() as i32
    }

    /// Returns a text style.
    pub(super) fn text(&self, size: f64, colour: RGBColor) -> TextStyle<'static> {
        (FONT, size * self.scale).into_font().color(&colour)
    }

    /// Draws a title at the top left, in as many lines as needed. Returns its lower end.
    pub(super) fn title(&self, title: &str) -> DrawnHeight<DB> {
        const LINE: f64 = 20.0;
        const TOP: f64 = 14.0;
        let font = (FONT, TITLE * self.scale, FontStyle::Bold)
            .into_font()
            .color(&INK);
        let lines = self.wrap(title, &font);
        for (row, line) in (0..).zip(&lines) {
            let top = TOP + LINE * f64::from(row);
            self.area
                .draw_text(line, &font, (self.px(16.0), self.px(top)))?;
        }
        Ok(TOP + LINE * lines.len() as f64)
    }

    /// Draws an explanation along the lower edge, in as many lines as needed.
    pub(super) fn note(&self, text: &str) -> DrawResult<DB> {
        let font = self.text(TEXT - 1.0, INK);
        let lines = self.wrap(text, &font);
        let height = f64::from(self.area.dim_in_pixel().1) / self.scale;
        let top = height - NOTE_LINE * lines.len() as f64 - 8.0;
        for (row, line) in (0..).zip(&lines) {
            let top = top + NOTE_LINE * f64::from(row);
            self.area
                .draw_text(line, &font, (self.px(16.0), self.px(top)))?;
        }
        Ok(())
    }

    /// Draws a legend in as many rows as needed. `first` is the middle of its first row. Returns
    /// its lower end.
    pub(super) fn legend(
        &self,
        first: f64,
        left: f64,
        signs: &[LegendEntry<'_>],
    ) -> DrawnHeight<DB> {
        const ROW: f64 = 22.0;
        let font = self.text(TEXT, INK);
        let (mut x, mut row) = (self.px(left), 0.0);
        let right = self.area.dim_in_pixel().0 as i32 - self.px(10.0);
        for sign in signs {
            let wide = self.px(31.0) + self.width(sign.name(), &font);
            if x + wide > right && x > self.px(left) {
                (x, row) = (self.px(left), row + 1.0);
            }
            let middle = self.px(first + row * ROW);
            let name = match sign {
                LegendEntry::Line(colour, name) => {
                    let line = vec![(x, middle), (x + self.px(24.0), middle)];
                    self.area
                        .draw(&PathElement::new(line, self.stroke(*colour)))?;
                    name
                }
                LegendEntry::MarkedLine(colour, marker, name) => {
                    let line = vec![(x, middle), (x + self.px(24.0), middle)];
                    self.area
                        .draw(&PathElement::new(line, self.stroke(*colour)))?;
                    self.marker((x + self.px(12.0), middle), *colour, *marker)?;
                    name
                }
                LegendEntry::Dashes(colour, name) => {
                    for from in [0.0, 9.0, 18.0] {
                        let (from, to) = (x + self.px(from), x + self.px(from + 5.0));
                        let dash = vec![(from, middle), (to, middle)];
                        self.area
                            .draw(&PathElement::new(dash, self.stroke(*colour)))?;
                    }
                    name
                }
                LegendEntry::Dot(colour, name) => {
                    let dot = Circle::new(
                        (x + self.px(14.0), middle),
                        self.px(4.0),
                        colour_of(*colour),
                    );
                    self.area.draw(&dot)?;
                    name
                }
                LegendEntry::Bar(colour, name) => {
                    let corners = [
                        (x + self.px(4.0), middle - self.px(7.0)),
                        (x + self.px(24.0), middle + self.px(7.0)),
                    ];
                    self.area
                        .draw(&Rectangle::new(corners, colour_of(*colour)))?;
                    name
                }
                LegendEntry::PublishedMark(name) => {
                    self.diamond((x + self.px(12.0), middle), INK)?;
                    name
                }
            };
            let style = font.clone().pos(Pos::new(HPos::Left, VPos::Center));
            self.area
                .draw_text(name, &style, (x + self.px(31.0), middle))?;
            x += wide + self.px(16.0);
        }
        Ok(first + row * ROW + ROW / 2.0)
    }

    /// Draws linear axes that begin `top` below the upper edge.
    pub(super) fn axes(&self, top: f64, x: &Axis<'_>, y: &Axis<'_>) -> PlaneResult<'a, DB> {
        let scales = (
            Scale::linear(x.range.clone()),
            Scale::linear(y.range.clone()),
        );
        self.axes_on(top, x, y, scales)
    }

    /// Draws axes with these scales.
    pub(super) fn axes_on(
        &self,
        top: f64,
        x: &Axis<'_>,
        y: &Axis<'_>,
        scales: (Scale, Scale),
    ) -> PlaneResult<'a, DB> {
        let labels = match scales.1 {
            Scale::Linear(_) => LABELS,
            Scale::Log { .. } => LOG_LABELS,
        };
        let mut plane = ChartBuilder::on(self.area)
            .margin_top(self.px(top))
            .margin_right(self.px(22.0))
            .margin_left(self.px(10.0))
            .margin_bottom(self.px(10.0))
            .x_label_area_size(self.px(50.0))
            .y_label_area_size(self.px(labels))
            .build_cartesian_2d(scales.0, scales.1)?;
        plane
            .configure_mesh()
            .bold_line_style(FAINT.stroke_width(self.px(1.0) as u32))
            .light_line_style(TRANSPARENT)
            .axis_style(GREY.stroke_width(self.px(1.0) as u32))
            .label_style(self.text(TEXT - 1.0, INK))
            .axis_desc_style(self.text(TEXT, INK))
            .set_all_tick_mark_size(self.px(4.0))
            .x_desc(x.title)
            .y_desc(y.title)
            .x_labels(x.labels)
            .y_labels(y.labels)
            .x_label_formatter(x.format)
            .y_label_formatter(y.format)
            .draw()?;
        Ok(plane)
    }

    /// Draws a curve.
    pub(super) fn curve(
        &self,
        plane: &mut ChartArea<'a, DB>,
        colour: usize,
        points: &[(f64, f64)],
    ) -> DrawResult<DB> {
        let line = LineSeries::new(points.iter().copied(), self.stroke(colour));
        plane.draw_series(line).map(drop)
    }

    /// Draws a dashed curve.
    pub(super) fn dashes(
        &self,
        plane: &mut ChartArea<'a, DB>,
        colour: usize,
        points: &[(f64, f64)],
    ) -> DrawResult<DB> {
        let points = points.iter().copied();
        let line = DashedLineSeries::new(points, self.px(5.0), self.px(4.0), self.stroke(colour));
        plane.draw_series(line).map(drop)
    }

    /// Draws a bar with a rim that separates it from its neighbours.
    pub(super) fn bar(
        &self,
        plane: &mut ChartArea<'a, DB>,
        colour: usize,
        corners: [(f64, f64); 2],
    ) -> DrawResult<DB> {
        let rim = WHITE.stroke_width(self.px(1.0) as u32);
        let bar = [
            Rectangle::new(corners, colour_of(colour)),
            Rectangle::new(corners, rim),
        ];
        plane.draw_series(bar).map(drop)
    }

    /// Draws a text slightly above a position and to its right.
    pub(super) fn label(
        &self,
        plane: &ChartArea<'a, DB>,
        text: &str,
        at: (f64, f64),
    ) -> DrawResult<DB> {
        let (x, y) = self.place(plane, at);
        let style = self.text(TEXT, INK).pos(Pos::new(HPos::Left, VPos::Bottom));
        self.area
            .draw_text(text, &style, (x + self.px(6.0), y - self.px(2.0)))
    }

    /// Draws a cell in the first colour without a meaning, or in the second if `strength` is
    /// negative. `strength` is from -1 to 1.
    pub(super) fn cell(
        &self,
        plane: &mut ChartArea<'a, DB>,
        corners: [(f64, f64); 2],
        strength: f64,
    ) -> DrawResult<DB> {
        // The colour is faint enough for numbers on it to be readable.
        const MOST: f64 = 0.5;
        let colour = data(colours::other(usize::from(strength < 0.0))).mix(strength.abs() * MOST);
        let rim = FAINT.stroke_width(self.px(1.0) as u32);
        let cell = [
            Rectangle::new(corners, colour.filled()),
            Rectangle::new(corners, rim),
        ];
        plane.draw_series(cell).map(drop)
    }

    /// Draws a frame around a cell.
    pub(super) fn frame(
        &self,
        plane: &mut ChartArea<'a, DB>,
        corners: [(f64, f64); 2],
    ) -> DrawResult<DB> {
        let frame = Rectangle::new(corners, INK.stroke_width(self.px(2.0) as u32));
        plane.draw_series([frame]).map(drop)
    }

    /// Draws a number centred at a position.
    pub(super) fn value(
        &self,
        plane: &ChartArea<'a, DB>,
        text: &str,
        at: (f64, f64),
    ) -> DrawResult<DB> {
        let style = self
            .text(TEXT, INK)
            .pos(Pos::new(HPos::Center, VPos::Center));
        self.area.draw_text(text, &style, self.place(plane, at))
    }

    /// Draws individual points.
    pub(super) fn dots(
        &self,
        plane: &mut ChartArea<'a, DB>,
        colour: usize,
        points: &[(f64, f64)],
    ) -> DrawResult<DB> {
        // Many points form a cloud; few are markers.
        let radius = if points.len() > 100 { 1.6 } else { 3.2 };
        let dot = |&at| Circle::new(at, self.px(radius), colour_of(colour));
        plane.draw_series(points.iter().map(dot)).map(drop)
    }

    /// Draws a published value.
    pub(super) fn mark(
        &self,
        plane: &ChartArea<'a, DB>,
        colour: Option<usize>,
        at: (f64, f64),
    ) -> DrawResult<DB> {
        let colour = colour.map_or(INK, data);
        self.diamond(self.place(plane, at), colour)
    }

    /// Converts a point of the axes to a position on this area.
    pub(super) fn place(&self, plane: &ChartArea<'a, DB>, at: (f64, f64)) -> (i32, i32) {
        let (x, y) = plane.backend_coord(&at);
        let (left, top) = self.area.get_base_pixel();
        (x - left, y - top)
    }

    fn stroke(&self, colour: usize) -> ShapeStyle {
        data(colour).stroke_width(self.px(2.0) as u32)
    }

    /// Draws a diamond with a white rim that separates it from curves.
    fn diamond(&self, (x, y): (i32, i32), colour: RGBColor) -> DrawResult<DB> {
        for (radius, colour) in [(9.0, WHITE), (7.0, colour)] {
            let r = self.px(radius);
            let corners = vec![(x, y - r), (x + r, y), (x, y + r), (x - r, y)];
            self.area.draw(&Polygon::new(corners, colour))?;
        }
        Ok(())
    }

    /// Returns the width of a text in pixels of this area.
    fn width(&self, text: &str, font: &TextStyle<'_>) -> i32 {
        self.area
            .estimate_text_size(text, font)
            .map_or(0, |size| size.0 as i32)
    }

    /// Returns the text in lines that fit on this area.
    fn wrap(&self, text: &str, font: &TextStyle<'_>) -> Vec<String> {
        let room = self.area.dim_in_pixel().0 as i32 - self.px(32.0);
        let mut lines = vec![String::new()];
        // Workloads are long words with commas.
        for piece in text.split_inclusive([' ', ',']) {
            let line = lines.last_mut().expect("there is a line");
            let longer = format!("{line}{piece}");
            if line.is_empty() || self.width(longer.trim_end(), font) <= room {
                *line = longer;
            } else {
                lines.push(piece.to_owned());
            }
        }
        for line in &mut lines {
            *line = self.fit(line.trim_end(), font, room);
        }
        lines
    }

    /// Returns a line, truncated to the available room.
    fn fit(&self, text: &str, font: &TextStyle<'_>, room: i32) -> String {
        if self.width(text, font) <= room {
            return text.to_owned();
        }
        let mut kept: Vec<char> = text.chars().collect();
        loop {
            kept.pop();
            let shown: String = kept.iter().chain(['…'].iter()).collect();
            if kept.is_empty() || self.width(&shown, font) <= room {
                return shown;
            }
        }
    }
}

impl<'a> LegendEntry<'a> {
    fn name(&self) -> &'a str {
        match self {
            LegendEntry::Line(_, name)
            | LegendEntry::MarkedLine(_, _, name)
            | LegendEntry::Dashes(_, name)
            | LegendEntry::Dot(_, name)
            | LegendEntry::Bar(_, name)
            | LegendEntry::PublishedMark(name) => name,
        }
    }
}

/// The vertical position at which drawing ended, in displayed pixels.
pub(super) type DrawnHeight<DB> =
    Result<f64, DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

type PlaneResult<'a, DB> =
    Result<ChartArea<'a, DB>, DrawingAreaErrorKind<<DB as DrawingBackend>::ErrorType>>;

pub(super) fn colour_of(index: usize) -> ShapeStyle {
    data(index).filled()
}

/// Returns a colour of data.
pub(super) fn data(index: usize) -> RGBColor {
    rgb(colours::DATA[index % colours::DATA.len()].light)
}

const fn rgb([red, green, blue]: [u8; 3]) -> RGBColor {
    RGBColor(red, green, blue)
}

/// Formats a number without unnecessary decimals.
pub(super) fn plain(value: &f64) -> String {
    // Ticks are sums of steps, with rounding errors.
    let rounded = (value * 1e6).round() / 1e6;
    if rounded == 0.0 {
        "0".to_owned()
    } else {
        rounded.to_string()
    }
}

/// Formats a share in percent.
pub(super) fn percent(value: &f64) -> String {
    format!("{} %", plain(&(value * 100.0)))
}

impl<'a, DB: DrawingBackend> ScaledArea<'a, DB> {
    /// Draws a mark at each point.
    pub(super) fn markers(
        &self,
        plane: &ChartArea<'a, DB>,
        colour: usize,
        marker: Marker,
        points: &[(f64, f64)],
    ) -> DrawResult<DB> {
        let mut points = points.iter();
        points.try_for_each(|at| self.marker(self.place(plane, *at), colour, marker))
    }

    /// Draws a mark at a position.
    pub(super) fn marker(
        &self,
        (x, y): (i32, i32),
        colour: usize,
        marker: Marker,
    ) -> DrawResult<DB> {
        let stroke = data(colour).stroke_width(self.px(2.0) as u32);
        let radius = self.px(MARK_RADIUS);
        let at = |(right, down): (f64, f64)| {
            (
                x + self.px(right * MARK_RADIUS),
                y + self.px(down * MARK_RADIUS),
            )
        };
        let polygon = |corners: &[(f64, f64)]| {
            let corners: Vec<(i32, i32)> = corners.iter().copied().map(at).collect();
            self.area.draw(&Polygon::new(corners, colour_of(colour)))
        };
        let line = |from, to| {
            let line = vec![at(from), at(to)];
            self.area.draw(&PathElement::new(line, stroke))
        };
        match marker {
            Marker::Circle => self
                .area
                .draw(&Circle::new((x, y), radius, colour_of(colour))),
            Marker::Ring => {
                self.area
                    .draw(&Circle::new((x, y), radius, WHITE.filled()))?;
                self.area.draw(&Circle::new((x, y), radius, stroke))
            }
            Marker::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Marker::Triangle => polygon(&[(0.0, -1.2), (1.2, 0.9), (-1.2, 0.9)]),
            Marker::InvertedTriangle => polygon(&[(0.0, 1.2), (1.2, -0.9), (-1.2, -0.9)]),
            Marker::Cross => {
                line((-1.1, -1.1), (1.1, 1.1))?;
                line((-1.1, 1.1), (1.1, -1.1))
            }
        }
    }
}

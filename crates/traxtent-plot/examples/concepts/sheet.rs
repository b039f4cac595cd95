//! An SVG picture as text, with the colours and the style for dark paper that all pictures share.
//!
//! The pictures are as wide as a page on a telephone, so that their text stays readable there. All
//! lengths are in displayed pixels.

use std::fmt::Write as _;

use traxtent_plot::colours::{self, AXIS, Colour, GRID, INK, PAPER};

/// The width of a picture.
pub(crate) const WIDTH: f64 = 460.0;

/// The free space at the left and right edges.
pub(crate) const MARGIN: f64 = 12.0;

/// The size of text.
pub(crate) const TEXT: f64 = 14.0;

/// The opacity of phases other than transfers, so that transfers stand out.
pub(crate) const PHASE_OPACITY: f64 = 0.6;

/// The size of a title.
const TITLE: f64 = 15.5;

/// The horizontal alignment of a text at its position.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Anchor {
    Start,
    Middle,
    End,
}

/// A picture being drawn.
pub(crate) struct Sheet {
    height: f64,
    description: String,
    body: String,
}

impl Sheet {
    /// Creates a sheet with a title of one or more lines. `description` is for readers who do not
    /// see the picture.
    pub(crate) fn new(height: f64, title: &[&str], description: &str) -> Sheet {
        let mut sheet = Sheet {
            height,
            description: escape(description),
            body: String::new(),
        };
        for (row, line) in (0..).zip(title) {
            let y = 24.0 + 19.0 * f64::from(row);
            sheet.styled_text((MARGIN, y), Anchor::Start, line, TITLE, INK, true);
        }
        sheet
    }

    /// Draws a text. `at` is on its baseline.
    pub(crate) fn text(&mut self, at: (f64, f64), anchor: Anchor, text: &str) {
        self.styled_text(at, anchor, text, TEXT, INK, false);
    }

    /// Draws a bold text in a colour.
    pub(crate) fn bold(&mut self, at: (f64, f64), anchor: Anchor, text: &str, colour: Colour) {
        self.styled_text(at, anchor, text, TEXT, colour, true);
    }

    fn styled_text(
        &mut self,
        (x, y): (f64, f64),
        anchor: Anchor,
        text: &str,
        size: f64,
        colour: Colour,
        bold: bool,
    ) {
        let anchor = match anchor {
            Anchor::Start => "start",
            Anchor::Middle => "middle",
            Anchor::End => "end",
        };
        let weight = if bold { " font-weight=\"bold\"" } else { "" };
        let _ = writeln!(
            self.body,
            "<text x=\"{x:.1}\" y=\"{y:.1}\" font-size=\"{size}\" text-anchor=\"{anchor}\"{weight} \
             fill=\"{}\">{}</text>",
            colours::hex(colour.light),
            escape(text)
        );
    }

    /// Draws lines of text one below the other, with the baseline of the first at `y`.
    pub(crate) fn note(&mut self, y: f64, lines: &[&str]) {
        for (row, line) in (0..).zip(lines) {
            self.text((MARGIN, y + 18.0 * f64::from(row)), Anchor::Start, line);
        }
    }

    /// Draws a filled rectangle.
    pub(crate) fn bar(&mut self, at: (f64, f64), size: (f64, f64), colour: Colour, opacity: f64) {
        let ((x, y), (width, height)) = (at, size);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"{}\" fill-opacity=\"{opacity}\"/>",
            colours::hex(colour.light)
        );
    }

    /// Draws the outline of a rectangle.
    pub(crate) fn frame(&mut self, at: (f64, f64), size: (f64, f64), colour: Colour, wide: f64) {
        let ((x, y), (width, height)) = (at, size);
        let _ = writeln!(
            self.body,
            "<rect x=\"{x:.1}\" y=\"{y:.1}\" width=\"{width:.1}\" height=\"{height:.1}\" \
             fill=\"none\" stroke=\"{}\" stroke-width=\"{wide}\"/>",
            colours::hex(colour.light)
        );
    }

    /// Draws a line through points.
    pub(crate) fn line(&mut self, points: &[(f64, f64)], colour: Colour, wide: f64) {
        self.stroked(points, colour, wide, "");
    }

    /// Draws a dashed line through points.
    pub(crate) fn dashes(&mut self, points: &[(f64, f64)], colour: Colour, wide: f64) {
        self.stroked(points, colour, wide, " stroke-dasharray=\"5 4\"");
    }

    fn stroked(&mut self, points: &[(f64, f64)], colour: Colour, wide: f64, dashes: &str) {
        let points: Vec<String> = points
            .iter()
            .map(|(x, y)| format!("{x:.1},{y:.1}"))
            .collect();
        let _ = writeln!(
            self.body,
            "<polyline points=\"{}\" fill=\"none\" stroke=\"{}\" stroke-width=\"{wide}\"{dashes}/>",
            points.join(" "),
            colours::hex(colour.light)
        );
    }

    /// Draws a horizontal arrow.
    pub(crate) fn arrow(&mut self, from: (f64, f64), to: f64, colour: Colour) {
        let (x, y) = from;
        let back = if to > x { -7.0 } else { 7.0 };
        self.line(&[(x, y), (to, y)], colour, 1.5);
        self.line(
            &[(to + back, y - 4.0), (to, y), (to + back, y + 4.0)],
            colour,
            1.5,
        );
    }

    /// Draws a legend in one row.
    pub(crate) fn legend(&mut self, at: (f64, f64), entries: &[(Colour, &str)]) {
        self.legend_in(at, entries, 1.0);
    }

    /// Draws the legend of phases other than transfers in one row.
    pub(crate) fn phases(&mut self, at: (f64, f64), entries: &[(Colour, &str)]) {
        self.legend_in(at, entries, PHASE_OPACITY);
    }

    fn legend_in(&mut self, (mut x, y): (f64, f64), entries: &[(Colour, &str)], opacity: f64) {
        for (colour, name) in entries {
            self.bar((x, y - 10.0), (12.0, 11.0), *colour, opacity);
            self.frame((x, y - 10.0), (12.0, 11.0), AXIS, 0.6);
            self.text((x + 17.0, y), Anchor::Start, name);
            // A generous estimate of the width of a letter.
            x += 17.0 + 8.4 * name.chars().count() as f64 + 12.0;
        }
    }

    /// Returns the content of the picture's file.
    pub(crate) fn finish(self) -> String {
        let Sheet {
            height,
            description,
            body,
        } = self;
        format!(
            "<svg xmlns=\"http://www.w3.org/2000/svg\" width=\"{WIDTH}\" height=\"{height}\" \
             viewBox=\"0 0 {WIDTH} {height}\" font-family=\"sans-serif\" role=\"img\">\n\
             <title>{description}</title>\n<style>\n{}</style>\n\
             <rect width=\"{WIDTH}\" height=\"{height}\" rx=\"6\" fill=\"{}\"/>\n{body}</svg>\n",
            colours::dark_style(),
            colours::hex(PAPER.light)
        )
    }
}

/// The axes of a chart, both from zero, with a grid.
pub(crate) struct Chart {
    /// The left and right edges of the plane.
    pub(crate) x: (f64, f64),
    /// The top and bottom edges of the plane.
    pub(crate) y: (f64, f64),
    /// The values at the right and at the top.
    pub(crate) most: (f64, f64),
}

impl Chart {
    /// Returns the position of a value.
    pub(crate) fn at(&self, (x, y): (f64, f64)) -> (f64, f64) {
        (
            self.x.0 + (self.x.1 - self.x.0) * x / self.most.0,
            self.y.1 - (self.y.1 - self.y.0) * y / self.most.1,
        )
    }

    /// Draws the axes and horizontal grid lines. `ticks` are those of x and of y, with labels.
    pub(crate) fn axes(&self, sheet: &mut Sheet, ticks: [&[(f64, &str)]; 2]) {
        for (value, label) in ticks[1] {
            let (_, y) = self.at((0.0, *value));
            sheet.line(&[(self.x.0, y), (self.x.1, y)], GRID, 1.0);
            sheet.text((self.x.0 - 6.0, y + 5.0), Anchor::End, label);
        }
        for (value, label) in ticks[0] {
            let (x, bottom) = self.at((*value, 0.0));
            sheet.line(&[(x, bottom), (x, bottom + 5.0)], AXIS, 1.0);
            sheet.text((x, bottom + 20.0), Anchor::Middle, label);
        }
        let corners = [
            (self.x.0, self.y.0),
            (self.x.0, self.y.1),
            (self.x.1, self.y.1),
        ];
        sheet.line(&corners, AXIS, 1.0);
    }
}

fn escape(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}

/// Returns a number with commas between groups of three digits.
pub(crate) fn grouped(number: u64) -> String {
    let digits = number.to_string();
    let mut text = String::new();
    for (index, digit) in digits.chars().enumerate() {
        if index > 0 && (digits.len() - index).is_multiple_of(3) {
            text.push(',');
        }
        text.push(digit);
    }
    text
}

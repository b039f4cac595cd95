//! The pictures of experiments, with the points that a paper's text tells.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use traxtent_experiments::{FigureSpec, PublishedPoint};
use traxtent_lab::{Figure, Panel, Style};

use super::canvas::{self, Drawn, Picture};
use super::chart::{Axis, Plane, Sheet, Sign, plain};
use super::{Inline, Key};
use crate::failure::{Failure, Result};

/// Draws a picture of an experiment.
pub(crate) fn figure(path: &Path, picture: &Figure, spec: Option<&FigureSpec>) -> Result<()> {
    let panels = picture.panels.iter().enumerate();
    let panels = panels.map(|(index, panel)| Marked::of(panel, index, spec));
    canvas::write(path, &Framed(panels.collect()))
}

/// Draws one panel, without the title and the legend, which the page has.
pub(crate) fn inline(picture: &Figure, index: usize, spec: &FigureSpec) -> Result<Inline> {
    let marked = Marked::of(&picture.panels[index], index, Some(spec));
    let key = |sign| match sign {
        Sign::Line(colour, name) => Key {
            class: "line",
            colour: Some(colour),
            name: name.to_owned(),
        },
        Sign::Dot(colour, name) => Key {
            class: "dot",
            colour: Some(colour),
            name: name.to_owned(),
        },
        Sign::Bar(colour, name) => Key {
            class: "bar",
            colour: Some(colour),
            name: name.to_owned(),
        },
        Sign::Mark(name) => Key {
            class: "mark",
            colour: None,
            name: name.to_owned(),
        },
    };
    let keys = marked.signs().into_iter().map(key).collect();
    let svg = canvas::svg(&Bare(marked)).map_err(|why| Failure::Io(format!("a picture: {why}")))?;
    Ok(Inline { svg, keys })
}

/// Room above the highest point, as a share.
const HEADROOM: f64 = 1.05;

/// How high a row of bars is, and its bar, as shares of the distance of rows.
const BAR: std::ops::Range<f64> = 0.42..0.86;

/// A panel and what the paper tells of it.
struct Marked<'a> {
    panel: &'a Panel,
    points: Vec<&'a PublishedPoint>,
}

/// Panels side by side, with titles and legends.
struct Framed<'a>(Vec<Marked<'a>>);

/// A panel alone.
struct Bare<'a>(Marked<'a>);

impl Picture for Framed<'_> {
    fn size(&self) -> (u32, u32) {
        match self.0.len() {
            1 => (760, 460),
            panels => (620 * panels as u32, 440),
        }
    }

    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, scale: f64) -> Drawn<DB> {
        let areas = area.split_evenly((1, self.0.len()));
        for (marked, area) in self.0.iter().zip(&areas) {
            let sheet = Sheet { area, scale };
            sheet.title(&marked.panel.title)?;
            let bottom = sheet.legend(50.0, 70.0, &marked.signs())?;
            marked.draw(&sheet, bottom + 6.0)?;
        }
        Ok(())
    }
}

/// So small that a page shows it at its size or larger, and that text can be read on a phone.
impl Picture for Bare<'_> {
    fn size(&self) -> (u32, u32) {
        match self.0.panel.rows.len() {
            0 => (400, 300),
            rows => (400, 80 + 56 * rows as u32),
        }
    }

    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, scale: f64) -> Drawn<DB> {
        self.0.draw(&Sheet { area, scale }, 10.0)
    }
}

impl<'a> Marked<'a> {
    fn of(panel: &'a Panel, index: usize, spec: Option<&'a FigureSpec>) -> Marked<'a> {
        let points = spec.map_or(&[][..], |spec| &spec.published);
        Marked {
            panel,
            points: points.iter().filter(|point| point.panel == index).collect(),
        }
    }

    /// A colour for each series; what is dashed has that of the line that it is about.
    fn colours(&self) -> Vec<usize> {
        let mut next = 0;
        let colour = |style| {
            next += usize::from(style != Style::Dashed);
            next.saturating_sub(1)
        };
        let series = self.panel.series.iter();
        series.map(|series| series.style).map(colour).collect()
    }

    fn signs(&self) -> Vec<Sign<'a>> {
        let series = self.panel.series.iter().zip(self.colours());
        let mut signs: Vec<Sign<'a>> = series
            .filter_map(|(series, colour)| match series.style {
                Style::Line => Some(Sign::Line(colour, &series.name)),
                Style::Dots => Some(Sign::Dot(colour, &series.name)),
                Style::Bar => Some(Sign::Bar(colour, &series.name)),
                Style::Dashed => None,
            })
            .collect();
        if !self.points.is_empty() {
            signs.push(Sign::Mark("published"));
        }
        signs
    }

    /// Every point that must be seen.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let ours = self.panel.series.iter().flat_map(|series| &series.points);
        let published = self.points.iter().map(|point| point.at.into());
        ours.copied().chain(published)
    }

    fn draw<DB: DrawingBackend>(&self, sheet: &Sheet<'_, DB>, top: f64) -> Drawn<DB> {
        if self.panel.rows.is_empty() {
            self.draw_curves(sheet, top)
        } else {
            self.draw_bars(sheet, top)
        }
    }

    fn draw_curves<DB: DrawingBackend>(&self, sheet: &Sheet<'_, DB>, top: f64) -> Drawn<DB> {
        let most =
            |of: fn((f64, f64)) -> f64| self.points().map(of).fold(f64::MIN_POSITIVE, f64::max);
        let least = |of: fn((f64, f64)) -> f64| self.points().map(of).fold(0.0, f64::min);
        let (right, high) = (most(|point| point.0), most(|point| point.1) * HEADROOM);
        let x = axis(&self.panel.x, least(|point| point.0)..right);
        let y = axis(&self.panel.y, least(|point| point.1) * HEADROOM..high);
        let mut plane = sheet.axes(top, &x, &y)?;
        for (series, colour) in self.panel.series.iter().zip(self.colours()) {
            match series.style {
                Style::Line => sheet.curve(&mut plane, colour, &series.points)?,
                Style::Dashed => sheet.dashes(&mut plane, colour, &series.points)?,
                Style::Dots => sheet.dots(&mut plane, colour, &series.points)?,
                Style::Bar => {}
            }
        }
        self.draw_published(sheet, &plane, |at| at)
    }

    /// Bars of each row behind one another, the row's name above them.
    fn draw_bars<DB: DrawingBackend>(&self, sheet: &Sheet<'_, DB>, top: f64) -> Drawn<DB> {
        let rows = &self.panel.rows;
        let mut ends = vec![0.0_f64; rows.len()];
        let mut bars = Vec::new();
        for (series, colour) in self.panel.series.iter().zip(self.colours()) {
            for &(length, row) in &series.points {
                let end = &mut ends[row as usize];
                bars.push((colour, row, *end..*end + length));
                *end += length;
            }
        }
        let published = self.points.iter().map(|point| point.at[0]);
        let right = ends
            .iter()
            .copied()
            .chain(published)
            .fold(f64::MIN_POSITIVE, f64::max);
        // Rows go down, the axis up.
        let bottom = rows.len() as f64;
        let y = Axis {
            labels: 0,
            ..axis("", 0.0..bottom)
        };
        let mut plane = sheet.axes(top, &axis(&self.panel.x, 0.0..right * HEADROOM), &y)?;
        for (colour, row, span) in bars {
            let corners = [
                (span.start, bottom - row - BAR.start),
                (span.end, bottom - row - BAR.end),
            ];
            sheet.bar(&mut plane, colour, corners)?;
        }
        for (row, name) in (0..).zip(rows) {
            sheet.label(&plane, name, (0.0, bottom - f64::from(row) - BAR.start))?;
        }
        let middle = (BAR.start + BAR.end) / 2.0;
        self.draw_published(sheet, &plane, |(x, row)| (x, bottom - row - middle))
    }

    fn draw_published<'p, DB: DrawingBackend>(
        &self,
        sheet: &Sheet<'p, DB>,
        plane: &Plane<'p, DB>,
        place: impl Fn((f64, f64)) -> (f64, f64),
    ) -> Drawn<DB> {
        let colours = self.colours();
        for point in &self.points {
            let mut series = self.panel.series.iter();
            let series = series.position(|series| series.name == point.series);
            let colour = series.map(|series| colours[series]);
            sheet.mark(plane, colour, place(point.at.into()))?;
        }
        Ok(())
    }
}

fn axis(title: &str, range: std::ops::Range<f64>) -> Axis<'_> {
    Axis {
        title,
        range,
        format: &plain,
        labels: 8,
    }
}

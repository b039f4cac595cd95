//! The pictures of experiments, with the points that a paper's text states.

use plotters::coord::Shift;
use plotters::prelude::*;
use traxtent_experiments::{FigureSpec, PublishedPoint};
use traxtent_lab::{BetterDirection, Panel, Style};

use super::canvas::{DrawResult, Picture};
use super::chart::{Axis, ChartArea, LegendEntry, ScaledArea, plain};
use super::{Draw, DrawError, ExperimentFigure, Inline, Key, colours};

/// Draws one panel of a figure without a title and a legend, which the page provides. `width` is
/// the displayed width in pixels.
///
/// # Errors
/// Same as [`Draw::svg`].
///
/// # Panics
/// Panics if there is no panel with this index.
pub fn inline(
    ExperimentFigure { figure, spec }: ExperimentFigure<'_>,
    index: usize,
    width: u32,
) -> Result<Inline, DrawError> {
    let marked = MarkedPanel::of(&figure.panels[index], index, spec);
    let key = |sign| match sign {
        LegendEntry::Line(colour, name)
        | LegendEntry::MarkedLine(colour, _, name)
        | LegendEntry::Dashes(colour, name) => Key {
            class: "line",
            colour: Some(colour),
            name: name.to_owned(),
        },
        LegendEntry::Dot(colour, name) => Key {
            class: "dot",
            colour: Some(colour),
            name: name.to_owned(),
        },
        LegendEntry::Bar(colour, name) => Key {
            class: "bar",
            colour: Some(colour),
            name: name.to_owned(),
        },
        LegendEntry::PublishedMark(name) => Key {
            class: "mark",
            colour: None,
            name: name.to_owned(),
        },
    };
    let keys = marked.signs().into_iter().map(key).collect();
    let svg = SinglePanel(marked, width).svg()?;
    Ok(Inline { svg, keys })
}

impl<'a> ExperimentFigure<'a> {
    fn framed(self) -> Framed<'a> {
        let panels = self.figure.panels.iter().enumerate();
        let panels = panels.map(|(index, panel)| MarkedPanel::of(panel, index, self.spec));
        Framed(panels.collect())
    }
}

impl Picture for ExperimentFigure<'_> {
    fn size(&self) -> (u32, u32) {
        self.framed().size()
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        self.framed().draw(area, scale)
    }
}

/// The factor by which an axis extends beyond its outermost point.
const HEADROOM: f64 = 1.05;

/// The vertical range of a bar within its row, as shares of the distance between rows.
const BAR: std::ops::Range<f64> = 0.42..0.86;

/// A panel with the paper's points.
struct MarkedPanel<'a> {
    panel: &'a Panel,
    points: Vec<&'a PublishedPoint>,
}

/// The ratio of a surface's cell to the first cell of its row, better or worse, at which the cell
/// has its full colour.
const FULL_COLOUR_RATIO: f64 = 2.0;

/// Panels side by side, with titles and legends.
struct Framed<'a>(Vec<MarkedPanel<'a>>);

/// A panel alone, with its displayed width.
struct SinglePanel<'a>(MarkedPanel<'a>, u32);

impl Picture for Framed<'_> {
    fn size(&self) -> (u32, u32) {
        match self.grid() {
            (1, 1) => (760, 460),
            (rows, columns) => (480 * columns as u32, 400 * rows as u32),
        }
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let areas = area.split_evenly(self.grid());
        for (marked, area) in self.0.iter().zip(&areas) {
            let sheet = ScaledArea { area, scale };
            let bottom = sheet.title(&marked.panel.title)?;
            let bottom = sheet.legend(bottom + 16.0, 70.0, &marked.signs())?;
            marked.draw(&sheet, bottom + 6.0)?;
        }
        Ok(())
    }
}

impl Framed<'_> {
    /// Returns the rows and columns of panels. More than two panels in a row would be too wide for
    /// a page, whose text must stay readable.
    fn grid(&self) -> (usize, usize) {
        match self.0.len() {
            panels @ ..=2 => (1, panels),
            panels => (panels.div_ceil(2), 2),
        }
    }
}

/// The page shows the picture at about its size, so that text is readable.
impl Picture for SinglePanel<'_> {
    fn size(&self) -> (u32, u32) {
        let panel = &self.0.panel;
        let rows = match self.0.better() {
            Some(_) => panel.series.len(),
            None => panel.rows.len(),
        };
        match rows {
            0 => (self.1, (self.1 / 2).clamp(300, 380)),
            rows => (self.1, 80 + 56 * rows as u32),
        }
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        self.0.draw(&ScaledArea { area, scale }, 10.0)
    }
}

impl<'a> MarkedPanel<'a> {
    fn of(panel: &'a Panel, index: usize, spec: Option<&'a FigureSpec>) -> MarkedPanel<'a> {
        let points = spec.map_or(&[][..], |spec| &spec.published);
        MarkedPanel {
            panel,
            points: points.iter().filter(|point| point.panel == index).collect(),
        }
    }

    /// Returns a colour for each series. A dashed series has the colour of the line before it.
    fn colours(&self) -> Vec<usize> {
        let series = &self.panel.series;
        let own = series.iter().filter(|series| series.style != Style::Dashed);
        let own = colours::of_names(own.map(|series| series.name.as_str()));
        let mut next = 0;
        let colour = |style| {
            next += usize::from(style != Style::Dashed);
            own.get(next.saturating_sub(1))
                .copied()
                .unwrap_or(colours::OTHER)
        };
        series
            .iter()
            .map(|series| series.style)
            .map(colour)
            .collect()
    }

    fn signs(&self) -> Vec<LegendEntry<'a>> {
        let series = self.panel.series.iter().zip(self.colours());
        if self.better().is_some() {
            let names = ["better than the first of the row", "worse"];
            return (0..)
                .zip(names)
                .map(|(index, name)| LegendEntry::Bar(colours::other(index), name))
                .collect();
        }
        let mut signs: Vec<LegendEntry<'a>> = series
            .filter_map(|(series, colour)| match series.style {
                Style::Line => Some(LegendEntry::Line(colour, &series.name)),
                Style::Dots => Some(LegendEntry::Dot(colour, &series.name)),
                Style::Bar => Some(LegendEntry::Bar(colour, &series.name)),
                Style::Dashed | Style::Surface(_) => None,
            })
            .collect();
        if !self.points.is_empty() {
            signs.push(LegendEntry::PublishedMark("published"));
        }
        signs
    }

    /// Returns every point that must be visible.
    fn points(&self) -> impl Iterator<Item = (f64, f64)> {
        let ours = self.panel.series.iter().flat_map(|series| &series.points);
        let published = self.points.iter().map(|point| point.at.into());
        ours.copied().chain(published)
    }

    fn draw<DB: DrawingBackend>(&self, sheet: &ScaledArea<'_, DB>, top: f64) -> DrawResult<DB> {
        if let Some(better) = self.better() {
            self.draw_surface(sheet, top, better)
        } else if self.panel.rows.is_empty() {
            self.draw_curves(sheet, top)
        } else {
            self.draw_bars(sheet, top)
        }
    }

    /// Returns which direction is better if the panel is a surface.
    fn better(&self) -> Option<BetterDirection> {
        self.panel
            .series
            .iter()
            .find_map(|series| match series.style {
                Style::Surface(better) => Some(better),
                _ => None,
            })
    }

    /// Draws a row of cells for each series, with its name above and a frame around the best cell.
    fn draw_surface<DB: DrawingBackend>(
        &self,
        sheet: &ScaledArea<'_, DB>,
        top: f64,
        better: BetterDirection,
    ) -> DrawResult<DB> {
        let series = &self.panel.series;
        let columns = series.first().map_or(&[][..], |series| &series.points);
        let (right, bottom) = (columns.len() as f64, series.len() as f64);
        let column = |x: &f64| {
            let index = (x - 0.5).floor().clamp(0.0, right - 1.0);
            plain(&columns[index as usize].0)
        };
        let x = Axis {
            labels: columns.len(),
            format: &column,
            ..axis(&self.panel.x, 0.5..right + 0.5)
        };
        let y = Axis {
            labels: 0,
            ..axis(&self.panel.y, 0.0..bottom)
        };
        let mut plane = sheet.axes(top, &x, &y)?;
        for (row, series) in (0..).zip(series) {
            let top = bottom - f64::from(row);
            let Some(&(_, first)) = series.points.first() else {
                continue;
            };
            let times = |at: &(f64, f64)| better.times(at.1, first);
            let best = series.points.iter().map(times).fold(f64::MIN, f64::max);
            let corners = |column: i32| {
                let left = f64::from(column) + 0.5;
                [(left, top - BAR.start), (left + 1.0, top - BAR.end)]
            };
            for (column, point) in (0..).zip(&series.points) {
                let strength = times(point).ln() / FULL_COLOUR_RATIO.ln();
                sheet.cell(&mut plane, corners(column), strength.clamp(-1.0, 1.0))?;
                let middle = (f64::from(column) + 1.0, top - (BAR.start + BAR.end) / 2.0);
                sheet.value(&plane, &three_digits(point.1), middle)?;
            }
            // The frame is drawn over the rims of neighbouring cells.
            let best = series.points.iter().position(|point| times(point) == best);
            if let Some(column) = best {
                sheet.frame(&mut plane, corners(column as i32))?;
            }
            sheet.label(&plane, &series.name, (0.5, top - BAR.start))?;
        }
        Ok(())
    }

    fn draw_curves<DB: DrawingBackend>(
        &self,
        sheet: &ScaledArea<'_, DB>,
        top: f64,
    ) -> DrawResult<DB> {
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
                Style::Bar | Style::Surface(_) => {}
            }
        }
        self.draw_published(sheet, &plane, |at| at)
    }

    /// Draws the bars of each row one after another, with the row's name above.
    fn draw_bars<DB: DrawingBackend>(
        &self,
        sheet: &ScaledArea<'_, DB>,
        top: f64,
    ) -> DrawResult<DB> {
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
        // Rows are listed downwards, but the axis points upwards.
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
        sheet: &ScaledArea<'p, DB>,
        plane: &ChartArea<'p, DB>,
        place: impl Fn((f64, f64)) -> (f64, f64),
    ) -> DrawResult<DB> {
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

/// Formats a number with three digits, including a zero before the decimal point, or with all
/// digits before the point if there are more.
fn three_digits(value: f64) -> String {
    let decimals = (2.0 - value.abs().max(1.0).log10().floor()).max(0.0);
    format!("{value:.*}", decimals as usize)
}

#[cfg(test)]
mod tests {
    use traxtent_lab::{Figure, Series};

    use super::*;

    /// Does a surface show each value, the names of its rows, the title and a label of its columns,
    /// and one frame per row?
    #[test]
    fn surface() {
        let row = |name: &str, values: [f64; 3]| Series {
            name: name.to_owned(),
            style: Style::Surface(BetterDirection::Less),
            points: [1.0, 2.0, 32.0].into_iter().zip(values).collect(),
        };
        let picture = Figure::of(Panel {
            x: "partitions".to_owned(),
            series: vec![
                row("reads", [9.44, 7.284, 11_165.4]),
                row("writes", [10.2, 275.3, 0.5]),
            ],
            ..Panel::default()
        });
        let framed = Framed(vec![MarkedPanel::of(&picture.panels[0], 0, None)]);
        let svg = framed.svg().unwrap();
        let lines: Vec<&str> = svg.lines().map(str::trim).collect();
        for text in [
            "reads",
            "writes",
            "partitions",
            "32",
            "9.44",
            "7.28",
            "11165",
            "10.2",
            "275",
            "0.50",
        ] {
            assert!(lines.contains(&text), "{text}");
        }
        let frames = lines
            .iter()
            .filter(|line| line.starts_with("<rect") && line.contains("stroke=\"#222222\""));
        assert_eq!(frames.count(), 2);
    }
}

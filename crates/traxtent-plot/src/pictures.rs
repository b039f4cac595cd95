//! The pictures of the commands.

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use traxtent_model::drive::Breakdown;

use super::canvas::{DrawResult, Picture};
use super::chart::{
    Axis, DrawnHeight, INK, LegendEntry, NOTE_LINE, ScaledArea, data, percent, plain,
};
use super::colours;
use super::distribution::draw_curves;
use super::{Curve, Efficiency, EfficiencyPanel, Residuals, Response, TimesPanel, Validation};

fn share_axis<'a>(title: &'a str) -> Axis<'a> {
    Axis {
        title,
        range: 0.0..1.0,
        format: &percent,
        labels: 6,
    }
}

fn time_axis<'a>(until: f64) -> Axis<'a> {
    Axis {
        title: "response time, ms (without the slowest thousandth)",
        range: 0.0..until.max(1e-3),
        format: &plain,
        labels: 8,
    }
}

impl Picture for Response {
    fn size(&self) -> (u32, u32) {
        (960, 420)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let sheet = ScaledArea { area, scale };
        sheet.title(&self.title)?;
        let (left, right) = area.split_horizontally(sheet.px(560.0));
        let cdf = ScaledArea { area: &left, scale };
        draw_curves(
            &cdf,
            52.0,
            std::slice::from_ref(&self.distribution),
            self.axes,
        )?;
        self.draw_parts(&ScaledArea {
            area: &right,
            scale,
        })
    }
}

impl Response {
    /// Draws a bar for each component of the mean response time.
    fn draw_parts<DB: DrawingBackend>(&self, sheet: &ScaledArea<'_, DB>) -> DrawResult<DB> {
        const TOP: f64 = 86.0;
        const ROW: f64 = 34.0;
        const NAMES: f64 = 110.0;
        const LONGEST: f64 = 140.0;
        let mean: f64 = self.parts_ms.iter().sum();
        let most = self
            .parts_ms
            .iter()
            .fold(1e-9_f64, |most, &part| most.max(part));
        let text = sheet.text(14.0, INK);
        let at_left = text.clone().pos(Pos::new(HPos::Left, VPos::Center));
        let at_right = text.clone().pos(Pos::new(HPos::Right, VPos::Center));
        let title = format!("components of the mean of {mean:.3} ms");
        sheet
            .area
            .draw_text(&title, &at_left, (sheet.px(14.0), sheet.px(TOP - 26.0)))?;
        for (row, (name, &part)) in Breakdown::NAMES.iter().zip(&self.parts_ms).enumerate() {
            let middle = TOP + ROW * (row as f64 + 0.5);
            let name = name.replace('_', " ");
            sheet
                .area
                .draw_text(&name, &at_right, (sheet.px(NAMES), sheet.px(middle)))?;
            let from = NAMES + 8.0;
            let to = from + part / most * LONGEST;
            if part > 0.0 {
                let corners = [
                    (sheet.px(from), sheet.px(middle - 10.0)),
                    (
                        sheet.px(to).max(sheet.px(from) + 1),
                        sheet.px(middle + 10.0),
                    ),
                ];
                sheet
                    .area
                    .draw(&Rectangle::new(corners, data(colours::OTHER).filled()))?;
            }
            let label = format!("{part:.3} ms, {:.1} %", part / mean.max(1e-12) * 100.0);
            sheet
                .area
                .draw_text(&label, &at_left, (sheet.px(to + 7.0), sheet.px(middle)))?;
        }
        Ok(())
    }
}

/// The displayed height of the first panel of a validation.
const FIRST_PANEL: u32 = 400;
/// The displayed height of each other panel of a validation.
const CLASS_PANEL: u32 = 330;

/// The displayed height of the title of a validation.
const HEADING: u32 = 30;

impl Picture for Validation {
    fn size(&self) -> (u32, u32) {
        let rows = (self.times.len() as u32).saturating_sub(1).div_ceil(2);
        let residuals = u32::from(self.residuals.is_some());
        (
            960,
            HEADING + FIRST_PANEL + CLASS_PANEL * (rows + residuals),
        )
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let sheet = ScaledArea { area, scale };
        sheet.title(&self.title)?;
        let (_, mut below) = area.split_vertically(sheet.px(f64::from(HEADING)));
        let mut take = |height: u32| {
            let (row, rest) = below.split_vertically(sheet.px(f64::from(height)));
            below = rest;
            row
        };
        let Some((all, classes)) = self.times.split_first() else {
            return Ok(());
        };
        let area = take(FIRST_PANEL);
        all.draw(&ScaledArea { area: &area, scale }, "")?;
        for row in classes.chunks(2) {
            let halves = take(CLASS_PANEL).split_evenly((1, 2));
            for (panel, area) in row.iter().zip(&halves) {
                panel.draw(&ScaledArea { area, scale }, &panel.title)?;
            }
        }
        if let Some(residuals) = &self.residuals {
            let area = take(CLASS_PANEL);
            residuals.draw(&ScaledArea { area: &area, scale })?;
        }
        Ok(())
    }
}

/// Draws a heading and a legend with a line for each curve. Returns their lower end.
fn heading<DB: DrawingBackend>(
    sheet: &ScaledArea<'_, DB>,
    title: &str,
    curves: &[Curve],
) -> DrawnHeight<DB> {
    let top = match title {
        "" => 10.0,
        title => sheet.title(title)?,
    };
    let curves = curves.iter().enumerate();
    let signs: Vec<LegendEntry<'_>> = curves
        .map(|(index, curve)| LegendEntry::Line(colours::other(index), &curve.name))
        .collect();
    sheet.legend(top + 12.0, 70.0, &signs)
}

impl TimesPanel {
    fn draw<DB: DrawingBackend>(&self, sheet: &ScaledArea<'_, DB>, title: &str) -> DrawResult<DB> {
        let bottom = heading(sheet, title, &self.curves)?;
        let mut plane = sheet.axes(
            bottom + 9.0,
            &time_axis(self.until_ms),
            &share_axis("share of requests"),
        )?;
        for (index, curve) in self.curves.iter().enumerate() {
            let points = curve.points.iter().copied();
            let shown: Vec<_> = points.filter(|point| point.0 <= self.until_ms).collect();
            sheet.curve(&mut plane, colours::other(index), &shown)?;
        }
        Ok(())
    }
}

impl Residuals {
    fn draw<DB: DrawingBackend>(&self, sheet: &ScaledArea<'_, DB>) -> DrawResult<DB> {
        let bottom = heading(sheet, &self.title, &self.curves)?;
        let points = || self.curves.iter().flat_map(|curve| &curve.points);
        let until = points().fold(1.0_f64, |most, point| most.max(point.0));
        let size = points().fold(0.1_f64, |most, point| most.max(point.1.abs())) * 1.05;
        let distance = Axis {
            title: "seek distance, cylinders",
            range: 0.0..until,
            format: &plain,
            labels: 8,
        };
        let difference = Axis {
            title: "simulated - measured, ms",
            range: -size..size,
            format: &plain,
            labels: 5,
        };
        let mut plane = sheet.axes(bottom + 9.0, &distance, &difference)?;
        for (index, curve) in self.curves.iter().enumerate() {
            sheet.curve(&mut plane, colours::other(index), &curve.points)?;
        }
        Ok(())
    }
}

/// The explanation below a picture of efficiency.
const EFFICIENCY_NOTE: &str = "Efficiency is the media transfer time of the requested bytes over head time. Head time runs \
     from the first movement for a request until the head is free again. Lines are measured on the model.";

/// The addition to the explanation if a panel has published values.
const PUBLISHED_NOTE: &str = "Diamonds are published.";

/// The displayed height of a panel of efficiency.
const PANEL: u32 = 380;

/// An upper bound on the displayed length that the explanation would have in one line, in pixels.
const NOTE_LENGTH: u32 = 1800;

impl Picture for Efficiency {
    fn size(&self) -> (u32, u32) {
        let width = self.panel_width * self.panels.len() as u32;
        let lines = NOTE_LENGTH.div_ceil(width - 32);
        (width, PANEL + 20 + lines * NOTE_LINE as u32)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let sheet = ScaledArea { area, scale };
        let published = self.panels.iter().any(|panel| !panel.marks.is_empty());
        sheet.note(&match published {
            true => format!("{EFFICIENCY_NOTE} {PUBLISHED_NOTE}"),
            false => EFFICIENCY_NOTE.to_owned(),
        })?;
        let (charts, _) = area.split_vertically(sheet.px(f64::from(PANEL)));
        let areas = charts.split_evenly((1, self.panels.len()));
        for (panel, area) in self.panels.iter().zip(&areas) {
            panel.draw(&ScaledArea { area, scale })?;
        }
        Ok(())
    }
}

impl EfficiencyPanel {
    fn draw<DB: DrawingBackend>(&self, sheet: &ScaledArea<'_, DB>) -> DrawResult<DB> {
        sheet.title(&self.title)?;
        let colours = colours::of_names(self.curves.iter().map(|curve| curve.name.as_str()));
        let lines = self.curves.iter().zip(&colours);
        let signs: Vec<LegendEntry<'_>> = lines
            .map(|(curve, colour)| LegendEntry::Line(*colour, &curve.name))
            .collect();
        let bottom = sheet.legend(50.0, 70.0, &signs)?;
        // The unit is chosen so that axis labels are round numbers.
        let (unit, kib) = if self.track_kib < 1024.0 {
            ("KiB", 1.0)
        } else {
            ("MiB", 1024.0)
        };
        let shown = |(size, efficiency): (f64, f64)| (size / kib, efficiency);
        let ends = self.curves.iter().filter_map(|curve| curve.points.last());
        let until = ends.fold(0.0_f64, |most, &end| most.max(shown(end).0));
        let track = format!("{:.2}", self.track_kib / kib);
        let title = format!(
            "request size, {unit} (a track has {} {unit})",
            track.trim_end_matches(".00")
        );
        let size = Axis {
            title: &title,
            range: 0.0..until,
            format: &plain,
            labels: 6,
        };
        let mut plane = sheet.axes(bottom + 9.0, &size, &share_axis("efficiency"))?;
        for (curve, colour) in self.curves.iter().zip(&colours) {
            let points: Vec<_> = curve.points.iter().copied().map(shown).collect();
            sheet.curve(&mut plane, *colour, &points)?;
        }
        for mark in &self.marks {
            sheet.mark(&plane, Some(colours[mark.curve]), shown(mark.at))?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::Draw;

    /// Returns the value of an attribute.
    fn attribute<'a>(line: &'a str, name: &str) -> Option<&'a str> {
        line.split(&format!(" {name}=\"")).nth(1)?.split('"').next()
    }

    /// Returns the vertical positions of the points of a line.
    fn heights(line: &str) -> Vec<f64> {
        if let Some(points) = attribute(line, "points") {
            let points = points.split_whitespace();
            return points
                .filter_map(|at| at.split(',').nth(1)?.parse().ok())
                .collect();
        }
        let ends = ["y1", "y2"].map(|end| attribute(line, end).and_then(|y| y.parse().ok()));
        ends.into_iter().flatten().collect()
    }

    /// Does every entry of a legend of several rows end above the plot, with its data and its grid?
    #[test]
    fn legends_are_above_the_data() {
        let curve = |name: &str| Curve {
            name: name.to_owned(),
            points: vec![(0.0, 0.1), (200.0, 1.0), (400.0, 1.0)],
        };
        let names = [
            "aligned to tracks",
            "unaligned",
            "a name that needs a row",
            "sequential",
        ];
        for panel_width in [380, 480] {
            let picture = Efficiency {
                panels: vec![EfficiencyPanel {
                    title: "a drive".to_owned(),
                    curves: names.map(curve).to_vec(),
                    marks: vec![],
                    track_kib: 264.0,
                }],
                panel_width,
            };
            let svg = picture.svg().unwrap();
            let lines: Vec<&str> = svg.lines().map(str::trim).collect();
            let mut entries = Vec::new();
            let mut signs = Vec::new();
            for (place, pair) in lines.windows(2).enumerate() {
                if names.contains(&pair[1]) {
                    let number = |name| attribute(pair[0], name).unwrap().parse::<f64>().unwrap();
                    entries.push((number("y"), number("font-size")));
                    // The sign of an entry is drawn before its name.
                    signs.push(place - 1);
                }
            }
            assert_eq!(entries.len(), names.len());
            let drawn = lines.iter().enumerate();
            let drawn = drawn.filter(|(place, _)| !signs.contains(place));
            let top = drawn
                .flat_map(|(_, line)| heights(line))
                .fold(f64::MAX, f64::min);
            for (at, size) in &entries {
                assert!(at + size / 2.0 < top, "{at} {size} {top}");
            }
        }
    }
}

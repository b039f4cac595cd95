//! The pictures of the commands.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use plotters::style::text_anchor::{HPos, Pos, VPos};
use traxtent_model::drive::Breakdown;

use super::canvas::{self, DrawResult, Picture};
use super::chart::{Axis, COLOURS, INK, LegendEntry, ScaledArea, percent, plain};
use super::distribution::draw_curves;
use super::{Efficiency, EfficiencyPanel, Response, Validation};
use crate::failure::Result;

/// Draws the distribution of response times and their components.
pub(crate) fn response(path: &Path, picture: &Response) -> Result<()> {
    canvas::write(path, picture)
}

/// Draws simulated and measured distributions in one chart.
pub(crate) fn validation(path: &Path, picture: &Validation) -> Result<()> {
    canvas::write(path, picture)
}

/// Draws efficiency against request size.
pub(crate) fn efficiency(path: &Path, picture: &Efficiency) -> Result<()> {
    canvas::write(path, picture)
}

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
        const NAMES: f64 = 100.0;
        const LONGEST: f64 = 165.0;
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
                    .draw(&Rectangle::new(corners, COLOURS[0].filled()))?;
            }
            let label = format!("{part:.3} ms, {:.1} %", part / mean.max(1e-12) * 100.0);
            sheet
                .area
                .draw_text(&label, &at_left, (sheet.px(to + 7.0), sheet.px(middle)))?;
        }
        Ok(())
    }
}

impl Picture for Validation {
    fn size(&self) -> (u32, u32) {
        (760, 440)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let sheet = ScaledArea { area, scale };
        sheet.title(&self.title)?;
        let signs: Vec<LegendEntry<'_>> = self
            .curves
            .iter()
            .enumerate()
            .map(|(index, curve)| LegendEntry::Line(index, &curve.name))
            .collect();
        sheet.legend(50.0, 70.0, &signs)?;
        let mut plane = sheet.axes(
            70.0,
            &time_axis(self.until_ms),
            &share_axis("share of requests"),
        )?;
        for (index, curve) in self.curves.iter().enumerate() {
            let points = curve.points.iter().copied();
            let shown: Vec<_> = points.filter(|point| point.0 <= self.until_ms).collect();
            sheet.curve(&mut plane, index, &shown)?;
        }
        Ok(())
    }
}

impl Picture for Efficiency {
    fn size(&self) -> (u32, u32) {
        (560 * self.panels.len() as u32, 440)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        for (panel, area) in self
            .panels
            .iter()
            .zip(area.split_evenly((1, self.panels.len())))
        {
            panel.draw(&ScaledArea { area: &area, scale })?;
        }
        Ok(())
    }
}

impl EfficiencyPanel {
    fn draw<DB: DrawingBackend>(&self, sheet: &ScaledArea<'_, DB>) -> DrawResult<DB> {
        sheet.title(&self.title)?;
        let lines = self.curves.iter().enumerate();
        let mut signs: Vec<LegendEntry<'_>> = lines
            .map(|(index, curve)| LegendEntry::Line(index, &curve.name))
            .collect();
        if !self.marks.is_empty() {
            signs.push(LegendEntry::PublishedMark("published"));
        }
        sheet.legend(50.0, 70.0, &signs)?;
        // The unit is chosen so that axis labels are round numbers.
        let (unit, kb) = if self.track_kb < 1024.0 {
            ("KB", 1.0)
        } else {
            ("MB", 1024.0)
        };
        let shown = |(size, efficiency): (f64, f64)| (size / kb, efficiency);
        let ends = self.curves.iter().filter_map(|curve| curve.points.last());
        let until = ends.fold(0.0_f64, |most, &end| most.max(shown(end).0));
        let track = format!("{:.2}", self.track_kb / kb);
        let title = format!(
            "request size, {unit} (a track has {})",
            track.trim_end_matches(".00")
        );
        let size = Axis {
            title: &title,
            range: 0.0..until,
            format: &plain,
            labels: 8,
        };
        let mut plane = sheet.axes(70.0, &size, &share_axis("efficiency"))?;
        for (index, curve) in self.curves.iter().enumerate() {
            let points: Vec<_> = curve.points.iter().copied().map(shown).collect();
            sheet.curve(&mut plane, index, &points)?;
        }
        for mark in &self.marks {
            sheet.mark(&plane, Some(mark.curve), shown(mark.at))?;
        }
        Ok(())
    }
}

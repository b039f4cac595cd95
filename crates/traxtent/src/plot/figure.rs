//! The pictures of experiments.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;
use traxtent_lab::{Figure, Panel, Series, Style};

use super::canvas::{self, Drawn, Picture};
use super::chart::{Axis, Sheet, Sign, plain};
use crate::failure::Result;

/// Draws a picture of an experiment.
pub(crate) fn figure(path: &Path, picture: &Figure) -> Result<()> {
    canvas::write(path, picture)
}

/// Room above the highest point, as a share.
const HEADROOM: f64 = 1.05;

impl Picture for Figure {
    fn size(&self) -> (u32, u32) {
        match self.panels.len() {
            1 => (760, 460),
            panels => (620 * panels as u32, 440),
        }
    }

    fn draw<DB: DrawingBackend>(&self, area: &DrawingArea<DB, Shift>, scale: f64) -> Drawn<DB> {
        let areas = area.split_evenly((1, self.panels.len()));
        for (panel, area) in self.panels.iter().zip(&areas) {
            draw(panel, &Sheet { area, scale })?;
        }
        Ok(())
    }
}

fn draw<DB: DrawingBackend>(panel: &Panel, sheet: &Sheet<'_, DB>) -> Drawn<DB> {
    sheet.title(&panel.title)?;
    let series = panel.series.iter().enumerate();
    let signs: Vec<Sign<'_>> = series
        .map(|(index, Series { name, style, .. })| match style {
            Style::Line => Sign::Line(index, name),
            Style::Dots => Sign::Dot(index, name),
        })
        .collect();
    sheet.legend(50.0, 70.0, &signs)?;
    let points = || panel.series.iter().flat_map(|series| &series.points);
    let most = |numbers: &mut dyn Iterator<Item = f64>| numbers.fold(f64::MIN_POSITIVE, f64::max);
    let axis = |title, range| Axis {
        title,
        range,
        format: &plain,
        labels: 8,
    };
    let left = points().map(|point| point.0).fold(0.0, f64::min);
    let right = most(&mut points().map(|point| point.0));
    let top = most(&mut points().map(|point| point.1)) * HEADROOM;
    let mut plane = sheet.axes(70.0, &axis(panel.x, left..right), &axis(panel.y, 0.0..top))?;
    for (index, series) in panel.series.iter().enumerate() {
        match series.style {
            Style::Line => sheet.curve(&mut plane, index, &series.points)?,
            Style::Dots => sheet.dots(&mut plane, index, &series.points)?,
        }
    }
    Ok(())
}

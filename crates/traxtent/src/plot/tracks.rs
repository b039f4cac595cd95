//! The picture of a track map.

use std::path::Path;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::canvas::{self, DrawResult, Picture};
use super::chart::{Axis, COLOURS, LegendEntry, ScaledArea, plain};
use super::{Tracks, TracksPanel};
use crate::failure::Result;

/// Draws values of each track against its LBNs.
pub(crate) fn tracks(path: &Path, picture: &Tracks) -> Result<()> {
    canvas::write(path, picture)
}

/// The displayed height of a panel; the first panel has twice this height.
const PANEL: u32 = 200;

/// The room for the title.
const TOP: f64 = 44.0;

impl Picture for Tracks {
    fn size(&self) -> (u32, u32) {
        (960, 60 + PANEL * (1 + self.panels.len() as u32))
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        ScaledArea { area, scale }.title(&self.title)?;
        let mut rest = area.clone();
        for (index, panel) in self.panels.iter().enumerate() {
            let sheet = ScaledArea { area: &rest, scale };
            let (top, height) = match index {
                0 => (TOP, 60 + 2 * PANEL),
                _ => (8.0, PANEL),
            };
            let (mine, below) = rest.split_vertically(sheet.px(f64::from(height)));
            let sheet = ScaledArea { area: &mine, scale };
            panel.draw(&sheet, top, &self.lbns)?;
            rest = below;
        }
        Ok(())
    }
}

impl TracksPanel {
    fn draw<DB: DrawingBackend>(
        &self,
        sheet: &ScaledArea<'_, DB>,
        top: f64,
        lbns: &std::ops::Range<f64>,
    ) -> DrawResult<DB> {
        let lines = self.legend.iter().enumerate();
        let signs: Vec<LegendEntry<'_>> =
            lines.map(|(k, name)| LegendEntry::Line(k, name)).collect();
        sheet.legend(top + 8.0, 70.0, &signs)?;
        let top = if signs.is_empty() { top } else { top + 26.0 };
        let (unit, title) = if lbns.end - lbns.start >= 2e7 {
            (1e6, "LBN, millions")
        } else {
            (1.0, "LBN")
        };
        let x = Axis {
            title,
            range: lbns.start / unit..lbns.end / unit,
            format: &plain,
            labels: 7,
        };
        let least = self
            .bars
            .iter()
            .fold(f64::MAX, |least, bar| least.min(bar.values.0));
        let most = self
            .bars
            .iter()
            .fold(0.0_f64, |most, bar| most.max(bar.values.1));
        let margin = ((most - least) * 0.05).max(0.5);
        let y = Axis {
            title: self.title,
            range: least - margin..most + margin,
            format: &whole,
            labels: 6,
        };
        let mut plane = sheet.axes(top, &x, &y)?;
        // The minimum width at which a bar is visible.
        let thin = (lbns.end - lbns.start) / 900.0;
        for bar in &self.bars {
            let colour = COLOURS[bar.colour % COLOURS.len()];
            let (left, right) = bar.lbns;
            let (left, right) = (left / unit, right.max(left + thin).min(lbns.end) / unit);
            let (low, high) = bar.values;
            let line = vec![(left, low), (right, low)];
            let style = colour.stroke_width(sheet.px(2.0) as u32);
            plane.draw_series([PathElement::new(line, style)])?;
            if low < high {
                let corners = [(left, low), (right, high)];
                plane.draw_series([Rectangle::new(corners, colour.filled())])?;
            }
        }
        Ok(())
    }
}

/// Formats a label of a counted value; empty between whole numbers.
fn whole(value: &f64) -> String {
    if (value - value.round()).abs() > 1e-6 || *value < -0.5 {
        String::new()
    } else if *value >= 1e4 && *value % 1e3 == 0.0 {
        format!("{} k", plain(&(value / 1e3)))
    } else {
        plain(value)
    }
}

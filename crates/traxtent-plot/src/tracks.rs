//! The picture of a track map.

use plotters::coord::Shift;
use plotters::prelude::*;

use super::canvas::{DrawResult, Picture};
use super::chart::{Axis, LegendEntry, ScaledArea, data, plain};
use super::{Tracks, TracksPanel, colours};

/// The displayed heights of the first panel, unless its axis begins at zero, and of all others.
const PANELS: (f64, f64) = (400.0, 210.0);

/// The room for the title.
const TITLE: f64 = 44.0;
/// The room for a heading.
const HEADING: f64 = 40.0;

impl TracksPanel {
    /// Returns the displayed height.
    fn height(&self, first: bool) -> f64 {
        let heading = if self.heading.is_some() { HEADING } else { 0.0 };
        match first && !self.from_zero {
            true => PANELS.0 + heading,
            false => PANELS.1 + heading,
        }
    }
}

impl Picture for Tracks {
    fn size(&self) -> (u32, u32) {
        let panels = self.panels.iter().enumerate();
        let heights = panels.map(|(index, panel)| panel.height(index == 0));
        (960, (TITLE + heights.sum::<f64>()) as u32)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let sheet = ScaledArea { area, scale };
        sheet.title(&self.title)?;
        let (_, mut rest) = area.split_vertically(sheet.px(TITLE));
        for (index, panel) in self.panels.iter().enumerate() {
            let (mine, below) = rest.split_vertically(sheet.px(panel.height(index == 0)));
            panel.draw(&ScaledArea { area: &mine, scale })?;
            rest = below;
        }
        Ok(())
    }
}

impl TracksPanel {
    fn draw<DB: DrawingBackend>(&self, sheet: &ScaledArea<'_, DB>) -> DrawResult<DB> {
        let mut top = 8.0;
        if let Some(heading) = &self.heading {
            top = sheet.title(heading)? + 6.0;
        }
        let lines = self.legend.iter().enumerate();
        let signs: Vec<LegendEntry<'_>> = lines
            .map(|(k, name)| LegendEntry::Line(colours::other(k), name))
            .collect();
        if !signs.is_empty() {
            top = sheet.legend(top + 8.0, 70.0, &signs)? + 6.0;
        }
        let lbns = &self.lbns;
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
        let y = Axis {
            title: self.title,
            range: self.values(),
            format: &whole,
            labels: 6,
        };
        let mut plane = sheet.axes(top, &x, &y)?;
        // The minimum width at which a bar is visible.
        let thin = (lbns.end - lbns.start) / 900.0;
        for bar in &self.bars {
            let colour = data(colours::other(bar.colour));
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

    /// Returns the range of the vertical axis.
    fn values(&self) -> std::ops::Range<f64> {
        let bars = &self.bars;
        let least = bars.iter().map(|bar| bar.values.0).fold(f64::MAX, f64::min);
        let most = bars.iter().map(|bar| bar.values.1).fold(0.0, f64::max);
        if self.from_zero {
            return 0.0..most * 1.05;
        }
        let margin = ((most - least) * 0.05).max(0.5);
        least - margin..most + margin
    }
}

/// Formats a label of a counted value. Labels between whole numbers and below 0 are empty.
fn whole(value: &f64) -> String {
    if (value - value.round()).abs() > 1e-6 || *value < -0.5 {
        String::new()
    } else if *value >= 1e4 && *value % 1e3 == 0.0 {
        format!("{} k", plain(&(value / 1e3)))
    } else {
        plain(value)
    }
}

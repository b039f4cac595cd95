//! Throughput and response times over the values of a parameter: two charts, one above the other,
//! so that they remain readable on a narrow screen. Series differ in colour and in their marks, for
//! print without colours.

use std::ops::Range;

use plotters::coord::Shift;
use plotters::prelude::*;

use super::canvas::{DrawResult, Picture};
use super::chart::{Axis, LegendEntry, ScaledArea, plain};
use super::colours;
use super::marker::Marker;
use super::scale::Scale;
use super::{Sweep, SweepPoint, SweepSeries};

/// The displayed width.
const WIDTH: u32 = 480;
/// The displayed height of the title and both charts.
const HEIGHT: u32 = 640;
/// The displayed height of a row of the legend.
const LEGEND_ROW: u32 = 22;

/// The factor by which each value must exceed the one before it for the parameter's axis to be
/// logarithmic, as in 1, 2, 4 and 8.
const GROWTH_MIN: f64 = 1.5;
/// The factor by which the last such value must exceed the first.
const SPAN_MIN: f64 = 8.0;
/// The displayed length of the parameter's axis, rounded down.
const AXIS_LENGTH: f64 = 380.0;
/// The displayed width that a label needs for each character, and around it.
const LABEL: (f64, f64) = (9.0, 8.0);

/// The width of the margin at both ends of an axis, as a share of its range.
const MARGIN: f64 = 0.04;

impl Picture for Sweep {
    fn size(&self) -> (u32, u32) {
        let rows = match self.series.len() {
            1 => 0,
            several => several as u32,
        };
        (WIDTH, HEIGHT + rows * LEGEND_ROW)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let sheet = ScaledArea { area, scale };
        let colours = colours::of_names(self.series.iter().map(|series| series.name.as_str()));
        let mut top = sheet.title(&self.title)?;
        if self.series.len() > 1 {
            let series = self.series.iter().zip(&colours).enumerate();
            let signs: Vec<LegendEntry<'_>> = series
                .map(|(index, (series, colour))| {
                    LegendEntry::MarkedLine(*colour, Marker::of_series(index), &series.name)
                })
                .collect();
            top = sheet.legend(top + 12.0, 16.0, &signs)?;
        }
        let (_, charts) = area.split_vertically(sheet.px(top));
        let halves = charts.split_evenly((2, 1));
        let throughput = Chart {
            title: &format!("throughput, {}", self.throughput_unit),
            figures: &[(false, |point| point.throughput)],
            log_y: false,
        };
        let response = Chart {
            title: "response time, ms: mean, 99 % (dashed)",
            figures: &[(false, |point| point.mean_ms), (true, |point| point.p99_ms)],
            log_y: self.axes.log_y,
        };
        for (chart, area) in [throughput, response].iter().zip(&halves) {
            chart.draw(&ScaledArea { area, scale }, self, &colours)?;
        }
        Ok(())
    }
}

/// A figure of a point.
type Figure = fn(&SweepPoint) -> f64;

/// Some figures of all series.
struct Chart<'a> {
    title: &'a str,
    /// Each figure, and whether its curve is dashed.
    figures: &'static [(bool, Figure)],
    log_y: bool,
}

impl Chart<'_> {
    fn draw<DB: DrawingBackend>(
        &self,
        sheet: &ScaledArea<'_, DB>,
        sweep: &Sweep,
        colours: &[usize],
    ) -> DrawResult<DB> {
        let top = sheet.title(self.title)?;
        let values = values(&sweep.series);
        let parameter = parameter_scale(&values, sweep.axes.log_x);
        let points = || sweep.series.iter().flat_map(|series| &series.points);
        let figures = points().flat_map(|point| self.figures.iter().map(|(_, of)| of(point)));
        let figure = figure_scale(figures, self.log_y);
        let x = Axis {
            title: &sweep.parameter,
            range: parameter.ends(),
            format: &plain,
            labels: 6,
        };
        let y = Axis {
            title: "",
            range: figure.ends(),
            format: &plain,
            labels: 6,
        };
        let ends = figure.ends();
        let mut plane = sheet.axes_on(top + 6.0, &x, &y, (parameter, figure))?;
        for (index, (series, colour)) in sweep.series.iter().zip(colours).enumerate() {
            for (is_dashed, of) in self.figures {
                let point = |point: &SweepPoint| (point.value, of(point).max(ends.start));
                let points: Vec<(f64, f64)> = series.points.iter().map(point).collect();
                if *is_dashed {
                    sheet.dashes(&mut plane, *colour, &points)?;
                } else {
                    sheet.curve(&mut plane, *colour, &points)?;
                }
                sheet.markers(&plane, *colour, Marker::of_series(index), &points)?;
            }
        }
        Ok(())
    }
}

/// Returns the values of the parameter in ascending order.
fn values(series: &[SweepSeries]) -> Vec<f64> {
    let points = series.iter().flat_map(|series| &series.points);
    let mut values: Vec<f64> = points.map(|point| point.value).collect();
    values.sort_by(f64::total_cmp);
    values.dedup();
    values
}

/// Returns the axis of the parameter. It is logarithmic on request, or if the values multiply. Then
/// its ticks are at the values, if there is room.
fn parameter_scale(values: &[f64], log: bool) -> Scale {
    let (first, last) = match values {
        [first, .., last] => (*first, *last),
        [only] => (*only - 1.0, *only + 1.0),
        [] => (0.0, 1.0),
    };
    let grows = |pair: &[f64]| pair[1] >= GROWTH_MIN * pair[0];
    let multiplies = values.windows(2).all(grows) && last >= SPAN_MIN * first;
    if first > 0.0 && (log || multiplies) {
        let margin = (last / first).powf(MARGIN);
        let range = first / margin..last * margin;
        let scale = Scale::log(range.clone());
        return match has_room(values, &scale) {
            true => Scale::log_at(range, values.to_vec()),
            false => scale,
        };
    }
    let margin = (last - first) * MARGIN;
    // An axis that begins near zero shows it.
    let start = match first >= 0.0 && first <= last / 4.0 {
        true => 0.0,
        false => first - margin,
    };
    Scale::linear(start..last + margin)
}

/// Returns whether the labels of all values fit next to each other.
fn has_room(values: &[f64], scale: &Scale) -> bool {
    let width = |value: &f64| plain(value).chars().count() as f64 * LABEL.0 + LABEL.1;
    values.windows(2).all(|pair| {
        let distance = (scale.place(pair[1]) - scale.place(pair[0])) * AXIS_LENGTH;
        distance >= (width(&pair[0]) + width(&pair[1])) / 2.0
    })
}

/// Returns the axis of a figure: from zero, or over at least a decade.
fn figure_scale(figures: impl Iterator<Item = f64> + Clone, log: bool) -> Scale {
    let end = figures.clone().fold(1e-3, f64::max) * (1.0 + MARGIN);
    if !log {
        return Scale::linear(0.0..end);
    }
    let start = figures.filter(|figure| *figure > 0.0).fold(end, f64::min);
    let range: Range<f64> = (start / (1.0 + MARGIN)).min(end / 10.0)..end;
    Scale::log(range)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Axes, Draw};
    use plotters::coord::ranged1d::{LightPoints, Ranged};

    fn sweep(names: &[&str]) -> Sweep {
        let point = |value: f64| SweepPoint {
            value,
            throughput: 100.0 * value,
            mean_ms: 5.0 + value,
            p99_ms: 20.0 + value,
        };
        let series = |name: &&str| SweepSeries {
            name: (*name).to_owned(),
            points: [1.0, 2.0, 4.0, 8.0].map(point).to_vec(),
        };
        Sweep {
            title: "a drive: random".to_owned(),
            parameter: "queue.depth".to_owned(),
            throughput_unit: "requests/s",
            series: names.iter().map(series).collect(),
            axes: Axes::default(),
        }
    }

    /// Does the axis of a parameter have ticks at values that multiply? Is it linear for others?
    #[test]
    fn axes_of_parameters() {
        let ticks = |values: &[f64]| match parameter_scale(values, false) {
            scale @ Scale::Log { .. } => Some(scale.key_points(LightPoints::new(6, 6))),
            Scale::Linear(_) => None,
        };
        let doubled = [1.0, 2.0, 4.0, 8.0, 16.0];
        assert_eq!(ticks(&doubled), Some(doubled.to_vec()));
        for even in [
            &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0, 7.0, 8.0][..],
            &[0.0, 8.0, 64.0],
            &[5400.0, 7200.0, 10_000.0],
            &[3.0],
        ] {
            assert_eq!(ticks(even), None, "{even:?}");
        }
        // There is no room for the labels of 20 values.
        let many: Vec<f64> = (0..20).map(|n| 2f64.powi(n)).collect();
        assert!(ticks(&many).is_some_and(|ticks| ticks.len() < 8));
    }

    /// Is each series named above the charts if there are several, and is a single one not?
    #[test]
    fn series_are_named_if_there_are_several() {
        let one = sweep(&["fcfs"]).svg().unwrap();
        assert!(!one.contains("fcfs"));
        let several = sweep(&["fcfs", "sptf"]).svg().unwrap();
        let place = |text: &str| several.find(text).unwrap_or_else(|| panic!("{text}"));
        assert!(place("fcfs") < place("throughput") && place("sptf") < place("throughput"));
        assert!(place("queue.depth") > place("throughput"));
    }

    /// Do the marks of six series have six shapes, in the legend and in both charts?
    #[test]
    fn series_have_shapes_of_their_own() {
        let names = ["a", "b", "c", "d", "e", "f"];
        let shapes = |count: usize| {
            let svg = sweep(&names[..count]).svg().unwrap();
            ["<circle", "<polygon", "<polyline"].map(|shape| svg.matches(shape).count())
        };
        // A series has 4 points with 3 figures, and a mark in the legend. A ring is two circles, a
        // cross two lines. Curves are lines too.
        let marks = 4 * 3 + 1;
        let added = |count: usize| {
            let (more, fewer) = (shapes(count), shapes(count - 1));
            [more[0] - fewer[0], more[1] - fewer[1]]
        };
        assert_eq!(shapes(2)[..2], [marks, marks], "a circle and a square");
        assert_eq!(added(3), [0, marks], "a triangle");
        assert_eq!(added(4), [0, 0], "a cross");
        assert_eq!(added(5), [2 * marks, 0], "a ring");
        assert_eq!(added(6), [0, marks], "a triangle that points down");
        let lines = |count: usize| shapes(count)[2] - shapes(count - 1)[2];
        assert_eq!(lines(4) - lines(3), 2 * marks);
    }
}

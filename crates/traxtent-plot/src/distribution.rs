//! Cumulative distributions of response times, of one run or several, on linear or logarithmic
//! axes.
//!
//! A curve is a step function: it rises at each time that occurs. On a logarithmic axis of shares,
//! it is the share of requests that took longer, which shows the slowest ones.

use plotters::coord::Shift;
use plotters::prelude::*;
use std::ops::Range;

use super::canvas::{DrawResult, Picture};
use super::chart::{Axis, LegendEntry, ScaledArea, percent, plain};
use super::colours::{self, DATA};
use super::scale::Scale;
use super::{Axes, Distribution, Distributions};

/// Steps closer than this share of the axes to the last one that was drawn are left out.
const RESOLUTION: f64 = 1.0 / 3000.0;

impl Picture for Distributions {
    fn size(&self) -> (u32, u32) {
        (960, 520)
    }

    fn draw<DB: DrawingBackend>(
        &self,
        area: &DrawingArea<DB, Shift>,
        scale: f64,
    ) -> DrawResult<DB> {
        let sheet = ScaledArea { area, scale };
        let title = sheet.title(&self.title)?;
        let curves = self.distributions.iter();
        let signs: Vec<LegendEntry<'_>> = curves
            .zip(strokes(&self.distributions))
            .map(|(curve, stroke)| match stroke {
                Stroke::Line(colour) => LegendEntry::Line(colour, &curve.name),
                Stroke::Dashes(colour) => LegendEntry::Dashes(colour, &curve.name),
            })
            .collect();
        let top = sheet.legend(title + 16.0, 70.0, &signs)? + 12.0;
        draw_curves(&sheet, top, &self.distributions, self.axes)
    }
}

/// Draws axes that begin `top` below the upper edge, and a curve for each distribution.
pub(super) fn draw_curves<DB: DrawingBackend>(
    sheet: &ScaledArea<'_, DB>,
    top: f64,
    curves: &[Distribution],
    axes: Axes,
) -> DrawResult<DB> {
    let (times, shares) = (times(curves, axes), shares(curves, axes));
    let x = Axis {
        title: match (axes.log_x || axes.log_y, curves.len()) {
            (true, _) => "response time, ms",
            (false, 1) => "response time, ms (without the slowest thousandth)",
            (false, _) => "response time, ms (up to the longest 99.9th percentile)",
        },
        range: times.clone(),
        format: &plain,
        labels: 8,
    };
    let y = Axis {
        title: if axes.log_y {
            "share of requests that took longer"
        } else {
            "share of requests"
        },
        range: shares.clone(),
        format: &percent,
        labels: 6,
    };
    let scales = || {
        let scale = |log, range: &Range<f64>| {
            if log {
                Scale::log(range.clone())
            } else {
                Scale::linear(range.clone())
            }
        };
        (scale(axes.log_x, &times), scale(axes.log_y, &shares))
    };
    let mut plane = sheet.axes_on(top, &x, &y, scales())?;
    for (curve, stroke) in curves.iter().zip(strokes(curves)) {
        let points = points(curve, axes, &scales());
        match stroke {
            Stroke::Line(colour) => sheet.curve(&mut plane, colour, &points)?,
            Stroke::Dashes(colour) => sheet.dashes(&mut plane, colour, &points)?,
        }
    }
    Ok(())
}

/// The drawing of a curve, with the index of its colour.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Stroke {
    Line(usize),
    Dashes(usize),
}

/// Returns a stroke for each curve. Once every colour is taken, curves are dashed. Up to 12 curves
/// have different strokes.
fn strokes(curves: &[Distribution]) -> Vec<Stroke> {
    let colours = colours::of_names(curves.iter().map(|curve| curve.name.as_str()));
    let strokes = colours.into_iter().enumerate();
    strokes
        .map(|(index, colour)| {
            if index < DATA.len() {
                Stroke::Line(colour)
            } else {
                Stroke::Dashes(colour)
            }
        })
        .collect()
}

/// Returns the range of the time axis. It ends at the longest 99.9th percentile if both axes are
/// linear, since a few slow requests would otherwise compress the rest.
fn times(curves: &[Distribution], axes: Axes) -> Range<f64> {
    const MARGIN: f64 = 1.02;
    let last = |curve: &Distribution| curve.steps.last().map_or(0.0, |step| step.0);
    let whole = axes.log_x || axes.log_y;
    let end = |curve: &Distribution| if whole { last(curve) } else { curve.p99_9_ms };
    let end = curves.iter().map(end).fold(1e-3, f64::max) * MARGIN;
    if !axes.log_x {
        return 0.0..end;
    }
    let starts = curves.iter().flat_map(|curve| &curve.steps);
    let starts = starts.map(|step| step.0).filter(|time| *time > 0.0);
    let start = starts.fold(end, f64::min) / MARGIN;
    start.min(end / 10.0)..end
}

/// Returns the range of the axis of shares.
fn shares(curves: &[Distribution], axes: Axes) -> Range<f64> {
    if !axes.log_y {
        return 0.0..1.0;
    }
    // The smallest positive share of slower requests: the one at the last time but one.
    let least = |curve: &Distribution| {
        let before = curve.steps.iter().rev().nth(1);
        before.map_or(1.0, |step| 1.0 - step.1)
    };
    let least = curves.iter().map(least).fold(1.0, f64::min);
    // The power of ten below it, so that the last step of a curve is seen to fall.
    10f64.powf((least.log10() - 1e-9).floor())..1.0
}

/// Returns the corners of a curve.
fn points(curve: &Distribution, axes: Axes, scales: &(Scale, Scale)) -> Vec<(f64, f64)> {
    let ((x, y), times, shares) = (scales, scales.0.ends(), scales.1.ends());
    // A share as the axis shows it.
    let shown = |share: f64| {
        let share = if axes.log_y { 1.0 - share } else { share };
        share.clamp(shares.start, shares.end)
    };
    let first = curve.steps.first().map_or(times.start, |step| step.0);
    let mut points = vec![(first.max(times.start), shown(0.0))];
    let mut share = shown(0.0);
    for (index, &(time, upto)) in curve.steps.iter().enumerate() {
        if time > times.end {
            break;
        }
        let time = time.max(times.start);
        let (last, next) = (points[points.len() - 1], shown(upto));
        let moved =
            (x.place(time) - x.place(last.0)).abs() + (y.place(next) - y.place(last.1)).abs();
        if moved < RESOLUTION && index + 1 < curve.steps.len() {
            share = next;
            continue;
        }
        points.extend([(time, share), (time, next)]);
        share = next;
    }
    points.dedup();
    points
}

#[cfg(test)]
mod tests {
    use super::*;

    fn curve(steps: &[(f64, f64)]) -> Distribution {
        Distribution {
            name: String::new(),
            steps: steps.to_vec(),
            p99_9_ms: steps.last().unwrap().0,
        }
    }

    /// Do as many curves as `sim --plot` draws differ in colour or dashes, whatever their names
    /// mean?
    #[test]
    fn strokes_differ() {
        let numbered = |index| format!("case {index}");
        let meaning = |index: usize| {
            let kinds = ["aligned", "unaligned", "sequential", "random"];
            format!("{} {index}", kinds[index % kinds.len()])
        };
        for name in [&numbered as &dyn Fn(usize) -> String, &meaning] {
            let curves: Vec<Distribution> = (0..12)
                .map(|index| Distribution {
                    name: name(index),
                    ..curve(&[(1.0, 1.0)])
                })
                .collect();
            let strokes = strokes(&curves);
            for (index, stroke) in strokes.iter().enumerate() {
                let earlier = &strokes[..index];
                assert!(!earlier.contains(stroke), "{}: {stroke:?}", name(index));
            }
        }
    }

    /// Does a curve rise exactly at the times that occur, and does it show the share of slower
    /// requests if the axis of shares is logarithmic?
    #[test]
    fn steps() {
        let curve = [curve(&[(1.0, 0.25), (2.0, 0.5), (4.0, 1.0)])];
        let drawn = |log_y| {
            let axes = Axes { log_x: true, log_y };
            let y = shares(&curve, axes);
            let y = if log_y {
                Scale::log(y)
            } else {
                Scale::linear(y)
            };
            points(&curve[0], axes, &(Scale::log(times(&curve, axes)), y))
        };
        let plain = drawn(false);
        let expected = [
            (1.0, 0.0),
            (1.0, 0.25),
            (2.0, 0.25),
            (2.0, 0.5),
            (4.0, 0.5),
            (4.0, 1.0),
        ];
        assert_eq!(plain, expected);
        let slower = drawn(true);
        let expected = [
            (1.0, 1.0),
            (1.0, 0.75),
            (2.0, 0.75),
            (2.0, 0.5),
            (4.0, 0.5),
            (4.0, 0.1),
        ];
        assert_eq!(slower, expected);
    }

    /// Are steps left out if there are many, and are the remaining points on the distribution?
    #[test]
    fn many_steps() {
        let steps: Vec<(f64, f64)> = (1..=20_000)
            .map(|n| (1.0 + f64::from(n) * 1e-4, f64::from(n) / 20_000.0))
            .collect();
        let curve = [curve(&steps)];
        let axes = Axes::default();
        let scales = (Scale::linear(times(&curve, axes)), Scale::linear(0.0..1.0));
        let points = points(&curve[0], axes, &scales);
        assert!(points.len() < 12_000, "{}", points.len());
        let tops = points.iter().skip(2).step_by(2);
        assert!(tops.clone().all(|point| steps.contains(point)));
        assert_eq!(points.last(), steps.last());
    }
}

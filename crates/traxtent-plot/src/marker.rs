//! Marks of points whose shapes distinguish series without colours, as in grey-scale print.

use plotters::prelude::*;

use super::canvas::DrawResult;
use super::chart::{ChartArea, ScaledArea, colour_of, data};

/// The displayed distance from the middle of a mark to its edge.
const RADIUS: f64 = 4.5;

/// The shape of a mark. There is no diamond, because diamonds are published values.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Marker {
    Circle,
    Square,
    Triangle,
    Cross,
    Ring,
    InvertedTriangle,
}

impl Marker {
    /// The shapes: as many as there are colours.
    const ALL: [Marker; super::colours::DATA.len()] = [
        Marker::Circle,
        Marker::Square,
        Marker::Triangle,
        Marker::Cross,
        Marker::Ring,
        Marker::InvertedTriangle,
    ];

    /// Returns the shape of a series, counted from 0.
    pub(super) fn of_series(index: usize) -> Marker {
        Marker::ALL[index % Marker::ALL.len()]
    }
}

impl<'a, DB: DrawingBackend> ScaledArea<'a, DB> {
    /// Draws a mark at each point.
    pub(super) fn markers(
        &self,
        plane: &ChartArea<'a, DB>,
        colour: usize,
        marker: Marker,
        points: &[(f64, f64)],
    ) -> DrawResult<DB> {
        let mut points = points.iter();
        points.try_for_each(|at| self.marker(self.place(plane, *at), colour, marker))
    }

    /// Draws a mark at a position.
    pub(super) fn marker(
        &self,
        (x, y): (i32, i32),
        colour: usize,
        marker: Marker,
    ) -> DrawResult<DB> {
        let stroke = data(colour).stroke_width(self.px(2.0) as u32);
        let radius = self.px(RADIUS);
        let at =
            |(right, down): (f64, f64)| (x + self.px(right * RADIUS), y + self.px(down * RADIUS));
        let polygon = |corners: &[(f64, f64)]| {
            let corners: Vec<(i32, i32)> = corners.iter().copied().map(at).collect();
            self.area.draw(&Polygon::new(corners, colour_of(colour)))
        };
        let line = |from, to| {
            let line = vec![at(from), at(to)];
            self.area.draw(&PathElement::new(line, stroke))
        };
        match marker {
            Marker::Circle => self
                .area
                .draw(&Circle::new((x, y), radius, colour_of(colour))),
            Marker::Ring => {
                self.area
                    .draw(&Circle::new((x, y), radius, WHITE.filled()))?;
                self.area.draw(&Circle::new((x, y), radius, stroke))
            }
            Marker::Square => polygon(&[(-0.9, -0.9), (0.9, -0.9), (0.9, 0.9), (-0.9, 0.9)]),
            Marker::Triangle => polygon(&[(0.0, -1.2), (1.2, 0.9), (-1.2, 0.9)]),
            Marker::InvertedTriangle => polygon(&[(0.0, 1.2), (1.2, -0.9), (-1.2, -0.9)]),
            Marker::Cross => {
                line((-1.1, -1.1), (1.1, 1.1))?;
                line((-1.1, 1.1), (1.1, -1.1))
            }
        }
    }
}

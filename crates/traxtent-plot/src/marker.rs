//! Marks of points whose shapes distinguish series without colours, as in grey-scale print.

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

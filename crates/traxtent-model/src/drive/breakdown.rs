//! The parts of a request's response time.

use traxtent_units::Span;

/// The parts of a response time. Their sum is exactly the response time.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Breakdown {
    /// Waiting for other requests, for read-ahead to stop, for a shared bus, or for the end of a
    /// stall.
    pub queue: Span,
    /// The controller's command and completion processing, the reselection of the bus, and delays
    /// before the head moves.
    pub overhead: Span,
    /// The first movement of the arm.
    pub seek: Span,
    /// Settling before writes.
    pub settle: Span,
    /// Track switches within the request, and the part of a head switch before it that exceeds
    /// the seek.
    pub head_switch: Span,
    /// Waiting for sectors to come under the head.
    pub rotation: Span,
    /// Sectors passing under the head.
    pub transfer: Span,
    /// The transfer on the bus, and waiting for the bus before it, except while any part above
    /// takes place.
    pub bus: Span,
}

impl Breakdown {
    /// The names of the parts, in the order of [`Breakdown::parts`].
    pub const NAMES: [&'static str; 8] = [
        "queue",
        "overhead",
        "seek",
        "settle",
        "head_switch",
        "rotation",
        "transfer",
        "bus",
    ];

    /// Returns the parts in order.
    pub fn parts(&self) -> [Span; 8] {
        [
            self.queue,
            self.overhead,
            self.seek,
            self.settle,
            self.head_switch,
            self.rotation,
            self.transfer,
            self.bus,
        ]
    }

    /// Returns the sum of the parts: the response time.
    pub fn total(&self) -> Span {
        Span(self.parts().iter().map(|part| part.0).sum())
    }
}

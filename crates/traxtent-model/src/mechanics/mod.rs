//! The position of the heads, and the time to change it.
//!
//! Rotation is exact: the spindle turns once in a whole number of picoseconds, and its phase is
//! simulated time modulo that number. The leading edge of a sector passes the head at the same
//! picosecond of every revolution, so consecutive sectors never drift apart.

mod rotation;
mod seek;

pub use rotation::TrackRotation;
use rotation::from_origin;
pub use seek::SeekCurve;

use crate::geometry::Track;
use crate::profile::{MechanicsSpec, SeekSpec};
use traxtent_units::{Cylinder, SimTime, Span, Surface};

/// The position of the heads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadPosition {
    /// The cylinder that the arm is on.
    pub cylinder: Cylinder,
    /// The surface of the active head.
    pub surface: Surface,
}

impl From<&Track> for HeadPosition {
    fn from(track: &Track) -> HeadPosition {
        HeadPosition {
            cylinder: track.cylinder,
            surface: track.surface,
        }
    }
}

/// The parts of one change of position. They add up to its duration.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct HeadMove {
    /// The seek of the arm.
    pub seek: Span,
    /// The part of the head switch that the seek does not hide.
    pub head_switch: Span,
    /// The settling before a write.
    pub settle: Span,
}

impl HeadMove {
    /// The total duration.
    pub fn total(&self) -> Span {
        self.seek + self.head_switch + self.settle
    }
}

/// The spindle, arm and heads of one drive.
#[derive(Clone, Debug)]
pub struct Mechanics {
    revolution: Span,
    head_switch: Span,
    write_settle: Span,
    /// The time by which a seek or head switch before a write is shorter than before a read; zero
    /// if it is not shorter.
    write_seek_saving: Span,
    read_seek: SeekCurve,
    write_seek: Option<SeekCurve>,
}

impl Mechanics {
    /// Creates the mechanics of a drive with the given number of cylinders. `spec` must come from a
    /// checked profile.
    pub fn new(spec: &MechanicsSpec, cylinders: u32) -> Mechanics {
        let write_seek = match &spec.seek {
            SeekSpec::Table {
                write: Some(points),
                ..
            } => Some(SeekCurve::from_table(points, cylinders)),
            _ => None,
        };
        Mechanics {
            revolution: Span::from_ms(60_000.0 / spec.rpm),
            head_switch: Span::from_ms(spec.head_switch_ms),
            write_settle: Span::from_ms(spec.write_settle_ms),
            write_seek_saving: Span::from_ms(-spec.write_settle_ms),
            read_seek: SeekCurve::new(&spec.seek, cylinders),
            write_seek,
        }
    }

    /// Returns the mechanics of a drive without moving parts. Seeks and head switches take no
    /// time, and one revolution takes one picosecond, the shortest time possible.
    pub fn none() -> Mechanics {
        Mechanics {
            revolution: Span(1),
            head_switch: Span::ZERO,
            write_settle: Span::ZERO,
            write_seek_saving: Span::ZERO,
            read_seek: SeekCurve::none(),
            write_seek: None,
        }
    }

    /// The time of one revolution.
    pub fn revolution(&self) -> Span {
        self.revolution
    }

    /// The seek curve for writes or for reads.
    pub fn seek_curve(&self, write: bool) -> &SeekCurve {
        match &self.write_seek {
            Some(curve) if write => curve,
            _ => &self.read_seek,
        }
    }

    /// Returns the time to go from one position to another: the longer of seek and head switch,
    /// plus settling before a write (paper T, section 2.2; DiskSim 4.0 manual, section 3.4). No
    /// settling is added if nothing moves. A negative settling time shortens the move, at most to
    /// zero.
    pub fn reposition(&self, from: HeadPosition, to: HeadPosition, write: bool) -> HeadMove {
        let seek = self
            .seek_curve(write)
            .time(from.cylinder.0.abs_diff(to.cylinder.0));
        let head_switch = if from.surface == to.surface {
            Span::ZERO
        } else {
            self.head_switch
        };
        let head_switch = head_switch.saturating_sub(seek);
        if !write || seek + head_switch == Span::ZERO {
            return HeadMove {
                seek,
                head_switch,
                settle: Span::ZERO,
            };
        }
        HeadMove {
            seek: seek.saturating_sub(self.write_seek_saving),
            head_switch: head_switch.saturating_sub(self.write_seek_saving.saturating_sub(seek)),
            settle: self.write_settle,
        }
    }

    /// Returns the time in each revolution at which the leading edge of a slot passes the head.
    /// `slot` may equal the track's number of slots; the result is then the edge of slot 0.
    #[inline]
    pub fn edge(&self, track: &Track, slot: u32) -> Span {
        let from_origin = from_origin(self.revolution.0, track.slots.into(), slot);
        let edge = track.origin.at_period(self.revolution).0 + from_origin;
        // Both terms are at most one revolution.
        Span(if edge >= self.revolution.0 {
            (edge - self.revolution.0) % self.revolution.0
        } else {
            edge
        })
    }

    /// The time until the given edge passes the head.
    #[inline]
    pub fn wait(&self, now: SimTime, edge: Span) -> Span {
        let phase = now.0 % self.revolution.0;
        Span(if edge.0 >= phase {
            edge.0 - phase
        } else {
            edge.0 + self.revolution.0 - phase
        })
    }

    /// The number, from 0, of the first slot whose leading edge passes at `now` or later.
    #[inline]
    pub fn next_slot(&self, track: &Track, now: SimTime) -> u32 {
        self.rotation(track, now).next_slot()
    }
}

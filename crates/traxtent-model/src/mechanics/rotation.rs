//! A track as it passes under its head.

use super::Mechanics;
use crate::geometry::Track;
use traxtent_units::{SimTime, Span};

/// The rotation of a track under its head after a given instant.
///
/// Finding the angle of the track at the instant takes a division by the revolution. The times of
/// all slots share that division.
#[derive(Clone, Copy, Debug)]
pub struct TrackRotation {
    revolution: u64,
    slots: u64,
    /// The time from the last passage of slot 0's leading edge to the instant, in picoseconds.
    since_origin: u64,
}

impl Mechanics {
    /// Returns the rotation of a track from `now` on.
    #[inline]
    pub fn rotation(&self, track: &Track, now: SimTime) -> TrackRotation {
        let revolution = self.revolution.0;
        let phase = now.0 % revolution;
        TrackRotation {
            revolution,
            slots: u64::from(track.slots),
            since_origin: between(self.edge(track, 0).0, phase, revolution),
        }
    }
}

impl TrackRotation {
    /// The first slot whose leading edge passes at the instant or later.
    #[inline]
    pub fn next_slot(&self) -> u32 {
        // The edge of slot `s` is the last picosecond up to `s / slots` of a revolution, so it
        // passes at `since_origin` or later if `s / slots` does.
        let slot = (self.since_origin * self.slots).div_ceil(self.revolution);
        if slot >= self.slots { 0 } else { slot as u32 }
    }

    /// The time from the instant until the leading edge of a slot passes.
    #[inline]
    pub fn wait(&self, slot: u32) -> Span {
        let edge = self.leading_edge(slot);
        Span(between(self.since_origin, edge, self.revolution))
    }

    /// The time from the passage of one slot's leading edge to the next passage of another slot's;
    /// zero if the slots are the same.
    #[inline]
    pub fn between(&self, from: u32, to: u32) -> Span {
        let (from, to) = (self.leading_edge(from), self.leading_edge(to));
        Span(between(from, to, self.revolution))
    }

    /// The time in which `count` slots pass, starting with slot `first`. `count` is at least 1.
    #[inline]
    pub fn length(&self, first: u32, count: u32) -> Span {
        if u64::from(count) == self.slots {
            return Span(self.revolution);
        }
        match self.leading_edge(first + count) - self.leading_edge(first) {
            // Slots of a drive without moving parts are shorter than a picosecond.
            0 => Span(self.revolution),
            length => Span(length),
        }
    }

    #[inline]
    fn leading_edge(&self, slot: u32) -> u64 {
        from_origin(self.revolution, self.slots, slot)
    }
}

/// The time from the leading edge of slot 0 to that of `slot`, in picoseconds.
#[inline]
pub(super) fn from_origin(revolution: u64, slots: u64, slot: u32) -> u64 {
    u64::from(slot) * revolution / slots
}

/// The time from one phase of the revolution to the next occurrence of another, or zero if they are
/// equal. It has no branch, because processors cannot predict the order of two phases.
#[inline]
fn between(from: u64, to: u64, revolution: u64) -> u64 {
    let (time, is_next_turn) = to.overflowing_sub(from);
    time.wrapping_add(u64::from(is_next_turn) * revolution)
}

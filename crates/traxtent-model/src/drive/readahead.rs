//! Read-ahead: reading on after a request, up to a limit or until another request needs the arm.
//!
//! Read-ahead is computed when its state is needed, not sector by sector. Legs that it has
//! completed are dropped; the current leg determines how far it has come.

use super::sweep::{Access, AccessModel, Leg, SectorsInOrder, leg};
use crate::mechanics::HeadPosition;
use crate::profile::ReadAheadUntil;
use traxtent_units::{Lbn, Sectors, SimTime};

/// A current or planned read-ahead.
#[derive(Clone, Debug)]
pub(super) struct ReadAheadRun {
    /// The segment that it fills.
    pub(super) segment: usize,
    /// The first sector after the completed legs.
    next: Lbn,
    /// The LBN at which it ends.
    limit: Lbn,
    /// The head position and time at the end of the last completed leg.
    position: HeadPosition,
    now: SimTime,
    leg: Option<CurrentLeg>,
    /// Whether sectors are read in the order in which they pass.
    on_arrival: bool,
    /// The time from which it has the head. Sectors that passed before may already be in the
    /// buffer.
    since: SimTime,
}

/// The part of a [`Leg`] that a current read-ahead needs.
#[derive(Clone, Copy, Debug)]
struct CurrentLeg {
    lbn: Lbn,
    /// The LBN after the piece.
    next: Lbn,
    position: HeadPosition,
    landed: SimTime,
    sectors: SectorsInOrder,
    /// The time of the last query, and the number of sectors that had passed by then. Several parts
    /// of the drive ask for the same time.
    passed: (SimTime, u32),
}

impl From<&Leg> for CurrentLeg {
    #[inline]
    fn from(leg: &Leg) -> CurrentLeg {
        CurrentLeg {
            lbn: leg.piece.lbn,
            next: leg.next_lbn(),
            position: HeadPosition::from(&leg.piece.track),
            landed: leg.landed,
            sectors: leg.sectors_in_order(),
            passed: (leg.end, leg.in_order),
        }
    }
}

impl CurrentLeg {
    fn passed(&mut self, now: SimTime) -> u32 {
        if self.passed.0 != now {
            self.passed = (now, self.sectors.passed(now));
        }
        self.passed.1
    }

    /// The first in-order sector that has not passed completely at `now`.
    fn first_unread(&mut self, now: SimTime) -> Lbn {
        self.lbn + Sectors(u64::from(self.passed(now)))
    }
}

impl ReadAheadRun {
    /// Creates a read-ahead that begins at `next`, with the head at `position` at time `now`.
    pub(super) fn new(
        segment: usize,
        next: Lbn,
        limit: Lbn,
        position: HeadPosition,
        now: SimTime,
    ) -> ReadAheadRun {
        ReadAheadRun {
            segment,
            next,
            limit,
            position,
            now,
            leg: None,
            on_arrival: false,
            since: now,
        }
    }

    /// Makes it read sectors in the order in which they pass. It gets the head at `since`, but
    /// sectors that have passed before may already be in the buffer.
    pub(super) fn on_arrival(self, since: SimTime) -> ReadAheadRun {
        ReadAheadRun {
            on_arrival: true,
            since,
            ..self
        }
    }

    /// Makes it begin at `next` and at time `now`, with the head at the same position.
    pub(super) fn from(self, next: Lbn, now: SimTime) -> ReadAheadRun {
        ReadAheadRun { next, now, ..self }
    }

    /// Gives it its first leg, which it would otherwise compute when it is observed. The leg must
    /// begin with the first sector to be read, and extend as far as the track and the limit allow.
    /// It is ignored if it is not on the track of the head.
    pub(super) fn with_leg(self, leg: &Leg) -> ReadAheadRun {
        let leg = CurrentLeg::from(leg);
        ReadAheadRun {
            leg: (leg.position == self.position).then_some(leg),
            ..self
        }
    }

    /// The first sector after the completed legs.
    pub(super) fn next(&self) -> Lbn {
        self.next
    }

    /// Sets the LBN at which it ends.
    pub(super) fn set_limit(&mut self, limit: Lbn) {
        self.limit = limit;
        if self.leg.as_ref().is_some_and(|leg| limit < leg.next) {
            self.leg = None;
        }
    }

    /// The LBN at which it ends.
    pub(super) fn limit(&self) -> Lbn {
        self.limit
    }

    /// Advances to `now`. Returns the first sector not yet read, and whether sectors remain.
    #[inline]
    pub(super) fn advance(
        &mut self,
        model: AccessModel<'_>,
        until: ReadAheadUntil,
        now: SimTime,
    ) -> (Lbn, bool) {
        match &mut self.leg {
            Some(leg) if leg.sectors.end > now => (leg.first_unread(now), true),
            _ => self.advance_legs(model, until, now),
        }
    }

    /// Same as [`ReadAheadRun::advance`], if the current leg has ended by `now` or there is none.
    fn advance_legs(
        &mut self,
        model: AccessModel<'_>,
        until: ReadAheadUntil,
        now: SimTime,
    ) -> (Lbn, bool) {
        loop {
            if self.leg.is_none() {
                if self.next >= self.limit {
                    return (self.next, false);
                }
                let rest = (self.limit.0 - self.next.0).min(1 << 20) as u32;
                let (piece, retries) = model.piece(self.next, rest, false);
                let to = HeadPosition::from(&piece.track);
                let stays = match until {
                    ReadAheadUntil::None => false,
                    ReadAheadUntil::TrackEnd => to == self.position,
                    ReadAheadUntil::CylinderEnd => to.cylinder == self.position.cylinder,
                    ReadAheadUntil::SegmentEnd | ReadAheadUntil::AdaptiveTrackEnd => true,
                };
                if !stays {
                    return (self.next, false);
                }
                let access = Access {
                    lbn: self.next,
                    sectors: piece.sectors,
                    write: false,
                    zero_latency: self.on_arrival,
                    inflow: None,
                    not_before: SimTime::ZERO,
                };
                let from = (self.position, self.now);
                let leg = leg(model, from, (piece, retries), &access, 0);
                self.leg = Some(CurrentLeg::from(&leg));
            }
            let Some(leg) = &mut self.leg else {
                return (self.next, false);
            };
            if leg.sectors.end > now {
                return (leg.first_unread(now), true);
            }
            self.next = leg.next;
            self.position = leg.position;
            self.now = leg.sectors.end;
            self.leg = None;
        }
    }

    /// Returns the time at which the sector before `lbn` will have been read. `lbn` must be on the
    /// current leg or after it.
    pub(super) fn reaches(
        &mut self,
        model: AccessModel<'_>,
        until: ReadAheadUntil,
        lbn: Lbn,
    ) -> SimTime {
        loop {
            let Some(leg) = &self.leg else {
                return self.now;
            };
            if leg.next >= lbn {
                return if lbn <= leg.lbn {
                    self.now
                } else {
                    leg.sectors.passed_at((lbn.0 - leg.lbn.0 - 1) as u32)
                };
            }
            let end = leg.sectors.end;
            self.advance(model, until, end);
        }
    }

    /// Returns whether a sector is under the head at `now`, to which the read-ahead has been
    /// advanced.
    pub(super) fn is_in_sector(&self, now: SimTime) -> bool {
        self.leg
            .as_ref()
            .is_some_and(|leg| leg.sectors.first < now && now < leg.sectors.end)
    }

    /// Returns the LBN, head position and time from which an access can continue this read-ahead. A
    /// request for exactly the next sectors does not stop the head.
    pub(super) fn continuation(&self) -> (Lbn, HeadPosition, SimTime) {
        (self.next, self.position, self.now)
    }

    /// Returns the position of the head, and the time from which it may move, if the read-ahead is
    /// stopped at `now`, to which it has been advanced. A seek is completed. The sector under the
    /// head is completed too, unless `in_sector` allows abandoning it.
    pub(super) fn stop(&mut self, now: SimTime, in_sector: bool) -> (HeadPosition, SimTime) {
        // A read-ahead that has not begun to move leaves the head at its position.
        let Some(leg) = self
            .leg
            .as_mut()
            .filter(|leg| leg.sectors.end > now && self.now.max(self.since) < now)
        else {
            return (self.position, now);
        };
        let free = if now < leg.landed {
            leg.landed
        } else if in_sector || now < leg.sectors.first {
            now
        } else {
            match leg.passed(now) {
                // Exactly between two sectors.
                passed if passed > 0 && leg.sectors.passed_at(passed - 1) == now => now,
                passed => leg.sectors.passed_at(passed),
            }
        };
        (leg.position, free)
    }
}

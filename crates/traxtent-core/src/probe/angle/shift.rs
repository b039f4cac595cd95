//! Where a prediction fails, and what is there instead, by single reads.
//!
//! A track that has lost sectors shifts all that lies behind it: each LBN passes later by so many
//! sectors. So any sector of a track tells whether the tracks before it have come short, and the
//! one that comes round first will do. That takes a steady clock, and tracks that turn as predicted.

use super::super::algorithm::ProbeError;
use super::super::clock::{fraction, wrap};
use super::Search;
use super::pattern::{Kind, SLIPS};
use super::window::{Drift, Window};

/// Sectors so near to either end of a track may be on its neighbour.
const MARGIN: u32 = SLIPS;

/// How far from a whole number of sectors a shift may be.
const SURE: f64 = 0.25;

impl Search<'_, '_> {
    /// What ends at a boundary that fails, by where the next track begins: fewer sectors, or more, or the same ones if
    /// it is the skew that changes.
    pub(super) fn instead(
        &mut self,
        window: &Window<'_>,
        track: usize,
        drift: &Drift,
    ) -> Result<Option<Kind>, ProbeError> {
        let kind = window.kinds[track];
        let Some(off) = self.off_start(window, track + 1, drift)? else {
            return Ok(None);
        };
        let pitch = kind.pitch;
        Ok(match whole(off / pitch) {
            Some(0) => None,
            Some(shift) => {
                let sectors = kind.sectors.checked_add_signed(-shift);
                let sectors = sectors.filter(|sectors| *sectors > 2 * MARGIN);
                sectors.map(|sectors| Kind { sectors, ..kind }.within_a_turn())
            }
            None => Some(Kind {
                skew: fraction(kind.skew + off),
                ..kind
            }),
        })
    }

    /// Whether the clock is steady enough for single sectors.
    pub(super) fn shifts_tell(&self, pitch: f64) -> bool {
        6.0 * self.clock.sigma < SURE * pitch
    }

    /// By how many sectors those before a predicted track have come short; `None` where that is not clear.
    pub(super) fn shift(
        &mut self,
        window: &Window<'_>,
        track: usize,
        here: usize,
        drift: &mut Drift,
    ) -> Result<Option<i32>, ProbeError> {
        let kind = window.kinds[track];
        let line = window.line(track, drift);
        if kind.sectors <= 4 * MARGIN || !self.shifts_tell(kind.pitch) {
            return Ok(None);
        }
        // The sector that comes round first.
        let away = window.distance(here, track);
        let soonest = self.clock.now() + self.clock.lead(away) + kind.pitch;
        let ahead = line.sectors_in(fraction(soonest - line.angle)) + 1;
        let within = u64::from(MARGIN)..u64::from(kind.sectors - MARGIN);
        let lbn = line.lbn + ahead.clamp(within.start, within.end - 1);
        let due = self.clock.due(self.clock.now(), line.at(lbn), away);
        if let Some(pass) = self.clock.pass(lbn)? {
            self.clock.learn(away, due, pass.took);
            let off = wrap(pass.angle - line.at(lbn));
            if whole(off / kind.pitch) == Some(0) && pass.took <= self.clock.prompt() {
                drift.learn(track, off);
                return Ok(Some(0));
            }
        }
        // This track may have slipped itself.
        let off = self.off_start(window, track, drift)?;
        Ok(off.and_then(|off| whole(off / kind.pitch)))
    }

    /// How far a predicted track begins from where it should, by one of its first sectors.
    fn off_start(
        &mut self,
        window: &Window<'_>,
        track: usize,
        drift: &Drift,
    ) -> Result<Option<f64>, ProbeError> {
        let lbn = window.bounds[track] + u64::from(MARGIN);
        // Behind the last that is predicted, tracks may be as that.
        let Some(kind) = window.kinds.get(track).or(window.kinds.last()) else {
            return Ok(None);
        };
        if lbn + 1 >= self.end || !self.shifts_tell(kind.pitch) {
            return Ok(None);
        }
        let should = window.angles[track] + drift.at(track) + f64::from(MARGIN) * kind.pitch;
        let angle = self.clock.angle(lbn)?;
        Ok(angle.map(|angle| wrap(angle - should)))
    }
}

/// A shift of so many sectors, if it is nearly a whole number of a few.
fn whole(sectors: f64) -> Option<i32> {
    let whole = sectors.round();
    let sure = (sectors - whole).abs() <= SURE && whole.abs() <= f64::from(SLIPS);
    sure.then_some(whole as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a shift told only within a quarter of a sector of a whole number, and only if that is of a few sectors?
    #[test]
    fn a_shift_is_nearly_whole_and_small() {
        let most = SLIPS as i32;
        for shift in [-most, -1, 0, 1, most] {
            for off in [-SURE, 0.0, SURE] {
                assert_eq!(whole(f64::from(shift) + off), Some(shift));
            }
        }
        for sectors in [0.26, -0.26, 0.5, 1.5, -1.74] {
            assert_eq!(whole(sectors), None, "{sectors}");
        }
        for sectors in [f64::from(most + 1), f64::from(-most - 1)] {
            assert_eq!(whole(sectors), None, "{sectors}");
        }
    }
}

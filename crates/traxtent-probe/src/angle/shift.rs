//! Detecting by single reads where a prediction fails, and which track is actually there.
//!
//! A track that has lost sectors shifts everything after it: each LBN passes later by that number
//! of sectors. Any sector of a later track therefore shows whether the tracks before it are short.
//! The first sector to pass the head is used. This requires a steady clock, and tracks with the
//! predicted skews.

use super::super::extraction::ProbeError;
use super::pattern::{SLIPS, TrackKind};
use super::window::{Drift, Window};
use super::{SKEW_SIGMAS, Search};
use traxtent_units::turns::{fraction, wrap};

/// The distance in sectors from either end of a track within which a sector may be on the
/// neighbouring track.
const MARGIN_SECTORS: u32 = SLIPS;

/// The largest distance, in sectors, of a shift from the whole number that it counts as.
pub(super) const WHOLE_SECTORS_OFF: f64 = 0.25;

impl Search<'_, '_> {
    /// Returns the track that ends at a boundary whose test failed, judging by where the next track
    /// begins: with fewer or more sectors, or the same number if the skew has changed.
    pub(super) fn instead(
        &mut self,
        window: &Window<'_>,
        track: usize,
        drift: &Drift,
    ) -> Result<Option<TrackKind>, ProbeError> {
        let kind = window.kinds[track];
        let Some(deviation) = self.off_start(window, track + 1, drift)? else {
            return Ok(None);
        };
        let pitch = kind.pitch;
        Ok(match whole(deviation / pitch) {
            Some(0) => None,
            Some(shift) => {
                let sectors = kind.sectors.checked_add_signed(-shift);
                let sectors = sectors.filter(|sectors| *sectors > 2 * MARGIN_SECTORS);
                sectors.map(|sectors| TrackKind { sectors, ..kind }.within_a_turn())
            }
            None => Some(TrackKind {
                skew: fraction(kind.skew + deviation),
                ..kind
            }),
        })
    }

    /// Returns whether the clock is steady enough to distinguish single sectors.
    pub(super) fn shifts_are_conclusive(&self, pitch: f64) -> bool {
        SKEW_SIGMAS * self.clock.sigma < WHOLE_SECTORS_OFF * pitch
    }

    /// Returns the number of sectors by which the tracks before a predicted track are short, or
    /// `None` if the measurement is unclear.
    pub(super) fn shift(
        &mut self,
        window: &Window<'_>,
        track: usize,
        here: usize,
        drift: &mut Drift,
    ) -> Result<Option<i32>, ProbeError> {
        let kind = window.kinds[track];
        let line = window.line(track, drift);
        if kind.sectors <= 4 * MARGIN_SECTORS || !self.shifts_are_conclusive(kind.pitch) {
            return Ok(None);
        }
        // The sector that passes the head first.
        let away = window.distance(here, track);
        let soonest = self.clock.now() + self.clock.lead(away) + kind.pitch;
        let ahead = line.sectors_in(fraction(soonest - line.angle)) + 1;
        let within = u64::from(MARGIN_SECTORS)..u64::from(kind.sectors - MARGIN_SECTORS);
        let lbn = line.lbn + ahead.clamp(within.start, within.end - 1);
        let due = self.clock.due(self.clock.now(), line.at(lbn), away);
        if let Some(pass) = self.clock.pass(lbn)? {
            self.clock.learn(away, due, pass.took);
            let deviation = wrap(pass.angle - line.at(lbn));
            if whole(deviation / kind.pitch) == Some(0)
                && pass.took <= self.clock.undisturbed_turns_max()
            {
                drift.learn(track, deviation);
                return Ok(Some(0));
            }
        }
        // This track may contain slipped sectors itself.
        let deviation = self.off_start(window, track, drift)?;
        Ok(deviation.and_then(|deviation| whole(deviation / kind.pitch)))
    }

    /// Returns the angle by which a predicted track's beginning is off, measured at one of its
    /// first sectors. Returns `None` if it cannot be measured.
    fn off_start(
        &mut self,
        window: &Window<'_>,
        track: usize,
        drift: &Drift,
    ) -> Result<Option<f64>, ProbeError> {
        let lbn = window.boundaries[track] + u64::from(MARGIN_SECTORS);
        // After the last predicted track, tracks are assumed to be like it.
        let Some(kind) = window.kinds.get(track).or(window.kinds.last()) else {
            return Ok(None);
        };
        if lbn + 1 >= self.end || !self.shifts_are_conclusive(kind.pitch) {
            return Ok(None);
        }
        let expected_angle =
            window.angles[track] + drift.at(track) + f64::from(MARGIN_SECTORS) * kind.pitch;
        let angle = self.clock.angle(lbn)?;
        Ok(angle.map(|angle| wrap(angle - expected_angle)))
    }
}

/// Returns a shift as a whole number of sectors, if it is small and nearly whole.
fn whole(sectors: f64) -> Option<i32> {
    let whole = sectors.round();
    let sure = (sectors - whole).abs() <= WHOLE_SECTORS_OFF && whole.abs() <= f64::from(SLIPS);
    sure.then_some(whole as i32)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a shift accepted only within a quarter of a sector of a whole number, and only if it is a
    /// few sectors?
    #[test]
    fn a_shift_is_nearly_whole_and_small() {
        let most = SLIPS as i32;
        for shift in [-most, -1, 0, 1, most] {
            for off in [-WHOLE_SECTORS_OFF, 0.0, WHOLE_SECTORS_OFF] {
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

//! Skews like those of real drives. Most are large enough for the head to arrive in time. Some
//! drives and zones have none, and some have about half a turn where a serpentine reverses.

use traxtent_model::geometry::{Order, Skew, ZoneSpec};
use traxtent_model::mechanics::SeekCurve;
use traxtent_model::profile::MechanicsSpec;

use super::dice::SeededRng;
use super::survey::Times;

/// An upper bound on a command's time on any random drive, including the transfer of a sector.
const OVERHEAD_MOST_MS: f64 = 0.8;

/// The method by which the skews of a drive are generated.
#[derive(Clone, Debug)]
pub(super) struct Skews {
    revolution_ms: f64,
    head_switch_ms: f64,
    curve: SeekCurve,
    /// Whether the whole drive has no skew.
    none: bool,
    /// Whether skews are in whole sectors, as in DiskSim's models; otherwise they are in
    /// revolutions.
    in_sectors: bool,
    /// The smallest amount by which a skew exceeds its minimum, in revolutions.
    margin: f64,
    /// Whether the skew where a serpentine reverses is about half a turn.
    big_turn: bool,
}

impl Skews {
    pub(super) fn draw(dice: &mut SeededRng, mechanics: &MechanicsSpec, cylinders: u32) -> Skews {
        Skews {
            revolution_ms: 60_000.0 / mechanics.rpm,
            head_switch_ms: mechanics.head_switch_ms,
            curve: SeekCurve::new(&mechanics.seek, cylinders),
            none: dice.chance(0.08),
            in_sectors: dice.chance(0.6),
            margin: dice.between(0.005, 0.06),
            big_turn: dice.chance(0.3),
        }
    }

    /// Sets the skews of a zone. `width` is the width of its passes in cylinders, if it has passes.
    pub(super) fn set_zone_skews(
        &self,
        dice: &mut SeededRng,
        zone: &mut ZoneSpec,
        order: Order,
        slots: u32,
        width: u32,
    ) {
        zone.first_angle = Skew::Revolutions(dice.between(0.0, 1.0));
        if self.none || dice.chance(0.04) {
            return;
        }
        let margin = self.margin * dice.between(1.0, 1.5);
        zone.track_skew = self.skew(self.switch_ms(0), margin, slots);
        if order.is_head_first() {
            zone.cylinder_skew = self.skew(self.switch_ms(1), margin, slots);
            return;
        }
        zone.cylinder_skew = self.skew(self.seek_ms(1), margin, slots);
        if self.big_turn {
            zone.turn_skew = Some(Skew::Revolutions(
                dice.between(180.0 / 360.0, 202.0 / 360.0),
            ));
            return;
        }
        // If all passes run in the same direction, the arm returns between them.
        let back = width.saturating_sub(1);
        let forward = matches!(
            order,
            Order::SeekForwardSurfaceForward | Order::SeekForwardSurfaceAlternating
        );
        let turn_ms = self.switch_ms(if forward { back } else { 0 });
        zone.turn_skew = Some(self.skew(turn_ms, margin, slots));
        zone.group_skew = Some(self.skew(self.switch_ms(width.max(1)), margin, slots));
    }

    /// Returns the skew, in turns, of a move by `cylinders` cylinders, with a head switch if
    /// `head`.
    pub(super) fn turns(&self, cylinders: u32, head: bool) -> f64 {
        let ms = if head {
            self.switch_ms(cylinders)
        } else {
            self.seek_ms(cylinders)
        };
        if self.none {
            0.0
        } else {
            thousandths((ms / self.revolution_ms + self.margin).fract())
        }
    }

    /// The times that decide whether timing can distinguish two tracks from one.
    pub(super) fn times(&self) -> Times {
        let switch_ms = self.head_switch_ms.min(self.seek_ms(1));
        Times {
            switch: 0.75 * switch_ms / self.revolution_ms,
            overhead: OVERHEAD_MOST_MS / self.revolution_ms,
        }
    }

    fn skew(&self, ms: f64, margin: f64, slots: u32) -> Skew {
        let turns = (ms / self.revolution_ms + margin).fract();
        if self.in_sectors {
            Skew::Sectors((turns * f64::from(slots)).ceil())
        } else {
            Skew::Revolutions(thousandths(turns))
        }
    }

    fn seek_ms(&self, cylinders: u32) -> f64 {
        self.curve.time(cylinders).as_ms()
    }

    /// Returns the time of a move by `cylinders` cylinders with a head switch.
    fn switch_ms(&self, cylinders: u32) -> f64 {
        self.seek_ms(cylinders).max(self.head_switch_ms)
    }
}

/// Rounds up to a thousandth of a turn, to keep the number readable as text.
fn thousandths(turns: f64) -> f64 {
    (turns * 1000.0).ceil() / 1000.0
}

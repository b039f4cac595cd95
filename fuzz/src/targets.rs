//! What is done with the bytes, target by target.
//!
//! Beyond "it returns", a target asserts what holds for whatever was accepted: text that was
//! parsed prints and parses to the same value, an address goes to its place and back.

pub(crate) mod check;
pub(crate) mod disk;
pub(crate) mod disksim;
pub(crate) mod drive;
pub(crate) mod experiments;
pub(crate) mod log;
pub(crate) mod scsi;
pub(crate) mod tpl;
pub(crate) mod trackmap;
pub(crate) mod volume;
pub(crate) mod workload;

use traxtent_core::units::{Angle, SimTime, Span};

/// A number read as text becomes a time, an angle and back.
pub(crate) fn units(input: &[u8]) {
    let Some(number) = text(input).and_then(|text| text.trim().parse::<f64>().ok()) else {
        return;
    };
    let span = Span::from_ms(number);
    assert_eq!(
        SimTime::from_ms(number).saturating_since(SimTime::ZERO),
        span
    );
    let angle = Angle::from_turns(number);
    assert_eq!(angle + angle - angle, angle);
    assert!(
        (0.0..=1.0).contains(&angle.as_turns()),
        "{angle:?} of {number} turns"
    );
}

/// What the command reads itself: targets, paces, sweeps of figures.
pub(crate) fn arguments(input: &[u8]) {
    /// What the command's help promises.
    const POINTS_MAX: usize = 10_000;

    let Some(text) = text(input) else { return };
    assert!(traxtent::read_as_arguments(text) <= POINTS_MAX);
}

fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}

//! The fuzz targets and the properties that they check.
//!
//! In addition to returning, a target asserts the properties of accepted input: text that was
//! parsed is printed and parsed to the same value, and an address is translated to a place and
//! back.

pub(crate) mod check;
pub(crate) mod disk;
pub(crate) mod disksim;
pub(crate) mod drive;
pub(crate) mod experiments;
pub(crate) mod log;
pub(crate) mod nbd;
pub(crate) mod scsi;
pub(crate) mod tpl;
pub(crate) mod trackmap;
pub(crate) mod volume;
pub(crate) mod workload;

use traxtent_units::{Angle, SimTime, Span};

/// A number read as text. A time and a span made from it agree, and an angle made from it is at
/// most a turn.
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

/// Arguments that the command's own parsers accept or refuse: targets, paces, speeds, rates, times,
/// sizes, stacks and sweeps of parameters.
pub(crate) fn arguments(input: &[u8]) {
    /// The limit of `traxtent-run` on the points of a sweep.
    const POINTS_MAX: usize = 10_000;

    let Some(text) = text(input) else { return };
    assert!(traxtent::read_as_arguments(text) <= POINTS_MAX);
}

fn text(input: &[u8]) -> Option<&str> {
    std::str::from_utf8(input).ok()
}

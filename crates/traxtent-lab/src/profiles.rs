//! The parameters of a drive as papers tabulate them (paper T, Table 1). They describe the drive as
//! it is simulated: its compiled geometry and mechanics, not the text of its profile.

use traxtent_model::mechanics::{HeadPosition, Mechanics};
use traxtent_units::{Cylinder, Surface};

use crate::bench::{Bench, LabError};

/// Year, revolutions per minute, head switch and mean seek in milliseconds, slots on the largest
/// and the smallest tracks, tracks, and capacity in units of 10^9 bytes.
pub(crate) fn parameters(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let geometry = &bench.geometry;
    let mechanics = match &bench.profile.mechanics {
        Some(spec) => Mechanics::new(spec, geometry.cylinders()),
        None => Mechanics::none(),
    };
    let at = |surface| HeadPosition {
        cylinder: Cylinder(0),
        surface: Surface(surface),
    };
    let head_switch = mechanics.reposition(at(0), at(1), false).total();
    let slots = || geometry.zones().iter().map(|zone| f64::from(zone.slots));
    let bytes = geometry.capacity().0 as f64 * f64::from(bench.profile.sector.logical_bytes);
    Ok(vec![
        bench.profile.year.map_or(0.0, f64::from),
        60_000.0 / mechanics.revolution().as_ms(),
        head_switch.as_ms(),
        mechanics.seek_curve(false).mean().as_ms(),
        slots().fold(0.0, f64::max),
        slots().fold(f64::INFINITY, f64::min),
        geometry.track_count() as f64,
        bytes / 1e9,
    ])
}

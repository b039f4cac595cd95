//! The address of a track in a drive's translations.

use traxtent_model::geometry::Place;
use traxtent_units::{Cylinder, Surface};

/// A track as the drive addresses it.
pub(super) type TrackAddress = (Cylinder, Surface);

/// Returns the track of a place.
pub(super) fn track_of(place: Place) -> TrackAddress {
    (place.cylinder, place.surface)
}

/// Returns whether two tracks are adjacent.
pub(super) fn are_neighbours(one: TrackAddress, other: TrackAddress) -> bool {
    one.0.0.abs_diff(other.0.0) + u32::from(one.1.0.abs_diff(other.1.0)) == 1
}

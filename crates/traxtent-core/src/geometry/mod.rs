//! Where every LBN lies on the platters, and back.

use crate::units::{Angle, Cylinder, Lbn, Sectors, Surface};
use serde::{Deserialize, Serialize};

/// One track as it lies on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Position of this track in LBN order, from 0.
    pub index: u64,
    /// The lowest LBN on the track.
    pub first_lbn: Lbn,
    /// How many LBNs the track holds.
    pub sectors: u32,
    /// The arm position.
    pub cylinder: Cylinder,
    /// The surface, and head.
    pub surface: Surface,
    /// Physical sectors around the track, in units of a logical sector: at least `sectors`.
    pub slots: u32,
    /// Angle of the leading edge of slot 0.
    pub origin: Angle,
}

/// A run of sectors that lie one after another on one track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The track.
    pub track: Track,
    /// The first sector.
    pub lbn: Lbn,
    /// How many.
    pub sectors: u32,
    /// Slot of the first sector.
    pub first_slot: u32,
    /// Slots from the first sector to the end of the last.
    pub slots: u32,
}

/// Stub.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct GeometrySpec {}
/// Stub.
#[derive(Debug)]
pub struct Geometry {}
impl Geometry {
    /// Stub.
    pub fn build(_: &GeometrySpec) -> Result<Geometry, String> {
        todo!()
    }
    /// Stub.
    pub fn capacity(&self) -> Sectors {
        todo!()
    }
    /// Stub.
    pub fn cylinders(&self) -> u32 {
        todo!()
    }
    /// Stub.
    pub fn piece(&self, _lbn: Lbn, _max: u32) -> Piece {
        todo!()
    }
    /// Stub.
    pub fn track_of(&self, _lbn: Lbn) -> Option<Track> {
        todo!()
    }
}

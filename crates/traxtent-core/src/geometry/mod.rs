//! Where every LBN lies on the platters, and back.

use crate::units::{Angle, Cylinder, Lbn, Surface};

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

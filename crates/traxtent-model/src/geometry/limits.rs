//! Upper bounds for a geometry. They prevent integer overflow, and limit the memory that a hostile
//! profile can claim.

/// The greatest number of surfaces.
pub(crate) const SURFACES_MAX: u16 = 64;
/// The greatest number of cylinders.
pub(crate) const CYLINDERS_MAX: u32 = 1 << 22;
/// The greatest number of sector slots on a track.
pub(crate) const SLOTS_MAX: u32 = 1_000_000;

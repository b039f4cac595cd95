//! The description of a geometry, as a drive profile holds it.
//!
//! A regular drive is a list of zones and a layout order. An irregular one is an explicit
//! run-length tree of track patterns. Sector numbers called *positions* count physical sectors
//! from the front of a zone (or of the tree) in layout order, those that hold no LBN included.

use serde::{Deserialize, Serialize};

use crate::units::Angle;

/// Everything that decides where an LBN lies.
///
/// Either `zones` or `tree` is given. All counts are of logical sectors.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometrySpec {
    /// Recording surfaces, 1 to 64.
    pub surfaces: u16,
    /// Arm positions; every zone lies below this bound.
    pub cylinders: u32,
    /// The order in which tracks take LBNs.
    #[serde(default)]
    pub order: Order,
    /// Width of a serpentine in tracks; the seek-first orders need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_tracks: Option<u32>,
    /// Which way the first pass of a zone runs.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Start,
    /// Where spare sectors are kept, and what a slipped sector displaces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sparing: Sparing,
    /// Cylinders that share spares, for [`Sparing::SectorsPerCylinderRange`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparing_range_cylinders: Option<u32>,
    /// The drive's LBN count, where it is less than the layout could hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_sectors: Option<u64>,
    /// Allows several LBNs at one place: only to reproduce the map of a simulator that does so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared_places: bool,
    /// LBNs kept elsewhere than in their track.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedSpec>,
    /// The zones of a regular drive, in LBN order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneSpec>,
    /// The layout of an irregular drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeSpec>,
}

/// Henry Wong's six layout orders.
///
/// Head-first orders fill a cylinder before they step the arm. Seek-first orders run along one
/// surface for `width_tracks` cylinders (a pass), then take the next surface (and all surfaces
/// before the next group of cylinders).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Every cylinder from its first surface to its last.
    #[default]
    HeadFirstForward,
    /// Every other cylinder from its last surface back: the cylinder serpentine.
    HeadFirstAlternating,
    /// Every pass in the same direction, every group from the first surface.
    SeekForwardSurfaceForward,
    /// Every pass in the same direction, every other group from the last surface.
    SeekForwardSurfaceAlternating,
    /// Every other pass back, every group from the first surface.
    SeekAlternatingSurfaceForward,
    /// Every other pass back, every other group from the last surface: the surface serpentine.
    SeekAlternatingSurfaceAlternating,
}

impl Order {
    /// All six.
    pub const ALL: [Order; 6] = [
        Order::HeadFirstForward,
        Order::HeadFirstAlternating,
        Order::SeekForwardSurfaceForward,
        Order::SeekForwardSurfaceAlternating,
        Order::SeekAlternatingSurfaceForward,
        Order::SeekAlternatingSurfaceAlternating,
    ];

    /// Whether a cylinder is filled before the arm moves.
    pub fn is_head_first(self) -> bool {
        matches!(self, Order::HeadFirstForward | Order::HeadFirstAlternating)
    }

    pub(super) fn alternates_seek(self) -> bool {
        matches!(
            self,
            Order::SeekAlternatingSurfaceForward | Order::SeekAlternatingSurfaceAlternating
        )
    }

    pub(super) fn alternates_surface(self) -> bool {
        matches!(
            self,
            Order::HeadFirstAlternating
                | Order::SeekForwardSurfaceAlternating
                | Order::SeekAlternatingSurfaceAlternating
        )
    }
}

/// Which way the first pass of a zone runs.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// From the first surface up, and from the outer cylinder inward.
    #[default]
    Forward,
    /// Head-first: from the last surface down. Seek-first: from the inner cylinder outward.
    Backward,
    /// Forward in a zone whose first cylinder has an even number, backward in others, so that an
    /// alternating order goes on across zones.
    CylinderParity,
}

/// Where spare sectors are kept, and what a slipped sector displaces.
///
/// `spares` of a zone counts them per region: track, cylinder, range of cylinders or zone. A slip
/// normally pushes the LBNs after it into the spares of its own region. Where the name says
/// *slip to end*, it pushes all later LBNs of the zone, which then holds one fewer.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Sparing {
    /// No spares; a slip shortens its zone.
    #[default]
    None,
    /// Whole tracks at the end of each zone. Slips and remaps count tracks, not sectors.
    TracksPerZone,
    /// Sectors at the end of each cylinder.
    SectorsPerCylinder,
    /// Sectors at the end of each track.
    SectorsPerTrack,
    /// Sectors at the end of each cylinder, for remaps only.
    SectorsPerCylinderSlipToEnd,
    /// Sectors at the front of each cylinder.
    SectorsAtCylinderFront,
    /// Sectors at the front of each cylinder, for remaps only.
    SectorsAtCylinderFrontSlipToEnd,
    /// Sectors at the end of the drive: none in the zones, and a slip shortens its zone.
    SectorsAtDriveEnd,
    /// Sectors at the end of each range of cylinders; a last, shorter range has none.
    SectorsPerCylinderRange,
    /// Sectors at the end of each zone.
    SectorsPerZone,
    /// Sectors at the end of each zone, for remaps only.
    SectorsPerZoneSlipToEnd,
}

impl Sparing {
    /// All eleven, in the order of DiskSim's numbers 0 to 10.
    pub const ALL: [Sparing; 11] = [
        Sparing::None,
        Sparing::TracksPerZone,
        Sparing::SectorsPerCylinder,
        Sparing::SectorsPerTrack,
        Sparing::SectorsPerCylinderSlipToEnd,
        Sparing::SectorsAtCylinderFront,
        Sparing::SectorsAtCylinderFrontSlipToEnd,
        Sparing::SectorsAtDriveEnd,
        Sparing::SectorsPerCylinderRange,
        Sparing::SectorsPerZone,
        Sparing::SectorsPerZoneSlipToEnd,
    ];

    pub(super) fn at_front(self) -> bool {
        matches!(
            self,
            Sparing::SectorsAtCylinderFront | Sparing::SectorsAtCylinderFrontSlipToEnd
        )
    }

    /// Whether a slip shortens the zone instead of using up a spare.
    pub fn slips_to_end(self) -> bool {
        matches!(
            self,
            Sparing::None
                | Sparing::SectorsPerCylinderSlipToEnd
                | Sparing::SectorsAtCylinderFrontSlipToEnd
                | Sparing::SectorsAtDriveEnd
                | Sparing::SectorsPerZoneSlipToEnd
        )
    }
}

/// A turn of the platter between the beginnings of two tracks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Skew {
    /// In sectors of the track it leads to.
    Sectors(f64),
    /// In revolutions.
    Revolutions(f64),
}

impl Default for Skew {
    fn default() -> Self {
        Skew::Sectors(0.0)
    }
}

impl Skew {
    /// The angle on a track of `slots` sectors, exact for whole sectors.
    pub(super) fn angle(self, slots: u32) -> Angle {
        match self {
            Skew::Sectors(s) if s.fract() == 0.0 => {
                Angle::from_ratio((s as i64).rem_euclid(slots.into()) as u64, slots.into())
            }
            Skew::Sectors(s) => Angle::from_turns(s / f64::from(slots)),
            Skew::Revolutions(turns) => Angle::from_turns(turns),
        }
    }

    pub(super) fn is_usable(self) -> bool {
        let (Skew::Sectors(value) | Skew::Revolutions(value)) = self;
        value.is_finite() && value.abs() <= 1e9
    }
}

/// A range of cylinders that are formatted alike.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// The outermost cylinder.
    pub first_cylinder: u32,
    /// The innermost cylinder, inclusive.
    pub last_cylinder: u32,
    /// The only surface of the zone; without it the zone has all surfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<u16>,
    /// Physical sectors around each track, one number or one a surface.
    pub sectors_per_track: PerSurface,
    /// From a track to the next one of the same cylinder.
    #[serde(default)]
    pub track_skew: Skew,
    /// From a track to the next one of another cylinder.
    #[serde(default)]
    pub cylinder_skew: Skew,
    /// Seek-first: from the end of a pass to the next surface. Without it, `track_skew`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_skew: Option<Skew>,
    /// Seek-first: from a group of cylinders to the next. Without it, the turn's skew.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_skew: Option<Skew>,
    /// Angle at which the zone's first track begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_angle: Skew,
    /// Sectors at the zone's front that the drive keeps for itself, counted as LBNs would be.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved_sectors: u64,
    /// Spare sectors (or tracks) in each region of the sparing scheme.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares: u32,
    /// The zone's LBN count, where it is less than would fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lbns: Option<u64>,
    /// Positions that hold no LBN because they are bad, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
    /// Irregularities of the skew, ascending: from this track of the zone on (in layout order), all
    /// tracks begin so many sectors later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<(u64, i32)>,
    /// Bad positions whose LBN is kept at another position: pairs of bad and replacement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<(u64, u64)>,
}

/// One number for all surfaces, or a list with one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerSurface {
    /// The same on all surfaces.
    Same(u32),
    /// One a surface.
    Each(Vec<u32>),
}

impl Default for PerSurface {
    fn default() -> Self {
        PerSurface::Same(0)
    }
}

/// An LBN, or several in sequence, kept elsewhere than in their track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedSpec {
    /// The first LBN.
    pub lbn: u64,
    /// How many, in consecutive slots.
    #[serde(default = "one")]
    pub sectors: u32,
    /// Where they are.
    pub cylinder: u32,
    /// Where they are.
    pub surface: u16,
    /// Where the first is, counted from the beginning of the track.
    pub slot: u32,
    /// Sectors around that track; needed only if it is not part of the layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

/// A layout as an explicit run-length tree.
///
/// The last node is the root. A node lists branches in LBN order; a branch is a track or another
/// node, repeated with constant steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    /// The track patterns that branches refer to by index.
    pub tracks: Vec<TrackSpec>,
    /// The nodes; a branch may refer only to earlier ones.
    pub nodes: Vec<Vec<BranchSpec>>,
    /// Positions that hold no LBN because they are bad, ascending.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<SlipSpec>,
}

/// A pattern of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackSpec {
    /// Physical sectors around the track.
    pub slots: u32,
    /// The first slot in use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_slot: u32,
    /// How many slots are in use.
    pub sectors: u32,
}

/// A repeated part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchSpec {
    /// What is repeated.
    pub of: Child,
    /// Cylinder of the first instance, relative to the node.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cylinder: i32,
    /// Surface of the first instance, relative to the node.
    #[serde(default, skip_serializing_if = "is_default")]
    pub surface: i32,
    /// Angle of the first instance, in turns, relative to the node.
    #[serde(default, skip_serializing_if = "is_default")]
    pub angle_turns: f64,
    /// How many instances.
    #[serde(default = "one_u64")]
    pub repeat: u64,
    /// Cylinders from an instance to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cylinder_step: i32,
    /// Surfaces from an instance to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub surface_step: i32,
    /// Turns from an instance to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub angle_step_turns: f64,
    /// Positions in all, where the last instance is cut short.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_sectors: Option<u64>,
}

impl BranchSpec {
    /// A single instance, where the node begins.
    pub fn once(of: Child) -> BranchSpec {
        BranchSpec {
            of,
            cylinder: 0,
            surface: 0,
            angle_turns: 0.0,
            repeat: 1,
            cylinder_step: 0,
            surface_step: 0,
            angle_step_turns: 0.0,
            total_sectors: None,
        }
    }
}

/// What a branch repeats.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Child {
    /// A track pattern, by its index in [`TreeSpec::tracks`].
    Track(u32),
    /// A node, by its index in [`TreeSpec::nodes`].
    Node(u32),
}

/// Consecutive positions that hold no LBN.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SlipSpec {
    /// The first position.
    pub position: u64,
    /// How many.
    #[serde(default = "one")]
    pub sectors: u32,
}

fn one() -> u32 {
    1
}

fn one_u64() -> u64 {
    1
}

fn is_default<T: Default + PartialEq>(value: &T) -> bool {
    *value == T::default()
}

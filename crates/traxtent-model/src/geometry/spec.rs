//! The description of a geometry in a drive profile.
//!
//! A regular drive is a list of zones and a layout order. An irregular one is an explicit
//! run-length tree of track patterns. Sector numbers called *positions* count slots in layout order
//! from the front of a zone (or of the tree), including those that hold no LBN.

use serde::{Deserialize, Serialize};

use traxtent_units::Angle;

/// The parameters that determine the place of every LBN.
///
/// Either `zones` or `tree` is given. Each slot is as long as a logical sector.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct GeometrySpec {
    /// Recording surfaces, 1 to 64.
    pub surfaces: u16,
    /// The number of arm positions. The cylinder numbers of zones are below it.
    pub cylinders: u32,
    /// The order in which tracks take LBNs.
    #[serde(default)]
    pub order: Order,
    /// Width of a serpentine in tracks; the seek-first orders need it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub width_tracks: Option<u32>,
    /// The direction of the first pass of a zone.
    #[serde(default, skip_serializing_if = "is_default")]
    pub start: Start,
    /// The place of spare sectors, and the LBNs that a slipped sector displaces.
    #[serde(default, skip_serializing_if = "is_default")]
    pub sparing: Sparing,
    /// Cylinders that share spares, for [`Sparing::SectorsPerCylinderRange`].
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub sparing_range_cylinders: Option<u32>,
    /// The drive's LBN count, if it is less than the layout could hold.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub capacity_sectors: Option<u64>,
    /// Allows several LBNs at one place. Use it only to reproduce the map of a simulator that does
    /// so.
    #[serde(default, skip_serializing_if = "is_default")]
    pub shared_places: bool,
    /// LBNs kept at a place other than their regular one.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub moved: Vec<MovedSpec>,
    /// The zones of a regular drive, in LBN order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub zones: Vec<ZoneSpec>,
    /// The layout of an irregular drive.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub tree: Option<TreeSpec>,
}

/// The six layout orders described by Henry Wong.
///
/// Head-first orders fill a cylinder before they move the arm. Seek-first orders continue along one
/// surface for `width_tracks` cylinders (a pass), then along the next surface. After all surfaces,
/// they continue with the next group of cylinders.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Order {
    /// Each cylinder from its first surface to its last.
    #[default]
    HeadFirstForward,
    /// Every other cylinder from its last surface to its first: the cylinder serpentine.
    HeadFirstAlternating,
    /// Every pass in the same direction, every group from the first surface.
    SeekForwardSurfaceForward,
    /// Every pass in the same direction, every other group from the last surface.
    SeekForwardSurfaceAlternating,
    /// Every other pass in the opposite direction, every group from the first surface.
    SeekAlternatingSurfaceForward,
    /// Every other pass in the opposite direction, every other group from the last surface: the
    /// surface serpentine.
    SeekAlternatingSurfaceAlternating,
}

impl Order {
    /// All six orders.
    pub const ALL: [Order; 6] = [
        Order::HeadFirstForward,
        Order::HeadFirstAlternating,
        Order::SeekForwardSurfaceForward,
        Order::SeekForwardSurfaceAlternating,
        Order::SeekAlternatingSurfaceForward,
        Order::SeekAlternatingSurfaceAlternating,
    ];

    /// Returns whether a cylinder is filled before the arm moves.
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

/// The direction of the first pass of a zone.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Start {
    /// From the first surface to the last, and from the outer cylinder inward.
    #[default]
    Forward,
    /// Head-first: from the last surface to the first. Seek-first: from the inner cylinder outward.
    Backward,
    /// Forward in a zone whose first cylinder has an even number, backward in others. An
    /// alternating order thus continues across zones.
    CylinderParity,
}

/// The place of spare sectors, and the LBNs that a slipped sector displaces.
///
/// A zone's `spares` is the number of spares per region: track, cylinder, range of cylinders or
/// zone. A slip normally moves the LBNs between it and the spares of its own region by one slot, so
/// that a spare is used. If the name contains *slip to end*, the slip moves all later LBNs of the
/// zone, and the zone then holds one LBN fewer.
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
    /// Sectors at the end of the drive. The zones have none, and a slip shortens its zone.
    SectorsAtDriveEnd,
    /// Sectors at the end of each range of cylinders. A last, shorter range has none.
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

    /// Returns whether spares are counted by cylinder, which requires a head-first order.
    pub fn by_cylinder(self) -> bool {
        matches!(
            self,
            Sparing::SectorsPerCylinder
                | Sparing::SectorsPerCylinderSlipToEnd
                | Sparing::SectorsAtCylinderFront
                | Sparing::SectorsAtCylinderFrontSlipToEnd
                | Sparing::SectorsPerCylinderRange
        )
    }

    /// Returns whether a slip shortens the zone instead of using a spare.
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

/// The angle between the beginnings of two tracks.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", deny_unknown_fields)]
pub enum Skew {
    /// In sectors of the track that follows.
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

/// A range of cylinders that share one layout.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ZoneSpec {
    /// The outermost cylinder.
    pub first_cylinder: u32,
    /// The innermost cylinder, inclusive.
    pub last_cylinder: u32,
    /// The only surface of the zone. If absent, the zone has all surfaces.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub surface: Option<u16>,
    /// Slots around each track: one number, or one per surface.
    pub sectors_per_track: PerSurface,
    /// The skew from a track to the next one of the same cylinder.
    #[serde(default)]
    pub track_skew: Skew,
    /// The skew from a track to the next one of another cylinder.
    #[serde(default)]
    pub cylinder_skew: Skew,
    /// Seek-first orders: the skew from the end of a pass to the next surface. Default:
    /// `track_skew`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub turn_skew: Option<Skew>,
    /// Seek-first orders: the skew from a group of cylinders to the next. Default: `turn_skew`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub group_skew: Option<Skew>,
    /// The angle at which the zone's first track begins.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_angle: Skew,
    /// Sectors at the zone's front that the drive reserves for itself. They are counted like LBNs,
    /// without bad sectors and spares.
    #[serde(default, skip_serializing_if = "is_default")]
    pub reserved_sectors: u64,
    /// The number of spare sectors (or tracks) in each region of the sparing scheme.
    #[serde(default, skip_serializing_if = "is_default")]
    pub spares: u32,
    /// The zone's LBN count, if it is less than would fit.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub lbns: Option<u64>,
    /// Positions that hold no LBN because they are bad, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<u64>,
    /// Changes of the regular skew, ascending: (track, sectors). From this track of the zone (in
    /// layout order), all tracks begin that number of sectors later.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub turns: Vec<(u64, i32)>,
    /// Bad positions whose LBN is kept at another position, as pairs of bad position and
    /// replacement.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub remaps: Vec<(u64, u64)>,
}

/// One number for all surfaces, or a list with one for each.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(untagged)]
pub enum PerSurface {
    /// The same number on all surfaces.
    Same(u32),
    /// One number per surface.
    Each(Vec<u32>),
}

impl Default for PerSurface {
    fn default() -> Self {
        PerSurface::Same(0)
    }
}

/// An LBN, or several consecutive ones, kept at a place other than the regular one.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MovedSpec {
    /// The first LBN.
    pub lbn: u64,
    /// The number of LBNs, in consecutive slots.
    #[serde(default = "one")]
    pub sectors: u32,
    /// The cylinder of the place where they are kept.
    pub cylinder: u32,
    /// The surface of the place where they are kept.
    pub surface: u16,
    /// The slot of the first one, counted from the beginning of the track.
    pub slot: u32,
    /// Slots around that track. Needed only if the track is not part of the layout.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub slots: Option<u32>,
}

/// A layout as an explicit run-length tree.
///
/// The last node is the root. A node lists branches in LBN order. A branch is a track or another
/// node, repeated with constant steps.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TreeSpec {
    /// The track patterns that branches refer to by index.
    pub tracks: Vec<TrackSpec>,
    /// The nodes. A branch may refer only to earlier ones.
    pub nodes: Vec<Vec<BranchSpec>>,
    /// Positions that hold no LBN because they are bad, in ascending order.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub slips: Vec<SlipSpec>,
}

impl TreeSpec {
    /// Returns the index of a track pattern, and adds the pattern if the tree does not have it. The
    /// search takes time in proportion to the number of patterns.
    pub fn track_index(&mut self, track: TrackSpec) -> u32 {
        let known = self.tracks.iter().position(|known| *known == track);
        known.unwrap_or_else(|| {
            self.tracks.push(track);
            self.tracks.len() - 1
        }) as u32
    }
}

/// The pattern of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct TrackSpec {
    /// Slots around the track.
    pub slots: u32,
    /// The first slot in use.
    #[serde(default, skip_serializing_if = "is_default")]
    pub first_slot: u32,
    /// The number of slots in use.
    pub sectors: u32,
}

/// A repeated part of a layout.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct BranchSpec {
    /// The part that is repeated.
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
    /// The number of instances.
    #[serde(default = "one_u64")]
    pub repeat: u64,
    /// Cylinders from one instance to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub cylinder_step: i32,
    /// Surfaces from one instance to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub surface_step: i32,
    /// Turns from one instance to the next.
    #[serde(default, skip_serializing_if = "is_default")]
    pub angle_step_turns: f64,
    /// The total number of positions, if the last instance is incomplete.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub total_sectors: Option<u64>,
}

impl BranchSpec {
    /// Returns a branch with a single instance at the beginning of the node.
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

/// The part that a branch repeats.
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
    /// The number of positions.
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

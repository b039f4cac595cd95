//! The schema of the layout of sectors. [`crate::geometry::Geometry::build`] checks further
//! conditions between the values.

use super::Absent::{Is, Means, Refused};
use super::Kind::{Choice, Number, Pairs, Part, PerSurface, Skew, Whole, Wholes};
use super::{Key, Section, key_of, section, switch, table};
use crate::geometry::limits::{CYLINDERS_MAX, SLOTS_MAX, SURFACES_MAX};

const SURFACE: super::Kind = Whole(0.0, SURFACES_MAX as f64 - 1.0);
const CYLINDER: super::Kind = Whole(0.0, CYLINDERS_MAX as f64 - 1.0);
const SLOTS: super::Kind = Whole(1.0, SLOTS_MAX as f64);
/// The bound of LBNs, positions and numbers of sectors. Up to it, floating-point numbers represent
/// every whole number.
const LBN_MAX: f64 = (1_u64 << 53) as f64;
const SIGNED: super::Kind = Whole(i32::MIN as f64, i32::MAX as f64);
const TURNS: super::Kind = Number(-1e6, 1e6);
const SKEW: super::Kind = Skew(1e9);

const fn skew(name: &'static str, default: super::Absent, meaning: &'static str) -> Key {
    key_of(name, SKEW, "sectors or revolutions", default, meaning)
}

pub(super) const SECTIONS: &[Section] = &[
    section(
        "geometry",
        "The place of every LBN. Either `zones` or `tree` is given. Counts are of logical sectors. A position is the number of a slot, counted in layout order from 0 within its zone or tree.",
        &[
            key_of(
                "surfaces",
                Whole(1.0, SURFACES_MAX as f64),
                "",
                Refused,
                "Recording surfaces.",
            ),
            key_of(
                "cylinders",
                Whole(1.0, CYLINDERS_MAX as f64),
                "",
                Refused,
                "The number of arm positions. The cylinder numbers of zones are below it.",
            ),
            key_of(
                "order",
                Choice(&[
                    (
                        "head-first-forward",
                        "each cylinder from its first surface to its last",
                    ),
                    (
                        "head-first-alternating",
                        "every other cylinder from its last surface to its first",
                    ),
                    (
                        "seek-forward-surface-forward",
                        "every pass in the same direction, every group from the first surface",
                    ),
                    (
                        "seek-forward-surface-alternating",
                        "every pass in the same direction, every other group from the last surface",
                    ),
                    (
                        "seek-alternating-surface-forward",
                        "every other pass in the opposite direction, every group from the first surface",
                    ),
                    (
                        "seek-alternating-surface-alternating",
                        "every other pass in the opposite direction, every other group from the last surface",
                    ),
                ]),
                "",
                Is("\"head-first-forward\""),
                "The order in which tracks take LBNs. Seek-first orders follow one surface for width_tracks cylinders (a pass), then the next surface. The passes over all surfaces form a group.",
            ),
            key_of(
                "width_tracks",
                Whole(1.0, CYLINDERS_MAX as f64),
                "tracks",
                Means("the order is head-first; seek-first orders require it"),
                "The length of a pass in seek-first orders.",
            ),
            key_of(
                "start",
                Choice(&[
                    (
                        "forward",
                        "from the first surface to the last, and from the outer cylinder inward",
                    ),
                    (
                        "backward",
                        "head-first: from the last surface; seek-first: from the inner cylinder",
                    ),
                    (
                        "cylinder-parity",
                        "forward in a zone whose first cylinder has an even number, backward in others",
                    ),
                ]),
                "",
                Is("\"forward\""),
                "The direction of the first pass of a zone.",
            ),
            key_of(
                "sparing",
                Choice(&[
                    ("none", "no spares; a slip shortens its zone"),
                    (
                        "tracks-per-zone",
                        "whole tracks at the end of each zone; slips and remaps count tracks, not sectors",
                    ),
                    (
                        "sectors-per-cylinder",
                        "sectors at the end of each cylinder",
                    ),
                    ("sectors-per-track", "sectors at the end of each track"),
                    (
                        "sectors-per-cylinder-slip-to-end",
                        "sectors at the end of each cylinder, for remaps only; a slip shortens its zone",
                    ),
                    (
                        "sectors-at-cylinder-front",
                        "sectors at the front of each cylinder",
                    ),
                    (
                        "sectors-at-cylinder-front-slip-to-end",
                        "sectors at the front of each cylinder, for remaps only; a slip shortens its zone",
                    ),
                    (
                        "sectors-at-drive-end",
                        "sectors at the end of the drive; a slip shortens its zone",
                    ),
                    (
                        "sectors-per-cylinder-range",
                        "sectors at the end of each range of cylinders; a last, shorter range has none",
                    ),
                    ("sectors-per-zone", "sectors at the end of each zone"),
                    (
                        "sectors-per-zone-slip-to-end",
                        "sectors at the end of each zone, for remaps only; a slip shortens its zone",
                    ),
                ]),
                "",
                Is("\"none\""),
                "The place of spare sectors. Unless stated otherwise, a slip moves the LBNs between it and the spares of its own region by one slot, so that a spare is used. A slip that shortens its zone moves all later LBNs of the zone.",
            ),
            key_of(
                "sparing_range_cylinders",
                Whole(1.0, CYLINDERS_MAX as f64),
                "cylinders",
                Means("the sparing scheme is not sectors-per-cylinder-range"),
                "Cylinders that share spares.",
            ),
            key_of(
                "capacity_sectors",
                Whole(0.0, LBN_MAX),
                "sectors",
                Means("as many as the layout holds"),
                "The drive's LBN count.",
            ),
            switch(
                "shared_places",
                "Whether several LBNs may share one place, as the maps of some simulators do.",
            ),
            table(
                "moved",
                Is("[]"),
                "LBNs kept at a place other than their regular one.",
            ),
            table(
                "zones",
                Is("[]"),
                "The zones of a regular drive, in LBN order.",
            ),
            table(
                "tree",
                Means("the drive has zones"),
                "The layout of an irregular drive.",
            ),
        ],
    ),
    section(
        "geometry.zones[]",
        "A range of cylinders that share one layout.",
        &[
            key_of(
                "first_cylinder",
                CYLINDER,
                "",
                Refused,
                "The outermost cylinder; not above last_cylinder.",
            ),
            key_of(
                "last_cylinder",
                CYLINDER,
                "",
                Refused,
                "The innermost cylinder, inclusive; below geometry.cylinders.",
            ),
            key_of(
                "surface",
                SURFACE,
                "",
                Means("the zone has all surfaces"),
                "The only surface of the zone; below geometry.surfaces.",
            ),
            key_of(
                "sectors_per_track",
                PerSurface(1.0, SLOTS_MAX as f64),
                "sectors",
                Refused,
                "Slots around each track: one number, or one per surface.",
            ),
            skew(
                "track_skew",
                Is("{ sectors = 0.0 }"),
                "The skew from a track to the next one of the same cylinder.",
            ),
            skew(
                "cylinder_skew",
                Is("{ sectors = 0.0 }"),
                "The skew from a track to the next one of another cylinder.",
            ),
            skew(
                "turn_skew",
                Means("track_skew"),
                "Seek-first orders: the skew from the end of a pass to the next surface.",
            ),
            skew(
                "group_skew",
                Means("turn_skew"),
                "Seek-first orders: the skew from a group of cylinders to the next.",
            ),
            skew(
                "first_angle",
                Is("{ sectors = 0.0 }"),
                "The angle at which the zone's first track begins.",
            ),
            key_of(
                "reserved_sectors",
                Whole(0.0, LBN_MAX),
                "sectors",
                Is("0"),
                "Sectors at the zone's front that the drive reserves for itself; not more than the zone holds.",
            ),
            key_of(
                "spares",
                Whole(0.0, u32::MAX as f64),
                "sectors or tracks",
                Is("0"),
                "The number of spares in each region of the sparing scheme; not more than it holds.",
            ),
            key_of(
                "lbns",
                Whole(0.0, LBN_MAX),
                "sectors",
                Means("as many as fit"),
                "The zone's LBN count; not more than fit.",
            ),
            key_of(
                "slips",
                Wholes(0.0, LBN_MAX),
                "positions",
                Is("[]"),
                "Positions that hold no LBN because they are bad, in ascending order.",
            ),
            key_of(
                "turns",
                Pairs(i32::MIN as f64, i32::MAX as f64),
                "[track, sectors]",
                Is("[]"),
                "Changes of the regular skew, in ascending order: from this track of the zone, all tracks begin that number of sectors later.",
            ),
            key_of(
                "remaps",
                Pairs(0.0, LBN_MAX),
                "[position, position]",
                Is("[]"),
                "Bad positions whose LBN is kept at another position, as pairs of bad position and replacement.",
            ),
        ],
    ),
    section(
        "geometry.moved[]",
        "An LBN, or several consecutive ones, kept at a place other than the regular one.",
        &[
            key_of(
                "lbn",
                Whole(0.0, LBN_MAX),
                "LBN",
                Refused,
                "The first LBN; below the drive's LBN count.",
            ),
            key_of(
                "sectors",
                Whole(1.0, u32::MAX as f64),
                "sectors",
                Is("1"),
                "The number of LBNs, in consecutive slots.",
            ),
            key_of(
                "cylinder",
                CYLINDER,
                "",
                Refused,
                "The cylinder of the place where they are kept.",
            ),
            key_of(
                "surface",
                SURFACE,
                "",
                Refused,
                "The surface of the place where they are kept.",
            ),
            key_of(
                "slot",
                Whole(0.0, SLOTS_MAX as f64 - 1.0),
                "",
                Refused,
                "The slot of the first one, counted from the beginning of the track.",
            ),
            key_of(
                "slots",
                SLOTS,
                "sectors",
                Means("those of the layout's track"),
                "Slots around that track.",
            ),
        ],
    ),
    section(
        "geometry.tree",
        "A layout as an explicit run-length tree. The last node is the root.",
        &[
            table(
                "tracks",
                Refused,
                "The track patterns that branches refer to by index.",
            ),
            table(
                "nodes",
                Refused,
                "The nodes: lists of branches in LBN order. A branch refers only to earlier nodes.",
            ),
            table(
                "slips",
                Is("[]"),
                "Positions that hold no LBN because they are bad, in ascending order.",
            ),
        ],
    ),
    section(
        "geometry.tree.tracks[]",
        "The pattern of a track.",
        &[
            key_of(
                "slots",
                SLOTS,
                "sectors",
                Refused,
                "Slots around the track.",
            ),
            key_of(
                "first_slot",
                Whole(0.0, SLOTS_MAX as f64 - 1.0),
                "",
                Is("0"),
                "The first slot in use; below slots.",
            ),
            key_of(
                "sectors",
                SLOTS,
                "sectors",
                Refused,
                "The number of slots in use.",
            ),
        ],
    ),
    section(
        "geometry.tree.nodes[][]",
        "A repeated part of a layout.",
        &[
            key_of(
                "of",
                Part,
                "",
                Refused,
                "The part that is repeated, by its index in tracks or nodes.",
            ),
            key_of(
                "cylinder",
                SIGNED,
                "",
                Is("0"),
                "Cylinder of the first instance, relative to the node.",
            ),
            key_of(
                "surface",
                SIGNED,
                "",
                Is("0"),
                "Surface of the first instance, relative to the node.",
            ),
            key_of(
                "angle_turns",
                TURNS,
                "revolutions",
                Is("0.0"),
                "Angle of the first instance, relative to the node.",
            ),
            key_of(
                "repeat",
                Whole(1.0, (1 << 25) as f64),
                "",
                Is("1"),
                "The number of instances.",
            ),
            key_of(
                "cylinder_step",
                SIGNED,
                "",
                Is("0"),
                "Cylinders from one instance to the next.",
            ),
            key_of(
                "surface_step",
                SIGNED,
                "",
                Is("0"),
                "Surfaces from one instance to the next.",
            ),
            key_of(
                "angle_step_turns",
                TURNS,
                "revolutions",
                Is("0.0"),
                "Angle from one instance to the next.",
            ),
            key_of(
                "total_sectors",
                Whole(0.0, LBN_MAX),
                "sectors",
                Means("the last instance is complete"),
                "The total number of positions, if the last instance is incomplete.",
            ),
        ],
    ),
    section(
        "geometry.tree.slips[]",
        "Consecutive positions that hold no LBN.",
        &[
            key_of(
                "position",
                Whole(0.0, LBN_MAX),
                "",
                Refused,
                "The first position.",
            ),
            key_of(
                "sectors",
                Whole(0.0, u32::MAX as f64),
                "sectors",
                Is("1"),
                "The number of positions.",
            ),
        ],
    ),
];

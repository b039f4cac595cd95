//! The schema of a drive's mechanics.

use super::Absent::{Is, Means, Refused};
use super::Kind::{Choice, Number, Numbers, Points, Whole};
use super::{Key, LONGEST_MS, Section, duration, key_of, section, table};

/// The kinds of seek curves.
const CURVES: &[(&str, &str)] = &[
    ("constant", "the same time for every distance"),
    (
        "three-point-line",
        "straight lines through the times for one cylinder, a third of the stroke, and the full stroke",
    ),
    (
        "three-point-curve",
        "a curve through given times for one cylinder and for the full stroke, with a given mean (Lee 1993)",
    ),
    (
        "hpl",
        "a square root below a given distance (`division`), a straight line from there on (Ruemmler and Wilkes 1994)",
    ),
    (
        "table",
        "measured points, connected by straight lines, the last of which continues",
    ),
];

const CURVE: Key = key_of(
    "curve",
    Choice(CURVES),
    "",
    Refused,
    "The kind of curve; the other keys depend on it.",
);

const SIGNED_MS: super::Kind = Number(-LONGEST_MS, LONGEST_MS);

const POINTS: super::Kind = Points((1.0, (1 << 24) as f64), (0.0, LONGEST_MS));

const SINGLE: Key = duration("single_ms", Refused, "A seek over one cylinder.");
const FULL: Key = duration(
    "full_ms",
    Refused,
    "A seek over the full stroke; not less than average_ms.",
);

const fn curve(name: &'static str, meaning: &'static str, keys: &'static [Key]) -> Section {
    Section {
        curve: Some(name),
        ..section("mechanics.seek", meaning, keys)
    }
}

pub(super) const SECTIONS: &[Section] = &[
    section(
        "mechanics",
        "Spindle, arm and heads. Without this table, accesses to the media take no time.",
        &[
            key_of(
                "rpm",
                Number(100.0, 100_000.0),
                "revolutions per minute",
                Refused,
                "Speed of rotation.",
            ),
            duration(
                "head_switch_ms",
                Is("0.0"),
                "Time to change to another head of the same cylinder.",
            ),
            key_of(
                "write_settle_ms",
                SIGNED_MS,
                "ms",
                Is("0.0"),
                "Settling time added to a seek or head switch before a write; negative if a seek to write is shorter than one to read.",
            ),
            table("seek", Refused, "Seek time as a function of distance."),
        ],
    ),
    curve(
        "constant",
        "The same time for every distance.",
        &[CURVE, duration("ms", Refused, "The time.")],
    ),
    curve(
        "three-point-line",
        "Straight lines through the times for three distances.",
        &[
            CURVE,
            SINGLE,
            duration(
                "average_ms",
                Refused,
                "A seek over a third of the stroke; not less than single_ms.",
            ),
            FULL,
        ],
    ),
    curve(
        "three-point-curve",
        "A curve through given times for one cylinder and for the full stroke, with a given mean.",
        &[
            CURVE,
            SINGLE,
            duration(
                "average_ms",
                Refused,
                "The mean over uniformly random pairs of cylinders; not less than single_ms.",
            ),
            FULL,
        ],
    ),
    curve(
        "hpl",
        "A square root below a given distance (division), and a straight line from there on.",
        &[
            CURVE,
            key_of(
                "division",
                Whole(0.0, (1 << 24) as f64),
                "cylinders",
                Refused,
                "The first distance to which the line applies.",
            ),
            key_of(
                "root_constant_ms",
                SIGNED_MS,
                "ms",
                Refused,
                "Constant of the root.",
            ),
            key_of(
                "root_factor_ms",
                Number(0.0, LONGEST_MS),
                "ms per root of a cylinder",
                Refused,
                "Factor of the root.",
            ),
            key_of(
                "line_constant_ms",
                SIGNED_MS,
                "ms",
                Refused,
                "Constant of the line.",
            ),
            key_of(
                "line_factor_ms",
                Number(0.0, LONGEST_MS),
                "ms per cylinder",
                Refused,
                "Factor of the line.",
            ),
            key_of(
                "first_ms",
                Numbers(0.0, LONGEST_MS),
                "ms",
                Is("[]"),
                "Times for distances of 1, 2, … cylinders, in place of the formula.",
            ),
        ],
    ),
    curve(
        "table",
        "Measured points.",
        &[
            CURVE,
            key_of(
                "read",
                POINTS,
                "[cylinders, ms]",
                Refused,
                "Distances and times of seeks, ascending by distance.",
            ),
            key_of(
                "write",
                POINTS,
                "[cylinders, ms]",
                Means("the times of reads, plus write_settle_ms"),
                "The same for writes. write_settle_ms is added to these times as well; it should be 0 if they already include settling.",
            ),
        ],
    ),
];

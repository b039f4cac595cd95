//! The moving parts of a drive: spindle, arm and heads.

use serde::{Deserialize, Serialize};

/// The moving parts.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct MechanicsSpec {
    /// Revolutions per minute.
    pub rpm: f64,
    /// Time to change to another head of the same cylinder, in milliseconds.
    #[serde(default)]
    pub head_switch_ms: f64,
    /// Settling time added to a seek or head switch before a write, in milliseconds. Negative if a
    /// seek to write was measured to be shorter than one to read.
    #[serde(default)]
    pub write_settle_ms: f64,
    /// Seek time as a function of distance.
    pub seek: SeekSpec,
}

/// Seek time as a function of the distance in cylinders. A distance of 0 takes no time.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "curve", deny_unknown_fields)]
pub enum SeekSpec {
    /// The same time for every distance.
    Constant {
        /// The time, in milliseconds.
        ms: f64,
    },
    /// Straight lines through three known points: one cylinder, a third of the stroke, the full
    /// stroke.
    ThreePointLine {
        /// One cylinder, in milliseconds.
        single_ms: f64,
        /// Average, taken at a third of the stroke, in milliseconds.
        average_ms: f64,
        /// Full stroke, in milliseconds.
        full_ms: f64,
    },
    /// `a sqrt(d-1) + b (d-1) + c` with given times of one cylinder and of the full stroke, and a
    /// given mean (Lee 1993: "Lee's formula").
    ThreePointCurve {
        /// One cylinder, in milliseconds.
        single_ms: f64,
        /// Average over uniformly random pairs of cylinders, in milliseconds.
        average_ms: f64,
        /// Full stroke, in milliseconds.
        full_ms: f64,
    },
    /// Ruemmler and Wilkes: a square root below the distance `division`, a line from there on ("An
    /// introduction to disk drive modeling", IEEE Computer, March 1994).
    Hpl {
        /// The first distance to which the line applies, in cylinders.
        division: u32,
        /// Constant of the root, in milliseconds.
        root_constant_ms: f64,
        /// Factor of the root, in milliseconds per root of a cylinder.
        root_factor_ms: f64,
        /// Constant of the line, in milliseconds.
        line_constant_ms: f64,
        /// Factor of the line, in milliseconds per cylinder.
        line_factor_ms: f64,
        /// Times for distances of 1, 2, ... cylinders, in place of the formula, in milliseconds.
        #[serde(default)]
        first_ms: Vec<f64>,
    },
    /// Measured points, connected by straight lines, the last of which continues. Distances before
    /// the first point take the same time as that point. A single point gives all distances its
    /// time.
    Table {
        /// Distance in cylinders and time in milliseconds, ascending by distance.
        read: Vec<(u32, f64)>,
        /// The same for writes, if they were measured separately. `write_settle_ms` is added to
        /// these times as well; it should be 0 if they already include settling.
        #[serde(default, skip_serializing_if = "Option::is_none")]
        write: Option<Vec<(u32, f64)>>,
    },
}

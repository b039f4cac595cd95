//! The quantities of a disk as distinct types, all integers, and the tools that all crates share.
//!
//! - [`SimTime`] is an instant and [`Span`] a length of time, both in picoseconds. [`Angle`] is an
//!   angle in 2^-64 of a revolution.
//! - [`Lbn`], [`Block`], [`Cylinder`] and [`Surface`] are addresses. [`Sectors`] and [`Blocks`] are
//!   amounts.
//! - [`request`] has the requests that a host sends, and their times.
//! - [`Rng`] draws seeded random numbers. [`intervals`] maps ranges to values. With the feature
//!   `statistics`, the module `stats` summarizes times.
//! - [`byte_size`] parses sizes such as 64K. [`turns`] reduces angles that are numbers of
//!   revolutions. [`system_message`] is the text of an operating system's error. [`Count`] is a
//!   number with its noun, for messages. [`decimal_comma`] explains numbers such as `0,5`.
//!
//! # Invariants
//! Neither time nor angle drifts: a week of simulated time is exact to the last picosecond, and
//! adding a whole turn to an angle returns the same angle. The same seed gives the same random
//! numbers on every machine. Nothing here reads a clock, a file or unseeded randomness.
#![forbid(unsafe_code)]

pub mod byte_size;
mod count;
mod decimal;
pub mod intervals;
pub mod request;
mod rng;
#[cfg(feature = "statistics")]
pub mod stats;
mod system;
pub mod turns;

pub use count::Count;
pub use decimal::decimal_comma;
pub use rng::Rng;
pub use system::system_message;

use std::fmt;
use std::ops::{Add, AddAssign, Sub, SubAssign};

/// Logical block number: the address a host uses, counted in logical sectors from 0.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Lbn(pub u64);

/// A number of logical sectors.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Sectors(pub u64);

/// A block of a file system, counted from the first of its partition.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Block(pub u64);

/// A number of file-system blocks.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Blocks(pub u64);

/// The number of a cylinder, counted from the outer edge. A cylinder is the tracks of all surfaces
/// at one arm position.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Cylinder(pub u32);

/// A recording surface. Its number is also that of its head.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Surface(pub u16);

/// An instant of simulated time, in picoseconds since the drive's spindle was at angle 0.
///
/// The range is 213 days.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct SimTime(pub u64);

/// A length of time, in picoseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Span(pub u64);

/// An angle on the platter, in 2^-64 of a revolution. Arithmetic wraps, as angles do.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Angle(pub u64);

const PS_PER_MS: f64 = 1e9;

impl Span {
    /// The empty span.
    pub const ZERO: Span = Span(0);

    /// Returns the span nearest to `ms` milliseconds; negative values and NaN become zero.
    pub fn from_ms(ms: f64) -> Span {
        // Same as `round`, which is a call to the mathematics library on some targets. `whole`
        // converted back and the difference are exact.
        let exact = ms * PS_PER_MS;
        let whole = exact as u64;
        Span(whole.saturating_add(u64::from(exact - whole as f64 >= 0.5)))
    }

    /// The span in milliseconds.
    pub fn as_ms(self) -> f64 {
        self.0 as f64 / PS_PER_MS
    }

    /// Returns this span minus `other`, or zero if `other` is longer.
    pub fn saturating_sub(self, other: Span) -> Span {
        Span(self.0.saturating_sub(other.0))
    }
}

impl SimTime {
    /// The start of simulated time.
    pub const ZERO: SimTime = SimTime(0);

    /// Returns the instant `ms` milliseconds after the start; negative values and NaN become the
    /// start.
    pub fn from_ms(ms: f64) -> SimTime {
        SimTime(Span::from_ms(ms).0)
    }

    /// Milliseconds since the start.
    pub fn as_ms(self) -> f64 {
        Span(self.0).as_ms()
    }

    /// The time from `earlier` to this instant.
    ///
    /// # Panics
    /// Panics in debug builds if `earlier` is later than this instant.
    pub fn since(self, earlier: SimTime) -> Span {
        debug_assert!(self >= earlier, "{self} is before {earlier}");
        Span(self.0.wrapping_sub(earlier.0))
    }

    /// The time from `earlier` to this instant, or zero if `earlier` is later.
    pub fn saturating_since(self, earlier: SimTime) -> Span {
        Span(self.0.saturating_sub(earlier.0))
    }
}

impl Angle {
    /// The angle 0.
    pub const ZERO: Angle = Angle(0);

    /// Returns the given fraction of a revolution; whole revolutions are dropped.
    pub fn from_turns(turns: f64) -> Angle {
        let fraction = turns.rem_euclid(1.0);
        // The fraction of a tiny negative number rounds up to 1, which is the angle 0.
        if fraction >= 1.0 {
            Angle(0)
        } else {
            Angle((fraction * 18_446_744_073_709_551_616.0) as u64)
        }
    }

    /// Returns `k` of `n` equal parts of a revolution, exact to the last bit.
    ///
    /// # Panics
    /// Panics if `n` is zero.
    pub fn from_ratio(k: u64, n: u64) -> Angle {
        Angle((((k % n) as u128) << 64).div_euclid(n as u128) as u64)
    }

    /// The fraction of a revolution, in [0, 1]. It is 1 for the largest angles, because of
    /// rounding.
    pub fn as_turns(self) -> f64 {
        self.0 as f64 / 18_446_744_073_709_551_616.0
    }

    /// The time in which the platter turns through this angle, rounded to the nearest picosecond.
    /// Rounding may give a whole revolution.
    pub fn at_period(self, revolution: Span) -> Span {
        Span(((self.0 as u128 * revolution.0 as u128 + (1 << 63)) >> 64) as u64)
    }
}

macro_rules! offset_by {
    ($place:ident, $distance:ident, $unit:literal) => {
        impl Add<$distance> for $place {
            type Output = $place;
            fn add(self, distance: $distance) -> $place {
                $place(self.0 + distance.0)
            }
        }
        impl AddAssign<$distance> for $place {
            fn add_assign(&mut self, distance: $distance) {
                self.0 += distance.0;
            }
        }
        impl Sub<$distance> for $place {
            type Output = $place;
            fn sub(self, distance: $distance) -> $place {
                $place(self.0 - distance.0)
            }
        }
        impl Add for $distance {
            type Output = $distance;
            fn add(self, other: $distance) -> $distance {
                $distance(self.0 + other.0)
            }
        }
        impl AddAssign for $distance {
            fn add_assign(&mut self, other: $distance) {
                self.0 += other.0;
            }
        }
        impl Sub for $distance {
            type Output = $distance;
            fn sub(self, other: $distance) -> $distance {
                $distance(self.0 - other.0)
            }
        }
        impl SubAssign for $distance {
            fn sub_assign(&mut self, other: $distance) {
                self.0 -= other.0;
            }
        }
        impl fmt::Display for $distance {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                write!(f, concat!("{} ", $unit), self.0)
            }
        }
    };
}

offset_by!(SimTime, Span, "ps");
offset_by!(Lbn, Sectors, "sectors");
offset_by!(Block, Blocks, "blocks");

impl Add for Angle {
    type Output = Angle;
    fn add(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_add(other.0))
    }
}

impl Sub for Angle {
    type Output = Angle;
    fn sub(self, other: Angle) -> Angle {
        Angle(self.0.wrapping_sub(other.0))
    }
}

impl fmt::Display for SimTime {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ps", self.0)
    }
}

impl fmt::Display for Lbn {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Block {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Cylinder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

impl fmt::Display for Surface {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.fmt(f)
    }
}

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

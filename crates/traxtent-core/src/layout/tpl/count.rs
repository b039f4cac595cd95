//! How many partitions a track has.

use std::fmt;

use super::TplError;

/// Partitions of a track: a power of two from 1 to 32.
///
/// Powers of two, so that the copies that a halved count keeps are every second of those that were there, at the same
/// sectors: a merge moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Count(u8);

impl Count {
    /// One: an ordinary track.
    pub const ONE: Count = Count(0);

    /// The most: 32, as in the paper.
    pub const MOST: Count = Count(5);

    /// All, ascending.
    pub const ALL: [Count; 6] = [Count(0), Count(1), Count(2), Count(3), Count(4), Count(5)];

    /// So many.
    ///
    /// # Errors
    /// If it is no power of two from 1 to 32.
    pub fn new(count: u32) -> Result<Count, TplError> {
        let known = Count::ALL.into_iter().find(|known| known.get() == count);
        known.ok_or(TplError::Count(count))
    }

    /// The number.
    pub fn get(self) -> u32 {
        1 << self.0
    }

    /// Half as many, if there is more than one.
    pub fn halved(self) -> Option<Count> {
        self.0.checked_sub(1).map(Count)
    }

    /// Twice as many, if that is not more than 32.
    pub fn doubled(self) -> Option<Count> {
        (self < Count::MOST).then_some(Count(self.0 + 1))
    }

    /// The exponent of two.
    pub(super) fn exponent(self) -> u8 {
        self.0
    }

    /// That of an exponent, if it is one.
    pub(super) fn of_exponent(exponent: u8) -> Option<Count> {
        (exponent <= Count::MOST.0).then_some(Count(exponent))
    }
}

impl fmt::Display for Count {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The fewest and the most partitions that a track may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bounds {
    least: Count,
    most: Count,
}

impl Bounds {
    /// From `least` to `most` partitions.
    ///
    /// # Errors
    /// If they are crossed.
    pub fn new(least: Count, most: Count) -> Result<Bounds, TplError> {
        if least > most {
            return Err(TplError::Bounds {
                least: least.get(),
                most: most.get(),
            });
        }
        Ok(Bounds { least, most })
    }

    /// The fewest, which set the capacity.
    pub fn least(self) -> Count {
        self.least
    }

    /// The most, which an empty track has.
    pub fn most(self) -> Count {
        self.most
    }

    /// How many layers of blocks there are: one a count.
    pub(super) fn layers(self) -> usize {
        usize::from(self.most.0 - self.least.0) + 1
    }

    /// With how many partitions a track holds this layer at most: the most for the first, half as many for each that
    /// follows.
    pub(super) fn count_of(self, layer: usize) -> Count {
        Count(self.most.0 - layer as u8)
    }
}

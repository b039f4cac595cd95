//! The number of partitions of a track.

use std::fmt;

use super::TplError;

/// The number of partitions of a track: a power of two from 1 to 32.
///
/// With powers of two, a halved count keeps every second replica, at the same sectors: a merge
/// moves nothing.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct PartitionCount(u8);

impl PartitionCount {
    /// One partition: an ordinary track.
    pub const ONE: PartitionCount = PartitionCount(0);

    /// The largest number: 32, as in the paper.
    pub const MOST: PartitionCount = PartitionCount(5);

    /// All counts, in ascending order.
    pub const ALL: [PartitionCount; 6] = [
        PartitionCount(0),
        PartitionCount(1),
        PartitionCount(2),
        PartitionCount(3),
        PartitionCount(4),
        PartitionCount(5),
    ];

    /// Creates a count.
    ///
    /// # Errors
    /// Returns an error if `count` is not a power of two from 1 to 32.
    pub fn new(count: u32) -> Result<PartitionCount, TplError> {
        let known = PartitionCount::ALL
            .into_iter()
            .find(|known| known.get() == count);
        known.ok_or(TplError::Count(count))
    }

    /// Returns the number.
    pub fn get(self) -> u32 {
        1 << self.0
    }

    /// Returns half the count, if it is more than one.
    pub fn halved(self) -> Option<PartitionCount> {
        self.0.checked_sub(1).map(PartitionCount)
    }

    /// Returns twice the count, if that is at most 32.
    pub fn doubled(self) -> Option<PartitionCount> {
        (self < PartitionCount::MOST).then_some(PartitionCount(self.0 + 1))
    }

    /// Returns the exponent of two.
    pub(super) fn exponent(self) -> u8 {
        self.0
    }

    /// Returns the count with this exponent, if there is one.
    pub(super) fn of_exponent(exponent: u8) -> Option<PartitionCount> {
        (exponent <= PartitionCount::MOST.0).then_some(PartitionCount(exponent))
    }
}

impl fmt::Display for PartitionCount {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.get().fmt(f)
    }
}

/// The smallest and largest number of partitions that a track may have.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct PartitionBounds {
    least: PartitionCount,
    most: PartitionCount,
}

impl PartitionBounds {
    /// Creates bounds from `least` to `most` partitions.
    ///
    /// # Errors
    /// Returns an error if `least` is greater than `most`.
    pub fn new(least: PartitionCount, most: PartitionCount) -> Result<PartitionBounds, TplError> {
        if least > most {
            return Err(TplError::Bounds {
                least: least.get(),
                most: most.get(),
            });
        }
        Ok(PartitionBounds { least, most })
    }

    /// Returns the smallest number of partitions, which determines the capacity.
    pub fn least(self) -> PartitionCount {
        self.least
    }

    /// Returns the largest number of partitions, which an empty track has.
    pub fn most(self) -> PartitionCount {
        self.most
    }

    /// Returns the number of layers of blocks: one per possible count.
    pub(super) fn layers(self) -> usize {
        usize::from(self.most.0 - self.least.0) + 1
    }

    /// Returns the largest number of partitions with which a track can hold this layer. It is the
    /// maximum for the first layer, and half as many for each following one.
    pub(super) fn count_of(self, layer: usize) -> PartitionCount {
        PartitionCount(self.most.0 - layer as u8)
    }
}

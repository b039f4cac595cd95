//! A set of members.

use std::fmt;

/// A set of an array's members, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct MemberSet(u32);

impl MemberSet {
    /// The empty set.
    pub const NONE: MemberSet = MemberSet(0);

    /// Returns the set of only this member.
    pub fn only(member: usize) -> MemberSet {
        MemberSet::NONE.with(member)
    }

    /// Returns the set with one more member.
    #[must_use]
    pub fn with(self, member: usize) -> MemberSet {
        MemberSet(self.0 | 1 << member)
    }

    /// Returns the set without one member.
    #[must_use]
    pub fn without(self, member: usize) -> MemberSet {
        MemberSet(self.0 & !(1 << member))
    }

    /// Returns the union of two sets.
    #[must_use]
    pub fn union(self, others: MemberSet) -> MemberSet {
        MemberSet(self.0 | others.0)
    }

    /// Returns the intersection of two sets.
    #[must_use]
    pub fn intersection(self, others: MemberSet) -> MemberSet {
        MemberSet(self.0 & others.0)
    }

    /// Returns whether the set contains a member.
    pub fn has(self, member: usize) -> bool {
        self.0 >> member & 1 == 1
    }

    /// Returns whether the set is empty.
    pub fn is_empty(self) -> bool {
        self == MemberSet::NONE
    }

    /// Returns the number of members in the set.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Returns the members' numbers, in ascending order.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..super::MEMBERS_MAX).filter(move |member| self.has(*member))
    }

    /// Returns the member with the lowest number; `None` if the set is empty.
    pub fn first(self) -> Option<usize> {
        self.iter().next()
    }
}

impl FromIterator<usize> for MemberSet {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> MemberSet {
        members.into_iter().fold(MemberSet::NONE, MemberSet::with)
    }
}

impl fmt::Display for MemberSet {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, member) in self.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{member}")?;
        }
        Ok(())
    }
}

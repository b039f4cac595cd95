//! A set of members.

use std::fmt;

/// Some of an array's members, by number.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Members(u32);

impl Members {
    /// None of them.
    pub const NONE: Members = Members(0);

    /// This one alone.
    pub fn only(member: usize) -> Members {
        Members::NONE.with(member)
    }

    /// These and one more.
    #[must_use]
    pub fn with(self, member: usize) -> Members {
        Members(self.0 | 1 << member)
    }

    /// These less one.
    #[must_use]
    pub fn without(self, member: usize) -> Members {
        Members(self.0 & !(1 << member))
    }

    /// These and others.
    #[must_use]
    pub fn union(self, others: Members) -> Members {
        Members(self.0 | others.0)
    }

    /// Those that are also among others.
    #[must_use]
    pub fn intersection(self, others: Members) -> Members {
        Members(self.0 & others.0)
    }

    /// Whether one is among them.
    pub fn has(self, member: usize) -> bool {
        self.0 >> member & 1 == 1
    }

    /// Whether they are none.
    pub fn is_empty(self) -> bool {
        self == Members::NONE
    }

    /// How many.
    pub fn count(self) -> usize {
        self.0.count_ones() as usize
    }

    /// Their numbers, ascending.
    pub fn iter(self) -> impl Iterator<Item = usize> {
        (0..super::MEMBERS_MAX).filter(move |member| self.has(*member))
    }

    /// The first.
    pub fn first(self) -> Option<usize> {
        self.iter().next()
    }
}

impl FromIterator<usize> for Members {
    fn from_iter<I: IntoIterator<Item = usize>>(members: I) -> Members {
        members.into_iter().fold(Members::NONE, Members::with)
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (index, member) in self.iter().enumerate() {
            let comma = if index > 0 { ", " } else { "" };
            write!(f, "{comma}{member}")?;
        }
        Ok(())
    }
}

//! What a volume asks of its members.

use std::ops::{DerefMut, Range};

use crate::units::Lbn;

/// The drives, partitions or files that a volume lies on.
///
/// Between two flushes of a member, any part of its writes may have become durable, in any order; a
/// write that has been answered is seen by the reads behind it.
pub trait Members {
    /// Memory for reads and parity.
    type Buffer: DerefMut<Target = [u8]>;

    /// Memory of so many bytes, with anything in it.
    fn buffer(&self, bytes: usize) -> Self::Buffer;

    /// Carries out operations in any order, or at once, and sets the outcome of each.
    fn run(&self, ops: &mut [Op<'_>]) -> impl Future<Output = ()>;

    /// Makes sure that a write of these sectors will not fail for want of room, where the member can tell. Requests call
    /// this before they write anything.
    ///
    /// # Errors
    /// If there is no room. The member has not failed then.
    fn reserve(&self, member: usize, sectors: Range<Lbn>) -> Result<(), NoSpace> {
        let _ = (member, sectors);
        Ok(())
    }
}

/// A member has no room left for what is to be written.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no space left")]
pub struct NoSpace;

/// An operation on a member.
#[derive(Debug)]
pub struct Op<'a> {
    /// The member's position in the volume.
    pub member: usize,
    /// What is to be done.
    pub action: Action<'a>,
    /// How it went.
    pub outcome: Result<(), Failed>,
}

/// What is done on a member.
#[derive(Debug)]
pub enum Action<'a> {
    /// Whole sectors are read.
    Read(Lbn, &'a mut [u8]),
    /// Whole sectors are written.
    Write(Lbn, &'a [u8]),
    /// What was written before becomes durable.
    Flush,
}

/// A member could not do what was asked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operation failed")]
pub struct Failed;

impl<'a> Op<'a> {
    /// A read.
    pub fn read(member: usize, at: Lbn, into: &'a mut [u8]) -> Op<'a> {
        Op::new(member, Action::Read(at, into))
    }

    /// A write.
    pub fn write(member: usize, at: Lbn, from: &'a [u8]) -> Op<'a> {
        Op::new(member, Action::Write(at, from))
    }

    /// A flush.
    pub fn flush(member: usize) -> Op<'a> {
        Op::new(member, Action::Flush)
    }

    fn new(member: usize, action: Action<'a>) -> Op<'a> {
        Op {
            member,
            action,
            outcome: Ok(()),
        }
    }
}

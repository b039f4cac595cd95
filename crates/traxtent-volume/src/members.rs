//! The interface of a volume to its members.

use std::ops::{DerefMut, Range};

use traxtent_units::Lbn;

/// The drives, partitions or files on which a volume is stored.
///
/// Between two flushes of a member, any part of its writes may become durable, in any order. Once a
/// write is complete, later reads see it.
pub trait MemberIo {
    /// The type of memory for reads, parity and journal records.
    type Buffer: DerefMut<Target = [u8]>;

    /// Returns a buffer of `bytes` bytes with arbitrary contents.
    fn buffer(&self, bytes: usize) -> Self::Buffer;

    /// Carries out operations in any order, or concurrently, and sets the outcome of each.
    fn run(&self, ops: &mut [Op<'_>]) -> impl Future<Output = ()>;

    /// Checks that a write of these sectors will not fail for lack of space, if the member can
    /// tell. Requests call this before they write these sectors.
    ///
    /// # Errors
    /// Returns an error if there is no space. This does not count as a failure of the member.
    fn reserve(&self, member: usize, sectors: Range<Lbn>) -> Result<(), NoSpace> {
        let _ = (member, sectors);
        Ok(())
    }
}

/// A member has no space left for a write.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("no space left")]
pub struct NoSpace;

/// An operation on a member.
#[derive(Debug)]
pub struct Op<'a> {
    /// The member's position in the volume.
    pub member: usize,
    /// The action to perform.
    pub action: Action<'a>,
    /// The outcome, set by [`MemberIo::run`].
    pub outcome: Result<(), Failed>,
}

/// An action on a member.
#[derive(Debug)]
pub enum Action<'a> {
    /// Read whole sectors.
    Read(Lbn, &'a mut [u8]),
    /// Write whole sectors.
    Write(Lbn, &'a [u8]),
    /// Make all earlier writes durable.
    Flush,
}

/// A member failed to carry out an operation.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("the operation failed")]
pub struct Failed;

impl<'a> Op<'a> {
    /// Creates a read.
    pub fn read(member: usize, at: Lbn, into: &'a mut [u8]) -> Op<'a> {
        Op::new(member, Action::Read(at, into))
    }

    /// Creates a write.
    pub fn write(member: usize, at: Lbn, from: &'a [u8]) -> Op<'a> {
        Op::new(member, Action::Write(at, from))
    }

    /// Creates a flush.
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

//! Reading.

use std::ops::Range;

use smallvec::SmallVec;

use super::xor::xor;
use super::{Members, Op, Ops, Stripe, Volume, VolumeError};
use crate::layout::raid::Level;
use crate::units::Lbn;

/// Pieces of a request that are read together.
const PIECES_AT_ONCE: usize = 64;

/// Rows of a column that are to be read.
struct Piece<'a> {
    stripe: u64,
    column: usize,
    rows: Range<u32>,
    into: &'a mut [u8],
}

impl<M: Members> Volume<M> {
    /// Reads whole sectors.
    ///
    /// # Errors
    /// If the volume has no such sectors, they are lost, or neither their member nor the others can tell them.
    pub async fn read(&self, at: Lbn, into: &mut [u8]) -> Result<(), VolumeError> {
        let range = self.check(at, into.len())?;
        let (mut from, mut rest) = (range.start, into);
        while from < range.end {
            let state = self.gate.read().await;
            let lost = state.superblock.lost.iter();
            let mut lost = lost.filter(|lost| lost.start < range.end.0 && range.start.0 < lost.end);
            if let Some(lost) = lost.next() {
                return Err(VolumeError::Lost(lost.start, lost.end));
            }
            let mut absent: SmallVec<[Piece<'_>; 2]> = SmallVec::new();
            let mut ops = Ops::new();
            let mut of_ops: SmallVec<[(u64, usize, Range<u32>); 16]> = SmallVec::new();
            'stripes: for number in self.placement.stripe_of(from).. {
                if from >= range.end {
                    break;
                }
                let stripe = self.placement.stripe(number);
                for (k, column) in stripe.columns.iter().enumerate() {
                    let end = range.end.min(column.end());
                    if from >= end || from < column.first {
                        continue;
                    }
                    if ops.len() + absent.len() == PIECES_AT_ONCE {
                        break 'stripes;
                    }
                    let rows = (from.0 - column.first.0) as u32..(end.0 - column.first.0) as u32;
                    let (into, behind) = rest.split_at_mut(rows.len() * self.sector_bytes);
                    (rest, from) = (behind, end);
                    // Of copies, stripes take turns.
                    let all: SmallVec<[_; 8]> = match self.placement.level() {
                        Level::Raid1 => stripe.all().copied().collect(),
                        Level::Raid0 | Level::Raid4 | Level::Raid5 => {
                            SmallVec::from_slice(&[*column])
                        }
                    };
                    let turn = (number % all.len() as u64) as usize;
                    let mut choices = (0..all.len()).map(|next| all[(turn + next) % all.len()]);
                    match choices.find(|column| self.is_live(&state, column.member, number)) {
                        Some(column) => {
                            ops.push(Op::read(column.member, column.row(rows.start), into));
                            of_ops.push((number, k, rows));
                        }
                        None => absent.push(Piece {
                            stripe: number,
                            column: k,
                            rows,
                            into,
                        }),
                    }
                }
            }
            self.members.run(&mut ops).await;
            for piece in absent {
                let stripe = self.placement.stripe(piece.stripe);
                let _lock = self.stripes[self.lock_of(piece.stripe)].lock().await;
                self.recover(&state, &stripe, piece.column, piece.rows, piece.into, None)
                    .await?;
            }
            for (op, (number, k, rows)) in ops.into_iter().zip(of_ops) {
                if op.outcome.is_err()
                    && let super::Action::Read(_, into) = op.action
                {
                    let stripe = self.placement.stripe(number);
                    let _lock = self.stripes[self.lock_of(number)].lock().await;
                    self.recover(&state, &stripe, k, rows, into, Some(op.member))
                        .await?;
                }
            }
        }
        Ok(())
    }

    /// Tells rows of a column from what the other members have; whoever calls holds the stripe's lock.
    /// If `member` could not read them, they are written there anew.
    pub(super) async fn recover(
        &self,
        state: &super::State,
        stripe: &Stripe,
        k: usize,
        rows: Range<u32>,
        into: &mut [u8],
        member: Option<usize>,
    ) -> Result<(), VolumeError> {
        let column = stripe.columns[k];
        let unreadable = VolumeError::Unreadable(Lbn(column.first.0 + u64::from(rows.start)));
        let is_live = |member| self.is_live(state, member, stripe.number);
        match self.placement.level() {
            Level::Raid0 => return Err(unreadable),
            Level::Raid1 => {
                let mut found = false;
                for copy in stripe
                    .all()
                    .filter(|copy| is_live(copy.member) && Some(copy.member) != member)
                {
                    let mut ops = [Op::read(copy.member, copy.row(rows.start), into)];
                    self.members.run(&mut ops).await;
                    if ops[0].outcome.is_ok() {
                        found = true;
                        break;
                    }
                }
                if !found {
                    return Err(unreadable);
                }
            }
            Level::Raid4 | Level::Raid5 => {
                if stripe.number >= state.superblock.synced && member.is_some() {
                    // Its parity may never have been made.
                    return Err(unreadable);
                }
                let others = || {
                    let columns = stripe.columns.iter().enumerate();
                    let columns = columns
                        .filter(|(other, _)| *other != k)
                        .map(|(_, column)| column);
                    columns.chain(&stripe.checks)
                };
                if others().any(|other| !is_live(other.member)) {
                    return Err(unreadable);
                }
                into.fill(0);
                let mut buffer = self.members.buffer(into.len() * others().count());
                let mut ops = Ops::new();
                for (other, part) in others().zip(buffer.chunks_exact_mut(into.len())) {
                    let has = rows.start.min(other.sectors)..rows.end.min(other.sectors);
                    if !has.is_empty() {
                        let part = &mut part[..has.len() * self.sector_bytes];
                        ops.push(Op::read(other.member, other.row(has.start), part));
                    }
                }
                self.members.run(&mut ops).await;
                for op in ops {
                    match (op.outcome, op.action) {
                        (Ok(()), super::Action::Read(_, part)) => {
                            xor(&mut into[..part.len()], part)
                        }
                        _ => return Err(unreadable),
                    }
                }
            }
        }
        if let Some(member) = member
            && let Some(own) = stripe.all().find(|column| column.member == member)
        {
            let mut ops = [Op::write(member, own.row(rows.start), into)];
            self.members.run(&mut ops).await;
            if ops[0].outcome.is_ok() {
                self.count_repair(rows.len() as u64);
            }
        }
        Ok(())
    }
}

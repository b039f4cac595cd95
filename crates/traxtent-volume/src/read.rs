//! Reading from a volume.

use std::ops::Range;

use smallvec::SmallVec;

use super::error::no_plan;
use super::stripe_buffer::WriteData;
use super::sync::Synced;
use super::{AT_ONCE, Action, MemberIo, Op, Ops, PLANNER, State, Volume, VolumeError};
use traxtent_units::{Lbn, Sectors};

impl<M: MemberIo> Volume<M> {
    /// Reads whole sectors.
    ///
    /// # Errors
    /// Returns an error if the length is not a whole number of sectors, if the range is not within
    /// the volume, if sectors in it are lost, or if neither their member nor the others can supply
    /// them.
    pub async fn read(&self, at: Lbn, into: &mut [u8]) -> Result<(), VolumeError> {
        let range = self.check(at, into.len())?;
        let mut synced = Synced::new();
        loop {
            match self.read_once(range.clone(), into).await {
                Err(VolumeError::Unreadable(sector))
                    if self.sync_for(sector, &mut synced).await => {}
                done => return done,
            }
        }
    }

    async fn read_once(&self, range: Range<Lbn>, into: &mut [u8]) -> Result<(), VolumeError> {
        let mut buffers = self.take_buffers();
        let (mut from, mut rest) = (range.start, into);
        while from < range.end {
            let state = self.gate.read().await;
            let lost = state.superblock.lost.iter();
            let mut lost = lost.filter(|lost| lost.start < range.end.0 && range.start.0 < lost.end);
            if let Some(lost) = lost.next() {
                return Err(VolumeError::Lost(lost.start, lost.end));
            }
            // Data that members can read goes directly to its destination. Data that must be
            // computed is read afterwards.
            let mut ops = Ops::new();
            let mut firsts: SmallVec<[Lbn; AT_ONCE]> = SmallVec::new();
            let mut absent: SmallVec<[(Lbn, &mut [u8]); 4]> = SmallVec::new();
            for (stripe, part) in self.array.stripes_of(from..range.end) {
                let buffer = self.prepare_buffer(&mut buffers, 0, &state, &stripe, part.clone());
                let plan = &mut buffer.plan;
                PLANNER
                    .read(&stripe, part.clone(), buffer.health, plan)
                    .map_err(no_plan)?;
                let pieces = ops.len() + absent.len();
                if pieces > 0 && pieces + plan.reads.len() > AT_ONCE {
                    break;
                }
                let bytes = (part.end.0 - part.start.0) as usize * self.sector_bytes;
                let (mut into, remaining) = std::mem::take(&mut rest).split_at_mut(bytes);
                (rest, from) = (remaining, part.end);
                if !plan.sums.is_empty() {
                    absent.push((part.start, into));
                    continue;
                }
                plan.reads.sort_unstable_by_key(|read| read.logical);
                for read in &plan.reads {
                    let bytes = (read.rows.end - read.rows.start) as usize * self.sector_bytes;
                    let (now, later) = into.split_at_mut(bytes);
                    ops.push(Op::read(read.member, read.lbn, now));
                    firsts.extend(read.logical);
                    into = later;
                }
            }
            self.members.run(&mut ops).await;
            for (first, into) in absent {
                self.read_around(&state, first, into, None).await?;
            }
            for (op, first) in ops.into_iter().zip(firsts) {
                if let (Err(_), Action::Read(at, into)) = (op.outcome, op.action) {
                    self.read_around(&state, first, into, Some((op.member, at)))
                        .await?;
                }
            }
        }
        self.return_buffers(buffers);
        Ok(())
    }

    /// Reads sectors of one stripe without the absent members, and without `unreadable`: a member
    /// that could not read them, and their first LBN there. They are then rewritten on that member,
    /// unless the volume is open for reading only.
    async fn read_around(
        &self,
        state: &State,
        first: Lbn,
        into: &mut [u8],
        unreadable: Option<(usize, Lbn)>,
    ) -> Result<(), VolumeError> {
        let sectors = Sectors((into.len() / self.sector_bytes) as u64);
        let range = first..first + sectors;
        let stripe = self.stripe_of(first);
        let _lock = self.stripes[self.lock_of(stripe.number())].lock().await;
        let mut buffers = self.take_buffers();
        let buffer = self.prepare_buffer(&mut buffers, 0, state, &stripe, range.clone());
        buffer.health.unreadable = unreadable.iter().map(|(member, _)| *member).collect();
        self.carry_out(
            &mut buffers.buffers[..1],
            WriteData::NONE,
            |stripe, part, health, plan| PLANNER.read(stripe, part, health, plan),
        )
        .await?;
        buffers.buffers[0].copy_old(&stripe, &range, into);
        self.return_buffers(buffers);
        if let Some((member, at)) = unreadable.filter(|_| !state.read_only) {
            let mut ops = [Op::write(member, at, into)];
            self.members.run(&mut ops).await;
            if ops[0].outcome.is_ok() {
                self.count_repair(sectors);
            }
        }
        Ok(())
    }
}

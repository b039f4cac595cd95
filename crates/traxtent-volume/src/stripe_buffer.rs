//! Stripe buffers: the memory in which stripe plans are carried out.

use std::ops::{DerefMut, Range};

use smallvec::SmallVec;

use super::error::no_plan;
use super::record::RecordEntry;
use super::xor::xor_into;
use super::{AT_ONCE, Failures, MemberIo, Op, Ops, State, Volume, VolumeError, failures};
use traxtent_layout::raid::{
    ChunkContents, MemberSet, RaidError, RowExtent, Stripe, StripeHealth, StripePlan, Version,
    XorStep,
};
use traxtent_units::Lbn;

/// The maximum number of sets of stripe buffers kept for later requests.
const STRIPE_BUFFERS_KEPT: usize = 64;

/// The data of a write request, and its first LBN.
#[derive(Clone, Copy)]
pub(super) struct WriteData<'a> {
    pub(super) first: Lbn,
    pub(super) bytes: &'a [u8],
}

impl WriteData<'_> {
    /// No write request.
    pub(super) const NONE: WriteData<'static> = WriteData {
        first: Lbn(0),
        bytes: &[],
    };
}

/// The plan for a stripe, with memory for the sectors of its reads and then those of its exclusive
/// ors.
#[derive(Debug)]
pub(super) struct StripeBuffer<B> {
    /// The sectors of the request in this stripe.
    pub(super) part: Range<Lbn>,
    /// Whether the request covers the whole stripe.
    pub(super) is_whole: bool,
    pub(super) health: StripeHealth,
    pub(super) plan: StripePlan,
    /// Whether the plan's reads are complete and did not fail.
    is_read: bool,
    memory: Option<B>,
    sector_bytes: usize,
}

/// The stripe buffers of a request, one per stripe. They are kept for later requests.
#[derive(Debug)]
pub(super) struct StripeBuffers<B> {
    pub(super) buffers: Vec<StripeBuffer<B>>,
    /// The entries of the request's journal record.
    pub(super) entries: Vec<RecordEntry>,
}

fn length(rows: &Range<u64>) -> usize {
    (rows.end - rows.start) as usize
}

impl<B: DerefMut<Target = [u8]>> StripeBuffer<B> {
    fn sectors(&self) -> usize {
        let reads = self.plan.reads.iter().map(|read| length(&read.rows));
        let sums = self.plan.sums.iter().map(|sum| length(&sum.rows));
        reads.chain(sums).sum()
    }

    fn memory(&self) -> &[u8] {
        self.memory.as_deref().unwrap_or(&[])
    }

    /// Returns the byte offset at which the exclusive ors begin.
    fn sums_at(&self) -> usize {
        let reads = self.plan.reads.iter().map(|read| length(&read.rows));
        reads.sum::<usize>() * self.sector_bytes
    }

    fn reads(&mut self) -> Ops<'_> {
        let mut rest = self.memory.as_deref_mut().unwrap_or(&mut []);
        let mut ops = Ops::new();
        for read in &self.plan.reads {
            let bytes = length(&read.rows) * self.sector_bytes;
            let (now, later) = rest.split_at_mut(bytes);
            ops.push(Op::read(read.member, read.lbn, now));
            rest = later;
        }
        ops
    }

    /// Returns the range of bytes in memory that hold a member's old rows. It has only the first of
    /// them if the others are elsewhere.
    fn old_at(&self, member: usize, rows: &Range<u64>) -> Option<Range<usize>> {
        let mut at = 0;
        let reads = self.plan.reads.iter().map(|read| (read.member, &read.rows));
        let sums = self.plan.sums.iter();
        let sums = sums.map(|sum| match sum.age {
            Version::Old => (sum.member, &sum.rows),
            Version::New => (usize::MAX, &sum.rows),
        });
        for (of, has) in reads.chain(sums) {
            if of == member && has.contains(&rows.start) {
                let start = at + (rows.start - has.start) as usize * self.sector_bytes;
                let end = rows.end.min(has.end);
                return Some(start..start + length(&(rows.start..end)) * self.sector_bytes);
            }
            at += length(has) * self.sector_bytes;
        }
        None
    }

    /// Returns the old contents of a member's rows, or of the first of them.
    pub(super) fn old(&self, member: usize, rows: &Range<u64>) -> Option<&[u8]> {
        Some(&self.memory()[self.old_at(member, rows)?])
    }

    /// Returns the contents to be written to an extent.
    pub(super) fn new_contents<'a>(&'a self, extent: &RowExtent, given: WriteData<'a>) -> &'a [u8] {
        let bytes = length(&extent.rows) * self.sector_bytes;
        let mut at = self.sums_at();
        for sum in &self.plan.sums {
            if sum.member == extent.member && sum.rows.start == extent.rows.start {
                // Exclusive ors that are written as one extent are adjacent in memory.
                return &self.memory()[at..at + bytes];
            }
            at += length(&sum.rows) * self.sector_bytes;
        }
        let first = extent.logical.expect("parity has an exclusive or");
        let from = (first.0 - given.first.0) as usize * self.sector_bytes;
        &given.bytes[from..from + bytes]
    }

    /// Returns all extents to be written, with their contents.
    pub(super) fn writes<'a>(
        &'a self,
        given: WriteData<'a>,
    ) -> impl Iterator<Item = (&'a RowExtent, &'a [u8])> {
        let writes = self.plan.writes.iter();
        writes.map(move |write| (write, self.new_contents(write, given)))
    }

    fn sum(&mut self, stripe: &Stripe<'_>, given: WriteData<'_>) {
        let mut at = self.sums_at();
        for index in 0..self.plan.sums.len() {
            let XorStep { rows, old, new, .. } = &self.plan.sums[index];
            let old_at: SmallVec<[Range<usize>; 8]> = old
                .iter()
                .filter_map(|member| self.old_at(member, rows))
                .collect();
            let bytes = length(rows) * self.sector_bytes;
            let new: SmallVec<[&[u8]; 8]> = new
                .iter()
                .map(|member| {
                    let first = stripe
                        .logical_at(member, rows.start)
                        .expect("the chunk holds data");
                    let from = (first.0 - given.first.0) as usize * self.sector_bytes;
                    &given.bytes[from..from + bytes]
                })
                .collect();
            let memory = self.memory.as_deref_mut().unwrap_or(&mut []);
            let (before, after) = memory.split_at_mut(at);
            let sources = old_at.into_iter().map(|range| &before[range]).chain(new);
            xor_into(&mut after[..bytes], sources);
            at += bytes;
        }
    }

    /// Copies the sectors that a read plan has read or computed.
    pub(super) fn copy_old(&self, stripe: &Stripe<'_>, sectors: &Range<Lbn>, into: &mut [u8]) {
        let mut filled = 0;
        for chunk in stripe.chunks() {
            let ChunkContents::Data(k) = chunk.holds else {
                continue;
            };
            let all = stripe.logical_of(k);
            let (from, to) = (all.start.max(sectors.start), all.end.min(sectors.end));
            if from >= to {
                continue;
            }
            let mut rows = from.0 - all.start.0..to.0 - all.start.0;
            let mut at = (from.0 - sectors.start.0) as usize * self.sector_bytes;
            // Only one of several replicas is read.
            while let Some(old) = self.old(chunk.member, &rows).filter(|_| !rows.is_empty()) {
                into[at..at + old.len()].copy_from_slice(old);
                at += old.len();
                rows.start += (old.len() / self.sector_bytes) as u64;
                filled += old.len();
            }
        }
        assert_eq!(
            filled,
            into.len(),
            "all requested sectors are read or computed"
        );
    }
}

impl<M: MemberIo> Volume<M> {
    /// Returns stripe buffers for a request. Buffers that are not passed to `return_buffers` are
    /// freed.
    pub(super) fn take_buffers(&self) -> StripeBuffers<M::Buffer> {
        let mut idle = self.idle.lock().expect("no holder of the lock panics");
        idle.pop().unwrap_or_else(|| StripeBuffers {
            buffers: Vec::new(),
            entries: Vec::new(),
        })
    }

    /// Keeps stripe buffers for later requests, but frees the memory for sectors.
    pub(super) fn return_buffers(&self, mut buffers: StripeBuffers<M::Buffer>) {
        for buffer in &mut buffers.buffers {
            buffer.memory = None;
        }
        buffers.entries.clear();
        let mut idle = self.idle.lock().expect("no holder of the lock panics");
        if idle.len() < STRIPE_BUFFERS_KEPT {
            idle.push(buffers);
        }
    }

    /// Prepares a stripe buffer for a part of a stripe. The lock of the stripe must be held, except
    /// for reads (see [`Volume::is_live`]).
    pub(super) fn prepare_buffer<'a>(
        &self,
        buffers: &'a mut StripeBuffers<M::Buffer>,
        number: usize,
        state: &State,
        stripe: &Stripe<'_>,
        part: Range<Lbn>,
    ) -> &'a mut StripeBuffer<M::Buffer> {
        while buffers.buffers.len() <= number {
            buffers.buffers.push(StripeBuffer {
                part: Lbn(0)..Lbn(0),
                is_whole: false,
                health: StripeHealth::GOOD,
                plan: StripePlan::default(),
                is_read: false,
                memory: None,
                sector_bytes: self.sector_bytes,
            });
        }
        let buffer = &mut buffers.buffers[number];
        buffer.is_whole = part == stripe.logical();
        buffer.part = part;
        buffer.health = self.health(state, stripe);
        buffer.plan.stripe = stripe.number();
        buffer.is_read = false;
        buffer
    }

    /// Returns the health of a stripe. The lock of the stripe must be held, except for reads (see
    /// [`Volume::is_live`]).
    fn health(&self, state: &State, stripe: &Stripe<'_>) -> StripeHealth {
        let number = stripe.number();
        let failed = (0..stripe.members()).filter(|member| !self.is_live(state, *member, number));
        StripeHealth {
            failed: failed.collect(),
            unreadable: MemberSet::NONE,
            unsynced: stripe.parity_member().is_some() && number >= state.superblock.synced,
        }
    }

    /// Carries out all outstanding reads of the plans at once, and records the members that failed
    /// to read. Returns whether all reads succeeded.
    pub(super) async fn fetch(&self, buffers: &mut [StripeBuffer<M::Buffer>]) -> bool {
        for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_read) {
            let bytes = buffer.sectors() * self.sector_bytes;
            // The old buffer is released first, to save memory.
            buffer.memory = None;
            buffer.memory = (bytes > 0).then(|| self.members.buffer(bytes));
        }
        let mut ops = Ops::new();
        let mut owners: SmallVec<[usize; AT_ONCE]> = SmallVec::new();
        for (owner, buffer) in buffers
            .iter_mut()
            .enumerate()
            .filter(|(_, buffer)| !buffer.is_read)
        {
            buffer.is_read = true;
            ops.extend(buffer.reads());
            owners.resize(ops.len(), owner);
        }
        if ops.is_empty() {
            return true;
        }
        self.members.run(&mut ops).await;
        let failed = ops.iter().zip(owners).filter(|(op, _)| op.outcome.is_err());
        let failed: SmallVec<[(usize, usize); 4]> =
            failed.map(|(op, owner)| (owner, op.member)).collect();
        drop(ops);
        for (owner, member) in &failed {
            let buffer = &mut buffers[*owner];
            buffer.is_read = false;
            buffer.health.unreadable = buffer.health.unreadable.with(*member);
        }
        failed.is_empty()
    }

    /// Plans, reads and computes exclusive ors. Plans again if a member cannot read. The caller
    /// holds the stripes' locks and does the writes.
    pub(super) async fn carry_out(
        &self,
        buffers: &mut [StripeBuffer<M::Buffer>],
        given: WriteData<'_>,
        plan: impl Fn(&Stripe<'_>, Range<Lbn>, StripeHealth, &mut StripePlan) -> Result<(), RaidError>,
    ) -> Result<(), VolumeError> {
        loop {
            for buffer in buffers.iter_mut().filter(|buffer| !buffer.is_read) {
                let stripe = self.stripe(buffer.plan.stripe);
                let planned = plan(
                    &stripe,
                    buffer.part.clone(),
                    buffer.health,
                    &mut buffer.plan,
                );
                planned.map_err(no_plan)?;
            }
            if self.fetch(buffers).await {
                break;
            }
        }
        self.sum(buffers, given);
        Ok(())
    }

    /// Computes the exclusive ors of the data that has been read.
    pub(super) fn sum(&self, buffers: &mut [StripeBuffer<M::Buffer>], given: WriteData<'_>) {
        for buffer in buffers {
            let stripe = self.stripe(buffer.plan.stripe);
            buffer.sum(&stripe, given);
        }
    }

    /// Carries out the writes of plans. Returns the members that failed.
    pub(super) async fn write_planned(
        &self,
        buffers: &[StripeBuffer<M::Buffer>],
        given: WriteData<'_>,
    ) -> Failures {
        let mut ops = Ops::new();
        let mut failed = Failures::new();
        for (write, bytes) in buffers.iter().flat_map(|buffer| buffer.writes(given)) {
            ops.push(Op::write(write.member, write.lbn, bytes));
            if ops.len() == AT_ONCE {
                self.members.run(&mut ops).await;
                failed.extend(failures(&ops));
                ops.clear();
            }
        }
        if !ops.is_empty() {
            self.members.run(&mut ops).await;
            failed.extend(failures(&ops));
        }
        failed
    }
}

//! The head of the log: writing chunks and checkpoints.

use super::format::{Checkpoint, Entry, Summary};
use super::place::LogPlace;
use super::{Completion, Log, LogOp};
use traxtent_units::Sectors;

impl Log {
    /// Queues an operation.
    pub(super) fn issue(&mut self, op: LogOp, then: Completion) {
        self.steps.push_back((op, then));
    }

    /// Adds an entry, with its block if it has one, to the chunk. Writes the chunk first if it is
    /// full.
    pub(super) fn append(&mut self, entry: Entry, data: &[u8], youngest: u64) {
        let blocks = usize::from(!data.is_empty());
        let room = self.room_in_segment();
        if !self.chunk.is_empty() && self.chunk.sectors_with(self.shape, 1, blocks) > room {
            self.seal();
        }
        self.chunk.push(entry, data, youngest);
    }

    /// Writes the chunk if it is not empty, and moves the head past it.
    pub(super) fn seal(&mut self) {
        let chunk = std::mem::take(&mut self.chunk);
        if chunk.is_empty() {
            return;
        }
        let (shape, head) = (self.shape, self.head);
        let sectors = chunk.sectors_with(shape, 0, 0);
        assert!(
            sectors <= self.room_in_segment(),
            "the chunk does not fit in its segment"
        );
        let line = self.table.line(head.segment);
        if head.at == line.first {
            line.youngest = 0;
        }
        line.youngest = line.youngest.max(chunk.youngest);

        self.head.at += Sectors(sectors);
        self.head.sequence += 1;
        if self.room_in_segment() < shape.least_chunk() {
            let next = self.table.next_free(head.segment);
            let next = next.expect("the reserve keeps segments free");
            self.table.take(next);
            self.head.segment = next;
            self.head.at = self.table.lines()[next].first;
        }

        let summary = Summary {
            id: self.id,
            epoch: head.epoch,
            sequence: head.sequence,
            at: head.at,
            next: self.head.at,
            youngest: chunk.youngest,
            entries: chunk.entries.clone(),
        };
        for (slot, (entry, place)) in summary.placed(shape).enumerate() {
            match entry {
                // A version that was trimmed in this same chunk is already dead.
                Entry::Data { block, .. } if chunk.is_newest(block, slot) => {
                    self.move_block(block, place);
                }
                Entry::Map { page, .. } => self.move_page(page, place),
                Entry::Data { .. } | Entry::Trim { .. } => {}
            }
        }
        *match chunk.entries[0] {
            Entry::Map { .. } => &mut self.traffic.map_written,
            _ if self.pass.is_some() => &mut self.traffic.cleaning_written,
            _ => &mut self.traffic.new_written,
        } += sectors;
        let mut data = summary.encode(shape);
        data.extend_from_slice(&chunk.data);
        self.issue(LogOp::Write { lbn: head.at, data }, Completion::Nothing);
        self.unflushed = true;
    }

    /// Queues a flush if anything was written since the last one.
    pub(super) fn flush(&mut self) {
        if std::mem::take(&mut self.unflushed) {
            self.issue(LogOp::Flush, Completion::Nothing);
        }
    }

    /// Writes the changed pages of the index to the log, then a checkpoint to the next region in
    /// turn. Segments are freed once the checkpoint is durable.
    pub(super) fn write_checkpoint(&mut self) {
        self.seal();
        for page in self.index.take_dirty() {
            let data = self.index.page_bytes(page);
            let crc = crc32fast::hash(&data);
            self.append(Entry::Map { page, crc }, &data, 0);
        }
        self.seal();
        self.flush();

        self.number += 1;
        let checkpoint = Checkpoint {
            id: self.id,
            number: self.number,
            epoch: self.head.epoch,
            sequence: self.head.sequence,
            head: self.head.at,
            clock: self.clock,
            segments: self.table.lines().to_vec(),
            pages: self
                .index
                .pages()
                .iter()
                .map(|page| page.as_written())
                .collect(),
        };
        let data = checkpoint.encode(self.shape);
        let lbn = self.superblock.region(checkpoint.region());
        let sectors = data.len() as u64 / u64::from(self.shape.sector_bytes);
        self.traffic.checkpoints_written += sectors;
        self.issue(LogOp::Write { lbn, data }, Completion::Nothing);
        self.issue(LogOp::Flush, Completion::Committed);
    }

    /// Handles a checkpoint that became durable: frees the segments without live blocks, except the
    /// one being written, and ends the cleaning pass.
    pub(super) fn committed(&mut self) {
        self.table.release(self.head.segment);
        self.end_pass();
    }

    /// Records a block's new place.
    pub(super) fn move_block(&mut self, block: u64, to: LogPlace) {
        let from = self.index.set(block, to);
        self.moved(from, to);
    }

    fn move_page(&mut self, page: u64, to: LogPlace) {
        let from = self.index.set_page(page, to);
        self.moved(from, to);
    }

    fn moved(&mut self, from: LogPlace, to: LogPlace) {
        let block = self.shape.block_sectors.into();
        if let Some(segment) = from
            .as_written()
            .and_then(|from| self.table.of(from.lbn, block))
        {
            self.table.line(segment).live -= 1;
        }
        if let Some(segment) = to.as_written().and_then(|to| self.table.of(to.lbn, block)) {
            self.table.line(segment).live += 1;
        }
    }

    pub(super) fn room_in_segment(&self) -> u64 {
        self.table.lines()[self.head.segment].end().0 - self.head.at.0
    }
}

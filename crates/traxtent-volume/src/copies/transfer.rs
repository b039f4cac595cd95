//! Transfers of blocks between memory and their replicas.

use std::sync::atomic::Ordering;

use super::queue::Places;
use super::{
    CopiesError, DEVICE, Failed, MemberClock, NoSpace, Op, PENDING_BYTES_MAX, Piece,
    ReplicatedVolume, State,
};
use traxtent_layout::tpl::{BlockHome, BlockRun};
use traxtent_units::{Lbn, Sectors};

impl<M: MemberClock> ReplicatedVolume<M> {
    /// Writes the same data to several places, in the order in which they pass.
    pub(super) async fn write_all(
        &self,
        to: &[Lbn],
        bytes: &[u8],
        is_work: bool,
    ) -> Result<(), CopiesError> {
        let mut left = to.to_vec();
        self.reserve(&left, bytes)?;
        while !left.is_empty() {
            let turn = self.turn(left.iter().copied().collect(), is_work).await;
            let place = left.swap_remove(turn.index);
            self.queue.update_head(|head| head.moved_to(place));
            self.one(Op::write(DEVICE, place, bytes)).await?;
        }
        Ok(())
    }

    /// Reads a piece whose track is locked.
    pub(super) async fn read_piece(
        &self,
        piece: Piece,
        into: &mut [u8],
    ) -> Result<(), CopiesError> {
        let run = piece.run;
        let places: Option<Places> = {
            let mut state = self.state();
            state.track = Some(run.home.track);
            if !state.tpl.holds(run.home) {
                into.fill(0);
                return Ok(());
            }
            let mask = state.tpl.current(run);
            let places = state.tpl.places(run, mask);
            (mask != 0).then(|| places.map(|(_, lbn)| lbn + Sectors(piece.from)).collect())
        };
        if let Some(places) = places {
            let turn = self.turn(places.clone(), false).await;
            let lbn = places[turn.index];
            let sent = self.members.now();
            let read = self.one(Op::read(DEVICE, lbn, into)).await;
            let completed = self.members.now();
            let sectors = piece.sectors;
            self.queue.update_head(|head| match read {
                // Only reads of the length used in the survey refine the predictions.
                Ok(()) if sectors == self.block_sectors => {
                    head.completed(lbn, sectors as u32, sent, completed);
                }
                _ => head.moved_to(lbn),
            });
            if read.is_ok() {
                return Ok(());
            }
        }
        // The blocks have no current replica in common, or the chosen one cannot be read.
        let mut rest = into;
        for (run, from, sectors) in self.blocks_of(piece) {
            let (part, others) = rest.split_at_mut(sectors as usize * self.sector_bytes);
            rest = others;
            self.read_block(Piece { run, from, sectors }, part).await?;
        }
        Ok(())
    }

    /// Reads sectors of one block from any current replica that can be read, and records the
    /// replicas that failed before. If all fail, reads sector by sector.
    async fn read_block(&self, piece: Piece, into: &mut [u8]) -> Result<(), CopiesError> {
        let run = piece.run;
        let mut failed = 0;
        loop {
            let places: Vec<(u32, Lbn)> = {
                let state = self.state();
                let mask = state.tpl.current(run) & !failed;
                state.tpl.places(run, mask).collect()
            };
            if places.is_empty() {
                // Different sectors may be unreadable in different replicas.
                return self.read_sectors(piece, into).await;
            }
            let from = Sectors(piece.from);
            let lbns: Places = places.iter().map(|(_, lbn)| *lbn + from).collect();
            let turn = self.turn(lbns, false).await;
            let (copy, lbn) = places[turn.index];
            let lbn = lbn + from;
            self.queue.update_head(|head| head.moved_to(lbn));
            let read = self.one(Op::read(DEVICE, lbn, into)).await;
            drop(turn);
            match read {
                Ok(()) => break,
                Err(Failed) => failed |= 1 << copy,
            }
        }
        if failed != 0 {
            let mut state = self.state();
            if state.tpl.record_failure(run, failed) {
                *state.unreadable.entry(run.home).or_default() |= failed;
            }
        }
        Ok(())
    }

    /// Reads a block sector by sector, each sector from any current replica that can supply it. A
    /// complete result is kept, and later written to all these replicas.
    async fn read_sectors(&self, piece: Piece, into: &mut [u8]) -> Result<(), CopiesError> {
        let run = piece.run;
        let places: Vec<Lbn> = {
            let state = self.state();
            let places = state.tpl.places(run, state.tpl.current(run));
            places.map(|(_, lbn)| lbn).collect()
        };
        let mut block = vec![0; self.block_bytes()];
        let mut whole = true;
        for (sector, bytes) in (0..).zip(block.chunks_exact_mut(self.sector_bytes)) {
            let mut found = false;
            for place in &places {
                let lbn = *place + Sectors(sector);
                let _turn = self.turn([lbn].into_iter().collect(), false).await;
                self.queue.update_head(|head| head.moved_to(lbn));
                if self.one(Op::read(DEVICE, lbn, bytes)).await.is_ok() {
                    found = true;
                    break;
                }
            }
            whole &= found;
            if !found && (piece.from..piece.from + piece.sectors).contains(&sector) {
                let first = self.sector_of(run);
                return Err(CopiesError::Unreadable(first + Sectors(sector)));
            }
        }
        let from = piece.from as usize * self.sector_bytes;
        into.copy_from_slice(&block[from..from + into.len()]);
        if whole {
            self.state().rebuilt_blocks.insert(run.home, block.into());
        }
        Ok(())
    }

    /// Writes a piece. Its track must be locked, and its run prepared.
    pub(super) async fn write_piece(
        &self,
        piece: Piece,
        bytes: &[u8],
        first: bool,
    ) -> Result<(), CopiesError> {
        let size = u64::from(piece.run.blocks) * self.block_sectors;
        if piece.sectors == size {
            return self.write_run(piece.run, bytes, first).await;
        }
        // A partial write is combined with the rest of the run.
        let mut whole = self.members.buffer(size as usize * self.sector_bytes);
        let all = Piece {
            run: piece.run,
            from: 0,
            sectors: size,
        };
        self.read_piece(all, &mut whole).await?;
        let from = piece.from as usize * self.sector_bytes;
        whole[from..from + bytes.len()].copy_from_slice(bytes);
        self.write_run(piece.run, &whole, first).await
    }

    /// Writes whole blocks to one replica. With `first`, it is the first replica of each block.
    /// Otherwise, it is the replica that passes under the head first; another replica is written if
    /// that write fails, and all replicas are written if too much data is out of date.
    async fn write_run(&self, run: BlockRun, bytes: &[u8], first: bool) -> Result<(), CopiesError> {
        let (mut left, is_full): (Vec<(u32, Lbn)>, bool) = {
            let mut state = self.state();
            state.track = Some(run.home.track);
            let pending_bytes = (state.pending.len() + run.blocks as usize) * self.block_bytes();
            let writable = state.tpl.writable(run);
            let mask = if first { writable & 1 } else { writable };
            (
                state.tpl.places(run, mask).collect(),
                pending_bytes > PENDING_BYTES_MAX,
            )
        };
        let lbns: Places = left.iter().map(|(_, lbn)| *lbn).collect();
        self.reserve(&lbns, bytes)?;
        let (mut written, mut failed) = (0, 0);
        while !left.is_empty() && (written == 0 || is_full) {
            let lbns: Places = left.iter().map(|(_, lbn)| *lbn).collect();
            let turn = self.turn(lbns, false).await;
            let (copy, lbn) = left.swap_remove(turn.index);
            self.queue.update_head(|head| head.moved_to(lbn));
            match self.one(Op::write(DEVICE, lbn, bytes)).await {
                Ok(()) => written |= 1 << copy,
                Err(Failed) => failed |= 1 << copy,
            }
        }
        let mut state = self.state();
        if written == 0 {
            // The contents are unknown after a failed write.
            for home in run.homes() {
                let _ = state
                    .tpl
                    .record_failure(BlockRun { home, blocks: 1 }, failed);
            }
            return Err(CopiesError::Unwritable(self.sector_of_locked(&state, run)));
        }
        state.tpl.record_write(run, written)?;
        for (home, block) in run.homes().zip(bytes.chunks_exact(self.block_bytes())) {
            let one = BlockRun { home, blocks: 1 };
            // Failures to read the earlier contents no longer matter.
            state.unreadable.remove(&home);
            state.rebuilt_blocks.remove(&home);
            if failed != 0 {
                *state.unwritable.entry(home).or_default() |= failed;
            }
            if state.tpl.current(one) == state.tpl.writable(one) {
                state.pending.remove(&home)
            } else {
                state.pending.insert(home, block.into())
            };
        }
        Ok(())
    }

    /// Checks that the device has space for `bytes` at each of several places.
    fn reserve(&self, places: &[Lbn], bytes: &[u8]) -> Result<(), NoSpace> {
        let sectors = Sectors((bytes.len() / self.sector_bytes) as u64);
        let mut places = places.iter();
        places.try_for_each(|lbn| self.members.reserve(DEVICE, *lbn..*lbn + sectors))
    }

    /// Updates the replicas in the mask `copies` of blocks. Returns whether all could be written.
    /// The track must be locked.
    pub(super) async fn update_replicas(
        &self,
        run: BlockRun,
        copies: u32,
        is_work: bool,
    ) -> Result<bool, CopiesError> {
        let mut bytes = Vec::with_capacity(run.blocks as usize * self.block_bytes());
        for home in run.homes() {
            let kept = self.state().pending.get(&home).cloned();
            if let Some(kept) = kept {
                bytes.extend(kept);
                continue;
            }
            let begin = bytes.len();
            bytes.resize(begin + self.block_bytes(), 0);
            let piece = Piece {
                run: BlockRun { home, blocks: 1 },
                from: 0,
                sectors: self.block_sectors,
            };
            self.read_block(piece, &mut bytes[begin..]).await?;
        }
        let mut left: Vec<(u32, Lbn)> = {
            let state = self.state();
            state
                .tpl
                .places(run, copies & state.tpl.writable(run))
                .collect()
        };
        let mut all = true;
        while !left.is_empty() {
            let lbns: Places = left.iter().map(|(_, lbn)| *lbn).collect();
            let turn = self.turn(lbns, is_work).await;
            let (copy, lbn) = left.swap_remove(turn.index);
            self.queue.update_head(|head| head.moved_to(lbn));
            let wrote = self.one(Op::write(DEVICE, lbn, &bytes)).await;
            drop(turn);
            let mut state = self.state();
            match wrote {
                Ok(()) => {
                    state.tpl.record_sync(run, 1 << copy);
                    run.homes()
                        .for_each(|home| self.note_repaired(&mut state, home, copy));
                }
                Err(Failed) => {
                    all = false;
                    for home in run.homes() {
                        *state.unwritable.entry(home).or_default() |= 1 << copy;
                    }
                }
            }
        }
        let mut state = self.state();
        for home in run.homes() {
            let one = BlockRun { home, blocks: 1 };
            if state.tpl.current(one) == state.tpl.writable(one) {
                state.pending.remove(&home);
            }
        }
        Ok(all)
    }

    /// Counts a rewritten replica as repaired, if it could not be read before.
    fn note_repaired(&self, state: &mut State, home: BlockHome, copy: u32) {
        let Some(unread) = state.unreadable.get_mut(&home) else {
            return;
        };
        if *unread >> copy & 1 == 1 {
            *unread &= !(1 << copy);
            self.repaired.fetch_add(1, Ordering::Relaxed);
        }
        if *unread == 0 {
            state.unreadable.remove(&home);
        }
    }
}

//! Small files that are laid out together and read together.
//!
//! Paper T, section 5.3, expects such grouping, on traxtents, to achieve the gain that the paper
//! measured for single requests. As in that measurement (tworeq), one request waits at the disk
//! while another is served: there are two clients, and each reads all files of one group after
//! another. The groups are in random order. Names and inodes are in memory.

use traxtent_layout::AllocatorKind;
use traxtent_units::Block;
use traxtent_units::Rng;

use super::access::{BlockState, OpenFile};
use super::file::FileId;
use super::simulated_host::SimulatedHost;

/// The size of a file in bytes: one block.
const FILE_BYTES: u64 = 8 * 1024;

/// Reads `count` groups of files with two clients. Each group has as many blocks as a track.
/// Returns the files per second.
pub fn read_groups(host: &mut SimulatedHost, count: usize, seed: u64) -> f64 {
    let mut groups = lay_out(host, count);
    shuffle(&mut groups, seed);
    let files: usize = groups.iter().map(Vec::len).sum();
    let start = host.now();
    let mut clients = [Client::default(), Client::default()];
    let mut left = groups.into_iter();
    while clients.iter_mut().any(|client| client.is_busy(&mut left)) {
        let mut all_wait = true;
        for client in &mut clients {
            while client.is_busy(&mut left) && client.step(host) {
                all_wait = false;
            }
        }
        if all_wait {
            host.wait();
        }
    }
    files as f64 / host.now().since(start).as_ms() * 1000.0
}

/// Shuffles a slice.
pub(super) fn shuffle<T>(things: &mut [T], seed: u64) {
    let mut rng = Rng::new(seed);
    for at in (1..things.len()).rev() {
        things.swap(at, rng.below(at as u64 + 1) as usize);
    }
}

/// Lays out groups of files. A group contains the files of one traxtent or, with conventional
/// placement, as many consecutive files as fit in a traxtent.
fn lay_out(host: &mut SimulatedHost, count: usize) -> Vec<Vec<FileId>> {
    let directory = host.directory(0);
    // The partition can begin within the first track.
    let track = host.space.partition().traxtents().nth(1);
    let blocks = track.map_or(1, |traxtent| traxtent.size().0);
    let files_each = (blocks * host.block_bytes() / FILE_BYTES) as usize;
    let mut groups: Vec<Vec<FileId>> = Vec::new();
    let mut home = None;
    while groups.len() <= count {
        let file = host.existing(directory, FILE_BYTES);
        let first = host.blocks(file)[0];
        let here = host.space.partition().traxtent_of(first);
        let here = here.map(|traxtent| traxtent.track);
        match groups.last_mut() {
            Some(group) if host.config.placement == AllocatorKind::Traxtent && here == home => {
                group.push(file);
            }
            Some(group)
                if host.config.placement == AllocatorKind::Conventional
                    && group.len() < files_each =>
            {
                group.push(file);
            }
            _ => groups.push(vec![file]),
        }
        home = here;
    }
    groups.pop();
    for group in &groups {
        host.group(group);
    }
    groups
}

/// A client that reads the files of its group, one after another.
#[derive(Debug, Default)]
struct Client {
    files: Vec<FileId>,
    reading: Option<(OpenFile, u64)>,
    waits_for: Option<Block>,
}

impl Client {
    /// Returns whether it has work to do. Takes the next group once the current one is finished.
    fn is_busy(&mut self, left: &mut impl Iterator<Item = Vec<FileId>>) -> bool {
        if self.reading.is_none() && self.files.is_empty() {
            self.files = left.next().unwrap_or_default();
        }
        self.reading.is_some() || !self.files.is_empty()
    }

    /// Reads one block. Returns false if the block is not in memory yet.
    fn step(&mut self, host: &mut SimulatedHost) -> bool {
        if self
            .waits_for
            .is_some_and(|block| !host.cache.is_in_memory(block))
        {
            return false;
        }
        let reading = self.reading.take().or_else(|| {
            let file = self.files.pop()?;
            Some((host.reopened(file), 0))
        });
        let Some((mut open, block)) = reading else {
            return false;
        };
        let state = host.request_block(&mut open, block, 1);
        self.waits_for = state.waits_for();
        if !matches!(state, BlockState::There) {
            self.reading = Some((open, block));
            return false;
        }
        let bytes = block * host.block_bytes()..(block + 1) * host.block_bytes();
        host.copy_from_block(&bytes, block);
        if bytes.end < FILE_BYTES {
            self.reading = Some((open, block + 1));
        }
        true
    }
}

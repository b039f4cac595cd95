//! A workload that ages a layout. Files are written, several at a time, and deleted at random,
//! until the free space is as fragmented as after long use. The workload is for tests, benchmarks
//! and experiments, and does not represent the measured history of any file system.

use super::partition::len;
use super::{Allocator, File, Placement};
use traxtent_units::Rng;
use traxtent_units::{Block, Blocks};

/// The parameters of an aging run.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Aging {
    /// The share of blocks in use at the end. After the first fill, it stays about the same.
    pub full: f64,
    /// The total number of blocks written, as a multiple of the number of blocks that can be
    /// allocated.
    pub turnover: f64,
    /// The size of the largest file. The logarithms of file sizes are uniformly distributed.
    pub file_max: Blocks,
    /// The number of files that are written at the same time, in random order.
    pub writers: u64,
    /// The largest number of blocks that a writer adds in each turn.
    pub cluster: Blocks,
}

impl Default for Aging {
    /// 80 % in use after five fills, by four writers of files of up to 4,096 blocks (32 MB of 8 KB
    /// blocks), eight blocks at a time. All values are assumed.
    fn default() -> Aging {
        Aging {
            full: 0.8,
            turnover: 5.0,
            file_max: Blocks(4096),
            writers: 4,
            cluster: Blocks(8),
        }
    }
}

/// A file that is being written.
#[derive(Clone, Debug)]
struct Writer {
    file: File,
    near: Block,
    left: Blocks,
}

impl Aging {
    /// Ages the layout that `allocator` manages, starting from its current state. Returns the files
    /// that it wrote and did not delete.
    pub fn run(&self, allocator: &mut Allocator, seed: u64) -> Vec<File> {
        let mut rng = Rng::new(seed);
        let blocks = allocator.space().blocks;
        let places = allocator.partition().blocks();
        let spare = Blocks((blocks.0 as f64 * (1.0 - self.full).max(0.0)) as u64);
        let mut to_write = (blocks.0 as f64 * self.turnover) as u64;
        let mut files = Vec::new();
        let writers = self.writers.max(1);
        let mut writing: Vec<_> = (0..writers).map(|_| self.begin(&mut rng, places)).collect();
        while to_write > 0 {
            while allocator.space().free <= spare && !files.is_empty() {
                delete(allocator, &mut files, &mut rng);
            }
            let writer = &mut writing[rng.below(writers) as usize];
            let count = writer.left.min(self.cluster).min(Blocks(to_write));
            let small = writer.file.blocks().0 == 0 && count == writer.left;
            let together =
                small.then(|| allocator.allocate(writer.near, count, Placement::Together));
            let next = || allocator.allocate(writer.near, count, Placement::Next);
            let Some(extent) = together.flatten().or_else(next) else {
                break;
            };
            to_write -= len(&extent).0;
            writer.near = extent.end;
            writer.left -= len(&extent);
            writer.file.push(extent);
            if writer.left.0 == 0 {
                let done = std::mem::replace(writer, self.begin(&mut rng, places));
                files.push(done.file);
            }
        }
        files.extend(writing.into_iter().map(|writer| writer.file));
        files.retain(|file| file.blocks().0 > 0);
        files
    }

    /// Starts a new file near a random block.
    fn begin(&self, rng: &mut Rng, places: Blocks) -> Writer {
        let most = self.file_max.0.max(1);
        let octave = 1 << rng.below(u64::from(most.ilog2()) + 1);
        Writer {
            file: File::new(),
            near: Block(rng.below(places.0)),
            left: Blocks((octave + rng.below(octave)).min(most)),
        }
    }
}

fn delete(allocator: &mut Allocator, files: &mut Vec<File>, rng: &mut Rng) {
    let file = files.swap_remove(rng.below(files.len() as u64) as usize);
    for extent in file.extents() {
        let freed = allocator.free(extent);
        freed.expect("a file's blocks are in use");
    }
}

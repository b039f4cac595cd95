//! The allocators compared with a list of blocks that is searched linearly.

use std::collections::BTreeSet;
use std::ops::Range;

use proptest::prelude::*;
use traxtent_layout::{
    Allocator, AllocatorKind, LayoutError, Partition, Placement, Reserve, Space,
};
use traxtent_units::{Block, Blocks};

use super::{blocks, map, numbers, partition};
use crate::random::Random;

/// An allocator, and a list of the blocks in use.
struct Watched {
    allocator: Allocator,
    used: BTreeSet<Block>,
    extents: Vec<Range<Block>>,
}

impl Watched {
    fn new(partition: Partition, strategy: AllocatorKind) -> Watched {
        Watched {
            allocator: Allocator::new(partition, strategy),
            used: BTreeSet::new(),
            extents: Vec::new(),
        }
    }

    /// Returns the regions as ranges, in order.
    fn regions(&self) -> Vec<Range<Block>> {
        let partition = self.allocator.partition();
        match self.allocator.strategy() {
            AllocatorKind::Traxtent => partition
                .traxtents()
                .map(|traxtent| traxtent.blocks)
                .collect(),
            AllocatorKind::Conventional => {
                let (end, group) = (partition.blocks().0, Allocator::GROUP.0);
                let starts = (0..end).step_by(group as usize);
                starts
                    .map(|start| blocks(start..end.min(start + group)))
                    .collect()
            }
        }
    }

    fn free_run(&self, run: &Range<Block>) -> bool {
        numbers(run).all(|block| !self.used.contains(&block))
    }

    /// Returns the distance from `near` to the closest region for which `is` is true.
    fn closest(&self, near: Block, is: impl Fn(&Range<Block>) -> bool) -> Option<u64> {
        let regions = self.regions().into_iter().filter(is);
        regions.map(|region| distance(&region, near)).min()
    }

    fn longest_run(&self, region: &Range<Block>) -> u64 {
        let (mut longest, mut run) = (0, 0);
        for block in numbers(region) {
            run = if self.used.contains(&block) {
                0
            } else {
                run + 1
            };
            longest = longest.max(run);
        }
        longest
    }

    fn allocate(&mut self, near: Block, count: u64, placement: Placement) -> Option<Range<Block>> {
        let found = self.allocator.allocate(near, Blocks(count), placement);
        self.check(near, count, placement, found.as_ref());
        if let Some(found) = &found {
            self.used.extend(numbers(found));
            self.extents.push(found.clone());
        }
        found
    }

    /// Asserts the properties of every allocation.
    fn check(&self, near: Block, count: u64, placement: Placement, found: Option<&Range<Block>>) {
        let whole = |region: &Range<Block>| self.free_run(region);
        let Some(found) = found else {
            let some = |region: &Range<Block>| match placement {
                Placement::Next => self.longest_run(region) > 0,
                Placement::Together => self.longest_run(region) >= count,
                Placement::Partial => self.longest_run(region) >= count && !whole(region),
                Placement::Whole => whole(region),
            };
            assert_eq!(
                self.closest(near, some),
                None,
                "{placement:?} found nothing"
            );
            return;
        };
        let size = found.end.0 - found.start.0;
        assert!(self.free_run(found) && size > 0);
        let region = self
            .regions()
            .into_iter()
            .find(|region| region.contains(&found.start));
        let region = region.expect("no excluded block is allocated");
        assert!(
            found.end <= region.end,
            "the run crosses the end of its region"
        );
        let away = Some(distance(&region, near));
        match placement {
            Placement::Whole => {
                assert_eq!(*found, region);
                assert_eq!(away, self.closest(near, whole));
            }
            Placement::Together => {
                assert_eq!(size, count);
                assert_eq!(
                    away,
                    self.closest(near, |region| self.longest_run(region) >= count)
                );
            }
            Placement::Partial => {
                assert_eq!(size, count);
                let partial = |region: &_| self.longest_run(region) >= count && !whole(region);
                assert_eq!(away, self.closest(near, partial));
            }
            Placement::Next => {
                assert!(size <= count);
                let home = self
                    .regions()
                    .into_iter()
                    .find(|region| region.contains(&near));
                let run = home.map(|home| near..home.end.min(near + Blocks(count)));
                if let Some(run) = run.filter(|run| self.free_run(run)) {
                    assert_eq!(*found, run);
                } else if self.allocator.strategy() == AllocatorKind::Traxtent
                    && let Some(closest) = self.closest(near, whole)
                {
                    assert_eq!((found.start, away), (region.start, Some(closest)));
                }
            }
        }
    }

    fn recount(&self) -> Space {
        Space::count(self.allocator.partition(), |block| {
            !self.used.contains(&block)
        })
    }
}

/// Returns 0 if `near` is in the region, and otherwise its distance from the region's first block.
fn distance(region: &Range<Block>, near: Block) -> u64 {
    if region.contains(&near) {
        0
    } else {
        region.start.0.abs_diff(near.0)
    }
}

fn strategy() -> impl proptest::strategy::Strategy<Value = AllocatorKind> {
    prop::sample::select(AllocatorKind::ALL.to_vec())
}

proptest! {
    /// Is every allocation the closest of its kind, and free before? Does the traxtent allocator
    /// use no excluded block? Does the accounting equal a recount after each step?
    #[test]
    fn agrees_with_a_list(partition in partition(), strategy in strategy(), seed in any::<u64>()) {
        let mut random = Random(seed);
        let end = partition.blocks().0;
        let mut watched = Watched::new(partition, strategy);
        for _ in 0..60 {
            if random.once_in(3) && !watched.extents.is_empty() {
                let at = random.pick(0..watched.extents.len() as u64) as usize;
                // Frees each of two parts of an extent with a probability of 3/4.
                let extent = watched.extents.swap_remove(at);
                let cut = Block(random.pick(extent.start.0..extent.end.0 + 1));
                for part in [extent.start..cut, cut..extent.end] {
                    if part.start < part.end && !random.once_in(4) {
                        watched.allocator.free(&part).unwrap();
                        watched.used.retain(|block| !part.contains(block));
                    } else if part.start < part.end {
                        watched.extents.push(part);
                    }
                }
            } else {
                let near = Block(random.pick(0..end + 3));
                let (count, placement) = (random.pick(1..30), random.of(&Placement::ALL));
                watched.allocate(near, count, placement);
            }
            let space = watched.allocator.space();
            if strategy == AllocatorKind::Traxtent {
                prop_assert_eq!(space, watched.recount());
            } else {
                prop_assert_eq!(space.blocks, Blocks(end));
                prop_assert_eq!(space.free, Blocks(end - watched.used.len() as u64));
            }
            for block in (0..end + 2).map(Block) {
                let possible = block.0 < end
                    && (strategy == AllocatorKind::Conventional
                        || watched.allocator.partition().traxtent_of(block).is_some());
                let free = possible && !watched.used.contains(&block);
                prop_assert_eq!(watched.allocator.is_free(block), free);
            }
        }
    }

    /// Can a disk be filled with whole files to the last block, and emptied again?
    #[test]
    fn filled_and_emptied(partition in partition(), strategy in strategy(), seed in any::<u64>()) {
        let mut random = Random(seed);
        let mut allocator = Allocator::new(partition, strategy);
        let empty = allocator.space();
        let mut files = Vec::new();
        loop {
            let free = allocator.space().free;
            let (near, count) = (Block(random.pick(0..400)), Blocks(random.pick(1..60)));
            match allocator.allocate_file(near, count) {
                Ok(extents) => {
                    let sum: u64 = extents.iter().map(|extent| extent.end.0 - extent.start.0).sum();
                    prop_assert_eq!(sum, count.0);
                    prop_assert_eq!(allocator.space().free, free - count);
                    files.extend(extents);
                }
                Err(error) => {
                    prop_assert_eq!(error, LayoutError::Full { wanted: count, free });
                    prop_assert_eq!(allocator.space().free, free);
                    if free.0 == 0 {
                        break;
                    }
                }
            }
        }
        for extent in files {
            allocator.free(&extent).unwrap();
        }
        prop_assert_eq!(allocator.space(), empty);
    }
}

/// Returns an allocator for three tracks of 40, 44 and 36 sectors, with blocks of 8 sectors. The
/// traxtents are blocks 0 to 4, 5 to 9 and 11 to 14; block 10 is excluded.
fn three_tracks() -> Allocator {
    let partition = Partition::whole(map(0, &[40, 44, 36]), 8).unwrap();
    Allocator::new(partition, AllocatorKind::Traxtent)
}

/// Does a file continue after an excluded block, and at a boundary without one? Does it take the
/// longest free run if no traxtent is free?
#[test]
fn a_file_continues() {
    let mut allocator = three_tracks();
    let mut next = |near| allocator.allocate(Block(near), Blocks(4), Placement::Next);
    assert_eq!(next(3), Some(blocks(3..5)));
    assert_eq!(next(5), Some(blocks(5..9)));
    assert_eq!(next(9), Some(blocks(9..10)));
    assert_eq!(next(10), Some(blocks(11..15)));
    // No traxtent is entirely free, and no run has four blocks, so the longest one is returned.
    assert_eq!(next(15), Some(blocks(0..3)));
    assert_eq!(next(15), None);
}

/// Does a file lie in one traxtent if a free run there is long enough? Does it otherwise take a
/// whole traxtent first?
#[test]
fn files_by_size() {
    let mut allocator = three_tracks();
    let mut file = |near, count| allocator.allocate_file(Block(near), Blocks(count)).unwrap();
    assert_eq!(file(0, 3), [blocks(0..3)]);
    assert_eq!(file(3, 4), [blocks(5..9)]);
    assert_eq!(file(0, 5), [blocks(11..15), blocks(9..10)]);
}

/// Does a reserve keep a traxtent whole for a growing file, and return the unused part?
#[test]
fn reserves() {
    let mut allocator = three_tracks();
    let (mut one, mut other) = (Reserve::new(), Reserve::new());
    let mut grow = |reserve: &mut Reserve, near, count| {
        reserve
            .grow(&mut allocator, Block(near), Blocks(count))
            .unwrap()
    };
    assert_eq!(grow(&mut one, 0, 2), blocks(0..2));
    assert_eq!(grow(&mut other, 0, 2), blocks(5..7));
    assert_eq!(grow(&mut one, 2, 9), blocks(2..5));
    assert_eq!(grow(&mut one, 5, 1), blocks(11..12));
    assert_eq!(allocator.space().free, Blocks(0));
    one.release(&mut allocator).unwrap();
    other.release(&mut allocator).unwrap();
    assert_eq!(allocator.space().free, Blocks(6));
    assert_eq!(allocator.space().free_runs, 2);
}

/// Do small files follow one another in a traxtent, none of them across a boundary?
#[test]
fn small_files_gathered() {
    let mut allocator = three_tracks();
    let mut group = Reserve::new();
    let mut gather = |near, count| {
        group
            .gather(&mut allocator, Block(near), Blocks(count))
            .unwrap()
    };
    assert_eq!(gather(0, 2), Some(blocks(0..2)));
    assert_eq!(gather(14, 2), Some(blocks(2..4)));
    assert_eq!(gather(4, 2), Some(blocks(5..7)));
    assert_eq!(gather(4, 4), Some(blocks(11..15)));
    assert_eq!(gather(4, 2), Some(blocks(7..9)));
    assert_eq!(gather(4, 2), None);
    assert_eq!(allocator.space().free, Blocks(2));
}

/// Are impossible claims and frees refused, without any change? Are groups of 0 blocks refused?
#[test]
fn refusals() {
    let mut allocator = three_tracks();
    allocator.claim(&blocks(3..7)).unwrap();
    let before = allocator.space();
    for (range, claimed, freed) in [
        (2..5, "block 3 is already in use", "block 2 is already free"),
        (
            9..12,
            "block 10 is excluded: it spans a boundary between tracks",
            "block 9 is already free",
        ),
        (
            10..11,
            "block 10 is excluded: it spans a boundary between tracks",
            "block 10 is excluded: it spans a boundary between tracks",
        ),
        (
            14..16,
            "block 15 is beyond the end of the partition, which has 15 blocks",
            "block 15 is beyond the end of the partition, which has 15 blocks",
        ),
        (6..8, "block 6 is already in use", "block 7 is already free"),
    ] {
        let range = blocks(range);
        assert_eq!(allocator.claim(&range).unwrap_err().to_string(), claimed);
        assert_eq!(allocator.free(&range).unwrap_err().to_string(), freed);
        assert_eq!(allocator.space(), before);
    }
    allocator.free(&blocks(3..7)).unwrap();
    assert_eq!(allocator.space().free_traxtents, 3);
    let partition = allocator.partition().clone();
    let error = Allocator::in_groups(partition, Blocks(0)).unwrap_err();
    assert_eq!(
        error.to_string(),
        "a group of 0 blocks is not possible; a group needs at least 1 block and fewer than 2^32"
    );
}

/// Can a run of the conventional allocator cross a boundary?
#[test]
fn conventional_runs_ignore_tracks() {
    let partition = Partition::whole(map(0, &[40, 44, 36]), 8).unwrap();
    let mut allocator = Allocator::new(partition, AllocatorKind::Conventional);
    let found = allocator.allocate(Block(3), Blocks(9), Placement::Next);
    assert_eq!(found, Some(blocks(3..12)));
    let space = Space::count(allocator.partition(), |block| allocator.is_free(block));
    assert_eq!(
        (space.free, space.free_runs, space.free_traxtents),
        (Blocks(6), 2, 0)
    );
    assert_eq!(allocator.space().free, Blocks(6));
}

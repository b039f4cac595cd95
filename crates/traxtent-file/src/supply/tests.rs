//! Tests of the supply against a set of blocks that is searched from end to end.

use std::collections::BTreeMap;

use testkit::repeats;
use traxtent_units::Rng;

use super::*;
use crate::testing::{any_partition, run};

/// Available blocks, with the source of each.
struct Naive {
    partition: Partition,
    blocks: BTreeMap<u64, Source>,
}

impl Naive {
    fn has_all(&self, blocks: &Range<Block>) -> bool {
        (blocks.start.0..blocks.end.0).all(|block| self.blocks.contains_key(&block))
    }

    fn whole(&self) -> Vec<Traxtent> {
        let all = self.partition.traxtents();
        all.filter(|traxtent| self.has_all(&traxtent.blocks))
            .collect()
    }

    /// Returns the distance of the closest traxtent that is available as a whole, in tracks.
    fn closest_whole(&self, near: usize) -> Option<usize> {
        let tracks = self.whole().into_iter().map(|traxtent| traxtent.track);
        tracks.map(|track| track.abs_diff(near)).min()
    }

    /// Returns whether some traxtent that is not available as a whole has a run of `count` blocks.
    fn has_partial_run(&self, count: u64) -> bool {
        self.partition.traxtents().any(|traxtent| {
            let (start, end) = (traxtent.blocks.start.0, traxtent.blocks.end.0);
            let mut starts = start..(end + 1).saturating_sub(count);
            !self.has_all(&traxtent.blocks)
                && starts.any(|at| self.has_all(&(Block(at)..Block(at + count))))
        })
    }

    fn compare(&self, supply: &Supply, rng: &mut Rng, seed: u64) {
        let runs = supply.runs.values().map(|run| run.blocks.clone());
        let available = runs.flat_map(|blocks| blocks.start.0..blocks.end.0);
        assert!(available.eq(self.blocks.keys().copied()), "seed {seed}");
        assert_eq!(supply.whole_traxtents(), self.whole().len(), "seed {seed}");
        let near = Block(rng.below(self.partition.blocks().0));
        let last = self.partition.tracks().end - 1;
        let from = self.partition.traxtent_from(near);
        let track = from.map_or(last, |traxtent| traxtent.track);
        let found = supply.closest_whole(near);
        let distance = found.as_ref().map(|found| found.track.abs_diff(track));
        assert_eq!(distance, self.closest_whole(track), "seed {seed}");
        if let Some(found) = &found {
            assert!(self.has_all(&found.blocks), "seed {seed}: {found:?}");
        }
        let count = 1 + rng.below(8);
        match supply.closest_run(near, Blocks(count)) {
            Some(blocks) => {
                assert!(self.has_all(&blocks), "seed {seed}: {blocks:?}");
                assert_eq!(blocks.end.0 - blocks.start.0, count, "seed {seed}");
                let traxtent = self.partition.traxtent_of(blocks.start).unwrap();
                assert!(blocks.end <= traxtent.blocks.end, "seed {seed}: two tracks");
                // A whole track is broken only if nothing else has room.
                let is_broken = self.has_all(&traxtent.blocks);
                assert!(!is_broken || !self.has_partial_run(count), "seed {seed}");
            }
            None => {
                assert!(!self.has_partial_run(count), "seed {seed}");
                let fits = found.is_some_and(|found| found.size().0 >= count);
                assert!(!fits, "seed {seed}");
            }
        }
    }
}

/// Does the supply have the blocks, the whole tracks and the sources that it should have, after any
/// additions and removals?
#[test]
fn agrees_with_a_set_of_blocks() {
    for seed in 0..repeats(300) {
        let mut rng = Rng::new(seed);
        let tracks = 1 + rng.below(30);
        let partition = any_partition(&mut rng, tracks);
        let blocks = partition.blocks().0;
        let mut supply = Supply::new(partition.clone());
        let mut naive = Naive {
            partition,
            blocks: BTreeMap::new(),
        };
        for step in 0..80 {
            let start = rng.below(blocks);
            let end = (start + 1 + rng.below(40)).min(blocks);
            let is_taken = rng.below(3) == 0;
            let length = (start..end)
                .take_while(|block| naive.blocks.contains_key(block) == is_taken)
                .count() as u64;
            let range = start..start + length;
            if is_taken {
                let taken = supply.take(&(Block(range.start)..Block(range.end)));
                let taken = taken.into_iter().flat_map(|part| {
                    let blocks = part.blocks.start.0..part.blocks.end.0;
                    blocks.zip(part.source.block..).map(move |(block, at)| {
                        let donor = part.source.donor;
                        (block, Source { donor, block: at })
                    })
                });
                let expected = range.map(|block| (block, naive.blocks.remove(&block).unwrap()));
                let expected: Vec<_> = expected.collect();
                assert_eq!(taken.collect::<Vec<_>>(), expected, "seed {seed}");
            } else {
                let at = rng.below(1000);
                supply.add(run(range.clone(), step, at));
                naive.blocks.extend(range.zip(at..).map(|(block, at)| {
                    let source = Source {
                        donor: step,
                        block: at,
                    };
                    (block, source)
                }));
            }
            naive.compare(&supply, &mut rng, seed);
        }
    }
}

/// Is a block that is not available refused?
#[test]
#[should_panic(expected = "is not available")]
fn nothing_is_taken_twice() {
    let partition = any_partition(&mut Rng::new(1), 3);
    let mut supply = Supply::new(partition);
    supply.add(run(0..6, 0, 0));
    supply.take(&(Block(2)..Block(4)));
    supply.take(&(Block(3)..Block(5)));
}

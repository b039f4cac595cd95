//! Plans, carried out on blocks in memory.
//!
//! Each of these faults in the plan makes a test here fail: a move to blocks that are not
//! available, or that another move has used; a block that moves twice; a hole that is filled;
//! blocks in another order; the wrong source of a block; whole tracks that move without need; parts
//! of tracks that are left although tracks are free.

use std::iter;

use testkit::repeats;
use traxtent_map::TrackMap;
use traxtent_units::Rng;

use super::*;
use crate::forecast::forecast;
use crate::testing::{
    BLOCK_BYTES, Scene, any_partition, extents, is_whole, largest_track, regular_partition, run,
};

/// The contents of blocks, a file, and donors.
struct Disk {
    content: Vec<u64>,
    file: Vec<Option<u64>>,
    donors: Vec<Vec<u64>>,
    supply: Supply,
    moves: Vec<BlockMove>,
}

impl Disk {
    /// Creates a disk whose free blocks are held by some donors, in any order.
    fn new(rng: &mut Rng, scene: &Scene, partition: &Partition) -> Disk {
        let mut disk = Disk {
            content: (0..partition.blocks().0).map(|_| rng.bits()).collect(),
            file: scene.file.clone(),
            donors: vec![Vec::new(); 1 + rng.below(3) as usize],
            supply: Supply::new(partition.clone()),
            moves: Vec::new(),
        };
        let mut runs = scene.free_runs();
        while !runs.is_empty() {
            let blocks = runs.swap_remove(rng.below(runs.len() as u64) as usize);
            let donor = rng.below(disk.donors.len() as u64) as usize;
            let at = disk.donors[donor].len() as u64;
            disk.supply.add(run(blocks.clone(), donor, at));
            disk.donors[donor].extend(blocks);
        }
        disk
    }

    fn read(&self) -> Vec<Option<u64>> {
        let block = |block: &Option<u64>| block.map(|block| self.content[block as usize]);
        self.file.iter().map(block).collect()
    }

    /// Carries out a plan. Returns whether space was found for all of it.
    fn carry_out(&mut self, plan: &mut FilePlan, seed: u64) -> bool {
        let mut at = 0;
        loop {
            let step = match plan.next(&self.supply) {
                Step::Move(step) => step,
                Step::Done => return true,
                Step::Starved => return false,
            };
            assert!(step.file_block >= at, "seed {seed}: not in file order");
            let traxtent = self.supply.partition().traxtent_of(step.to.start);
            let end = traxtent.expect("not excluded").blocks.end;
            assert!(step.to.end <= end, "seed {seed}: a move to two tracks");
            let taken = self.supply.take(&step.to);
            at = step.file_block;
            for (run, old) in pairs(&taken, &step.from) {
                assert_eq!(len(&run.blocks), len(&old), "seed {seed}");
                self.exchange(at, &run, &old, seed);
                at += len(&old);
                self.supply.add(Run {
                    blocks: old,
                    source: run.source,
                });
            }
            assert_eq!(at - step.file_block, len(&step.to), "seed {seed}");
            self.moves.push(step);
        }
    }

    /// Exchanges blocks like the kernel: the file's data moves to a donor's blocks, and the donor
    /// gets the file's blocks.
    fn exchange(&mut self, at: u64, run: &Run, old: &Range<Block>, seed: u64) {
        let donor = &mut self.donors[run.source.donor];
        for index in 0..len(old) {
            let (new, old) = (run.blocks.start.0 + index, old.start.0 + index);
            let place = &mut self.file[(at + index) as usize];
            assert_eq!(*place, Some(old), "seed {seed}: not the blocks of the file");
            let given = &mut donor[(run.source.block + index) as usize];
            assert_eq!(*given, new, "seed {seed}: not the blocks of the donor");
            self.content[new as usize] = self.content[old as usize];
            self.content[old as usize] = !0;
            (*place, *given) = (Some(new), old);
        }
    }
}

fn len(blocks: &Range<Block>) -> u64 {
    blocks.end.0 - blocks.start.0
}

fn plan_of(file: &[Option<u64>], partition: &Partition) -> FilePlan {
    FilePlan::new(&extents(file), partition, BLOCK_BYTES)
}

fn whole_blocks(file: &[Option<u64>], partition: &Partition) -> u64 {
    let whole = is_whole(file, partition);
    whole.iter().filter(|whole| **whole).count() as u64
}

/// Does a file have the same content and the same holes after its plan, whatever the tracks, the
/// file and the free space are like? Do no more blocks move than the plan states?
#[test]
fn moves_keep_the_content() {
    for seed in 0..repeats(2000) {
        let mut rng = Rng::new(seed);
        let tracks = 2 + rng.below(60);
        let partition = any_partition(&mut rng, tracks);
        let room = partition.blocks().0;
        let scene = Scene::any(&mut rng, &partition, room);
        let mut disk = Disk::new(&mut rng, &scene, &partition);
        let content = disk.read();
        let mut plan = plan_of(&disk.file, &partition);
        let bound = plan.blocks().0;
        disk.carry_out(&mut plan, seed);
        assert_eq!(disk.read(), content, "seed {seed}");
        let moved: u64 = disk.moves.iter().map(|step| len(&step.to)).sum();
        assert!(moved <= bound, "seed {seed}: {moved} of {bound} moved");
    }
}

/// If whole tracks are free, is the goal missed by at most a part of a track for each run between
/// holes? Do the tracks that are whole stay if the goal is reached without moving them? Does
/// realigning again never reduce the share on whole tracks, and soon find nothing to do?
#[test]
fn free_tracks_are_used_and_whole_tracks_stay() {
    for seed in 0..repeats(1000) {
        let mut rng = Rng::new(seed);
        let partition = regular_partition(&mut rng, 160);
        let size = largest_track(&partition);
        let scene = Scene::any(&mut rng, &partition, 60 * size);
        let (blocks, runs) = (scene.blocks(), scene.runs());
        let whole = is_whole(&scene.file, &partition);
        let mut is_open = false;
        let mut gaps: Vec<u64> = Vec::new();
        for (at, block) in scene.file.iter().enumerate() {
            let is_gap = block.is_some() && !whole[at];
            match gaps.last_mut() {
                Some(last) if is_gap && is_open => *last += 1,
                _ if is_gap => gaps.push(1),
                _ => {}
            }
            is_open = is_gap;
        }
        let left: u64 = gaps.iter().map(|gap| gap % size).sum();
        let is_enough = left as f64 <= 0.05 * blocks as f64;
        let mut disk = Disk::new(&mut rng, &scene, &partition);
        let (mut before, mut rounds) = (whole_blocks(&disk.file, &partition), 0);
        loop {
            let mut plan = plan_of(&disk.file, &partition);
            disk.moves.clear();
            assert!(disk.carry_out(&mut plan, seed), "seed {seed}: starved");
            if disk.moves.is_empty() {
                break;
            }
            if rounds == 0 && is_enough {
                for step in &disk.moves {
                    let part = step.file_block..step.file_block + len(&step.to);
                    let stays = part.clone().all(|at| !whole[at as usize]);
                    assert!(stays, "seed {seed}: {part:?} was on a whole track");
                }
            }
            let after = whole_blocks(&disk.file, &partition);
            assert!(after >= before, "seed {seed}: {before} to {after} whole");
            let (left, most) = (blocks - after, blocks as f64 * 0.05);
            let most = if is_enough {
                most
            } else {
                most + (runs * (size - 1)) as f64
            };
            assert!(left as f64 <= most, "seed {seed}: {left} of {blocks} left");
            (before, rounds) = (after, rounds + 1);
            assert!(rounds < 4, "seed {seed}: it does not come to rest");
        }
    }
}

/// Is the goal missed by at most two tracks for each run between holes on a drive whose tracks end
/// within blocks, so that the result can only be estimated?
#[test]
fn the_goal_is_nearly_reached_on_a_drive() {
    for seed in 0..repeats(300) {
        let mut rng = Rng::new(seed);
        let size = 300 + rng.below(300) as u32;
        let partition = Partition::whole(TrackMap::from_sizes([size; 200]), 8).unwrap();
        let room = partition.blocks().0 / 3;
        let scene = Scene::any(&mut rng, &partition, room);
        let (blocks, runs) = (scene.blocks(), scene.runs());
        let mut disk = Disk::new(&mut rng, &scene, &partition);
        assert!(
            disk.carry_out(&mut plan_of(&disk.file, &partition), seed),
            "seed {seed}"
        );
        let left = blocks - whole_blocks(&disk.file, &partition);
        // A part of a track per run, and another track per run by which the estimate may be wrong.
        let most = blocks as f64 * 0.05 + (runs * largest_track(&partition)) as f64 * 2.0;
        assert!(
            left as f64 <= most,
            "seed {seed}: {left} of {blocks} left in {runs} runs"
        );
    }
}

/// Does a plan on irregular tracks, whose result can only be estimated, lose at most a track for
/// each stretch, and do such plans gain on the whole?
#[test]
fn irregular_tracks_gain_overall() {
    let (mut before, mut after) = (0, 0);
    for seed in 0..repeats(500) {
        let mut rng = Rng::new(seed);
        let partition = any_partition(&mut rng, 120);
        let room = partition.blocks().0 / 2;
        let scene = Scene::any(&mut rng, &partition, room);
        let mut disk = Disk::new(&mut rng, &scene, &partition);
        let old = whole_blocks(&disk.file, &partition);
        let mut plan = plan_of(&disk.file, &partition);
        let stretches = plan.stretches.len() as u64;
        disk.carry_out(&mut plan, seed);
        let new = whole_blocks(&disk.file, &partition);
        let loss = stretches * largest_track(&partition);
        assert!(new + loss >= old, "seed {seed}: {old} to {new}");
        (before, after) = (before + old, after + new);
    }
    // The gain is limited because often little space is free.
    assert!(4 * after > 5 * before, "{before} to {after}");
}

/// Does the forecast agree with the plan carried out with the same free space?
#[test]
fn forecasts_hold() {
    for seed in 0..repeats(500) {
        let mut rng = Rng::new(seed);
        let partition = any_partition(&mut rng, 80);
        let room = partition.blocks().0 / 2;
        let scene = Scene::any(&mut rng, &partition, room);
        let free = scene.free_runs();
        let free: Vec<Range<u64>> = free
            .iter()
            .map(|run| run.start * BLOCK_BYTES..run.end * BLOCK_BYTES)
            .collect();
        let found = forecast(&scene.extents(), &partition, BLOCK_BYTES, &free);
        let mut file = vec![None; scene.file.len()];
        for extent in &found.extents {
            let blocks = extent.device().start / BLOCK_BYTES..extent.device().end / BLOCK_BYTES;
            for (at, block) in (extent.file.start / BLOCK_BYTES..).zip(blocks) {
                let before = file[at as usize].replace(block);
                assert_eq!(before, None, "seed {seed}: two blocks at {at}");
            }
        }
        let moved = scene.file.iter().zip(&file).filter(|(old, new)| old != new);
        let moved = moved.count() as u64 * BLOCK_BYTES;
        assert!(moved <= found.moved_bytes, "seed {seed}");
        let mut plan = plan_of(&scene.file, &partition);
        let mut disk = Disk::new(&mut rng, &scene, &partition);
        // With more free space, the forecast uses only the closest part of it.
        if disk.supply.whole_traxtents() <= 64 {
            disk.carry_out(&mut plan, seed);
            assert_eq!(disk.file, file, "seed {seed}");
        }
    }
}

/// Returns the plan's upper bound on the number of blocks that move, and the number of blocks of
/// the file.
fn planned(partition: &Partition, file: impl Iterator<Item = Range<u64>>) -> (u64, u64) {
    let file: Vec<Option<u64>> = file.flatten().map(Some).collect();
    let plan = plan_of(&file, partition);
    (plan.blocks().0, file.len() as u64)
}

/// Does a contiguous file stay, although some of its blocks span boundaries?
#[test]
fn a_contiguous_file_stays() {
    let map = TrackMap::from_sizes([529; 400]);
    let partition = Partition::whole(map, 8).unwrap();
    assert_eq!(planned(&partition, iter::once(30..20_000)).0, 0);
}

/// Does the half of a file that is on whole tracks stay if the other half must move?
#[test]
fn the_aligned_half_of_a_file_stays() {
    let partition = Partition::whole(TrackMap::from_sizes([100; 1000]), 1).unwrap();
    let fragments = (300..600).map(|track| track * 100 + 7..track * 100 + 72);
    let (moved, blocks) = planned(&partition, iter::once(0..20_000).chain(fragments));
    assert_eq!((moved, blocks), (300 * 65, 20_000 + 300 * 65));
    // So does it if the fragments come first.
    let fragments = (300..600).map(|track| track * 100 + 7..track * 100 + 72);
    let (moved, _) = planned(&partition, fragments.chain(iter::once(0..20_000)));
    assert_eq!(moved, 300 * 65);
}

/// Are many short stretches combined with the whole tracks between them, and do they stay if that
/// would fill no further track?
#[test]
fn short_stretches_are_combined_if_that_fills_a_track() {
    let partition = Partition::whole(TrackMap::from_sizes([100; 1000]), 1).unwrap();
    // Each part is 60 blocks, then two whole tracks.
    let parts = |count: u64| {
        (0..count).flat_map(|at| {
            let whole = 300 + 3 * at;
            [at * 100..at * 100 + 60, whole * 100..whole * 100 + 200]
        })
    };
    let (moved, blocks) = planned(&partition, parts(10));
    // Two stretches and the tracks between them fill three tracks, and 20 blocks are left.
    assert_eq!((moved, blocks), (5 * 320, 10 * 260));
    assert_eq!(planned(&partition, parts(1)).0, 0);
}

/// Carries out the plan for a file in these runs of blocks, and returns the moves: the number of
/// blocks, and the first one that they move to.
fn moves(
    sizes: &[u32],
    file: &[Range<u64>],
    free: impl IntoIterator<Item = Range<u64>>,
) -> Vec<(u64, u64)> {
    let partition = Partition::whole(TrackMap::from_sizes(sizes.iter().copied()), 1).unwrap();
    let scene = Scene {
        file: file.iter().cloned().flatten().map(Some).collect(),
        free: free.into_iter().flatten().collect(),
    };
    let mut disk = Disk::new(&mut Rng::new(0), &scene, &partition);
    let content = disk.read();
    assert!(disk.carry_out(&mut plan_of(&disk.file, &partition), 0));
    assert_eq!(disk.read(), content);
    let moved = disk.moves.iter();
    moved.map(|step| (len(&step.to), step.to.start.0)).collect()
}

/// Do blocks stay if moving them would fill no further track? Do the others move to tracks that
/// they fill?
#[test]
fn nothing_moves_without_need() {
    let equal = [100; 20];
    // The last part stays, because it is already on one track.
    let file = [0..50, 210..260, 320..370];
    assert_eq!(moves(&equal, &file, iter::once(1000..1200)), [(100, 1000)]);
    // Two parts do not fill a track together, so the tracks between them stay.
    let file = [0..30, 200..400, 500..530];
    assert_eq!(moves(&equal, &file, iter::once(1000..1800)), []);
    // These two do.
    let file = [0..60, 200..400, 500..540];
    let expected = [(100, 1000), (100, 1100), (100, 1200)];
    assert_eq!(moves(&equal, &file, iter::once(1000..1800)), expected);
    // These do too, but the first part fills a smaller track that is free, so the others can stay.
    let sizes = [[100, 60].as_slice(), &equal].concat();
    let file = [10..70, 160..360, 560..600];
    assert_eq!(moves(&sizes, &file, [100..160, 760..1560]), [(60, 100)]);
    // A part that fills a small track goes there, not to a large track that has room.
    let file = [200..230, 300..330];
    assert_eq!(moves(&sizes, &file, [0..70, 100..160]), [(60, 100)]);
}

//! Moves of files, with the content of every block tracked.

use std::collections::BTreeMap;

use proptest::prelude::*;
use traxtent_layout::{
    Aging, Allocator, AllocatorKind, File, LayoutError, Move, Partition, Placement, Reorganizer,
    Space, adopt, plan_reorganization,
};
use traxtent_units::{Block, Blocks};

use super::{blocks, map, numbers, partition};
use crate::random::Random;

/// The content of each block in use: a file's index, and the number of the block in that file.
type Content = BTreeMap<Block, (usize, u64)>;

fn file_blocks(file: &File) -> Vec<Block> {
    file.extents().iter().flat_map(numbers).collect()
}

/// Returns the content of the disk, and asserts that no block is in two files.
fn content(files: &[File]) -> Content {
    let mut content = Content::new();
    for (index, file) in files.iter().enumerate() {
        for (number, block) in (0..).zip(file_blocks(file)) {
            assert_eq!(
                content.insert(block, (index, number)),
                None,
                "block {block} is in two files"
            );
        }
    }
    content
}

/// Carries out a move: copies its blocks, then frees the old ones. Asserts that the new ones are
/// free and not excluded.
fn apply(step: &Move, partition: &Partition, disk: &mut Content) {
    let from: Vec<Block> = step.from.iter().flat_map(numbers).collect();
    let to: Vec<Block> = numbers(&step.to).collect();
    assert_eq!(from.len(), to.len());
    for (number, (from, &to)) in (step.offset.0..).zip(from.iter().zip(&to)) {
        assert!(
            partition.traxtent_of(to).is_some(),
            "block {to} is excluded"
        );
        let file_block = (step.file, number);
        assert_eq!(disk[from], file_block);
        assert_eq!(disk.insert(to, file_block), None, "block {to} was in use");
    }
    for block in &from {
        disk.remove(block);
    }
}

fn assert_accounting(allocator: &Allocator, files: &[File]) {
    let used = content(files);
    let recount = Space::count(allocator.partition(), |block| !used.contains_key(&block));
    assert_eq!(allocator.space(), recount);
}

fn sizes(files: &[File]) -> Vec<Blocks> {
    files.iter().map(File::blocks).collect()
}

/// Returns the files that an aging workload leaves.
fn aged(partition: &Partition, strategy: AllocatorKind, full: f64, seed: u64) -> Vec<File> {
    let aging = Aging {
        full,
        turnover: 3.0,
        file_max: Blocks(40),
        writers: 3,
        cluster: Blocks(4),
    };
    aging.run(&mut Allocator::new(partition.clone(), strategy), seed)
}

fn strategy() -> impl proptest::strategy::Strategy<Value = AllocatorKind> {
    prop::sample::select(AllocatorKind::ALL.to_vec())
}

proptest! {
    /// Does a plan, move by move, keep every block of every file, use no excluded block, and leave
    /// the accounting correct? Is no further improvement possible, and no file aligned worse than
    /// before?
    #[test]
    fn plans_keep_content(partition in partition(), strategy in strategy(), full in 0.2..1.0_f64, seed in any::<u64>()) {
        let before = aged(&partition, strategy, full, seed);
        let mut disk = content(&before);
        let plan = plan_reorganization(&partition, before.clone()).unwrap();
        plan.moves.iter().for_each(|step| apply(step, &partition, &mut disk));
        prop_assert_eq!(disk, content(&plan.files));
        prop_assert_eq!(sizes(&plan.files), sizes(&before));
        assert_accounting(&plan.allocator, &plan.files);

        for (before, after) in before.iter().zip(&plan.files) {
            let aligned = |file: &File| file.misaligned(&partition).unwrap_or(file.blocks());
            prop_assert!(aligned(after) >= aligned(before));
            let Some(from) = after.misaligned(&partition) else { continue };
            let left = after.blocks() - from;
            let mut allocator = plan.allocator.clone();
            prop_assert_eq!(allocator.allocate(Block(0), left, Placement::Together), None);
        }
        let mut settled = Reorganizer::default();
        let (mut allocator, mut files) = (plan.allocator, plan.files);
        while !settled.is_settled(&files) {
            let step = settled.step(&mut allocator, &mut files, Blocks(u64::MAX)).unwrap();
            prop_assert_eq!(step, None);
        }
    }

    /// On-line reorganization: does each step stay within its budget, keep every block of every
    /// file, use no excluded block, and leave the accounting correct, while files are created and
    /// deleted between the steps?
    #[test]
    fn steps_between_changes(partition in partition(), full in 0.2..0.95_f64, budget in 1..50_u64, seed in any::<u64>()) {
        let mut random = Random(seed);
        let mut files = aged(&partition, AllocatorKind::Conventional, full, seed);
        let mut allocator = adopt(&partition, &files).unwrap();
        let mut reorganizer = Reorganizer::default();
        for _ in 0..60 {
            let mut disk = content(&files);
            let step = reorganizer.step(&mut allocator, &mut files, Blocks(budget)).unwrap();
            if let Some(step) = step {
                prop_assert!(step.to.end.0 - step.to.start.0 <= budget);
                apply(&step, &partition, &mut disk);
            }
            prop_assert_eq!(disk, content(&files));
            assert_accounting(&allocator, &files);
            if random.once_in(4) && !files.is_empty() {
                let deleted = files.swap_remove(random.pick(0..files.len() as u64) as usize);
                for piece in deleted.pieces(&partition).filter(|piece| !piece.excluded) {
                    allocator.free(&piece.blocks).unwrap();
                }
            }
            if random.once_in(4) && let Ok(extents) = allocator.allocate_file(Block(random.pick(0..200)), Blocks(random.pick(1..20))) {
                let mut file = File::new();
                extents.into_iter().for_each(|extent| file.push(extent));
                files.push(file);
            }
        }
    }

    /// Are parts of a file found and replaced as in a list of its blocks?
    #[test]
    fn files_behave_like_lists(
        extents in prop::collection::vec((0..90_u64, 0..9_u64), 1..12),
        from in 0..60_u64, size in 0..30_u64, to in 100..200_u64,
    ) {
        let mut file = File::new();
        extents.iter().for_each(|&(start, size)| file.push(blocks(start..start + size)));
        let mut list: Vec<Block> =
            extents.iter().flat_map(|&(start, size)| numbers(&blocks(start..start + size))).collect();
        prop_assert_eq!(file.blocks(), Blocks(list.len() as u64));
        prop_assert_eq!(file_blocks(&file), list.clone());
        let (start, end) = (from.min(list.len() as u64), (from + size).min(list.len() as u64));
        let part = file.part(Blocks(from)..Blocks(from + size));
        let part: Vec<Block> = part.flat_map(|run| numbers(&run).collect::<Vec<_>>()).collect();
        prop_assert_eq!(part, list[start as usize..end as usize].to_vec());
        file.replace(Blocks(start), blocks(to..to + end - start));
        list.splice(start as usize..end as usize, numbers(&blocks(to..to + end - start)));
        prop_assert_eq!(file_blocks(&file), list);
    }
}

/// Returns a partition of 300 tracks in three zones, with blocks of 16 sectors.
fn zones() -> Partition {
    let sizes: Vec<u64> = [334, 290, 229]
        .iter()
        .flat_map(|&size| vec![size; 100])
        .collect();
    Partition::whole(map(0, &sizes), 16).unwrap()
}

/// Does a layout made without track information become completely aligned if two thirds of the
/// space are in use? Is more of the free space in free traxtents afterwards?
#[test]
fn retrofitted() {
    let partition = zones();
    for seed in 0..testkit::repeats(5) {
        let aging = Aging {
            full: 0.66,
            file_max: Blocks(200),
            ..Aging::default()
        };
        let files = aging.run(
            &mut Allocator::new(partition.clone(), AllocatorKind::Conventional),
            seed,
        );
        let misaligned = |files: &[File]| {
            files
                .iter()
                .filter(|file| file.misaligned(&partition).is_some())
                .count()
        };
        assert!(
            misaligned(&files) * 2 > files.len(),
            "seed {seed}: too few files are misaligned before"
        );
        let space = adopt(&partition, &files).unwrap().space();
        let plan = plan_reorganization(&partition, files).unwrap();
        assert_eq!(misaligned(&plan.files), 0, "seed {seed}");
        let after = plan.allocator.space();
        assert!(
            after.share_in_free_traxtents() > space.share_in_free_traxtents(),
            "seed {seed}: {space:?} becomes {after:?}"
        );
    }
}

/// Does the same seed give the same layout, and another seed a different one?
#[test]
fn aging_repeats() {
    for strategy in AllocatorKind::ALL {
        let (files, space) = after(strategy, 3.0, 1);
        assert_eq!((files.clone(), space), after(strategy, 3.0, 1));
        assert_ne!(files, after(strategy, 3.0, 2).0);
    }
}

/// Without track information, does aging scatter the free space?
#[test]
fn aging_scatters() {
    for seed in 0..testkit::repeats(5) {
        let (_, filled) = after(AllocatorKind::Conventional, 0.8, seed);
        let (_, aged) = after(AllocatorKind::Conventional, 8.0, seed);
        for space in [aged, filled] {
            assert!((0.75..0.85).contains(&space.share_in_use()), "{space:?}");
        }
        assert!(
            aged.share_in_free_traxtents() < filled.share_in_free_traxtents()
                && aged.mean_run_over_traxtent() < filled.mean_run_over_traxtent(),
            "seed {seed}: {filled:?} becomes {aged:?}"
        );
    }
}

/// Returns the aged files on the zones, and the distribution of the free space over tracks.
fn after(strategy: AllocatorKind, turnover: f64, seed: u64) -> (Vec<File>, Space) {
    let mut allocator = Allocator::new(zones(), strategy);
    let aging = Aging {
        turnover,
        file_max: Blocks(200),
        ..Aging::default()
    };
    let files = aging.run(&mut allocator, seed);
    (
        files,
        Space::count(allocator.partition(), |block| allocator.is_free(block)),
    )
}

/// Are invalid lists of files and an allocator without track information refused?
#[test]
fn refusals() {
    let partition = Partition::whole(map(0, &[40, 44, 36]), 8).unwrap();
    let file = |range| {
        let mut file = File::new();
        file.push(blocks(range));
        file
    };
    let twice = plan_reorganization(&partition, vec![file(0..4), file(3..5)]).unwrap_err();
    assert_eq!(twice, LayoutError::InUse(Block(3)));
    let beyond = plan_reorganization(&partition, vec![file(12..17)]).unwrap_err();
    assert_eq!(
        beyond.to_string(),
        "block 15 is beyond the end of the partition, which has 15 blocks"
    );
    let mut conventional = Allocator::new(partition, AllocatorKind::Conventional);
    let step = Reorganizer::default().step(&mut conventional, &mut [file(0..4)], Blocks(9));
    assert_eq!(step, Err(LayoutError::NoTracks));
}

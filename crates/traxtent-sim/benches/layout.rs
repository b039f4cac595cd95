//! Measures how many allocations and frees per second the allocators perform on one core, on drives
//! with more than a million tracks. For a track partition layout on these drives, it measures the
//! size of the table and the time to load it.
//!
//! `cargo xtask bench layout` runs it and prints the machine. Argument: the seed.
#![allow(missing_docs)]

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

use rustix::time::{ClockId, clock_gettime};
use traxtent_layout::tpl::{Config, DeviceStep, PartitionBounds, PartitionCount, Tpl};
use traxtent_layout::{Allocator, AllocatorKind, Partition, Placement};
use traxtent_map::TrackMap;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::builtin;
use traxtent_units::Rng;
use traxtent_units::{Block, Blocks, Lbn, Sectors};

/// The number of runs; the median is reported.
const RUNS: usize = 5;

/// The number of allocations in a run.
const COUNT: u64 = 1_000_000;

/// The maximum number of extents that [`scattered`] has allocated at the same time.
const LIVE: usize = 100_000;

/// The size of a block in bytes.
const BLOCK_BYTES: u32 = 8192;

/// A workload of allocations and frees. It takes a seed, and returns the number of operations.
type Workload = fn(&mut Allocator, u64) -> u64;

const WORKLOADS: [(&str, Workload); 2] = [("scattered", scattered), ("streams", streams)];

fn main() {
    // `cargo bench` passes flags of its own.
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse().ok());
    let seed = numbers.next().unwrap_or(1);
    println!(
        "blocks of {BLOCK_BYTES} bytes, half of the traxtents used in part; one core, processor time, median of {RUNS} runs"
    );
    for drive in ["toshiba-p300", "generic-20tb"] {
        let profile = builtin(drive).expect("a built-in drive");
        let geometry = Geometry::build(&profile.geometry).expect("a checked profile");
        let block_sectors = BLOCK_BYTES / profile.sector.logical_bytes;
        let map = TrackMap::from_sizes(geometry.track_sizes());
        println!("\n{drive}: {} tracks", map.len());
        let map = Arc::new(map);
        let page_sectors = profile.sector.physical_bytes / profile.sector.logical_bytes;
        table(&map, profile.sector.logical_bytes, page_sectors, seed);
        let partition =
            Partition::whole(Arc::unwrap_or_clone(map), block_sectors).expect("the map is whole");
        let mut first = Vec::new();
        for strategy in AllocatorKind::ALL {
            let begun = processor_seconds();
            let empty = Allocator::new(partition.clone(), strategy);
            println!(
                "{:<14} created in {:.0} ms",
                strategy.name(),
                1e3 * (processor_seconds() - begun)
            );
            let used = in_use(empty, seed);
            for (at, (name, workload)) in WORKLOADS.iter().enumerate() {
                let mut rates: Vec<f64> = (0..RUNS).map(|_| rate(&used, *workload, seed)).collect();
                rates.sort_by(f64::total_cmp);
                let median = rates[RUNS / 2];
                if strategy == AllocatorKind::ALL[0] {
                    first.push(median);
                }
                println!(
                    "{:<14} {name:<10} {median:>10.0} allocations and frees/s ({:.0} to {:.0}), {:.2} times {}'s",
                    strategy.name(),
                    rates[0],
                    rates[RUNS - 1],
                    median / first[at],
                    AllocatorKind::ALL[0].name(),
                );
            }
        }
    }
}

/// Measures the memory for the table of a track partition layout, first with all tracks alike, then
/// with one different track in each page of the table; and the time to load the second table.
fn table(map: &Arc<TrackMap>, sector_bytes: u32, page_sectors: u32, seed: u64) {
    let config = Config {
        id: seed,
        sector_bytes,
        page_sectors,
        block_sectors: 4096 / sector_bytes,
        bounds: PartitionBounds::new(PartitionCount::ONE, PartitionCount::MOST).expect("bounds"),
        regions: 1,
    };
    let range = map.first()..map.end();
    let layout = Tpl::format(Arc::clone(map), range.clone(), &config);
    let (mut layout, steps) = layout.expect("it has room");
    let mut written = BTreeMap::new();
    let mut note = |steps: &[DeviceStep]| {
        for step in steps {
            if let DeviceStep::Table { lbn, bytes } = step {
                written.insert(lbn.0, bytes.clone());
            }
        }
    };
    note(&steps);
    let memory = |layout: &Tpl| layout.memory() as f64 / map.len() as f64;
    let alike = memory(&layout);
    let mut rng = Rng::new(seed);
    let mut track = layout.shape().tracks().start;
    while track < layout.shape().tracks().end {
        let page = layout.page(track);
        let one = page.start + rng.below(page.len() as u64) as usize;
        let plan = layout.merge(one).expect("the track has several partitions");
        note(plan.steps());
        note(&layout.commit(plan));
        track = page.end;
    }
    let mut seconds: Vec<f64> = (0..RUNS)
        .map(|_| {
            let mut read = |lbn: Lbn, sectors: Sectors| {
                let bytes = sectors.0 * u64::from(sector_bytes);
                let mut all = Vec::with_capacity(bytes as usize);
                for (_, page) in written.range(lbn.0..) {
                    if all.len() as u64 >= bytes {
                        break;
                    }
                    all.extend(page);
                }
                all.truncate(bytes as usize);
                Some(all)
            };
            let begun = processor_seconds();
            let opened = Tpl::open(Arc::clone(map), range.clone(), sector_bytes, &mut read);
            assert!(opened.expect("it is whole").repairs.is_empty());
            processor_seconds() - begun
        })
        .collect();
    seconds.sort_by(f64::total_cmp);
    println!(
        "table of the track partition layout: {alike:.2} bytes per track if all are alike, {:.2} if one in each page differs; loaded in {:.0} ms ({:.0} to {:.0})",
        memory(&layout),
        1e3 * seconds[RUNS / 2],
        1e3 * seconds[0],
        1e3 * seconds[RUNS - 1],
    );
}

/// Returns the operations per second of one run. Copying the allocator is not timed.
fn rate(used: &Allocator, workload: Workload, seed: u64) -> f64 {
    let mut allocator = used.clone();
    let begun = processor_seconds();
    let operations = workload(&mut allocator, seed);
    let rate = operations as f64 / (processor_seconds() - begun);
    std::hint::black_box(allocator.space());
    rate
}

/// Returns the processor time of this thread in seconds.
fn processor_seconds() -> f64 {
    let time = clock_gettime(ClockId::ThreadCPUTime);
    time.tv_sec as f64 + time.tv_nsec as f64 * 1e-9
}

/// Marks a part of every other traxtent as used: the same blocks for every strategy.
fn in_use(mut allocator: Allocator, seed: u64) -> Allocator {
    let mut rng = Rng::new(seed);
    let partition = allocator.partition().clone();
    for traxtent in partition.traxtents().step_by(2) {
        let (start, end) = (traxtent.blocks.start.0, traxtent.blocks.end.0);
        let from = start + rng.below(end - start);
        let to = from + 1 + rng.below(end - from);
        allocator
            .claim(&(Block(from)..Block(to)))
            .expect("nothing is in use");
    }
    allocator
}

/// Allocates extents of 1 to 32 blocks near random blocks, and frees random live ones.
fn scattered(allocator: &mut Allocator, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let blocks = allocator.partition().blocks().0;
    let mut live: Vec<Range<Block>> = Vec::with_capacity(LIVE);
    for _ in 0..COUNT {
        if live.len() == LIVE {
            let gone = live.swap_remove(rng.below(LIVE as u64) as usize);
            allocator.free(&gone).expect("it is in use");
        }
        let (near, count) = (Block(rng.below(blocks)), Blocks(1 + rng.below(32)));
        let found = allocator.allocate(near, count, Placement::Together);
        live.push(found.expect("half is free"));
    }
    let frees = COUNT - live.len() as u64;
    COUNT + frees
}

/// Appends eight blocks at a time to one of a hundred files, drawn at random. A file with 4,096
/// blocks is freed and begins again elsewhere.
fn streams(allocator: &mut Allocator, seed: u64) -> u64 {
    let mut rng = Rng::new(seed);
    let blocks = allocator.partition().blocks().0;
    let mut files: Vec<Vec<Range<Block>>> = vec![Vec::new(); 100];
    let mut frees = 0;
    for _ in 0..COUNT {
        let file = rng.below(100) as usize;
        let file = &mut files[file];
        if file.len() == 512 {
            for extent in file.drain(..) {
                allocator.free(&extent).expect("it is in use");
                frees += 1;
            }
        }
        let near = file
            .last()
            .map_or_else(|| Block(rng.below(blocks)), |last| last.end);
        let found = allocator.allocate(near, Blocks(8), Placement::Next);
        file.push(found.expect("half is free"));
    }
    COUNT + frees
}

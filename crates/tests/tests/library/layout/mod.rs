//! Layout along tracks: the papers' examples, and properties that hold for any map.

mod allocation;
mod partitions;
mod raid;
mod raid_plans;
mod reorganization;
mod requests;

use std::ops::Range;

use proptest::prelude::*;
use traxtent_layout::Partition;
use traxtent_map::TrackMap;
use traxtent_units::{Block, Lbn};

/// Returns a map of tracks with these sizes, the first of which begins at LBN `first`.
fn map(first: u64, sizes: &[u64]) -> TrackMap {
    let mut text = "first_lbn,sectors\n".to_owned();
    let mut next = first;
    for size in sizes {
        text += &format!("{next},{size}\n");
        next += size;
    }
    TrackMap::read_csv(text.as_bytes()).unwrap()
}

fn blocks(range: Range<u64>) -> Range<Block> {
    Block(range.start)..Block(range.end)
}

fn numbers(range: &Range<Block>) -> impl Iterator<Item = Block> + use<> {
    (range.start.0..range.end.0).map(Block)
}

/// Any partition with at least one block, of a map of up to 59 tracks, some of them tiny.
fn partition() -> impl Strategy<Value = Partition> {
    let sizes = prop_oneof![4 => 20..90_u64, 1 => 1..12_u64];
    let sizes = prop::collection::vec(sizes, 1..60);
    let parts = (0..50_u64, sizes, 1..14_u32, 0.0..0.4_f64, 0.6..=1.0_f64);
    parts.prop_filter_map("no room for a block", |(first, sizes, block, from, to)| {
        let sum = sizes.iter().sum::<u64>() as f64;
        let lbn = |share: f64| Lbn(first + (sum * share) as u64);
        Partition::new(map(first, &sizes), lbn(from)..lbn(to), block).ok()
    })
}

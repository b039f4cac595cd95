//! Tests of the summary against counting block by block.

use std::sync::Arc;

use testkit::repeats;
use traxtent_check::stack::ByteRange;
use traxtent_map::TrackMap;
use traxtent_units::Rng;

use super::*;
use crate::place::tests::StackBuilder;

const SECTOR_BYTES: u64 = 4;

/// Adds the blocks of a file on one drive to a summary. `blocks` are the positions of their first
/// bytes on the drive, in file order; `sizes` are the tracks' sizes in sectors.
fn count(blocks: &[u64], sizes: &[u32], block_bytes: u64, summary: &mut Summary) {
    let mut ends = Vec::new();
    for size in sizes {
        ends.push(ends.last().unwrap_or(&0) + u64::from(*size) * SECTOR_BYTES);
    }
    let track_of = |byte: u64| ends.iter().position(|end| byte < *end).unwrap();
    let spans = |first: u64| track_of(first) != track_of(first + block_bytes - 1);
    let mut at = 0;
    while at < blocks.len() {
        let first = blocks[at];
        let mut end = at + 1;
        let kind = if spans(first) {
            PieceKind::Spanning
        } else {
            let is_next = |end: usize| {
                let next = first + (end - at) as u64 * block_bytes;
                blocks.get(end) == Some(&next) && track_of(next) == track_of(first) && !spans(next)
            };
            while is_next(end) {
                end += 1;
            }
            let (track, last) = (track_of(first), first + (end - at) as u64 * block_bytes);
            let start = if track == 0 { 0 } else { ends[track - 1] };
            // No further block fits before or after.
            let is_whole = start + block_bytes > first && last + block_bytes > ends[track];
            if is_whole {
                PieceKind::Whole
            } else {
                PieceKind::Part
            }
        };
        let bytes = (end - at) as u64 * block_bytes;
        summary.bytes += bytes;
        summary.pieces += 1;
        match kind {
            PieceKind::Whole => {
                summary.whole_bytes += bytes;
                summary.whole_tracks += 1;
            }
            PieceKind::Part => summary.part_bytes += bytes,
            PieceKind::Spanning => summary.spanning_bytes += bytes,
        }
        match summary.runs.last_mut() {
            Some((last, sum)) if *last == kind => *sum += bytes,
            _ => summary.runs.push((kind, bytes)),
        }
        at = end;
    }
}

/// Does the summary of a file agree with counting block by block, on a partition of one drive and
/// on RAID-0 of two?
#[test]
fn agrees_with_counting_blocks() {
    for seed in 0..repeats(1000) {
        let mut rng = Rng::new(seed);
        let block_bytes = SECTOR_BYTES * (1 + rng.below(3));
        let members = 1 + rng.below(2);
        let blocks = 20 + rng.below(150);
        let mut builder = StackBuilder::default();
        let (mut drives, mut sizes) = (BTreeMap::new(), BTreeMap::new());
        let (mut places, offset) = (Vec::new(), rng.below(20) * SECTOR_BYTES);
        for _ in 0..members {
            let track = 4 + rng.below(20) as u32;
            let mut tracks: Vec<u32> = Vec::new();
            let bytes = offset + blocks * block_bytes;
            while u64::from(tracks.iter().sum::<u32>()) * SECTOR_BYTES < bytes {
                tracks.push(track + rng.below(4) as u32);
            }
            let map = Arc::new(TrackMap::from_sizes(tracks.iter().copied()));
            let drive = builder.drive(map.end().0 * SECTOR_BYTES);
            let sector_bytes = SECTOR_BYTES;
            drives.insert(drive, TrackedDrive { map, sector_bytes });
            sizes.insert(drive, tracks);
            places.push(ByteRange {
                layer: drive,
                start: offset,
                bytes: blocks * block_bytes,
            });
        }
        let top = if members == 1 {
            builder.joined(places)
        } else {
            let chunk_blocks = 1 + rng.below(9);
            builder.raid0(places, chunk_blocks * block_bytes)
        };
        let table = builder.places(top);
        let blocks = table.len() as u64 / block_bytes;
        let (mut extents, mut at) = (Vec::new(), 0);
        let mut order: BTreeMap<LayerId, Vec<u64>> = BTreeMap::new();
        for _ in 0..rng.below(12) {
            let first = rng.below(blocks);
            let length = (1 + rng.below(60)).min(blocks - first);
            extents.push(FileExtent {
                file: at..at + length * block_bytes,
                device_start: first * block_bytes,
                is_unwritten: rng.chance(0.5),
            });
            at += (length + rng.below(2)) * block_bytes;
            for block in first..first + length {
                let (drive, byte) = table[(block * block_bytes) as usize];
                order.entry(drive).or_default().push(byte);
            }
        }
        let mut expected = Summary::default();
        for (drive, blocks) in &order {
            count(blocks, &sizes[drive], block_bytes, &mut expected);
        }
        let found = summarize(&extents, &builder.file_system(block_bytes), &drives);
        assert_eq!(found.unwrap(), expected, "seed {seed}");
    }
}

/// Is a map refused if it does not reach the end of the file?
#[test]
fn a_short_map_is_refused() {
    let mut builder = StackBuilder::default();
    let drive = builder.drive(4000);
    let all = builder.all_of(drive);
    builder.joined(vec![all]);
    let map = Arc::new(TrackMap::from_sizes([50; 10]));
    let tracked = TrackedDrive {
        map,
        sector_bytes: SECTOR_BYTES,
    };
    let drives = BTreeMap::from([(drive, tracked)]);
    let extents = [FileExtent {
        file: 0..40,
        device_start: 1980,
        is_unwritten: false,
    }];
    let error = summarize(&extents, &builder.file_system(8), &drives).unwrap_err();
    let text = error.to_string();
    assert!(text.contains("the track map ends before LBN 500"), "{text}");
}

//! Blocks, excluded blocks and traxtents of a partition.

use proptest::prelude::*;
use traxtent_layout::{LayoutError, Partition, Traxtent, sectors_of_block};
use traxtent_map::TrackMap;
use traxtent_model::geometry::{Geometry, GeometrySpec, PerSurface, ZoneSpec};
use traxtent_units::{Block, Blocks, Lbn};

use super::{blocks, map, numbers, partition};

/// Returns the blocks that lie on one track, track by track, found by checking every sector of
/// every block.
fn by_sectors(partition: &Partition) -> Vec<(usize, Vec<Block>)> {
    let mut traxtents: Vec<(usize, Vec<Block>)> = Vec::new();
    for block in (0..partition.blocks().0).map(Block) {
        let lbns = partition.lbns_of(&(block..Block(block.0 + 1)));
        let track = |lbn| partition.map().track_of(Lbn(lbn)).unwrap().index;
        let first = track(lbns.start.0);
        if (lbns.start.0..lbns.end.0).any(|lbn| track(lbn) != first) {
            continue;
        }
        match traxtents.last_mut() {
            Some((track, blocks)) if *track == first => blocks.push(block),
            _ => traxtents.push((first, vec![block])),
        }
    }
    traxtents
}

proptest! {
    /// Do the traxtents and excluded blocks of a partition equal those found by checking every
    /// sector?
    #[test]
    fn agrees_with_a_check_of_every_sector(partition in partition()) {
        let naive = by_sectors(&partition);
        let all: Vec<Traxtent> = partition.traxtents().collect();
        let plain = all.iter().map(|traxtent| (traxtent.track, numbers(&traxtent.blocks).collect()));
        prop_assert_eq!(plain.collect::<Vec<_>>(), naive.clone());

        let end = partition.blocks().0;
        let whole: Vec<Block> = naive.iter().flat_map(|(_, blocks)| blocks.clone()).collect();
        let excluded: Vec<Block> = (0..end).map(Block).filter(|block| !whole.contains(block)).collect();
        prop_assert_eq!(partition.excluded().collect::<Vec<_>>(), excluded.clone());
        for block in (0..end + 2).map(Block) {
            prop_assert_eq!(partition.is_excluded(block), excluded.contains(&block));
            let holds = all.iter().find(|traxtent| traxtent.blocks.contains(&block));
            prop_assert_eq!(partition.traxtent_of(block), holds.cloned());
            let from = all.iter().find(|traxtent| block.0 < end && block < traxtent.blocks.end);
            prop_assert_eq!(partition.traxtent_from(block), from.cloned());
        }
        for (index, traxtent) in all.iter().enumerate() {
            prop_assert_eq!(partition.next(traxtent), all.get(index + 1).cloned());
            let before = index.checked_sub(1).map(|index| &all[index]);
            prop_assert_eq!(partition.previous(traxtent), before.cloned());
            prop_assert_eq!(partition.traxtent_on(traxtent.track), Some(traxtent.clone()));
        }
    }

    /// Are the pieces of a range its blocks that are not excluded, cut only at boundaries?
    #[test]
    fn pieces_cover_a_range(partition in partition(), from in 0..400_u64, size in 0..400_u64) {
        let range = blocks(from..from + size);
        let pieces: Vec<_> = partition.pieces(range.clone()).collect();
        let covered: Vec<Block> = pieces.iter().flat_map(numbers).collect();
        let wanted = numbers(&range).filter(|&block| partition.traxtent_of(block).is_some());
        prop_assert_eq!(covered, wanted.collect::<Vec<_>>());
        for piece in &pieces {
            let traxtent = partition.traxtent_of(piece.start).unwrap();
            prop_assert!(piece.end <= traxtent.blocks.end);
        }
        for pair in pieces.windows(2) {
            prop_assert!(partition.traxtent_of(pair[0].start) != partition.traxtent_of(pair[1].start));
        }
    }

    /// If blocks are single sectors, are the traxtents exactly the tracks, with nothing excluded?
    #[test]
    fn sectors_are_never_excluded(sizes in prop::collection::vec(1..40_u64, 1..40), first in 0..99_u64) {
        let partition = Partition::whole(map(first, &sizes), 1).unwrap();
        let found = partition.traxtents().map(|traxtent| traxtent.size().0);
        prop_assert_eq!(found.collect::<Vec<_>>(), sizes);
        prop_assert_eq!(partition.excluded().count(), 0);
    }
}

/// Paper T, Fig. 4: a partition with sixteen sectors per block starts at LBN 10, and a track ends
/// at LBN 1669. Does block 101 consist of LBNs 1626 to 1641, and is block 103 excluded?
#[test]
fn mapping_of_figure_4() {
    let partition = Partition::new(map(0, &[1670, 334]), Lbn(10)..Lbn(2004), 16).unwrap();
    assert_eq!(partition.lbns_of(&blocks(101..102)), Lbn(1626)..Lbn(1642));
    assert_eq!(partition.block_of(Lbn(1641)), Some(Block(101)));
    assert_eq!(partition.excluded().collect::<Vec<_>>(), [Block(103)]);
    assert!(partition.is_excluded(Block(103)));
    let of = |block| {
        partition
            .traxtent_of(Block(block))
            .map(|found| found.blocks)
    };
    assert_eq!(of(102), Some(blocks(0..103)));
    assert_eq!(of(103), None);
    assert_eq!(of(104), Some(blocks(104..124)));
}

/// Paper T, Fig. 2(b): 200 sectors per track, a sector slipped between LBNs 580 and 581. Do tracks
/// begin at 0, 200, 400 and 599?
#[test]
fn tracks_of_figure_2() {
    let partition = Partition::whole(slipped(), 1).unwrap();
    let starts = partition
        .traxtents()
        .map(|traxtent| traxtent.blocks.start.0);
    assert_eq!(starts.take(4).collect::<Vec<_>>(), [0, 200, 400, 599]);
}

/// Returns the track map of the drive of Fig. 2(b). Slot 581 is the slipped one.
fn slipped() -> TrackMap {
    let zone = ZoneSpec {
        last_cylinder: 9,
        sectors_per_track: PerSurface::Same(200),
        slips: vec![581],
        ..ZoneSpec::default()
    };
    let spec = GeometrySpec {
        surfaces: 2,
        cylinders: 10,
        zones: vec![zone],
        ..GeometrySpec::default()
    };
    TrackMap::from_sizes(Geometry::build(&spec).unwrap().track_sizes())
}

/// Are blocks that contain a boundary excluded, but not blocks that only begin or end at one?
#[test]
fn blocks_across_boundaries() {
    // Boundaries at 12, 24, 25, 27, 48: the fourth block contains two of them and begins at one.
    let map = map(0, &[12, 12, 1, 2, 21, 10]);
    let excluded = |from, to| {
        let partition = Partition::new(map.clone(), Lbn(from)..Lbn(to), 8).unwrap();
        partition
            .excluded()
            .map(|block| block.0)
            .collect::<Vec<_>>()
    };
    assert_eq!(excluded(0, 58), [1, 3]);
    assert_eq!(excluded(4, 58), [2, 5]);
    assert_eq!(excluded(0, 31), [1]);
    assert_eq!(excluded(0, 32), [1, 3]);
    assert_eq!(excluded(12, 58), [1, 4]);
}

/// Is each invalid partition or block size refused, and does the error name the offending values?
#[test]
fn bad_partitions() {
    let map = map(100, &[50, 50]);
    let new = |from, to, size| Partition::new(map.clone(), Lbn(from)..Lbn(to), size);
    for (partition, says) in [
        (
            new(100, 200, 0),
            "a block cannot have 0 sectors; it needs at least 1",
        ),
        (
            new(99, 200, 8),
            "a partition of LBNs 99..200 is not within the map, which covers LBNs 100..200",
        ),
        (
            new(100, 201, 8),
            "a partition of LBNs 100..201 is not within the map, which covers LBNs 100..200",
        ),
        (
            new(100, 107, 8),
            "a partition of LBNs 100..107 is too small for a block of 8 sectors",
        ),
        (
            new(180, 120, 8),
            "a partition of LBNs 180..120 is too small for a block of 8 sectors",
        ),
    ] {
        assert_eq!(partition.unwrap_err().to_string(), says);
    }
    assert_eq!(new(100, 108, 8).unwrap().blocks(), Blocks(1));
    assert_eq!(sectors_of_block(8192, 512), Ok(16));
    for (block, sector) in [(1000, 512), (0, 512), (4096, 0), (512, 4096)] {
        assert_eq!(
            sectors_of_block(block, sector),
            Err(LayoutError::PartOfSector {
                block_bytes: block,
                sector_bytes: sector
            })
        );
    }
}

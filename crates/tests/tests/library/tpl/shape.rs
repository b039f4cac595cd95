//! The locations of blocks and their replicas.

use proptest::prelude::*;
use traxtent_layout::tpl::{BlockHome, PartitionCount, ReplicaMap, TplError};
use traxtent_map::TrackMap;

use super::bounds;

/// Any shape, on a map of up to five runs of equally large tracks, and the number of its regions.
fn shape() -> impl Strategy<Value = (ReplicaMap, u16)> {
    let run = (20..140_u64, prop_oneof![1..4_usize, 1..300_usize]);
    let runs = prop::collection::vec(run, 1..6);
    let parts = (runs, 1..4_u32, 0..6_u32, 0..6_u32, 0..40_usize, 1..6_u16);
    parts.prop_filter_map("no track has room", |(runs, block, a, b, skip, regions)| {
        let mut text = "first_lbn,sectors\n".to_owned();
        let mut next = 5;
        for (size, times) in runs {
            for _ in 0..times {
                text += &format!("{next},{size}\n");
                next += size;
            }
        }
        let map = TrackMap::read_csv(text.as_bytes()).unwrap();
        let tracks = skip.min(map.len() - 1)..map.len();
        ReplicaMap::new(
            map,
            tracks,
            block,
            bounds(1 << a.min(b), 1 << a.max(b)),
            regions,
        )
        .ok()
        .map(|shape| (shape, regions))
    })
}

proptest! {
    /// Does every block have a home of its own, ordered by region, then layer, then LBN, and does
    /// the home map back to the block?
    #[test]
    fn every_block_has_a_home((shape, regions) in shape()) {
        let each = shape.tracks().len().div_ceil(regions.into());
        let mut before: Option<(usize, usize, BlockHome)> = None;
        for block in 0..shape.blocks() {
            let home = shape.home(block).unwrap();
            prop_assert_eq!(shape.block(home), Some(block));
            let region = (home.track - shape.tracks().start) / each;
            let at = Some((region, shape.layer_of(home).unwrap(), home));
            prop_assert!(at > before);
            before = at;
        }
        prop_assert_eq!(shape.home(shape.blocks()), None);
    }

    /// With one region, are the blocks that fit with m partitions exactly the first ones? Is their
    /// number that of all blocks divided by m, to within one block per track?
    #[test]
    fn capacity_is_track_size_over_m((shape, regions) in shape()) {
        for count in PartitionCount::ALL {
            if !(shape.bounds().least()..=shape.bounds().most()).contains(&count) {
                continue;
            }
            let fits = |block: u64| -> bool {
                let home = shape.home(block).unwrap();
                home.index < shape.share(home.track, count)
            };
            let most = shape.blocks_with(count);
            if regions == 1 {
                prop_assert!((0..most).all(fits));
            }
            prop_assert_eq!((0..shape.blocks()).filter(|block| fits(*block)).count() as u64, most);
            let tracks = shape.tracks();
            let sizes = tracks.clone().map(|track| shape.share(track, PartitionCount::ONE));
            let all: u64 = sizes.map(u64::from).sum();
            let lost = all as f64 / f64::from(count.get()) - most as f64;
            prop_assert!(lost >= 0.0 && lost < tracks.len() as f64, "{lost}");
        }
    }

    /// Do replicas lie on the block's track, evenly spaced to within a block, without overlap? Does
    /// halving the count keep every second replica in place? Does no run as long as a partition,
    /// even around the track's end, cover two replicas of a block?
    #[test]
    fn replicas_are_evenly_spaced((shape, _) in shape(), pick in 0.0..1.0_f64) {
        let track = shape.tracks().start + ((shape.tracks().len() - 1) as f64 * pick) as usize;
        let mapped = shape.map().track(track).unwrap();
        let block = u64::from(shape.block_sectors());
        let blocks = mapped.sectors.0 / block;
        for count in PartitionCount::ALL {
            let share = shape.share(track, count);
            let mut taken = vec![false; blocks as usize];
            for index in 0..share {
                let home = BlockHome { track, index };
                let places: Vec<u64> = shape.replica_lbns(home, count).map(|lbn| lbn.0).collect();
                for (replica, &place) in places.iter().enumerate() {
                    let at = place - mapped.first_lbn.0;
                    prop_assert_eq!(at % block, 0);
                    let ideal = replica as f64 * blocks as f64 / f64::from(count.get()) + f64::from(index);
                    prop_assert!((ideal - (at / block) as f64).abs() < 1.0);
                    prop_assert!(!std::mem::replace(&mut taken[(at / block) as usize], true));
                    let next = places.get(replica + 1).map_or(places[0] + blocks * block, |next| *next);
                    prop_assert!(replica == 0 && places.len() == 1 || next - place >= u64::from(share) * block);
                }
                if let Some(half) = count.halved() {
                    let kept: Vec<u64> = shape.replica_lbns(home, half).map(|lbn| lbn.0).collect();
                    let seconds: Vec<u64> = places.iter().copied().step_by(2).collect();
                    prop_assert_eq!(kept, seconds);
                }
            }
        }
    }
}

/// Are counts that are not powers of two, crossed bounds, and counts that fit no track refused with
/// the reason?
#[test]
fn refused() {
    assert_eq!(
        PartitionCount::new(3).unwrap_err().to_string(),
        "3 replicas: expected 1, 2, 4, 8, 16 or 32"
    );
    let (two, eight) = (
        PartitionCount::new(2).unwrap(),
        PartitionCount::new(8).unwrap(),
    );
    let crossed = traxtent_layout::tpl::PartitionBounds::new(eight, two).unwrap_err();
    assert_eq!(
        crossed.to_string(),
        "the lower bound, 8 replicas, exceeds the upper bound, 2"
    );
    let map = super::map_of(4, 60);
    let none = ReplicaMap::new(map, 0..4, 2, bounds(1, 32), 1).unwrap_err();
    assert!(
        matches!(
            none,
            TplError::DoesNotFit {
                most: 32,
                blocks: 30,
                ..
            }
        ),
        "{none}"
    );
}

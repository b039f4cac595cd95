//! The log-structured layout: the data it keeps, its format, its segments, and its state after
//! power cuts.

mod crashes;
mod device;
mod disk;
mod format;
mod layout;

mod model;

use traxtent_layout::log::{Cleaning, CleaningPolicy, LogConfig, LogShape, SegmentSizing};
use traxtent_map::TrackMap;
use traxtent_units::Rng;
use traxtent_units::{Lbn, Sectors};

use device::Device;
use model::Worker;

/// Returns a map of 48 tracks of 15 to 30 sectors, the first at LBN 0.
fn small_map() -> TrackMap {
    map_of(30)
}

/// Returns a map of 48 tracks with `sectors` sectors, or up to 15 fewer.
fn map_of(sectors: u64) -> TrackMap {
    let mut csv = "first_lbn,sectors\n".to_owned();
    let mut first = 0;
    for track in 0..48 {
        let sectors = sectors - track / 6 * 2 - u64::from(track % 7 == 3);
        csv += &format!("{first},{sectors}\n");
        first += sectors;
    }
    TrackMap::read_csv(csv.as_bytes()).unwrap()
}

/// Returns a configuration with a random shape and one block.
fn config(rng: &mut Rng) -> LogConfig {
    let sizing = match rng.below(4) {
        0 => SegmentSizing::Aligned(Sectors(10)),
        1 => SegmentSizing::Fixed(Sectors(25)),
        _ => SegmentSizing::Tracks,
    };
    let (block_sectors, grain_sectors) = [(1, 1), (1, 1), (2, 1), (2, 2)][rng.below(4) as usize];
    let policy = CleaningPolicy::ALL[rng.below(2) as usize];
    LogConfig {
        id: 1 + rng.below(1 << 40),
        blocks: 1,
        shape: LogShape {
            sector_bytes: 512,
            block_sectors,
            grain_sectors,
        },
        sizing,
        cleaning: Cleaning {
            policy,
            // With many segments, a pass takes all the free space.
            segments: [1, 2, 3, 12][rng.below(4) as usize],
        },
    }
}

/// Returns a configuration with as many blocks as the map has room for, or fewer.
fn filled(rng: &mut Rng, map: &TrackMap) -> LogConfig {
    let mut config = config(rng);
    let most = config.most_blocks(map, lbns(map)).unwrap();
    config.blocks = if rng.chance(0.5) {
        most
    } else {
        1 + rng.below(most)
    };
    config
}

/// Does a log with up to as many blocks as its map has room for keep its data, and a correct
/// segment table, over cleaning and reopening?
#[test]
fn keeps_written_data() {
    for seed in 0..testkit::repeats(60) {
        let mut rng = Rng::new(seed);
        let map = small_map();
        let config = filled(&mut rng, &map);
        let device = Device::new(map.end());
        let mut worker = Worker::format(&map, device, &config, rng.split());
        eprintln!("seed {seed}");
        for step in 0..1500 {
            worker.step(&mut rng);
            if step % 50 == 0 {
                worker.check_all();
            }
            if step % 400 == 399 {
                worker.reopen();
                worker.check_all();
            }
        }
    }
}

/// Is a full log still writable after many times its size has been written, with every policy and
/// sizing?
#[test]
fn a_full_log_stays_writable() {
    for policy in CleaningPolicy::ALL {
        for sizing in [
            SegmentSizing::Tracks,
            SegmentSizing::Aligned(Sectors(12)),
            SegmentSizing::Fixed(Sectors(40)),
        ] {
            let map = small_map();
            let mut config = LogConfig {
                sizing,
                ..config(&mut Rng::new(0))
            };
            config.cleaning = Cleaning {
                policy,
                segments: 1,
            };
            config.blocks = config.most_blocks(&map, lbns(&map)).unwrap();
            let mut rng = Rng::new(1);
            let mut worker = Worker::format(&map, Device::new(map.end()), &config, rng.split());
            for block in 0..config.blocks {
                worker.write(block);
            }
            for _ in 0..testkit::repeats(20) * config.blocks {
                worker.write(rng.below(config.blocks));
            }
            worker.check_all();
            assert!(worker.log.traffic().copied_blocks > 0);
        }
    }
}

/// Does every listed name parse and print unchanged, and is any other name refused with the list?
#[test]
fn names() {
    for sizing in [
        SegmentSizing::Tracks,
        SegmentSizing::Aligned(Sectors(8)),
        SegmentSizing::Fixed(Sectors(528)),
    ] {
        assert_eq!(sizing.to_string().parse(), Ok(sizing));
    }
    for policy in CleaningPolicy::ALL {
        assert_eq!(policy.to_string().parse(), Ok(policy));
    }
    let error = "lazy".parse::<CleaningPolicy>().unwrap_err().to_string();
    assert_eq!(error, "\"lazy\": expected greedy or cost-benefit");
    for text in ["", "fixed", "fixed:0", "fixed:4294967296", "tracks:1"] {
        let error = text.parse::<SegmentSizing>().unwrap_err().to_string();
        assert!(error.ends_with(
            "expected tracks, aligned:N or fixed:N, with N from 1 to 4294967295 sectors"
        ));
    }
}

fn lbns(map: &TrackMap) -> std::ops::Range<Lbn> {
    map.first()..map.end()
}

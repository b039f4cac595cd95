//! The bytes of a log: the documented format, and damage to it.

use traxtent_layout::log::format::{Checkpoint, Entry, Summary, Superblock, reseal};
use traxtent_layout::log::{Log, LogConfig, LogError, LogOp, LogPlace, LogShape, Segment};
use traxtent_units::Lbn;
use traxtent_units::Rng;

use super::device::{Device, Perform, SECTOR_BYTES};
use super::model::{Worker, assert_accounts, contents, drain, filled, recover};
use super::{config, lbns, small_map};

const SHAPE: LogShape = LogShape {
    sector_bytes: 512,
    block_sectors: 2,
    grain_sectors: 2,
};

fn superblock() -> Superblock {
    Superblock {
        id: 0x0102_0304,
        range: Lbn(64)..Lbn(2000),
        shape: SHAPE,
        blocks: 100,
        region_sectors: 4,
    }
}

/// Returns the little-endian number of `size` bytes at the offset `at`.
fn number(bytes: &[u8], at: usize, size: usize) -> u64 {
    let mut eight = [0; 8];
    eight[..size].copy_from_slice(&bytes[at..at + size]);
    u64::from_le_bytes(eight)
}

/// Is each field at the offset that the documentation states?
#[test]
fn as_documented() {
    let bytes = superblock().encode();
    assert_eq!(bytes.len(), 1024);
    assert_eq!(&bytes[..8], b"traxtlog");
    assert_eq!(
        number(&bytes, 8, 4),
        u64::from(crc32fast::hash(&bytes[12..68]))
    );
    let fields = [
        (12, 4),
        (16, 8),
        (24, 8),
        (32, 8),
        (40, 8),
        (48, 8),
        (56, 4),
        (60, 4),
        (64, 4),
    ];
    let found = fields.map(|(at, size)| number(&bytes, at, size));
    assert_eq!(found, [1, 0x0102_0304, 64, 2000, 100, 4, 512, 2, 2]);
    assert_eq!(Superblock::decode(&bytes, Lbn(64)), Ok(superblock()));

    let checkpoint = Checkpoint {
        id: 0x0102_0304,
        number: 7,
        epoch: 3,
        sequence: 99,
        head: Lbn(500),
        clock: 1234,
        segments: vec![Segment {
            first: Lbn(100),
            sectors: 200,
            live: 5,
            youngest: 77,
        }],
        pages: vec![
            Some(LogPlace {
                lbn: Lbn(102),
                crc: 9,
            }),
            None,
        ],
    };
    let bytes = checkpoint.encode(SHAPE);
    assert_eq!(&bytes[..8], b"traxtcpt");
    assert_eq!(
        number(&bytes, 8, 4),
        u64::from(crc32fast::hash(&bytes[12..116]))
    );
    let fields = [
        (12, 4),
        (16, 4),
        (20, 8),
        (28, 8),
        (36, 8),
        (44, 8),
        (52, 8),
        (60, 8),
    ];
    let found = fields.map(|(at, size)| number(&bytes, at, size));
    assert_eq!(found, [1, 2, 0x0102_0304, 7, 3, 99, 500, 1234]);
    let fields = [
        (68, 8),
        (76, 4),
        (80, 4),
        (84, 8),
        (92, 8),
        (100, 4),
        (104, 8),
        (112, 4),
    ];
    let found = fields.map(|(at, size)| number(&bytes, at, size));
    assert_eq!(found, [100, 200, 5, 77, 102, 9, u64::MAX, 0]);
    assert_eq!(
        Checkpoint::decode(&bytes, Lbn(66), &superblock()),
        Ok(checkpoint)
    );

    let summary = Summary {
        id: 5,
        epoch: 6,
        sequence: 7,
        at: Lbn(120),
        next: Lbn(130),
        youngest: 8,
        entries: vec![
            Entry::Data { block: 11, crc: 12 },
            Entry::Map { page: 13, crc: 14 },
            Entry::Trim {
                first: 15,
                count: 16,
            },
        ],
    };
    let bytes = summary.encode(SHAPE);
    assert_eq!((bytes.len(), &bytes[..8]), (1024, &b"traxtsum"[..]));
    assert_eq!(
        number(&bytes, 8, 4),
        u64::from(crc32fast::hash(&bytes[12..112]))
    );
    let fields = [
        (12, 4),
        (16, 8),
        (24, 8),
        (32, 8),
        (40, 8),
        (48, 8),
        (56, 8),
    ];
    let found = fields.map(|(at, size)| number(&bytes, at, size));
    assert_eq!(found, [3, 5, 6, 7, 120, 130, 8]);
    for (entry, kind) in (0..3).zip(1..) {
        let at = 64 + 16 * entry;
        let found = [(at, 8), (at + 8, 4), (at + 12, 4)].map(|(at, size)| number(&bytes, at, size));
        let number = 11 + 2 * entry as u64;
        assert_eq!(found, [number, kind, number + 1]);
    }
    assert_eq!(summary.blocks(), 2);
    let places: Vec<u64> = summary
        .placed(SHAPE)
        .map(|(_, place)| place.lbn.0)
        .collect();
    assert_eq!(places, [122, 124]);
    assert_eq!(Summary::decode(&bytes, Lbn(120)), Ok(summary));
}

/// Is a superblock refused if any bit of its fields is flipped, if it is truncated, or if it is at
/// the wrong LBN? Does the error for a flipped bit name the superblock's LBN?
#[test]
fn damage_is_detected() {
    let bytes = superblock().encode();
    for bit in 0..68 * 8 {
        let mut bytes = bytes.clone();
        bytes[bit / 8] ^= 1 << (bit % 8);
        let error = Superblock::decode(&bytes, Lbn(64)).unwrap_err().to_string();
        assert!(error.starts_with("LBN 64: a log's superblock: "), "{error}");
    }
    assert!(Superblock::decode(&bytes[..67], Lbn(64)).is_err());
    assert!(Superblock::decode(&bytes, Lbn(0)).is_err());
}

/// Returns a worker whose log and device have been used and synced, with the log's configuration.
fn used(seed: u64) -> (LogConfig, Worker<Device>) {
    let mut rng = Rng::new(seed);
    let map = small_map();
    let mut config = config(&mut rng);
    config.blocks = config.most_blocks(&map, lbns(&map)).unwrap();
    let mut worker = Worker::format(&map, Device::new(map.end()), &config, rng.split());
    for _ in 0..500 {
        worker.step(&mut rng);
    }
    worker.sync();
    (config, worker)
}

/// If bits are flipped, is the log either refused with a one-line error or opened with a correct
/// segment table, without a panic? Does this hold even if the checksums match the damaged bytes?
#[test]
fn damaged_logs() {
    let map = small_map();
    let (mut refused, mut opened) = (0, 0);
    for seed in 0..testkit::repeats(300) {
        let (config, worker) = used(seed % 10);
        let mut rng = Rng::new(seed);
        let mut device = worker.device.clone();
        let bytes = device.bytes_mut();
        for _ in 0..1 + rng.below(8) {
            // Most of the damage is in the sectors that hold structures.
            let below = if rng.chance(0.7) {
                16 * SECTOR_BYTES
            } else {
                bytes.len()
            };
            bytes[rng.below(below as u64) as usize] ^= 1 << rng.below(8);
        }
        if rng.chance(0.5) {
            for at in (0..bytes.len()).step_by(SECTOR_BYTES) {
                reseal(&mut bytes[at..]);
            }
        }
        match recover(&map, &mut device, config.cleaning) {
            Err(error) => {
                assert!(!error.to_string().contains('\n'));
                refused += 1;
            }
            Ok(mut log) => {
                assert_accounts(&log);
                while let Some(op) = log.next_op() {
                    // A damaged segment cannot be cleaned, and gives an error.
                    let _ = log.complete(device.perform(op));
                }
                assert_accounts(&log);
                opened += 1;
            }
        }
    }
    assert!(
        refused > 20 && opened > 20,
        "{refused} refused, {opened} opened"
    );
}

/// Is the other checkpoint used if one is damaged, and is the log refused if both are?
#[test]
fn two_regions() {
    let map = small_map();
    let (config, mut worker) = used(0);
    let device = &mut worker.device;
    let superblock = Superblock::decode(device.bytes(), Lbn(0)).unwrap();
    let at = |which: usize| superblock.region(which).0 as usize * SECTOR_BYTES;
    let decode = |which: usize, bytes: &[u8]| {
        Checkpoint::decode(&bytes[at(which)..], superblock.region(which), &superblock).unwrap()
    };
    let numbers = [0, 1].map(|which| decode(which, device.bytes()).number);
    assert_eq!(numbers[0].abs_diff(numbers[1]), 1);
    assert_eq!(numbers.map(|number| number % 2), [1, 0]);
    for which in [0, 1] {
        device.bytes_mut()[at(which) + 20] ^= 1;
        let opened = recover(&map, device, config.cleaning);
        match which {
            0 => drop(opened.unwrap()),
            _ => {
                let error = opened.unwrap_err();
                assert!(matches!(error, LogError::NoCheckpoint(_)), "{error}");
            }
        }
    }
}

/// Is the checkpoint that recovery writes the same with and without an interrupted checkpoint
/// before it? If so, the interrupted one took none of the room reserved for checkpoints.
#[test]
fn a_broken_checkpoint_takes_no_room() {
    let map = small_map();
    for seed in 0..10 {
        let (config, mut worker) = used(seed);
        let mut rng = Rng::new(seed);
        // So few writes that no cleaning pass begins.
        for _ in 0..10 {
            worker.write(rng.below(config.blocks));
        }
        worker.sync();
        let before = worker.device.clone();
        worker.log.checkpoint().unwrap();
        let mut pages_written = false;
        while let Some(op) = worker.log.next_op() {
            let in_region =
                matches!(&op, LogOp::Write { data, .. } if data.starts_with(b"traxtcpt"));
            if in_region {
                break;
            }
            pages_written |= matches!(op, LogOp::Write { .. });
            let data = worker.device.perform(op);
            worker.log.complete(data).unwrap();
        }
        assert!(pages_written);
        let states = [before, worker.device].map(|mut device| {
            let mut log = recover(&map, &mut device, config.cleaning).unwrap();
            drain(&mut log, &mut device);
            let superblock = Superblock::decode(device.bytes(), Lbn(0)).unwrap();
            let newest = (0..2).filter_map(|which| {
                let at = superblock.region(which);
                let bytes = &device.bytes()[at.0 as usize * SECTOR_BYTES..];
                Checkpoint::decode(bytes, at, &superblock).ok()
            });
            newest.max_by_key(|checkpoint| checkpoint.number).unwrap()
        });
        assert_eq!(states[0], states[1], "seed {seed}");
    }
}

/// Does a log continue past a segment that cannot be read, and stop at a failed write, with synced
/// data recoverable?
#[test]
fn failing_devices() {
    let map = small_map();
    let (config, mut worker) = used(3);
    let (log, device) = (&mut worker.log, &mut worker.device);
    let mut refused = 0;
    let mut rng = Rng::new(9);
    while refused == 0 {
        let block = rng.below(log.blocks());
        log.write(block, &filled(block, log.shape().block_bytes()))
            .unwrap();
        worker.model.now[block as usize] = block;
        while let Some(op) = log.next_op() {
            match op {
                LogOp::Read { .. } if refused == 0 => {
                    refused += 1;
                    assert!(matches!(log.fail(), Err(LogError::Damaged { .. })));
                }
                op => log.complete(device.perform(op)).unwrap(),
            }
        }
    }
    assert_eq!(refused, 1);
    assert_eq!(contents(log, device), worker.model.now);
    log.sync().unwrap();
    drain(log, device);

    log.write(0, &vec![1; log.shape().block_bytes()]).unwrap();
    log.sync().unwrap();
    assert_eq!(log.write(0, &[]), Err(LogError::Busy));
    assert!(matches!(log.next_op(), Some(LogOp::Write { .. })));
    assert_eq!(log.next_op(), None);
    assert_eq!(log.fail(), Err(LogError::Failed));
    assert_eq!(log.sync(), Err(LogError::Failed));
    assert_eq!(log.read(0), Err(LogError::Failed));
    assert_eq!(log.next_op(), None);
    let mut log = recover(&map, device, config.cleaning).unwrap();
    drain(&mut log, device);
    assert_eq!(contents(&log, device), worker.model.now);
}

/// Does a log that is formatted over an older one show no trace of it, even where its chunks are
/// still present?
#[test]
fn formatting_hides_an_older_log() {
    let map = small_map();
    let (mut config, mut worker) = used(4);
    config.id += 1;
    let mut log = Log::format(&map, lbns(&map), &config).unwrap();
    drain(&mut log, &mut worker.device);
    let mut log = recover(&map, &mut worker.device, config.cleaning).unwrap();
    drain(&mut log, &mut worker.device);
    assert_eq!(
        contents(&log, &mut worker.device),
        vec![0; config.blocks as usize]
    );
}

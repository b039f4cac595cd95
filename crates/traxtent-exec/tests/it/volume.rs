//! Volumes on files.

use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use tempfile::TempDir;
use traxtent_core::layout::raid::Level;
use traxtent_core::units::Lbn;
use traxtent_core::volume::superblock::MemberState;
use traxtent_core::workload::Rng;
use traxtent_exec::volume::{DeviceVolume, Plan, create, find, rebuild_some, wait};
use uuid::Uuid;

const SECTOR: usize = 512;

/// A folder in memory, where there is one: flushes cost nothing there.
fn quick_folder() -> TempDir {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    folder.expect("there is room for a folder")
}

/// A new volume on four files; its parity is made.
fn volume(folder: &Path, level: Level) -> DeviceVolume {
    let paths: Vec<PathBuf> = ["a", "b", "c", "d"].map(|name| folder.join(name)).into();
    for path in &paths {
        let file = std::fs::File::create(path).unwrap();
        file.set_len(10 << 20).unwrap();
    }
    let plan = Plan {
        level,
        chunk_bytes: Some(16 << 10),
        granule_bytes: 4096,
        journal_bytes: 1 << 20,
        members: paths.iter().map(|path| (path.clone(), None)).collect(),
        force: false,
    };
    let mut ids = 0;
    let id = || {
        ids += 1;
        Uuid::from_u128(ids)
    };
    create(&plan, id, |_| None).unwrap();
    let volume = find(&paths, false).unwrap().open().unwrap();
    scrub(&volume);
    wait(volume.scrub_checkpoint(volume.array().stripes())).unwrap();
    volume
}

/// Rows that disagree.
fn scrub(volume: &DeviceVolume) -> u64 {
    let stripes = 0..volume.array().stripes();
    stripes
        .map(|stripe| wait(volume.scrub(stripe)).unwrap().wrong)
        .sum()
}

/// Of 300 requests, so many may find the journal full: then writes pause, and what is noted on members takes a few bytes.
const PAUSES: u64 = 30;
const PAUSE_BYTES: u64 = 256;

/// Do reads and writes of all kinds, whole and with a member failed, ask for no memory once the volume has done some, but where
/// the journal is full?
#[test]
fn no_allocation_in_steady_state() {
    for level in Level::ALL {
        let folder = quick_folder();
        let volume = volume(folder.path(), level);
        let mut rng = Rng::new(7);
        let sectors = volume.capacity().0;
        let mut bytes = vec![0; 384 * SECTOR];
        let mut request = |number: u64| {
            let length = match rng.below(3) {
                0 => 8,
                1 => 1 + rng.below(100),
                _ => 384,
            };
            let first = match rng.below(2) {
                0 => rng.below(sectors - length),
                // A stripe of RAID-4 and RAID-5 has 96 sectors.
                _ => rng.below((sectors - length) / 96) * 96,
            };
            let bytes = &mut bytes[..length as usize * SECTOR];
            allocation_counter::measure(|| match number % 4 {
                0 => wait(volume.read(Lbn(first), bytes)).unwrap(),
                _ => wait(volume.write(Lbn(first), bytes)).unwrap(),
            })
        };
        for degraded in [false, true] {
            if degraded {
                if level == Level::Raid0 {
                    continue;
                }
                wait(volume.fail(1)).unwrap();
            }
            for number in 0..500 {
                request(number);
            }
            let counted: Vec<_> = (0..300).map(&mut request).collect();
            let some = counted.iter().filter(|counted| counted.count_total > 0);
            let bytes = some.clone().map(|counted| counted.bytes_total).max();
            let (name, some) = (level.name(), some.count() as u64);
            println!("{name}, degraded: {degraded}: {some} requests, {bytes:?} bytes at most");
            assert!(
                some <= PAUSES && bytes.unwrap_or(0) <= PAUSE_BYTES,
                "{name}, degraded: {degraded}: {some} requests allocate, up to {bytes:?} bytes"
            );
        }
    }
}

/// Is a member right that two threads rebuild while another writes?
#[test]
fn rebuilt_under_writes() {
    for (seed, level) in [(1, Level::Raid1), (2, Level::Raid4), (3, Level::Raid5)] {
        let folder = quick_folder();
        let volume = volume(folder.path(), level);
        let sectors = volume.capacity().0;
        let mut expected = vec![0; sectors as usize * SECTOR];
        wait(volume.write(Lbn(0), &expected)).unwrap();
        wait(volume.fail(1)).unwrap();
        wait(volume.begin_rebuild(1)).unwrap();
        let rebuilt = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut rng = Rng::new(seed);
                while !rebuilt.load(Ordering::Relaxed) {
                    let length = 1 + rng.below(300);
                    let first = rng.below(sectors - length);
                    let at = first as usize * SECTOR..(first + length) as usize * SECTOR;
                    expected[at.clone()].fill(rng.bits() as u8);
                    wait(volume.write(Lbn(first), &expected[at])).unwrap();
                }
            });
            while rebuild_some(&volume).unwrap() {}
            rebuilt.store(true, Ordering::Relaxed);
            writer.join().unwrap();
        });
        let superblock = wait(volume.superblock());
        assert_eq!(superblock.members[1].state, MemberState::Active);
        assert_eq!(scrub(&volume), 0, "{}", level.name());
        // What it has is what is read without another one.
        let gone: &[usize] = if level == Level::Raid1 {
            &[0, 2, 3]
        } else {
            &[2]
        };
        for member in gone {
            wait(volume.fail(*member)).unwrap();
        }
        let mut read = vec![1; expected.len()];
        wait(volume.read(Lbn(0), &mut read)).unwrap();
        assert!(read == expected, "{}", level.name());
    }
}

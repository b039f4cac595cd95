//! Volumes on files and block devices.

use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;

use futures_lite::future::block_on;
use tempfile::TempDir;
use traxtent_layout::raid::Level;
use traxtent_server::service::BlockService;
use traxtent_server::volume::{
    Device, DeviceVolume, Devices, MaintenanceKind, MaintenanceTask, Repairs, VolumePlan,
    VolumeServer, create, find, maintain, rebuild_for_a_second,
};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_volume::superblock::MemberState;
use traxtent_volume::{Action, MemberIo, Op, Repair};
use uuid::Uuid;

use crate::devices::{Image, Loop, SECTORS};

/// The size of a sector in bytes.
const SECTOR: usize = 512;

/// Returns a directory in memory if possible, where flushes cost nothing.
fn quick_folder() -> TempDir {
    let folder = TempDir::new_in("/dev/shm").or_else(|_| TempDir::new());
    folder.expect("a directory can be created")
}

/// Returns a new volume on four files of zeros, which needs no sync.
fn volume(folder: &Path, level: Level) -> DeviceVolume {
    let paths: Vec<PathBuf> = ["a", "b", "c", "d"].map(|name| folder.join(name)).into();
    for path in &paths {
        let file = std::fs::File::create(path).unwrap();
        file.set_len(10 << 20).unwrap();
    }
    let plan = VolumePlan {
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
    find(&paths, false).unwrap().open().unwrap()
}

/// Returns a RAID-5 full of data, and the data.
fn full_volume(folder: &Path, seed: u64) -> (DeviceVolume, Vec<u8>) {
    let volume = volume(folder, Level::Raid5);
    let mut rng = Rng::new(seed);
    let mut data = vec![0; volume.capacity().0 as usize * SECTOR];
    data.fill_with(|| rng.bits() as u8);
    block_on(volume.write(Lbn(0), &data)).unwrap();
    (volume, data)
}

/// Scrubs a volume and returns the number of inconsistent rows.
fn scrub(volume: &DeviceVolume) -> u64 {
    let stripes = 0..volume.array().stripes();
    stripes
        .map(|stripe| {
            block_on(volume.scrub(stripe, Repair::NONE))
                .unwrap()
                .wrong()
        })
        .sum()
}

/// The largest number of requests, out of 300, that may allocate memory because the journal is
/// full. Writes then pause, which is recorded on the members.
const PAUSES: u64 = 30;
/// The largest number of bytes that recording a pause may allocate.
const PAUSE_BYTES: u64 = 256;

/// Do reads and writes of all kinds, with all members and with one failed, allocate no memory in
/// steady state, except when the journal is full?
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
                0 => block_on(volume.read(Lbn(first), bytes)).unwrap(),
                _ => block_on(volume.write(Lbn(first), bytes)).unwrap(),
            })
        };
        for degraded in [false, true] {
            if degraded {
                if level == Level::Raid0 {
                    continue;
                }
                block_on(volume.fail(1)).unwrap();
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
                "{name}, degraded: {degraded}: {some} requests allocate up to {bytes:?} bytes"
            );
        }
    }
}

/// Is a member correct after some threads have rebuilt it while another thread wrote?
#[test]
fn rebuilt_under_writes() {
    for (seed, level) in [(1, Level::Raid1), (2, Level::Raid4), (3, Level::Raid5)] {
        let folder = quick_folder();
        let volume = volume(folder.path(), level);
        let sectors = volume.capacity().0;
        let mut expected = vec![0; sectors as usize * SECTOR];
        block_on(volume.write(Lbn(0), &expected)).unwrap();
        block_on(volume.fail(1)).unwrap();
        block_on(volume.begin_rebuild(1)).unwrap();
        let rebuilt = AtomicBool::new(false);
        thread::scope(|scope| {
            let writer = scope.spawn(|| {
                let mut rng = Rng::new(seed);
                while !rebuilt.load(Ordering::Relaxed) {
                    let length = 1 + rng.below(300);
                    let first = rng.below(sectors - length);
                    let at = first as usize * SECTOR..(first + length) as usize * SECTOR;
                    expected[at.clone()].fill(rng.bits() as u8);
                    block_on(volume.write(Lbn(first), &expected[at])).unwrap();
                }
            });
            while rebuild_for_a_second(&volume).unwrap() {}
            rebuilt.store(true, Ordering::Relaxed);
            writer.join().unwrap();
        });
        let superblock = block_on(volume.superblock());
        assert_eq!(superblock.members[1].state, MemberState::Active);
        assert_eq!(scrub(&volume), 0, "{}", level.name());
        // With another member missing, reads reconstruct data from this one.
        let gone: &[usize] = if level == Level::Raid1 {
            &[0, 2, 3]
        } else {
            &[2]
        };
        for member in gone {
            block_on(volume.fail(*member)).unwrap();
        }
        let mut read = vec![1; expected.len()];
        block_on(volume.read(Lbn(0), &mut read)).unwrap();
        assert!(read == expected, "{}", level.name());
    }
}

/// Do block devices carry out concurrent operations correctly: any number of reads and writes with
/// memory at any address, flushes in between, and some that must fail?
#[test]
fn block_devices_side_by_side() {
    let losetup = testkit::tool!("losetup");
    let images = ["side-by-side-0", "side-by-side-1"].map(Image::new);
    let loops: Result<Vec<Loop>, String> = images
        .iter()
        .map(|image| Loop::attach(&losetup, &image.0))
        .collect();
    let loops = match loops {
        Ok(loops) => loops,
        Err(why) => testkit::skip!("no loop device: {why}"),
    };
    let open = |one: &Loop| Some(Device::open(&one.0).unwrap());
    let members = Devices::new(loops.iter().map(open).chain([None]).collect());
    let mut contents = vec![vec![0; SECTORS as usize * SECTOR]; 2];
    let seed = 11;
    println!("seed {seed}");
    let mut rng = Rng::new(seed);
    for _ in 0..200 {
        // The ranges within the device do not overlap; a few are beyond its end. Every operation on
        // the missing member fails.
        let count = 1 + rng.below(100);
        let place = SECTORS / count;
        let mut requests: Vec<(usize, Lbn, bool, usize, Vec<u8>)> = Vec::new();
        for number in 0..count {
            let (member, writes) = (rng.below(3) as usize, rng.below(2) == 0);
            let sectors = 1 + rng.below(place.min(300));
            let at = match rng.below(50) {
                0 => SECTORS,
                _ => number * place + rng.below(place - sectors + 1),
            };
            let offset = rng.below(3) as usize * 8;
            let mut memory = vec![0; offset + sectors as usize * SECTOR];
            if writes {
                memory[offset..].fill(rng.bits() as u8);
            }
            requests.push((member, Lbn(at), writes, offset, memory));
        }
        let mut ops: Vec<Op<'_>> = Vec::new();
        for (member, at, writes, offset, memory) in &mut requests {
            let memory = &mut memory[*offset..];
            ops.push(if *writes {
                Op::write(*member, *at, memory)
            } else {
                Op::read(*member, *at, memory)
            });
            if rng.below(20) == 0 {
                ops.push(Op::flush(*member));
            }
        }
        block_on(members.run(&mut ops));
        for op in ops {
            let (at, bytes) = match &op.action {
                Action::Flush => {
                    assert_eq!(op.outcome.is_ok(), op.member < 2);
                    continue;
                }
                Action::Read(at, into) => (*at, &**into),
                Action::Write(at, from) => (*at, *from),
            };
            let can = op.member < 2 && at.0 < SECTORS;
            assert_eq!(op.outcome.is_ok(), can, "member {}, {at:?}", op.member);
            if can {
                let first = at.0 as usize * SECTOR;
                let expected = &mut contents[op.member][first..first + bytes.len()];
                match &op.action {
                    Action::Write(..) => expected.copy_from_slice(bytes),
                    _ => assert!(bytes == expected, "member {}, {at:?}", op.member),
                }
            }
        }
    }
    for (member, contents) in contents.iter().enumerate() {
        let mut read = vec![1; contents.len()];
        let half = read.len() / 2;
        let (low, high) = read.split_at_mut(half);
        let middle = Lbn(SECTORS / 2);
        let mut ops = [
            Op::read(member, Lbn(0), low),
            Op::read(member, middle, high),
        ];
        block_on(members.run(&mut ops));
        assert!(ops.iter().all(|op| op.outcome.is_ok()));
        assert!(read == *contents, "member {member}");
    }
}

/// After a member's file is truncated, is every byte read correctly, and is the member marked
/// failed although a write would extend the file again?
#[test]
fn a_file_cut_short() {
    for length in [0, 3 << 20] {
        let folder = quick_folder();
        let (volume, expected) = full_volume(folder.path(), 5);
        let file = std::fs::File::options()
            .write(true)
            .open(folder.path().join("b"));
        file.unwrap().set_len(length).unwrap();
        for _ in 0..2 {
            let mut read = vec![1; expected.len()];
            for (number, piece) in read.chunks_mut(48 * SECTOR).enumerate() {
                block_on(volume.read(Lbn(number as u64 * 48), piece)).unwrap();
            }
            assert!(read == expected, "cut to {length}");
        }
        block_on(volume.write(Lbn(0), &expected)).unwrap();
        let superblock = block_on(volume.superblock());
        assert_eq!(superblock.members[1].state, MemberState::Failed);
    }
}

/// Does a scrub end with an error when a member fails, because nothing can be compared without it?
#[test]
fn a_scrub_without_a_member() {
    let folder = quick_folder();
    let (volume, _) = full_volume(folder.path(), 7);
    let (stripes, mut last) = (volume.array().stripes(), 0);
    let task = MaintenanceTask::new(MaintenanceKind::Scrub);
    let ended = maintain(&volume, task, &AtomicBool::new(false), |now| {
        last = now.next;
        if last == 3 {
            block_on(volume.mark_failed(1)).unwrap();
        }
    });
    let says = ended.unwrap_err().to_string();
    assert!(says.contains("member 1 has failed"), "{says}");
    assert!(last < 5 && stripes > 5, "{last} of {stripes}");
}

/// Does a scrub that was stopped resume where it ended if it found nothing, and otherwise at the
/// first difference, so that a repair finds it again and a clean result means that there is none?
#[test]
fn a_stopped_scrub_resumes_before_the_first_difference() {
    let folder = quick_folder();
    let (volume, _) = full_volume(folder.path(), 8);
    let run = |repair: Repairs, until: u64| {
        let task = MaintenanceTask {
            repair,
            ..MaintenanceTask::new(MaintenanceKind::Scrub)
        };
        let stop = AtomicBool::new(false);
        let ended = maintain(&volume, task, &stop, |now| {
            stop.store(now.next == until, Ordering::Relaxed);
        });
        let ended = ended.unwrap();
        (ended.first, ended.wrong_rows, ended.done)
    };
    let (reports, repairs) = (
        Repairs::default(),
        Repairs {
            sectors: true,
            parity: true,
            from: None,
        },
    );
    assert_eq!(run(reports, 2), (0, 0, false));
    let chunk = volume.array().stripe(3).unwrap().chunk_on(0);
    let file = std::fs::File::options()
        .write(true)
        .open(folder.path().join("a"));
    let at = chunk.lbn.0 * volume.sector_bytes() as u64;
    file.unwrap().write_all_at(&[0x5a; 512], at).unwrap();
    assert_eq!(run(reports, 5), (2, 1, false));
    assert_eq!(run(reports, 5), (3, 1, false));
    assert_eq!(run(repairs, 6), (3, 1, false));
    assert_eq!(run(reports, 6), (3, 0, false));
    assert_eq!(run(reports, u64::MAX), (6, 0, true));
    assert_eq!(run(reports, u64::MAX), (0, 0, true));
}

/// Is a member whose file was found truncated stale at the next start, even if nothing was written,
/// the file has its old size again and the server was killed?
#[test]
fn a_file_cut_short_while_served() {
    let folder = quick_folder();
    let (volume, expected) = full_volume(folder.path(), 6);
    block_on(volume.stop()).unwrap();
    drop(volume);
    let paths = ["a", "b", "c", "d"].map(|name| folder.path().join(name));
    let server = VolumeServer::open(&paths, None).unwrap();
    let file = std::fs::File::options().write(true).open(&paths[1]);
    let file = file.unwrap();
    file.set_len(3 << 20).unwrap();
    let mut read = vec![1; expected.len()];
    server.read(&mut read, 0).unwrap();
    assert!(read == expected);
    file.set_len(10 << 20).unwrap();
    server.read(&mut read, 0).unwrap();
    assert!(read == expected);
    // Without stopping the server.
    drop(server);
    let stale = find(&paths, false).unwrap_err().to_string();
    assert!(stale.contains("b: stale"), "{stale}");
    let without = [&paths[0], &paths[2], &paths[3]].map(Clone::clone);
    let left = VolumeServer::open(&without, None).unwrap();
    left.read(&mut read, 0).unwrap();
    assert!(read == expected);
    left.stop().unwrap();
}

/// Does recovery of a volume with a journal of 256 MiB use less than 32 MiB of memory at a time,
/// and still find the data?
#[test]
fn a_large_journal_is_read_in_pieces() {
    let folder = quick_folder();
    let paths = ["a", "b", "c"].map(|name| folder.path().join(name));
    for path in &paths {
        let file = std::fs::File::create(path).unwrap();
        file.set_len(300 << 20).unwrap();
    }
    let plan = VolumePlan {
        level: Level::Raid5,
        chunk_bytes: Some(64 << 10),
        granule_bytes: 4096,
        journal_bytes: 256 << 20,
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
    let data = [7; 8 * SECTOR];
    block_on(volume.write(Lbn(3), &data)).unwrap();
    // Without stopping the volume.
    drop(volume);
    let found = find(&paths, false).unwrap();
    let mut opened = None;
    let taken = allocation_counter::measure(|| opened = Some(found.open()));
    let volume = opened.unwrap().unwrap();
    println!("{} bytes at most", taken.bytes_max);
    assert!(taken.bytes_max < 32 << 20, "{} bytes", taken.bytes_max);
    let mut read = [0; 8 * SECTOR];
    block_on(volume.read(Lbn(3), &mut read)).unwrap();
    assert!(read == data);
    assert_eq!(scrub(&volume), 0);
}

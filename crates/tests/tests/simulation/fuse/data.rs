//! Does the file have the content of the service, for requests of any kind?

use std::fs::{File, OpenOptions};
use std::io::Write;
use std::os::unix::fs::{FileExt, MetadataExt, OpenOptionsExt, PermissionsExt};
use std::sync::{Arc, Barrier};
use std::thread;

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use rustix::io::Errno;
use tempfile::TempDir;
use traxtent_units::Rng;

use super::service::{MemoryService, Seen};
use super::{Mounted, needs_fuse, run, text};

/// The size of the service in bytes.
const SIZE: usize = 1 << 20;

fn random_bytes(rng: &mut Rng, count: usize) -> Vec<u8> {
    (0..count).map(|_| rng.below(256) as u8).collect()
}

/// Opens the file for reading and writing.
fn open(mounted: &Mounted) -> File {
    let file = OpenOptions::new()
        .read(true)
        .write(true)
        .open(mounted.file());
    file.expect("the file can be opened")
}

/// Returns the error number of a call that must fail.
fn errno<T: std::fmt::Debug>(result: std::io::Result<T>) -> Errno {
    let error = result.expect_err("the call must fail");
    Errno::from_io_error(&error).expect("the error is from the system")
}

/// Do reads and writes at any offset and length have the same effect as on a regular file, on
/// drives with sectors of 512 and of 4,096 bytes?
#[test]
fn any_bytes_can_be_read_and_written() {
    needs_fuse!();
    for (seed, sector) in [(1, 512), (2, 4096)] {
        let service = Arc::new(MemoryService::new(SIZE, sector));
        let mounted = Mounted::of(&service);
        let file = open(&mounted);
        let mut rng = Rng::new(seed);
        let mut expected = vec![0; SIZE];
        for step in 0..2000 {
            let count = 1 + rng.below(3 * u64::from(sector)) as usize;
            let at = rng.below((SIZE - count) as u64) as usize;
            if rng.below(2) == 0 {
                let bytes = random_bytes(&mut rng, count);
                file.write_all_at(&bytes, at as u64).unwrap();
                expected[at..at + count].copy_from_slice(&bytes);
            } else {
                let mut bytes = vec![1; count];
                file.read_exact_at(&mut bytes, at as u64).unwrap();
                let same = bytes == expected[at..at + count];
                assert!(same, "seed {seed}, step {step}: {count} bytes at {at}");
            }
        }
        assert!(service.data() == expected, "seed {seed}");
        drop(file);
        mounted.stop();
    }
}

/// Can ordinary tools write data in blocks that are not whole sectors, and read the same data back?
#[test]
fn ordinary_tools_read_and_write() {
    needs_fuse!();
    let (dd, cmp, cp) = (
        testkit::tool!("dd"),
        testkit::tool!("cmp"),
        testkit::tool!("cp"),
    );
    let service = Arc::new(MemoryService::new(SIZE, 512));
    let mounted = Mounted::of(&service);
    let (folder, file) = (TempDir::new().unwrap(), mounted.file());
    let mut image = random_bytes(&mut Rng::new(1), SIZE);
    let path = folder.path().join("image");
    std::fs::write(&path, &image).unwrap();
    // Replacing the contents of the file does not change its size, as with a block device.
    run(cp, &[text(&path), text(&file)]);
    assert!(service.data() == image);
    run(&cmp, &[text(&path), text(&file)]);
    let (from, to) = (format!("if={}", text(&path)), format!("of={}", text(&file)));
    let options = ["bs=1000", "seek=7", "count=100", "conv=notrunc,fsync"];
    run(&dd, &[&[&*from, &*to], &options[..]].concat());
    image.copy_within(..100_000, 7000);
    assert!(service.data() == image);
    std::fs::write(&path, &image).unwrap();
    run(&cmp, &[text(&path), text(&file)]);
    mounted.stop();
}

/// Are concurrent writes from several threads to parts of one sector all kept?
#[test]
fn writes_to_one_sector_do_not_overwrite_each_other() {
    needs_fuse!();
    const PARTS: u64 = 8;
    let service = Arc::new(MemoryService::new(SIZE, 4096));
    let mounted = Mounted::of(&service);
    let together = Barrier::new(PARTS as usize);
    for round in 1..=100 {
        thread::scope(|scope| {
            for part in 0..PARTS {
                let (together, mounted) = (&together, &mounted);
                scope.spawn(move || {
                    let file = open(mounted);
                    together.wait();
                    file.write_all_at(&[round; 512], part * 512).unwrap();
                });
            }
        });
        assert!(service.data()[..4096] == [round; 4096], "round {round}");
    }
    mounted.stop();
}

/// Does every read reach the service with its own offset and size, even a repeated one?
#[test]
fn nothing_is_cached() {
    needs_fuse!();
    let service = Arc::new(MemoryService::new(SIZE, 512));
    let mounted = Mounted::of(&service);
    let file = open(&mounted);
    let mut buffer = vec![0; 8192];
    for _ in 0..2 {
        file.read_exact_at(&mut buffer, 512).unwrap();
    }
    let (offset, count) = (512, 8192);
    assert_eq!(service.take_seen(), [Seen::Read { offset, count }; 2]);
    drop(file);
    mounted.stop();
}

/// Are reads and writes across the end short, and do writes at the end fail? Are changes of the
/// size and of the permissions refused, and does opening with O_TRUNC change nothing?
#[test]
fn the_size_is_fixed() {
    needs_fuse!();
    let service = Arc::new(MemoryService::new(SIZE, 512));
    service.fill(|data| data.fill(7));
    let mounted = Mounted::of(&service);
    let size = SIZE as u64;
    let file = open(&mounted);
    assert_eq!(file.metadata().unwrap().len(), size);
    assert_eq!(file.metadata().unwrap().blocks(), size / 512);
    let mut buffer = [0; 1000];
    assert_eq!(file.read_at(&mut buffer, size - 100).unwrap(), 100);
    assert_eq!(file.read_at(&mut buffer, size).unwrap(), 0);
    assert_eq!(file.write_at(&[8; 1000], size - 100).unwrap(), 100);
    assert_eq!(errno(file.write_at(&[8; 1000], size)), Errno::NOSPC);
    assert_eq!(errno(file.set_len(size / 2)), Errno::INVAL);
    assert_eq!(errno(file.set_len(size + 512)), Errno::INVAL);
    assert_eq!(
        errno(file.set_permissions(PermissionsExt::from_mode(0o777))),
        Errno::PERM
    );
    // Opening with O_TRUNC does not change the contents of a drive.
    drop(File::create(mounted.file()).unwrap());
    let expected = [vec![7; SIZE - 100], vec![8; 100]].concat();
    assert!(service.data() == expected);
    assert_eq!(file.metadata().unwrap().len(), size);
    drop(file);
    mounted.stop();
}

/// Does fsync flush, is a synchronous write durable when it returns, and does an error of the
/// service reach the client?
#[test]
fn durability_and_errors_are_passed_on() {
    needs_fuse!();
    let service = Arc::new(MemoryService::new(SIZE, 512));
    let mounted = Mounted::of(&service);
    let file = open(&mounted);
    file.write_all_at(&[1; 512], 0).unwrap();
    file.sync_data().unwrap();
    let flags = OFlags::DSYNC.bits().cast_signed();
    let mut synchronous = OpenOptions::new()
        .write(true)
        .custom_flags(flags)
        .open(mounted.file())
        .unwrap();
    synchronous.write_all(&[2; 512]).unwrap();
    let write = |fua| Seen::Write {
        offset: 0,
        count: 512,
        fua,
    };
    assert_eq!(
        service.take_seen(),
        [write(false), Seen::Flush, write(true)]
    );
    service.set_failing(true);
    assert_eq!(errno(file.read_at(&mut [0; 512], 0)), Errno::IO);
    assert_eq!(errno(file.write_at(&[0; 512], 0)), Errno::IO);
    assert_eq!(errno(file.sync_all()), Errno::IO);
    service.set_failing(false);
    assert_eq!(file.read_at(&mut [0; 512], 0).unwrap(), 512);
    drop((file, synchronous));
    mounted.stop();
}

/// Do punched holes and zeroed ranges read as zeros, to the byte? Are holes refused if the drive
/// ignores trims, and allocations if they extend beyond the end?
#[test]
fn holes_read_as_zeros() {
    needs_fuse!();
    let hole = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
    for (trim_zeroes, flags) in [(true, hole), (false, FallocateFlags::ZERO_RANGE)] {
        let mut service = MemoryService::new(SIZE, 512);
        service.trim_zeroes = trim_zeroes;
        service.maximum = 8192;
        let service = Arc::new(service);
        let mounted = Mounted::of(&service);
        let file = open(&mounted);
        // The offset and length of a range in bytes, and the number of pieces of at most 8,192
        // bytes into which its whole sectors are divided.
        for (offset, count, pieces) in [
            (1000, 20_000, 3),
            (512, 1024, 1),
            (700, 100, 0),
            (900, 300, 0),
        ] {
            service.fill(|data| data.fill(9));
            service.take_seen();
            fallocate(&file, flags, offset, count).unwrap();
            let mut expected = vec![9; SIZE];
            expected[offset as usize..][..count as usize].fill(0);
            assert!(service.data() == expected, "{flags:?} {offset} {count}");
            let seen = service.take_seen();
            let number = |is: fn(&&Seen) -> bool| seen.iter().filter(is).count();
            let trims = number(|one| matches!(one, Seen::Trim { .. }));
            let zeros = number(|one| matches!(one, Seen::Zero { .. }));
            let expected = if flags == hole {
                (pieces, 0)
            } else {
                (0, pieces)
            };
            assert_eq!((trims, zeros), expected, "{seen:?}");
        }
        if !trim_zeroes {
            let before = service.data();
            assert_eq!(fallocate(&file, hole, 0, 4096), Err(Errno::OPNOTSUPP));
            assert!(service.data() == before && service.take_seen().is_empty());
        }
        // All sectors of a drive are allocated.
        fallocate(&file, FallocateFlags::empty(), 0, 4096).unwrap();
        let beyond = fallocate(&file, FallocateFlags::empty(), SIZE as u64 - 10, 100);
        assert_eq!(beyond, Err(Errno::NOSPC));
        drop(file);
        mounted.stop();
    }
}

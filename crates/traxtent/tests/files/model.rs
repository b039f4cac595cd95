//! Does a file keep its content while it is used and, at the same time, moved and fragmented?
//!
//! Random operations on one file are compared with a model in memory, as `fsx` does.

use std::fs::{self, File};
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::Path;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use traxtent_check::target::HostPaths;
use traxtent_file::{FileSystem, Outcome, RealignOptions, TrackedDrive, realign};
use traxtent_io::ext4::exchange;
use traxtent_layout::Partition;
use traxtent_map::TrackMap;
use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_units::Rng;

use crate::disk::{BLOCK, Disk, MAP, Stop, difference, nameless, needs_mounts, random};

/// The maximum length of the file.
const BYTES_MAX: u64 = 3 << 20;

/// Performs random reads and writes on a file, resizes it, punches holes, zeroes ranges,
/// preallocates space and syncs it, while one thread moves it onto whole tracks and another
/// fragments it. Does every read return what a model in memory holds?
#[test]
fn a_file_is_used_while_it_is_moved() {
    needs_mounts!();
    let operations = testkit::repeats(20_000).min(1_000_000);
    let seed = 1;
    let mut disk = Disk::new(96);
    let path = disk.path("file");
    fs::write(&path, []).unwrap();
    let mut used = Used::new(&path, seed);
    let ended = AtomicBool::new(false);
    let (moved, scattered) = (AtomicU64::new(0), AtomicU64::new(0));
    let begun = Instant::now();
    let progress = testkit::SoakProgress::new("operations", operations);
    let lives = || !ended.load(Ordering::Relaxed);
    thread::scope(|scope| {
        let _stop = Stop(&ended);
        scope.spawn(|| {
            let (system, partition) = tracks(&path);
            while lives() {
                let options = RealignOptions {
                    extra_bytes_max: 16 << 20,
                };
                let mut watch = |bytes, _| {
                    moved.fetch_add(bytes, Ordering::Relaxed);
                    if lives() {
                        ControlFlow::Continue(())
                    } else {
                        ControlFlow::Break(())
                    }
                };
                match realign(&path, &system, &partition, &options, &mut watch).unwrap() {
                    Outcome::Moved(_) | Outcome::Aligned => {}
                    Outcome::LeftAlone(why) => {
                        assert!(!why.contains("cannot"), "{why}");
                    }
                }
            }
        });
        scope.spawn(|| {
            let mut rng = Rng::new(seed + 1);
            while lives() {
                let blocks = scatter(&path, &mut rng);
                scattered.fetch_add(blocks * BLOCK, Ordering::Relaxed);
                thread::sleep(Duration::from_millis(3));
            }
        });
        for operation in 0..operations {
            used.step(operation);
            progress.at(operation + 1);
        }
    });
    let took = begun.elapsed();
    let model = used.finish();
    disk.remount();
    let found = fs::read(&path).unwrap();
    let wrong = difference(&found, &model);
    assert_eq!(wrong, None, "seed {seed}: after an unmount");
    disk.assert_clean();
    let (moved, scattered) = (moved.into_inner() >> 20, scattered.into_inner() >> 20);
    eprintln!(
        "seed {seed}: {operations} operations in {:.1} s, {moved} MiB moved onto tracks, \
         {scattered} MiB fragmented meanwhile",
        took.as_secs_f64()
    );
    assert!(moved > 0 && scattered > 0);
}

/// Returns the file system of a path, and its tracks.
pub(crate) fn tracks(path: &Path) -> (FileSystem, Partition) {
    let system = FileSystem::of(path, &HostPaths::default()).unwrap();
    let profile = builtin(MAP).unwrap();
    let geometry = Drive::new(&profile).unwrap().geometry().clone();
    let drive = TrackedDrive {
        map: Arc::new(TrackMap::from_sizes(geometry.track_sizes())),
        sector_bytes: 512,
    };
    let partition = system.partition(&drive).unwrap();
    (system, partition)
}

/// Exchanges blocks of a file with blocks elsewhere, a few at a time. Returns their number.
fn scatter(path: &Path, rng: &mut Rng) -> u64 {
    let file = File::options().read(true).write(true).open(path).unwrap();
    let folder = path.parent().unwrap();
    let (donor, other) = (nameless(folder).unwrap(), nameless(folder).unwrap());
    let blocks = 1 + rng.below(200);
    let part = 1 + rng.below(12);
    // Two files grow in turns, so that the blocks of each are scattered.
    for at in (0..blocks).step_by(part as usize) {
        for file in [&donor, &other] {
            let _ = fallocate(file, FallocateFlags::empty(), at * BLOCK, part * BLOCK);
        }
    }
    let first = rng.below(BYTES_MAX / BLOCK);
    let mut done = 0;
    while done < blocks {
        // Errors are expected, because the file has holes, and becomes shorter.
        let count = (1 + rng.below(part)).min(blocks - done);
        let exchanged = exchange(&file, &donor, first + done, done, count);
        if exchanged.blocks == 0 {
            break;
        }
        done += exchanged.blocks;
    }
    done
}

/// The file, and the model with which it is compared.
struct Used {
    file: File,
    direct: Option<File>,
    model: Vec<u8>,
    rng: Rng,
    seed: u64,
}

impl Used {
    fn new(path: &Path, seed: u64) -> Used {
        let mut options = File::options();
        options.read(true).write(true);
        let file = options.open(path).unwrap();
        let direct = OFlags::DIRECT.bits().cast_signed();
        Used {
            file,
            direct: options.custom_flags(direct).open(path).ok(),
            model: Vec::new(),
            rng: Rng::new(seed),
            seed,
        }
    }

    /// Closes the file, and returns what it must hold.
    fn finish(self) -> Vec<u8> {
        self.file.sync_all().unwrap();
        self.model
    }

    /// Performs one operation.
    fn step(&mut self, operation: u64) {
        let length = self.model.len() as u64;
        let start = self.rng.below(BYTES_MAX);
        let count = match self.rng.below(8) {
            0 => 1 + self.rng.below(256 << 10),
            1..4 => 1 + self.rng.below(16 << 10),
            _ => 1 + self.rng.below(3 * BLOCK),
        };
        let count = count.min(BYTES_MAX - start);
        let context = format!(
            "seed {}, operation {operation}: {count} bytes at {start} of {length}",
            self.seed
        );
        match self.rng.below(100) {
            0..45 => self.read(start, count, &context),
            45..78 => self.write(start, count),
            78..82 => self.write_directly(start, count),
            82..87 => self.set_len(start),
            87..91 => self.punch(start, count),
            91..93 => self.zero(start, count),
            93..95 => self.preallocate(start, count),
            95..98 => self.file.sync_data().expect("there is room"),
            _ => self.file.sync_all().expect("there is room"),
        }
        if operation.is_multiple_of(1000) {
            let mut found = vec![1; self.model.len() + 1];
            let count = self.file.read_at(&mut found, 0).unwrap();
            let wrong = difference(&found[..count], &self.model);
            assert_eq!(wrong, None, "{context}: the whole file");
        }
    }

    fn read(&mut self, start: u64, count: u64, context: &str) {
        let mut found = vec![1; count as usize];
        let got = self.file.read_at(&mut found, start).unwrap();
        let end = self.model.len() as u64;
        let expected = &self.model[start.min(end) as usize..(start + count).min(end) as usize];
        let wrong = difference(&found[..got], expected);
        assert_eq!(wrong, None, "{context}: read");
    }

    fn write(&mut self, start: u64, count: u64) {
        let data = random(&mut self.rng, count as usize);
        self.file.write_all_at(&data, start).expect("there is room");
        self.store(start, &data);
    }

    /// Writes whole blocks without the page cache.
    fn write_directly(&mut self, start: u64, count: u64) {
        let (first, blocks) = (start / BLOCK, count.div_ceil(BLOCK));
        let bytes = (blocks * BLOCK) as usize;
        let mut room = random(&mut self.rng, bytes + BLOCK as usize);
        // Direct writes need a buffer that is aligned to a page.
        let at = room.as_ptr().align_offset(BLOCK as usize);
        let data = &mut room[at..at + bytes];
        if let Some(direct) = &self.direct {
            direct
                .write_all_at(data, first * BLOCK)
                .expect("there is room");
            let data = data.to_vec();
            self.store(first * BLOCK, &data);
        }
    }

    fn set_len(&mut self, length: u64) {
        self.file.set_len(length).expect("there is room");
        self.model.resize(length as usize, 0);
    }

    fn punch(&mut self, start: u64, count: u64) {
        let flags = FallocateFlags::PUNCH_HOLE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, start, count).expect("ext4 punches holes");
        self.clear(start, count);
    }

    fn zero(&mut self, start: u64, count: u64) {
        let flags = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
        fallocate(&self.file, flags, start, count).expect("ext4 zeroes ranges");
        self.clear(start, count);
    }

    fn preallocate(&mut self, start: u64, count: u64) {
        let keep = self.rng.chance(0.5);
        let flags = if keep {
            FallocateFlags::KEEP_SIZE
        } else {
            FallocateFlags::empty()
        };
        fallocate(&self.file, flags, start, count).expect("there is room");
        let end = (start + count) as usize;
        if !keep && end > self.model.len() {
            self.model.resize(end, 0);
        }
    }

    fn clear(&mut self, start: u64, count: u64) {
        let end = self.model.len() as u64;
        self.model[start.min(end) as usize..(start + count).min(end) as usize].fill(0);
    }

    fn store(&mut self, start: u64, data: &[u8]) {
        let end = start as usize + data.len();
        if end > self.model.len() {
            self.model.resize(end, 0);
        }
        self.model[start as usize..end].copy_from_slice(data);
    }
}

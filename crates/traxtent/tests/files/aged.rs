//! Are the large files of an aged file system moved onto whole tracks?

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::time::Instant;

use serde_json::Value;
use traxtent_io::ext4::free_ranges;
use traxtent_units::{Block, Rng};

use crate::disk::{BLOCK, Disk, assert_content, needs_mounts, random};
use crate::model::tracks;

/// The minimum size of a large file.
const LARGE_BYTES: u64 = 4 << 20;
/// The share of the space to which the file system is filled after each round of deletions.
const USED_SHARE: f64 = 0.8;
/// The share before anything is deleted.
const USED_SHARE_AT_FIRST: f64 = 0.95;
/// The range of the files' sizes before anything is deleted.
const SMALL_BYTES: (u64, u64) = (64 << 10, 2 << 20);
/// The range of the sizes of files that are created afterwards.
const MIXED_BYTES: (u64, u64) = (64 << 10, 16 << 20);

/// Fills a file system with files that are written in turns. Then, three times, deletes a third of
/// the files and fills the file system to 80 %. After the large files are moved, are at least 80 %
/// of their bytes on whole tracks, with the same content?
#[test]
fn an_aged_file_system_is_realigned() {
    needs_mounts!();
    let seed = 5;
    let mib = if testkit::repeats(1) > 1 { 1536 } else { 256 };
    let mut disk = Disk::new(mib);
    let begun = Instant::now();
    let mut aged = Aged {
        disk: &disk,
        rng: Rng::new(seed),
        files: Vec::new(),
        made: 0,
    };
    aged.age();
    let files = aged.files;
    let age_s = begun.elapsed().as_secs_f64();
    rustix::fs::sync();
    let large: Vec<&str> = files
        .iter()
        .filter(|file| file.bytes >= LARGE_BYTES)
        .map(|file| file.name.as_str())
        .collect();
    let before = Shares::of(&disk.show(&large));
    let paths: Vec<_> = large.iter().map(|name| disk.path(name)).collect();
    let realign = |options: &[&str]| {
        let mut command = crate::disk::realign_command(&paths, crate::disk::MAP);
        command.arg("--json").args(options);
        crate::disk::said(command)
    };
    let planned: Vec<Value> =
        serde_json::from_str(&realign(&["--dry-run"]).out).expect("it is JSON");
    let planned: Vec<Value> = planned.iter().map(|row| row["after"].clone()).collect();
    let planned = Shares::of(&planned);
    let free_before = whole_tracks_free(&disk);
    let begun = Instant::now();
    let said = realign(&[]);
    let took = begun.elapsed().as_secs_f64();
    let rows: Vec<Value> = serde_json::from_str(&said.out).expect("it is JSON");
    let sum = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum::<u64>();
    let extra = rows
        .iter()
        .filter_map(|row| row["extra_bytes"].as_u64())
        .max();
    let after = Shares::of(&disk.show(&large));
    eprintln!(
        "seed {seed}: {mib} MiB with {} files, aged in {age_s:.1} s; {free_before} whole tracks \
         free; {} large files of {} MiB: \
         {:.1} % -> {:.1} % on whole tracks ({:.1} % planned), {} -> {} pieces; {} MiB moved in {took:.1} s; at most \
         {} MiB allocated in addition",
        files.len(),
        large.len(),
        before.bytes >> 20,
        100.0 * before.share(),
        100.0 * after.share(),
        100.0 * planned.share(),
        before.pieces,
        after.pieces,
        sum("moved_bytes") >> 20,
        extra.unwrap_or(0) >> 20,
    );
    assert!(matches!(said.status, Some(0 | 1)), "{}", said.err);
    assert!(large.len() >= 5, "{large:?}");
    assert!(before.share() < 0.9, "they were not fragmented");
    assert!(after.share() >= 0.8, "{}", said.out);
    disk.remount();
    for file in &files {
        let content = file.content();
        assert_content(&disk.path(&file.name), &content, format!("seed {seed}"));
    }
    disk.assert_clean();
}

/// A file whose content follows from its number.
#[derive(Clone)]
struct AgedFile {
    name: String,
    number: u64,
    bytes: u64,
}

impl AgedFile {
    fn content(&self) -> Vec<u8> {
        random(&mut Rng::new(self.number), self.bytes as usize)
    }
}

/// A file system that ages.
struct Aged<'a> {
    disk: &'a Disk,
    rng: Rng,
    files: Vec<AgedFile>,
    made: u64,
}

impl Aged<'_> {
    fn age(&mut self) {
        // Small files first, so that the free space becomes scattered.
        self.fill(USED_SHARE_AT_FIRST, SMALL_BYTES);
        for _ in 0..3 {
            for _ in 0..self.files.len() / 3 {
                let pick = self.rng.below(self.files.len() as u64) as usize;
                let file = self.files.swap_remove(pick);
                fs::remove_file(self.disk.path(&file.name)).expect("it is there");
            }
            rustix::fs::sync();
            self.fill(USED_SHARE, MIXED_BYTES);
        }
    }

    /// Writes four files at a time until this share of the space is used.
    fn fill(&mut self, share: f64, sizes: (u64, u64)) {
        while self.used() < share {
            let mut open: Vec<_> = (0..4).map(|_| self.create(sizes)).collect();
            while !open.is_empty() {
                open.retain_mut(|(file, handle, content, at)| {
                    let count = (16 << 10) + (self.rng.below(4) << 14);
                    let end = (*at + count).min(file.bytes);
                    let part = &content[*at as usize..end as usize];
                    handle.write_all_at(part, *at).expect("there is room");
                    handle.sync_data().expect("there is room");
                    *at = end;
                    end < file.bytes
                });
            }
        }
    }

    fn create(&mut self, (least, most): (u64, u64)) -> (AgedFile, File, Vec<u8>, u64) {
        self.made += 1;
        // Larger files are rarer.
        let scale = least as f64 / most as f64;
        let bytes = least as f64 * scale.powf(-self.rng.fraction());
        let file = AgedFile {
            name: format!("file{}", self.made),
            number: self.made,
            bytes: bytes as u64,
        };
        let handle = File::create(self.disk.path(&file.name)).expect("there is room");
        let content = file.content();
        self.files.push(file.clone());
        (file, handle, content, 0)
    }

    fn used(&self) -> f64 {
        let found = rustix::fs::statvfs(self.disk.root()).expect("it is mounted");
        1.0 - found.f_bavail as f64 / found.f_blocks as f64
    }
}

/// The sums over some files.
struct Shares {
    bytes: u64,
    whole_bytes: u64,
    pieces: u64,
}

impl Shares {
    fn of(rows: &[Value]) -> Shares {
        let sum = |key: &str| rows.iter().filter_map(|row| row[key].as_u64()).sum();
        Shares {
            bytes: sum("bytes"),
            whole_bytes: sum("whole_bytes"),
            pieces: sum("pieces"),
        }
    }

    fn share(&self) -> f64 {
        self.whole_bytes as f64 / self.bytes as f64
    }
}

/// Returns the number of tracks that are free as a whole.
fn whole_tracks_free(disk: &Disk) -> u64 {
    let (_, partition) = tracks(&disk.root());
    let root = File::open(disk.root()).expect("it is mounted");
    let free = free_ranges(root).expect("ext4 reports its free space");
    let mut count = 0;
    for range in free {
        let (start, end) = (Block(range.start / BLOCK), Block(range.end / BLOCK));
        let mut next = partition.traxtent_from(start);
        while let Some(found) = next.filter(|found| found.blocks.end <= end) {
            count += u64::from(found.blocks.start >= start);
            next = partition.next(&found);
        }
    }
    count
}

//! Ages a file system: fills it with files that are written alternately. Three times, deletes a
//! third of them and refills the file system. Prints the names of the large files, largest first.
//!
//! ```sh
//! cargo run --release --package traxtent-file --example age -- DIRECTORY SEED
//! ```
//! The directory is the root of an empty file system. It is first filled to 95 %, then to 80 %
//! after each round of deletions.

use std::error::Error;
use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use traxtent_units::Rng;

/// The share of the space to which each refill fills the file system.
const USED_SHARE: f64 = 0.8;
/// The share of the space to which it is filled before anything is deleted.
const USED_SHARE_AT_FIRST: f64 = 0.95;
/// The range of the files' sizes before anything is deleted.
const SMALL_BYTES: (u64, u64) = (64 << 10, 2 << 20);
/// The range of the sizes of files that are created afterwards.
const MIXED_BYTES: (u64, u64) = (64 << 10, 32 << 20);
/// The number of files that are written alternately.
const INTERLEAVED_FILES: usize = 4;
/// The size of one write, after which the file is synchronized and another one continues.
const WRITE_BYTES: usize = 128 << 10;
/// The number of rounds: deletions, followed by a refill.
const ROUNDS: usize = 3;
/// The minimum size of a large file.
const LARGE_BYTES: u64 = 4 << 20;

fn main() -> Result<(), Box<dyn Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [root, seed] = &arguments[..] else {
        return Err("usage: age DIRECTORY SEED".into());
    };
    let mut aging = Aging {
        root: Path::new(root),
        rng: Rng::new(seed.parse()?),
        files: Vec::new(),
        created: 0,
    };
    aging.fill(USED_SHARE_AT_FIRST, SMALL_BYTES)?;
    for _ in 0..ROUNDS {
        for _ in 0..aging.files.len() / 3 {
            let pick = aging.rng.below(aging.files.len() as u64) as usize;
            fs::remove_file(aging.files.swap_remove(pick).0)?;
        }
        // Freed space can be allocated again only once the journal has been committed.
        rustix::fs::sync();
        aging.fill(USED_SHARE, MIXED_BYTES)?;
    }
    aging.files.retain(|(_, bytes)| *bytes >= LARGE_BYTES);
    aging.files.sort_by_key(|(_, bytes)| u64::MAX - bytes);
    for (path, _) in &aging.files {
        println!("{}", path.display());
    }
    Ok(())
}

/// A file system that ages.
struct Aging<'a> {
    root: &'a Path,
    rng: Rng,
    files: Vec<(PathBuf, u64)>,
    created: u64,
}

impl Aging<'_> {
    /// Writes files alternately until this share of the space is in use.
    fn fill(&mut self, share: f64, sizes: (u64, u64)) -> Result<(), Box<dyn Error>> {
        let mut data = vec![0; WRITE_BYTES];
        data.fill_with(|| self.rng.below(256) as u8);
        while self.used()? < share {
            let mut open = Vec::new();
            for _ in 0..INTERLEAVED_FILES {
                let (path, bytes) = self.next_file(sizes);
                open.push((File::create(&path)?, 0, bytes));
                self.files.push((path, bytes));
            }
            while !open.is_empty() {
                for (file, written, bytes) in &mut open {
                    let count = (*bytes - *written).min(data.len() as u64);
                    file.write_all_at(&data[..count as usize], *written)?;
                    file.sync_data()?;
                    *written += count;
                }
                open.retain(|(_, written, bytes)| written < bytes);
            }
        }
        Ok(())
    }

    /// Returns a new path, and a random size. Larger files are rarer.
    fn next_file(&mut self, (least, most): (u64, u64)) -> (PathBuf, u64) {
        self.created += 1;
        let scale = most as f64 / least as f64;
        let bytes = least as f64 * scale.powf(self.rng.fraction());
        (
            self.root.join(format!("file{}", self.created)),
            bytes as u64,
        )
    }

    /// The share of the space that is in use.
    fn used(&self) -> Result<f64, Box<dyn Error>> {
        let found = rustix::fs::statvfs(self.root)?;
        Ok(1.0 - found.f_bavail as f64 / found.f_blocks as f64)
    }
}

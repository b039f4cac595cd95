//! Programs that use files while the files are moved, with a record of what the files must hold.

use std::fs::File;
use std::io;
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};

use traxtent_units::Rng;

const SECTOR_BYTES: usize = 512;

/// A file in which each sector holds the number of the last write to it.
#[derive(Debug)]
pub(crate) struct Stamped {
    path: PathBuf,
    id: u64,
    rng: Rng,
    writes: u64,
    /// The number of times that the file was made durable.
    pub(crate) syncs: u64,
    /// The number of the last write to each sector.
    newest: Vec<u64>,
    /// The number of the last write to each sector when the file was last made durable.
    synced: Vec<u64>,
}

impl Stamped {
    /// Describes a file of `sectors` that has its initial content.
    pub(crate) fn new(path: &Path, id: u64, sectors: usize, seed: u64) -> Stamped {
        Stamped {
            path: path.to_owned(),
            id,
            rng: Rng::new(seed << 8 | id),
            writes: 0,
            syncs: 0,
            newest: vec![0; sectors],
            synced: vec![0; sectors],
        }
    }

    /// Returns the initial content.
    pub(crate) fn initial(id: u64, sectors: usize) -> Vec<u8> {
        let words = (0..sectors).flat_map(|sector| stamp(id, sector, 0).repeat(SECTOR_BYTES / 8));
        words.collect()
    }

    /// Overwrites some parts, and makes them durable. Then asks `counts` whether the parts count as
    /// durable: the power may have been cut before the fsync returned.
    pub(crate) fn step(&mut self, counts: &dyn Fn() -> bool) -> io::Result<()> {
        let file = File::options().write(true).open(&self.path)?;
        for _ in 0..1 + self.rng.below(4) {
            self.writes += 1;
            // Whole blocks and parts of blocks.
            let unit = if self.rng.chance(0.5) { 8 } else { 1 };
            let count = unit * (1 + self.rng.below(32));
            let places = (self.newest.len() as u64 - count) / unit;
            let first = (self.rng.below(places + 1) * unit) as usize;
            let sectors = first..first + count as usize;
            let data: Vec<u8> = sectors
                .clone()
                .flat_map(|sector| stamp(self.id, sector, self.writes).repeat(SECTOR_BYTES / 8))
                .collect();
            self.newest[sectors].fill(self.writes);
            file.write_all_at(&data, (first * SECTOR_BYTES) as u64)?;
        }
        if self.rng.chance(0.5) {
            file.sync_data()?;
        } else {
            file.sync_all()?;
        }
        if !counts() {
            return Err(io::Error::other("the power fails"));
        }
        self.syncs += 1;
        self.synced.clone_from(&self.newest);
        Ok(())
    }

    /// Returns how the file differs from what it must hold after a power cut: in each sector, the
    /// last durable write or a later one.
    pub(crate) fn broken(&self) -> Option<String> {
        self.compare(&|found, newest, synced| (synced..=newest).contains(&found))
    }

    /// Returns how the file differs from what was written last.
    pub(crate) fn outdated(&self) -> Option<String> {
        self.compare(&|found, newest, _| found == newest)
    }

    fn compare(&self, is_right: &dyn Fn(u64, u64, u64) -> bool) -> Option<String> {
        let name = self.path.display();
        let found = match std::fs::read(&self.path) {
            Ok(found) => found,
            Err(error) => return Some(format!("{name}: {error}")),
        };
        if found.len() != self.newest.len() * SECTOR_BYTES {
            return Some(format!("{name}: {} bytes", found.len()));
        }
        let expected = self.newest.iter().zip(&self.synced);
        let sectors = found.chunks(SECTOR_BYTES).zip(expected).enumerate();
        let wrong: Vec<String> = sectors
            .filter_map(|(sector, (data, (&newest, &synced)))| {
                let word = u64::from_le_bytes(data[..8].try_into().expect("8 bytes"));
                let number = word & 0xff_ffff;
                let is_whole = data == stamp(self.id, sector, number).repeat(SECTOR_BYTES / 8);
                let is_kept = is_whole && is_right(number, newest, synced);
                (!is_kept).then(|| {
                    format!("sector {sector}: {word:#x}, durable {synced}, newest {newest}")
                })
            })
            .collect();
        let first = wrong.first()?;
        Some(format!(
            "{name}: {} sectors wrong, first {first}",
            wrong.len()
        ))
    }
}

/// Returns the word that fills a sector.
fn stamp(id: u64, sector: usize, number: u64) -> [u8; 8] {
    assert!(number < 1 << 24);
    (id << 48 | (sector as u64) << 24 | number).to_le_bytes()
}

/// A file that grows, and is made durable after each part.
#[derive(Debug)]
pub(crate) struct Growing {
    path: PathBuf,
    rng: Rng,
    written: Vec<u8>,
    durable: usize,
    bytes_max: usize,
}

impl Growing {
    /// Describes a file that does not exist yet.
    pub(crate) fn new(path: &Path, seed: u64, bytes_max: usize) -> Growing {
        Growing {
            path: path.to_owned(),
            rng: Rng::new(seed << 8 | 0xff),
            written: Vec::new(),
            durable: 0,
            bytes_max,
        }
    }

    /// Empties the file if it has become too long, and then appends a part and makes it durable.
    /// `counts` is as in [`Stamped::step`].
    pub(crate) fn step(&mut self, counts: &dyn Fn() -> bool) -> io::Result<()> {
        let file = File::options().append(true).create(true).open(&self.path)?;
        if self.written.len() >= self.bytes_max {
            self.durable = 0;
            self.written.clear();
            file.set_len(0)?;
        }
        let count = 1 + self.rng.below(40_000) as usize;
        let part = crate::disk::random(&mut self.rng, count);
        let start = self.written.len();
        self.written.extend_from_slice(&part);
        file.write_all_at(&part, start as u64)?;
        file.sync_all()?;
        if start == 0 {
            let folder = self.path.parent().expect("it is in a directory");
            File::open(folder)?.sync_all()?;
        }
        if !counts() {
            return Err(io::Error::other("the power fails"));
        }
        self.durable = self.written.len();
        Ok(())
    }

    /// Returns how the file differs from what it must hold after a power cut: at least what was
    /// durable.
    pub(crate) fn broken(&self) -> Option<String> {
        let durable = &self.written[..self.durable];
        let found = match std::fs::read(&self.path) {
            Ok(found) => found,
            Err(_) if self.durable == 0 => return None,
            Err(error) => return Some(format!("{}: {error}", self.path.display())),
        };
        let found = &found[..found.len().min(self.durable)];
        let difference = crate::disk::difference(found, durable)?;
        Some(format!("{}: {difference}", self.path.display()))
    }

    /// Returns how the file differs from what was written.
    pub(crate) fn outdated(&self) -> Option<String> {
        match std::fs::read(&self.path) {
            Ok(found) => crate::disk::difference(&found, &self.written)
                .map(|difference| format!("{}: {difference}", self.path.display())),
            Err(_) if self.written.is_empty() => None,
            Err(error) => Some(format!("{}: {error}", self.path.display())),
        }
    }
}

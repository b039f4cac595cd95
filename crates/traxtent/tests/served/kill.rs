//! Is flushed data preserved when the server is killed?

use std::fs::File;
use std::io::Read;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use traxtent_model::profile::{WriteBack, builtin};
use traxtent_units::Rng;

use crate::client::Client;
use crate::server::{Server, argument, option, write};

/// The size of a sector in bytes.
pub(crate) const SECTOR: u64 = 512;
/// The range of each client, in sectors.
pub(crate) const SECTORS: u64 = 512;
pub(crate) const CLIENTS: u64 = 3;

/// Kills the server while three clients write and flush. Does every sector hold its state at the
/// last flush that completed, or that of a later write? And is the same data served after a
/// restart?
#[test]
fn flushed_data_survives() {
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    let (mut flushes, mut unflushed, mut older) = (0, 0, 0);
    let kills = testkit::repeats(10).min(200);
    for seed in 0..kills {
        let folder = TempDir::new().unwrap();
        let image = folder.path().join("data.img");
        let keys = [
            argument(write(folder.path(), &profile)),
            option("file", image.display()),
            option("speed", 20),
        ];
        let server = Server::start(&keys);
        let areas = Area::work_until_killed(server, seed);
        let mut data_in_file = vec![0; (CLIENTS * SECTORS * SECTOR) as usize];
        File::open(&image)
            .unwrap()
            .read_exact(&mut data_in_file)
            .unwrap();
        let restarted = Server::start(&keys);
        let mut served = vec![1; data_in_file.len()];
        Client::new(&restarted)
            .read(0, &mut served)
            .unwrap()
            .unwrap();
        assert!(
            served == data_in_file,
            "seed {seed}: the file differs from the served data"
        );
        let areas = areas
            .iter()
            .zip(data_in_file.chunks((SECTORS * SECTOR) as usize));
        for (area, data_in_file) in areas {
            let stamps: Vec<u64> = data_in_file.chunks(SECTOR as usize).map(stamp).collect();
            for (sector, (stamp, flushed)) in stamps.iter().zip(&area.flushed).enumerate() {
                let newest = area.newest[sector];
                assert!(
                    (*flushed..=newest).contains(stamp),
                    "seed {seed}, sector {sector}: holds write {stamp}; expected {flushed} to {newest}"
                );
                unflushed += u64::from(flushed < &newest);
                older += u64::from(stamp < &newest);
            }
            flushes += area.flushes;
        }
    }
    eprintln!(
        "{kills} kills, {flushes} flushes; of {unflushed} sectors written since, {older} are older"
    );
    assert!(flushes > 3 * kills && unflushed > 0 && older > 0);
}

/// Returns the number that fills a sector.
pub(crate) fn stamp(sector: &[u8]) -> u64 {
    let stamp = u64::from_le_bytes(sector[..8].try_into().unwrap());
    let whole = sector.chunks(8).all(|part| part == stamp.to_le_bytes());
    assert!(whole, "a torn sector");
    stamp
}

/// Asserts that every sector holds its state at the last flush or that of a later write.
pub(crate) fn assert_kept(areas: &[Area], contents: &[u8], seed: u64) {
    for (area, contents) in areas
        .iter()
        .zip(contents.chunks((SECTORS * SECTOR) as usize))
    {
        let stamps = contents.chunks(SECTOR as usize).map(stamp);
        for (sector, (stamp, flushed)) in stamps.zip(&area.flushed).enumerate() {
            let newest = area.newest[sector];
            assert!(
                (*flushed..=newest).contains(&stamp),
                "seed {seed}, sector {sector}: holds write {stamp}; expected {flushed} to {newest}"
            );
        }
    }
}

/// The range of one client, and its record of each sector.
pub(crate) struct Area {
    /// The first sector.
    pub(crate) first: u64,
    rng: Rng,
    writes: u64,
    pub(crate) flushes: u64,
    /// The number of the last write to each sector before the last completed flush.
    pub(crate) flushed: Vec<u64>,
    /// The number of the last write to each sector.
    pub(crate) newest: Vec<u64>,
}

impl Area {
    /// Runs one client per area. The clients write, flush and read until the server is killed,
    /// after a time that the seed determines. Returns the areas.
    pub(crate) fn work_until_killed(server: Server, seed: u64) -> Vec<Area> {
        let mut areas: Vec<Area> = (0..CLIENTS).map(|client| Area::new(client, seed)).collect();
        thread::scope(|scope| {
            for area in &mut areas {
                let client = Client::new(&server);
                scope.spawn(|| area.work(client));
            }
            let delay_us = 50_000 + Rng::new(seed).below(150_000);
            thread::sleep(Duration::from_micros(delay_us));
            server.kill();
        });
        areas
    }

    pub(crate) fn new(client: u64, seed: u64) -> Area {
        Area {
            first: client * SECTORS,
            rng: Rng::new(seed << 8 | client),
            writes: 0,
            flushes: 0,
            flushed: vec![0; SECTORS as usize],
            newest: vec![0; SECTORS as usize],
        }
    }

    /// Writes, flushes and reads until the server is gone.
    fn work(&mut self, mut client: Client) {
        while self
            .step(&mut client)
            .and_then(|()| self.look(&mut client))
            .is_ok()
        {}
    }

    /// Reads a part back, and asserts that each sector holds the data last written.
    pub(crate) fn look(&mut self, client: &mut Client) -> std::io::Result<()> {
        let count = 1 + self.rng.below(64);
        let offset = self.rng.below(SECTORS - count + 1);
        let mut read = vec![0; (count * SECTOR) as usize];
        client
            .read((self.first + offset) * SECTOR, &mut read)?
            .expect("the server returns no error");
        let newest = &self.newest[offset as usize..];
        for (sector, newest) in read.chunks(SECTOR as usize).zip(newest) {
            assert_eq!(
                stamp(sector),
                *newest,
                "a sector does not hold the data last written"
            );
        }
        Ok(())
    }

    /// Writes some sectors, and flushes.
    pub(crate) fn step(&mut self, client: &mut Client) -> std::io::Result<()> {
        for _ in 0..self.rng.below(6) {
            self.writes += 1;
            let count = 1 + self.rng.below(64);
            let offset = self.rng.below(SECTORS - count + 1);
            self.newest[offset as usize..(offset + count) as usize].fill(self.writes);
            let data = self
                .writes
                .to_le_bytes()
                .repeat((count * SECTOR) as usize / 8);
            client
                .write((self.first + offset) * SECTOR, &data)?
                .expect("the server returns no error");
        }
        client.flush()?.expect("the server returns no error");
        self.flushes += 1;
        self.flushed.clone_from(&self.newest);
        Ok(())
    }
}

//! Are flushed data preserved when the server is killed?

use std::fs::File;
use std::io::Read;
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use traxtent_model::profile::{WriteBack, builtin};
use traxtent_units::Rng;

use crate::client::Client;
use crate::nbdkit::{Server, key, write};

pub(crate) const SECTOR: u64 = 512;
/// The range of each client, in sectors.
pub(crate) const SECTORS: u64 = 512;
pub(crate) const CLIENTS: u64 = 3;

/// Kills the server while three clients write and flush. Does every sector hold its state at the
/// last flush that completed, or that of a later write? And is the same data served again?
#[test]
fn what_was_flushed_survives() {
    let _ = testkit::tool!("nbdkit");
    let mut profile = builtin("atlas10k2").unwrap();
    profile.cache.write_back = WriteBack::Full;
    let (mut flushes, mut unflushed, mut older) = (0, 0, 0);
    let kills = testkit::repeats(10).min(200);
    for seed in 0..kills {
        let folder = TempDir::new().unwrap();
        let data = folder.path().join("data.img");
        let keys = [
            key("drive", write(folder.path(), &profile)),
            key("file", data.display()),
            key("speed", 20),
        ];
        let server = Server::start(&keys);
        let areas = Area::work_until_killed(server, seed);
        let mut left = vec![0; (CLIENTS * SECTORS * SECTOR) as usize];
        File::open(&data).unwrap().read_exact(&mut left).unwrap();
        let again = Server::start(&keys);
        let mut served = vec![1; left.len()];
        Client::new(&again).read(0, &mut served).unwrap().unwrap();
        assert!(
            served == left,
            "seed {seed}: the file is not what is served"
        );
        let areas = areas.iter().zip(left.chunks((SECTORS * SECTOR) as usize));
        for (area, left) in areas {
            let stamps: Vec<u64> = left.chunks(SECTOR as usize).map(stamp).collect();
            for (sector, (stamp, flushed)) in stamps.iter().zip(&area.flushed).enumerate() {
                let newest = area.newest[sector];
                assert!(
                    (*flushed..=newest).contains(stamp),
                    "seed {seed}, sector {sector}: {stamp}, flushed was {flushed} and written {newest}"
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

/// Does every sector hold its state at the last flush or that of a later write?
pub(crate) fn assert_kept(areas: &[Area], left: &[u8], seed: u64) {
    for (area, left) in areas.iter().zip(left.chunks((SECTORS * SECTOR) as usize)) {
        let stamps = left.chunks(SECTOR as usize).map(stamp);
        for (sector, (stamp, flushed)) in stamps.zip(&area.flushed).enumerate() {
            let newest = area.newest[sector];
            assert!(
                (*flushed..=newest).contains(&stamp),
                "seed {seed}, sector {sector}: {stamp}, flushed was {flushed} and written {newest}"
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
    /// The number of the last write before a flush that completed.
    pub(crate) flushed: Vec<u64>,
    /// The number of the last write that was sent.
    pub(crate) newest: Vec<u64>,
}

impl Area {
    /// Runs one client per area, which write and flush until the server is killed at a moment that
    /// the seed determines. Returns the areas.
    pub(crate) fn work_until_killed(server: Server, seed: u64) -> Vec<Area> {
        let mut areas: Vec<Area> = (0..CLIENTS).map(|client| Area::new(client, seed)).collect();
        thread::scope(|scope| {
            for area in &mut areas {
                let client = Client::new(&server);
                scope.spawn(|| area.work(client));
            }
            let moment = 50_000 + Rng::new(seed).below(150_000);
            thread::sleep(Duration::from_micros(moment));
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

    /// Reads a part back: does each sector hold what was last written?
    pub(crate) fn look(&mut self, client: &mut Client) -> std::io::Result<()> {
        let count = 1 + self.rng.below(64);
        let place = self.rng.below(SECTORS - count + 1);
        let mut read = vec![0; (count * SECTOR) as usize];
        client
            .read((self.first + place) * SECTOR, &mut read)?
            .expect("the drive is well");
        let newest = &self.newest[place as usize..];
        for (sector, newest) in read.chunks(SECTOR as usize).zip(newest) {
            assert_eq!(stamp(sector), *newest, "another sector is read");
        }
        Ok(())
    }

    /// Writes some sectors, and flushes.
    pub(crate) fn step(&mut self, client: &mut Client) -> std::io::Result<()> {
        for _ in 0..self.rng.below(6) {
            self.writes += 1;
            let count = 1 + self.rng.below(64);
            let place = self.rng.below(SECTORS - count + 1);
            self.newest[place as usize..(place + count) as usize].fill(self.writes);
            let data = self
                .writes
                .to_le_bytes()
                .repeat((count * SECTOR) as usize / 8);
            client
                .write((self.first + place) * SECTOR, &data)?
                .expect("the drive is well");
        }
        client.flush()?.expect("the drive is well");
        self.flushes += 1;
        self.flushed.clone_from(&self.newest);
        Ok(())
    }
}

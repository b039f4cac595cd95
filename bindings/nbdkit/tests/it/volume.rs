//! Volumes on files, served and killed.

use std::fs::File;
use std::path::PathBuf;

use traxtent_core::layout::raid::Level;
use traxtent_core::units::Lbn;
use traxtent_exec::volume::{DeviceVolume, Plan, create, find, wait};
use uuid::Uuid;

use crate::client::Client;
use crate::kill::{Area, CLIENTS, SECTOR, SECTORS, stamp};
use crate::nbdkit::{Server, key, quick_folder};

/// A new volume on files of 8 MiB; its parity is made.
fn new_volume(folder: &std::path::Path, level: Level, seed: u64) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = ["a", "b", "c", "d"].map(|name| folder.join(name)).into();
    for path in &paths {
        File::create(path).unwrap().set_len(8 << 20).unwrap();
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
        Uuid::from_u128(u128::from(seed) << 8 | ids)
    };
    create(&plan, id, |_| None).unwrap();
    let volume = open(&paths, false);
    scrub(&volume);
    wait(volume.scrub_checkpoint(volume.array().stripes())).unwrap();
    wait(volume.stop()).unwrap();
    paths
}

fn open(paths: &[PathBuf], force: bool) -> DeviceVolume {
    find(paths, force).unwrap().open().unwrap()
}

/// Rows that disagree.
fn scrub(volume: &DeviceVolume) -> u64 {
    let stripes = 0..volume.array().stripes();
    stripes
        .map(|stripe| wait(volume.scrub(stripe)).unwrap().wrong)
        .sum()
}

/// Kills the server while three clients write and flush: is every sector of the volume as some write left it that was not
/// before the last flush, does a scrub find nothing, and is the same there without one member?
#[test]
fn a_volume_survives_kills() {
    let _ = testkit::tool!("nbdkit");
    let mut flushes = 0;
    let kills = testkit::repeats(10).min(100);
    for seed in 0..kills {
        let level = [Level::Raid5, Level::Raid5, Level::Raid1][seed as usize % 3];
        let folder = quick_folder();
        let paths = new_volume(folder.path(), level, seed);
        let keys: Vec<String> = paths
            .iter()
            .map(|path| key("volume", path.display()))
            .collect();
        let server = Server::start(&keys);
        let areas = Area::worked_until_killed(server, seed);
        let mut left = vec![0; (CLIENTS * SECTORS * SECTOR) as usize];
        let volume = open(&paths, false);
        wait(volume.read(Lbn(0), &mut left)).unwrap();
        assert_eq!(scrub(&volume), 0, "seed {seed}: rows disagree");
        wait(volume.stop()).unwrap();
        for (area, left) in areas.iter().zip(left.chunks((SECTORS * SECTOR) as usize)) {
            let stamps = left.chunks(SECTOR as usize).map(stamp);
            for (sector, (stamp, flushed)) in stamps.zip(&area.flushed).enumerate() {
                let newest = area.newest[sector];
                assert!(
                    (*flushed..=newest).contains(&stamp),
                    "seed {seed}, sector {sector}: {stamp}, flushed was {flushed} and written {newest}"
                );
            }
            flushes += area.flushes;
        }
        drop(volume);
    }
    eprintln!("{kills} kills, {flushes} flushes");
    assert!(flushes > 3 * kills);
}

/// Is a volume without one of its members refused, and with force read as it was written?
#[test]
fn without_a_member() {
    let _ = testkit::tool!("nbdkit");
    let folder = quick_folder();
    let mut paths = new_volume(folder.path(), Level::Raid5, 1 << 20);
    let keys: Vec<String> = paths
        .iter()
        .map(|path| key("volume", path.display()))
        .collect();
    let data: Vec<u8> = (0..3u32 << 20)
        .map(|byte| (byte.wrapping_mul(2_654_435_769) >> 24) as u8)
        .collect();
    let server = Server::start(&keys);
    let mut client = Client::new(&server);
    client.write(SECTOR, &data).unwrap().unwrap();
    client.flush().unwrap().unwrap();
    drop(client);
    server.signal("TERM");
    server.wait();
    paths.remove(2);
    let error = find(&paths, false).unwrap_err().to_string();
    assert!(error.contains("member 2 is missing"), "{error}");
    let volume = open(&paths, true);
    let mut read = vec![0; data.len()];
    wait(volume.read(Lbn(1), &mut read)).unwrap();
    assert!(read == data, "other data are read");
    wait(volume.stop()).unwrap();
}

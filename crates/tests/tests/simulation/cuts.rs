//! Is a power cut reproducible: do the same commands in the same order leave the same bytes, if the
//! seed is the same?

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use traxtent_model::disk::{Command, Disk, Fault};
use traxtent_model::profile::{Profile, WriteBack, builtin};
use traxtent_server::control::send_order;
use traxtent_server::serve::{DriveServer, Settings};
use traxtent_server::service::BlockService;
use traxtent_units::Lbn;
use traxtent_units::Rng;

/// The number of sectors, from LBN 0, that commands write.
const SECTORS: u64 = 2048;

/// Returns a drive of 32 MiB with a cache of 64 KiB, so that some writes reach the media without a
/// flush.
fn drive() -> Profile {
    let mut profile = builtin("instant").unwrap();
    profile.geometry.cylinders = 32;
    profile.geometry.zones[0].last_cylinder = 31;
    profile.sector.physical_bytes = 4096;
    profile.cache.enabled = true;
    profile.cache.write_back = WriteBack::Full;
    profile.cache.segment_sectors = 128;
    profile
}

/// Returns writes, flushes, writes of zeros and forced writes, one after another, with their data.
fn commands(seed: u64) -> Vec<(Command, Vec<u8>)> {
    let mut rng = Rng::new(seed);
    (0..120)
        .map(|number: u64| {
            let sectors = 1 + rng.below(24) as u32;
            let lbn = Lbn(rng.below(SECTORS - u64::from(sectors)));
            let fua = rng.chance(0.1);
            match rng.below(12) {
                0 => (Command::Flush, Vec::new()),
                1 => {
                    let fua = false;
                    (Command::WriteZeroes { lbn, sectors, fua }, Vec::new())
                }
                _ => {
                    let data = (number + 1).to_le_bytes().repeat(sectors as usize * 64);
                    (Command::Write { lbn, sectors, fua }, data)
                }
            }
        })
        .collect()
}

/// Returns the report of a power cut on a disk on the virtual clock, and the bytes left. `work` is
/// the seed of the commands.
fn left_of_disk(work: u64, cut: &Fault) -> (String, Vec<u8>) {
    let mut disk = Disk::new(&drive()).unwrap();
    for (command, data) in commands(work) {
        let done = match command {
            Command::Write { lbn, fua: true, .. } => disk.write_fua(lbn.0, &data),
            Command::Write { lbn, .. } => disk.write(lbn.0, &data),
            Command::WriteZeroes { lbn, sectors, .. } => disk.write_zeroes(lbn.0, sectors),
            _ => disk.flush(),
        };
        done.unwrap();
    }
    let cut = disk.inject(disk.now(), *cut).unwrap().unwrap();
    let mut left = vec![0; SECTORS as usize * 512];
    disk.read(0, &mut left).unwrap();
    (format!("power-cut, {cut}"), left)
}

/// Returns the report of a power cut on a served drive, ordered through the control socket, and the
/// bytes left in the drive's file.
fn left_of_server(work: u64, cut: &Fault, speed: &str) -> (String, Vec<u8>) {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name);
    let server = DriveServer::open(Settings {
        speed: speed.parse().unwrap(),
        control: Some(path("control")),
        file: Some(path("disk.img")),
        ..Settings::of("test", drive())
    });
    let server = server.unwrap();
    server.start().unwrap();
    for (command, data) in commands(work) {
        match command {
            Command::Write { lbn, fua, .. } => server.write(data.clone(), lbn.0 * 512, fua),
            Command::WriteZeroes { lbn, sectors, .. } => {
                server.zero(lbn.0 * 512, u64::from(sectors) * 512, false)
            }
            _ => server.flush(),
        }
        .unwrap();
    }
    let response = send_order(&path("control"), cut).unwrap().unwrap();
    server.stop().unwrap();
    (response, media(&path("disk.img")))
}

fn media(file: &Path) -> Vec<u8> {
    let mut bytes = fs::read(file).unwrap();
    bytes.truncate(SECTORS as usize * 512);
    bytes
}

/// At speeds 1 and 100, does a served drive leave the same bytes as a disk on the virtual clock
/// after the same commands, and do most seeds leave different bytes?
#[test]
fn the_same_commands_and_seed_leave_the_same_bytes() {
    let mut all = std::collections::BTreeSet::new();
    let seeds = testkit::repeats(8).min(200);
    for seed in 0..seeds {
        let tearing = ["physical", "512"][seed as usize % 2];
        let cut: Fault = format!("power-cut,seed={seed},tearing={tearing}")
            .parse()
            .unwrap();
        let (response, expected) = left_of_disk(seed / 4, &cut);
        for speed in ["1", "100"] {
            let (served, left) = left_of_server(seed / 4, &cut, speed);
            assert_eq!(served, response, "seed {seed}");
            assert!(
                left == expected,
                "seed {seed} at speed {speed}: other bytes"
            );
        }
        all.insert(expected);
    }
    assert!(
        all.len() as u64 > seeds / 2,
        "{} of {seeds} differ",
        all.len()
    );
}

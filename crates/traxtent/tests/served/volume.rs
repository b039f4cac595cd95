//! Tests of served volumes on files: the server is killed, or a member is missing.

use std::fs::File;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use traxtent_layout::raid::Level;
use traxtent_server::volume::{DeviceVolume, VolumePlan, create, find};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use traxtent_volume::Repair;
use uuid::Uuid;

use crate::client::Client;
use crate::kill::{Area, CLIENTS, SECTOR, SECTORS, assert_kept};
use crate::server::{Server, argument, quick_folder};

/// Creates a volume on four files of 8 MiB, with consistent parity or replicas.
pub(crate) fn new_volume(folder: &Path, level: Level, seed: u64) -> Vec<PathBuf> {
    volume_of(folder, level, seed, 8 << 20)
}

/// Creates a volume on four files of `bytes` bytes. They are all zero, so the volume needs no sync.
pub(crate) fn volume_of(folder: &Path, level: Level, seed: u64, bytes: u64) -> Vec<PathBuf> {
    let paths: Vec<PathBuf> = ["a", "b", "c", "d"].map(|name| folder.join(name)).into();
    for path in &paths {
        File::create(path).unwrap().set_len(bytes).unwrap();
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
        Uuid::from_u128(u128::from(seed) << 8 | ids)
    };
    create(&plan, id, |_| None).unwrap();
    paths
}

pub(crate) fn open(paths: &[PathBuf], force: bool) -> DeviceVolume {
    find(paths, force).unwrap().open().unwrap()
}

/// Returns the number of rows with wrong parity or differing replicas.
pub(crate) fn scrub(volume: &DeviceVolume) -> u64 {
    let stripes = 0..volume.array().stripes();
    stripes
        .map(|stripe| {
            block_on(volume.scrub(stripe, Repair::NONE))
                .unwrap()
                .wrong()
        })
        .sum()
}

/// Kills the server while three clients write and flush. Does every sector of the volume hold its
/// state at the last flush or that of a later write, and does a scrub find no errors?
#[test]
fn a_volume_survives_kills() {
    let mut flushes = 0;
    let kills = testkit::repeats(10).min(100);
    for seed in 0..kills {
        let level = [Level::Raid5, Level::Raid5, Level::Raid1][seed as usize % 3];
        let folder = quick_folder();
        let paths = new_volume(folder.path(), level, seed);
        let keys: Vec<String> = paths.iter().map(|path| argument(path.display())).collect();
        let server = Server::volume(&keys);
        let areas = Area::work_until_killed(server, seed);
        let mut contents = vec![0; (CLIENTS * SECTORS * SECTOR) as usize];
        let volume = open(&paths, false);
        block_on(volume.read(Lbn(0), &mut contents)).unwrap();
        assert_eq!(scrub(&volume), 0, "seed {seed}: rows disagree");
        block_on(volume.stop()).unwrap();
        assert_kept(&areas, &contents, seed);
        flushes += areas.iter().map(|area| area.flushes).sum::<u64>();
        drop(volume);
    }
    eprintln!("{kills} kills, {flushes} flushes");
    assert!(flushes > 3 * kills);
}

/// Is a volume without one of its members refused, and read correctly if forced?
#[test]
fn without_a_member() {
    let folder = quick_folder();
    let mut paths = new_volume(folder.path(), Level::Raid5, 1 << 20);
    let keys: Vec<String> = paths.iter().map(|path| argument(path.display())).collect();
    let data: Vec<u8> = (0..3u32 << 20)
        .map(|byte| (byte.wrapping_mul(2_654_435_769) >> 24) as u8)
        .collect();
    let server = Server::volume(&keys);
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
    block_on(volume.read(Lbn(1), &mut read)).unwrap();
    assert!(read == data, "the data read is not the data written");
    block_on(volume.stop()).unwrap();
}

/// Kills the server while fio writes and verifies, then verifies the volume. Does fio read only
/// correct data before the kill? After it, is every block whole, is flushed data present, and does
/// a scrub find no errors?
#[test]
fn kills_under_fio() {
    let fio = testkit::tool!("fio");
    let kills = testkit::repeats(3).min(100);
    for seed in 0..kills {
        let folder = quick_folder();
        let paths = new_volume(folder.path(), Level::Raid5, 1 << 30 | seed);
        let keys: Vec<String> = paths.iter().map(|path| argument(path.display())).collect();
        let run = |server: &Server, options: &str| {
            let mut command = Command::new(&fio);
            command.args(["--name=t", "--ioengine=nbd", "--bs=4k", "--verify=crc32c"]);
            command.args(["--offset=4m", "--size=4m", "--verify_fatal=1"]);
            command.arg(format!("--uri={}", server.uri()));
            command.args(options.split(' ')).current_dir(folder.path());
            command
                .stdin(Stdio::null())
                .stdout(Stdio::piped())
                .stderr(Stdio::piped());
            command.spawn().unwrap()
        };
        let wait = |child: Child| {
            let output = child.wait_with_output().unwrap();
            let stderr = String::from_utf8_lossy(&output.stderr).into_owned();
            assert!(!stderr.contains("verify"), "seed {seed}: {stderr}");
            (output.status.success(), stderr)
        };
        let server = Server::volume(&keys);
        let mut client = Client::new(&server);
        let data: Vec<u8> = (0..2u32 << 20)
            .map(|byte| (byte.wrapping_mul(2_654_435_769) >> 24) as u8)
            .collect();
        client.write(0, &data).unwrap().unwrap();
        client.flush().unwrap().unwrap();
        let (done, stderr) = wait(run(&server, "--rw=write --do_verify=0"));
        assert!(done, "seed {seed}: {stderr}");
        let delay_ms = 300 + Rng::new(seed).below(700);
        let load =
            "--rw=randrw --iodepth=8 --verify_backlog=32 --fsync=16 --time_based --runtime=60";
        let mut load = run(&server, load);
        thread::sleep(Duration::from_millis(delay_ms));
        server.kill();
        let killed = Instant::now();
        // Sometimes fio waits for responses that a killed server never sends.
        while load.try_wait().unwrap().is_none() && killed.elapsed() < Duration::from_secs(2) {
            thread::sleep(Duration::from_millis(10));
        }
        let _ = load.kill();
        let (done, _) = wait(load);
        assert!(!done, "seed {seed}: fio ended before the kill");
        let volume = open(&paths, false);
        assert_eq!(scrub(&volume), 0, "seed {seed}: rows disagree");
        let mut contents = vec![0; data.len()];
        block_on(volume.read(Lbn(0), &mut contents)).unwrap();
        assert!(
            contents == data,
            "seed {seed}: the data read is not the data written"
        );
        block_on(volume.stop()).unwrap();
        drop(volume);
        let (done, stderr) = wait(run(&Server::volume(&keys), "--rw=read"));
        assert!(done, "seed {seed}: {stderr}");
    }
}

//! Is the content of files correct after the command is killed while it moves them?

use std::fs::{self, File};
use std::path::PathBuf;
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use traxtent_file::file_extents;
use traxtent_units::Rng;

use crate::disk::{
    Disk, MAP, Stop, assert_content, needs_mounts, random, realign_command, write_in_turns,
};
use crate::work::{Growing, Stamped};

/// The size of each file that is not written while it is moved.
const STILL_BYTES: usize = 4 << 20;
/// The number of sectors of the file that is overwritten while it is moved.
const STAMPED_SECTORS: usize = 8192;

/// Kills `traxtent file realign` at random times, while other threads overwrite, extend, create,
/// delete and read files. Is the content of all files except the short-lived ones correct after
/// each kill, and after an unmount? Is the space that the command held free again? Does e2fsck find
/// no errors?
#[test]
fn content_survives_kills() {
    needs_mounts!();
    let kills = testkit::repeats(8).min(200);
    let mut disk = Disk::new(128);
    let seed = 20_261_126;
    let mut rng = Rng::new(seed);
    let still: Vec<(PathBuf, Vec<u8>)> = (0..3)
        .map(|number| {
            let path = disk.path(&format!("still{number}"));
            (path, random(&mut rng, STILL_BYTES))
        })
        .collect();
    let written = Mutex::new(Stamped::new(
        &disk.path("stamped"),
        1,
        STAMPED_SECTORS,
        seed,
    ));
    let growing = Mutex::new(Growing::new(&disk.path("growing"), seed, 2 << 20));
    let stamped = (disk.path("stamped"), Stamped::initial(1, STAMPED_SECTORS));
    write_in_turns(&[stamped, still[0].clone()], 36 << 10, false).expect("there is room");
    let free = disk.free_bytes();
    let ended = AtomicBool::new(false);
    let reads = AtomicU64::new(0);
    let begun = Instant::now();
    let progress = testkit::SoakProgress::new("kills", kills);
    let (mut killed, mut moved) = (0, 0);
    let lives = || !ended.load(Ordering::Relaxed);
    let pause = || thread::sleep(Duration::from_millis(2));
    thread::scope(|scope| {
        let stop = Stop(&ended);
        scope.spawn(|| {
            while lives() {
                written.lock().unwrap().step(&|| true).unwrap();
                pause();
            }
        });
        scope.spawn(|| {
            while lives() {
                growing.lock().unwrap().step(&|| true).unwrap();
                pause();
            }
        });
        // This file is never rewritten.
        scope.spawn(|| {
            while lives() {
                assert_content(&still[0].0, &still[0].1, "while it is moved");
                reads.fetch_add(1, Ordering::Relaxed);
                pause();
            }
        });
        scope.spawn(|| {
            let mut rng = Rng::new(seed + 1);
            while lives() {
                let path = disk.path(&format!("short-lived{}", rng.below(20)));
                let _ = fs::remove_file(&path);
                let bytes = 1 + rng.below(200_000) as usize;
                fs::write(&path, random(&mut rng, bytes)).unwrap();
                pause();
            }
        });
        let mut whole_run = Duration::from_millis(300);
        for kill in 0..kills {
            // Fragmented again, because the last run may have moved them.
            let forward = rng.chance(0.5);
            let part = (12 + 4 * rng.below(20) as usize) << 10;
            write_in_turns(&still[1..], part, !forward).expect("there is room");
            let before = places(&still[1..]);
            let mut paths: Vec<PathBuf> = still.iter().map(|(path, _)| path.clone()).collect();
            paths.push(disk.path("stamped"));
            paths.push(disk.path("growing"));
            let turn = rng.below(paths.len() as u64) as usize;
            paths.rotate_left(turn);
            let started = Instant::now();
            let mut command = realign_command(&paths, MAP);
            command.stdout(std::process::Stdio::null());
            let mut child = command.spawn().unwrap();
            let delay = whole_run.as_micros() as u64;
            thread::sleep(Duration::from_micros(rng.below(delay)));
            match child.try_wait().unwrap() {
                // The next kill comes earlier.
                Some(_) => whole_run = (whole_run + started.elapsed()) / 2,
                None => killed += 1,
            }
            child.kill().unwrap();
            child.wait().unwrap();
            moved += u64::from(before != places(&still[1..]));
            for (path, content) in &still {
                assert_content(path, content, format!("seed {seed}, kill {kill}"));
            }
            let wrong = written.lock().unwrap().outdated();
            assert_eq!(wrong, None, "seed {seed}, kill {kill}");
            let wrong = growing.lock().unwrap().outdated();
            assert_eq!(wrong, None, "seed {seed}, kill {kill}");
            progress.at(kill + 1);
        }
        drop(stop);
    });
    disk.remount();
    for (path, content) in &still {
        assert_content(path, content, format!("seed {seed}, after an unmount"));
    }
    assert_eq!(written.lock().unwrap().outdated(), None, "seed {seed}");
    assert_eq!(growing.lock().unwrap().outdated(), None, "seed {seed}");
    for entry in fs::read_dir(disk.root()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        if name.starts_with("short-lived") || name == "growing" {
            fs::remove_file(path).unwrap();
        }
    }
    rustix::fs::sync();
    // Two of the files did not exist when `free` was measured. Directories and extent trees may
    // have grown.
    let expected = free - 2 * STILL_BYTES as u64;
    assert!(
        disk.free_bytes() + (1 << 20) >= expected,
        "{} bytes are free, {expected} were expected",
        disk.free_bytes()
    );
    disk.assert_clean();
    let reads = reads.into_inner();
    eprintln!(
        "seed {seed}: {kills} runs in {:.1} s, {killed} killed before their end, {moved} moved \
         something; {reads} whole reads meanwhile",
        begun.elapsed().as_secs_f64()
    );
    assert!(
        killed > kills / 4,
        "only {killed} of {kills} runs were killed"
    );
    assert!(
        moved > kills / 8,
        "only {moved} of {kills} runs had moved anything"
    );
}

/// Returns the places of the files' blocks.
fn places(files: &[(PathBuf, Vec<u8>)]) -> Vec<Vec<traxtent_file::FileExtent>> {
    let extents = |path: &PathBuf| file_extents(&File::open(path).unwrap()).unwrap();
    files.iter().map(|(path, _)| extents(path)).collect()
}

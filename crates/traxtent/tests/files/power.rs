//! Is everything that was durable still there if the power fails while files are moved?
//!
//! The file system is on a served drive whose write cache is volatile. For cuts with an even seed,
//! this is an invented drive without mechanics. For cuts with an odd seed, it is `atlas10k2` at 20
//! times its speed, because 200 cuts at its own speed would take minutes.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use traxtent_file::file_extents;
use traxtent_model::disk::Fault;
use traxtent_model::geometry::PerSurface;
use traxtent_model::profile::{Profile, WriteBack, builtin};
use traxtent_server::control::send_order;
use traxtent_units::Rng;

use crate::attach::{Attached, missing};
use crate::disk::{Disk, EXT4, complaint, difference, random, realign_command, shuffle};
use crate::server::{Server, argument, option, quick_folder, write};
use crate::work::{Growing, Stamped};

/// Cuts the power while files are moved, overwritten, made durable and extended. After the journal
/// is replayed, does every file hold what was durable, and does e2fsck find no errors?
#[test]
fn durable_content_survives_power_cuts() {
    if let Some(reason) = missing() {
        testkit::skip!("{reason}");
    }
    survive(testkit::repeats(4).min(200));
}

/// The results of a cut, or the sums over several.
#[derive(Debug, Default)]
struct Cut {
    moved_bytes: u64,
    syncs: u64,
    /// Whether any write was not durable when the power was cut.
    had_volatile: bool,
    findings: Vec<String>,
}

/// Cuts the power `cuts` times, and asserts that nothing durable was lost.
fn survive(cuts: u64) {
    let prepared = Prepared::new();
    let begun = Instant::now();
    let progress = testkit::SoakProgress::new("power cuts", cuts);
    let mut all = Cut::default();
    let mut volatile = 0;
    for seed in 0..cuts {
        let found = cut(seed, &prepared);
        all.moved_bytes += found.moved_bytes;
        all.syncs += found.syncs;
        volatile += u64::from(found.had_volatile);
        all.findings.extend(found.findings);
        progress.at(seed + 1);
    }
    eprintln!(
        "seeds 0 to {}: {cuts} power cuts in {:.1} s; {volatile} with volatile writes; {} \
         MiB had moved; {} times data was made durable; {} findings",
        cuts - 1,
        begun.elapsed().as_secs_f64(),
        all.moved_bytes >> 20,
        all.syncs,
        all.findings.len()
    );
    assert!(all.findings.is_empty(), "{}", all.findings.join("\n"));
    assert!(all.syncs > 0, "nothing was made durable");
    // Some cuts find everything durable. If there are few cuts, all may.
    assert!(
        volatile > cuts / 10 || cuts < 40,
        "only {volatile} cuts found volatile writes"
    );
    assert!(all.moved_bytes > 0 || cuts < 4, "nothing moved");
}

/// A file system with fragmented files.
struct Prepared {
    image: Vec<u8>,
    still: Vec<(String, Vec<u8>)>,
    /// The byte of the device at which each block of each file begins.
    places: Vec<(String, Vec<u64>)>,
}

const STILL_FILES: u64 = 3;
const STILL_BYTES: usize = 6 << 20;
const STAMPED_FILES: u64 = 2;
const STAMPED_SECTORS: usize = 4096;
const FILE_SYSTEM_MIB: u64 = 64;

impl Prepared {
    fn new() -> Prepared {
        let eager = "lazy_itable_init=0,lazy_journal_init=0";
        let mkfs = [&EXT4[..], &["-E", eager]].concat();
        let mut disk = Disk::with(FILE_SYSTEM_MIB, &mkfs, "");
        let mut rng = Rng::new(1);
        let still: Vec<_> = (0..STILL_FILES)
            .map(|number| (format!("still{number}"), random(&mut rng, STILL_BYTES)))
            .collect();
        let stamped = (0..STAMPED_FILES).map(|id| {
            (
                disk.path(&stamped_name(id)),
                Stamped::initial(id, STAMPED_SECTORS),
            )
        });
        let in_turns: Vec<_> = still
            .iter()
            .map(|(name, bytes)| (disk.path(name), bytes.clone()))
            .chain(stamped)
            .collect();
        for (path, bytes) in &in_turns {
            fs::write(path, bytes).expect("there is room");
            shuffle(path, 9, &mut rng).expect("ext4 exchanges blocks");
        }
        let names = still.iter().map(|(name, _)| name.clone());
        let places = names
            .chain((0..STAMPED_FILES).map(stamped_name))
            .map(|name| (name.clone(), places_of(&disk.path(&name))))
            .collect();
        disk.unmount();
        Prepared {
            places,
            image: fs::read(disk.outside("image")).expect("it is there"),
            still,
        }
    }

    /// Creates the file of a drive's data, which begins with the file system. Zeros become holes,
    /// as does the rest of the drive.
    fn write_data(&self, path: &Path, profile: &Profile) {
        const CHUNK: usize = 64 << 10;
        let drive = traxtent_model::drive::Drive::new(profile).expect("it is valid");
        let file = File::create(path).expect("there is room");
        let bytes = drive.geometry().capacity().0 * u64::from(profile.sector.logical_bytes);
        file.set_len(bytes).expect("there is room");
        for (number, chunk) in self.image.chunks(CHUNK).enumerate() {
            if chunk.iter().any(|byte| *byte != 0) {
                let place = (number * CHUNK) as u64;
                file.write_all_at(chunk, place).expect("there is room");
            }
        }
    }
}

/// Returns the byte of the device at which each block of a file without holes begins.
fn places_of(path: &Path) -> Vec<u64> {
    let file = File::open(path).expect("it is there");
    let extents = file_extents(&file).expect("ext4 reports extents");
    let blocks = extents
        .iter()
        .flat_map(|extent| extent.device().step_by(4096));
    blocks.collect()
}

fn stamped_name(id: u64) -> String {
    format!("stamped{id}")
}

/// Returns a drive with a volatile cache, and its speed.
fn drive(seed: u64) -> (Profile, u32) {
    let (name, speed) = match seed % 2 {
        0 => ("instant", 1),
        _ => ("atlas10k2", 20),
    };
    let mut profile = builtin(name).expect("it is built in");
    profile.cache.write_back = WriteBack::Full;
    profile.cache.enabled = true;
    // A write that is torn within a block can destroy the superblock of ext4, whether or not files
    // are moved.
    profile.sector.physical_bytes = 4096;
    if name == "instant" {
        profile.cache.segments = 8;
        profile.cache.write_segments = 8;
        profile.geometry.cylinders = 1000;
        profile.geometry.zones[0].last_cylinder = 999;
        profile.geometry.zones[0].sectors_per_track = PerSurface::Same(400);
    }
    (profile, speed)
}

/// Moves and writes files until the power is cut, and checks them afterwards.
fn cut(seed: u64, prepared: &Prepared) -> Cut {
    let mut rng = Rng::new(seed);
    let folder = quick_folder();
    let path = |name: &str| folder.path().join(name);
    let (profile, speed) = drive(seed);
    prepared.write_data(&path("disk.img"), &profile);
    let drive = write(folder.path(), &profile);
    let keys = [
        argument(&drive),
        option("file", path("disk.img").display()),
        option("speed", speed),
        option("control", path("control").display()),
    ];
    let keys = [&keys[..], &Attached::options(folder.path())].concat();
    let server = Server::start(&keys);
    let attached = Attached::new(folder.path());
    let mount = attached.mount(&path("mnt")).expect("it was made by mke2fs");
    let inside = |name: &str| mount.folder().join(name);

    let power_is_cut = AtomicBool::new(false);
    let counts = || !power_is_cut.load(Ordering::SeqCst);
    let mut written: Vec<Stamped> = (0..STAMPED_FILES)
        .map(|id| Stamped::new(&inside(&stamped_name(id)), id, STAMPED_SECTORS, seed))
        .collect();
    let mut growing = Growing::new(&inside("growing"), seed, 1 << 20);
    // With fewer commits of the journal, more of the moves are lost.
    let pause = Duration::from_millis([0, 10, 50, 500][(seed / 2 % 4) as usize]);
    let left = thread::scope(|scope| {
        for file in &mut written {
            scope.spawn(|| {
                while file.step(&counts).is_ok() {
                    thread::sleep(pause);
                }
            });
        }
        scope.spawn(|| {
            while growing.step(&counts).is_ok() {
                thread::sleep(pause);
            }
        });
        let mut names: Vec<PathBuf> = prepared
            .still
            .iter()
            .map(|(name, _)| inside(name))
            .collect();
        names.extend((0..STAMPED_FILES).map(|id| inside(&stamped_name(id))));
        let turn = rng.below(names.len() as u64) as usize;
        if rng.chance(0.5) {
            names.rotate_left(turn);
        }
        let drive = &drive;
        // It ends when the drive fails.
        let mover = scope.spawn(move || realign_command(&names, drive).output());
        thread::sleep(Duration::from_micros(40_000 + rng.below(900_000)));
        power_is_cut.store(true, Ordering::SeqCst);
        // The power does not return, because nothing that the kernel still holds may reach the
        // drive.
        let order = format!("power-cut,seed={seed},tearing=physical,for=24 h");
        let order: Fault = order.parse().expect("it is a fault");
        let left = send_order(&path("control"), &order).expect("the server runs");
        mover.join().expect("it does not panic").expect("it runs");
        left.expect("the drive has power")
    });
    drop((mount, attached));
    server.kill();

    let _ = fs::remove_file(path("control"));
    let _server = Server::start(&keys);
    let attached = Attached::new(folder.path());
    let (mut findings, mut moved_bytes) = (Vec::new(), 0);
    match attached.mount(&path("mnt")) {
        Err(said) => findings.push(format!("mount: {said}")),
        Ok(mount) => {
            findings.extend(written.iter().filter_map(Stamped::broken));
            findings.extend(growing.broken());
            findings.extend(prepared.still.iter().filter_map(|(name, content)| {
                let found = fs::read(mount.folder().join(name)).unwrap_or_default();
                Some(format!("{name}: {}", difference(&found, content)?))
            }));
            let places = prepared.places.iter();
            moved_bytes = places
                .map(|(name, before)| {
                    let after = places_of(&mount.folder().join(name));
                    let pairs = before.iter().zip(&after);
                    4096 * pairs.filter(|(before, after)| before != after).count() as u64
                })
                .sum();
            mount.unmount();
        }
    }
    findings.extend(complaint(attached.device()));
    Cut {
        moved_bytes,
        syncs: written.iter().map(|file| file.syncs).sum(),
        had_volatile: !left.contains("of 0 writes"),
        findings: findings
            .into_iter()
            .map(|what| format!("seed {seed}, {}, {left}: {what}", profile.name))
            .collect(),
    }
}

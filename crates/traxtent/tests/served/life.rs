//! Tests in which members of a served volume are pulled, fail, are replaced and rebuilt, while
//! clients read and write. Also tests of orders, of a full disk below the members, and of trim.

use std::fs::{self, File};
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use tempfile::TempDir;
use traxtent_layout::raid::Level;
use traxtent_server::control::send_order;
use traxtent_server::volume::{
    DeviceVolume, MaintenanceKind, MaintenanceProgress, MaintenanceTask, Repairs, VolumeOrder,
    VolumePlan, VolumeStatus, create, find, maintain, replace,
};
use traxtent_units::Lbn;
use traxtent_units::Rng;
use uuid::Uuid;

use crate::attach::{Attached, Mount};
use crate::client::{Client, ENOSPC};
use crate::kill::{Area, CLIENTS, SECTOR, SECTORS, assert_kept, stamp};
use crate::pull::{PullMode, Pullable, missing};
use crate::server::{Server, argument, option, quick_folder};
use crate::volume::{new_volume, open, scrub};

/// EPERM, which the protocol uses for EROFS.
const READ_ONLY: u32 = 1;
/// EIO.
const FAILED: u32 = 5;

/// A served volume with members that can be pulled.
pub(crate) struct ServedVolume {
    pub(crate) server: Server,
    pub(crate) control: PathBuf,
    /// The members' files.
    files: Vec<PathBuf>,
    /// The paths by which the server opens them.
    served: Vec<PathBuf>,
}

impl ServedVolume {
    /// Serves a volume on `files`. Those in `pullable` are opened through nbdfuse.
    pub(crate) fn new(
        folder: &Path,
        files: Vec<PathBuf>,
        pullable: &[(usize, &Pullable)],
    ) -> ServedVolume {
        let served = paths(&files, pullable);
        ServedVolume::serving(folder, files, served, &[])
    }

    /// Serves a volume on `files` in the same way, and also as a loop device.
    pub(crate) fn attached(
        folder: &Path,
        files: Vec<PathBuf>,
        pullable: &[(usize, &Pullable)],
    ) -> ServedVolume {
        let served = paths(&files, pullable);
        ServedVolume::serving(folder, files, served, &Attached::options(folder))
    }

    /// Serves a volume on `files` with additional parameters. The server opens the files by the
    /// paths in `served`.
    pub(crate) fn serving(
        folder: &Path,
        files: Vec<PathBuf>,
        served: Vec<PathBuf>,
        parameters: &[String],
    ) -> ServedVolume {
        let control = folder.join("control");
        let _ = fs::remove_file(&control);
        let mut keys: Vec<String> = served.iter().map(|path| argument(path.display())).collect();
        keys.push(option("control", control.display()));
        keys.extend_from_slice(parameters);
        ServedVolume {
            server: Server::volume(&keys),
            control,
            files,
            served,
        }
    }

    pub(crate) fn order(&self, order: &VolumeOrder) -> Result<VolumeStatus, String> {
        let line = serde_json::to_string(order).unwrap();
        let response = send_order(&self.control, &line).unwrap()?;
        Ok(serde_json::from_str(&response).unwrap())
    }

    pub(crate) fn status(&self) -> VolumeStatus {
        self.order(&VolumeOrder::Status).unwrap()
    }

    pub(crate) fn begin(&self, work: MaintenanceKind, rate: Option<u64>) {
        let repair = Repairs::default();
        self.order(&VolumeOrder::Begin { work, rate, repair })
            .unwrap();
    }

    /// Waits until a rebuild or a scrub ends.
    pub(crate) fn ended(&self) -> MaintenanceProgress {
        let started = Instant::now();
        loop {
            let work = self.status().work.unwrap();
            if !work.under_way {
                return work;
            }
            assert!(started.elapsed() < Duration::from_secs(60), "{work:?}");
            thread::sleep(Duration::from_millis(10));
        }
    }
}

/// Returns the paths by which a server opens members.
fn paths(files: &[PathBuf], pullable: &[(usize, &Pullable)]) -> Vec<PathBuf> {
    let mut paths = files.to_vec();
    for (member, pullable_member) in pullable {
        paths[*member] = pullable_member.path().to_owned();
    }
    paths
}

/// Creates a file of a member's size.
fn spare(folder: &Path) -> PathBuf {
    let path = folder.join("spare");
    File::create(&path).unwrap().set_len(8 << 20).unwrap();
    path
}

pub(crate) fn areas(seed: u64) -> Vec<Area> {
    (0..CLIENTS).map(|client| Area::new(client, seed)).collect()
}

/// Runs `action` while clients write and read their areas, or only read them.
pub(crate) fn meanwhile(server: &Server, areas: &mut [Area], writes: bool, action: impl FnOnce()) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        for area in areas {
            let (mut client, stop) = (Client::new(server), &stop);
            scope.spawn(move || {
                while !stop.load(Ordering::Relaxed) {
                    if writes {
                        area.step(&mut client).unwrap();
                    }
                    area.look(&mut client).unwrap();
                }
            });
        }
        // The clients stop even after a panic, because otherwise the test would hang and hide it.
        let result = catch_unwind(AssertUnwindSafe(action));
        stop.store(true, Ordering::Relaxed);
        result.unwrap_or_else(|panic| resume_unwind(panic));
    });
}

fn pause(rng: &mut Rng, most_ms: u64) {
    thread::sleep(Duration::from_micros(
        1000 * rng.below(most_ms) + rng.below(1000),
    ));
}

/// Reads all areas.
fn all(volume: &DeviceVolume) -> Vec<u8> {
    let mut data = vec![0; (CLIENTS * SECTORS * SECTOR) as usize];
    block_on(volume.read(Lbn(0), &mut data)).unwrap();
    data
}

/// Kills the server, and checks the data without one member. Then replaces and rebuilds that
/// member, and checks the data again.
pub(crate) fn reassemble(
    served: ServedVolume,
    without: usize,
    areas: &[Area],
    folder: &Path,
    seed: u64,
) {
    let ServedVolume { server, files, .. } = served;
    server.kill();
    let paths: Vec<PathBuf> = (0..files.len())
        .filter(|member| *member != without)
        .map(|member| files[member].clone())
        .collect();
    let found = find(&paths, true).unwrap();
    let new = folder.join("new");
    File::create(&new).unwrap().set_len(8 << 20).unwrap();
    let new = found
        .check_substitute(without, &new, false, |_| None)
        .unwrap();
    let volume = found.open().unwrap();
    assert_kept(areas, &all(&volume), seed);
    replace(&volume, new, Uuid::from_u128(7)).unwrap();
    let task = MaintenanceTask::new(MaintenanceKind::Rebuild);
    let rebuilt = maintain(&volume, task, &AtomicBool::new(false), |_| {}).unwrap();
    assert!(
        rebuilt.done && (rebuilt.share - 1.0).abs() < 1e-9,
        "{rebuilt:?}"
    );
    assert_eq!(scrub(&volume), 0, "seed {seed}: rows disagree");
    assert_kept(areas, &all(&volume), seed);
    block_on(volume.stop()).unwrap();
}

/// Returns a directory, the files of a new volume in it, the number of a member, and the
/// [`Pullable`] of that member.
fn set_up(seed: u64) -> (TempDir, Vec<PathBuf>, usize, Pullable) {
    let folder = quick_folder();
    let files = new_volume(folder.path(), Level::Raid5, 1 << 32 | seed);
    let member = seed as usize % files.len();
    let pullable = Pullable::new(&files[member]);
    (folder, files, member, pullable)
}

const PULL_MODES: [PullMode; 2] = [PullMode::Gone, PullMode::Errors];

/// Pulls a member while clients write and read, or only read. Does every read return the data last
/// written, before and after a kill, without the member and with a replacement? If clients write,
/// has the member failed, with an error?
#[test]
fn pulled_under_requests() {
    if let Some(why) = missing() {
        testkit::skip!("{why}");
    }
    for seed in 0..testkit::repeats(4).min(200) {
        let (folder, files, member, mut pullable) = set_up(seed);
        let served = ServedVolume::new(folder.path(), files, &[(member, &pullable)]);
        let mut rng = Rng::new(seed);
        let mut areas = areas(seed);
        meanwhile(&served.server, &mut areas, true, || pause(&mut rng, 50));
        let writes = seed % 4 < 3;
        meanwhile(&served.server, &mut areas, writes, || {
            pause(&mut rng, 100);
            pullable.pull(PULL_MODES[seed as usize / 2 % 2]);
            thread::sleep(Duration::from_millis(100));
        });
        let status = served.status();
        if writes {
            assert_eq!(status.members[member].state, "failed", "seed {seed}");
            assert!(status.members[member].error.is_some(), "seed {seed}");
        }
        assert!(!status.broken, "seed {seed}");
        reassemble(served, member, &areas, folder.path(), seed);
    }
}

/// Pulls a member during a scrub with concurrent clients. Are reads correct as above, and does the
/// scrub end with a reason?
#[test]
fn pulled_under_a_scrub() {
    if let Some(why) = missing() {
        testkit::skip!("{why}");
    }
    for seed in 0..testkit::repeats(2).min(200) {
        let (folder, files, member, mut pullable) = set_up(seed);
        let served = ServedVolume::new(folder.path(), files, &[(member, &pullable)]);
        let mut rng = Rng::new(seed);
        let mut areas = areas(seed);
        served.begin(MaintenanceKind::Scrub, Some(20 << 20));
        meanwhile(&served.server, &mut areas, true, || {
            pause(&mut rng, 200);
            pullable.pull(PULL_MODES[seed as usize % 2]);
            thread::sleep(Duration::from_millis(100));
        });
        let ended = served.ended();
        let error = ended.error.clone().unwrap_or_default();
        assert!(
            !ended.done && error.contains(&format!("member {member} has failed")),
            "seed {seed}: {ended:?}"
        );
        assert_eq!(ended.wrong_rows, 0, "seed {seed}");
        reassemble(served, member, &areas, folder.path(), seed);
    }
}

/// Pulls the member that is being rebuilt with concurrent clients. Are reads correct as above, does
/// the rebuild end with a reason, and does the rebuild of a replacement finish? Are replacements
/// refused for a member that has not failed, and on a file that is already a member?
#[test]
fn pulled_under_a_rebuild() {
    if let Some(why) = missing() {
        testkit::skip!("{why}");
    }
    for seed in 0..testkit::repeats(2).min(200) {
        let folder = quick_folder();
        let files = new_volume(folder.path(), Level::Raid5, 1 << 33 | seed);
        let member = seed as usize % files.len();
        let served = ServedVolume::new(folder.path(), files, &[]);
        let mut rng = Rng::new(seed);
        let mut areas = areas(seed);
        let mut pullable = Pullable::new(&spare(folder.path()));
        let replace_member = |with: &Path, number: u128| {
            let with = with.to_owned();
            let (id, force) = (Uuid::from_u128(number), false);
            let order = VolumeOrder::Replace {
                member,
                with,
                id,
                force,
            };
            served.order(&order)
        };
        let refused = replace_member(pullable.path(), 1).unwrap_err();
        assert!(refused.contains("has not failed"), "{refused}");
        meanwhile(&served.server, &mut areas, true, || {
            pause(&mut rng, 50);
            served.order(&VolumeOrder::Fail { member }).unwrap();
            replace_member(pullable.path(), 1).unwrap();
            served.begin(MaintenanceKind::Rebuild, Some(20 << 20));
            pause(&mut rng, 200);
            pullable.pull(PULL_MODES[seed as usize % 2]);
            thread::sleep(Duration::from_millis(100));
        });
        let ended = served.ended();
        let error = ended.error.clone().unwrap_or_default();
        assert!(
            !ended.done && error.contains("failed during the rebuild"),
            "seed {seed}: {ended:?}"
        );
        assert_eq!(
            served.status().members[member].state,
            "failed",
            "seed {seed}"
        );
        // The superblock of the original file identifies it as a member.
        let refused = replace_member(&served.files[member], 2).unwrap_err();
        assert!(
            refused.contains(&format!("member {member} of volume")),
            "{refused}"
        );
        let replacement = folder.path().join("replacement");
        File::create(&replacement)
            .unwrap()
            .set_len(8 << 20)
            .unwrap();
        meanwhile(&served.server, &mut areas, true, || {
            replace_member(&replacement, 3).unwrap();
            served.begin(MaintenanceKind::Rebuild, None);
            let ended = served.ended();
            assert!(
                ended.done && ended.error.is_none(),
                "seed {seed}: {ended:?}"
            );
            assert_eq!((ended.next, ended.share), (ended.stripes, 1.0));
        });
        assert!(served.status().is_whole(), "seed {seed}");
        let mut served = served;
        served.files[member] = replacement;
        reassemble(served, (member + 1) % 4, &areas, folder.path(), seed);
    }
}

/// Pulls a second member. Are writes refused with an error number and a reason? Can intact sectors,
/// and only those, be read as they were written? Is assembly with the remaining members refused,
/// and is all data there once the member is back?
#[test]
fn a_second_failure() {
    if let Some(why) = missing() {
        testkit::skip!("{why}");
    }
    for seed in 0..testkit::repeats(2).min(200) {
        let (folder, files, member, mut pullable) = set_up(seed);
        let failed = (member + 1) % files.len();
        let served = ServedVolume::new(folder.path(), files, &[(member, &pullable)]);
        let mut areas = areas(seed);
        let mut rng = Rng::new(seed);
        meanwhile(&served.server, &mut areas, true, || {
            pause(&mut rng, 50);
            served.order(&VolumeOrder::Fail { member: failed }).unwrap();
            pause(&mut rng, 50);
        });
        let refused = served.order(&VolumeOrder::Fail { member }).unwrap_err();
        assert!(refused.contains("cannot be marked as failed"), "{refused}");
        pullable.pull(PULL_MODES[seed as usize % 2]);
        let mut client = Client::new(&served.server);
        // Every member holds a part of this data.
        let rewritten = vec![1; 256 << 10];
        assert_eq!(client.write(0, &rewritten).unwrap(), Err(READ_ONLY));
        assert_eq!(client.write(1 << 20, &rewritten).unwrap(), Err(READ_ONLY));
        assert!(served.status().broken && !served.status().is_whole());
        let output = served.server.output();
        assert!(
            output.contains("the volume is read-only, and only undamaged data can be read"),
            "{output}"
        );
        let (mut readable, mut unreadable) = (0, 0);
        let first = rewritten.len() as u64 / SECTOR;
        for area in &areas {
            for (sector, newest) in area.newest.iter().enumerate() {
                let lbn = area.first + sector as u64;
                let mut read = vec![0; SECTOR as usize];
                match client.read(lbn * SECTOR, &mut read).unwrap() {
                    // The sectors that were being written have their old or their new content.
                    Ok(()) if lbn < first && read == rewritten[..SECTOR as usize] => readable += 1,
                    Ok(()) => {
                        assert_eq!(stamp(&read), *newest, "seed {seed}, sector {lbn}");
                        readable += 1;
                    }
                    Err(error) => {
                        assert_eq!(error, FAILED, "seed {seed}, sector {lbn}");
                        unreadable += 1;
                    }
                }
            }
        }
        eprintln!("seed {seed}: {readable} sectors are read, {unreadable} are not");
        assert!(readable > 0 && unreadable > 0);
        drop(client);
        let ServedVolume { server, files, .. } = served;
        server.kill();
        drop(pullable);
        let without = |missing: &[usize]| {
            let remaining = (0..files.len()).filter(|member| !missing.contains(member));
            remaining
                .map(|member| files[member].clone())
                .collect::<Vec<_>>()
        };
        let error = find(&without(&[member, failed]), true)
            .unwrap_err()
            .to_string();
        assert!(
            error.contains("the other members are not enough to start the volume"),
            "{error}"
        );
        let volume = open(&without(&[failed]), false);
        let data = all(&volume);
        let rewritten_bytes = data.len().min(rewritten.len());
        for (area, data) in areas.iter().zip(data.chunks((SECTORS * SECTOR) as usize)) {
            for (sector, read) in data.chunks(SECTOR as usize).enumerate() {
                let lbn = area.first + sector as u64;
                let is_new =
                    lbn * SECTOR < rewritten_bytes as u64 && read == &rewritten[..SECTOR as usize];
                assert!(
                    is_new || stamp(read) == area.newest[sector],
                    "seed {seed}, sector {lbn}"
                );
            }
        }
        block_on(volume.stop()).unwrap();
    }
}

/// Do invalid orders leave a served volume unchanged? Can a scrub be paused and resumed, and does
/// it report its progress?
#[test]
fn orders() {
    let folder = quick_folder();
    let files = new_volume(folder.path(), Level::Raid5, 1 << 34);
    let served = ServedVolume::new(folder.path(), files, &[]);
    for (line, expected) in [
        ("melt", "the control socket of a volume"),
        ("{melt", "a line of JSON"),
        ("{\"order\":\"melt\"}", "melt"),
        (
            "{\"order\":\"fail\",\"member\":9}",
            "member 9 does not exist",
        ),
        ("{\"order\":\"fail\"}", "member"),
    ] {
        let refused = send_order(&served.control, line).unwrap().unwrap_err();
        assert!(refused.contains(expected), "{line}: {refused}");
    }
    let status = served.status();
    assert!(status.served && status.is_whole() && status.work.is_none());
    // About 4 s for members of 8 MiB.
    served.begin(MaintenanceKind::Scrub, Some(2 << 20));
    let rebuild = VolumeOrder::Begin {
        work: MaintenanceKind::Rebuild,
        rate: None,
        repair: Repairs::default(),
    };
    let refused = served.order(&rebuild).unwrap_err();
    assert!(refused.contains("a scrub is already running"), "{refused}");
    let started = Instant::now();
    // A speed and a remaining time are reported once they have been measured for two seconds.
    let work = loop {
        let work = served.status().work.unwrap();
        let known = work.bytes_per_second.is_some();
        assert!(
            work.under_way && known == work.seconds_left.is_some(),
            "{work:?}"
        );
        if known {
            break work;
        }
        assert!(started.elapsed() < Duration::from_secs(10), "{work:?}");
        thread::sleep(Duration::from_millis(100));
    };
    assert!(
        work.under_way && work.next > 0 && work.next < work.stripes,
        "{work:?}"
    );
    let speed = work.bytes_per_second.unwrap();
    assert!(speed <= 3.2e6 && speed > 0.3e6, "{work:?}");
    let remaining_s = work.seconds_left.unwrap();
    assert!(remaining_s > 0.2 && remaining_s < 30.0, "{work:?}");
    let paused = served.order(&VolumeOrder::Pause).unwrap().work.unwrap();
    assert!(
        !paused.under_way && !paused.done && paused.error.is_none(),
        "{paused:?}"
    );
    assert_eq!(served.status().scrub_next, paused.next);
    served.begin(MaintenanceKind::Scrub, None);
    let done = served.ended();
    assert!(done.is_clean() && done.first == paused.next, "{done:?}");
    assert!(started.elapsed() < Duration::from_secs(30));
    // A refused order changes nothing.
    served.order(&VolumeOrder::Fail { member: 2 }).unwrap();
    let refused = served.order(&VolumeOrder::Fail { member: 3 }).unwrap_err();
    assert!(
        refused.contains("member 3 cannot be marked as failed"),
        "{refused}"
    );
    let mut client = Client::new(&served.server);
    client.write(0, &[5; 4096]).unwrap().unwrap();
    client.flush().unwrap().unwrap();
    drop(client);
    assert!(!served.status().broken);
    let ServedVolume {
        server, mut served, ..
    } = served;
    served.remove(2);
    server.signal("TERM");
    server.wait();
    assert!(!folder.path().join("control").exists());
    assert!(find(&served, false).unwrap().superblock.clean);
}

/// Fills the disk below the members. Do clients get ENOSPC, and does no member fail? Is flushed
/// data read correctly, even after a kill, and do writes continue once there is room?
#[test]
fn a_full_disk_below() {
    let mount = testkit::tool!("mount");
    let folder = TempDir::new().unwrap();
    for level in [Level::Raid5, Level::Raid1, Level::Raid0] {
        let Ok(disk) = Mount::memory(&mount, &folder.path().join("below"), "14m") else {
            testkit::skip!("a small file system cannot be mounted here");
        };
        // Neither data nor parity is allocated in advance, because that would take 4 times 8 MiB.
        let files = sparse_volume(disk.folder(), level);
        let served = ServedVolume::new(folder.path(), files.clone(), &[]);
        let mut client = Client::new(&served.server);
        let part = |number: u64| vec![number as u8 + 1; 96 << 10];
        let store = |client: &mut Client, number: u64| {
            let written = client.write(number * (96 << 10), &part(number)).unwrap();
            written.and_then(|()| client.flush().unwrap())
        };
        // More parts than fit on the disk.
        let parts_max = if level == Level::Raid1 { 60 } else { 150 };
        let stored = (0..parts_max).take_while(|number| match store(&mut client, *number) {
            Ok(()) => true,
            Err(error) => {
                assert_eq!(error, ENOSPC, "{level:?}");
                false
            }
        });
        let stored = stored.count() as u64;
        assert!(
            (10..parts_max).contains(&stored),
            "{level:?}: {stored} parts"
        );
        // The error occurs again, and at other offsets too.
        for number in [stored, stored + 1, parts_max] {
            assert_eq!(store(&mut client, number), Err(ENOSPC), "{level:?}");
        }
        let assert_undamaged = |served: &ServedVolume| {
            let status = served.status();
            let active = status.members.iter().all(|member| member.state == "active");
            assert!(active && !status.broken, "{level:?}: {status:?}");
        };
        assert_undamaged(&served);
        let output = served.server.output();
        assert!(output.contains("no space left"), "{output}");
        assert!(!output.contains("has failed"), "{output}");
        // The server names each such member once, and its status names it too.
        let full = "no space left below it: writes fail with ENOSPC";
        let named = output.matches(full).count();
        assert!((1..=files.len()).contains(&named), "{output}");
        let members = served.status().members;
        let errors: Vec<String> = members.into_iter().filter_map(|one| one.error).collect();
        assert!(errors.iter().any(|error| error == full), "{errors:?}");
        let check = |client: &mut Client, parts: u64| {
            for number in 0..parts {
                let mut back = vec![0; 96 << 10];
                let offset = number * (96 << 10);
                client.read(offset, &mut back).unwrap().unwrap();
                assert!(back == part(number), "{level:?}: part {number}");
            }
        };
        check(&mut client, stored);
        disk.resize("64m");
        store(&mut client, stored).unwrap();
        check(&mut client, stored + 1);
        drop(client);
        served.server.kill();
        let served = ServedVolume::new(folder.path(), files, &[]);
        let mut client = Client::new(&served.server);
        check(&mut client, stored + 1);
        store(&mut client, stored + 1).unwrap();
        assert_undamaged(&served);
    }
}

/// Is trim offered by a drive, where it has an effect, and not by a volume, which keeps all data?
#[test]
fn trim_is_offered_where_it_frees() {
    let nbdinfo = testkit::tool!("nbdinfo");
    let folder = quick_folder();
    let offers = |server: &Server| {
        let mut nbdinfo = std::process::Command::new(&nbdinfo);
        let status = nbdinfo.args(["--can", "trim", &server.uri()]).status();
        status.unwrap().success()
    };
    assert!(offers(&Server::start(&[argument("instant")])));
    let files = new_volume(folder.path(), Level::Raid5, 1 << 35);
    let served = ServedVolume::new(folder.path(), files, &[]);
    assert!(!offers(&served.server));
}

/// Creates a volume on sparse files of 8 MiB, with chunks of 32 KiB.
fn sparse_volume(folder: &Path, level: Level) -> Vec<PathBuf> {
    let files: Vec<PathBuf> = ["a", "b", "c", "d"].map(|name| folder.join(name)).into();
    for path in &files {
        File::create(path).unwrap().set_len(8 << 20).unwrap();
    }
    let plan = VolumePlan {
        level,
        chunk_bytes: Some(32 << 10),
        granule_bytes: 4096,
        journal_bytes: 1 << 20,
        members: files.iter().map(|path| (path.clone(), None)).collect(),
        force: false,
    };
    let mut ids = 0;
    let id = || {
        ids += 1;
        Uuid::from_u128(1 << 64 | ids)
    };
    create(&plan, id, |_| None).unwrap();
    files
}

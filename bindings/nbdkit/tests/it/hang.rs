//! Tests of members that return neither data nor an error: the program that shows a member's file
//! is stopped (SIGSTOP), below the volume or below a loop device of the volume.
//!
//! Before the member time-out existed, each of these tests waited for ever. Time limits are
//! generous, because machines may be busy.

use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::thread;
use std::time::{Duration, Instant};

use futures_lite::future::block_on;
use tempfile::TempDir;
use traxtent_layout::raid::Level;
use traxtent_server::volume::{MaintenanceKind, VolumeOrder, VolumeStatus};
use traxtent_units::Lbn;
use uuid::Uuid;

use crate::client::Client;
use crate::kill::assert_kept;
use crate::life::{ServedVolume, areas, meanwhile, reassemble};
use crate::nbdkit::{key, quick_folder};
use crate::pull::{Pullable, missing};
use crate::volume::{new_volume, open, scrub};

/// The member that hangs.
const MEMBER: usize = 1;

/// A status, and an order to fail a member, are answered within a second; a busy machine may take
/// longer. A time-out that must not expire in a test is far beyond that.
const SOON: Duration = Duration::from_secs(4);
const NEVER_S: u64 = 90;

/// The kind of a member, above the file that hangs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Block,
}

/// A loop device on a file, which is detached when this goes out of scope.
struct Loop(PathBuf);

impl Loop {
    fn new(losetup: &Path, file: &Path) -> Result<Loop, String> {
        let shown = Command::new(losetup)
            .args(["--find", "--show"])
            .arg(file)
            .output()
            .map_err(|error| error.to_string())?;
        if shown.status.success() {
            Ok(Loop(String::from_utf8_lossy(&shown.stdout).trim().into()))
        } else {
            Err(String::from_utf8_lossy(&shown.stderr).into_owned())
        }
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        let _ = Command::new("losetup").arg("-d").arg(&self.0).output();
    }
}

/// A served volume with one member that can hang. The fields are dropped in order, so the member
/// resumes first.
struct HangingVolume {
    pullable: Pullable,
    life: ServedVolume,
    _block: Option<Loop>,
    folder: TempDir,
}

impl HangingVolume {
    /// Serves a new volume with a member time-out; an error names what is missing.
    fn new(level: Level, kind: Kind, timeout_s: u64) -> Result<HangingVolume, String> {
        missing().map_or(Ok(()), Err)?;
        let losetup = match kind {
            Kind::File => None,
            Kind::Block => {
                let losetup = testkit::tool("losetup");
                Some(losetup.ok_or("losetup is not installed")?)
            }
        };
        let folder = quick_folder();
        let files = new_volume(folder.path(), level, 1 << 40);
        let pullable = Pullable::new(&files[MEMBER]);
        let block = losetup.map(|losetup| Loop::new(&losetup, pullable.path()));
        let block = block.transpose()?;
        let mut served = files.clone();
        served[MEMBER] = match &block {
            Some(block) => block.0.clone(),
            None => pullable.path().to_owned(),
        };
        let more = [key("member-timeout", timeout_s)];
        let life = ServedVolume::serving(folder.path(), files, served, &more);
        Ok(HangingVolume {
            pullable,
            life,
            _block: block,
            folder,
        })
    }

    /// Returns the status, which must not wait for anything.
    fn status(&self) -> VolumeStatus {
        let begun = Instant::now();
        let status = self.life.status();
        let took = begun.elapsed();
        assert!(took < SOON, "a status took {took:?}");
        status
    }

    fn order(&self, asked: &VolumeOrder) -> Result<VolumeStatus, String> {
        let begun = Instant::now();
        let answer = self.life.order(asked);
        let took = begun.elapsed();
        assert!(took < SOON, "{asked:?} took {took:?}");
        answer
    }

    /// Waits until the status meets a condition.
    fn until(&self, what: &str, is: impl Fn(&VolumeStatus) -> bool) -> VolumeStatus {
        let begun = Instant::now();
        loop {
            let status = self.status();
            if is(&status) {
                return status;
            }
            let took = begun.elapsed();
            assert!(took < Duration::from_secs(60), "not {what}: {status:?}");
            thread::sleep(Duration::from_millis(20));
        }
    }
}

fn is_failed(status: &VolumeStatus) -> bool {
    status.members[MEMBER].state == "failed"
}

fn is_waiting(status: &VolumeStatus) -> bool {
    status.members[MEMBER].waiting_seconds.is_some()
}

/// Makes a member hang for ever while clients write and read. Does the member fail after the
/// time-out, and do clients go on? Are data read as they were last written, and are they there
/// without the member after a kill, although late writes reached it?
fn hung_under_requests(level: Level, kind: Kind) {
    let hangs = match HangingVolume::new(level, kind, 2) {
        Ok(hangs) => hangs,
        Err(why) => testkit::skip!("{why}"),
    };
    let seed = 1;
    let mut areas = areas(seed);
    let server = &hangs.life.server;
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(100));
        hangs.pullable.hang();
        let begun = Instant::now();
        hangs.until("waiting", is_waiting);
        hangs.until("failed", is_failed);
        let took = begun.elapsed();
        eprintln!("{level:?}, {kind:?}: failed after {took:.1?}");
        assert!(took > Duration::from_millis(1500), "failed after {took:?}");
        // Clients go on without it.
        thread::sleep(Duration::from_millis(300));
    });
    let flushes: u64 = areas.iter().map(|area| area.flushes).sum();
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(200));
    });
    assert!(areas.iter().map(|area| area.flushes).sum::<u64>() > flushes);
    let status = hangs.status();
    let error = status.members[MEMBER].error.clone().unwrap_or_default();
    assert!(error.contains("no response for"), "{error}");
    assert!(!status.broken && is_waiting(&status), "{status:?}");
    // The earlier requests reach it now.
    hangs.pullable.wake();
    hangs.until("returned", |status| !is_waiting(status));
    let HangingVolume { life, folder, .. } = hangs;
    reassemble(life, MEMBER, &areas, folder.path(), seed);
}

#[test]
fn a_file_hangs_under_raid_5() {
    hung_under_requests(Level::Raid5, Kind::File);
}

#[test]
fn a_file_hangs_under_raid_1() {
    hung_under_requests(Level::Raid1, Kind::File);
}

#[test]
fn a_block_device_hangs_under_raid_5() {
    hung_under_requests(Level::Raid5, Kind::Block);
}

#[test]
fn a_block_device_hangs_under_raid_1() {
    hung_under_requests(Level::Raid1, Kind::Block);
}

/// Makes a member hang that is only read. Does it fail, although nothing is written to it?
#[test]
fn a_member_hangs_under_reads() {
    let hangs = match HangingVolume::new(Level::Raid5, Kind::Block, 2) {
        Ok(hangs) => hangs,
        Err(why) => testkit::skip!("{why}"),
    };
    let mut areas = areas(2);
    let server = &hangs.life.server;
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(50));
    });
    meanwhile(server, &mut areas, false, || {
        hangs.pullable.hang();
        hangs.until("failed", is_failed);
    });
    assert!(hangs.life.server.output().contains("member 1 has failed"));
}

/// Declares a hanging member failed, long before the time-out. Is the order answered soon, and do
/// requests go on? Is such an order for another member refused? Is the device refused as a
/// replacement until it has returned all requests, and is the volume whole again after a rebuild?
fn failed_by_order(kind: Kind) {
    let hangs = match HangingVolume::new(Level::Raid5, kind, NEVER_S) {
        Ok(hangs) => hangs,
        Err(why) => testkit::skip!("{why}"),
    };
    let mut areas = areas(3);
    let with = match &hangs._block {
        Some(block) => block.0.clone(),
        None => hangs.pullable.path().to_owned(),
    };
    let take_back = VolumeOrder::Replace {
        member: MEMBER,
        with: with.clone(),
        id: Uuid::from_u128(9),
        force: true,
    };
    let server = &hangs.life.server;
    let begun = Instant::now();
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(50));
        hangs.pullable.hang();
        hangs.until("waiting", is_waiting);
        let answer = hangs.order(&VolumeOrder::Fail { member: MEMBER });
        assert!(answer.is_ok(), "{answer:?}");
        hangs.until("failed", is_failed);
        let refused = hangs.order(&VolumeOrder::Fail { member: 2 }).unwrap_err();
        assert!(refused.contains("cannot be marked as failed"), "{refused}");
        let refused = hangs.order(&take_back).unwrap_err();
        let named = refused.contains(&*with.to_string_lossy());
        let why = refused.contains("earlier requests to it have not returned");
        assert!(named && why, "{refused}");
    });
    let took = begun.elapsed();
    assert!(took < Duration::from_secs(NEVER_S / 2), "it took {took:?}");
    assert!(is_failed(&hangs.status()));
    hangs.pullable.wake();
    let begun = Instant::now();
    while let Err(refused) = hangs.life.order(&take_back) {
        assert!(begun.elapsed() < Duration::from_secs(30), "{refused}");
        let returns = refused.contains("have not returned") || refused.contains("uses it");
        assert!(returns, "{refused}");
        thread::sleep(Duration::from_millis(50));
    }
    meanwhile(server, &mut areas, true, || {
        hangs.life.begin(MaintenanceKind::Rebuild, None);
        let ended = hangs.life.ended();
        assert!(ended.done && ended.error.is_none(), "{ended:?}");
    });
    assert!(hangs.status().is_whole());
    let HangingVolume { life, folder, .. } = hangs;
    // The rebuilt data are what is read without another member.
    reassemble(life, 2, &areas, folder.path(), 3);
}

#[test]
fn a_file_that_hangs_is_failed_by_order() {
    failed_by_order(Kind::File);
}

#[test]
fn a_block_device_that_hangs_is_failed_by_order() {
    failed_by_order(Kind::Block);
}

/// Stops a server with a hanging member. Are its sockets closed soon, although requests wait, and
/// does it report the member? Does the volume, recovered with the member as it is, hold the flushed
/// data?
fn stops_while_hung(kind: Kind) {
    let hangs = match HangingVolume::new(Level::Raid5, kind, NEVER_S) {
        Ok(hangs) => hangs,
        Err(why) => testkit::skip!("{why}"),
    };
    let mut areas = areas(4);
    let HangingVolume {
        pullable,
        life,
        _block: block,
        folder,
    } = hangs;
    let socket = life.server.socket();
    meanwhile(&life.server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(100));
    });
    pullable.hang();
    let mut client = Client::new(&life.server);
    let writes = thread::spawn(move || client.write(4 << 20, &vec![7; 1 << 20]));
    let begun = Instant::now();
    while !is_waiting(&life.status()) {
        assert!(begun.elapsed() < Duration::from_secs(30), "nothing waits");
        thread::sleep(Duration::from_millis(20));
    }
    let begun = Instant::now();
    life.server.signal("TERM");
    while UnixStream::connect(&socket).is_ok() || life.control.exists() {
        let took = begun.elapsed();
        assert!(took < Duration::from_secs(10), "it listens after {took:?}");
        thread::sleep(Duration::from_millis(10));
    }
    let took = begun.elapsed();
    eprintln!("{kind:?}: sockets are closed after {took:.2?}");
    // The client gets an error, too.
    assert!(writes.join().unwrap().is_err());
    let said = life.server.output();
    assert!(
        said.contains("member 1 has not responded for")
            && said.contains("requests to it have not returned; the server's process remains until the kernel returns them"),
        "{said}"
    );
    pullable.wake();
    assert_eq!(life.server.exit_code(), Some(3));
    drop((pullable, block));
    let files: Vec<PathBuf> = ["a", "b", "c", "d"]
        .map(|name| folder.path().join(name))
        .into();
    let volume = open(&files, false);
    assert_eq!(scrub(&volume), 0, "rows disagree");
    let mut left = vec![0; areas.iter().map(|area| area.newest.len() * 512).sum()];
    block_on(volume.read(Lbn(0), &mut left)).unwrap();
    assert_kept(&areas, &left, 4);
    block_on(volume.stop()).unwrap();
}

#[test]
fn a_server_ends_while_a_file_hangs() {
    stops_while_hung(Kind::File);
}

#[test]
fn a_server_ends_while_a_block_device_hangs() {
    stops_while_hung(Kind::Block);
}

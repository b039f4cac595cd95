//! Tests of members that return neither data nor an error: the program that serves a member's file
//! is stopped (SIGSTOP). The member is that file, or a loop device on it.
//!
//! Time limits are generous, because machines can be busy.

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
use crate::pull::{Pullable, missing};
use crate::server::{option, quick_folder};
use crate::volume::{new_volume, open, scrub};

/// The member that hangs.
const MEMBER: usize = 1;

/// The time limit for a response on the control socket. Usually it takes less than a second.
const RESPONSE_MAX: Duration = Duration::from_secs(4);

/// A member time-out, in seconds, that must not expire during a test.
const NEVER_S: u64 = 90;

/// The kind of device that the volume uses as the hanging member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Kind {
    File,
    Block,
}

/// A loop device on a file, which is detached on drop.
struct Loop(PathBuf);

impl Loop {
    fn new(losetup: &Path, file: &Path) -> Result<Loop, String> {
        let losetup_output = Command::new(losetup)
            .args(["--find", "--show"])
            .arg(file)
            .output()
            .map_err(|error| error.to_string())?;
        if losetup_output.status.success() {
            Ok(Loop(
                String::from_utf8_lossy(&losetup_output.stdout)
                    .trim()
                    .into(),
            ))
        } else {
            Err(String::from_utf8_lossy(&losetup_output.stderr).into_owned())
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
    served: ServedVolume,
    _block: Option<Loop>,
    folder: TempDir,
}

impl HangingVolume {
    /// Serves a new volume with a member time-out. An error is the reason to skip the test: a
    /// missing program or device, or the message of losetup.
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
        let mut served_paths = files.clone();
        served_paths[MEMBER] = match &block {
            Some(block) => block.0.clone(),
            None => pullable.path().to_owned(),
        };
        let parameters = [option("member-timeout", timeout_s)];
        let served = ServedVolume::serving(folder.path(), files, served_paths, &parameters);
        Ok(HangingVolume {
            pullable,
            served,
            _block: block,
            folder,
        })
    }

    /// Returns the status. The response must not wait for a member.
    fn status(&self) -> VolumeStatus {
        let started = Instant::now();
        let status = self.served.status();
        let took = started.elapsed();
        assert!(took < RESPONSE_MAX, "a status took {took:?}");
        status
    }

    fn order(&self, order: &VolumeOrder) -> Result<VolumeStatus, String> {
        let started = Instant::now();
        let response = self.served.order(order);
        let took = started.elapsed();
        assert!(took < RESPONSE_MAX, "{order:?} took {took:?}");
        response
    }

    /// Waits until the status meets a condition.
    fn until(&self, condition: &str, is_met: impl Fn(&VolumeStatus) -> bool) -> VolumeStatus {
        let started = Instant::now();
        loop {
            let status = self.status();
            if is_met(&status) {
                return status;
            }
            let took = started.elapsed();
            assert!(
                took < Duration::from_secs(60),
                "not {condition}: {status:?}"
            );
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

/// Makes a member hang while clients write and read. Does the member fail after the time-out, and
/// do the clients continue? Do reads return the data last written? After a kill, is the data intact
/// without the member, although late writes reached it?
fn hung_under_requests(level: Level, kind: Kind) {
    let hanging = match HangingVolume::new(level, kind, 2) {
        Ok(hanging) => hanging,
        Err(why) => testkit::skip!("{why}"),
    };
    let seed = 1;
    let mut areas = areas(seed);
    let server = &hanging.served.server;
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(100));
        hanging.pullable.hang();
        let started = Instant::now();
        hanging.until("waiting", is_waiting);
        hanging.until("failed", is_failed);
        let took = started.elapsed();
        eprintln!("{level:?}, {kind:?}: failed after {took:.1?}");
        assert!(took > Duration::from_millis(1500), "failed after {took:?}");
        // The clients continue without the member.
        thread::sleep(Duration::from_millis(300));
    });
    let flushes: u64 = areas.iter().map(|area| area.flushes).sum();
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(200));
    });
    assert!(areas.iter().map(|area| area.flushes).sum::<u64>() > flushes);
    let status = hanging.status();
    let error = status.members[MEMBER].error.clone().unwrap_or_default();
    assert!(error.contains("no response for"), "{error}");
    assert!(!status.broken && is_waiting(&status), "{status:?}");
    // The earlier requests now reach the member.
    hanging.pullable.wake();
    hanging.until("returned", |status| !is_waiting(status));
    let HangingVolume { served, folder, .. } = hanging;
    reassemble(served, MEMBER, &areas, folder.path(), seed);
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

/// Makes a member hang under reads alone. Does it fail, although nothing is written to it?
#[test]
fn a_member_hangs_under_reads() {
    let hanging = match HangingVolume::new(Level::Raid5, Kind::Block, 2) {
        Ok(hanging) => hanging,
        Err(why) => testkit::skip!("{why}"),
    };
    let mut areas = areas(2);
    let server = &hanging.served.server;
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(50));
    });
    meanwhile(server, &mut areas, false, || {
        hanging.pullable.hang();
        hanging.until("failed", is_failed);
    });
    let output = hanging.served.server.output();
    let line = output.lines().find(|line| line.contains("member 1 (`"));
    assert!(
        line.is_some_and(|line| line.contains("`) has failed: no response for ")),
        "{output}"
    );
}

/// Declares a hanging member failed, long before the time-out. Does the order get a response soon,
/// and do requests continue? Is such an order for another member refused? Is the device refused as
/// a replacement until it has returned all requests, and is the volume whole again after a rebuild?
fn failed_by_order(kind: Kind) {
    let hanging = match HangingVolume::new(Level::Raid5, kind, NEVER_S) {
        Ok(hanging) => hanging,
        Err(why) => testkit::skip!("{why}"),
    };
    let mut areas = areas(3);
    let with = match &hanging._block {
        Some(block) => block.0.clone(),
        None => hanging.pullable.path().to_owned(),
    };
    let take_back = VolumeOrder::Replace {
        member: MEMBER,
        with: with.clone(),
        id: Uuid::from_u128(9),
        force: true,
    };
    let server = &hanging.served.server;
    let started = Instant::now();
    meanwhile(server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(50));
        hanging.pullable.hang();
        hanging.until("waiting", is_waiting);
        let response = hanging.order(&VolumeOrder::Fail { member: MEMBER });
        assert!(response.is_ok(), "{response:?}");
        hanging.until("failed", is_failed);
        let refused = hanging.order(&VolumeOrder::Fail { member: 2 }).unwrap_err();
        assert!(refused.contains("cannot be marked as failed"), "{refused}");
        let refused = hanging.order(&take_back).unwrap_err();
        let named = refused.contains(&*with.to_string_lossy());
        let why = refused.contains("earlier requests to it have not returned");
        assert!(named && why, "{refused}");
    });
    let took = started.elapsed();
    assert!(took < Duration::from_secs(NEVER_S / 2), "it took {took:?}");
    assert!(is_failed(&hanging.status()));
    hanging.pullable.wake();
    let started = Instant::now();
    while let Err(refused) = hanging.served.order(&take_back) {
        assert!(started.elapsed() < Duration::from_secs(30), "{refused}");
        let returns = refused.contains("have not returned") || refused.contains("uses it");
        assert!(returns, "{refused}");
        thread::sleep(Duration::from_millis(50));
    }
    meanwhile(server, &mut areas, true, || {
        hanging.served.begin(MaintenanceKind::Rebuild, None);
        let ended = hanging.served.ended();
        assert!(ended.done && ended.error.is_none(), "{ended:?}");
    });
    assert!(hanging.status().is_whole());
    let HangingVolume { served, folder, .. } = hanging;
    // Without another member, reads depend on the rebuilt data.
    reassemble(served, 2, &areas, folder.path(), 3);
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
/// does it report the member? Does it end with status 3 once the member responds? After recovery
/// with all members, does the volume hold the flushed data?
fn stops_while_hung(kind: Kind) {
    let hanging = match HangingVolume::new(Level::Raid5, kind, NEVER_S) {
        Ok(hanging) => hanging,
        Err(why) => testkit::skip!("{why}"),
    };
    let mut areas = areas(4);
    let HangingVolume {
        pullable,
        served,
        _block: block,
        folder,
    } = hanging;
    let socket = served.server.socket();
    meanwhile(&served.server, &mut areas, true, || {
        thread::sleep(Duration::from_millis(100));
    });
    pullable.hang();
    let mut client = Client::new(&served.server);
    let writes = thread::spawn(move || client.write(4 << 20, &vec![7; 1 << 20]));
    let started = Instant::now();
    while !is_waiting(&served.status()) {
        assert!(started.elapsed() < Duration::from_secs(30), "nothing waits");
        thread::sleep(Duration::from_millis(20));
    }
    let started = Instant::now();
    served.server.signal("TERM");
    while UnixStream::connect(&socket).is_ok() || served.control.exists() {
        let took = started.elapsed();
        assert!(
            took < Duration::from_secs(10),
            "still listening after {took:?}"
        );
        thread::sleep(Duration::from_millis(10));
    }
    let took = started.elapsed();
    eprintln!("{kind:?}: sockets are closed after {took:.2?}");
    // The client's request fails.
    assert!(writes.join().unwrap().is_err());
    let output = served.server.output();
    assert!(
        output.contains("member 1 has not responded for")
            && output.contains("requests to it have not returned; the server's process remains until the kernel returns them"),
        "{output}"
    );
    pullable.wake();
    assert_eq!(served.server.exit_code(), Some(3));
    drop((pullable, block));
    let files: Vec<PathBuf> = ["a", "b", "c", "d"]
        .map(|name| folder.path().join(name))
        .into();
    let volume = open(&files, false);
    assert_eq!(scrub(&volume), 0, "rows disagree");
    let mut contents = vec![0; areas.iter().map(|area| area.newest.len() * 512).sum()];
    block_on(volume.read(Lbn(0), &mut contents)).unwrap();
    assert_kept(&areas, &contents, 4);
    block_on(volume.stop()).unwrap();
}

#[test]
fn a_server_stops_while_a_file_hangs() {
    stops_while_hung(Kind::File);
}

#[test]
fn a_server_stops_while_a_block_device_hangs() {
    stops_while_hung(Kind::Block);
}

/// Makes a member hang before the first write, for which the file below allocates space. Does the
/// member fail after the time-out, and does the write succeed?
#[test]
fn a_member_hangs_under_an_allocation() {
    let hanging = match HangingVolume::new(Level::Raid5, Kind::File, 2) {
        Ok(hanging) => hanging,
        Err(why) => testkit::skip!("{why}"),
    };
    hanging.pullable.hang();
    let mut client = Client::new(&hanging.served.server);
    let writes = thread::spawn(move || client.write(4 << 20, &vec![7; 1 << 20]));
    hanging.until("failed", is_failed);
    writes.join().unwrap().unwrap().unwrap();
}

/// Makes an allocation hang on a member, and declares the member failed. Is the order complete when
/// its response arrives, and does the write succeed?
#[test]
fn an_allocation_that_hangs_is_failed_by_order() {
    let hanging = match HangingVolume::new(Level::Raid5, Kind::File, NEVER_S) {
        Ok(hanging) => hanging,
        Err(why) => testkit::skip!("{why}"),
    };
    hanging.pullable.hang();
    let mut client = Client::new(&hanging.served.server);
    let writes = thread::spawn(move || client.write(4 << 20, &vec![7; 1 << 20]));
    hanging.until("waiting", is_waiting);
    let status = hanging.order(&VolumeOrder::Fail { member: MEMBER });
    let status = status.unwrap();
    assert!(
        status.unfinished.is_none() && is_failed(&status),
        "{status:?}"
    );
    writes.join().unwrap().unwrap().unwrap();
}

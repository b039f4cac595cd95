//! Tests of a volume's control socket: several clients at a time, and access by the owner only.

use std::io::{BufRead, BufReader, Read, Write};
use std::mem::MaybeUninit;
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use traxtent_layout::raid::Level;

use crate::life::ServedVolume;
use crate::server::{TRAXTENT, argument, option, quick_folder};
use crate::volume::new_volume;

/// Sends a line that never ends, a byte at a time. Does another client still get a status soon, and
/// is the slow client told the time limit of a line? Is a client that sends nothing for that time
/// still served?
#[test]
fn a_slow_client_holds_up_nobody() {
    let folder = quick_folder();
    let files = new_volume(folder.path(), Level::Raid5, 1 << 41);
    let served = ServedVolume::new(folder.path(), files, &[]);
    let idle = UnixStream::connect(&served.control).unwrap();
    let slow = UnixStream::connect(&served.control).unwrap();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            for byte in std::iter::repeat(b'x') {
                if ended.load(Ordering::Relaxed) || (&slow).write_all(&[byte]).is_err() {
                    break;
                }
                thread::sleep(Duration::from_millis(500));
            }
        });
        thread::sleep(Duration::from_millis(200));
        let begun = Instant::now();
        let answered = std::panic::catch_unwind(|| served.status());
        let took = begun.elapsed();
        let mut told = String::new();
        slow.set_read_timeout(Some(Duration::from_secs(40)))
            .unwrap();
        let read = BufReader::new(&slow).read_line(&mut told);
        ended.store(true, Ordering::Relaxed);
        assert!(answered.is_ok());
        assert!(took < Duration::from_secs(5), "a status took {took:?}");
        assert!(read.is_ok() && told.contains("within 10 s"), "{told}");
    });
    (&idle).write_all(b"unknown\n").unwrap();
    let mut told = String::new();
    BufReader::new(&idle).read_line(&mut told).unwrap();
    assert!(told.starts_with("error: "), "{told}");
}

/// Connects more clients than are served at a time. Does the additional one get an error, and is a
/// new one served once the others have disconnected?
#[test]
fn too_many_clients() {
    let folder = quick_folder();
    let files = new_volume(folder.path(), Level::Raid5, 1 << 42);
    let served = ServedVolume::new(folder.path(), files, &[]);
    let mut clients: Vec<UnixStream> = (0..16)
        .map(|_| UnixStream::connect(&served.control).unwrap())
        .collect();
    let mut told = String::new();
    let mut one_more = UnixStream::connect(&served.control).unwrap();
    one_more
        .set_read_timeout(Some(Duration::from_secs(30)))
        .unwrap();
    one_more.read_to_string(&mut told).unwrap();
    assert_eq!(
        told,
        "error: at most 16 clients are served at a time; try again later\n"
    );
    clients.clear();
    let begun = Instant::now();
    while served
        .order(&traxtent_server::volume::VolumeOrder::Status)
        .is_err()
    {
        assert!(begun.elapsed() < Duration::from_secs(30));
        thread::sleep(Duration::from_millis(10));
    }
}

/// Creates the socket under umask 0. Does it have mode 0600 from the start, without a later change?
#[test]
fn the_socket_is_never_open_to_others() {
    let sh = testkit::tool!("sh");
    let folder = quick_folder();
    let files = new_volume(folder.path(), Level::Raid5, 1 << 43);
    let within = folder.path().join("within");
    std::fs::create_dir(&within).unwrap();
    let control = within.join("control");
    let watch = inotify::init(CreateFlags::CLOEXEC | CreateFlags::NONBLOCK).unwrap();
    let what = WatchFlags::CREATE | WatchFlags::ATTRIB;
    inotify::add_watch(&watch, &within, what).unwrap();
    let mut words: Vec<String> = files.iter().map(|path| argument(path.display())).collect();
    words.push(option("control", control.display()));
    words.push(option("socket", folder.path().join("nbd").display()));
    let script = format!("umask 0; exec {TRAXTENT} volume serve {}", words.join(" "));
    let mut server = std::process::Command::new(sh)
        .args(["-c", &script])
        .spawn()
        .unwrap();
    let begun = Instant::now();
    while UnixStream::connect(&control).is_err() {
        assert!(
            begun.elapsed() < Duration::from_secs(60),
            "the socket is not there after 60 s"
        );
        thread::sleep(Duration::from_millis(10));
    }
    let mode = std::fs::metadata(&control).unwrap().permissions().mode() & 0o7777;
    let _ = server.kill();
    let _ = server.wait();
    assert_eq!(mode, 0o600);
    let mut memory = [MaybeUninit::uninit(); 4096];
    let mut events = Reader::new(watch, &mut memory);
    let mut made = 0;
    while let Ok(event) = events.next() {
        let name = event.file_name().map(|name| name.to_string_lossy());
        if name.is_some_and(|name| Path::new(&*name) == "control") {
            let changed = event.events().contains(ReadFlags::ATTRIB);
            assert!(!changed, "its attributes were changed after it was created");
            made += 1;
        }
    }
    assert_eq!(made, 1);
}

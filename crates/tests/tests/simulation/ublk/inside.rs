//! The part of the test that runs inside the guest.

use std::collections::BTreeMap;
use std::fs::{self, File, OpenOptions};
use std::io::{self, BufRead, BufReader, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, ChildStdout, Command, Stdio};
use std::sync::atomic::{AtomicBool, AtomicU32, Ordering};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::{FallocateFlags, OFlags, fallocate};
use traxtent_model::profile::{Profile, builtin};
use traxtent_units::Rng;

use super::server::OPTIONS;
use super::{ROLE, TEST};

/// The ID of the unprivileged user.
const USER: u32 = 1000;

pub(super) fn run() {
    for (name, check) in [
        ("no driver", no_driver as fn()),
        ("no io_uring", no_io_uring),
        ("the drive's properties", properties),
        ("a file system", file_system),
        ("discards and zeros", discards_and_zeros),
        ("outstanding requests", outstanding),
        ("large requests", large_requests),
        ("stopped while mounted", stopped_while_mounted),
        ("killed", killed),
        ("killed while mounted", killed_while_mounted),
        ("an ordinary user", ordinary_user),
    ] {
        let begin = Instant::now();
        check();
        println!("{name}: {:.1} s", begin.elapsed().as_secs_f64());
    }
}

/// Returns a drive of this test by name: `512e` and `4kn` hold 64 MiB and serve requests
/// instantly; `1tb` is a built-in drive with the timing of a real disk.
pub(super) fn profile(name: &str) -> Profile {
    let mut profile = builtin("instant").unwrap();
    let logical = match name {
        "512e" => 512,
        "4kn" => 4096,
        _ => return builtin("hd103sj").unwrap(),
    };
    profile.sector.logical_bytes = logical;
    profile.sector.physical_bytes = 4096;
    let cylinders = 64 * 512 / logical;
    profile.geometry.cylinders = cylinders;
    profile.geometry.zones[0].last_cylinder = cylinders - 1;
    profile
}

/// A server in a process of its own.
struct Server {
    child: Child,
    lines: io::Lines<BufReader<ChildStdout>>,
    device: PathBuf,
}

impl Server {
    fn command(options: &str) -> Command {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command
            .args(["--exact", TEST, "--nocapture"])
            .env(ROLE, "server")
            .env(OPTIONS, options)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped());
        command
    }

    /// Starts a server, or returns its error.
    fn try_start(mut command: Command) -> Result<Server, String> {
        let mut child = command.spawn().unwrap();
        let mut lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let outcome = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            let device = line
                .strip_prefix("serving ")
                .map(|device| Ok(device.into()));
            device.or_else(|| Some(Err(line.strip_prefix("error: ")?.to_owned())))
        });
        if let Some(Ok(device)) = outcome {
            return Ok(Server {
                child,
                lines,
                device,
            });
        }
        let ended = child.wait().unwrap();
        Err(outcome
            .and_then(Result::err)
            .unwrap_or_else(|| panic!("{ended}")))
    }

    fn start(options: &str) -> Server {
        Server::try_start(Server::command(options)).unwrap()
    }

    /// Ends the server and returns its counts.
    fn stop(mut self) -> BTreeMap<String, u64> {
        self.child.stdin.take().unwrap().write_all(b"\n").unwrap();
        let mut counts = BTreeMap::new();
        for line in self.lines {
            let line = line.unwrap();
            if let Some((name, count)) = line.strip_prefix("count ").and_then(|s| s.split_once(' '))
            {
                counts.insert(name.to_owned(), count.parse().unwrap());
            }
        }
        assert!(self.child.wait().unwrap().success());
        assert!(
            !self.device.exists(),
            "{} still exists",
            self.device.display()
        );
        println!("{counts:?}");
        counts
    }

    fn kill(mut self) {
        self.child.kill().unwrap();
        self.child.wait().unwrap();
    }

    fn name(&self) -> &str {
        self.device.file_name().unwrap().to_str().unwrap()
    }

    /// Returns an attribute of the block device from sysfs.
    fn attribute(&self, name: &str) -> String {
        let path = Path::new("/sys/block").join(self.name()).join(name);
        let text = fs::read_to_string(&path)
            .unwrap_or_else(|error| panic!("cannot read {}: {error}", path.display()));
        text.trim().to_owned()
    }

    fn open(&self, flags: OFlags) -> File {
        try_open(&self.device, flags).unwrap()
    }
}

fn try_open(device: &Path, flags: OFlags) -> io::Result<File> {
    OpenOptions::new()
        .read(true)
        .write(true)
        .custom_flags(flags.bits().cast_signed())
        .open(device)
}

fn busybox(words: &[&str]) {
    let status = Command::new("/bin/busybox").args(words).status().unwrap();
    assert!(status.success(), "{words:?}");
}

fn mount(device: &Path) {
    fs::create_dir_all("/tmp/mount").unwrap();
    busybox(&[
        "mount",
        "-t",
        "ext4",
        device.to_str().unwrap(),
        "/tmp/mount",
    ]);
}

fn make_file_system(server: &Server) {
    let device = server.device.to_str().unwrap();
    let status = Command::new("/bin/mke2fs")
        .args(["-q", "-t", "ext4", device])
        .status();
    assert!(status.unwrap().success());
}

/// Memory that is aligned for direct I/O.
struct Aligned {
    memory: Vec<u8>,
    start: usize,
    bytes: usize,
}

impl Aligned {
    fn new(bytes: usize) -> Aligned {
        let memory = vec![0; bytes + 4096];
        let start = memory.as_ptr().align_offset(4096);
        Aligned {
            memory,
            start,
            bytes,
        }
    }

    fn get(&mut self) -> &mut [u8] {
        &mut self.memory[self.start..self.start + self.bytes]
    }
}

/// Is a missing driver reported, with the command that loads it?
fn no_driver() {
    busybox(&["rmmod", "ublk_drv"]);
    let error = Server::try_start(Server::command("drive=512e"))
        .err()
        .unwrap();
    assert!(error.contains("modprobe ublk_drv"), "{error}");
    println!("{error}");
    busybox(&["insmod", "/modules/ublk_drv.ko"]);
}

/// Is a disabled io_uring reported, with the command that enables it?
fn no_io_uring() {
    let disabled = "/proc/sys/kernel/io_uring_disabled";
    fs::write(disabled, "2").unwrap();
    let error = Server::try_start(Server::command("drive=512e"))
        .err()
        .unwrap();
    fs::write(disabled, "0").unwrap();
    let command = "`sysctl kernel.io_uring_disabled=0`";
    assert!(error.contains(command), "{error}");
    println!("{error}");
}

/// Does the kernel report the drive's sizes, rotation, cache, discards and write protection? Can
/// two devices exist at once, and is a device number in use refused?
fn properties() {
    let one = Server::start("drive=512e optimal=65536");
    let two = Server::start("drive=4kn number=7 readonly=yes");
    assert_eq!(one.device, Path::new("/dev/ublkb0"));
    assert_eq!(two.device, Path::new("/dev/ublkb7"));
    let taken = Server::try_start(Server::command("drive=512e number=7"));
    let taken = taken.err().unwrap();
    assert!(taken.contains("ublk device 7 exists"), "{taken}");
    for (name, first, second) in [
        ("size", "131072", "131072"),
        ("ro", "0", "1"),
        ("queue/logical_block_size", "512", "4096"),
        ("queue/physical_block_size", "4096", "4096"),
        ("queue/minimum_io_size", "4096", "4096"),
        ("queue/optimal_io_size", "65536", "0"),
        ("queue/rotational", "1", "1"),
        ("queue/write_cache", "write back", "write back"),
        ("queue/fua", "1", "1"),
        ("queue/max_hw_sectors_kb", "1024", "1024"),
        ("queue/max_sectors_kb", "1024", "1024"),
        ("queue/discard_granularity", "4096", "0"),
        ("queue/discard_max_hw_bytes", "2147483648", "0"),
        ("queue/write_zeroes_max_bytes", "33554432", "0"),
    ] {
        let shown = [one.attribute(name), two.attribute(name)];
        println!("{name}: {shown:?}");
        assert_eq!(shown, [first, second], "{name}");
    }
    let written =
        try_open(&two.device, OFlags::empty()).and_then(|file| file.write_at(&[1; 4096], 0));
    assert!(written.is_err());
    let mut list = Command::new("/bin/lsblk");
    list.args(["--topology", "--discard", "/dev/ublkb0", "/dev/ublkb7"]);
    assert!(list.status().unwrap().success());
    two.stop();
    one.stop();
    assert!(!Path::new("/dev/ublkc0").exists());
    assert!(!Path::new("/dev/ublkc7").exists());
}

/// Does a file system keep its data, and do its flushes, forced writes and trims reach the drive?
fn file_system() {
    let server = Server::start("drive=512e");
    make_file_system(&server);
    mount(&server.device);
    let mut rng = Rng::new(1);
    let data: Vec<u8> = (0..8 << 20).map(|_| rng.below(256) as u8).collect();
    let mut file = File::create("/tmp/mount/data").unwrap();
    file.write_all(&data).unwrap();
    file.sync_all().unwrap();
    drop(file);
    busybox(&["umount", "/tmp/mount"]);
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    mount(&server.device);
    assert!(fs::read("/tmp/mount/data").unwrap() == data);
    busybox(&["fstrim", "/tmp/mount"]);
    busybox(&["umount", "/tmp/mount"]);
    let counts = server.stop();
    assert!(counts["flushes"] > 0 && counts["fua"] > 0 && counts["trims"] > 0);
}

/// Do discards and write-zeroes requests reach the drive as such, and do zeroed sectors read as
/// zeros?
fn discards_and_zeros() {
    let server = Server::start("drive=4kn");
    let file = server.open(OFlags::DIRECT);
    let mut data = Aligned::new(1 << 20);
    data.get().fill(0xa5);
    file.write_all_at(data.get(), 0).unwrap();
    let zero_range = FallocateFlags::ZERO_RANGE | FallocateFlags::KEEP_SIZE;
    fallocate(&file, zero_range, 4096, 8192).unwrap();
    file.read_exact_at(data.get(), 0).unwrap();
    for (index, chunk) in data.get().chunks(4096).enumerate() {
        let expected = if index == 1 || index == 2 { 0 } else { 0xa5 };
        assert!(chunk.iter().all(|byte| *byte == expected), "{index}");
    }
    drop(file);
    busybox(&["blkdiscard", server.device.to_str().unwrap()]);
    let counts = server.stop();
    assert_eq!((counts["zeros"], counts["trims"]), (1, 1));
}

/// Can all of the clients' requests, up to 256, be outstanding at the drive at once?
fn outstanding() {
    for clients in [64, 256, 300] {
        let depth = 256.min(clients);
        let mut server = Server::start(&format!("drive=1tb announce={depth}"));
        let file = server.open(OFlags::DIRECT);
        let ended = AtomicBool::new(false);
        thread::scope(|scope| {
            for seed in 0..clients {
                let (file, ended) = (&file, &ended);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    let mut data = Aligned::new(4096);
                    while !ended.load(Ordering::Relaxed) {
                        let offset = rng.below(240_000_000) * 4096;
                        file.read_exact_at(data.get(), offset).unwrap();
                    }
                });
            }
            let mut lines = server.lines.by_ref().map(Result::unwrap);
            assert!(lines.any(|line| line == format!("reached {depth}")));
            ended.store(true, Ordering::Relaxed);
        });
        drop(file);
        let counts = server.stop();
        println!(
            "{clients} clients: {} outstanding",
            counts["outstanding_max"]
        );
        assert_eq!(counts["outstanding_max"], depth);
    }
}

/// Do requests of 4 MiB reach the drive in parts of up to 1 MiB, with the right data?
fn large_requests() {
    let server = Server::start("drive=512e");
    let file = server.open(OFlags::DIRECT);
    let mut data = Aligned::new(4 << 20);
    let mut rng = Rng::new(2);
    data.get().fill_with(|| rng.below(256) as u8);
    file.write_all_at(data.get(), 1 << 20).unwrap();
    let mut back = Aligned::new(4 << 20);
    file.read_exact_at(back.get(), 1 << 20).unwrap();
    assert!(back.get() == data.get());
    drop(file);
    let counts = server.stop();
    assert_eq!(counts["largest"], 1 << 20);
}

/// Is all data of a mounted file system written before its device is removed?
fn stopped_while_mounted() {
    let options = "drive=512e file=/tmp/stopped.img";
    let server = Server::start(options);
    make_file_system(&server);
    mount(&server.device);
    fs::write("/tmp/mount/data", [7; 100_000]).unwrap();
    server.stop();
    busybox(&["umount", "/tmp/mount"]);
    let server = Server::start(options);
    mount(&server.device);
    assert!(fs::read("/tmp/mount/data").unwrap() == [7; 100_000]);
    busybox(&["umount", "/tmp/mount"]);
    server.stop();
    fs::remove_file("/tmp/stopped.img").unwrap();
}

/// Do readers get an error within five seconds if the server is killed, and does the next server
/// to start delete the dead device, but not another server's?
fn killed() {
    let other = Server::start("drive=512e number=3");
    let server = Server::start("drive=1tb number=0");
    let file = server.open(OFlags::DIRECT);
    let reads = AtomicU32::new(0);
    let failed = thread::scope(|scope| {
        let readers: Vec<_> = (0..16)
            .map(|seed| {
                let (file, reads) = (&file, &reads);
                scope.spawn(move || {
                    let mut rng = Rng::new(seed);
                    let mut data = Aligned::new(4096);
                    loop {
                        let offset = rng.below(240_000_000) * 4096;
                        if file.read_exact_at(data.get(), offset).is_err() {
                            return Instant::now();
                        }
                        reads.fetch_add(1, Ordering::Relaxed);
                    }
                })
            })
            .collect();
        while reads.load(Ordering::Relaxed) < 16 {
            thread::sleep(Duration::from_millis(5));
        }
        let killed = Instant::now();
        server.kill();
        let ends = readers.into_iter().map(|reader| reader.join().unwrap());
        ends.max().unwrap() - killed
    });
    println!("all 16 readers failed within {failed:?}");
    assert!(failed < Duration::from_secs(5));
    drop(file);
    assert!(Path::new("/dev/ublkc0").exists());
    let next = Server::start("drive=512e");
    assert_eq!(next.device, Path::new("/dev/ublkb0"));
    next.stop();
    assert!(other.device.exists());
    other.open(OFlags::DIRECT);
    other.stop();
}

/// If the server of a mounted file system is killed repeatedly, does a sync fail within five
/// seconds each time, can the file system be unmounted, and does the next start find all synced
/// data?
fn killed_while_mounted() {
    let options = "drive=512e file=/tmp/killed.img";
    let mut server = Server::start(options);
    make_file_system(&server);
    let kept = |round: u64| [round as u8; 10_000];
    for round in 1..=testkit::repeats(3) {
        mount(&server.device);
        if round > 1 {
            assert!(fs::read("/tmp/mount/kept").unwrap() == kept(round - 1));
        }
        let mut file = File::create("/tmp/mount/new").unwrap();
        file.write_all(&kept(round)).unwrap();
        file.sync_all().unwrap();
        fs::rename("/tmp/mount/new", "/tmp/mount/kept").unwrap();
        File::open("/tmp/mount").unwrap().sync_all().unwrap();
        file.write_all(&[0xff; 100_000]).unwrap();
        server.kill();
        let killed = Instant::now();
        assert!(file.sync_all().is_err());
        assert!(killed.elapsed() < Duration::from_secs(5));
        drop(file);
        // A dead device in use keeps its number, but does not prevent a start.
        let is_in_use = round.is_multiple_of(2);
        if !is_in_use {
            busybox(&["umount", "/tmp/mount"]);
        }
        server = Server::start(options);
        println!("round {round}: {}", server.device.display());
        if is_in_use {
            busybox(&["umount", "/tmp/mount"]);
        }
    }
    server.stop();
    fs::remove_file("/tmp/killed.img").unwrap();
}

/// Is a user without permissions told why access is refused, and can the user run a server once the
/// permissions are granted? Can the user delete the device of a killed server? The test sets the
/// owner of new nodes, as udev would.
fn ordinary_user() {
    let as_user = || {
        let mut command = Server::command("drive=512e number=5");
        command.uid(USER).gid(USER);
        command
    };
    let denied = Server::try_start(as_user()).err().unwrap();
    assert!(
        denied.contains("/dev/ublk-control: permission denied"),
        "{denied}"
    );
    let everyone = fs::Permissions::from_mode(0o666);
    fs::set_permissions("/dev/ublk-control", everyone).unwrap();
    let ended = AtomicBool::new(false);
    thread::scope(|scope| {
        scope.spawn(|| {
            while !ended.load(Ordering::Relaxed) {
                for node in ["/dev/ublkc5", "/dev/ublkb5"] {
                    let _ = chown(node, Some(USER), Some(USER));
                }
                thread::sleep(Duration::from_millis(20));
            }
        });
        let server = Server::try_start(as_user()).unwrap();
        thread::sleep(Duration::from_millis(100));
        let mut copy = Command::new("/bin/busybox");
        copy.args(["dd", "if=/dev/ublkb5", "of=/dev/null", "bs=64k", "count=16"]);
        copy.uid(USER).gid(USER).stderr(Stdio::null());
        assert!(copy.status().unwrap().success());
        let counts = server.stop();
        assert!(counts["data"] > 0);
        // The owner can also delete the device of a killed server.
        Server::try_start(as_user()).unwrap().kill();
        let server = Server::try_start(as_user()).unwrap();
        // An open device does not prevent its server from stopping.
        let holder = server.open(OFlags::DIRECT);
        let begin = Instant::now();
        server.stop();
        println!("stopped in {:?} with the device open", begin.elapsed());
        assert!(begin.elapsed() < Duration::from_secs(5));
        drop(holder);
        assert!(!Path::new("/dev/ublkc5").exists());
        ended.store(true, Ordering::Relaxed);
    });
}

//! Safeguards: devices and files that are in use or have content are not overwritten, sockets are
//! private, and the numbers of clients and of queued requests and the sizes of files are limited.
//! Some tests need real loop devices and file systems.

use std::fs;
use std::io::{Read, Write};
use std::os::unix::fs::FileExt;
use std::os::unix::fs::symlink;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use tempfile::TempDir;

use crate::command::traxtent_in;

const MIB: u64 = 1 << 20;

/// A loop device that is detached after the test.
pub(crate) struct Loop(PathBuf);

impl Loop {
    pub(crate) fn attach(image: &Path) -> Option<Loop> {
        Loop::attach_with(image, &[])
    }

    pub(crate) fn attach_with(image: &Path, options: &[&str]) -> Option<Loop> {
        let mut losetup = Command::new("losetup");
        losetup.args(["--find", "--show"]).args(options).arg(image);
        let shown = losetup.output();
        let shown = shown.ok().filter(|shown| shown.status.success())?;
        let device = String::from_utf8(shown.stdout).ok()?;
        Some(Loop(device.trim().into()))
    }

    pub(crate) fn name(&self) -> &str {
        self.0.to_str().expect("it is plain")
    }
}

impl Drop for Loop {
    fn drop(&mut self) {
        // The kernel keeps partitions that `partx` added.
        let _ = Command::new("partx").arg("--delete").arg(&self.0).output();
        let _ = Command::new("losetup").arg("-d").arg(&self.0).status();
    }
}

/// A mounted file system.
struct Mounted(PathBuf);

impl Mounted {
    fn new(device: &Loop, folder: PathBuf) -> Option<Mounted> {
        fs::create_dir_all(&folder).unwrap();
        let mounted = Command::new("mount").arg(&device.0).arg(&folder).output();
        let is_mounted = mounted.is_ok_and(|mounted| mounted.status.success());
        is_mounted.then_some(Mounted(folder))
    }
}

impl Drop for Mounted {
    fn drop(&mut self) {
        let _ = Command::new("umount").arg(&self.0).status();
    }
}

/// Creates a profile of a 32 MiB drive without delays.
fn drive(folder: &Path) {
    let mut profile = traxtent_model::profile::builtin("instant").unwrap();
    profile.geometry.cylinders = 32;
    profile.geometry.zones[0].last_cylinder = 31;
    fs::write(folder.join("drive.toml"), profile.to_toml()).unwrap();
}

fn sparse(path: &Path, mib: u64) {
    let file = fs::File::create(path).unwrap();
    file.set_len(mib * MIB).unwrap();
}

/// Returns the content of a device and of its backing file.
fn bytes(paths: [&Path; 2]) -> [Vec<u8>; 2] {
    let _ = Command::new("sync").status();
    paths.map(|path| fs::read(path).unwrap())
}

/// Is a large device whose partition table is lost, but with a file system at 1 MiB, refused as a
/// member of a volume, and is nothing written to it?
#[test]
fn a_device_with_a_lost_partition_table() {
    let _ = testkit::tool!("losetup");
    let make = testkit::tool!("mkfs.xfs");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let (image, part) = (at.join("image"), at.join("part"));
    sparse(&image, 4 << 20);
    sparse(&part, 512);
    let made = Command::new(make).arg("-q").arg(&part).status();
    assert!(made.unwrap().success());
    let superblock = fs::read(&part).unwrap()[..4096].to_vec();
    let file = fs::OpenOptions::new().write(true).open(&image).unwrap();
    file.write_all_at(&superblock, 1 << 20).unwrap();
    let Some(device) = Loop::attach(&image) else {
        testkit::skip!("no loop device is available");
    };
    for other in ["b", "c"] {
        sparse(&at.join(other), 4 << 20);
    }
    let name = device.name();
    let line = [
        "volume", "create", "--level", "raid-5", "--chunk", "64K", name, "b", "c",
    ];
    let answer = traxtent_in(at, &line);
    assert_ne!(answer.status, 0, "{}", answer.out);
    let says = "XFS begins at byte 1048576";
    assert!(answer.err.contains(says), "{}", answer.err);
    let mut kept = vec![0; 4096];
    fs::File::open(&image)
        .unwrap()
        .read_exact_at(&mut kept, 1 << 20)
        .unwrap();
    assert!(kept == superblock);
}

/// Is a device that is mounted, or that holds a file system or a member of a volume, left unchanged
/// by `serve`, `volume` and `check`, and is the reason given?
#[test]
fn serve_file_refuses_a_mounted_device() {
    let _ = testkit::tool!("losetup");
    let (make, _) = (testkit::tool!("mke2fs"), testkit::tool!("mount"));
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    drive(at);
    let image = at.join("image");
    sparse(&image, 64);
    let made = Command::new(make)
        .args(["-q", "-t", "ext4", "-F"])
        .arg(&image)
        .status();
    assert!(made.unwrap().success());
    let Some(device) = Loop::attach(&image) else {
        testkit::skip!("no loop device is available");
    };
    let name = device.name();
    sparse(&at.join("other"), 64);
    sparse(&at.join("third"), 64);
    let refused = |line: &str, status: i32, says: &str| {
        let before = bytes([&device.0, &image]);
        let arguments: Vec<&str> = line.split(' ').collect();
        let answer = traxtent_in(at, &arguments);
        assert_eq!(answer.status, status, "{line}: {}", answer.err);
        assert!(answer.err.contains(says), "{line}: {}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{line}: {}", answer.err);
        assert!(before == bytes([&device.0, &image]), "{line} wrote to it");
    };
    {
        let Some(_mounted) = Mounted::new(&device, at.join("mnt")) else {
            testkit::skip!("ext4 cannot be mounted here");
        };
        fs::write(at.join("mnt/file"), vec![7; 100_000]).unwrap();
        // A read-only drive only reads it.
        let read = format!("serve ./drive.toml --file {name} --read-only -- true");
        let before = bytes([&device.0, &image]);
        let answer = traxtent_in(at, &read.split(' ').collect::<Vec<_>>());
        assert_eq!(answer.status, 0, "{}", answer.err);
        assert!(before == bytes([&device.0, &image]));
        for line in [
            format!("serve ./drive.toml --file {name} -- true"),
            format!("serve ./drive.toml --file {name} --force -- true"),
            format!("volume create --level raid-0 --chunk 64K --force other {name}"),
            format!("volume destroy --force {name}"),
            format!("check {name} --measure=physical-sector --scratch 0..1000 --yes"),
        ] {
            let says = format!("{name} is mounted on {}", at.join("mnt").display());
            if line.starts_with("check") {
                // A note and a warning precede it.
                let before = bytes([&device.0, &image]);
                let answer = traxtent_in(at, &line.split(' ').collect::<Vec<_>>());
                assert_eq!(answer.status, 3, "{}", answer.err);
                assert!(answer.err.contains(&says), "{}", answer.err);
                assert!(before == bytes([&device.0, &image]), "{line} wrote to it");
                continue;
            }
            refused(&line, 3, &says);
        }
    }
    // The backing file is refused too.
    for line in [
        "serve ./drive.toml --file image -- true",
        "volume create --level raid-0 --chunk 64K --force other image",
    ] {
        refused(line, 3, &format!("backs {name}"));
    }
    let serve = format!("serve ./drive.toml --file {name} -- true");
    refused(&serve, 2, "holds an ext file system; --force overwrites it");
    let forced = format!("serve ./drive.toml --file {name} --force -- true");
    let answer = traxtent_in(at, &forced.split(' ').collect::<Vec<_>>());
    assert_eq!(answer.status, 0, "{}", answer.err);
    // A member of a volume is content too.
    let create = format!("volume create --level raid-0 --chunk 64K --force other {name}");
    let answer = traxtent_in(at, &create.split(' ').collect::<Vec<_>>());
    assert_eq!(answer.status, 0, "{}", answer.err);
    refused(&serve, 2, "holds member 1 of volume");
    let mut csv = "first_lbn,sectors\n".to_owned();
    (0..256).for_each(|track| csv += &format!("{},512\n", track * 512));
    fs::write(at.join("tracks.csv"), csv).unwrap();
    let copies = format!("volume copies create --copies 1..2 --map tracks.csv {name}");
    let answer = traxtent_in(at, &copies.split(' ').collect::<Vec<_>>());
    assert_ne!(answer.status, 0, "{}", answer.err);
}

/// Is an image that backs a mounted loop device refused under another name too, even after the name
/// with which it was attached is gone?
#[test]
fn an_image_in_use_has_several_names() {
    let _ = testkit::tool!("losetup");
    let (make, _) = (testkit::tool!("mke2fs"), testkit::tool!("mount"));
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    drive(at);
    let image = at.join("image");
    sparse(&image, 64);
    let mut make = Command::new(make);
    let made = make.args(["-q", "-t", "ext4", "-F"]).arg(&image).status();
    assert!(made.unwrap().success());
    let Some(device) = Loop::attach(&image) else {
        testkit::skip!("no loop device is available");
    };
    let Some(_mounted) = Mounted::new(&device, at.join("mnt")) else {
        testkit::skip!("ext4 cannot be mounted here");
    };
    let other = at.join("other");
    fs::hard_link(&image, &other).unwrap();
    // The first bytes of ext4 are unused.
    let start = || fs::read(&other).unwrap()[..1024].to_vec();
    let before = start();
    for is_gone in [false, true] {
        if is_gone {
            fs::remove_file(&image).unwrap();
            sparse(&image, 64);
        }
        for line in [
            "serve ./drive.toml --file other -- true",
            "volume create --level raid-0 --chunk 64K --force other",
        ] {
            let answer = traxtent_in(at, &line.split(' ').collect::<Vec<_>>());
            assert_eq!(answer.status, 3, "{line}: {}", answer.err);
            let says = format!("other backs {}; release it", device.name());
            assert!(answer.err.contains(&says), "{line}: {}", answer.err);
            assert!(before == start(), "{line} wrote to it");
        }
    }
    // A new file with the old name is not in use.
    let line = [
        "volume", "create", "--level", "raid-0", "--chunk", "64K", "image",
    ];
    let answer = traxtent_in(at, &line);
    assert_eq!(answer.status, 0, "{}", answer.err);
}

/// Do two loop devices on the same bytes of a file count as one member, and as in use if the other
/// is? Do two on different bytes count as two?
#[test]
fn loop_devices_on_one_file() {
    let _ = testkit::tool!("losetup");
    let make = testkit::tool!("mke2fs");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    drive(at);
    let image = at.join("image");
    sparse(&image, 64);
    let half = (32 * MIB).to_string();
    let attach = |options: &[&str]| Loop::attach_with(&image, options);
    let (Some(whole), Some(first), Some(last)) = (
        attach(&[]),
        attach(&["--sizelimit", &half]),
        attach(&["--offset", &half]),
    ) else {
        testkit::skip!("no loop device is available");
    };
    let create = |one: &Loop, two: &Loop| {
        let line = format!(
            "volume create --level raid-1 --journal 4M --force {} {}",
            one.name(),
            two.name()
        );
        traxtent_in(at, &line.split(' ').collect::<Vec<_>>())
    };
    for (one, two) in [(&whole, &last), (&first, &whole)] {
        let answer = create(one, two);
        assert_eq!(answer.status, 2, "{}", answer.err);
        let says = format!("{}: given twice, or shares its storage", two.name());
        assert!(answer.err.contains(&says), "{}", answer.err);
    }
    let line = format!(
        "serve a=./drive.toml b=./drive.toml --file a={} --file b={} -- true",
        whole.name(),
        first.name()
    );
    let answer = traxtent_in(at, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(answer.status, 3, "{}", answer.err);
    let says = format!("in use: {} shows the same data", whole.name());
    assert!(answer.err.contains(&says), "{}", answer.err);
    let answer = create(&first, &last);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let mut make = Command::new(make);
    let made = make.args(["-q", "-t", "ext4", "-F"]).arg(&last.0).status();
    assert!(made.unwrap().success());
    let Some(_mounted) = Mounted::new(&last, at.join("mnt")) else {
        testkit::skip!("ext4 cannot be mounted here");
    };
    let answer = create(&first, &whole);
    assert_eq!(answer.status, 2, "{}", answer.err);
    let line = format!(
        "volume create --level raid-0 --chunk 64K --force {}",
        whole.name()
    );
    let answer = traxtent_in(at, &line.split(' ').collect::<Vec<_>>());
    assert_eq!(answer.status, 3, "{}", answer.err);
    let says = format!(
        "{} shows the same data: {} is mounted on ",
        last.name(),
        last.name()
    );
    assert!(answer.err.contains(&says), "{}", answer.err);
}

/// Is an image refused while another process has locked a part of it with `fcntl`, for reading as
/// QEMU does or for writing, and accepted afterwards?
#[test]
fn an_image_with_a_record_lock() {
    let python = testkit::tool!("python3");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    drive(at);
    sparse(&at.join("image"), 64);
    for lock in [
        // F_OFD_SETLK with F_RDLCK
        "fcntl.fcntl(f, 37, struct.pack('hhqqi4x', 0, 0, 100, 1, 0))",
        "fcntl.lockf(f, fcntl.LOCK_EX, 1, 203)",
    ] {
        let script = format!(
            "import fcntl, struct, sys; f = open('image', 'r+b'); {lock}; print(flush=True); sys.stdin.read()"
        );
        let holder = Command::new(&python)
            .args(["-c", &script])
            .current_dir(at)
            .stdin(Stdio::piped())
            .stdout(Stdio::piped())
            .spawn();
        let mut holder = Serving(holder.unwrap());
        let out = holder.0.stdout.as_mut().unwrap();
        assert_eq!(out.read(&mut [0]).unwrap(), 1, "{lock}: it is not locked");
        for line in [
            "serve ./drive.toml --file image -- true",
            "volume create --level raid-0 --chunk 64K --force image",
        ] {
            let answer = traxtent_in(at, &line.split(' ').collect::<Vec<_>>());
            assert_eq!(answer.status, 3, "{line}: {}", answer.err);
            let says = "image: locked by another process";
            assert!(answer.err.contains(says), "{line}: {}", answer.err);
        }
        assert!(
            fs::read(at.join("image"))
                .unwrap()
                .iter()
                .all(|byte| *byte == 0)
        );
    }
    let line = [
        "volume", "create", "--level", "raid-0", "--chunk", "64K", "image",
    ];
    let answer = traxtent_in(at, &line);
    assert_eq!(answer.status, 0, "{}", answer.err);
}

/// Does `check --scratch` refuse the members of a volume, also in a partition and at LBNs that no
/// superblock occupies? Does it name all other content of the range, before it asks?
#[test]
fn scratch_ranges_with_content() {
    let _ = testkit::tool!("losetup");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let image = at.join("image");
    sparse(&image, 64);
    sparse(&at.join("other"), 64);
    let Some(device) = Loop::attach(&image) else {
        testkit::skip!("no loop device is available");
    };
    let name = device.name();
    let says = |scratch: &str, expected: &str| {
        let before = bytes([&device.0, &image]);
        let words = [
            "check",
            name,
            "--measure=physical-sector",
            "--scratch",
            scratch,
        ];
        // Only refusals are tested with `--yes`.
        let consent = expected.contains("holds").then_some("--yes");
        let words: Vec<&str> = words.into_iter().chain(consent).collect();
        let answer = traxtent_in(at, &words);
        assert_eq!(answer.status, 2, "{expected}: {}", answer.err);
        assert!(answer.err.contains(expected), "{expected}: {}", answer.err);
        assert!(
            before == bytes([&device.0, &image]),
            "{expected}: it was overwritten"
        );
    };
    let rewrite = |pieces: &[(u64, &[u8])]| {
        let file = fs::OpenOptions::new().write(true).open(&device.0).unwrap();
        file.write_all_at(&vec![0; 64 << 20], 0).unwrap();
        for (at, bytes) in pieces {
            file.write_all_at(bytes, *at).unwrap();
        }
        file.sync_all().unwrap();
    };
    says("40000..60000", "no known layer is there");
    let bcache = [
        0xc6, 0x85, 0x73, 0xf6, 0x4e, 0x1a, 0x45, 0xca, 0x82, 0x65, 0xf5, 0x7f, 0x48, 0xba, 0x6d,
        0x81,
    ];
    rewrite(&[(4096 + 24, &bcache)]);
    says("40000..60000", "layers there: bcache in loop");
    rewrite(&[(1 << 20, b"x")]);
    says(
        "40000..60000",
        "layers there: data of an unknown format (at byte 1048576)",
    );
    // A partition of an MBR, from 1 MiB to 16 MiB.
    let mut table = [0; 512];
    table[446 + 4] = 0x83;
    table[446 + 8..446 + 12].copy_from_slice(&2048_u32.to_le_bytes());
    table[446 + 12..446 + 16].copy_from_slice(&30_720_u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    let lost = (50_000 * 512, b"x".as_slice());
    rewrite(&[(0, &table), (1 << 20, b"traxtvol"), lost]);
    says("20000..40000", "holds part of a traxtent volume");
    says(
        "40000..60000",
        "data of an unknown format (at byte 25600000)",
    );
    rewrite(&[(0, b"traxtvol")]);
    says("40000..60000", "holds damaged superblock");
    rewrite(&[]);
    let create = [
        "volume", "create", "--level", "raid-0", "--chunk", "64K", name, "other",
    ];
    let answer = traxtent_in(at, &create);
    assert_eq!(answer.status, 0, "{}", answer.err);
    says("40000..60000", "holds member 0 of volume");
    says("0..20000", "holds member 0 of volume");
}

/// Do the verbs that write files refuse to write one to a block device, even through a link, and is
/// the device unchanged?
#[test]
fn outputs_refuse_block_devices() {
    let _ = testkit::tool!("losetup");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    drive(at);
    let image = at.join("image");
    fs::write(&image, vec![9; 8 << 20]).unwrap();
    let Some(device) = Loop::attach(&image) else {
        testkit::skip!("no loop device is available");
    };
    let name = device.name();
    symlink(&device.0, at.join("link.svg")).unwrap();
    symlink(&device.0, at.join("link.html")).unwrap();
    symlink(&device.0, at.join("link.csv")).unwrap();
    sparse(&at.join("disk"), 1);
    let before = bytes([&device.0, &image]);
    let mut lines = vec![
        format!("sim atlas10k2 random,count=10 --log {name}"),
        "sim atlas10k2 random,count=10 --log link.csv".to_owned(),
        "sim atlas10k2 random,count=10 --plot link.svg".to_owned(),
        "map atlas10k2 --draw link.svg".to_owned(),
        format!("check disk --collect {name}"),
        "lab today --picture link.svg".to_owned(),
        "lab report --out link.html".to_owned(),
    ];
    lines.push(format!("serve ./drive.toml --log {name} -- true"));
    lines.push(format!("serve ./drive.toml --receipt {name} -- true"));
    for line in lines {
        let answer = traxtent_in(at, &line.split(' ').collect::<Vec<_>>());
        assert!([2, 3].contains(&answer.status), "{line}: {}", answer.err);
        let says = ": is a block device; name a file for the output";
        assert!(answer.err.contains(says), "{line}: {}", answer.err);
        assert!(before == bytes([&device.0, &image]), "{line} wrote to it");
    }
}

/// Do verbs refuse to overwrite their own input, under any name, and to write two results to one
/// file? Can older results be replaced?
#[test]
fn outputs_keep_inputs() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    drive(at);
    fs::create_dir(at.join("out")).unwrap();
    fs::write(at.join("out/t.trace"), "1.0 0 0 8 1\n2.0 0 8 8 1\n").unwrap();
    fs::write(at.join("w.toml"), "kind = \"random\"\ncount = 10\n").unwrap();
    symlink("t.trace", at.join("out/link")).unwrap();
    symlink("t.trace", at.join("out/link.csv")).unwrap();
    fs::hard_link(at.join("drive.toml"), at.join("hard.svg")).unwrap();
    fs::hard_link(at.join("drive.toml"), at.join("hard.csv")).unwrap();
    fs::hard_link(at.join("w.toml"), at.join("w.csv")).unwrap();
    symlink("out", at.join("same")).unwrap();
    let text = traxtent_model::profile::builtin::text("atlas10k").unwrap();
    fs::write(at.join("disk.toml"), text).unwrap();
    let inputs = ["drive.toml", "disk.toml", "out/t.trace", "w.toml"];
    let read = || inputs.map(|name| fs::read(at.join(name)).unwrap());
    let before = read();
    for line in [
        "sim drive.toml out/t.trace --log out/link.csv",
        "sim drive.toml out/t.trace --summary ./out/../out/link",
        "sim drive.toml out/t.trace --log hard.csv",
        "sim drive.toml w.toml --log w.csv",
        "sim drive.toml random,count=10 --plot hard.svg",
        "sim --drives drive.toml,atlas10k w.toml --summary w.csv",
        "sim atlas10k out/t.trace --drive ./drive.toml --log hard.csv",
        "sim drive.toml random,count=10 --log out/q.csv --summary same/q.csv",
        "convert ./drive.toml --out drive.toml --force",
        "drives new drive --like ./drive.toml --force",
        "map ./drive.toml --draw hard.svg",
        "probe ./disk.toml --map disk.toml",
        "probe ./disk.toml --map new.map --profile new.map",
        "probe ./disk.toml --map new.map --profile new.map.checkpoint",
        "serve ./drive.toml --log hard.csv -- true",
        "serve ./drive.toml --file image --receipt image -- true",
        "validate out/t.trace out/link --drive ./drive.toml --plot pictures.svg",
        "validate out/t.trace same/t.trace --drive ./drive.toml --plot pictures",
    ] {
        let answer = traxtent_in(at, &line.split(' ').collect::<Vec<_>>());
        assert_eq!(answer.status, 2, "{line}: {}", answer.err);
        assert_eq!(answer.err.lines().count(), 1, "{line}: {}", answer.err);
        let says = ["name another file", "omit the extension"];
        let said = says.iter().any(|says| answer.err.contains(says));
        assert!(said, "{line}: {}", answer.err);
        assert!(before == read(), "{line} changed its input");
    }
    for name in ["out/q.csv", "new.map", "image", "pictures", "pictures.svg"] {
        assert!(!at.join(name).exists(), "{name} was created");
    }
    let again = "sim drive.toml w.toml --log a.csv --summary b.csv --quiet";
    let again: Vec<&str> = again.split(' ').collect();
    for _ in 0..2 {
        assert_eq!(traxtent_in(at, &again).err, "");
    }
    // The name of a built-in drive, or a workload given as text, is not an input file.
    for line in [
        "sim atlas10k random,count=9 --log atlas10k --quiet",
        "sim drive.toml random,count=9 --log random,count=9 --quiet",
    ] {
        let words: Vec<&str> = line.split(' ').collect();
        assert_eq!(traxtent_in(at, &words).err, "");
        assert_eq!(traxtent_in(at, &words).err, "");
    }
    let nowhere = "sim drive.toml w.toml --log /dev/null --summary /dev/null --quiet";
    let nowhere: Vec<&str> = nowhere.split(' ').collect();
    assert_eq!(traxtent_in(at, &nowhere).err, "");
}

/// Are the directories of sockets accessible only to the user, even with a umask of 0?
#[test]
fn folders_of_sockets_are_private() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    for name in ["a", "b"] {
        sparse(&at.join(name), 8);
    }
    let command = env!("CARGO_BIN_EXE_traxtent");
    let look = "-- sh -c 'stat -c %a $(dirname $socket)'";
    for line in [
        format!("serve instant {look}"),
        format!(
            "volume create --level raid-0 --chunk 64K a b >made && {command} volume serve a b {look}"
        ),
    ] {
        let script = format!("umask 0; {command} {line}");
        let shell = Command::new("sh")
            .args(["-c", &script])
            .current_dir(at)
            .output();
        let shell = shell.unwrap();
        let out = String::from_utf8_lossy(&shell.stdout);
        assert_eq!(out, "700\n", "{line}: {shell:?}");
    }
}

/// A server that ends with the test.
struct Serving(Child);

impl Drop for Serving {
    fn drop(&mut self) {
        let _ = Command::new("kill").arg(self.0.id().to_string()).status();
        let _ = self.0.wait();
    }
}

/// Opens a connection and chooses the export, so that the server has threads for it. Returns `None`
/// if it is refused.
fn connect(socket: &Path) -> Option<UnixStream> {
    let mut stream = UnixStream::connect(socket).ok()?;
    stream
        .set_read_timeout(Some(Duration::from_secs(20)))
        .unwrap();
    let mut greeting = [0; 18];
    stream.read_exact(&mut greeting).ok()?;
    let mut hello = 3_u32.to_be_bytes().to_vec();
    hello.extend(b"IHAVEOPT");
    hello.extend(1_u32.to_be_bytes());
    hello.extend(0_u32.to_be_bytes());
    stream.write_all(&hello).ok()?;
    let mut size_and_flags = [0; 10];
    stream.read_exact(&mut size_and_flags).ok()?;
    Some(stream)
}

/// Reads a sector.
fn read(stream: &mut UnixStream) {
    let mut request = 0x2560_9513_u32.to_be_bytes().to_vec();
    request.extend([0; 4]);
    request.extend([0; 16]);
    request.extend(512_u32.to_be_bytes());
    stream.write_all(&request).unwrap();
    let mut answer = [1; 16 + 512];
    stream.read_exact(&mut answer).unwrap();
    assert_eq!(answer[4..8], [0; 4]);
}

/// Is a client beyond the maximum refused, while all others continue, and is the next one accepted
/// once another has left?
#[test]
fn clients_are_bounded() {
    let folder = TempDir::new().unwrap();
    let socket = folder.path().join("socket");
    let command = Command::new(env!("CARGO_BIN_EXE_traxtent"))
        .args(["serve", "instant", "--transport", "off", "--socket"])
        .arg(&socket)
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn();
    let mut serving = Serving(command.unwrap());
    let begun = Instant::now();
    while !socket.exists() {
        assert!(begun.elapsed() < Duration::from_secs(60));
        thread::sleep(Duration::from_millis(10));
    }
    let mut clients: Vec<UnixStream> = (0..512).map(|_| connect(&socket).unwrap()).collect();
    for _ in 0..100 {
        assert!(
            connect(&socket).is_none(),
            "a client beyond the maximum is accepted"
        );
    }
    clients.iter_mut().for_each(read);
    drop(clients.pop());
    let begun = Instant::now();
    let mut next = loop {
        if let Some(next) = connect(&socket) {
            break next;
        }
        assert!(
            begun.elapsed() < Duration::from_secs(20),
            "no client is accepted after another has left"
        );
        thread::sleep(Duration::from_millis(10));
    };
    read(&mut next);
    clients.iter_mut().for_each(read);
    assert!(serving.0.try_wait().unwrap().is_none());
}

/// If a drive is larger than the largest possible file, is this reported, and is no file left
/// behind?
#[test]
fn a_file_too_large_is_not_left() {
    let folder = TempDir::new().unwrap();
    let probe = fs::File::create(folder.path().join("probe")).unwrap();
    if probe.set_len(20 << 40).is_ok() {
        testkit::skip!("the file system permits files of 20 TiB");
    }
    let line = ["serve", "generic-20tb", "--file", "x", "--", "true"];
    for _ in 0..2 {
        let answer = traxtent_in(folder.path(), &line);
        assert_eq!(answer.status, 3, "{}", answer.err);
        assert!(
            answer
                .err
                .contains("bytes, but files on this file system have at most")
                && answer
                    .err
                    .contains("use another file system, such as XFS, or a block device"),
            "{}",
            answer.err
        );
        assert!(!folder.path().join("x").exists());
    }
}

/// Is an image below /dev checked like any other?
#[test]
fn an_image_below_dev_is_an_image() {
    let Ok(folder) = TempDir::new_in("/dev/shm") else {
        testkit::skip!("there is no /dev/shm");
    };
    let image = folder.path().join("img");
    sparse(&image, 8);
    let answer = traxtent_in(folder.path(), &["check", image.to_str().unwrap()]);
    assert!(
        !answer.err.contains("lists no block device"),
        "{}",
        answer.err
    );
    let elsewhere = TempDir::new().unwrap();
    sparse(&elsewhere.path().join("img"), 8);
    let other = traxtent_in(elsewhere.path(), &["check", "img"]);
    assert_eq!((answer.status, answer.err), (other.status, other.err));
}

/// Does a simulation whose requests arrive faster than the drive serves them end with an error,
/// before the host runs out of memory?
#[test]
fn queues_without_bound_are_refused() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    let rows = "0.0 0 0 8 1\n".repeat(10_000);
    for _ in 0..120 {
        gzip.write_all(rows.as_bytes()).unwrap();
    }
    fs::write(at.join("burst.trace.gz"), gzip.finish().unwrap()).unwrap();
    let drawn = "random,arrive=1us,count=18446744073709551615";
    for (workload, place, remedy) in [
        (
            "burst.trace.gz",
            "burst.trace.gz: request 1",
            "--replay closed:N",
        ),
        (drawn, "workload: request 1", "outstanding="),
    ] {
        // 1 GB, so that a simulation that does not end does not exhaust the machine.
        let command = env!("CARGO_BIN_EXE_traxtent");
        let script = format!("ulimit -v 1000000; exec {command} sim atlas10k2 {workload}");
        let shell = Command::new("sh")
            .args(["-c", &script])
            .current_dir(at)
            .output();
        let shell = shell.unwrap();
        let err = String::from_utf8_lossy(&shell.stderr);
        assert_eq!(shell.status.code(), Some(2), "{workload}: {err}");
        assert!(err.contains(place) && err.contains(remedy), "{err}");
        assert!(err.contains("1048576 requests wait for drive 0"), "{err}");
        let errors = err.lines().filter(|line| !line.contains("warning: "));
        assert_eq!(errors.count(), 1, "{err}");
    }
}

//! SCSI through a kernel: `scsi_debug`'s disk in an emulated machine.
//!
//! The test binary itself goes into the guest's initial file system and runs the same test there,
//! with a variable set that tells it where it is. Emulation is by software: no /dev/kvm is needed.
//! The kernel is Debian's, unpacked into `target/guest` by `cargo xtask test`; nothing of it is
//! installed.

mod inside;

use std::fs;
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

/// Set in the guest: what the test binary is to do there.
const ROLE: &str = "TRAXTENT_GUEST";
const TEST: &str = "guest::a_kernels_own_disk";
const MODULES: [&str; 5] = ["scsi_common", "scsi_mod", "sd_mod", "sg", "scsi_debug"];
const LIMIT: Duration = Duration::from_secs(180);

/// Do commands, mode pages, errors, time-outs and a removed disk work through a real kernel, and is
/// the disk, which has no spindle, refused?
#[test]
fn a_kernels_own_disk() {
    match std::env::var(ROLE).as_deref() {
        Ok("tests") => return inside::run(),
        Ok("prober") => return inside::prober(),
        _ => {}
    }
    let qemu = testkit::tool!("qemu-system-x86_64");
    let busybox = testkit::tool!("busybox");
    let ldd = testkit::tool!("ldd");
    let Some(kernel) = Kernel::find() else {
        testkit::skip!(
            "the guest's kernel is not in target/guest; `cargo xtask test` puts it there"
        );
    };
    let root = Path::new(env!("CARGO_TARGET_TMPDIR")).join("guest");
    let _ = fs::remove_dir_all(&root);
    let image = initial_files(&root, &busybox, &ldd, &kernel);

    let mut machine = Command::new(qemu);
    machine
        .args(["-accel", "tcg", "-cpu", "qemu64", "-m", "384", "-smp", "1"])
        .args([
            "-nodefaults",
            "-no-reboot",
            "-display",
            "none",
            "-serial",
            "stdio",
        ])
        .arg("-kernel")
        .arg(&kernel.image)
        .arg("-initrd")
        .arg(&image)
        .args([
            "-append",
            "console=ttyS0 quiet panic=-1 random.trust_cpu=on",
        ]);
    let console = run_within(&mut machine, LIMIT);
    let _ = fs::remove_dir_all(&root);
    // Told apart from what this run of tests says itself.
    for line in console.lines() {
        println!("guest: {line}");
    }
    assert!(
        console.contains("test result: ok. 1 passed"),
        "the guest's console:\n{console}"
    );
}

/// A kernel that has been unpacked, not installed.
struct Kernel {
    image: PathBuf,
    /// The folder of SCSI drivers.
    drivers: PathBuf,
}

impl Kernel {
    fn find() -> Option<Kernel> {
        let root = Path::new(env!("CARGO_TARGET_TMPDIR"))
            .parent()?
            .join("guest");
        let entries = fs::read_dir(root.join("lib/modules")).ok()?;
        let mut releases: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        releases.sort();
        let release = releases.pop()?.into_string().ok()?;
        let kernel = Kernel {
            image: root.join(format!("boot/vmlinuz-{release}")),
            drivers: root.join(format!("lib/modules/{release}/kernel/drivers/scsi")),
        };
        let complete = MODULES.iter().all(|name| kernel.module(name).is_file());
        (complete && kernel.image.is_file()).then_some(kernel)
    }

    fn module(&self, name: &str) -> PathBuf {
        self.drivers.join(format!("{name}.ko"))
    }
}

/// Makes the guest's initial file system: this binary, its libraries, modules, and busybox to start
/// it all.
fn initial_files(root: &Path, busybox: &Path, ldd: &Path, kernel: &Kernel) -> PathBuf {
    let files = root.join("files");
    for folder in ["bin", "dev", "proc", "sys", "tmp", "modules"] {
        fs::create_dir_all(files.join(folder)).unwrap();
    }
    let copy = |from: &Path, to: &str| {
        let to = files.join(to.trim_start_matches('/'));
        fs::create_dir_all(to.parent().unwrap()).unwrap();
        fs::copy(from, to).unwrap();
    };
    copy(busybox, "bin/busybox");
    symlink("busybox", files.join("bin/sh")).unwrap();
    for name in MODULES {
        copy(&kernel.module(name), &format!("modules/{name}.ko"));
    }
    let binary = std::env::current_exe().unwrap();
    copy(&binary, "bin/tests");
    if let Some(strip) = testkit::tool("strip") {
        // Emulation is slow, and so is unpacking debug information.
        let small = files.join("bin/tests");
        Command::new(strip).arg(small).status().unwrap();
    }
    let libraries = Command::new(ldd).arg(&binary).output().unwrap();
    for word in String::from_utf8(libraries.stdout)
        .unwrap()
        .split_whitespace()
    {
        if word.starts_with('/') {
            copy(Path::new(word), word);
        }
    }
    let init = files.join("init");
    fs::write(&init, init_script()).unwrap();
    fs::set_permissions(&init, fs::Permissions::from_mode(0o755)).unwrap();

    let image = root.join("initrd");
    let pack = "find . | \"$0\" cpio -o -H newc 2>/dev/null >\"$1\"";
    let packed = Command::new("sh")
        .current_dir(&files)
        .args(["-c", pack])
        .args([busybox, &image])
        .status();
    assert!(packed.unwrap().success());
    image
}

fn init_script() -> String {
    let [first @ .., debug] = MODULES;
    let mut script = "#!/bin/sh\nB=/bin/busybox\n".to_owned();
    for (kind, place) in [("devtmpfs", "/dev"), ("proc", "/proc"), ("sysfs", "/sys")] {
        script += &format!("$B mount -t {kind} none {place}\n");
    }
    for module in first {
        script += &format!("$B insmod /modules/{module}.ko\n");
    }
    script += &format!(
        "$B insmod /modules/{debug}.ko dev_size_mb=64 physblk_exp=3 ndelay=20000\n\
         {ROLE}=tests /bin/tests --exact {TEST} --nocapture\n\
         $B poweroff -f\n"
    );
    script
}

/// Runs a program and returns what it prints; ends it when it takes too long.
fn run_within(command: &mut Command, limit: Duration) -> String {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut output = child.stdout.take().unwrap();
    let reader = std::thread::spawn(move || {
        let mut text = Vec::new();
        let _ = output.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let end = Instant::now() + limit;
    while child.try_wait().unwrap().is_none() {
        if Instant::now() > end {
            child.kill().unwrap();
        }
        std::thread::sleep(Duration::from_millis(50));
    }
    reader.join().unwrap()
}

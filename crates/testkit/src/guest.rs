//! A guest machine for tests: a stock Debian kernel under software emulation, with the test's
//! own files.
//!
//! /dev/kvm is not needed. `cargo xtask test` unpacks the kernels into `target/guest` and
//! `target/guest-backports`, and installs neither. The guest's initial file system contains
//! busybox, the requested kernel modules, programs with their libraries, other files, and a script.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

/// A kernel for guests.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum GuestKernel {
    /// The kernel of the distribution's release.
    Release,
    /// The newer kernel of the release's backports, which has the ublk driver.
    Backports,
}

impl GuestKernel {
    /// Returns the directory with the kernel, below the target directory.
    fn folder(self) -> &'static str {
        match self {
            GuestKernel::Release => "guest",
            GuestKernel::Backports => "guest-backports",
        }
    }

    /// Returns the processor to emulate. Under QEMU 7.2, a guest with Linux 6.12 on `qemu64`
    /// crashed in five of eight boots, at the instruction that `-cx16` removes.
    fn processor(self) -> &'static str {
        match self {
            GuestKernel::Release => "qemu64",
            GuestKernel::Backports => "max,-cx16",
        }
    }
}

/// The description of a guest.
#[derive(Clone, Debug)]
pub struct Guest<'a> {
    /// The name of the guest, which must be unique.
    pub name: &'a str,
    /// The directory for all files: the test's `CARGO_TARGET_TMPDIR`.
    pub folder: &'a Path,
    /// Kernel modules with their parameters, in load order, such as `"sd_mod"`.
    pub modules: &'a [&'a str],
    /// Programs, each with its name in the guest's `/bin`. The libraries that they need are copied
    /// with them.
    pub programs: &'a [(&'a Path, &'a str)],
    /// Other files, each with its name in the guest's `/files`.
    pub files: &'a [(&'a Path, &'a str)],
    /// The shell script that runs once /dev, /proc and /sys have been mounted and the modules have
    /// been loaded; `$B` is busybox.
    pub script: &'a str,
    /// The arguments for qemu that add devices.
    pub devices: &'a [String],
    /// The time after which the guest is stopped.
    pub limit: Duration,
}

impl Guest<'_> {
    /// Boots the guest, runs the script, powers the guest off, and returns its console output.
    ///
    /// # Errors
    /// Returns what is missing on this machine, as a reason for [`skip!`](crate::skip).
    ///
    /// # Panics
    /// Panics if the guest's files cannot be created, or if a program cannot be started.
    pub fn run(&self) -> Result<String, String> {
        self.run_on(GuestKernel::Release)
    }

    /// Does the same as [`Guest::run`], with the given kernel.
    ///
    /// # Errors
    /// Returns what is missing on this machine, as a reason for [`skip!`](crate::skip).
    ///
    /// # Panics
    /// Panics if the guest's files cannot be created, or if a program cannot be started.
    pub fn run_on(&self, series: GuestKernel) -> Result<String, String> {
        let tool = |name| crate::tool(name).ok_or_else(|| format!("{name} is not installed"));
        let (qemu, busybox, ldd) = (tool("qemu-system-x86_64")?, tool("busybox")?, tool("ldd")?);
        let kernel = Kernel::find(self.folder, series).ok_or_else(|| {
            let folder = series.folder();
            format!(
                "the guest's kernel is not in target/{folder}; `cargo xtask test` puts it there"
            )
        })?;
        let root = self.folder.join(format!("guest-{}", self.name));
        let _ = fs::remove_dir_all(&root);
        let files = Files::new(root.join("files"));
        let init = self.put_files(&files, &kernel, &busybox, &ldd)?;
        files.write("init", &init);
        let image = root.join("initrd");
        files.pack(&busybox, &image);
        let console = self.boot(&qemu, &kernel, &image);
        let _ = fs::remove_dir_all(&root);
        Ok(console)
    }

    /// Puts everything except the init script into the initial file system, and returns that
    /// script.
    fn put_files(
        &self,
        files: &Files,
        kernel: &Kernel,
        busybox: &Path,
        ldd: &Path,
    ) -> Result<String, String> {
        files.copy(busybox, "bin/busybox");
        symlink("busybox", files.root.join("bin/sh")).expect("there is no other shell");
        let mut init = "#!/bin/sh\nB=/bin/busybox\n".to_owned();
        for (kind, place) in [("devtmpfs", "dev"), ("proc", "proc"), ("sysfs", "sys")] {
            files.folder(place);
            init += &format!("$B mount -t {kind} none /{place}\n");
        }
        files.folder("tmp");
        for module in self.modules {
            let name = module.split(' ').next().unwrap_or(module);
            let from = kernel
                .module(name)
                .ok_or_else(|| format!("the guest's kernel has no module {name}"))?;
            files.copy_module(&from, &format!("modules/{name}.ko"), busybox);
            init += &format!(
                "$B insmod /modules/{}\n",
                module.replacen(name, &format!("{name}.ko"), 1)
            );
        }
        for (program, name) in self.programs {
            files.copy_program(program, &format!("bin/{name}"), ldd);
        }
        for (file, name) in self.files {
            files.copy(file, &format!("files/{name}"));
        }
        Ok(init + self.script + "\n$B poweroff -f\n")
    }

    fn boot(&self, qemu: &Path, kernel: &Kernel, image: &Path) -> String {
        let mut machine = Command::new(qemu);
        machine.args(["-accel", "tcg", "-m", "384", "-smp", "1"]);
        machine.args(["-cpu", kernel.series.processor()]);
        machine.args(["-nodefaults", "-no-reboot", "-display", "none"]);
        machine.args(["-serial", "stdio"]);
        machine.arg("-kernel").arg(&kernel.image);
        machine.arg("-initrd").arg(image);
        machine.args([
            "-append",
            "console=ttyS0 quiet panic=-1 no_timer_check random.trust_cpu=on",
        ]);
        run_within(machine.args(self.devices), self.limit)
    }
}

/// A kernel that has been unpacked, but not installed.
struct Kernel {
    series: GuestKernel,
    image: PathBuf,
    modules: Vec<PathBuf>,
}

impl Kernel {
    fn find(folder: &Path, series: GuestKernel) -> Option<Kernel> {
        let root = folder.parent()?.join(series.folder());
        let entries = fs::read_dir(root.join("lib/modules")).ok()?;
        let mut releases: Vec<_> = entries.flatten().map(|entry| entry.file_name()).collect();
        releases.sort();
        let release = releases.pop()?.into_string().ok()?;
        let mut modules = Vec::new();
        files_below(&root.join("lib/modules").join(&release), &mut modules);
        let image = root.join(format!("boot/vmlinuz-{release}"));
        image.is_file().then_some(Kernel {
            series,
            image,
            modules,
        })
    }

    fn module(&self, name: &str) -> Option<PathBuf> {
        let files = [format!("{name}.ko"), format!("{name}.ko.xz")];
        let mut modules = self.modules.iter();
        let is_module = |path: &&PathBuf| files.iter().any(|file| path.ends_with(file));
        modules.find(is_module).cloned()
    }
}

fn files_below(folder: &Path, files: &mut Vec<PathBuf>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        match entry.file_type() {
            Ok(kind) if kind.is_dir() => files_below(&entry.path(), files),
            _ => files.push(entry.path()),
        }
    }
}

/// The guest's initial file system during its creation.
struct Files {
    root: PathBuf,
}

impl Files {
    fn new(root: PathBuf) -> Files {
        fs::create_dir_all(&root).expect("there is room");
        Files { root }
    }

    fn folder(&self, place: &str) {
        fs::create_dir_all(self.root.join(place)).expect("there is room");
    }

    fn copy(&self, from: &Path, place: &str) {
        let to = self.root.join(place.trim_start_matches('/'));
        fs::create_dir_all(to.parent().expect("it lies in a folder")).expect("there is room");
        fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    }

    /// Copies a module. Decompresses it if necessary, because busybox loads only uncompressed ones.
    fn copy_module(&self, from: &Path, place: &str, busybox: &Path) {
        self.copy(from, place);
        if from.extension().is_some_and(|extension| extension == "xz") {
            let to = File::create(self.root.join(place)).expect("the copy can be replaced");
            let mut xzcat = Command::new(busybox);
            let status = xzcat.arg("xzcat").arg(from).stdout(to).status();
            assert!(
                status.expect("busybox runs").success(),
                "{}",
                from.display()
            );
        }
    }

    fn copy_program(&self, program: &Path, place: &str, ldd: &Path) {
        self.copy(program, place);
        if let Some(strip) = crate::tool("strip") {
            // Emulation is slow, and debug information takes time to unpack.
            let _ = Command::new(strip).arg(self.root.join(place)).status();
        }
        let libraries = Command::new(ldd).arg(program).output().expect("ldd runs");
        let libraries = String::from_utf8_lossy(&libraries.stdout).into_owned();
        for library in libraries
            .split_whitespace()
            .filter(|word| word.starts_with('/'))
        {
            self.copy(Path::new(library), library);
        }
    }

    fn write(&self, place: &str, script: &str) {
        let file = self.root.join(place);
        fs::write(&file, script).expect("there is room");
        fs::set_permissions(&file, fs::Permissions::from_mode(0o755)).expect("the file is ours");
    }

    fn pack(&self, busybox: &Path, image: &Path) {
        let pack = "find . | \"$0\" cpio -o -H newc 2>/dev/null >\"$1\"";
        let packed = Command::new("sh")
            .current_dir(&self.root)
            .args(["-c", pack])
            .args([busybox, image])
            .status();
        assert!(packed.expect("a shell runs").success());
    }
}

/// Runs a program and returns its output. Kills the program after `limit`.
fn run_within(command: &mut Command, limit: Duration) -> String {
    let mut child = command
        .stdin(Stdio::null())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the program can be started");
    let mut output = child.stdout.take().expect("the pipe was requested");
    let reader = thread::spawn(move || {
        let mut text = Vec::new();
        let _ = output.read_to_end(&mut text);
        String::from_utf8_lossy(&text).into_owned()
    });
    let end = Instant::now() + limit;
    while child
        .try_wait()
        .expect("a child can be waited for")
        .is_none()
    {
        if Instant::now() > end {
            let _ = child.kill();
        }
        thread::sleep(Duration::from_millis(50));
    }
    reader.join().expect("reading does not panic")
}

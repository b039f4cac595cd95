//! `traxtent doctor`: which front ends work on this machine.

use std::fs::OpenOptions;
use std::path::{Path, PathBuf};

use serde::Serialize;

use crate::failure::Result;
use crate::output;
use crate::table::{Side, Table};

/// Show which ways of attaching served drives work on this machine, and what others need
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

/// A way to attach a served drive.
#[derive(Serialize)]
pub(crate) struct FrontEnd {
    /// The options to type, or `NBD`, followed by a client that needs more than a URI.
    pub(crate) name: &'static str,
    pub(crate) what: &'static str,
    /// The missing part or permission, with the command that provides it if there is one; `None` if
    /// the front end works.
    pub(crate) missing: Option<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let front_ends = front_ends();
    if args.json {
        return output::json(&front_ends);
    }
    let mut out = output::stdout();
    let mut table = Table::new(["FRONT END", "ATTACHES", "STATE"].map(|title| (title, Side::Left)));
    for one in front_ends {
        let state = one.missing.unwrap_or_else(|| "works".to_owned());
        table.row([one.name.to_owned(), one.what.to_owned(), state]);
    }
    table.write(&mut out)?;
    output::finish(out)
}

/// Returns all front ends, each with the part or permission that is missing.
pub(crate) fn front_ends() -> Vec<FrontEnd> {
    let front_end = |name, what, missing| FrontEnd {
        name,
        what,
        missing,
    };
    vec![
        front_end("NBD", "fio, qemu, libnbd and other programs", None),
        front_end(
            "NBD, nbd-client",
            "a block device of the kernel's NBD client",
            kernel_client(),
        ),
        front_end("--fuse", "a file", fuse()),
        front_end(
            "--fuse --device",
            "a loop device",
            fuse().or_else(loop_device),
        ),
        front_end("--ublk", "a block device with all properties", ublk()),
    ]
}

/// Returns the part or permission that the kernel's NBD client lacks.
pub(super) fn kernel_client() -> Option<String> {
    if !is_root() {
        return Some("needs root".to_owned());
    }
    if !Path::new("/sys/module/nbd").exists() && !Path::new("/dev/nbd0").exists() {
        return Some("the kernel has no nbd module loaded: `modprobe nbd`".to_owned());
    }
    find("nbd-client")
        .is_none()
        .then(|| "the program nbd-client is missing: `apt install nbd-client`".to_owned())
}

fn fuse() -> Option<String> {
    let device = Path::new("/dev/fuse");
    if !device.exists() {
        return Some("/dev/fuse does not exist: `modprobe fuse`; in a container, pass it with --device /dev/fuse --cap-add SYS_ADMIN".to_owned());
    }
    if let Err(error) = open(device) {
        return Some(format!("/dev/fuse: {error}"));
    }
    (!is_root() && find("fusermount3").is_none())
        .then(|| "users other than root need fusermount3: `apt install fuse3`".to_owned())
}

fn loop_device() -> Option<String> {
    if !is_root() {
        return Some("needs root".to_owned());
    }
    let control = Path::new("/dev/loop-control");
    (!control.exists()).then(|| "/dev/loop-control does not exist: `modprobe loop`".to_owned())
}

fn ublk() -> Option<String> {
    let control = Path::new("/dev/ublk-control");
    if !control.exists() {
        let what = "no ublk driver: `modprobe ublk_drv` (Linux 6.5 or later)";
        return Some(what.to_owned());
    }
    let error = open(control).err()?;
    Some(format!("/dev/ublk-control: {error}"))
}

fn open(path: &Path) -> std::io::Result<()> {
    let opened = OpenOptions::new().read(true).write(true).open(path);
    opened.map(drop)
}

fn is_root() -> bool {
    rustix::process::geteuid().is_root()
}

/// Returns the path of a program in `$PATH`, `/usr/sbin` or `/sbin`.
pub(super) fn find(program: &str) -> Option<PathBuf> {
    let path = std::env::var_os("PATH")?;
    std::env::split_paths(&path)
        .chain(["/usr/sbin".into(), "/sbin".into()])
        .map(|folder| folder.join(program))
        .find(|file| file.is_file())
}

//! The kernel of the machines that tests emulate: unpacked below the target directory, not
//! installed.

use std::fs;
use std::process::Command;

use anyhow::{Context, Result};

use crate::shell;

/// Debian's kernel for virtual machines, by the package that always depends on the newest one.
const NEWEST: &str = "linux-image-cloud-amd64";

/// Unpacks the kernel where the tests look for it, unless it is there. If it is not available,
/// prints which tests are skipped.
pub(crate) fn prepare_kernel() {
    if let Err(error) = unpack() {
        eprintln!("{error:#}: tests of drives in an emulated machine will be skipped");
    }
}

fn unpack() -> Result<()> {
    let root = shell::target_dir().join("guest");
    if root.join("lib/modules").is_dir() {
        return Ok(());
    }
    for program in ["apt-get", "apt-cache", "dpkg-deb"] {
        shell::program(program).with_context(|| format!("{program} is not installed"))?;
    }
    let download = root.join("download");
    fs::create_dir_all(&download)?;
    let package = newest().or_else(|_| {
        shell::run(Command::new("apt-get").args(["update", "--quiet=2"]))?;
        newest()
    })?;
    let mut apt = Command::new("apt-get");
    apt.args(["download", "--quiet=2", &package]);
    shell::run(apt.current_dir(&download))?;
    for file in fs::read_dir(&download)? {
        let mut unpack = Command::new("dpkg-deb");
        unpack.arg("--extract").arg(file?.path()).arg(&root);
        shell::run(&mut unpack)?;
    }
    fs::remove_dir_all(&download)?;
    Ok(())
}

/// Returns the name of the package with the newest kernel.
fn newest() -> Result<String> {
    let depends = shell::output("apt-cache", ["depends", "--important", NEWEST])?;
    let package = depends.lines().find_map(|line| {
        let name = line.trim().strip_prefix("Depends: ")?;
        name.starts_with("linux-image-").then(|| name.to_owned())
    });
    package.with_context(|| format!("apt-cache lists no kernel for {NEWEST}"))
}

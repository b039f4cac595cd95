//! The files that boot the machine emulated by qemu, for file systems that the running kernel
//! lacks.
//!
//! They come from Debian's packages of its general kernel (`linux-image-amd64`; the kernel for
//! virtual machines lacks these file systems), `jfsutils` and `reiserfsprogs`. The packages are
//! installed, or unpacked in the directory that `TRAXTENT_GUEST` names. Their files are only copied
//! on this machine, never executed.

use std::env;
use std::fs;
use std::path::PathBuf;

use super::file_system::FileSystem;

/// A kernel that a guest can boot.
pub(super) struct Kernel {
    /// The directory that contains `boot`, `lib/modules` and perhaps `sbin`.
    pub(super) root: PathBuf,
    /// The release name of the kernel in this directory.
    pub(super) release: String,
}

impl Kernel {
    /// Finds the first bootable kernel, by name, that has the file systems of
    /// [`FileSystem::OF_GUEST`] as modules, or explains why there is none.
    pub(super) fn find() -> Result<Kernel, String> {
        let root = root();
        let releases = fs::read_dir(root.join("lib/modules"));
        let releases = releases.into_iter().flatten().flatten();
        let names = releases.filter_map(|entry| entry.file_name().into_string().ok());
        let mut fit: Vec<String> = names
            .filter(|release| {
                let modules = root.join("lib/modules").join(release).join("kernel/fs");
                let has = |kind: FileSystem| {
                    let name = kind.name();
                    modules.join(name).join(format!("{name}.ko")).is_file()
                };
                root.join(format!("boot/vmlinuz-{release}")).is_file()
                    && FileSystem::OF_GUEST.into_iter().all(has)
            })
            .collect();
        fit.sort();
        let release = fit.into_iter().next().ok_or_else(|| {
            format!(
                "{}: no kernel there has the modules jfs and reiserfs; install linux-image-amd64, or set TRAXTENT_GUEST to a directory with the unpacked packages",
                root.display()
            )
        })?;
        Ok(Kernel { root, release })
    }
}

fn root() -> PathBuf {
    env::var_os("TRAXTENT_GUEST").map_or_else(|| PathBuf::from("/"), PathBuf::from)
}

/// Returns the reason why the requests of a guest's kernel cannot be recorded, if there is one.
pub fn missing() -> Option<String> {
    let kernel = match Kernel::find() {
        Ok(kernel) => kernel,
        Err(reason) => return Some(reason),
    };
    let is_there = |name: &str| {
        let own = |folder: &str| kernel.root.join(folder).join(name);
        [own("sbin"), own("usr/sbin")]
            .iter()
            .any(|path: &PathBuf| path.is_file())
            || found(name).is_some()
    };
    let programs = [
        "qemu-system-x86_64",
        "busybox",
        "addpart",
        "ldd",
        "timeout",
        "tar",
        "mkfs.jfs",
        "mkreiserfs",
    ];
    let missing = programs.into_iter().find(|name| !is_there(name))?;
    Some(format!("{missing} is not installed"))
}

/// Finds a program by name, in `PATH` and in the administrators' directories.
pub(super) fn found(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .chain(["/usr/sbin", "/sbin"].map(PathBuf::from))
        .map(|folder| folder.join(name))
        .find(|file| file.is_file())
}

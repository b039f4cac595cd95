//! System packages that tests, benchmarks, the book and packaging use.

use std::process::Command;

use anyhow::Result;

use crate::shell;

/// A system package that provides a program or a file.
pub(crate) struct Package {
    /// The name in Debian.
    pub(crate) name: &'static str,
    /// The program, or the absolute path of a file, that shows whether the package is installed.
    pub(crate) program: &'static str,
    /// The feature that is skipped without the package.
    pub(crate) needed_for: &'static str,
}

const fn package(name: &'static str, program: &'static str, needed_for: &'static str) -> Package {
    Package {
        name,
        program,
        needed_for,
    }
}

/// The packages for the tests. A test is skipped if a program that it uses is missing.
pub(crate) const FOR_TESTS: &[Package] = &[
    package(
        "fio",
        "fio",
        "sample traces of fio, and served drives under load",
    ),
    package(
        "nbdkit",
        "nbdkit",
        "members of volumes that fail or hang while they are served",
    ),
    package(
        "libnbd-bin",
        "nbdfuse",
        "copies to and from served drives, and members of volumes that fail or hang",
    ),
    package(
        "e2fsprogs",
        "mke2fs",
        "file systems on served drives, and power cuts under them",
    ),
    package(
        "mount",
        "losetup",
        "file systems on served drives, and full disks below them",
    ),
    package("python3", "python3", "the Python package"),
    package(
        "python3-venv",
        "/usr/share/doc/python3-venv/copyright",
        "the Python package",
    ),
    package(
        "python3-libnbd",
        "/usr/lib/python3/dist-packages/nbd.py",
        "requests to served drives by libnbd",
    ),
    package(
        "python3-jsonschema",
        "/usr/lib/python3/dist-packages/jsonschema/__init__.py",
        "the JSON schema of profiles",
    ),
    package("qemu-utils", "qemu-img", "copies to and from served drives"),
    package("fuse3", "fusermount3", "drives served by ordinary users"),
    package("xfsprogs", "mkfs.xfs", "file systems on served drives"),
    package(
        "btrfs-progs",
        "mkfs.btrfs",
        "file systems on served drives, and files on Btrfs",
    ),
    package(
        "util-linux",
        "setpriv",
        "files without permission, and drives served by ordinary users",
    ),
    package("fdisk", "sfdisk", "images to check"),
    package("parted", "parted", "images to check"),
    package("gdisk", "sgdisk", "images to check"),
    package("cryptsetup-bin", "cryptsetup", "images to check"),
    package("lvm2", "lvm", "images to check"),
    package("mdadm", "mdadm", "images to check"),
    package("dosfstools", "mkfs.fat", "images to check"),
    package("gzip", "gzip", "compressed traces and logs"),
    package("zstd", "zstd", "compressed traces and logs"),
    package("jq", "jq", "commands that pages of the book print"),
    package("chromium", "chromium", "pages in a browser"),
    package("g++", "c++", "the fuzzing engine"),
    package(
        "pkgconf",
        "pkg-config",
        "programs in C that link with the library",
    ),
    package(
        "sg3-utils",
        "sg_vpd",
        "decoding of SCSI responses by other programs",
    ),
    package(
        "qemu-system-x86",
        "qemu-system-x86_64",
        "drives in an emulated machine",
    ),
    package("busybox-static", "busybox", "drives in an emulated machine"),
    package(
        "nbd-client",
        "nbd-client",
        "drives in an emulated machine by its kernel's client",
    ),
];

/// The packages for the benchmarks of served drives.
pub(crate) const FOR_SERVE: &[Package] = &[
    package("fio", "fio", "the load"),
    package("nbdkit", "nbdkit", "the comparison with its plugins"),
];

/// The packages for `cargo xtask book`.
pub(crate) const FOR_BOOK: &[Package] = &[package("chromium", "chromium", "pages in a browser")];

/// The packages for `cargo xtask dist`.
pub(crate) const FOR_DIST: &[Package] = &[
    package("binutils", "readelf", "the libraries that the binary needs"),
    package("dpkg", "dpkg-deb", "the Debian package"),
    package(
        "debootstrap",
        "debootstrap",
        "a Debian root to try the package in",
    ),
    package("lintian", "lintian", "Debian's own check of the package"),
    package("python3", "python3", "the Python wheel"),
    package(
        "python3-venv",
        "/usr/share/doc/python3-venv/copyright",
        "the Python wheel",
    ),
];

/// Installs the packages whose programs are missing, if possible. Prints the programs that are
/// still missing.
pub(crate) fn install(packages: &[Package]) {
    // Two passes: installing a package may remove one that conflicts with it.
    for _ in 0..2 {
        let missing: Vec<&Package> = missing(packages).collect();
        if missing.is_empty() {
            return;
        }
        if let Err(error) = apt_install(&missing) {
            eprintln!("cannot install packages: {error:#}");
        }
    }
    for package in self::missing(packages) {
        eprintln!(
            "{} is missing: {} will be skipped",
            package.program, package.needed_for
        );
    }
}

fn missing(packages: &[Package]) -> impl Iterator<Item = &Package> {
    packages
        .iter()
        .filter(|package| shell::program(package.program).is_none())
}

fn apt_install(packages: &[&Package]) -> Result<()> {
    anyhow::ensure!(
        shell::program("apt-get").is_some(),
        "apt-get is not installed"
    );
    anyhow::ensure!(shell::is_root(), "only root may install");
    shell::run(Command::new("apt-get").args(["update", "--quiet=2"]))?;
    for package in packages {
        // One by one, so that an unavailable package does not prevent the installation of the
        // others.
        let mut apt = Command::new("apt-get");
        apt.args([
            "install",
            "--quiet=2",
            "--yes",
            "--no-install-recommends",
            package.name,
        ]);
        if let Err(error) = shell::run(apt.env("DEBIAN_FRONTEND", "noninteractive")) {
            eprintln!("{error:#}");
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is every package listed once in its table, so that it is installed and reported once?
    #[test]
    fn packages_are_listed_once() {
        for table in [FOR_TESTS, FOR_SERVE, FOR_DIST] {
            for (place, package) in table.iter().enumerate() {
                let mut before = table[..place].iter();
                assert!(
                    before.all(|other| other.name != package.name),
                    "{}",
                    package.name
                );
            }
        }
    }
}

//! Creates images with shell commands, in a separate directory and with a few functions defined.
//!
//! A case has one image, `disk.img`, or several: `disk0.img`, `disk1.img` and so on. The content of
//! a partition is created in a separate file, `part.img`, and copied in.

use std::path::{Path, PathBuf};
use std::process::Command;

/// The shell functions that commands may use.
const SHELL_FUNCTIONS: &str = r#"
export PATH="$PATH:/usr/sbin:/sbin" LC_ALL=C LVM_SUPPRESS_FD_WARNINGS=1 MKE2FS_SKIP_PROGRESS=1
# disk MIB: creates an empty drive.
disk() { truncate -s "$1M" disk.img; }
# script LINES…: runs sfdisk with a script of these lines.
script() { printf '%s\n' "$@" | sfdisk --quiet --no-reread --no-tell-kernel disk.img; }
# content SECTORS: creates part.img, empty.
content() { rm -f part.img; truncate -s $(($1 * 512)) part.img; }
# put SECTOR: copies part.img to this sector of the drive.
put() { dd if=part.img of=disk.img bs=64K conv=notrunc,sparse oflag=seek_bytes seek=$(($1 * 512)) status=none; }
ext() { mke2fs -q -F "$@" part.img; }
xfs() { mkfs.xfs -q -f "$@" part.img; }
btrfs() { mkfs.btrfs --quiet "$@" part.img; }
swap() { mkswap "$@" part.img >/dev/null 2>&1; }
luks() { printf secret | cryptsetup luksFormat --batch-mode --pbkdf-force-iterations 1000 "$@" part.img -; }
luks2() { luks --type luks2 --pbkdf pbkdf2 "$@"; }
# pv OPTIONS…: makes part.img a physical volume with a volume group and a logical volume.
# It does not need the device mapper.
pv() {
  export LVM_SYSTEM_DIR="$PWD/lvm"; mkdir -p lvm
  loop=$(losetup --find --show part.img)
  trap 'losetup --detach "$loop"' EXIT
  printf 'devices { use_devicesfile=0 filter=["a|^%s$|","r|.*|"] }\nactivation { udev_sync=0 udev_rules=0 }\n' "$loop" >lvm/lvm.conf
  pvcreate --quiet --driverloaded n --yes "$@" "$loop"
  vgcreate --quiet --driverloaded n "vg$$" "$loop"
  lvcreate --quiet --driverloaded n --activate n --zero n --wipesignatures n --extents 4 --name data "vg$$"
  losetup --detach "$loop"
  trap - EXIT
}
"#;

/// The result of making a case.
pub(crate) enum CreatedCase {
    /// The images.
    Images(Vec<PathBuf>),
    /// The case cannot be made on this host, for this reason.
    Unavailable(String),
}

/// Creates the images of each case in a subdirectory of `folder`.
pub(crate) struct ImageMaker {
    folder: PathBuf,
}

impl ImageMaker {
    pub(crate) fn new(folder: &Path) -> ImageMaker {
        ImageMaker {
            folder: folder.to_owned(),
        }
    }

    /// Returns the directory of a case.
    pub(crate) fn folder_of(&self, name: &str) -> PathBuf {
        let plain = |c: char| if c.is_ascii_alphanumeric() { c } else { '-' };
        self.folder
            .join(name.chars().map(plain).collect::<String>())
    }

    /// Creates the images of a case.
    ///
    /// # Panics
    /// Panics if a command fails.
    pub(crate) fn make(&self, name: &str, commands: &str) -> CreatedCase {
        if let Err(why) = needs(commands) {
            return CreatedCase::Unavailable(why);
        }
        let folder = self.folder_of(name);
        std::fs::create_dir_all(&folder).unwrap();
        let output = Command::new("sh")
            .args(["-e", "-c", &format!("{SHELL_FUNCTIONS}\n{commands}")])
            .current_dir(&folder)
            .output()
            .unwrap();
        let says = String::from_utf8_lossy(&output.stderr);
        assert!(output.status.success(), "{name}: {commands}: {says}");
        CreatedCase::Images(images(&folder))
    }
}

/// Returns the images in a directory, sorted by name.
pub(crate) fn images(folder: &Path) -> Vec<PathBuf> {
    let entries = std::fs::read_dir(folder).unwrap().flatten();
    let mut images: Vec<PathBuf> = entries
        .map(|entry| entry.path())
        .filter(|path| {
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            name.starts_with("disk") && name.ends_with(".img")
        })
        .collect();
    images.sort();
    images
}

/// Returns an error that names what is missing to run these commands on this host.
fn needs(commands: &str) -> Result<(), String> {
    let words = [
        ("script", "sfdisk"),
        ("sfdisk", "sfdisk"),
        ("fdisk", "fdisk"),
        ("gdisk", "gdisk"),
        ("parted", "parted"),
        ("sgdisk", "sgdisk"),
        ("ext", "mke2fs"),
        ("xfs", "mkfs.xfs"),
        ("btrfs", "mkfs.btrfs"),
        ("swap", "mkswap"),
        ("luks", "cryptsetup"),
        ("luks2", "cryptsetup"),
        ("pv", "pvcreate"),
    ];
    for word in commands.split_whitespace() {
        for (_, tool) in words.iter().filter(|(name, _)| *name == word) {
            testkit::tool(tool).ok_or_else(|| format!("{tool} is not installed"))?;
        }
        if word == "pv" && !is_root() {
            return Err("only root may attach loop devices".to_owned());
        }
    }
    Ok(())
}

/// Returns whether the user is root. Only root may attach loop devices.
pub(crate) fn is_root() -> bool {
    let id = Command::new("id").arg("-u").output();
    id.is_ok_and(|output| output.stdout == b"0\n")
}

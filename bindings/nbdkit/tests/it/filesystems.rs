//! Do file systems of this kernel live on a served drive, attached by nbdfuse and a loop device?

use std::fs;
use std::path::Path;

use tempfile::TempDir;
use traxtent_core::workload::Rng;

use crate::attach::{self, Attached};
use crate::nbdkit::{Server, key, run, sized};

/// Bytes of the largest file.
const LARGEST: u64 = 3 << 20;

/// ext4.
#[test]
fn ext4() {
    lives("ext4", &["mkfs.ext4", "-q"], &["e2fsck", "-f", "-n"]);
}

/// XFS.
#[test]
fn xfs() {
    lives("xfs", &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

/// Btrfs, which keeps checksums of all data.
#[test]
fn btrfs() {
    let check = ["btrfs", "check", "--check-data-csum"];
    lives("btrfs", &["mkfs.btrfs", "-q"], &check);
}

/// Makes a file system, fills it, unmounts and checks it, and reads all back.
fn lives(kind: &str, make: &[&str], check: &[&str]) {
    for name in [make[0], check[0]] {
        let _ = testkit::tool!(name);
    }
    if let Some(why) = attach::missing() {
        testkit::skip!("{why}");
    }
    let folder = TempDir::new().unwrap();
    let server = Server::start(&[key("drive", sized(folder.path(), 512, 4096, 512))]);
    let attached = Attached::new(&server, folder.path());
    tell(make, attached.device());
    let place = folder.path().join("mounted");
    let mounted = match attached.mount(&place) {
        Ok(mounted) => mounted,
        Err(error) if error.contains("unknown filesystem type") => {
            testkit::skip!("this kernel has no {kind}")
        }
        Err(error) => panic!("{error}"),
    };
    let mut rng = Rng::new(7);
    let contents: Vec<Vec<u8>> = (0..40)
        .map(|_| {
            let bytes = rng.below(LARGEST) >> rng.below(12);
            (0..bytes).map(|_| rng.bits() as u8).collect()
        })
        .collect();
    let path = |number: usize| place.join(format!("{}/{number}", number % 5));
    for (number, content) in contents.iter().enumerate() {
        fs::create_dir_all(path(number).parent().unwrap()).unwrap();
        fs::write(path(number), content).unwrap();
    }
    // Some go, so that their room is used anew.
    for number in (0..contents.len()).step_by(3) {
        fs::remove_file(path(number)).unwrap();
        fs::write(path(number), &contents[number]).unwrap();
    }
    mounted.unmount();
    tell(check, attached.device());
    let mounted = attached.mount(&place).unwrap();
    for (number, content) in contents.iter().enumerate() {
        assert!(fs::read(path(number)).unwrap() == *content, "file {number}");
    }
    mounted.unmount();
    tell(check, attached.device());
}

/// Runs a command on a device; it must succeed.
fn tell(command: &[&str], device: &Path) {
    let program = testkit::tool(command[0]).expect("it has been looked for");
    let device = device.display().to_string();
    let words: Vec<&str> = command[1..].iter().copied().chain([&*device]).collect();
    run(&program, &words);
}

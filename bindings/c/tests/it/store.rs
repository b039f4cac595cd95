//! Disks whose data is in a file.

use std::fs::{self, File};
use std::os::unix::fs::{FileExt, MetadataExt};
use std::path::PathBuf;

use tempfile::TempDir;
use testkit::tool;
use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;

use crate::program::Program;

/// A drive with a write-back cache.
const DRIVE: &str = "atlas10k";
/// The size of its sectors in bytes.
const SECTOR: usize = 512;

/// The program, and a directory for its files.
struct Trial {
    program: Program,
    folder: TempDir,
}

impl Trial {
    fn file(&self) -> PathBuf {
        self.folder.path().join("disk.img")
    }

    fn step(&self, step: &str) -> String {
        self.program
            .run(&[step, DRIVE, &self.file().to_string_lossy()], "")
    }

    /// Returns the message without the directory's name.
    fn message(&self, step: &str) -> String {
        let folder = format!("{}/", self.folder.path().display());
        self.step(step).trim_end().replace(&folder, "")
    }

    /// Returns the first byte of LBN 5, 6 and 7 of the file. Each sector must consist of one
    /// repeated byte.
    fn sectors(&self) -> Vec<u8> {
        let file = File::open(self.file()).unwrap();
        let first_byte = |lbn: u64| {
            let mut sector = [0; SECTOR];
            file.read_exact_at(&mut sector, lbn * SECTOR as u64)
                .unwrap();
            assert_eq!(sector, [sector[0]; SECTOR]);
            sector[0]
        };
        (5..8).map(first_byte).collect()
    }
}

macro_rules! trial {
    () => {
        Trial {
            program: Program::compile(&tool!("cc"), "tests/c/store.c"),
            folder: tempfile::tempdir().unwrap(),
        }
    };
}

fn bytes_of_drive() -> u64 {
    let drive = Drive::new(&builtin(DRIVE).unwrap()).unwrap();
    drive.geometry().capacity().0 * SECTOR as u64
}

/// Does the file hold the written data once the disk is closed, does the disk read it when it is
/// opened again, and is the file sparse?
#[test]
fn a_closed_disk_keeps_its_data() {
    let trial = trial!();
    assert_eq!(trial.step("create-close"), "");
    let file = fs::metadata(trial.file()).unwrap();
    assert_eq!(file.len(), bytes_of_drive());
    assert!(file.blocks() * 512 < 1 << 20, "{} blocks", file.blocks());
    assert_eq!(trial.sectors(), [5, 6, 7]);
    assert_eq!(trial.step("open-read"), "567");
    // Zeros are kept too.
    assert_eq!(trial.step("open-zero"), "");
    assert_eq!(trial.step("open-read"), "067");
}

/// Does a disk that is freed without being closed lose its volatile data, and nothing else?
#[test]
fn a_freed_disk_keeps_durable_data() {
    let trial = trial!();
    assert_eq!(trial.step("create-free"), "");
    assert_eq!(trial.sectors(), [5, 0, 0]);
    assert_eq!(trial.step("open-read"), "500");
}

/// Is a file that a disk cannot use refused with the reason, and left as it is?
#[test]
fn unusable_files_are_refused() {
    let trial = trial!();
    let bytes = bytes_of_drive();
    let missing = "disk.img: no such file; use traxtent_create";
    assert_eq!(trial.message("open-read"), missing);
    assert!(!trial.file().exists());
    let limited = format!("disk.img: cannot extend to {bytes} bytes: File too large (os error 27)");
    assert_eq!(trial.message("create-limited"), limited);
    assert!(!trial.file().exists());

    fs::write(trial.file(), "short").unwrap();
    let short = format!("disk.img: 5 bytes is too short; the disk needs {bytes} bytes");
    assert_eq!(trial.message("open-read"), short);
    let exists = "disk.img: the file exists; use traxtent_open";
    assert_eq!(trial.message("create-close"), exists);
    assert_eq!(fs::read(trial.file()).unwrap(), b"short");

    fs::remove_file(trial.file()).unwrap();
    fs::create_dir(trial.file()).unwrap();
    assert_eq!(trial.message("open-read"), "disk.img: not a regular file");
    // Not even root can open a running program for writing.
    let program = trial.program.path();
    let program = program.to_string_lossy();
    let busy = trial.program.run(&["open-read", DRIVE, &program], "");
    let reason = format!("{program}: cannot open for writing: Text file busy (os error 26)\n");
    assert_eq!(busy, reason);
    let nowhere = trial
        .program
        .run(&["create-close", DRIVE, "/no/such/folder/disk.img"], "");
    let reason =
        "/no/such/folder/disk.img: cannot create: No such file or directory (os error 2)\n";
    assert_eq!(nowhere, reason);
}

/// Is a file that is in use by a disk refused to a second disk?
#[test]
fn a_file_has_one_disk() {
    let trial = trial!();
    trial.step("create-close");
    let used = "disk.img: in use by another disk or a server; close that first";
    assert_eq!(trial.message("open-twice"), used);
}

/// Do a flush and the closing of the disk report that the file does not accept the data? Does the
/// data stay readable until then, and does the file keep its old data?
#[test]
fn writes_that_fail_are_reported() {
    let trial = trial!();
    trial.step("create-close");
    let reason = "the storage of the drive's data failed: File too large (os error 27)";
    let both = format!("flush: 4 {reason}\nclose: 4 {reason}");
    assert_eq!(trial.message("open-limited"), both);
    assert_eq!(trial.sectors(), [5, 6, 7]);
}

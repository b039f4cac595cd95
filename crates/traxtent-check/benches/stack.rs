//! Measures the time to examine a stack of eight layers, from its image to the report in JSON,
//! including costs.
//!
//! The layers are drive, table, partition, member of an array, array, physical volume, logical
//! volume and file system. The goal is 100 ms. The partition begins at sector 63, and the file
//! system has blocks of 1024 bytes, so two costs are simulated each time. The volume group is an
//! input of the fuzzer, and mke2fs makes the file system. `cargo xtask bench check` runs it.

use std::fs::{self, File};
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::process::Command;
use std::time::Instant;

use traxtent_check::drive::StatedDrive;
use traxtent_check::findings;
use traxtent_check::report::Report;
use traxtent_check::target::{HostPaths, examine_targets};

const MIB: u64 = 1 << 20;
const ROUNDS: usize = 200;
/// The start of the partition in bytes.
const PARTITION_AT: u64 = 63 * 512;
/// The start of the array's data in the partition, in bytes.
const DATA_AT: u64 = MIB;
/// The start of the first extent in the array's data, in bytes.
const EXTENT_AT: u64 = MIB;

fn main() {
    let folder = tempfile::tempdir().expect("there is room");
    let path = folder.path().join("disk.img");
    make(&path, folder.path());
    let mut times: Vec<f64> = (0..ROUNDS).map(|_| once(&path)).collect();
    times.sort_by(f64::total_cmp);
    println!(
        "eight layers: median {:.2} ms, worst of {ROUNDS} {:.2} ms",
        times[ROUNDS / 2],
        times[ROUNDS - 1]
    );
}

/// Returns the time of one examination in milliseconds.
fn once(path: &Path) -> f64 {
    let begun = Instant::now();
    let stack = examine_targets(
        &[path.to_owned()],
        &StatedDrive::default(),
        &HostPaths::default(),
    )
    .expect("the image is there");
    let findings = findings(&stack, None, None, &[]);
    let report = Report::new(None, &stack, &findings);
    let text = serde_json::to_string_pretty(&report).expect("a report is valid JSON");
    let taken = begun.elapsed();
    // The volume group of the fuzzer also has a thin pool.
    assert_eq!(stack.layers.len(), 9, "{text}");
    let with_cost = findings.iter().filter(|row| row.cost.is_ok());
    assert_eq!(with_cost.count(), 2, "{text}");
    taken.as_secs_f64() * 1e3
}

fn make(path: &Path, folder: &Path) {
    let disk = File::create(path).expect("there is room");
    disk.set_len(64 * MIB).expect("files may be sparse");
    let write = |at: u64, bytes: &[u8]| disk.write_all_at(bytes, at).expect("there is room");
    let mut table = [0; 512];
    table[446 + 4] = 0xfd;
    table[446 + 8..446 + 12].copy_from_slice(&63u32.to_le_bytes());
    table[446 + 12..446 + 16].copy_from_slice(&65_536u32.to_le_bytes());
    table[510..].copy_from_slice(&[0x55, 0xaa]);
    write(0, &table);
    let mut member = vec![0; 512];
    let mut put = |at: usize, value: u64| member[at..at + 8].copy_from_slice(&value.to_le_bytes());
    put(0, 0x0000_0001_a92b_4efc);
    put(72, 1);
    put(80, 61_440);
    put(92, 1);
    put(128, DATA_AT / 512);
    put(136, 61_440);
    put(144, 8);
    put(220, 1);
    write(PARTITION_AT + 4096, &member);
    let group = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../fuzz/corpus/check-lvm/group");
    write(
        PARTITION_AT + DATA_AT,
        &fs::read(group).expect("the fuzzer has it"),
    );
    let file_system = folder.join("fs.img");
    let made = Command::new("mke2fs")
        .args(["-q", "-F", "-b", "1024"])
        .arg(&file_system)
        .arg("256k")
        .status();
    assert!(made.expect("mke2fs is installed").success());
    let bytes = fs::read(file_system).expect("it has been made");
    write(PARTITION_AT + DATA_AT + EXTENT_AT, &bytes);
}

//! SCSI through a kernel: `scsi_debug`'s disk in an emulated machine.
//!
//! The test binary itself is put into the guest's initial file system and runs the same test there.
//! An environment variable gives its role.

mod inside;

use std::path::Path;
use std::time::Duration;

use testkit::guest::Guest;

/// The variable set in the guest: the role of the test binary there.
const ROLE: &str = "TRAXTENT_GUEST";
/// The name of the test, by which the test binary runs it in the guest.
const TEST: &str = "guest::a_kernels_own_disk";
/// The kernel modules that the guest loads, with their parameters.
const MODULES: [&str; 5] = [
    "scsi_common",
    "scsi_mod",
    "sd_mod",
    "sg",
    "scsi_debug dev_size_mb=64 physblk_exp=3 ndelay=20000",
];

/// Do commands, mode pages, errors, time-outs and a removed disk work through a real kernel, and is
/// the disk, which has no spindle, refused as not rotating?
#[test]
fn a_kernels_own_disk() {
    match std::env::var(ROLE).as_deref() {
        Ok("tests") => return inside::run(),
        Ok("prober") => return inside::prober(),
        _ => {}
    }
    let guest = Guest {
        name: "scsi",
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")),
        modules: &MODULES,
        programs: &[(&std::env::current_exe().unwrap(), "tests")],
        files: &[],
        script: &format!("{ROLE}=tests /bin/tests --exact {TEST} --nocapture"),
        devices: &[],
        limit: Duration::from_secs(180),
    };
    let console = match guest.run() {
        Ok(console) => console,
        Err(missing) => testkit::skip!("{missing}"),
    };
    // Marked, to distinguish it from the output of this test run.
    for line in console.lines() {
        println!("guest: {line}");
    }
    assert!(
        console.contains("test result: ok. 1 passed"),
        "the guest's console:\n{console}"
    );
}

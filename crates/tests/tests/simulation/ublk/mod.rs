//! Served drives as block devices, by the ublk driver of a kernel in an emulated machine.
//!
//! The test binary itself is put into the guest's initial file system. There it runs the same test
//! ([`inside`]), and is also the server ([`server`]). An environment variable gives its role.

mod inside;
mod server;

use std::path::Path;
use std::time::Duration;

use testkit::guest::{Guest, GuestKernel};

/// The variable set in the guest: the role of the test binary there.
const ROLE: &str = "TRAXTENT_UBLK";
/// The name of the test, by which the test binary runs it in the guest.
const TEST: &str = "ublk::a_kernels_block_device";

/// Do file systems and tools see the drive's properties? Can 256 requests be outstanding, and do
/// 1 MiB requests arrive whole? Does nothing hang after a server is killed, and does the next start
/// remove its device? Can an ordinary user own a device?
#[test]
fn a_kernels_block_device() {
    match std::env::var(ROLE).as_deref() {
        Ok("tests") => return inside::run(),
        Ok(_) => return server::run(),
        _ => {}
    }
    let (mke2fs, lsblk) = (testkit::tool!("mke2fs"), testkit::tool!("lsblk"));
    let guest = Guest {
        name: "ublk",
        folder: Path::new(env!("CARGO_TARGET_TMPDIR")),
        modules: &["ublk_drv"],
        programs: &[
            (&std::env::current_exe().unwrap(), "tests"),
            (&mke2fs, "mke2fs"),
            (&lsblk, "lsblk"),
        ],
        files: &[],
        script: &format!(
            "TRAXTENT_SOAK={} {ROLE}=tests /bin/tests --exact {TEST} --nocapture",
            testkit::repeats(1)
        ),
        devices: &[],
        limit: Duration::from_secs(300 * testkit::repeats(1)),
    };
    let console = match guest.run_on(GuestKernel::Backports) {
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

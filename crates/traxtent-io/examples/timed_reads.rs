//! Measures the time to read single sectors of a device or image file, and reports whether it is in
//! use.
//!
//! `cargo run -p traxtent-io --example timed_reads -- /dev/sdb`

use std::error::Error;
use std::path::PathBuf;

use traxtent_io::device;
use traxtent_probe::Target;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Rng};

fn main() -> Result<(), Box<dyn Error>> {
    let path = std::env::args().nth(1).map(PathBuf::from);
    let path = path
        .ok_or("usage: timed_reads PATH (a block device, a SCSI generic node or an image file)")?;
    match device::in_use(&path) {
        Some(user) => println!("in use: {user}"),
        None => println!("not in use"),
    }
    let mut drive = device::open(&path)?;
    let capacity = drive.identity().capacity.0;
    let mut rng = Rng::new(1);
    for _ in 0..10 {
        let lbn = Lbn(rng.below(capacity));
        let timing = drive.request(Request::read(lbn, 1))?;
        println!("LBN {lbn}: {:.3} ms", timing.response().as_ms());
    }
    Ok(())
}

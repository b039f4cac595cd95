//! Does a log that flushes each record survive power cuts, and what does flushing cost?
//!
//! `cargo run -p traxtent-core --example powercut`

use traxtent_core::disk::{Disk, DiskError};
use traxtent_core::profile::builtin;

fn main() -> Result<(), DiskError> {
    let profile = builtin("generic-20tb").expect("a built-in drive");
    for flush in [true, false] {
        let (mut lost, mut ms) = (0, 0.0);
        for seed in 0..200 {
            let mut disk = Disk::new(&profile)?;
            for n in 0..10 {
                disk.write(n, &[1 + n as u8; 512])?;
                if flush {
                    ms += disk.flush()?.total().as_ms() / 2000.0;
                }
            }
            disk.power_cut(seed)?;
            let mut record = [0; 512];
            for n in 0..10 {
                disk.read(n, &mut record)?;
                lost += u32::from(record != [1 + n as u8; 512]);
            }
        }
        println!("flush {flush}: {lost} of 2000 records lost, {ms:.1} ms a flush");
    }
    Ok(())
}

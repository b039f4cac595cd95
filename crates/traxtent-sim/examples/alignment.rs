//! How much faster are track-sized reads if they begin at a track boundary?
//!
//! `cargo run --release -p traxtent-sim --example alignment`

use std::error::Error;

use traxtent_model::profile::builtin;
use traxtent_sim::TestDrive;

fn main() -> Result<(), Box<dyn Error>> {
    let profile = builtin("atlas10k2").expect("a built-in drive");
    let drive = TestDrive::new(profile, 1)?;
    println!("5,000 random reads of a track in the outermost zone of a Quantum Atlas 10K II");
    for (align, words) in [("track", "aligned to tracks"), ("none", "unaligned")] {
        let workload = format!("random,count=5000,size=track,zone=0,align={align}");
        let result = drive.run(workload.parse()?)?;
        let response_ms = result.response_ms.mean();
        println!("{words:<18} {response_ms:6.2} ms per read");
    }
    Ok(())
}

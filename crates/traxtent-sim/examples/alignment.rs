//! How much faster are reads of whole tracks if they begin at a track boundary?
//!
//! `cargo run --release -p traxtent-sim --example alignment`

use std::error::Error;

use traxtent_model::profile::builtin;
use traxtent_sim::TestDrive;

fn main() -> Result<(), Box<dyn Error>> {
    let profile = builtin("atlas10k2").expect("a built-in drive");
    let drive = TestDrive::new(profile, 1)?;
    for align in ["track", "none"] {
        let workload = format!("random,count=5000,size=track,zone=0,align={align}");
        let result = drive.run(workload.parse()?)?;
        println!("align={align}: {:.2} ms", result.response_ms.mean());
    }
    Ok(())
}

//! How does a DiskSim drive become a profile, and how long does a read take on it?
//!
//! `cargo run -p traxtent-disksim --example import`

use std::error::Error;

use traxtent_disksim::load_system;
use traxtent_model::drive::Drive;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};

/// A drive of 200,000 sectors, as a `.model` file.
const MODEL: &str = "dm_disk D {
Number of data surfaces = 2, Number of cylinders = 1000, Block count = 200000,
Layout Model = dm_layout_g1 {
  LBN-to-PBN mapping scheme = 0, Sparing scheme used = 0, Rangesize for sparing = 1,
  Zones = [ dm_layout_g1_zone {
    First cylinder number = 0, Last cylinder number = 999, Blocks per track = 100,
    Offset of first block = 0, Empty space at zone front = 0, Skew for track switch = 10,
    Skew for cylinder switch = 20, Number of spares = 0, slips = [], defects = [] } ] },
Mechanical Model = dm_mech_g1 {
  Access time type = trackSwitchPlusRotation, Seek type = hpl,
  HPL seek equation values = [ 600, 3.24, 0.4, 8.0, 0.008, 1.0 ],
  Add. write settling delay = 0, Head switch time = 1.0, Rotation speed (in rpms) = 7200,
  Percent error in rpms = 0 } }
";

fn main() -> Result<(), Box<dyn Error>> {
    let no_other_files = |path: &str| Err(format!("{path} is not available"));
    let system = load_system("d.model", MODEL.as_bytes(), None, &no_other_files)?;
    for disk in &system.disks {
        let mut drive = Drive::new(&disk.profile)?;
        let read = drive.serve(SimTime::ZERO, Request::read(Lbn(123_456), 8))?;
        println!(
            "{}: a read takes {:.3} ms",
            disk.name,
            read.response().as_ms()
        );
    }
    for warning in &system.warnings {
        println!("warning: {warning}");
    }
    Ok(())
}

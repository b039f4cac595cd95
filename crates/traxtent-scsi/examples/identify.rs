//! How does a modelled drive identify itself, and what capacity does it report?
//!
//! `cargo run -p traxtent-scsi --example identify`

use std::error::Error;

use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_scsi::inquiry::Inquiry;
use traxtent_scsi::{Capacity, Command, DeviceServer, Sense, Status};
use traxtent_units::SimTime;

/// Sends a command and returns the drive's data, or its sense data as an error.
fn data_in(device: &mut DeviceServer, command: Command) -> Result<Vec<u8>, Box<dyn Error>> {
    let response = device.execute(SimTime::ZERO, &command.encode(), &[]);
    if response.status != Status::Good {
        return Err(Sense::decode(&response.sense)?.to_string().into());
    }
    let mut data = vec![0; usize::try_from(response.data.len())?];
    response.data.copy_to(&mut data);
    Ok(data)
}

fn main() -> Result<(), Box<dyn Error>> {
    let profile = builtin("generic-20tb").expect("a built-in drive");
    let mut device = DeviceServer::new(Drive::new(&profile)?);

    let inquiry = Command::Inquiry {
        page: None,
        allocation: 36,
    };
    let identity = Inquiry::decode(&data_in(&mut device, inquiry)?)?;
    let size = Command::ReadCapacity16 { allocation: 32 };
    let capacity = Capacity::decode_16(&data_in(&mut device, size)?)?;
    println!("{} {}", identity.vendor, identity.product);
    println!(
        "{} logical sectors of {} bytes, physical sectors of {} bytes",
        capacity.last_lbn + 1,
        capacity.logical_bytes,
        capacity.physical_bytes()
    );
    Ok(())
}

//! Does a log that flushes each record survive power cuts, and what is the cost of flushing?
//!
//! `cargo run -p traxtent-model --example powercut`

mod log;

use traxtent_model::disk::DiskError;

fn main() -> Result<(), DiskError> {
    for flush in [true, false] {
        let (lost, ms) = log::survive(flush)?;
        println!("flush {flush}: {lost} of 1000 records lost, {ms:.1} ms per record");
    }
    Ok(())
}

//! A log of records, and its state after power cuts.

use traxtent_model::disk::{Disk, DiskError};
use traxtent_model::profile::builtin;

/// The number of records in all: ten in each of a hundred rounds.
const RECORDS: f64 = 1000.0;

/// Writes ten records, cuts the power and reads them back, a hundred times. Returns the number of
/// records lost, and the mean time per record in ms: the write and, if `flush` is true, the flush.
pub(crate) fn survive(flush: bool) -> Result<(u32, f64), DiskError> {
    let profile = builtin("generic-20tb").expect("a built-in drive");
    let (mut lost, mut total_ms) = (0, 0.0);
    for seed in 0..100 {
        let mut disk = Disk::new(&profile)?;
        for n in 0..10 {
            total_ms += disk.write(n, &[1 + n as u8; 512])?.total().as_ms();
            if flush {
                total_ms += disk.flush()?.total().as_ms();
            }
        }
        disk.power_cut(seed)?;
        let mut record = [0; 512];
        for n in 0..10 {
            disk.read(n, &mut record)?;
            lost += u32::from(record != [1 + n as u8; 512]);
        }
    }
    Ok((lost, total_ms / RECORDS))
}

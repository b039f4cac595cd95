//! A log of records, and its state after power cuts.

use traxtent_model::disk::{Disk, DiskError};
use traxtent_model::profile::builtin;

/// Writes ten records, cuts the power and reads them back, a hundred times. Returns the number of
/// records lost and the mean time of writing and, if `flush` is true, flushing a record, in ms.
pub(crate) fn survive(flush: bool) -> Result<(u32, f64), DiskError> {
    let profile = builtin("generic-20tb").expect("a built-in drive");
    let (mut lost, mut ms) = (0, 0.0);
    for seed in 0..100 {
        let mut disk = Disk::new(&profile)?;
        for n in 0..10 {
            ms += disk.write(n, &[1 + n as u8; 512])?.total().as_ms() / 1000.0;
            if flush {
                ms += disk.flush()?.total().as_ms() / 1000.0;
            }
        }
        disk.power_cut(seed)?;
        let mut record = [0; 512];
        for n in 0..10 {
            disk.read(n, &mut record)?;
            lost += u32::from(record != [1 + n as u8; 512]);
        }
    }
    Ok((lost, ms))
}

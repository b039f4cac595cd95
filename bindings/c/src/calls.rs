//! Commands one after another: each call advances the disk's clock until its command has completed.

use std::slice;

use traxtent_model::disk::DiskError;
use traxtent_model::drive::Breakdown;
use traxtent_units::Count;

use crate::{Disk, Status};

/// Reads `sectors` sectors that start at `lbn`. `took`, if it is not null, receives the response
/// time in picoseconds if the call succeeds.
///
/// Returns `TRAXTENT_INVALID` if the disk does not have the sectors, or if `sectors` is zero,
/// `TRAXTENT_UNREADABLE` if one of them cannot be read, `TRAXTENT_GONE` if the drive does not
/// respond, and `TRAXTENT_FAILED` if the file cannot be read.
///
/// # Safety
/// `into` has room for the sectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_read(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    into: *mut u8,
    took: Option<&mut u64>,
) -> Status {
    let bytes = match disk.bytes_of(lbn, sectors) {
        Some(bytes) if !into.is_null() => bytes,
        Some(_) => return disk.refuse("a read without room for its data: `into` is null"),
        None => return disk.beyond_end("read", lbn, sectors),
    };
    // SAFETY: the caller provides room for that many bytes.
    let into = unsafe { slice::from_raw_parts_mut(into, bytes) };
    let done = disk.model.read(lbn, into);
    disk.finish_call(done, took)
}

/// Writes `sectors` sectors that start at `lbn`. With `fua` they are durable at completion.
/// Otherwise a power cut before the next `traxtent_flush` may lose them, if the drive has a
/// write-back cache. `took`, if it is not null, receives the response time in picoseconds if the
/// call succeeds.
///
/// Returns `TRAXTENT_INVALID` if the disk does not have the sectors, or if `sectors` is zero,
/// `TRAXTENT_GONE` if the drive does not respond, and `TRAXTENT_NO_SPACE` or `TRAXTENT_FAILED` if
/// the file does not accept the data.
///
/// # Safety
/// `data` has that many sectors.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_write(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    data: *const u8,
    fua: bool,
    took: Option<&mut u64>,
) -> Status {
    let bytes = match disk.bytes_of(lbn, sectors) {
        Some(bytes) if !data.is_null() => bytes,
        Some(_) => return disk.refuse("a write without data: `data` is null"),
        None => return disk.beyond_end("write", lbn, sectors),
    };
    // SAFETY: the caller provides that many bytes.
    let data = unsafe { slice::from_raw_parts(data, bytes) };
    let done = if fua {
        disk.model.write_fua(lbn, data)
    } else {
        disk.model.write(lbn, data)
    };
    disk.finish_call(done, took)
}

/// Makes all previous writes durable. `took`, if it is not null, receives the response time in
/// picoseconds if the call succeeds.
///
/// Returns `TRAXTENT_GONE` if the drive does not respond, and `TRAXTENT_NO_SPACE` or
/// `TRAXTENT_FAILED` if the file does not accept the data. Data that the file does not accept stays
/// in the cache, and a later flush may succeed.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_flush(disk: &mut Disk, took: Option<&mut u64>) -> Status {
    let done = disk.model.flush();
    disk.finish_call(done, took)
}

/// Discards `sectors` sectors that start at `lbn` (TRIM). Their content afterwards depends on the
/// drive. `took`, if it is not null, receives the response time in picoseconds, which is zero, if
/// the call succeeds. Errors are those of `traxtent_write`.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_trim(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    took: Option<&mut u64>,
) -> Status {
    let done = disk.model.trim(lbn, sectors);
    disk.finish_call(done, took)
}

/// Writes zeros to `sectors` sectors that start at `lbn`, without force unit access. `took`, if it
/// is not null, receives the response time in picoseconds if the call succeeds. Errors are those of
/// `traxtent_write`.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_write_zeroes(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    took: Option<&mut u64>,
) -> Status {
    let done = disk.model.write_zeroes(lbn, sectors);
    disk.finish_call(done, took)
}

impl Disk {
    fn finish_call(
        &mut self,
        done: Result<Breakdown, DiskError>,
        took: Option<&mut u64>,
    ) -> Status {
        if let (Ok(breakdown), Some(took)) = (&done, took) {
            *took = breakdown.total().0;
        }
        self.finish(done.map(drop))
    }

    /// Refuses a command for sectors that the disk does not have.
    pub(crate) fn beyond_end(&mut self, command: &str, lbn: u64, sectors: u32) -> Status {
        let capacity = self.model.capacity().0;
        self.refuse(&format!(
            "{command} of {} at LBN {lbn}: the drive ends before LBN {capacity}",
            Count(sectors, "sector")
        ))
    }
}

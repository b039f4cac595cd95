//! The disk of `traxtent_model::disk` for programs in C: every function here calls one there. The
//! header `include/traxtent.h` is generated from this file.
//!
//! Times are in picoseconds on the disk's own clock. A disk belongs to one thread at a time.

// The C interface has to trust the pointers that it receives.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::slice;

use traxtent_model::disk::{Disk as Model, DiskError, Fault};
use traxtent_model::drive::Breakdown;
use traxtent_model::profile::{Profile, builtin};
use traxtent_units::Span;

/// A disk: data in memory, times of a drive.
pub struct Disk {
    model: Model,
    error: CString,
}

/// The result of a call. `traxtent_error` returns the message.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, clippy::upper_case_acronyms)]
pub enum Status {
    /// Success.
    TRAXTENT_OK = 0,
    /// The disk cannot serve the request, or an argument is invalid.
    TRAXTENT_INVALID = 1,
    /// A sector cannot be read.
    TRAXTENT_UNREADABLE = 2,
    /// The drive does not respond.
    TRAXTENT_GONE = 3,
    /// Any other error.
    TRAXTENT_FAILED = 4,
}

use Status::{TRAXTENT_FAILED, TRAXTENT_GONE, TRAXTENT_INVALID, TRAXTENT_OK, TRAXTENT_UNREADABLE};

/// Creates a disk of zeros at rest. `drive` is the name of a built-in drive or the TOML text of a
/// profile. On failure, returns null and writes as much of the reason as `room` bytes hold to
/// `error`, which may be null. Release the disk with `traxtent_free`.
///
/// # Safety
/// `drive` is a C string; `error` is null or has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_new(
    drive: *const c_char,
    error: *mut c_char,
    room: usize,
) -> *mut Disk {
    // SAFETY: the caller gives a C string.
    let drive = unsafe { CStr::from_ptr(drive) }.to_string_lossy();
    let profile = match builtin(&drive) {
        Some(profile) => Ok(profile),
        None => Profile::from_toml(&drive).map_err(|error| {
            format!("neither a built-in drive nor the text of a profile: {error}")
        }),
    };
    let model = profile.and_then(|profile| Model::new(&profile).map_err(|e| e.to_string()));
    match model {
        Ok(model) => Box::into_raw(Box::new(Disk {
            model,
            error: CString::default(),
        })),
        Err(message) => {
            let text = c_string(&message);
            let bytes = text.as_bytes();
            if !error.is_null() && room > 0 {
                let length = bytes.len().min(room - 1);
                // SAFETY: the caller provides `room` bytes, and one is left for the terminating
                // zero.
                unsafe {
                    ptr::copy_nonoverlapping(bytes.as_ptr().cast(), error, length);
                    *error.add(length) = 0;
                }
            }
            ptr::null_mut()
        }
    }
}

/// Releases a disk and its data. Null is ignored.
///
/// # Safety
/// `disk` is null or comes from `traxtent_new`, and is not used any more.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_free(disk: *mut Disk) {
    if !disk.is_null() {
        // SAFETY: it was made by Box::into_raw, and this is its last use.
        drop(unsafe { Box::from_raw(disk) });
    }
}

/// Returns the reason why the last unsuccessful call failed. The string is valid until the next
/// call.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_error(disk: &Disk) -> *const c_char {
    disk.error.as_ptr()
}

/// Returns the number of logical sectors of the disk.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sectors(disk: &Disk) -> u64 {
    disk.model.capacity().0
}

/// Returns the size of a logical sector in bytes.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sector_bytes(disk: &Disk) -> u32 {
    disk.model.sector_bytes()
}

/// Returns the time of the disk's clock, in picoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_now(disk: &Disk) -> u64 {
    disk.model.now().0
}

/// Advances the disk's clock.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sleep(disk: &mut Disk, picoseconds: u64) {
    disk.model.sleep(Span(picoseconds));
}

/// Reads `sectors` sectors that start at `lbn`. `took`, if it is not null, receives the time.
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
    let bytes = sectors as usize * disk.model.sector_bytes() as usize;
    // SAFETY: the caller provides room for that many bytes.
    let into = unsafe { slice::from_raw_parts_mut(into, bytes) };
    let done = disk.model.read(lbn, into);
    disk.finish(done, took)
}

/// Writes `sectors` sectors that start at `lbn`. With `fua` they are durable at completion.
/// Otherwise they may be lost until the next `traxtent_flush`, if the drive has a write-back cache.
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
    let bytes = sectors as usize * disk.model.sector_bytes() as usize;
    // SAFETY: the caller provides that many bytes.
    let data = unsafe { slice::from_raw_parts(data, bytes) };
    let done = if fua {
        disk.model.write_fua(lbn, data)
    } else {
        disk.model.write(lbn, data)
    };
    disk.finish(done, took)
}

/// Makes all previous writes durable.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_flush(disk: &mut Disk, took: Option<&mut u64>) -> Status {
    let done = disk.model.flush();
    disk.finish(done, took)
}

/// Discards sectors (TRIM); their content afterwards depends on the drive.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_trim(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    took: Option<&mut u64>,
) -> Status {
    let done = disk.model.trim(lbn, sectors);
    disk.finish(done, took)
}

/// Writes zeros to sectors.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_write_zeroes(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    took: Option<&mut u64>,
) -> Status {
    let done = disk.model.write_zeroes(lbn, sectors);
    disk.finish(done, took)
}

/// Cuts the power and restores it. `seed` decides what remains of the data that were not durable.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_power_cut(disk: &mut Disk, seed: u64) -> Status {
    let done = disk.model.power_cut(seed);
    disk.finish(done.map(|_| Breakdown::default()), None)
}

/// Injects a fault now, such as `"latent-error,lbn=1000,sectors=8"`.
///
/// # Safety
/// `fault` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_fault(disk: &mut Disk, fault: *const c_char) -> Status {
    // SAFETY: the caller gives a C string.
    let text = unsafe { CStr::from_ptr(fault) }.to_string_lossy();
    match text.parse::<Fault>() {
        Ok(fault) => {
            let done = disk.model.inject(disk.model.now(), fault);
            disk.finish(done.map(|_| Breakdown::default()), None)
        }
        Err(error) => {
            disk.error = c_string(&error.to_string());
            TRAXTENT_INVALID
        }
    }
}

impl Disk {
    fn finish(&mut self, done: Result<Breakdown, DiskError>, took: Option<&mut u64>) -> Status {
        let error = match done {
            Ok(breakdown) => {
                if let Some(took) = took {
                    *took = breakdown.total().0;
                }
                return TRAXTENT_OK;
            }
            Err(error) => error,
        };
        self.error = c_string(&error.to_string());
        match error {
            DiskError::Request(_) | DiskError::Length { .. } | DiskError::FaultBeyondEnd { .. } => {
                TRAXTENT_INVALID
            }
            DiskError::Unreadable { .. } => TRAXTENT_UNREADABLE,
            DiskError::Unresponsive | DiskError::PowerCut => TRAXTENT_GONE,
            _ => TRAXTENT_FAILED,
        }
    }
}

/// Returns a message up to its first zero byte.
fn c_string(message: &str) -> CString {
    let bytes: Vec<u8> = message.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

//! The disk of `traxtent_model::disk` for programs in C. The functions here call those there. The
//! header `include/traxtent.h` is generated from these files.
//!
//! - [`calls`] runs one command after another on the disk's own clock.
//! - [`queue`] keeps several commands outstanding on the caller's clock.
//!
//! Times are in picoseconds. No function keeps a pointer that it was given, except to the disk.

// The C interface has to trust the pointers that it receives.
#![allow(unsafe_code)]

pub mod calls;
pub mod queue;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, c_char};
use std::ptr;

use traxtent_model::disk::{Disk as Model, DiskError, Fault, Tag};
use traxtent_model::profile::{Profile, builtin};
use traxtent_units::Span;

/// A disk: data in memory, times of a drive.
pub struct Disk {
    model: Model,
    error: CString,
    /// The caller's tags of the commands that `traxtent_poll` has not returned yet.
    tags: BTreeMap<Tag, u64>,
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

/// The latest time that a disk's clock reaches, in picoseconds: 106 days.
pub const TRAXTENT_TIME_MAX: u64 = 0x7fff_ffff_ffff_ffff;

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
            tags: BTreeMap::new(),
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

/// Advances the disk's clock, at most to `TRAXTENT_TIME_MAX`.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sleep(disk: &mut Disk, picoseconds: u64) {
    let room = TRAXTENT_TIME_MAX.saturating_sub(disk.model.now().0);
    disk.model.sleep(Span(picoseconds.min(room)));
}

/// Cuts the power and restores it. `seed` decides what remains of the data that were not durable.
/// Outstanding commands fail with `TRAXTENT_GONE`.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_power_cut(disk: &mut Disk, seed: u64) -> Status {
    let done = disk.model.power_cut(seed).map(drop);
    disk.finish(done)
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
            let done = disk.model.inject(disk.model.now(), fault).map(drop);
            disk.finish(done)
        }
        Err(error) => disk.refuse(&error.to_string()),
    }
}

impl Disk {
    /// Returns the status of a call, and keeps the message of an error.
    fn finish(&mut self, done: Result<(), DiskError>) -> Status {
        let Err(error) = done else {
            return TRAXTENT_OK;
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

    /// Returns the status for an invalid argument, and keeps the message.
    fn refuse(&mut self, message: &str) -> Status {
        self.error = c_string(message);
        TRAXTENT_INVALID
    }

    /// Returns the number of bytes in `sectors` sectors that start at `lbn`, or `None` if the disk
    /// does not have them.
    fn bytes_of(&self, lbn: u64, sectors: u32) -> Option<usize> {
        let end = lbn.checked_add(sectors.into())?;
        let sector_bytes = self.model.sector_bytes() as usize;
        (end <= self.model.capacity().0).then_some(sectors as usize * sector_bytes)
    }
}

/// Returns a message up to its first zero byte.
fn c_string(message: &str) -> CString {
    let bytes: Vec<u8> = message.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

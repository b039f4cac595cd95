//! The disk of `traxtent_core::disk` for programs in C, and nothing else: every function here is a
//! call of one there. The header `include/traxtent.h` is made from this file.
//!
//! Times are in picoseconds on the disk's own clock. A disk belongs to one thread at a time.

// What C calls takes pointers on trust.
#![allow(unsafe_code)]

use std::ffi::{CStr, CString, c_char};
use std::ptr;
use std::slice;

use traxtent_core::disk::{Disk as Model, DiskError, Fault};
use traxtent_core::drive::Breakdown;
use traxtent_core::profile::{Profile, builtin};
use traxtent_core::units::Span;

/// A disk: data in memory, times of a drive.
pub struct Disk {
    model: Model,
    error: CString,
}

/// How a call ended. `traxtent_error` has the words.
#[repr(C)]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[allow(non_camel_case_types, clippy::upper_case_acronyms)]
pub enum Status {
    /// Well.
    TRAXTENT_OK = 0,
    /// The request, or an argument, is one that the disk cannot serve.
    TRAXTENT_INVALID = 1,
    /// A sector cannot be read.
    TRAXTENT_UNREADABLE = 2,
    /// The drive does not answer.
    TRAXTENT_GONE = 3,
    /// Something else.
    TRAXTENT_FAILED = 4,
}

use Status::{TRAXTENT_FAILED, TRAXTENT_GONE, TRAXTENT_INVALID, TRAXTENT_OK, TRAXTENT_UNREADABLE};

/// A disk of zeros at rest, of the built-in drive of that name, or of the profile whose TOML text
/// this is. Returns null if there is none, and then as much of the reason as `room` bytes hold in
/// `error`, which may be null. To be given to `traxtent_free`.
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
                // SAFETY: the caller has room for as many bytes, and one is left for the end.
                unsafe {
                    ptr::copy_nonoverlapping(bytes.as_ptr().cast(), error, length);
                    *error.add(length) = 0;
                }
            }
            ptr::null_mut()
        }
    }
}

/// Gives a disk and its data up. Null is none.
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

/// Why the last call that did not end well did not. Lives until the next call.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_error(disk: &Disk) -> *const c_char {
    disk.error.as_ptr()
}

/// How many logical sectors the disk has.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sectors(disk: &Disk) -> u64 {
    disk.model.capacity().0
}

/// Bytes of a logical sector.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sector_bytes(disk: &Disk) -> u32 {
    disk.model.sector_bytes()
}

/// The disk's clock, in picoseconds.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_now(disk: &Disk) -> u64 {
    disk.model.now().0
}

/// Lets the disk's clock run on.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sleep(disk: &mut Disk, picoseconds: u64) {
    disk.model.sleep(Span(picoseconds));
}

/// Reads `sectors` from `lbn` on. `took`, if it is not null, receives the time.
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
    // SAFETY: the caller has room for as many.
    let into = unsafe { slice::from_raw_parts_mut(into, bytes) };
    let done = disk.model.read(lbn, into);
    disk.tell(done, took)
}

/// Writes `sectors` from `lbn` on. With `fua` they are durable then; else they may be lost until
/// the next `traxtent_flush`, if the drive has a write-back cache.
///
/// # Safety
/// `data` are as many sectors.
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
    // SAFETY: the caller has as many.
    let data = unsafe { slice::from_raw_parts(data, bytes) };
    let done = if fua {
        disk.model.write_fua(lbn, data)
    } else {
        disk.model.write(lbn, data)
    };
    disk.tell(done, took)
}

/// Makes all that was written before durable.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_flush(disk: &mut Disk, took: Option<&mut u64>) -> Status {
    let done = disk.model.flush();
    disk.tell(done, took)
}

/// Gives sectors up (TRIM); what then stands there is the drive's matter.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_trim(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    took: Option<&mut u64>,
) -> Status {
    let done = disk.model.trim(lbn, sectors);
    disk.tell(done, took)
}

/// Makes sectors zero.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_write_zeroes(
    disk: &mut Disk,
    lbn: u64,
    sectors: u32,
    took: Option<&mut u64>,
) -> Status {
    let done = disk.model.write_zeroes(lbn, sectors);
    disk.tell(done, took)
}

/// Takes the power away and gives it back. `seed` decides what is left of what was not durable.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_power_cut(disk: &mut Disk, seed: u64) -> Status {
    let done = disk.model.power_cut(seed);
    disk.tell(done.map(|_| Breakdown::default()), None)
}

/// Lets a fault happen now, such as `"latent-error,lbn=1000,sectors=8"`.
///
/// # Safety
/// `fault` is a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_fault(disk: &mut Disk, fault: *const c_char) -> Status {
    // SAFETY: the caller gives a C string.
    let text = unsafe { CStr::from_ptr(fault) }.to_string_lossy();
    match text.parse::<Fault>() {
        Ok(fault) => {
            let done = disk.model.inject(disk.model.now(), fault);
            disk.tell(done.map(|_| Breakdown::default()), None)
        }
        Err(error) => {
            disk.error = c_string(&error.to_string());
            TRAXTENT_INVALID
        }
    }
}

impl Disk {
    fn tell(&mut self, done: Result<Breakdown, DiskError>, took: Option<&mut u64>) -> Status {
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
            DiskError::Gone | DiskError::PowerCut => TRAXTENT_GONE,
            _ => TRAXTENT_FAILED,
        }
    }
}

/// A message up to its first zero byte.
fn c_string(message: &str) -> CString {
    let bytes: Vec<u8> = message.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

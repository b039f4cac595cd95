//! A C interface to the disk of `traxtent_model::disk`, and to the reader of `traxtent_file`. The
//! header `include/traxtent.h` is generated from these files.
//!
//! - [`calls`] runs one command after another on the disk's own clock.
//! - [`queue`] keeps several commands outstanding on the caller's clock.
//! - [`tracks`] reads files of the machine in whole tracks.
//!
//! Times are in picoseconds. No function keeps a pointer argument after it returns.

// The C interface has to trust the pointers that it receives.
#![allow(unsafe_code)]

pub mod calls;
mod medium;
pub mod queue;
pub mod tracks;

use std::collections::BTreeMap;
use std::ffi::{CStr, CString, OsStr, c_char};
use std::os::unix::ffi::OsStrExt;
use std::path::Path;
use std::ptr;

use medium::Medium;
use traxtent_model::disk::{
    Disk as Model, DiskError, END_OF_TIME, Fault, MediaError, Scenario, Tag,
};
use traxtent_model::drive::Drive;
use traxtent_model::profile::{Profile, builtin, nearest_name};
use traxtent_units::Span;

/// A modelled disk. Its data is in memory or in a file, and its times are those of a drive. Calls
/// on one disk must not overlap, except calls of functions that take a const disk.
pub struct Disk {
    model: Model<Medium>,
    error: CString,
    /// The caller's tags of the commands that `traxtent_poll` has not returned yet.
    tags: BTreeMap<Tag, u64>,
}

/// The result of a call. `traxtent_error`, or `traxtent_tracks_error` for a reader, returns the
/// message.
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
    /// The drive does not respond, or the power was cut during the request.
    TRAXTENT_GONE = 3,
    /// Any other error.
    TRAXTENT_FAILED = 4,
    /// The file system of the file that holds the data is full.
    TRAXTENT_NO_SPACE = 5,
}

/// The header promises that any thread may use a disk or a reader, and that calls of functions that
/// take a const disk may overlap.
const _: () = {
    const fn threads_may_share<T: Send + Sync>() {}
    const fn any_thread_may_use<T: Send>() {}
    threads_may_share::<Disk>();
    any_thread_may_use::<tracks::TrackReader>();
};

use Status::{
    TRAXTENT_FAILED, TRAXTENT_GONE, TRAXTENT_INVALID, TRAXTENT_NO_SPACE, TRAXTENT_OK,
    TRAXTENT_UNREADABLE,
};

/// The latest time that a disk's clock reaches, in picoseconds: 106 days. A command that is not
/// complete by then fails with `TRAXTENT_FAILED`.
pub const TRAXTENT_TIME_MAX: u64 = 0x7fff_ffff_ffff_ffff;

const _: () = assert!(TRAXTENT_TIME_MAX == END_OF_TIME.0);

/// Creates a zero-filled disk, at rest, with its data in memory. `drive` is the name of a built-in
/// drive or the TOML text of a profile. On failure, returns null and writes the reason to `error`,
/// truncated to `room` bytes. `error` may be null.
///
/// The disk belongs to the caller. Release it with `traxtent_free`. The text of `drive` is copied.
///
/// # Safety
/// `drive` is a C string; `error` is null or has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_new(
    drive: *const c_char,
    error: *mut c_char,
    room: usize,
) -> *mut Disk {
    // SAFETY: the caller gives a C string, and room for the message.
    unsafe { make(drive, |_| Ok(Medium::memory()), error, room) }
}

/// Creates a zero-filled disk, at rest, with its data in a new sparse file at `path`. Otherwise
/// does the same as `traxtent_new`. Release the disk with `traxtent_close` or `traxtent_free`; both
/// keep the file.
///
/// The file is an image: byte 0 is the first byte of LBN 0. It is locked (`flock`) until the disk
/// is released. It holds the data that is durable on the modelled disk. Each flush, and each write
/// with force unit access, calls `fdatasync`.
///
/// Also returns null if the file exists, cannot be created, or cannot be extended to the size of
/// the disk. No new file is left behind.
///
/// # Safety
/// `drive` and `path` are C strings; `error` is null or has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_create(
    drive: *const c_char,
    path: *const c_char,
    error: *mut c_char,
    room: usize,
) -> *mut Disk {
    // SAFETY: the caller gives C strings, and room for the message.
    unsafe {
        let path = path_of(path);
        make(drive, |bytes| Medium::create(path, bytes), error, room)
    }
}

/// Opens a disk, at rest, whose data is in the existing file at `path`: one that `traxtent_create`
/// made, or any other image that is at least as long as the disk. Otherwise does the same as
/// `traxtent_create`.
///
/// Also returns null if the file is missing, too short, not a regular file, not writable, or in use
/// by another disk or by `traxtent serve`. The file is then unchanged.
///
/// # Safety
/// `drive` and `path` are C strings; `error` is null or has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_open(
    drive: *const c_char,
    path: *const c_char,
    error: *mut c_char,
    room: usize,
) -> *mut Disk {
    // SAFETY: the caller gives C strings, and room for the message.
    unsafe {
        let path = path_of(path);
        make(drive, |bytes| Medium::open(path, bytes), error, room)
    }
}

/// Shuts a disk down cleanly: completes the outstanding requests, flushes, and releases the disk.
/// The results of outstanding requests are dropped. On failure, writes the reason to `error`,
/// truncated to `room` bytes. `error` may be null. The disk is released in every case. Strings that
/// `traxtent_error` returned for it become invalid.
///
/// Returns `TRAXTENT_GONE` if the drive does not respond, and `TRAXTENT_NO_SPACE` or
/// `TRAXTENT_FAILED` if the file does not accept the data. Data that was not durable is then lost.
///
/// # Safety
/// `disk` comes from a function that creates or opens one, and is not used afterwards; `error` is
/// null or has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_close(
    disk: *mut Disk,
    error: *mut c_char,
    room: usize,
) -> Status {
    // SAFETY: it was made by Box::into_raw, and this is its last use.
    let mut disk = unsafe { Box::from_raw(disk) };
    while let Some(wake) = disk.model.next_wakeup().filter(|_| !disk.tags.is_empty()) {
        while let Some(done) = disk.model.poll(wake) {
            disk.tags.remove(&done.tag);
        }
    }
    let flushed = disk.model.flush().map(drop);
    let status = disk.finish(flushed);
    if status != TRAXTENT_OK {
        // SAFETY: the caller provides `room` bytes.
        unsafe { report(&disk.error, error, room) };
    }
    status
}

/// Releases a disk as if its power failed: data that is not durable is lost, as are outstanding
/// requests. A file keeps the durable data. Null is ignored.
///
/// # Safety
/// `disk` is null or comes from a function that creates or opens one, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_free(disk: *mut Disk) {
    if !disk.is_null() {
        // SAFETY: it was made by Box::into_raw, and this is its last use.
        drop(unsafe { Box::from_raw(disk) });
    }
}

/// Returns the reason why the last unsuccessful call failed, or an empty string. The string belongs
/// to the disk. It is valid until the next call of a function whose disk argument is not const.
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

/// Advances the disk's clock by a time in picoseconds, but not beyond `TRAXTENT_TIME_MAX`. Does not
/// wait in real time.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_sleep(disk: &mut Disk, picoseconds: u64) {
    disk.model.sleep(Span(picoseconds));
}

/// Cuts the power and restores it. `seed` determines which parts of the data that was not durable
/// survive. Outstanding requests fail with `TRAXTENT_GONE`. The call takes no time on the disk's
/// clock.
///
/// Returns `TRAXTENT_NO_SPACE` or `TRAXTENT_FAILED` if the file does not accept the data. The
/// content is then as if the power had been cut when the error occurred.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_power_cut(disk: &mut Disk, seed: u64) -> Status {
    let done = disk.model.power_cut(seed).map(drop);
    disk.finish(done)
}

/// Injects a fault now, such as `"latent-error,lbn=1000,sectors=8"`. The text of `fault` is copied.
/// After a power cut with a time (`for=`), requests fail with `TRAXTENT_GONE`, without taking any
/// time, until it has passed: call `traxtent_sleep`.
///
/// Returns `TRAXTENT_INVALID` if the text is not a fault, or names sectors that the disk does not
/// have, and `TRAXTENT_FAILED` if a bad sector cannot be moved to a spare. Errors of a power cut
/// are those of `traxtent_power_cut`.
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

/// Schedules the faults of a scenario, in place of those that an earlier one scheduled. `scenario`
/// is text in TOML, with times since the disk's clock was 0. The text is copied. A fault whose time
/// has passed occurs as soon as the disk is used.
///
/// Returns `TRAXTENT_INVALID` if the text is not a scenario, or names sectors that the disk does
/// not have. The faults that were scheduled before then remain.
///
/// # Safety
/// `scenario` must be a C string.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_schedule_faults(
    disk: &mut Disk,
    scenario: *const c_char,
) -> Status {
    // SAFETY: the caller gives a C string.
    let text = unsafe { CStr::from_ptr(scenario) }.to_string_lossy();
    match Scenario::from_toml(&text) {
        Ok(scenario) => {
            let done = disk.model.schedule_faults(&scenario);
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
        Disk::status(&error)
    }

    fn status(error: &DiskError) -> Status {
        match error {
            DiskError::Request(_) | DiskError::Length { .. } | DiskError::FaultBeyondEnd { .. } => {
                TRAXTENT_INVALID
            }
            DiskError::Unreadable { .. } => TRAXTENT_UNREADABLE,
            DiskError::Unresponsive | DiskError::PowerCut => TRAXTENT_GONE,
            DiskError::Media(MediaError::NoSpace) => TRAXTENT_NO_SPACE,
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

/// Creates a disk. `medium` receives the size of the disk in bytes, and returns its storage.
///
/// # Safety
/// `drive` is a C string; `error` is null or has `room` bytes.
unsafe fn make(
    drive: *const c_char,
    medium: impl FnOnce(u64) -> Result<Medium, String>,
    error: *mut c_char,
    room: usize,
) -> *mut Disk {
    // SAFETY: the caller gives a C string.
    let drive = unsafe { CStr::from_ptr(drive) }.to_string_lossy();
    match model(&drive, medium) {
        Ok(model) => Box::into_raw(Box::new(Disk {
            model,
            error: CString::default(),
            tags: BTreeMap::new(),
        })),
        Err(message) => {
            // SAFETY: the caller provides `room` bytes.
            unsafe { report(&c_string(&message), error, room) };
            ptr::null_mut()
        }
    }
}

fn model(
    drive: &str,
    medium: impl FnOnce(u64) -> Result<Medium, String>,
) -> Result<Model<Medium>, String> {
    let profile = match builtin(drive) {
        Some(profile) => profile,
        // The text of a profile contains at least one of these characters.
        None if !drive.contains(['\n', '=']) => {
            let hint = match nearest_name(drive, builtin::names()) {
                Some(known) => format!(": did you mean {known}?"),
                None => "; give the name of one, or the text of a profile".to_owned(),
            };
            return Err(format!("no built-in drive is called {drive:?}{hint}"));
        }
        None => Profile::from_toml(drive)
            .map_err(|error| format!("the text of the profile: {error}"))?,
    };
    let drive = Drive::new(&profile).map_err(|error| error.to_string())?;
    let bytes = drive.geometry().capacity().0 * u64::from(profile.sector.logical_bytes);
    // The medium is created last, so that no later error leaves a file without a disk.
    Ok(Model::with_media(drive, medium(bytes)?))
}

/// Returns a C string as a path.
///
/// # Safety
/// `path` is a C string that lives for `'a`.
unsafe fn path_of<'a>(path: *const c_char) -> &'a Path {
    // SAFETY: the caller gives a C string.
    let bytes = unsafe { CStr::from_ptr(path) }.to_bytes();
    Path::new(OsStr::from_bytes(bytes))
}

/// Copies as much of a message as `room` bytes hold.
///
/// # Safety
/// `error` is null or has `room` bytes.
unsafe fn report(message: &CStr, error: *mut c_char, room: usize) {
    if error.is_null() || room == 0 {
        return;
    }
    let bytes = message.to_bytes();
    let length = bytes.len().min(room - 1);
    // SAFETY: the caller provides `room` bytes, and one is left for the terminating NUL.
    unsafe {
        ptr::copy_nonoverlapping(bytes.as_ptr().cast(), error, length);
        *error.add(length) = 0;
    }
}

/// Returns a message as a C string, up to its first NUL byte.
fn c_string(message: &str) -> CString {
    let bytes: Vec<u8> = message.bytes().take_while(|byte| *byte != 0).collect();
    CString::new(bytes).unwrap_or_default()
}

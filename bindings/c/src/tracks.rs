//! A file of a mounted file system, read in whole tracks.

use std::ffi::{CString, c_char};
use std::fs;
use std::io;
use std::path::Path;
use std::ptr;
use std::sync::Arc;

use traxtent_check::target::HostPaths;
use traxtent_file::{FileSystem, TrackReader as Reader, TrackedDrive};
use traxtent_map::{MapFile, TrackMap};

use crate::Status::{TRAXTENT_FAILED, TRAXTENT_OK, TRAXTENT_UNREADABLE};
use crate::{Status, c_string, path_of, report};

/// The sector size assumed for a list of tracks, which does not state it.
const LIST_SECTOR_BYTES: u64 = 512;

/// A file that is read in requests which each stay on one track. Calls on one reader must not
/// overlap.
pub struct TrackReader {
    reader: Reader,
    data: Vec<u8>,
    error: CString,
}

/// Opens a file of a mounted ext4, XFS or Btrfs. The file system must lie in one piece on one
/// drive. Usually needs root. `map` is the path of the drive's track map: a file that
/// `traxtent probe` wrote, or a list of tracks that `traxtent map --format csv` printed, in sectors
/// of 512 bytes. `ahead` tracks, from 1 to 256, are read before they are requested, in as many
/// threads. On failure, returns null and writes the reason to `error`, truncated to `room` bytes.
/// `error` may be null.
///
/// The reader belongs to the caller. Release it with `traxtent_tracks_close`.
///
/// # Safety
/// `path` and `map` are C strings; `error` is null or has `room` bytes.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_tracks_open(
    path: *const c_char,
    map: *const c_char,
    ahead: u32,
    error: *mut c_char,
    room: usize,
) -> *mut TrackReader {
    // SAFETY: the caller gives C strings.
    let (path, map) = unsafe { (path_of(path), path_of(map)) };
    match open(path, map, ahead) {
        Ok(reader) => Box::into_raw(Box::new(TrackReader {
            reader,
            data: Vec::new(),
            error: CString::default(),
        })),
        Err(message) => {
            // SAFETY: the caller provides `room` bytes.
            unsafe { report(&c_string(&message), error, room) };
            ptr::null_mut()
        }
    }
}

/// Reads the next part of the file: as much as lies in one piece on one track. Holes read as zeros.
/// Sets `data` and `length`; the data belongs to the reader, and is valid until the next call. At
/// the end of the file, the length is 0 and `data` is null.
///
/// Returns `TRAXTENT_UNREADABLE` if the drive cannot read the part, and `TRAXTENT_FAILED` for any
/// other error. The next call then continues after this part.
///
/// # Safety
/// `data` and `length` can be written to.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_tracks_next(
    reader: &mut TrackReader,
    data: *mut *const u8,
    length: *mut usize,
) -> Status {
    let (found, status) = loop {
        match reader.reader.next_track() {
            // The file has become shorter.
            Ok(Some(track)) if track.is_empty() => {}
            Ok(track) => break (track.unwrap_or_default(), TRAXTENT_OK),
            Err(error) => {
                let status = status_of(&error);
                reader.error = c_string(&error.to_string());
                break (Vec::new(), status);
            }
        }
    };
    reader.data = found;
    let start = if reader.data.is_empty() {
        ptr::null()
    } else {
        reader.data.as_ptr()
    };
    // SAFETY: the caller provides both.
    unsafe {
        *data = start;
        *length = reader.data.len();
    }
    status
}

/// Returns the reason why the last unsuccessful call failed, or an empty string. The string belongs
/// to the reader. It is valid until the next call of `traxtent_tracks_next`.
#[unsafe(no_mangle)]
pub extern "C" fn traxtent_tracks_error(reader: &TrackReader) -> *const c_char {
    reader.error.as_ptr()
}

/// Closes a file, and releases the reader. Null is ignored.
///
/// # Safety
/// `reader` is null or comes from `traxtent_tracks_open`, and is not used afterwards.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn traxtent_tracks_close(reader: *mut TrackReader) {
    if !reader.is_null() {
        // SAFETY: it was made by Box::into_raw, and this is its last use.
        drop(unsafe { Box::from_raw(reader) });
    }
}

fn status_of(error: &io::Error) -> Status {
    if error.raw_os_error() == Some(rustix::io::Errno::IO.raw_os_error()) {
        TRAXTENT_UNREADABLE
    } else {
        TRAXTENT_FAILED
    }
}

fn open(path: &Path, map: &Path, ahead: u32) -> Result<Reader, String> {
    let text = |error: traxtent_file::FileError| error.to_string();
    let drive = drive(map).map_err(|error| format!("{}: {error}", map.display()))?;
    let system = FileSystem::of(path, &HostPaths::default()).map_err(text)?;
    let partition = system.partition(&drive).map_err(text)?;
    Reader::open(path, &system, &partition, ahead as usize).map_err(text)
}

/// Returns the tracks in a map file, or in a list of tracks.
fn drive(map: &Path) -> Result<TrackedDrive, String> {
    let bytes = fs::read(map).map_err(|error| error.to_string())?;
    let (tracks, sector_bytes) = if MapFile::recognize(&bytes) {
        let file = MapFile::read(&bytes).map_err(|error| error.to_string())?;
        (file.tracks, file.identity.logical_bytes.into())
    } else {
        let tracks = TrackMap::read_csv(bytes.as_slice()).map_err(|error| error.to_string())?;
        (tracks, LIST_SECTOR_BYTES)
    };
    Ok(TrackedDrive {
        map: Arc::new(tracks),
        sector_bytes,
    })
}

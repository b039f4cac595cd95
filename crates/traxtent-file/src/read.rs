//! Reading a file in requests that each stay on one track (paper T, section 3.2: request
//! generation).

use std::collections::VecDeque;
use std::fs::File;
use std::io::{self, Read};
use std::ops::Range;
use std::os::unix::fs::FileExt;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, SyncSender, sync_channel};
use std::thread::{self, JoinHandle};

use rustix::fs::{Mode, OFlags};
use rustix::io::Errno;
use traxtent_layout::Partition;
use traxtent_units::Sectors;

use crate::{FileError, FileSystem, file_extents};

/// The alignment in bytes of buffers for direct reads. No device needs more.
const ALIGNMENT_BYTES: usize = 4096;

/// The largest request in bytes. It limits requests that no track boundary limits, such as those
/// for holes. The kernel splits larger ones.
const REQUEST_BYTES_MAX: u64 = 8 << 20;

/// The largest number of requests that are sent ahead, each by a thread of its own.
const AHEAD_MAX: usize = 256;

/// Reads a file from its beginning to its end, track by track, some tracks ahead.
///
/// Requests bypass the page cache if the file system permits it. They do not cross track
/// boundaries: each reads as much of one track as the file has there in one piece. A block that
/// spans two tracks is read in two parts, if the device has sectors small enough.
pub struct TrackReader {
    tracks: VecDeque<Receiver<io::Result<Vec<u8>>>>,
    work: Option<SyncSender<Job>>,
    threads: Vec<JoinHandle<()>>,
    requests: std::vec::IntoIter<Range<u64>>,
    current: Vec<u8>,
    at: usize,
}

/// A request, and the channel for its data.
type Job = (Range<u64>, SyncSender<io::Result<Vec<u8>>>);

impl TrackReader {
    /// Opens a file. At most `ahead` requests are sent before their data is consumed. Values
    /// outside 1 to 256 are replaced by the nearest bound.
    ///
    /// # Errors
    /// Returns an error if the file cannot be opened or examined, if its data cannot be written to
    /// the device, if its file system does not report extents, or if a thread cannot be started.
    pub fn open(
        path: &Path,
        system: &FileSystem,
        partition: &Partition,
        ahead: usize,
    ) -> Result<TrackReader, FileError> {
        let failed = |what: &'static str| {
            move |error: io::Error| FileError::System {
                path: path.to_owned(),
                what,
                error,
            }
        };
        let flags = OFlags::RDONLY | OFlags::CLOEXEC;
        let direct = rustix::fs::open(path, flags | OFlags::DIRECT, Mode::empty());
        let file = match direct {
            Err(Errno::INVAL) => rustix::fs::open(path, flags, Mode::empty()),
            opened => opened,
        };
        let file = File::from(file.map_err(|error| failed("open")(error.into()))?);
        let length = file.metadata().map_err(failed("examine"))?.len();
        let extents = file_extents(&file).map_err(failed("find its blocks"))?;
        let sector_bytes = system.block_bytes / u64::from(partition.block_sectors());
        let mut requests = Vec::new();
        let mut at = 0;
        for extent in &extents {
            let (file, device) = (&extent.file, extent.device());
            // Holes are read too: the kernel fills them with zeros.
            cut(at..file.start.min(length), &mut requests);
            for bytes in on_tracks(partition, sector_bytes, device.clone()) {
                let offset = |byte: u64| file.start + (byte - device.start);
                cut(
                    offset(bytes.start)..offset(bytes.end).min(length),
                    &mut requests,
                );
            }
            at = file.end;
        }
        cut(at..length, &mut requests);
        let ahead = ahead.min(AHEAD_MAX).min(requests.len()).max(1);
        let (work, jobs) = sync_channel::<Job>(ahead);
        let (file, jobs) = (Arc::new(file), Arc::new(parking_lot::Mutex::new(jobs)));
        let units = Units {
            sector_bytes: sector_bytes.min(ALIGNMENT_BYTES as u64),
            block_bytes: system.block_bytes.min(ALIGNMENT_BYTES as u64),
        };
        let mut threads = Vec::new();
        for _ in 0..ahead {
            let (file, jobs) = (Arc::clone(&file), Arc::clone(&jobs));
            let thread = thread::Builder::new()
                .name("track-reader".to_owned())
                .spawn(move || {
                    // The thread ends when the reader is dropped.
                    while let Some((range, reply)) = next_job(&jobs) {
                        let _ = reply.send(read_range(&file, &range, units));
                    }
                })
                .map_err(failed("start a thread that reads it"))?;
            threads.push(thread);
        }
        let mut reader = TrackReader {
            tracks: VecDeque::new(),
            work: Some(work),
            threads,
            requests: requests.into_iter(),
            current: Vec::new(),
            at: 0,
        };
        for _ in 0..ahead {
            reader.request();
        }
        Ok(reader)
    }

    /// Returns the data of the next request; `None` at the end of the file.
    ///
    /// # Errors
    /// Returns an error if the data cannot be read.
    pub fn next_track(&mut self) -> io::Result<Option<Vec<u8>>> {
        let Some(track) = self.tracks.pop_front() else {
            return Ok(None);
        };
        self.request();
        let data = track.recv().map_err(io::Error::other)??;
        Ok(Some(data))
    }

    fn request(&mut self) {
        if let (Some(range), Some(work)) = (self.requests.next(), &self.work) {
            let (reply, track) = sync_channel(1);
            if work.send((range, reply)).is_ok() {
                self.tracks.push_back(track);
            }
        }
    }
}

impl Read for TrackReader {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        while self.at == self.current.len() {
            match self.next_track()? {
                Some(data) => (self.current, self.at) = (data, 0),
                None => return Ok(0),
            }
        }
        let count = buffer.len().min(self.current.len() - self.at);
        buffer[..count].copy_from_slice(&self.current[self.at..self.at + count]);
        self.at += count;
        Ok(count)
    }
}

impl Drop for TrackReader {
    fn drop(&mut self) {
        // The threads end once the channel is closed. They keep the file open until then, so its
        // file system cannot be unmounted before.
        self.work = None;
        for thread in self.threads.drain(..) {
            // A panic of a thread has been reported already.
            let _ = thread.join();
        }
    }
}

fn next_job(jobs: &parking_lot::Mutex<Receiver<Job>>) -> Option<Job> {
    jobs.lock().recv().ok()
}

/// Appends a range in requests of limited size.
fn cut(range: Range<u64>, requests: &mut Vec<Range<u64>>) {
    let mut at = range.start;
    while at < range.end {
        let end = range.end.min(at + REQUEST_BYTES_MAX);
        requests.push(at..end);
        at = end;
    }
}

/// Cuts a run of the file system's bytes at track boundaries. Tracks may end within a block.
fn on_tracks(
    partition: &Partition,
    sector_bytes: u64,
    bytes: Range<u64>,
) -> impl Iterator<Item = Range<u64>> {
    let first = partition.lbns().start;
    let mut at = bytes.start;
    std::iter::from_fn(move || {
        if at >= bytes.end {
            return None;
        }
        let track = partition.map().track_of(first + Sectors(at / sector_bytes));
        let end = match track {
            Some(track) => (track.end().0 - first.0) * sector_bytes,
            None => bytes.end,
        };
        let part = at..end.min(bytes.end);
        at = part.end;
        Some(part)
    })
}

/// The units in bytes of the positions and lengths that direct reads may need.
#[derive(Clone, Copy)]
struct Units {
    /// The size of a sector of the map.
    sector_bytes: u64,
    /// The size of a block, for devices with larger sectors than the map.
    block_bytes: u64,
}

/// Reads a range of a file. Returns less if the file has become shorter.
fn read_range(file: &File, range: &Range<u64>, units: Units) -> io::Result<Vec<u8>> {
    match read_multiple(file, range, units.sector_bytes) {
        Err(error) if error.raw_os_error() == Some(Errno::INVAL.raw_os_error()) => {
            read_multiple(file, range, units.block_bytes)
        }
        read => read,
    }
}

/// Reads a range of a file by requests that are extended at both ends to multiples of `unit` bytes.
fn read_multiple(file: &File, range: &Range<u64>, unit: u64) -> io::Result<Vec<u8>> {
    let start = range.start / unit * unit;
    let before = (range.start - start) as usize;
    let wanted = (range.end - start) as usize;
    let whole = wanted.next_multiple_of(unit as usize);
    let mut buffer = vec![0; whole + ALIGNMENT_BYTES];
    let skip = buffer.as_ptr().align_offset(ALIGNMENT_BYTES);
    let mut filled = 0;
    while filled < wanted {
        let part = &mut buffer[skip + filled..skip + whole];
        match file.read_at(part, start + filled as u64) {
            Ok(0) => break,
            Ok(count) => filled += count,
            Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
            Err(error) => return Err(error),
        }
    }
    let filled = filled.min(wanted);
    buffer.truncate(skip + filled);
    buffer.drain(..(skip + before).min(skip + filled));
    Ok(buffer)
}

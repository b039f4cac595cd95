//! Exchanging blocks between files of an ext4 file system, and finding the free space of the file
//! system.
//!
//! Sources: `fs/ext4/ioctl.c` and `fs/ext4/move_extent.c` of the Linux kernel for
//! `EXT4_IOC_MOVE_EXT`; `include/uapi/linux/fsmap.h` and the manual page `ioctl_getfsmap(2)` for
//! `FS_IOC_GETFSMAP`. Neither needs a patch or an additional module.

use std::ffi::c_void;
use std::io;
use std::ops::Range;
use std::os::fd::{AsFd, AsRawFd};

use rustix::io::Errno;
use rustix::ioctl::{Ioctl, IoctlOutput, Opcode, Updater, opcode};

/// The outcome of an exchange.
#[derive(Debug)]
pub struct Exchange {
    /// The number of blocks that have been processed, from the beginning of the range. Blocks in a
    /// hole of the file count too.
    pub blocks: u64,
    /// The reason why it ended early. Without one, fewer blocks than requested mean that the donor
    /// or the file ended.
    pub error: Option<io::Error>,
}

/// `struct move_extent` of the kernel.
#[repr(C)]
#[derive(Default)]
struct MoveExtent {
    reserved: u32,
    donor_fd: u32,
    orig_start: u64,
    donor_start: u64,
    len: u64,
    moved_len: u64,
}

const MOVE_EXTENT: Opcode = opcode::read_write::<MoveExtent>(b'f', 15);

/// Exchanges the disk blocks of `count` blocks of a file with those of a donor file. The blocks
/// begin at `file_start` in the file and at `donor_start` in the donor. The content of `file` stays
/// the same; the content of `donor` becomes undefined.
///
/// The kernel copies the data, page by page, and records each page's exchange in the journal. A
/// crash leaves the file with its old or its new blocks, and with its data in both cases, if two
/// conditions hold. The file system has a journal without fast commits, and nothing is written to
/// the old blocks, which the donor now has, before the journal is committed.
pub fn exchange(
    file: impl AsFd,
    donor: impl AsFd,
    file_start: u64,
    donor_start: u64,
    count: u64,
) -> Exchange {
    let donor_fd = u32::try_from(donor.as_fd().as_raw_fd())
        .expect("descriptors of open files are not negative");
    let mut request = MoveExtent {
        donor_fd,
        orig_start: file_start,
        donor_start,
        len: count,
        ..MoveExtent::default()
    };
    // SAFETY: the opcode and the type belong together. The kernel copies the whole structure back,
    // of which it changes only `moved_len`. The donor is open, because it is borrowed.
    #[allow(unsafe_code)]
    let result = unsafe {
        rustix::ioctl::ioctl(
            file.as_fd(),
            Updater::<MOVE_EXTENT, MoveExtent>::new(&mut request),
        )
    };
    Exchange {
        blocks: request.moved_len.min(count),
        error: result.err().map(io::Error::from),
    }
}

/// The number of 64-bit words in `struct fsmap_head`: four numbers of 32 bits, six reserved words,
/// and two keys.
const HEAD_WORDS: usize = 24;
/// The number of 64-bit words in `struct fsmap`.
const RECORD_WORDS: usize = 8;
/// The maximum number of records per call.
const RECORDS: usize = 1024;
/// `FMR_OWN_FREE`: the owner of free space.
const FREE: u64 = 1;
/// `FMR_OF_SPECIAL_OWNER`: the owner is not an inode.
const SPECIAL_OWNER: u64 = 0x10;
/// `FMR_OF_LAST`: the last record of the file system.
const LAST: u64 = 0x20;

/// Returns the free space of the file system that holds an open file or directory, as byte ranges
/// of its device, in ascending order.
///
/// # Errors
/// Returns the system's error, for example if the file system does not report its free space.
pub fn free_ranges(inside: impl AsFd) -> io::Result<Vec<Range<u64>>> {
    let mut free: Vec<Range<u64>> = Vec::new();
    let mut words = vec![0u64; HEAD_WORDS + RECORDS * RECORD_WORDS];
    let mut low = [0u64; RECORD_WORDS];
    loop {
        words.fill(0);
        words[1] = RECORDS as u64;
        words[8..16].copy_from_slice(&low);
        // The upper key: every device, flag, address, owner and offset.
        words[16..20].fill(u64::MAX);
        get_fs_map(inside.as_fd(), &mut words)?;
        let found = (words[1] >> 32) as usize;
        let records = words[HEAD_WORDS..].chunks_exact(RECORD_WORDS).take(found);
        let mut last = None;
        for record in records {
            let (flags, start, owner) = (record[0] >> 32, record[1], record[2]);
            let end = start.saturating_add(record[4]);
            if owner == FREE && flags & SPECIAL_OWNER != 0 {
                match free.last_mut() {
                    Some(before) if before.end == start => before.end = end,
                    _ => free.push(start..end),
                }
            }
            last = Some(record);
        }
        match last {
            // The next call continues after the last record.
            Some(record) if found == RECORDS && (record[0] >> 32) & LAST == 0 => {
                low.copy_from_slice(record);
            }
            _ => return Ok(free),
        }
    }
}

#[allow(unsafe_code)]
fn get_fs_map(inside: impl AsFd, words: &mut [u64]) -> Result<(), Errno> {
    // SAFETY: see `GetFsMap`.
    unsafe { rustix::ioctl::ioctl(inside, GetFsMap(words)) }
}

/// `FS_IOC_GETFSMAP` with a header and room for [`RECORDS`] records.
struct GetFsMap<'a>(&'a mut [u64]);

// SAFETY: the kernel writes at most as many records as the header states, and the buffer is made
// for that number.
#[allow(unsafe_code)]
unsafe impl Ioctl for GetFsMap<'_> {
    type Output = ();
    const IS_MUTATING: bool = true;

    fn opcode(&self) -> Opcode {
        opcode::read_write::<[u64; HEAD_WORDS]>(b'X', 59)
    }

    fn as_ptr(&mut self) -> *mut c_void {
        self.0.as_mut_ptr().cast()
    }

    unsafe fn output_from_ptr(_: IoctlOutput, _: *mut c_void) -> Result<(), Errno> {
        Ok(())
    }
}

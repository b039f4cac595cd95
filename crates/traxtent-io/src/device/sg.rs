//! SCSI commands to a real drive through the kernel's SG_IO, version 3 (`scsi/sg.h`; D. Gilbert,
//! The Linux SCSI Generic HOWTO).
//!
//! SG_IO measures durations in milliseconds, so times here are taken from the clock before and
//! after the call.

use std::ffi::c_void;
use std::mem::size_of;
use std::os::fd::OwnedFd;
use std::path::{Path, PathBuf};
use std::ptr;

use rustix::fs::{FileType, Mode, OFlags};
use rustix::io::Errno;
use rustix::ioctl::{Getter, Opcode, Updater};
use traxtent_probe::Timing;
use traxtent_scsi::{DataTransfer, Reply, Status, Transport, TransportError};
use traxtent_units::SimTime;

use super::clock::Clock;
use super::error::DeviceError;
use super::sysfs;

/// A SCSI generic node or SCSI disk that accepts commands.
#[derive(Debug)]
pub struct SgTransport {
    file: OwnedFd,
    path: PathBuf,
    clock: Clock,
    timeout_ms: u32,
}

/// The time limit of a command, longer than the retries of a drive on a bad sector.
const TIMEOUT_MS: u32 = 60_000;
/// The maximum length of sense data in bytes.
const SENSE_BYTES_MAX: usize = 252;

impl SgTransport {
    /// Opens a SCSI generic node or a whole SCSI disk.
    ///
    /// # Errors
    /// Returns [`DeviceError::NoScsi`] if the path names something else or a node that does not
    /// support SG_IO. Returns another error if the path does not exist or cannot be opened.
    pub fn open(path: &Path) -> Result<SgTransport, DeviceError> {
        let failed = |errno| DeviceError::new(path, "open", errno);
        let no_scsi = || DeviceError::NoScsi {
            path: path.to_owned(),
        };
        let kind = rustix::fs::stat(path).map_err(failed)?;
        let file = match FileType::from_raw_mode(kind.st_mode) {
            FileType::CharacterDevice => {
                // The kernel passes all commands to a generic node only if it is open for writing.
                open(path, OFlags::RDWR).or_else(|errno| match errno {
                    Errno::ACCESS | Errno::PERM | Errno::ROFS => open(path, OFlags::RDONLY),
                    errno => Err(errno),
                })
            }
            FileType::BlockDevice if sysfs::is_scsi_disk(&sysfs::directory(kind.st_rdev)) => {
                open(path, OFlags::RDONLY)
            }
            _ => return Err(no_scsi()),
        };
        let file = file.map_err(failed)?;
        match version(&file) {
            Ok(version) if version >= 30_000 => {}
            Ok(_) | Err(_) => return Err(no_scsi()),
        }
        Ok(SgTransport {
            file,
            path: path.to_owned(),
            clock: Clock::start(),
            timeout_ms: TIMEOUT_MS,
        })
    }

    /// Returns the same transport with another time limit for commands, of at least 1 ms.
    pub fn with_timeout_ms(mut self, timeout_ms: u32) -> SgTransport {
        self.timeout_ms = timeout_ms.max(1);
        self
    }

    fn gone(&self, why: &str) -> TransportError {
        TransportError::Unavailable(format!("{}: {why}", self.path.display()))
    }

    fn refused(&self, why: String) -> TransportError {
        TransportError::Refused(format!("{}: {why}", self.path.display()))
    }

    fn failed(&self, errno: Errno) -> TransportError {
        match errno {
            Errno::NODEV | Errno::NXIO | Errno::NOMEDIUM => self.gone(&errno.to_string()),
            Errno::PERM | Errno::ACCESS => {
                self.refused("no permission to send it this command".to_owned())
            }
            errno => self.refused(errno.to_string()),
        }
    }

    /// Checks that the host adapter delivered the command, and that the drive responded in time.
    fn check_delivery(&self, header: &SgIoHeader) -> Result<(), TransportError> {
        // Host codes are from the kernel's scsi_status.h; driver code 6 is a time-out.
        match (header.host_status, header.driver_status & 0x0f) {
            (0x00, 0x06) | (0x03, _) => {
                let why = format!("no response within {} ms", self.timeout_ms);
                Err(self.refused(why))
            }
            (0x00, _) => Ok(()),
            (0x01, _) => Err(self.gone("no connection")),
            (0x04, _) => Err(self.gone("no such target")),
            (host, _) => Err(self.refused(format!("the adapter reports status {host:#04x}"))),
        }
    }
}

impl Transport for SgTransport {
    fn now(&self) -> SimTime {
        self.clock.now()
    }

    fn wait_until(&mut self, at: SimTime) {
        self.clock.wait_until(at);
    }

    fn execute(&mut self, command: &[u8], data: DataTransfer<'_>) -> Result<Reply, TransportError> {
        let (direction, buffer, length) = match data {
            DataTransfer::None => (SG_DXFER_NONE, ptr::null_mut(), 0),
            // The kernel only reads from this buffer.
            DataTransfer::Out(bytes) => (SG_DXFER_TO_DEV, bytes.as_ptr().cast_mut(), bytes.len()),
            DataTransfer::In(room) => (SG_DXFER_FROM_DEV, room.as_mut_ptr(), room.len()),
        };
        let mut sense = [0_u8; SENSE_BYTES_MAX];
        let (Ok(cmd_len), Ok(dxfer_len)) = (u8::try_from(command.len()), u32::try_from(length))
        else {
            return Err(self.refused("the command or its data is too long".to_owned()));
        };
        let mut header = SgIoHeader {
            interface_id: i32::from(b'S'),
            dxfer_direction: direction,
            cmd_len,
            mx_sb_len: SENSE_BYTES_MAX as u8,
            iovec_count: 0,
            dxfer_len,
            dxferp: buffer.cast(),
            cmdp: command.as_ptr(),
            sbp: sense.as_mut_ptr(),
            timeout: self.timeout_ms,
            flags: 0,
            pack_id: 0,
            usr_ptr: ptr::null_mut(),
            status: 0,
            masked_status: 0,
            msg_status: 0,
            sb_len_wr: 0,
            host_status: 0,
            driver_status: 0,
            resid: 0,
            duration: 0,
            info: 0,
        };
        let sent = self.clock.now();
        // SAFETY: the command, the sense data and the data are slices that outlive the call, with
        // the lengths in the header, and `room` may be written.
        #[allow(unsafe_code)]
        let result = unsafe { sg_io(&self.file, &mut header) };
        let completed = self.clock.now();
        result.map_err(|errno| self.failed(errno))?;
        self.check_delivery(&header)?;
        let status = match header.status & 0x3e {
            0x00 => Status::Good,
            0x02 => Status::CheckCondition,
            0x08 => Status::Busy,
            0x18 => Status::ReservationConflict,
            0x28 => Status::TaskSetFull,
            other => Status::Other(other),
        };
        let sense = match status {
            Status::CheckCondition => {
                sense[..usize::from(header.sb_len_wr).min(SENSE_BYTES_MAX)].to_vec()
            }
            _ => Vec::new(),
        };
        let left = usize::try_from(header.resid).unwrap_or(0);
        Ok(Reply {
            status,
            received: match direction {
                SG_DXFER_FROM_DEV => length.saturating_sub(left),
                _ => 0,
            },
            sense,
            timing: Timing { sent, completed },
        })
    }
}

fn open(path: &Path, access: OFlags) -> Result<OwnedFd, Errno> {
    // Without NONBLOCK, opening a generic node waits while another process holds it exclusively,
    // and opening a removable disk without media fails.
    rustix::fs::open(
        path,
        access | OFlags::CLOEXEC | OFlags::NONBLOCK,
        Mode::empty(),
    )
}

const SG_DXFER_NONE: i32 = -1;
const SG_DXFER_TO_DEV: i32 = -2;
const SG_DXFER_FROM_DEV: i32 = -3;
const SG_GET_VERSION_NUM: Opcode = 0x2282;
const SG_IO: Opcode = 0x2285;

/// The kernel's `struct sg_io_hdr`.
#[repr(C)]
struct SgIoHeader {
    interface_id: i32,
    dxfer_direction: i32,
    cmd_len: u8,
    mx_sb_len: u8,
    iovec_count: u16,
    dxfer_len: u32,
    dxferp: *mut c_void,
    cmdp: *const u8,
    sbp: *mut u8,
    timeout: u32,
    flags: u32,
    pack_id: i32,
    usr_ptr: *mut c_void,
    status: u8,
    masked_status: u8,
    msg_status: u8,
    sb_len_wr: u8,
    host_status: u16,
    driver_status: u16,
    resid: i32,
    duration: u32,
    info: u32,
}

#[cfg(target_pointer_width = "64")]
const _: () = assert!(size_of::<SgIoHeader>() == 88);
#[cfg(target_pointer_width = "32")]
const _: () = assert!(size_of::<SgIoHeader>() == 64);

/// Returns the version of the interface; 30,000 and above support SG_IO.
#[allow(unsafe_code)]
fn version(file: &OwnedFd) -> Result<i32, Errno> {
    // SAFETY: SG_GET_VERSION_NUM stores one C int and reads nothing.
    unsafe { rustix::ioctl::ioctl(file, Getter::<SG_GET_VERSION_NUM, i32>::new()) }
}

/// Sends a command.
///
/// # Safety
/// The pointers in the header must be valid: `cmdp` for reading `cmd_len` bytes, `sbp` for writing
/// `mx_sb_len` bytes, and `dxferp` for reading or writing `dxfer_len` bytes, depending on
/// `dxfer_direction`.
#[allow(unsafe_code)]
unsafe fn sg_io(file: &OwnedFd, header: &mut SgIoHeader) -> Result<(), Errno> {
    // SAFETY: SG_IO takes this structure, uses the pointers as the caller guarantees, and keeps
    // none of them. If a signal interrupts the call, the command continues. Without
    // SG_FLAG_DIRECT_IO, its data then goes only to the kernel's own memory.
    unsafe { rustix::ioctl::ioctl(file, Updater::<SG_IO, SgIoHeader>::new(header)) }
}

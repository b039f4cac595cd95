//! Commands to the driver, through `/dev/ublk-control`.
//!
//! A command is an io_uring operation (`IORING_OP_URING_CMD`) with 80 bytes of command data, 32 of
//! which the driver uses. The kernel's `Documentation/block/ublk.rst` describes the commands.
//! Recovery is left out: a device ends with its server.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::os::fd::AsRawFd;
use std::path::{Path, PathBuf};
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use io_uring::squeue::Entry128;
use io_uring::types::Fd;
use io_uring::{IoUring, opcode};
use rustix::io::Errno;
use zerocopy::IntoBytes;

use super::abi::{self, ControlCommand, DeviceInfo, Op, Parameters};
use super::error::UblkError;
use super::ring;

/// The node for commands.
const CONTROL: &str = "/dev/ublk-control";
/// The driver's directory, which exists while it is loaded.
const DRIVER: &str = "/sys/module/ublk_drv";
/// The file that holds the node's device number as `major:minor`.
const CONTROL_NUMBER: &str = "/sys/class/misc/ublk-control/dev";

/// The maximum time that a deletion waits for the device's last user.
const DELETE_TIMEOUT: Duration = Duration::from_secs(2);

/// The mark of our devices in `ublksrv_flags`, which the driver stores without interpretation.
const MARK: u64 = u64::from_be_bytes(*b"traxtent");

/// The identification of a device in commands.
#[derive(Clone, Copy, Debug)]
pub(super) struct Device {
    pub(super) number: u32,
    /// Whether commands must contain the path of its node. The driver then checks the user's
    /// permissions for that node.
    by_path: bool,
}

impl Device {
    /// Returns the path of the node for servers.
    pub(super) fn server_node(self) -> PathBuf {
        format!("/dev/ublkc{}", self.number).into()
    }

    /// Returns the path of the block device.
    pub(super) fn block_node(self) -> PathBuf {
        format!("/dev/ublkb{}", self.number).into()
    }
}

/// The driver's node for commands, with a ring to send them.
pub(super) struct Control {
    file: File,
    ring: IoUring<Entry128>,
}

impl Control {
    /// Opens the node.
    ///
    /// # Errors
    /// Returns an error if the driver is missing or too old, or if the user may not use it or
    /// io_uring.
    pub(super) fn open() -> Result<Control, UblkError> {
        let file = OpenOptions::new().read(true).write(true).open(CONTROL);
        let file = file.map_err(|error| control_error(&error))?;
        let ring = IoUring::<Entry128>::builder().build(4);
        let ring = ring.map_err(ring::error)?;
        let mut control = Control { file, ring };
        control.features().map_err(|_| UblkError::OldDriver)?;
        Ok(control)
    }

    /// Adds a device with one queue. If `number` is `None`, the driver chooses the number.
    ///
    /// # Errors
    /// Returns an error if the number is taken, if the user may not add devices, or if the driver
    /// refuses for another reason.
    pub(super) fn add(
        &mut self,
        number: Option<u32>,
        queue_depth: u16,
        max_io_buf_bytes: u32,
    ) -> Result<Device, UblkError> {
        let number_or_any = number.unwrap_or(abi::NO_DEVICE);
        let mut info = DeviceInfo {
            nr_hw_queues: 1,
            queue_depth,
            max_io_buf_bytes,
            dev_id: number_or_any,
            // Other servers see from this that the device is in use before it is started.
            ublksrv_pid: std::process::id().cast_signed(),
            flags: abi::UNPRIVILEGED,
            ublksrv_flags: MARK,
            ..DeviceInfo::default()
        };
        let new = Device {
            number: number_or_any,
            by_path: false,
        };
        match self.send(abi::ADD_DEV, new, info.as_mut_bytes(), 0) {
            Ok(()) => Ok(Device {
                number: info.dev_id,
                by_path: info.flags & abi::UNPRIVILEGED != 0,
            }),
            Err(Errno::EXIST) => Err(UblkError::NumberTaken {
                number: number_or_any,
            }),
            Err(Errno::PERM) => Err(UblkError::Denied {
                path: CONTROL.into(),
            }),
            Err(errno) => Err(UblkError::Command {
                what: "add it",
                number: number.map_or_else(|| "(new)".to_owned(), |number| number.to_string()),
                errno,
            }),
        }
    }

    /// Sets the properties that the block device reports.
    ///
    /// # Errors
    /// Returns an error if the driver refuses a parameter.
    pub(super) fn set_parameters(
        &mut self,
        device: Device,
        mut parameters: Parameters,
    ) -> Result<(), UblkError> {
        let payload = parameters.as_mut_bytes();
        self.send(abi::SET_PARAMS, device, payload, 0)
            .map_err(|errno| failed("set its parameters", device, errno))
    }

    /// Makes the block device appear. The device's queue must have announced all its tags.
    ///
    /// # Errors
    /// Returns an error if the driver refuses to start the device.
    pub(super) fn start(&mut self, device: Device) -> Result<(), UblkError> {
        let process = u64::from(std::process::id());
        self.send(abi::START_DEV, device, &mut [], process)
            .map_err(|errno| failed("start it", device, errno))
    }

    /// Makes the block device disappear. The kernel first writes back cached data, so the device's
    /// queue must still be running.
    ///
    /// # Errors
    /// Returns an error if the driver refuses; none if the device no longer exists.
    pub(super) fn stop(&mut self, device: Device) -> Result<(), UblkError> {
        self.send(abi::STOP_DEV, device, &mut [], 0)
            .or_else(gone_is_fine)
            .map_err(|errno| failed("stop it", device, errno))
    }

    /// Deletes a device. Its number becomes free when its last user has closed it. If the driver
    /// cannot delete it without waiting for that, this waits at most [`DELETE_TIMEOUT`].
    ///
    /// # Errors
    /// Returns an error if the driver refuses; none if the device no longer exists.
    pub(super) fn delete(&mut self, device: Device) -> Result<(), UblkError> {
        // Drivers before Linux 6.9 refuse this command. Linux 6.12 refuses it for devices of
        // ordinary users.
        self.send(abi::DEL_DEV_ASYNC, device, &mut [], 0)
            .or_else(|_| delete_and_wait(device))
            .or_else(gone_is_fine)
            .map_err(|errno| failed("delete it", device, errno))
    }

    /// Deletes the devices that killed servers of this program have left. Returns their numbers.
    pub(super) fn delete_leftovers(&mut self) -> Vec<u32> {
        let all = numbers().into_iter();
        all.filter(|number| self.delete_leftover(*number)).collect()
    }

    /// Deletes a device if a killed server of this program has left it. Returns whether it was
    /// deleted.
    pub(super) fn delete_leftover(&mut self, number: u32) -> bool {
        // A device whose state this user may not read is left alone.
        self.info(number)
            .is_ok_and(|(device, info)| is_leftover(&info) && self.delete(device).is_ok())
    }

    /// Returns the driver's features. Drivers before Linux 6.5 do not support this command.
    fn features(&mut self) -> Result<u64, Errno> {
        let mut features = 0u64;
        let any = Device {
            number: abi::NO_DEVICE,
            by_path: false,
        };
        self.send(abi::GET_FEATURES, any, features.as_mut_bytes(), 0)?;
        Ok(features)
    }

    fn info(&mut self, number: u32) -> Result<(Device, DeviceInfo), Errno> {
        let mut info = DeviceInfo::default();
        let mut device = Device {
            number,
            // This command always needs the path.
            by_path: true,
        };
        self.send(abi::GET_DEV_INFO2, device, info.as_mut_bytes(), 0)?;
        device.by_path = info.flags & abi::UNPRIVILEGED != 0;
        Ok((device, info))
    }

    /// Sends a command and waits for its result. The driver reads the payload, or writes it.
    fn send(&mut self, op: Op, device: Device, payload: &mut [u8], data: u64) -> Result<(), Errno> {
        let mut path = Vec::new();
        if device.by_path {
            path = device.server_node().into_os_string().into_encoded_bytes();
            path.push(0);
        }
        let dev_path_len = path.len() as u16;
        // The path comes first, then the payload.
        let mut both = path;
        both.extend_from_slice(payload);
        let command = ControlCommand {
            dev_id: device.number,
            queue_id: abi::NO_QUEUE,
            len: both.len() as u16,
            addr: both.as_mut_ptr() as u64,
            data,
            dev_path_len,
            ..ControlCommand::default()
        };
        let result = self.carry_out(op, &command);
        payload.copy_from_slice(&both[usize::from(dev_path_len)..]);
        result
    }

    /// Carries out one command. The memory to which it refers must not be in use elsewhere.
    #[allow(unsafe_code)]
    fn carry_out(&mut self, op: Op, command: &ControlCommand) -> Result<(), Errno> {
        let mut bytes = [0; 80];
        bytes[..size_of::<ControlCommand>()].copy_from_slice(command.as_bytes());
        let entry = opcode::UringCmd80::new(Fd(self.file.as_raw_fd()), op)
            .cmd(bytes)
            .build();
        // SAFETY: `self.file` is open. `send` keeps the memory to which the command refers until
        // the command has completed, and this function does not return earlier.
        unsafe { self.ring.submission().push(&entry) }.expect("no other command is outstanding");
        loop {
            ring::submit_and_wait(&self.ring.submitter(), 1);
            if let Some(completion) = self.ring.completion().next() {
                return match completion.result() {
                    result if result < 0 => Err(Errno::from_raw_os_error(-result)),
                    _ => Ok(()),
                };
            }
        }
    }
}

/// Deletes a device with the command that waits for its last user. After [`DELETE_TIMEOUT`], the
/// command is left running: the driver removes the device when the last user closes it.
fn delete_and_wait(device: Device) -> Result<(), Errno> {
    let mut control = Control::open().map_err(|_| Errno::ACCESS)?;
    let (sender, deleted) = mpsc::channel();
    let delete = move || {
        let _ = sender.send(control.send(abi::DEL_DEV, device, &mut [], 0));
    };
    let thread = thread::Builder::new().name("ublk delete".to_owned());
    thread.spawn(delete).map_err(|_| Errno::AGAIN)?;
    deleted.recv_timeout(DELETE_TIMEOUT).unwrap_or_else(|_| {
        let number = device.number;
        tracing::warn!(
            "ublk device {number} is in use; it will be removed when its last user closes it"
        );
        Ok(())
    })
}

/// Returns the numbers of all devices of this machine.
fn numbers() -> Vec<u32> {
    let nodes = fs::read_dir("/sys/class/ublk-char").into_iter().flatten();
    let names = nodes.flatten().map(|node| node.file_name());
    let numbers = names.filter_map(|name| name.to_str()?.strip_prefix("ublkc")?.parse().ok());
    let mut numbers: Vec<u32> = numbers.collect();
    numbers.sort_unstable();
    numbers
}

/// Returns whether a device has our mark but no server. The driver sets the process of a device to
/// −1 after its server has ended.
fn is_leftover(info: &DeviceInfo) -> bool {
    let lives = u32::try_from(info.ublksrv_pid)
        .is_ok_and(|process| Path::new("/proc").join(process.to_string()).exists());
    info.ublksrv_flags == MARK && !lives
}

/// Ignores the error that the device is already gone.
fn gone_is_fine(errno: Errno) -> Result<(), Errno> {
    if errno == Errno::NODEV {
        Ok(())
    } else {
        Err(errno)
    }
}

fn failed(what: &'static str, device: Device, errno: Errno) -> UblkError {
    UblkError::Command {
        what,
        number: device.number.to_string(),
        errno,
    }
}

fn control_error(error: &io::Error) -> UblkError {
    match error.kind() {
        io::ErrorKind::PermissionDenied => UblkError::Denied {
            path: CONTROL.into(),
        },
        // The node can also exist while the driver is not loaded: opening it then loads the driver.
        _ if Path::new(DRIVER).exists() => {
            let number = fs::read_to_string(CONTROL_NUMBER).unwrap_or_default();
            let minor = number.trim().rsplit(':').next().unwrap_or_default();
            UblkError::NoNode {
                minor: if minor.is_empty() { "MINOR" } else { minor }.to_owned(),
            }
        }
        _ => UblkError::NoDriver,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is a device a leftover only if it has our mark and no running server?
    #[test]
    fn leftovers_are_ours_and_dead() {
        let ours = DeviceInfo {
            ublksrv_flags: MARK,
            ublksrv_pid: -1,
            ..DeviceInfo::default()
        };
        assert!(is_leftover(&ours));
        let never_lived = i32::MAX;
        assert!(is_leftover(&DeviceInfo {
            ublksrv_pid: never_lived,
            ..ours
        }));
        assert!(!is_leftover(&DeviceInfo {
            ublksrv_pid: std::process::id().cast_signed(),
            ..ours
        }));
        assert!(!is_leftover(&DeviceInfo {
            ublksrv_flags: 0,
            ..ours
        }));
    }

    /// If the driver is missing, does the error say how to load it?
    #[test]
    fn a_missing_driver_is_named() {
        if Path::new(DRIVER).exists() || Path::new(CONTROL).exists() {
            testkit::skip!("this kernel has ublk");
        }
        let error = Control::open().err().expect("there is no driver");
        assert!(matches!(error, UblkError::NoDriver), "{error}");
        assert!(error.to_string().contains("modprobe ublk_drv"));
    }
}

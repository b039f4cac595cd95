//! The front ends of served exports: always NBD, and others on request.

use std::fs;
use std::io::ErrorKind;
use std::net::{IpAddr, Ipv4Addr};
use std::path::{Path, PathBuf};

use traxtent_io::device::in_use;
use traxtent_server::fuse::{FuseError, Mount};
use traxtent_server::nbd::{Listener, NbdServer};
use traxtent_server::service::Export;
use traxtent_server::ublk::UblkDevice;

use super::address::Address;
use super::check_directory;
use super::environment::variables;
use crate::failure::{Failure, Result, warn};

/// The mode of a socket to which only its owner can connect.
const PRIVATE: u32 = 0o600;

/// The consequence of a file or device that a command has left in use.
const LEFT_IN_USE: &str =
    "let the command do so before it ends: programs that use it now get I/O errors";

/// The options of front ends.
#[derive(clap::Args, Debug)]
pub(crate) struct FrontEndArgs {
    /// Serve NBD on this port of the loopback address, instead of a socket; 0 for any free port
    #[arg(long, value_name = "NUMBER", conflicts_with = "socket")]
    port: Option<u16>,
    /// Serve NBD on this socket [default: one in a new directory]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Serve NBD on this address instead of loopback; anyone who can reach it can read and write
    #[arg(long, value_name = "ADDRESS", requires = "port")]
    listen: Option<IpAddr>,
    /// The socket's mode in octal digits, to let other users connect [default: 600]
    #[arg(long, value_name = "MODE", value_parser = mode, conflicts_with = "port")]
    socket_mode: Option<u32>,
    /// Also show the drive or volume as the file DIR/disk, by FUSE; with several drives, as
    /// DIR/NAME/disk
    #[arg(long, value_name = "DIR")]
    fuse: Option<PathBuf>,
    /// Attach the file of --fuse to a loop device (as root)
    #[arg(long, requires = "fuse")]
    device: bool,
    /// Create a block device /dev/ublkbN that shows all properties of the drive or volume (Linux
    /// 6.5 or later, with the module ublk_drv)
    #[arg(long)]
    ublk: bool,
}

/// Running front ends.
pub(crate) struct FrontEnds {
    nbd: NbdServer,
    address: Address,
    warning: Option<String>,
    /// One for each export, if files were requested.
    mounts: Vec<Mounted>,
    block_devices: Vec<UblkDevice>,
}

/// An export as a file, with the loop device on it if there is one.
struct Mounted {
    mount: Mount,
    device: Option<PathBuf>,
    /// Removed after the file is unmounted: fields are dropped in order.
    _directory: Option<OwnDirectory>,
}

/// A directory that this server created, or that a killed server left behind. It is removed on
/// drop, unless it has content.
struct OwnDirectory(PathBuf);

impl OwnDirectory {
    /// Creates the directory, and those above it. Returns `None` if it already existed, unless a
    /// killed server left it behind.
    fn create(path: &Path) -> std::io::Result<Option<OwnDirectory>> {
        if let Some(above) = path.parent() {
            fs::create_dir_all(above)?;
        }
        match fs::create_dir(path) {
            Ok(()) => Ok(Some(OwnDirectory(path.to_owned()))),
            Err(error) if error.kind() == ErrorKind::AlreadyExists => {
                // If metadata cannot be read, a killed server left a mount there, which
                // `Mount::start` removes.
                let is_left = fs::metadata(path).is_err();
                Ok(is_left.then(|| OwnDirectory(path.to_owned())))
            }
            Err(error) => Err(error),
        }
    }
}

impl Drop for OwnDirectory {
    fn drop(&mut self) {
        // A directory with content stays.
        let _ = fs::remove_dir(&self.0);
    }
}

impl FrontEndArgs {
    /// Returns the path given by `--socket`.
    pub(crate) fn named_socket(&self) -> Option<&Path> {
        self.socket.as_deref()
    }

    /// Creates the socket for NBD clients. Without a path, it is created in `folder`.
    pub(super) fn listen(&self, folder: &Path) -> Result<(Listener, Address)> {
        if let Some(port) = self.port {
            let ip = self.listen.unwrap_or(Ipv4Addr::LOCALHOST.into());
            let listener = Listener::tcp(ip, port)
                .map_err(|error| Failure::Io(format!("port {port} of {ip}: {}", reason(&error))))?;
            let port = listener.port().unwrap_or(port);
            return Ok((listener, Address::Port(ip, port)));
        }
        let path = self.socket.clone().unwrap_or(folder.join("socket"));
        check_directory(&path)?;
        let path = std::path::absolute(&path).map_err(|error| Failure::file(&path, &error))?;
        let listener = Listener::unix(&path, self.socket_mode.unwrap_or(PRIVATE));
        let listener = listener.map_err(|error| match error.kind() {
            ErrorKind::AddrInUse => Failure::Io(format!(
                "{}: the path exists; remove it if nothing uses it, or name another with --socket",
                path.display()
            )),
            _ => Failure::file(&path, &error),
        })?;
        Ok((listener, Address::Socket(path)))
    }

    /// Checks the directory for the file of a single export, before services start and replace
    /// older outputs.
    pub(super) fn check(&self, exports: &[Export]) -> Result<()> {
        match (&self.fuse, exports) {
            (Some(directory), [_]) => Mount::prepare(directory).map(drop).map_err(io_failure),
            _ => Ok(()),
        }
    }

    /// Starts the front ends of exports whose services have been started.
    pub(super) fn start(
        &self,
        exports: &[Export],
        (listener, address): (Listener, Address),
        outstanding: usize,
    ) -> Result<FrontEnds> {
        let mounts = match &self.fuse {
            None => Vec::new(),
            Some(directory) => exports
                .iter()
                .map(|export| self.mount(export, exports.len(), directory))
                .collect::<Result<_>>()?,
        };
        let block_devices = match self.ublk {
            false => Vec::new(),
            true => exports
                .iter()
                .map(|export| UblkDevice::start(export, None).map_err(io_failure))
                .collect::<Result<_>>()?,
        };
        let nbd = NbdServer::start(exports.to_vec(), listener, outstanding)
            .map_err(|error| Failure::Io(format!("NBD: {error}")))?;
        Ok(FrontEnds {
            nbd,
            address,
            warning: self.exposure(),
            mounts,
            block_devices,
        })
    }

    /// Shows an export as a file below `directory`. `count` is the number of exports.
    fn mount(&self, export: &Export, count: usize, directory: &Path) -> Result<Mounted> {
        let own = directory.join(&export.name);
        let (directory, created) = if count == 1 {
            (directory, None)
        } else {
            let created = OwnDirectory::create(&own);
            (&*own, created.map_err(|error| Failure::file(&own, &error))?)
        };
        let mut mount = Mount::start(export, directory).map_err(io_failure)?;
        let device = if self.device {
            Some(mount.attach_loop().map_err(io_failure)?.to_owned())
        } else {
            None
        };
        Ok(Mounted {
            mount,
            device,
            _directory: created,
        })
    }

    /// Returns a warning if `--listen` or `--socket-mode` lets other users connect.
    fn exposure(&self) -> Option<String> {
        match (self.listen, self.socket_mode) {
            (Some(ip), _) if !ip.is_loopback() => Some(format!(
                "anyone who can reach {ip} can read and write the served data"
            )),
            (_, Some(mode)) if mode & 0o077 != 0 => Some(format!(
                "the socket's mode is {mode:o}: other users can read and write the served data"
            )),
            _ => None,
        }
    }
}

impl FrontEnds {
    /// Returns the address for NBD clients.
    pub(super) fn address(&self) -> &Address {
        &self.address
    }

    /// Returns a warning if `--listen` or `--socket-mode` lets other users connect.
    pub(super) fn warning(&self) -> Option<&str> {
        self.warning.as_deref()
    }

    /// Returns the environment variables for a command.
    pub(super) fn variables(&self, exports: &[Export]) -> Vec<(String, String)> {
        let uris = exports.iter().enumerate().map(|(index, export)| {
            // The first export is the default one.
            let name = if index == 0 { "" } else { &export.name };
            (&*export.name, Some(self.address.uri(name)))
        });
        let mut all = variables("uri", uris);
        let named = |paths: &[Option<PathBuf>]| {
            let text = |path: &PathBuf| path.display().to_string();
            let values = exports.iter().zip(paths);
            let values: Vec<_> = values
                .map(|(export, path)| (&*export.name, path.as_ref().map(text)))
                .collect();
            values
        };
        for (what, paths) in [
            ("disk", self.files()),
            ("device", self.loop_devices()),
            ("ublk", self.block_devices()),
        ] {
            all.extend(variables(what, named(&paths).into_iter()));
        }
        all.push(match &self.address {
            Address::Socket(path) => ("socket".to_owned(), path.display().to_string()),
            Address::Port(_, port) => ("port".to_owned(), port.to_string()),
        });
        all
    }

    /// Returns the file of each export, if there are files.
    pub(super) fn files(&self) -> Vec<Option<PathBuf>> {
        let mounts = self.mounts.iter();
        mounts.map(|mounted| Some(mounted.mount.file())).collect()
    }

    /// Returns the loop device of each export, if there are files.
    pub(super) fn loop_devices(&self) -> Vec<Option<PathBuf>> {
        let mounts = self.mounts.iter();
        mounts.map(|mounted| mounted.device.clone()).collect()
    }

    /// Returns the ublk device of each export, if there are any.
    pub(super) fn block_devices(&self) -> Vec<Option<PathBuf>> {
        let devices = self.block_devices.iter();
        devices
            .map(|device| Some(device.path().to_owned()))
            .collect()
    }

    /// Unmounts the files and detaches their loop devices. On an error, such as a file in use, the
    /// remaining files are still served.
    pub(super) fn unmount(&mut self) -> Result<(), FuseError> {
        while let Some(last) = self.mounts.last_mut() {
            last.mount.stop()?;
            self.mounts.pop();
        }
        Ok(())
    }

    /// Returns all loop devices on the files, including those that other programs have attached.
    pub(super) fn all_loop_devices(&self) -> Vec<PathBuf> {
        let mounts = self.mounts.iter();
        mounts
            .flat_map(|mounted| mounted.mount.loop_devices())
            .collect()
    }

    /// Stops all front ends. Outstanding requests are completed. Programs that still use a
    /// file or a block device get I/O errors.
    ///
    /// # Errors
    /// Returns the errors of front ends that cannot be stopped, one in each line. If a command has
    /// run, it should have left nothing in use: each file or device that is, is an error too;
    /// otherwise a warning is printed for a file or loop device.
    pub(super) fn stop(&mut self, has_run_command: bool) -> Result<()> {
        let mut errors = Vec::new();
        while let Some(mut last) = self.mounts.pop() {
            let Err(error) = last.mount.stop() else {
                continue;
            };
            match error.in_use() {
                Some(path) if !has_run_command => warn(format!(
                    "{}: it is still in use; programs that use it now get I/O errors",
                    path.display()
                )),
                Some(_) => errors.push(format!("{error}; {LEFT_IN_USE}")),
                None => errors.push(error.to_string()),
            }
        }
        for device in self.block_devices.drain(..) {
            if has_run_command && let Some(user) = in_use(device.path()) {
                errors.push(format!("{user}; {LEFT_IN_USE}"));
            }
            errors.extend(device.stop().err().map(|error| error.to_string()));
        }
        self.nbd.stop();
        if errors.is_empty() {
            return Ok(());
        }
        Err(Failure::Io(errors.join("\n")))
    }
}

fn io_failure(error: impl std::fmt::Display) -> Failure {
    Failure::Io(error.to_string())
}

fn reason(error: &std::io::Error) -> String {
    match error.kind() {
        ErrorKind::AddrInUse => "in use by another program; choose another with --port".to_owned(),
        ErrorKind::PermissionDenied => "ports below 1024 need root".to_owned(),
        _ => error.to_string(),
    }
}

fn mode(text: &str) -> std::result::Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "expected at most three octal digits, such as 660".to_owned())
}

//! The targets of a check: paths of images and block devices, or every drive of the machine.

use std::fs;
use std::io;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::rc::Rc;

use traxtent_units::system_message;

use crate::drive::StatedDrive;
use crate::examine::{DeviceNodes, StackRoot, examine};
use crate::source::{FileSource, Source};
use crate::stack::Stack;
use crate::sysfs::{Device, Machine};

/// The directories in which the machine lists its devices. Tests use directories of their own.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HostPaths {
    /// `/sys`.
    pub sys: PathBuf,
    /// `/dev`.
    pub dev: PathBuf,
}

impl Default for HostPaths {
    fn default() -> HostPaths {
        HostPaths {
            sys: "/sys".into(),
            dev: "/dev".into(),
        }
    }
}

/// The reasons why a target cannot be examined.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TargetError {
    /// The target, or the kernel's list of devices, does not exist or cannot be accessed.
    #[error("{}: {error}", path.display())]
    File {
        /// The path of the target, or of the directory with the list.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// The target is neither a regular file nor a block device.
    #[error("{}: not an image file or a block device", path.display())]
    Kind {
        /// The path of the target.
        path: PathBuf,
    },
    /// The kernel lists no block device with the target's name.
    #[error("{}: {} lists no block device {name}", path.display(), sys.display())]
    Device {
        /// The path of the target.
        path: PathBuf,
        /// The directory in which the kernel would list it.
        sys: PathBuf,
        /// The name of the device.
        name: String,
    },
}

/// Examines images and block devices; if none are given, every drive of the machine.
///
/// A block device is examined with all layers that it lies on and all layers that lie on it.
///
/// # Errors
/// Returns an error if a target does not exist, if it is neither an image nor a block device, if
/// the kernel does not list the device, or if the list of devices cannot be read. A target that
/// cannot be read becomes a layer that records the reason.
pub fn examine_targets(
    targets: &[PathBuf],
    stated: &StatedDrive,
    host: &HostPaths,
) -> Result<Stack, TargetError> {
    let fail = |path: &Path| {
        let path = path.to_owned();
        move |error| TargetError::File { path, error }
    };
    let mut images = Vec::new();
    let mut devices = Vec::new();
    for path in targets {
        let real = fs::canonicalize(path).map_err(fail(path))?;
        let kind = fs::metadata(&real).map_err(fail(path))?.file_type();
        let name = real.strip_prefix(&host.dev).ok();
        let name = name.map(|name| name.to_string_lossy().replace('/', "!"));
        // The file type decides: below /dev there are also regular files, such as those in
        // /dev/shm. In a test, a device is a regular file that the test's /sys lists.
        let is_known = |name: &String| host.sys.join("class/block").join(name).exists();
        match name.filter(|name| kind.is_block_device() || is_known(name)) {
            Some(name) => devices.push((path, name)),
            None if kind.is_file() => images.push(path),
            // A device node outside /dev can be found by its name only.
            None if kind.is_block_device() => {
                let name = real
                    .file_name()
                    .unwrap_or_default()
                    .to_string_lossy()
                    .into_owned();
                devices.push((path, name));
            }
            None => return Err(TargetError::Kind { path: path.clone() }),
        }
    }
    let mut roots: Vec<StackRoot> = images.into_iter().map(|path| image(path, stated)).collect();
    if devices.is_empty() && !targets.is_empty() {
        return Ok(examine(roots, None));
    }
    let machine = Machine::read(&host.sys).map_err(fail(&host.sys))?;
    let nodes = DeviceNodes {
        machine: &machine,
        folder: host.dev.clone(),
    };
    let mut drives = Vec::new();
    for (path, name) in &devices {
        let below = machine.drives_below(name);
        if below.is_empty() {
            return Err(TargetError::Device {
                path: path.to_path_buf(),
                sys: host.sys.clone(),
                name: name.clone(),
            });
        }
        drives.extend(below);
    }
    if targets.is_empty() {
        drives.extend(machine.drives().map(str::to_owned));
    }
    drives.sort();
    drives.dedup();
    // All members of an array or a group are examined, even if only one of them was given.
    let drives = machine.joined_with(drives);
    roots.extend(drives.iter().map(|name| drive(name, &nodes, stated)));
    let stack = examine(roots, Some(&nodes));
    if devices.is_empty() {
        return Ok(stack);
    }
    // If several paths lead to a drive, the layers above are found on the first path.
    let is_paths = |device: &Device| {
        let mapper = device.mapper.as_ref();
        mapper.is_some_and(|(_, uuid)| uuid.starts_with("mpath-"))
    };
    let wanted: Vec<String> = devices
        .iter()
        .flat_map(|(_, name)| {
            let mapped = machine.holders(name).filter(|(_, device)| is_paths(device));
            let mapped = mapped.map(|(name, _)| name.to_owned());
            std::iter::once(name.clone()).chain(mapped)
        })
        .map(|name| nodes.path(&name).to_string_lossy().into_owned())
        .collect();
    Ok(stack.connected(|layer| match &layer.node {
        Some(node) => wanted.contains(node),
        None => layer.on.is_empty(),
    }))
}

fn image(path: &Path, stated: &StatedDrive) -> StackRoot {
    let source = open(path);
    StackRoot {
        name: path.to_string_lossy().into_owned(),
        node: None,
        disk: stated.image(),
        is_sector_stated: stated.logical_bytes.is_some(),
        limits: None,
        bytes: source.as_ref().map_or(0, |source| source.bytes()),
        source,
    }
}

fn drive(name: &str, nodes: &DeviceNodes<'_>, stated: &StatedDrive) -> StackRoot {
    let device = &nodes.machine.devices[name];
    let path = nodes.path(name);
    StackRoot {
        name: name.to_owned(),
        node: Some(path.to_string_lossy().into_owned()),
        disk: stated.device(device),
        is_sector_stated: stated.logical_bytes.is_some(),
        limits: Some(device.limits.clone()),
        bytes: device.bytes,
        source: open(&path),
    }
}

fn open(path: &Path) -> Result<Rc<dyn Source>, String> {
    match FileSource::open(path) {
        Ok(source) => Ok(Rc::new(source)),
        Err(error) => Err(system_message(&error)),
    }
}

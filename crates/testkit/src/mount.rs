//! An ext4 file system in an image file, mounted through a loop device.

use std::fs::{self, File};
use std::path::{Path, PathBuf};
use std::process::Command;

/// A mounted ext4 file system. It is unmounted, and its loop device detached, when it is dropped.
#[derive(Debug)]
pub struct MountedExt4 {
    device: Option<String>,
    folder: PathBuf,
    is_mounted: bool,
}

impl MountedExt4 {
    /// Creates a file system of `mib` MiB with blocks of `block_bytes` bytes in the file `ext4.img`
    /// of the directory `home`, and mounts it on the subdirectory `mounted` of `home`.
    ///
    /// # Errors
    /// Returns the reason if that is not possible here. It needs root, loop devices, mkfs.ext4,
    /// losetup and mount.
    pub fn new(home: &Path, mib: u64, block_bytes: u64) -> Result<MountedExt4, String> {
        let (image, folder) = (home.join("ext4.img"), home.join("mounted"));
        let file = File::create(&image).map_err(|error| error.to_string())?;
        file.set_len(mib << 20).map_err(|error| error.to_string())?;
        fs::create_dir_all(&folder).map_err(|error| error.to_string())?;
        let block = block_bytes.to_string();
        run("mkfs.ext4", &["-q", "-F", "-b", &block, path(&image)])?;
        let device = run("losetup", &["--find", "--show", path(&image)])?;
        let device = device.trim().to_owned();
        let mut mounted = MountedExt4 {
            device: Some(device.clone()),
            folder,
            is_mounted: false,
        };
        run("mount", &[&device, path(&mounted.folder)])?;
        mounted.is_mounted = true;
        Ok(mounted)
    }

    /// Returns the directory on which it is mounted.
    pub fn folder(&self) -> &Path {
        &self.folder
    }

    /// Unmounts it, and detaches its loop device.
    ///
    /// # Errors
    /// Returns the reason if it cannot be unmounted, for example because it is in use.
    pub fn unmount(mut self) -> Result<(), String> {
        run("umount", &[path(&self.folder)])?;
        self.is_mounted = false;
        Ok(())
    }
}

impl Drop for MountedExt4 {
    fn drop(&mut self) {
        if self.is_mounted {
            // Unmounting fails if a failed test still uses the file system.
            let _ = run("umount", &[path(&self.folder)]);
        }
        if let Some(device) = self.device.take() {
            let _ = run("losetup", &["--detach", &device]);
        }
    }
}

fn path(path: &Path) -> &str {
    path.to_str().expect("paths of tests are UTF-8")
}

fn run(program: &str, arguments: &[&str]) -> Result<String, String> {
    let program = crate::tool(program).ok_or_else(|| format!("{program} is not installed"))?;
    let output = Command::new(&program).args(arguments).output();
    let output = output.map_err(|error| error.to_string())?;
    if output.status.success() {
        Ok(String::from_utf8_lossy(&output.stdout).into_owned())
    } else {
        let why = String::from_utf8_lossy(&output.stderr);
        Err(format!("{}: {}", program.display(), why.trim()))
    }
}

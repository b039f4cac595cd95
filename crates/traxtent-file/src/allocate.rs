//! Making a new file on whole tracks.

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::fd::AsRawFd;
use std::path::Path;

use rustix::fs::{AtFlags, CWD, FallocateFlags, Mode, OFlags, fallocate, linkat};
use traxtent_layout::Partition;

use crate::plan::FilePlan;
use crate::pool::nameless;
use crate::realign::{Mover, RealignOptions, RealignReport, folder_of, unsuitable_system};
use crate::{FileError, FileSystem, file_extents};

/// The permissions of a new file, before the kernel applies the process's umask.
const NEW_FILE_MODE: Mode = Mode::from_raw_mode(0o666);

/// Creates a file of `bytes` zeros whose space is allocated along tracks, as far as the free space
/// permits. The file gets its name only once it is complete.
///
/// `progress` is as for [`realign`](crate::realign()). If it ends the work, no file is created.
/// Returns the work done, or `None` if `progress` ended it.
///
/// # Errors
/// Returns an error if the file exists, if the file system cannot exchange blocks safely or has not
/// enough free space, or if a system call fails. No file is created then, unless the last step
/// fails: writing the directory to the device.
pub fn allocate(
    path: &Path,
    bytes: u64,
    system: &FileSystem,
    partition: &Partition,
    options: &RealignOptions,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Option<RealignReport>, FileError> {
    let failed = |what: &'static str| {
        move |error: io::Error| FileError::System {
            path: path.to_owned(),
            what,
            error,
        }
    };
    let unsuitable = |why: String| FileError::Unsuitable {
        path: path.to_owned(),
        why,
    };
    if let Some(why) = unsuitable_system(system).map_err(failed("examine its file system"))? {
        return Err(unsuitable(why));
    }
    if std::fs::symlink_metadata(path).is_ok() {
        let why = "exists already; `traxtent file realign` moves existing files";
        return Err(unsuitable(why.to_owned()));
    }
    let folder_path = folder_of(path);
    let flags = OFlags::DIRECTORY | OFlags::RDONLY | OFlags::CLOEXEC;
    let folder = rustix::fs::open(folder_path, flags, Mode::empty())
        .map_err(|error| failed("open its directory")(error.into()))?;
    let folder = File::from(folder);
    let file = nameless(&folder, NEW_FILE_MODE).map_err(failed("create"))?;
    fallocate(&file, FallocateFlags::empty(), 0, bytes)
        .map_err(|error| failed("allocate its space")(error.into()))?;
    let extents = file_extents(&file).map_err(failed("find its blocks"))?;
    let mut mover = Mover::new(&file, folder_path, system, partition, options)
        .map_err(failed("use its directory"))?;
    let mut is_ended = false;
    let mut watch = |moved, left| {
        let flow = progress(moved, left);
        is_ended |= flow.is_break();
        flow
    };
    let plan = FilePlan::new(&extents, partition, system.block_bytes);
    mover.run(plan, &mut watch).map_err(failed("move"))?;
    if is_ended {
        return Ok(None);
    }
    file.sync_all().map_err(failed("write"))?;
    let open = format!("/proc/self/fd/{}", file.as_raw_fd());
    linkat(CWD, open, CWD, path, AtFlags::SYMLINK_FOLLOW)
        .map_err(|error| failed("create")(error.into()))?;
    folder.sync_all().map_err(failed("write its directory"))?;
    Ok(Some(mover.finish()))
}

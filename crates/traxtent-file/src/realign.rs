//! Moving a file of ext4 onto whole tracks while it is in use (paper T, section 3.2: off-line and
//! on-line reorganization).

use std::fs::File;
use std::io;
use std::ops::ControlFlow;
use std::os::unix::fs::{FileExt, FileTypeExt, MetadataExt};
use std::path::Path;

use rustix::fs::{Advice, Mode, OFlags, fadvise, ioctl_getflags, syncfs};
use rustix::io::Errno;
use traxtent_io::ext4::exchange;
use traxtent_layout::Partition;
use traxtent_units::{Blocks, system_message};

use crate::plan::{BlockMove, FilePlan, Step};
use crate::pool::Pool;
use crate::supply::Source;
use crate::{FileError, FileSystem, file_extents};

/// The settings of a realignment.
#[derive(Clone, Debug)]
pub struct RealignOptions {
    /// The largest number of additional bytes that may be allocated at a time.
    pub extra_bytes_max: u64,
}

impl Default for RealignOptions {
    /// One GiB of additional space.
    fn default() -> RealignOptions {
        RealignOptions {
            extra_bytes_max: 1 << 30,
        }
    }
}

/// The result of a realignment.
#[derive(Debug)]
pub enum Outcome {
    /// The file was moved, entirely or in part.
    Moved(RealignReport),
    /// Nothing in the file is worth moving, or it has no blocks of its own.
    Aligned,
    /// The file cannot be moved, for this reason.
    LeftAlone(String),
}

/// The work done on a file.
#[derive(Debug, Default)]
pub struct RealignReport {
    /// The number of bytes that were moved.
    pub moved_bytes: u64,
    /// The largest number of additional bytes that were allocated at a time.
    pub extra_bytes: u64,
    /// The reason why parts were not moved, if the plan could not be completed.
    pub ended_early: Option<String>,
}

/// The number of times that the pool is emptied and filled again without finding a whole track,
/// before the realignment ends. After the first time, blocks that the moves have left are
/// free, and the kernel can combine them with others.
const EMPTY_ROUNDS_MAX: u32 = 2;

/// The number of times that an exchange is tried again if the kernel cannot take a page from its
/// readers or writers.
const BUSY_RETRIES_MAX: u32 = 20;

/// The number of bytes that are moved between two commits.
const SYNC_BYTES: u64 = 64 << 20;

/// Moves a file onto whole tracks. It can be read and written meanwhile.
///
/// `partition` describes the file system's blocks and the tracks ([`FileSystem::partition`]).
/// `progress` receives the number of bytes that have moved since its last call, and the number of
/// bytes that may still move; it can end the work, which leaves the file partly moved.
///
/// # Errors
/// Returns an error if the file cannot be opened or a system call fails for reasons that concern
/// more than this file. The content of the file is the same in every case.
pub fn realign(
    path: &Path,
    system: &FileSystem,
    partition: &Partition,
    options: &RealignOptions,
    progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
) -> Result<Outcome, FileError> {
    let failed = |what: &'static str| {
        move |error: io::Error| FileError::System {
            path: path.to_owned(),
            what,
            error,
        }
    };
    let file = match open(path, system)? {
        Ok(file) => file,
        Err(why) => return Ok(Outcome::LeftAlone(why)),
    };
    file.sync_all().map_err(failed("write"))?;
    evict(&file, 0, 0);
    let mut extents = file_extents(&file).map_err(failed("find its blocks"))?;
    // The kernel exchanges nothing after the end of the file, where space can be preallocated.
    let length = file.metadata().map_err(failed("examine"))?.len();
    let length = length.next_multiple_of(system.block_bytes);
    extents.retain_mut(|extent| {
        extent.file.end = extent.file.end.min(length);
        extent.file.start < extent.file.end
    });
    let mut mover = Mover::new(&file, folder_of(path), system, partition, options)
        .map_err(failed("use its directory"))?;
    let plan = FilePlan::new(&extents, partition, system.block_bytes);
    if plan.blocks() == Blocks(0) {
        return Ok(Outcome::Aligned);
    }
    let wanted_bytes = plan.blocks().0 * system.block_bytes;
    if let Some(why) = extra_obstacle(wanted_bytes, partition, system.block_bytes, options) {
        return Ok(Outcome::LeftAlone(why));
    }
    mover.run(plan, progress).map_err(failed("move"))?;
    file.sync_all().map_err(failed("write"))?;
    let report = mover.finish();
    match &report.ended_early {
        Some(why) if report.moved_bytes == 0 => Ok(Outcome::LeftAlone(why.clone())),
        _ => Ok(Outcome::Moved(report)),
    }
}

/// Moves the blocks of an open file.
pub(crate) struct Mover<'a> {
    file: &'a File,
    block_bytes: u64,
    options: RealignOptions,
    pool: Pool,
    report: RealignReport,
    /// The number of bytes that have moved since the last commit.
    unsynced_bytes: u64,
}

/// Returns the directory of a file.
pub(crate) fn folder_of(path: &Path) -> &Path {
    match path.parent() {
        Some(folder) if folder != Path::new("") => folder,
        _ => Path::new("."),
    }
}

/// The reason why an exchange has stopped.
enum Stop {
    /// This file cannot be moved, or not any further.
    File(String),
    /// A system call failed.
    System(io::Error),
}

impl<'a> Mover<'a> {
    /// Prepares moves of a file to blocks that are allocated in the directory `folder`.
    pub(crate) fn new(
        file: &'a File,
        folder: &Path,
        system: &FileSystem,
        partition: &Partition,
        options: &RealignOptions,
    ) -> io::Result<Mover<'a>> {
        let block_bytes = system.block_bytes;
        let extra = options.extra_bytes_max;
        Ok(Mover {
            file,
            block_bytes,
            options: options.clone(),
            pool: Pool::new(folder, partition.clone(), block_bytes, extra)?,
            report: RealignReport::default(),
            unsynced_bytes: 0,
        })
    }

    /// Carries out a plan as far as space can be found for it.
    pub(crate) fn run(
        &mut self,
        mut plan: FilePlan,
        progress: &mut dyn FnMut(u64, u64) -> ControlFlow<()>,
    ) -> io::Result<()> {
        let (mut empty_rounds, mut useless_grows) = (0, 0);
        loop {
            match plan.next(&self.pool.supply) {
                Step::Done => return Ok(()),
                Step::Starved => {
                    let wanted = plan.blocks().0 * self.block_bytes;
                    // A little more than needed: the ends of the runs are not whole tracks.
                    let request = wanted + wanted / 16 + EDGE_BYTES;
                    // Blocks that are of no use are kept until no more can be held, so that the
                    // kernel offers others.
                    match self
                        .pool
                        .grow(request.saturating_mul(1 << useless_grows.min(16)))?
                    {
                        Some(0) => useless_grows += 1,
                        Some(_) => (useless_grows, empty_rounds) = (0, 0),
                        None if self.unsynced_bytes > 0 => self.commit()?,
                        None if self.pool.is_empty() || empty_rounds == EMPTY_ROUNDS_MAX => {
                            let shortage = if self.pool.is_empty() {
                                self.pool.shortage()?
                            } else {
                                None
                            };
                            let why = shortage.or_else(|| self.extra_obstacle(wanted));
                            let why = why.unwrap_or_else(|| {
                                "no further track is free as a whole".to_owned()
                            });
                            self.report.ended_early = Some(why);
                            return Ok(());
                        }
                        None => {
                            (useless_grows, empty_rounds) = (0, empty_rounds + 1);
                            self.pool.release();
                        }
                    }
                }
                Step::Move(step) => {
                    match self.carry_out(&step) {
                        Ok(()) => {}
                        Err(Stop::System(error)) => return Err(error),
                        Err(Stop::File(why)) => {
                            self.report.ended_early = Some(why);
                            return Ok(());
                        }
                    }
                    let bytes = (step.to.end.0 - step.to.start.0) * self.block_bytes;
                    self.unsynced_bytes += bytes;
                    if self.unsynced_bytes >= SYNC_BYTES {
                        self.commit()?;
                    }
                    if progress(bytes, plan.blocks().0 * self.block_bytes).is_break() {
                        self.report.ended_early = Some("interrupted".to_owned());
                        return Ok(());
                    }
                }
            }
        }
    }

    /// Returns why the limit of temporary space prevents the moves of `wanted_bytes`, if it does.
    fn extra_obstacle(&self, wanted_bytes: u64) -> Option<String> {
        let partition = self.pool.supply.partition();
        extra_obstacle(wanted_bytes, partition, self.block_bytes, &self.options)
    }

    /// Gives the held space back, and returns the report.
    pub(crate) fn finish(self) -> RealignReport {
        RealignReport {
            extra_bytes: self.pool.peak_bytes,
            ..self.report
        }
    }

    /// Makes the exchanges durable. The blocks that the file has left become available only now:
    /// until the journal is committed, a crash would bring the file back to them.
    fn commit(&mut self) -> io::Result<()> {
        self.unsynced_bytes = 0;
        // An fsync of the file does not always commit the exchange (Linux 6.18).
        syncfs(self.file)?;
        self.pool.refresh()
    }

    /// Exchanges the blocks of one move.
    fn carry_out(&mut self, step: &BlockMove) -> Result<(), Stop> {
        let start = step.file_block * self.block_bytes;
        let length = (step.to.end.0 - step.to.start.0) * self.block_bytes;
        evict(self.file, start, length);
        let taken = self.pool.supply.take(&step.to);
        let mut file_block = step.file_block;
        for run in taken {
            let count = run.blocks.end.0 - run.blocks.start.0;
            self.exchange(file_block, run.source, count)?;
            self.report.moved_bytes += count * self.block_bytes;
            file_block += count;
        }
        Ok(())
    }

    fn exchange(&self, file_block: u64, source: Source, count: u64) -> Result<(), Stop> {
        let donor = self.pool.donor(source.donor);
        let (mut done, mut retries) = (0, 0);
        while done < count {
            let result = exchange(
                self.file,
                donor,
                file_block + done,
                source.block + done,
                count - done,
            );
            done += result.blocks;
            let error = match result.error {
                None if result.blocks > 0 => continue,
                None => return Err(Stop::File("it became shorter meanwhile".to_owned())),
                Some(error) => error,
            };
            match Errno::from_io_error(&error) {
                Some(Errno::INTR | Errno::AGAIN) => {}
                Some(Errno::BUSY) if retries < BUSY_RETRIES_MAX => {
                    retries += 1;
                    self.file.sync_data().map_err(Stop::System)?;
                }
                Some(Errno::BUSY) => return Err(Stop::File("its pages are in use".to_owned())),
                Some(Errno::OPNOTSUPP) => {
                    let why = "its file system cannot exchange blocks (bigalloc or data=journal)";
                    return Err(Stop::File(why.to_owned()));
                }
                Some(Errno::TXTBSY) => return Err(Stop::File("it is a swap file".to_owned())),
                Some(Errno::NODATA | Errno::INVAL) => {
                    let why = "it changed meanwhile; try again";
                    return Err(Stop::File(why.to_owned()));
                }
                Some(Errno::PERM | Errno::NOSPC) => {
                    return Err(Stop::File(system_message(&error)));
                }
                _ => return Err(Stop::System(error)),
            }
        }
        Ok(())
    }
}

/// Evicts clean pages of a file from the page cache; a length of 0 extends to the end of the file.
///
/// The kernel exchanges page by page. If pages share a large folio, each exchange finds the folio
/// dirty from the one before, and waits for a commit of the journal: a hundred times slower (Linux
/// 6.18). After the eviction, the kernel creates folios of one page.
fn evict(file: &File, start: u64, length: u64) {
    // If it fails, exchanges are slower, but their result is the same.
    let _ = fadvise(file, start, length.try_into().ok(), Advice::DontNeed);
}

/// Additional bytes per request for space: about two tracks of a modern drive.
const EDGE_BYTES: u64 = 4 << 20;

/// `FS_*_FL` of files whose blocks cannot be exchanged, with the reason.
const FLAGS: [(u32, &str); 6] = [
    (0x0000_0010, "it is immutable"),
    (0x0000_0020, "it can only be appended to"),
    (0x0000_0800, "it is encrypted"),
    (0x0010_0000, "its content is sealed by fs-verity"),
    (0x0020_0000, "it holds an extended attribute"),
    (0x1000_0000, "its data is stored within its inode"),
];
/// `FS_EXTENT_FL`: the file has extents.
const HAS_EXTENTS: u32 = 0x0008_0000;

/// Returns the reason why exchanges on an ext4 file system would not survive a crash, if any,
/// according to its superblock.
///
/// With fast commits, an fsync records changes of single files, but not exchanges. After a power
/// cut, the replay then damages files and the file system (Linux 6.18).
///
/// Source: Documentation/filesystems/ext4/super.rst of the Linux kernel.
fn unsafe_journal(device: &Path) -> io::Result<Option<&'static str>> {
    const COMPATIBLE_FEATURES: u64 = 1024 + 0x5c;
    const HAS_JOURNAL: u32 = 0x4;
    const FAST_COMMIT: u32 = 0x400;
    let mut features = [0; 4];
    File::open(device)?.read_exact_at(&mut features, COMPATIBLE_FEATURES)?;
    let features = u32::from_le_bytes(features);
    Ok(if features & HAS_JOURNAL == 0 {
        Some("its file system has no journal, so a crash meanwhile could damage it")
    } else if features & FAST_COMMIT != 0 {
        Some(
            "its file system uses fast commits, which do not record exchanges, so a crash \
             meanwhile could damage it",
        )
    } else {
        None
    })
}

/// Returns the reason why no file of a file system can be moved, if any.
pub(crate) fn unsuitable_system(system: &FileSystem) -> io::Result<Option<String>> {
    if system.name != "ext4" {
        return Ok(Some(format!(
            "{} cannot exchange blocks between files at different offsets; only ext4 can",
            system.name
        )));
    }
    let page = rustix::param::page_size() as u64;
    if system.block_bytes != page {
        return Ok(Some(format!(
            "its file system has blocks of {} bytes; only blocks of {page} bytes, the size of a \
             page, can be exchanged freely",
            system.block_bytes
        )));
    }
    Ok(unsafe_journal(&system.device)?.map(str::to_owned))
}

/// Returns the reason why [`realign`] would leave a file alone, if it is known before anything
/// moves.
///
/// # Errors
/// Returns an error if the file system or the file cannot be examined, or if the file cannot be
/// opened for writing.
pub fn obstacle(path: &Path, system: &FileSystem) -> Result<Option<String>, FileError> {
    Ok(open(path, system)?.err())
}

/// Returns the reason why nothing can be allocated on a file's file system, so that [`realign`]
/// could not move any block; `None` if something can.
///
/// # Errors
/// Returns an error if the file system cannot be examined.
pub fn space_obstacle(path: &Path, system: &FileSystem) -> Result<Option<String>, FileError> {
    let failed = |error: io::Error| FileError::System {
        path: path.to_owned(),
        what: "examine its file system",
        error,
    };
    let folder = File::open(folder_of(path)).map_err(failed)?;
    crate::pool::shortage(&folder, system.block_bytes).map_err(failed)
}

/// Returns the reason why the permitted temporary space is too small to move any of `wanted_bytes`,
/// if it is. [`Forecast::wanted_bytes`](crate::Forecast::wanted_bytes) is the value for a file.
///
/// Wherever the kernel allocates twice the blocks of the longest track, a whole track is among
/// them.
pub fn extra_obstacle(
    wanted_bytes: u64,
    partition: &Partition,
    block_bytes: u64,
    options: &RealignOptions,
) -> Option<String> {
    let sectors = partition.map().runs().map(|(sectors, _)| sectors).max()?;
    let track_bytes = u64::from(sectors.div_ceil(partition.block_sectors())) * block_bytes;
    let least = wanted_bytes.min(2 * track_bytes);
    let most = options.extra_bytes_max;
    (most < least).then(|| {
        format!("temporary space of {most} bytes is too small; use --extra {least} or more")
    })
}

/// Opens a file for exchanges, or returns the reason why it must be left alone.
fn open(path: &Path, system: &FileSystem) -> Result<Result<File, String>, FileError> {
    let failed = |what: &'static str| {
        move |error: io::Error| FileError::System {
            path: path.to_owned(),
            what,
            error,
        }
    };
    if let Some(why) = unsuitable_system(system).map_err(failed("examine its file system"))? {
        return Ok(Err(why));
    }
    let kind = std::fs::metadata(path).map_err(failed("open"))?.file_type();
    if !kind.is_file() {
        let what = if kind.is_dir() {
            "a directory"
        } else if kind.is_fifo() || kind.is_socket() {
            "a pipe or socket"
        } else {
            "not a regular file"
        };
        return Ok(Err(format!("it is {what}")));
    }
    let flags = OFlags::RDWR | OFlags::CLOEXEC | OFlags::NOFOLLOW | OFlags::NONBLOCK;
    let real = std::fs::canonicalize(path).map_err(failed("open"))?;
    let file = match rustix::fs::open(&real, flags, Mode::empty()) {
        Ok(file) => File::from(file),
        Err(Errno::TXTBSY) => return Ok(Err("it is a program that is running, or swap".into())),
        Err(Errno::PERM) => return Ok(Err("it is immutable or append-only".into())),
        Err(Errno::ROFS) => return Ok(Err("its file system is mounted read-only".into())),
        Err(error) => return Err(failed("open")(error.into())),
    };
    let flags = ioctl_getflags(&file).map_err(|error| failed("examine")(error.into()))?;
    if let Some((_, why)) = FLAGS.iter().find(|(flag, _)| flags.bits() & flag != 0) {
        return Ok(Err((*why).to_owned()));
    }
    if flags.bits() & HAS_EXTENTS == 0 && file.metadata().map_err(failed("examine"))?.blocks() > 0 {
        return Ok(Err("it has no extents (ext2 or ext3)".to_owned()));
    }
    Ok(Ok(file))
}

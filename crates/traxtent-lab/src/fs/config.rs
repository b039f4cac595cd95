//! The configuration of a system: parameters and policies, each with its source.
//!
//! Variants of a system differ in a few lines of their configuration. Processor costs are assumed,
//! because neither paper states any. They were set before any result was seen.

use traxtent_layout::AllocatorKind;
use traxtent_model::profile::Scheduler;
use traxtent_units::Span;

/// A file system, its host and the host's memory.
#[derive(Clone, Debug)]
pub struct Config {
    /// The number of sectors in a block.
    pub block_sectors: u32,
    /// The LBN at which the partition begins.
    pub partition_start: u64,
    /// The first LBN after the partition; `None` if the partition ends with the drive.
    pub partition_end: Option<u64>,
    /// The strategy for choosing blocks. [`AllocatorKind::Traxtent`] never uses excluded blocks. A
    /// file that cannot continue after its last block continues at the beginning of the closest
    /// free traxtent. A file that fits in one traxtent is moved into one (paper T, section 4.2.2).
    pub placement: AllocatorKind,
    /// The number of blocks reserved for a growing file.
    pub reservation: Preallocation,
    /// The read-ahead policy.
    pub read_ahead: ReadAhead,
    /// Whether read-ahead and write-back requests end at track boundaries. Writes of blocks that
    /// have reached [`Config::dirty_age_max`] do not.
    pub clip_at_tracks: bool,
    /// The number of blocks in a group.
    pub group_blocks: u32,
    /// The number of blocks at the beginning of each group for its metadata and inodes.
    pub group_metadata: u32,
    /// The number of blocks that a file may have in a group before it continues in another.
    pub group_share: u32,
    /// The number of blocks to which an inode points directly.
    pub direct: u32,
    /// The number of blocks to which an indirect block points.
    pub indirect: u32,
    /// The number of inodes in a block.
    pub inodes_per_block: u32,
    /// The number of blocks in a cluster: the upper bound on read-ahead and write-back requests.
    pub cluster: u32,
    /// The number of blocks in the buffer cache.
    pub cache_blocks: usize,
    /// The numbers of sectors in outstanding writes above which a writer sleeps, and at which it
    /// wakes.
    pub write_limits_sectors: (u64, u64),
    /// The age at which dirty data is written.
    pub dirty_age_max: Span,
    /// Whether changes of names and inodes wait for the disk.
    pub synchronous_metadata: bool,
    /// The order of the host's queue.
    pub scheduler: Scheduler,
    /// The time in the host's queue after which a request is served next. The oldest request is
    /// checked at this interval. `None` if there is no limit.
    pub deadline: Option<Span>,
    /// The largest number of requests that the host has outstanding at the drive, unless the
    /// drive's own queue is shorter.
    pub queue_depth: u32,
    /// Processor costs.
    pub cpu: Cpu,
}

/// The number of consecutive blocks reserved for a growing file until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Preallocation {
    /// No blocks.
    Nothing,
    /// This number of blocks, including the requested one, if they are free (ext2_alloc_block).
    Blocks(u32),
    /// All blocks to the end of the track (paper Q, section 2.4).
    Track,
}

/// The read-ahead policy.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// As many blocks as have been read in sequence, up to a cluster (paper T, section 4.2.1).
    History,
    /// A cluster from the first access, until an access is not sequential (section 5.3).
    FastStart,
    /// The same. With [`Config::clip_at_tracks`], a request ends with the traxtent (section 4.2.2).
    Traxtent,
    /// Linux 2.6 before version 2.6.23: a current window and one ahead of it. They grow up to this
    /// number of blocks or, with [`Config::clip_at_tracks`], contain the blocks that the file has
    /// on a track (paper Q, section 2.4).
    Window(u32),
    /// That of `traxtent file read`: what the file has on each track, and at most this number of
    /// tracks outstanding.
    Tracks(u32),
}

/// Processor costs.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// Copying 1,024 bytes between the cache and a process.
    pub copy_kb: Span,
    /// Comparing 1,024 bytes with 1,024 others.
    pub compare_kb: Span,
    /// A system call.
    pub call: Span,
    /// Finding a block of a file.
    pub block: Span,
    /// Finding, creating or removing a name.
    pub name: Span,
    /// Sending a request to the disk.
    pub request: Span,
    /// The interrupt at the end of a request.
    pub interrupt: Span,
}

impl Cpu {
    /// A Pentium III at 550 MHz (paper T, section 5.1). All values are assumed: 200 MB/s between
    /// buffers in 100 MHz memory, a few thousand instructions for a call, tens of thousands for a
    /// request.
    pub const PENTIUM_III: Cpu = Cpu {
        copy_kb: micros(5),
        compare_kb: micros(5),
        call: micros(5),
        block: micros(10),
        name: micros(50),
        request: micros(40),
        interrupt: micros(40),
    };

    /// A Pentium D at 3 GHz (paper Q, Table 1). All values are assumed: about five to ten times as
    /// fast.
    pub const PENTIUM_D: Cpu = Cpu {
        copy_kb: Span(500_000),
        compare_kb: Span(500_000),
        call: micros(1),
        block: micros(1),
        name: micros(10),
        request: micros(10),
        interrupt: micros(10),
    };
}

const fn micros(count: u64) -> Span {
    Span(count * 1_000_000)
}

/// The file systems that paper T compares.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ffs {
    /// The unmodified file system of FreeBSD 4.0.
    Unmodified,
    /// The same, but the first access reads a whole cluster.
    FastStart,
    /// Allocation and access by traxtents.
    Traxtent,
}

impl Ffs {
    /// All file systems, in the order of Table 2.
    pub const ALL: [Ffs; 3] = [Ffs::Unmodified, Ffs::FastStart, Ffs::Traxtent];

    /// Returns the system of the paper's section 5.3 with this file system.
    ///
    /// From the paper: blocks of 8 KB, groups of 32 MB, half a group per file, clusters of 32
    /// blocks. From the system's source: 12 direct blocks, 2,048 block numbers in an indirect
    /// block, inodes of 128 bytes, one for each 4 KB (newfs); a writer sleeps once 1 MB is being
    /// written, until 512 KB are (vfs_bio.c of version 4); data is written after 30 s. Assumed: a
    /// partition that begins after one track of 63 sectors, as PC slices do; a cache of 96 MB, most
    /// of 128 MB (no result depends on it, because files are read once or are small).
    pub fn config(self) -> Config {
        let config = Config {
            block_sectors: 16,
            partition_start: 63,
            partition_end: None,
            placement: AllocatorKind::Conventional,
            reservation: Preallocation::Nothing,
            read_ahead: ReadAhead::History,
            clip_at_tracks: false,
            group_blocks: 4096,
            // A copy of the superblock, metadata, and 8,192 inodes.
            group_metadata: 130,
            group_share: 2048,
            direct: 12,
            indirect: 2048,
            inodes_per_block: 64,
            cluster: 32,
            cache_blocks: 96 << 7,
            write_limits_sectors: (2048, 1024),
            dirty_age_max: Span(30_000_000_000_000),
            synchronous_metadata: true,
            // Requests sorted by its driver go to the drive immediately while it has free tags.
            scheduler: Scheduler::CLook,
            deadline: None,
            queue_depth: 64,
            cpu: Cpu::PENTIUM_III,
        };
        match self {
            Ffs::Unmodified => config,
            Ffs::FastStart => Config {
                read_ahead: ReadAhead::FastStart,
                ..config
            },
            Ffs::Traxtent => Config {
                placement: AllocatorKind::Traxtent,
                read_ahead: ReadAhead::Traxtent,
                clip_at_tracks: true,
                ..config
            },
        }
    }
}

/// The systems that paper Q compares on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ext2 {
    /// The unmodified system of Linux 2.6.
    Conventional,
    /// The same with windows of a track's size that ignore track boundaries.
    TrackSized,
    /// Boundary blocks are in the bad-block list, and windows are tracks.
    Aligned,
}

impl Ext2 {
    /// All systems, in the order of the paper's Fig. 7.
    pub const ALL: [Ext2; 3] = [Ext2::Conventional, Ext2::TrackSized, Ext2::Aligned];

    /// Returns the system of the paper's section 2.5 on a drive whose tracks have `track_sectors`
    /// sectors, with `memory_mb` megabytes of memory.
    ///
    /// From the system's source: blocks of 4 KB, groups of 128 MB, 12 direct blocks, 1,024 block
    /// numbers in an indirect block, an inode of 128 bytes for each 8 KB (mke2fs), 8 blocks
    /// reserved for a growing file, windows of 128 KB. The driver of the paper's adapter sends one
    /// request at a time to a disk that is passed through (aac_slave_configure), so the kernel's
    /// elevator decides the order: in one direction, with a deadline of 125 ms for reads
    /// (as-iosched.c).
    ///
    /// Left out of that source: merging contiguous requests (up to 1,024 sectors); plugging, which
    /// delays windows that no process waits for yet; the choice of the next request while another
    /// is outstanding; short backward seeks; and anticipation. Assumed: a partition after one track
    /// of 63 sectors, and a page cache of three quarters of 128 MB or nearly all of 2 GB.
    pub fn config(self, track_sectors: u32, memory_mb: usize) -> Config {
        let blocks_of_track = track_sectors / 8;
        let config = Config {
            block_sectors: 8,
            partition_start: 63,
            partition_end: None,
            placement: AllocatorKind::Conventional,
            reservation: Preallocation::Blocks(8),
            read_ahead: ReadAhead::Window(32),
            clip_at_tracks: false,
            group_blocks: 32_768,
            // Copies of the superblock and the group table, two bitmaps, 16,384 inodes.
            group_metadata: 2 + 2 + 512,
            group_share: u32::MAX,
            direct: 12,
            indirect: 1024,
            inodes_per_block: 32,
            cluster: blocks_of_track.max(32),
            cache_blocks: (memory_mb - memory_mb.min(128) / 4) * 256,
            write_limits_sectors: (8192, 4096),
            dirty_age_max: Span(30_000_000_000_000),
            synchronous_metadata: false,
            scheduler: Scheduler::CLook,
            deadline: Some(Span(125_000_000_000)),
            queue_depth: 1,
            cpu: Cpu::PENTIUM_D,
        };
        match self {
            Ext2::Conventional => config,
            Ext2::TrackSized => Config {
                read_ahead: ReadAhead::Window(blocks_of_track),
                ..config
            },
            Ext2::Aligned => Config {
                placement: AllocatorKind::Traxtent,
                reservation: Preallocation::Track,
                read_ahead: ReadAhead::Window(blocks_of_track),
                clip_at_tracks: true,
                ..config
            },
        }
    }
}

impl Config {
    /// Returns the same system with blocks that can be read and written in parts: no block is
    /// excluded, and requests can end at boundaries within blocks (paper T, section 5.3).
    pub fn with_partial_blocks(self) -> Config {
        Config {
            placement: AllocatorKind::Conventional,
            ..self
        }
    }
}

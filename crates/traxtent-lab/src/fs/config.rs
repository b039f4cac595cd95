//! What distinguishes one system from another: figures and policies, each with its source.
//!
//! A variant of a system differs from another by a line of its configuration. Costs of the processor are
//! assumptions, as neither paper states any; they were set before any result was seen.

use traxtent_core::layout::Strategy;
use traxtent_core::profile::Scheduler;
use traxtent_core::units::Span;

/// A file system, its host and the host's memory.
#[derive(Clone, Debug)]
pub struct Config {
    /// Sectors of a block.
    pub block_sectors: u32,
    /// LBN at which the partition begins.
    pub partition_start: u64,
    /// LBN before which it ends; none, if it ends with the drive.
    pub partition_end: Option<u64>,
    /// How blocks are chosen. Where tracks matter, excluded blocks are never used, what cannot go on behind the last block
    /// begins the closest free traxtent, and a file that fits in one traxtent is moved into one (paper T, section 4.2.2).
    pub placement: Strategy,
    /// How much is set aside for a file that grows.
    pub set_aside: SetAside,
    /// How much is read that nobody has asked for.
    pub read_ahead: ReadAhead,
    /// Whether reads ahead and write-backs end at track boundaries.
    pub clip: bool,
    /// Blocks of a group.
    pub group_blocks: u32,
    /// Blocks at the beginning of each group that hold its bookkeeping and inodes.
    pub group_metadata: u32,
    /// Blocks that a file may have in a group before it moves on.
    pub group_share: u32,
    /// Blocks that an inode points at itself.
    pub direct: u32,
    /// Blocks that an indirect block points at.
    pub indirect: u32,
    /// Inodes in a block.
    pub inodes_per_block: u32,
    /// Blocks of a cluster: the bound on reads ahead and write-backs.
    pub cluster: u32,
    /// Blocks of the buffer cache.
    pub cache_blocks: usize,
    /// Sectors being written at which a writer waits, and down to which it waits.
    pub writes_in_flight: (u64, u64),
    /// How long data stay in memory before they are written for their age.
    pub dirty_for: Span,
    /// Whether changes of names and inodes wait for the disk.
    pub synchronous_metadata: bool,
    /// The order of the host's queue.
    pub scheduler: Scheduler,
    /// How long a request may wait in the host's queue: so often the oldest one is looked at, and served next if it has
    /// waited longer. None, if it may wait for ever.
    pub deadline: Option<Span>,
    /// Requests that the host lets the drive have at once.
    pub depth: u32,
    /// Costs of the processor.
    pub cpu: Cpu,
}

/// How many blocks in a row are set aside for a file that grows, until it is closed.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum SetAside {
    /// None.
    Nothing,
    /// So many with the one that is asked for, if they are free (ext2_alloc_block).
    Blocks(u32),
    /// All to the end of the track (paper Q, section 2.4).
    Track,
}

/// How much is read that nobody has asked for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ReadAhead {
    /// As many blocks as have been read in sequence, up to a cluster (paper T, section 4.2.1).
    History,
    /// A cluster from the first access on (section 5.3).
    FastStart,
    /// What is contiguous from the first access on, as [`ReadAhead::FastStart`], until an access is not sequential;
    /// with [`Config::clip`] the traxtent (section 4.2.2).
    Traxtent,
    /// Linux 2.6 before version 2.6.23: a current window and one ahead of it, which grow up to this many blocks, or, with
    /// [`Config::clip`], have what the file has of a track (paper Q, section 2.4).
    Window(u32),
}

/// Costs of the processor.
#[derive(Clone, Copy, Debug)]
pub struct Cpu {
    /// Copying 1,024 bytes between the cache and a process.
    pub copy_kb: Span,
    /// Comparing 1,024 bytes with as many others.
    pub compare_kb: Span,
    /// A system call.
    pub call: Span,
    /// Finding a block of a file.
    pub block: Span,
    /// Finding, making or removing a name.
    pub name: Span,
    /// Sending a request to the disk.
    pub request: Span,
    /// The interrupt at its end.
    pub interrupt: Span,
}

impl Cpu {
    /// A Pentium III at 550 MHz (paper T, section 5.1). All assumed: 200 MB/s between buffers in memory of 100 MHz,
    /// some thousand instructions for a call, tens of thousands for a request.
    pub const PENTIUM_III: Cpu = Cpu {
        copy_kb: micros(5),
        compare_kb: micros(5),
        call: micros(5),
        block: micros(10),
        name: micros(50),
        request: micros(40),
        interrupt: micros(40),
    };

    /// A Pentium D at 3 GHz (paper Q, Table 1). All assumed: some five to ten times as fast.
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
    /// FreeBSD 4.0's own.
    Unmodified,
    /// The same with a whole cluster read at the first access.
    FastStart,
    /// Allocation and access by traxtents.
    Traxtent,
}

impl Ffs {
    /// All, in the order of Table 2.
    pub const ALL: [Ffs; 3] = [Ffs::Unmodified, Ffs::FastStart, Ffs::Traxtent];

    /// The system of the paper's section 5.3 with this file system.
    ///
    /// From the paper: blocks of 8 KB, groups of 32 MB, half a group a file, clusters of 32 blocks. From the system's
    /// source: 12 direct blocks, 2,048 block numbers in an indirect one, inodes of 128 bytes, one for each 4 KB (newfs); a
    /// writer sleeps when 1 MB is being written until 512 KB are (vfs_bio.c of version 4); data are written after
    /// 30 s. Assumed: a partition that begins behind one track of 63 sectors, as PC slices do; a cache of 96 MB, the
    /// most of 128 MB (no result depends on it: files are read once, or are small).
    pub fn config(self) -> Config {
        let config = Config {
            block_sectors: 16,
            partition_start: 63,
            partition_end: None,
            placement: Strategy::Conventional,
            set_aside: SetAside::Nothing,
            read_ahead: ReadAhead::History,
            clip: false,
            group_blocks: 4096,
            // Copy of the superblock, bookkeeping, 8,192 inodes.
            group_metadata: 130,
            group_share: 2048,
            direct: 12,
            indirect: 2048,
            inodes_per_block: 64,
            cluster: 32,
            cache_blocks: 96 << 7,
            writes_in_flight: (2048, 1024),
            dirty_for: Span(30_000_000_000_000),
            synchronous_metadata: true,
            // What its driver sorts goes to the drive at once, as long as that has tags.
            scheduler: Scheduler::CLook,
            deadline: None,
            depth: 64,
            cpu: Cpu::PENTIUM_III,
        };
        match self {
            Ffs::Unmodified => config,
            Ffs::FastStart => Config {
                read_ahead: ReadAhead::FastStart,
                ..config
            },
            Ffs::Traxtent => Config {
                placement: Strategy::Traxtent,
                read_ahead: ReadAhead::Traxtent,
                clip: true,
                ..config
            },
        }
    }
}

/// The systems that paper Q compares on one disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Ext2 {
    /// Linux 2.6's own.
    Conventional,
    /// The same with windows of a track's size, wherever tracks begin.
    TrackSized,
    /// Boundary blocks are in the bad-block list, and windows are tracks.
    Aligned,
}

impl Ext2 {
    /// All, in the order of the paper's Fig. 7.
    pub const ALL: [Ext2; 3] = [Ext2::Conventional, Ext2::TrackSized, Ext2::Aligned];

    /// The system of the paper's section 2.5 on a drive whose tracks have so many sectors, with so many megabytes of memory.
    ///
    /// From the system's source: blocks of 4 KB, groups of 128 MB, 12 direct blocks, 1,024 block numbers in an
    /// indirect one, an inode of 128 bytes for each 8 KB (mke2fs), 8 blocks set aside for a file that grows, windows
    /// of 128 KB; the driver of the paper's adapter lets a disk that is passed through have one request at a time
    /// (aac_slave_configure), so that the kernel's elevator decides the order: one way, with a deadline of 125 ms for
    /// reads (as-iosched.c). Left out of that source: joining contiguous requests (up to 1,024 sectors), plugging, which
    /// holds back windows that nobody waits for yet, the choice of the next request while another is under way, short seeks
    /// back, and anticipation. Assumed: a partition behind one track of 63 sectors, three quarters of 128 MB and nearly
    /// all of 2 GB for the page cache.
    pub fn config(self, track_sectors: u32, memory_mb: usize) -> Config {
        let blocks_of_track = track_sectors / 8;
        let config = Config {
            block_sectors: 8,
            partition_start: 63,
            partition_end: None,
            placement: Strategy::Conventional,
            set_aside: SetAside::Blocks(8),
            read_ahead: ReadAhead::Window(32),
            clip: false,
            group_blocks: 32_768,
            // Copies of the superblock and the groups' table, two maps, 16,384 inodes.
            group_metadata: 2 + 2 + 512,
            group_share: u32::MAX,
            direct: 12,
            indirect: 1024,
            inodes_per_block: 32,
            cluster: blocks_of_track.max(32),
            cache_blocks: (memory_mb - memory_mb.min(128) / 4) * 256,
            writes_in_flight: (8192, 4096),
            dirty_for: Span(30_000_000_000_000),
            synchronous_metadata: false,
            scheduler: Scheduler::CLook,
            deadline: Some(Span(125_000_000_000)),
            depth: 1,
            cpu: Cpu::PENTIUM_D,
        };
        match self {
            Ext2::Conventional => config,
            Ext2::TrackSized => Config {
                read_ahead: ReadAhead::Window(blocks_of_track),
                ..config
            },
            Ext2::Aligned => Config {
                placement: Strategy::Traxtent,
                set_aside: SetAside::Track,
                read_ahead: ReadAhead::Window(blocks_of_track),
                clip: true,
                ..config
            },
        }
    }
}

impl Config {
    /// With blocks that may be read and written in parts: none is excluded, and requests end at boundaries within blocks
    /// (paper T, section 5.3).
    pub fn with_partial_blocks(self) -> Config {
        Config {
            placement: Strategy::Conventional,
            ..self
        }
    }
}

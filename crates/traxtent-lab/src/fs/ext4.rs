//! The jobs of `docs/results/files.md` on the lab's host: large files that ext4 of Linux 6.18 made
//! on empty space, read through the kernel's windows and by whole tracks.
//!
//! The results page has the same jobs with the kernel's own code on a served drive. Here, the host
//! is a model, so the two differ where the model of the host does.

use traxtent_layout::AllocatorKind;
use traxtent_model::profile::Scheduler;
use traxtent_units::{Rng, Span};

use super::apps::{self, timed};
use super::config::{Config, Cpu, Preallocation, ReadAhead};
use super::file::FileId;
use super::simulated_host::SimulatedHost;
use crate::bench::{Bench, LabError};

const MB: u64 = 1 << 20;

/// The number of bytes in a file.
const FILE: u64 = 256 * MB;

/// The number of bytes in a block.
const BLOCK: u64 = 4096;

/// The number of blocks of 4 KB in the largest request, 512 KB. The requests of the page with
/// windows of 2,560 KB have a mean of 508 KB.
const LARGEST_REQUEST: u32 = 128;

/// The kernel's default window in blocks of 4 KB, 128 KB.
const KERNEL_DEFAULT: u32 = 32;

/// Two larger windows, 256 KB and 2,560 KB.
const LARGER: [u32; 2] = [64, 640];

/// The time of the processor for a request or an interrupt on a slow path, 100 us (assumed).
const SLOW_PATH: Span = Span(100_000_000);

/// Returns ext4 of Linux 6.18 with windows of this number of blocks.
///
/// From mkfs.ext4 without options: blocks of 4 KB, groups of 128 MB, of which 16 have their bitmaps
/// and 8,192 inodes of 256 bytes each at the beginning of the first one (flex_bg); 1,024 blocks are
/// reserved for the descriptors of groups. Extents need no indirect blocks for such files. The
/// partition begins at LBN 2048, as on the page. The loop device has no scheduler, so all requests
/// go to the drive. Assumed: a page cache that holds everything, and the processor costs of
/// [`Cpu::PENTIUM_D`].
///
/// Left out: the first windows of a file are smaller; the kernel joins contiguous windows that it
/// requests at the same time.
fn ext4(window: u32) -> Config {
    let groups_together = 16;
    Config {
        block_sectors: 8,
        partition_start: 2048,
        partition_end: None,
        placement: AllocatorKind::Conventional,
        reservation: Preallocation::Nothing,
        read_ahead: ReadAhead::Window(window),
        clip_at_tracks: false,
        group_blocks: groups_together * 32_768,
        group_metadata: groups_together * (2 + 512) + 1 + 1024,
        group_share: u32::MAX,
        direct: u32::MAX,
        indirect: u32::MAX,
        inodes_per_block: 16,
        cluster: LARGEST_REQUEST,
        cache_blocks: 1 << 20,
        write_limits_sectors: (8192, 4096),
        dirty_age_max: Span(30_000_000_000_000),
        synchronous_metadata: false,
        scheduler: Scheduler::Fcfs,
        deadline: None,
        queue_depth: 128,
        cpu: Cpu::PENTIUM_D,
    }
}

/// The same with whole tracks, two of which are outstanding.
fn by_tracks() -> Config {
    Config {
        clip_at_tracks: true,
        read_ahead: ReadAhead::Tracks(2),
        ..ext4(KERNEL_DEFAULT)
    }
}

/// The same with the default windows, and more time of the processor for each request and each
/// interrupt: 100 us, as on a host whose requests pass a loop device, FUSE and a server.
fn on_a_slow_path() -> Config {
    Config {
        cpu: Cpu {
            request: SLOW_PATH,
            interrupt: SLOW_PATH,
            ..Cpu::PENTIUM_D
        },
        ..ext4(KERNEL_DEFAULT)
    }
}

/// The times of a program in seconds with each of these systems.
fn each<const N: usize>(
    bench: &Bench,
    systems: [Config; N],
    program: impl Fn(&mut SimulatedHost),
) -> Result<[f64; N], LabError> {
    let mut seconds = [0.0; N];
    for (seconds, system) in seconds.iter_mut().zip(systems) {
        let mut host = SimulatedHost::new(bench, system)?;
        *seconds = timed(&mut host, &program).seconds();
    }
    Ok(seconds)
}

/// Makes two files as the kernel does if the second is copied while the first is still being
/// written: in turns, in pieces of 32, 40, 48, 56 or 64 MB (filefrag, Linux 6.18). Their sizes are
/// random.
fn in_turns(host: &mut SimulatedHost, seed: u64) -> [FileId; 2] {
    let mut rng = Rng::new(seed);
    let directory = host.directory(0);
    let files = [(); 2].map(|()| host.existing(directory, 0));
    let mut left = [FILE / BLOCK; 2];
    while left != [0; 2] {
        for (file, left) in files.iter().zip(&mut left) {
            let piece = ((4 + rng.below(5)) * 8 * MB / BLOCK).min(*left);
            host.lengthen(*file, piece);
            *left -= piece;
        }
    }
    files
}

/// F1: the time of a comparison of two files of 256 MB with windows of 128 KB, its changes with
/// windows of a track, 256 KB and 2,560 KB, and by whole tracks, and the first time on a slow path.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn comparison(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let track = bench.track_sectors() / 8;
    let systems = [
        ext4(KERNEL_DEFAULT),
        ext4(track),
        ext4(LARGER[0]),
        ext4(LARGER[1]),
        by_tracks(),
        on_a_slow_path(),
    ];
    let [default, track, medium, large, tracks, slow] = each(bench, systems, |host| {
        let files = in_turns(host, bench.seed);
        apps::diff(host, files, FILE);
    })?;
    let change = |seconds: f64| seconds / default - 1.0;
    Ok(vec![
        default,
        change(track),
        change(medium),
        change(large),
        change(tracks),
        slow,
    ])
}

/// F2: the time of a scan of a file of 256 MB with windows of 128 KB, and its changes with windows
/// of 256 KB and 2,560 KB, and by whole tracks.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn scan(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let systems = [
        ext4(KERNEL_DEFAULT),
        ext4(LARGER[0]),
        ext4(LARGER[1]),
        by_tracks(),
    ];
    let [default, medium, large, tracks] = each(bench, systems, |host| {
        let directory = host.directory(0);
        let file = host.existing(directory, FILE);
        apps::scan(host, file, FILE);
    })?;
    let change = |seconds: f64| seconds / default - 1.0;
    Ok(vec![default, change(medium), change(large), change(tracks)])
}

//! File systems on the virtual clock: is their use of the disk correct?

use std::collections::HashSet;
use std::ops::Range;

use traxtent_lab::Bench;
use traxtent_lab::fs::apps::{copy, diff, fill, head, random_reads, scan, timed};
use traxtent_lab::fs::postmark::Postmark;
use traxtent_lab::fs::streams::Streams;
use traxtent_lab::fs::{Config, Ext2, Ffs, FileId, SimulatedHost};
use traxtent_layout::Partition;
use traxtent_map::TrackMap;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Block, Lbn};

const MIB: u64 = 1 << 20;

fn bench() -> Bench {
    Bench::new("atlas10k", 1)
        .and_then(|bench| bench.with_parameter("cache.write_back", "none"))
        .unwrap()
}

fn lbns(request: &Request) -> Range<u64> {
    request.lbn.0..request.end().0
}

fn host(config: Config) -> SimulatedHost {
    SimulatedHost::new(&bench(), config).unwrap()
}

fn configs() -> [Config; 4] {
    let [a, b, c] = Ffs::ALL.map(Ffs::config);
    let partial = c.clone().with_partial_blocks();
    [a, b, c, partial]
}

/// After files have been created and removed, does every block of a file belong to that file alone?
/// With traxtents, is no excluded block allocated?
#[test]
fn blocks_are_allocated_once() {
    for ffs in Ffs::ALL {
        let mut host = host(ffs.config());
        let directory = host.directory(3);
        let large = host.existing(directory, 100 * MIB);
        let mut small: Vec<FileId> = Vec::new();
        for round in 0..200_u64 {
            small.push(host.make(directory, round * 977 % (200 << 10) + 1));
            if round % 3 == 2 {
                let out = small.remove((round * 7919) as usize % small.len());
                host.remove(out);
            }
        }
        let map = TrackMap::from_sizes(bench().geometry.track_sizes());
        let whole = Lbn(63)..map.end();
        let partition = Partition::new(map, whole, 16).unwrap();
        let mut seen = HashSet::new();
        for file in small.iter().chain([&large]) {
            for block in host.blocks(*file) {
                assert!(seen.insert(*block), "{ffs:?}: block {block} twice");
                let spans = ffs == Ffs::Traxtent && partition.is_excluded(*block);
                assert!(!spans, "block {block} is excluded");
            }
        }
        assert!(seen.len() > 12_800, "{}", seen.len());
    }
}

/// Do files that need no indirect block lie in one traxtent each?
#[test]
fn files_without_indirect_blocks_lie_in_one_traxtent() {
    let mut host = host(Ffs::Traxtent.config());
    let directory = host.directory(0);
    let map = TrackMap::from_sizes(bench().geometry.track_sizes());
    let whole = Lbn(63)..map.end();
    let partition = Partition::new(map, whole, 16).unwrap();
    for blocks in (1..=12).chain([7, 11, 5]) {
        let file = host.make(directory, blocks * 8192);
        let blocks = host.blocks(file).to_vec();
        let traxtent = partition.traxtent_of(blocks[0]).unwrap().blocks;
        let last = blocks[blocks.len() - 1];
        assert!(traxtent.contains(&last), "{blocks:?} and {traxtent:?}");
    }
}

/// Is every sector of a copied file's blocks written, none of the source's blocks, and otherwise
/// only a few sectors of metadata?
#[test]
fn blocks_are_written_where_the_file_lists_them() {
    for config in configs() {
        let mut host = host(config);
        host.start_log();
        let directory = host.directory(0);
        let from = host.existing(directory, 40 * MIB + 5000);
        let to = copy(&mut host, from, directory, 40 * MIB + 5000);
        host.sync();
        let mut written: HashSet<u64> = HashSet::new();
        for request in host.log().iter().filter(|request| request.op == Op::Write) {
            written.extend(lbns(request));
        }
        let sectors = |block: &Block| 63 + block.0 * 16..63 + block.0 * 16 + 16;
        for block in host.blocks(to) {
            for lbn in sectors(block) {
                assert!(written.remove(&lbn), "sector {lbn} was never written");
            }
        }
        for block in host.blocks(from) {
            for lbn in sectors(block) {
                assert!(
                    !written.contains(&lbn),
                    "sector {lbn} of the source was written"
                );
            }
        }
        // Inodes, names and indirect blocks remain.
        assert!(
            written.len() < 16 * 16,
            "{} sectors without an owner",
            written.len()
        );
    }
}

/// Does a scan read every sector of a file exactly once, and otherwise only a few blocks of
/// metadata?
#[test]
fn a_scan_reads_every_sector_once() {
    for config in configs() {
        let mut host = host(config);
        host.start_log();
        let directory = host.directory(0);
        let bytes = 40 * MIB;
        let file = host.existing(directory, bytes);
        scan(&mut host, file, bytes);
        let all: usize = host.log().iter().map(|read| read.sectors as usize).sum();
        let read: HashSet<u64> = host.log().iter().flat_map(lbns).collect();
        assert_eq!(all, read.len(), "a sector was read twice");
        for block in host.blocks(file) {
            assert!((0..16).all(|at| read.contains(&(63 + block.0 * 16 + at))));
        }
        assert!(read.len() < host.blocks(file).len() * 16 + 16 * 8);
    }
}

/// Does no request of the system with traxtents cross a boundary, except for a block that spans
/// one?
#[test]
fn traxtent_requests_keep_to_tracks() {
    let geometry = bench().geometry;
    let [.., whole, partial] = configs();
    for config in [whole, partial] {
        let mut host = host(config);
        host.start_log();
        let directory = host.directory(0);
        let from = host.existing(directory, 30 * MIB);
        copy(&mut host, from, directory, 30 * MIB);
        host.settle();
        let mut large = 0;
        for request in host.log() {
            let end = geometry.track_of(request.lbn).unwrap().end_lbn();
            // Inodes have fixed locations, which can lie on a boundary.
            let crosses = request.end() > end && request.sectors > 16;
            assert!(!crosses, "{request:?} crosses {end}");
            large += usize::from(request.sectors > 256);
        }
        assert!(large > 300, "{large} requests of most of a track");
    }
}

/// Does the cache stay within its size, even if that barely holds the blocks in use, and is
/// everything still read?
#[test]
fn the_cache_stays_within_its_size() {
    for config in configs() {
        for blocks in [96, 500] {
            let mut host = host(Config {
                cache_blocks: blocks,
                ..config.clone()
            });
            let directory = host.directory(0);
            let files = [(); 2].map(|()| host.existing(directory, 20 * MIB));
            let run = timed(&mut host, |host| diff(host, files, 20 * MIB));
            assert!(host.cache_most() <= blocks, "{}", host.cache_most());
            assert!(run.traffic.sectors_read >= 2 * 20 * MIB / 512);
        }
    }
}

/// Do the first accesses to a file request what the paper states: a block and the next; a cluster;
/// a traxtent? The file has 12 blocks, fewer than a cluster or a traxtent.
#[test]
fn first_accesses_read_what_the_paper_states() {
    let lengths = |ffs: Ffs| -> Vec<u32> {
        let mut host = host(ffs.config());
        let directory = host.directory(0);
        // Not in the first traxtent, which the partition shares with the group's metadata.
        host.existing(directory, 8 * 8192);
        let file = host.existing(directory, 12 * 8192);
        host.start_log();
        head(&mut host, &[file]);
        let reads = host.log().iter().skip(1);
        reads.map(|read| read.sectors).collect()
    };
    assert_eq!(lengths(Ffs::Unmodified), [16, 16]);
    assert_eq!(lengths(Ffs::FastStart), [12 * 16]);
    assert_eq!(lengths(Ffs::Traxtent), [12 * 16]);
}

/// Does random access, after the first request, read single blocks even with traxtents?
#[test]
fn random_access_reads_single_blocks() {
    for ffs in Ffs::ALL {
        let mut host = host(ffs.config());
        let directory = host.directory(0);
        let file = host.existing(directory, 200 * MIB);
        let run = timed(&mut host, |host| {
            random_reads(host, file, 200 * MIB, 300, 1);
        });
        let each = run.traffic.sectors_read as f64 / run.traffic.reads as f64;
        // The first access, at the file's beginning, reads a cluster.
        assert!(each < 18.0, "{ffs:?}: {each} sectors per request");
    }
}

/// Do small files have the cost of their synchronous writes: two for each file created or removed?
/// Are reads served from memory?
#[test]
fn postmark_writes_metadata_through() {
    let mut host = host(Ffs::Unmodified.config());
    let postmark = Postmark {
        files: 100,
        transactions: 100,
        ..Postmark::PAPER
    };
    let mut rate = 0.0;
    let run = timed(&mut host, |host| rate = postmark.run(host, 1));
    assert_eq!(run.traffic.writes, 2 * (100 + 100));
    assert!(run.traffic.reads < 10, "{}", run.traffic.reads);
    assert!((20.0..200.0).contains(&rate), "{rate}");
}

fn linux(system: Ext2, memory_mb: usize) -> SimulatedHost {
    let bench = Bench::new("maxtor10k5", 1).unwrap();
    SimulatedHost::new(&bench, system.config(bench.track_sectors(), memory_mb)).unwrap()
}

/// Do the windows of Linux begin with a quarter of 128 KiB, double, and follow each other, until
/// all of a file has been read once?
#[test]
fn linux_windows_grow() {
    let mut host = linux(Ext2::Conventional, 128);
    let directory = host.directory(0);
    let bytes = 8 * MIB;
    let file = host.existing(directory, bytes);
    host.start_log();
    scan(&mut host, file, bytes);
    let lengths: Vec<u32> = host.log().iter().map(|read| read.sectors).collect();
    // The inode; 8 blocks; the part of the window of 16 before the indirect block, read with that
    // block; the rest of that window; then 32 blocks each.
    assert_eq!(lengths[..6], [8, 64, 40, 96, 256, 256], "{lengths:?}");
    let all: usize = host.log().iter().map(|read| read.sectors as usize).sum();
    let read: HashSet<u64> = host.log().iter().flat_map(lbns).collect();
    assert_eq!(all, read.len(), "a sector was read twice");
    for block in host.blocks(file) {
        assert!((0..8).all(|at| read.contains(&(63 + block.0 * 8 + at))));
    }
}

/// Are most aligned windows of Linux whole tracks, and does no request for more than one block
/// cross a boundary?
#[test]
fn linux_windows_are_tracks() {
    let geometry = Bench::new("maxtor10k5", 1).unwrap().geometry;
    let mut host = linux(Ext2::Aligned, 128);
    let directory = host.directory(0);
    let files = [(); 2].map(|()| host.existing(directory, 40 * MIB));
    host.start_log();
    diff(&mut host, files, 40 * MIB);
    let mut whole = 0;
    for request in host.log() {
        let track = geometry.track_of(request.lbn).unwrap();
        let crosses = request.end() > track.end_lbn() && request.sectors > 8;
        assert!(!crosses, "{request:?}");
        whole += usize::from(request.sectors > track.sectors - 16);
    }
    assert!(whole > 100, "{whole} of about 140 tracks");
}

/// Do two files that grow alternately get eight consecutive blocks at a time, or a track at a time
/// with alignment, and are reserved blocks released when the files are closed?
#[test]
fn linux_reserves_blocks_for_growing_files() {
    let pieces = |system| {
        let mut host = linux(system, 2048);
        let directory = host.directory(0);
        let files = [(); 2].map(|()| host.create(directory));
        let mut open = files.map(|file| host.open(file));
        for at in (0..4 * MIB).step_by(4096) {
            for open in &mut open {
                host.write(open, at..at + 4096);
            }
        }
        for open in open {
            host.close(open);
        }
        let last = files.map(|file| host.blocks(file).last().unwrap().0);
        let third = host.make(directory, 4096);
        assert!(host.blocks(third)[0].0 <= last[0].max(last[1]) + 1);
        let blocks = host.blocks(files[0]);
        let in_a_row = blocks.chunk_by(|one, next| one.0 + 1 == next.0);
        let mut lengths: Vec<usize> = in_a_row.map(<[Block]>::len).collect();
        lengths.sort_unstable();
        lengths[lengths.len() / 2]
    };
    assert_eq!(pieces(Ext2::Conventional), 8);
    // A track of 1,144 sectors, without the block that spans its end.
    assert_eq!(pieces(Ext2::Aligned), 142);
}

/// Does a file that is written from its beginning reach the disk completely, each of its blocks
/// once?
#[test]
fn bonnie_writes_every_block_once() {
    for system in [Ext2::Conventional, Ext2::Aligned] {
        let mut host = linux(system, 128);
        let directory = host.directory(0);
        host.start_log();
        let file = fill(&mut host, directory, 200 * MIB);
        let writes = || host.log().iter().filter(|request| request.op == Op::Write);
        let all: usize = writes().map(|write| write.sectors as usize).sum();
        let written: HashSet<u64> = writes().flat_map(lbns).collect();
        for block in host.blocks(file) {
            assert!((0..8).all(|at| written.contains(&(63 + block.0 * 8 + at))));
        }
        // Maps, indirect blocks, the inode and the directory.
        assert!(all - host.blocks(file).len() * 8 < 1000, "{system:?}");
    }
}

/// Does every stream start within 0.2 seconds? Does every stream of an overloaded system start,
/// too, but later on average?
#[test]
fn streams_start() {
    let few = Streams {
        count: 12,
        ..Streams::PAPER
    };
    let latencies = few.run(&mut linux(Ext2::Conventional, 2048), 1);
    assert_eq!(latencies.len(), 12);
    assert!(
        latencies.iter().all(|seconds| *seconds < 0.2),
        "{latencies:?}"
    );
    let fast = Streams {
        rate: 8 << 20,
        ..few
    };
    let overloaded = fast.run(&mut linux(Ext2::Conventional, 2048), 1);
    assert_eq!(overloaded.len(), 12);
    let mean = |seconds: &[f64]| seconds.iter().sum::<f64>() / 12.0;
    assert!(mean(&overloaded) > mean(&latencies));
}

/// Does a repeated run take the same time, and a run with another seed another time?
#[test]
fn runs_repeat() {
    let run = |seed| {
        let bench = Bench::new("atlas10k", seed).unwrap();
        let mut host = SimulatedHost::new(&bench, Ffs::Traxtent.config()).unwrap();
        let directory = host.directory(0);
        let file = host.existing(directory, 8 * MIB);
        timed(&mut host, |host| scan(host, file, 8 * MIB)).elapsed
    };
    assert_eq!(run(1), run(1));
    assert_ne!(run(1), run(2));
}

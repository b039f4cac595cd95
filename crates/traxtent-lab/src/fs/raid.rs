//! Measurements of paper Q, section 3: ext2 on a RAID-5 of five disks; and of misaligned writes to
//! a RAID-5 (paper A).
//!
//! The conventional array is that of Linux: chunks of 4 KB, left symmetric, read-ahead windows as
//! on one disk. The paper's aligned array also has chunks of 4 KB ("a chunk size of 4KB"): only its
//! requests are aligned. A window contains the rows of a track. Requests to members are cut at the
//! members' track boundaries. The parity, every fifth block of a member, is read as well (a dummy
//! read); otherwise it would cut a track into pieces of 16 KB. Drives with different numberings
//! share rows, so windows can follow the tracks of only one member: here the first. In our array,
//! [`Raid5::TrackChunks`], chunks are tracks of similar size, and windows are stripes.
//!
//! As on one disk, conventional systems run with the drives' read-ahead on, aligned ones with it
//! off. Each drive has a host queue of its own, and no two spindles are synchronized. Left out: the
//! time for computing parity; the stripe cache's wait for neighbours (instead, write-backs are cut
//! at multiples of whole stripes, which has the same effect); and the parts of the kernel's
//! elevator that [`Ext2::config`](super::config::Ext2::config) leaves out.

use std::sync::Arc;

use traxtent_layout::raid::{Array, ArrayShape, ChunkRule, Level, Member, StripePlanner};
use traxtent_map::{MapBuilder, TrackMap};
use traxtent_model::drive::Drive;
use traxtent_probe::{Confirm, Found};
use traxtent_sim::{Host, simulate};
use traxtent_units::Rng;
use traxtent_units::{Lbn, Sectors, Span};
use traxtent_workload::{CapacityOnly, Synthetic, WorkloadSpec};

use super::apps::{self, ProgramRun, timed};
use super::backing_storage::BackingStorage;
use super::config::{Config, Ext2};
use super::linux::{MEMORY_MB, diff, without_read_ahead};
use super::simulated_host::SimulatedHost;
use super::streams::Streams;
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series};

/// Five drives with the four numberings of paper Q's Table 2. The most frequent numbering occurs
/// twice.
const DRIVES: [&str; 5] = [
    "maxtor10k5",
    "maxtor10k5-b",
    "maxtor10k5-b",
    "maxtor10k5-c",
    "maxtor10k5-d",
];

/// The number of sectors in a block: the chunk of the arrays with chunks of 4 KB, and the granule
/// of chunks that are tracks.
const BLOCK_SECTORS: u32 = 8;

/// The granule in sectors at which write-backs end, except with [`Raid5::TrackChunks`]: 32 stripes
/// of four blocks.
const WRITE_GRID_SECTORS: u32 = 32 * 4 * BLOCK_SECTORS;

const GB: u64 = 1 << 30;

/// The number of runs over which the streams' latencies are averaged.
const RUNS: u64 = 4;

/// The number of neighbours on each side with which a startup latency is averaged, as on one disk.
const AROUND: usize = 8;

/// Arrays of five drives.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Raid5 {
    /// The array of Linux: chunks of 4 KB, windows as on one disk.
    Conventional,
    /// The same with windows of four tracks.
    FourTracks,
    /// The paper's array: chunks of 4 KB, windows of a track of the first member and as much of
    /// each other member, requests to members cut at their track boundaries, dummy reads.
    Aligned,
    /// The same without dummy reads.
    AlignedWithoutDummy,
    /// Our array: chunks are tracks of similar size, windows are stripes.
    TrackChunks,
}

impl Raid5 {
    /// The arrays that figures show, with their names.
    pub const FIGURE: [(Raid5, &str); 4] = [
        (Raid5::Conventional, "conventional"),
        (Raid5::FourTracks, "windows of four tracks"),
        (Raid5::Aligned, "aligned"),
        (Raid5::TrackChunks, "tracks as chunks"),
    ];

    fn is_conventional(self) -> bool {
        matches!(self, Raid5::Conventional | Raid5::FourTracks)
    }

    fn shape(self) -> ArrayShape {
        ArrayShape {
            level: Level::Raid5,
            chunks: match self {
                Raid5::TrackChunks => ChunkRule::Tracks,
                _ => ChunkRule::Fixed(Sectors(BLOCK_SECTORS.into())),
            },
            granule: BLOCK_SECTORS,
            spares: 0,
        }
    }

    fn config(self, track_sectors: u32, memory: usize) -> Config {
        let track = track_sectors / BLOCK_SECTORS;
        let (system, window) = match self {
            Raid5::Conventional => (Ext2::Conventional, 32),
            Raid5::FourTracks => (Ext2::TrackSized, 4 * track),
            // Windows end with tracks, some of which are larger than the first member's.
            _ => (Ext2::Aligned, 5 * track),
        };
        Config {
            partition_start: 0,
            read_ahead: super::ReadAhead::Window(window),
            cluster: window.max(WRITE_GRID_SECTORS / BLOCK_SECTORS),
            ..system.config(track_sectors, memory)
        }
    }

    /// Creates a host that has just started, with such an array.
    ///
    /// # Errors
    /// Returns the errors of [`Bench::with_drive`], or an error if the drives cannot form the
    /// array.
    pub fn host(self, bench: &Bench, memory: usize, seed: u64) -> Result<SimulatedHost, LabError> {
        self.host_on(bench, Firmware::Profile, memory, seed)
    }

    fn host_on(
        self,
        bench: &Bench,
        firmware: Firmware,
        memory: usize,
        seed: u64,
    ) -> Result<SimulatedHost, LabError> {
        let mut drives = Vec::new();
        for name in DRIVES {
            let drive = firmware.of(bench.with_drive(name)?)?;
            drives.push(if self.is_conventional() {
                drive
            } else {
                without_read_ahead(&drive)?
            });
        }
        let array = array(&drives, self.shape())?;
        let grid = uniform(array.capacity().0, WRITE_GRID_SECTORS);
        let map = match self {
            Raid5::Conventional | Raid5::FourTracks => grid.clone(),
            Raid5::Aligned | Raid5::AlignedWithoutDummy => rows(
                &TrackMap::from_sizes(drives[0].geometry.track_sizes()),
                array.capacity().0,
            ),
            Raid5::TrackChunks => array.stripe_map(),
        };
        let track = drives[0].track_sectors();
        let planner = StripePlanner {
            positioning: Sectors(track.into()),
            dummy_reads: self == Raid5::Aligned,
        };
        let config = self.config(track, memory);
        let cuts = match self {
            Raid5::Aligned | Raid5::AlignedWithoutDummy => drives
                .iter()
                .map(|bench| TrackMap::from_sizes(bench.geometry.track_sizes()))
                .collect(),
            _ => Vec::new(),
        };
        let drives = drives.iter().map(|bench| {
            Drive::with_geometry(Arc::clone(&bench.profile), Arc::clone(&bench.geometry))
        });
        let mut rng = Rng::new(seed ^ 0x5EED);
        let storage = BackingStorage::array(drives.collect(), array, planner, &config, &mut rng);
        let host = SimulatedHost::on(storage.cut_at(cuts), map, seed, config)?;
        match self {
            Raid5::TrackChunks => Ok(host),
            _ => host.with_write_grid(grid),
        }
    }
}

/// The read-ahead of the drives' firmware, which paper Q does not describe.
#[derive(Clone, Copy, Debug)]
enum Firmware {
    /// As in the profiles: to the end of the track, in 32 segments of 256 KB (assumed).
    Profile,
    /// Twice as many segments of half the size.
    SmallSegments,
    /// Half as many segments of twice the size.
    LargeSegments,
    /// Past the end of the track until the segment is full, and again after each hit.
    Steady,
}

impl Firmware {
    /// Returns a drive with this firmware.
    fn of(self, drive: Bench) -> Result<Bench, LabError> {
        let settings = match self {
            Firmware::Profile => return Ok(drive),
            Firmware::SmallSegments => [("cache.segment_sectors", "256"), ("cache.segments", "64")],
            Firmware::LargeSegments => {
                [("cache.segment_sectors", "1024"), ("cache.segments", "16")]
            }
            Firmware::Steady => [
                ("cache.read_ahead.until", "\"segment-end\""),
                ("cache.read_ahead.on_idle_hit", "true"),
            ],
        };
        settings.iter().try_fold(drive, |drive, (key, value)| {
            drive.with_parameter(key, value)
        })
    }
}

fn array(drives: &[Bench], shape: ArrayShape) -> Result<Array, LabError> {
    let members = drives.iter().map(|bench| {
        let map = TrackMap::from_sizes(bench.geometry.track_sizes());
        Member {
            data: map.first()..map.end(),
            map: map.into(),
        }
    });
    Ok(Array::new(shape, members.collect())?)
}

/// Maps an array of 4 KB chunks: each piece contains the rows that lie on the same track of the
/// first member. The map ends with the array.
fn rows(map: &TrackMap, capacity: u64) -> TrackMap {
    let data = u64::from(BLOCK_SECTORS) * (DRIVES.len() as u64 - 1);
    let ends = map
        .tracks()
        .map(|track| track.end().0 / u64::from(BLOCK_SECTORS) * data);
    map_of_pieces(ends.map(|end| end.min(capacity)))
}

/// A map of `sectors` sectors in pieces of one size.
fn uniform(sectors: u64, piece: u32) -> TrackMap {
    let piece = u64::from(piece);
    map_of_pieces((1..=sectors.div_ceil(piece)).map(|count| (count * piece).min(sectors)))
}

/// A map of pieces with these ends. Empty pieces are left out.
fn map_of_pieces(ends: impl Iterator<Item = u64>) -> TrackMap {
    let mut map = MapBuilder::default();
    let mut first = 0;
    for end in ends {
        if end > first {
            let piece = Found {
                first_lbn: Lbn(first),
                sectors: (end - first) as u32,
                confirm: Confirm::Tested,
            };
            map.push(piece).expect("pieces follow each other");
        }
        first = end;
    }
    map.finish().expect("arrays have sectors").0
}

fn seconds(
    bench: &Bench,
    system: Raid5,
    program: fn(&mut SimulatedHost) -> ProgramRun,
) -> Result<f64, LabError> {
    seconds_on(bench, Firmware::Profile, system, program)
}

fn seconds_on(
    bench: &Bench,
    firmware: Firmware,
    system: Raid5,
    program: fn(&mut SimulatedHost) -> ProgramRun,
) -> Result<f64, LabError> {
    let mut host = system.host_on(bench, firmware, MEMORY_MB[0], bench.seed)?;
    Ok(program(&mut host).seconds())
}

/// Writes a file of 1 GB.
fn fill(host: &mut SimulatedHost) -> ProgramRun {
    let directory = host.directory(0);
    timed(host, |host| {
        apps::fill(host, directory, GB);
    })
}

/// Reads a file of 1 GB.
fn scan(host: &mut SimulatedHost) -> ProgramRun {
    let directory = host.directory(0);
    let file = host.existing(directory, GB);
    timed(host, |host| apps::scan(host, file, GB))
}

/// Q10: the changes of Bonnie's bandwidths, writing and reading, due to alignment; the same with
/// tracks as chunks; and the change for reading with other read-ahead in the drives: smaller
/// segments, larger segments, steady.
///
/// # Errors
/// Returns the errors of [`Raid5::host`].
pub fn bonnie(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let change = |firmware,
                  system,
                  program: fn(&mut SimulatedHost) -> ProgramRun|
     -> Result<f64, LabError> {
        let conventional = seconds_on(bench, firmware, Raid5::Conventional, program)?;
        Ok(conventional / seconds_on(bench, firmware, system, program)? - 1.0)
    };
    let profile = Firmware::Profile;
    Ok(vec![
        change(profile, Raid5::Aligned, fill)?,
        change(profile, Raid5::Aligned, scan)?,
        change(profile, Raid5::TrackChunks, fill)?,
        change(profile, Raid5::TrackChunks, scan)?,
        change(Firmware::SmallSegments, Raid5::Aligned, scan)?,
        change(Firmware::LargeSegments, Raid5::Aligned, scan)?,
        change(Firmware::Steady, Raid5::Aligned, scan)?,
    ])
}

/// Q11: the speedup of a comparison of two files of 512 MB by alignment; by tracks as chunks; and
/// by alignment if the drives read ahead steadily.
///
/// # Errors
/// Returns the errors of [`bonnie`].
pub fn comparison(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let speedup = |firmware, system| -> Result<f64, LabError> {
        let conventional = seconds_on(bench, firmware, Raid5::Conventional, diff)?;
        Ok(conventional / seconds_on(bench, firmware, system, diff)?)
    };
    Ok(vec![
        speedup(Firmware::Profile, Raid5::Aligned)?,
        speedup(Firmware::Profile, Raid5::TrackChunks)?,
        speedup(Firmware::Steady, Raid5::Aligned)?,
    ])
}

/// Q14: the change of the aligned read bandwidth due to dummy reads, and its share of the total
/// gain of alignment.
///
/// # Errors
/// Returns the errors of [`bonnie`].
pub fn dummy_reads(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let rate = |system| Ok::<_, LabError>(1.0 / seconds(bench, system, scan)?);
    let (conventional, with) = (rate(Raid5::Conventional)?, rate(Raid5::Aligned)?);
    let without = rate(Raid5::AlignedWithoutDummy)?;
    Ok(vec![
        with / without - 1.0,
        (with - without) / (with - conventional),
    ])
}

/// Startup latencies by the number of streams, in seconds: the smoothed mean of the runs. Further
/// streams start until several have waited more than twice `until` seconds.
fn startup(bench: &Bench, system: Raid5, until: f64) -> Result<Vec<f64>, LabError> {
    let streams = Streams {
        count: STREAMS_MAX,
        give_up: Some(Span::from_ms(2000.0 * until)),
        ..Streams::PAPER
    };
    let mut runs = Vec::new();
    for run in 0..bench.scaled_count(RUNS) {
        let seed = bench.seed * RUNS + run;
        let mut host = system.host(bench, MEMORY_MB[1], seed)?;
        runs.push(streams.run(&mut host, seed));
    }
    let count = runs.iter().map(Vec::len).min().unwrap_or(0);
    let smooth = |latencies: &Vec<f64>, at: usize| {
        let near = &latencies[at.saturating_sub(AROUND)..(at + AROUND + 1).min(count)];
        near.iter().sum::<f64>() / near.len() as f64
    };
    let mean = |at| runs.iter().map(|run| smooth(run, at)).sum::<f64>() / runs.len() as f64;
    Ok((0..count).map(mean).collect())
}

/// The largest number of streams. Their total rate is that of the five drives' media.
const STREAMS_MAX: usize = 1024;

/// The number of streams at which startup latencies reach `seconds`, or all if they never do.
fn reaches(latencies: &[f64], seconds: f64) -> f64 {
    let first = latencies.iter().position(|latency| *latency >= seconds);
    first.unwrap_or(latencies.len() - 1) as f64 + 1.0
}

/// Q12: the ratio of the numbers of streams, with and without alignment, at which the startup
/// latency reaches 3 s; the share of that gain that windows of four tracks achieve; the ratio with
/// tracks as chunks; and all three again for half a second.
///
/// # Errors
/// Returns the errors of [`bonnie`].
pub fn streams(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let latencies = |(system, _)| startup(bench, system, 3.0);
    let [conventional, four, aligned, ours] = Raid5::FIGURE.map(latencies);
    let all = [conventional?, four?, aligned?, ours?];
    let mut values = Vec::new();
    for seconds in [3.0, 0.5] {
        let [conventional, four, aligned, ours] =
            all.each_ref().map(|latencies| reaches(latencies, seconds));
        values.push(aligned / conventional);
        values.push((four - conventional) / (aligned - conventional));
        values.push(ours / conventional);
    }
    Ok(values)
}

/// Paper Q, Fig. 10: startup latencies against the number of streams.
///
/// # Errors
/// Returns the errors of [`bonnie`].
pub fn startup_curves(bench: &Bench) -> Result<Figure, LabError> {
    let mut series = Vec::new();
    for (system, name) in Raid5::FIGURE {
        let latencies = startup(bench, system, 3.0)?;
        let shown = latencies.iter().take_while(|latency| **latency < 4.0);
        let points = (1..).map(f64::from).zip(shown.copied()).collect();
        series.push(Series::line(name, points));
    }
    Ok(Figure::of(Panel {
        title: "streams of 500 KB/s on five disks".to_owned(),
        x: "streams".to_owned(),
        y: "startup latency (s)".to_owned(),
        series,
        ..Panel::default()
    }))
}

/// Q13: with the smallest track as the chunk, the unused share of the first stripe's largest track
/// and of the member that loses most. With tracks of similar size, the unused share of all members,
/// and the largest deviation of a member from the mean: in its own data, or in its own data
/// together with the data that its parity covers.
///
/// # Errors
/// Returns the errors of [`bonnie`].
pub fn waste(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let drives: Vec<Bench> = DRIVES
        .iter()
        .map(|name| bench.with_drive(name))
        .collect::<Result<_, _>>()?;
    let of = |chunks| {
        let shape = ArrayShape {
            chunks,
            granule: 1,
            ..Raid5::TrackChunks.shape()
        };
        array(&drives, shape)
    };
    let smallest = of(ChunkRule::SmallestTrack)?;
    let chunk = smallest.stripe(0)?.chunk_on(0).sectors.0 as f64;
    let largest = drives.iter().map(Bench::track_sectors).max();
    let largest = f64::from(largest.expect("there are drives"));
    let smallest = smallest.usage();
    let lost = smallest
        .iter()
        .map(|member| member.unused().0 as f64 / member.sectors.0 as f64);
    let ours = of(ChunkRule::Tracks)?;
    let usage = ours.usage();
    let reads: Vec<f64> = usage.iter().map(|member| member.data.0 as f64).collect();
    let writes = usage
        .iter()
        .map(|member| (member.data.0 + member.covered.0) as f64);
    let writes: Vec<f64> = writes.collect();
    Ok(vec![
        1.0 - chunk / largest,
        lost.fold(0.0, f64::max),
        ours.waste(),
        unevenness(&reads).max(unevenness(&writes)),
    ])
}

/// The largest deviation of a part from the mean, relative to the mean.
fn unevenness(parts: &[f64]) -> f64 {
    let mean = parts.iter().sum::<f64>() / parts.len() as f64;
    let off = parts.iter().map(|part| (part / mean - 1.0).abs());
    off.fold(0.0, f64::max)
}

/// The number of sectors in a chunk for random writes: 64 KB, the default of md for many years.
const CHUNK_SECTORS: u64 = 128;

/// A5: the increase in the time of random writes of a chunk's size if they begin in the middle of a
/// chunk, one at a time and eight at a time.
///
/// # Errors
/// Returns the errors of [`bonnie`].
pub fn misaligned(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut changes = Vec::new();
    for outstanding in [1, 8] {
        let time = |offset| random_writes(bench, offset, outstanding);
        changes.push(time(CHUNK_SECTORS / 2)? / time(0)? - 1.0);
    }
    Ok(changes)
}

/// The total time, in milliseconds, of random writes of a chunk's size. Each begins `offset`
/// sectors after the beginning of a chunk.
fn random_writes(bench: &Bench, offset: u64, outstanding: u64) -> Result<f64, LabError> {
    let drives = DRIVES.iter().map(|name| {
        let bench = bench.with_drive(name)?;
        Ok(Drive::with_geometry(bench.profile, bench.geometry))
    });
    let drives = drives.collect::<Result<Vec<Drive>, LabError>>()?;
    let capacity = drives
        .iter()
        .map(|drive| drive.geometry().capacity().0)
        .min();
    let chunks = capacity.unwrap_or(0) * 4 / CHUNK_SECTORS - 2;
    let mut host = Host::new(drives);
    host = host.with_array(
        "array",
        Level::Raid5,
        Sectors(CHUNK_SECTORS),
        (0..DRIVES.len() as u32).collect(),
    )?;
    let end = chunks * CHUNK_SECTORS + offset;
    let workload: WorkloadSpec = format!(
        "random,read=0,size={CHUNK_SECTORS},align={CHUNK_SECTORS},offset={offset},lbns=0..{end},count={},seed={},outstanding={outstanding}",
        bench.scaled_count(10_000),
        bench.seed,
    )
    .parse()?;
    let capacity = CapacityOnly(Sectors(end));
    let mut source = Synthetic::new(&workload, 512, &capacity)?;
    Ok(simulate(&mut host, &mut source, |_| true)?.as_ms())
}

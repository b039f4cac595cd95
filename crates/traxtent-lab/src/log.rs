//! Log-structured layouts (paper T, section 5.5 and Figure 10).
//!
//! The overall write cost is the product of a write cost, which depends on the workload, and a
//! transfer inefficiency, which depends on the drive. The transfer inefficiency is the time of a
//! segment's transfer over the time in which its bytes pass at 40 MB/s, the streaming rate that the
//! paper uses. It is measured as in the paper's Figure 1: random reads within the first zone, with
//! one always queued.
//!
//! For the write cost, the paper takes another paper's results for a trace of an Auspex server. The
//! trace is not available to us. Here the log of [`traxtent_layout::log`] is filled and cleaned
//! instead: the numbers are those of its own cleaner, on the [`LogWorkload`]s below. Map pages and
//! summaries count as written.
//!
//! Left out: the time that the log's operations wait. As in the paper, the cost is a product.

use std::collections::BTreeSet;

use traxtent_layout::log::{
    BlockLocation, Cleaning, CleaningPolicy, Log, LogConfig, LogError, LogOp, Recovery,
    RecoveryStep, SegmentSizing, Traffic,
};
use traxtent_map::TrackMap;
use traxtent_model::disk::{Disk, DiskError};
use traxtent_model::profile::WriteBack;
use traxtent_sim::efficiency::{Queue, random_in_zone_0};
use traxtent_units::Rng;
use traxtent_units::{Lbn, Sectors};

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};

/// The streaming rate of the first zone that the paper uses.
const STREAMING_BYTES_PER_MS: f64 = 40_000.0;

/// The positioning time of the paper's model: 2.2 ms of seeking, 3 ms of rotation.
const POSITIONING_MS: f64 = 5.2;

/// Segment sizes, in eighths of a track.
const EIGHTHS: [u32; 11] = [1, 2, 4, 6, 8, 12, 16, 24, 32, 48, 64];

/// The index of the size of one track in [`EIGHTHS`].
const ONE_TRACK: usize = 4;

/// The number of sectors of the log for the write cost: 128 MiB.
const LOG_SECTORS: u64 = 1 << 18;

/// The number of live blocks, as a share of the log's size in blocks: three quarters, as in the
/// simulations of Rosenblum and Ousterhout (TOCS 1992, section 3.5).
const UTILIZATION: f64 = 0.75;

/// The log's size over the minimum space that a cleaning pass should free, at any segment size.
const LOG_PER_PASS: u64 = 32;

/// The writes to the log. They always overwrite existing blocks of 4 KiB.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogWorkload {
    /// Single blocks, all equally likely. The cleaner is greedy.
    Uniform,
    /// Single blocks, a tenth of which receive nine in ten writes (Rosenblum and Ousterhout's hot
    /// and cold files). The cleaner weighs cost and benefit.
    HotCold,
    /// Whole files of 4 KiB to 1 MiB, all equally likely. The files of each power of two have the
    /// same number of blocks in total (assumed). The cleaner weighs cost and benefit.
    Files,
}

impl LogWorkload {
    /// All workloads.
    pub const ALL: [LogWorkload; 3] = [
        LogWorkload::Uniform,
        LogWorkload::HotCold,
        LogWorkload::Files,
    ];

    fn policy(self) -> CleaningPolicy {
        match self {
            LogWorkload::Uniform => CleaningPolicy::Greedy,
            LogWorkload::HotCold | LogWorkload::Files => CleaningPolicy::CostBenefit,
        }
    }

    fn title(self) -> &'static str {
        match self {
            LogWorkload::Uniform => "random blocks",
            LogWorkload::HotCold => "hot and cold blocks",
            LogWorkload::Files => "whole files",
        }
    }
}

/// The ratio of the overall write costs of unaligned and aligned segments of a track, and for each
/// workload the segment size in KB at which the aligned cost is lowest.
///
/// # Errors
/// Returns an error if the requests do not fit the drive's first zone, or the log does not fit the
/// drive.
pub fn overall_write_cost(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let aligned = inefficiencies(bench, true)?;
    let unaligned = inefficiencies(bench, false)?;
    let mut values = vec![unaligned[ONE_TRACK] / aligned[ONE_TRACK]];
    for workload in LogWorkload::ALL {
        let costs = write_costs(bench, workload)?;
        let overall = costs
            .iter()
            .zip(&aligned)
            .map(|(cost, inefficiency)| cost * inefficiency);
        let sizes = sizes(bench);
        let least = sizes.zip(overall).min_by(|a, b| a.1.total_cmp(&b.1));
        values.push(least.map_or(f64::NAN, |(sectors, _)| bench.kb(sectors)));
    }
    Ok(values)
}

/// The inefficiency of unaligned transfers over that of the model, 5.2 ms at 40 MB/s: at a track,
/// and at the size between an eighth of a track and eight tracks where they differ most.
///
/// # Errors
/// Returns the errors of [`overall_write_cost`].
pub fn transfer_model(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let unaligned = inefficiencies(bench, false)?;
    let ratios: Vec<f64> = sizes(bench)
        .zip(unaligned)
        .map(|(sectors, measured)| measured / modelled(bench, sectors))
        .collect();
    let apart = |ratio: &f64| (ratio - 1.0).abs();
    let furthest = ratios
        .iter()
        .copied()
        .max_by(|a, b| apart(a).total_cmp(&apart(b)));
    Ok(vec![ratios[ONE_TRACK], furthest.unwrap_or(f64::NAN)])
}

/// Draws the overall write cost against segment size, aligned, unaligned, and by the model, with
/// one panel per workload.
///
/// # Errors
/// Returns the errors of [`overall_write_cost`].
pub fn overall_write_cost_curves(bench: &Bench) -> Result<Figure, LabError> {
    let models = sizes(bench)
        .map(|sectors| modelled(bench, sectors))
        .collect();
    let lines = [
        ("aligned to tracks", inefficiencies(bench, true)?),
        ("unaligned", inefficiencies(bench, false)?),
        ("5.2 ms * 40 MB/s", models),
    ];
    let mut panels = Vec::new();
    for workload in LogWorkload::ALL {
        let costs = write_costs(bench, workload)?;
        let series = lines.iter().map(|(name, inefficiencies)| {
            let overall = costs.iter().zip(inefficiencies).map(|(a, b)| a * b);
            Series {
                name: (*name).to_owned(),
                style: Style::Line,
                points: sizes(bench)
                    .map(|sectors| bench.kb(sectors))
                    .zip(overall)
                    .collect(),
            }
        });
        panels.push(Panel {
            title: format!("LFS, {}", workload.title()),
            x: "segment size (KiB)".into(),
            y: "overall write cost".into(),
            series: series.collect(),
            ..Panel::default()
        });
    }
    Ok(Figure { panels })
}

/// The segment sizes in sectors.
fn sizes(bench: &Bench) -> impl Iterator<Item = u32> + use<> {
    let track = bench.track_sectors();
    EIGHTHS.into_iter().map(move |eighths| track * eighths / 8)
}

fn modelled(bench: &Bench, sectors: u32) -> f64 {
    POSITIONING_MS * STREAMING_BYTES_PER_MS / (bench.kb(sectors) * 1024.0) + 1.0
}

/// The actual over the ideal time of a segment's transfer, for each size.
fn inefficiencies(bench: &Bench, aligned: bool) -> Result<Vec<f64>, LabError> {
    let inefficiency = |sectors| {
        let measured = bench.run(&random_in_zone_0(sectors, aligned, Queue::TwoReq))?;
        let ideal_ms = bench.kb(sectors) * 1024.0 / STREAMING_BYTES_PER_MS;
        Ok(measured.head_time_ms / ideal_ms)
    };
    sizes(bench).map(inefficiency).collect()
}

/// The write cost of our cleaner, for each segment size.
fn write_costs(bench: &Bench, workload: LogWorkload) -> Result<Vec<f64>, LabError> {
    sizes(bench)
        .map(|sectors| write_cost(bench, workload, sectors))
        .collect()
}

/// Fills a log with segments of one size. Then writes as many blocks as the log has, once
/// unmeasured and three times measured.
fn write_cost(bench: &Bench, workload: LogWorkload, segment_sectors: u32) -> Result<f64, LabError> {
    let tracks = TrackMap::from_sizes(bench.geometry.track_sizes());
    let range = Lbn(0)..Lbn(LOG_SECTORS);
    let mut config = LogConfig {
        id: 1,
        sizing: SegmentSizing::Fixed(Sectors(segment_sectors.into())),
        cleaning: Cleaning {
            policy: workload.policy(),
            segments: (LOG_SECTORS / LOG_PER_PASS).div_ceil(segment_sectors.into()) as u32,
        },
        ..LogConfig::default()
    };
    config.blocks =
        (LOG_SECTORS as f64 / f64::from(config.shape.block_sectors) * UTILIZATION) as u64;
    let mut log = Log::format(&tracks, range, &config)?;
    let mut device = vec![0; LOG_SECTORS as usize * config.shape.sector_bytes as usize];
    perform(&mut log, &mut device)?;
    let mut rng = Rng::new(bench.seed);
    let files = workload.files(config.blocks);
    for block in 0..config.blocks {
        log.write(block, &BLOCK)?;
        perform(&mut log, &mut device)?;
    }
    let mut before = Traffic::default();
    for until in [2, 5] {
        before = log.traffic();
        while log.traffic().user_blocks < until * config.blocks {
            for block in workload.next(&files, config.blocks, &mut rng) {
                log.write(block, &BLOCK)?;
                perform(&mut log, &mut device)?;
            }
        }
    }
    Ok(log
        .traffic()
        .since(&before)
        .write_cost(config.shape.block_sectors))
}

/// The content of a block. The cost does not depend on it.
const BLOCK: [u8; 4096] = [0; 4096];

impl LogWorkload {
    /// The first block of each file, and the end of the last file.
    fn files(self, blocks: u64) -> Vec<u64> {
        const CLASSES: u32 = 9;
        let mut starts = Vec::new();
        let mut next = 0;
        for class in 0..CLASSES {
            let (end, size) = (
                u64::from(class + 1) * blocks / u64::from(CLASSES),
                1 << class,
            );
            while next + size <= end {
                starts.push(next);
                next += size;
            }
        }
        starts.push(next);
        starts
    }

    /// Returns the blocks to write next.
    fn next(self, files: &[u64], blocks: u64, rng: &mut Rng) -> std::ops::Range<u64> {
        match self {
            LogWorkload::Uniform => one(rng.below(blocks)),
            LogWorkload::HotCold => {
                let hot = blocks / 10;
                one(if rng.chance(0.9) {
                    rng.below(hot)
                } else {
                    hot + rng.below(blocks - hot)
                })
            }
            LogWorkload::Files => {
                let file = rng.below(files.len() as u64 - 1) as usize;
                files[file]..files[file + 1]
            }
        }
    }
}

fn one(block: u64) -> std::ops::Range<u64> {
    block..block + 1
}

/// Performs the operations of a log on bytes that begin at LBN 0.
fn perform(log: &mut Log, device: &mut [u8]) -> Result<(), LogError> {
    let sector = log.shape().sector_bytes as usize;
    while let Some(op) = log.next_op() {
        let result = match op {
            LogOp::Read { lbn, sectors } => {
                let at = lbn.0 as usize * sector;
                device[at..at + sectors.0 as usize * sector].to_vec()
            }
            LogOp::Write { lbn, data } => {
                let at = lbn.0 as usize * sector;
                device[at..at + data.len()].copy_from_slice(&data);
                Vec::new()
            }
            LogOp::Flush => Vec::new(),
        };
        log.complete(result)?;
    }
    Ok(())
}

/// The number of the working log's tracks on each side of the zone boundary.
const TRACKS_PER_SIDE: usize = 40;

/// The number of power cuts.
const CUTS: u64 = 40;

/// Runs a log whose segments match the tracks around the boundary between the first two zones, or
/// in the middle of a drive with a single zone. The drive has write-back enabled, and its data is
/// stored. The log is repeatedly written, cleaned, and interrupted by power cuts. Returns the share
/// of segments that are exactly a track, the number of different segment sizes, the blocks copied
/// by cleaning, and the number of blocks that lost synced data, over all power cuts.
///
/// # Errors
/// Returns an error if the log does not fit the tracks, the disk fails, or the log cannot be opened
/// again.
pub fn working_log(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let tracks = TrackMap::from_sizes(bench.geometry.track_sizes());
    let first = tracks.track(0).map(|track| track.sectors);
    let differs = tracks.tracks().position(|track| {
        first.is_some_and(|first| {
            // A track that lost a sector does not begin a new zone.
            track.sectors.0.abs_diff(first.0) > 4
        })
    });
    let boundary = differs.unwrap_or(tracks.len() / 2).max(TRACKS_PER_SIDE);
    let lbn = |track: usize| {
        tracks
            .track(track)
            .map_or(tracks.end(), |track| track.first_lbn)
    };
    let range = lbn(boundary - TRACKS_PER_SIDE)..lbn(boundary + TRACKS_PER_SIDE);
    let mut config = LogConfig {
        id: bench.seed,
        cleaning: Cleaning {
            policy: CleaningPolicy::CostBenefit,
            segments: 4,
        },
        ..LogConfig::default()
    };
    config.blocks = config.most_blocks(&tracks, range.clone())?;

    let mut profile = (*bench.profile).clone();
    profile.cache.write_back = WriteBack::Full;
    let mut disk = Disk::new(&profile)?;
    let mut log = Log::format(&tracks, range.clone(), &config)?;
    perform_all_on_disk(&mut log, &mut disk)?;
    let boundaries: BTreeSet<Lbn> = tracks.tracks().map(|track| track.first_lbn).collect();
    let matching = log.segments().iter().filter(|segment| {
        let track = tracks.track_of(segment.first);
        boundaries.contains(&segment.first)
            && track.is_some_and(|track| track.end() == segment.end())
    });
    let matching = matching.count() as f64 / log.segments().len() as f64;
    let lengths: BTreeSet<u32> = log
        .segments()
        .iter()
        .map(|segment| segment.sectors)
        .collect();

    let mut rng = Rng::new(bench.seed);
    let mut stamps = vec![Stamps::default(); config.blocks as usize];
    let (mut copied, mut lost) = (0, 0);
    for cut in 0..CUTS {
        for step in 0..config.blocks / 8 {
            let block = rng.below(config.blocks);
            let stamp = 1 + cut * config.blocks + step;
            stamps[block as usize].since.push(stamp);
            log.write(block, &stamp.to_le_bytes().repeat(BLOCK.len() / 8))?;
            perform_all_on_disk(&mut log, &mut disk)?;
            if rng.chance(0.02) {
                log.sync()?;
                perform_all_on_disk(&mut log, &mut disk)?;
                stamps.iter_mut().for_each(Stamps::synced);
            }
        }
        copied += log.traffic().copied_blocks;
        disk.power_cut(rng.bits())?;
        log = open(range.clone(), &config, &mut disk)?;
        perform_all_on_disk(&mut log, &mut disk)?;
        for (block, stamps) in stamps.iter_mut().enumerate() {
            let found = read(&log, &mut disk, block as u64)?;
            lost += u64::from(!stamps.allow(found));
            *stamps = Stamps {
                durable: found,
                since: Vec::new(),
            };
        }
    }
    Ok(vec![
        matching,
        lengths.len() as f64,
        copied as f64,
        lost as f64,
    ])
}

/// The stamps that a block can contain after a power cut.
#[derive(Clone, Debug, Default)]
struct Stamps {
    durable: u64,
    since: Vec<u64>,
}

impl Stamps {
    fn synced(&mut self) {
        self.durable = self.since.pop().unwrap_or(self.durable);
        self.since.clear();
    }

    fn allow(&self, found: u64) -> bool {
        found == self.durable || self.since.contains(&found)
    }
}

fn perform_all_on_disk(log: &mut Log, disk: &mut Disk) -> Result<(), LabError> {
    while let Some(op) = log.next_op() {
        log.complete(perform_on_disk(disk, op)?)?;
    }
    Ok(())
}

fn perform_on_disk(disk: &mut Disk, op: LogOp) -> Result<Vec<u8>, DiskError> {
    let mut bytes = Vec::new();
    match op {
        LogOp::Read { lbn, sectors } => {
            bytes.resize(sectors.0 as usize * disk.sector_bytes() as usize, 0);
            disk.read(lbn.0, &mut bytes)?;
        }
        LogOp::Write { lbn, data } => {
            disk.write(lbn.0, &data)?;
        }
        LogOp::Flush => {
            disk.flush()?;
        }
    }
    Ok(bytes)
}

fn open(range: std::ops::Range<Lbn>, config: &LogConfig, disk: &mut Disk) -> Result<Log, LabError> {
    let mut step = Recovery::begin(range, config.shape.sector_bytes, config.cleaning);
    loop {
        step = match step {
            RecoveryStep::Perform(op, recovery) => recovery.complete(perform_on_disk(disk, op)?)?,
            RecoveryStep::Open(log) => return Ok(*log),
        }
    }
}

/// Returns the stamp that fills a block; 0 if the block was never written, and `u64::MAX` if it is
/// damaged or mixed.
fn read(log: &Log, disk: &mut Disk, block: u64) -> Result<u64, LabError> {
    let bytes = match log.read(block)? {
        BlockLocation::Nothing => return Ok(0),
        BlockLocation::Here(bytes) => bytes.to_vec(),
        BlockLocation::At(place) => {
            let bytes = perform_on_disk(disk, log.op_for(place))?;
            if log.verify(place, &bytes).is_err() {
                return Ok(u64::MAX);
            }
            bytes
        }
    };
    let stamp = bytes
        .first_chunk()
        .map_or(0, |first| u64::from_le_bytes(*first));
    let whole = bytes
        .chunks_exact(8)
        .all(|eight| eight == stamp.to_le_bytes());
    Ok(if whole { stamp } else { u64::MAX })
}

//! The benefit of traxtents on present-day drives: the papers' questions applied to larger drives,
//! with and without zero-latency access.
//!
//! Each [`Question`] is a claim of a paper, measured as for the paper's drive, but in tracks of the
//! drive under test. All concern the beginning of the drive. It is not known whether the modern
//! drives have zero-latency access, so each question is measured with and without it. Nothing else
//! in the profile changes. Left out: questions that apply only to the paper's drive, such as a
//! round of half a second in which no whole track is played.

use std::thread;

use traxtent_layout::video::BitRate;
use traxtent_sim::WorkloadResult;
use traxtent_sim::efficiency::{EfficiencyCurve, Queue, random_in_zone_0};
use traxtent_sim::video::{Alignment, Extents, Order, ROUNDS, SoftServer};

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};
use crate::fs::linux::{self, Startup};
use crate::fs::{Config, Ext2, SimulatedHost};
use crate::traxtents::MAIN_DRIVE;

/// The drives: that of paper T, for reference; one of 3 TB, whose tracks and skews were measured on
/// a real drive; and a generic one of 20 TB.
pub const DRIVES: [&str; 3] = [MAIN_DRIVE, "toshiba-p300", "generic-20tb"];

/// The size of a track in the first zone of paper T's drive.
const PAPER_TRACK_BYTES: u32 = 264 * 1024;

/// The number of steps per track of the search for an equally efficient size.
const STEPS_TO_EQUAL: u32 = 8;
/// The largest size in that search, in tracks.
const EQUAL_TRACKS_MAX: u32 = 16;

/// The first LBN after the ext2 partition of a comparison. These 8 GB are enough for the two files.
const DIFF_END: u64 = 8_000_000_000 / 512;
/// The first LBN after the range of the streams. They lie anywhere in 73 GB, as on paper Q's
/// drive (on paper T's drive, in all of its 9 GB).
const STREAMS_END: u64 = 142_578_125;

/// The number of runs of the streams, the same as in paper Q.
const RUNS: u64 = 10;
/// The startup latency, in seconds, at which paper Q compares the systems.
const SLOW_S: f64 = 3.0;

/// The number of points per track on the figure's curves.
const POINTS_PER_TRACK: u32 = 16;
/// The largest request size on the curves, in tracks.
const CURVE_TRACKS: u32 = 2;

/// A question about a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// The efficiency of a random read of a track, with another request queued.
    Efficiency,
    /// The head time of such a read in milliseconds, with one request at the drive.
    OneReq,
    /// The same with two requests at the drive.
    TwoReq,
    /// The same with two requests at the drive, for a read of 264 KB, which was a track in the
    /// paper.
    PaperSize,
    /// The size, in units of 1,048,576 bytes, at which an unaligned read is as efficient as an
    /// aligned one of a track. Infinity if sixteen tracks do not suffice.
    EqualSize,
    /// The number of streams of 4 Mb/s that the drive supports in soft real time. An I/O is a
    /// track, and a round is the playing time of an I/O.
    Streams4,
    /// The same with streams of 25 Mb/s.
    Streams25,
    /// The seconds that Linux's ext2 takes to compare two files of 512 MB.
    Diff,
    /// The same with read-ahead in windows of a track, aligned or not.
    DiffInTracks,
    /// The startup latency in milliseconds of streams of 500 KB/s on Linux's ext2, at the first
    /// stream whose latency reaches 3 s without alignment, or at the 110th.
    Startup,
    /// The same with read-ahead in windows of a track, aligned or not.
    StartupInTracks,
}

impl Question {
    /// All questions.
    pub const ALL: [Question; 11] = [
        Question::Efficiency,
        Question::OneReq,
        Question::TwoReq,
        Question::PaperSize,
        Question::EqualSize,
        Question::Streams4,
        Question::Streams25,
        Question::Diff,
        Question::DiffInTracks,
        Question::Startup,
        Question::StartupInTracks,
    ];

    /// The name of the question.
    pub fn name(self) -> &'static str {
        match self {
            Question::Efficiency => "efficiency",
            Question::OneReq => "head-time-onereq",
            Question::TwoReq => "head-time-tworeq",
            Question::PaperSize => "head-time-264kb",
            Question::EqualSize => "equally-efficient-size",
            Question::Streams4 => "streams-4mbps",
            Question::Streams25 => "streams-25mbps",
            Question::Diff => "ext2-diff",
            Question::DiffInTracks => "ext2-diff-windows-of-a-track",
            Question::Startup => "ext2-startup",
            Question::StartupInTracks => "ext2-startup-windows-of-a-track",
        }
    }

    /// The claim, or the group of claims, that the question is taken from.
    pub fn claim(self) -> &'static str {
        match self {
            Question::Efficiency => "T2",
            Question::OneReq => "T8a",
            Question::TwoReq | Question::PaperSize => "T8b",
            Question::EqualSize => "T4",
            Question::Streams4 | Question::Streams25 => "T26",
            Question::Diff | Question::DiffInTracks => "Q8",
            Question::Startup | Question::StartupInTracks => "Q9",
        }
    }

    /// Measures the answer on a drive.
    ///
    /// # Errors
    /// Returns an error if the drive has no whole track in its first zone, is too small for the
    /// file systems, or cannot serve a request.
    pub fn measure(self, bench: &Bench) -> Result<Answer, LabError> {
        let track = bench.track_sectors();
        let head_time = |sectors, queue| {
            Answer::of(|aligned| Ok(read(bench, sectors, aligned, queue)?.head_time_ms))
        };
        match self {
            Question::Efficiency => Answer::of(|aligned| efficiency(bench, track, aligned)),
            Question::OneReq => head_time(track, Queue::OneReq),
            Question::TwoReq => head_time(track, Queue::TwoReq),
            Question::PaperSize => {
                let sectors = PAPER_TRACK_BYTES / bench.profile.sector.logical_bytes;
                head_time(sectors, Queue::TwoReq)
            }
            Question::EqualSize => equal_size(bench),
            Question::Streams4 => streams(bench, BitRate(4_000_000)),
            Question::Streams25 => streams(bench, BitRate(25_000_000)),
            Question::Diff => diff(bench, Ext2::Conventional),
            Question::DiffInTracks => diff(bench, Ext2::TrackSized),
            Question::Startup => startup(bench, Ext2::Conventional),
            Question::StartupInTracks => startup(bench, Ext2::TrackSized),
        }
    }
}

fn read(
    bench: &Bench,
    sectors: u32,
    aligned: bool,
    queue: Queue,
) -> Result<WorkloadResult, LabError> {
    bench.run(&random_in_zone_0(sectors, aligned, queue))
}

/// The efficiency with another request always queued.
fn efficiency(bench: &Bench, sectors: u32, aligned: bool) -> Result<f64, LabError> {
    Ok(read(bench, sectors, aligned, Queue::TwoReq)?.efficiency())
}

/// Returns the size at which an unaligned read is as efficient as an aligned read of a track, and
/// the size of a track.
fn equal_size(bench: &Bench) -> Result<Answer, LabError> {
    let track = bench.track_sectors();
    let efficiency_min = efficiency(bench, track, true)?;
    // The search ends at the first size that suffices.
    let mut points = Vec::new();
    for sectors in (track / 2..=EQUAL_TRACKS_MAX * track).step_by((track / STEPS_TO_EQUAL) as usize)
    {
        let unaligned = efficiency(bench, sectors, false)?;
        points.push((sectors, unaligned));
        if unaligned >= efficiency_min {
            break;
        }
    }
    let reached = EfficiencyCurve { points }.reaches(efficiency_min);
    let mb = bench.kb(1) / 1024.0;
    Ok(Answer {
        unaligned: reached.map_or(f64::INFINITY, |sectors| sectors * mb),
        aligned: f64::from(track) * mb,
    })
}

/// The largest number of streams of a rate.
fn streams(bench: &Bench, bitrate: BitRate) -> Result<Answer, LabError> {
    let drive = bench.drive();
    let extents = Extents::in_zone(&drive, 0)?;
    let server = SoftServer {
        drive: &drive,
        extents: &extents,
        bitrate,
        order: Order::Sweep,
        rounds: bench.scaled_count(ROUNDS.into()) as u32,
        watch: &|_| (),
    };
    Answer::of(|aligned| {
        let alignment = if aligned {
            Alignment::Aligned
        } else {
            Alignment::Unaligned
        };
        let track = extents.io(alignment, alignment.steps());
        let round = extents.play_time(track, bitrate);
        Ok(f64::from(server.most_streams(track, round)?))
    })
}

/// The time of a comparison on a conventional and on an aligned system, with the drive's read-ahead
/// enabled.
fn diff(bench: &Bench, conventional: Ext2) -> Result<Answer, LabError> {
    Answer::of(|aligned| {
        let system = if aligned { Ext2::Aligned } else { conventional };
        let config = Config {
            partition_end: Some(DIFF_END),
            ..system.config(bench.track_sectors(), linux::MEMORY_MB[0])
        };
        Ok(linux::diff(&mut SimulatedHost::new(bench, config)?).seconds())
    })
}

/// The startup latency at which a conventional system is slow, and that of an aligned system with
/// the same number of streams.
fn startup(bench: &Bench, conventional: Ext2) -> Result<Answer, LabError> {
    let measure =
        |system| Startup::within(bench, system, Some(STREAMS_END), bench.scaled_count(RUNS));
    let (conventional, aligned) = (measure(conventional)?, measure(Ext2::Aligned)?);
    let at = conventional.reaches(SLOW_S);
    Ok(Answer {
        unaligned: conventional.seconds[at] * 1e3,
        aligned: aligned.seconds[at] * 1e3,
    })
}

/// A measured value without and with track alignment.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// The value without track alignment.
    pub unaligned: f64,
    /// The value with track alignment.
    pub aligned: f64,
}

impl Answer {
    fn of(measure: impl Fn(bool) -> Result<f64, LabError>) -> Result<Answer, LabError> {
        Ok(Answer {
            unaligned: measure(false)?,
            aligned: measure(true)?,
        })
    }

    /// The change due to alignment, as a share of the unaligned value.
    pub fn change(&self) -> f64 {
        self.aligned / self.unaligned - 1.0
    }
}

/// A drive and all answers.
#[derive(Clone, Debug)]
pub struct DriveAnswers {
    /// The drive with its unchanged profile.
    pub bench: Bench,
    /// The rows, one per question, in the order of the questions.
    pub rows: Vec<Row>,
}

/// The answers to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// The question.
    pub question: Question,
    /// The answer with zero-latency access.
    pub zero_latency: Answer,
    /// The answer without zero-latency access.
    pub ordinary_access: Answer,
}

/// Returns the same drive with or without zero-latency access for reads.
///
/// # Errors
/// Returns an error only if the drive's profile is invalid.
pub fn with_zero_latency(bench: &Bench, zero_latency: bool) -> Result<Bench, LabError> {
    bench.with_parameter("access.zero_latency_read", &zero_latency.to_string())
}

/// Measures the answers to all questions on all drives. Calls `done` after each answer.
///
/// # Errors
/// Returns an error if a question cannot be measured on a drive.
pub fn measure_all(
    benches: &[Bench],
    done: &(dyn Fn() + Sync),
) -> Result<Vec<DriveAnswers>, LabError> {
    let measure_benches = |zero_latency| -> Result<Vec<Answer>, LabError> {
        let mut answers = Vec::new();
        for bench in benches {
            let bench = with_zero_latency(bench, zero_latency)?;
            for question in Question::ALL {
                answers.push(question.measure(&bench)?);
                done();
            }
        }
        Ok(answers)
    };
    let [with, without] = both(measure_benches)?;
    let rows: Vec<Row> = with
        .into_iter()
        .zip(without)
        .zip(Question::ALL.into_iter().cycle())
        .map(|((zero_latency, ordinary_access), question)| Row {
            question,
            zero_latency,
            ordinary_access,
        })
        .collect();
    let per_drive = benches.iter().zip(rows.chunks(Question::ALL.len()));
    Ok(per_drive
        .map(|(bench, rows)| DriveAnswers {
            bench: bench.clone(),
            rows: rows.to_vec(),
        })
        .collect())
}

/// Measures with and without zero-latency access, in parallel.
fn both<T: Send>(measure: impl Fn(bool) -> Result<T, LabError> + Sync) -> Result<[T; 2], LabError> {
    thread::scope(|scope| {
        let without = scope.spawn(|| measure(false));
        let with = measure(true);
        Ok([with?, without.join().expect("measuring does not panic")?])
    })
}

/// Draws efficiency against request size in tracks, with and without zero-latency access, aligned
/// and (dashed) unaligned.
///
/// # Errors
/// Returns an error if the efficiency cannot be measured on a drive.
pub fn efficiency_curves(benches: &[Bench]) -> Result<Figure, LabError> {
    let panel = |zero_latency| -> Result<Panel, LabError> {
        let mut series = Vec::new();
        for bench in benches {
            let bench = with_zero_latency(bench, zero_latency)?;
            for (aligned, style) in [(true, Style::Line), (false, Style::Dashed)] {
                series.push(Series {
                    name: bench.profile.name.clone(),
                    style,
                    points: curve(&bench, aligned)?,
                });
            }
        }
        let access = if zero_latency { "With" } else { "Without" };
        Ok(Panel {
            title: format!("{access} zero-latency access (dashed: unaligned)"),
            x: "request size, tracks".to_owned(),
            y: "efficiency, tworeq".to_owned(),
            series,
            ..Panel::default()
        })
    };
    Ok(Figure {
        panels: both(panel)?.into(),
    })
}

/// The request sizes in tracks, and their efficiency.
fn curve(bench: &Bench, aligned: bool) -> Result<Vec<(f64, f64)>, LabError> {
    let point = |step| {
        let tracks = f64::from(step) / f64::from(POINTS_PER_TRACK);
        let sectors = bench.track_sectors() * step / POINTS_PER_TRACK;
        Ok((tracks, efficiency(bench, sectors, aligned)?))
    };
    (1..=CURVE_TRACKS * POINTS_PER_TRACK).map(point).collect()
}

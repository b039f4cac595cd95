//! What traxtents buy on a drive of today: questions of the papers, asked of larger drives, with zero-latency access and
//! without it.
//!
//! Each [`Question`] is a claim of a paper, measured as for the paper's drive, but in tracks of the drive that is asked.
//! All are about the beginning of the drive. Whether the modern drives read at zero latency is not known, so both answers are
//! given: the measurement changes that one figure of the profile and nothing else. Left out: what cannot be
//! asked of drives other than the paper's, such as a round of half a second in which no whole track plays out.

use std::thread;

use traxtent_core::video::BitRate;

use crate::bench::{Bench, LabError, Measured};
use crate::curve::{EfficiencyCurve, Queue, random_in_zone_0};
use crate::figure::{Figure, Panel, Series, Style};
use crate::fs::linux::{self, Startup};
use crate::fs::{Config, Ext2, Machine};
use crate::traxtents::MAIN_DRIVE;
use crate::video::{Alignment, Extents, Order, ROUNDS, SoftServer};

/// The drive of paper T, for reference; one of 3 TB, whose tracks and skews were measured on a real one; one of 20 TB,
/// which is no particular drive.
pub const DRIVES: [&str; 3] = [MAIN_DRIVE, "toshiba-p300", "generic-20tb"];

/// A track in the first zone of paper T's drive.
const PAPER_TRACK_BYTES: u32 = 264 * 1024;

/// Steps to a track, and the most tracks, of the search for an equally efficient size.
const STEPS_TO_EQUAL: u32 = 8;
const EQUAL_TRACKS_MAX: u32 = 16;

/// LBN before which the partition of ext2 ends. For a comparison it has room for the files, whose places are all that
/// matters of it; streams lie anywhere in 73 GB, as on paper Q's drive (all of the 9 GB of paper T's).
const DIFF_END: u64 = 8_000_000_000 / 512;
const STREAMS_END: u64 = 142_578_125;

/// Runs of the streams, as many as paper Q made; and the startup latency in seconds at which it compares.
const RUNS: u64 = 10;
const SLOW_S: f64 = 3.0;

/// Points of the picture's curves to a track, and how many tracks they go on for.
const POINTS_A_TRACK: u32 = 16;
const TRACKS: u32 = 2;

/// What is asked of a drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Question {
    /// How efficient is a random read of a track, with another one queued behind it?
    Efficiency,
    /// What is its head time in milliseconds with one request at the drive?
    OneReq,
    /// And with two?
    TwoReq,
    /// With two, but of a read of 264 KB, which was a track in the paper?
    PaperSize,
    /// Of how many units of 1,048,576 bytes has an unaligned read to be, so as to be as efficient as an aligned one of a
    /// track? Infinity, if sixteen tracks do not suffice.
    EqualSize,
    /// How many streams of 4 Mb/s does the drive carry in soft real time, with I/Os of a track and rounds as long as these
    /// play?
    Streams4,
    /// And of 25 Mb/s?
    Streams25,
    /// How many seconds does Linux's ext2 take to compare two files of 512 MB?
    Diff,
    /// And if it reads ahead in windows of a track, aligned or not?
    DiffInTracks,
    /// What is the startup latency in milliseconds of streams of 500 KB/s on Linux's ext2, where it reaches 3 s without
    /// alignment, or of the 110th?
    Startup,
    /// And if it reads ahead in windows of a track, aligned or not?
    StartupInTracks,
}

impl Question {
    /// Every question.
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

    /// Its name.
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

    /// The claim, or the group of claims, that asks it of the paper's drive.
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

    /// Asks it of a drive.
    ///
    /// # Errors
    /// If the drive has no whole track in its first zone, or cannot serve a request.
    pub fn ask(self, bench: &Bench) -> Result<Answer, LabError> {
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

fn read(bench: &Bench, sectors: u32, aligned: bool, queue: Queue) -> Result<Measured, LabError> {
    bench.run(&random_in_zone_0(sectors, aligned, queue))
}

/// With another request always queued.
fn efficiency(bench: &Bench, sectors: u32, aligned: bool) -> Result<f64, LabError> {
    Ok(read(bench, sectors, aligned, Queue::TwoReq)?.efficiency())
}

/// The size that an unaligned read has to have, and that of a track.
fn equal_size(bench: &Bench) -> Result<Answer, LabError> {
    let track = bench.track_sectors();
    let sought = efficiency(bench, track, true)?;
    // The search ends at the first size that suffices.
    let mut points = Vec::new();
    for sectors in (track / 2..=EQUAL_TRACKS_MAX * track).step_by((track / STEPS_TO_EQUAL) as usize)
    {
        let here = efficiency(bench, sectors, false)?;
        points.push((sectors, here));
        if here >= sought {
            break;
        }
    }
    let reached = EfficiencyCurve { points }.reaches(sought);
    let mb = bench.kb(1) / 1024.0;
    Ok(Answer {
        unaligned: reached.map_or(f64::INFINITY, |sectors| sectors * mb),
        aligned: f64::from(track) * mb,
    })
}

/// The most streams of a rate.
fn streams(bench: &Bench, bitrate: BitRate) -> Result<Answer, LabError> {
    let extents = Extents::in_zone(bench, 0)?;
    let server = SoftServer {
        bench,
        extents: &extents,
        bitrate,
        order: Order::Sweep,
        rounds: bench.few(ROUNDS.into()) as u32,
        watch: &|_| (),
    };
    Answer::of(|aligned| {
        let alignment = match aligned {
            true => Alignment::Aligned,
            false => Alignment::Unaligned,
        };
        let track = extents.io(alignment, alignment.steps());
        let round = extents.play_time(track, bitrate);
        Ok(f64::from(server.most_streams(track, round)?))
    })
}

/// The time of a comparison with a conventional system and an aligned one, the drive's read-ahead on.
fn diff(bench: &Bench, conventional: Ext2) -> Result<Answer, LabError> {
    Answer::of(|aligned| {
        let system = if aligned { Ext2::Aligned } else { conventional };
        let config = Config {
            partition_end: Some(DIFF_END),
            ..system.config(bench.track_sectors(), linux::MEMORY[0])
        };
        Ok(linux::diff(&mut Machine::new(bench, config)?).seconds())
    })
}

/// The startup latency at which a conventional system is slow, and that of an aligned one there.
fn startup(bench: &Bench, conventional: Ext2) -> Result<Answer, LabError> {
    let measure = |system| Startup::within(bench, system, Some(STREAMS_END), bench.few(RUNS));
    let (conventional, aligned) = (measure(conventional)?, measure(Ext2::Aligned)?);
    let at = conventional.reaches(SLOW_S);
    Ok(Answer {
        unaligned: conventional.seconds[at] * 1e3,
        aligned: aligned.seconds[at] * 1e3,
    })
}

/// A number without alignment to tracks and with it.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Answer {
    /// Requests lie anywhere.
    pub unaligned: f64,
    /// Requests are tracks.
    pub aligned: f64,
}

impl Answer {
    fn of(measure: impl Fn(bool) -> Result<f64, LabError>) -> Result<Answer, LabError> {
        Ok(Answer {
            unaligned: measure(false)?,
            aligned: measure(true)?,
        })
    }

    /// What alignment changes, as a share of the number without it.
    pub fn change(&self) -> f64 {
        self.aligned / self.unaligned - 1.0
    }
}

/// A drive and all answers.
#[derive(Clone, Debug)]
pub struct Asked {
    /// The drive as its profile has it.
    pub bench: Bench,
    /// A row a question, in their order.
    pub rows: Vec<Row>,
}

/// The answers to a question.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Row {
    /// What was asked.
    pub question: Question,
    /// With zero-latency access.
    pub zero_latency: Answer,
    /// Without it.
    pub first_sector_first: Answer,
}

/// The same drive with zero-latency access of reads, or without it.
///
/// # Errors
/// None that a drive of a valid profile has.
pub fn with_zero_latency(bench: &Bench, zero_latency: bool) -> Result<Bench, LabError> {
    bench.with("access.zero_latency_read", &zero_latency.to_string())
}

/// Asks every question of every drive; tells `done` of each answer.
///
/// # Errors
/// If a drive cannot be asked.
pub fn ask_all(benches: &[Bench], done: &(dyn Fn() + Sync)) -> Result<Vec<Asked>, LabError> {
    let ask = |zero_latency| -> Result<Vec<Answer>, LabError> {
        let mut answers = Vec::new();
        for bench in benches {
            let bench = with_zero_latency(bench, zero_latency)?;
            for question in Question::ALL {
                answers.push(question.ask(&bench)?);
                done();
            }
        }
        Ok(answers)
    };
    let [with, without] = both(ask)?;
    let rows: Vec<Row> = with
        .into_iter()
        .zip(without)
        .zip(Question::ALL.into_iter().cycle())
        .map(|((zero_latency, first_sector_first), question)| Row {
            question,
            zero_latency,
            first_sector_first,
        })
        .collect();
    let of_drives = benches.iter().zip(rows.chunks(Question::ALL.len()));
    Ok(of_drives
        .map(|(bench, rows)| Asked {
            bench: bench.clone(),
            rows: rows.to_vec(),
        })
        .collect())
}

/// Does something with zero-latency access and, beside it, without.
fn both<T: Send>(measure: impl Fn(bool) -> Result<T, LabError> + Sync) -> Result<[T; 2], LabError> {
    thread::scope(|scope| {
        let without = scope.spawn(|| measure(false));
        let with = measure(true);
        Ok([with?, without.join().expect("measuring does not panic")?])
    })
}

/// Efficiency against request size in tracks, with zero-latency access and without, aligned and (dashed) unaligned.
///
/// # Errors
/// If a drive cannot be asked.
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

/// Request sizes in tracks, and their efficiency.
fn curve(bench: &Bench, aligned: bool) -> Result<Vec<(f64, f64)>, LabError> {
    let point = |step| {
        let tracks = f64::from(step) / f64::from(POINTS_A_TRACK);
        let sectors = bench.track_sectors() * step / POINTS_A_TRACK;
        Ok((tracks, efficiency(bench, sectors, aligned)?))
    };
    (1..=TRACKS * POINTS_A_TRACK).map(point).collect()
}

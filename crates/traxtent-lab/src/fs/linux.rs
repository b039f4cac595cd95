//! Measurements of paper Q, section 2.5: ext2 on one disk.
//!
//! As in the paper, conventional systems run with the drive's read-ahead on. Aligned systems are
//! measured with it on and off, except for the streams, which run with it off. The paper's drive
//! continues to read ahead after the command that disables it. The paper nevertheless measured an
//! effect, so "off" means here that the drive's profile has no read-ahead.

use traxtent_units::stats::{ConfidenceInterval, ConfidenceLevel};

use super::apps::{self, ProgramRun, timed};
use super::config::{Config, Ext2};
use super::simulated_host::SimulatedHost;
use super::streams::Streams;
use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};

const MB: u64 = 1 << 20;

/// The memory in megabytes: for all programs except the streams, and for the streams.
pub(crate) const MEMORY_MB: [usize; 2] = [128, 2048];

/// The number of runs over which the streams' latencies are averaged. The paper averages ten, whose
/// results vary by about ten percent.
const RUNS: u64 = 50;

/// The number of neighbours on each side with which a startup latency is averaged.
const AROUND: usize = 8;

pub(super) fn without_read_ahead(bench: &Bench) -> Result<Bench, LabError> {
    bench.with_parameter("cache.read_ahead.until", "\"none\"")
}

/// The times of a program in seconds: conventional, aligned, aligned without the drive's
/// read-ahead.
fn each(
    bench: &Bench,
    program: impl Fn(&mut SimulatedHost) -> ProgramRun,
) -> Result<[f64; 3], LabError> {
    let run = |bench: &Bench, system: Ext2| -> Result<f64, LabError> {
        let config = system.config(bench.track_sectors(), MEMORY_MB[0]);
        Ok(program(&mut SimulatedHost::new(bench, config)?).seconds())
    };
    Ok([
        run(bench, Ext2::Conventional)?,
        run(bench, Ext2::Aligned)?,
        run(&without_read_ahead(bench)?, Ext2::Aligned)?,
    ])
}

/// Reads a file of 1 GB.
fn scan(host: &mut SimulatedHost) -> ProgramRun {
    let directory = host.directory(0);
    let file = host.existing(directory, 1024 * MB);
    timed(host, |host| apps::scan(host, file, 1024 * MB))
}

/// Writes a file of 1 GB.
fn fill(host: &mut SimulatedHost) -> ProgramRun {
    let directory = host.directory(0);
    timed(host, |host| {
        apps::fill(host, directory, 1024 * MB);
    })
}

/// Compares two files of 512 MB.
pub(crate) fn diff(host: &mut SimulatedHost) -> ProgramRun {
    let directory = host.directory(0);
    let files = [(); 2].map(|()| host.existing(directory, 512 * MB));
    timed(host, |host| apps::diff(host, files, 512 * MB))
}

/// Q7: the change of a stream's bandwidth due to alignment, with and without the drive's
/// read-ahead.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn stream(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let [conventional, aligned, off] = each(bench, scan)?;
    Ok(vec![conventional / aligned - 1.0, conventional / off - 1.0])
}

/// Q8: the speedup of a comparison of two files of 512 MB by alignment, and the change of the
/// aligned time when the drive's read-ahead is switched off.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn comparison(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let [conventional, aligned, off] = each(bench, diff)?;
    Ok(vec![conventional / aligned, off / aligned - 1.0])
}

/// Paper Q, Fig. 5: the bandwidths of Bonnie's sequential phases, which write a file and read it
/// again.
///
/// # Errors
/// Returns the errors of [`stream`].
pub fn stream_bars(bench: &Bench) -> Result<Figure, LabError> {
    let phase = |title: &str, seconds: [f64; 3]| {
        let bandwidths = seconds.map(|seconds| 1024.0 / seconds);
        bars(title, "bandwidth (MB/s)", bandwidths)
    };
    let panels = vec![
        phase("sequential write of 1 GB", each(bench, fill)?),
        phase("sequential read of 1 GB", each(bench, scan)?),
    ];
    Ok(Figure { panels })
}

/// Paper Q, Fig. 6: the time of a comparison.
///
/// # Errors
/// Returns the errors of [`comparison`].
pub fn comparison_bars(bench: &Bench) -> Result<Figure, LabError> {
    let seconds = each(bench, diff)?;
    let panel = bars("diff of two files of 512 MB", "time (s)", seconds);
    Ok(Figure::of(panel))
}

fn bars(title: &str, x: &str, lengths: [f64; 3]) -> Panel {
    let rows = ["conventional", "aligned", "aligned, drive's read-ahead off"];
    let points = (0..).map(f64::from).zip(lengths);
    Panel {
        title: title.to_owned(),
        x: x.to_owned(),
        y: String::new(),
        rows: rows.map(str::to_owned).to_vec(),
        series: vec![Series {
            name: x.to_owned(),
            style: Style::Bar,
            points: points.map(|(row, length)| (length, row)).collect(),
        }],
    }
}

/// Paper Q, Fig. 7: startup latencies against the number of streams, with their 90 % confidence
/// intervals.
///
/// # Errors
/// Returns the errors of [`streams`].
pub fn startup_curves(bench: &Bench) -> Result<Figure, LabError> {
    let mut series = Vec::new();
    for system in Ext2::ALL {
        let name = match system {
            Ext2::Conventional => "conventional",
            Ext2::TrackSized => "windows of a track",
            Ext2::Aligned => "aligned",
        };
        let startup = Startup::measure(bench, system)?;
        let row = |seconds: Vec<f64>| (1..).map(f64::from).zip(seconds).collect();
        for sign in [1.0, -1.0] {
            let bound = startup.seconds.iter().zip(&startup.confidence);
            let bound = bound.map(|(mean, half)| mean + sign * half);
            series.push(Series {
                name: format!("{name}: 90 %"),
                style: Style::Dashed,
                points: row(bound.collect()),
            });
        }
        series.push(Series::line(name, row(startup.seconds)));
    }
    Ok(Figure::of(Panel {
        title: "streams of 500 KB/s".to_owned(),
        x: "streams".to_owned(),
        y: "startup latency (s)".to_owned(),
        series,
        ..Panel::default()
    }))
}

/// Startup latencies by the number of streams, in seconds: the smoothed mean of the runs, and half
/// the width of its 90 % confidence interval.
#[derive(Clone, Debug)]
pub struct Startup {
    /// The means, beginning with the first stream.
    pub seconds: Vec<f64>,
    /// The half widths.
    pub confidence: Vec<f64>,
}

impl Startup {
    /// Measures a system.
    ///
    /// # Errors
    /// Returns an error if the drive is too small.
    pub fn measure(bench: &Bench, system: Ext2) -> Result<Startup, LabError> {
        Startup::within(bench, system, None, bench.scaled_count(RUNS))
    }

    /// Measures a system in `runs` runs. The partition ends at `partition_end`, if given.
    pub(crate) fn within(
        bench: &Bench,
        system: Ext2,
        partition_end: Option<u64>,
        runs: u64,
    ) -> Result<Startup, LabError> {
        let bench = match system {
            Ext2::Aligned => without_read_ahead(bench)?,
            _ => bench.clone(),
        };
        let count = Streams::PAPER.count;
        let mut by_stream = vec![Vec::new(); count];
        for run in 0..runs {
            let config = Config {
                partition_end,
                ..system.config(bench.track_sectors(), MEMORY_MB[1])
            };
            let mut host = SimulatedHost::new(&bench, config)?;
            let latencies = Streams::PAPER.run(&mut host, bench.seed * RUNS + run);
            for (at, runs) in by_stream.iter_mut().enumerate() {
                let near = &latencies[at.saturating_sub(AROUND)..(at + AROUND + 1).min(count)];
                runs.push(near.iter().sum::<f64>() / near.len() as f64);
            }
        }
        let intervals = by_stream.iter().map(|runs| {
            ConfidenceInterval::of(runs, ConfidenceLevel::P90).expect("there are runs")
        });
        let (seconds, confidence) = intervals
            .map(|interval| (interval.mean, interval.half_width.unwrap_or(0.0)))
            .unzip();
        Ok(Startup {
            seconds,
            confidence,
        })
    }

    /// The index of the first stream at which the latency reaches `seconds`; the last one if it
    /// never does.
    pub(crate) fn reaches(&self, seconds: f64) -> usize {
        let first = self.seconds.iter().position(|latency| *latency >= seconds);
        first.unwrap_or(self.seconds.len() - 1)
    }
}

/// Q9: the number of streams at which the conventional system's startup latency reaches 3 s, and
/// the changes of that latency by windows of a track and by alignment.
///
/// # Errors
/// Returns an error if the drive is too small.
pub fn streams(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let [conventional, sized, aligned] = Ext2::ALL.map(|system| Startup::measure(bench, system));
    let (conventional, sized, aligned) = (conventional?, sized?, aligned?);
    let at = conventional.reaches(3.0);
    let change = |other: &Startup| other.seconds[at] / conventional.seconds[at] - 1.0;
    Ok(vec![at as f64 + 1.0, change(&sized), change(&aligned)])
}

//! Video servers of disks (paper T, section 5.4): soft real time, hard real time, and a planner.
//!
//! A server works in rounds: each fetches an I/O for every stream, and lasts as long as an I/O plays. Aligned I/Os are
//! whole tracks of a zone, unaligned ones as many sectors anywhere in it. The disks of an array are independent, so one
//! is simulated. The arithmetic of rounds is in [`traxtent_core::video`].
//!
//! Units are as the paper has them elsewhere: 264 KB are 264 times 1,024 bytes, and 4 Mb/s are 4,000,000 bits a second,
//! so that a track of the paper's drive plays 541 ms. Where the paper says that a round lasts 0.5 s, it does so here; else
//! a round lasts as long as its I/Os play.

mod extents;
mod plan;
mod rounds;
mod soft;
mod worst;

pub use extents::{Extents, Placement};
pub use plan::{Ask, Guarantee, Offer, Plan, plan};
pub use rounds::{Order, run_rounds};
pub use soft::{Alignment, ONE_LATE_IN, PARTS, ROUNDS, SoftServer, TRACKS_MAX};
pub use worst::{Accounting, worst_round};

use traxtent_core::units::Span;
use traxtent_core::video::{BitRate, startup_latency};

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};

/// A server that a drive cannot have.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum VideoError {
    /// A zone that holds no whole track, or that the drive does not have.
    #[error("zone {zone}: the drive has {zones} zones, counted from 0, and the zone must hold a whole track")]
    NoSuchZone {
        /// The one asked for.
        zone: u32,
        /// How many there are.
        zones: usize,
    },
    /// A drive that takes no time.
    #[error("{drive} has no mechanics: nothing bounds its streams")]
    NoMechanics {
        /// Its name.
        drive: String,
    },
}

/// The streams of the paper.
pub const BITRATE: BitRate = BitRate(4_000_000);

/// The disks of the paper's array.
pub const DISKS: u32 = 10;

/// The streams a disk at which the paper compares startup latencies.
pub const COMPARED_STREAMS: u32 = 70;

const TRACK: Placement = Placement::Aligned { tracks: 1 };
const BOTH: [Alignment; 2] = [Alignment::Aligned, Alignment::Unaligned];

/// T26: the most streams a disk with rounds of half a second and an I/O of a track, aligned and unaligned, and the gain;
/// then the same with rounds as long as a track plays.
///
/// # Errors
/// If the drive has no mechanics.
pub fn soft_streams(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let extents = Extents::in_zone(bench, 0)?;
    let server = paper_server(bench, &extents);
    let mut values = Vec::new();
    for round in [Span::from_ms(500.0), server.play_time(TRACK)] {
        let most = |alignment| server.most_streams(server.track(alignment), round);
        let [aligned, unaligned] = [most(BOTH[0])?, most(BOTH[1])?].map(f64::from);
        values.extend([aligned, unaligned, aligned / unaligned - 1.0]);
    }
    Ok(values)
}

/// T27: how many times the aligned startup latency the unaligned one is at 70 streams a disk, and at the most streams
/// that unaligned I/Os of any size carry.
///
/// # Errors
/// If the drive has no mechanics.
pub fn soft_startup(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let extents = Extents::in_zone(bench, 0)?;
    let server = paper_server(bench, &extents);
    let ratio = |streams| -> Result<Option<f64>, LabError> {
        let startup = |alignment| server.startup_ms(alignment, streams);
        let (aligned, unaligned) = (startup(BOTH[0])?, startup(BOTH[1])?);
        Ok(aligned.zip(unaligned).map(|(aligned, unaligned)| unaligned / aligned))
    };
    let compared = ratio(COMPARED_STREAMS)?;
    let mut most = None;
    for streams in COMPARED_STREAMS + 1.. {
        match ratio(streams)? {
            Some(ratio) => most = Some(ratio),
            None => break,
        }
    }
    Ok(vec![
        compared.unwrap_or(f64::INFINITY),
        most.unwrap_or(f64::INFINITY),
    ])
}

/// T28: the streams a disk that hard real time admits: aligned and unaligned with an I/O of a track, then of two.
///
/// # Errors
/// If the drive has no mechanics.
pub fn hard_streams(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let extents = Extents::in_zone(bench, 0)?;
    let server = paper_server(bench, &extents);
    let mut values = Vec::new();
    for tracks in [1, 2] {
        for (alignment, size) in [(BOTH[0], tracks), (BOTH[1], tracks * PARTS)] {
            let placement = server.of_size(alignment, size);
            values.push(f64::from(server.admitted(placement)?));
        }
    }
    Ok(values)
}

/// T29: the unaligned I/O in MB (of 1,048,576 bytes) and the startup latency in seconds at which hard real time admits as
/// many streams as with aligned I/Os of two tracks, the system that the paper has just spoken of; then with one.
///
/// # Errors
/// If the drive has no mechanics.
pub fn hard_equal(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let extents = Extents::in_zone(bench, 0)?;
    let server = paper_server(bench, &extents);
    let mut values = Vec::new();
    for tracks in [2, 1] {
        let aligned = server.admitted(Placement::Aligned { tracks })?;
        let sizes = (1..=TRACKS_MAX * PARTS).map(|size| server.of_size(BOTH[1], size));
        let mut equal = None;
        for placement in sizes {
            if server.admitted(placement)? >= aligned {
                equal = Some(placement);
                break;
            }
        }
        let megabytes = |io| {
            let bytes = f64::from(bench.profile.sector.logical_bytes);
            extents.least_sectors(io) as f64 * bytes / 1_048_576.0
        };
        let startup = |io| startup_latency(server.play_time(io), DISKS).as_ms() / 1e3;
        values.push(equal.map_or(f64::INFINITY, megabytes));
        values.push(equal.map_or(f64::INFINITY, startup));
    }
    Ok(values)
}

/// Figure 9: worst-case startup latency against streams a disk.
///
/// # Errors
/// If the drive has no mechanics.
pub fn startup_figure(bench: &Bench) -> Result<Figure, LabError> {
    let extents = Extents::in_zone(bench, 0)?;
    let server = paper_server(bench, &extents);
    let series = |alignment, name: &str| -> Result<Series, LabError> {
        let mut points = Vec::new();
        for streams in (10..=80).step_by(5) {
            let Some(startup) = server.startup_ms(alignment, streams)? else {
                break;
            };
            points.push((f64::from(streams * DISKS), startup / 1e3));
        }
        Ok(Series {
            name: name.to_owned(),
            style: Style::Line,
            points,
        })
    };
    Ok(Figure {
        name: "t9",
        panels: vec![Panel {
            title: format!("{}: ten disks, 4 Mb/s a stream", bench.profile.model),
            x: "concurrent streams",
            y: "worst-case startup latency (s)",
            series: vec![
                series(Alignment::Unaligned, "unaligned")?,
                series(Alignment::Aligned, "track-aligned")?,
            ],
        }],
    })
}

fn paper_server<'a>(bench: &'a Bench, extents: &'a Extents) -> SoftServer<'a> {
    SoftServer {
        bench,
        extents,
        bitrate: BITRATE,
        order: Order::Sweep,
        rounds: ROUNDS,
    }
}

impl SoftServer<'_> {
    fn track(&self, alignment: Alignment) -> Placement {
        match alignment {
            Alignment::Aligned => TRACK,
            Alignment::Unaligned => self.of_size(alignment, PARTS),
        }
    }

    /// The least startup latency with I/Os of a track or more; none if no I/O carries so many streams.
    fn startup_ms(&self, alignment: Alignment, streams: u32) -> Result<Option<f64>, LabError> {
        let least = self.least_io(alignment, streams, PARTS)?;
        Ok(least.map(|io| startup_latency(self.play_time(io), DISKS).as_ms()))
    }

    /// The streams that hard real time admits by the paper's accounting.
    fn admitted(&self, placement: Placement) -> Result<u32, LabError> {
        let worst = worst_round(self.bench, self.extents, placement, Accounting::Published)?;
        Ok(worst.most_streams(self.play_time(placement)))
    }
}

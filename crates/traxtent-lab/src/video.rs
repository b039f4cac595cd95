//! Measurements of the video servers of [`traxtent_sim::video`] (paper T, section 5.4).
//!
//! Units are those of the rest of the paper: 264 KB is 264 times 1,024 bytes, and 4 Mb/s is
//! 4,000,000 bits per second, so a track of the paper's drive plays for 541 ms. A round lasts 0.5 s
//! where the paper says so; otherwise it lasts as long as its I/Os play.

use traxtent_layout::video::{BitRate, startup_latency};
use traxtent_sim::TestDrive;
use traxtent_sim::video::{
    Accounting, Alignment, Extents, HardServer, Order, Placement, ROUNDS, SoftServer, TRACKS_MAX,
};
use traxtent_units::Span;

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series};

/// The bit rate of the paper's streams.
pub const BITRATE: BitRate = BitRate(4_000_000);

/// The number of disks in the paper's array.
pub const DISKS: u32 = 10;

/// The number of streams per disk at which the paper compares startup latencies.
pub const COMPARED_STREAMS: u32 = 70;

/// T26: the largest number of streams per disk with rounds of half a second and an I/O of a track,
/// aligned and unaligned, and the gain; then the same with rounds as long as a track plays.
///
/// # Errors
/// Returns an error if the drive has no whole track in its first zone, or cannot serve a request.
pub fn soft_streams(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let drive = bench.drive();
    let extents = Extents::in_zone(&drive, 0)?;
    let server = paper_server(&drive, &extents);
    let track = |alignment: Alignment| extents.io(alignment, alignment.steps());
    let track_plays = extents.play_time(track(Alignment::Aligned), BITRATE);
    let mut values = Vec::new();
    for round in [Span::from_ms(500.0), track_plays] {
        let aligned = server.most_streams(track(Alignment::Aligned), round)?;
        let unaligned = server.most_streams(track(Alignment::Unaligned), round)?;
        let (aligned, unaligned) = (f64::from(aligned), f64::from(unaligned));
        values.extend([aligned, unaligned, aligned / unaligned - 1.0]);
    }
    Ok(values)
}

/// T27: the ratio of the unaligned to the aligned startup latency at 70 streams per disk, and at
/// the largest number of streams that unaligned I/Os of any size support. Both are infinite if that
/// number is less than 70.
///
/// # Errors
/// Returns an error if the drive has no whole track in its first zone, or cannot serve a request.
pub fn soft_startup(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let drive = bench.drive();
    let extents = Extents::in_zone(&drive, 0)?;
    let server = paper_server(&drive, &extents);
    let ratio = |streams| -> Result<Option<f64>, LabError> {
        let Some(unaligned) = startup(&server, Alignment::Unaligned, streams)? else {
            return Ok(None);
        };
        let aligned = startup(&server, Alignment::Aligned, streams)?;
        Ok(aligned.map(|aligned| unaligned.as_ms() / aligned.as_ms()))
    };
    let compared = ratio(COMPARED_STREAMS)?;
    let mut at_most = compared;
    for streams in COMPARED_STREAMS + 1.. {
        match ratio(streams)? {
            Some(ratio) => at_most = Some(ratio),
            None => break,
        }
    }
    let values = [compared, at_most];
    Ok(values.map(|ratio| ratio.unwrap_or(f64::INFINITY)).to_vec())
}

/// T28: the number of streams per disk that hard real time admits by the paper's accounting:
/// aligned and unaligned with an I/O of a track, then of two.
///
/// # Errors
/// Returns an error if the drive has no whole track in its first zone, or has no mechanics.
pub fn hard_streams(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let drive = bench.drive();
    let extents = Extents::in_zone(&drive, 0)?;
    let server = HardServer::new(&drive, &extents, BITRATE)?;
    let mut values = Vec::new();
    for tracks in [1, 2] {
        for alignment in Alignment::BOTH {
            let io = extents.io(alignment, tracks * alignment.steps());
            values.push(f64::from(server.most_streams(io, Accounting::Published)));
        }
    }
    Ok(values)
}

/// T29: the size of an unaligned I/O, in units of 1,048,576 bytes, with which hard real time admits
/// as many streams as with aligned I/Os of two tracks, and the startup latency with it in seconds;
/// then the same for one track. Both are infinite if no size suffices. The paper does not say which
/// of the two aligned systems it means, but its preceding sentence is about I/Os of two tracks.
///
/// # Errors
/// Returns an error if the drive has no whole track in its first zone, or has no mechanics.
pub fn hard_equal(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let drive = bench.drive();
    let extents = Extents::in_zone(&drive, 0)?;
    let server = HardServer::new(&drive, &extents, BITRATE)?;
    let admitted = |io| server.most_streams(io, Accounting::Published);
    let longest = extents.least_sectors(Placement::Aligned { tracks: TRACKS_MAX });
    let mut values = Vec::new();
    for tracks in [2, 1] {
        let aligned = admitted(Placement::Aligned { tracks });
        let mut sizes = (1..=longest as u32).map(|sectors| Placement::Unaligned { sectors });
        let [megabytes, seconds] = match sizes.find(|io| admitted(*io) >= aligned) {
            None => [f64::INFINITY; 2],
            Some(io) => {
                let startup = startup_latency(extents.play_time(io, BITRATE), DISKS);
                let megabytes = extents.least_bytes(io) as f64 / f64::from(1 << 20);
                [megabytes, startup.as_ms() / 1e3]
            }
        };
        values.extend([megabytes, seconds]);
    }
    Ok(values)
}

/// Figure 9: worst-case startup latency against the number of streams on all disks together.
///
/// # Errors
/// Returns an error if the drive has no whole track in its first zone, or cannot serve a request.
pub fn startup_figure(bench: &Bench) -> Result<Figure, LabError> {
    let drive = bench.drive();
    let extents = Extents::in_zone(&drive, 0)?;
    let server = paper_server(&drive, &extents);
    let series = |alignment, name: &str| -> Result<Series, LabError> {
        let mut points = Vec::new();
        for streams in (10..=80).step_by(5) {
            let Some(startup) = startup(&server, alignment, streams)? else {
                break;
            };
            points.push((f64::from(streams * DISKS), startup.as_ms() / 1e3));
        }
        Ok(Series::line(name, points))
    };
    Ok(Figure::of(Panel {
        title: format!("{}: ten disks, 4 Mb/s per stream", bench.profile.model),
        x: "concurrent streams".into(),
        y: "worst-case startup latency (s)".into(),
        series: vec![
            series(Alignment::Unaligned, "unaligned")?,
            series(Alignment::Aligned, "track-aligned")?,
        ],
        ..Panel::default()
    }))
}

fn paper_server<'a>(drive: &'a TestDrive, extents: &'a Extents) -> SoftServer<'a> {
    SoftServer {
        drive,
        extents,
        bitrate: BITRATE,
        order: Order::Sweep,
        rounds: ROUNDS,
        watch: &|_| (),
    }
}

/// The lowest startup latency with I/Os of a track or more; `None` if no I/O size supports this
/// number of streams.
fn startup(
    server: &SoftServer<'_>,
    alignment: Alignment,
    streams: u32,
) -> Result<Option<Span>, LabError> {
    let least = server.least_io(alignment, streams, alignment.steps())?;
    let round = |io| server.extents.play_time(io, server.bitrate);
    Ok(least.map(|io| startup_latency(round(io), DISKS)))
}

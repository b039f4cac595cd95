//! Track partition layout as paper P simulates it: reads take the nearest of several replicas
//! around a track, addresses do not change, and writes go only to the original (section 3).

pub mod compare;
pub mod day;
pub mod host;
pub mod predict;
pub mod volume;
pub mod writes;

use std::fs::File;
use std::io::BufReader;
use std::path::PathBuf;
use std::sync::Arc;

use traxtent_model::drive::Drive;
use traxtent_model::mechanics::{HeadPosition, Mechanics};
use traxtent_sim::{Host, simulate};
use traxtent_units::stats::Moments;
use traxtent_units::{Cylinder, Surface};
use traxtent_workload::{Replay, ReplayPace, TraceFormat, TraceOptions, TraceReader};

use crate::bench::{Bench, LabError};
use crate::figure::{Figure, Panel, Series};

/// The numbers of partitions of a track that the figures show.
const COUNTS: [u32; 6] = [1, 2, 4, 8, 16, 32];

/// The drives of the paper's validation traces, and the traces.
const TRACES: [(&str, &str); 3] = [
    ("atlas10k-disksim", "atlas10k.trace"),
    ("ibm18es-disksim", "ibm18es.trace"),
    ("hp-c3323a", "hp_c3323a.trace"),
];

/// The paper's requests to the drive that has no trace. 66 % of them are reads. The paper states
/// neither their rate nor their sizes; here they are one at a time, at any sector, of 8 sectors.
const RANDOM: &str = "random,count=10000,size=8,align=none,read=66%";

/// The number of reads, sufficient to determine the mean wait to a few thousandths.
const READS: u32 = 100_000;

fn partitioned(bench: &Bench, count: u32) -> Result<Bench, LabError> {
    bench.with_parameter("access.track_partitions", &count.to_string())
}

/// The results of a trace's replay.
#[derive(Clone, Copy, Debug)]
struct Replayed {
    /// The mean rotational latency of all accesses to the media.
    rotation_ms: f64,
    /// The mean response time.
    response_ms: f64,
}

/// The path of the trace that was measured on a drive.
fn trace_of(bench: &Bench) -> Result<PathBuf, LabError> {
    let name = &bench.profile.name;
    let missing = |why: String| LabError::NoTrace {
        drive: name.clone(),
        why,
    };
    let folder = bench.traces.as_ref();
    let folder = folder
        .ok_or_else(|| missing("no directory with traces is given; use --traces".to_owned()))?;
    let trace = TRACES.iter().find(|(drive, _)| drive == name);
    let (_, trace) = trace.ok_or_else(|| missing("none was measured".to_owned()))?;
    Ok(folder.join(trace))
}

/// Replays the trace that was measured on the drive, with `count` partitions. Each request follows
/// the previous completion after the recorded pause.
fn replay(bench: &Bench, count: u32) -> Result<Replayed, LabError> {
    let bench = partitioned(bench, count)?;
    let path = trace_of(&bench)?;
    let file = File::open(&path);
    let file = file.map_err(|error| LabError::NoTrace {
        drive: bench.profile.name.clone(),
        why: format!("{}: {error}", path.display()),
    })?;
    let format = TraceFormat::DiskSimValidate;
    let reader = TraceReader::new(format, BufReader::new(file), TraceOptions::default());
    let mut source = Replay::new(reader, ReplayPace::default_for(format));
    let drive = Drive::with_geometry(Arc::clone(&bench.profile), Arc::clone(&bench.geometry));
    let mut host = Host::new(vec![drive]);
    let mut response_ms = Moments::default();
    let most = bench.scaled_count(u64::MAX);
    simulate(&mut host, &mut source, |outcome| {
        response_ms.push(outcome.response().as_ms());
        response_ms.count() < most
    })?;
    let accesses: Vec<_> = host.drives().map(Drive::accesses).collect();
    Ok(Replayed {
        rotation_ms: accesses[0].rotation.as_ms() / accesses[0].count.max(1) as f64,
        response_ms: response_ms.mean(),
    })
}

/// The mean rotational latency with `count` partitions, over that with one.
pub(crate) fn rotation(bench: &Bench, count: u32) -> Result<Vec<f64>, LabError> {
    Ok(vec![
        replay(bench, count)?.rotation_ms / replay(bench, 1)?.rotation_ms,
    ])
}

/// The mean response time with 2 and 32 partitions, over that with one.
pub(crate) fn response(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let whole = replay(bench, 1)?.response_ms;
    let share = |count| Ok(replay(bench, count)?.response_ms / whole);
    [2, 32].into_iter().map(share).collect()
}

/// Random requests, one at a time: the mean response time with 32 partitions over that with one;
/// the same for reads only.
pub(crate) fn random(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let share = |workload: &str| -> Result<f64, LabError> {
        let mean = |count| -> Result<f64, LabError> {
            Ok(partitioned(bench, count)?.run(workload)?.response_ms.mean())
        };
        Ok(mean(32)? / mean(1)?)
    };
    Ok(vec![share(RANDOM)?, share(&RANDOM.replace("66%", "100%"))?])
}

/// The mean distance of the nearest replica of a random sector of the first zone, in sectors, for
/// each number of partitions.
pub(crate) fn distance(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let reads = format!("random,count={READS},size=1,zone=0");
    let bench = bench.with_parameter("cache.enabled", "false")?;
    let revolution = bench.profile.revolution_ms();
    let sectors = f64::from(bench.track_sectors());
    let mean = |count: u32| -> Result<f64, LabError> {
        let wait = partitioned(&bench, count)?.run(&reads)?.part_ms("rotation");
        Ok(wait / revolution * sectors)
    };
    COUNTS.into_iter().map(mean).collect()
}

/// The parameters of the paper's Table 1, for the drive as it is simulated: surfaces, cylinders,
/// sectors, the seek over one cylinder and over all in milliseconds, the additional settling time
/// of writes, the head switch, and revolutions per minute.
pub(crate) fn parameters(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let geometry = &bench.geometry;
    let cylinders = geometry.cylinders();
    let mechanics = match &bench.profile.mechanics {
        Some(spec) => Mechanics::new(spec, cylinders),
        None => Mechanics::none(),
    };
    let at = |cylinder, surface| HeadPosition {
        cylinder: Cylinder(cylinder),
        surface: Surface(surface),
    };
    let seek = |write| mechanics.seek_curve(write).time(1).as_ms();
    let reads = mechanics.seek_curve(false);
    let head_switch = mechanics.reposition(at(0, 0), at(0, 1), false).total();
    let write_switch = mechanics.reposition(at(0, 0), at(0, 1), true).total();
    let settle = (seek(true) - seek(false)).max(write_switch.as_ms() - head_switch.as_ms());
    Ok(vec![
        f64::from(geometry.surfaces()),
        f64::from(cylinders),
        geometry.capacity().0 as f64,
        seek(false),
        reads.time(reads.stroke()).as_ms(),
        settle,
        head_switch.as_ms(),
        60_000.0 / mechanics.revolution().as_ms(),
    ])
}

/// Results for the extensions that the paper leaves to future work. First, how much of the drive's
/// gain the host's choice of replicas achieves at least: with steady completions, and with
/// completions that deviate by 100 microseconds. Then the ratio of the mean response time on a day
/// on which partitions follow free space to that with the best fixed number of partitions: the
/// largest at any fill level.
pub(crate) fn extensions(bench: &Bench) -> Result<Vec<f64>, LabError> {
    let mut values = predict::shares(bench)?;
    values.push(day::worst(bench)?);
    Ok(values)
}

/// Draws a curve over the number of partitions.
fn curve(name: &str, mean: impl Fn(u32) -> Result<f64, LabError>) -> Result<Series, LabError> {
    let points = COUNTS.map(|count| Ok((f64::from(count), mean(count)?)));
    let points: Result<_, LabError> = points.into_iter().collect();
    Ok(Series::line(name, points?))
}

fn panel(bench: &Bench, y: &str, series: Series) -> Panel {
    Panel {
        title: bench.profile.model.clone(),
        x: "partitions of a track".to_owned(),
        y: y.to_owned(),
        series: vec![series],
        ..Panel::default()
    }
}

/// Draws rotational latency against the number of partitions, drive by drive (Figs. 3 to 5).
pub(crate) fn rotation_curves(bench: &Bench) -> Result<Figure, LabError> {
    let panel = |(drive, _): &(&str, &str)| {
        let bench = bench.with_drive(drive)?;
        let series = curve("trace", |count| Ok(replay(&bench, count)?.rotation_ms))?;
        Ok(panel(&bench, "mean rotational latency (ms)", series))
    };
    let panels: Result<_, LabError> = TRACES.iter().map(panel).collect();
    Ok(Figure { panels: panels? })
}

/// Draws response time against the number of partitions (Fig. 6).
pub(crate) fn response_curve(bench: &Bench) -> Result<Figure, LabError> {
    let series = curve("trace", |count| Ok(replay(bench, count)?.response_ms))?;
    Ok(Figure::of(panel(bench, "mean response time (ms)", series)))
}

/// Draws response time of random requests against the number of partitions (Fig. 7).
pub(crate) fn random_curve(bench: &Bench) -> Result<Figure, LabError> {
    let series = curve("random, 66 % reads", |count| {
        Ok(partitioned(bench, count)?.run(RANDOM)?.response_ms.mean())
    })?;
    Ok(Figure::of(panel(bench, "mean response time (ms)", series)))
}

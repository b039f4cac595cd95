//! `traxtent sim`: simulates a workload on drives.

mod run;
mod summary;
mod sweep;
mod workload;

use std::io::Write;
use std::path::{Path, PathBuf};

use serde_json::{Map, Value, json};
use traxtent_workload::{ReplayPace, RequestSizes, TraceFormat};

use crate::failure::{Failure, Result};
use crate::output;
use crate::parse::csv_file;
use crate::plot;
use crate::table::{Side, Table};
use crate::target::{Machine, TARGET_HELP};
use run::{Log, SimulationRun};
use summary::{Figures, Summary, show};
use sweep::Setting;
use workload::Workload;

pub(crate) use run::{TracePlan, simulation_failure};

/// Simulate a workload on a drive
///
/// A WORKLOAD is one of:
///   random,read=66%,size=8,count=100000   a line of the workload grammar
///   my.toml                               the same as a TOML file
///   my.trace                              a trace, plain or as gzip or zstd; - is standard input
/// Lengths are in sectors (8), or in bytes (4096B, 4K, 4KiB; 4kB is 4000). docs/workloads.md lists
/// the keys. Random requests start at multiples of their size, as in fio; align=none lets them
/// start at any sector. Without a WORKLOAD, DiskSim parameters run the synthetic workload that they
/// contain.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[arg(help = TARGET_HELP)]
    target: String,
    /// The workload; see above
    workload: Option<String>,

    /// The drive of the next device of a trace; may be repeated
    #[arg(long = "drive", value_name = "TARGET")]
    more: Vec<String>,
    /// Replay only the requests of this device of a trace
    #[arg(long, value_name = "NUMBER")]
    device: Option<u32>,
    /// The trace's format, if it is not recognized
    #[arg(long, value_name = "NAME", value_parser = crate::parse::formats())]
    format: Option<TraceFormat>,
    /// The times at which a trace's requests are issued: recorded, semi-closed, or closed:N
    /// [default: semi-closed for traces that record pauses, otherwise recorded]
    #[arg(long, value_name = "PACE", value_parser = crate::parse::pace)]
    replay: Option<ReplayPace>,
    /// Replay recorded arrivals this many times as fast
    #[arg(long, value_name = "FACTOR", value_parser = crate::parse::speed)]
    speed: Option<f64>,

    /// The seed of a synthetic workload's random numbers
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Run with this many seeds, and print means with their 95 % intervals
    #[arg(long, value_name = "N", value_parser = clap::value_parser!(u32).range(1..=10_000))]
    seeds: Option<u32>,
    /// Exclude this many requests, the first to complete, from all figures
    #[arg(long, value_name = "REQUESTS", default_value_t = 0)]
    warmup: u64,
    /// Change a figure of the drive or, as workload.KEY, of the workload. Values a,b,c or a range
    /// a..b:step give one row each; several such options give all combinations
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,

    /// Write one row per request to this CSV file; compressed if it ends in .gz or .zst
    #[arg(long, value_name = "FILE", value_parser = csv_file)]
    log: Option<PathBuf>,
    /// Draw the distribution of response times and their components; .svg or .png
    #[arg(long, value_name = "FILE")]
    plot: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

const EXAMPLES: &str = "Examples:
  traxtent sim atlas10k2 random,size=528,align=track,zone=0
  traxtent sim atlas10k random,read=66%,size=8 --set queue.scheduler=fcfs,sptf --set workload.outstanding=1..16:5
  traxtent sim disksim:my.parv my.trace.gz --log requests.csv.zst --plot response.svg";

/// Returns the number of points of a sweep; 0 if the options are malformed.
pub(crate) fn sweep_points(options: &[String]) -> usize {
    Setting::parse_all(options).map_or(0, |settings| sweep::points(&settings).len())
}

/// Parses `--set` options that have one value each.
pub(crate) fn single_values(options: &[String]) -> Result<Vec<(String, String)>> {
    let mut points = sweep::points(&Setting::parse_all(options)?);
    match points.pop() {
        Some(point) if points.is_empty() => Ok(point),
        _ => Err(Failure::input(
            "--set: only `sim` takes several values of a key",
        )),
    }
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    if let Some(path) = &args.plot {
        plot::check_ending(path)?;
    }
    let mut machine = Machine::load(&args.target)?;
    for target in &args.more {
        machine.extend(Machine::load(target)?);
    }
    let workload = workload(args, &machine)?;
    let settings = Setting::parse_all(&args.set)?;
    let points = sweep::points(&settings);
    let seeds = seeds(args, &workload, machine.seed)?;
    if points.len() * seeds.len() > 1 && (args.log.is_some() || args.plot.is_some()) {
        return Err(Failure::input(
            "--log and --plot need a single run; remove --seeds, or give --set one value",
        ));
    }

    let mut runs = Vec::new();
    for point in &points {
        let (mut machine, mut workload) = (machine.clone(), workload.clone());
        for (key, value) in point {
            match key.strip_prefix("workload.") {
                Some(key) => workload.set(key, value)?,
                None => machine.set(key, value)?,
            }
        }
        for &seed in &seeds {
            runs.push(SimulationRun {
                machine: machine.clone(),
                workload: workload.clone(),
                seed,
                warmup: args.warmup,
                trace: TracePlan {
                    format: args.format,
                    pace: args.replay,
                    speed: args.speed,
                    device: args.device,
                },
            });
        }
    }
    let mut summaries = match &args.log {
        Some(path) => vec![run::logged(&runs[0], Log::create(path)?)?],
        None => run::all(&runs)?,
    };
    if let Some(empty) = summaries.iter().position(|summary| summary.requests() == 0) {
        return Err(no_requests(&runs[empty]));
    }
    if let Some(path) = &args.plot {
        draw(path, &runs[0], &mut summaries[0])?;
    }

    let remedies: Vec<Option<String>> = runs
        .iter()
        .zip(&summaries)
        .step_by(seeds.len())
        .map(|(run, summary)| alignment_fix(run, summary))
        .collect();
    let of_seeds = summaries.chunks_mut(seeds.len());
    let figures: Vec<Figures> = of_seeds
        .map(|summaries| match summaries {
            [one] => Figures::of_one(one),
            several => Figures::of_runs(several),
        })
        .collect();
    let swept = points.len() > 1;
    let report = Report {
        args,
        runs: &runs,
        seeds: &seeds,
        remedies: &remedies,
    };
    match (args.json, swept) {
        (true, false) => output::json(&report.json(&figures[0])),
        (true, true) => output::json(&report.rows_json(&points, &figures)),
        (false, false) => report.write(&figures[0]),
        (false, true) => report.write_rows(&points, &figures),
    }
}

fn workload(args: &Args, machine: &Machine) -> Result<Workload> {
    let workload = match (&args.workload, &machine.synthio) {
        (Some(text), _) => Workload::parse(text)?,
        (None, Some(spec)) => Workload::Synthio(spec.clone()),
        (None, None) => {
            return Err(Failure::input(format!(
                "{} contains no workload; give one, such as random,count=10000 (see `traxtent help sim`)",
                args.target
            )));
        }
    };
    let only_for_traces = [
        ("--device", args.device.is_some()),
        ("--format", args.format.is_some()),
        ("--replay", args.replay.is_some()),
        ("--speed", args.speed.is_some()),
        ("--drive", !args.more.is_empty()),
    ];
    if !matches!(workload, Workload::Trace(_))
        && let Some((option, _)) = only_for_traces.iter().find(|(_, given)| *given)
    {
        return Err(Failure::input(format!("{option} applies only to traces")));
    }
    Ok(workload)
}

/// Returns the seed of each run; a trace needs none.
fn seeds(args: &Args, workload: &Workload, stated: Option<u64>) -> Result<Vec<u64>> {
    let first = match workload {
        Workload::Drawn(spec) => args.seed.unwrap_or(spec.seed),
        Workload::Synthio(_) => args.seed.or(stated).unwrap_or(1),
        Workload::Trace(_) if args.seed.is_some() || args.seeds.is_some() => {
            return Err(Failure::input(
                "--seed and --seeds apply only to synthetic workloads, not to traces",
            ));
        }
        Workload::Trace(_) => 0,
    };
    let count = u64::from(args.seeds.unwrap_or(1));
    Ok((0..count).map(|index| first.wrapping_add(index)).collect())
}

/// Returns the keys to add to a synthetic workload so that its writes cover whole physical sectors.
fn alignment_fix(run: &SimulationRun, summary: &Summary) -> Option<String> {
    let Workload::Drawn(spec) = &run.workload else {
        return None;
    };
    let sector = run.machine.drives[0].profile.sector;
    // Track sizes cannot be rounded.
    let keys = summary.alignment(sector)?;
    (spec.size != RequestSizes::Track || !keys.contains("round")).then_some(keys)
}

fn no_requests(run: &SimulationRun) -> Failure {
    let of = run.workload.describe();
    match run.warmup {
        0 => Failure::input(format!("{of}: no request was served")),
        warmup => Failure::input(format!("{of}: --warmup {warmup} excludes all requests")),
    }
}

fn draw(path: &Path, run: &SimulationRun, summary: &mut Summary) -> Result<()> {
    const POINTS: usize = 1000;
    let cdf = summary.quantiles.cdf(POINTS).into_iter();
    let picture = plot::Response {
        title: format!("{}: {}", run.machine.target, run.workload.describe()),
        cdf: cdf.map(|(time, share)| (time.as_ms(), share)).collect(),
        p99_9_ms: summary.quantiles.at(0.999).map_or(0.0, |time| time.as_ms()),
        parts_ms: summary.part_means_ms(),
    };
    plot::response(path, &picture)
}

/// The results, and the options for printing them.
struct Report<'a> {
    args: &'a Args,
    runs: &'a [SimulationRun],
    seeds: &'a [u64],
    /// The alignment that each point needs.
    remedies: &'a [Option<String>],
}

impl Report<'_> {
    /// Returns a description of the simulation.
    fn head(&self) -> Map<String, Value> {
        let run = &self.runs[0];
        let mut object = Map::new();
        let mut put = |key: &str, value: Value| object.insert(key.to_owned(), value);
        put("target", json!(run.machine.target));
        put("workload", json!(run.workload.describe()));
        match (&run.workload, self.seeds) {
            (Workload::Trace(_), _) => {}
            (_, [seed]) => drop(put("seed", json!(seed))),
            (_, seeds) => drop(put("seeds", json!(seeds))),
        }
        if run.warmup > 0 {
            put("warmup", json!(run.warmup));
        }
        object
    }

    fn json(&self, figures: &Figures) -> Value {
        let mut object = self.head();
        for text in &self.args.set {
            if let Some((key, value)) = text.split_once('=') {
                let set = object.entry("set").or_insert_with(|| json!({}));
                set[key] = setting(value);
            }
        }
        figures.json(&mut object);
        self.put_remedy(&mut object, 0);
        Value::Object(object)
    }

    fn put_remedy(&self, object: &mut Map<String, Value>, point: usize) {
        if let Some(keys) = &self.remedies[point] {
            object.insert("partial_sector_writes_remedy".to_owned(), json!(keys));
        }
    }

    /// Returns an object for each point of a sweep.
    fn rows_json(&self, points: &[sweep::Point], figures: &[Figures]) -> Value {
        let row = |(index, (point, figures)): (usize, (&sweep::Point, &Figures))| {
            let mut object = self.head();
            let run = &self.runs[index * self.seeds.len()];
            object["workload"] = json!(run.workload.describe());
            let set: Map<String, Value> = point
                .iter()
                .map(|(key, value)| (key.clone(), setting(value)))
                .collect();
            object.insert("set".to_owned(), Value::Object(set));
            figures.json(&mut object);
            self.put_remedy(&mut object, index);
            Value::Object(object)
        };
        points.iter().zip(figures).enumerate().map(row).collect()
    }

    fn write_head(&self, out: &mut impl Write) -> Result<()> {
        let run = &self.runs[0];
        match &run.machine.drives[..] {
            [drive] if drive.name == run.machine.target => {
                writeln!(out, "drive       {} ({})", drive.name, drive.profile.model)?;
            }
            [drive] => writeln!(
                out,
                "drive       {} ({})",
                run.machine.target, drive.profile.model
            )?,
            drives => writeln!(
                out,
                "drives      {} of {}",
                drives.len(),
                run.machine.target
            )?,
        }
        writeln!(out, "workload    {}", run.workload.describe())?;
        if let [first, .., last] = self.seeds {
            writeln!(
                out,
                "seeds       {first} to {last}: means ± half of their 95 % intervals"
            )?;
        }
        Ok(())
    }

    fn write(&self, figures: &Figures) -> Result<()> {
        let mut out = output::stdout();
        self.write_head(&mut out)?;
        figures.write(&mut out)?;
        if let Some(keys) = &self.remedies[0] {
            writeln!(
                out,
                "  the drive must read the rest of such a sector first; {keys} avoids this"
            )?;
        }
        output::finish(out)
    }

    /// Writes a row for each point of a sweep.
    fn write_rows(&self, points: &[sweep::Point], figures: &[Figures]) -> Result<()> {
        let keys = points[0].iter().map(|(key, _)| key.clone());
        let titles = [
            "requests",
            "requests/s",
            "MB/s",
            "mean ms",
            "deviation",
            "50 %",
            "99 %",
            "max",
        ];
        let titles = titles.into_iter().map(str::to_owned);
        let mut table = Table::new(keys.chain(titles).map(|title| (title, Side::Right)));
        for (point, figures) in points.iter().zip(figures) {
            let response = |key| show(figures.get(Some("response_ms"), key), 3);
            let plain = |key, decimals| show(figures.get(None, key), decimals);
            let figures = [
                plain("requests", 0),
                plain("requests_per_s", 2),
                plain("mb_per_s", 3),
                response("mean"),
                response("deviation"),
                response("p50"),
                response("p99"),
                response("max"),
            ];
            table.row(point.iter().map(|(_, value)| value.clone()).chain(figures));
        }
        let mut out = output::stdout();
        self.write_head(&mut out)?;
        writeln!(out)?;
        table.write(&mut out)?;
        output::finish(out)
    }
}

/// Returns the value of a `--set` option: a number or a truth value if it reads as one.
fn setting(text: &str) -> Value {
    match serde_json::from_str(text) {
        Ok(value @ (Value::Number(_) | Value::Bool(_))) => value,
        _ => json!(text),
    }
}

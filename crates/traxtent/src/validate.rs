//! `traxtent validate`: compares simulated response times with those of real drives.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use serde::Serialize;
use traxtent_plot::{Curve, Validation};
use traxtent_sim::agreement::{
    ClassAgreement, HitAgreement, ReplayedRequest, class_agreement, hit_agreement,
};
use traxtent_sim::simulate;
use traxtent_units::request::Op;
use traxtent_units::stats::{NoiseFloor, demerit, demerit_binned, noise_floor};
use traxtent_units::{Rng, Span};

use crate::failure::{Failure, Result, be_quiet, note, print_line, warn};
use crate::output;
use crate::overwrite;
use crate::plot;
use crate::sim::TraceArguments;
use crate::sim::{TracePlan, simulation_failure, single_values};
use crate::table::{Side, Table};
use crate::target::{Machine, TARGET_HELP};

/// Compare simulated response times with measured ones
///
/// Replays traces that hold response times measured on a real drive: DiskSim's validate format, and
/// every other format that records them (docs/reference/workloads.md). If the trace records pauses,
/// or its requests came one after the other, each is issued after the completion of the previous
/// one and the recorded pause; otherwise at its recorded time. The demerit is the root mean square
/// of the horizontal distance between the distributions of simulated and measured response times,
/// in ms and as a share of the measured mean. BINNED is the demerit computed from histograms, as by
/// DiskSim's tool `rms`; compare it with DiskSim's figures. NOISE is the demerit that 19 of 20
/// perfect models would stay below: that of the measured times against random samples of themselves
/// (in blocks of 100 requests; the seed is 1).
///
/// The second table compares read by read: whether the model and the real drive served it from the
/// buffer. A measured read counts as a hit if it took at most 0.5 ms longer than a hit of its size
/// takes in the model. DISAGREE is the share of all reads on which the two differ. At most as many
/// as BY CHANCE differ because a sector on the media happened to be near the head. The third table
/// compares the classes of requests.
///
/// NAME.trace is replayed on the drive that NAME.parv describes in the same directory. Traces that
/// cannot be compared are reported, and the others are still compared.
#[derive(clap::Args, Debug)]
pub(crate) struct Args {
    /// Directories to search for traces and their parameters, or files of either kind
    #[arg(required = true, value_name = "PATH")]
    paths: Vec<PathBuf>,
    /// Replay every trace on this drive instead
    #[arg(long, value_name = "TARGET", help = format!("Replay every trace on this drive instead. {TARGET_HELP}"))]
    drive: Option<String>,
    #[command(flatten)]
    trace: TraceArguments,
    /// Change a figure of every drive
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Draw the distributions of each trace as NAME.svg in this directory
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Omit notes and warnings
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// The result for one trace.
#[derive(Debug, Serialize)]
struct Verdict {
    trace: String,
    requests: u64,
    /// The root mean square distance of the distributions.
    rms_ms: f64,
    /// The same distance as DiskSim's `rms` computes it, from histograms.
    rms_binned_ms: f64,
    /// The demerit divided by the measured mean.
    rms_share: f64,
    mean_ms: f64,
    measured_mean_ms: f64,
    /// The demerit that 19 of 20 perfect models would stay below, and the median of theirs.
    noise_p95_ms: f64,
    noise_median_ms: f64,
    hits: Option<HitsJson>,
    classes: Vec<ClassJson>,
}

/// [`HitAgreement`] as JSON.
#[derive(Debug, Serialize)]
struct HitsJson {
    reads: u64,
    both_hit: u64,
    model_only: u64,
    drive_only: u64,
    by_chance_max: f64,
    disagreement: f64,
}

/// [`ClassAgreement`] as JSON.
#[derive(Debug, Serialize)]
pub(crate) struct ClassJson {
    name: &'static str,
    requests: u64,
    mean_ms: f64,
    measured_mean_ms: f64,
    rms_ms: f64,
}

impl From<HitAgreement> for HitsJson {
    fn from(hits: HitAgreement) -> HitsJson {
        HitsJson {
            reads: hits.reads,
            both_hit: hits.both_hit,
            model_only: hits.model_only,
            drive_only: hits.drive_only,
            by_chance_max: hits.by_chance_max,
            disagreement: hits.disagreement(),
        }
    }
}

impl From<ClassAgreement> for ClassJson {
    fn from(class: ClassAgreement) -> ClassJson {
        ClassJson {
            name: class.name,
            requests: class.requests,
            mean_ms: class.mean_ms,
            measured_mean_ms: class.measured_mean_ms,
            rms_ms: class.rms_ms,
        }
    }
}

/// The replay of a trace.
struct Replayed {
    requests: Vec<ReplayedRequest>,
    revolution: Option<Span>,
}

/// The seed of the samples that estimate the noise.
const NOISE_SEED: u64 = 1;

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    be_quiet(args.quiet);
    let changes = single_values(&args.set)?;
    let mut verdicts = Vec::new();
    let plan = args.trace.plan()?;
    let (pairs, mut failures) = pairs(args);
    if let Some(folder) = &args.plot {
        check_pictures(folder, &pairs)?;
    }
    for pair in pairs {
        let replayed = match replay(&pair, &plan, &changes) {
            Ok(Some(replayed)) => replayed,
            Ok(None) => {
                let trace = pair.trace.display();
                note(format!(
                    "{trace}: omitted, because it has no measured times"
                ));
                continue;
            }
            Err(failure) => {
                failures.push((pair.name, failure));
                continue;
            }
        };
        let requests = &replayed.requests;
        let mut simulated: Vec<f64> = requests.iter().map(|one| one.simulated_ms).collect();
        let mut measured: Vec<f64> = requests.iter().map(|one| one.measured_ms).collect();
        let noise = noise_floor(&measured, &mut Rng::new(NOISE_SEED)).unwrap_or(NoiseFloor {
            median: 0.0,
            p95: 0.0,
        });
        let hits = hit_agreement(requests, replayed.revolution);
        let classes = class_agreement(requests).into_iter();
        let mean = |times: &[f64]| times.iter().sum::<f64>() / times.len() as f64;
        let (mean_ms, measured_mean_ms) = (mean(&simulated), mean(&measured));
        let rms_binned_ms = demerit_binned(&simulated, &measured).unwrap_or(0.0);
        let rms_ms = demerit(&mut simulated, &mut measured).unwrap_or(0.0);
        let verdict = Verdict {
            trace: pair.name,
            requests: simulated.len() as u64,
            rms_ms,
            rms_binned_ms,
            rms_share: rms_ms / measured_mean_ms,
            mean_ms,
            measured_mean_ms,
            noise_p95_ms: noise.p95,
            noise_median_ms: noise.median,
            hits: hits.map(HitsJson::from),
            classes: classes.map(ClassJson::from).collect(),
        };
        if let Some(folder) = &args.plot {
            draw(folder, &verdict, &simulated, &measured)?;
        }
        verdicts.push(verdict);
    }
    if verdicts.is_empty() && failures.len() == 1 {
        return Err(failures.remove(0).1);
    }
    if verdicts.is_empty() && failures.is_empty() {
        let paths: Vec<_> = args
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(Failure::at(
            paths.join(", "),
            "found no trace that has measured times and a parameter file",
        ));
    }
    if args.json {
        output::json(&verdicts)?;
    } else if !verdicts.is_empty() {
        write(&verdicts)?;
    }
    left_out(&failures)
}

/// Reports the traces that could not be compared, with reasons. Returns an error if there are any.
fn left_out(failures: &[(String, Failure)]) -> Result<()> {
    if failures.is_empty() {
        return Ok(());
    }
    let lines = failures.iter().filter_map(|(_, failure)| failure.line());
    lines.for_each(print_line);
    let names: Vec<&str> = failures.iter().map(|(name, _)| name.as_str()).collect();
    let line = format!("not compared: {}", names.join(", "));
    let unread = |(_, failure): &(String, Failure)| matches!(failure, Failure::Io(_));
    Err(if failures.iter().any(unread) {
        Failure::Io(line)
    } else {
        Failure::Finding(line)
    })
}

/// A trace and the drive to replay it on.
struct Pair {
    name: String,
    trace: PathBuf,
    target: String,
}

/// Returns the traces to replay, in the order of the arguments and of names within a directory, and
/// the paths without one.
fn pairs(args: &Args) -> (Vec<Pair>, Vec<(String, Failure)>) {
    let (mut pairs, mut failures) = (Vec::new(), Vec::new());
    for path in &args.paths {
        if let Err(failure) = add_pairs(path, args, &mut pairs) {
            failures.push((stem(path), failure));
        }
    }
    (pairs, failures)
}

/// Adds the trace that a path names, or those in a directory.
fn add_pairs(path: &Path, args: &Args, pairs: &mut Vec<Pair>) -> Result<()> {
    let meta = fs::metadata(path).map_err(|error| Failure::file(path, &error))?;
    if meta.is_dir() {
        return in_folder(path, args, pairs);
    }
    let name = stem(path);
    let (trace, parameters) = match path.extension().and_then(|ending| ending.to_str()) {
        Some("parv" | "diskspecs") => (path.with_extension("trace"), path.to_owned()),
        _ => (path.to_owned(), path.with_file_name(format!("{name}.parv"))),
    };
    if args.drive.is_none() && path.extension().is_some_and(|ending| ending == "toml") {
        let why = "is a profile, not a trace; name the trace, and the profile with --drive";
        return Err(Failure::at(path.display(), why));
    }
    if args.drive.is_none() && !parameters.exists() {
        let seeks = path.extension().is_some_and(|ending| ending == "seek");
        let why = match seeks {
            true => "is a seek curve of DiskSim, not a trace; name the trace".to_owned(),
            false => format!(
                "there is no {}; name a drive with --drive",
                parameters.display()
            ),
        };
        return Err(Failure::at(path.display(), why));
    }
    pairs.push(pair(name, trace, &parameters, args));
    Ok(())
}

fn in_folder(folder: &Path, args: &Args, pairs: &mut Vec<Pair>) -> Result<()> {
    let fail = |error: std::io::Error| Failure::file(folder, &error);
    let mut traces = BTreeMap::new();
    let mut parameters = BTreeSet::new();
    for entry in fs::read_dir(folder).map_err(fail)? {
        let path = entry.map_err(fail)?.path();
        let file = path
            .file_name()
            .unwrap_or_default()
            .to_string_lossy()
            .into_owned();
        let plain = file.trim_end_matches(".gz").trim_end_matches(".zst");
        if let Some(name) = plain.strip_suffix(".trace") {
            traces.insert(name.to_owned(), path);
        } else if let Some(name) = file.strip_suffix(".parv") {
            parameters.insert(name.to_owned());
        }
    }
    for (name, trace) in &traces {
        if args.drive.is_some() || parameters.contains(name) {
            let parameters = folder.join(format!("{name}.parv"));
            pairs.push(pair(name.clone(), trace.clone(), &parameters, args));
        } else {
            note(format!(
                "{}: omitted, because there is no {name}.parv",
                trace.display()
            ));
        }
    }
    let alone: Vec<&str> = parameters
        .iter()
        .filter(|name| !traces.contains_key(*name))
        .map(String::as_str)
        .collect();
    if !alone.is_empty() && args.drive.is_none() {
        note(format!(
            "{}: parameters without a trace: {}",
            folder.display(),
            alone.join(", ")
        ));
    }
    Ok(())
}

fn pair(name: String, trace: PathBuf, parameters: &Path, args: &Args) -> Pair {
    let target = args.drive.clone();
    Pair {
        name,
        trace,
        target: target.unwrap_or_else(|| format!("disksim:{}", parameters.display())),
    }
}

/// Returns the name of a trace without its directory and extensions.
fn stem(path: &Path) -> String {
    let file = path.file_name().unwrap_or_default().to_string_lossy();
    let endings = [".gz", ".zst", ".trace", ".parv", ".diskspecs"];
    let name = endings.iter().fold(&*file, |name, ending| {
        name.strip_suffix(ending).unwrap_or(name)
    });
    name.to_owned()
}

/// Replays a trace. Returns `None` if it has no measured times.
fn replay(pair: &Pair, plan: &TracePlan, changes: &[(String, String)]) -> Result<Option<Replayed>> {
    let mut machine = Machine::load(&pair.target)?;
    for (key, value) in changes {
        machine.set(key, value)?;
    }
    let Some(plan) = plan.for_comparison(&pair.trace, &machine)? else {
        return Ok(None);
    };
    let mut source = plan.open(&pair.trace, &machine)?;
    let mut requests = Vec::new();
    simulate(&mut machine.host()?, &mut source, |outcome| {
        let request = &outcome.completion.request;
        let measured = outcome.arrival.measured;
        // No class is for flushes.
        if let Some(time) = measured.filter(|_| request.op != Op::Flush) {
            requests.push(ReplayedRequest {
                is_read: request.op != Op::Write,
                sectors: request.sectors,
                served: outcome.completion.served,
                simulated_ms: outcome.response().as_ms(),
                rotation_ms: outcome.completion.breakdown.rotation.as_ms(),
                measured_ms: time.as_ms(),
            });
        }
        true
    })
    .map_err(|error| simulation_failure(&pair.trace, &error))?;
    source.records().warnings().for_each(warn);
    Ok((!requests.is_empty()).then(|| Replayed {
        requests,
        revolution: machine.revolution(),
    }))
}

fn write(verdicts: &[Verdict]) -> Result<()> {
    let mut table = Table::new([
        ("TRACE", Side::Left),
        ("REQUESTS", Side::Right),
        ("SIMULATED MEAN", Side::Right),
        ("MEASURED MEAN", Side::Right),
        ("DEMERIT", Side::Right),
        ("SHARE OF MEAN", Side::Right),
        ("BINNED", Side::Right),
        ("NOISE", Side::Right),
    ]);
    for verdict in verdicts {
        table.row([
            verdict.trace.clone(),
            verdict.requests.to_string(),
            format!("{:.3} ms", verdict.mean_ms),
            format!("{:.3} ms", verdict.measured_mean_ms),
            format!("{:.3} ms", verdict.rms_ms),
            format!("{:.1} %", verdict.rms_share * 100.0),
            format!("{:.3} ms", verdict.rms_binned_ms),
            format!("{:.3} ms", verdict.noise_p95_ms),
        ]);
    }
    let mut out = output::stdout();
    table.write(&mut out)?;
    writeln!(out)?;
    hit_table(verdicts).write(&mut out)?;
    writeln!(out)?;
    class_table(verdicts).write(&mut out)?;
    out.flush()?;
    output::finish(out)
}

/// Returns the table of reads that the model and the drive served from the buffer.
fn hit_table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new([
        ("TRACE", Side::Left),
        ("READS", Side::Right),
        ("HIT IN BOTH", Side::Right),
        ("IN THE MODEL ONLY", Side::Right),
        ("IN THE DRIVE ONLY", Side::Right),
        ("BY CHANCE", Side::Right),
        ("DISAGREE", Side::Right),
    ]);
    for verdict in verdicts {
        if let Some(hits) = &verdict.hits {
            table.row([
                verdict.trace.clone(),
                hits.reads.to_string(),
                hits.both_hit.to_string(),
                hits.model_only.to_string(),
                hits.drive_only.to_string(),
                format!("{:.0}", hits.by_chance_max),
                format!("{:.2} %", hits.disagreement * 100.0),
            ]);
        }
    }
    table
}

/// Returns the table of the classes of requests.
fn class_table(verdicts: &[Verdict]) -> Table {
    let mut table = Table::new([
        ("TRACE", Side::Left),
        ("CLASS IN THE MODEL", Side::Left),
        ("REQUESTS", Side::Right),
        ("SIMULATED MEAN", Side::Right),
        ("MEASURED MEAN", Side::Right),
        ("DEMERIT", Side::Right),
    ]);
    for verdict in verdicts {
        for class in &verdict.classes {
            table.row([
                verdict.trace.clone(),
                class.name.to_owned(),
                class.requests.to_string(),
                format!("{:.3} ms", class.mean_ms),
                format!("{:.3} ms", class.measured_mean_ms),
                format!("{:.3} ms", class.rms_ms),
            ]);
        }
    }
    table
}

/// Checks that a picture of each trace can be written, before anything is replayed.
fn check_pictures(folder: &Path, pairs: &[Pair]) -> Result<()> {
    if plot::is_picture(folder) {
        let why = "--plot takes a directory, for one picture per trace; omit the extension";
        return Err(Failure::at(folder.display(), why));
    }
    let pictures: Vec<PathBuf> = pairs
        .iter()
        .map(|pair| picture(folder, &pair.name))
        .collect();
    let outputs: Vec<_> = pictures
        .iter()
        .map(|path| ("--plot", Some(path.as_path())))
        .collect();
    overwrite::check(pairs.iter().map(|pair| pair.trace.as_path()), &outputs)
}

/// Returns the path of a trace's picture.
fn picture(folder: &Path, trace: &str) -> PathBuf {
    folder.join(format!("{trace}.svg"))
}

/// Draws both distributions; the times must be sorted.
fn draw(folder: &Path, verdict: &Verdict, simulated: &[f64], measured: &[f64]) -> Result<()> {
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let at = |times: &[f64], share: f64| {
        let rank = (share * times.len() as f64) as usize;
        times[rank.min(times.len() - 1)]
    };
    let validation = Validation {
        title: format!(
            "{}: demerit {:.3} ms, {:.1} % of the mean",
            verdict.trace,
            verdict.rms_ms,
            verdict.rms_share * 100.0
        ),
        curves: vec![curve("measured", measured), curve("simulated", simulated)],
        until_ms: at(simulated, 0.999).max(at(measured, 0.999)) * 1.02,
    };
    plot::write(&picture(folder, &verdict.trace), &validation)
}

/// Returns the cumulative distribution of sorted times, thinned to the resolution of a picture.
fn curve(name: &str, times: &[f64]) -> Curve {
    const POINTS: usize = 1000;
    let last = times.len() - 1;
    let point = |index: usize| {
        let rank = index * last / POINTS;
        (times[rank], (rank + 1) as f64 / times.len() as f64)
    };
    Curve {
        name: name.to_owned(),
        points: (0..=POINTS).map(point).collect(),
    }
}

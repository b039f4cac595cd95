//! `traxtent validate`: compares simulated response times with those of real drives.

use std::fs;
use std::io::Write;
use std::path::{Path, PathBuf};

use traxtent_plot::{Curve, Residuals, TimesPanel, Validation};
use traxtent_run::validation::{
    Comparison, TimesVerdict, TracePair, Verdict, compare, find_traces,
};
use traxtent_sim::agreement::{ReplayedRequest, residuals};

use crate::failure::{Failure, Result, be_quiet, left_out};
use crate::machine::{Printer, TARGET_HELP};
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::plot;
use crate::sim::{TraceArguments, single_values};
use crate::table::{Side, Table};

/// Compare simulated response times with measured ones
///
/// Replays traces that hold response times measured on a real drive: DiskSim's validate format, and
/// every other format that records them (docs/reference/workloads.md). If the trace records pauses,
/// or its requests came one after the other, each is issued after the completion of the previous
/// one and the recorded pause; otherwise at its recorded time. The demerit is the root mean square
/// of the horizontal distance between the distributions of simulated and measured response times,
/// in ms and as a share of the measured mean. BINNED is the demerit computed from histograms, as by
/// DiskSim's tool `rms`; compare it with DiskSim's figures. NOISE is the demerit that a
/// perfect model would stay below in 19 cases of 20: that of the measured times against random
/// samples of themselves (in blocks of 100 requests; the seed is 1). Without more than 100
/// requests, it is not known.
///
/// The second table compares read by read: whether the model and the real drive served it from the
/// buffer. A measured read counts as a hit if it took at most 0.5 ms longer than a hit of its size
/// takes in the model. DISAGREE is the share of all reads on which the two differ. BY CHANCE is the
/// largest number of reads that can differ because a sector on the media happened to be near the
/// head. The third table compares the classes of requests. DIFFERENCE is that of the means, with
/// its 95 % confidence interval. --json has each class by size of request too.
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
    /// Change a parameter of every drive
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// Draw the distributions of each trace and of its classes, and the differences by seek
    /// distance, as NAME.svg in this directory
    #[arg(long, value_name = "DIR")]
    plot: Option<PathBuf>,
    /// Omit notes and warnings, except those about omitted requests
    #[arg(long)]
    quiet: bool,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    be_quiet(args.quiet);
    let changes = single_values(&args.set)?;
    let mut verdicts = Vec::new();
    let plan = args.trace.plan()?;
    let found = find_traces(&args.paths, args.drive.as_deref(), &Printer);
    let (pairs, mut failures) = (found.pairs, found.failures);
    if let Some(folder) = &args.plot {
        check_pictures(folder, &pairs)?;
    }
    for pair in pairs {
        let comparison = match compare(&pair, &plan, &changes, &Printer) {
            Ok(Some(comparison)) => comparison,
            Ok(None) => continue,
            Err(error) => {
                failures.push((pair.name, error));
                continue;
            }
        };
        if let Some(folder) = &args.plot {
            draw(folder, &comparison)?;
        }
        verdicts.push(comparison.verdict);
    }
    if verdicts.is_empty() && failures.len() == 1 {
        return Err(failures.remove(0).1.into());
    }
    if verdicts.is_empty() && failures.is_empty() {
        let paths: Vec<_> = args
            .paths
            .iter()
            .map(|path| path.display().to_string())
            .collect();
        return Err(Failure::at(
            paths.join(", "),
            "found no trace that has measured times and, unless a drive is given, parameters",
        ));
    }
    if args.json {
        output::json(&verdicts)?;
    } else if !verdicts.is_empty() {
        write(&verdicts)?;
    }
    left_out("not compared", &failures)
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
            noise(verdict.noise_p95_ms),
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

/// Formats a noise; a dash if it is not known.
pub(crate) fn noise(ms: Option<f64>) -> String {
    ms.map_or_else(|| "-".to_owned(), |ms| format!("{ms:.3} ms"))
}

/// Returns the table of reads, by whether the model and the drive served them from the buffer.
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
        ("DIFFERENCE", Side::Right),
        ("DEMERIT", Side::Right),
    ]);
    for verdict in verdicts {
        for class in &verdict.classes {
            let times = &class.all;
            table.row([
                verdict.trace.clone(),
                class.name.to_owned(),
                times.requests.to_string(),
                format!("{:.3} ms", times.mean_ms),
                format!("{:.3} ms", times.measured_mean_ms),
                difference(times),
                format!("{:.3} ms", times.rms_ms),
            ]);
        }
    }
    table
}

/// Returns the difference of the means with its interval.
fn difference(times: &TimesVerdict) -> String {
    let difference = times.mean_ms - times.measured_mean_ms;
    match times.difference_half_width_ms {
        Some(half_width) => format!("{difference:+.3} ± {half_width:.3} ms"),
        None => format!("{difference:+.3} ms"),
    }
}

/// Refuses a picture's file name as the directory, pictures that would overwrite a trace, each
/// other or another file, and any picture if this build cannot draw. Called before anything is
/// replayed.
fn check_pictures(folder: &Path, pairs: &[TracePair]) -> Result<()> {
    if plot::is_picture(folder) {
        let why = "--plot takes a directory, for one picture per trace; omit the extension";
        return Err(Failure::at(folder.display(), why));
    }
    let pictures: Vec<PathBuf> = pairs
        .iter()
        .map(|pair| picture(folder, &pair.name))
        .collect();
    pictures
        .iter()
        .try_for_each(|path| plot::check_ending(path))?;
    let outputs: Vec<_> = pictures
        .iter()
        .map(|path| ("--plot", Some(path.as_path()), Some(OutputFormat::Picture)))
        .collect();
    overwrite::check(pairs.iter().map(|pair| pair.trace.as_path()), &outputs)
}

/// Returns the path of a trace's picture.
fn picture(folder: &Path, trace: &str) -> PathBuf {
    folder.join(format!("{trace}.svg"))
}

/// Draws the distributions of all requests and of each class, and the differences by seek distance.
fn draw(folder: &Path, comparison: &Comparison) -> Result<()> {
    let verdict = &comparison.verdict;
    fs::create_dir_all(folder).map_err(|error| Failure::file(folder, &error))?;
    let all = panel("", comparison.requests.iter());
    let classes = verdict.classes.iter().map(|class| {
        let requests = comparison.requests.iter();
        let title = format!("{}: demerit {:.3} ms", class.name, class.all.rms_ms);
        panel(&title, requests.filter(|one| one.class() == class.name))
    });
    let validation = Validation {
        title: format!(
            "{}: demerit {:.3} ms, {:.1} % of the mean",
            verdict.trace,
            verdict.rms_ms,
            verdict.rms_share * 100.0
        ),
        times: std::iter::once(all).chain(classes).collect(),
        residuals: differences(&comparison.requests),
    };
    plot::write(&picture(folder, &verdict.trace), &validation)
}

/// Returns the distributions of the simulated and measured times of some requests.
fn panel<'a>(title: &str, requests: impl Iterator<Item = &'a ReplayedRequest>) -> TimesPanel {
    let (mut simulated, mut measured): (Vec<f64>, Vec<f64>) = requests
        .map(|one| (one.simulated_ms, one.measured_ms))
        .unzip();
    simulated.sort_by(f64::total_cmp);
    measured.sort_by(f64::total_cmp);
    let at = |times: &[f64], share: f64| {
        let rank = (share * times.len() as f64) as usize;
        times[rank.min(times.len() - 1)]
    };
    TimesPanel {
        title: title.to_owned(),
        curves: vec![curve("measured", &measured), curve("simulated", &simulated)],
        until_ms: at(&simulated, 0.999).max(at(&measured, 0.999)) * 1.02,
    }
}

/// The maximum number of groups of seek distances in a picture.
const GROUPS_MAX: usize = 40;

/// Returns the quartiles of the differences by seek distance, if there are at least two groups.
fn differences(requests: &[ReplayedRequest]) -> Option<Residuals> {
    let found = residuals(requests, GROUPS_MAX);
    let names = ["first quartile", "median", "third quartile"];
    let curves = (0..).zip(names).map(|(quartile, name): (usize, _)| Curve {
        name: name.to_owned(),
        points: found
            .iter()
            .map(|group| (group.cylinders, group.quartiles_ms[quartile]))
            .collect(),
    });
    (found.len() > 1).then(|| Residuals {
        title: "accesses to the media: simulated minus measured time".to_owned(),
        curves: curves.collect(),
    })
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

//! `traxtent lab jobs`: common benchmark jobs on drives.

use std::collections::BTreeMap;
use std::io::Write;
use std::num::NonZeroU32;

use serde_json::{Value, json};
use traxtent_experiments::jobs::{ExceededBound, Jobs, jobs};
use traxtent_lab::jobs::{Effect, JOBS, Rate, effects};
use traxtent_lab::{Bench, LabError};
use traxtent_model::profile::builtin;
use traxtent_units::Count;

use crate::failure::{Failure, Result};
use crate::output;
use crate::progress::Progress;
use crate::table::{Side, Table};

/// The built-in drive without mechanics.
const WITHOUT_MECHANICS: &str = "instant";

/// A change of a job's requests/s is printed if it is larger than this fraction.
const EFFECT_LEAST: f64 = 0.1;

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Built-in drives [default: all that have mechanics]
    #[arg(value_name = "DRIVE")]
    drives: Vec<String>,
    /// Change each assumed figure of the firmware instead, one at a time, and print those that
    /// change a job by more than a tenth
    #[arg(long)]
    firmware: bool,
    /// The duration of each job, in seconds of simulated time
    #[arg(long, value_name = "N", default_value = "10")]
    seconds: NonZeroU32,
    /// The seed of the random requests' positions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<()> {
    let names: Vec<&str> = if args.drives.is_empty() {
        builtin::names()
            .filter(|name| *name != WITHOUT_MECHANICS)
            .collect()
    } else {
        args.drives.iter().map(String::as_str).collect()
    };
    let benches = names
        .into_iter()
        .map(|name| Bench::new(name, args.seed))
        .collect::<Result<Vec<_>, _>>()
        .map_err(broken)?;
    if args.firmware {
        print_effects(
            &of_each(&benches, |bench| effects(bench, args.seconds))?,
            args,
        )
    } else {
        print_jobs(&of_each(&benches, |bench| jobs(bench, args.seconds))?, args)
    }
}

fn broken(error: LabError) -> Failure {
    Failure::input(format!("lab jobs: {error}"))
}

fn of_each<'a, T>(
    benches: &'a [Bench],
    measure: impl Fn(&Bench) -> Result<T, LabError>,
) -> Result<Vec<(&'a str, T)>> {
    let progress = Progress::new("drives", Some(benches.len() as u64));
    let of = |bench: &'a Bench| {
        let measured = measure(bench).map_err(broken)?;
        progress.add(1);
        Ok((bench.profile.name.as_str(), measured))
    };
    benches.iter().map(of).collect()
}

fn print_jobs(measured: &[(&str, Jobs)], args: &Args) -> Result<()> {
    let misses = measured
        .iter()
        .flat_map(|(name, jobs)| jobs.misses.iter().map(move |miss| (*name, miss)));
    let misses: Vec<(&str, &ExceededBound)> = misses.collect();
    if args.json {
        output::json(&measured.iter().map(drive_json).collect::<Vec<_>>())?;
    } else {
        let mut out = output::stdout();
        writeln!(out, "Sequential, MB/s; 8m is the drive's streaming rate")?;
        in_sequence(measured).write(&mut out)?;
        writeln!(
            out,
            "\nRandom, 4 KiB, requests/s; also the mean time of a single read in ms"
        )?;
        at_random(measured).write(&mut out)?;
        writeln!(out)?;
        for (name, miss) in &misses {
            writeln!(out, "{name}: {miss}")?;
        }
        writeln!(
            out,
            "{} of {} within all bounds; {} s of simulated time per job, seed {}",
            measured
                .iter()
                .filter(|(_, jobs)| jobs.misses.is_empty())
                .count(),
            Count(measured.len(), "drive"),
            args.seconds,
            args.seed
        )?;
        output::finish(out)?;
    }
    match misses.len() {
        0 => Ok(()),
        1 => Err(Failure::Finding("1 bound is violated".to_owned())),
        count => Err(Failure::Finding(format!("{count} bounds are violated"))),
    }
}

fn in_sequence(measured: &[(&str, Jobs)]) -> Table {
    let titles = [
        "READ 4k", "128k", "1m", "8m", "MAKER", "WRITE 4k", "128k", "1m",
    ];
    let titles = titles.map(|title| (title, Side::Right));
    let mut table = Table::new(std::iter::once(("DRIVE", Side::Left)).chain(titles));
    for (name, jobs) in measured {
        let rate = |index: usize| format!("{:.1}", jobs.rates[index].mb_per_s);
        table.row([
            (*name).to_owned(),
            rate(0),
            rate(1),
            rate(2),
            format!("{:.1}", jobs.streaming.mb_per_s),
            shown(jobs.published_mb_per_s, 1),
            rate(3),
            rate(4),
            rate(5),
        ]);
    }
    table
}

fn at_random(measured: &[(&str, Jobs)]) -> Table {
    let titles = [
        "READ",
        "32",
        "WRITE",
        "32",
        "MIXED, 32",
        "READ, ms",
        "MAKER",
    ];
    let titles = titles.map(|title| (title, Side::Right));
    let mut table = Table::new(std::iter::once(("DRIVE", Side::Left)).chain(titles));
    for (name, jobs) in measured {
        let rates = jobs.rates[6..].iter();
        let rates = rates.map(|rate| format!("{:.0}", rate.requests_per_s));
        let times = [
            format!("{:.1}", jobs.rates[6].response_ms),
            shown(jobs.published_access_ms, 1),
        ];
        table.row(
            std::iter::once((*name).to_owned())
                .chain(rates)
                .chain(times),
        );
    }
    table
}

/// Formats a figure, or a dash if it is missing.
fn shown(figure: Option<f64>, decimals: usize) -> String {
    figure.map_or("-".to_owned(), |figure| format!("{figure:.decimals$}"))
}

fn drive_json((name, jobs): &(&str, Jobs)) -> Value {
    let rate = |rate: &Rate| {
        json!({
            "mb_per_s": rate.mb_per_s,
            "requests_per_s": rate.requests_per_s,
            "response_ms": rate.response_ms,
        })
    };
    let rates: BTreeMap<&str, Value> = std::iter::zip(JOBS, &jobs.rates)
        .map(|(job, of)| (job.name, rate(of)))
        .collect();
    json!({
        "drive": name,
        "jobs": rates,
        "streaming": rate(&jobs.streaming),
        "published_mb_per_s": jobs.published_mb_per_s,
        "published_access_ms": jobs.published_access_ms,
        "source": jobs.sheet.map(|sheet| &sheet.source),
        "misses": jobs.misses.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// The effect of a changed figure: the number of drives that it affects, and the drive and job that
/// it affects most.
struct AffectedDrives<'a> {
    drives: usize,
    most: (&'a str, &'a Effect),
}

fn print_effects(measured: &[(&str, Vec<Effect>)], args: &Args) -> Result<()> {
    let distance = |effect: &Effect| effect.ratio.ln().abs();
    let mut affected: BTreeMap<(&str, &str), AffectedDrives<'_>> = BTreeMap::new();
    let all = measured
        .iter()
        .flat_map(|(name, effects)| effects.iter().map(move |effect| (*name, effect)));
    for (name, effect) in all.filter(|(_, effect)| (effect.ratio - 1.0).abs() > EFFECT_LEAST) {
        let entry = affected
            .entry((effect.key, effect.value))
            .or_insert(AffectedDrives {
                drives: 0,
                most: (name, effect),
            });
        entry.drives += 1;
        if distance(effect) > distance(entry.most.1) {
            entry.most = (name, effect);
        }
    }
    if args.json {
        let row = |((key, value), affected): (&(&str, &str), &AffectedDrives<'_>)| {
            json!({
                "key": key,
                "value": value,
                "drives": affected.drives,
                "drive": affected.most.0,
                "job": affected.most.1.job.name,
                "ratio": affected.most.1.ratio,
            })
        };
        return output::json(&affected.iter().map(row).collect::<Vec<_>>());
    }
    let mut table = Table::new([
        ("FIGURE", Side::Left),
        ("CHANGED TO", Side::Left),
        ("DRIVES", Side::Right),
        ("MOST ON", Side::Left),
        ("JOB", Side::Left),
        ("RATIO", Side::Right),
    ]);
    for ((key, value), affected) in &affected {
        table.row([
            (*key).to_owned(),
            (*value).to_owned(),
            affected.drives.to_string(),
            affected.most.0.to_owned(),
            affected.most.1.job.name.to_owned(),
            format!("{:.2}", affected.most.1.ratio),
        ]);
    }
    let mut out = output::stdout();
    table.write(&mut out)?;
    writeln!(
        out,
        "\nRequests/s divided by those with the drive's own figure, for assumed figures only. {}, {} s of simulated \
         time per job, seed {}",
        Count(measured.len(), "drive"),
        args.seconds,
        args.seed
    )?;
    output::finish(out)
}

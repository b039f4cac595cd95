//! `traxtent lab today`: the benefit of traxtents on current drives.

use std::io::Write;
use std::path::PathBuf;

use serde_json::{Value, json};
use traxtent_experiments::Unit;
use traxtent_lab::today::{Answer, DRIVES, DriveAnswers, Question, efficiency_curves, measure_all};
use traxtent_lab::{Bench, LabError};
use traxtent_plot::ExperimentFigure;

use crate::drives::bytes;
use crate::failure::{Failure, Result};
use crate::output;
use crate::overwrite::{self, OutputFormat};
use crate::plot;
use crate::progress::Progress;
use crate::table::{Side, Table};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Run a tenth of the requests, rounds and runs: less accurate, but quick
    #[arg(long)]
    quick: bool,
    /// The seed of the requests' positions
    #[arg(long, value_name = "N", default_value_t = 1)]
    seed: u64,
    /// Draw efficiency against request size, as SVG or PNG
    #[arg(long, value_name = "FILE")]
    picture: Option<PathBuf>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

/// Runs the command. Tries to create the picture's file before the measurements, so that an
/// unusable path is reported early.
pub(super) fn run(args: &Args) -> Result<()> {
    if let Some(path) = &args.picture {
        plot::check_ending(path)?;
        overwrite::check(
            [],
            &[("--picture", Some(path), Some(OutputFormat::Picture))],
        )?;
        traxtent_run::AtomicFile::create(path)?;
    }
    let benches = benches(args).map_err(broken)?;
    let drives = {
        let answers = 2 * benches.len() * Question::ALL.len();
        let progress = Progress::new("answers", Some(answers as u64));
        measure_all(&benches, &|| progress.add(1)).map_err(broken)?
    };
    if let Some(path) = &args.picture {
        let figure = &efficiency_curves(&benches).map_err(broken)?;
        plot::write(path, &ExperimentFigure { figure, spec: None })?;
    }
    if args.json {
        output::json(&drives.iter().map(drive_json).collect::<Vec<_>>())
    } else {
        print(&drives, args)
    }
}

fn benches(args: &Args) -> Result<Vec<Bench>, LabError> {
    let bench = |name: &&str| Ok(Bench::new(name, args.seed)?.quick(args.quick));
    DRIVES.iter().map(bench).collect()
}

/// Returns the failure of a measurement. Only built-in drives are used, so none is expected.
fn broken(error: LabError) -> Failure {
    Failure::input(format!("lab today: {error}"))
}

fn track_bytes(bench: &Bench) -> u64 {
    u64::from(bench.track_sectors()) * u64::from(bench.profile.sector.logical_bytes)
}

/// Returns the title of a question, and the unit of its answer.
fn words(question: Question) -> (&'static str, Unit) {
    match question {
        Question::Efficiency => ("efficiency, tworeq", Unit::Share),
        Question::OneReq => ("head time, onereq", Unit::Ms),
        Question::TwoReq => ("head time, tworeq", Unit::Ms),
        Question::PaperSize => ("head time, reads of 264 KB", Unit::Ms),
        Question::EqualSize => ("unaligned size of equal efficiency", Unit::Mib),
        Question::Streams4 => ("streams of 4 Mb/s", Unit::Streams),
        Question::Streams25 => ("streams of 25 Mb/s", Unit::Streams),
        Question::Diff => ("ext2 diff", Unit::Seconds),
        Question::DiffInTracks => ("ext2 diff, windows of a track", Unit::Seconds),
        Question::Startup => ("ext2 streams, startup", Unit::Ms),
        Question::StartupInTracks => ("ext2 streams, windows of a track", Unit::Ms),
    }
}

fn drive_json(drives: &DriveAnswers) -> Value {
    let bench = &drives.bench;
    let answer = |question: Question, zero_latency: bool, answer: &Answer| {
        json!({
            "question": question.name(),
            "claim": question.claim(),
            "zero_latency": zero_latency,
            "unit": words(question).1,
            "unaligned": answer.unaligned,
            "aligned": answer.aligned,
            "change": answer.change(),
        })
    };
    let answers = drives.rows.iter().flat_map(|row| {
        [
            answer(row.question, true, &row.zero_latency),
            answer(row.question, false, &row.ordinary_access),
        ]
    });
    json!({
        "drive": bench.profile.name,
        "model": bench.profile.model,
        "year": bench.profile.year,
        "track_bytes": track_bytes(bench),
        "revolution_ms": bench.profile.revolution_ms(),
        "answers": answers.collect::<Vec<_>>(),
    })
}

fn print(drives: &[DriveAnswers], args: &Args) -> Result<()> {
    let mut out = output::stdout();
    for drive in drives {
        let profile = &drive.bench.profile;
        writeln!(
            out,
            "{}: {}, a track of {}, a revolution of {}",
            profile.name,
            profile.model,
            bytes(track_bytes(&drive.bench)),
            Unit::Ms.format(profile.revolution_ms()),
        )?;
        table(drive).write(&mut out)?;
        writeln!(out)?;
    }
    writeln!(
        out,
        "Reads and the streams of 4 and 25 Mb/s are in the outermost zone; these streams run in soft real time, with I/Os of one track. The ext2 rows use the beginning of the drive. docs/results/today.md explains the results."
    )?;
    if args.quick {
        writeln!(out, "A quick run: a tenth of the requests and rounds.")?;
    }
    if let Some(path) = &args.picture {
        writeln!(out, "wrote {}", path.display())?;
    }
    output::finish(out)
}

fn table(drive: &DriveAnswers) -> Table {
    let mut table = Table::new([
        ("CLAIM", Side::Left),
        ("", Side::Left),
        ("ZERO LATENCY", Side::Left),
        ("UNALIGNED", Side::Right),
        ("ALIGNED", Side::Right),
        ("CHANGE", Side::Right),
    ]);
    for row in &drive.rows {
        let (what, unit) = words(row.question);
        for (access, answer) in [("yes", &row.zero_latency), ("no", &row.ordinary_access)] {
            table.row([
                row.question.claim().to_owned(),
                what.to_owned(),
                access.to_owned(),
                unit.format(answer.unaligned),
                unit.format(answer.aligned),
                Unit::Change.format(answer.change()),
            ]);
        }
    }
    table
}

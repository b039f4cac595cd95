//! `traxtent lab report`: a report as a page, or as Markdown.

use std::io::Write;
use std::path::{Path, PathBuf};

use super::{ROUGH, RunArgs, check_pictures, draw, markdown, measure, page, selection, verdict};
use crate::failure::Result;
use crate::output;
use crate::overwrite::{self, OutputFormat};

#[derive(clap::Args, Debug)]
pub(super) struct Args {
    /// Claims, groups of claims or papers [default: all]
    #[arg(value_name = "ID")]
    ids: Vec<String>,
    #[command(flatten)]
    how: RunArgs,
    /// Write the page to this .html file, or to report.html in this directory
    #[arg(long, value_name = "PATH", default_value = "traxtent-lab")]
    out: PathBuf,
    /// Print Markdown instead
    #[arg(long, conflicts_with = "out")]
    markdown: bool,
    /// With --markdown: draw the pictures as SVG in this directory
    #[arg(long, value_name = "DIR", requires = "markdown")]
    pictures: Option<PathBuf>,
}

/// Runs the command.
pub(super) fn run(args: &Args) -> Result<()> {
    if args.markdown {
        print(args)
    } else {
        write(args)
    }
}

/// Writes the page. Its file is created first, so that an unusable path is reported before the
/// measurements.
fn write(args: &Args) -> Result<()> {
    let selection = selection(&args.ids)?;
    let path = page_path(&args.out)?;
    overwrite::check([], &[("--out", Some(&path), Some(OutputFormat::Page))])?;
    let page = traxtent_run::AtomicFile::create(&path)?;
    let plan = args.how.plan(cfg!(feature = "plot"))?;
    let (findings, outcome) = measure(&selection, &plan)?;
    let head = page::Head {
        seeds: args.how.seed.map_or(args.how.seeds.into(), |_| 1),
        note: args.how.quick.then_some(ROUGH),
        command: command(args),
    };
    let text = page::html(&head, &findings, &outcome.pictures)?;
    output::fill(page, text.as_bytes())?;
    let mut out = output::stdout();
    writeln!(out, "{}\nwrote {}", findings.score(), path.display())?;
    output::finish(out)?;
    verdict(&findings)
}

fn print(args: &Args) -> Result<()> {
    let selection = selection(&args.ids)?;
    if let Some(folder) = &args.pictures {
        check_pictures(folder, &selection)?;
    }
    let plan = args.how.plan(args.pictures.is_some())?;
    let (findings, outcome) = measure(&selection, &plan)?;
    let drawn = match &args.pictures {
        Some(folder) => draw(&outcome, folder)?,
        None => Vec::new(),
    };
    markdown::print(&findings, &drawn)?;
    verdict(&findings)
}

/// Returns the path of the page: `out` itself if it ends in `.html`, or else `report.html` in the
/// directory `out`, which is created if needed.
fn page_path(out: &Path) -> Result<PathBuf> {
    if out.extension().is_some_and(|ending| ending == "html") {
        return Ok(out.to_owned());
    }
    output::folder(out)?;
    Ok(out.join("report.html"))
}

/// Returns the command to show on the page, without the options that name files and directories.
fn command(args: &Args) -> String {
    let mut words = vec!["traxtent lab report".to_owned()];
    words.extend(args.ids.iter().cloned());
    match args.how.seed {
        Some(seed) => words.push(format!("--seed {seed}")),
        None if args.how.seeds > 1 => words.push(format!("--seeds {}", args.how.seeds)),
        None => {}
    }
    words.extend(args.how.quick.then(|| "--quick".to_owned()));
    words.join(" ")
}

//! Measures the cost of each way to find tracks on every drive with a known layout. Run by `cargo
//! xtask bench probe`.
//!
//! Each row is saved once it is measured, so an interrupted run loses at most one row. A run of
//! selected drives or methods replaces their rows and keeps the others.

mod table;

use std::io::IsTerminal;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Duration;

use anyhow::Result;
use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use traxtent_lab::probe_table::{Method, Subject, measure, subjects};
use traxtent_model::geometry::Geometry;

use table::{Row, Table};

/// Measure ways to find tracks on all drives.
#[derive(Parser)]
struct Options {
    /// Only drives whose name contains this text; may be repeated
    #[arg(long = "drive")]
    drives: Vec<String>,
    /// Only methods whose name begins with this text (tree, angle-full, …); may be repeated
    #[arg(long = "algorithm")]
    methods: Vec<String>,
    /// Processor time in seconds after which a method is stopped on a drive
    #[arg(long, default_value_t = 300)]
    bound: u64,
    /// Directory with DiskSim's parameter files
    #[arg(long)]
    disksim: Option<PathBuf>,
    /// CSV file for the rows
    #[arg(long)]
    csv: PathBuf,
    /// Page whose tables are rewritten
    #[arg(long)]
    page: PathBuf,
    /// Description of the host
    #[arg(long, default_value = "")]
    machine: String,
    /// Commit that is measured
    #[arg(long, default_value = "")]
    commit: String,
    /// Seed to record in the rows; nothing in the measurement is random
    #[arg(long, default_value_t = 1)]
    seed: u64,
}

fn main() -> Result<()> {
    let options = Options::parse();
    let wanted = |list: &[String], test: &dyn Fn(&str) -> bool| {
        list.is_empty() || list.iter().any(|text| test(text))
    };
    let methods: Vec<Method> = Method::ALL
        .into_iter()
        .filter(|m| wanted(&options.methods, &|text| m.name().starts_with(text)))
        .collect();
    let all = subjects(options.disksim.as_deref());
    let names = all.iter().map(|drive| drive.name.clone()).collect();
    let drives: Vec<Subject> = all
        .into_iter()
        .filter(|drive| wanted(&options.drives, &|text| drive.name.contains(text)))
        .collect();
    anyhow::ensure!(
        !methods.is_empty(),
        "no method name begins with the text given by --algorithm"
    );
    anyhow::ensure!(
        !drives.is_empty(),
        "no drive name contains the text given by --drive"
    );
    let mut table = Table::open(&options.csv, &options.page, names)?;
    println!("{}", Row::HEAD);
    for drive in &drives {
        let (profile, geometry) = match prepare(drive) {
            Ok(parts) => parts,
            Err(reason) => {
                println!("{:<24} left out: {reason}", drive.name);
                table.leave_out(&drive.name, &reason)?;
                continue;
            }
        };
        for &method in &methods {
            let bar = progress(&geometry, drive, method);
            let bound = Duration::from_secs(options.bound);
            let mut tracks = 0u64;
            let measured = measure(&profile, &geometry, method, bound, |lbn| {
                tracks += 1;
                if tracks.is_multiple_of(1 << 10) {
                    bar.set_position(lbn.0);
                }
            });
            bar.finish_and_clear();
            let row = Row {
                seed: options.seed,
                commit: options.commit.clone(),
                machine: options.machine.clone(),
                ..Row::new(drive, method, &geometry, &measured, options.bound)
            };
            println!("{row}");
            table.put(row)?;
        }
    }
    Ok(())
}

type Parts = (Arc<traxtent_model::profile::Profile>, Arc<Geometry>);

fn prepare(drive: &Subject) -> Result<Parts, String> {
    let profile = drive.profile.clone()?;
    let geometry = Geometry::build(&profile.geometry).map_err(|error| error.to_string())?;
    Ok((Arc::new(*profile), Arc::new(geometry)))
}

fn progress(geometry: &Geometry, drive: &Subject, method: Method) -> ProgressBar {
    if !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let shape = "{msg} {bar:40} {percent} %, {eta} left";
    let style = ProgressStyle::with_template(shape).expect("the template is well-formed");
    ProgressBar::new(geometry.capacity().0)
        .with_style(style)
        .with_message(format!("{} {}", drive.name, method.name()))
}

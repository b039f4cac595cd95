//! Records and times the sessions of the alignment experiment, one after another, and prints a table: seconds that the
//! drive takes aligned, unaligned, and the ratio. Goes on where it was broken off.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use traxtent_lab::Bench;
use traxtent_lab::alignment::{DRIVES, FileSystem, Phase, missing, times, with_firmware};

#[derive(Parser)]
struct Args {
    /// Built-in drives
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "wd10ears,st2000l003,dt01aca300"
    )]
    drives: Vec<String>,
    /// File systems; all of them, if none is named
    #[arg(long, value_delimiter = ',')]
    kinds: Vec<String>,
    /// The tarball's size; as in the paper, if not given
    #[arg(long)]
    mib: Option<u64>,
    /// Seeds, one a run
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,
    /// Figures of the drive's firmware to change, such as cache.segments=128
    #[arg(long)]
    with: Vec<String>,
    /// The program `traxtent`
    #[arg(long, default_value = "target/debug/traxtent")]
    traxtent: PathBuf,
    /// Where recordings are kept
    #[arg(long)]
    folder: PathBuf,
}

fn main() -> Result<()> {
    let args = Args::parse();
    if let Some(reason) = missing() {
        bail!("{reason}");
    }
    println!(
        "| drive | file system | seed | {} |",
        Phase::ALL.map(Phase::name).join(" | ")
    );
    println!("|---|---|---|{}", "---|".repeat(Phase::ALL.len()));
    for drive in &args.drives {
        for kind in FileSystem::ALL {
            if !args.kinds.is_empty() && !args.kinds.iter().any(|name| name == kind.name()) {
                continue;
            }
            for &seed in &args.seeds {
                let mut bench = with_firmware(&Bench::new(drive, seed)?)?;
                for change in &args.with {
                    let Some((key, value)) = change.split_once('=') else {
                        bail!("{change}: expected KEY=VALUE");
                    };
                    bench = bench.with(key, value)?;
                }
                let known = DRIVES.iter().find(|(name, _)| name == drive);
                let mib = args.mib.unwrap_or(known.map_or(451, |(_, mib)| *mib));
                let times = times(&bench, kind, mib, &args.traxtent, &args.folder)?;
                let pairs = times.aligned.iter().zip(&times.unaligned);
                let cells = pairs.map(|(aligned, unaligned)| {
                    format!("{aligned:.2} {unaligned:.2} {:.2}", unaligned / aligned)
                });
                let cells: Vec<String> = cells.collect();
                println!(
                    "| {drive} | {} | {seed} | {} |",
                    kind.name(),
                    cells.join(" | ")
                );
            }
        }
    }
    Ok(())
}

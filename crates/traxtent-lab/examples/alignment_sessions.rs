//! Records and times the sessions of the alignment experiment, one after another, and prints a
//! table: for each phase, the seconds that the drive takes aligned and unaligned, and the ratio of
//! unaligned to aligned. A later run with the same directory records only the sessions that it
//! lacks.

use std::path::PathBuf;

use anyhow::{Result, bail};
use clap::Parser;
use traxtent_lab::Bench;
use traxtent_lab::alignment::{
    DRIVES, FileSystem, KernelHost, Phase, missing_guest, times, unavailable_reason,
};

#[derive(Parser)]
struct Args {
    /// Built-in drives
    #[arg(
        long,
        value_delimiter = ',',
        default_value = "wd10ears,st2000l003,dt01aca300"
    )]
    drives: Vec<String>,
    /// File systems; default: ext3, ext4, xfs and btrfs. With --guest, the default is jfs and
    /// reiserfs
    #[arg(long, value_delimiter = ',', value_parser = file_system)]
    kinds: Vec<FileSystem>,
    /// Size of the tarball in MiB; by default the size used in the paper
    #[arg(long)]
    mib: Option<u64>,
    /// Seeds, one for each run
    #[arg(long, value_delimiter = ',', default_value = "1,2,3")]
    seeds: Vec<u64>,
    /// Parameters of the drive's profile to change, such as cache.segments=128
    #[arg(long)]
    with: Vec<String>,
    /// Path of the program `traxtent`
    #[arg(long, default_value = "target/debug/traxtent")]
    traxtent: PathBuf,
    /// KiB of writes that the drive can hold and coalesce; 0 for none, as in the model
    #[arg(long, default_value_t = 0)]
    gather: u64,
    /// Use the kernel of an emulated machine instead of this machine's kernel
    #[arg(long)]
    guest: bool,
    /// Directory for recordings
    #[arg(long)]
    folder: PathBuf,
}

/// Returns the file system with a name.
fn file_system(name: &str) -> Result<FileSystem, String> {
    let all = || FileSystem::OF_HOST.into_iter().chain(FileSystem::OF_GUEST);
    all().find(|kind| kind.name() == name).ok_or_else(|| {
        let names: Vec<&str> = all().map(FileSystem::name).collect();
        format!("expected one of {}", names.join(", "))
    })
}

fn main() -> Result<()> {
    let args = Args::parse();
    let (machine, missing) = if args.guest {
        (KernelHost::Guest, missing_guest())
    } else {
        (KernelHost::Host, unavailable_reason())
    };
    if let Some(reason) = missing {
        bail!("{reason}");
    }
    let kinds = match (&args.kinds[..], machine) {
        ([], KernelHost::Host) => &FileSystem::OF_HOST[..],
        ([], KernelHost::Guest) => &FileSystem::OF_GUEST[..],
        (kinds, _) => kinds,
    };
    println!(
        "| drive | file system | seed | {} |",
        Phase::ALL.map(Phase::name).join(" | ")
    );
    println!("|---|---|---|{}", "---|".repeat(Phase::ALL.len()));
    for drive in &args.drives {
        for &kind in kinds {
            for &seed in &args.seeds {
                let mut bench = Bench::new(drive, seed)?;
                for change in &args.with {
                    let Some((key, value)) = change.split_once('=') else {
                        bail!("{change}: expected KEY=VALUE");
                    };
                    bench = bench.with_parameter(key, value)?;
                }
                let known = DRIVES.iter().find(|(name, _)| name == drive);
                let mib = args.mib.unwrap_or(known.map_or(451, |(_, mib)| *mib));
                let times = times(
                    &bench,
                    (machine, kind),
                    mib,
                    args.gather * 2,
                    &args.traxtent,
                    &args.folder,
                )?;
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

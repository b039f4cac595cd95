//! `cargo xtask bench`: figures with the machine, the seed and the commit beside them.

mod build;
mod check;
mod jobs;
mod layout;
mod nbd;
mod probe;
mod serve;
mod sim;
mod volume;

use std::process::ExitCode;

use anyhow::Result;

use crate::machine;

/// What to measure, and the seed of what is random in it.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    subject: Subject,
    /// Fixes the workloads
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Requests that the simulator completes in a second
    Sim {
        /// The largest number of requests in the table of growth
        #[arg(long, default_value_t = 10_000_000)]
        most: u64,
    },
    /// Allocations and frees that the allocators do in a second; the table of a layout in partitions
    Layout,
    /// Ways to find tracks, on every drive: what they ask, how long it takes, whether it is exact
    Probe(probe::Options),
    /// fio's usual jobs on served drives, beside the same simulated
    Jobs(jobs::Options),
    /// A served drive: how fast without mechanics, beside nbdkit's own memory, and how true with them
    Serve(serve::Options),
    /// Volumes on members in memory, beside a plain file and beside the memory's own speed
    Volume(volume::Options),
    /// How long a stack of eight layers takes to check
    Check,
    /// The time of a clean release build on two cores
    Build,
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    println!("{}\n", machine::header(options.seed));
    match &options.subject {
        Subject::Sim { most } => sim::run(options.seed, *most)?,
        Subject::Layout => layout::run(options.seed)?,
        Subject::Probe(chosen) => probe::run(options.seed, chosen)?,
        Subject::Jobs(chosen) => return jobs::run(options.seed, chosen),
        Subject::Serve(chosen) => return serve::run(options.seed, chosen),
        Subject::Volume(chosen) => return volume::run(options.seed, chosen),
        Subject::Check => check::run()?,
        Subject::Build => build::run()?,
    }
    Ok(ExitCode::SUCCESS)
}

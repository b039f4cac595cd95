//! `cargo xtask bench`: measurements, printed with the machine, the seed and the commit.

mod against;
mod build;
mod check;
mod files;
mod front_ends;
mod jobs;
mod layout;
mod nbd;
mod probe;
mod request_log;
mod serve;
mod sim;
mod volume;

use std::process::ExitCode;

use anyhow::Result;

use crate::machine;

/// The subject of a measurement, and the seed of its random parts.
#[derive(clap::Args)]
pub(crate) struct Options {
    #[command(subcommand)]
    subject: Subject,
    /// Seed of the workloads
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
}

#[derive(clap::Subcommand)]
enum Subject {
    /// Requests per second that the simulator completes
    Sim {
        /// Largest number of requests in the table of rate and memory by number of requests
        #[arg(long, default_value_t = 10_000_000)]
        most: u64,
        /// Alternate with the benchmark of COMMIT, and print the ratios of the rates
        #[arg(long, value_name = "COMMIT", conflicts_with = "most")]
        against: Option<String>,
        /// How often each of the two benchmarks runs
        #[arg(long, value_name = "N", default_value_t = 7, requires = "against")]
        #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
        rounds: usize,
    },
    /// Allocations and frees per second of the allocators; size of the table of a track partition
    /// layout
    Layout,
    /// Probe algorithms on every drive: their requests, their time, and whether their results are
    /// exact
    Probe(probe::Options),
    /// Typical fio jobs on served drives, compared with simulations
    Jobs(jobs::Options),
    /// Served drives: speed without mechanics, compared with nbdkit's memory plugin, and timing
    /// accuracy with mechanics
    Serve(serve::Options),
    /// Front ends of served drives: the requests that reach the drive, and the lateness of
    /// responses
    FrontEnds(front_ends::Options),
    /// Files of an ext4 file system on a served drive: requests of whole tracks compared with the
    /// kernel's own
    Files(files::Options),
    /// Volumes on members in memory, compared with a plain file and with the speed of memory
    Volume(volume::Options),
    /// Time to check a stack of eight layers
    Check,
    /// Time of a clean release build with two jobs
    Build {
        /// Alternate with builds of COMMIT, and print the ratios
        #[arg(long, value_name = "COMMIT")]
        against: Option<String>,
        /// How often each of the two is built
        #[arg(long, value_name = "N", default_value_t = 3, requires = "against")]
        #[arg(value_parser = clap::builder::RangedU64ValueParser::<usize>::new().range(1..=1000))]
        rounds: usize,
    },
}

pub(crate) fn run(options: &Options) -> Result<ExitCode> {
    println!("{}\n", machine::header(options.seed));
    match &options.subject {
        Subject::Sim {
            against: Some(commit),
            rounds,
            ..
        } => sim::compare(options.seed, commit, *rounds)?,
        Subject::Sim { most, .. } => sim::run(options.seed, *most)?,
        Subject::Layout => layout::run(options.seed)?,
        Subject::Probe(chosen) => probe::run(options.seed, chosen)?,
        Subject::Jobs(chosen) => return jobs::run(options.seed, chosen),
        Subject::Serve(chosen) => return serve::run(options.seed, chosen),
        Subject::FrontEnds(chosen) => return front_ends::run(options.seed, chosen),
        Subject::Files(chosen) => return files::run(options.seed, chosen),
        Subject::Volume(chosen) => return volume::run(options.seed, chosen),
        Subject::Check => check::run()?,
        Subject::Build {
            against: Some(commit),
            rounds,
        } => build::compare(commit, *rounds)?,
        Subject::Build { .. } => build::run()?,
    }
    Ok(ExitCode::SUCCESS)
}

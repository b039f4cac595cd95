//! The tables of docs/tpl.md: what copies around the track buy, and what they cost.

use anyhow::Result;
use clap::{Parser, Subcommand};
use traxtent_lab::Bench;
use traxtent_lab::tpl::predict::{COUNTS, gains};

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    table: Table,
    /// Built-in drives
    #[arg(long, global = true, value_delimiter = ',', default_value = "atlas10k2")]
    drives: Vec<String>,
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// A tenth of the requests
    #[arg(long, global = true)]
    quick: bool,
}

#[derive(Subcommand)]
enum Table {
    /// How much of the gain of a drive's own choice the host's has
    Host,
}

fn main() -> Result<()> {
    let args = Args::parse();
    for drive in &args.drives {
        let bench = Bench::new(drive, args.seed)?.quick(args.quick);
        match args.table {
            Table::Host => host(&bench)?,
        }
    }
    Ok(())
}

fn host(bench: &Bench) -> Result<()> {
    println!("\n{}\n", bench.profile.model);
    println!("| jitter | partitions | no copies | drive chooses | host chooses | share of the gain | angles off by | missed | expected |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for jitter_ms in [0.0, 0.1] {
        for (count, gain) in COUNTS.iter().zip(gains(bench, jitter_ms)?) {
            println!(
                "| {:.0} us | {count} | {:.2} ms | {:.2} ms | {:.2} ms | {:.1} % | {:.2} % of a revolution | {:.2} % | {:.2} % |",
                1000.0 * jitter_ms,
                gain.without_ms,
                gain.drive_ms,
                gain.host_ms,
                100.0 * gain.share(),
                100.0 * gain.angle_rms,
                100.0 * gain.missed,
                100.0 * gain.expected,
            );
        }
    }
    Ok(())
}

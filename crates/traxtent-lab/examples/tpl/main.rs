//! Prints the tables of docs/results/tpl.md: the benefit and the cost of replicas around the track.

use std::cell::RefCell;
use std::path::PathBuf;
use std::time::Instant;

use anyhow::Result;
use clap::{Parser, Subcommand};
use traxtent_lab::Bench;
use traxtent_lab::tpl::compare::{BlockPlacement, DEPTHS, random, trace};
use traxtent_lab::tpl::day;
use traxtent_lab::tpl::host::{ReplicaSync, SurveyedDrive};
use traxtent_lab::tpl::predict::{COUNTS, gains};
use traxtent_lab::tpl::volume::{Part, Real, Virtual, target};
use traxtent_lab::tpl::writes::{DEPTH, RATE, READ_SHARES, best, surface};
use traxtent_layout::tpl::REGIONS;
use traxtent_model::profile::Profile;
use traxtent_server::serve::{DriveServer, Settings};
use traxtent_server::service::BlockService;

#[derive(Parser)]
struct Args {
    #[command(subcommand)]
    table: Table,
    /// Built-in drives
    #[arg(
        long,
        global = true,
        value_delimiter = ',',
        default_value = "atlas10k2"
    )]
    drives: Vec<String>,
    /// Seed of everything random
    #[arg(long, global = true, default_value_t = 1)]
    seed: u64,
    /// Send only a tenth of the requests
    #[arg(long, global = true)]
    quick: bool,
    /// Directory with the traces
    #[arg(long, global = true, default_value = "../shared/data/disksim")]
    traces: PathBuf,
}

#[derive(Subcommand)]
enum Table {
    /// Share of the gain reached if the host, not the drive, chooses the replica
    Host,
    /// The same share, reached by the volume itself, in virtual or real time
    Volume {
        /// Serve the drive and measure in real time
        #[arg(long)]
        real: bool,
        /// Number of tracks that are surveyed and read
        #[arg(long, default_value_t = 4000)]
        tracks: usize,
        /// Number of reads in each measurement
        #[arg(long, default_value_t = 20_000)]
        reads: u64,
        /// Numbers of replicas
        #[arg(long = "copies", value_delimiter = ',', default_value = "2,4,8")]
        replicas: Vec<u32>,
    },
    /// Writes to all replicas, for each synchronization policy
    Writes,
    /// A day with a number of partitions that adapts to the free space, compared with fixed numbers
    Day {
        /// Largest number of partitions if it adapts to the free space
        #[arg(long, default_value_t = day::MOST)]
        most: u32,
        /// Fill levels, as shares of the capacity
        #[arg(long, value_delimiter = ',', default_values_t = day::LEVELS)]
        levels: Vec<f64>,
        /// Number of regions, filled one after another
        #[arg(long, default_value_t = REGIONS)]
        regions: u16,
    },
    /// Replicas compared with a short-stroked drive, two drives, and a deep queue
    Compare,
    /// Replicas compared with a short-stroked drive, using the traces that come with DiskSim
    Traces,
}

fn main() -> Result<()> {
    let args = Args::parse();
    for drive in &args.drives {
        let bench = Bench::new(drive, args.seed)?
            .quick(args.quick)
            .with_traces(Some(args.traces.clone()));
        match &args.table {
            Table::Host => host(&bench)?,
            Table::Volume {
                real,
                tracks,
                reads,
                replicas,
            } => volume(&bench, *real, *tracks, *reads, replicas)?,
            Table::Writes => writes(&bench)?,
            Table::Day {
                most,
                levels,
                regions,
            } => day_table(&bench, *most, levels, *regions)?,
            Table::Compare => compare(&bench)?,
            Table::Traces => traces(&bench)?,
        }
    }
    Ok(())
}

fn host(bench: &Bench) -> Result<()> {
    println!("\n{}\n", bench.profile.model);
    println!(
        "| jitter | partitions | original only | drive chooses | host chooses | share of the gain | angle error | missed | expected |"
    );
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

fn volume(bench: &Bench, real: bool, tracks: usize, reads: u64, replicas: &[u32]) -> Result<()> {
    println!(
        "\n{}, the first {tracks} tracks, {reads} reads\n",
        bench.profile.model
    );
    println!(
        "| clock | jitter | replicas | original only | drive chooses | volume chooses | share of the gain | angle error | missed | expected |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    let jitters: &[f64] = if real { &[0.0] } else { &[0.0, 0.1] };
    for &jitter_ms in jitters {
        let part = Part::new(bench, tracks, jitter_ms)?;
        for &count in replicas {
            let drive_ms = part.drive_ms(count, count, jitter_ms, reads)?;
            let measured = if real {
                let settings = Settings {
                    subtract_transport: true,
                    ..Settings::of(&bench.profile.name, Profile::clone(&bench.profile))
                };
                let server = DriveServer::open(settings)?;
                server.start()?;
                let timed = Real {
                    server,
                    sector_bytes: bench.profile.sector.logical_bytes,
                    begun: Instant::now(),
                };
                part.volume(timed, count, reads)?
            } else {
                let timed = Virtual(RefCell::new(target(bench, jitter_ms)));
                part.volume(timed, count, reads)?
            };
            println!(
                "| {} | {:.0} us | {count} | {:.2} ms | {drive_ms:.2} ms | {:.2} ms | {:.1} % | {:.2} % of a revolution | {:.2} % | {:.2} % |",
                if real { "real" } else { "virtual" },
                1000.0 * jitter_ms,
                measured.without_ms,
                measured.volume_ms,
                100.0 * (measured.without_ms - measured.volume_ms)
                    / (measured.without_ms - drive_ms),
                100.0 * measured.accuracy.angle_rms,
                100.0 * measured.accuracy.missed,
                100.0 * measured.accuracy.expected,
            );
        }
    }
    Ok(())
}

fn writes(bench: &Bench) -> Result<()> {
    let points = surface(bench)?;
    println!(
        "\n{}: {RATE} requests per second; {DEPTH} outstanding\n",
        bench.profile.model
    );
    println!("| replicas are updated | reads | 1 | 2 | 4 | 8 | 16 | 32 | best |");
    println!("|---|---|---|---|---|---|---|---|---|");
    for sync in ReplicaSync::ALL {
        for read_share in READ_SHARES {
            let cells: Vec<String> = points
                .iter()
                .filter(|point| point.sync == sync && point.read_share == read_share)
                .map(|point| format!("{:.2} ms, {:.0}/s", point.response_ms, point.rate))
                .collect();
            let best = best(&points, sync, read_share).map_or(0, |point| point.count);
            println!(
                "| {} | {:.0} % | {} | {best} |",
                sync.name(),
                100.0 * read_share,
                cells.join(" | ")
            );
        }
    }
    Ok(())
}

fn day_table(bench: &Bench, most: u32, levels: &[f64], regions: u16) -> Result<()> {
    println!(
        "\n{}, {regions} regions, each with up to {most} partitions depending on free space\n",
        bench.profile.model
    );
    println!(
        "| in use | 1 | 2 | 4 | 8 | 16 | 32 | following free space | ratio to the best | background work |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|");
    for level in day::levels(bench, most, levels, regions)? {
        let fixed = |count: u32| {
            let found = level.fixed.iter().find(|(of, _)| *of == count);
            found.map_or("-".to_owned(), |(_, day)| {
                format!("{:.2} ms", day.response_ms)
            })
        };
        let fixed: Vec<String> = [1, 2, 4, 8, 16, 32].into_iter().map(fixed).collect();
        println!(
            "| {:.1} % | {} | {:.2} ms | {:.3} | {:.1} % |",
            100.0 * level.fill,
            fixed.join(" | "),
            level.dynamic.response_ms,
            level.ratio(),
            100.0 * level.dynamic.background,
        );
    }
    Ok(())
}

fn compare(bench: &Bench) -> Result<()> {
    let drive = SurveyedDrive::new(bench)?;
    for (title, reads) in [("random reads", 1.0), ("70 % reads, 30 % writes", 0.7)] {
        println!("\n{}, {title}\n", bench.profile.model);
        let depths: Vec<String> = DEPTHS
            .iter()
            .map(|depth| format!("{depth} outstanding"))
            .collect();
        println!(
            "| layout | capacity | {RATE} per second | {} |",
            depths.join(" | ")
        );
        println!("|---|---|---|---|---|---|");
        let row = |name: String, layout: BlockPlacement| -> Result<()> {
            let found = random(bench, &drive, layout, reads)?;
            let rates: Vec<String> = found
                .rates
                .iter()
                .map(|rate| format!("{rate:.0}/s"))
                .collect();
            println!(
                "| {name} | {:.1} % | {:.2} ms | {} |",
                100.0 * found.capacity,
                found.response_ms,
                rates.join(" | ")
            );
            Ok(())
        };
        row("original only".to_owned(), BlockPlacement::ShortStroke(1))?;
        for count in COUNTS {
            row(
                format!("{count} replicas"),
                BlockPlacement::Partitions(count),
            )?;
            row(
                format!("short-stroked to 1/{count}"),
                BlockPlacement::ShortStroke(count),
            )?;
        }
        row("two drives".to_owned(), BlockPlacement::Mirror)?;
    }
    Ok(())
}

fn traces(bench: &Bench) -> Result<()> {
    let drive = SurveyedDrive::new(bench)?;
    println!(
        "\n{}, the drive's trace, with addresses divided by the number of replicas\n",
        bench.profile.model
    );
    println!("| capacity | replicas | short-stroked | original only, whole drive |");
    println!("|---|---|---|---|");
    let whole = trace(bench, &drive, BlockPlacement::ShortStroke(1), 1)?;
    for count in COUNTS {
        println!(
            "| 1/{count} | {:.2} ms | {:.2} ms | {whole:.2} ms |",
            trace(bench, &drive, BlockPlacement::Partitions(count), count)?,
            trace(bench, &drive, BlockPlacement::ShortStroke(count), count)?,
        );
    }
    Ok(())
}

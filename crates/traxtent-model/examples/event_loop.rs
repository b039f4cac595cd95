//! A database's log on modelled drives, in a plain event loop: commits per second, latency, and
//! the records that a power cut leaves.
//!
//! `cargo run --release -p traxtent-model --example event_loop [seed]`
//!
//! Time is virtual. The loop finds the earliest event of the clients and the disk, and advances the
//! clock to it. The same seed prints the same table on every machine.
//!
//! Without flushes, a drive with a write-back cache may keep a write there indefinitely. Recovery
//! ends at the first missing record.
#![allow(clippy::disallowed_methods)]

mod wal;

use std::collections::{BTreeMap, BTreeSet};
use std::error::Error;

use traxtent_model::disk::Disk;
use traxtent_model::profile::builtin;
use traxtent_units::{Rng, SimTime, Span};
use wal::{Log, cut_and_count, percentile};

const DRIVES: [&str; 5] = [
    "atlas10k2",
    "cheetah15k7",
    "wd10ears",
    "toshiba-x300",
    "generic-20tb",
];
const CLIENTS: u64 = 16;
/// The longest pause of a client between an acknowledgement and its next record.
const THINK_MAX_MS: f64 = 5.0;
/// The time from the start of the clients to the power cut.
const RUN: Span = Span(10_000_000_000_000);

/// The result of a run.
#[derive(Debug, PartialEq)]
pub(crate) struct Run {
    /// The time from appending to acknowledgement of each acknowledged transaction, ascending.
    latencies: Vec<Span>,
    /// The number of transactions found after the power cut.
    found: usize,
    /// The number of acknowledged transactions not found.
    pub(crate) lost: usize,
}

fn main() -> Result<(), Box<dyn Error>> {
    let seed = std::env::args().nth(1).map_or(Ok(1), |seed| seed.parse())?;
    print!("{}", table(seed)?);
    Ok(())
}

/// Returns a table with two lines for each drive: with and without flushing.
pub(crate) fn table(seed: u64) -> Result<String, Box<dyn Error>> {
    let mut table = format!(
        "seed {seed}: {CLIENTS} clients; power cut after {} s\n\n{:14}{:8}{:>10}{:>10}{:>10}{:>10}{:>8}{:>8}\n",
        RUN.as_ms() / 1000.0,
        "DRIVE",
        "FLUSHES",
        "COMMITS/S",
        "P50",
        "P99",
        "MAX",
        "FOUND",
        "LOST"
    );
    for drive in DRIVES {
        for flushes in [true, false] {
            let run = run(drive, flushes, seed, RUN)?;
            let at = |percent| percentile(&run.latencies, percent).as_ms();
            table += &format!(
                "{drive:14}{:8}{:>10.0}{:>7.2} ms{:>7.2} ms{:>7.2} ms{:>8}{:>8}\n",
                if flushes { "yes" } else { "no" },
                run.latencies.len() as f64 / (RUN.as_ms() / 1000.0),
                at(50),
                at(99),
                at(100),
                run.found,
                run.lost,
            );
        }
    }
    Ok(table)
}

/// Runs the clients for a time, cuts the power, and recovers the log.
pub(crate) fn run(
    drive: &str,
    flushes: bool,
    seed: u64,
    length: Span,
) -> Result<Run, Box<dyn Error>> {
    let profile = builtin(drive).ok_or("not a built-in drive")?;
    let mut disk = Disk::new(&profile)?;
    let (mut log, _) = Log::recover(&mut disk, SimTime::ZERO, flushes)?;
    let mut rng = Rng::new(seed);
    let mut think = |now| now + Span::from_ms(rng.fraction() * THINK_MAX_MS);

    let mut now = disk.now();
    let cut = now + length;
    // The times at which clients append their next records.
    let mut thinking: BTreeSet<(SimTime, u64)> =
        (0..CLIENTS).map(|client| (think(now), client)).collect();
    // By record: the client, the transaction, and the time of appending.
    let mut waiting: BTreeMap<u64, (u64, u64, SimTime)> = BTreeMap::new();
    let mut acknowledged = Vec::new();
    let mut latencies = Vec::new();
    let mut transaction = 0;
    while now < cut {
        let arrival = thinking.first().map(|&(at, _)| at);
        let event = arrival.into_iter().chain(disk.next_wakeup()).min();
        now = event.expect("a client or the disk").min(cut);
        if arrival == Some(now)
            && let Some((_, client)) = thinking.pop_first()
        {
            let record = log.append(&disk, transaction);
            waiting.insert(record, (client, transaction, now));
            transaction += 1;
        }
        log.poll(&mut disk, now)?;
        while let Some(record) = waiting.first_entry() {
            if *record.key() >= log.acknowledged() {
                break;
            }
            let (client, transaction, appended) = record.remove();
            acknowledged.push(transaction);
            latencies.push(now.since(appended));
            thinking.insert((think(now), client));
        }
    }

    let (found, lost) = cut_and_count(&mut disk, seed, &acknowledged)?;
    latencies.sort();
    Ok(Run {
        latencies,
        found,
        lost,
    })
}

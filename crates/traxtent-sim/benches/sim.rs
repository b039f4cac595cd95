//! Measures how many requests the simulator completes per second on one core, and how much memory
//! it needs.
//!
//! `cargo xtask bench sim` runs it and prints the machine. Arguments: the seed, and the largest
//! number of requests for the growth table.
#![allow(missing_docs)]

use std::time::Instant;

use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_sim::{Host, simulate};
use traxtent_workload::{CapacityOnly, Synthetic, WorkloadSpec};

/// The requests per second that DiskSim 4.0 simulates, for small and for large requests, from the
/// reference measurement stored with its data: 100,000 requests in 3.6 s and in 30.8 s of one core.
const DISKSIM_RATES: [f64; 2] = [100_000.0 / 3.6, 100_000.0 / 30.8];

/// The number of repetitions; the median is reported.
const RUNS: usize = 5;

fn main() {
    // `cargo bench` passes flags of its own.
    let mut numbers = std::env::args()
        .skip(1)
        .filter_map(|argument| argument.parse::<u64>().ok());
    let seed = numbers.next().unwrap_or(1);
    let most = numbers.next().unwrap_or(10_000_000);

    let small = |count| format!("random,read=66%,size=8,align=none,count={count},seed={seed}");
    let large = |count| format!("random,size=334,align=none,count={count},seed={seed}");
    println!("atlas10k, one core, median of {RUNS} runs");
    for (workload, disksim) in [small(1_000_000), large(100_000)].iter().zip(DISKSIM_RATES) {
        let mut rates: Vec<f64> = (0..RUNS).map(|_| rate(workload)).collect();
        rates.sort_by(f64::total_cmp);
        let [least, median, greatest] = [rates[0], rates[RUNS / 2], rates[RUNS - 1]];
        println!(
            "{workload:<64} {median:>10.0} requests/s ({least:.0} to {greatest:.0}), {:.0} times DiskSim's {disksim:.0}",
            median / disksim
        );
    }
    println!("\ngrowth");
    let mut count = 10_000;
    while count <= most {
        let rate = rate(&small(count));
        println!(
            "{count:>12} requests {rate:>10.0} requests/s {:>6} KiB at most",
            peak_kib()
        );
        count *= 10;
    }
}

/// Returns the requests per second of one run, without set-up.
fn rate(workload: &str) -> f64 {
    let spec: WorkloadSpec = workload.parse().expect("a workload of the grammar");
    let profile = builtin("atlas10k").expect("a built-in drive");
    let drive = Drive::new(&profile).expect("a checked profile");
    let tracks = CapacityOnly(drive.geometry().capacity());
    let mut host = Host::new(vec![drive]);
    let mut source =
        Synthetic::new(&spec, profile.sector.logical_bytes, &tracks).expect("it fits the drive");
    let begun = Instant::now();
    let mut total = 0;
    let count = {
        let mut count = 0u64;
        simulate(&mut host, &mut source, |outcome| {
            total += outcome.response().0;
            count += 1;
            true
        })
        .expect("no request is refused");
        count
    };
    std::hint::black_box(total);
    count as f64 / begun.elapsed().as_secs_f64()
}

/// Returns the most memory that this process has held, in KiB.
fn peak_kib() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("VmHWM:"));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok())
        .unwrap_or(0)
}

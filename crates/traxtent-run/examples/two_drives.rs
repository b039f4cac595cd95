//! Sweeps the size of random reads on two drives. Prints the mean response time and the throughput
//! of each case, and the number of simulated requests.

use std::sync::atomic::{AtomicU64, Ordering};

use traxtent_run::{Figures, Observer, Setting, SweepPlan, run_all};

/// Counts the simulated requests, and prints warnings.
#[derive(Default)]
struct Counter(AtomicU64);

impl Observer for Counter {
    fn add(&self, requests: u64) {
        self.0.fetch_add(requests, Ordering::Relaxed);
    }

    fn warn(&self, line: &str) {
        eprintln!("warning: {line}");
    }
}

fn main() -> traxtent_run::Result<()> {
    let counter = Counter::default();
    let plan = SweepPlan {
        targets: vec!["atlas10k".to_owned(), "cheetah15k7".to_owned()],
        workload: Some("random,count=2000".to_owned()),
        settings: Setting::parse_all(&["workload.size=8,64,512".to_owned()])?,
        ..SweepPlan::default()
    };
    let cases = plan.cases(&counter)?;
    let summaries = run_all(&cases, &counter)?;
    for (case, mut summary) in cases.iter().zip(summaries) {
        let figures = Figures::of_one(&mut summary);
        let (mean_ms, _) = figures.get(Some("response_ms"), "mean");
        let (mb_per_s, _) = figures.get(None, "mb_per_s");
        println!("{}: {mean_ms:.3} ms, {mb_per_s:.2} MB/s", case.name());
    }
    println!("{} requests", counter.0.into_inner());
    Ok(())
}

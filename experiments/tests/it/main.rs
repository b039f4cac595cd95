//! Tests of the papers' experiments.

mod catalogue;
mod extraction;
mod jobs;
mod partitions;
mod reach;
mod resume;
mod strict;
mod verdicts;

/// Returns the experiment with this number.
fn experiment(number: &str) -> &'static traxtent_experiments::Experiment {
    let mut experiments = traxtent_experiments::experiments().iter();
    experiments
        .find(|experiment| experiment.number == number)
        .unwrap_or_else(|| panic!("no experiment is numbered {number}"))
}

/// Returns a plan of one seed, on all processors.
fn plan() -> traxtent_experiments::RunPlan {
    traxtent_experiments::RunPlan {
        seeds: traxtent_experiments::Seeds::First(1),
        quick: false,
        pictures: false,
        workers: std::thread::available_parallelism().map_or(1, usize::from),
        store: None,
        traces: None,
        changes: Vec::new(),
    }
}

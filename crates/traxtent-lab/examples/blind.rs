//! Probes random drives without prior knowledge of their layout. Run by `cargo xtask blind`.

use std::collections::BTreeMap;
use std::process::ExitCode;
use std::time::Duration;

use clap::Parser;
use indicatif::{ProgressBar, ProgressStyle};
use traxtent_lab::blind::{HardProperty, Layouts, Outcome, Trial, run};
use traxtent_probe::{Algorithm, Verify};
use traxtent_sim::Noise;
use traxtent_units::Lbn;

/// Probe random drives and compare the boundaries found with the real ones.
#[derive(Parser)]
#[command(bin_name = "cargo xtask blind")]
struct Options {
    /// Number of drives
    #[arg(long, default_value_t = 200)]
    drives: u64,
    /// Seed of the first drive; each following drive uses the next number
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Kind of layout that the drives have: any or irregular
    #[arg(long, value_parser = layouts, default_value = "any")]
    layouts: Layouts,
    /// Algorithm that finds the tracks; may be repeated
    #[arg(long = "algorithm", value_parser = algorithm, default_values = ["tree", "angle"])]
    algorithms: Vec<Algorithm>,
    /// How many of the predicted boundaries to verify: none, sample or full
    #[arg(long, value_parser = verify, default_value = "full")]
    verify: Verify,
    /// Add noise to clocks and drives: 30 microseconds, late responses, additional revolutions
    #[arg(long)]
    noise: bool,
    /// Number of drives to probe at the same time
    #[arg(long, default_value_t = 2)]
    threads: usize,
    /// Also print the drives whose boundaries are all correct
    #[arg(long)]
    all: bool,
    /// Probe nothing; print the tracks around this LBN of the first drive
    #[arg(long)]
    show: Option<u64>,
}

fn algorithm(name: &str) -> Result<Algorithm, String> {
    let found = Algorithm::ALL.into_iter().find(|a| a.name() == name);
    found.ok_or_else(|| {
        format!(
            "expected one of {}",
            Algorithm::ALL.map(Algorithm::name).join(", ")
        )
    })
}

fn layouts(name: &str) -> Result<Layouts, String> {
    let found = Layouts::ALL.into_iter().find(|l| l.name() == name);
    found.ok_or_else(|| {
        format!(
            "expected one of {}",
            Layouts::ALL.map(Layouts::name).join(", ")
        )
    })
}

fn verify(name: &str) -> Result<Verify, String> {
    match name {
        "none" => Ok(Verify::None),
        "sample" => Ok(Verify::Sample),
        "full" => Ok(Verify::Full),
        _ => Err("expected one of none, sample, full".to_owned()),
    }
}

fn main() -> ExitCode {
    let options = Options::parse();
    if let Some(lbn) = options.show {
        print!("{}", options.layouts.drive(options.seed).around(Lbn(lbn)));
        return ExitCode::SUCCESS;
    }
    let mut exact = true;
    for &algorithm in &options.algorithms {
        let mut trial = Trial::new(algorithm, options.verify).with_layouts(options.layouts);
        if options.noise {
            trial = trial.with_noise(Noise::TYPICAL);
        }
        exact &= probe_all(&options, &trial);
    }
    if exact {
        ExitCode::SUCCESS
    } else {
        ExitCode::FAILURE
    }
}

/// Probes all drives in one way. Returns true if every drive is recovered exactly, or if
/// verification is by sample and every probe with a wrong result fails or reports doubt.
fn probe_all(options: &Options, trial: &Trial) -> bool {
    let seeds = options.seed..options.seed.saturating_add(options.drives);
    let shape = "{bar:40} {pos} of {len} drives, {eta} left";
    let style = ProgressStyle::with_template(shape).expect("the template is well-formed");
    let bar = ProgressBar::new(options.drives).with_style(style);
    let outcomes = run(seeds, trial, options.threads, |outcome| {
        if options.all || !outcome.is_exact() {
            let costs = Costs::of(std::slice::from_ref(outcome));
            let word = if outcome.is_exact() { "exact" } else { "WRONG" };
            bar.suspend(|| println!("{word} {outcome}\n      {costs}"));
        }
        bar.inc(1);
    });
    bar.finish_and_clear();
    let wrong: Vec<&Outcome> = outcomes.iter().filter(|o| !o.is_exact()).collect();
    let doubtful = outcomes.iter().filter(|o| o.findings.doubtful > 0).count();
    println!(
        "{}{}, {} drives, seeds from {}: {} of {} exact, {doubtful} with doubtful boundaries; {}",
        name(trial),
        if trial.noise.is_some() {
            ", with noise"
        } else {
            ""
        },
        trial.layouts.name(),
        options.seed,
        outcomes.len() - wrong.len(),
        outcomes.len(),
        Costs::of(&outcomes)
    );
    if !wrong.is_empty() {
        let mut traps: BTreeMap<HardProperty, (usize, usize)> = BTreeMap::new();
        for outcome in &outcomes {
            for &trap in &outcome.traps {
                let (wrong, all) = traps.entry(trap).or_default();
                *wrong += usize::from(!outcome.is_exact());
                *all += 1;
            }
        }
        println!("wrong drives by trap:");
        for (trap, (wrong, all)) in traps {
            println!("  {:<18} {wrong:>5} of {all}", format!("{trap:?}"));
        }
    }
    // A wrong result that is verified by sample passes if the probe fails or reports doubt.
    match trial.verify {
        Verify::Sample => !wrong.iter().any(|outcome| outcome.is_silently_wrong()),
        Verify::None | Verify::Full => wrong.is_empty(),
    }
}

fn name(trial: &Trial) -> String {
    let name = trial.algorithm.name();
    if trial.algorithm.translates() {
        return name.to_owned();
    }
    let verify = format!("{:?}", trial.verify).to_lowercase();
    format!("{name} --verify {verify}")
}

/// The total cost of several probes.
struct Costs {
    tracks: u64,
    requests: u64,
    translations: u64,
    drive_s: f64,
    host: Duration,
}

impl Costs {
    fn of(outcomes: &[Outcome]) -> Costs {
        let found = || outcomes.iter().map(|outcome| &outcome.findings);
        Costs {
            tracks: outcomes.iter().map(|outcome| outcome.tracks).sum(),
            requests: found().map(|f| f.counts.requests).sum(),
            translations: found().map(|f| f.counts.translations).sum(),
            drive_s: found().map(|f| f.drive_time.as_ms() / 1000.0).sum(),
            host: found().map(|f| f.host_time).sum(),
        }
    }
}

impl std::fmt::Display for Costs {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let per_track = |count: u64| count as f64 / self.tracks.max(1) as f64;
        write!(f, "{} tracks", self.tracks)?;
        for (count, what) in [
            (self.requests, "reads"),
            (self.translations, "translations"),
        ] {
            if count > 0 {
                write!(f, ", {count} {what} ({:.3} per track)", per_track(count))?;
            }
        }
        let host_s = self.host.as_secs_f64();
        write!(
            f,
            ", {:.0} s drive time, {host_s:.1} s host CPU",
            self.drive_s
        )
    }
}

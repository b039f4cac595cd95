//! Experiments: what a paper reports, how it is measured here, and whether it is met.
//!
//! A [`Claim`] is a published number with a tolerance. An [`Experiment`] measures the numbers of its claims on the
//! model; a [`Finding`] sets both side by side. Profiles are taken as they are: nothing is bent towards a claim, and
//! a claim that is missed stays in the list, with the reason as far as it is known.

mod bench;
pub mod blind;
mod claim;
mod cpu;
pub mod curve;
pub mod extraction;
mod figure;
pub mod linux;
pub mod log;
pub mod probe_table;
mod search;
pub mod traxtents;

pub use bench::{Bench, LabError, Measured};
pub use claim::{Claim, Finding, Unit, Verdict, Within};
pub use cpu::cpu_time;
pub use figure::{Figure, Panel, Series, Style};
pub use search::Search;

/// Every experiment, by paper.
pub static EXPERIMENTS: [&[Experiment]; 3] = [
    &traxtents::EXPERIMENTS,
    &extraction::EXPERIMENTS,
    &linux::EXPERIMENTS,
];

/// The papers, by the letter that their claims begin with.
pub static PAPERS: [(char, &str); 2] = [
    (
        'T',
        "Schindler, Griffin, Lumb, Ganger, Track-Aligned Extents, FAST 2002",
    ),
    (
        'Q',
        "Qian, Meyers, Wang, A Linux Implementation Validation of Track-Aligned Extents and Track-Aligned RAIDs",
    ),
];

/// Measurements for one or several claims.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What is done, in a line.
    pub title: &'static str,
    /// The claims, in the order in which `measure` answers.
    pub claims: &'static [Claim],
    /// Measures a number for each claim, in the unit of the claim.
    pub measure: fn(&Bench) -> Result<Vec<f64>, LabError>,
    /// Its picture, if it has one.
    pub figure: Option<Draw>,
}

/// Measures what a picture shows.
pub type Draw = fn(&Bench) -> Result<Figure, LabError>;

impl Experiment {
    /// Does the experiment.
    ///
    /// # Errors
    /// If a drive or workload of it is not to be had, or a drive does not answer a probe.
    pub fn run(&self, bench: &Bench) -> Result<Vec<Finding>, LabError> {
        Ok(self.judge((self.measure)(bench)?))
    }

    /// Sets numbers, one a claim, beside the claims.
    ///
    /// # Panics
    /// If there are more numbers than claims, or fewer.
    pub fn judge(&self, measured: Vec<f64>) -> Vec<Finding> {
        assert_eq!(
            measured.len(),
            self.claims.len(),
            "{}: one number a claim",
            self.title
        );
        let findings = self.claims.iter().zip(measured);
        findings
            .map(|(claim, measured)| Finding { claim, measured })
            .collect()
    }
}

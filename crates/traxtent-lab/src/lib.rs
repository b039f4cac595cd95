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
pub mod probe_table;
pub mod traxtents;

pub use bench::{Bench, LabError, Measured};
pub use claim::{Claim, Finding, Unit, Verdict, Within};
pub use cpu::cpu_time;

/// Measurements for one or several claims.
#[derive(Clone, Copy, Debug)]
pub struct Experiment {
    /// What is done, in a line.
    pub title: &'static str,
    /// The claims, in the order in which `measure` answers.
    pub claims: &'static [Claim],
    /// Measures a number for each claim, in the unit of the claim.
    pub measure: fn(&Bench) -> Result<Vec<f64>, LabError>,
}

impl Experiment {
    /// Does the experiment.
    ///
    /// # Errors
    /// If a drive or workload of it is not to be had.
    pub fn run(&self, bench: &Bench) -> Result<Vec<Finding>, LabError> {
        let measured = (self.measure)(bench)?;
        assert_eq!(
            measured.len(),
            self.claims.len(),
            "{}: one number a claim",
            self.title
        );
        let findings = self.claims.iter().zip(measured);
        Ok(findings
            .map(|(claim, measured)| Finding { claim, measured })
            .collect())
    }
}

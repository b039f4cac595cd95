//! The papers' experiments. `python/traxtent/lab.py` runs each with the command.

use pyo3::prelude::*;
use traxtent_experiments::{Experiment, Selection};

use crate::errors::{guarded, input_error};

/// Returns the experiments of the named claims, groups of claims or papers: the number of each, and
/// the IDs of its selected claims.
#[pyfunction]
pub(crate) fn lab_experiments(
    ids: Vec<String>,
) -> PyResult<Vec<(&'static str, Vec<&'static str>)>> {
    guarded(|| {
        let selection = Selection::of(&ids)
            .map_err(|error| input_error(format!("{error}: `traxtent lab list` lists them")))?;
        let claims = |experiment: &'static Experiment| {
            let claims = experiment.claims.iter();
            let chosen = claims.filter(|claim| selection.includes(experiment, claim));
            chosen.map(|claim| claim.id.as_str()).collect()
        };
        let experiments = selection.experiments().into_iter();
        Ok(experiments
            .map(|of| (of.number.as_str(), claims(of)))
            .collect())
    })
}

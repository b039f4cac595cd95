//! `--plot`: the cumulative distributions of response times.

use std::path::Path;

use traxtent_plot::{Distribution, Distributions, Response};
use traxtent_run::{Case, Summary};
use traxtent_units::Span;
use traxtent_units::stats::Quantiles;

use super::report::workload_of;
use crate::failure::{Failure, Result};
use crate::plot;

pub(crate) use traxtent_plot::Axes;

/// The maximum number of distributions whose lines can be distinguished in a picture.
const CURVES_MAX: usize = 12;

/// Checks that the cases can be drawn, before anything is simulated.
pub(crate) fn check(path: &Path, cases: &[Case]) -> Result<()> {
    plot::check_ending(path)?;
    if cases.len() > CURVES_MAX {
        return Err(Failure::input(format!(
            "--plot: {} curves; a picture has at most {CURVES_MAX}, so give fewer drives or values",
            cases.len()
        )));
    }
    Ok(())
}

/// Draws one run with the components of its mean, or the distribution of each case.
pub(crate) fn draw(
    path: &Path,
    cases: &[Case],
    summaries: &mut [Summary],
    axes: Axes,
) -> Result<()> {
    let first = &cases[0].runs[0];
    let workload = workload_of(cases);
    let target = &first.machine.target;
    let seeds = cases[0].runs.len();
    let mut distributions: Vec<Distribution> = cases
        .iter()
        .zip(summaries.chunks(seeds))
        .map(|(case, summaries)| {
            let mut all = Quantiles::default();
            summaries
                .iter()
                .for_each(|summary| all.merge(&summary.quantiles));
            distribution(case.name(), &mut all)
        })
        .collect();
    let title = match &cases[0].drive {
        Some(_) => workload,
        None => format!("{target}: {workload}"),
    };
    if let ([_], [summary]) = (cases, &mut *summaries) {
        let response = Response {
            title,
            distribution: distributions.remove(0),
            axes,
            parts_ms: summary.part_means_ms(),
        };
        return plot::write(path, &response);
    }
    let picture = Distributions {
        title,
        distributions,
        axes,
    };
    plot::write(path, &picture)
}

/// Returns a distribution to draw.
fn distribution(name: String, times: &mut Quantiles) -> Distribution {
    let count = times.count().max(1) as f64;
    let steps = times.steps();
    let steps = steps
        .into_iter()
        .map(|(time, upto)| (time.as_ms(), upto as f64 / count));
    Distribution {
        name,
        steps: steps.collect(),
        p99_9_ms: times.at(0.999).map_or(0.0, Span::as_ms),
    }
}

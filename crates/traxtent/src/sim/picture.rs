//! `--plot`: the cumulative distributions of response times, or with `--plot-over`, throughput and
//! response times over a key of `--set`.

use std::path::Path;

use traxtent_plot::{Distribution, Distributions, Response, Sweep, SweepPoint, SweepSeries};
use traxtent_run::{Case, Figures, Summary};
use traxtent_units::Span;
use traxtent_units::byte_size::byte_unit;
use traxtent_units::stats::Quantiles;

use super::report::workload_of;
use crate::failure::{Failure, Result};
use crate::plot;

pub(crate) use traxtent_plot::Axes;

/// The maximum number of distributions whose lines can be distinguished in a picture.
const CURVES_MAX: usize = 12;

/// The maximum number of curves over a key: one for each colour, since dashes have a meaning.
const SERIES_MAX: usize = traxtent_plot::colours::DATA.len();

/// The picture that the options describe.
pub(crate) struct Picture<'a> {
    pub(crate) path: &'a Path,
    /// The key on the horizontal axis, instead of response times.
    pub(crate) over: Option<&'a str>,
    pub(crate) axes: Axes,
}

impl Picture<'_> {
    /// Checks that the cases can be drawn, before anything is simulated.
    pub(crate) fn check(&self, cases: &[Case]) -> Result<()> {
        plot::check_ending(self.path)?;
        if let Some(key) = self.over {
            return check_over(key, cases);
        }
        if cases.len() > CURVES_MAX {
            return Err(Failure::input(format!(
                "--plot: {} curves; a picture has at most {CURVES_MAX}, so give fewer drives or \
                 values, or --plot-over KEY",
                cases.len()
            )));
        }
        Ok(())
    }

    /// Draws the cases. `summaries` are those of all runs, and `figures` has one for each case.
    pub(crate) fn draw(
        &self,
        cases: &[Case],
        summaries: &mut [Summary],
        figures: &[Figures],
    ) -> Result<()> {
        let (target, workload) = (&cases[0].runs[0].machine.target, workload_of(cases));
        let mut title = match (&cases[0].drive, cases) {
            (Some(_), [_, _, ..]) => workload,
            _ => format!("{target}: {workload}"),
        };
        for (key, value) in &cases[0].set {
            // The description of the workload has its own keys.
            if is_constant(key, cases) && !key.starts_with("workload.") {
                title.push_str(&format!(", {key}={value}"));
            }
        }
        if let seeds @ 2.. = cases[0].runs.len() {
            title.push_str(&format!(", {seeds} seeds"));
        }
        match self.over {
            Some(key) => self.draw_over(key, title, cases, figures),
            None => self.draw_distributions(title, cases, summaries),
        }
    }

    /// Draws one run with the components of its mean, or the distribution of each case.
    fn draw_distributions(
        &self,
        title: String,
        cases: &[Case],
        summaries: &mut [Summary],
    ) -> Result<()> {
        let seeds = cases[0].runs.len();
        let mut distributions: Vec<Distribution> = cases
            .iter()
            .zip(summaries.chunks(seeds))
            .map(|(case, summaries)| {
                let mut all = Quantiles::default();
                summaries
                    .iter()
                    .for_each(|summary| all.merge(&summary.quantiles));
                distribution(name_in(cases, case, ""), &mut all)
            })
            .collect();
        let axes = self.axes;
        if let ([_], [summary]) = (cases, &mut *summaries) {
            let response = Response {
                title,
                distribution: distributions.remove(0),
                axes,
                parts_ms: summary.part_means_ms(),
            };
            return plot::write(self.path, &response);
        }
        let picture = Distributions {
            title,
            distributions,
            axes,
        };
        plot::write(self.path, &picture)
    }

    /// Draws the figures of all cases over a key.
    fn draw_over(
        &self,
        key: &str,
        title: String,
        cases: &[Case],
        figures: &[Figures],
    ) -> Result<()> {
        let mut series: Vec<SweepSeries> = Vec::new();
        let unit = unit_over(key, cases);
        let parameter = match unit {
            "" => key.to_owned(),
            unit => format!("{key}, {unit}"),
        };
        // The number of requests says little about requests of different sizes.
        let (throughput, throughput_unit) = match key {
            "workload.size" => ("mb_per_s", "MB/s"),
            _ => ("requests_per_s", "requests/s"),
        };
        for (case, figures) in cases.iter().zip(figures) {
            let value = in_unit(value_of(key, case), unit).expect("all values were checked");
            let response = |key| figures.get(Some("response_ms"), key).0;
            let point = SweepPoint {
                value,
                throughput: figures.get(None, throughput).0,
                mean_ms: response("mean"),
                p99_ms: response("p99"),
            };
            let name = name_in(cases, case, key);
            match series.iter_mut().find(|series| series.name == name) {
                Some(series) => series.points.push(point),
                None => series.push(SweepSeries {
                    name,
                    points: vec![point],
                }),
            }
        }
        for series in &mut series {
            series.points.sort_by(|a, b| a.value.total_cmp(&b.value));
        }
        let picture = Sweep {
            title,
            parameter,
            throughput_unit,
            series,
            axes: self.axes,
        };
        plot::write(self.path, &picture)
    }
}

/// Checks that the cases have several numbers for a key, in units that can be converted, and few
/// enough series.
fn check_over(key: &str, cases: &[Case]) -> Result<()> {
    let refuse = |why: String| Err(Failure::at(format!("--plot-over {key}"), why));
    let first = match cases[0].set.iter().find(|(known, _)| known == key) {
        Some((_, value)) if cases.iter().any(|case| value_of(key, case) != value) => value,
        _ => {
            if let Err(error) = cases[0].runs[0].check_key(key) {
                return refuse(error.to_string());
            }
            return refuse(format!(
                "there are not several values; add them, such as --set {key}=1,2,4"
            ));
        }
    };
    let unit = unit_over(key, cases);
    for case in cases {
        let value = value_of(key, case);
        match number(value) {
            None => return refuse(format!("{value} is not a number; choose another key")),
            Some(_) if in_unit(value, unit).is_none() => {
                return refuse(format!(
                    "{first} and {value} have different units; write all values in one unit"
                ));
            }
            Some(_) => {}
        }
    }
    let mut names: Vec<String> = cases.iter().map(|case| name_in(cases, case, key)).collect();
    names.sort_unstable();
    names.dedup();
    if names.len() > SERIES_MAX {
        return refuse(format!(
            "{} curves; a picture has at most {SERIES_MAX}, so give fewer drives, or fewer values \
             of the other keys",
            names.len()
        ));
    }
    Ok(())
}

/// Returns the name of a case in a legend, without the values that all cases share and that of
/// `key`.
fn name_in(cases: &[Case], case: &Case, key: &str) -> String {
    let keys = case.set.iter().map(|(key, _)| key.as_str());
    let omitted: Vec<&str> = keys
        .filter(|known| *known == key || is_constant(known, cases))
        .collect();
    case.name_without(&omitted)
}

/// Returns whether a key has the same value in all cases.
fn is_constant(key: &str, cases: &[Case]) -> bool {
    cases
        .iter()
        .all(|case| value_of(key, case) == value_of(key, &cases[0]))
}

/// Returns the unit of the first value of a key that has one; zero needs none.
fn unit_over<'a>(key: &str, cases: &'a [Case]) -> &'a str {
    let units = cases.iter().filter_map(|case| number(value_of(key, case)));
    let mut with_unit = units.filter(|(value, unit)| *value != 0.0 || !unit.is_empty());
    with_unit.next().map_or("", |(_, unit)| unit)
}

/// Returns a value such as `64KiB` as a number of this unit; `None` if its unit cannot be
/// converted.
fn in_unit(text: &str, unit: &str) -> Option<f64> {
    match number(text)? {
        (value, own) if own == unit => Some(value),
        (0.0, "") => Some(0.0),
        (value, own) => Some(value * byte_unit(own)? as f64 / byte_unit(unit)? as f64),
    }
}

/// Returns the value of a key that all cases have.
fn value_of<'a>(key: &str, case: &'a Case) -> &'a str {
    let found = case.set.iter().find(|(known, _)| known == key);
    found.map_or("", |(_, value)| value)
}

/// Splits a value such as `16` or `4KiB` into its number and its unit.
fn number(text: &str) -> Option<(f64, &str)> {
    let is_unit = |c: char| c.is_ascii_alphabetic() || c == '%';
    // The longest number, so that the exponent of 1e6 is not a unit.
    let at = |end: usize| text.is_char_boundary(end).then(|| text.split_at(end));
    let splits = (1..=text.len()).rev().filter_map(at);
    let mut numbers = splits.filter_map(|(number, unit)| Some((number.parse().ok()?, unit)));
    numbers.find(|(number, unit): &(f64, &str)| number.is_finite() && unit.chars().all(is_unit))
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

#![doc = include_str!("../README.md")]

mod error;
mod figures;
mod fit;
mod judge;
mod line;
mod search;
mod settings;
mod solve;
mod trace;

use std::sync::Arc;

use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{OriginKind, Profile};

pub use error::CalibrateError;
pub use judge::Judgement;
pub use trace::MeasuredTrace;

use figures::{Figure, figures};
use fit::{Fit, ROUNDS};
use line::HitLine;
use search::{Effort, Search, choose_timing};
use settings::{buffer_settings, timing_settings};
use trace::Replayed;

/// The least number of measured requests that are fitted, and that are held out.
pub const REQUESTS_LEAST: usize = 200;

/// A figure is determined by a trace if the trace reduces its uncertainty to this share.
const DETERMINED_SHARE: f64 = 0.5;

/// Half the width of a 95 % interval, in standard deviations of a normal distribution.
const INTERVAL_DEVIATIONS: f64 = 1.96;

/// The least number of hits from which an overhead of hits is taken.
const HITS_LEAST: usize = 20;

/// The part of a calibration that is at work.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Stage {
    /// Searching for the settings of the buffer.
    Buffer,
    /// Fitting times, and choosing the settings that determine when a request is complete.
    Times,
}

/// A time in milliseconds that was fitted, or that the trace does not determine.
#[derive(Clone, Debug, PartialEq)]
pub struct FittedFigure {
    /// The key of the profile; for the seek curve with the distance.
    pub name: String,
    /// The value before.
    pub start_ms: f64,
    /// The value after. Equal to the value before if the trace does not determine it.
    pub value_ms: f64,
    /// Half the width of the interval around the value that contains the true one in 95 % of the
    /// cases, as far as the model is right.
    pub plus_minus_ms: f64,
    /// Whether the trace determines the figure.
    pub is_determined: bool,
}

/// A setting of the firmware that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSetting {
    /// The key of the profile.
    pub key: &'static str,
    /// The value before.
    pub start: String,
    /// The value after.
    pub value: String,
}

/// The result of a calibration.
#[derive(Clone, Debug)]
pub struct Calibration {
    /// The calibrated profile. The provenance of its fitted values names the trace.
    pub profile: Profile,
    /// The settings that were changed.
    pub settings: Vec<ChangedSetting>,
    /// The times.
    pub figures: Vec<FittedFigure>,
    /// The agreement of the original profile with the part that was fitted.
    pub fitted_before: Judgement,
    /// The agreement of the calibrated profile with the part that was fitted.
    pub fitted_after: Judgement,
    /// The agreement of the original profile with the part that was held out.
    pub held_out_before: Judgement,
    /// The agreement of the calibrated profile with the part that was held out.
    pub held_out_after: Judgement,
}

impl Calibration {
    /// Whether the calibrated profile agrees better with the part that was held out: with a smaller
    /// demerit, and without more disagreements on hits than chance explains.
    pub fn is_improvement(&self) -> bool {
        let (before, after) = (&self.held_out_before, &self.held_out_after);
        after.demerit_ms < before.demerit_ms && !after.disagrees_more_than(before)
    }
}

/// Fits the figures of a profile to the first part of each trace, and judges the fit on the rest.
///
/// `held_out` is the share of each trace's records, at its end, that is only judged. `source` names
/// the traces in the provenance of the fitted values. `progress` is called after every few replays.
///
/// # Errors
/// Returns an error if the drive cannot serve a trace, if a part has fewer than
/// [`REQUESTS_LEAST`] measured requests, or if a fitted value is out of the profile's bounds.
///
/// # Panics
/// Panics if `held_out` is not between 0 and 1.
pub fn calibrate(
    start: &Profile,
    traces: &[MeasuredTrace],
    held_out: f64,
    source: &str,
    progress: &mut dyn FnMut(Stage),
) -> Result<Calibration, CalibrateError> {
    assert!((0.0..=1.0).contains(&held_out), "a share");
    let geometry = Geometry::build(&start.geometry)
        .map_err(|error| CalibrateError::Geometry(error.to_string()))?;
    let geometry = Arc::new(geometry);
    let counts: Vec<usize> = traces
        .iter()
        .map(|trace| trace.len() - (trace.len() as f64 * held_out).round() as usize)
        .collect();
    check_sizes(traces, &counts)?;
    let mut fit = Fit {
        traces,
        counts,
        geometry: &geometry,
        read_hit: None,
        write_hit: None,
    };
    let measured = fit.replay(start)?;
    fit.read_hit = hit_line(&measured, true);
    fit.write_hit = hit_line(&measured, false);

    let mut profile = start.clone();
    let figures = figures(&mut profile, geometry.cylinders(), fit.write_hit.is_some());
    // The values as they were, with the seek curve as a table.
    let original = profile.clone();
    fit_hits(&fit, &mut profile)?;
    let search = Search::new(&fit);
    profile = search.run(&profile, Effort::Full, &mut || progress(Stage::Buffer))?;
    fit_hits(&fit, &mut profile)?;
    profile = fit.run(&profile, &figures, ROUNDS)?.profile;
    progress(Stage::Times);
    profile = choose_timing(&fit, profile, &figures, &mut || progress(Stage::Times))?;
    profile = search.run(&profile, Effort::Single, &mut || progress(Stage::Buffer))?;
    progress(Stage::Times);
    let (mut profile, found) = fit_determined(&fit, profile, &original, &figures)?;
    let mut found = found;
    found.extend(bus_of_hits(&fit, start));

    let settings = changed_settings(&fit, &original, &profile);
    name_origins(&mut profile, start, &settings, &found, source);
    profile.check()?;
    let (fitted_before, held_out_before) = judge(&fit, start)?;
    let (fitted_after, held_out_after) = judge(&fit, &profile)?;
    Ok(Calibration {
        profile,
        settings,
        figures: found,
        fitted_before,
        fitted_after,
        held_out_before,
        held_out_after,
    })
}

/// Checks that both parts have enough measured requests.
fn check_sizes(traces: &[MeasuredTrace], counts: &[usize]) -> Result<(), CalibrateError> {
    let (mut fitted, mut held_out) = (0, 0);
    for (trace, count) in traces.iter().zip(counts) {
        let (first, rest) = trace.records().split_at(*count);
        fitted += first.iter().filter(|one| one.measured.is_some()).count();
        held_out += rest.iter().filter(|one| one.measured.is_some()).count();
    }
    if fitted + held_out == 0 {
        return Err(CalibrateError::NotMeasured);
    }
    if fitted.min(held_out) < REQUESTS_LEAST {
        return Err(CalibrateError::TooFew { fitted, held_out });
    }
    Ok(())
}

/// Finds the time of hits in the measured times.
fn hit_line(requests: &[Replayed], reads: bool) -> Option<HitLine> {
    let of: Vec<(u32, f64)> = requests
        .iter()
        .filter(|one| one.is_read == reads)
        .map(|one| (one.sectors, one.measured_ms))
        .collect();
    HitLine::of(&of)
}

/// Sets the times on the bus, and the overheads of hits, so that the model's hits take the measured
/// time of hits.
fn fit_hits(fit: &Fit, profile: &mut Profile) -> Result<(), CalibrateError> {
    if let Some(line) = fit.read_hit {
        profile.bus.read_sector_ms = line.sector_ms;
    }
    if let Some(line) = fit.write_hit {
        profile.bus.write_sector_ms = line.sector_ms;
    }
    let replayed = fit.replay(profile)?;
    let missing = |is_read: bool, follows_read: bool| {
        let line = if is_read { fit.read_hit } else { fit.write_hit }?;
        let mut missing: Vec<f64> = replayed
            .iter()
            .filter(|one| {
                one.is_hit() && one.is_read == is_read && one.follows_read == follows_read
            })
            .map(|one| line.at(one.sectors) - one.simulated_ms)
            .collect();
        missing.sort_unstable_by(f64::total_cmp);
        (missing.len() >= HITS_LEAST).then(|| missing[missing.len() / 2])
    };
    let of = &mut profile.overheads;
    for (overhead, is_read, follows_read) in [
        (&mut of.read_hit_after_read_ms, true, true),
        (&mut of.read_hit_after_write_ms, true, false),
        (&mut of.write_hit_after_read_ms, false, true),
        (&mut of.write_hit_after_write_ms, false, false),
    ] {
        if let Some(ms) = missing(is_read, follows_read) {
            *overhead = (*overhead + ms).max(0.0);
        }
    }
    Ok(())
}

/// Fits all figures, gives those that the trace does not determine their original value again, and
/// fits the others with them. Times of the seek curve are fitted together.
fn fit_determined(
    fit: &Fit,
    profile: Profile,
    original: &Profile,
    figures: &[Figure],
) -> Result<(Profile, Vec<FittedFigure>), CalibrateError> {
    let is_determined =
        |figure: &Figure, deviation: f64| deviation < DETERMINED_SHARE * figure.prior_ms;
    let first = fit.run(&profile, figures, ROUNDS)?;
    let mut profile = first.profile;
    let all = || figures.iter().zip(&first.deviations_ms);
    let has_seeks = all().any(|(one, deviation)| one.is_seek() && is_determined(one, *deviation));
    let mut kept = Vec::new();
    for (figure, deviation) in all() {
        let keep = if figure.is_seek() {
            has_seeks
        } else {
            is_determined(figure, *deviation)
        };
        if keep {
            kept.push(figure.clone());
        } else {
            let change = figure.value(original) - figure.value(&profile);
            figure.add(&mut profile, change / figure.scale);
        }
    }
    let last = fit.run(&profile, &kept, ROUNDS)?;
    let mut kept = kept.iter().zip(&last.deviations_ms).peekable();
    let found = all().map(|(figure, deviation)| {
        let own = kept.next_if(|(one, _)| one.name == figure.name);
        let deviation = own.map_or(*deviation, |(_, deviation)| *deviation);
        FittedFigure {
            name: figure.name.clone(),
            start_ms: figure.value(original),
            value_ms: figure.value(&last.profile),
            plus_minus_ms: INTERVAL_DEVIATIONS * deviation * figure.scale,
            is_determined: own.is_some() && is_determined(figure, deviation),
        }
    });
    let found = found.collect();
    Ok((last.profile, found))
}

/// The times on the bus that follow from hits.
fn bus_of_hits(fit: &Fit, start: &Profile) -> Vec<FittedFigure> {
    let bus = &start.bus;
    [
        ("bus.read_sector_ms", bus.read_sector_ms, fit.read_hit),
        ("bus.write_sector_ms", bus.write_sector_ms, fit.write_hit),
    ]
    .into_iter()
    .filter_map(|(name, start_ms, line)| {
        let line = line?;
        Some(FittedFigure {
            name: name.to_owned(),
            start_ms,
            value_ms: line.sector_ms,
            plus_minus_ms: INTERVAL_DEVIATIONS * line.sector_deviation_ms,
            is_determined: true,
        })
    })
    .collect()
}

/// Returns the settings that differ between two profiles.
fn changed_settings(fit: &Fit, before: &Profile, after: &Profile) -> Vec<ChangedSetting> {
    let track = fit.geometry.track_sizes().max().unwrap_or(1);
    let mut keys: Vec<&'static str> = buffer_settings(track)
        .iter()
        .chain(&timing_settings())
        .map(|setting| setting.key)
        .collect();
    keys.sort_unstable();
    keys.dedup();
    let changed = keys.into_iter().map(|key| ChangedSetting {
        key,
        start: before.value_text(key),
        value: after.value_text(key),
    });
    changed.filter(|one| one.start != one.value).collect()
}

/// Enters the origins of the values that were fitted.
fn name_origins(
    profile: &mut Profile,
    start: &Profile,
    settings: &[ChangedSetting],
    figures: &[FittedFigure],
    source: &str,
) {
    let settings = settings.iter().map(|one| one.key);
    let figures = figures
        .iter()
        .filter(|one| one.is_determined && one.value_ms != one.start_ms)
        .map(|one| one.name.split(' ').next().unwrap_or(&one.name));
    let origins = &mut profile.provenance.0;
    for key in settings.chain(figures) {
        let below = format!("{key}.");
        origins.retain(|path, _| !path.starts_with(&below));
        origins.insert(key.to_owned(), format!("{}: {source}", OriginKind::Fitted));
    }
    // A seek curve that was not fitted stays as it was written.
    if !origins.contains_key("mechanics.seek")
        || origins.get("mechanics.seek") == start.provenance.0.get("mechanics.seek")
    {
        profile
            .mechanics
            .clone_from(&start.mechanics.clone().map(|of| {
                let mut fitted = profile.mechanics.clone().unwrap_or(of.clone());
                fitted.seek = of.seek;
                fitted
            }));
    }
}

/// Judges a profile on the part that was fitted, and on the rest.
fn judge(fit: &Fit, profile: &Profile) -> Result<(Judgement, Judgement), CalibrateError> {
    let (mut fitted, mut held_out) = (Vec::new(), Vec::new());
    for (trace, count) in fit.traces.iter().zip(&fit.counts) {
        let all = trace.replay(profile, fit.geometry, trace.len())?;
        let (first, rest): (Vec<Replayed>, Vec<Replayed>) =
            all.into_iter().partition(|one| one.index < *count);
        fitted.extend(first);
        held_out.extend(rest);
    }
    Ok((Judgement::of(fit, &fitted), Judgement::of(fit, &held_out)))
}

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
use line::{HitLine, Timed};
use search::{Effort, Search, choose_timing};
use settings::{Setting, buffer_settings, timing_settings};
use trace::{Replayed, StopSignal};

/// The minimum number of measured requests in each part: the one that is fitted, and the one that
/// is held out.
pub const REQUESTS_LEAST: usize = 200;

/// A figure is determined by a trace if the trace reduces its uncertainty below this share of the
/// prior deviation.
const DETERMINED_SHARE: f64 = 0.5;

/// Half the width of a 95 % interval, in standard deviations of a normal distribution.
const INTERVAL_DEVIATIONS: f64 = 1.96;

/// The factor by which intervals are widened, because the residuals of requests are not independent
/// and the response times not quite linear. It was chosen with the blind calibrations of seeds 0 to
/// 79. Without it, 89 % of their intervals contain the true value.
const INTERVAL_WIDENING: f64 = 1.6;

/// The key of the seek curve. Its times are fitted together.
pub(crate) const SEEK_KEY: &str = "mechanics.seek";
/// The key of the time of a read's sector on the bus. It is found from read hits.
const READ_SECTOR_KEY: &str = "bus.read_sector_ms";
/// The key of the time of a write's sector on the bus. It is found from write hits, if there are
/// any.
pub(crate) const WRITE_SECTOR_KEY: &str = "bus.write_sector_ms";

/// The minimum number of hits from which an overhead of hits is taken.
const HITS_LEAST: usize = 20;

/// The options of a calibration.
#[derive(Clone, Debug)]
pub struct Options {
    /// The share of each trace's records, at its end, that is used only to judge the fit.
    pub held_out: f64,
    /// The keys that must not be changed. A key includes those below it: `cache` stands for all
    /// settings of the buffer.
    pub keep: Vec<String>,
    /// The name of the traces in the provenance of the fitted values.
    pub source: String,
}

impl Options {
    /// Whether a key may be changed.
    fn may_change(&self, key: &str) -> bool {
        let covers = |kept: &String| {
            key.strip_prefix(kept.as_str())
                .is_some_and(|rest| rest.is_empty() || rest.starts_with('.'))
        };
        !self.keep.iter().any(covers)
    }
}

/// A receiver of progress, which can stop a calibration. `()` ignores progress and never stops.
pub trait CalibrationObserver: Sync {
    /// Receives the current stage. This is called before each set of candidates is tried.
    fn at_work(&self, _stage: Stage) {}

    /// Returns whether the calibration must end with [`CalibrateError::Stopped`]. Every thread
    /// calls this at the beginning of each replay and every 4,096 requests.
    fn stop(&self) -> bool {
        false
    }
}

impl CalibrationObserver for () {}

/// A part of a calibration.
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
    /// The key in the profile; for the seek curve, the key followed by the distance.
    pub name: String,
    /// The value before.
    pub start_ms: f64,
    /// The value after. Equal to the value before if the trace does not determine it, except that
    /// the times of the seek curve are fitted together.
    pub value_ms: f64,
    /// Half the width of the interval around the value that contains the true value in 95 % of the
    /// cases, provided that the model is right.
    pub plus_minus_ms: f64,
    /// Whether the trace determines the figure.
    pub is_determined: bool,
}

impl FittedFigure {
    /// The key in the profile.
    pub fn key(&self) -> &str {
        self.name.split(' ').next().unwrap_or(&self.name)
    }
}

/// A setting of the firmware that was changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ChangedSetting {
    /// The key in the profile.
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
    /// The times that can be fitted.
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
/// # Errors
/// Returns an error if the profile's geometry is impossible, if the drive cannot serve a trace, if
/// a part has fewer than [`REQUESTS_LEAST`] measured requests, if a fitted value is out of the
/// profile's bounds, or if the observer stops the calibration.
///
/// # Panics
/// Panics if the share that is held out is not from 0 to 1.
pub fn calibrate(
    start: &Profile,
    traces: &[MeasuredTrace],
    options: &Options,
    observer: &dyn CalibrationObserver,
) -> Result<Calibration, CalibrateError> {
    assert!(
        (0.0..=1.0).contains(&options.held_out),
        "the share held out must be from 0 to 1"
    );
    let geometry = Geometry::build(&start.geometry)
        .map_err(|error| CalibrateError::Geometry(error.to_string()))?;
    let geometry = Arc::new(geometry);
    let held_out = |records: usize| (records as f64 * options.held_out).round() as usize;
    let counts = traces
        .iter()
        .map(|trace| trace.len() - held_out(trace.len()));
    let mut fit = Fit {
        traces,
        counts: counts.collect(),
        geometry: &geometry,
        read_hit: None,
        write_hit: None,
        stop: StopSignal::new(observer),
    };
    check_sizes(&fit)?;
    let measured = fit.replay(start)?;
    fit.read_hit = hit_line(&measured, true);
    fit.write_hit = hit_line(&measured, false);

    let mut original = start.clone();
    let figures: Vec<Figure> =
        figures(&mut original, geometry.cylinders(), fit.write_hit.is_some())
            .into_iter()
            .filter(|figure| options.may_change(figure.key()))
            .collect();
    let profile = fit_profile(&fit, &original, &figures, options, observer)?;
    let (mut profile, mut found) = fit_determined(&fit, profile, &original, &figures)?;
    found.extend(bus_of_hits(&fit, start, options));
    let settings = changed_settings(&fit, &original, &profile);
    restore_undetermined_seek(&mut profile, &mut found, start);
    name_origins(&mut profile, &settings, &found, &options.source);
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

/// Chooses the settings of the firmware, and fits all times.
fn fit_profile(
    fit: &Fit,
    original: &Profile,
    figures: &[Figure],
    options: &Options,
    observer: &dyn CalibrationObserver,
) -> Result<Profile, CalibrateError> {
    let progress = |stage| observer.at_work(stage);
    let mut profile = original.clone();
    fit_hits(fit, &mut profile, options)?;
    let search = Search::new(fit, options);
    profile = search.run(&profile, Effort::Full, &mut || progress(Stage::Buffer))?;
    fit_hits(fit, &mut profile, options)?;
    let unfitted = fit.disagreements(&fit.replay(&profile)?);
    profile = fit.run(&profile, figures, ROUNDS)?.profile;
    let disagreements = unfitted.max(fit.disagreements(&fit.replay(&profile)?));
    progress(Stage::Times);
    let settings: Vec<Setting> = timing_settings()
        .into_iter()
        .filter(|setting| options.may_change(setting.key))
        .collect();
    profile = choose_timing(fit, profile, figures, &settings, disagreements, &mut || {
        progress(Stage::Times);
    })?;
    // The times at which read-ahead has reached a sector are now better known.
    search.run(&profile, Effort::Single, &mut || progress(Stage::Buffer))
}

/// Checks that both parts have enough measured requests.
fn check_sizes(fit: &Fit) -> Result<(), CalibrateError> {
    let (mut fitted, mut held_out) = (0, 0);
    for (trace, count) in fit.traces.iter().zip(&fit.counts) {
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
    let of: Vec<Timed> = requests
        .iter()
        .filter(|one| one.is_read == reads)
        .map(|one| (one.follows_read, one.sectors, one.measured_ms))
        .collect();
    HitLine::of(&of)
}

/// Sets the times on the bus, and the overheads of hits, so that the model's hits take the measured
/// time of hits.
fn fit_hits(fit: &Fit, profile: &mut Profile, options: &Options) -> Result<(), CalibrateError> {
    let bus = &mut profile.bus;
    for (key, sector_ms, line) in [
        (READ_SECTOR_KEY, &mut bus.read_sector_ms, fit.read_hit),
        (WRITE_SECTOR_KEY, &mut bus.write_sector_ms, fit.write_hit),
    ] {
        if let (Some(line), true) = (line, options.may_change(key)) {
            *sector_ms = line.sector_ms;
        }
    }
    let replayed = fit.replay(profile)?;
    let missing = |is_read: bool, follows_read: bool| {
        let line = if is_read { fit.read_hit } else { fit.write_hit }?;
        let mut missing: Vec<f64> = replayed
            .iter()
            .filter(|one| {
                one.is_hit() && one.is_read == is_read && one.follows_read == follows_read
            })
            .map(|one| line.at(follows_read, one.sectors) - one.simulated_ms)
            .collect();
        missing.sort_unstable_by(f64::total_cmp);
        (missing.len() >= HITS_LEAST).then(|| missing[missing.len() / 2])
    };
    let of = &mut profile.overheads;
    for (key, overhead, is_read, follows_read) in [
        (
            "read_hit_after_read_ms",
            &mut of.read_hit_after_read_ms,
            true,
            true,
        ),
        (
            "read_hit_after_write_ms",
            &mut of.read_hit_after_write_ms,
            true,
            false,
        ),
        (
            "write_hit_after_read_ms",
            &mut of.write_hit_after_read_ms,
            false,
            true,
        ),
        (
            "write_hit_after_write_ms",
            &mut of.write_hit_after_write_ms,
            false,
            false,
        ),
    ] {
        if let Some(ms) = missing(is_read, follows_read)
            && options.may_change(&format!("overheads.{key}"))
        {
            *overhead = (*overhead + ms).max(0.0);
        }
    }
    Ok(())
}

/// Fits all figures, restores the original values of those that the trace does not determine, and
/// fits the others again. Times of the seek curve are fitted together.
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
            plus_minus_ms: INTERVAL_WIDENING * INTERVAL_DEVIATIONS * deviation * figure.scale,
            is_determined: own.is_some() && is_determined(figure, deviation),
        }
    });
    let found = found.collect();
    Ok((last.profile, found))
}

/// Restores the original seek curve if none of its times is determined. The curve became a table
/// only so that it could be corrected.
fn restore_undetermined_seek(profile: &mut Profile, found: &mut [FittedFigure], start: &Profile) {
    let times = || found.iter().filter(|one| one.key() == SEEK_KEY);
    if times().any(|one| one.is_determined) {
        return;
    }
    if let (Some(mechanics), Some(original)) = (&mut profile.mechanics, &start.mechanics) {
        mechanics.seek = original.seek.clone();
    }
    for one in found.iter_mut().filter(|one| one.key() == SEEK_KEY) {
        one.value_ms = one.start_ms;
    }
}

/// The times on the bus that follow from hits.
fn bus_of_hits(fit: &Fit, start: &Profile, options: &Options) -> Vec<FittedFigure> {
    let bus = &start.bus;
    [
        (READ_SECTOR_KEY, bus.read_sector_ms, fit.read_hit),
        (WRITE_SECTOR_KEY, bus.write_sector_ms, fit.write_hit),
    ]
    .into_iter()
    .filter(|(key, ..)| options.may_change(key))
    .filter_map(|(name, start_ms, line)| {
        let line = line?;
        Some(FittedFigure {
            name: name.to_owned(),
            start_ms,
            value_ms: line.sector_ms,
            plus_minus_ms: INTERVAL_WIDENING * INTERVAL_DEVIATIONS * line.sector_deviation_ms,
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
    let none = || "none".to_owned();
    let changed = keys.into_iter().map(|key| ChangedSetting {
        key,
        start: before.value_text(key).unwrap_or_else(none),
        value: after.value_text(key).unwrap_or_else(none),
    });
    changed.filter(|one| one.start != one.value).collect()
}

/// Enters the origins of the values that were fitted.
fn name_origins(
    profile: &mut Profile,
    settings: &[ChangedSetting],
    figures: &[FittedFigure],
    source: &str,
) {
    let settings = settings.iter().map(|one| one.key);
    let figures = figures
        .iter()
        .filter(|one| one.is_determined)
        .map(FittedFigure::key);
    let origins = &mut profile.provenance.0;
    for key in settings.chain(figures) {
        let below = format!("{key}.");
        origins.retain(|path, _| !path.starts_with(&below));
        origins.insert(key.to_owned(), format!("{}: {source}", OriginKind::Fitted));
    }
}

/// Judges a profile on the part that was fitted, and on the rest.
fn judge(fit: &Fit, profile: &Profile) -> Result<(Judgement, Judgement), CalibrateError> {
    let (mut fitted, mut held_out) = (Vec::new(), Vec::new());
    for (trace, count) in fit.traces.iter().zip(&fit.counts) {
        let all = trace.replay(profile, fit.geometry, trace.len(), None, &fit.stop)?;
        let (first, rest): (Vec<Replayed>, Vec<Replayed>) =
            all.into_iter().partition(|one| one.index < *count);
        fitted.extend(first);
        held_out.extend(rest);
    }
    Ok((Judgement::of(fit, &fitted), Judgement::of(fit, &held_out)))
}

#[cfg(test)]
mod tests {
    use super::*;
    use traxtent_model::profile::builtin;

    /// If the last fit no longer determines the seek curve, do the profile and the reported times
    /// both have the original curve? Does a determined curve stay?
    #[test]
    fn an_undetermined_curve_is_restored() {
        let start = builtin("atlas10k").unwrap();
        let mut original = start.clone();
        let figures = figures(&mut original, 10_000, true);
        let mut fitted = original.clone();
        for figure in &figures {
            figure.add(&mut fitted, 0.1);
        }
        let found = |is_determined| {
            let found = figures.iter().map(|figure| FittedFigure {
                name: figure.name.clone(),
                start_ms: figure.value(&original),
                value_ms: figure.value(&fitted),
                plus_minus_ms: 1.0,
                is_determined: is_determined || !figure.is_seek(),
            });
            found.collect::<Vec<_>>()
        };
        let seek = |profile: &Profile| profile.mechanics.clone().unwrap().seek;
        for is_determined in [true, false] {
            let mut profile = fitted.clone();
            let mut found = found(is_determined);
            restore_undetermined_seek(&mut profile, &mut found, &start);
            let kept = if is_determined { &fitted } else { &start };
            assert!(seek(&profile) == seek(kept), "{is_determined}");
            for (one, figure) in found.iter().zip(&figures) {
                let kept = is_determined || !figure.is_seek();
                let profile = if kept { &fitted } else { &original };
                assert_eq!(one.value_ms, figure.value(profile), "{}", one.name);
            }
        }
    }
}

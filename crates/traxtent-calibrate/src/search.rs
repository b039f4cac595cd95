//! Chooses the settings of the firmware.
//!
//! The settings of the buffer are those with the fewest requests that only the model or only the
//! drive served from its buffer. The search begins with the drive's own settings and with buffers
//! of usual kinds, and changes one setting at a time, then two. A change must explain several
//! requests, so that chance is not fitted.

use std::thread;

use traxtent_model::profile::Profile;

use crate::CalibrateError;
use crate::figures::Figure;
use crate::fit::Fit;
use crate::settings::{Setting, buffer_settings, is_possible, timing_settings, usual_buffers};

/// A change of a setting must explain one request in this many.
const REQUESTS_PER_CHANGE: usize = 2000;

/// The least number of requests that a change of a setting must explain.
const LEAST_PER_CHANGE: usize = 3;

/// A timing setting must reduce the distance of the distributions to this share.
const TIMING_GAIN: f64 = 0.97;

/// The number of rounds of fitting for each timing setting that is tried.
const TIMING_ROUNDS: usize = 2;

/// The effort of a search.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Effort {
    /// From the profile's own settings, one change at a time.
    Single,
    /// Also from usual buffers, and with two changes at a time.
    Full,
}

/// Searches for the settings of the buffer.
pub(crate) struct Search<'a> {
    fit: &'a Fit<'a>,
    settings: Vec<Setting>,
    track: u32,
    /// The number of requests that a change must explain.
    least: usize,
}

/// A profile, and the number of requests on which it disagrees with the drive.
type Scored = (usize, Profile);

impl<'a> Search<'a> {
    pub(crate) fn new(fit: &'a Fit<'a>) -> Search<'a> {
        let track = fit.geometry.track_sizes().max().unwrap_or(1);
        Search {
            fit,
            settings: buffer_settings(track),
            track,
            least: (fit.requests() / REQUESTS_PER_CHANGE).max(LEAST_PER_CHANGE),
        }
    }

    /// Returns the best profile that the search finds.
    pub(crate) fn run(
        &self,
        own: &Profile,
        effort: Effort,
        progress: &mut dyn FnMut(),
    ) -> Result<Profile, CalibrateError> {
        let score = self.score(own)?;
        let mut best = self.improve((score, own.clone()), progress);
        if effort == Effort::Single {
            return Ok(self.simplest(best, own));
        }
        for cache in usual_buffers(&own.cache, self.track) {
            let start = Profile {
                cache,
                ..own.clone()
            };
            let score = self.score(&start)?;
            let found = self.improve((score, start), progress);
            if found.0 + self.least <= best.0 {
                best = found;
            }
        }
        while let Some(pair) = self.best_pair(&best.1, progress) {
            if pair.0 + 2 * self.least > best.0 {
                break;
            }
            best = self.improve(pair, progress);
        }
        Ok(self.simplest(best, own))
    }

    fn score(&self, profile: &Profile) -> Result<usize, CalibrateError> {
        Ok(self.fit.disagreements(&self.fit.replay(profile)?))
    }

    /// Returns the best of the profiles that `changes` gives, computed on all processors.
    fn best_of(&self, changes: &[Vec<Setting>], profile: &Profile) -> Option<Scored> {
        let threads = thread::available_parallelism().map_or(1, usize::from);
        let part = changes.len().div_ceil(threads).max(1);
        let try_all = |changes: &[Vec<Setting>]| {
            let mut best: Option<Scored> = None;
            for change in changes {
                let mut changed = profile.clone();
                let effective = change.iter().all(|setting| setting.apply(&mut changed));
                if !effective || !is_possible(&changed.cache) {
                    continue;
                }
                // A profile that cannot serve the trace is not a candidate.
                let Ok(score) = self.score(&changed) else {
                    continue;
                };
                if best.as_ref().is_none_or(|(least, _)| score < *least) {
                    best = Some((score, changed));
                }
            }
            best
        };
        thread::scope(|scope| {
            let parts: Vec<_> = changes
                .chunks(part)
                .map(|changes| scope.spawn(|| try_all(changes)))
                .collect();
            let found = parts
                .into_iter()
                .filter_map(|part| part.join().ok().flatten());
            found.min_by_key(|(score, _)| *score)
        })
    }

    /// Changes one setting at a time, as long as that explains more requests.
    fn improve(&self, mut best: Scored, progress: &mut dyn FnMut()) -> Scored {
        let changes: Vec<Vec<Setting>> = self.settings.iter().map(|one| vec![*one]).collect();
        loop {
            progress();
            match self.best_of(&changes, &best.1) {
                Some(found) if found.0 + self.least <= best.0 => best = found,
                _ => return best,
            }
        }
    }

    /// Returns the best profile with two settings changed.
    fn best_pair(&self, profile: &Profile, progress: &mut dyn FnMut()) -> Option<Scored> {
        let mut best: Option<Scored> = None;
        for (index, one) in self.settings.iter().enumerate() {
            progress();
            let others = self.settings[index + 1..].iter();
            let pairs: Vec<Vec<Setting>> = others
                .filter(|other| other.key != one.key)
                .map(|other| vec![*one, *other])
                .collect();
            if let Some(found) = self.best_of(&pairs, profile) {
                if best.as_ref().is_none_or(|(least, _)| found.0 < *least) {
                    best = Some(found);
                }
            }
        }
        best
    }

    /// Gives settings their original value again if that costs fewer requests than a change must
    /// explain.
    fn simplest(&self, (score, mut profile): Scored, own: &Profile) -> Profile {
        let limit = score + self.least;
        for setting in &self.settings {
            let mut original = own.clone();
            let mut changed = profile.clone();
            let is_original = !setting.apply(&mut original);
            let is_changed = setting.apply(&mut changed);
            if is_original && is_changed && is_possible(&changed.cache) {
                if self.score(&changed).is_ok_and(|score| score < limit) {
                    profile = changed;
                }
            }
        }
        // A value of the original that is not among those tried.
        for restore in [
            (|to, own| to.cache.segments = own.cache.segments) as fn(&mut Profile, &Profile),
            |to, own| to.cache.segment_sectors = own.cache.segment_sectors,
            |to, own| to.cache.read_ahead.max_sectors = own.cache.read_ahead.max_sectors,
        ] {
            let mut changed = profile.clone();
            restore(&mut changed, own);
            if changed != profile && is_possible(&changed.cache) {
                if self.score(&changed).is_ok_and(|score| score < limit) {
                    profile = changed;
                }
            }
        }
        profile
    }
}

/// Chooses the settings that determine when a request is complete: those whose distributions of
/// response times, by kind of request, are closest to the measured ones after fitting.
pub(crate) fn choose_timing(
    fit: &Fit,
    mut profile: Profile,
    figures: &[Figure],
    progress: &mut dyn FnMut(),
) -> Result<Profile, CalibrateError> {
    let replayed = fit.replay(&profile)?;
    let hits = fit.disagreements(&replayed) + LEAST_PER_CHANGE;
    let mut best = fit.distance(&replayed);
    loop {
        let mut found: Option<(f64, Profile)> = None;
        for setting in timing_settings() {
            progress();
            let mut changed = profile.clone();
            if !setting.apply(&mut changed) {
                continue;
            }
            let changed = fit.run(&changed, figures, TIMING_ROUNDS)?.profile;
            let replayed = fit.replay(&changed)?;
            let distance = fit.distance(&replayed);
            let is_better = found.as_ref().is_none_or(|(least, _)| distance < *least);
            if is_better && fit.disagreements(&replayed) <= hits {
                found = Some((distance, changed));
            }
        }
        match found {
            Some((distance, changed)) if distance < TIMING_GAIN * best => {
                (best, profile) = (distance, changed);
            }
            _ => return Ok(profile),
        }
    }
}

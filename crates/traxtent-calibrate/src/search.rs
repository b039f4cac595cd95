//! Chooses the settings of the firmware.
//!
//! The settings of the buffer are chosen so that the model and the drive disagree on the fewest
//! requests: those that only one of them served from its buffer. The search begins with the drive's
//! own settings and with buffers of usual kinds, and changes one setting at a time, then two. A
//! change must explain several requests, so that chance is not fitted.

use std::panic::resume_unwind;
use std::thread;

use traxtent_model::profile::Profile;

use crate::figures::Figure;
use crate::fit::Fit;
use crate::settings::{Setting, buffer_settings, is_possible, usual_buffers};
use crate::{CalibrateError, Options};

/// A change of a setting must explain one request in this many.
const REQUESTS_PER_CHANGE: usize = 2000;

/// The minimum number of requests that a change of a setting must explain.
const LEAST_PER_CHANGE: usize = 3;

/// A change of timing settings must reduce the distance of the distributions to less than this
/// share of the distance before.
const TIMING_DISTANCE_SHARE: f64 = 0.97;

/// The number of rounds of fitting for each change of timing settings that is tried.
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
    /// Whether a setting of the buffer must stay as it is.
    keeps_any: bool,
    /// The number of sectors of the largest track.
    track: u32,
    /// The smallest number of requests that a change must explain.
    least: usize,
}

/// A profile, and the number of requests on which it disagrees with the drive.
type Scored = (usize, Profile);

impl<'a> Search<'a> {
    pub(crate) fn new(fit: &'a Fit<'a>, options: &Options) -> Search<'a> {
        let track = fit.geometry.track_sizes().max().unwrap_or(1);
        let all = buffer_settings(track);
        let (settings, kept): (Vec<_>, Vec<_>) =
            all.into_iter().partition(|one| options.may_change(one.key));
        Search {
            fit,
            settings,
            keeps_any: !kept.is_empty(),
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
        let usual = usual_buffers(&own.cache, self.track).into_iter();
        for cache in usual.filter(|_| !self.keeps_any) {
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

    /// Returns the best of the profiles that result from `changes`.
    fn best_of(&self, changes: &[Vec<Setting>], profile: &Profile) -> Option<Scored> {
        best_of(changes, |change| {
            let changed = changed(profile, change)?;
            // A profile that cannot serve the trace is not a candidate.
            Some((self.score(&changed).ok()?, changed))
        })
    }

    /// Changes one setting at a time, as long as a change explains enough requests.
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
            if let Some(found) = self.best_of(&pairs, profile)
                && best.as_ref().is_none_or(|(least, _)| found.0 < *least)
            {
                best = Some(found);
            }
        }
        best
    }

    /// Restores the original values of settings, one after another, as long as this costs fewer
    /// requests in total than a change must explain.
    fn simplest(&self, (score, mut profile): Scored, own: &Profile) -> Profile {
        let limit = score + self.least;
        for setting in &self.settings {
            let mut original = own.clone();
            let mut changed = profile.clone();
            let is_original = !setting.apply(&mut original);
            let is_changed = setting.apply(&mut changed);
            let keeps = |changed: &Profile| self.score(changed).is_ok_and(|score| score < limit);
            if is_original && is_changed && is_possible(&changed.cache) && keeps(&changed) {
                profile = changed;
            }
        }
        // The original's numbers need not be among those tried.
        let numbers = [
            (|to, own| to.cache.segments = own.cache.segments) as fn(&mut Profile, &Profile),
            |to, own| to.cache.segment_sectors = own.cache.segment_sectors,
            |to, own| to.cache.read_ahead.max_sectors = own.cache.read_ahead.max_sectors,
        ];
        for restore in numbers {
            let mut changed = profile.clone();
            restore(&mut changed, own);
            let keeps = || self.score(&changed).is_ok_and(|score| score < limit);
            if changed != profile && is_possible(&changed.cache) && keeps() {
                profile = changed;
            }
        }
        profile
    }
}

/// Returns a profile with settings changed. Returns `None` if a setting already has the value, or
/// if the model does not accept the settings together.
fn changed(profile: &Profile, settings: &[Setting]) -> Option<Profile> {
    let mut changed = profile.clone();
    let is_effective = settings.iter().all(|setting| setting.apply(&mut changed));
    (is_effective && is_possible(&changed.cache)).then_some(changed)
}

/// Returns the candidate with the lowest score, computed on all processors. The first one counts if
/// several have the same score.
fn best_of<T: Sync, S: PartialOrd + Send, R: Send>(
    candidates: &[T],
    score: impl Fn(&T) -> Option<(S, R)> + Sync,
) -> Option<(S, R)> {
    let lower = |best: Option<(S, R)>, next: (S, R)| match best {
        Some(best) if best.0 <= next.0 => Some(best),
        _ => Some(next),
    };
    let threads = thread::available_parallelism().map_or(1, usize::from);
    let part = candidates.len().div_ceil(threads).max(1);
    thread::scope(|scope| {
        let parts: Vec<_> = candidates
            .chunks(part)
            .map(|part| scope.spawn(|| part.iter().filter_map(&score).fold(None, lower)))
            .collect();
        let found = parts
            .into_iter()
            .filter_map(|part| part.join().unwrap_or_else(|panic| resume_unwind(panic)));
        found.fold(None, lower)
    })
}

/// Chooses the settings that determine when a request is complete: those whose distributions of
/// response times, by kind of request, are closest to the measured ones after fitting. Settings
/// whose disagreements on hits exceed `disagreements` by more than [`LEAST_PER_CHANGE`] are not
/// chosen.
pub(crate) fn choose_timing(
    fit: &Fit,
    mut profile: Profile,
    figures: &[Figure],
    settings: &[Setting],
    disagreements: usize,
    progress: &mut dyn FnMut(),
) -> Result<Profile, CalibrateError> {
    let singles: Vec<Vec<Setting>> = settings.iter().map(|one| vec![*one]).collect();
    let pairs = |index: usize| -> Vec<Vec<Setting>> {
        let one = settings[index];
        let others = settings[index + 1..].iter();
        let others = others.filter(|other| other.key != one.key);
        others.map(|other| vec![one, *other]).collect()
    };
    let groups: Vec<Vec<Vec<Setting>>> = std::iter::once(singles)
        .chain((0..settings.len()).map(pairs))
        .collect();
    let mut best = fit.distance(&fit.replay(&profile)?);
    let mut group = 0;
    while let Some(changes) = groups.get(group) {
        progress();
        let found = best_of(changes, |change| {
            let changed = changed(&profile, change)?;
            let fitted = fit.run(&changed, figures, TIMING_ROUNDS).ok()?.profile;
            let replayed = fit.replay(&fitted).ok()?;
            let is_accepted = fit.disagreements(&replayed) <= disagreements + LEAST_PER_CHANGE;
            is_accepted.then(|| (fit.distance(&replayed), fitted))
        });
        match found {
            Some((distance, changed)) if distance < TIMING_DISTANCE_SHARE * best => {
                (best, profile) = (distance, changed);
                group = 0;
            }
            _ => group += 1,
        }
    }
    Ok(profile)
}

#[cfg(test)]
mod tests {
    use super::best_of;

    /// Is the first of the candidates with the lowest score found, among those that have one?
    #[test]
    fn the_first_best_candidate() {
        let scores = [None, Some(3), Some(1), Some(2), Some(1)];
        let indexes = [0, 1, 2, 3, 4];
        let best = best_of(&indexes, |&index| Some((scores[index]?, index)));
        assert_eq!(best, Some((1, 2)));
    }

    /// Does a panic in the model end the search? If it did not, candidates would be missing
    /// silently.
    #[test]
    #[should_panic(expected = "a bug in the model")]
    fn a_panic_is_not_hidden() {
        best_of(&[0, 1, 2, 3], |&candidate| {
            assert!(candidate < 3, "a bug in the model");
            Some((candidate, ()))
        });
    }
}

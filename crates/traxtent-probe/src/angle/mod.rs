//! Track boundaries by the angles of sectors: our own method.
//!
//! The angle of a sector follows from the completion time of its read. Along a track, angles
//! advance evenly; at a boundary, they jump by the skew. The search predicts the next tracks from
//! the pattern of those before them ([`pattern`]) and tests as many of the boundaries as [`Verify`]
//! requires, in the order in which they come under the heads ([`window`]). It searches by doubling
//! steps ([`track`]) only where a prediction fails and single reads do not show how ([`shift`]). If
//! such a search finds a track unlike those before it, the track is decomposed into arcs
//! ([`arcs`]). On a noisy clock, a search is repeated at a later time ([`confirmation`]).
//!
//! A test of a boundary reads the LBN before it, which must be where the previous track continues,
//! and the LBN at it, which must be where the next track begins. If a boundary has no skew,
//! angles do not reveal it. Reads across the boundary, which lose a revolution, are timed instead.
//!
//! Two incomplete tracks may fit together like halves of one: the second continues at the exact
//! angle at which the first ends. If everything is verified and tracks without skew are near,
//! tracks are read as a whole, which reveals this. Otherwise it cannot be detected.

mod arcs;
mod area;
mod confirmation;
mod pattern;
mod shift;
mod track;
mod window;

use std::collections::VecDeque;
use std::ops::ControlFlow;

use super::clock::{Clock, INTERRUPTED_TURNS};
use super::extraction::{Extraction, ProbeError, TrackSink};
use area::{AROUND, BEFORE, HeldTrack, Regularity};
use pattern::{SLIPS, TrackKind, TrackPredictor};
use shift::WHOLE_SECTORS_OFF;
use track::Line;
use traxtent_map::{Confirm, Region, Verify};
use traxtent_units::Lbn;
use traxtent_units::turns::{fraction, wrap};
use window::Tested;

/// The number of tracks that count as a cylinder if there is no other evidence. Few drives have
/// fewer surfaces.
const CYLINDER: usize = 4;

/// The largest number of surfaces of a drive.
const SURFACES_MAX: usize = 24;

/// The largest number of tracks predicted at once after a failed prediction.
const REACH_AFTER: usize = 4;

/// The smallest share of successful tries at which trying alternatives is worth the reads.
const ALTERNATIVE_HIT_RATE_MIN: f64 = 0.3;

/// The number of further tracks that must be known before a track is passed on, unless boundaries
/// are sampled. Until then it can still be corrected.
const HELD: usize = 3;

/// The number of recent tracks between which the head switch is measured. The smallest value
/// counts.
const RECENT: usize = 5;

/// The largest number of LBNs remapped together: two physical sectors.
const REMAPPED_LBNS_MAX: u32 = 16;

/// The smallest jump of an angle that counts, in standard deviations.
const JUMP_SIGMAS: f64 = 3.5;
/// The lower limit of that jump, in sectors. It is below half a sector, so that every slipped
/// sector is detected.
const JUMP_SECTORS: f64 = 0.4;

/// The largest difference between two equal skews, in standard deviations. It is larger than for a
/// jump, so equal skews are rarely taken for different ones.
const SKEW_SIGMAS: f64 = 6.0;
/// The lower limit of that difference, in sectors.
const SKEW_SECTORS: f64 = 0.4;

/// The weight of the latest try in the share of successful tries.
const ALTERNATIVE_WEIGHT: f64 = 0.1;

/// If alternatives are rarely right, one in this many failed predictions tries them nevertheless,
/// which lets the share recover.
const ALTERNATIVE_EVERY: u64 = 8;

/// The largest number of tracks to predict at once without verification.
const REACH_MAX_UNVERIFIED: usize = 8192;
/// The same if boundaries are sampled. A failed prediction wastes the tests of the tracks after it.
const REACH_MAX_SAMPLED: usize = 128;
/// The same if everything is verified; the mean skew determines the number within this range. With
/// too few tracks, revolutions pass without a test.
const REACH_MAX_FULL: std::ops::RangeInclusive<usize> = 48..=512;
/// The number of revolutions that the skews of a full test add up to. If skews are small, testing
/// few tracks would leave most of a revolution without a test.
const REACH_FULL_TURNS: f64 = 2.0;

/// A search in progress.
struct Search<'a, 'b> {
    clock: &'b mut Clock<'a>,
    /// The requested amount of verification.
    requested_verify: Verify,
    /// The amount of verification at the current position: everything, if a sample is requested and
    /// tracks are irregular or begin without a skew; otherwise as requested.
    verify: Verify,
    area: Regularity,
    /// The first LBN after the drive's last.
    end: u64,
    /// Tracks that begin here or later are not needed.
    stop: u64,
    /// The first LBN of the next track to be found.
    first: u64,
    /// The angle of that LBN.
    angle: f64,
    pattern: TrackPredictor,
    /// The number of tracks to predict at once.
    reach: usize,
    /// The time after which a read on the same track can follow another, in revolutions.
    turnaround: Option<f64>,
    /// The time that a head switch adds to `turnaround`, in revolutions.
    switch: Option<f64>,
    /// The last tracks, between which `switch` is measured.
    recent: VecDeque<(Line, u32)>,
    held: VecDeque<HeldTrack>,
    /// Whether the last failed prediction was more than a difference of a few sectors. Then skews
    /// may have any value.
    skew_changed: bool,
    /// The number of failed predictions for which alternatives were considered.
    failed_predictions: u64,
    /// The recent share of tries in which one of the alternatives was right.
    alternative_hit_rate: f64,
    sink: &'b mut TrackSink<'b>,
    result: Extraction,
}

/// Finds the tracks that begin in a region by angles.
pub(super) fn search<'b>(
    clock: &'b mut Clock<'_>,
    region: Region,
    verify: Verify,
    sink: &'b mut TrackSink<'b>,
) -> Result<Extraction, ProbeError> {
    let mut search = Search {
        requested_verify: verify,
        verify,
        area: Regularity::default(),
        end: clock.capacity(),
        stop: region.end.0,
        pattern: TrackPredictor::new(!clock.is_noisy()),
        clock,
        first: region.first.0,
        angle: 0.0,
        reach: 4,
        turnaround: None,
        switch: None,
        recent: VecDeque::new(),
        held: VecDeque::new(),
        skew_changed: true,
        failed_predictions: 0,
        alternative_hit_rate: 1.0,
        sink,
        result: Extraction::default(),
    };
    search.begin(region.aligned)?;
    while search.first < search.stop {
        search.advance()?;
    }
    if search.first < search.end && !search.held.is_empty() {
        // The next sectors may turn out to be the last sectors of the last track. If they are
        // inconsistent, they are not part of it.
        match search.advance() {
            Ok(()) | Err(ProbeError::Inconsistent { .. }) => {}
            Err(error) => return Err(error),
        }
    }
    search.flush(0)?;
    search.result.untested_irregular = search.area.untested_irregular();
    if search.result.untested_irregular > 0 {
        search.result.notes.push(format!(
            "{} predicted but not tested, although the tracks of this drive are irregular; --verify full tests all boundaries",
            match search.result.untested_irregular {
                1 => "1 boundary is".to_owned(),
                count => format!("{count} boundaries are"),
            }
        ));
    }
    let method = search.clock.method();
    search
        .result
        .notes
        .push(format!("timed by {}", method.name()));
    search.result.unreadable = std::mem::take(&mut search.clock.unreadable);
    Ok(search.result)
}

impl Search<'_, '_> {
    /// Measures the angle of the region's first LBN. Unless a track begins there, moves on to the
    /// next track.
    fn begin(&mut self, aligned: bool) -> Result<(), ProbeError> {
        self.angle = self.angle_of_start(self.first, None, None)?;
        if !aligned {
            let (partial, angle) = self.find_confirmed(|search| search.find_track(None))?;
            self.first += u64::from(partial.sectors);
            self.angle = angle;
        }
        Ok(())
    }

    /// Finds the next tracks: all that were predicted, or those up to the first failed prediction
    /// and the track after them.
    fn advance(&mut self) -> Result<(), ProbeError> {
        self.adjust_verification()?;
        if self.first >= self.end {
            return Ok(());
        }
        let predicted = self.wanted(self.pattern.predict(self.reach.min(self.reach_max())));
        let Tested {
            known,
            whole,
            replacement: instead,
        } = self.test(&predicted)?;
        let count = known.len();
        for (kind, confirm) in known {
            self.keep(kind, confirm)?;
        }
        if whole {
            self.reach = (2 * self.reach).min(self.reach_max());
            return Ok(());
        }
        // One failed prediction makes others likely.
        self.reach = (self.reach / 2).clamp(2, REACH_AFTER);
        self.skew_changed = true;
        self.area.prediction_failed();
        let unconfirmed = predicted.get(count).copied();
        if let Some(predicted) = unconfirmed
            && self.first < self.end
            // Tests examine only the ends of a track; a search examines all of it.
            && self.verify != Verify::Full
            && self.is_alternative(predicted, instead)?
        {
            return Ok(());
        }
        if self.first < self.end {
            let guess = self.pattern.predict(1).first().copied();
            let (mut kind, angle) = self.find_confirmed(|search| search.find_or_retry(guess))?;
            if let Some(guess) = guess {
                kind.pitch = self.pitch_of(kind, guess)?;
            }
            if !self.join_the_last(kind, angle) {
                self.keep(kind, Confirm::Tested)?;
            }
            self.angle = angle;
        }
        Ok(())
    }

    /// Returns the pitch of a track that has been found. If slipped sectors explain why it is
    /// shorter than expected, this is the expected pitch: slipped sectors do not change the length
    /// of the others.
    fn pitch_of(&mut self, kind: TrackKind, guess: TrackKind) -> Result<f64, ProbeError> {
        let short = guess.sectors.saturating_sub(kind.sectors);
        if !(1..=SLIPS).contains(&short) || !self.shifts_are_conclusive(guess.pitch) {
            return Ok(kind.pitch);
        }
        let line = Line {
            lbn: self.first,
            angle: self.angle,
            pitch: guess.pitch,
        };
        let middle = self.first + u64::from(kind.sectors / 2);
        let off = self
            .clock
            .angle(middle)?
            .map(|angle| wrap(angle - line.at(middle)) / line.pitch);
        let slipped = off.is_some_and(|off| (off - off.round()).abs() < WHOLE_SECTORS_OFF);
        Ok(if slipped { guess.pitch } else { kind.pitch })
    }

    /// Returns the predicted tracks that are needed, but at least the first.
    fn wanted(&self, mut predicted: Vec<TrackKind>) -> Vec<TrackKind> {
        let mut end = self.first;
        let begins_before = |kind: &&TrackKind| {
            let wanted = end < self.stop;
            end += u64::from(kind.sectors);
            wanted
        };
        let wanted = predicted.iter().take_while(begins_before).count();
        predicted.truncate(wanted.max(1));
        predicted
    }

    /// Returns whether the next track, which is not as predicted, is one of the alternatives. If
    /// so, keeps it.
    fn is_alternative(
        &mut self,
        predicted: TrackKind,
        instead: Option<TrackKind>,
    ) -> Result<bool, ProbeError> {
        if let Some(instead) = instead
            && self.is_next(instead)?
        {
            self.skew_changed = instead.sectors == predicted.sectors;
            return Ok(true);
        }
        // Each alternative costs a few reads, so they are tried rarely if they are rarely right.
        self.failed_predictions += 1;
        if self.alternative_hit_rate < ALTERNATIVE_HIT_RATE_MIN
            && !self.failed_predictions.is_multiple_of(ALTERNATIVE_EVERY)
        {
            return Ok(false);
        }
        for kind in self.pattern.alternatives(predicted) {
            if self.is_next(kind)? {
                self.alternative_hit_rate += ALTERNATIVE_WEIGHT * (1.0 - self.alternative_hit_rate);
                return Ok(true);
            }
        }
        self.alternative_hit_rate -= ALTERNATIVE_WEIGHT * self.alternative_hit_rate;
        Ok(false)
    }

    /// Returns whether the next track is of this kind. If so, keeps it.
    fn is_next(&mut self, kind: TrackKind) -> Result<bool, ProbeError> {
        let tested = self.test(&[kind])?;
        if let (true, [(kind, confirm)]) = (tested.whole, &tested.known[..]) {
            self.keep(*kind, *confirm)?;
            return Ok(true);
        }
        Ok(false)
    }

    /// Finds the next track. Retries once if the result is inconsistent, because that may have been
    /// noise. If the track is still inconsistent, or unlike those before it, decomposes it into
    /// arcs. If that is impossible, searches once more.
    fn find_or_retry(&mut self, guess: Option<TrackKind>) -> Result<(TrackKind, f64), ProbeError> {
        let start = self.angle;
        let last = self.recent.back().map(|(line, _)| line.pitch);
        let mut pitch = last.unwrap_or(0.0);
        for guess in [guess, None] {
            self.angle = start;
            match self.find_track(guess) {
                Err(ProbeError::Inconsistent { .. }) => {}
                Ok((kind, angle)) => {
                    if self.is_plausible(kind)? {
                        return Ok((kind, angle));
                    }
                    if pitch == 0.0 || kind.sectors > REMAPPED_LBNS_MAX {
                        pitch = kind.pitch;
                    }
                    break;
                }
                failed => return failed,
            }
        }
        self.angle = start;
        if pitch > 0.0 {
            match self.decompose(pitch) {
                Err(ProbeError::Inconsistent { .. }) => self.angle = start,
                found => return found,
            }
        }
        self.find_track(guess)
    }

    /// Returns whether the track at `self.first` is like those before it.
    fn is_plausible(&mut self, kind: TrackKind) -> Result<bool, ProbeError> {
        let tolerance = skew_tolerance(self.clock.sigma, kind.pitch);
        let span = f64::from(kind.sectors) * kind.pitch;
        let seen = self.jump_min(kind.pitch);
        let known = self.pattern.had_sectors(kind.sectors)
            && (self.pattern).had_pitch(kind.pitch, tolerance / f64::from(kind.sectors));
        // A track that fills a revolution cannot continue.
        let fills = (span - 1.0).abs() < seen && !self.clock.is_noisy();
        let usual = kind.sectors > REMAPPED_LBNS_MAX
            && span < 1.0 + seen
            && (fills || known && self.pattern.had_skew(kind.skew, tolerance));
        let line = Line {
            lbn: self.first,
            angle: self.angle,
            pitch: kind.pitch,
        };
        if usual && !fills && self.leaves_one_behind(&line, kind)? {
            return Ok(false);
        }
        if !usual || !self.hides_boundaries(kind) {
            return Ok(usual);
        }
        self.is_whole(&line, self.first + u64::from(kind.sectors))
    }

    /// Returns whether the first sector after this track may belong to it: the sector is not where
    /// the next track should begin, but a few slots after this track.
    fn leaves_one_behind(&mut self, line: &Line, kind: TrackKind) -> Result<bool, ProbeError> {
        let end = self.first + u64::from(kind.sectors);
        if end >= self.end {
            return Ok(false);
        }
        let Some(angle) = self.clock.angle(end)? else {
            return Ok(false);
        };
        let deviates = wrap(angle - line.angle - kind.skew).abs() > self.jump_min(kind.pitch);
        Ok(deviates && self.gap(line, end, angle) < arcs::REMAPPED_SLOTS_MIN * kind.pitch)
    }

    /// Returns whether reads of a line of sectors take as long as the sectors need to pass.
    fn is_whole(&mut self, line: &Line, end: u64) -> Result<bool, ProbeError> {
        let (least, most) = self.excess(line, line.lbn, end)?;
        Ok(most <= INTERRUPTED_TURNS && least >= -2.0 * self.jump_min(line.pitch))
    }

    /// Returns whether a track like this could be two that fit together like halves. This is
    /// possible if tracks begin at the same angle. It matters only if everything is verified.
    fn hides_boundaries(&self, kind: TrackKind) -> bool {
        let least = self.pattern.least_skew();
        self.verify == Verify::Full && least.is_some_and(|skew| skew < self.jump_min(kind.pitch))
    }

    /// Joins a found track of at most a physical sector to the previous track, if that has room for
    /// it. Its LBNs then count as remapped. The next track begins at the angle `following`.
    fn join_the_last(&mut self, kind: TrackKind, following: f64) -> bool {
        let (Some((line, sectors)), Some(last)) = (self.recent.back_mut(), self.held.back_mut())
        else {
            return false;
        };
        let tolerance = skew_tolerance(self.clock.sigma, line.pitch);
        let together = *sectors + kind.sectors;
        let skew = fraction(following - line.angle);
        let physical = u64::from(kind.sectors) <= self.clock.physical_ratio();
        let joins = physical && f64::from(together) * line.pitch < 1.0 + tolerance;
        if joins {
            let first = self.first;
            self.first += u64::from(kind.sectors);
            self.result.remapped.extend((first..self.first).map(Lbn));
            *sectors = together;
            last.kind = TrackKind {
                sectors: together,
                pitch: line.pitch,
                skew,
            };
            self.pattern.replace_last(last.kind);
        }
        joins
    }

    fn reach_max(&self) -> usize {
        match self.verify {
            Verify::None => REACH_MAX_UNVERIFIED,
            Verify::Sample => REACH_MAX_SAMPLED,
            Verify::Full => ((REACH_FULL_TURNS / self.pattern.mean_skew()) as usize)
                .clamp(*REACH_MAX_FULL.start(), *REACH_MAX_FULL.end()),
        }
    }

    /// Accepts a track as found and moves on to the next.
    fn keep(&mut self, kind: TrackKind, confirm: Confirm) -> Result<(), ProbeError> {
        let kind = kind.within_a_turn();
        let line = Line {
            lbn: self.first,
            angle: self.angle,
            pitch: kind.pitch,
        };
        self.held.push_back(HeldTrack {
            line,
            kind,
            confirm,
        });
        self.recent.push_back((line, kind.sectors));
        if self.recent.len() > RECENT {
            self.recent.pop_front();
        }
        self.first += u64::from(kind.sectors);
        self.area.found(confirm);
        self.angle += kind.skew;
        self.pattern.push(kind);
        self.flush(match self.requested_verify {
            Verify::Sample => AROUND as usize + BEFORE,
            Verify::None | Verify::Full => HELD,
        })
    }

    /// Outputs all but the last `keep` tracks.
    fn flush(&mut self, keep: usize) -> Result<(), ProbeError> {
        while self.held.len() > keep {
            let found = self.held.pop_front().expect("it is not empty").found();
            if found.first_lbn.0 >= self.stop {
                continue;
            }
            if let ControlFlow::Break(()) = (self.sink)(found) {
                return Err(ProbeError::Stopped);
            }
        }
        Ok(())
    }

    /// The smallest jump of an angle that can be detected, in revolutions: less than a sector, if
    /// the clock is good enough.
    fn jump_min(&self, pitch: f64) -> f64 {
        (JUMP_SIGMAS * self.clock.sigma).max(JUMP_SECTORS * pitch)
    }
}

/// The difference below which skews count as equal, in revolutions.
fn skew_tolerance(sigma: f64, pitch: f64) -> f64 {
    (SKEW_SIGMAS * sigma).max(SKEW_SECTORS * pitch)
}

//! Soft real time: streams are admitted if nearly all of their deadlines are met in a simulation.
//!
//! As RIO does and paper T (section 5.4.1) after it: a number of simultaneous random requests is served over many rounds,
//! and a round is long enough if 99.99 % of the requests are complete at its end, which is their deadline. (The stricter
//! promise that 99.99 % of the rounds have no late request at all costs about a stream a disk.)

use std::cell::Cell;

use traxtent_core::stats::Moments;
use traxtent_core::units::Span;
use traxtent_core::video::BitRate;
use traxtent_core::workload::Rng;

use super::extents::{Alignment, Extents, Placement, TRACKS_MAX};
use super::rounds::{Order, run_rounds};
use crate::bench::{Bench, LabError};

/// Rounds behind every number: as many as the paper made.
pub const ROUNDS: u32 = 10_000;

/// Of so many requests, one may be late.
pub const ONE_LATE_IN: u64 = 10_000;

/// Rounds and deviations by which a search guesses before it measures.
const GUESSED_ROUNDS: u32 = 200;
const GUESSED_DEVIATIONS: f64 = 2.5;

/// A server that measures what its disk can do.
#[derive(Clone, Copy)]
pub struct SoftServer<'a> {
    /// The disk, and the seed of all draws.
    pub bench: &'a Bench,
    /// Where the videos lie.
    pub extents: &'a Extents,
    /// How fast each stream is.
    pub bitrate: BitRate,
    /// How a round is served.
    pub order: Order,
    /// How many rounds each answer rests on.
    pub rounds: u32,
    /// Told now and then how many rounds have been simulated since it was told before.
    pub watch: Watch<'a>,
}

/// Who watches a simulation.
pub type Watch<'a> = &'a (dyn Fn(u64) + Sync);

/// A watcher is told each time so many requests have been simulated.
const WATCHED_REQUESTS: u32 = 1 << 18;

impl SoftServer<'_> {
    /// How many requests of all rounds are late if a round lasts so long; counting ends at `enough`.
    ///
    /// # Errors
    /// If the drive cannot serve a request.
    pub fn late_requests(
        &self,
        placement: Placement,
        streams: u32,
        round: Span,
        enough: u64,
    ) -> Result<u64, LabError> {
        let mut late = 0;
        self.simulate(placement, streams, self.rounds, |complete| {
            late += complete.iter().rev().take_while(|at| **at > round).count() as u64;
            late < enough
        })?;
        Ok(late)
    }

    /// Whether so many streams meet their deadlines.
    ///
    /// # Errors
    /// If the drive cannot serve a request.
    pub fn carries(
        &self,
        placement: Placement,
        streams: u32,
        round: Span,
    ) -> Result<bool, LabError> {
        if streams > self.extents.room(placement) {
            return Ok(false);
        }
        let may_be_late = u64::from(self.rounds) * u64::from(streams) / ONE_LATE_IN;
        Ok(self.late_requests(placement, streams, round, may_be_late + 1)? <= may_be_late)
    }

    /// The most streams that rounds of this length carry.
    ///
    /// # Errors
    /// If the drive cannot serve a request.
    pub fn most_streams(&self, placement: Placement, round: Span) -> Result<u32, LabError> {
        // The media pass no more; twice that, as some tracks of the zone may be longer.
        let bound = 2.0 * round.as_ms() / self.transfer(placement);
        let bound = bound.min(1e6) as u32 + 1;
        largest(
            (0, bound.min(self.extents.room(placement))),
            |streams| self.seems_to_carry(placement, streams, round),
            |streams| self.carries(placement, streams, round),
        )
    }

    /// The least I/O whose play time is a round that carries so many streams: of `first` steps of its alignment or more.
    ///
    /// # Errors
    /// If the drive cannot serve a request.
    pub fn least_io(
        &self,
        alignment: Alignment,
        streams: u32,
        first: u32,
    ) -> Result<Option<Placement>, LabError> {
        let io = |steps| self.extents.io(alignment, steps);
        let has_room = |steps: &u32| self.extents.room(io(*steps)) >= streams;
        let sizes = first..=TRACKS_MAX * alignment.steps();
        let Some(last) = sizes.rev().find(has_room) else {
            return Ok(None);
        };
        let fails = |steps: u32, exactly: bool| -> Result<bool, LabError> {
            let io = io(steps);
            let round = self.extents.play_time(io, self.bitrate);
            Ok(!if exactly {
                self.carries(io, streams, round)?
            } else {
                self.seems_to_carry(io, streams, round)?
            })
        };
        // The largest size that fails, and one more.
        let steps = 1 + largest(
            (first - 1, last),
            |steps| fails(steps, false),
            |steps| fails(steps, true),
        )?;
        Ok((steps <= last).then(|| io(steps)))
    }

    /// The time in which the media pass an I/O, in milliseconds.
    fn transfer(&self, placement: Placement) -> f64 {
        let track = self.extents.least_sectors(Placement::Aligned { tracks: 1 });
        let sectors = self.extents.least_sectors(placement);
        sectors as f64 / track as f64 * self.bench.profile.revolution_ms()
    }

    /// Whether a few rounds let it seem so.
    fn seems_to_carry(
        &self,
        placement: Placement,
        streams: u32,
        round: Span,
    ) -> Result<bool, LabError> {
        if streams > self.extents.room(placement) {
            return Ok(false);
        }
        let mut times = Moments::default();
        self.simulate(placement, streams, GUESSED_ROUNDS, |complete| {
            times.push(complete.last().map_or(0.0, |last| last.as_ms()));
            true
        })?;
        Ok(times.mean() + GUESSED_DEVIATIONS * times.deviation() <= round.as_ms())
    }

    fn simulate(
        &self,
        placement: Placement,
        streams: u32,
        rounds: u32,
        ended: impl FnMut(&[Span]) -> bool,
    ) -> Result<(), LabError> {
        let mut rng = Rng::new(self.bench.seed);
        let left = Cell::new(rounds);
        let told_every = (WATCHED_REQUESTS / streams.max(1)).max(1);
        let draw = |requests: &mut Vec<_>| {
            let go_on = left.get() > 0;
            if go_on {
                left.set(left.get() - 1);
                let simulated = rounds - left.get();
                if simulated.is_multiple_of(told_every) {
                    (self.watch)(u64::from(told_every));
                }
                self.extents.draw(placement, streams, &mut rng, requests);
            }
            go_on
        };
        Ok(run_rounds(self.bench, self.order, draw, ended)?)
    }
}

/// The largest number in `low..=high` that passes, where all up to it do; `low` is taken to pass. `guess` is cheap and
/// nearly right, `test` decides.
fn largest<E>(
    (low, high): (u32, u32),
    guess: impl Fn(u32) -> Result<bool, E>,
    test: impl Fn(u32) -> Result<bool, E>,
) -> Result<u32, E> {
    let (mut passes, mut fails) = (low, high + 1);
    while fails - passes > 1 {
        let middle = passes + (fails - passes) / 2;
        if guess(middle)? {
            passes = middle;
        } else {
            fails = middle;
        }
    }
    let guessed = passes;
    while passes < high && test(passes + 1)? {
        passes += 1;
    }
    if passes == guessed {
        while passes > low && !test(passes)? {
            passes -= 1;
        }
    }
    Ok(passes)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does the test decide, whether the guess is too low, right or too high?
    #[test]
    fn the_test_decides() {
        for guessed in 0..=10 {
            for right in 0..=10 {
                let found = largest::<()>((0, 10), |n| Ok(n <= guessed), |n| Ok(n <= right));
                assert_eq!(found, Ok(right), "guessed {guessed}");
            }
        }
    }
}

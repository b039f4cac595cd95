//! Soft real time: streams are admitted if nearly all of their deadlines are met in a simulation.
//!
//! The method is that of RIO, which paper T (section 5.4.1) follows. Many rounds are simulated,
//! each with the same number of simultaneous random requests. A round is long enough if 99.99 % of
//! the requests are complete at its end, which is their deadline. (The stricter guarantee that
//! 99.99 % of the rounds have no late request costs about one stream per disk.)

use std::cell::Cell;

use traxtent_layout::video::BitRate;
use traxtent_units::Rng;
use traxtent_units::Span;
use traxtent_units::stats::Moments;

use super::extents::{Alignment, Extents, Placement, TRACKS_MAX};
use super::rounds::{Order, run_rounds};
use crate::{SimulateError, TestDrive};

/// The number of rounds for every result, the same as in the paper.
pub const ROUNDS: u32 = 10_000;

/// One request in this number may be late.
pub const ONE_LATE_IN: u64 = 10_000;

/// The number of rounds simulated for the estimate with which a search begins.
const GUESSED_ROUNDS: u32 = 200;

/// The number of standard deviations that the estimate adds to the mean time of a round.
const GUESSED_DEVIATIONS: f64 = 2.5;

/// A server that admits streams by simulating its disk.
#[derive(Clone, Copy)]
pub struct SoftServer<'a> {
    /// The disk, and the seed of all draws.
    pub drive: &'a TestDrive,
    /// The tracks that hold the videos.
    pub extents: &'a Extents,
    /// The bit rate of each stream.
    pub bitrate: BitRate,
    /// The order in which a round is served.
    pub order: Order,
    /// The number of rounds simulated for each result.
    pub rounds: u32,
    /// Called from time to time with the number of rounds simulated since the last call.
    pub watch: ProgressFn<'a>,
}

/// A callback for the progress of a simulation.
pub type ProgressFn<'a> = &'a (dyn Fn(u64) + Sync);

/// The approximate number of simulated requests between two calls of the watcher.
const WATCHED_REQUESTS: u32 = 1 << 18;

impl SoftServer<'_> {
    /// Counts the late requests of all rounds if a round lasts `round`. Counting ends once there
    /// are at least `enough`.
    ///
    /// # Errors
    /// Returns an error if the drive cannot serve a request.
    pub fn late_requests(
        &self,
        placement: Placement,
        streams: u32,
        round: Span,
        enough: u64,
    ) -> Result<u64, SimulateError> {
        let mut late = 0;
        self.simulate(placement, streams, self.rounds, |complete| {
            late += complete.iter().rev().take_while(|at| **at > round).count() as u64;
            late < enough
        })?;
        Ok(late)
    }

    /// Returns whether `streams` streams meet their deadlines.
    ///
    /// # Errors
    /// Returns an error if the drive cannot serve a request.
    pub fn carries(
        &self,
        placement: Placement,
        streams: u32,
        round: Span,
    ) -> Result<bool, SimulateError> {
        if streams > self.extents.room(placement) {
            return Ok(false);
        }
        let may_be_late = u64::from(self.rounds) * u64::from(streams) / ONE_LATE_IN;
        Ok(self.late_requests(placement, streams, round, may_be_late + 1)? <= may_be_late)
    }

    /// The largest number of streams that rounds of this length carry.
    ///
    /// # Errors
    /// Returns an error if the drive cannot serve a request.
    pub fn most_streams(&self, placement: Placement, round: Span) -> Result<u32, SimulateError> {
        // An upper bound from the rate of the media, doubled because some tracks of the zone may be
        // longer.
        let bound = 2.0 * round.as_ms() / self.transfer(placement);
        let bound = bound.min(1e6) as u32 + 1;
        largest(
            (0, bound.min(self.extents.room(placement))),
            |streams| self.probably_carries(placement, streams, round),
            |streams| self.carries(placement, streams, round),
        )
    }

    /// The smallest I/O, of at least `first` steps of its alignment, whose playing time is a round
    /// that carries `streams` streams; `None` if there is none of at most [`TRACKS_MAX`] tracks.
    ///
    /// # Errors
    /// Returns an error if the drive cannot serve a request.
    pub fn least_io(
        &self,
        alignment: Alignment,
        streams: u32,
        first: u32,
    ) -> Result<Option<Placement>, SimulateError> {
        let io = |steps| self.extents.io(alignment, steps);
        let has_room = |steps: &u32| self.extents.room(io(*steps)) >= streams;
        let sizes = first..=TRACKS_MAX * alignment.steps();
        let Some(last) = sizes.rev().find(has_room) else {
            return Ok(None);
        };
        let fails = |steps: u32, exactly: bool| -> Result<bool, SimulateError> {
            let io = io(steps);
            let round = self.extents.play_time(io, self.bitrate);
            Ok(!if exactly {
                self.carries(io, streams, round)?
            } else {
                self.probably_carries(io, streams, round)?
            })
        };
        // One more than the largest size that fails.
        let steps = 1 + largest(
            (first - 1, last),
            |steps| fails(steps, false),
            |steps| fails(steps, true),
        )?;
        Ok((steps <= last).then(|| io(steps)))
    }

    /// The time in which an I/O passes under the head, in milliseconds.
    fn transfer(&self, placement: Placement) -> f64 {
        let track = self.extents.least_sectors(Placement::Aligned { tracks: 1 });
        let sectors = self.extents.least_sectors(placement);
        sectors as f64 / track as f64 * self.drive.profile.revolution_ms()
    }

    /// Estimates from a few rounds whether the streams meet their deadlines.
    fn probably_carries(
        &self,
        placement: Placement,
        streams: u32,
        round: Span,
    ) -> Result<bool, SimulateError> {
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
    ) -> Result<(), SimulateError> {
        let mut rng = Rng::new(self.drive.seed);
        let left = Cell::new(rounds);
        let told_every = (WATCHED_REQUESTS / streams.max(1)).max(1);
        let draw = |requests: &mut Vec<_>| {
            let continues = left.get() > 0;
            if continues {
                left.set(left.get() - 1);
                let simulated = rounds - left.get();
                if simulated.is_multiple_of(told_every) {
                    (self.watch)(u64::from(told_every));
                }
                self.extents.draw(placement, streams, &mut rng, requests);
            }
            continues
        };
        run_rounds(self.drive, self.order, draw, ended)
    }
}

/// Finds the largest number in `low..=high` that passes, if all numbers up to it pass. `low` is
/// assumed to pass. `guess` is cheap and nearly right; `test` decides.
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

    /// Does the test decide the result if the guess is too low, right or too high?
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

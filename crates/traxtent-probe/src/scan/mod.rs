//! Track boundaries by reads of growing length: the general approach of paper T (section 4.1.1).
//!
//! From the first sector S of a track, reads of N sectors are synchronized with the rotation. Their
//! time grows with N as a linear model predicts, until N exceeds the track. Then the skew, or a
//! lost revolution, is added. A binary search finds that N. Once the length of a track is known,
//! the same length is tried on the next track, with a read across the expected boundary. Only if
//! that fails is the end of that track searched for ([`lane`]). To defeat caches, up to a hundred
//! places of the drive are searched at the same time, with one read in each before the next round,
//! until each search reaches the beginning of the next.
//!
//! The paper does not say how tracks are distinguished from defects, or how to handle a drive that
//! reads sectors out of order. That requires the following additions:
//! - A read covers at most half a revolution, because a drive that can start anywhere on a track
//!   could compensate for the lost time. The next read begins with the last sector of the previous
//!   one.
//! - The arm comes from another place each time. Each lane therefore measures how early a read must
//!   be sent, and measures again when it follows a different lane.
//! - After a slipped sector, the track continues. A gap ends the track if no sector would fit after
//!   it, if it loses a revolution, or if the sectors after it continue for longer than the rest of
//!   the track could. If none of this decides, the gap is compared with the smallest skew that is
//!   certain.
//! - A remapped LBN interrupts a read twice, and the sectors after it pass as if nothing had
//!   happened. At a boundary, it may be counted with either track.
//! - The predicted track has the length of the last one, but its end may show any of the recent
//!   skews, or any skew at all if no further sector would fit.
//! - No read extends far past the point where a track must end, because a zone of another pitch
//!   could compensate the skew.
//!
//! Tracks are passed on once all tracks before them are known. For most of them, this is when the
//! first lane has reached the second.
//!
//! Not covered: times that jitter by more than a fraction of a sector, and spindles that wander
//! while the other places have their turns. If a drive can only be timed by plain reads with reads
//! elsewhere in between (because its caches cannot be switched off), the search fails or gives
//! wrong results on two of the model drives, `hp-c2247` and `hp-c3323a`. Their read times grow with
//! N more than any rotation explains, probably because their buses do not keep up with the media.

mod lane;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::clock::Clock;
use super::extraction::{Extraction, ProbeError, TrackSink};
use lane::Lane;
use traxtent_map::{Confirm, Found, Region};
use traxtent_units::Lbn;

/// The largest number of places searched at a time (paper T).
const LANES_MAX: u64 = 100;

/// The smallest number of sectors for which a separate lane is worthwhile.
const LANE_SECTORS_MIN: u64 = 1 << 15;

/// The search of a lane, waiting for its next turn.
type SearchStep<'s> = Pin<Box<dyn Future<Output = Result<(), ProbeError>> + 's>>;

/// The state shared by all lanes.
struct Shared<'c, 'a> {
    clock: RefCell<&'c mut Clock<'a>>,
    /// The first LBN after the region.
    end: u64,
    /// The first LBN after the drive's last.
    capacity: u64,
    /// The boundaries found in each lane, ascending. The lane's tracks begin and end there.
    boundaries: Vec<RefCell<Vec<u64>>>,
    /// The lane that read last.
    last: Cell<Option<usize>>,
    /// The smallest skew of a boundary that is certain, in revolutions.
    least_skew: Cell<Option<f64>>,
    /// The LBNs found to be remapped.
    moved: RefCell<Vec<Lbn>>,
}

/// Finds the tracks that begin in a region.
pub(super) fn scan(
    clock: &mut Clock<'_>,
    region: Region,
    sink: &mut TrackSink<'_>,
) -> Result<Extraction, ProbeError> {
    let length = region.end.0 - region.first.0;
    let count = (length / LANE_SECTORS_MIN).clamp(1, LANES_MAX);
    let shared = Shared {
        capacity: clock.capacity(),
        clock: RefCell::new(clock),
        end: region.end.0,
        boundaries: (0..count).map(|_| RefCell::default()).collect(),
        last: Cell::new(None),
        least_skew: Cell::new(None),
        moved: RefCell::default(),
    };
    let lanes = (0..count).map(|k| {
        let first =
            region.first.0 + (u128::from(length) * u128::from(k) / u128::from(count)) as u64;
        let aligned = k == 0 && region.aligned;
        Box::pin(Lane::new(&shared, k as usize, first).run(aligned)) as SearchStep<'_>
    });
    let mut lanes: Vec<SearchStep<'_>> = lanes.collect();
    let mut output = OutputProgress::default();
    let mut failed = None;
    while !lanes.is_empty() && failed.is_none() {
        shared.clock.borrow_mut().count_other_reads(lanes.len() - 1);
        lanes.retain_mut(|lane| {
            let context = &mut Context::from_waker(Waker::noop());
            match lane.as_mut().poll(context) {
                Poll::Pending => true,
                Poll::Ready(result) => {
                    failed = failed.take().or(result.err());
                    false
                }
            }
        });
        output.pass_on(&shared, sink)?;
    }
    drop(lanes);
    if let Some(error) = failed {
        return Err(error);
    }
    let clock = shared.clock.into_inner();
    let mut result = Extraction {
        remapped: shared.moved.into_inner(),
        ..Extraction::default()
    };
    result.remapped.sort_unstable();
    result.remapped.dedup();
    result.unreadable = std::mem::take(&mut clock.unreadable);
    let method = clock.method().name();
    result.notes.push(format!("timed by {method}"));
    Ok(result)
}

/// The progress of passing on tracks: lane by lane, up to the first track that is not yet known.
#[derive(Default)]
struct OutputProgress {
    lane: usize,
    /// The index, among the lane's boundaries, of the one at which the next track begins.
    boundary: usize,
}

impl OutputProgress {
    fn pass_on(
        &mut self,
        shared: &Shared<'_, '_>,
        sink: &mut TrackSink<'_>,
    ) -> Result<(), ProbeError> {
        loop {
            let boundaries = shared.boundaries[self.lane].borrow();
            let Some(&[first, end]) = boundaries.get(self.boundary..self.boundary + 2) else {
                return Ok(());
            };
            let found = Found {
                first_lbn: Lbn(first),
                sectors: (end - first) as u32,
                confirm: Confirm::Tested,
            };
            if let ControlFlow::Break(()) = sink(found) {
                return Err(ProbeError::Stopped);
            }
            self.boundary += 1;
            if let Some((lane, boundary)) = shared.later_lane_with(self.lane, end) {
                (self.lane, self.boundary) = (lane, boundary);
            }
        }
    }
}

impl Shared<'_, '_> {
    /// Returns the later lane that contains a boundary, and the position of that boundary in it.
    ///
    /// Usually this is the first boundary of the next lane. If that lane began with an error, this
    /// may be a later boundary, or one of the lane after it.
    fn later_lane_with(&self, lane: usize, boundary: u64) -> Option<(usize, usize)> {
        (lane + 1..self.boundaries.len()).take(2).find_map(|lane| {
            Some((
                lane,
                self.boundaries[lane]
                    .borrow()
                    .binary_search(&boundary)
                    .ok()?,
            ))
        })
    }

    /// Records a skew that is certain.
    fn learn_skew(&self, skew: f64) {
        if self.least_skew.get().is_none_or(|least| skew < least) {
            self.least_skew.set(Some(skew));
        }
    }
}

/// Gives the other lanes their turns.
async fn turn() {
    let mut waited = false;
    poll_fn(|_| {
        if std::mem::replace(&mut waited, true) {
            Poll::Ready(())
        } else {
            Poll::Pending
        }
    })
    .await;
}

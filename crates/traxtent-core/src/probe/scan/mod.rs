//! Track boundaries by reads of growing length: the general approach of paper T (section 4.1.1).
//!
//! From the first sector S of a track, reads of N sectors are synchronized with the rotation and
//! take longer with N as a linear model says, until N goes past the track: then the skew comes on
//! top, or a lost revolution. A binary search finds that N. Once the length of a track is known, it
//! is tried on the next, with a read across the expected boundary; only where that fails, the search
//! begins anew with N = 1 ([`lane`]). To keep caches out of it, up to a hundred places of the drive
//! are searched at a time, a read in each in turn, until each search meets the beginning of the next.
//!
//! The paper does not say how tracks are told from defects, or what a drive does that reads sectors
//! out of order. It takes this much more:
//! - A read goes over half a revolution, and not more, since a drive that starts anywhere on a track could
//!   gain what it loses. The next one begins with the last sector of the one before.
//! - The arm comes from another place each time, so each lane measures how long before its sectors pass a
//!   read must be sent, and again when the lane before it has ended.
//! - Behind a slipped sector a track goes on. A gap ends the track if no sector would fit behind it, if
//!   it loses a revolution, or if what follows runs on for longer than the rest of the track could.
//!   Where none of this tells, it is measured against the least skew that is certain.
//! - An LBN kept elsewhere breaks a read twice, and the sectors behind it pass as if nothing had
//!   happened. At a boundary it may be counted with either track.
//! - The expected track has the length of the last one, but its end may show any of the last skews, or any
//!   at all where no other sector would fit.
//! - No read goes far past where a track must end: a zone of another pitch could make up for the skew.
//!
//! Tracks are handed over as far as they are known from the beginning on: most of them when the first lane
//! has met the second.
//!
//! What it leaves out: times that jitter by more than a fraction of a sector, and spindles that wander
//! while the other places have their turns. Where only plain reads between reads elsewhere can be timed
//! (caches that no order switches off), it is baffled or goes astray on two of the model drives, `hp-c2247`
//! and `hp-c3323a`: reads take longer with N than any rotation explains, probably because their buses do not
//! keep up with the media.

mod lane;

use std::cell::{Cell, RefCell};
use std::future::{Future, poll_fn};
use std::ops::ControlFlow;
use std::pin::Pin;
use std::task::{Context, Poll, Waker};

use super::algorithm::{Confirm, Extraction, Found, ProbeError, Region, Sink};
use super::clock::Clock;
use crate::units::Lbn;
use lane::Lane;

/// So many places at a time (paper T).
const LANES_MAX: u64 = 100;

/// Less than this, in sectors, is not worth a lane of its own.
const LANE_MIN: u64 = 1 << 15;

/// A lane whose turn it will be.
type Turn<'s> = Pin<Box<dyn Future<Output = Result<(), ProbeError>> + 's>>;

/// What lanes share.
struct Shared<'c, 'a> {
    clock: RefCell<&'c mut Clock<'a>>,
    /// The LBN behind the region.
    end: u64,
    /// The LBN behind the last of the drive.
    capacity: u64,
    /// Boundaries found in each lane, ascending: its tracks begin and end there.
    bounds: Vec<RefCell<Vec<u64>>>,
    /// The lane that read last.
    last: Cell<Option<usize>>,
    /// The least skew of a boundary that is beyond doubt, in revolutions.
    least_skew: Cell<Option<f64>>,
    moved: RefCell<Vec<Lbn>>,
}

/// Finds the tracks that begin in a region.
pub(super) fn scan(
    clock: &mut Clock<'_>,
    region: Region,
    sink: &mut Sink<'_>,
) -> Result<Extraction, ProbeError> {
    let length = region.end.0 - region.first.0;
    let count = (length / LANE_MIN).clamp(1, LANES_MAX);
    let shared = Shared {
        capacity: clock.capacity(),
        clock: RefCell::new(clock),
        end: region.end.0,
        bounds: (0..count).map(|_| RefCell::default()).collect(),
        last: Cell::new(None),
        least_skew: Cell::new(None),
        moved: RefCell::default(),
    };
    let lanes = (0..count).map(|k| {
        let first =
            region.first.0 + (u128::from(length) * u128::from(k) / u128::from(count)) as u64;
        let aligned = k == 0 && region.aligned;
        Box::pin(Lane::new(&shared, k as usize, first).run(aligned)) as Turn<'_>
    });
    let mut lanes: Vec<Turn<'_>> = lanes.collect();
    let mut handed = Handed::default();
    let mut failed = None;
    while !lanes.is_empty() && failed.is_none() {
        shared.clock.borrow_mut().flushed_by(lanes.len() - 1);
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
        handed.over(&shared, sink)?;
    }
    drop(lanes);
    if let Some(error) = failed {
        return Err(error);
    }
    let clock = shared.clock.into_inner();
    let mut result = Extraction {
        moved: shared.moved.into_inner(),
        ..Extraction::default()
    };
    result.moved.sort_unstable();
    result.moved.dedup();
    result.unreadable = std::mem::take(&mut clock.unreadable);
    let method = clock.method().name();
    result.notes.push(format!("timed by {method}"));
    Ok(result)
}

/// How far tracks have been handed over: lane by lane, as far as they are known from the beginning on.
#[derive(Default)]
struct Handed {
    lane: usize,
    /// How many bounds of the lane have been passed.
    bound: usize,
}

impl Handed {
    fn over(&mut self, shared: &Shared<'_, '_>, sink: &mut Sink<'_>) -> Result<(), ProbeError> {
        loop {
            let bounds = shared.bounds[self.lane].borrow();
            let Some(&[first, end]) = bounds.get(self.bound..self.bound + 2) else {
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
            self.bound += 1;
            if let Some((lane, bound)) = shared.met(self.lane, end) {
                (self.lane, self.bound) = (lane, bound);
            }
        }
    }
}

impl Shared<'_, '_> {
    /// The lane behind this one that knows a bound, and which of its bounds that is.
    ///
    /// Usually it is the first of the next lane. If that lane begins with an error, it may be a later one.
    fn met(&self, lane: usize, bound: u64) -> Option<(usize, usize)> {
        (lane + 1..self.bounds.len())
            .take(2)
            .find_map(|lane| Some((lane, self.bounds[lane].borrow().binary_search(&bound).ok()?)))
    }

    /// Takes note of a skew.
    fn learn_skew(&self, skew: f64) {
        if self.least_skew.get().is_none_or(|least| skew < least) {
            self.least_skew.set(Some(skew));
        }
    }
}

/// Lets the other lanes have their turns.
async fn turn() {
    let mut waited = false;
    poll_fn(|_| match std::mem::replace(&mut waited, true) {
        true => Poll::Ready(()),
        false => Poll::Pending,
    })
    .await;
}

//! What upsets a drive while it runs: stalls, sectors that must be read again and again, defects
//! that have grown, and starting over.
//!
//! A drive that nothing of this happens to takes the same times to the picosecond as if this were
//! not here.

use std::ops::Range;
use std::sync::Arc;

use super::{Arm, Drive};
use crate::geometry::Geometry;
use crate::intervals::Intervals;
use crate::units::{Lbn, Sectors, SimTime};

/// Physical sectors that the drive does not read at once, and how many revolutions more each takes.
#[derive(Clone, Debug, Default)]
pub(super) struct Slow(Intervals<u32>);

impl Slow {
    /// How many of `most` sectors from `lbn` on can be read in one go, and how many revolutions
    /// that takes more.
    pub(super) fn reach(&self, lbn: Lbn, most: u32) -> (u32, u32) {
        if self.0.is_empty() {
            return (most, 0);
        }
        let end = lbn.0 + u64::from(most);
        match self.0.over(&(lbn.0..end)).next() {
            Some((slow, revolutions)) if slow.start <= lbn.0 => {
                ((slow.end.min(end) - lbn.0) as u32, revolutions)
            }
            Some((slow, _)) => ((slow.start - lbn.0) as u32, 0),
            None => (most, 0),
        }
    }
}

impl Drive {
    /// Lets the drive do nothing from `now`, which is no earlier than any time before, to `until`.
    ///
    /// What it has not reported it reports no earlier; what comes meanwhile waits. The platters turn on.
    pub fn stall(&mut self, now: SimTime, until: SimTime) {
        self.run_until(now);
        self.stalled = self.stalled.max(until);
        self.stop_read_ahead(now);
        if let Arm::Access { release, .. } = &mut self.arm {
            *release = until.max(*release);
        }
        for flush in &mut self.flushes {
            flush.latest = until.max(flush.latest);
        }
        for done in self.done.iter_mut().filter(|done| done.completed > now) {
            let late = until.saturating_since(done.completed);
            done.completed += late;
            done.breakdown.queue += late;
        }
    }

    /// The LBNs of the physical sectors that hold so many from `lbn` on.
    pub fn physical_range(&self, lbn: Lbn, sectors: u32) -> Range<Lbn> {
        let (first, end) = self.physical_bounds(lbn, lbn + Sectors(sectors.into()));
        first..end
    }

    /// Lets every physical sector of `[lbns)` take so many revolutions more whenever the media are
    /// read there; 0 mends them.
    ///
    /// A read-ahead under way is stopped.
    pub fn set_retries(&mut self, now: SimTime, lbns: Range<Lbn>, revolutions: u32) {
        self.run_until(now);
        self.stop_read_ahead(now);
        let (mut from, end) = self.physical_bounds(lbns.start, lbns.end);
        self.slow.0.remove(from.0..end.0);
        while revolutions > 0 && from < end {
            let (_, to) = self.physical_bounds(from, Lbn(from.0 + 1));
            self.slow.0.insert(from.0..to.0, revolutions);
            from = to;
        }
    }

    /// Lets accesses go where `geometry`, which has as many LBNs, says from `now` on.
    ///
    /// A read-ahead under way is stopped. An access under way goes where it went.
    ///
    /// # Panics
    /// If the number of LBNs differs.
    pub fn set_geometry(&mut self, now: SimTime, geometry: Arc<Geometry>) {
        assert_eq!(geometry.capacity(), self.geometry.capacity());
        self.run_until(now);
        self.stop_read_ahead(now);
        self.geometry = geometry;
    }

    /// Starts the drive over, as after a loss of power: nothing is under way, the buffer is empty,
    /// its switches are as the profile has them. Sectors that are slow or moved stay so.
    pub fn restart(&mut self) {
        let slow = std::mem::take(&mut self.slow);
        let next_tag = self.next_tag;
        *self = Drive::with_geometry(Arc::clone(&self.profile), Arc::clone(&self.geometry));
        (self.slow, self.next_tag) = (slow, next_tag);
    }

    /// Stops a read-ahead that is under way or to come.
    pub(super) fn stop_read_ahead(&mut self, now: SimTime) {
        match &mut self.arm {
            Arm::ReadAhead(_) => {
                self.take_arm(now);
            }
            Arm::Access { then, .. } => {
                if let Some(run) = then.take() {
                    self.cache.set_reading(run.segment, false);
                }
            }
            Arm::Idle => {}
        }
    }
}

//! Disturbances of a running drive: stalls, perturbations (sectors that need retries), grown
//! defects, and restarts.
//!
//! Without them, the drive's times are the same to the picosecond as if this module did not exist.

use std::ops::Range;
use std::sync::Arc;

use super::{Arm, Drive};
use crate::geometry::Geometry;
use traxtent_units::intervals::Intervals;
use traxtent_units::{Lbn, Sectors, SimTime};

/// Physical sectors that cannot be read at the first attempt, with the number of additional
/// revolutions for each.
#[derive(Clone, Debug, Default)]
pub(super) struct RetryTable(Intervals<u32>);

impl RetryTable {
    /// Returns how many of `most` sectors starting at `lbn` can be read without interruption, and
    /// the number of additional revolutions for them.
    #[inline]
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
    /// Makes the drive do nothing from `now` to `until`. `now` must not be earlier than any time
    /// given before.
    ///
    /// Work that is in progress at `now` ends later by the length of the stall. New requests wait.
    /// The platters continue to rotate.
    pub fn stall(&mut self, now: SimTime, until: SimTime) {
        self.run_until(now);
        // A stall that begins during another adds only the time by which it is longer.
        let added = until.saturating_since(self.stalled.max(now));
        let later = |time: SimTime| match time > now {
            true => SimTime(time.0.saturating_add(added.0)),
            false => time,
        };
        self.stalled = self.stalled.max(until);
        self.stop_read_ahead(now);
        if let Arm::Access { release, .. } = &mut self.arm {
            *release = later(*release).max(until);
        }
        self.last_write.media_end = later(self.last_write.media_end);
        for flush in &mut self.flushes {
            flush.latest = later(flush.latest).max(until);
        }
        for done in self.done.iter_mut().filter(|done| done.completed > now) {
            let completed = later(done.completed);
            done.breakdown.queue += completed.since(done.completed);
            done.completed = completed;
        }
    }

    /// Returns the LBNs of the physical sectors that contain the `sectors` sectors starting at
    /// `lbn`.
    pub fn physical_range(&self, lbn: Lbn, sectors: u32) -> Range<Lbn> {
        let (first, end) = self.physical_bounds(lbn, lbn + Sectors(sectors.into()));
        first..end
    }

    /// Sets the number of additional revolutions that every physical sector in `lbns` takes
    /// whenever it is read from the media. 0 removes the perturbation.
    ///
    /// A current read-ahead is stopped.
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

    /// Replaces the layout from `now` on. The new `geometry` must have the same number of LBNs.
    ///
    /// A current read-ahead is stopped. A current access uses the old layout.
    ///
    /// # Panics
    /// Panics if the number of LBNs differs.
    pub fn set_geometry(&mut self, now: SimTime, geometry: Arc<Geometry>) {
        assert_eq!(geometry.capacity(), self.geometry.capacity());
        self.run_until(now);
        self.stop_read_ahead(now);
        self.geometry = geometry;
    }

    /// Restarts the drive at `now`, as after a loss of power: nothing is outstanding, the buffer is
    /// empty, and the caching settings are those of the profile. Perturbations, moved sectors, the
    /// queue policy and the connection to a shared bus remain.
    pub fn restart(&mut self, now: SimTime) {
        let slow = std::mem::take(&mut self.slow);
        let policy = self.policy.take();
        let bus = std::mem::take(&mut self.bus).restarted(now);
        let next_tag = self.next_tag;
        *self = Drive::with_geometry(Arc::clone(&self.profile), Arc::clone(&self.geometry));
        (self.slow, self.policy, self.bus, self.next_tag) = (slow, policy, bus, next_tag);
    }

    /// Stops a read-ahead that is current or planned.
    pub(super) fn stop_read_ahead(&mut self, now: SimTime) {
        match self.arm {
            Arm::Free => {
                self.take_arm(now);
            }
            Arm::Access { .. } => {
                if let Some(run) = self.read_ahead.take() {
                    self.cache.set_reading(run.segment, false);
                }
            }
        }
    }
}

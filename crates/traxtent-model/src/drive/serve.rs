//! Functions that reads and writes share, and the handling of flushes.

use super::oversize::{self, ReadTransfers, WriteTransfers};
use super::sweep::{Access, Leg, sweep};
use super::{Arm, Breakdown, Command, Completion, Drive, DriveJob, PendingFlush, ServedBy, Tag};
use crate::mechanics::HeadPosition;
use traxtent_units::{SimTime, Span};

impl Drive {
    pub(super) fn arm_is_free(&self) -> bool {
        !matches!(self.arm, Arm::Access { .. }) && self.waiting.is_empty()
    }

    pub(super) fn flush_arrives(&mut self, command: Command, now: SimTime) {
        let latest = match &self.arm {
            Arm::Access {
                writing: Some(_), ..
            } => self.last_write.media_end.max(now),
            _ => now,
        };
        self.flushes.push(PendingFlush {
            tag: command.tag,
            request: command.request,
            submitted: command.submitted,
            latest: latest.max(self.stalled),
        });
        self.finish_flushes();
    }

    /// Records that the write with the given tag is on the media at the given time.
    pub(super) fn note_written(&mut self, tag: Tag, media_end: SimTime) {
        if !self.flushes.is_empty() {
            for flush in self.flushes.iter_mut().filter(|flush| tag < flush.tag) {
                flush.latest = flush.latest.max(media_end);
            }
            self.finish_flushes();
        }
    }

    /// Completes the flushes for which no earlier write is still waiting.
    fn finish_flushes(&mut self) {
        let oldest_write = self
            .waiting
            .iter()
            .filter(|job| job.is_write())
            .map(|job| job.tag)
            .min();
        let mut pending = std::mem::take(&mut self.flushes);
        pending.retain(|flush| {
            if oldest_write.is_some_and(|tag| tag < flush.tag) {
                return true;
            }
            let overhead = self.controller.write_completion;
            self.complete(Completion {
                tag: flush.tag,
                request: flush.request,
                submitted: flush.submitted,
                completed: flush.latest + overhead,
                breakdown: Breakdown {
                    queue: flush.latest.since(flush.submitted),
                    overhead,
                    ..Breakdown::default()
                },
                served: if flush.latest > flush.submitted {
                    ServedBy::Media
                } else {
                    ServedBy::Buffer
                },
            });
            false
        });
        self.flushes = pending;
    }

    /// Appends the legs of an access for a request, and counts it.
    pub(super) fn sweep(
        &mut self,
        position: HeadPosition,
        ready: SimTime,
        access: &Access,
        legs: &mut Vec<Leg>,
    ) -> (HeadPosition, SimTime) {
        let before = legs.len();
        let end = sweep(self.access_model(), position, ready, access, legs);
        self.count_access(&legs[before..]);
        end
    }

    /// Same as [`Drive::sweep`], for a write that passes through its segment in parts.
    pub(super) fn sweep_write(
        &mut self,
        from: (HeadPosition, SimTime),
        access: (&Access, i64),
        write_transfers: &mut WriteTransfers,
        legs: &mut Vec<Leg>,
    ) -> (HeadPosition, SimTime) {
        let before = legs.len();
        let end = oversize::sweep_write(self.access_model(), from, access, write_transfers, legs);
        self.count_access(&legs[before..]);
        end
    }

    /// Same as [`Drive::sweep`], for a read whose sectors may be sent to the host more slowly than
    /// they arrive from the media.
    pub(super) fn sweep_read(
        &mut self,
        from: (HeadPosition, SimTime),
        access: &Access,
        read_transfers: &mut ReadTransfers,
        legs: &mut Vec<Leg>,
    ) -> (HeadPosition, SimTime) {
        let before = legs.len();
        let when_complete = self.controller.when_complete;
        let end = oversize::sweep_read(
            self.access_model(),
            from,
            access,
            (read_transfers, when_complete),
            legs,
        );
        self.count_access(&legs[before..]);
        end
    }

    fn count_access(&mut self, legs: &[Leg]) {
        self.accesses.count += 1;
        for leg in legs {
            self.accesses.rotation += leg.rotation;
        }
    }

    /// The parts of the time from a request's submission until the drive began to serve it.
    pub(super) fn until_served(&self, job: &DriveJob, at: SimTime) -> Breakdown {
        let waited = at.since(job.submitted);
        let overhead = waited.min(self.controller.per_request);
        Breakdown {
            queue: waited.saturating_sub(overhead),
            overhead,
            ..Breakdown::default()
        }
    }

    #[inline(always)]
    pub(super) fn finish(
        &mut self,
        job: &DriveJob,
        completed: SimTime,
        breakdown: Breakdown,
        served: ServedBy,
    ) {
        self.complete(Completion {
            tag: job.tag,
            request: job.request,
            submitted: job.submitted,
            completed,
            breakdown,
            served,
        });
    }
}

/// The time from which the arm may move for a request that the drive starts at `at`. The
/// controller's work on the command does not overlap with the end of the activity that the arm
/// abandons, which lasts until `free`. (Measured drives agree with DiskSim on this: HP C3323A and
/// C2490A.)
pub(super) fn arm_ready(job: &DriveJob, at: SimTime, free: SimTime) -> SimTime {
    job.ready.max(at) + free.since(at)
}

/// The parts of the time from a request's submission to the end of its media access. The request
/// got the arm at `at`, and `b` holds the parts until then. The controller let the arm move at
/// `ready`.
#[inline(always)]
pub(super) fn time_breakdown(
    legs: &[Leg],
    at: SimTime,
    ready: SimTime,
    job: &DriveJob,
    mut b: Breakdown,
) -> Breakdown {
    let command = ready.min(job.ready).saturating_since(at);
    b.overhead += command;
    b.queue += ready.saturating_since(at).saturating_sub(command);
    // An access that continues read-ahead began before it was requested.
    let mut now = ready.max(at);
    let mut since = |part: &mut Span, until: SimTime| {
        *part += until.saturating_since(now);
        now = now.max(until);
    };
    for (i, leg) in legs.iter().enumerate() {
        let begun = SimTime(leg.landed.0 - leg.moved.total().0.min(leg.landed.0));
        let (seek, head_switch) = if i == 0 {
            (leg.moved.seek, leg.moved.head_switch)
        } else {
            (Span::ZERO, leg.moved.seek + leg.moved.head_switch)
        };
        // A delay of the landing counts as controller time.
        since(&mut b.overhead, begun);
        since(&mut b.seek, begun + seek);
        since(&mut b.head_switch, begun + seek + head_switch);
        since(&mut b.settle, leg.landed);
        since(&mut b.rotation, leg.landed + leg.rotation);
        since(&mut b.transfer, leg.end);
    }
    b
}

//! The drive's own queue: the choice of the request to serve next, and the time that the head needs
//! to reach it.

use super::cache::{ReadPlace, WritePlace};
use super::{Candidate, Drive, DriveJob, HeadView, LastWrite, Waiting};
use crate::geometry::Piece;
use crate::mechanics::HeadPosition;
use traxtent_units::request::Op;
use traxtent_units::{Lbn, SimTime, Span};

impl Drive {
    /// Removes the request to be served next from the waiting ones.
    pub(super) fn next_job(&mut self, now: SimTime) -> Option<DriveJob> {
        // A single request needs no choice.
        if self.waiting.len() <= 1 {
            return self.waiting.pop();
        }
        let mut index = self.choose(now)?;
        let waiting = &self.waiting;
        // A request does not overtake an older one that overlaps with it, unless both are reads.
        // The oldest of a chain of such requests goes first. If the buffer has no room for the
        // request, or a read needs sectors that must be written first, a write that the buffer has
        // already accepted goes first.
        while let Some(older) = (0..index).find(|&i| {
            waiting[i].overlaps(&waiting[index])
                && (waiting[i].is_write() || waiting[index].is_write())
        }) {
            index = older;
        }
        let job = &waiting[index];
        if job.is_write()
            && job.accepted.is_none()
            && self.cache.find_write(now, job.request.lbn, job.end()) == WritePlace::Blocked
        {
            index = waiting
                .iter()
                .position(|job| job.accepted.is_some())
                .unwrap_or(index);
        } else if !job.is_write()
            && self.cache.find_read(now, job.request.lbn, job.end()) == ReadPlace::Blocked
        {
            let blocker = |other: &DriveJob| other.accepted.is_some() && other.overlaps(job);
            let is_accepted = |other: &DriveJob| other.accepted.is_some();
            let first = waiting
                .iter()
                .position(blocker)
                .or_else(|| waiting.iter().position(is_accepted));
            index = first.unwrap_or(index);
        }
        Some(self.waiting.remove(index))
    }

    /// Returns the index of the waiting request that the user's policy or the profile's scheduler
    /// prefers.
    fn choose(&mut self, now: SimTime) -> Option<usize> {
        if let Some(mut policy) = self.policy.take() {
            let head = HeadView::of(self, now);
            let index = policy.choose(now, &head, &Waiting::new(self, now));
            self.policy = Some(policy);
            return Some(if index < self.waiting.len() { index } else { 0 });
        }
        let candidates = self.waiting.iter().map(|job| Candidate {
            lbn: job.request.lbn,
            end: job.end(),
            arrived: job.submitted,
        });
        self.schedule
            .pick(now, candidates, |i| self.positioning(&self.waiting[i], now))
    }

    /// The time from `now` until the first remaining sector of a waiting request comes under the
    /// head. It is zero for a read without FUA whose first sector is in the buffer, or about to be.
    pub(super) fn positioning(&self, job: &DriveJob, now: SimTime) -> Span {
        if self.finds_first_sector(job, now) {
            return Span::ZERO;
        }
        let (model, mechanics) = (self.access_model(), &self.mechanics);
        let piece = model.geometry.piece(self.first_remaining(job), 1);
        let to = HeadPosition::from(&piece.track);
        let moved = mechanics.reposition(self.position, to, job.is_write());
        let landed = self.start_of(job, now) + moved.total();
        let wait =
            |piece: Piece| mechanics.wait(landed, mechanics.edge(&piece.track, piece.first_slot));
        let others = model.other_replicas(piece, job.is_write()).map(wait);
        landed.since(now) + others.fold(wait(piece), Span::min)
    }

    /// Returns whether a request is a read without FUA whose first sector is in the buffer, or is
    /// about to be read by read-ahead.
    fn finds_first_sector(&self, job: &DriveJob, now: SimTime) -> bool {
        let from_media = job.is_write() || job.request.op == Op::Verify || job.request.fua;
        !from_media
            && matches!(
                self.cache.find_read(now, job.request.lbn, job.end()),
                ReadPlace::Whole(_) | ReadPlace::Partial(_)
            )
    }

    /// The first sector of a request that remains to be done. A write may begin in the physical
    /// sector in which the previous one ended. Its beginning may then have been written with the
    /// previous one.
    pub(super) fn first_remaining(&self, job: &DriveJob) -> Lbn {
        let LastWrite { end, written, .. } = self.last_write;
        if job.is_write() && job.request.lbn == end && written < job.end() {
            written
        } else {
            job.request.lbn
        }
    }

    /// The time from which the arm may move for a waiting request. For a write that is not in the
    /// buffer, this is when its first sector will have arrived.
    fn start_of(&self, job: &DriveJob, now: SimTime) -> SimTime {
        let c = &self.controller;
        let start = now.max(job.ready);
        if job.is_write() && job.accepted.is_none() {
            start + c.first_reselect + c.data_preparation + c.write_sector
        } else {
            start
        }
    }
}

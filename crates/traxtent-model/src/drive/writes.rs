//! The handling of writes, from arrival until they are on the media.

use super::bus::{nth, ramps_of};
use super::cache::WritePlace;
use super::oversize::{WriteTransferRules, WriteTransfers};
use super::serve::{arm_ready, time_breakdown};
use super::sweep::{Access, DataArrival, Leg};
use super::{Accepted, Arm, Breakdown, Drive, DriveJob, LastWrite, ServedBy, Tag};
use traxtent_units::request::Request;
use traxtent_units::{SimTime, Span};

impl Drive {
    pub(super) fn write_arrives(
        &mut self,
        tag: Tag,
        now: SimTime,
        begun: SimTime,
        request: Request,
    ) {
        let after_read = self.last_was_read;
        let c = &self.controller;
        let overhead = if !self.applied_caching.write_back {
            c.write_miss
        } else {
            c.write_hit
        }
        .get(after_read);
        let disconnect = c.write_disconnect;
        self.bus.advance(now);
        let begun = self.bus.reserve_command(begun, overhead + disconnect);
        let mut job = DriveJob {
            tag,
            request,
            submitted: now,
            ready: begun + overhead,
            off_bus: begun + overhead + disconnect,
            after_read,
            continues: self.last_end == Some(request.lbn),
            accepted: None,
        };
        if self.arm_is_free() {
            self.take_arm(begun);
            self.accept(&mut job, begun, true);
            return self.start_write(&job, begun);
        }
        if let Some(place) = self.place_while_busy(&job, begun) {
            self.accept_at(&mut job, begun, true, place);
        }
        self.waiting.push(job);
    }

    /// Returns where to place a write that does not have the arm, if the drive accepts it at `now`.
    /// Some drives accept any write for which the buffer has room. The others accept one that
    /// continues a write in the buffer, if the buffer has accepted all earlier waiting requests. No
    /// drive accepts a write that overlaps with an earlier waiting request.
    fn place_while_busy(&self, job: &DriveJob, now: SimTime) -> Option<WritePlace> {
        let before = || self.waiting.iter().filter(|other| other.tag < job.tag);
        let place = match self.cache.find_write(now, job.request.lbn, job.end()) {
            WritePlace::Blocked if self.profile.cache.combine_writes => self
                .continued_segment(job)
                .map_or(WritePlace::Blocked, WritePlace::Append),
            place => place,
        };
        let alone = before().all(|other| other.accepted.is_some());
        let take = match place {
            WritePlace::Blocked => false,
            WritePlace::Append(_) => alone || self.profile.cache.writes_while_busy,
            WritePlace::Fresh(_) => self.profile.cache.writes_while_busy,
        };
        (take && !before().any(|other| other.overlaps(job))).then_some(place)
    }

    /// Returns the segment of the current write if the job continues where both that write and its
    /// segment end. The job's sectors are transferred as those of the current write leave.
    fn continued_segment(&self, job: &DriveJob) -> Option<usize> {
        match self.arm {
            Arm::Access {
                writing: Some((segment, end)),
                ..
            } if end == job.request.lbn && self.cache.segment(segment).end == end => Some(segment),
            _ => None,
        }
    }

    /// Returns the times at which the segment of the current write has room for the first of the
    /// job's sectors, and for as many as it can hold. Returns `None` unless the job continues where
    /// both that write and its segment end.
    fn room_while_busy(&mut self, job: &DriveJob) -> Option<(SimTime, SimTime)> {
        self.continued_segment(job)?;
        self.ramps.clear();
        let legs = &self.legs[self.last_write.first_leg..];
        legs.iter()
            .for_each(|leg| ramps_of(leg, false, &mut self.ramps));
        let begun = legs.first()?.piece.lbn.0;
        let size = u64::from(self.profile.cache.segment_sectors);
        let lbn = job.request.lbn.0;
        // The segment has room for all sectors before `end` once those before `end - size` have
        // left.
        let room_before = |end: u64| match (end.saturating_sub(size)).checked_sub(begun) {
            None | Some(0) => SimTime::ZERO,
            Some(left) => nth(&self.ramps, left as u32),
        };
        let last = lbn + u64::from(job.request.sectors).min(size);
        Some((room_before(lbn + 1), room_before(last)))
    }

    /// Accepts the waiting writes for which the buffer has room again, while the arm is busy with
    /// another request.
    pub(super) fn take_waiting_writes(&mut self, now: SimTime) {
        for index in 0..self.waiting.len() {
            self.take_waiting_write(index, now);
        }
    }

    /// Accepts the first waiting request that begins where the current write ends, if it is a write
    /// for which the drive has a place.
    pub(super) fn take_next_write(&mut self, now: SimTime) {
        let end = self.last_write.end;
        // Requests that begin at the same LBN overlap, and `waiting` is in order of arrival. The
        // drive accepts no write before an earlier request that overlaps with it, so no later
        // request at this LBN can be the one.
        let next = self.waiting.iter().position(|job| job.request.lbn == end);
        if let Some(index) = next {
            self.take_waiting_write(index, now);
        }
    }

    fn take_waiting_write(&mut self, index: usize, now: SimTime) {
        let job = &self.waiting[index];
        if !job.is_write() || job.accepted.is_some() {
            return;
        }
        if let Some(place) = self.place_while_busy(job, now) {
            let mut job = *job;
            self.accept_at(&mut job, now, false, place);
            self.waiting[index] = job;
        }
    }

    /// Accepts a write that waited for the arm into the buffer, unless it is already there.
    pub(super) fn accept_waiting(&mut self, job: &mut DriveJob, at: SimTime) {
        if job.accepted.is_none() {
            self.accept(job, at, false);
        }
    }

    /// Accepts a write into the buffer. If the bus still needs all segments, the oldest is reused
    /// nevertheless.
    fn accept(&mut self, job: &mut DriveJob, at: SimTime, arriving: bool) {
        let place = match self.cache.find_write(at, job.request.lbn, job.end()) {
            WritePlace::Blocked => WritePlace::Fresh(self.cache.oldest_for_write()),
            place => place,
        };
        self.accept_at(job, at, arriving, place);
    }

    fn accept_at(&mut self, job: &mut DriveJob, at: SimTime, arriving: bool, place: WritePlace) {
        let c = &self.controller;
        let Request {
            lbn, sectors, fua, ..
        } = job.request;
        let extra = c.extra.filter(|_| match place {
            WritePlace::Fresh(i) => {
                let segment = self.cache.segment(i);
                arriving && self.cache.is_newest(i) && segment.written && segment.end != lbn
            }
            _ => false,
        });
        let from = match extra {
            Some(x) => {
                job.ready = at + x.command + x.seek_delay;
                at + x.command + x.disconnect + x.off_bus + c.other_reselect
            }
            None if arriving => job.ready,
            None => at.max(job.off_bus) + c.first_reselect,
        } + c.data_preparation;
        // Sectors for which the segment has no room yet are transferred once sectors have left it
        // for the media.
        let size = self.profile.cache.segment_sectors;
        let length = Span(c.write_sector.0 * u64::from(sectors.min(size)));
        self.bus.advance(at);
        let completion = c.write_completion;
        let (first_room, last_room) = match place {
            WritePlace::Append(_) => self.room_while_busy(job).unwrap_or_default(),
            _ => Default::default(),
        };
        let start = self.bus.reserve(from.max(first_room), length, completion);
        let full = (start + length).max(last_room + self.controller.write_sector);
        let edges = self.buffered_edges(lbn, job.end());
        let segment = self.cache.accept(place, lbn, job.end());
        self.cache.hold(segment, full);
        let in_buffer = !fua && self.applied_caching.write_back && sectors <= size;
        if in_buffer {
            let before = self.until_served(job, at);
            let breakdown = Breakdown {
                overhead: before.overhead + from.since(at) + self.controller.write_completion,
                bus: full.since(from),
                ..before
            };
            self.finish(
                job,
                full + self.controller.write_completion,
                breakdown,
                ServedBy::Buffer,
            );
        }
        job.accepted = Some(Accepted {
            segment,
            inflow: DataArrival {
                from: start,
                per_sector: self.controller.write_sector,
                full,
                threshold: self.controller.extra.map_or(1, |x| x.start_after(sectors)),
            },
            full,
            appended: matches!(place, WritePlace::Append(_)),
            edges,
            extra: extra.is_some(),
            began: at,
            completed: in_buffer,
        });
    }

    /// Writes to the media for a request that now has the arm.
    pub(super) fn start_write(&mut self, job: &DriveJob, at: SimTime) {
        self.schedule.serve(job.request.lbn, job.end());
        self.observe_whole_track(at);
        self.whole_track = None;
        let free = self.take_arm(at);
        let Some(accepted) = job.accepted else { return };
        let (lbn, end) = (job.request.lbn, job.end());
        let mut legs = std::mem::take(&mut self.legs);
        legs.clear();

        let ready = arm_ready(job, at, free);
        let joined = accepted.appended || self.profile.cache.combine_writes && accepted.full <= at;
        let streaming = joined && self.last_write.media_end == at && self.last_write.end == lbn;
        let inflow = (accepted.full > ready).then_some(accepted.inflow);
        let lbn = if streaming {
            self.first_remaining(job)
        } else {
            lbn
        };
        let (first, last) = self.physical_bounds(lbn, end);
        let position = self.position;
        let (position, from) =
            self.read_partial_sectors(position, ready, (lbn, end), accepted.edges, &mut legs);
        let edges = legs.len();
        let modify = edges > 0;
        let base = first.0 as i64 - job.request.lbn.0 as i64;
        let access = Access {
            lbn: first,
            sectors: (last.0 - first.0) as u32,
            write: true,
            zero_latency: self.profile.access.zero_latency_write,
            inflow: inflow
                .filter(|_| !modify)
                .map(|inflow| inflow.for_access(base)),
            not_before: if streaming {
                SimTime::ZERO
            } else {
                ready + self.controller.minimum_write_seek
            },
        };
        let from = if modify {
            from.max(accepted.full)
        } else {
            from
        };
        let (position, media_end, full) = match self.write_transfers(job, &accepted, from) {
            Some(mut write_transfers) => {
                let (position, media_end) = self.sweep_write(
                    (position, from),
                    (&access, base),
                    &mut write_transfers,
                    &mut legs,
                );
                self.bus.reserve_fixed(write_transfers.later_transfers());
                (
                    position,
                    media_end,
                    write_transfers.end().max(accepted.full),
                )
            }
            None => {
                let (position, media_end) = self.sweep(position, from, &access, &mut legs);
                (position, media_end, accepted.full)
            }
        };
        self.position = position;
        self.last_write = LastWrite {
            media_end,
            end,
            first_leg: edges,
            written: if last > end && self.cache.will_write(end, last) {
                last
            } else {
                end
            },
        };

        let acknowledged = if accepted.completed {
            full + self.controller.write_completion
        } else {
            self.complete_written(job, &accepted, at, ready, full, media_end, &legs)
        };
        let sent = acknowledged - self.controller.write_completion;
        self.arm = Arm::Access {
            release: self.release_time(media_end, sent, acknowledged),
            writing: Some((accepted.segment, end)),
        };
        self.legs = legs;
        self.note_written(job.tag, media_end);
    }

    /// Returns the transfers of a write during which the media may have to wait. Such a write is
    /// larger than its segment, or is still arriving over a bus slower than the media.
    fn write_transfers(
        &self,
        job: &DriveJob,
        accepted: &Accepted,
        ready: SimTime,
    ) -> Option<WriteTransfers> {
        let cache = &self.profile.cache;
        let (sectors, size) = (job.request.sectors, cache.segment_sectors);
        let per_sector = accepted.inflow.per_sector.0;
        let is_slower_than =
            |slots: u32| per_sector * u64::from(slots) > self.mechanics.revolution().0;
        let is_slow_bus = || {
            // Most buses are faster than the media on every track.
            is_slower_than(self.geometry.most_slots()) && {
                let track = self.geometry.track_of(job.request.lbn);
                is_slower_than(track.map_or(1, |track| track.slots))
            }
        };
        let is_late = accepted.full > ready && is_slow_bus();
        if sectors <= size && !is_late {
            return None;
        }
        let watermark = f64::from(size) * cache.write_watermark;
        let c = &self.controller;
        Some(WriteTransfers::new(
            u64::from(sectors),
            accepted.inflow,
            WriteTransferRules {
                segment: u64::from(size),
                watermark: if cache.watermark_of_request {
                    watermark as u64
                } else {
                    watermark.ceil() as u64
                },
                reconnect: [c.first_reselect, c.other_reselect]
                    .map(|take| take + c.data_preparation),
                hold: c.hold_write,
            },
        ))
    }

    /// Completes a write that did not complete when the buffer accepted it. Returns the time at
    /// which the host has its acknowledgement.
    #[allow(clippy::too_many_arguments)]
    fn complete_written(
        &mut self,
        job: &DriveJob,
        accepted: &Accepted,
        at: SimTime,
        ready: SimTime,
        full: SimTime,
        media_end: SimTime,
        legs: &[Leg],
    ) -> SimTime {
        let c = &self.controller;
        let through = job.request.fua || !self.applied_caching.write_back;
        let (disconnect, reselect) = match (&c.extra, accepted.extra) {
            _ if c.never_disconnect || !through => (Span::ZERO, Span::ZERO),
            (Some(x), true) => (x.second_disconnect, c.first_reselect),
            _ => (c.write_disconnect, c.first_reselect),
        };
        if !through {
            // The write is in the buffer once the media have made room. The host does not see the
            // time of the media.
            let completed = full + c.write_completion;
            let before = self.until_served(job, accepted.began);
            let breakdown = Breakdown {
                overhead: before.overhead + c.write_completion,
                bus: full.since(accepted.began),
                ..before
            };
            self.finish(job, completed, breakdown, ServedBy::Buffer);
            return completed;
        }
        let status = media_end.max(full + disconnect);
        let completed = status + reselect + c.write_completion;
        let mut breakdown = time_breakdown(legs, at, ready, job, self.until_served(job, at));
        breakdown.bus = status.since(media_end);
        breakdown.overhead += reselect + c.write_completion;
        self.finish(job, completed, breakdown, ServedBy::Media);
        completed
    }
}

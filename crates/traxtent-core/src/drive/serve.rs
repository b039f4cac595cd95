//! How each kind of request is served, from its arrival to its completion.

use super::bus::{self, Delivery, Ramp, deliver, nth, ramps_of};
use super::cache::{ReadPlace, State, WritePlace};
use super::readahead::ReadAheadRun;
use super::sweep::{Access, Inflow, Leg, sweep};
use super::{
    Accepted, Arm, Breakdown, Completion, Drive, Job, LastWrite, PendingFlush, Served, Tag,
};
use crate::mechanics::Position;
use crate::profile::ReadAheadUntil;
use crate::request::{Op, Request};
use crate::units::{Lbn, Sectors, SimTime, Span};

/// Where the first wanted sectors of a read are, when the media must give the others.
#[derive(Clone, Copy)]
struct Fill {
    segment: Option<usize>,
    /// The first sector that is not in the buffer.
    from: Lbn,
    /// Whether the buffer has, or is about to have, the first sector.
    hit: bool,
}

impl Drive {
    pub(super) fn read_arrives(
        &mut self,
        tag: Tag,
        now: SimTime,
        begun: SimTime,
        request: Request,
    ) {
        let after_read = self.last_was_read;
        let c = &self.controller;
        let command = c.read_miss.get(after_read) + c.read_disconnect.get(after_read);
        self.bus.advance(now);
        let begun = self.bus.command(begun, command);
        let ready = begun + self.controller.read_miss.get(after_read);
        let job = Job {
            tag,
            request,
            submitted: now,
            ready,
            off_bus: ready + self.controller.read_disconnect.get(after_read),
            after_read,
            accepted: None,
        };
        if self.arm_is_free() {
            self.start_read(job, begun, true);
        } else if let Some(segment) = self.hit_while_busy(begun, &job) {
            let from =
                begun + self.controller.read_hit.get(after_read) + self.controller.data_preparation;
            self.deliver_hit(&job, segment, begun, from);
        } else {
            self.waiting.push(job);
        }
    }

    /// The segment that holds all of a read and is not in use, if there is one and the drive looks.
    fn hit_while_busy(&self, now: SimTime, job: &Job) -> Option<usize> {
        let overtakes =
            |other: &Job| other.is_write() && other.accepted.is_none() && other.overlaps(job);
        if !self.profile.cache.hits_while_busy
            || job.request.fua
            || job.request.op == Op::Verify
            || self.waiting.iter().any(overtakes)
        {
            return None;
        }
        match self.cache.find_read(now, job.request.lbn, job.end()) {
            ReadPlace::Whole(segment) if self.cache.segment(segment).busy_until <= now => {
                Some(segment)
            }
            _ => None,
        }
    }

    fn arm_is_free(&self) -> bool {
        !matches!(self.arm, Arm::Access { .. }) && self.waiting.is_empty()
    }

    /// Serves a read now that the arm is its own; `arriving` if it has just come over the bus.
    pub(super) fn start_read(&mut self, job: Job, at: SimTime, arriving: bool) {
        self.schedule.serve(job.request.lbn, job.end());
        self.observe_read_ahead(at);
        let Request { lbn, op, fua, .. } = job.request;
        if op == Op::Verify || fua {
            let fill = Fill {
                segment: None,
                from: lbn,
                hit: false,
            };
            return self.read_media(job, at, arriving, fill);
        }
        match self.cache.find_read(at, lbn, job.end()) {
            ReadPlace::Whole(segment) => self.read_buffer(job, at, arriving, segment),
            ReadPlace::Partial(segment) => {
                let fill = Fill {
                    segment: Some(segment),
                    from: self.cache.segment(segment).end,
                    hit: true,
                };
                self.read_media(job, at, arriving, fill);
            }
            ReadPlace::Miss(segment) => {
                let fill = Fill {
                    segment: Some(segment),
                    from: lbn,
                    hit: false,
                };
                self.read_media(job, at, arriving, fill);
            }
            // Whatever held it back is on its way to the media now.
            ReadPlace::Blocked => self.read_media(
                job,
                at,
                arriving,
                Fill {
                    segment: None,
                    from: lbn,
                    hit: false,
                },
            ),
        }
    }

    /// When the bus may carry data for a request that found some in the buffer.
    fn hit_from(&self, job: &Job, at: SimTime, arriving: bool) -> SimTime {
        let c = &self.controller;
        let taken = if arriving {
            at + c.read_hit.get(job.after_read)
        } else {
            at.max(job.off_bus) + c.first_reselect
        };
        taken + c.data_preparation
    }

    /// A read whose sectors are all in the buffer.
    fn read_buffer(&mut self, job: Job, at: SimTime, arriving: bool, segment: usize) {
        let from = self.hit_from(&job, at, arriving);
        let then = match std::mem::replace(&mut self.arm, Arm::Idle) {
            Arm::ReadAhead(mut run) if run.segment == segment => {
                self.bound_read_ahead(segment, &job.request);
                run.extend(self.cache.segment(segment).ahead_limit);
                Some(run)
            }
            arm => {
                self.arm = arm;
                let free = self.take_arm(at);
                self.go_on_reading(&job, segment, free)
            }
        };
        let (sent, acknowledged) = self.deliver_hit(&job, segment, at, from);
        self.arm = Arm::Access {
            release: self.release_time(at, sent, acknowledged),
            then,
            writing: None,
        };
    }

    /// Read-ahead that an idle arm takes up again after a hit.
    fn go_on_reading(&mut self, job: &Job, segment: usize, free: SimTime) -> Option<ReadAheadRun> {
        let end = self.cache.segment(segment).end;
        if !self.profile.cache.read_ahead.on_idle_hit
            || self.cache.segment(segment).state != State::Clean
        {
            return None;
        }
        self.bound_read_ahead(segment, &job.request);
        let limit = self.cache.segment(segment).ahead_limit;
        if limit <= end {
            return None;
        }
        self.cache.set_reading(segment, true);
        Some(ReadAheadRun::new(
            segment,
            end,
            limit,
            self.position,
            free.max(job.ready),
        ))
    }

    /// Sends a whole hit to the host; returns when it has been sent, and acknowledged.
    fn deliver_hit(
        &mut self,
        job: &Job,
        segment: usize,
        at: SimTime,
        from: SimTime,
    ) -> (SimTime, SimTime) {
        self.bus.advance(at);
        let length = Span(self.controller.read_sector.0 * u64::from(job.request.sectors));
        let after = self.controller.read_completion;
        let sent = self.bus.take(from, length, after) + length;
        self.cache.hit(segment);
        self.cache.hold(segment, sent);
        if self.profile.cache.drop_delivered {
            self.cache.drop_before(segment, job.end());
        }
        let completed = sent + self.controller.read_completion;
        let before = self.until_served(job, at);
        let breakdown = Breakdown {
            overhead: before.overhead + from.since(at) + self.controller.read_completion,
            bus: sent.since(from),
            ..before
        };
        self.finish(job, completed, breakdown, Served::Buffer);
        (sent, completed)
    }

    /// A read that needs the media for some of its sectors.
    fn read_media(&mut self, job: Job, at: SimTime, arriving: bool, fill: Fill) {
        let (lbn, end) = (job.request.lbn, job.end());
        let verify = job.request.op == Op::Verify;
        let mut legs = std::mem::take(&mut self.legs);
        let mut ramps = std::mem::take(&mut self.ramps);
        legs.clear();
        ramps.clear();

        // Media: on from where read-ahead is, or from wherever the head is.
        let (from, position, ready) = match &self.arm {
            Arm::ReadAhead(run) if fill.hit && Some(run.segment) == fill.segment => run.hand_over(),
            _ => {
                let free = self.take_arm(at);
                (fill.from, self.position, arm_ready(&job, at, free))
            }
        };
        let going_on = matches!(self.arm, Arm::ReadAhead(_));
        self.arm = Arm::Idle;
        if let Some(segment) = fill.segment {
            if fill.hit {
                self.cache.hit(segment);
                self.cache.set_reading(segment, true);
            } else {
                self.cache.begin_read(segment, lbn);
            }
        }
        let access = Access {
            lbn: from,
            sectors: (end.0 - from.0) as u32,
            write: false,
            zero_latency: self.profile.access.zero_latency_read && !going_on,
            inflow: None,
            not_before: SimTime::ZERO,
        };
        let (position, media_end) = self.sweep(position, ready, &access, &mut legs);
        self.position = position;

        // Bus: what is in the buffer first, the rest as it comes.
        if fill.from > lbn {
            ramps.push(Ramp {
                sectors: (fill.from.0 - lbn.0) as u32,
                first: at,
                last: at,
            });
        }
        let buffered = ramps.len();
        legs.iter()
            .for_each(|leg| ramps_of(leg, self.controller.when_complete, &mut ramps));
        skip(
            &mut ramps,
            buffered,
            (fill.from.0.saturating_sub(from.0)) as u32,
        );
        let sent = if verify {
            media_end
        } else {
            let first = match buffered {
                0 => legs[0].first_passed(self.mechanics.revolution()),
                _ => at,
            };
            self.deliver(&job, at, arriving, fill.hit, &ramps, (first, media_end))
        };
        let completed = sent + self.controller.read_completion;

        // Buffer: what is kept, and what is read ahead.
        let then = fill.segment.and_then(|segment| {
            if !fill.hit && self.keeps_what_passed() {
                let start = self.first_on_arrival(&legs[0]);
                self.cache.extend_front(segment, start);
            }
            self.cache.fill_to(segment, end);
            self.cache.hold(segment, sent);
            if self.profile.cache.drop_delivered {
                self.cache.drop_before(segment, end);
            }
            self.bound_read_ahead(segment, &job.request);
            let limit = self.cache.segment(segment).ahead_limit;
            if limit > end {
                Some(ReadAheadRun::new(segment, end, limit, position, media_end))
            } else {
                self.cache.set_reading(segment, false);
                None
            }
        });

        let mut breakdown = account(&legs, at, ready, &job, self.until_served(&job, at));
        breakdown.bus = sent.since(media_end);
        breakdown.overhead += self.controller.read_completion;
        let served = if fill.from > lbn {
            Served::Both
        } else {
            Served::Media
        };
        self.finish(&job, completed, breakdown, served);
        self.arm = Arm::Access {
            release: self.release_time(media_end, sent, completed),
            then,
            writing: None,
        };
        (self.legs, self.ramps) = (legs, ramps);
    }

    /// Carries a read's sectors to the host; returns when the last one is there.
    fn deliver(
        &mut self,
        job: &Job,
        at: SimTime,
        arriving: bool,
        hit: bool,
        ramps: &[Ramp],
        media: (SimTime, SimTime),
    ) -> SimTime {
        let c = &self.controller;
        let cache = &self.profile.cache;
        let watermark = if cache.watermark_of_request {
            f64::from(cache.segment_sectors.min(job.request.sectors)) * cache.read_watermark
        } else {
            (f64::from(cache.segment_sectors) * cache.read_watermark).ceil()
        };
        let manners = Delivery {
            per_sector: c.read_sector,
            hold: c.hold_read,
            watermark: (watermark as u32).max(1),
            connect: c.first_reselect + c.data_preparation,
            disconnect: c.read_disconnect.get(job.after_read),
        };
        let (from, connected) = if hit && arriving {
            (self.hit_from(job, at, arriving), true)
        } else if c.never_disconnect && arriving {
            (job.ready + c.data_preparation, true)
        } else {
            (job.off_bus.max(at), false)
        };
        let in_order = c.in_order;
        let around = match connected {
            true => (Span::ZERO, c.read_completion),
            false => (manners.connect, c.read_completion),
        };
        self.bus.advance(at);
        let (_, sent) = self.bus.carry(from, around, |from| match in_order {
            true => deliver(&manners, ramps, from, connected),
            false => bus::deliver_any_order(&manners, ramps, from, media, connected),
        });
        sent
    }

    /// Whether sectors that passed before the wanted ones are kept this time.
    fn keeps_what_passed(&mut self) -> bool {
        let access = &self.profile.access;
        // Nothing is drawn where all or none are kept.
        access.read_on_arrival
            && (access.read_on_arrival_share >= 1.0
                || self.keeping.chance(access.read_on_arrival_share))
    }

    /// The first sector that a drive which reads on arrival has buffered when it comes to the wanted ones.
    fn first_on_arrival(&self, leg: &Leg) -> Lbn {
        let track = &leg.piece.track;
        let slot = self.mechanics.next_slot(track, leg.landed);
        let before = leg.piece.lbn.0 - track.first_lbn.0;
        // Where the wanted sectors have gone by in part, the track's first ones come before them.
        let passed = (leg.piece.first_slot + track.slots - slot) % track.slots;
        leg.piece.lbn - Sectors(u64::from(passed).min(before))
    }

    /// How far read-ahead for a request goes.
    fn bound_read_ahead(&mut self, segment: usize, request: &Request) {
        let ahead = &self.profile.cache.read_ahead;
        let size = u64::from(self.profile.cache.segment_sectors);
        let capacity = self.geometry.capacity().0;
        let end = request.end();
        let limit = match ahead.until {
            _ if !self.in_force.read_ahead => end,
            ReadAheadUntil::None => end,
            // A read that ends with its track has not run on: the track that counts is that of its last sector.
            ReadAheadUntil::AdaptiveTrackEnd => match self.geometry.track_of(Lbn(end.0 - 1)) {
                None => end,
                Some(track) => {
                    let track_end = track.end_lbn();
                    if self.cache.segment(segment).start < track.first_lbn {
                        track_end + Sectors(u64::from(track.sectors))
                    } else {
                        track_end
                    }
                }
            },
            _ if ahead.max_sectors > 0 => end + Sectors(u64::from(ahead.max_sectors)),
            _ if ahead.max_from_request_start => {
                let n = u64::from(request.sectors);
                if n >= size || size - n < u64::from(ahead.min_sectors) {
                    end + Sectors(u64::from(ahead.min_sectors))
                } else {
                    request.lbn + Sectors(size)
                }
            }
            _ => end + Sectors(size),
        };
        let least = Lbn((end.0 + u64::from(ahead.min_sectors)).min(capacity));
        self.cache
            .bound_ahead(segment, least, limit.min(Lbn(capacity)));
    }

    pub(super) fn write_arrives(
        &mut self,
        tag: Tag,
        now: SimTime,
        begun: SimTime,
        request: Request,
    ) {
        let after_read = self.last_was_read;
        let c = &self.controller;
        let overhead = if !self.in_force.write_back {
            c.write_miss
        } else {
            c.write_hit
        }
        .get(after_read);
        let disconnect = c.write_disconnect;
        self.bus.advance(now);
        let begun = self.bus.command(begun, overhead + disconnect);
        let mut job = Job {
            tag,
            request,
            submitted: now,
            ready: begun + overhead,
            off_bus: begun + overhead + disconnect,
            after_read,
            accepted: None,
        };
        if self.arm_is_free() {
            self.take_arm(begun);
            self.accept(&mut job, begun, true);
            return self.start_write(job, begun);
        }
        if let Some(place) = self.place_beside(&job, begun) {
            self.accept_at(&mut job, begun, true, place);
        }
        self.waiting.push(job);
    }

    /// Where a write goes that does not have the arm, if the drive takes it by now: data go to the buffer while the arm
    /// is busy if the drive does that, or if they continue what is there and nobody has waited for longer.
    fn place_beside(&self, job: &Job, now: SimTime) -> Option<WritePlace> {
        let before = || self.waiting.iter().filter(|other| other.tag < job.tag);
        let place = self.cache.find_write(now, job.request.lbn, job.end());
        let alone = before().all(|other| other.accepted.is_some());
        let take = match place {
            WritePlace::Blocked => false,
            WritePlace::Append(_) => alone || self.profile.cache.writes_while_busy,
            WritePlace::Fresh(_) => self.profile.cache.writes_while_busy,
        };
        (take && !before().any(|other| other.overlaps(job))).then_some(place)
    }

    /// Takes the waiting writes for which the buffer has room again, while the arm is busy with another.
    pub(super) fn take_waiting_writes(&mut self, now: SimTime) {
        for index in 0..self.waiting.len() {
            let job = &self.waiting[index];
            if !job.is_write() || job.accepted.is_some() {
                continue;
            }
            if let Some(place) = self.place_beside(job, now) {
                let mut job = *job;
                self.accept_at(&mut job, now, false, place);
                self.waiting[index] = job;
            }
        }
    }

    /// Takes a write that waited for the arm into the buffer, if it is not there.
    pub(super) fn accept_waiting(&mut self, job: &mut Job, at: SimTime) {
        if job.accepted.is_none() {
            self.accept(job, at, false);
        }
    }

    /// Takes a write into the buffer at a time when there is room.
    fn accept(&mut self, job: &mut Job, at: SimTime, arriving: bool) {
        let place = match self.cache.find_write(at, job.request.lbn, job.end()) {
            WritePlace::Blocked => WritePlace::Fresh(self.cache.oldest_for_write()),
            place => place,
        };
        self.accept_at(job, at, arriving, place);
    }

    fn accept_at(&mut self, job: &mut Job, at: SimTime, arriving: bool, place: WritePlace) {
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
        let length = Span(c.write_sector.0 * u64::from(sectors));
        self.bus.advance(at);
        let start = self.bus.take(from, length, c.write_completion);
        let full = start + length;
        let edges = self.held_edges(lbn, job.end());
        let segment = self.cache.accept(place, lbn, job.end());
        self.cache.hold(segment, full);
        let in_buffer =
            !fua && self.in_force.write_back && sectors <= self.profile.cache.segment_sectors;
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
                Served::Buffer,
            );
        }
        job.accepted = Some(Accepted {
            segment,
            inflow: Inflow {
                from: start,
                per_sector: self.controller.write_sector,
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

    /// Brings a write to the media now that the arm is its own.
    pub(super) fn start_write(&mut self, job: Job, at: SimTime) {
        self.schedule.serve(job.request.lbn, job.end());
        let free = self.take_arm(at);
        let Some(accepted) = job.accepted else { return };
        let (lbn, end) = (job.request.lbn, job.end());
        let mut legs = std::mem::take(&mut self.legs);
        legs.clear();

        let ready = arm_ready(&job, at, free);
        let joined = accepted.appended || self.profile.cache.combine_writes && accepted.full <= at;
        let streaming = joined && self.last_write.media_end == at && self.last_write.end == lbn;
        let inflow = (accepted.full > ready).then_some(accepted.inflow);
        let lbn = if streaming { self.left_of(&job) } else { lbn };
        let (first, last) = self.physical_bounds(lbn, end);
        let position = self.position;
        let (position, from) =
            self.read_edges(position, ready, (lbn, end), accepted.edges, &mut legs);
        let modify = !legs.is_empty();
        let access = Access {
            lbn: first,
            sectors: (last.0 - first.0) as u32,
            write: true,
            zero_latency: self.profile.access.zero_latency_write,
            inflow: inflow.filter(|_| !modify),
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
        let (position, media_end) = self.sweep(position, from, &access, &mut legs);
        self.position = position;
        self.last_write = LastWrite {
            media_end,
            end,
            written: if self.cache.will_write(end, last) {
                last
            } else {
                end
            },
        };

        let full = self.all_taken(&job, &accepted, &legs);
        let acknowledged = if accepted.completed {
            full + self.controller.write_completion
        } else {
            self.complete_written(&job, &accepted, at, ready, full, media_end, &legs)
        };
        let sent = acknowledged - self.controller.write_completion;
        self.arm = Arm::Access {
            release: self.release_time(media_end, sent, acknowledged),
            then: None,
            writing: Some((accepted.segment, end)),
        };
        self.legs = legs;
        self.note_written(job.tag, media_end);
    }

    /// When the buffer has taken all of a write, which may be larger than its segment.
    fn all_taken(&mut self, job: &Job, accepted: &Accepted, legs: &[Leg]) -> SimTime {
        let (sectors, size) = (job.request.sectors, self.profile.cache.segment_sectors);
        if sectors <= size {
            return accepted.full;
        }
        self.ramps.clear();
        legs.iter()
            .for_each(|leg| ramps_of(leg, false, &mut self.ramps));
        let drained = nth(&self.ramps, sectors - size);
        accepted
            .full
            .max(drained + Span(self.controller.write_sector.0 * u64::from(size.min(sectors))))
    }

    /// Completes a write that was not complete in the buffer; returns when the host has its acknowledgement.
    #[allow(clippy::too_many_arguments)]
    fn complete_written(
        &mut self,
        job: &Job,
        accepted: &Accepted,
        at: SimTime,
        ready: SimTime,
        full: SimTime,
        media_end: SimTime,
        legs: &[Leg],
    ) -> SimTime {
        let c = &self.controller;
        let through = job.request.fua || !self.in_force.write_back;
        let (disconnect, reselect) = match (&c.extra, accepted.extra) {
            _ if c.never_disconnect || !through => (Span::ZERO, Span::ZERO),
            (Some(x), true) => (x.second_disconnect, c.first_reselect),
            _ => (c.write_disconnect, c.first_reselect),
        };
        if !through {
            // In the buffer as soon as the media have made room: the media's part is hidden.
            let completed = full + c.write_completion;
            let before = self.until_served(job, accepted.began);
            let breakdown = Breakdown {
                overhead: before.overhead + c.write_completion,
                bus: full.since(accepted.began),
                ..before
            };
            self.finish(job, completed, breakdown, Served::Buffer);
            return completed;
        }
        let status = media_end.max(full + disconnect);
        let completed = status + reselect + c.write_completion;
        let mut breakdown = account(legs, at, ready, job, self.until_served(job, at));
        breakdown.bus = status.since(media_end);
        breakdown.overhead += reselect + c.write_completion;
        self.finish(job, completed, breakdown, Served::Media);
        completed
    }

    pub(super) fn flush_arrives(&mut self, tag: Tag, now: SimTime, request: Request) {
        let latest = match &self.arm {
            Arm::Access {
                writing: Some(_), ..
            } => self.last_write.media_end.max(now),
            _ => now,
        };
        self.flushes.push(PendingFlush {
            tag,
            request,
            submitted: now,
            latest: latest.max(self.stalled),
        });
        self.finish_flushes();
    }

    /// Notes that the write of the given name leaves the media at the given time.
    fn note_written(&mut self, tag: Tag, media_end: SimTime) {
        if !self.flushes.is_empty() {
            for flush in self.flushes.iter_mut().filter(|flush| tag < flush.tag) {
                flush.latest = flush.latest.max(media_end);
            }
            self.finish_flushes();
        }
    }

    /// Completes the flushes before which no write is waiting any more.
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
                    Served::Media
                } else {
                    Served::Buffer
                },
            });
            false
        });
        self.flushes = pending;
    }

    /// Appends the legs of an access for a request, and counts it.
    pub(super) fn sweep(
        &mut self,
        position: Position,
        ready: SimTime,
        access: &Access,
        legs: &mut Vec<Leg>,
    ) -> (Position, SimTime) {
        let before = legs.len();
        let end = sweep(self.platters(), position, ready, access, legs);
        self.accesses.count += 1;
        for leg in &legs[before..] {
            self.accesses.rotation += leg.rotation;
        }
        end
    }

    /// Where the time from a request's submission went until the drive began to serve it.
    fn until_served(&self, job: &Job, at: SimTime) -> Breakdown {
        let waited = at.since(job.submitted);
        let overhead = waited.min(self.controller.per_request);
        Breakdown {
            queue: waited.saturating_sub(overhead),
            overhead,
            ..Breakdown::default()
        }
    }

    fn finish(&mut self, job: &Job, completed: SimTime, breakdown: Breakdown, served: Served) {
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

/// When the arm may begin to move for a request that was taken up at `at`: the controller's work on the
/// command does not overlap with the end of what the arm abandons, which is `free` of it. (Measured
/// drives agree with DiskSim in this: HP C3323A and C2490A.)
fn arm_ready(job: &Job, at: SimTime, free: SimTime) -> SimTime {
    job.ready.max(at) + free.since(at)
}

/// Takes so many sectors off the front of the ramps from index `from` on.
fn skip(ramps: &mut Vec<Ramp>, from: usize, mut sectors: u32) {
    while sectors > 0 && from < ramps.len() {
        let ramp = &mut ramps[from];
        if ramp.sectors <= sectors {
            sectors -= ramp.sectors;
            ramps.remove(from);
        } else {
            *ramp = ramp.skip(sectors);
            sectors = 0;
        }
    }
}

/// Where the time from a request's submission to the end of its media access went: `at` the arm became its
/// own, as `b` tells, at `ready` the controller let it move.
fn account(legs: &[Leg], at: SimTime, ready: SimTime, job: &Job, mut b: Breakdown) -> Breakdown {
    let command = ready.min(job.ready).saturating_since(at);
    b.overhead += command;
    b.queue += ready.saturating_since(at).saturating_sub(command);
    // An access that goes on where read-ahead was began before it was asked for.
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
        // A landing that was held back counts as controller time.
        since(&mut b.overhead, begun);
        since(&mut b.seek, begun + seek);
        since(&mut b.head_switch, begun + seek + head_switch);
        since(&mut b.settle, leg.landed);
        since(&mut b.rotation, leg.landed + leg.rotation);
        since(&mut b.transfer, leg.end);
    }
    b
}

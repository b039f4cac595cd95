//! The handling of reads, from arrival to completion.

use super::bus::{self, BusBehaviour, Ramp, deliver, ramps_of};
use super::cache::{ReadPlace, State};
use super::oversize::ReadTransfers;
use super::readahead::ReadAheadRun;
use super::serve::{arm_ready, time_breakdown};
use super::sweep::{Access, Leg, sweep};
use super::{Arm, Breakdown, Drive, DriveJob, ServedBy, Tag};
use crate::mechanics::HeadPosition;
use crate::profile::ReadAheadUntil;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors, SimTime, Span};

/// The location of a read's first sectors, if the others must come from the media.
#[derive(Clone, Copy)]
struct Fill {
    segment: Option<usize>,
    /// The first sector that is not in the buffer.
    from: Lbn,
    /// Whether the first sector is in the buffer, or about to be.
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
        let begun = self.bus.reserve_command(begun, command);
        let ready = begun + self.controller.read_miss.get(after_read);
        let job = DriveJob {
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

    /// Returns the segment that holds all of a read and is not in use, if there is one and the
    /// drive checks for it.
    fn hit_while_busy(&self, now: SimTime, job: &DriveJob) -> Option<usize> {
        let overtakes =
            |other: &DriveJob| other.is_write() && other.accepted.is_none() && other.overlaps(job);
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

    /// Serves a read that now has the arm. `arriving` is true if its command has just come over the
    /// bus.
    pub(super) fn start_read(&mut self, job: DriveJob, at: SimTime, arriving: bool) {
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
            // The writes that blocked it are now on their way to the media.
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

    /// The time from which the bus may transfer data for a request that found some in the buffer.
    fn hit_from(&self, job: &DriveJob, at: SimTime, arriving: bool) -> SimTime {
        let c = &self.controller;
        let taken = if arriving {
            at + c.read_hit.get(job.after_read)
        } else {
            at.max(job.off_bus) + c.first_reselect
        };
        taken + c.data_preparation
    }

    /// Serves a read whose sectors are all in the buffer.
    fn read_buffer(&mut self, job: DriveJob, at: SimTime, arriving: bool, segment: usize) {
        let from = self.hit_from(&job, at, arriving);
        let then = match std::mem::replace(&mut self.arm, Arm::Idle) {
            Arm::ReadAhead(mut run) if run.segment == segment => {
                self.bound_read_ahead(segment, &job.request);
                run.set_limit(self.cache.segment(segment).ahead_limit);
                Some(run)
            }
            arm => {
                self.arm = arm;
                let free = self.take_arm(at);
                self.resume_read_ahead(&job, segment, free)
            }
        };
        let (sent, acknowledged) = self.deliver_hit(&job, segment, at, from);
        self.arm = Arm::Access {
            release: self.release_time(at, sent, acknowledged),
            then,
            writing: None,
        };
    }

    /// Returns the read-ahead that an idle arm resumes after a hit.
    fn resume_read_ahead(
        &mut self,
        job: &DriveJob,
        segment: usize,
        free: SimTime,
    ) -> Option<ReadAheadRun> {
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
        let since = free.max(job.ready);
        let run = ReadAheadRun::new(segment, end, limit, self.position, since);
        match self.profile.cache.read_ahead.on_arrival {
            true => Some(run.on_arrival(since)),
            false => Some(run),
        }
    }

    /// Sends the data of a full hit to the host. Returns the times at which they have been sent,
    /// and acknowledged.
    fn deliver_hit(
        &mut self,
        job: &DriveJob,
        segment: usize,
        at: SimTime,
        from: SimTime,
    ) -> (SimTime, SimTime) {
        self.bus.advance(at);
        let length = Span(self.controller.read_sector.0 * u64::from(job.request.sectors));
        let after = self.controller.read_completion;
        let sent = self.bus.reserve(from, length, after) + length;
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
        self.finish(job, completed, breakdown, ServedBy::Buffer);
        (sent, completed)
    }

    /// Serves a read that needs the media for some of its sectors.
    fn read_media(&mut self, job: DriveJob, at: SimTime, arriving: bool, fill: Fill) {
        let (lbn, end) = (job.request.lbn, job.end());
        let verify = job.request.op == Op::Verify;
        let mut legs = std::mem::take(&mut self.legs);
        let mut ramps = std::mem::take(&mut self.ramps);
        legs.clear();
        ramps.clear();

        // Media: continue from the position of read-ahead, or from the current position of the
        // head.
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
            zero_latency: match going_on {
                true => self.profile.cache.read_ahead.on_arrival,
                false => self.profile.access.zero_latency_read,
            },
            inflow: None,
            not_before: SimTime::ZERO,
        };
        let (position, media_end) = match self.outflow(&job, at, arriving, fill) {
            Some(mut outflow) => {
                let known = Access {
                    sectors: (fill.from.0.saturating_sub(from.0)) as u32,
                    ..access
                };
                let rest = Access {
                    lbn: from + Sectors(u64::from(known.sectors)),
                    sectors: access.sectors - known.sectors,
                    ..access
                };
                let start = sweep(self.access_model(), position, ready, &known, &mut legs);
                self.sweep_read(start, &rest, &mut outflow, &mut legs)
            }
            None => self.sweep(position, ready, &access, &mut legs),
        };
        self.position = position;

        // Bus: first the sectors in the buffer, then the others as they arrive.
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

        // Buffer: the sectors that are kept, and those that are read ahead.
        let then = fill.segment.and_then(|segment| {
            if !fill.hit && self.keeps_passed_sectors() {
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
                let run = |next, since| ReadAheadRun::new(segment, next, limit, position, since);
                if self.profile.cache.read_ahead.on_arrival {
                    let (next, since) = self.rest_of_track(&mut legs, end, limit, media_end);
                    Some(run(next, since).on_arrival(media_end))
                } else {
                    Some(run(end, media_end))
                }
            } else {
                self.cache.set_reading(segment, false);
                None
            }
        });

        let mut breakdown = time_breakdown(&legs, at, ready, &job, self.until_served(&job, at));
        breakdown.bus = sent.since(media_end);
        breakdown.overhead += self.controller.read_completion;
        let served = if fill.hit {
            ServedBy::Both
        } else {
            ServedBy::Media
        };
        self.finish(&job, completed, breakdown, served);
        self.arm = Arm::Access {
            release: self.release_time(media_end, sent, completed),
            then,
            writing: None,
        };
        (self.legs, self.ramps) = (legs, ramps);
    }

    /// The drive's behaviour on the bus for a read, the time from which it may use the bus, and
    /// whether it is already connected.
    fn bus_behaviour(
        &self,
        job: &DriveJob,
        at: SimTime,
        arriving: bool,
        hit: bool,
    ) -> (BusBehaviour, SimTime, bool) {
        let c = &self.controller;
        let cache = &self.profile.cache;
        let watermark = if cache.watermark_of_request {
            f64::from(cache.segment_sectors.min(job.request.sectors)) * cache.read_watermark
        } else {
            (f64::from(cache.segment_sectors) * cache.read_watermark).ceil()
        };
        let bus_behaviour = BusBehaviour {
            per_sector: c.read_sector,
            hold: c.hold_read,
            watermark: (watermark as u32).max(1),
            connect: c.first_reselect + c.data_preparation,
            disconnect: c.read_disconnect.get(job.after_read),
        };
        if hit && arriving {
            (bus_behaviour, self.hit_from(job, at, arriving), true)
        } else if c.never_disconnect && arriving {
            (bus_behaviour, job.ready + c.data_preparation, true)
        } else {
            (bus_behaviour, job.off_bus.max(at), false)
        }
    }

    /// Returns the transfers of a read that is larger than its segment and may leave it more slowly
    /// than it arrives. Returns `None` for other reads.
    fn outflow(
        &self,
        job: &DriveJob,
        at: SimTime,
        arriving: bool,
        fill: Fill,
    ) -> Option<ReadTransfers> {
        let size = self.profile.cache.segment_sectors;
        let sectors = job.request.sectors;
        if sectors <= size || job.request.op == Op::Verify || !self.controller.in_order {
            return None;
        }
        let track = self.geometry.track_of(job.request.lbn)?;
        let passes = Span(self.mechanics.revolution().0 / u64::from(track.slots));
        let (bus_behaviour, from, connected) = self.bus_behaviour(job, at, arriving, fill.hit);
        let may_be_late = bus_behaviour.per_sector > passes || bus_behaviour.watermark > 1;
        let buffered = (fill.from.0 - job.request.lbn.0) as u32;
        may_be_late
            .then(|| ReadTransfers::new(bus_behaviour, (from, connected), size, sectors, buffered))
    }

    /// Transfers a read's sectors to the host and returns the end of the last transfer.
    fn deliver(
        &mut self,
        job: &DriveJob,
        at: SimTime,
        arriving: bool,
        hit: bool,
        ramps: &[Ramp],
        media: (SimTime, SimTime),
    ) -> SimTime {
        let (bus_behaviour, from, connected) = self.bus_behaviour(job, at, arriving, hit);
        let c = &self.controller;
        let in_order = c.in_order;
        let around = match connected {
            true => (Span::ZERO, c.read_completion),
            false => (bus_behaviour.connect, c.read_completion),
        };
        self.bus.advance(at);
        let (_, sent) = self
            .bus
            .reserve_transfer(from, around, |from| match in_order {
                true => deliver(&bus_behaviour, ramps, from, connected),
                false => bus::deliver_any_order(&bus_behaviour, ramps, from, media, connected),
            });
        sent
    }

    /// Returns whether this read keeps sectors that passed before the wanted ones.
    fn keeps_passed_sectors(&mut self) -> bool {
        let access = &self.profile.access;
        // No random number is drawn if all or none are kept.
        access.read_on_arrival
            && (access.read_on_arrival_share >= 1.0
                || self.on_arrival_rng.chance(access.read_on_arrival_share))
    }

    /// The first sector that a drive which reads on arrival has in its buffer when it reaches the
    /// wanted ones.
    fn first_on_arrival(&self, leg: &Leg) -> Lbn {
        let track = &leg.piece.track;
        let slot = self.mechanics.next_slot(track, leg.landed);
        let before = leg.piece.lbn.0 - track.first_lbn.0;
        // If the head lands within the wanted sectors, it passes the track's first sectors before
        // it reaches the wanted ones again.
        let passed = (leg.piece.first_slot + track.slots - slot) % track.slots;
        leg.piece.lbn - Sectors(u64::from(passed).min(before))
    }

    /// Returns the LBN and time from which read-ahead on arrival continues after a request with
    /// these legs. Sectors in the rest of the last leg's track are in the buffer if they passed
    /// after the head arrived there.
    fn rest_of_track(
        &self,
        legs: &mut Vec<Leg>,
        end: Lbn,
        limit: Lbn,
        media_end: SimTime,
    ) -> (Lbn, SimTime) {
        let count = legs.len();
        let leg = &legs[count - 1];
        let landed = leg.landed;
        let track_end = leg.piece.track.end_lbn().min(limit);
        if track_end <= end {
            return (end, media_end);
        }
        let access = Access {
            lbn: end,
            sectors: (track_end.0 - end.0) as u32,
            write: false,
            zero_latency: true,
            inflow: None,
            not_before: SimTime::ZERO,
        };
        let position = HeadPosition::from(&leg.piece.track);
        // Appended after the request's own legs.
        let (_, passed) = sweep(self.access_model(), position, landed, &access, legs);
        legs.truncate(count);
        match passed < media_end {
            true => (track_end, media_end),
            false => (end, landed),
        }
    }

    /// Sets the bounds of read-ahead after a request.
    fn bound_read_ahead(&mut self, segment: usize, request: &Request) {
        let ahead = &self.profile.cache.read_ahead;
        let size = u64::from(self.profile.cache.segment_sectors);
        let capacity = self.geometry.capacity().0;
        let end = request.end();
        let limit = match ahead.until {
            _ if !self.applied_caching.read_ahead => end,
            ReadAheadUntil::None => end,
            // The track of the read's last sector decides, because a read that ends with its track
            // has not reached the next one.
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
        let limit = limit.min(Lbn(capacity));
        self.cache.bound_ahead(segment, least, limit);
        self.cache.deliver(segment, request.lbn, end);
    }
}

/// Removes `sectors` sectors from the front of the ramps from index `from` on.
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

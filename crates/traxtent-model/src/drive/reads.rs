//! The handling of reads, from arrival to completion.

use super::bus::{self, BusBehaviour, Ramp, deliver, ramps_of};
use super::cache::{ReadPlace, State};
use super::oversize::ReadTransfers;
use super::readahead::ReadAheadRun;
use super::serve::{arm_ready, time_breakdown};
use super::sweep::{Access, Leg, leg, sweep};
use super::{Arm, Breakdown, Drive, DriveJob, ServedBy, Tag};
use crate::geometry::Track;
use crate::mechanics::HeadPosition;
use crate::profile::ReadAheadUntil;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Sectors, SimTime, Span};

/// The segment, if any, that a read from the media fills, and the first sector missing from the
/// buffer.
#[derive(Clone, Copy)]
struct Fill {
    segment: Option<usize>,
    /// The first sector that is not in the buffer.
    from: Lbn,
    /// Whether the first sector is in the buffer, or about to be.
    hit: bool,
}

impl Fill {
    /// A read whose first sector is not in the buffer.
    fn miss(segment: Option<usize>, from: Lbn) -> Fill {
        Fill {
            segment,
            from,
            hit: false,
        }
    }
}

/// A track whose sectors are all in the buffer at a known time, unless a command needs the arm
/// earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct WholeTrack {
    segment: usize,
    lbns: (Lbn, Lbn),
    at: SimTime,
}

/// A read that needs the media for some of its sectors.
#[derive(Clone, Copy)]
struct MediaRead<'a> {
    job: &'a DriveJob,
    /// The time at which it got the arm.
    at: SimTime,
    /// Whether its command has just come over the bus.
    arriving: bool,
    fill: Fill,
}

/// The state of the arm when a read of the media begins.
struct MediaStart {
    /// The first sector to be read. It precedes the first sector missing from the buffer if the
    /// read continues a leg of read-ahead that began earlier.
    from: Lbn,
    position: HeadPosition,
    /// The time from which the arm may move.
    ready: SimTime,
    zero_latency: bool,
}

impl MediaStart {
    /// The number of sectors to be read that are already in the buffer.
    fn already_buffered(&self, fill: Fill) -> u32 {
        fill.from.0.saturating_sub(self.from.0) as u32
    }
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
            continues: self.last_end == Some(request.lbn),
            accepted: None,
        };
        if self.arm_is_free() {
            self.start_read(&job, begun, true);
        } else if let Some(segment) = self.hit_while_busy(begun, &job) {
            let from =
                begun + self.controller.read_hit.get(after_read) + self.controller.data_preparation;
            self.deliver_hit(&job, segment, begun, from);
        } else {
            self.waiting.push(job);
        }
    }

    /// Returns the segment that holds all of a read and is not in use, if there is one and the
    /// drive checks for it. Returns `None` if the read must come from the media, or if a write of
    /// the same sectors waits outside the buffer.
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
    pub(super) fn start_read(&mut self, job: &DriveJob, at: SimTime, arriving: bool) {
        self.schedule.serve(job.request.lbn, job.end());
        self.observe_read_ahead(at);
        self.observe_whole_track(at);
        let Request { lbn, op, fua, .. } = job.request;
        let fill = if op == Op::Verify || fua {
            Fill::miss(None, lbn)
        } else {
            match self.cache.find_read(at, lbn, job.end()) {
                ReadPlace::Whole(segment) => return self.read_buffer(job, at, arriving, segment),
                ReadPlace::Partial(segment) => Fill {
                    segment: Some(segment),
                    from: self.cache.segment(segment).end,
                    hit: true,
                },
                ReadPlace::Miss(segment) => Fill::miss(Some(segment), lbn),
                // No segment can be used. Writes that block a read are served before it.
                ReadPlace::Blocked => Fill::miss(None, lbn),
            }
        };
        self.read_media(&MediaRead {
            job,
            at,
            arriving,
            fill,
        });
    }

    /// The time from which the bus may transfer data for a request that found some or all of its
    /// sectors in the buffer.
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
    fn read_buffer(&mut self, job: &DriveJob, at: SimTime, arriving: bool, segment: usize) {
        let from = self.hit_from(job, at, arriving);
        if self
            .read_ahead
            .as_ref()
            .is_some_and(|run| run.segment == segment)
        {
            self.bound_read_ahead(segment, job, None);
            let limit = self.cache.segment(segment).ahead_limit;
            if let Some(run) = &mut self.read_ahead {
                run.set_limit(limit);
            }
        } else {
            let free = self.take_arm(at);
            self.read_ahead = self.resume_read_ahead(job, segment, free);
        }
        let (sent, acknowledged) = self.deliver_hit(job, segment, at, from);
        self.arm = Arm::Access {
            release: self.release_time(at, sent, acknowledged),
            writing: None,
        };
    }

    /// Returns the read-ahead that an idle arm resumes after a hit, if the drive resumes one.
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
        self.bound_read_ahead(segment, job, None);
        let limit = self.cache.segment(segment).ahead_limit;
        if limit <= end {
            return None;
        }
        self.cache.set_reading(segment, true);
        let since = free.max(job.ready);
        let run = ReadAheadRun::new(segment, end, limit, self.position, since);
        if self.profile.cache.read_ahead.on_arrival {
            Some(run.on_arrival(since))
        } else {
            Some(run)
        }
    }

    /// Sends the data of a full hit to the host. Returns the times at which it has been sent and
    /// acknowledged.
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
    fn read_media(&mut self, read: &MediaRead<'_>) {
        let &MediaRead { job, at, fill, .. } = read;
        let mut legs = std::mem::take(&mut self.legs);
        let mut ramps = std::mem::take(&mut self.ramps);
        legs.clear();
        ramps.clear();

        let start = self.start_media(read);
        let media_end = self.sweep_media(read, &start, &mut legs);
        let sent = self.send_media(read, &start, media_end, &legs, &mut ramps);
        let completed = sent + self.controller.read_completion;
        if let Some(segment) = fill.segment {
            self.keep_media(read, segment, (media_end, sent), &mut legs);
        }

        let until_served = self.until_served(job, at);
        let mut breakdown = time_breakdown(&legs, at, start.ready, job, until_served);
        breakdown.bus = sent.since(media_end);
        breakdown.overhead += self.controller.read_completion;
        let served = if fill.hit {
            ServedBy::Both
        } else {
            ServedBy::Media
        };
        self.finish(job, completed, breakdown, served);
        self.arm = Arm::Access {
            release: self.release_time(media_end, sent, completed) + self.controller.choice,
            writing: None,
        };
        (self.legs, self.ramps) = (legs, ramps);
    }

    /// Takes the arm and a segment for a read. The arm continues read-ahead, or starts from its
    /// current position.
    #[inline]
    fn start_media(&mut self, read: &MediaRead<'_>) -> MediaStart {
        let &MediaRead { job, at, fill, .. } = read;
        let continued = self
            .read_ahead
            .as_ref()
            .filter(|run| fill.hit && Some(run.segment) == fill.segment)
            .map(ReadAheadRun::continuation);
        let (from, position, ready) = continued.unwrap_or_else(|| {
            let free = self.take_arm(at);
            (fill.from, self.position, arm_ready(job, at, free))
        });
        self.read_ahead = None;
        self.whole_track = None;
        if let Some(segment) = fill.segment {
            if fill.hit {
                self.cache.hit(segment);
                self.cache.set_reading(segment, true);
            } else {
                self.cache.begin_read(segment, job.request.lbn);
            }
        }
        MediaStart {
            from,
            position,
            ready,
            zero_latency: if continued.is_some() {
                self.profile.cache.read_ahead.on_arrival
            } else {
                self.profile.access.zero_latency_read
            },
        }
    }

    /// Reads the sectors of a read from the media. Returns the time at which the last has passed.
    #[inline]
    fn sweep_media(
        &mut self,
        read: &MediaRead<'_>,
        start: &MediaStart,
        legs: &mut Vec<Leg>,
    ) -> SimTime {
        let &MediaStart {
            from,
            position,
            ready,
            zero_latency,
        } = start;
        let access = Access {
            lbn: from,
            sectors: (read.job.end().0 - from.0) as u32,
            write: false,
            zero_latency,
            inflow: None,
            not_before: SimTime::ZERO,
        };
        let (position, media_end) = match self.read_transfers(read) {
            Some(mut read_transfers) => {
                let already_buffered = Access {
                    sectors: start.already_buffered(read.fill),
                    ..access
                };
                let rest = Access {
                    lbn: from + Sectors(u64::from(already_buffered.sectors)),
                    sectors: access.sectors - already_buffered.sectors,
                    ..access
                };
                let after = sweep(
                    self.access_model(),
                    position,
                    ready,
                    &already_buffered,
                    legs,
                );
                self.sweep_read(after, &rest, &mut read_transfers, legs)
            }
            None => self.sweep(position, ready, &access, legs),
        };
        self.position = position;
        media_end
    }

    /// Sends the sectors of a read to the host, first those in the buffer, then the others as they
    /// arrive. Returns the time at which the last has been sent. A verify sends nothing;
    /// `media_end` is then returned.
    #[inline]
    fn send_media(
        &mut self,
        read: &MediaRead<'_>,
        start: &MediaStart,
        media_end: SimTime,
        legs: &[Leg],
        ramps: &mut Vec<Ramp>,
    ) -> SimTime {
        let &MediaRead { job, at, fill, .. } = read;
        if fill.from > job.request.lbn {
            ramps.push(Ramp {
                sectors: (fill.from.0 - job.request.lbn.0) as u32,
                first: at,
                last: at,
            });
        }
        let buffered_ramps = ramps.len();
        legs.iter()
            .for_each(|leg| ramps_of(leg, self.controller.when_complete, ramps));
        skip(ramps, buffered_ramps, start.already_buffered(fill));
        if job.request.op == Op::Verify {
            return media_end;
        }
        let first = match buffered_ramps {
            0 => legs[0].first_passed(self.mechanics.revolution()),
            _ => at,
        };
        self.deliver(read, ramps, (first, media_end))
    }

    /// Keeps the sectors of a read in its segment, and plans the read-ahead that follows it. The
    /// read ended on the media at `media_end`, and was sent at `sent`.
    #[inline]
    fn keep_media(
        &mut self,
        read: &MediaRead<'_>,
        segment: usize,
        (media_end, sent): (SimTime, SimTime),
        legs: &mut Vec<Leg>,
    ) {
        let end = read.job.end();
        if !read.fill.hit && self.reads_ahead(read.job) && self.keeps_passed_sectors() {
            let start = self.first_on_arrival(&legs[0]);
            self.cache.extend_front(segment, start);
        }
        self.cache.fill_to(segment, end);
        self.cache.hold(segment, sent);
        if self.profile.cache.drop_delivered {
            self.cache.drop_before(segment, end);
        }
        let track = legs[legs.len() - 1].piece.track;
        self.bound_read_ahead(segment, read.job, Some(track));
        if self.profile.cache.read_ahead.whole_track
            && self.applied_caching.read_ahead
            && self.reads_ahead(read.job)
        {
            let last = &legs[legs.len() - 1];
            self.whole_track = Some(WholeTrack {
                segment,
                lbns: (track.first_lbn, track.end_lbn()),
                at: last.landed + self.mechanics.revolution(),
            });
        }
        let limit = self.cache.segment(segment).ahead_limit;
        if limit <= end {
            self.cache.set_reading(segment, false);
            return;
        }
        let run = ReadAheadRun::new(segment, end, limit, self.position, media_end);
        self.read_ahead = Some(if self.profile.cache.read_ahead.on_arrival {
            self.read_rest_of_track(legs, run.on_arrival(media_end), media_end)
        } else {
            run
        });
    }

    /// The drive's behaviour on the bus for a read, the time from which it may use the bus, and
    /// whether it is already connected.
    fn bus_behaviour(&self, read: &MediaRead<'_>) -> (BusBehaviour, SimTime, bool) {
        let MediaRead {
            job,
            at,
            arriving,
            fill,
        } = read;
        let c = &self.controller;
        let cache = &self.profile.cache;
        let watermark = if cache.watermark_of_request {
            let most = cache.segment_sectors.min(job.request.sectors);
            (f64::from(most) * cache.read_watermark) as u32
        } else {
            c.read_watermark
        };
        let bus_behaviour = BusBehaviour {
            per_sector: c.read_sector,
            hold: c.hold_read,
            watermark: watermark.max(1),
            connect: c.first_reselect + c.data_preparation,
            disconnect: c.read_disconnect.get(job.after_read),
        };
        if fill.hit && *arriving {
            (bus_behaviour, self.hit_from(job, *at, *arriving), true)
        } else if c.never_disconnect && *arriving {
            (bus_behaviour, job.ready + c.data_preparation, true)
        } else {
            (bus_behaviour, job.off_bus.max(*at), false)
        }
    }

    /// Returns the transfers of a read that is larger than its segment and whose data is sent in
    /// order, possibly more slowly than it arrives from the media. Returns `None` for other reads.
    fn read_transfers(&self, read: &MediaRead<'_>) -> Option<ReadTransfers> {
        let MediaRead { job, fill, .. } = read;
        let size = self.profile.cache.segment_sectors;
        let sectors = job.request.sectors;
        if sectors <= size || job.request.op == Op::Verify || !self.controller.in_order {
            return None;
        }
        let track = self.geometry.track_of(job.request.lbn)?;
        let slot_time = Span(self.mechanics.revolution().0 / u64::from(track.slots));
        let (bus_behaviour, from, connected) = self.bus_behaviour(read);
        let may_be_late = bus_behaviour.per_sector > slot_time || bus_behaviour.watermark > 1;
        let buffered = (fill.from.0 - job.request.lbn.0) as u32;
        may_be_late
            .then(|| ReadTransfers::new(bus_behaviour, (from, connected), size, sectors, buffered))
    }

    /// Transfers a read's sectors to the host and returns the end of the last transfer.
    fn deliver(
        &mut self,
        read: &MediaRead<'_>,
        ramps: &[Ramp],
        media: (SimTime, SimTime),
    ) -> SimTime {
        let (bus_behaviour, from, connected) = self.bus_behaviour(read);
        let c = &self.controller;
        let in_order = c.in_order;
        let around = if connected {
            (Span::ZERO, c.read_completion)
        } else {
            (bus_behaviour.connect, c.read_completion)
        };
        self.bus.advance(read.at);
        let (_, sent) = self.bus.reserve_transfer(from, around, |from| {
            if in_order {
                deliver(&bus_behaviour, ramps, from, connected)
            } else {
                bus::deliver_any_order(&bus_behaviour, ramps, from, media, connected)
            }
        });
        sent
    }

    /// Updates the segment of the track that is being read as a whole.
    pub(super) fn observe_whole_track(&mut self, now: SimTime) {
        if let Some(WholeTrack { segment, lbns, at }) = self.whole_track
            && now >= at
        {
            let held = self.cache.segment(segment);
            if held.state != State::Empty && (lbns.0..lbns.1).contains(&held.start) {
                self.cache.extend_front(segment, lbns.0);
            }
            self.whole_track = None;
        }
    }

    /// Returns whether a read makes the drive read more than it asks for.
    fn reads_ahead(&self, job: &DriveJob) -> bool {
        job.continues || !self.profile.cache.read_ahead.sequential_only
    }

    /// Returns whether this read keeps sectors that passed before the wanted ones.
    fn keeps_passed_sectors(&mut self) -> bool {
        let access = &self.profile.access;
        // No random number is drawn if the drive does not read on arrival, or if every read keeps
        // these sectors.
        access.read_on_arrival
            && (access.read_on_arrival_share >= 1.0
                || self.on_arrival_rng.chance(access.read_on_arrival_share))
    }

    /// For a drive that reads on arrival: the first sector in its buffer when the head reaches the
    /// wanted ones.
    fn first_on_arrival(&self, leg: &Leg) -> Lbn {
        let track = &leg.piece.track;
        let slot = self.mechanics.next_slot(track, leg.landed);
        let before = leg.piece.lbn.0 - track.first_lbn.0;
        // If the head lands after the first wanted slot, it passes the track's first sectors before
        // it reaches that slot again.
        let first_wanted = leg.piece.first_slot;
        let passed = first_wanted
            .checked_sub(slot)
            .unwrap_or_else(|| first_wanted + track.slots - slot);
        leg.piece.lbn - Sectors(u64::from(passed).min(before))
    }

    /// Continues `run`, a read-ahead on arrival, after a read that ended on the media at
    /// `media_end`, and returns it. The rest of the last leg's track is in the buffer if it has
    /// passed since the head arrived on that track.
    fn read_rest_of_track(
        &self,
        legs: &mut Vec<Leg>,
        run: ReadAheadRun,
        media_end: SimTime,
    ) -> ReadAheadRun {
        let count = legs.len();
        let last = &legs[count - 1];
        let (landed, track) = (last.landed, last.piece.track);
        let (end, track_end) = (run.next(), track.end_lbn().min(run.limit()));
        if track_end <= end {
            return run;
        }
        let rest = |lbn: Lbn| Access {
            lbn,
            sectors: (track_end.0 - lbn.0) as u32,
            write: false,
            zero_latency: true,
            inflow: None,
            not_before: SimTime::ZERO,
        };
        let model = self.access_model();
        let access = rest(end);
        let piece = model.piece_near(&track, end, access.sectors);
        let first = leg(
            model,
            (HeadPosition::from(&track), landed),
            piece,
            &access,
            0,
        );
        let mut passed = first.end;
        if first.next_lbn() < track_end {
            // `legs` is used as scratch space after the request's own legs.
            let from = HeadPosition::from(&first.piece.track);
            (_, passed) = sweep(model, from, passed, &rest(first.next_lbn()), legs);
            legs.truncate(count);
        }
        if passed < media_end {
            run.from(track_end, media_end)
        } else {
            run.from(end, landed).with_leg(&first)
        }
    }

    /// Sets the bounds of read-ahead after a request. `track` is that of the request's last sector,
    /// if it is known.
    fn bound_read_ahead(&mut self, segment: usize, job: &DriveJob, track: Option<Track>) {
        let request = &job.request;
        let ahead = &self.profile.cache.read_ahead;
        let size = u64::from(self.profile.cache.segment_sectors);
        let capacity = self.geometry.capacity().0;
        let end = request.end();
        let limit = match ahead.until {
            _ if !self.applied_caching.read_ahead || !self.reads_ahead(job) => end,
            ReadAheadUntil::None => end,
            // The track of the read's last sector decides: a read that ends at the end of a track
            // has not reached the next track.
            ReadAheadUntil::AdaptiveTrackEnd => {
                match track.or_else(|| self.geometry.track_of(Lbn(end.0 - 1))) {
                    None => end,
                    Some(track) => {
                        let track_end = track.end_lbn();
                        if self.cache.segment(segment).start < track.first_lbn {
                            track_end + Sectors(u64::from(track.sectors))
                        } else {
                            track_end
                        }
                    }
                }
            }
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

/// Removes `sectors` sectors from the ramps, beginning with the ramp at index `from`.
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

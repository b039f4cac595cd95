//! Requests larger than a segment of the buffer. The transfers between host and segment, and those
//! between segment and media, then delay each other.
//!
//! A sector of a write is transferred from the host only when the segment has room for it. A sector
//! of a read leaves the media only when the segment has room for it. A sector that is not ready
//! when it comes under the head waits for the next revolution, and so do the sectors after it.
//! DiskSim 4.0 does the same, sector by sector. A smaller write that is still arriving over a bus
//! slower than the media is computed in the same way.
//!
//! Left out: other requests that use the bus between two transfers of such a write.

use super::bus::{BusBehaviour, Ramp, nth, ramps_of};
use super::sweep::{Access, AccessModel, DataArrival, Leg, best_pass, pass};
use crate::mechanics::HeadPosition;
use traxtent_units::{Sectors, SimTime, Span};

/// The sectors that have passed under the head, in LBN order.
#[derive(Debug, Default)]
struct PassedSectors {
    ramps: Vec<Ramp>,
    /// The index of each ramp's first sector.
    starts: Vec<u64>,
    /// Sectors from here on have not passed yet, although a ramp may contain their times.
    end: u64,
}

impl PassedSectors {
    fn push(&mut self, leg: &Leg, when_complete: bool) {
        let from = self.ramps.len();
        ramps_of(leg, when_complete, &mut self.ramps);
        for index in from..self.ramps.len() {
            self.starts.push(self.end);
            self.end += u64::from(self.ramps[index].sectors);
        }
    }

    fn push_ramp(&mut self, ramp: Ramp) {
        self.starts.push(self.end);
        self.end += u64::from(ramp.sectors);
        self.ramps.push(ramp);
    }

    /// Removes all ramps but the first `count`, and sets the end.
    fn truncate(&mut self, count: usize, end: u64) {
        self.ramps.truncate(count);
        self.starts.truncate(count);
        self.end = end;
    }

    /// Returns the number of sectors that have passed at `now`.
    fn count(&self, now: SimTime) -> u64 {
        let last = self.ramps.partition_point(|ramp| ramp.first <= now);
        let passed = match last.checked_sub(1) {
            None => 0,
            Some(index) => self.starts[index] + u64::from(self.ramps[index].there(now)),
        };
        passed.min(self.end)
    }

    /// Returns the time at which sector `index` has passed, if it is known.
    fn time(&self, index: u64) -> Option<SimTime> {
        if index >= self.end {
            return None;
        }
        let ramp = self.starts.partition_point(|&start| start <= index) - 1;
        let within = (index - self.starts[ramp]) as u32;
        Some(nth(&self.ramps[ramp..=ramp], within + 1))
    }
}

/// The drive's behaviour during a write that passes through its segment in parts.
#[derive(Debug)]
pub(super) struct WriteTransferRules {
    /// The segment's size, in sectors.
    pub(super) segment: u64,
    /// A drive that has left the bus connects again once the segment holds no more than this number
    /// of sectors to be written. [`WriteTransfers::new`] raises 0 to 1, and then keeps the number
    /// below `segment`.
    pub(super) watermark: u64,
    /// The time to connect again: the first time, and later.
    pub(super) reconnect: [Span; 2],
    /// Whether the drive keeps the bus while the segment is full.
    pub(super) hold: bool,
}

/// The transfers of a write into its segment. Each transfer has as many sectors as there is room
/// for when it begins.
#[derive(Debug)]
pub(super) struct WriteTransfers {
    rules: WriteTransferRules,
    sectors: u64,
    inflow: DataArrival,
    /// The first sector of each transfer, and the time at which it begins.
    transfers: Vec<(u64, SimTime)>,
    /// The number of sectors whose transfer times are known.
    known: u64,
    /// The number of times that the drive has connected again.
    returns: usize,
}

impl WriteTransfers {
    /// Creates the transfers of a write of `sectors` sectors. The first of them arrive according to
    /// `inflow`.
    pub(super) fn new(
        sectors: u64,
        inflow: DataArrival,
        rules: WriteTransferRules,
    ) -> WriteTransfers {
        WriteTransfers {
            sectors,
            inflow,
            transfers: vec![(0, inflow.from)],
            known: sectors.min(rules.segment),
            returns: 0,
            rules: WriteTransferRules {
                watermark: rules.watermark.max(1).min(rules.segment - 1),
                ..rules
            },
        }
    }

    /// Returns the start and end of each transfer except the first. Transfers without a gap between
    /// them are joined.
    pub(super) fn later_transfers(&self) -> impl Iterator<Item = (SimTime, SimTime)> {
        let ends = self.transfers[1..].iter().map(|&(first, _)| first);
        let ends = ends.chain(std::iter::once(self.known));
        let spans = self
            .transfers
            .iter()
            .zip(ends)
            .map(|(&(first, start), end)| {
                (
                    start,
                    start + Span(self.inflow.per_sector.0 * (end - first)),
                )
            });
        let mut joined = Vec::<(SimTime, SimTime)>::new();
        for (start, end) in spans {
            match joined.last_mut() {
                Some(last) if last.1 == start => last.1 = end,
                _ => joined.push((start, end)),
            }
        }
        // The first transfer was reserved when the write was accepted.
        let first = self.inflow.arrival(self.sectors.min(self.rules.segment));
        joined
            .into_iter()
            .map(move |(start, end)| (start.max(first), end))
            .filter(|(start, end)| start < end)
    }

    /// The end of the last known transfer.
    pub(super) fn end(&self) -> SimTime {
        self.arrival(self.known - 1).unwrap_or(SimTime::ZERO)
    }

    /// The time at which sector `index` is in the segment, if it is known.
    fn arrival(&self, index: u64) -> Option<SimTime> {
        if index >= self.known {
            return None;
        }
        let transfer = self.transfers.partition_point(|&(first, _)| first <= index) - 1;
        let (first, start) = self.transfers[transfer];
        Some(start + Span(self.inflow.per_sector.0 * (index - first + 1)))
    }

    /// Returns the time at which the next transfer may begin, if it follows from `drained`, and
    /// whether the drive has to connect again for it.
    fn next(&self, drained: &DrainedSectors<'_>) -> Option<(SimTime, bool)> {
        let end = self.end();
        if self.known - drained.count(end) < self.rules.segment {
            return Some((end, false));
        }
        if self.rules.hold {
            let start = drained.time(self.known - self.rules.segment)?;
            return Some((start, false));
        }
        let low = drained.time(self.known - self.rules.watermark - 1)?;
        Some((low + self.rules.reconnect[self.returns.min(1)], true))
    }

    /// Adds the transfers that begin by `until`.
    fn extend(&mut self, until: SimTime, drained: &DrainedSectors<'_>) {
        while self.known < self.sectors && self.end() <= until {
            match self.next(drained) {
                Some((start, returns)) if start <= until => {
                    let room = self.rules.segment
                        - (self.known - drained.count(start)).min(self.rules.segment);
                    self.transfers.push((self.known, start));
                    self.known = (self.known + room.max(1)).min(self.sectors);
                    self.returns += usize::from(returns);
                }
                _ => break,
            }
        }
    }

    /// Returns whether sector `index` is in the segment at `now`.
    fn has(&mut self, index: u64, now: SimTime, drained: &DrainedSectors<'_>) -> bool {
        self.extend(now, drained);
        self.arrival(index).is_some_and(|at| at <= now)
    }

    /// Returns the time at which sector `index` will be in the segment if the media wait for it.
    fn await_sector(&mut self, index: u64, drained: &DrainedSectors<'_>) -> SimTime {
        self.extend(SimTime(u64::MAX), drained);
        self.arrival(index).unwrap_or_else(|| self.end())
    }
}

/// The sectors of a write that have left the segment. The access may begin before the request or
/// within it.
struct DrainedSectors<'a> {
    passed: &'a PassedSectors,
    /// The request's sector with which the access begins; negative if it begins before the request.
    base: i64,
}

impl DrainedSectors<'_> {
    fn count(&self, now: SimTime) -> u64 {
        (self.passed.count(now) as i64 + self.base).max(0) as u64
    }

    fn time(&self, index: u64) -> Option<SimTime> {
        match u64::try_from(index as i64 - self.base) {
            Ok(index) => self.passed.time(index),
            Err(_) => Some(SimTime::ZERO),
        }
    }
}

/// Same as [`super::sweep::sweep`], for a write that passes through its segment in parts. The
/// access begins with sector `base` of the write.
pub(super) fn sweep_write(
    model: AccessModel<'_>,
    from: (HeadPosition, SimTime),
    (access, base): (&Access, i64),
    write_transfers: &mut WriteTransfers,
    legs: &mut Vec<Leg>,
) -> (HeadPosition, SimTime) {
    let mechanics = model.mechanics;
    let (mut position, mut now) = from;
    let mut passed = PassedSectors::default();
    let of_request =
        |index: u64, sectors: u64| (index as i64 + base).clamp(0, sectors as i64 - 1) as u64;
    let mut done = 0;
    while done < access.sectors {
        let lbn = access.lbn + Sectors(u64::from(done));
        let index = |of_piece: u32| of_request(u64::from(done + of_piece), write_transfers.sectors);
        let (first, needed) = (
            index(0),
            index(0).max(if done == 0 {
                u64::from(write_transfers.inflow.threshold) - 1
            } else {
                0
            }),
        );
        let (piece, _) = model.piece(lbn, access.sectors - done, true);
        let last = index(piece.sectors - 1);
        let to = HeadPosition::from(&piece.track);
        let moved = mechanics.reposition(position, to, true);
        let landed = (now + moved.total()).max(if done == 0 { access.not_before } else { now });
        let drained = DrainedSectors {
            passed: &passed,
            base,
        };
        let mut leg = if write_transfers.has(last.max(needed), landed, &drained) {
            pass(mechanics, piece, moved, landed, access.zero_latency, None)
        } else {
            let there = write_transfers.await_sector(needed.max(first), &drained);
            pass(
                mechanics,
                piece,
                moved,
                landed,
                false,
                Some(DataArrival::at(there)),
            )
        };
        let (ramps, end) = (passed.ramps.len(), passed.end);
        if leg.in_order == piece.sectors {
            passed.push(&leg, false);
            let mut run = 1;
            while run < piece.sectors {
                passed.end = end + u64::from(run);
                let index = of_request(u64::from(done + run), write_transfers.sectors);
                let drained = DrainedSectors {
                    passed: &passed,
                    base,
                };
                if !write_transfers.has(index, leg.passed_at(run - 1), &drained) {
                    break;
                }
                run += 1;
            }
            if run < piece.sectors {
                let (piece, _) = model.piece(lbn, run, true);
                let start = DataArrival::at(leg.first);
                leg = pass(mechanics, piece, moved, landed, false, Some(start));
            }
        }
        passed.truncate(ramps, end);
        passed.push(&leg, false);
        (position, now) = (to, leg.end);
        done += leg.piece.sectors;
        legs.push(leg);
    }
    (position, now)
}

/// The transfers of a read to the host. Each transfer has the sectors that are available when it
/// begins.
#[derive(Debug)]
pub(super) struct ReadTransfers {
    bus_behaviour: BusBehaviour,
    /// The segment's size, in sectors.
    size: u64,
    sectors: u64,
    /// The number of the request's first sectors that are already in the buffer.
    buffered: u32,
    /// Whether the drive is connected to the bus.
    connected: bool,
    /// The time from which the drive can begin the next transfer.
    now: SimTime,
    /// The first sector of each transfer, and the time at which it begins.
    transfers: Vec<(u64, SimTime)>,
    /// The number of sectors whose transfer times are known.
    known: u64,
}

impl ReadTransfers {
    /// Creates the transfers of a read of `sectors` sectors through a segment of `size` sectors.
    /// The first `buffered` sectors are in the buffer. The drive may use the bus starting at
    /// `from`.
    pub(super) fn new(
        bus_behaviour: BusBehaviour,
        (from, connected): (SimTime, bool),
        size: u32,
        sectors: u32,
        buffered: u32,
    ) -> ReadTransfers {
        ReadTransfers {
            bus_behaviour,
            size: u64::from(size),
            sectors: u64::from(sectors),
            buffered,
            connected,
            now: from,
            transfers: Vec::new(),
            known: 0,
        }
    }

    /// Adds the transfers that begin by `until`, but none after the one with sector `needed - 1`.
    fn extend(&mut self, until: SimTime, needed: u64, there: &PassedSectors) {
        while self.known < needed && self.now <= until {
            if !self.connected {
                let wanted =
                    (self.known + u64::from(self.bus_behaviour.watermark)).min(self.sectors);
                match there
                    .time(wanted - 1)
                    .map(|at| self.now.max(at) + self.bus_behaviour.connect)
                {
                    Some(start) if start <= until => self.now = start,
                    _ => break,
                }
                self.connected = true;
            }
            let count = there.count(self.now).saturating_sub(self.known);
            if count > 0 {
                self.transfers.push((self.known, self.now));
                self.now += Span(self.bus_behaviour.per_sector.0 * count);
                self.known += count;
            } else if self.bus_behaviour.hold {
                match there.time(self.known) {
                    Some(at) if at <= until => self.now = self.now.max(at),
                    _ => break,
                }
            } else {
                self.now += self.bus_behaviour.disconnect;
                self.connected = false;
            }
        }
    }

    /// The time at which sector `index` has been transferred, if it is known.
    fn crossed(&self, index: u64) -> Option<SimTime> {
        if index >= self.known {
            return None;
        }
        let transfer = self.transfers.partition_point(|&(first, _)| first <= index) - 1;
        let (first, start) = self.transfers[transfer];
        Some(start + Span(self.bus_behaviour.per_sector.0 * (index - first + 1)))
    }

    /// Returns whether the segment has room for sector `index` at `now`.
    fn has_room(&mut self, index: u64, now: SimTime, there: &PassedSectors) -> bool {
        let Some(leaves) = index.checked_sub(self.size) else {
            return true;
        };
        self.extend(now, self.sectors, there);
        self.crossed(leaves).is_some_and(|at| at <= now)
    }

    /// Returns the time at which the segment has room for sector `index` if the media wait for it.
    fn await_room(&mut self, index: u64, there: &PassedSectors) -> SimTime {
        let Some(leaves) = index.checked_sub(self.size) else {
            return SimTime::ZERO;
        };
        // Sectors that pass once there is room may belong to later transfers.
        self.extend(SimTime(u64::MAX), leaves + 1, there);
        self.crossed(leaves).unwrap_or(SimTime::ZERO)
    }
}

/// Same as [`super::sweep::sweep`], for a read whose sectors may be sent to the host more slowly
/// than they arrive from the media.
pub(super) fn sweep_read(
    model: AccessModel<'_>,
    from: (HeadPosition, SimTime),
    access: &Access,
    (read_transfers, when_complete): (&mut ReadTransfers, bool),
    legs: &mut Vec<Leg>,
) -> (HeadPosition, SimTime) {
    let mechanics = model.mechanics;
    let (mut position, mut now) = from;
    let mut passed = PassedSectors::default();
    if read_transfers.buffered > 0 {
        passed.push_ramp(Ramp {
            sectors: read_transfers.buffered,
            first: SimTime::ZERO,
            last: SimTime::ZERO,
        });
    }
    let mut done = 0;
    while done < access.sectors {
        let lbn = access.lbn + Sectors(u64::from(done));
        let (piece, retries) = model.piece(lbn, access.sectors - done, false);
        let to = HeadPosition::from(&piece.track);
        let moved = mechanics.reposition(position, to, false);
        let landed = now + moved.total();
        let first = u64::from(read_transfers.buffered + done);
        let (ramps, end) = (passed.ramps.len(), passed.end);
        let mut leg =
            if read_transfers.has_room(first + u64::from(piece.sectors) - 1, landed, &passed) {
                best_pass(model, piece, moved, landed, access, None)
            } else {
                let room = DataArrival::at(read_transfers.await_room(first, &passed));
                let mut leg = pass(mechanics, piece, moved, landed, false, Some(room));
                passed.push(&leg, when_complete);
                let mut run = 1;
                while run < piece.sectors {
                    passed.end = end + u64::from(run);
                    if !read_transfers.has_room(
                        first + u64::from(run),
                        leg.passed_at(run - 1),
                        &passed,
                    ) {
                        break;
                    }
                    run += 1;
                }
                if run < piece.sectors {
                    let (piece, _) = model.piece(lbn, run, false);
                    leg = pass(
                        mechanics,
                        piece,
                        moved,
                        landed,
                        false,
                        Some(DataArrival::at(leg.first)),
                    );
                }
                leg
            };
        leg.delay(Span(mechanics.revolution().0 * u64::from(retries)));
        passed.truncate(ramps, end);
        passed.push(&leg, when_complete);
        (position, now) = (to, leg.end);
        done += leg.piece.sectors;
        legs.push(leg);
    }
    (position, now)
}

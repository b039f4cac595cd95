//! The data path between buffer and host.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sweep::Leg;
use traxtent_units::{SimTime, Span};

/// Reserved half-open intervals, each with its owner, ordered by start.
#[derive(Clone, Debug, Default)]
struct Reservations(VecDeque<(SimTime, SimTime, usize)>);

/// An owner without reservations, which waits for all others.
const NO_OWNER: usize = usize::MAX;

impl Reservations {
    /// Removes the intervals that have ended by `now`.
    #[inline]
    fn advance(&mut self, now: SimTime) {
        while self.0.front().is_some_and(|&(_, end, _)| end <= now) {
            self.0.pop_front();
        }
    }

    /// Returns the start of the first period of `length`, at `from` or later, that is free of
    /// reservations except those of `who`.
    #[inline]
    fn fit(&self, from: SimTime, length: Span, who: usize) -> SimTime {
        let mut start = from;
        for &(busy_from, busy_to, _) in self.0.iter().filter(|(.., whose)| *whose != who) {
            if start + length <= busy_from {
                break;
            }
            start = start.max(busy_to);
        }
        start
    }

    #[inline]
    fn reserve(&mut self, start: SimTime, end: SimTime, who: usize) {
        if end > start {
            let is_before = |&(busy_from, ..): &(SimTime, SimTime, usize)| busy_from < start;
            if self.0.back().is_none_or(is_before) {
                self.0.push_back((start, end, who));
            } else {
                let place = self.0.partition_point(is_before);
                self.0.insert(place, (start, end, who));
            }
        }
    }

    /// Ends the reservations of `who` at `now`.
    fn end(&mut self, now: SimTime, who: usize) {
        self.0.retain_mut(|(start, end, whose)| {
            if *whose != who {
                return true;
            }
            *end = now.min(*end);
            *start < *end
        });
    }
}

/// A bus that several drives share. A drive reserves it in advance: for each command other than a
/// flush, until the drive disconnects, and for each transfer of data, together with the completion
/// after it. Each reservation is at the first time that earlier ones leave free. However, the
/// second and later transfers of a write that passes through its segment in parts have fixed times,
/// even if other drives have reserved them.
///
/// Left out: the completion of a write that has waited for the media. It does not occupy the bus.
#[derive(Clone, Debug, Default)]
pub struct SharedBus(Arc<Mutex<Drives>>);

#[derive(Debug, Default)]
struct Drives {
    count: usize,
    calendar: Reservations,
}

/// The time for which past transfers are kept. The drives on a bus are not all advanced to the same
/// time, so one of them may still look back at a transfer.
const RESERVATION_HISTORY: Span = Span(1_000_000_000_000);

impl SharedBus {
    fn drives(&self) -> MutexGuard<'_, Drives> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The drive's side of the bus: one transfer at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bus {
    transfers: Reservations,
    /// The bus itself, if other drives share it.
    shared: Option<Connection>,
}

/// A drive's connection to a bus that several drives share.
#[derive(Clone, Debug)]
struct Connection {
    bus: SharedBus,
    /// The number of this drive on the bus.
    number: usize,
}

// Most drives have the bus to themselves, so these methods stay out of their callers.
impl Connection {
    #[cold]
    fn advance(&self, now: SimTime) {
        let long_ago = SimTime(now.0.saturating_sub(RESERVATION_HISTORY.0));
        self.bus.drives().calendar.advance(long_ago);
    }

    #[cold]
    fn end(&self, now: SimTime) {
        self.bus.drives().calendar.end(now, self.number);
    }

    #[cold]
    fn fit(&self, from: SimTime, length: Span) -> SimTime {
        self.bus.drives().calendar.fit(from, length, self.number)
    }

    #[cold]
    fn reserve(&self, start: SimTime, end: SimTime) {
        self.bus.drives().calendar.reserve(start, end, self.number);
    }
}

impl Bus {
    /// Connects the drive to a bus that other drives share.
    pub(super) fn share(&mut self, bus: SharedBus) {
        let number = bus.drives().count;
        bus.drives().count += 1;
        self.shared = Some(Connection { bus, number });
    }

    /// Returns the bus after the drive has lost power at `now`: its transfers end then.
    pub(super) fn restarted(self, now: SimTime) -> Bus {
        if let Some(shared) = &self.shared {
            shared.end(now);
        }
        Bus {
            transfers: Reservations::default(),
            shared: self.shared,
        }
    }

    /// Removes the drive's reservations that have ended by `now`, and those on a shared bus that
    /// ended [`RESERVATION_HISTORY`] earlier.
    #[inline(always)]
    pub(super) fn advance(&mut self, now: SimTime) {
        self.transfers.advance(now);
        if let Some(shared) = &self.shared {
            shared.advance(now);
        }
    }

    /// Reserves the bus for a command of `length` at the first time at or after `from` that the
    /// other drives leave free. Returns that time.
    #[inline]
    pub(super) fn reserve_command(&mut self, from: SimTime, length: Span) -> SimTime {
        let start = self.first_free_for(from, length);
        self.reserve_shared(start, start + length);
        start
    }

    /// Reserves the bus for `length`, followed by `after` for the end of the request, at the first
    /// time at or after `from` at which it is free for both. Returns that time.
    pub(super) fn reserve(&mut self, from: SimTime, length: Span, after: Span) -> SimTime {
        let mut start = from;
        loop {
            let free = self.transfers.fit(start, length, NO_OWNER);
            let free = self.first_free_for(free, length + after);
            if free == start {
                break;
            }
            start = free;
        }
        self.transfers.reserve(start, start + length, 0);
        self.reserve_shared(start, start + length + after);
        start
    }

    /// Reserves the bus, after all of the drive's own reservations, for a transfer whose times
    /// depend on when it gets the bus. `transfer` returns its start and end if it has the bus from
    /// a given time on. `before` and `after` are the bus times needed around the transfer. Returns
    /// the start and end for the first time at which the bus is free for all of it.
    pub(super) fn reserve_transfer(
        &mut self,
        from: SimTime,
        (before, after): (Span, Span),
        transfer: impl Fn(SimTime) -> (SimTime, SimTime),
    ) -> (SimTime, SimTime) {
        let own_end = self.transfers.0.back().map_or(from, |&(_, end, _)| end);
        let mut earliest = from.max(own_end);
        loop {
            let (begin, end) = transfer(earliest);
            let taken = SimTime(begin.0.saturating_sub(before.0));
            let free = self.first_free_for(taken, (end + after).since(taken));
            if free == taken {
                self.transfers.reserve(begin, end, 0);
                self.reserve_shared(taken, end + after);
                return (begin, end);
            }
            earliest = free;
        }
    }

    /// Reserves the bus for transfers with fixed times, even if it is not free then.
    pub(super) fn reserve_fixed(&mut self, transfers: impl Iterator<Item = (SimTime, SimTime)>) {
        for (start, end) in transfers {
            self.transfers.reserve(start, end, 0);
            self.reserve_shared(start, end);
        }
    }

    #[inline]
    fn first_free_for(&self, from: SimTime, length: Span) -> SimTime {
        match &self.shared {
            None => from,
            Some(shared) => shared.fit(from, length),
        }
    }

    #[inline]
    fn reserve_shared(&self, start: SimTime, end: SimTime) {
        if let Some(shared) = &self.shared {
            shared.reserve(start, end);
        }
    }
}

/// The availability of a read's sectors in the buffer, in LBN order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    /// The number of sectors.
    pub(super) sectors: u32,
    /// The time at which the first sector is available.
    pub(super) first: SimTime,
    /// The time at which the last sector is available. The others follow the first at equal
    /// intervals.
    pub(super) last: SimTime,
}

impl Ramp {
    /// Returns the ramp without its first `sectors` sectors. The ramp must have more sectors than
    /// that.
    pub(super) fn skip(&self, sectors: u32) -> Ramp {
        Ramp {
            sectors: self.sectors - sectors,
            first: self.at(sectors),
            last: self.last,
        }
    }

    fn at(&self, index: u32) -> SimTime {
        if index + 1 >= self.sectors {
            return self.last;
        }
        let whole = self.last.since(self.first).0 as u128;
        // Rounded up, so that `there` counts this sector at this time.
        self.first + Span((whole * index as u128).div_ceil(self.sectors as u128 - 1) as u64)
    }

    /// Returns the number of sectors available at `now`.
    pub(super) fn there(&self, now: SimTime) -> u32 {
        if now >= self.last {
            self.sectors
        } else if now < self.first {
            0
        } else {
            let whole = self.last.since(self.first).0 as u128;
            1 + (now.since(self.first).0 as u128 * (self.sectors as u128 - 1) / whole) as u32
        }
    }
}

/// Appends the ramps of a leg's sectors. If `when_complete` is true, a leg that is read out of
/// order becomes available only as a whole.
pub(super) fn ramps_of(leg: &Leg, when_complete: bool, ramps: &mut Vec<Ramp>) {
    if when_complete && leg.in_order < leg.piece.sectors {
        ramps.push(Ramp {
            sectors: leg.piece.sectors,
            first: leg.end,
            last: leg.end,
        });
        return;
    }
    ramps.push(Ramp {
        sectors: leg.in_order,
        first: (leg.first + leg.sector()).min(leg.end),
        last: leg.end,
    });
    let early = leg.piece.sectors - leg.in_order;
    if early > 0 {
        ramps.push(Ramp {
            sectors: early,
            first: leg.end,
            last: leg.end,
        });
    }
}

/// The drive's behaviour on the bus during a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct BusBehaviour {
    /// The transfer time per sector.
    pub(super) per_sector: Span,
    /// Whether the drive keeps the bus once it has it.
    pub(super) hold: bool,
    /// The number of sectors that must be available before the drive connects.
    pub(super) watermark: u32,
    /// The time to connect to the bus and prepare the transfer.
    pub(super) connect: Span,
    /// The time to disconnect from it.
    pub(super) disconnect: Span,
}

/// Transfers all sectors to the host, in LBN order, as they become available and not before `from`.
/// `connected` is true if the drive has not left the bus since the command.
///
/// Returns the start of the first transfer and the end of the last one.
pub(super) fn deliver(
    bus_behaviour: &BusBehaviour,
    ramps: &[Ramp],
    from: SimTime,
    connected: bool,
) -> (SimTime, SimTime) {
    // The drive transfers each sector at once if connecting and disconnecting take no time, and it
    // connects for a single sector.
    let seamless = bus_behaviour.connect == Span::ZERO
        && bus_behaviour.disconnect == Span::ZERO
        && bus_behaviour.watermark <= 1;
    if seamless || (connected && bus_behaviour.hold) {
        return flow(bus_behaviour.per_sector, ramps, from);
    }
    if bus_behaviour.hold {
        let total: u32 = ramps.iter().map(|ramp| ramp.sectors).sum();
        let ready = nth(ramps, bus_behaviour.watermark.clamp(1, total));
        return flow(
            bus_behaviour.per_sector,
            ramps,
            from.max(ready) + bus_behaviour.connect,
        );
    }
    chunks(bus_behaviour, ramps, from, connected)
}

/// Transfers each sector once it is available and the one before has been transferred.
fn flow(per_sector: Span, ramps: &[Ramp], from: SimTime) -> (SimTime, SimTime) {
    let mut begin = None;
    let mut now = from;
    for ramp in ramps {
        begin.get_or_insert(now.max(ramp.first));
        // Availability is linear, so the first and the last sector of the ramp determine the end.
        let all = Span(per_sector.0 * u64::from(ramp.sectors));
        now = (now.max(ramp.first) + all).max(ramp.last + per_sector);
    }
    (begin.unwrap_or(from), now)
}

/// Transfers sectors in chunks. The drive leaves the bus whenever no sector is available, and
/// connects again once enough are.
fn chunks(
    bus_behaviour: &BusBehaviour,
    ramps: &[Ramp],
    from: SimTime,
    connected: bool,
) -> (SimTime, SimTime) {
    let total: u32 = ramps.iter().map(|ramp| ramp.sectors).sum();
    let there = |now: SimTime| ramps.iter().map(|ramp| ramp.there(now)).sum::<u32>();
    let (mut now, mut out, mut connected, mut begin) = (from, 0, connected, None);
    while out < total {
        if !connected {
            let wanted = (out + bus_behaviour.watermark.max(1)).min(total);
            now = now.max(nth(ramps, wanted)) + bus_behaviour.connect;
            connected = true;
        }
        let chunk = there(now) - out;
        if chunk > 0 {
            begin.get_or_insert(now);
            now += Span(bus_behaviour.per_sector.0 * u64::from(chunk));
            out += chunk;
        } else {
            now += bus_behaviour.disconnect;
            connected = false;
        }
    }
    (begin.unwrap_or(from), now)
}

/// Transfers all sectors to the host in the order in which the media deliver them, the first one at
/// `first_there` and the last one at `media_end`. `connected` is the same as for [`deliver`].
///
/// Returns the start of the first transfer and the end of the last one.
pub(super) fn deliver_any_order(
    bus_behaviour: &BusBehaviour,
    ramps: &[Ramp],
    from: SimTime,
    (first_there, media_end): (SimTime, SimTime),
    connected: bool,
) -> (SimTime, SimTime) {
    let total: u64 = ramps.iter().map(|ramp| u64::from(ramp.sectors)).sum();
    let connect = if connected {
        Span::ZERO
    } else {
        bus_behaviour.connect
    };
    let begin = from.max(first_there) + connect;
    (
        begin,
        (begin + Span(bus_behaviour.per_sector.0 * total))
            .max(media_end + bus_behaviour.per_sector),
    )
}

/// Returns the time at which `count` sectors are available.
pub(super) fn nth(ramps: &[Ramp], mut count: u32) -> SimTime {
    for ramp in ramps {
        if count <= ramp.sectors {
            return ramp.at(count - 1);
        }
        count -= ramp.sectors;
    }
    SimTime::ZERO
}

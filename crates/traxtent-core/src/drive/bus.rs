//! The data path between buffer and host.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use super::sweep::Leg;
use crate::units::{SimTime, Span};

/// Who has something when: half-open intervals, by where they begin.
#[derive(Clone, Debug, Default)]
struct Calendar(VecDeque<(SimTime, SimTime, usize)>);

/// Whose nothing is: it waits for everything.
const NOBODY: usize = usize::MAX;

impl Calendar {
    /// Forgets what has ended at `now`.
    fn advance(&mut self, now: SimTime) {
        while self.0.front().is_some_and(|&(_, end, _)| end <= now) {
            self.0.pop_front();
        }
    }

    /// The first time from `from` on when none but `who` has it for `length`.
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

    fn reserve(&mut self, start: SimTime, end: SimTime, who: usize) {
        if end > start {
            let place = self.0.partition_point(|&(busy_from, ..)| busy_from < start);
            self.0.insert(place, (start, end, who));
        }
    }
}

/// A bus that several drives hang from. One drive has it at a time: from a command until the drive disconnects, and
/// from its reselection until it has told the end. Who asks first has it first, where an access asks for all
/// that it will need when it begins.
#[derive(Clone, Debug, Default)]
pub struct SharedBus(Arc<Mutex<Drives>>);

#[derive(Debug, Default)]
struct Drives {
    count: usize,
    calendar: Calendar,
}

/// So long after a transfer a drive may still look back at it: drives are not all looked at at the same time.
const LOOKS_BACK: Span = Span(1_000_000_000_000);

impl SharedBus {
    fn drives(&self) -> MutexGuard<'_, Drives> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The drive's end of the bus: one transfer at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bus {
    transfers: Calendar,
    /// The bus itself, if it is not the drive's alone, and which of its drives this is.
    shared: Option<(SharedBus, usize)>,
}

impl Bus {
    /// Hangs the drive from a bus together with others.
    pub(super) fn share(&mut self, bus: SharedBus) {
        let number = bus.drives().count;
        bus.drives().count += 1;
        self.shared = Some((bus, number));
    }

    /// Forgets what lies before `now`.
    pub(super) fn advance(&mut self, now: SimTime) {
        self.transfers.advance(now);
        if let Some((bus, _)) = &self.shared {
            let long_ago = SimTime(now.0.saturating_sub(LOOKS_BACK.0));
            bus.drives().calendar.advance(long_ago);
        }
    }

    /// Has the bus for a command of `length` as soon as the other drives let it; returns since when.
    pub(super) fn command(&mut self, from: SimTime, length: Span) -> SimTime {
        let start = self.without_others(from, length);
        self.keep_others_out(start, start + length);
        start
    }

    /// Takes the bus for `length`, and the end of the request `after` it, at the first time from `from` on when it
    /// is free for so long; returns that time.
    pub(super) fn take(&mut self, from: SimTime, length: Span, after: Span) -> SimTime {
        let mut start = from;
        loop {
            let free = self.transfers.fit(start, length, NOBODY);
            let free = self.without_others(free, length + after);
            if free == start {
                break;
            }
            start = free;
        }
        self.transfers.reserve(start, start + length, 0);
        self.keep_others_out(start, start + length + after);
        start
    }

    /// Takes the bus behind all that the drive itself has reserved, for a transfer that tells from when to when it would
    /// take if it had the bus from a time on, with what it needs of the bus before and after it; returns that of the
    /// first time when the bus is free for all of it.
    pub(super) fn carry(
        &mut self,
        from: SimTime,
        (before, after): (Span, Span),
        transfer: impl Fn(SimTime) -> (SimTime, SimTime),
    ) -> (SimTime, SimTime) {
        let own_end = self.transfers.0.back().map_or(from, |&(_, end, _)| end);
        let mut asked = from.max(own_end);
        loop {
            let (begin, end) = transfer(asked);
            let taken = SimTime(begin.0.saturating_sub(before.0));
            let free = self.without_others(taken, (end + after).since(taken));
            if free == taken {
                self.transfers.reserve(begin, end, 0);
                self.keep_others_out(taken, end + after);
                return (begin, end);
            }
            asked = free;
        }
    }

    /// Keeps the bus for transfers whose times are fixed.
    pub(super) fn keep(&mut self, transfers: impl Iterator<Item = (SimTime, SimTime)>) {
        for (start, end) in transfers {
            self.transfers.reserve(start, end, 0);
            self.keep_others_out(start, end);
        }
    }

    fn without_others(&self, from: SimTime, length: Span) -> SimTime {
        self.shared.as_ref().map_or(from, |(bus, number)| {
            bus.drives().calendar.fit(from, length, *number)
        })
    }

    fn keep_others_out(&self, start: SimTime, end: SimTime) {
        if let Some((bus, number)) = &self.shared {
            bus.drives().calendar.reserve(start, end, *number);
        }
    }
}

/// Sectors of a read becoming available in the buffer, in LBN order.
#[derive(Clone, Copy, Debug)]
pub(super) struct Ramp {
    /// How many.
    pub(super) sectors: u32,
    /// When the first is there.
    pub(super) first: SimTime,
    /// When the last is there; those between at even distances.
    pub(super) last: SimTime,
}

impl Ramp {
    /// The ramp without its first sectors, of which there are more.
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
        // Rounded up, so that as many sectors are `there` at this time.
        self.first + Span((whole * index as u128).div_ceil(self.sectors as u128 - 1) as u64)
    }

    /// How many are there at `now`.
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

/// Appends how the sectors of a leg become available, those read out of order only
/// `when_complete` if that is the drive's way.
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

/// The manners of the drive on the bus during a read.
#[derive(Clone, Copy, Debug)]
pub(super) struct Delivery {
    /// Time a sector.
    pub(super) per_sector: Span,
    /// Whether the bus is kept once taken.
    pub(super) hold: bool,
    /// Sectors that must be there before the bus is taken again.
    pub(super) watermark: u32,
    /// Time to take the bus.
    pub(super) connect: Span,
    /// Time to leave it.
    pub(super) disconnect: Span,
}

/// Moves all sectors to the host, in LBN order, as they become available and from `from` on;
/// `connected` if the drive has not left the bus since the command.
///
/// Returns when the first transfer began and when the last one ended.
pub(super) fn deliver(
    manners: &Delivery,
    ramps: &[Ramp],
    from: SimTime,
    connected: bool,
) -> (SimTime, SimTime) {
    let seamless = manners.connect == Span::ZERO && manners.disconnect == Span::ZERO;
    if connected || (seamless && manners.watermark <= 1) {
        if manners.hold || seamless {
            return flow(manners.per_sector, ramps, from);
        }
        return chunks(manners, ramps, from, true);
    }
    if manners.hold {
        let total: u32 = ramps.iter().map(|ramp| ramp.sectors).sum();
        let ready = nth(ramps, manners.watermark.clamp(1, total));
        return flow(manners.per_sector, ramps, from.max(ready) + manners.connect);
    }
    chunks(manners, ramps, from, false)
}

/// Each sector crosses as soon as it is there and the one before has crossed.
fn flow(per_sector: Span, ramps: &[Ramp], from: SimTime) -> (SimTime, SimTime) {
    let mut begin = None;
    let mut now = from;
    for ramp in ramps {
        begin.get_or_insert(now.max(ramp.first));
        // Availability is linear, so the first and the last sector of the ramp decide.
        let all = Span(per_sector.0 * u64::from(ramp.sectors));
        now = (now.max(ramp.first) + all).max(ramp.last + per_sector);
    }
    (begin.unwrap_or(from), now)
}

/// The drive leaves the bus whenever nothing is there, and comes back when enough is.
fn chunks(
    manners: &Delivery,
    ramps: &[Ramp],
    from: SimTime,
    connected: bool,
) -> (SimTime, SimTime) {
    let total: u32 = ramps.iter().map(|ramp| ramp.sectors).sum();
    let there = |now: SimTime| ramps.iter().map(|ramp| ramp.there(now)).sum::<u32>();
    let (mut now, mut out, mut connected, mut begin) = (from, 0, connected, None);
    while out < total {
        if !connected {
            let wanted = (out + manners.watermark.max(1)).min(total);
            now = now.max(nth(ramps, wanted)) + manners.connect;
            connected = true;
        }
        let chunk = there(now) - out;
        if chunk > 0 {
            begin.get_or_insert(now);
            now += Span(manners.per_sector.0 * u64::from(chunk));
            out += chunk;
        } else {
            now += manners.disconnect;
            connected = false;
        }
    }
    (begin.unwrap_or(from), now)
}

/// Moves all sectors to the host as the media deliver them, the first one at `first_there` and the
/// last one at `media_end`; `connected` as for [`deliver`].
///
/// Returns when the first transfer began and when the last one ended.
pub(super) fn deliver_any_order(
    manners: &Delivery,
    ramps: &[Ramp],
    from: SimTime,
    (first_there, media_end): (SimTime, SimTime),
    connected: bool,
) -> (SimTime, SimTime) {
    let total: u64 = ramps.iter().map(|ramp| u64::from(ramp.sectors)).sum();
    let connect = if connected {
        Span::ZERO
    } else {
        manners.connect
    };
    let begin = from.max(first_there) + connect;
    (
        begin,
        (begin + Span(manners.per_sector.0 * total)).max(media_end + manners.per_sector),
    )
}

/// When so many sectors are there.
pub(super) fn nth(ramps: &[Ramp], mut count: u32) -> SimTime {
    for ramp in ramps {
        if count <= ramp.sectors {
            return ramp.at(count - 1);
        }
        count -= ramp.sectors;
    }
    SimTime::ZERO
}

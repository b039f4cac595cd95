//! The data path between buffer and host.

use super::sweep::Leg;
use crate::units::{SimTime, Span};
use std::collections::VecDeque;

/// The drive's end of the bus: one transfer at a time.
#[derive(Clone, Debug, Default)]
pub(super) struct Bus {
    /// Reserved intervals, half-open, ascending, all ending later than the last time they were looked at.
    reserved: VecDeque<(SimTime, SimTime)>,
}

impl Bus {
    /// Forgets what lies before `now`.
    pub(super) fn advance(&mut self, now: SimTime) {
        while self.reserved.front().is_some_and(|&(_, end)| end <= now) {
            self.reserved.pop_front();
        }
    }

    /// Takes the bus for `length` at the first time from `from` on when it is free for so long; returns that time.
    pub(super) fn take(&mut self, from: SimTime, length: Span) -> SimTime {
        let mut start = from;
        let mut place = 0;
        for (i, &(busy_from, busy_to)) in self.reserved.iter().enumerate() {
            if start + length <= busy_from {
                break;
            }
            start = start.max(busy_to);
            place = i + 1;
        }
        if length > Span::ZERO {
            self.reserved.insert(place, (start, start + length));
        }
        start
    }

    /// When the bus is free for good.
    pub(super) fn free_from(&self, from: SimTime) -> SimTime {
        self.reserved.back().map_or(from, |&(_, end)| end.max(from))
    }

    /// Takes the bus from `start` to `end`, which lie behind all other reservations.
    pub(super) fn reserve(&mut self, start: SimTime, end: SimTime) {
        if end > start {
            self.reserved.push_back((start, end));
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

    fn there(&self, now: SimTime) -> u32 {
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

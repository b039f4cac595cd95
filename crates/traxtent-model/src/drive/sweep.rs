//! The path of the head over the sectors of one access: which tracks, in which order, at which
//! times.
//!
//! An access is divided into legs, one for each piece of a track. On each leg the head moves, waits
//! for the sector with which it begins, and passes over all sectors of the piece. If the head
//! reaches the track within the piece, a zero-latency leg begins with the next sector that arrives
//! under the head, and ends one revolution later (paper T, section 2.2, "Zero-latency access"). A
//! write begins with the next sector whose data is in the buffer.

use super::disturbances::RetryTable;
use crate::geometry::{Geometry, Piece, PieceCursor, Track};
use crate::mechanics::{HeadMove, HeadPosition, Mechanics, TrackRotation};
use crate::profile::Profile;
use traxtent_units::{Lbn, Sectors, SimTime, Span};

/// The pass over one piece of a track.
#[derive(Clone, Copy, Debug)]
pub(super) struct Leg {
    /// The sectors.
    pub(super) piece: Piece,
    /// The movement to the track.
    pub(super) moved: HeadMove,
    /// The time at which the head reached the track.
    pub(super) landed: SimTime,
    /// The time at which the leading edge of the piece's first sector passed.
    pub(super) first: SimTime,
    /// The time at which the last of the sectors had passed.
    pub(super) end: SimTime,
    /// The number of sectors that passed in LBN order from `first` to `end`. The others passed
    /// before them.
    pub(super) in_order: u32,
    /// The time spent waiting for sectors to come under the head.
    pub(super) rotation: Span,
}

impl Leg {
    /// The time at which the first sector to pass had passed.
    pub(super) fn first_passed(&self, revolution: Span) -> SimTime {
        let begun = if self.in_order == self.piece.sectors {
            self.first
        } else {
            self.end - revolution
        };
        begun + self.sector()
    }

    /// The time in which one sector passes.
    pub(super) fn sector(&self) -> Span {
        Span(self.end.since(self.first).0 / u64::from(self.in_order))
    }

    /// Delays all its sectors by whole revolutions.
    pub(super) fn delay(&mut self, revolutions: Span) {
        self.first += revolutions;
        self.end += revolutions;
        self.rotation += revolutions;
    }

    /// The LBN after the piece.
    pub(super) fn next_lbn(&self) -> Lbn {
        self.piece.lbn + Sectors(u64::from(self.piece.sectors))
    }

    /// The sectors that pass in LBN order.
    #[inline]
    pub(super) fn sectors_in_order(&self) -> SectorsInOrder {
        SectorsInOrder {
            first: self.first,
            end: self.end,
            count: self.in_order,
        }
    }

    /// The time at which in-order sector `index` has passed completely.
    pub(super) fn passed_at(&self, index: u32) -> SimTime {
        self.sectors_in_order().passed_at(index)
    }
}

/// Sectors that pass under the head in LBN order, without interruption.
#[derive(Clone, Copy, Debug)]
pub(super) struct SectorsInOrder {
    /// The time at which the leading edge of the first one passes.
    pub(super) first: SimTime,
    /// The time at which the last one has passed.
    pub(super) end: SimTime,
    pub(super) count: u32,
}

impl SectorsInOrder {
    /// The number of sectors that have passed completely at `now`, consistent with
    /// [`SectorsInOrder::passed_at`].
    #[inline]
    pub(super) fn passed(&self, now: SimTime) -> u32 {
        if now >= self.end {
            return self.count;
        }
        if now < self.first {
            return 0;
        }
        let since = now.since(self.first).0;
        let whole = self.end.since(self.first).0;
        // (since + 1) * count / whole, rounded up, minus one.
        divide((since as u128 + 1) * self.count as u128 - 1, whole) as u32
    }

    /// The time at which sector `index` has passed completely.
    #[inline]
    pub(super) fn passed_at(&self, index: u32) -> SimTime {
        let whole = self.end.since(self.first).0;
        let since = divide(whole as u128 * (index as u128 + 1), self.count.into());
        self.first + Span(since)
    }
}

/// The quotient. Most products fit in 64 bits, which processors divide faster.
fn divide(product: u128, by: u64) -> u64 {
    match u64::try_from(product) {
        Ok(product) => product / by,
        Err(_) => (product / u128::from(by)) as u64,
    }
}

/// The arrival of a write's data in the buffer: sector `i` is available `(i + 1) * per_sector`
/// after `from`, or at `full` if that is earlier.
#[derive(Clone, Copy, Debug)]
pub(super) struct DataArrival {
    pub(super) from: SimTime,
    pub(super) per_sector: Span,
    /// The time at which all data is available.
    pub(super) full: SimTime,
    /// The number of sectors that must be available before the first goes to the media.
    pub(super) threshold: u32,
}

impl DataArrival {
    /// Returns the arrival of all data at `time`.
    pub(super) fn at(time: SimTime) -> DataArrival {
        DataArrival {
            from: time,
            per_sector: Span::ZERO,
            full: time,
            threshold: 1,
        }
    }

    /// The time at which `count` sectors are available.
    pub(super) fn arrival(&self, count: u64) -> SimTime {
        (self.from + Span(self.per_sector.0 * count)).min(self.full)
    }

    /// Returns the arrival for an access that begins with sector `base` of the write. If `base` is
    /// negative, the access begins with sectors that are in the buffer already.
    pub(super) fn for_access(self, base: i64) -> DataArrival {
        let shift = self.per_sector.0 as i64 * base;
        DataArrival {
            from: SimTime(self.from.0.saturating_add_signed(shift)),
            threshold: (i64::from(self.threshold) - base).max(1) as u32,
            ..self
        }
    }
}

/// The parameters of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub(super) lbn: Lbn,
    pub(super) sectors: u32,
    pub(super) write: bool,
    pub(super) zero_latency: bool,
    /// For writes: the times at which the data is available.
    pub(super) inflow: Option<DataArrival>,
    /// The first move ends no earlier than this.
    pub(super) not_before: SimTime,
}

/// The properties of the drive that determine the times of an access.
#[derive(Clone, Copy, Debug)]
pub(super) struct AccessModel<'a> {
    pub(super) geometry: &'a Geometry,
    pub(super) mechanics: &'a Mechanics,
    pub(super) slow: &'a RetryTable,
    /// The number of replicas of each sector around its track. Reads use the nearest.
    pub(super) partitions: u32,
}

impl AccessModel<'_> {
    /// Returns the longest run of at most `most` sectors, beginning at `lbn`, that the head passes
    /// without interruption, and the number of additional revolutions that they take.
    #[inline(always)]
    pub(super) fn piece(&self, lbn: Lbn, most: u32, write: bool) -> (Piece, u32) {
        self.next_piece(&mut PieceCursor::default(), lbn, most, write)
    }

    /// Same as [`AccessModel::piece`] for one of several pieces in LBN order.
    #[inline(always)]
    fn next_piece(
        &self,
        cursor: &mut PieceCursor,
        lbn: Lbn,
        most: u32,
        write: bool,
    ) -> (Piece, u32) {
        let (most, retries) = if write {
            (most, 0)
        } else {
            self.slow.reach(lbn, most)
        };
        (self.geometry.next_piece(cursor, lbn, most), retries)
    }

    /// Same as [`AccessModel::piece`] for a read of sectors that are probably on `track`.
    pub(super) fn piece_near(&self, track: &Track, lbn: Lbn, most: u32) -> (Piece, u32) {
        let (most, retries) = self.slow.reach(lbn, most);
        (self.geometry.piece_near(track, lbn, most), retries)
    }

    /// Returns the model of a drive with these parts.
    #[inline]
    pub(super) fn new<'a>(
        geometry: &'a Geometry,
        mechanics: &'a Mechanics,
        slow: &'a RetryTable,
        profile: &Profile,
    ) -> AccessModel<'a> {
        AccessModel {
            geometry,
            mechanics,
            slow,
            partitions: profile.access.track_partitions,
        }
    }

    /// Returns the places of a piece's other replicas, which reads may use as well. Returns none
    /// for a write.
    pub(super) fn other_replicas(
        &self,
        piece: Piece,
        write: bool,
    ) -> impl Iterator<Item = Piece> + use<> {
        let slots = piece.track.slots;
        let partitions = if write { 1 } else { self.partitions.min(slots) };
        (1..partitions).map(move |copy| Piece {
            // The replicas are spread evenly even if the number of slots is not a multiple of the
            // number of partitions. Some partitions are then one slot shorter.
            first_slot: (piece.first_slot + copy * slots / partitions) % slots,
            ..piece
        })
    }
}

/// Appends the legs of an access whose first move may begin at `ready`.
///
/// Returns the final position and time of the head.
pub(super) fn sweep(
    model: AccessModel<'_>,
    from: HeadPosition,
    ready: SimTime,
    access: &Access,
    legs: &mut Vec<Leg>,
) -> (HeadPosition, SimTime) {
    let (mut position, mut now) = (from, ready);
    let mut done = 0;
    let mut cursor = PieceCursor::default();
    while done < access.sectors {
        let lbn = access.lbn + Sectors(u64::from(done));
        let rest = access.sectors - done;
        let piece = model.next_piece(&mut cursor, lbn, rest, access.write);
        let leg = leg(model, (position, now), piece, access, done);
        (position, now) = (HeadPosition::from(&leg.piece.track), leg.end);
        done += leg.piece.sectors;
        legs.push(leg);
    }
    (position, now)
}

// The following functions are always inlined. A leg is then written directly to its place, not
// copied from function to function.

/// The leg of an access over a piece that takes `retries` additional revolutions. `done` sectors of
/// the access precede it.
#[inline(always)]
pub(super) fn leg(
    model: AccessModel<'_>,
    (position, now): (HeadPosition, SimTime),
    (piece, retries): (Piece, u32),
    access: &Access,
    done: u32,
) -> Leg {
    let mechanics = model.mechanics;
    let to = HeadPosition::from(&piece.track);
    let moved = mechanics.reposition(position, to, access.write);
    let landed = (now + moved.total()).max(if done == 0 { access.not_before } else { now });
    let inflow = access.inflow.map(|flow| DataArrival {
        from: flow.from + Span(flow.per_sector.0 * u64::from(done)),
        threshold: if done == 0 { flow.threshold } else { 1 },
        ..flow
    });
    let mut leg = best_pass(model, piece, moved, landed, access, inflow);
    if retries > 0 {
        leg.delay(Span(mechanics.revolution().0 * u64::from(retries)));
    }
    leg
}

/// The pass over one piece, or over another of its replicas if that ends sooner.
#[inline(always)]
pub(super) fn best_pass(
    model: AccessModel<'_>,
    piece: Piece,
    moved: HeadMove,
    landed: SimTime,
    access: &Access,
    inflow: Option<DataArrival>,
) -> Leg {
    let pass = |piece| {
        pass(
            model.mechanics,
            piece,
            moved,
            landed,
            access.zero_latency,
            inflow,
        )
    };
    let mut leg = pass(piece);
    for copy in model.other_replicas(piece, access.write) {
        let other = pass(copy);
        if other.end < leg.end {
            leg = other;
        }
    }
    leg
}

/// The pass over one piece, from the time at which the head is on its track.
#[inline(always)]
pub(super) fn pass(
    mechanics: &Mechanics,
    piece: Piece,
    moved: HeadMove,
    landed: SimTime,
    zero_latency: bool,
    inflow: Option<DataArrival>,
) -> Leg {
    let rotation = mechanics.rotation(&piece.track, landed);
    if zero_latency
        && piece.slots > 1
        && let Some(leg) = pass_from_middle(mechanics, &rotation, piece, moved, landed, inflow)
    {
        return leg;
    }
    let length = rotation.length(piece.first_slot, piece.slots);
    let mut first = landed + rotation.wait(piece.first_slot);
    if let Some(flow) = inflow {
        // Every sector must be in the buffer when the head reaches it. The arrival is linear, so
        // the first and the last sector decide.
        let per_sector = Span(length.0 / u64::from(piece.sectors));
        let count = u64::from(piece.sectors);
        let last_sector = Span(per_sector.0 * (count - 1));
        let needed = flow
            .arrival(u64::from(flow.threshold))
            .max(SimTime(flow.arrival(count).0.saturating_sub(last_sector.0)));
        if needed > first {
            let revolutions = needed.since(first).0.div_ceil(mechanics.revolution().0);
            first += Span(revolutions * mechanics.revolution().0);
        }
    }
    let rotation = first.since(landed);
    Leg {
        piece,
        moved,
        landed,
        first,
        end: first + length,
        in_order: piece.sectors,
        rotation,
    }
}

/// Returns a zero-latency pass that begins after the first sector of the piece, or `None` if the
/// pass has to begin with the first sector.
#[inline(always)]
fn pass_from_middle(
    mechanics: &Mechanics,
    rotation: &TrackRotation,
    piece: Piece,
    moved: HeadMove,
    landed: SimTime,
    inflow: Option<DataArrival>,
) -> Option<Leg> {
    let slots = piece.track.slots;
    let mut slot = rotation.next_slot();
    let mut into = slot
        .checked_sub(piece.first_slot)
        .unwrap_or_else(|| slot + slots - piece.first_slot);
    if into == 0 || into >= piece.slots {
        return None;
    }
    let mut start = landed + rotation.wait(slot);
    if let Some(flow) = inflow {
        // Find the first sector, from `slot` on, whose data is available when it passes.
        let slot_time = mechanics.revolution().0 / u64::from(slots);
        loop {
            let needed = flow.arrival(u64::from((into + 1).max(flow.threshold)));
            if needed <= start {
                break;
            }
            let late = needed.since(start).0;
            let gain = if into + 1 < flow.threshold {
                slot_time
            } else {
                slot_time.saturating_sub(flow.per_sector.0)
            };
            let until_full = flow.full.since(start).0.div_ceil(slot_time);
            let steps = match gain {
                0 => until_full,
                gain => late.div_ceil(gain).min(until_full),
            }
            .max(1);
            into = into.saturating_add(steps.min(u64::from(piece.slots)) as u32);
            if into >= piece.slots {
                return None;
            }
            slot = (piece.first_slot + into) % slots;
            start = landed + rotation.wait(slot);
        }
    }
    let end = start + mechanics.revolution();
    let first = start + rotation.between(slot, piece.first_slot);
    let length = rotation.length(piece.first_slot, piece.slots);
    let gap = mechanics.revolution().saturating_sub(length);
    // If there are slips within the piece, the numbers of slots and sectors differ by a few. The
    // slips are treated as evenly distributed.
    let in_order = if piece.sectors == piece.slots {
        into
    } else {
        (u64::from(into) * u64::from(piece.sectors) / u64::from(piece.slots)).max(1) as u32
    };
    Some(Leg {
        piece,
        moved,
        landed,
        first,
        end,
        in_order,
        rotation: start.since(landed) + gap,
    })
}

//! A buffer that holds and coalesces writes, a possible stage of firmware in front of the modelled
//! drive. It has one parameter to fit.
//!
//! The drive reports up to a given number of sectors of writes as complete immediately and holds
//! them. Adjacent writes are joined. Once there is no more room, the next run in LBN order goes to
//! the drive. Physical sectors at the run's ends that are only partly written stay, because the
//! rest may still arrive. A flush, and the end of the stream, sends everything. A read
//! completes at once if all its sectors are held. Any other request that cannot be held first sends
//! whatever it overlaps.
//!
//! No profile has this behaviour: the modelled drive writes its buffered data as soon as the arm is
//! free.

use std::collections::BTreeMap;

use traxtent_units::Lbn;
use traxtent_units::request::Request;

use super::REQUEST_MAX;

/// The buffer with the writes that it holds.
#[derive(Clone, Debug)]
pub(super) struct WriteBuffer {
    /// The number of sectors that can be held.
    room: u64,
    /// The number of logical sectors in a physical one.
    ratio: u64,
    /// The runs, from first LBN to the first LBN after the run. No two runs touch.
    runs: BTreeMap<u64, u64>,
    /// The number of sectors held.
    held: u64,
    /// The end of the last run that [`WriteBuffer::next`] removed.
    position: u64,
}

impl WriteBuffer {
    pub(super) fn new(room: u64, ratio: u64) -> WriteBuffer {
        WriteBuffer {
            room,
            ratio,
            runs: BTreeMap::new(),
            held: 0,
            position: 0,
        }
    }

    pub(super) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    /// Returns whether a write of this size can ever be held.
    pub(super) fn can_hold(&self, sectors: u32) -> bool {
        u64::from(sectors) <= self.room
    }

    /// Returns whether `sectors` more fit while `leaving` sectors are on their way to the drive.
    pub(super) fn has_room(&self, sectors: u32, leaving: u64) -> bool {
        self.held + leaving + u64::from(sectors) <= self.room
    }

    /// Returns whether all of a request is held.
    pub(super) fn holds(&self, request: &Request) -> bool {
        let (from, to) = ends(request);
        let before = self.runs.range(..=from).next_back();
        before.is_some_and(|(_, end)| *end >= to)
    }

    /// Holds a write, joined with the runs that it overlaps or touches.
    pub(super) fn hold(&mut self, request: &Request) {
        let (mut from, mut to) = ends(request);
        let touching = self.runs.range(..=to).rev();
        let touching = touching.take_while(|(_, end)| **end >= from);
        for (start, end) in touching.map(|(s, e)| (*s, *e)).collect::<Vec<_>>() {
            self.remove(start);
            (from, to) = (from.min(start), to.max(end));
        }
        self.insert(from, to);
    }

    /// Removes the next run in ascending order, wrapping around to the lowest. Only its whole
    /// physical sectors leave; if it has none, all of it leaves.
    pub(super) fn next(&mut self) -> Vec<Request> {
        let mut runs = self.runs.range(self.position..);
        let Some((&start, &end)) = runs.next().or_else(|| self.runs.iter().next()) else {
            return Vec::new();
        };
        self.remove(start);
        let (from, to) = (
            start.next_multiple_of(self.ratio),
            end / self.ratio * self.ratio,
        );
        self.position = end;
        if from >= to {
            return writes(start, end).collect();
        }
        self.insert(start, from);
        self.insert(to, end);
        writes(from, to).collect()
    }

    /// Removes all runs that a request overlaps.
    pub(super) fn overlapping(&mut self, request: &Request) -> Vec<Request> {
        let (from, to) = ends(request);
        let overlapping = self.runs.range(..to).rev();
        let overlapping = overlapping.take_while(|(_, end)| **end > from);
        let starts: Vec<u64> = overlapping.map(|(start, _)| *start).collect();
        let mut all = Vec::new();
        for start in starts {
            let end = self.remove(start);
            all.extend(writes(start, end));
        }
        all
    }

    /// Removes everything.
    pub(super) fn all(&mut self) -> Vec<Request> {
        self.held = 0;
        let runs = std::mem::take(&mut self.runs);
        runs.into_iter()
            .flat_map(|(start, end)| writes(start, end))
            .collect()
    }

    fn insert(&mut self, start: u64, end: u64) {
        if start < end {
            self.held += end - start;
            self.runs.insert(start, end);
        }
    }

    fn remove(&mut self, start: u64) -> u64 {
        let end = self.runs.remove(&start).expect("it is held");
        self.held -= end - start;
        end
    }
}

fn ends(request: &Request) -> (u64, u64) {
    (request.lbn.0, request.end().0)
}

/// Splits a run into writes no larger than [`REQUEST_MAX`].
fn writes(start: u64, end: u64) -> impl Iterator<Item = Request> {
    let most = u64::from(REQUEST_MAX);
    let starts = (start..end).step_by(REQUEST_MAX as usize);
    starts.map(move |from| Request::write(Lbn(from), (end - from).min(most) as u32))
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are touching writes joined, and do partly written physical sectors stay?
    #[test]
    fn whole_sectors_leave() {
        let mut buffer = WriteBuffer::new(1000, 8);
        buffer.hold(&Request::write(Lbn(34), 8));
        buffer.hold(&Request::write(Lbn(50), 8));
        buffer.hold(&Request::write(Lbn(42), 8));
        assert!(buffer.holds(&Request::read(Lbn(34), 24)));
        assert_eq!(buffer.next(), [Request::write(Lbn(40), 16)]);
        assert!(!buffer.holds(&Request::read(Lbn(34), 24)));
        assert!(buffer.has_room(992, 0) && !buffer.has_room(993, 0));
        // The rest of the last physical sector arrives.
        buffer.hold(&Request::write(Lbn(58), 8));
        assert_eq!(
            buffer.overlapping(&Request::read(Lbn(60), 1)),
            [Request::write(Lbn(56), 10)]
        );
        // A run without a whole physical sector leaves unchanged.
        assert_eq!(buffer.next(), [Request::write(Lbn(34), 6)]);
        assert!(buffer.is_empty() && buffer.next().is_empty());
    }

    /// Does every written sector leave, and no other, whatever was written?
    #[test]
    fn nothing_is_lost() {
        let mut rng = traxtent_units::Rng::new(7);
        let mut buffer = WriteBuffer::new(1 << 40, 8);
        let mut written = std::collections::BTreeSet::new();
        let mut left = std::collections::BTreeSet::new();
        for _ in 0..2000 {
            let write = Request::write(Lbn(rng.bits() % 5000), 1 + (rng.bits() % 40) as u32);
            buffer.hold(&write);
            written.extend(write.lbn.0..write.end().0);
            if rng.bits().is_multiple_of(3) {
                let gone = buffer.next();
                left.extend(gone.iter().flat_map(|write| write.lbn.0..write.end().0));
            }
        }
        left.extend(
            buffer
                .all()
                .iter()
                .flat_map(|write| write.lbn.0..write.end().0),
        );
        assert_eq!(written, left);
        assert!(buffer.has_room(u32::MAX, (1 << 40) - u64::from(u32::MAX)));
    }
}

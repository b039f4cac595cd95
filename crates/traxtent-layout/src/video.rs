//! The arithmetic of a video server that works in rounds (paper T, section 5.4).
//!
//! In each round, each disk's share of the streams gets one I/O per stream, while the data fetched
//! in the previous round is sent. A round lasts at most as long as one I/O plays. The I/O size thus
//! determines the round and, with the number of disks, the startup latency. The I/O size and the
//! number of streams determine the memory.
//!
//! [`RoundBound`] is admission with a hard guarantee: from measurements of a drive, it bounds the
//! time of a round wherever its requests are on the disk. The seeks of a round share one stroke,
//! because requests are served in the order of their positions (paper T, footnote 2; Reddy and
//! Wyllie, "I/O issues in a multimedia system", Computer 27(3), 1994).
//!
//! This module has no drive model: all values are arguments, and a server can pass values that it
//! has measured. The values for the drive of a profile are computed where drives are simulated.

use traxtent_units::Span;

/// The playback rate of a stream, in bits per second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

const PS_PER_S: u128 = 1_000_000_000_000;

impl BitRate {
    /// Returns the playback time of `bytes`. It is rounded down: the data must not run out before
    /// the round ends.
    ///
    /// # Panics
    /// Panics if the bit rate is zero.
    pub fn play_time(self, bytes: u64) -> Span {
        let span = u128::from(bytes) * 8 * PS_PER_S / u128::from(self.0);
        Span(u64::try_from(span).unwrap_or(u64::MAX))
    }

    /// Returns the number of bytes that play within `time`, rounded down.
    pub fn bytes_in(self, time: Span) -> u64 {
        let bytes = u128::from(time.0) * u128::from(self.0) / (8 * PS_PER_S);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// The longest time that a viewer waits for the first picture. Videos are spread over all disks, so
/// a new stream waits for the round of its disk, and its first I/O takes one more round.
pub fn startup_latency(round: Span, disks: u32) -> Span {
    Span(round.0.saturating_mul(u64::from(disks) + 1))
}

/// The memory for `streams` streams. For each stream, one I/O is being sent and one fetched.
pub fn buffer_bytes(io_bytes: u64, streams: u64) -> u64 {
    io_bytes.saturating_mul(2).saturating_mul(streams)
}

/// An upper bound on the mean seek time of seeks that cover a given total distance: the lowest
/// concave curve that never decreases and is nowhere below the seek times.
///
/// By Jensen's inequality, on such a curve no division of the distance takes longer than equal
/// parts.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekBound {
    /// The corners of the curve, in ascending order: distance in cylinders and time in picoseconds.
    corners: Vec<(u64, u64)>,
}

impl SeekBound {
    /// Creates the bound for a drive whose seek over `d` cylinders takes `times[d]`. `times[0]` is
    /// the caller's value for a seek over no distance.
    ///
    /// # Panics
    /// Panics if `times` is empty.
    pub fn new(times: &[Span]) -> SeekBound {
        assert!(!times.is_empty(), "there are no seek times");
        let mut corners: Vec<(u64, u64)> = Vec::new();
        let mut longest = 0;
        for (distance, time) in times.iter().enumerate() {
            // The bound must not decrease, because a route can be shorter than the upper bound of
            // its distance.
            longest = time.0.max(longest);
            let next = (distance as u64, longest);
            while let [.., before, last] = corners[..] {
                if is_below(last, before, next) {
                    corners.pop();
                } else {
                    break;
                }
            }
            corners.push(next);
        }
        SeekBound { corners }
    }

    /// The longest seek time.
    pub fn longest(&self) -> Span {
        Span(self.corners[self.corners.len() - 1].1)
    }

    /// Returns an upper bound on the mean time of `seeks` seeks that cover `distance` cylinders
    /// together, rounded up. If `seeks` is 0, this is the longest seek time.
    pub fn mean(&self, distance: u64, seeks: u64) -> Span {
        let n = u128::from(seeks);
        let reached = |corner: &(u64, u64)| u128::from(corner.0) * n <= u128::from(distance);
        let above = self.corners.partition_point(reached);
        let Some(&(x1, y1)) = self.corners.get(above) else {
            return self.longest();
        };
        // The first corner is at distance 0, so `above` is at least 1.
        let (x0, y0) = self.corners[above - 1];
        let rise = u128::from(y1 - y0) * (u128::from(distance) - u128::from(x0) * n);
        Span(y0 + rise.div_ceil(u128::from(x1 - x0) * n) as u64)
    }
}

/// Returns whether a corner lies on or below the line between its neighbours.
fn is_below(corner: (u64, u64), before: (u64, u64), after: (u64, u64)) -> bool {
    let run = |from: (u64, u64), to: (u64, u64)| u128::from(to.0 - from.0);
    let rise = |from: (u64, u64), to: (u64, u64)| u128::from(to.1 - from.1);
    rise(before, corner) * run(before, after) <= rise(before, after) * run(before, corner)
}

/// The longest time that a round can take on one disk.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct RoundBound {
    /// The time of a round apart from its requests: its start, and the delivery of the last data.
    pub fixed: Span,
    /// The time of one request apart from the seek to it.
    pub request: Span,
    /// The bound on seek times.
    pub seeks: SeekBound,
    /// The cylinders that the seeks of a round share.
    pub stroke: u64,
    /// The cylinders that each seek can cover in addition to its share.
    pub extra_cylinders: u64,
}

impl RoundBound {
    /// The longest time of a round of `streams` requests.
    pub fn time(&self, streams: u32) -> Span {
        let n = u64::from(streams);
        if n == 0 {
            return Span::ZERO;
        }
        let seek = self.seeks.mean(self.stroke + n * self.extra_cylinders, n);
        Span(
            (self.request + seek)
                .0
                .saturating_mul(n)
                .saturating_add(self.fixed.0),
        )
    }

    /// The largest number of streams whose rounds never take longer than `round`.
    pub fn max_streams(&self, round: Span) -> u32 {
        let (mut fits, mut too_many) = (0, u32::MAX);
        while too_many - fits > 1 {
            let streams = fits + (too_many - fits) / 2;
            if self.time(streams) <= round {
                fits = streams;
            } else {
                too_many = streams;
            }
        }
        fits
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Do the paper's examples come out: 264 KB at 4 Mb/s, ten disks, and two I/Os of memory per
    /// stream?
    #[test]
    fn examples_of_the_paper() {
        let rate = BitRate(4_000_000);
        let round = rate.play_time(264 * 1024);
        assert_eq!(round, Span::from_ms(540.672));
        assert_eq!(rate.bytes_in(round), 264 * 1024);
        assert_eq!(
            startup_latency(Span::from_ms(500.0), 10),
            Span::from_ms(5500.0)
        );
        assert_eq!(buffer_bytes(264 * 1024, 70), 2 * 70 * 264 * 1024);
    }

    /// Is the curve the lowest one above the points that is concave and never decreases?
    #[test]
    fn the_bound_is_concave() {
        let times = [5, 10, 10, 10, 30, 20].map(Span);
        let bound = SeekBound::new(&times);
        assert_eq!(bound.corners, [(0, 5), (4, 30), (5, 30)]);
        assert_eq!(bound.mean(8, 4), Span(18));
        assert_eq!(bound.mean(1, 1), Span(12));
        assert_eq!(bound.mean(1000, 3), bound.longest());
    }

    /// Is the largest admissible number of streams admitted, and one more refused?
    #[test]
    fn admits_up_to_the_limit_and_no_more() {
        let worst = RoundBound {
            fixed: Span(50),
            request: Span(100),
            seeks: SeekBound::new(&[Span(10), Span(20), Span(21)]),
            stroke: 2,
            extra_cylinders: 0,
        };
        assert_eq!(worst.time(1), Span(50 + 121));
        assert_eq!(worst.time(2), Span(50 + 2 * 120));
        assert_eq!(worst.max_streams(Span(290)), 2);
        assert_eq!(worst.max_streams(Span(289)), 1);
        assert_eq!(worst.max_streams(Span(170)), 0);
    }
}

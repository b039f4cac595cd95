//! The arithmetic of a video server that works in rounds (paper T, section 5.4).
//!
//! In each round the server fetches one I/O for each stream from each disk's share of them, while what it fetched in
//! the round before is sent. A round may last as long as an I/O plays. So the size of an I/O decides the round, the
//! round decides the startup latency, and both decide the memory.
//!
//! [`WorstRound`] is admission with a hard guarantee: it bounds the time of a round whatever the places of its
//! requests, from figures of a drive. The seeks of a round share the stroke, because requests are served in the order
//! of their places (paper T, footnote 2; Reddy and Wyllie, "I/O issues in a multimedia system", Computer 27(3), 1994).
//!
//! No drive is known here: figures come as arguments, so that a server can admit streams by figures that it has measured.
//! What they are for a drive of a profile is worked out where drives are simulated.

use crate::units::Span;

/// How fast a stream is played, in bits a second.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct BitRate(pub u64);

const PS_PER_S: u128 = 1_000_000_000_000;

impl BitRate {
    /// How long so many bytes play, rounded down: the data must not run out before the round ends.
    ///
    /// # Panics
    /// If the bit rate is zero.
    pub fn play_time(self, bytes: u64) -> Span {
        let span = u128::from(bytes) * 8 * PS_PER_S / u128::from(self.0);
        Span(u64::try_from(span).unwrap_or(u64::MAX))
    }

    /// How many bytes play within that time, rounded down.
    pub fn bytes_in(self, time: Span) -> u64 {
        let bytes = u128::from(time.0) * u128::from(self.0) / (8 * PS_PER_S);
        u64::try_from(bytes).unwrap_or(u64::MAX)
    }
}

/// How long a viewer waits at worst for the first picture: videos are spread over all disks, so that a new stream waits
/// for the round of its disk, and its first I/O takes a round.
pub fn startup_latency(round: Span, disks: u32) -> Span {
    Span(round.0.saturating_mul(u64::from(disks) + 1))
}

/// The memory for so many streams: of each, one I/O is being sent and one fetched.
pub fn buffer_bytes(io_bytes: u64, streams: u64) -> u64 {
    io_bytes.saturating_mul(2).saturating_mul(streams)
}

/// The mean time that seeks can take at most if together they cover a given distance: the least concave curve above
/// the seek times. (By Jensen's inequality no division of the distance takes longer than equal parts on such a curve.)
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SeekBound {
    /// Corners of the curve: distance in cylinders and time in picoseconds, both ascending.
    corners: Vec<(u64, u64)>,
}

impl SeekBound {
    /// The bound for a drive whose seek over `d` cylinders takes `times[d]`, whatever a seek over none counts as.
    ///
    /// # Panics
    /// If there are no times.
    pub fn new(times: &[Span]) -> SeekBound {
        assert!(!times.is_empty(), "there is a seek over no distance");
        let mut corners: Vec<(u64, u64)> = Vec::new();
        let mut longest = 0;
        for (distance, time) in times.iter().enumerate() {
            // A bound must not fall: a route may be shorter than what it may cover.
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

    /// The longest that a seek takes.
    pub fn longest(&self) -> Span {
        Span(self.corners[self.corners.len() - 1].1)
    }

    /// A bound on the mean of so many seeks that cover `distance` cylinders together, rounded up.
    ///
    /// # Panics
    /// If there are no seeks.
    pub fn mean(&self, distance: u64, seeks: u64) -> Span {
        let n = u128::from(seeks);
        let reached = |corner: &(u64, u64)| u128::from(corner.0) * n <= u128::from(distance);
        let above = self.corners.partition_point(reached);
        let Some(&(x1, y1)) = self.corners.get(above) else {
            return self.longest();
        };
        // The first corner is at no distance.
        let (x0, y0) = self.corners[above - 1];
        let rise = u128::from(y1 - y0) * (u128::from(distance) - u128::from(x0) * n);
        Span(y0 + rise.div_ceil(u128::from(x1 - x0) * n) as u64)
    }
}

/// Whether a corner lies on or below the line between its neighbours.
fn is_below(corner: (u64, u64), before: (u64, u64), after: (u64, u64)) -> bool {
    let run = |from: (u64, u64), to: (u64, u64)| u128::from(to.0 - from.0);
    let rise = |from: (u64, u64), to: (u64, u64)| u128::from(to.1 - from.1);
    rise(before, corner) * run(before, after) <= rise(before, after) * run(before, corner)
}

/// What a round can take of a disk at worst.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WorstRound {
    /// What a round takes beside its requests: to begin, and until the last data have come.
    pub once: Span,
    /// What a request takes beside the seek to it.
    pub request: Span,
    /// What the seeks take.
    pub seeks: SeekBound,
    /// Cylinders that the seeks of a round share.
    pub stroke: u64,
    /// Cylinders that a seek may cover in addition to its share.
    pub astray: u64,
}

impl WorstRound {
    /// The longest that a round of so many requests takes.
    pub fn time(&self, streams: u32) -> Span {
        let n = u64::from(streams);
        if n == 0 {
            return Span::ZERO;
        }
        let seek = self.seeks.mean(self.stroke + n * self.astray, n);
        Span(
            (self.request + seek)
                .0
                .saturating_mul(n)
                .saturating_add(self.once.0),
        )
    }

    /// The most streams whose rounds never take longer than that.
    pub fn most_streams(&self, round: Span) -> u32 {
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

    /// Do the paper's examples come out: 264 KB at 4 Mb/s, ten disks, and two I/Os of memory a stream?
    #[test]
    fn a_round_is_what_an_io_plays() {
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

    /// Is the curve the least concave one above the points?
    #[test]
    fn the_bound_spans_dents() {
        let times = [5, 10, 10, 10, 30, 20].map(Span);
        let bound = SeekBound::new(&times);
        assert_eq!(bound.corners, [(0, 5), (4, 30), (5, 30)]);
        assert_eq!(bound.mean(8, 4), Span(18));
        assert_eq!(bound.mean(1, 1), Span(12));
        assert_eq!(bound.mean(1000, 3), bound.longest());
    }

    /// Is the most that is admitted admitted, and one more not?
    #[test]
    fn both_sides_of_admission() {
        let worst = WorstRound {
            once: Span(50),
            request: Span(100),
            seeks: SeekBound::new(&[Span(10), Span(20), Span(21)]),
            stroke: 2,
            astray: 0,
        };
        assert_eq!(worst.time(1), Span(50 + 121));
        assert_eq!(worst.time(2), Span(50 + 2 * 120));
        assert_eq!(worst.most_streams(Span(290)), 2);
        assert_eq!(worst.most_streams(Span(289)), 1);
        assert_eq!(worst.most_streams(Span(170)), 0);
    }
}

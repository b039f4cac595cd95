//! Comparing two track maps.

use std::iter::Peekable;

use super::{MappedTrack, TrackMap};

/// One of two maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Side {
    /// The first map.
    Left,
    /// The second map.
    Right,
}

/// A track that is in only one of two maps.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MapDifference {
    /// The map that contains the track.
    pub side: Side,
    /// The track.
    pub track: MappedTrack,
}

/// Returns the tracks that are in only one of two maps, in LBN order. Tracks are the same if they
/// have the same LBNs, regardless of their positions in the maps.
pub fn differences(left: &TrackMap, right: &TrackMap) -> impl Iterator<Item = MapDifference> {
    Differences {
        left: left.tracks().peekable(),
        right: right.tracks().peekable(),
    }
}

struct Differences<L: Iterator, R: Iterator> {
    left: Peekable<L>,
    right: Peekable<R>,
}

impl<L, R> Iterator for Differences<L, R>
where
    L: Iterator<Item = MappedTrack>,
    R: Iterator<Item = MappedTrack>,
{
    type Item = MapDifference;

    fn next(&mut self) -> Option<MapDifference> {
        let lbns = |track: &MappedTrack| (track.first_lbn, track.sectors);
        loop {
            let left_first = match (self.left.peek(), self.right.peek()) {
                (Some(left), Some(right)) if lbns(left) == lbns(right) => {
                    self.left.next();
                    self.right.next();
                    continue;
                }
                (Some(left), Some(right)) => lbns(left) < lbns(right),
                (left, _) => left.is_some(),
            };
            let (side, track) = if left_first {
                (Side::Left, self.left.next())
            } else {
                (Side::Right, self.right.next())
            };
            return track.map(|track| MapDifference { side, track });
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are a moved boundary, an additional track and a tail reported, and equal tracks not
    /// reported?
    #[test]
    fn tracks_of_one_side() {
        let map = |rows: &str| {
            let text = format!("first_lbn,sectors\n{rows}");
            TrackMap::read_csv(text.as_bytes()).unwrap()
        };
        let left = map("0,10\n10,10\n20,10\n30,10\n40,10\n");
        let right = map("0,10\n10,11\n21,9\n30,5\n35,5\n40,10\n50,1\n");
        let found: Vec<_> = differences(&left, &right)
            .map(|one| (one.side, one.track.first_lbn.0, one.track.sectors.0))
            .collect();
        let expected = [
            (Side::Left, 10, 10),
            (Side::Right, 10, 11),
            (Side::Left, 20, 10),
            (Side::Right, 21, 9),
            (Side::Right, 30, 5),
            (Side::Left, 30, 10),
            (Side::Right, 35, 5),
            (Side::Right, 50, 1),
        ];
        assert_eq!(found, expected);
        assert_eq!(differences(&left, &left).count(), 0);
    }
}

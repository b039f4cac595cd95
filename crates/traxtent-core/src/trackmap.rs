//! The track map: where tracks begin, in LBN order. Layouts consume it; it knows no geometry.
//!
//! As text it is CSV: a line of names, then a line a track, `first_lbn,sectors` and whatever else the file has
//! (the lists of a drive model add `cylinder,head`), without gaps.

use std::io::{self, BufRead, Write};

use crate::geometry::Geometry;
use crate::units::{Lbn, Sectors};

/// A map has at most this many tracks.
pub const TRACKS_MAX: usize = 1 << 28;

/// A line of a map is no longer than this.
const LINE_MAX: u64 = 4096;

/// The tracks of a drive, or of a part of it, as LBNs only.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TrackMap {
    /// The first LBN of each track, and the LBN behind the last track. Strictly ascending.
    bounds: Vec<Lbn>,
}

/// A track of a map.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct MappedTrack {
    /// Position in the map, from 0.
    pub index: usize,
    /// The lowest LBN.
    pub first_lbn: Lbn,
    /// How many LBNs.
    pub sectors: Sectors,
}

/// What is wrong with the text of a map.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum TrackMapError {
    /// A line that is no track.
    #[error("line {line}: {problem}")]
    Line {
        /// Which line, from 1.
        line: u64,
        /// What is wrong with it.
        problem: String,
    },
    /// The text could not be read.
    #[error("line {line}: {error}")]
    Io {
        /// Which line, from 1.
        line: u64,
        /// Why not.
        error: io::Error,
    },
}

impl TrackMap {
    /// The map of a drive model.
    pub fn of(geometry: &Geometry) -> TrackMap {
        let starts = geometry.tracks().map(|track| track.first_lbn);
        let end = Lbn(geometry.capacity().0);
        TrackMap {
            bounds: starts.chain([end]).collect(),
        }
    }

    /// Reads a map.
    ///
    /// # Errors
    /// The first line that is no track or does not go on where the one before it ends.
    pub fn read_csv(mut input: impl BufRead) -> Result<TrackMap, TrackMapError> {
        let mut bounds: Vec<Lbn> = Vec::new();
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let bytes = io::Read::take(&mut input, LINE_MAX)
                .read_until(b'\n', &mut text)
                .map_err(|error| TrackMapError::Io { line, error })?;
            let wrong = |problem: String| Err(TrackMapError::Line { line, problem });
            if bytes == 0 {
                break;
            }
            let Ok(row) = std::str::from_utf8(&text) else {
                return wrong("is not UTF-8 text".to_owned());
            };
            let row = row.trim_end_matches(['\n', '\r']);
            let mut fields = row.split(',').map(str::trim);
            let (first, sectors) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
            if line == 1 {
                if (first, sectors) != ("first_lbn", "sectors") {
                    return wrong("a track map begins with the names first_lbn,sectors".to_owned());
                }
                continue;
            }
            let number = |name: &str, text: &str| {
                text.parse::<u64>().map_err(|_| TrackMapError::Line {
                    line,
                    problem: format!("{name}: {text:?}: expected a whole number"),
                })
            };
            let (first, count) = (number("first_lbn", first)?, number("sectors", sectors)?);
            let Some(end) = first.checked_add(count).filter(|_| count > 0) else {
                return wrong(format!(
                    "sectors: {count}: expected 1 or more, and an end below 2^64"
                ));
            };
            match bounds.last() {
                None => bounds.push(Lbn(first)),
                Some(&expected) if expected.0 == first => {}
                Some(expected) => {
                    return wrong(format!(
                        "first_lbn: {first}: the track before ends at LBN {expected}"
                    ));
                }
            }
            if bounds.len() > TRACKS_MAX {
                return wrong(format!("more than {TRACKS_MAX} tracks"));
            }
            bounds.push(Lbn(end));
        }
        if bounds.is_empty() {
            let problem = "the map has no tracks".to_owned();
            return Err(TrackMapError::Line { line: 1, problem });
        }
        Ok(TrackMap { bounds })
    }

    /// Writes the map; [`TrackMap::read_csv`] reads it back.
    ///
    /// # Errors
    /// What the writer returns.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "first_lbn,sectors")?;
        for track in self.tracks() {
            writeln!(out, "{},{}", track.first_lbn, track.sectors.0)?;
        }
        Ok(())
    }

    /// How many tracks.
    #[expect(clippy::len_without_is_empty, reason = "a map has tracks")]
    pub fn len(&self) -> usize {
        self.bounds.len() - 1
    }

    /// The LBN behind the last track.
    pub fn end(&self) -> Lbn {
        self.bounds[self.len()]
    }

    /// The tracks in order.
    pub fn tracks(&self) -> impl ExactSizeIterator<Item = MappedTrack> {
        self.bounds
            .windows(2)
            .enumerate()
            .map(|(index, bounds)| MappedTrack {
                index,
                first_lbn: bounds[0],
                sectors: Sectors(bounds[1].0 - bounds[0].0),
            })
    }

    /// The track that holds an LBN.
    pub fn track_of(&self, lbn: Lbn) -> Option<MappedTrack> {
        let after = self.bounds.partition_point(|&bound| bound <= lbn);
        let index = after.checked_sub(1).filter(|&index| index < self.len())?;
        let (first_lbn, end) = (self.bounds[index], self.bounds[index + 1]);
        Some(MappedTrack {
            index,
            first_lbn,
            sectors: Sectors(end.0 - first_lbn.0),
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn read(text: &str) -> Result<TrackMap, TrackMapError> {
        TrackMap::read_csv(text.as_bytes())
    }

    /// Does a map survive its text, and is the track on both sides of a boundary found?
    #[test]
    fn written_and_read() {
        let map =
            read("first_lbn,sectors,cylinder,head\n0,200,0,0\n200,199,0,1\n399,200,1,1\n").unwrap();
        assert_eq!((map.len(), map.end()), (3, Lbn(599)));
        let mut text = Vec::new();
        map.write_csv(&mut text).unwrap();
        assert_eq!(TrackMap::read_csv(&text[..]).unwrap(), map);
        let index = |lbn| map.track_of(Lbn(lbn)).map(|track| track.index);
        assert_eq!(
            [0, 199, 200, 398, 399, 598].map(index),
            [0, 0, 1, 1, 2, 2].map(Some)
        );
        assert_eq!(index(599), None);
    }

    /// Does each kind of bad line say which line it is, and why?
    #[test]
    fn bad_lines() {
        for (text, says) in [
            ("", "line 1: the map has no tracks"),
            ("0,200\n", "line 1: a track map begins"),
            ("first_lbn,sectors\n0,x\n", "line 2: sectors: \"x\""),
            ("first_lbn,sectors\n0,0\n", "line 2: sectors: 0"),
            (
                "first_lbn,sectors\n0,8\n9,8\n",
                "line 3: first_lbn: 9: the track before ends at LBN 8",
            ),
            (
                "first_lbn,sectors\n18446744073709551615,1\n",
                "line 2: sectors: 1",
            ),
        ] {
            let error = read(text).unwrap_err().to_string();
            assert!(error.starts_with(says), "{error}");
        }
    }
}

//! A track map as CSV: a header line, then one line per track without gaps. The columns are
//! `first_lbn,sectors`; any further columns are ignored (lists exported from a drive model add
//! `cylinder,head`).

use std::io::{self, BufRead, Write};

use super::error::TrackMapError;
use super::{MapBuilder, TrackMap};
use crate::{Confirm, Found};
use traxtent_units::Lbn;

/// The longest line that is accepted, in bytes, including its line break.
const LINE_BYTES_MAX: u64 = 4096;

impl TrackMap {
    /// Reads a map from CSV.
    ///
    /// # Errors
    /// Returns an error if the text cannot be read, if it has no header or no tracks, or for the
    /// first line that is not a track, does not continue where the previous track ends, or follows
    /// [`TRACKS_MAX`](crate::TRACKS_MAX) tracks.
    pub fn read_csv(mut input: impl BufRead) -> Result<TrackMap, TrackMapError> {
        let mut tracks = MapBuilder::default();
        let mut text = Vec::new();
        for line in 1.. {
            text.clear();
            let bytes = io::Read::take(&mut input, LINE_BYTES_MAX + 1)
                .read_until(b'\n', &mut text)
                .map_err(|error| TrackMapError::Io { line, error })?;
            let wrong = |problem: String| TrackMapError::Line { line, problem };
            if bytes == 0 {
                break;
            }
            if bytes as u64 > LINE_BYTES_MAX {
                return Err(wrong(format!("is longer than {LINE_BYTES_MAX} bytes")));
            }
            let row = std::str::from_utf8(&text)
                .map_err(|_| wrong("is not UTF-8 text".to_owned()))?
                .trim_end_matches(['\n', '\r']);
            let mut fields = row.split(',').map(str::trim);
            let (first, sectors) = (fields.next().unwrap_or(""), fields.next().unwrap_or(""));
            if line == 1 {
                if (first, sectors) != ("first_lbn", "sectors") {
                    let says = "a track map must begin with the header first_lbn,sectors";
                    return Err(wrong(says.to_owned()));
                }
                continue;
            }
            let number = |name: &str, text: &str| {
                text.parse::<u64>()
                    .map_err(|_| wrong(format!("{name}: {text:?}: expected a whole number")))
            };
            let first_lbn = Lbn(number("first_lbn", first)?);
            let sectors = number("sectors", sectors)?;
            let sectors = u32::try_from(sectors)
                .map_err(|_| wrong(format!("sectors: {sectors}: expected at most {}", u32::MAX)))?;
            let track = Found {
                first_lbn,
                sectors,
                confirm: Confirm::Predicted,
            };
            tracks
                .push(track)
                .map_err(|error| wrong(error.to_string()))?;
        }
        match tracks.finish() {
            Some((map, _)) => Ok(map),
            None => Err(TrackMapError::Line {
                line: 1,
                problem: "the map has no tracks".to_owned(),
            }),
        }
    }

    /// Writes the map as CSV; [`TrackMap::read_csv`] reads it back.
    ///
    /// # Errors
    /// Returns the writer's error.
    pub fn write_csv(&self, out: &mut impl Write) -> io::Result<()> {
        writeln!(out, "first_lbn,sectors")?;
        for track in self.tracks() {
            writeln!(out, "{},{}", track.first_lbn, track.sectors.0)?;
        }
        Ok(())
    }
}

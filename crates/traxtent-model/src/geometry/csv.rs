//! The tracks of a drive as CSV, divided where LBNs are remapped.

use std::io::{self, BufWriter, Write};

use super::{Geometry, Track};
use traxtent_units::{Cylinder, Lbn, Surface};

/// Consecutive LBNs on one surface of one cylinder.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct LbnRun {
    /// The first LBN.
    pub first_lbn: Lbn,
    /// The number of LBNs.
    pub sectors: u64,
    /// The arm position.
    pub cylinder: Cylinder,
    /// The surface; its head has the same number.
    pub surface: Surface,
}

impl Geometry {
    /// Iterates over the whole drive as runs of consecutive LBNs on one surface of one cylinder, in
    /// LBN order. A run is a track, or a part of one if some of its LBNs are remapped.
    pub fn lbn_runs(&self) -> impl Iterator<Item = LbnRun> {
        let mut parts = self.tracks().flat_map(|track| self.parts(track)).peekable();
        std::iter::from_fn(move || {
            let mut run = parts.next()?;
            while let Some(next) =
                parts.next_if(|n| (n.cylinder, n.surface) == (run.cylinder, run.surface))
            {
                run.sectors += next.sectors;
            }
            Some(run)
        })
    }

    /// Returns the parts into which remapped LBNs divide a track.
    fn parts(&self, track: Track) -> impl Iterator<Item = LbnRun> {
        let end = track.end_lbn();
        let mut lbn = track.first_lbn;
        let whole = {
            let next = self.moved.partition_point(|m| m.lbn < lbn.0);
            self.moved.get(next).is_none_or(|m| m.lbn >= end.0)
        };
        std::iter::from_fn(move || {
            let (sectors, holder) = if lbn == end {
                return None;
            } else if whole {
                (track.sectors, track)
            } else {
                let piece = self.piece(lbn, u32::MAX);
                (piece.sectors, piece.track)
            };
            let first_lbn = lbn;
            lbn = Lbn(lbn.0 + u64::from(sectors));
            let Track {
                cylinder, surface, ..
            } = holder;
            Some(LbnRun {
                first_lbn,
                sectors: sectors.into(),
                cylinder,
                surface,
            })
        })
    }
}

/// Writes the tracks as CSV: `first_lbn,sectors,cylinder,head`. There is one line for each
/// [`LbnRun`], so a track with remapped LBNs has several.
///
/// # Errors
/// Returns the errors of the writer.
pub fn write_csv(geometry: &Geometry, out: impl Write) -> io::Result<()> {
    let mut out = BufWriter::with_capacity(1 << 16, out);
    writeln!(out, "first_lbn,sectors,cylinder,head")?;
    for run in geometry.lbn_runs() {
        let LbnRun {
            first_lbn,
            sectors,
            cylinder,
            surface,
        } = run;
        writeln!(out, "{first_lbn},{sectors},{cylinder},{surface}")?;
    }
    out.flush()
}

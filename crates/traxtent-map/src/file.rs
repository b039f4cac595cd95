//! The track map as a file: the tracks, the drive that they belong to, and how they were found.
//!
//! The format is specified byte by byte in `docs/reference/trackmap.md`. The same format serves as
//! the checkpoint of an unfinished probe; see [`MapFile::complete`].

use std::ops::Range;

use super::builder::Confidence;
use super::{MapBuilder, TrackMap};
use crate::{Algorithm, Confirm, Identity, Region, Verify};
use traxtent_units::{Lbn, Sectors, Span};

/// LBNs as ascending ranges that neither touch nor overlap.
pub type LbnRanges = Vec<Range<Lbn>>;

/// A track map with its metadata.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFile {
    /// The drive's description of itself.
    pub identity: Identity,
    /// How the tracks were found.
    pub method: MapSource,
    /// Whether the search is complete. If not, this file is a checkpoint of the search.
    pub complete: bool,
    /// The region searched, or `None` for the whole drive.
    pub region: Option<Region>,
    /// The cost of the search so far.
    pub cost: ProbeCost,
    /// The tracks.
    pub tracks: TrackMap,
    /// How each track boundary was confirmed.
    pub confidence: Confidence,
    /// The LBNs that the drive could not read.
    pub unreadable: LbnRanges,
    /// The remapped LBNs: LBNs that are not stored on their track.
    pub remapped: LbnRanges,
    /// Notes for the reader, one line each.
    pub notes: Vec<String>,
}

/// How tracks were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MapSource {
    /// Computed from a drive model.
    Model,
    /// Converted from a list of tracks.
    List,
    /// Computed from a volume: its tracks are the volume's chunks.
    Volume,
    /// Found by a probe.
    Probe(Algorithm, Verify),
}

/// The cost of a search.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct ProbeCost {
    /// The number of timed requests.
    pub reads: u64,
    /// The number of translations.
    pub translations: u64,
    /// The duration by the drive's clock.
    pub drive_time: Span,
}

/// The reason why a search cannot continue from a checkpoint, or why a map is not the map of a
/// drive.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum ResumeMismatch {
    /// The checkpoint belongs to another drive.
    #[error("belongs to another drive: its {what} is {theirs}, this drive's is {present}")]
    Drive {
        /// The property that differs.
        what: &'static str,
        /// Its value in the checkpoint.
        theirs: String,
        /// Its value on the present drive.
        present: String,
    },
    /// The checkpoint belongs to a search with another region or method.
    #[error("belongs to a search of {theirs}; this search is of {ours}")]
    Search {
        /// The region and method of the checkpoint.
        theirs: String,
        /// The region and method of the present search.
        ours: String,
    },
    /// The search is already complete.
    #[error("is already complete")]
    Complete,
    /// The map has LBNs that the drive does not have.
    #[error("ends before LBN {theirs}, but the drive ends before LBN {}", present.0)]
    End {
        /// The first LBN after those of the map.
        theirs: Lbn,
        /// The number of sectors of the drive.
        present: Sectors,
    },
}

impl MapFile {
    /// Creates the file for a map that does not come from a probe. It is complete, every track
    /// counts as tested, and the cost is zero.
    pub fn new(identity: Identity, method: MapSource, tracks: TrackMap) -> MapFile {
        MapFile {
            identity,
            method,
            complete: true,
            region: None,
            cost: ProbeCost::default(),
            confidence: Confidence::all(&tracks, Confirm::Tested),
            tracks,
            unreadable: Vec::new(),
            remapped: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// Returns the remainder of an interrupted search: a builder with the tracks so far, and the
    /// region after them.
    ///
    /// # Errors
    /// Returns an error if this file is the checkpoint of another search or another drive, or if it
    /// is complete.
    pub fn resume(
        &self,
        identity: &Identity,
        method: MapSource,
        region: Region,
    ) -> Result<(MapBuilder, Region), ResumeMismatch> {
        self.check_drive(identity)?;
        let of = |method: MapSource, region: Region| {
            format!("LBNs {}..{} by {method}", region.first, region.end)
        };
        let searched = self.region.unwrap_or(Region::whole(self.identity.capacity));
        if (self.method, searched) != (method, region) {
            return Err(ResumeMismatch::Search {
                theirs: of(self.method, searched),
                ours: of(method, region),
            });
        }
        if self.complete {
            return Err(ResumeMismatch::Complete);
        }
        let left = Region {
            first: self.tracks.end(),
            aligned: true,
            ..region
        };
        Ok((MapBuilder::resume(self), left))
    }

    /// Checks that this map belongs to the given drive, according to its identity.
    ///
    /// # Errors
    /// Returns an error that names the first property that differs.
    pub fn check_drive(&self, identity: &Identity) -> Result<(), ResumeMismatch> {
        let properties = |identity: &Identity| {
            [
                ("vendor", one_line(&identity.vendor)),
                ("product", one_line(&identity.product)),
                ("serial number", one_line(&identity.serial)),
                ("capacity", identity.capacity.to_string()),
                (
                    "logical sector",
                    format!("{} bytes", identity.logical_bytes),
                ),
            ]
        };
        let pairs = properties(&self.identity)
            .into_iter()
            .zip(properties(identity));
        for ((what, theirs), (_, ours)) in pairs {
            if theirs != ours {
                let named = |text: String| {
                    if text.is_empty() {
                        "unknown".into()
                    } else {
                        text
                    }
                };
                return Err(ResumeMismatch::Drive {
                    what,
                    theirs: named(theirs),
                    present: named(ours),
                });
            }
        }
        Ok(())
    }

    /// Checks that this map can be the map of a device. A list of tracks does not identify its
    /// drive, and a volume has no identity that a device reports, so only the end of such a map is
    /// checked.
    ///
    /// # Errors
    /// Returns the errors of [`check_drive`](Self::check_drive) and of
    /// [`check_end`](Self::check_end).
    pub fn check_device(&self, identity: &Identity) -> Result<(), ResumeMismatch> {
        match self.method {
            MapSource::List | MapSource::Volume => self.check_end(identity),
            MapSource::Model | MapSource::Probe(..) => self.check_drive(identity),
        }
    }

    /// Checks that this map does not end after the end of a drive.
    ///
    /// # Errors
    /// Returns an error with both ends if it does.
    pub fn check_end(&self, identity: &Identity) -> Result<(), ResumeMismatch> {
        if self.tracks.end().0 > identity.capacity.0 {
            return Err(ResumeMismatch::End {
                theirs: self.tracks.end(),
                present: identity.capacity,
            });
        }
        Ok(())
    }
}

impl MapSource {
    /// Parses the output of [`MapSource`]'s `Display`.
    pub(super) fn parse(text: &str) -> Option<MapSource> {
        match text {
            "model" => return Some(MapSource::Model),
            "list" => return Some(MapSource::List),
            "volume" => return Some(MapSource::Volume),
            _ => {}
        }
        let (algorithm, verify) = text.split_once(' ')?;
        let verify = Verify::ALL.into_iter().find(|one| one.name() == verify)?;
        Some(MapSource::Probe(Algorithm::by_name(algorithm)?, verify))
    }
}

impl std::fmt::Display for MapSource {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            MapSource::Model => f.write_str("model"),
            MapSource::List => f.write_str("list"),
            MapSource::Volume => f.write_str("volume"),
            MapSource::Probe(algorithm, verify) => {
                write!(f, "{} {}", algorithm.name(), verify.name())
            }
        }
    }
}

/// Returns a text in the form used in a file: on one line, trimmed, and limited in length.
pub(super) fn one_line(text: &str) -> String {
    const CHARACTERS_MAX: usize = 500;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let short: String = text
        .trim()
        .chars()
        .take(CHARACTERS_MAX)
        .map(plain)
        .collect();
    short.trim().to_owned()
}

/// Converts single LBNs to ranges.
pub fn lbn_ranges(lbns: impl IntoIterator<Item = Lbn>) -> LbnRanges {
    let mut sorted: Vec<Lbn> = lbns.into_iter().collect();
    sorted.sort_unstable();
    sorted.dedup();
    let mut ranges = LbnRanges::new();
    for lbn in sorted {
        match ranges.last_mut() {
            Some(range) if range.end == lbn => range.end = Lbn(lbn.0 + 1),
            _ => ranges.push(lbn..Lbn(lbn.0 + 1)),
        }
    }
    ranges
}

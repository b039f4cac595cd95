//! The track map as a file: the tracks, whose they are, and how they are known.
//!
//! The format is told to the byte in `docs/trackmap.md`. The same format serves as the checkpoint
//! of a probe that is not done; see [`MapFile::complete`].

use std::ops::Range;

use super::builder::Confidence;
use super::{MapBuilder, TrackMap};
use crate::probe::{Algorithm, Confirm, Identity, Region, Verify};
use crate::units::{Lbn, Span};

/// LBNs as ascending ranges that neither touch nor overlap.
pub type LbnRanges = Vec<Range<Lbn>>;

/// A track map with what is known of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MapFile {
    /// The drive, as it describes itself.
    pub identity: Identity,
    /// How the tracks were found.
    pub method: Method,
    /// Whether the search came to its end; else this is its checkpoint.
    pub complete: bool,
    /// What was to be searched, where it is not the whole drive.
    pub region: Option<Region>,
    /// What the search has cost so far.
    pub cost: Cost,
    /// Where the tracks are.
    pub tracks: TrackMap,
    /// How sure that is.
    pub confidence: Confidence,
    /// LBNs that the drive could not read.
    pub unreadable: LbnRanges,
    /// LBNs that are kept elsewhere than on their track.
    pub moved: LbnRanges,
    /// What a reader should know, a line each.
    pub notes: Vec<String>,
}

/// How tracks were found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Method {
    /// A drive model was asked.
    Model,
    /// A list of tracks was converted.
    List,
    /// A probe found them.
    Probe(Algorithm, Verify),
}

/// What a search has cost.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Cost {
    /// Timed requests.
    pub reads: u64,
    /// Translations.
    pub translations: u64,
    /// By the drive's clock.
    pub drive_time: Span,
}

/// Why a search cannot go on from a checkpoint.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum Mismatch {
    /// It is of another drive.
    #[error("is of another drive: its {what} is {theirs}, that of this drive {ours}")]
    Drive {
        /// What differs.
        what: &'static str,
        /// In the checkpoint.
        theirs: String,
        /// Of the drive at hand.
        ours: String,
    },
    /// It is of a search for something else.
    #[error("is of a search of {theirs}, this one is of {ours}")]
    Search {
        /// What the checkpoint's search was for.
        theirs: String,
        /// What this one is for.
        ours: String,
    },
    /// There is nothing left to do.
    #[error("is complete")]
    Complete,
}

impl MapFile {
    /// The file of a map that is not from a probe: certain, complete, without cost.
    pub fn new(identity: Identity, method: Method, tracks: TrackMap) -> MapFile {
        MapFile {
            identity,
            method,
            complete: true,
            region: None,
            cost: Cost::default(),
            confidence: Confidence::all(&tracks, Confirm::Tested),
            tracks,
            unreadable: Vec::new(),
            moved: Vec::new(),
            notes: Vec::new(),
        }
    }

    /// What is left of a search that was stopped: its tracks so far, and the region behind them.
    ///
    /// # Errors
    /// Where this is the checkpoint of another search or another drive, or of none.
    pub fn resume(
        &self,
        identity: &Identity,
        method: Method,
        region: Region,
    ) -> Result<(MapBuilder, Region), Mismatch> {
        self.is_of(identity)?;
        let of = |method: Method, region: Region| {
            format!("LBNs {} to {} by {method}", region.first, region.end)
        };
        let searched = self.region.unwrap_or(Region::whole(self.identity.capacity));
        if (self.method, searched) != (method, region) {
            return Err(Mismatch::Search {
                theirs: of(self.method, searched),
                ours: of(method, region),
            });
        }
        if self.complete {
            return Err(Mismatch::Complete);
        }
        let left = Region {
            first: self.tracks.end(),
            aligned: true,
            ..region
        };
        Ok((MapBuilder::resume(self), left))
    }

    /// Whether a drive is the one of this map, as far as it tells.
    ///
    /// # Errors
    /// Says what differs.
    pub fn is_of(&self, identity: &Identity) -> Result<(), Mismatch> {
        let said = |identity: &Identity| {
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
        let pairs = said(&self.identity).into_iter().zip(said(identity));
        for ((what, theirs), (_, ours)) in pairs {
            if theirs != ours {
                let named = |text: String| {
                    if text.is_empty() {
                        "unknown".into()
                    } else {
                        text
                    }
                };
                return Err(Mismatch::Drive {
                    what,
                    theirs: named(theirs),
                    ours: named(ours),
                });
            }
        }
        Ok(())
    }
}

impl Method {
    /// Reads what [`Method`] prints.
    pub(super) fn parse(text: &str) -> Option<Method> {
        match text {
            "model" => return Some(Method::Model),
            "list" => return Some(Method::List),
            _ => {}
        }
        let (algorithm, verify) = text.split_once(' ')?;
        let verify = Verify::ALL.into_iter().find(|one| one.name() == verify)?;
        Some(Method::Probe(Algorithm::by_name(algorithm)?, verify))
    }
}

impl std::fmt::Display for Method {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Method::Model => f.write_str("model"),
            Method::List => f.write_str("list"),
            Method::Probe(algorithm, verify) => {
                write!(f, "{} {}", algorithm.name(), verify.name())
            }
        }
    }
}

/// A text as it stands in a file: on one line, without blanks around it, not endless.
pub(super) fn one_line(text: &str) -> String {
    const CHARACTERS: usize = 500;
    let plain = |c: char| if c.is_control() { ' ' } else { c };
    let short: String = text.trim().chars().take(CHARACTERS).map(plain).collect();
    short.trim().to_owned()
}

/// Single LBNs as ranges.
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

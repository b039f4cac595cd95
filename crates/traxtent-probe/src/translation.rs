//! Translation requests and their evaluation, shared by the translating algorithms.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::defect_lists::DefectLists;
use super::extraction::{Extraction, ProbeError, TrackSink};
use super::target::{Target, TargetError};
use traxtent_map::{Confirm, Found, Region};
use traxtent_model::geometry::Place;
use traxtent_units::{Lbn, Sectors};

/// The number of translations above which old ones are discarded.
const REMEMBERED_MAX: usize = 1 << 12;

/// A target for translations. Recent results are cached to avoid repeated requests.
pub(super) struct Translator<'t> {
    target: &'t mut dyn Target,
    /// The first LBN after the drive's last.
    pub(super) end: u64,
    /// The number of LBNs in a physical sector, as the drive reports it. LBNs go bad or are
    /// remapped only in whole physical sectors.
    pub(super) ratio: u64,
    places: BTreeMap<u64, Option<Place>>,
    /// Whether the drive lists its bad slots.
    pub(super) has_list: bool,
    /// The slots listed as bad; none if the drive has no lists.
    bad: Rc<DefectLists>,
    /// The results apart from the tracks.
    results: Extraction,
}

impl<'t> Translator<'t> {
    pub(super) fn new(target: &'t mut dyn Target) -> Result<Translator<'t>, ProbeError> {
        let identity = target.identity();
        let Sectors(end) = identity.capacity;
        let ratio = u64::from(identity.physical_bytes / identity.logical_bytes.max(1)).max(1);
        let (has_list, bad) = match target.defects() {
            Ok(defects) => (true, DefectLists::new(defects)),
            Err(TargetError::Unsupported(_) | TargetError::Refused(_)) => {
                (false, DefectLists::default())
            }
            Err(error) => return Err(error.into()),
        };
        Ok(Translator {
            target,
            end,
            ratio,
            places: BTreeMap::new(),
            has_list,
            bad: Rc::new(bad),
            results: Extraction::default(),
        })
    }

    /// The slots listed as bad.
    pub(super) fn bad(&self) -> Rc<DefectLists> {
        Rc::clone(&self.bad)
    }

    /// Records that the LBNs of some bad slots have been found to be remapped.
    pub(super) fn record_remapped_places(&mut self, places: impl IntoIterator<Item = Place>) {
        Rc::make_mut(&mut self.bad).record_remapped(places);
    }

    /// Translates an LBN. Returns `None` and records the LBN if the drive does not return its
    /// place.
    pub(super) fn place(&mut self, lbn: u64) -> Result<Option<Place>, ProbeError> {
        if let Some(&known) = self.places.get(&lbn) {
            return Ok(known);
        }
        let place = match self.target.translate(Lbn(lbn)) {
            Ok(place) => Some(place),
            Err(TargetError::Unreadable { .. } | TargetError::Refused(_)) => {
                self.results.unreadable.push(Lbn(lbn));
                None
            }
            Err(error) => return Err(error.into()),
        };
        self.places.insert(lbn, place);
        Ok(place)
    }

    /// Returns the result of a translation that has already been made.
    pub(super) fn known(&self, lbn: u64) -> Option<Place> {
        self.places.get(&lbn).copied().flatten()
    }

    /// Returns the LBN at a place.
    pub(super) fn lbn_at(&mut self, place: Place) -> Result<Option<u64>, ProbeError> {
        match self.target.translate_back(place) {
            Ok(lbn) => Ok(lbn.map(|lbn| lbn.0)),
            Err(TargetError::Unreadable { .. } | TargetError::Refused(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Discards translations of LBNs before `lbn`, except the one directly before it, once too many
    /// are stored.
    pub(super) fn forget_below(&mut self, lbn: u64) {
        if self.places.len() > REMEMBERED_MAX {
            self.places = self.places.split_off(&lbn.saturating_sub(1));
        }
    }

    /// Records remapped LBNs.
    pub(super) fn record_remapped_lbns(&mut self, lbns: std::ops::Range<u64>) {
        self.results.remapped.extend(lbns.map(Lbn));
    }

    /// Records a note for the reader.
    pub(super) fn note(&mut self, line: &str) {
        self.results.notes.push(line.to_owned());
    }

    /// Returns the results apart from the tracks.
    pub(super) fn finish(mut self) -> Extraction {
        self.results.remapped.sort_unstable();
        self.results.remapped.dedup();
        self.results.unreadable.sort_unstable();
        self.results.unreadable.dedup();
        self.results
    }
}

/// Passes tracks to the caller.
pub(super) struct TrackOutput<'a, 's> {
    sink: &'a mut TrackSink<'s>,
    /// The LBN at which the next track begins.
    pub(super) at: u64,
    /// Tracks that begin here or later are not needed.
    end: u64,
}

impl<'a, 's> TrackOutput<'a, 's> {
    pub(super) fn new(sink: &'a mut TrackSink<'s>, at: u64, region: Region, capacity: u64) -> Self {
        let end = region.end.0.min(capacity);
        TrackOutput { sink, at, end }
    }

    /// Returns whether more tracks are needed.
    pub(super) fn wants_more(&self) -> bool {
        self.at < self.end
    }

    /// Outputs the track that ends at `end`.
    pub(super) fn track(&mut self, end: u64, confirm: Confirm) -> Result<(), ProbeError> {
        let found = Found {
            first_lbn: Lbn(self.at),
            sectors: u32::try_from(end - self.at).map_err(|_| ProbeError::Inconsistent {
                lbn: Lbn(self.at),
                problem: format!(
                    "the track has {} sectors, more than 2^32 - 1",
                    end - self.at
                ),
            })?,
            confirm,
        };
        if !self.wants_more() {
            return Ok(());
        }
        self.at = end;
        match (self.sink)(found) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ProbeError::Stopped),
        }
    }
}

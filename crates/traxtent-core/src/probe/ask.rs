//! Questions about places, and the answers to tracks: what the algorithms by translation share.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::rc::Rc;

use super::algorithm::{Confirm, Extraction, Found, ProbeError, Region, Sink};
use super::bad::Bad;
use super::target::{Target, TargetError};
use crate::geometry::Place;
use crate::units::{Cylinder, Lbn, Sectors, Surface};

/// A track as a drive names it.
pub(super) type Home = (Cylinder, Surface);

/// The track of a place.
pub(super) fn home(place: Place) -> Home {
    (place.cylinder, place.surface)
}

/// Whether no track is between two.
pub(super) fn are_neighbours(one: Home, other: Home) -> bool {
    one.0.0.abs_diff(other.0.0) + u32::from(one.1.0.abs_diff(other.1.0)) == 1
}

/// Answers are forgotten in pieces of this many.
const REMEMBERED_MAX: usize = 1 << 12;

/// A target that is asked for places; no question is put twice in a row.
pub(super) struct Ask<'t> {
    target: &'t mut dyn Target,
    /// The LBN behind the drive's last.
    pub(super) end: u64,
    /// LBNs in a physical sector, as the drive says: no fewer go bad or move together.
    pub(super) ratio: u64,
    answers: BTreeMap<u64, Option<Place>>,
    /// Whether the drive lists its bad slots.
    pub(super) has_list: bool,
    /// Those slots; none where the drive has no lists.
    bad: Rc<Bad>,
    /// What is to be told besides the tracks.
    left: Extraction,
}

impl<'t> Ask<'t> {
    pub(super) fn new(target: &'t mut dyn Target) -> Result<Ask<'t>, ProbeError> {
        let identity = target.identity();
        let Sectors(end) = identity.capacity;
        let ratio = u64::from(identity.physical_bytes / identity.logical_bytes.max(1)).max(1);
        let (has_list, bad) = match target.defects() {
            Ok(defects) => (true, Bad::new(defects)),
            Err(TargetError::Unsupported(_) | TargetError::Refused(_)) => (false, Bad::default()),
            Err(error) => return Err(error.into()),
        };
        Ok(Ask {
            target,
            end,
            ratio,
            answers: BTreeMap::new(),
            has_list,
            bad: Rc::new(bad),
            left: Extraction::default(),
        })
    }

    /// The slots listed as bad.
    pub(super) fn bad(&self) -> Rc<Bad> {
        Rc::clone(&self.bad)
    }

    /// Takes note that the LBNs of some bad slots have been found elsewhere.
    pub(super) fn found_moved(&mut self, places: impl IntoIterator<Item = Place>) {
        Rc::make_mut(&mut self.bad).found_moved(places);
    }

    /// Where an LBN is; nothing where the drive does not say, which is noted.
    pub(super) fn place(&mut self, lbn: u64) -> Result<Option<Place>, ProbeError> {
        if let Some(&known) = self.answers.get(&lbn) {
            return Ok(known);
        }
        let place = match self.target.translate(Lbn(lbn)) {
            Ok(place) => Some(place),
            Err(TargetError::Unreadable { .. } | TargetError::Refused(_)) => {
                self.left.unreadable.push(Lbn(lbn));
                None
            }
            Err(error) => return Err(error.into()),
        };
        self.answers.insert(lbn, place);
        Ok(place)
    }

    /// The answer to a question that has been put already.
    pub(super) fn known(&self, lbn: u64) -> Option<Place> {
        self.answers.get(&lbn).copied().flatten()
    }

    /// The LBN at a place.
    pub(super) fn lbn_at(&mut self, place: Place) -> Result<Option<u64>, ProbeError> {
        match self.target.translate_back(place) {
            Ok(lbn) => Ok(lbn.map(|lbn| lbn.0)),
            Err(TargetError::Unreadable { .. } | TargetError::Refused(_)) => Ok(None),
            Err(error) => Err(error.into()),
        }
    }

    /// Forgets answers about LBNs below `lbn`, but not about the last few.
    pub(super) fn forget_below(&mut self, lbn: u64) {
        if self.answers.len() > REMEMBERED_MAX {
            self.answers = self.answers.split_off(&lbn.saturating_sub(1));
        }
    }

    /// Notes LBNs that are not on their track.
    pub(super) fn moved(&mut self, lbns: std::ops::Range<u64>) {
        self.left.moved.extend(lbns.map(Lbn));
    }

    /// Notes a line for the reader.
    pub(super) fn note(&mut self, line: &str) {
        self.left.notes.push(line.to_owned());
    }

    /// What is left behind besides the tracks.
    pub(super) fn finish(mut self) -> Extraction {
        self.left.moved.sort_unstable();
        self.left.moved.dedup();
        self.left.unreadable.sort_unstable();
        self.left.unreadable.dedup();
        self.left
    }
}

/// Hands tracks to the caller.
pub(super) struct Out<'a, 's> {
    sink: &'a mut Sink<'s>,
    /// Where the next track begins.
    pub(super) at: u64,
    /// No track that begins here or later is asked for.
    end: u64,
}

impl<'a, 's> Out<'a, 's> {
    pub(super) fn new(sink: &'a mut Sink<'s>, at: u64, region: Region, capacity: u64) -> Self {
        let end = region.end.0.min(capacity);
        Out { sink, at, end }
    }

    /// Whether tracks are still wanted.
    pub(super) fn goes_on(&self) -> bool {
        self.at < self.end
    }

    /// Hands over the track that ends at `end`.
    pub(super) fn track(&mut self, end: u64, confirm: Confirm) -> Result<(), ProbeError> {
        let found = Found {
            first_lbn: Lbn(self.at),
            sectors: u32::try_from(end - self.at).map_err(|_| ProbeError::Baffled {
                lbn: Lbn(self.at),
                problem: format!("a track of {} sectors", end - self.at),
            })?,
            confirm,
        };
        if !self.goes_on() {
            return Ok(());
        }
        self.at = end;
        match (self.sink)(found) {
            ControlFlow::Continue(()) => Ok(()),
            ControlFlow::Break(()) => Err(ProbeError::Stopped),
        }
    }
}

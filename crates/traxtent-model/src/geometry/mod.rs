//! The mapping from LBNs to places on the drive, and its inverse.
//!
//! Models the layouts that H. Wong found in drives ("Discovering Hard Disk Physical Geometry
//! through Microbenchmarking", 2019: six orders of tracks), the zones, skews and eleven sparing
//! schemes of DiskSim 4.0 (its layout g1), and irregular layouts as run-length trees (its layout
//! g4). The contents of a track are modelled slot by slot: spares, slipped sectors, remapped LBNs.
//!
//! A [`Geometry`] is immutable. It is a tree whose size grows with the number of zones and defects,
//! not with the number of tracks. A drive of many terabytes is therefore built in milliseconds, and
//! finding an LBN takes time logarithmic in the number of runs.
//!
//! Left out: shingled zones, and the media cache of drives that have one.

mod build;
mod csv;
mod error;
mod irregular;
pub(crate) mod limits;
mod moved;
mod order;
mod overlap;
mod shape;
mod spare;
mod spec;
mod tree;
mod zone;

use std::fmt;

pub use csv::{LbnRun, write_csv};
pub use error::GeometryError;
pub use spec::{
    BranchSpec, Child, GeometrySpec, MovedSpec, Order, PerSurface, Skew, SlipSpec, Sparing, Start,
    TrackSpec, TreeSpec, ZoneSpec,
};

use shape::Slot;
use traxtent_units::{Angle, Cylinder, Lbn, Sectors, Surface};
use tree::{FoundInBranch, FoundTrack, NodeId, Tree};

/// The layout of a drive.
#[derive(Clone, Debug)]
pub struct Geometry {
    capacity: u64,
    tracks: u64,
    most_slots: u32,
    cylinders: u32,
    surfaces: u16,
    tree: Tree,
    /// The tracks with LBNs, in LBN order.
    root: NodeId,
    /// The tracks without LBNs.
    blanks: NodeId,
    /// LBNs that are kept at a place other than their regular one, ascending.
    moved: Vec<Moved>,
    /// Places that hold moved LBNs, ascending, each with the index in `moved`.
    moved_in: Vec<(Place, u32)>,
    zones: Vec<ZoneInfo>,
}

/// One track as it lies on the drive.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Track {
    /// Position of this track in LBN order, from 0.
    pub index: u64,
    /// The lowest LBN on the track.
    pub first_lbn: Lbn,
    /// The number of LBNs on the track.
    pub sectors: u32,
    /// The arm position.
    pub cylinder: Cylinder,
    /// The surface; its head has the same number.
    pub surface: Surface,
    /// The number of slots around the track, each as long as a logical sector: at least `sectors`.
    pub slots: u32,
    /// Angle of the leading edge of slot 0.
    pub origin: Angle,
}

impl Track {
    /// The LBN after the track's last.
    pub fn end_lbn(&self) -> Lbn {
        Lbn(self.first_lbn.0 + u64::from(self.sectors))
    }
}

/// Sectors that pass under one head without interruption.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Piece {
    /// The track under the head. For a moved LBN, `cylinder`, `surface`, `slots` and `origin` are
    /// those of the place where it is kept; the other fields are those of the track that it belongs
    /// to in LBN order.
    pub track: Track,
    /// The first LBN.
    pub lbn: Lbn,
    /// The number of LBNs.
    pub sectors: u32,
    /// The slot of the first LBN.
    pub first_slot: u32,
    /// The number of slots from the first to the last, including bad slots between them.
    pub slots: u32,
}

/// The track of the last of several pieces in LBN order, for [`Geometry::next_piece`].
#[derive(Clone, Copy, Debug, Default)]
pub struct PieceCursor(Option<FoundInBranch>);

/// A slot of a track: the place of one sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Place {
    /// The arm position.
    pub cylinder: Cylinder,
    /// The surface; its head has the same number.
    pub surface: Surface,
    /// The slot, counted from the beginning of the track.
    pub slot: u32,
}

/// A track as a drive addresses it.
pub type TrackAddress = (Cylinder, Surface);

impl Place {
    /// Returns the track of this place.
    pub fn track(self) -> TrackAddress {
        (self.cylinder, self.surface)
    }
}

impl fmt::Display for Place {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "cylinder {}, surface {}, slot {}",
            self.cylinder, self.surface, self.slot
        )
    }
}

/// The contents of a slot.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Occupant {
    /// This LBN.
    Lbn(Lbn),
    /// Nothing: it is bad, and slipped or replaced.
    Bad,
    /// Nothing: it is a spare, reserved, or beyond the drive's capacity.
    Empty,
    /// The drive has no such slot.
    NoSuchPlace,
}

/// A bad sector, or several consecutive ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Defect {
    /// The first bad slot.
    pub place: Place,
    /// The number of consecutive bad slots.
    pub slots: u32,
    /// The replacement.
    pub remedy: Replacement,
}

/// The replacement of a bad sector.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Replacement {
    /// The LBNs on one side of it, which depends on the [`Sparing`], are moved by as many slots as
    /// are bad. This is also the remedy for the sectors of a bad track that a spare track replaces
    /// ([`Sparing::TracksPerZone`]), because its LBNs remain together on one track.
    Slipped,
    /// Its LBN is kept at another place.
    Remapped(Lbn, Place),
}

/// A part of a drive that has one format.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ZoneInfo {
    /// The first LBN.
    pub first_lbn: Lbn,
    /// The LBN after the last.
    pub end_lbn: Lbn,
    /// The outermost cylinder.
    pub first_cylinder: Cylinder,
    /// The innermost cylinder, inclusive.
    pub last_cylinder: Cylinder,
    /// The surface, if the zone has only one.
    pub surface: Option<Surface>,
    /// The number of slots around a track: the largest if surfaces differ, or that of the first
    /// track in a tree layout.
    pub slots: u32,
}

/// An LBN that is kept at a place other than its regular one.
#[derive(Clone, Copy, Debug)]
struct Moved {
    lbn: u64,
    place: Place,
    slots: u32,
    origin: Angle,
}

impl Geometry {
    /// Builds the geometry that `spec` describes.
    ///
    /// Time and memory are proportional to the length of the description, not to the size of the
    /// drive. A tree layout also needs a pass over its tracks.
    ///
    /// # Errors
    /// Returns an error if the description contradicts itself or exceeds a bound.
    pub fn build(spec: &GeometrySpec) -> Result<Geometry, GeometryError> {
        build::build(spec)
    }

    /// The number of LBNs.
    pub fn capacity(&self) -> Sectors {
        Sectors(self.capacity)
    }

    /// The number of arm positions.
    pub fn cylinders(&self) -> u32 {
        self.cylinders
    }

    /// The number of recording surfaces.
    pub fn surfaces(&self) -> u16 {
        self.surfaces
    }

    /// The number of tracks that hold LBNs.
    pub fn track_count(&self) -> u64 {
        self.tracks
    }

    /// The largest number of slots around a track.
    pub(crate) fn most_slots(&self) -> u32 {
        self.most_slots
    }

    /// The number of runs of similar tracks in the index, which is a measure of its size.
    pub fn runs(&self) -> usize {
        self.tree.branches.len()
    }

    /// The zones, in LBN order.
    pub fn zones(&self) -> &[ZoneInfo] {
        &self.zones
    }

    /// Returns the track that `lbn` belongs to, or `None` beyond the drive's end.
    #[inline]
    pub fn track_of(&self, lbn: Lbn) -> Option<Track> {
        (lbn.0 < self.capacity).then(|| track(&self.tree.find_sector(self.root, lbn.0)))
    }

    /// Returns the track at a position in LBN order.
    pub fn track(&self, index: u64) -> Option<Track> {
        (index < self.tracks).then(|| track(&self.tree.find_track(self.root, index)))
    }

    /// Returns the number of sectors of each track, in LBN order.
    pub fn track_sizes(&self) -> impl Iterator<Item = u32> + '_ {
        self.tracks().map(|track| track.sectors)
    }

    /// Iterates over all tracks that hold LBNs, in LBN order.
    pub fn tracks(&self) -> impl Iterator<Item = Track> {
        self.tree.walk(self.root).map(|found| track(&found))
    }

    /// Returns the LBN after the last one of the track that `lbn` belongs to.
    pub fn track_end(&self, lbn: Lbn) -> Option<Lbn> {
        self.track_of(lbn).map(|track| track.end_lbn())
    }

    /// Returns the LBN after the run of tracks on one cylinder that `lbn` belongs to.
    pub fn cylinder_end(&self, lbn: Lbn) -> Option<Lbn> {
        let mut last = self.track_of(lbn)?;
        while let Some(next) = self.track(last.index + 1)
            && next.cylinder == last.cylinder
        {
            last = next;
        }
        Some(last.end_lbn())
    }

    /// Returns the longest run of sectors from `lbn` that one head can transfer without
    /// interruption, limited to `max_sectors`. It has at least one sector.
    ///
    /// A moved LBN is a piece of its own, and ends the piece before it.
    ///
    /// # Panics
    /// Panics if `lbn` is beyond the drive's end.
    // Always inlined. The piece is then written directly to its place, not copied.
    #[inline(always)]
    pub fn piece(&self, lbn: Lbn, max_sectors: u32) -> Piece {
        self.next_piece(&mut PieceCursor::default(), lbn, max_sectors)
    }

    /// Same as [`Geometry::piece`], but usually faster if `lbn` follows the piece for which
    /// `cursor` was last used.
    ///
    /// # Panics
    /// Panics if `lbn` is beyond the drive's end.
    #[inline(always)]
    pub fn next_piece(&self, cursor: &mut PieceCursor, lbn: Lbn, max_sectors: u32) -> Piece {
        assert!(
            lbn.0 < self.capacity,
            "LBN {lbn} is beyond the end, {}",
            self.capacity
        );
        let next = cursor.0.and_then(|last| last.next(lbn.0));
        let found = next.unwrap_or_else(|| self.tree.find_in_branch(self.root, lbn.0));
        cursor.0 = Some(found);
        let found = found.track;
        let track = track(&found);
        let k = (lbn.0 - found.first) as u32;
        let mut sectors = max_sectors.clamp(1, found.shape.sectors - k);
        if !self.moved.is_empty() {
            let next = self.moved.partition_point(|m| m.lbn < lbn.0);
            if let Some(moved) = self.moved.get(next) {
                if moved.lbn == lbn.0 {
                    return moved.piece(track);
                }
                sectors = u64::from(sectors).min(moved.lbn - lbn.0) as u32;
            }
        }
        let first_slot = found.shape.slot(k, &self.tree.gaps);
        let last_slot = found.shape.slot(k + sectors - 1, &self.tree.gaps);
        Piece {
            track,
            lbn,
            sectors,
            first_slot,
            slots: last_slot + 1 - first_slot,
        }
    }

    /// Same as [`Geometry::piece`], but faster if `lbn` is on `track`, every slot of that track
    /// holds an LBN, and the drive has no moved LBNs.
    ///
    /// # Panics
    /// Panics if `lbn` is beyond the drive's end.
    #[inline]
    pub fn piece_near(&self, track: &Track, lbn: Lbn, max_sectors: u32) -> Piece {
        let is_on_it = track.first_lbn <= lbn && lbn < track.end_lbn();
        if !is_on_it || track.sectors != track.slots || !self.moved.is_empty() {
            return self.piece(lbn, max_sectors);
        }
        let slot = (lbn.0 - track.first_lbn.0) as u32;
        let sectors = max_sectors.clamp(1, track.slots - slot);
        Piece {
            track: *track,
            lbn,
            sectors,
            first_slot: slot,
            slots: sectors,
        }
    }

    /// Returns the place where an LBN is kept.
    pub fn locate(&self, lbn: Lbn) -> Option<Place> {
        let piece = (lbn.0 < self.capacity).then(|| self.piece(lbn, 1))?;
        let Track {
            cylinder, surface, ..
        } = piece.track;
        Some(Place {
            cylinder,
            surface,
            slot: piece.first_slot,
        })
    }

    /// Returns the contents of a slot: the inverse of [`Geometry::locate`].
    pub fn lbn_at(&self, place: Place) -> Occupant {
        let at_home = self.home(place);
        if let Occupant::Lbn(lbn) = at_home
            && !self.is_moved(lbn)
        {
            return at_home;
        }
        if let Ok(i) = self.moved_in.binary_search_by_key(&place, |m| m.0) {
            return Occupant::Lbn(Lbn(self.moved[self.moved_in[i].1 as usize].lbn));
        }
        if let Occupant::Lbn(_) = at_home {
            Occupant::Bad
        } else {
            at_home
        }
    }

    /// Returns the angle at which a slot of a track begins.
    #[inline]
    pub fn slot_angle(&self, track: &Track, slot: u32) -> Angle {
        track.origin + Angle::from_ratio(slot.into(), track.slots.into())
    }

    /// Iterates over the bad sectors that the layout works around: first slipped ones, then
    /// remapped ones.
    pub fn defects(&self) -> impl Iterator<Item = Defect> {
        let slipped = [self.root, self.blanks].into_iter().flat_map(|root| {
            self.tree.bad_tracks(root).flat_map(|found| {
                let Track {
                    cylinder, surface, ..
                } = track(&found);
                found
                    .shape
                    .bad(&self.tree.gaps)
                    .map(move |(slot, slots)| Defect {
                        place: Place {
                            cylinder,
                            surface,
                            slot,
                        },
                        slots,
                        remedy: Replacement::Slipped,
                    })
            })
        });
        let remapped = self.moved.iter().map(|moved| {
            let found = self.tree.find_sector(self.root, moved.lbn);
            let Track {
                cylinder, surface, ..
            } = track(&found);
            let slot = found
                .shape
                .slot((moved.lbn - found.first) as u32, &self.tree.gaps);
            Defect {
                place: Place {
                    cylinder,
                    surface,
                    slot,
                },
                slots: 1,
                remedy: Replacement::Remapped(Lbn(moved.lbn), moved.place),
            }
        });
        slipped.chain(remapped)
    }

    /// Returns whether an LBN is kept at a place other than its regular one.
    pub fn is_moved(&self, lbn: Lbn) -> bool {
        self.moved.binary_search_by_key(&lbn.0, |m| m.lbn).is_ok()
    }

    /// The number of LBNs that are kept at a place other than their regular one.
    pub fn moved_count(&self) -> usize {
        self.moved.len()
    }

    /// The contents that a slot would have if no LBN were moved.
    fn home(&self, place: Place) -> Occupant {
        let (Ok(cylinder), surface) = (i32::try_from(place.cylinder.0), i32::from(place.surface.0))
        else {
            return Occupant::NoSuchPlace;
        };
        let mut occupant = Occupant::NoSuchPlace;
        for root in [self.root, self.blanks] {
            let hit = self.tree.at_place(root, cylinder, surface, &mut |found| {
                if place.slot >= found.shape.slots {
                    return None;
                }
                // The tree may list a track in several parts. Only a part that has an LBN here
                // decides immediately.
                match found.shape.at(place.slot, &self.tree.gaps) {
                    Slot::Holds(k) if root == self.root => {
                        return Some(Occupant::Lbn(Lbn(found.first + u64::from(k))));
                    }
                    Slot::Bad => occupant = Occupant::Bad,
                    _ if occupant == Occupant::NoSuchPlace => occupant = Occupant::Empty,
                    _ => {}
                }
                None
            });
            if let Some(hit) = hit {
                return hit;
            }
        }
        occupant
    }

    /// The number of slots and the origin of the track at a place, with or without LBNs.
    fn track_circumference(&self, cylinder: Cylinder, surface: Surface) -> Option<(u32, Angle)> {
        let cylinder = i32::try_from(cylinder.0).ok()?;
        [self.root, self.blanks].into_iter().find_map(|root| {
            let any = &mut |found: FoundTrack| Some((found.shape.slots, found.spot.angle));
            self.tree.at_place(root, cylinder, surface.0.into(), any)
        })
    }

    fn set_moved(&mut self, moved: Vec<Moved>) {
        self.moved_in = moved.iter().zip(0..).map(|(m, i)| (m.place, i)).collect();
        self.moved_in.sort_unstable();
        self.moved = moved;
    }
}

impl Moved {
    fn piece(&self, home: Track) -> Piece {
        let track = Track {
            cylinder: self.place.cylinder,
            surface: self.place.surface,
            slots: self.slots,
            origin: self.origin,
            ..home
        };
        Piece {
            track,
            lbn: Lbn(self.lbn),
            sectors: 1,
            first_slot: self.place.slot,
            slots: 1,
        }
    }
}

#[inline]
fn track(found: &FoundTrack) -> Track {
    Track {
        index: found.index,
        first_lbn: Lbn(found.first),
        sectors: found.shape.sectors,
        cylinder: Cylinder(found.spot.cylinder as u32),
        surface: Surface(found.spot.surface as u16),
        slots: found.shape.slots,
        origin: found.spot.angle,
    }
}

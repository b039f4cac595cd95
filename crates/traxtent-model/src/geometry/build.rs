//! The construction of a [`Geometry`] from a description: checks, zones, moved LBNs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::error::{GeometryError, check};
use super::limits::{CYLINDERS_MAX, SLOTS_MAX, SURFACES_MAX};
use super::moved::{self, Remap};
use super::order::{Skews, ZoneOrder, is_backward};
use super::spec::{GeometrySpec, PerSurface, Sparing, ZoneSpec};
use super::tree::{NodeId, Tree};
use super::zone::{BadSlots, ZoneBranches, ZoneTracks, keep_lbns};
use super::{Geometry, Place, ZoneInfo, overlap};
use traxtent_units::{Count, Cylinder, Lbn, Surface};

/// The maximum number of runs of bad slots in an area. A run lies on one track.
const BAD_RUNS_MAX: u64 = 1 << 18;

/// The state of the construction, to which each zone is added.
pub(super) struct Builder<'a> {
    pub(super) spec: &'a GeometrySpec,
    pub(super) tree: Tree,
    branches: ZoneBranches,
    /// The number of LBNs so far.
    pub(super) sectors: u64,
    pub(super) zones: Vec<ZoneInfo>,
    remaps: Vec<Remap>,
}

/// The spares of a zone.
struct ZoneSpares {
    /// The number of tracks that share their spares.
    region: u64,
    /// The number of spare sectors in each region.
    sectors: u64,
    /// The number of spare tracks of the zone.
    tracks: u64,
    /// The number of spare sectors of each track.
    trim: u32,
}

pub(super) fn build(spec: &GeometrySpec) -> Result<Geometry, GeometryError> {
    check("geometry", "surfaces", spec.surfaces, 1..=SURFACES_MAX)?;
    check("geometry", "cylinders", spec.cylinders, 1..=CYLINDERS_MAX)?;
    let mut builder = Builder {
        spec,
        tree: Tree::default(),
        branches: ZoneBranches::default(),
        sectors: 0,
        zones: Vec::new(),
        remaps: Vec::new(),
    };
    match (&spec.tree, spec.zones.is_empty()) {
        (Some(tree), true) => builder.irregular(tree)?,
        (None, false) => {
            overlap::check_zones(spec)?;
            for (number, zone) in spec.zones.iter().enumerate() {
                builder.zone(number, zone)?;
            }
        }
        _ => {
            let problem = "either zones or a tree must be given, not both";
            return Err(GeometryError::inconsistent("geometry", problem));
        }
    }
    builder.finish()
}

impl Builder<'_> {
    /// The number of LBNs that the drive can still hold.
    fn room(&self) -> u64 {
        self.spec
            .capacity_sectors
            .map_or(u64::MAX, |capacity| capacity - self.sectors)
    }

    /// Adds an area and returns the range of its LBNs. Its first `reserved` sectors hold none, and
    /// it holds no more than `most`.
    pub(super) fn add(
        &mut self,
        branches: ZoneBranches,
        reserved: u64,
        most: Option<u64>,
    ) -> Range<u64> {
        let node = self.tree.add_node(branches.mapped);
        self.branches.blank.extend(branches.blank);
        let sectors = self.tree.node(node).sectors;
        let from = reserved.min(sectors);
        let keep = from..from
            + self
                .room()
                .min(sectors - from)
                .min(most.unwrap_or(u64::MAX));
        let first = self.sectors;
        self.sectors += keep.end - keep.start;
        keep_lbns(&mut self.tree, node, keep, &mut self.branches);
        first..self.sectors
    }

    fn zone(&mut self, number: usize, zone: &ZoneSpec) -> Result<(), GeometryError> {
        let name = format!("zone {number}");
        let slots = self.check_zone(&name, zone)?;
        let ordered = self.ordered(zone, &slots, &name)?;
        let branches = self.zone_branches(number, zone, &name, &ordered)?;
        let fits: u64 = branches.mapped.iter().map(|b| b.sectors * b.repeat).sum();
        check(&name, "reserved_sectors", zone.reserved_sectors, 0..=fits)?;
        if let Some(lbns) = zone.lbns {
            check(&name, "lbns", lbns, 0..=fits - zone.reserved_sectors)?;
        }
        let lbns = self.add(branches, zone.reserved_sectors, zone.lbns);
        self.zones.push(ZoneInfo {
            first_lbn: Lbn(lbns.start),
            end_lbn: Lbn(lbns.end),
            first_cylinder: Cylinder(zone.first_cylinder),
            last_cylinder: Cylinder(zone.last_cylinder),
            surface: zone.surface.map(Surface),
            slots: *slots.iter().max().expect("a zone has a surface"),
        });
        Ok(())
    }

    /// Builds the branches of a zone: its tracks, with their spares and bad sectors.
    fn zone_branches(
        &mut self,
        number: usize,
        zone: &ZoneSpec,
        name: &str,
        ordered: &ZoneOrder<'_>,
    ) -> Result<ZoneBranches, GeometryError> {
        let (slots, tracks, sparing) = (ordered.slots, ordered.tracks(), self.spec.sparing);
        let spares = self.spares(name, zone, ordered)?;
        let full = ordered.build(&mut self.tree, |surface| slots[surface]);
        let trimmed = if spares.trim > 0 {
            ordered.build(&mut self.tree, |surface| slots[surface] - spares.trim)
        } else {
            full
        };
        let by_track = sparing == Sparing::TracksPerZone;
        let (moved, taken) = if by_track {
            self.moved_tracks(name, zone, full, tracks)?
        } else {
            Default::default()
        };
        let area = ZoneTracks {
            bad: self.bad(name, full, zone.slips.iter().map(|&at| (at, 1)), by_track)?,
            turns: turns(name, zone, slots, tracks)?,
            name: name.to_owned(),
            full,
            trimmed,
            region: spares.region,
            spares: spares.sectors,
            spare_tracks: spares.tracks,
            at_front: sparing.at_front(),
            slips_to_end: sparing.slips_to_end(),
            period: ordered.period(),
            moved,
            replacement_tracks: taken,
        };
        let branches = area.add_zone(&mut self.tree)?;
        if !by_track {
            self.remap_sectors(number, name, zone, full)?;
        }
        Ok(branches)
    }

    /// Returns a zone's spares according to the sparing scheme, and checks their number.
    fn spares(
        &self,
        name: &str,
        zone: &ZoneSpec,
        ordered: &ZoneOrder<'_>,
    ) -> Result<ZoneSpares, GeometryError> {
        let (slots, tracks) = (ordered.slots, ordered.tracks());
        let per_cylinder = slots.len() as u64;
        let mut spares = ZoneSpares {
            region: tracks,
            sectors: u64::from(zone.spares),
            tracks: 0,
            trim: 0,
        };
        let by_cylinder = self.spec.sparing.by_cylinder();
        if by_cylinder && !ordered.order.is_head_first() && zone.spares > 0 {
            let problem = "spares per cylinder require a head-first order";
            return Err(GeometryError::inconsistent(name, problem));
        }
        match self.spec.sparing {
            Sparing::None | Sparing::SectorsAtDriveEnd if zone.spares > 0 => {
                let problem = format!(
                    "{}, but this sparing scheme has no spares in a zone",
                    Count(zone.spares, "spare")
                );
                return Err(GeometryError::inconsistent(name, problem));
            }
            Sparing::None | Sparing::SectorsAtDriveEnd => {}
            Sparing::SectorsPerZone | Sparing::SectorsPerZoneSlipToEnd => {}
            Sparing::TracksPerZone => (spares.sectors, spares.tracks) = (0, spares.sectors),
            Sparing::SectorsPerTrack => (spares.sectors, spares.trim) = (0, zone.spares),
            Sparing::SectorsPerCylinderRange => {
                spares.region = per_cylinder * u64::from(self.sparing_range()?);
            }
            Sparing::SectorsPerCylinder
            | Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFront
            | Sparing::SectorsAtCylinderFrontSlipToEnd => spares.region = per_cylinder,
        }
        let spares_max = if spares.trim > 0 {
            u64::from(*slots.iter().min().expect("a zone has a surface")) - 1
        } else if spares.tracks > 0 {
            tracks
        } else {
            slots.iter().map(|&s| u64::from(s)).sum::<u64>() * (spares.region / per_cylinder)
        };
        check(name, "spares", u64::from(zone.spares), 0..=spares_max)?;
        Ok(spares)
    }

    /// Returns the number of cylinders that share their spares.
    fn sparing_range(&self) -> Result<u32, GeometryError> {
        let (key, part) = ("sparing_range_cylinders", "geometry");
        let Some(range) = self.spec.sparing_range_cylinders else {
            let problem = "this sparing scheme requires sparing_range_cylinders";
            return Err(GeometryError::inconsistent(part, problem));
        };
        check(part, key, range, 1..=CYLINDERS_MAX)?;
        Ok(range)
    }

    /// Checks a zone's own numbers and returns the number of slots per track of each surface.
    fn check_zone(&self, name: &str, zone: &ZoneSpec) -> Result<Vec<u32>, GeometryError> {
        check(
            name,
            "last_cylinder",
            zone.last_cylinder,
            0..=self.spec.cylinders - 1,
        )?;
        check(
            name,
            "first_cylinder",
            zone.first_cylinder,
            0..=zone.last_cylinder,
        )?;
        if let Some(surface) = zone.surface {
            check(name, "surface", surface, 0..=self.spec.surfaces - 1)?;
        }
        let surfaces = if zone.surface.is_some() {
            1
        } else {
            usize::from(self.spec.surfaces)
        };
        let slots = match &zone.sectors_per_track {
            PerSurface::Same(slots) => vec![*slots; surfaces],
            PerSurface::Each(slots) if slots.len() == surfaces => slots.clone(),
            PerSurface::Each(slots) => {
                let problem = format!(
                    "sectors_per_track states {}; the zone has {}",
                    Count(slots.len(), "value"),
                    Count(surfaces, "surface")
                );
                return Err(GeometryError::inconsistent(name, problem));
            }
        };
        for &slots in &slots {
            check(name, "sectors_per_track", slots, 1..=SLOTS_MAX)?;
        }
        let skews = [
            Some(zone.track_skew),
            Some(zone.cylinder_skew),
            Some(zone.first_angle),
            zone.turn_skew,
            zone.group_skew,
        ];
        if skews.into_iter().flatten().any(|skew| !skew.is_usable()) {
            let problem = "a skew or first_angle is not finite, or exceeds a billion";
            return Err(GeometryError::inconsistent(name, problem));
        }
        Ok(slots)
    }

    fn ordered<'s>(
        &self,
        zone: &ZoneSpec,
        slots: &'s [u32],
        name: &str,
    ) -> Result<ZoneOrder<'s>, GeometryError> {
        let order = self.spec.order;
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
        let width = match (order.is_head_first(), self.spec.width_tracks) {
            (true, None) => 1,
            (true, Some(_)) => {
                let problem = "width_tracks is for seek-first orders";
                return Err(GeometryError::inconsistent("geometry", problem));
            }
            (false, None) => {
                let problem = "a seek-first order requires width_tracks";
                return Err(GeometryError::inconsistent("geometry", problem));
            }
            (false, Some(width)) => {
                check("geometry", "width_tracks", width, 1..=CYLINDERS_MAX)?;
                width.min(cylinders)
            }
        };
        if order.is_head_first() && (zone.turn_skew.is_some() || zone.group_skew.is_some()) {
            let problem = "turn_skew and group_skew are for seek-first orders";
            return Err(GeometryError::inconsistent(name, problem));
        }
        let turn = zone.turn_skew.unwrap_or(zone.track_skew);
        Ok(ZoneOrder {
            order,
            backward: is_backward(self.spec.start, zone.first_cylinder),
            width,
            first_cylinder: zone.first_cylinder,
            cylinders,
            first_surface: zone.surface.unwrap_or(0),
            slots,
            skews: Skews {
                first: zone.first_angle,
                track: zone.track_skew,
                cylinder: zone.cylinder_skew,
                turn,
                group: zone.group_skew.unwrap_or(turn),
            },
        })
    }

    /// Returns the places of an area's slips, ascending. If `by_track` is true, slips are track
    /// numbers.
    pub(super) fn bad(
        &self,
        name: &str,
        full: NodeId,
        slips: impl Iterator<Item = (u64, u32)>,
        by_track: bool,
    ) -> Result<Vec<BadSlots>, GeometryError> {
        let node = self.tree.node(full);
        let end = if by_track { node.tracks } else { node.sectors };
        let mut bad = Vec::new();
        let mut least = 0;
        for (mut at, mut len) in slips {
            if at >= end {
                let unit = if by_track { "track" } else { "sector" };
                let problem = format!(
                    "the slip {at} is beyond the {}, which follow from cylinders, surfaces and \
                     sectors per track; remove such slips if you changed one of these",
                    Count(end, unit)
                );
                return Err(GeometryError::inconsistent(name, problem));
            }
            check(
                name,
                "slips",
                i128::from(at),
                least.into()..=i128::from(end) - i128::from(len),
            )?;
            least = at + u64::from(len);
            if by_track {
                let slots = self.tree.find_track(full, at).shape.slots;
                bad.push(BadSlots {
                    track: at,
                    slot: 0,
                    len: slots,
                });
                continue;
            }
            while len > 0 {
                let found = self.tree.find_sector(full, at);
                let slot = (at - found.first) as u32;
                let part = len.min(found.shape.sectors - slot);
                bad.push(BadSlots {
                    track: found.index,
                    slot: found.shape.begin + slot,
                    len: part,
                });
                at += u64::from(part);
                len -= part;
                // A long slip can cover many tracks.
                check(
                    name,
                    "runs of bad slots",
                    bad.len() as u64,
                    0..=BAD_RUNS_MAX,
                )?;
            }
        }
        Ok(bad)
    }

    fn moved_tracks(
        &self,
        name: &str,
        zone: &ZoneSpec,
        full: NodeId,
        tracks: u64,
    ) -> Result<(BTreeMap<u64, u64>, BTreeSet<u64>), GeometryError> {
        // Each slip before the spares uses one of them, beginning with the first.
        let data = tracks - u64::from(zone.spares);
        let end = zone
            .slips
            .iter()
            .fold(data, |end, &slip| end + u64::from(slip < end));
        let mut moved = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for &(from, to) in &zone.remaps {
            check(name, "remaps", from, 0..=tracks - 1)?;
            check(name, "remaps", to, 0..=tracks - 1)?;
            let holds_lbns = from < end && zone.slips.binary_search(&from).is_err();
            if from == to || !holds_lbns {
                continue;
            }
            let slots = |track| self.tree.find_track(full, track).shape.slots;
            if slots(from) != slots(to) {
                let problem = format!(
                    "track {to} with {} sectors cannot replace track {from} with {}",
                    slots(to),
                    slots(from)
                );
                return Err(GeometryError::inconsistent(name, problem));
            }
            let twice = moved.insert(from, to).is_some() || !taken.insert(to);
            if (twice || to < end) && !self.spec.shared_places {
                let problem = format!("track {to} is not free to replace track {from}");
                return Err(GeometryError::inconsistent(name, problem));
            }
        }
        Ok((moved, taken))
    }

    /// Records the places of a zone's bad sectors and of their replacements.
    fn remap_sectors(
        &mut self,
        zone: usize,
        name: &str,
        spec: &ZoneSpec,
        full: NodeId,
    ) -> Result<(), GeometryError> {
        let sectors = self.tree.node(full).sectors;
        for &(from, to) in spec.remaps.iter().filter(|(from, to)| from != to) {
            check(name, "remaps", from, 0..=sectors - 1)?;
            check(name, "remaps", to, 0..=sectors - 1)?;
            let place = |position| {
                let found = self.tree.find_sector(full, position);
                Place {
                    cylinder: Cylinder(found.spot.cylinder as u32),
                    surface: Surface(found.spot.surface as u16),
                    slot: (position - found.first) as u32,
                }
            };
            let (from, to) = (place(from), place(to));
            self.remaps.push(Remap { zone, from, to });
        }
        Ok(())
    }

    fn finish(mut self) -> Result<Geometry, GeometryError> {
        if self.sectors == 0 {
            return Err(GeometryError::inconsistent(
                "geometry",
                "the drive holds no LBN",
            ));
        }
        if let Some(capacity) = self.spec.capacity_sectors
            && capacity > self.sectors
        {
            check("geometry", "capacity_sectors", capacity, 1..=self.sectors)?;
        }
        let root = self
            .tree
            .add_node(std::mem::take(&mut self.branches.mapped));
        let blanks = self.tree.add_node(std::mem::take(&mut self.branches.blank));
        let (tree, roots) = self.tree.compact(&[root, blanks]);
        let mut geometry = Geometry {
            capacity: self.sectors,
            tracks: tree.node(roots[0]).tracks,
            most_slots: tree
                .shapes
                .iter()
                .map(|shape| shape.slots)
                .max()
                .unwrap_or(1),
            cylinders: self.spec.cylinders,
            surfaces: self.spec.surfaces,
            root: roots[0],
            blanks: roots[1],
            tree,
            moved: Vec::new(),
            moved_in: Vec::new(),
            zones: self.zones,
        };
        let moved = moved::collect(self.spec, &geometry, &self.remaps)?;
        geometry.set_moved(moved);
        Ok(geometry)
    }
}

/// The irregularities of a zone's skew, as (track, running total of sectors).
fn turns(
    name: &str,
    zone: &ZoneSpec,
    slots: &[u32],
    tracks: u64,
) -> Result<Vec<(u64, i64)>, GeometryError> {
    if !zone.turns.is_empty() && slots.iter().any(|&s| s != slots[0]) {
        let problem = "turns require the same sectors_per_track on all surfaces";
        return Err(GeometryError::inconsistent(name, problem));
    }
    let (mut least, mut sum) = (0, 0);
    let mut out = Vec::new();
    for &(track, by) in &zone.turns {
        check(name, "turns", track, least..=tracks - 1)?;
        least = track + 1;
        sum += i64::from(by);
        out.push((track, sum));
    }
    Ok(out)
}

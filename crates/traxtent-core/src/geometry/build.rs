//! From a description to a [`Geometry`]: checks, zones, moved LBNs.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;

use super::error::{GeometryError, check};
use super::order::{Ordered, Skews, is_backward};
use super::spec::{Child, GeometrySpec, PerSurface, Sparing, TreeSpec, ZoneSpec};
use super::tree::{Branch, NodeId, Spot, Tree, What};
use super::zone::{Area, Bad, Drawn, cut};
use super::{Geometry, Moved, Occupant, Place, ZoneInfo, overlap, place_index};
use crate::units::{Angle, Cylinder, Lbn, Surface};

/// Bounds that keep every number of a geometry within its type, and a hostile one small.
const SURFACES_MAX: u16 = 64;
const CYLINDERS_MAX: u32 = 1 << 22;
const SLOTS_MAX: u32 = 1_000_000;
const TREE_TRACKS_MAX: u64 = 1 << 25;
const TREE_DEPTH_MAX: u64 = 16;
const MOVED_MAX: u64 = 1 << 18;
const BAD_MAX: u64 = 1 << 18;
const INTERLEAVED_MAX: u64 = 1 << 10;

/// What is collected zone by zone.
struct Builder<'a> {
    spec: &'a GeometrySpec,
    tree: Tree,
    drawn: Drawn,
    sectors: u64,
    zones: Vec<ZoneInfo>,
    /// Remaps in physical terms: the place of a bad sector, and its replacement.
    remaps: Vec<(String, Place, Place)>,
}

pub(super) fn build(spec: &GeometrySpec) -> Result<Geometry, GeometryError> {
    check("geometry", "surfaces", spec.surfaces, 1..=SURFACES_MAX)?;
    check("geometry", "cylinders", spec.cylinders, 1..=CYLINDERS_MAX)?;
    let mut builder = Builder {
        spec,
        tree: Tree::default(),
        drawn: Drawn::default(),
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
    /// LBNs that the drive may still take.
    fn room(&self) -> u64 {
        self.spec
            .capacity_sectors
            .map_or(u64::MAX, |capacity| capacity - self.sectors)
    }

    /// Adds a drawn area, of which the first `reserved` sectors are not for LBNs.
    fn add(&mut self, drawn: Drawn, reserved: u64, most: Option<u64>) -> Range<u64> {
        let node = self.tree.add_node(drawn.mapped);
        self.drawn.blank.extend(drawn.blank);
        let sectors = self.tree.node(node).sectors;
        let from = reserved.min(sectors);
        let keep = from..from
            + self
                .room()
                .min(sectors - from)
                .min(most.unwrap_or(u64::MAX));
        let first = self.sectors;
        self.sectors += keep.end - keep.start;
        cut(&mut self.tree, node, keep, &mut self.drawn);
        first..self.sectors
    }

    fn zone(&mut self, number: usize, zone: &ZoneSpec) -> Result<(), GeometryError> {
        let name = format!("zone {number}");
        let slots = self.check_zone(&name, zone)?;
        let ordered = self.ordered(zone, &slots, &name)?;
        let (tracks, per_cylinder) = (ordered.tracks(), slots.len() as u64);
        let sparing = self.spec.sparing;
        let head_first = ordered.order.is_head_first();
        let (mut region, mut spares, mut spare_tracks, mut trim) =
            (tracks, u64::from(zone.spares), 0, 0);
        match sparing {
            Sparing::None | Sparing::SectorsAtDriveEnd if zone.spares > 0 => {
                let problem = format!(
                    "{} spares, but the sparing scheme keeps none in a zone",
                    zone.spares
                );
                return Err(GeometryError::inconsistent(name, problem));
            }
            Sparing::None | Sparing::SectorsAtDriveEnd => {}
            Sparing::SectorsPerZone | Sparing::SectorsPerZoneSlipToEnd => {}
            Sparing::TracksPerZone => (spares, spare_tracks) = (0, spares),
            Sparing::SectorsPerTrack => (spares, trim) = (0, zone.spares),
            _ if !head_first && zone.spares > 0 => {
                let problem = "spares per cylinder need a head-first order";
                return Err(GeometryError::inconsistent(name, problem));
            }
            Sparing::SectorsPerCylinderRange => {
                let Some(range) = self.spec.sparing_range_cylinders else {
                    let problem = "this sparing scheme needs sparing_range_cylinders";
                    return Err(GeometryError::inconsistent("geometry", problem));
                };
                check(
                    "geometry",
                    "sparing_range_cylinders",
                    range,
                    1..=CYLINDERS_MAX,
                )?;
                region = per_cylinder * u64::from(range);
            }
            Sparing::SectorsPerCylinder
            | Sparing::SectorsPerCylinderSlipToEnd
            | Sparing::SectorsAtCylinderFront
            | Sparing::SectorsAtCylinderFrontSlipToEnd => region = per_cylinder,
        }
        let per_region = slots.iter().map(|&s| u64::from(s)).sum::<u64>() * (region / per_cylinder);
        let least = u64::from(*slots.iter().min().expect("a zone has a surface"));
        let spares_max = if trim > 0 {
            least - 1
        } else if spare_tracks > 0 {
            tracks
        } else {
            per_region
        };
        check(&name, "spares", u64::from(zone.spares), 0..=spares_max)?;

        let full = ordered.build(&mut self.tree, |surface| slots[surface]);
        let trimmed = if trim > 0 {
            ordered.build(&mut self.tree, |surface| slots[surface] - trim)
        } else {
            full
        };
        let by_track = sparing == Sparing::TracksPerZone;
        let (moved, taken) = if by_track {
            self.moved_tracks(&name, zone, tracks)?
        } else {
            Default::default()
        };
        let area = Area {
            bad: self.bad(&name, full, zone.slips.iter().map(|&at| (at, 1)), by_track)?,
            turns: turns(&name, zone, tracks)?,
            name,
            full,
            trimmed,
            region,
            spares,
            spare_tracks,
            at_front: sparing.at_front(),
            slips_to_end: sparing.slips_to_end(),
            period: ordered.period(),
            moved,
            taken,
        };
        let drawn = area.draw(&mut self.tree)?;
        if !by_track {
            self.remap_sectors(&area.name, zone, full)?;
        }
        let fits: u64 = drawn.mapped.iter().map(|b| b.sectors * b.repeat).sum();
        check(
            &area.name,
            "reserved_sectors",
            zone.reserved_sectors,
            0..=fits,
        )?;
        if let Some(lbns) = zone.lbns {
            check(&area.name, "lbns", lbns, 0..=fits - zone.reserved_sectors)?;
        }
        let lbns = self.add(drawn, zone.reserved_sectors, zone.lbns);
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

    /// Checks a zone's own numbers; returns the sectors around the tracks of each surface.
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
                    "sectors_per_track lists {} surfaces of {surfaces}",
                    slots.len()
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
            let problem = "a skew or first_angle is not a number of at most a billion";
            return Err(GeometryError::inconsistent(name, problem));
        }
        Ok(slots)
    }

    fn ordered<'s>(
        &self,
        zone: &ZoneSpec,
        slots: &'s [u32],
        name: &str,
    ) -> Result<Ordered<'s>, GeometryError> {
        let order = self.spec.order;
        let cylinders = zone.last_cylinder - zone.first_cylinder + 1;
        let width = match (order.is_head_first(), self.spec.width_tracks) {
            (true, None) => 1,
            (true, Some(_)) => {
                let problem = "width_tracks is for seek-first orders";
                return Err(GeometryError::inconsistent("geometry", problem));
            }
            (false, None) => {
                let problem = "a seek-first order needs width_tracks";
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
        Ok(Ordered {
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

    /// Where the slips of an area are, ascending. `by_track` says that they number tracks.
    fn bad(
        &self,
        name: &str,
        full: NodeId,
        slips: impl Iterator<Item = (u64, u32)>,
        by_track: bool,
    ) -> Result<Vec<Bad>, GeometryError> {
        let node = self.tree.node(full);
        let end = if by_track { node.tracks } else { node.sectors };
        let mut bad = Vec::new();
        let mut least = 0;
        for (mut at, mut len) in slips {
            check(
                name,
                "slips",
                i128::from(at),
                least.into()..=i128::from(end) - i128::from(len),
            )?;
            least = at + u64::from(len);
            if by_track {
                let slots = self.tree.find_track(full, at).shape.slots;
                bad.push(Bad {
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
                bad.push(Bad {
                    track: found.index,
                    slot: found.shape.begin + slot,
                    len: part,
                });
                at += u64::from(part);
                len -= part;
                // A long slip covers many tracks.
                check(name, "tracks with slips", bad.len() as u64, 0..=BAD_MAX)?;
            }
        }
        Ok(bad)
    }

    fn moved_tracks(
        &self,
        name: &str,
        zone: &ZoneSpec,
        tracks: u64,
    ) -> Result<(BTreeMap<u64, u64>, BTreeSet<u64>), GeometryError> {
        let mut moved = BTreeMap::new();
        let mut taken = BTreeSet::new();
        for &(from, to) in &zone.remaps {
            check(name, "remaps", from, 0..=tracks - 1)?;
            check(name, "remaps", to, 0..=tracks - 1)?;
            if from == to {
                continue;
            }
            let twice = moved.insert(from, to).is_some() || !taken.insert(to);
            if (twice || to < tracks - u64::from(zone.spares)) && !self.spec.shared_places {
                let problem = format!("track {to} is not free to replace track {from}");
                return Err(GeometryError::inconsistent(name, problem));
            }
        }
        Ok((moved, taken))
    }

    fn remap_sectors(
        &mut self,
        name: &str,
        zone: &ZoneSpec,
        full: NodeId,
    ) -> Result<(), GeometryError> {
        for &(from, to) in &zone.remaps {
            let sectors = self.tree.node(full).sectors;
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
            if from != to {
                self.remaps.push((name.to_string(), place(from), place(to)));
            }
        }
        Ok(())
    }

    /// Builds an explicit tree.
    fn irregular(&mut self, spec: &TreeSpec) -> Result<(), GeometryError> {
        let shapes = overlap::check_tracks(spec, &mut self.tree, SLOTS_MAX)?;
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut depths: Vec<usize> = Vec::new();
        // Of each node, how many instances in it a look-up by place may visit on one path.
        let mut interleaved: Vec<u64> = Vec::new();
        for (number, branches) in spec.nodes.iter().enumerate() {
            let name = format!("node {number}");
            let mut out = Vec::new();
            let children = branches.iter().filter_map(|branch| match branch.of {
                Child::Node(i) => depths.get(i as usize),
                Child::Track(_) => None,
            });
            let depth = children.max().map_or(1, |deepest| deepest + 1);
            check(&name, "depth", depth as u64, 1..=TREE_DEPTH_MAX)?;
            depths.push(depth);
            let mut visits = 1;
            for branch in branches {
                check(&name, "repeat", branch.repeat, 1..=TREE_TRACKS_MAX)?;
                let what = match branch.of {
                    Child::Track(i) => shapes.get(i as usize).map(|&s| What::Track(s)),
                    Child::Node(i) => nodes.get(i as usize).map(|&n| What::Node(n)),
                };
                let Some(what) = what else {
                    let problem = format!("{:?} is not a track or an earlier node", branch.of);
                    return Err(GeometryError::inconsistent(name, problem));
                };
                let bound = CYLINDERS_MAX as i32;
                for value in [branch.cylinder, branch.cylinder_step] {
                    check(&name, "cylinder", value, -bound..=bound)?;
                }
                for value in [branch.surface, branch.surface_step] {
                    check(
                        &name,
                        "surface",
                        value,
                        -i32::from(SURFACES_MAX)..=SURFACES_MAX.into(),
                    )?;
                }
                let turns = [branch.angle_turns, branch.angle_step_turns];
                if turns.iter().any(|t| !t.is_finite() || t.abs() > 1e6) {
                    let problem = "an angle is not a number of at most a million turns";
                    return Err(GeometryError::inconsistent(name, problem));
                }
                let [angle, step] = turns.map(Angle::from_turns);
                let at = Spot::new(branch.cylinder, branch.surface, angle);
                let step = Spot::new(branch.cylinder_step, branch.surface_step, step);
                let whole = self.tree.branch(what, at, step, branch.repeat);
                let tracks = whole.tracks.saturating_mul(whole.repeat);
                check(&name, "tracks", tracks, 1..=TREE_TRACKS_MAX)?;
                let inner = match branch.of {
                    Child::Node(i) => interleaved[i as usize],
                    Child::Track(_) => 1,
                };
                visits = inner
                    .saturating_mul(place_index::interleaved(&self.tree, &whole))
                    .max(visits);
                check(&name, "interleaved instances", visits, 1..=INTERLEAVED_MAX)?;
                match branch.total_sectors {
                    None => out.push(whole),
                    Some(total) => self.shorten(&name, whole, total, &mut out)?,
                }
            }
            let tracks = out.iter().map(|b| b.tracks * b.repeat).sum();
            check(&name, "tracks", tracks, 1..=TREE_TRACKS_MAX)?;
            let node = self.tree.add_node(out);
            let extent = self.tree.node(node).extent;
            for cylinder in [extent.cylinders.0, extent.cylinders.1] {
                check(
                    &name,
                    "cylinder",
                    cylinder,
                    -(CYLINDERS_MAX as i32)..=CYLINDERS_MAX as i32,
                )?;
            }
            for surface in [extent.surfaces.0, extent.surfaces.1] {
                check(
                    &name,
                    "surface",
                    surface,
                    -i32::from(SURFACES_MAX)..=SURFACES_MAX.into(),
                )?;
            }
            nodes.push(node);
            interleaved.push(visits);
        }
        let Some(&root) = nodes.last() else {
            return Err(GeometryError::inconsistent("tree", "there are no nodes"));
        };
        overlap::check_tree(self.spec, &self.tree, root)?;
        let area = Area {
            name: "tree".to_string(),
            bad: self.bad(
                "tree",
                root,
                spec.slips.iter().map(|s| (s.position, s.sectors)),
                false,
            )?,
            full: root,
            trimmed: root,
            region: self.tree.node(root).tracks,
            spares: 0,
            spare_tracks: 0,
            at_front: false,
            slips_to_end: true,
            period: self.tree.node(root).tracks,
            turns: Vec::new(),
            moved: BTreeMap::new(),
            taken: BTreeSet::new(),
        };
        let starts: Vec<_> = self
            .tree
            .of(root)
            .iter()
            .map(|b| (b.sector, self.tree.extent(b), b.track))
            .collect();
        let drawn = area.draw(&mut self.tree)?;
        self.add(drawn, 0, None);
        self.irregular_zones(&area, &starts);
        Ok(())
    }

    /// Makes a zone of each branch of the root.
    fn irregular_zones(&mut self, area: &Area, starts: &[(u64, super::tree::Extent, u64)]) {
        // A position less the bad sectors before it is an LBN.
        let mut bad = area.bad.iter().peekable();
        let mut lost = 0;
        let mut lbn_of = |tree: &Tree, position: u64| {
            let at = |b: &Bad| tree.find_track(area.full, b.track).first + u64::from(b.slot);
            while let Some(b) = bad.next_if(|b| at(b) < position) {
                lost += u64::from(b.len);
            }
            position - lost
        };
        let mut firsts: Vec<u64> = starts
            .iter()
            .map(|s| lbn_of(&self.tree, s.0).min(self.sectors))
            .collect();
        firsts.push(self.sectors);
        for (i, (_, extent, track)) in starts.iter().enumerate() {
            let one = extent.surfaces.0 == extent.surfaces.1;
            self.zones.push(ZoneInfo {
                first_lbn: Lbn(firsts[i]),
                end_lbn: Lbn(firsts[i + 1]),
                first_cylinder: Cylinder(extent.cylinders.0 as u32),
                last_cylinder: Cylinder(extent.cylinders.1 as u32),
                surface: one.then_some(Surface(extent.surfaces.0 as u16)),
                slots: self.tree.find_track(area.full, *track).shape.slots,
            });
        }
    }

    /// Adds `branch` cut to `total` sectors.
    fn shorten(
        &mut self,
        name: &str,
        branch: Branch,
        total: u64,
        out: &mut Vec<Branch>,
    ) -> Result<(), GeometryError> {
        check(
            name,
            "total_sectors",
            total,
            1..=branch.sectors * branch.repeat,
        )?;
        let node = self.tree.add_node(vec![branch]);
        let mut drawn = Drawn::default();
        cut(&mut self.tree, node, 0..total, &mut drawn);
        out.extend(drawn.mapped);
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
        let root = self.tree.add_node(std::mem::take(&mut self.drawn.mapped));
        let blanks = self.tree.add_node(std::mem::take(&mut self.drawn.blank));
        let (tree, roots) = self.tree.compact(&[root, blanks]);
        let mut geometry = Geometry {
            capacity: self.sectors,
            tracks: tree.node(roots[0]).tracks,
            cylinders: self.spec.cylinders,
            surfaces: self.spec.surfaces,
            root: roots[0],
            blanks: roots[1],
            tree,
            moved: Vec::new(),
            moved_in: Vec::new(),
            zones: self.zones,
        };
        let moved = collect_moved(self.spec, &geometry, &self.remaps)?;
        geometry.set_moved(moved);
        Ok(geometry)
    }
}

/// A zone's irregular turns, summed up.
fn turns(name: &str, zone: &ZoneSpec, tracks: u64) -> Result<Vec<(u64, i64)>, GeometryError> {
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

/// All LBNs that are not in their track, ascending.
fn collect_moved(
    spec: &GeometrySpec,
    geometry: &Geometry,
    remaps: &[(String, Place, Place)],
) -> Result<Vec<Moved>, GeometryError> {
    let mut wanted: BTreeMap<u64, (String, Place, Option<u32>)> = BTreeMap::new();
    for (name, from, to) in remaps {
        if let Occupant::Lbn(lbn) = geometry.lbn_at(*from) {
            wanted.entry(lbn.0).or_insert((name.clone(), *to, None));
        }
    }
    let mut count = 0;
    for (number, moved) in spec.moved.iter().enumerate() {
        let name = format!("moved {number}");
        check(&name, "lbn", moved.lbn, 0..=geometry.capacity - 1)?;
        check(
            &name,
            "sectors",
            u64::from(moved.sectors),
            1..=geometry.capacity - moved.lbn,
        )?;
        count += u64::from(moved.sectors);
        check(&name, "sectors", count, 0..=MOVED_MAX)?;
        for i in 0..moved.sectors {
            let place = Place {
                cylinder: Cylinder(moved.cylinder),
                surface: Surface(moved.surface),
                slot: moved.slot.saturating_add(i),
            };
            let lbn = moved.lbn + u64::from(i);
            if wanted
                .insert(lbn, (name.clone(), place, moved.slots))
                .is_some()
            {
                return Err(GeometryError::inconsistent(
                    name,
                    format!("LBN {lbn} is moved twice"),
                ));
            }
        }
    }
    let mut out = Vec::new();
    let mut taken = BTreeSet::new();
    for (&lbn, (name, place, slots)) in &wanted {
        let free = match geometry.lbn_at(*place) {
            Occupant::Empty => true,
            // An LBN that has itself been moved away leaves its place.
            Occupant::Lbn(other) => wanted.contains_key(&other.0),
            Occupant::NoSuchPlace => slots.is_some(),
            Occupant::Bad => false,
        };
        let key = (place.cylinder, place.surface, place.slot);
        if !spec.shared_places && (!free || !taken.insert(key)) {
            let problem = format!("{place} is not free to take LBN {lbn}");
            return Err(GeometryError::inconsistent(name, problem));
        }
        let (slots, origin) = match (geometry.circle(place.cylinder, place.surface), slots) {
            (Some(circle), _) => circle,
            (None, Some(slots)) => (*slots, Angle::ZERO),
            (None, None) => {
                let problem = format!("{place}, where LBN {lbn} should be, is not on any track");
                return Err(GeometryError::inconsistent(name, problem));
            }
        };
        check(name, "cylinder", place.cylinder.0, 0..=spec.cylinders - 1)?;
        check(name, "surface", place.surface.0, 0..=spec.surfaces - 1)?;
        check(name, "slots", slots, 1..=SLOTS_MAX)?;
        check(name, "slot", place.slot, 0..=slots - 1)?;
        out.push(Moved {
            lbn,
            place: *place,
            slots,
            origin,
        });
    }
    Ok(out)
}

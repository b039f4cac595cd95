//! The construction of an irregular layout: checks of an explicit tree, and its LBNs.

use std::collections::{BTreeMap, BTreeSet};

use super::build::Builder;
use super::error::{GeometryError, check};
use super::limits::{CYLINDERS_MAX, SLOTS_MAX, SURFACES_MAX};
use super::spec::{Child, TreeSpec};
use super::tree::{self, Branch, BranchOf, Extent, NodeId, Offset, Tree};
use super::zone::{BadSlots, ZoneBranches, ZoneTracks, keep_lbns};
use super::{ZoneInfo, overlap};
use traxtent_units::{Angle, Cylinder, Lbn, Surface};

/// The maximum number of tracks of a tree.
const TREE_TRACKS_MAX: u64 = 1 << 25;
/// The maximum depth of a tree.
const TREE_DEPTH_MAX: u64 = 16;
/// The maximum number of instances that a lookup by place may visit on one path.
const INTERLEAVED_MAX: u64 = 1 << 10;

impl Builder<'_> {
    /// Builds the layout from an explicit tree.
    pub(super) fn irregular(&mut self, spec: &TreeSpec) -> Result<(), GeometryError> {
        let shapes = overlap::check_tracks(spec, &mut self.tree, SLOTS_MAX)?;
        let mut nodes: Vec<NodeId> = Vec::new();
        let mut depths: Vec<usize> = Vec::new();
        // For each node: the number of instances in it that a lookup by place may visit on one
        // path.
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
                    Child::Track(i) => shapes.get(i as usize).map(|&s| BranchOf::Track(s)),
                    Child::Node(i) => nodes.get(i as usize).map(|&n| BranchOf::Node(n)),
                };
                let Some(what) = what else {
                    let problem = format!("{:?} is not a track or an earlier node", branch.of);
                    return Err(GeometryError::inconsistent(name, problem));
                };
                check_box(
                    &name,
                    (branch.cylinder, branch.cylinder_step),
                    (branch.surface, branch.surface_step),
                )?;
                let turns = [branch.angle_turns, branch.angle_step_turns];
                if turns.iter().any(|t| !t.is_finite() || t.abs() > 1e6) {
                    let problem = "an angle is not finite, or exceeds a million turns";
                    return Err(GeometryError::inconsistent(name, problem));
                }
                let [angle, step] = turns.map(Angle::from_turns);
                let at = Offset::new(branch.cylinder, branch.surface, angle);
                let step = Offset::new(branch.cylinder_step, branch.surface_step, step);
                let whole = self.tree.branch(what, at, step, branch.repeat);
                let tracks = whole.tracks.saturating_mul(whole.repeat);
                check(&name, "tracks", tracks, 1..=TREE_TRACKS_MAX)?;
                let inner = match branch.of {
                    Child::Node(i) => interleaved[i as usize],
                    Child::Track(_) => 1,
                };
                visits = inner
                    .saturating_mul(tree::interleaved(&self.tree, &whole))
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
            check_box(&name, extent.cylinders, extent.surfaces)?;
            nodes.push(node);
            interleaved.push(visits);
        }
        let Some(&root) = nodes.last() else {
            return Err(GeometryError::inconsistent("tree", "there are no nodes"));
        };
        overlap::check_tree(self.spec, &self.tree, root)?;
        let area = ZoneTracks {
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
            replacement_tracks: BTreeSet::new(),
        };
        let starts: Vec<_> = self
            .tree
            .branches_of(root)
            .iter()
            .map(|b| (b.sector, self.tree.extent(b), b.track))
            .collect();
        let branches = area.add_zone(&mut self.tree)?;
        self.add(branches, 0, None);
        self.irregular_zones(&area, &starts);
        Ok(())
    }

    /// Creates a zone for each branch of the root.
    fn irregular_zones(&mut self, area: &ZoneTracks, starts: &[(u64, Extent, u64)]) {
        // An LBN is a position minus the number of bad sectors before it.
        let mut bad = area.bad.iter().peekable();
        let mut lost = 0;
        let mut lbn_of = |tree: &Tree, position: u64| {
            let at = |b: &BadSlots| {
                let found = tree.find_track(area.full, b.track);
                found.first + u64::from(b.slot - found.shape.begin)
            };
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

    /// Adds `branch`, shortened to `total` sectors.
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
        let mut branches = ZoneBranches::default();
        keep_lbns(&mut self.tree, node, 0..total, &mut branches);
        out.extend(branches.mapped);
        Ok(())
    }
}

/// Checks that cylinders and surfaces are small enough to be added without overflow.
fn check_box(name: &str, cylinders: (i32, i32), surfaces: (i32, i32)) -> Result<(), GeometryError> {
    let bound = CYLINDERS_MAX as i32;
    check(name, "cylinder", cylinders.0, -bound..=bound)?;
    check(name, "cylinder", cylinders.1, -bound..=bound)?;
    let bound = i32::from(SURFACES_MAX);
    check(name, "surface", surfaces.0, -bound..=bound)?;
    check(name, "surface", surfaces.1, -bound..=bound)
}

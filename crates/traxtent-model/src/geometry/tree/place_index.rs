//! The inverse mapping: from a cylinder and surface to the tracks that lie there.
//!
//! The branches of each node are sorted by their outermost cylinder. Each entry also stores the
//! innermost cylinder that it or an earlier one reaches. A search starts at the last branch that
//! begins at or before the cylinder, moves backward, and stops once no earlier branch can reach the
//! cylinder.

use super::{Branch, BranchOf, FoundTrack, NodeId, Tree};

#[derive(Clone, Debug, Default)]
pub(super) struct PlaceIndex {
    /// Parallel to the tree's branches, sorted within each node.
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    outermost: i32,
    /// The innermost cylinder of this and all earlier entries of the node.
    innermost_so_far: i32,
    branch: u32,
}

impl PlaceIndex {
    pub(super) fn build(tree: &Tree) -> PlaceIndex {
        let mut entries = Vec::with_capacity(tree.branches.len());
        for node in &tree.nodes {
            let begin = entries.len();
            entries.extend(node.branches.clone().map(|branch| {
                let (outermost, innermost) = tree.extent(&tree.branches[branch as usize]).cylinders;
                Entry {
                    outermost,
                    innermost_so_far: innermost,
                    branch,
                }
            }));
            let own = &mut entries[begin..];
            own.sort_by_key(|e| e.outermost);
            let mut reach = i32::MIN;
            for entry in own {
                reach = reach.max(entry.innermost_so_far);
                entry.innermost_so_far = reach;
            }
        }
        PlaceIndex { entries }
    }

    pub(super) fn visit<T>(
        &self,
        tree: &Tree,
        node: NodeId,
        from: FoundTrack,
        place: (i32, i32),
        visit: &mut impl FnMut(FoundTrack) -> Option<T>,
    ) -> Option<T> {
        let range = tree.node(node).branches.clone();
        let own = &self.entries[range.start as usize..range.end as usize];
        let cylinder = place.0.wrapping_sub(from.spot.cylinder);
        let surface = place.1.wrapping_sub(from.spot.surface);
        let begun = own.partition_point(|e| e.outermost <= cylinder);
        for entry in own[..begun].iter().rev() {
            if entry.innermost_so_far < cylinder {
                break;
            }
            let branch = &tree.branches[entry.branch as usize];
            for k in instances(tree, branch, cylinder, surface) {
                let mut found = FoundTrack {
                    index: from.index + branch.track + k * branch.tracks,
                    first: from.first + branch.sector + k * branch.sectors,
                    spot: from.spot.plus(branch.at, 1).plus(branch.step, k),
                    shape: from.shape,
                };
                let hit = match branch.what {
                    BranchOf::Node(child) => self.visit(tree, child, found, place, visit),
                    BranchOf::Track(shape) => {
                        found.shape = tree.shapes[shape as usize];
                        visit(found)
                    }
                };
                if hit.is_some() {
                    return hit;
                }
            }
        }
        None
    }
}

/// The maximum number of instances of a branch that a lookup may visit: those whose extents
/// overlap.
pub(in crate::geometry) fn interleaved(tree: &Tree, branch: &Branch) -> u64 {
    let child = tree.child_extent(branch);
    let along = |ends: (i32, i32), step: i32| match step {
        0 => u64::MAX,
        _ => u64::from(ends.0.abs_diff(ends.1) / step.unsigned_abs()) + 1,
    };
    branch
        .repeat
        .min(along(child.cylinders, branch.step.cylinder))
        .min(along(child.surfaces, branch.step.surface))
}

/// The instances of `branch` whose extent contains the place.
fn instances(tree: &Tree, branch: &Branch, cylinder: i32, surface: i32) -> std::ops::Range<u64> {
    let child = tree.child_extent(branch);
    let cylinders = reaching(
        child.cylinders,
        branch.at.cylinder,
        branch.step.cylinder,
        cylinder,
    );
    let surfaces = reaching(
        child.surfaces,
        branch.at.surface,
        branch.step.surface,
        surface,
    );
    let from = cylinders.0.max(surfaces.0).max(0);
    let to = cylinders.1.min(surfaces.1).min(branch.repeat as i64 - 1);
    if from > to {
        0..0
    } else {
        from as u64..to as u64 + 1
    }
}

/// The first and last k for which `target` lies in the range `ends` shifted by `at + k * step`.
fn reaching(ends: (i32, i32), at: i32, step: i32, target: i32) -> (i64, i64) {
    let low = i64::from(target) - i64::from(at) - i64::from(ends.1);
    let high = i64::from(target) - i64::from(at) - i64::from(ends.0);
    let step = i64::from(step);
    // k * step must lie in low..=high.
    match step {
        0 if low <= 0 && 0 <= high => (i64::MIN, i64::MAX),
        0 => (1, 0),
        1.. => (-(-low).div_euclid(step), high.div_euclid(step)),
        _ => (-high.div_euclid(-step), (-low).div_euclid(-step)),
    }
}

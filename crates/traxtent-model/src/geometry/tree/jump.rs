//! A shortcut to the branch of a node that holds a sector.

use super::{NodeId, Tree};

/// A coarse index into one node's branches: for each bucket of sectors, the branches that hold
/// them.
#[derive(Clone, Debug)]
pub(super) struct Jump {
    pub(super) node: NodeId,
    /// The binary logarithm of the bucket size in sectors.
    shift: u32,
    /// The branch that holds the first sector of each bucket, with one additional entry at the end.
    buckets: Vec<u32>,
}

impl Jump {
    pub(super) fn build(tree: &Tree, node: NodeId) -> Jump {
        let (branches, sectors) = (tree.branches_of(node), tree.node(node).sectors);
        let wanted = (4 * branches.len() as u64).clamp(1, 1 << 20);
        let shift = (sectors / wanted).max(1).ilog2();
        let mut at = 0;
        let buckets = (0..=(sectors >> shift) + 1).map(|bucket| {
            while at + 1 < branches.len() && branches[at + 1].sector <= bucket << shift {
                at += 1;
            }
            at as u32
        });
        Jump {
            node,
            shift,
            buckets: buckets.collect(),
        }
    }

    /// Returns a range of the node's branches that includes the one with `sector`. Branches are
    /// counted from the node's first.
    #[inline]
    pub(super) fn branches(&self, sector: u64) -> std::ops::Range<usize> {
        let bucket = (sector >> self.shift) as usize;
        self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize + 1
    }
}

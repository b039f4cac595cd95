//! A short cut to the branch of a large node.

use super::tree::{NodeId, Tree};

/// A coarse index into one node's branches: which of them begin near a sector.
#[derive(Clone, Debug)]
pub(super) struct Jump {
    pub(super) node: NodeId,
    /// A bucket has 2 to this power sectors.
    shift: u32,
    /// The branch that holds the first sector of each bucket, and one more.
    buckets: Vec<u32>,
}

impl Jump {
    pub(super) fn build(tree: &Tree, node: NodeId) -> Jump {
        let (branches, sectors) = (tree.of(node), tree.node(node).sectors);
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

    /// The node's branches, counted from its first, among which is the one with `sector`.
    #[inline]
    pub(super) fn branches(&self, sector: u64) -> std::ops::Range<usize> {
        let bucket = (sector >> self.shift) as usize;
        self.buckets[bucket] as usize..self.buckets[bucket + 1] as usize + 1
    }
}

//! Jumps by the size of the last track (paper Q, section 2.3).
//!
//! 1. From the first LBN, translate LBN by LBN until the cylinder or surface changes. This gives
//!    the first boundary `T` and the track size `S`.
//! 2. Translate `T + S` and `T + S - 1`. If the track changes between them, `T + S` is a boundary.
//!    Otherwise translate LBN by LBN from `T` to the next boundary, which gives a new `S`.
//!
//! Taken literally, step 2 misses a boundary between `T` and `T + S - 1` if another boundary
//! happens to be at `T + S`: for example, after a track of 6 sectors and one of 386 where 392 are
//! expected. This implementation therefore also requires `T + S - 1` to be on the track of `T`,
//! which needs no further translation.
//!
//! Going LBN by LBN costs as many translations as a track has LBNs, for each track that differs
//! from the previous one. That is hundreds per track on drives with irregular tracks. The algorithm
//! is kept because the paper's cost is measured with it (experiment Q2); the algorithms
//! [`walk`](mod@super::walk) and `tree` bisect instead.

use super::extraction::{Extraction, ProbeError, TrackSink};
use super::target::Target;
use super::track_end::Search;
use super::walk::walk;
use traxtent_map::Region;

/// Finds the tracks of a region.
pub(super) fn jump(
    target: &mut dyn Target,
    region: Region,
    sink: &mut TrackSink<'_>,
) -> Result<Extraction, ProbeError> {
    walk(target, region, Search::Linear, sink)
}

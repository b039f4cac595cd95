//! T19: the share of a file system's blocks that span a track boundary (paper T, section 4.2.2).

use std::sync::Arc;

use traxtent_layout::{Partition, sectors_of_block};
use traxtent_map::TrackMap;
use traxtent_units::Sectors;

use crate::bench::{Bench, LabError};

/// The size of a file-system block in the paper.
const BLOCK_BYTES: u32 = 8192;

/// Returns n, where one block in n is excluded, for the whole Atlas 10K and the whole Atlas 10K II.
/// The paper does not state the partition's offset within a block, so the result is the mean over
/// all offsets.
///
/// # Errors
/// Returns the errors of [`Bench::with_drive`], or an error if a block is not a whole number of a
/// drive's sectors.
pub fn excluded_blocks(bench: &Bench) -> Result<Vec<f64>, LabError> {
    ["atlas10k", "atlas10k2"]
        .into_iter()
        .map(|drive| one_in(&bench.with_drive(drive)?))
        .collect()
}

fn one_in(bench: &Bench) -> Result<f64, LabError> {
    let block = sectors_of_block(BLOCK_BYTES, bench.profile.sector.logical_bytes)?;
    let map = Arc::new(TrackMap::from_sizes(bench.geometry.track_sizes()));
    let (mut excluded, mut blocks) = (0, 0);
    for offset in 0..u64::from(block) {
        let lbns = map.first() + Sectors(offset)..map.end();
        let partition = Partition::new(map.clone(), lbns, block)?;
        excluded += partition.excluded().count();
        blocks += partition.blocks().0;
    }
    Ok(blocks as f64 / excluded as f64)
}

//! The count of excluded blocks.

use traxtent_lab::{Bench, excluded};

/// Averaged over all starts of the partition, does each boundary exclude a block 15 times in 16?
#[test]
fn a_boundary_excludes_a_block() {
    let bench = Bench::new("atlas10k", 1).unwrap();
    let counted = excluded::excluded_blocks(&bench).unwrap();
    for (counted, drive) in counted.into_iter().zip(["atlas10k", "atlas10k2"]) {
        let geometry = bench.with_drive(drive).unwrap().geometry;
        let boundaries = geometry.tracks().count() as f64 - 1.0;
        let blocks = geometry.capacity().0 as f64 / 16.0;
        let expected = blocks / (boundaries * 15.0 / 16.0);
        eprintln!("{drive}: one block in {counted:.3}");
        assert!(
            (counted / expected - 1.0).abs() < 1e-4,
            "{drive}: {counted}, not {expected}"
        );
    }
}

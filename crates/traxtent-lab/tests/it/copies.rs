//! Volumes with replicas, in virtual time.

use std::cell::RefCell;

use traxtent_lab::Bench;
use traxtent_lab::tpl::volume::{Part, Virtual, target};

/// Do the volume's reads achieve at least 95 % of the gain of a drive that chooses the replica
/// itself, and at least 85 % if completion times have a standard deviation of 100 microseconds?
#[test]
fn volume_reads_achieve_most_of_the_drives_gain() {
    let bench = Bench::new("atlas10k2", 1).expect("it is built in");
    let reads = 10_000;
    for (jitter_ms, least) in [(0.0, 0.95), (0.1, 0.85)] {
        let part = Part::new(&bench, 4000, jitter_ms).expect("it can be surveyed");
        for count in [2, 8] {
            let drive_ms = part
                .drive_ms(count, count, jitter_ms, reads)
                .expect("it has them");
            let timed = Virtual(RefCell::new(target(&bench, jitter_ms)));
            let measured = part.volume(timed, count, reads).expect("it fits");
            let gain = measured.without_ms - measured.volume_ms;
            let share = gain / (measured.without_ms - drive_ms);
            eprintln!(
                "{count} replicas, jitter {jitter_ms} ms: {share:.3} of the gain, {measured:?}, drive {drive_ms}"
            );
            assert!(share >= least, "{share}");
        }
    }
}

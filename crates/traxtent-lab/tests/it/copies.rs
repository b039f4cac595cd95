//! Volumes with replicas, in virtual time.

use std::cell::RefCell;

use traxtent_lab::Bench;
use traxtent_lab::tpl::volume::{Part, Virtual, target};

/// Do the volume's reads achieve 95 % of the gain of a drive that chooses the replica itself, and
/// 85 % if completions deviate by 100 microseconds?
#[test]
fn reads_gain_nearly_what_the_drives_choice_does() {
    let bench = Bench::new("atlas10k2", 1).expect("it is built in");
    let reads = 10_000;
    for (jitter_ms, least) in [(0.0, 0.95), (0.1, 0.85)] {
        let part = Part::new(&bench, 4000, jitter_ms).expect("it can be surveyed");
        for count in [2, 8] {
            let drive_ms = part
                .drive_ms(count, count, jitter_ms, reads)
                .expect("it has them");
            let timed = Virtual(RefCell::new(target(&bench, jitter_ms)));
            let of = part.volume(timed, count, reads).expect("it fits");
            let share = (of.without_ms - of.volume_ms) / (of.without_ms - drive_ms);
            eprintln!(
                "{count} copies, jitter {jitter_ms} ms: {share:.3} of the gain, {of:?}, drive {drive_ms}"
            );
            assert!(share >= least, "{share}");
        }
    }
}

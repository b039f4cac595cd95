//! A drive's behaviour as seen by its host (the Linux validation, paper Q, section 2.3).

use traxtent_lab::Bench;
use traxtent_lab::linux::{MAIN_DRIVE, Start, bandwidth_drops, growing_reads};
use traxtent_model::drive::Caching;
use traxtent_units::Lbn;
use traxtent_units::Rng;

/// If the drive obeyed the host's cache settings, would growing reads show its tracks? The scan
/// must find the end of the first track, 256 sectors nearer if it begins 256 sectors later.
#[test]
fn an_obedient_drive_shows_its_tracks() {
    let bench = Bench::new(MAIN_DRIVE, 1).unwrap();
    let bench = bench
        .with_parameter("cache.read_ahead.ignores_host", "false")
        .unwrap();
    for (start, track) in [(0, 1144_u32), (256, 1144 - 256)] {
        let mut target = bench.target();
        target.set_caching(Caching::OFF);
        let scan = growing_reads(&mut target, Start::At(Lbn(start)), &mut Rng::new(1)).unwrap();
        let first = bandwidth_drops(&scan)[0];
        assert!(first.abs_diff(track) <= 2, "from sector {start}: {first}");
    }
}

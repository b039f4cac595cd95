//! Random interleavings of writes to some replicas, synchronization, flushes, splits, merges, trims
//! and crashes.

use traxtent_units::Rng;

use super::map_of;
use super::model::User;

/// Works for `steps` steps with simulated crashes after writes, and a real one now and then.
fn work(seed: u64, steps: u64, watch: f64, lies: bool) -> User {
    let mut rng = Rng::new(seed);
    let map = map_of(74, 72 + 10 * rng.below(4));
    let (least, most) = [(1, 32), (1, 8), (2, 16), (4, 4)][rng.below(4) as usize];
    let mut user = User::format(&map, least, most, rng.split());
    user.watch = watch;
    user.device.lies = lies;
    for step in 0..steps {
        user.step();
        if rng.chance(0.01) {
            user.crash();
        }
        if step % 100 == 0 {
            user.check_all();
        }
    }
    user.check_all();
    user
}

/// Does every read return the data written last, after any sequence of writes, synchronizations,
/// splits, merges, trims and crashes? Does every crash leave a layout that opens and contains all
/// flushed data, with equal readable replicas?
#[test]
fn no_read_is_stale() {
    let (mut crashes, mut lossy, mut plans) = (0, 0, [0; 4]);
    for seed in 0..testkit::repeats(16) {
        eprintln!("seed {seed}");
        let user = work(seed, 400, 0.1, false);
        crashes += user.crashes;
        lossy += user.lossy;
        (0..4).for_each(|kind| plans[kind] += user.plans[kind]);
    }
    // Asserts that crashes had an effect, and that plans of each counted kind were carried out.
    assert!(
        crashes > 800 && lossy * 20 > crashes,
        "{crashes} crashes, {lossy} with a loss"
    );
    assert!(plans.iter().all(|count| *count > 20), "{plans:?}");
}

/// Do the properties of [`no_read_is_stale`] hold with a simulated crash after every write?
#[test]
fn a_crash_after_every_write() {
    for seed in 1000..1000 + testkit::repeats(4) {
        eprintln!("seed {seed}");
        work(seed, 60, 1.0, false);
    }
}

/// Does the test detect a device that does not flush?
#[test]
#[should_panic(expected = "was found, not")]
fn a_lying_device_is_noticed() {
    for seed in 0..20 {
        work(seed, 200, 0.2, true);
    }
}

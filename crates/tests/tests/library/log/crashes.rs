//! Power cuts at every write, on a device that keeps, loses, tears and reorders data that was not
//! flushed.
//!
//! Guards against: reusing a segment before a checkpoint has freed it; accepting, after a crash, a
//! chunk from before it; an unfinished checkpoint that leaves no room for the next.

use traxtent_layout::log::{Cleaning, Log, LogConfig, LogOp};
use traxtent_map::TrackMap;
use traxtent_units::Rng;

use super::device::{Device, Fate, Perform};
use super::model::{Model, Stamp, Worker, assert_accounts, contents, drain, recover};
use super::{filled, small_map};

/// A device that is copied, cut and checked at every write and flush.
#[derive(Clone)]
struct WatchedDevice {
    device: Device,
    map: TrackMap,
    cleaning: Cleaning,
    rng: Rng,
    /// The number of cuts checked.
    cuts: u64,
    /// The number of cuts that lost data which was not synced.
    lossy: u64,
    watching: bool,
}

impl Perform for WatchedDevice {
    fn perform(&mut self, op: LogOp) -> Vec<u8> {
        self.device.perform(op)
    }

    fn observe(&mut self, model: &Model, next: Option<&LogOp>) {
        if !self.watching {
            return;
        }
        let mut device = self.device.clone();
        match next {
            // Either only the outstanding write reaches the media, in part, or all writes since the
            // last flush do so in part.
            Some(write @ LogOp::Write { .. }) => {
                device.perform(write.clone());
                let seed = self.rng.bits();
                self.check(&device, Fate::OnlyLast(seed), model);
                self.check(&device, Fate::Units(1, seed), model);
                self.check(&device, Fate::Units(8, seed), model);
            }
            Some(_) => {}
            None => {
                let seed = self.rng.bits();
                for fate in [Fate::None, Fate::All, Fate::Writes(seed)] {
                    self.check(&device, fate, model);
                }
            }
        }
    }
}

impl WatchedDevice {
    fn new(map: &TrackMap, config: &LogConfig, rng: Rng) -> WatchedDevice {
        WatchedDevice {
            device: Device::new(map.end()),
            map: map.clone(),
            cleaning: config.cleaning,
            rng,
            cuts: 0,
            lossy: 0,
            watching: false,
        }
    }

    /// Cuts the power, and asserts that a recovery finds an allowed state. The next recovery must
    /// find the same state, however far the first one got.
    fn check(&mut self, device: &Device, fate: Fate, model: &Model) {
        let mut left = device.cut(fate);
        let mut log = recover(&self.map, &mut left, self.cleaning).unwrap();
        let found = found_by(&log, &left);
        assert!(
            model.allows(&found),
            "{fate:?} left {found:?}, synced was {:?}, since then {:?}",
            model.synced,
            model.since
        );
        assert_accounts(&log);
        self.cuts += 1;
        self.lossy += u64::from(found != model.now);
        if self.rng.chance(0.75) {
            return;
        }
        while let Some(op) = log.next_op() {
            let data = left.perform(op);
            let seed = self.rng.bits();
            let fates = [
                Fate::None,
                Fate::All,
                Fate::Writes(seed),
                Fate::Units(1, seed),
            ];
            let mut again = left.cut(fates[self.rng.below(4) as usize]);
            let log_again = recover(&self.map, &mut again, self.cleaning).unwrap();
            assert_eq!(found_by(&log_again, &again), found, "after {fate:?}");
            log.complete(data).unwrap();
        }
        assert_eq!(contents(&log, &mut left), found);
        assert_accounts(&log);
    }
}

/// Returns the content of a newly opened log, once its operations have been carried out.
fn found_by(log: &Log, device: &Device) -> Vec<Stamp> {
    let (mut log, mut device) = (log.clone(), device.clone());
    drain(&mut log, &mut device);
    contents(&log, &mut device)
}

/// Works for `steps` steps with simulated cuts at every write, and a real one now and then.
fn work(seed: u64, steps: u64, lies: bool) -> WatchedDevice {
    let mut rng = Rng::new(seed);
    let map = small_map();
    let config = filled(&mut rng, &map);
    let watched = WatchedDevice::new(&map, &config, rng.split());
    let mut worker = Worker::format(&map, watched, &config, rng.split());
    // Ages the log, often until segments are cleaned and used again.
    for _ in 0..rng.below(600) {
        worker.step(&mut rng);
    }
    worker.sync();
    worker.device.watching = true;
    worker.device.device.lies = lies;
    for _ in 0..steps {
        worker.step(&mut rng);
        if rng.chance(0.01) {
            let mut watched = worker.device.clone();
            let cut = rng.bits();
            let fates = [
                Fate::None,
                Fate::All,
                Fate::Writes(cut),
                Fate::Units(1, cut),
            ];
            watched.device = watched.device.cut(fates[rng.below(4) as usize]);
            worker.continue_with(watched);
        }
    }
    worker.device
}

/// Whatever a cut at any write leaves, is no synced data lost, no block torn or mixed, and no
/// change kept without the earlier ones?
#[test]
fn nothing_synced_is_lost() {
    let (mut cuts, mut lossy) = (0, 0);
    for seed in 0..testkit::repeats(24) {
        eprintln!("seed {seed}");
        let watched = work(seed, 150, false);
        cuts += watched.cuts;
        lossy += watched.lossy;
    }
    // Asserts that the cuts had an effect.
    assert!(
        cuts > 5_000 && lossy * 10 > cuts,
        "{cuts} cuts, {lossy} with a loss"
    );
}

/// Does the test detect a device that does not flush?
#[test]
#[should_panic(expected = "synced was")]
fn a_lying_device_is_noticed() {
    for seed in 0..20 {
        work(seed, 150, true);
    }
}

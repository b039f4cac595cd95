//! The state of a disk after power cuts.

use std::collections::BTreeSet;

use traxtent_model::disk::{Disk, Fault, Tearing};
use traxtent_model::profile::Profile;
use traxtent_units::Rng;
use traxtent_units::Span;

use super::history::{History, stamps};
use super::{SECTORS, random, small, stamped, write_back};

/// A disk under random work, and the history that determines the content a host may find.
struct Busy {
    disk: Disk,
    history: History,
    rng: Rng,
    stamp: u64,
}

/// The number of sectors at the beginning of the disk that the random work uses.
const WORK_SECTORS: u64 = 120;

impl Busy {
    fn new(profile: &Profile, seed: u64) -> Busy {
        let disk = Disk::new(profile).unwrap();
        Busy {
            history: History::new(WORK_SECTORS as usize, disk.sector_bytes()),
            disk,
            rng: Rng::new(seed),
            stamp: 0,
        }
    }

    /// Submits `commands` commands, and waits after each until at most `depth` are outstanding.
    /// These stay outstanding at the end.
    fn work(&mut self, commands: u64, depth: usize) {
        let mut now = self.disk.now();
        for _ in 0..commands {
            self.stamp += 1;
            let sector = self.disk.sector_bytes();
            let (command, data) = random(&mut self.rng, WORK_SECTORS, sector, self.stamp);
            let tag = self.disk.submit(now, command, data).unwrap();
            self.history.submitted(tag, command, self.stamp);
            while self.history.outstanding() > depth {
                now = self.disk.next_wakeup().unwrap();
                while let Some(done) = self.disk.poll(now) {
                    self.history.completed(&done);
                }
            }
            // Commands that have completed by now are acknowledged.
            while let Some(done) = self.disk.poll(now) {
                self.history.completed(&done);
            }
        }
    }

    fn cut(&mut self, seed: u64, tearing: Tearing) -> traxtent_model::disk::PowerCutResult {
        let fault = Fault::PowerCut {
            seed: Some(seed),
            tearing,
            off: Span::ZERO,
        };
        let cut = self.disk.inject(self.disk.now(), fault).unwrap().unwrap();
        while self.disk.poll(self.disk.now()).is_some() {}
        cut
    }

    fn stamps(&self) -> Vec<u64> {
        stamps(&self.disk, 0, self.history.grains())
    }
}

/// Runs random work with power cuts on every sector size, and passes the state after each cut to
/// `check`. Returns the numbers of writes that the cuts kept, lost and tore.
fn for_each_cut(
    seeds: u64,
    tearing: Tearing,
    mut check: impl FnMut(&Profile, &History, &[u64], u64),
) -> [u64; 3] {
    let mut counts = [0; 3];
    for seed in 0..testkit::repeats(seeds) {
        let profile = small(SECTORS[(seed % 5) as usize]);
        let mut busy = Busy::new(&profile, seed);
        for round in 0..6 {
            let (commands, depth) = (1 + busy.rng.below(40), busy.rng.below(8) as usize);
            busy.work(commands, depth);
            let cut = busy.cut(seed ^ round, tearing);
            for (count, more) in counts.iter_mut().zip([cut.kept, cut.lost, cut.torn]) {
                *count += more;
            }
            let stamps = busy.stamps();
            check(&profile, &busy.history, &stamps, seed);
            busy.history.settle(&stamps);
        }
    }
    counts
}

/// After a cut, does every grain of 512 bytes hold its last durable version or a later one, whether
/// a flush or force unit access made that version durable? Are some writes kept, some lost and some
/// torn?
#[test]
fn every_grain_is_a_version_since_the_last_durable_one() {
    for tearing in [Tearing::Physical, Tearing::Bytes512] {
        let mut choices = BTreeSet::new();
        let counts = for_each_cut(150, tearing, |_, history, left, seed| {
            for (grain, stamp) in left.iter().enumerate() {
                let possible = history.possible(grain);
                let choice = possible.iter().rposition(|candidate| candidate == stamp);
                let Some(choice) = choice else {
                    panic!("seed {seed}: grain {grain} is {stamp}, not one of {possible:?}");
                };
                choices.insert((choice.min(3), possible.len().min(4)));
            }
        });
        assert!(counts.into_iter().all(|count| count > 100), "{counts:?}");
        // Old, intermediate and new versions all occurred.
        for expected in [(0, 1), (0, 2), (1, 2), (0, 3), (1, 3), (2, 3)] {
            assert!(
                choices.contains(&expected),
                "{expected:?} never occurred: {choices:?}"
            );
        }
    }
}

/// Does tearing at physical sectors leave every physical sector whole, whereas tearing at 512 bytes
/// does not? A write is visible in a physical sector if any of the sector's grains holds it. Every
/// grain of the sector that the write covers must then hold it or a later write.
#[test]
fn physical_sectors_are_torn_only_on_request() {
    let torn = |tearing| {
        let mut torn = 0_u64;
        for_each_cut(150, tearing, |profile, history, left, _| {
            let unit = profile.sector.physical_bytes as usize / 512;
            let shift = profile.sector.lowest_aligned_lbn as usize;
            let mut start = 0;
            while start < left.len() {
                let aligned = start + unit - (start + unit - shift % unit) % unit;
                let end = aligned.min(left.len());
                torn += u64::from(is_torn(history, left, start..end));
                start = end;
            }
        });
        torn
    };
    assert_eq!(torn(Tearing::Physical), 0);
    assert!(torn(Tearing::Bytes512) > 20);
}

fn is_torn(history: &History, stamps_after: &[u64], sector: std::ops::Range<usize>) -> bool {
    let seen: BTreeSet<u64> = sector.clone().map(|grain| stamps_after[grain]).collect();
    sector.clone().any(|grain| {
        let possible = history.possible(grain);
        let shown = possible
            .iter()
            .rposition(|stamp| *stamp == stamps_after[grain]);
        let later = &possible[shown.map_or(0, |shown| shown + 1)..];
        // Zeros do not identify a write.
        later
            .iter()
            .any(|stamp| *stamp != 0 && seen.contains(stamp))
    })
}

/// If a durable write replaces a part of a cached one, are the other parts in the same physical
/// sector kept or lost together, whether the cut or an eviction from the cache writes them?
#[test]
fn a_split_write_is_not_torn_within_a_physical_sector() {
    let states = |later_sectors: u64| {
        let mut found = BTreeSet::new();
        for seed in 0..testkit::repeats(60) {
            let mut disk = Disk::new(&small((512, 4096, 0))).unwrap();
            disk.write(8, &stamped(1, 8 * 512)).unwrap();
            disk.flush().unwrap();
            disk.write(8, &stamped(2, 8 * 512)).unwrap();
            disk.write_fua(10, &stamped(3, 512)).unwrap();
            for lbn in 0..later_sectors {
                disk.write(100 + lbn, &stamped(4, 512)).unwrap();
            }
            let cut = disk.power_cut(seed).unwrap();
            assert_eq!(cut.torn, 0, "seed {seed}");
            found.insert(stamps(&disk, 8, 8));
        }
        found
    };
    let (lost, kept) = (vec![1, 1, 3, 1, 1, 1, 1, 1], vec![2, 2, 3, 2, 2, 2, 2, 2]);
    // Seven sectors of the write are left in the cache, which holds 128.
    for (later_sectors, expected) in [
        (0, [lost.clone(), kept.clone()].into()),
        (121, [lost, kept.clone()].into()),
        (122, [kept.clone()].into()),
        (200, [kept].into()),
    ] {
        let found: BTreeSet<Vec<u64>> = states(later_sectors);
        assert_eq!(found, expected, "{later_sectors} sectors later");
    }
}

/// Can a cut keep later writes while earlier ones, to other sectors, are lost?
#[test]
fn later_writes_outlive_earlier_ones() {
    let mut found = BTreeSet::new();
    for seed in 0..60 {
        let mut disk = write_back();
        disk.write(100, &stamped(1, 512)).unwrap();
        disk.write(500, &stamped(2, 512)).unwrap();
        disk.power_cut(seed).unwrap();
        found.insert((stamps(&disk, 100, 1)[0], stamps(&disk, 500, 1)[0]));
    }
    assert_eq!(found, BTreeSet::from([(0, 0), (0, 2), (1, 0), (1, 2)]));
}

/// Does the same seed leave the same bytes, and do 30 seeds leave more than 10 different states?
#[test]
fn the_same_seed_leaves_the_same_bytes() {
    for (i, sizes) in SECTORS.into_iter().enumerate() {
        let stamps_after = |seed| {
            let mut busy = Busy::new(&small(sizes), i as u64);
            busy.work(60, 6);
            let cut = busy.cut(seed, Tearing::Bytes512);
            (cut, busy.stamps())
        };
        let all: BTreeSet<_> = (0..30).map(|seed| stamps_after(seed).1).collect();
        assert!(all.len() > 10, "only {} different states", all.len());
        for seed in 0..30 {
            assert_eq!(stamps_after(seed), stamps_after(seed));
        }
    }
}

/// Does a write with force unit access make its own sectors durable, but not those of earlier
/// writes? Is its data never overwritten by an older write that is flushed, evicted or kept later?
#[test]
fn forced_unit_access_covers_its_own_sectors() {
    let mut earlier_lost = 0;
    for seed in 0..60 {
        let mut disk = write_back();
        disk.write(10, &stamped(1, 5 * 512)).unwrap();
        disk.write_fua(12, &stamped(2, 512)).unwrap();
        if seed % 3 == 0 {
            disk.flush().unwrap();
        } else if seed % 3 == 1 {
            for lbn in 100..300 {
                disk.write(lbn, &[9; 512]).unwrap();
            }
        }
        disk.power_cut(seed).unwrap();
        let stamps_after = stamps(&disk, 10, 5);
        assert_eq!(stamps_after[2], 2, "seed {seed}: {stamps_after:?}");
        if seed % 3 == 2 {
            earlier_lost += u64::from(stamps_after[0] == 0 && stamps_after[4] == 0);
        } else {
            assert_eq!(stamps_after, [1, 1, 2, 1, 1]);
        }
    }
    assert!(earlier_lost > 0);
}

/// Negative control: does a drive that falsely reports flushes, or writes with force unit access,
/// as durable lose data that a correct drive keeps?
#[test]
fn lying_flushes_and_writes_lose_data() {
    let lost = |fault: Option<&str>| {
        let lost = (0..40).filter(|&seed| {
            let mut disk = write_back();
            if let Some(fault) = fault {
                disk.inject(disk.now(), fault.parse().unwrap()).unwrap();
            }
            disk.write(10, &stamped(1, 512)).unwrap();
            disk.flush().unwrap();
            disk.write_fua(20, &stamped(1, 512)).unwrap();
            disk.power_cut(seed).unwrap();
            (stamps(&disk, 10, 1), stamps(&disk, 20, 1)) != (vec![1], vec![1])
        });
        lost.count()
    };
    assert_eq!(lost(None), 0);
    assert!(lost(Some("lying-flush")) > 5);
    assert!(lost(Some("lying-fua")) > 5);
    // The fault ends before the first write.
    assert_eq!(lost(Some("lying-flush,for=0")), 0);
}

/// Without a write-back cache, does a cut undo no acknowledged write, and tear only outstanding
/// ones?
#[test]
fn write_through_loses_nothing_acknowledged() {
    let mut torn = 0;
    for seed in 0..60 {
        let mut profile = small(SECTORS[0]);
        profile.cache.write_back = traxtent_model::profile::WriteBack::None;
        let mut busy = Busy::new(&profile, seed);
        busy.work(30, 4);
        let acknowledged = busy.history.clone();
        torn += busy.cut(seed, Tearing::Physical).torn;
        for (grain, stamp) in busy.stamps().into_iter().enumerate() {
            let possible = acknowledged.possible(grain);
            let visible = possible
                .iter()
                .rposition(|s| *s == acknowledged.visible(grain));
            let from = visible.unwrap();
            assert!(
                possible[from..].contains(&stamp),
                "seed {seed}, grain {grain}"
            );
        }
    }
    assert!(torn > 0);
}

//! The data that a host reads when there are no faults.

use traxtent_model::disk::{Command, Disk};
use traxtent_model::profile::{Unmap, WriteBack};
use traxtent_units::Lbn;
use traxtent_units::Rng;

use super::history::{History, stamps};
use super::{SECTORS, random, small, stamped, write_back};

/// Does every read return the data written last, with many commands outstanding, for all sector
/// sizes, with and without a write-back cache?
#[test]
fn reads_return_what_was_written_last() {
    for seed in 0..testkit::repeats(120) {
        let mut rng = Rng::new(seed);
        let mut profile = small(SECTORS[rng.below(5) as usize]);
        if rng.chance(0.3) {
            profile.cache.write_back = WriteBack::None;
        }
        let depth = 1 + rng.below(12) as usize;
        let mut disk = Disk::new(&profile).unwrap();
        let within = disk.capacity().0.min(400);
        let mut history = History::new(within as usize, disk.sector_bytes());
        let mut now = disk.now();
        let mut reads = 0;
        for stamp in 1..300 {
            let (command, data) = random(&mut rng, within, disk.sector_bytes(), stamp);
            let tag = disk.submit(now, command, data).unwrap();
            history.submitted(tag, command, stamp);
            while history.outstanding() >= depth {
                now = disk.next_wakeup().unwrap();
                let done: Vec<_> = std::iter::from_fn(|| disk.poll(now)).collect();
                for done in &done {
                    assert_eq!(done.outcome, Ok(()));
                    assert_eq!(done.breakdown.total(), done.response());
                }
                let read: Vec<_> = done
                    .iter()
                    .filter_map(|done| history.completed(done))
                    .collect();
                for (first, count) in read {
                    let expected: Vec<_> = (first..first + count)
                        .map(|grain| history.visible(grain))
                        .collect();
                    let found = stamps(&disk, first, count);
                    assert_eq!(found, expected, "seed {seed}, before stamp {stamp}");
                    reads += 1;
                }
            }
        }
        assert!(reads > 50, "seed {seed}");
    }
}

/// Does a write become visible at the instant of its completion, and not a picosecond earlier?
#[test]
fn a_write_is_visible_when_it_completes() {
    let mut disk = write_back();
    let command = Command::Write {
        lbn: Lbn(10),
        sectors: 1,
        fua: false,
    };
    disk.submit(disk.now(), command, stamped(5, 512)).unwrap();
    let wake = disk.next_wakeup().unwrap();
    let before = traxtent_units::SimTime(wake.0 - 1);
    assert_eq!(disk.poll(before), None);
    assert_eq!(stamps(&disk, 10, 1), [0]);
    assert_eq!(disk.poll(wake).unwrap().completed, wake);
    assert_eq!(stamps(&disk, 10, 1), [5]);
}

/// Is the content of the cache bounded by the profile's write segments, and does the excess become
/// durable, oldest first?
#[test]
fn the_cache_is_bounded() {
    let mut disk = write_back();
    let room = 2 * 64 * 512;
    for lbn in 0..300 {
        disk.write(lbn, &stamped(lbn + 1, 512)).unwrap();
        assert_eq!(disk.unflushed_bytes(), room.min((lbn + 1) * 512));
    }
    // This write goes through to the media, since it is larger than the cache.
    disk.write(1000, &stamped(9, 200 * 512)).unwrap();
    let media = Disk::with_media(disk.drive().clone(), disk.into_media());
    let expected: Vec<u64> = (1..=300)
        .map(|n| if n <= 300 - 128 { n } else { 0 })
        .collect();
    assert_eq!(stamps(&media, 0, 300), expected);
    assert_eq!(stamps(&media, 1000, 200), [9; 200]);
}

/// Does TRIM behave as the profile states, and does WRITE ZEROES always write zeros?
#[test]
fn trim_follows_the_profile() {
    for unmap in [Unmap::Ignored, Unmap::Zeroes] {
        let mut profile = small(SECTORS[0]);
        profile.scsi.unmap = unmap;
        let mut disk = Disk::new(&profile).unwrap();
        disk.write(0, &stamped(3, 30 * 512)).unwrap();
        disk.trim(0, 10).unwrap();
        disk.write_zeroes(10, 10).unwrap();
        let trimmed = if unmap == Unmap::Zeroes { 0 } else { 3 };
        for _ in 0..2 {
            assert_eq!(stamps(&disk, 0, 10), [trimmed; 10]);
            assert_eq!(stamps(&disk, 10, 20), [[0; 10], [3; 10]].concat());
            disk.flush().unwrap();
        }
    }
}

/// Are commands that the disk cannot serve refused with the reason, without any effect?
#[test]
fn refusals() {
    let mut disk = write_back();
    let refused = |error: traxtent_model::disk::DiskError| error.to_string();
    let mut sector = [0; 512];
    assert_eq!(
        refused(disk.read(2000, &mut sector).unwrap_err()),
        "read of 1 sector at LBN 2000: the drive ends before LBN 2000"
    );
    assert_eq!(
        refused(disk.write(0, &[0; 100]).unwrap_err()),
        "100 bytes of data; expected a multiple of the sector size, 512"
    );
    assert_eq!(
        refused(disk.trim(1999, 2).unwrap_err()),
        "trim of 2 sectors at LBN 1999: the drive ends before LBN 2000"
    );
    assert_eq!(
        refused(disk.write_zeroes(0, 0).unwrap_err()),
        "write-zeroes at LBN 0: zero sectors"
    );
    assert_eq!(
        refused(disk.read(0, &mut []).unwrap_err()),
        "read at LBN 0: zero sectors"
    );
    let command = Command::Write {
        lbn: Lbn(7),
        sectors: 2,
        fua: false,
    };
    assert_eq!(
        refused(disk.submit(disk.now(), command, vec![0; 512]).unwrap_err()),
        "512 bytes of data; expected 1024 for a write of 2 sectors at LBN 7"
    );
    assert_eq!(disk.next_wakeup(), None);
    assert_eq!(disk.now(), traxtent_units::SimTime::ZERO);
}

//! The effects of faults. Times are those of the tiny drive, whose revolution takes 10 ms, unless a
//! test names other drives.

use traxtent_model::disk::{Command, Disk, DiskError, Scenario};
use traxtent_model::drive::Breakdown;
use traxtent_model::profile::{Profile, WriteBack, builtin};
use traxtent_units::{Lbn, SimTime, Span};

use super::history::stamps;
use super::{SECTORS, small, stamped, write_back};
use crate::drive::tiny::tiny;

fn inject(disk: &mut Disk, fault: &str) {
    disk.inject(disk.now(), fault.parse().unwrap()).unwrap();
}

/// Returns the breakdown of the first read of a disk, with or without a fault.
fn first_read(profile: &Profile, fault: Option<&str>, lbn: u64, sectors: usize) -> Breakdown {
    let mut disk = Disk::new(profile).unwrap();
    if let Some(fault) = fault {
        inject(&mut disk, fault);
    }
    let mut into = vec![0; sectors * disk.sector_bytes() as usize];
    disk.read(lbn, &mut into).unwrap()
}

/// Does a slow sector cost its number of whole revolutions, once per physical sector, anywhere in a
/// read, and nothing in reads that do not contain it?
#[test]
fn slow_sectors_cost_whole_revolutions() {
    let revolution = Span::from_ms(10.0);
    let slow = Some("slow-sector,lbn=50,revolutions=3");
    for (lbn, sectors) in [(50, 1), (50, 4), (40, 20), (47, 4)] {
        let baseline = first_read(&tiny(), None, lbn, sectors);
        let mut expected = baseline;
        expected.rotation += Span(3 * revolution.0);
        assert_eq!(
            first_read(&tiny(), slow, lbn, sectors),
            expected,
            "{lbn}, {sectors}"
        );
    }
    for (lbn, sectors) in [(49, 1), (51, 5), (30, 20)] {
        let baseline = first_read(&tiny(), None, lbn, sectors);
        assert_eq!(first_read(&tiny(), slow, lbn, sectors), baseline);
    }
    // Two LBNs of one physical sector, and then nine LBNs of two physical sectors.
    for (sectors, revolutions) in [(2, 3), (9, 6)] {
        let profile = small(SECTORS[1]);
        let fault = format!("slow-sector,lbn=50,sectors={sectors},revolutions=3");
        let baseline = first_read(&profile, None, 40, 40);
        let mut expected = baseline;
        expected.rotation += Span(revolutions * revolution.0);
        assert_eq!(first_read(&profile, Some(&fault), 40, 40), expected);
    }
}

/// Does a short absence or lie leave a longer one of the same kind as it is?
#[test]
fn the_longer_effect_remains() {
    let mut disk = Disk::new(&small(SECTORS[0])).unwrap();
    inject(&mut disk, "power-cut,for=1h");
    inject(&mut disk, "vanish,for=1ms");
    disk.sleep(Span::from_ms(10.0));
    assert!(disk.is_unresponsive());
    let mut disk = write_back();
    inject(&mut disk, "lying-flush");
    inject(&mut disk, "lying-flush,for=1ms");
    disk.sleep(Span::from_ms(10.0));
    disk.write(0, &vec![1; disk.sector_bytes() as usize])
        .unwrap();
    disk.flush().unwrap();
    assert!(disk.unflushed_bytes() > 0);
    // An orderly end does not depend on flushes.
    disk.write_cache().unwrap();
    assert_eq!(disk.unflushed_bytes(), 0);
}

/// Does a slow sector cost nothing more once it is in the buffer, and nothing when it is written?
#[test]
fn slow_sectors_are_slow_only_when_read_from_the_media() {
    let mut disk = Disk::new(&tiny()).unwrap();
    inject(&mut disk, "slow-sector,lbn=50,revolutions=3");
    let mut sector = [0; 512];
    let first = disk.read(50, &mut sector).unwrap();
    let again = disk.read(50, &mut sector).unwrap();
    assert!(first.rotation >= Span::from_ms(30.0));
    assert_eq!(again.rotation, Span::ZERO);
    let mut disk = Disk::new(&tiny()).unwrap();
    inject(&mut disk, "slow-sector,lbn=50,revolutions=3");
    assert!(disk.write(50, &sector).unwrap().rotation < Span::from_ms(10.0));
}

/// Does a slow sector that has moved to a spare need no retries, with physical sectors of both
/// sizes?
#[test]
fn moved_sectors_need_no_retries() {
    for sizes in SECTORS {
        let mut disk = Disk::new(&small(sizes)).unwrap();
        inject(&mut disk, "slow-sector,lbn=50,revolutions=30");
        inject(&mut disk, "grown-defect,lbn=50");
        let mut sector = vec![0; disk.sector_bytes() as usize];
        let read = disk.read(50, &mut sector).unwrap();
        assert!(read.total() < Span::from_ms(100.0), "{read:?}");
    }
}

/// Does a latent error fail reads of its physical sector, name the first bad LBN, leave the rest
/// readable, and end when the sector is written?
#[test]
fn latent_errors_last_until_they_are_written() {
    let mut profile = small(SECTORS[1]);
    profile.cache.write_back = WriteBack::None;
    let mut disk = Disk::new(&profile).unwrap();
    disk.write(0, &stamped(1, 64 * 512)).unwrap();
    inject(&mut disk, "latent-error,lbn=19,revolutions=5");
    let mut all = vec![0; 64 * 512];
    let unreadable = |lbn| Err(DiskError::Unreadable { lbn });
    let before = disk.now();
    assert_eq!(disk.read(0, &mut all), unreadable(16));
    assert!(disk.now().since(before) > Span::from_ms(50.0));
    assert_eq!(disk.read(23, &mut all[..512]), unreadable(23));
    disk.read(0, &mut all[..16 * 512]).unwrap();
    disk.read(24, &mut all[..16 * 512]).unwrap();

    disk.write(16, &stamped(2, 4 * 512)).unwrap();
    let before = disk.now();
    assert_eq!(disk.read(0, &mut all), unreadable(20));
    assert!(disk.now().since(before) > Span::from_ms(50.0));
    disk.write(20, &stamped(2, 4 * 512)).unwrap();
    let rewritten = disk.read(0, &mut all).unwrap();
    assert!(rewritten.rotation < Span::from_ms(20.0), "{rewritten:?}");
    assert_eq!(stamps(&disk, 14, 12), [1, 1, 2, 2, 2, 2, 2, 2, 2, 2, 1, 1]);
}

/// If one of several unreadable physical sectors is rewritten, does reading the others still take
/// their retries?
#[test]
fn rewriting_ends_the_retries_of_the_rewritten_sectors_only() {
    let mut profile = small(SECTORS[1]);
    profile.cache.write_back = WriteBack::None;
    let mut disk = Disk::new(&profile).unwrap();
    inject(&mut disk, "latent-error,lbn=16,sectors=24,revolutions=5");
    disk.write(24, &stamped(1, 8 * 512)).unwrap();
    let mut sector = vec![0; 8 * 512];
    let rewritten = disk.read(24, &mut sector).unwrap();
    assert!(rewritten.rotation < Span::from_ms(20.0), "{rewritten:?}");
    for lbn in [16, 32] {
        let before = disk.now();
        let outcome = disk.read(lbn, &mut sector);
        assert_eq!(outcome, Err(DiskError::Unreadable { lbn }));
        assert!(disk.now().since(before) > Span::from_ms(50.0), "LBN {lbn}");
    }
}

/// Is a bad sector readable while the cache holds it, and bad again if the power fails before it is
/// on the media?
#[test]
fn a_latent_error_is_fixed_on_the_media_only() {
    let (mut fixed, mut bad) = (0, 0);
    for seed in 0..30 {
        let mut disk = write_back();
        inject(&mut disk, "latent-error,lbn=100");
        disk.write(100, &stamped(1, 512)).unwrap();
        let mut sector = [0; 512];
        disk.read(100, &mut sector).unwrap();
        disk.power_cut(seed).unwrap();
        match disk.read(100, &mut sector) {
            Ok(_) => {
                assert_eq!(sector[0], 1);
                fixed += 1;
            }
            Err(error) => {
                assert_eq!(error, DiskError::Unreadable { lbn: 100 });
                bad += 1;
            }
        }
    }
    assert!(fixed > 0 && bad > 0);
}

/// Does a grown defect move its sectors, on drives with spares, without spares, and with large
/// physical sectors? Does the data stay intact, does a read across the defect take longer on drives
/// with mechanics, and is a second grown defect there refused?
#[test]
fn grown_defects_go_to_spares() {
    for name in [
        "atlas10k",
        "cheetah15k4",
        "generic-20tb",
        "wd10ears-jumper",
        "instant",
    ] {
        let profile = builtin(name).unwrap();
        let mut disk = Disk::new(&profile).unwrap();
        let ratio = u64::from(profile.sector.ratio());
        let lbn = 5000 * ratio + u64::from(profile.sector.lowest_aligned_lbn);
        let size = disk.sector_bytes() as usize;
        disk.write(lbn - 8, &stamped(7, (ratio as usize + 16) * size))
            .unwrap();
        let homes: Vec<_> = (0..ratio)
            .map(|n| disk.drive().geometry().locate(Lbn(lbn + n)).unwrap())
            .collect();
        disk.flush().unwrap();
        inject(&mut disk, &format!("grown-defect,lbn={lbn}"));
        let geometry = disk.drive().geometry();
        assert_eq!(geometry.moved_count() as u64, ratio, "{name}");
        for (n, home) in homes.iter().enumerate() {
            assert_ne!(geometry.locate(Lbn(lbn + n as u64)), Some(*home));
            assert!(geometry.is_moved(Lbn(lbn + n as u64)));
        }
        disk.power_cut(1).unwrap();
        let mut into = vec![0; (ratio as usize + 16) * size];
        let across_defect = disk.read(lbn - 8, &mut into).unwrap();
        assert!(into.chunks(8).all(|part| part == 7_u64.to_le_bytes()));
        if name != "instant" {
            let mut without_defect = Disk::new(&profile).unwrap();
            without_defect.sleep(disk.now().since(SimTime::ZERO));
            let direct = without_defect.read(lbn - 8, &mut into).unwrap();
            let extra = across_defect.total().saturating_sub(direct.total());
            assert!(extra > Span::from_ms(1.0), "{name}: {extra}");
        }
        let again = disk.inject(
            disk.now(),
            format!("grown-defect,lbn={lbn}").parse().unwrap(),
        );
        let again = again.unwrap_err().to_string();
        assert_eq!(
            again,
            format!(
                "the physical sector that begins at LBN {lbn} cannot be moved to a spare: it is already on a spare"
            )
        );
    }
}

/// Does a stall delay the command in progress by its length, and commands that wait or arrive until
/// it is over, while the media keep turning? Does a second stall add only what exceeds the first?
#[test]
fn a_stall_holds_everything_back() {
    let mut disk = Disk::new(&tiny()).unwrap();
    let read = |lbn| Command::Read {
        lbn: Lbn(lbn),
        sectors: 1,
    };
    let outstanding = disk.submit(SimTime::ZERO, read(20), Vec::new()).unwrap();
    let waiting = disk.submit(SimTime::ZERO, read(40), Vec::new()).unwrap();
    disk.inject(SimTime::from_ms(1.0), "stall,for=40 ms".parse().unwrap())
        .unwrap();
    let flush = disk
        .submit(SimTime::from_ms(2.0), Command::Flush, Vec::new())
        .unwrap();
    let later = disk
        .submit(SimTime::from_ms(3.0), read(60), Vec::new())
        .unwrap();
    disk.inject(SimTime::from_ms(11.0), "stall,for=40 ms".parse().unwrap())
        .unwrap();
    let end = SimTime::from_ms(51.0);
    assert_eq!(disk.poll(SimTime(end.0 - 1)), None);
    let first: Vec<_> = std::iter::from_fn(|| disk.poll(end)).collect();
    let tags: Vec<_> = first.iter().map(|done| done.tag).collect();
    assert_eq!(tags, [flush]);
    // The first command needs 2.11 ms without the stalls. Sector 40 of the track passes from 54 to
    // 54.1 ms, sector 60 from 56 to 56.1 ms; the bus takes 0.01 ms.
    let rest: Vec<_> = std::iter::from_fn(|| {
        let wake = disk.next_wakeup()?;
        disk.poll(wake)
    })
    .collect();
    let times = rest.iter().map(|done| {
        let parts = done.breakdown;
        (done.tag, done.completed, parts.queue, parts.rotation)
    });
    let ms = Span::from_ms;
    assert_eq!(
        times.collect::<Vec<_>>(),
        [
            (outstanding, SimTime::from_ms(52.11), ms(50.0), ms(2.0)),
            (waiting, SimTime::from_ms(54.11), ms(52.11), ms(1.89)),
            (later, SimTime::from_ms(56.11), ms(51.11), ms(1.89)),
        ]
    );
    for done in first.iter().chain(&rest) {
        assert_eq!(done.breakdown.total(), done.response());
    }
}

/// Does a drive that vanishes fail outstanding commands immediately, fail new ones, return on time,
/// and keep acknowledged data?
#[test]
fn a_drive_vanishes_and_returns() {
    let mut disk = write_back();
    disk.write(10, &stamped(1, 512)).unwrap();
    let gone = disk.now();
    let command = Command::Write {
        lbn: Lbn(11),
        sectors: 1,
        fua: true,
    };
    let outstanding = disk.submit(gone, command, stamped(2, 512)).unwrap();
    inject(&mut disk, "vanish,for=1 s");
    let failed = disk.poll(gone).unwrap();
    assert_eq!((failed.tag, failed.completed), (outstanding, gone));
    assert_eq!(failed.outcome, Err(DiskError::Unresponsive));
    assert_eq!(disk.flush(), Err(DiskError::Unresponsive));
    disk.sleep(Span(999_999_999_999));
    assert_eq!(disk.flush(), Err(DiskError::Unresponsive));
    disk.sleep(Span(1));
    disk.flush().unwrap();
    disk.power_cut(1).unwrap();
    assert_eq!(stamps(&disk, 10, 2), [1, 0]);
}

/// Does a power cut fail outstanding commands, keep the drive absent for the stated time, and with
/// some seeds lose data that was not durable?
#[test]
fn the_power_fails_and_returns() {
    let mut lost = 0;
    for seed in 0..20 {
        let mut disk = write_back();
        disk.write(10, &stamped(1, 512)).unwrap();
        let tag = disk.submit(disk.now(), Command::Flush, Vec::new()).unwrap();
        inject(&mut disk, &format!("power-cut,seed={seed},for=3 s"));
        let done = disk.poll(disk.now()).unwrap();
        assert_eq!((done.tag, done.outcome), (tag, Err(DiskError::PowerCut)));
        assert_eq!(disk.flush(), Err(DiskError::Unresponsive));
        disk.sleep(Span(3_000_000_000_000));
        disk.flush().unwrap();
        lost += u64::from(stamps(&disk, 10, 1) == [0]);
    }
    assert!(lost > 2 && lost < 18, "{lost}");
}

/// Do the faults of a scenario occur at their times, on the clock that the embedding program
/// advances? Is a fault after the end of the drive refused?
#[test]
fn a_scenario_plays_on_the_disks_clock() {
    let scenario: Scenario = r#"faults = [
        { at = "1 s", fault = "latent-error", lbn = 100 },
        { at = "2 s", fault = "power-cut", for = "1 s" },
    ]"#
    .parse()
    .unwrap();
    let mut disk = write_back();
    disk.schedule_faults(&scenario).unwrap();
    let mut sector = [0; 512];
    disk.read(100, &mut sector).unwrap();
    disk.sleep(Span(1_000_000_000_000));
    disk.read(100, &mut sector).unwrap_err();
    disk.sleep(Span(1_000_000_000_000));
    assert_eq!(disk.read(0, &mut sector), Err(DiskError::Unresponsive));
    disk.sleep(Span(1_000_000_000_000));
    disk.read(0, &mut sector).unwrap();
    let events: Vec<_> = std::iter::from_fn(|| disk.next_event()).collect();
    let at: Vec<_> = events.iter().map(|event| event.at).collect();
    assert_eq!(at, [SimTime::from_ms(1000.0), SimTime::from_ms(2000.0)]);
    assert!(events[1].outcome.as_ref().unwrap().is_some());

    let beyond: Scenario =
        "faults = [{ at = \"0 s\", fault = \"slow-sector\", lbn = 2000, revolutions = 1 }]"
            .parse()
            .unwrap();
    assert_eq!(
        disk.schedule_faults(&beyond).unwrap_err().to_string(),
        "slow-sector of 1 sector at LBN 2000: the drive ends before LBN 2000"
    );
}

//! The times of a disk, which equal those of its drive.

use traxtent_model::disk::{Command, Disk, DiskError, END_OF_TIME, Scenario};
use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, SimTime, Span};

use super::random;

/// Does a disk without faults complete every command except TRIM at the same picosecond as the
/// drive alone, with the same breakdown?
#[test]
fn data_costs_no_time() {
    for name in ["atlas10k", "generic-20tb", "instant"] {
        let profile = builtin(name).unwrap();
        let mut drive = Drive::new(&profile).unwrap();
        let mut disk = Disk::new(&profile).unwrap();
        let (mut rng, mut now) = (Rng::new(5), SimTime::ZERO);
        let (mut alone, mut with_data) = (Vec::new(), Vec::new());
        for stamp in 0..1000 {
            let (command, data) = random(&mut rng, 100_000, disk.sector_bytes(), stamp);
            let (lbn, sectors) = command.sectors();
            let (op, fua) = match command {
                Command::Trim { .. } => continue,
                Command::Read { .. } => (Op::Read, false),
                Command::Flush => (Op::Flush, false),
                Command::Write { fua, .. } | Command::WriteZeroes { fua, .. } => (Op::Write, fua),
            };
            let request = Request {
                lbn,
                sectors,
                op,
                fua,
            };
            drive.submit(now, request).unwrap();
            disk.submit(now, command, data).unwrap();
            now += Span(rng.below(12_000_000_000));
            alone.extend(std::iter::from_fn(|| drive.poll(now)));
            if rng.chance(0.5) {
                with_data.extend(std::iter::from_fn(|| disk.poll(now)));
            }
        }
        let end = SimTime(u64::MAX >> 1);
        alone.extend(std::iter::from_fn(|| drive.poll(end)));
        with_data.extend(std::iter::from_fn(|| disk.poll(end)));
        assert_eq!(alone.len(), with_data.len());
        for (alone, with_data) in alone.iter().zip(&with_data) {
            let times = (alone.submitted, alone.completed, alone.breakdown);
            let same = (
                with_data.submitted,
                with_data.completed,
                with_data.breakdown,
            );
            assert_eq!(times, same, "{name}: {with_data:?}");
            assert_eq!(with_data.served, Some(alone.served));
        }
    }
}

/// Do the same commands take the same times, to the picosecond, if they begin a whole number of
/// revolutions, about a day, later?
#[test]
fn times_do_not_drift_within_a_day() {
    for name in ["atlas10k", "atlas10k2", "cheetah15k7", "generic-20tb"] {
        let profile = builtin(name).unwrap();
        let ran = |turns: u64| {
            let mut disk = Disk::new(&profile).unwrap();
            let revolution = Span::from_ms(profile.revolution_ms());
            let begun = SimTime(turns * revolution.0);
            let (mut rng, mut now) = (Rng::new(1), begun);
            let mut done = Vec::new();
            for stamp in 0..500 {
                let (command, data) = random(&mut rng, 100_000, disk.sector_bytes(), stamp);
                disk.submit(now, command, data).unwrap();
                now += Span(rng.below(12_000_000_000));
                done.extend(std::iter::from_fn(|| disk.poll(now)));
            }
            done.extend(std::iter::from_fn(|| disk.poll(SimTime(u64::MAX >> 1))));
            let times = done
                .into_iter()
                .map(|done| (done.completed.since(begun), done.breakdown));
            (revolution, times.collect::<Vec<_>>())
        };
        let (revolution, at_first) = ran(0);
        let day = 86_400_000_000_000_000 / revolution.0;
        assert!(at_first.len() == 500 && ran(day).1 == at_first, "{name}");
    }
}

/// With faults of every kind except lying-fua, are the completions, the fault events and the final
/// data the same whether the disk is polled at random instants or only at the end?
#[test]
fn events_do_not_depend_on_polling() {
    let scenario: Scenario = r#"
        seed = 3
        faults = [
          { at = "20 ms", fault = "latent-error", lbn = 40, sectors = 9, revolutions = 2 },
          { at = "50 ms", fault = "slow-sector", lbn = 60, revolutions = 3 },
          { at = "90 ms", fault = "grown-defect", lbn = 70, sectors = 2 },
          { at = "200 ms", fault = "stall", for = "70 ms" },
          { at = "400 ms", fault = "vanish", for = "30 ms" },
          { at = "500 ms", fault = "power-cut", for = "20 ms" },
          { at = "600 ms", fault = "lying-flush", for = "90 ms" },
          { at = "700 ms", fault = "power-cut" },
        ]"#
    .parse()
    .unwrap();
    for seed in 0..testkit::repeats(40) {
        let profile = super::small(super::SECTORS[(seed % 5) as usize]);
        let run = |look: &dyn Fn(&mut Rng, SimTime, SimTime) -> Vec<SimTime>| {
            let mut disk = Disk::new(&profile).unwrap();
            disk.schedule_faults(&scenario).unwrap();
            let (mut rng, mut looks) = (Rng::new(seed), Rng::new(seed));
            let (mut now, mut done) = (SimTime::ZERO, Vec::new());
            for stamp in 1..250 {
                let (command, data) = random(&mut rng, 120, disk.sector_bytes(), stamp);
                disk.submit(now, command, data).unwrap();
                let next = now + Span(rng.below(8_000_000_000));
                for at in look(&mut looks, now, next) {
                    done.extend(std::iter::from_fn(|| disk.poll(at)));
                }
                now = next;
            }
            let end = now + Span(1_000_000_000_000_000);
            done.extend(std::iter::from_fn(|| disk.poll(end)));
            let events: Vec<_> = std::iter::from_fn(|| disk.next_event()).collect();
            assert_eq!(events.len(), scenario.faults.len());
            let left = super::history::stamps(&disk, 0, 120);
            (done, events, left)
        };
        let seldom = run(&|_, _, _| Vec::new());
        let often = run(&|rng, from, to| {
            let length = to.since(from).0;
            let mut at: Vec<u64> = (0..4).map(|_| rng.below(length + 1)).collect();
            at.sort_unstable();
            at.into_iter().map(|at| from + Span(at)).collect()
        });
        assert_eq!(seldom.0.len(), 249, "seed {seed}");
        assert!(seldom == often, "seed {seed}");
        assert!(seldom.0.is_sorted_by_key(|done| done.completed));
        for done in &seldom.0 {
            assert_eq!(done.breakdown.total(), done.response(), "{done:?}");
        }
    }
}

/// Does a command that cannot complete before the end of time fail at the end, in both interfaces,
/// without a wakeup after it? Does one that completes before the end succeed?
#[test]
fn commands_fail_at_the_end_of_time() {
    let read = Command::Read {
        lbn: Lbn(0),
        sectors: 8,
    };
    let profile = builtin("atlas10k2").unwrap();
    for (before, outcome) in [
        (Span::from_ms(1000.0), Ok(())),
        (Span::from_ms(0.001), Err(DiskError::EndOfTime)),
        (Span::ZERO, Err(DiskError::EndOfTime)),
    ] {
        let mut disk = Disk::new(&profile).unwrap();
        disk.submit(END_OF_TIME - before, read, Vec::new()).unwrap();
        let mut found = None;
        while let Some(wake) = disk.next_wakeup() {
            assert!(wake <= END_OF_TIME, "{before}: {wake}");
            found = found.or(disk.poll(wake));
        }
        let found = found.unwrap();
        assert_eq!(found.outcome, outcome, "{before}");
        assert!(found.completed <= END_OF_TIME, "{before}");
    }
    let mut disk = Disk::new(&profile).unwrap();
    disk.sleep(Span(u64::MAX));
    assert_eq!(disk.now(), END_OF_TIME);
    assert_eq!(disk.read(0, &mut [0; 512]), Err(DiskError::EndOfTime));
    assert!(disk.poll(SimTime(u64::MAX)).is_none());
    assert_eq!((disk.now(), disk.next_wakeup()), (END_OF_TIME, None));
}

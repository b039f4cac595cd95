//! Scrubs: all problems are reported, and only those that the caller selects are repaired.

use traxtent_layout::raid::{ChunkContents, Level, MemberSet};
use traxtent_units::Rng;
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::superblock::MemberState;
use traxtent_volume::{Fault, Repair, Scrubbed, Volume, VolumeError, WriteHole};

use super::memory::{Memory, SECTOR, wait};
use super::setup::{Setup, assembled, open, setup_of, usable_pairs};

/// Repairs everything that needs no decision about which side is right.
const SECTORS: Repair = Repair {
    sectors: true,
    ..Repair::NONE
};

/// Returns [`SECTORS`] with the data of `member` taken as right if there is no majority.
fn preferring(member: usize) -> Repair {
    Repair {
        preferred: Some(member),
        ..SECTORS
    }
}

/// Same as [`SECTORS`], and also recomputes mismatched parity from the data.
const PARITY: Repair = Repair {
    parity: true,
    ..SECTORS
};

/// Returns a synced volume that is full of random data, and the data.
fn full<'a>(made: &Setup, memory: &'a Memory, rng: &mut Rng) -> (Volume<&'a Memory>, Vec<u8>) {
    let volume = open(&made.array, memory, WriteHole::Closed).unwrap();
    let mut data = vec![0; volume.capacity().0 as usize * SECTOR];
    data.fill_with(|| rng.bits() as u8);
    wait(volume.write(Lbn(0), &data)).unwrap();
    for stripe in 0..made.array.stripes() {
        wait(volume.sync(stripe)).unwrap();
    }
    wait(volume.sync_checkpoint(made.array.stripes())).unwrap();
    (volume, data)
}

fn scrub(made: &Setup, volume: &Volume<&Memory>, repair: Repair) -> Vec<Scrubbed> {
    let stripes = 0..made.array.stripes();
    stripes
        .map(|stripe| wait(volume.scrub(stripe, repair)).unwrap())
        .collect()
}

/// Returns the data areas of all members.
fn data_of(made: &Setup, memory: &Memory) -> Vec<Vec<u8>> {
    let drives = memory.drives.borrow();
    let members = made.superblock.members.iter().zip(&*drives);
    members
        .map(|(entry, drive)| {
            let area = &entry.data;
            drive.visible[area.start.0 as usize * SECTOR..area.end.0 as usize * SECTOR].to_vec()
        })
        .collect()
}

/// Returns the member's sector that holds a row of a stripe's chunk.
fn place(made: &Setup, stripe: u64, member: usize, row: u64) -> usize {
    let chunk = made.array.stripe(stripe).unwrap().chunk_on(member);
    (chunk.lbn.0 + row) as usize
}

fn flip(memory: &Memory, member: usize, sector: usize) {
    memory.drives.borrow_mut()[member].visible[sector * SECTOR + 100] ^= 1;
}

/// With a flipped byte in one of three replicas, does a scrub count it and change nothing, and does
/// a repair restore it from the two that agree?
#[test]
fn a_flipped_byte_among_three_copies() {
    for victim in 0..3 {
        let mut rng = Rng::new(victim as u64);
        let made = setup_of(Level::Raid1, 3, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let (volume, _) = full(&made, &memory, &mut rng);
        let good = data_of(&made, &memory);
        flip(&memory, victim, place(&made, 1, victim, 0));
        let flipped = data_of(&made, &memory);
        assert!(flipped != good);
        let found = scrub(&made, &volume, Repair::NONE);
        assert_eq!(found[1].rows(Fault::Outvoted), 1);
        assert_eq!(found.iter().map(Scrubbed::wrong).sum::<u64>(), 1);
        let difference = found[1].differences[0];
        assert_eq!(difference.members, MemberSet::only(victim));
        assert_eq!(
            difference.first,
            made.array.stripe(1).unwrap().logical().start
        );
        assert_eq!((difference.rows, difference.repaired), (Sectors(1), false));
        assert!(data_of(&made, &memory) == flipped, "the scrub wrote");
        // The two others outvote this member even if it is named as right.
        let found = scrub(&made, &volume, preferring(victim));
        assert!(found[1].differences[0].repaired);
        assert!(data_of(&made, &memory) == good);
        assert!(
            scrub(&made, &volume, Repair::NONE)
                .iter()
                .all(|one| one.differences.is_empty())
        );
    }
}

/// Are two replicas that differ left unchanged until one is named as right, and does the other then
/// become equal to it?
#[test]
fn two_replicas_that_differ() {
    for named in 0..2 {
        let mut rng = Rng::new(7);
        let made = setup_of(Level::Raid1, 2, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let (volume, _) = full(&made, &memory, &mut rng);
        let good = data_of(&made, &memory);
        flip(&memory, 0, place(&made, 2, 0, 0));
        let flipped = data_of(&made, &memory);
        for repair in [Repair::NONE, SECTORS, PARITY] {
            let found = scrub(&made, &volume, repair);
            assert_eq!(found[2].rows(Fault::Tied), 1, "{repair:?}");
            assert!(!found[2].differences[0].repaired);
            assert!(data_of(&made, &memory) == flipped, "{repair:?} wrote");
        }
        assert!(scrub(&made, &volume, preferring(named))[2].differences[0].repaired);
        let now = data_of(&made, &memory);
        assert!(now[0] == [&flipped, &good][named][0]);
        assert!(
            scrub(&made, &volume, Repair::NONE)
                .iter()
                .all(|one| one.differences.is_empty())
        );
    }
}

/// If a RAID-5 member lost data without an error, do a scrub and a repair of sectors report the
/// differences and change nothing, so that the data can still be reconstructed from the other
/// members?
#[test]
fn zeros_in_place_of_data_under_parity() {
    let mut rng = Rng::new(8);
    let made = setup_of(Level::Raid5, 4, &mut rng);
    let memory = Memory::new(made.drives.clone(), None);
    let (volume, data) = full(&made, &memory, &mut rng);
    let area = made.superblock.members[1].data.clone();
    let bytes = area.start.0 as usize * SECTOR..area.end.0 as usize * SECTOR;
    memory.drives.borrow_mut()[1].visible[bytes].fill(0);
    let left = data_of(&made, &memory);
    for repair in [Repair::NONE, SECTORS] {
        let wrong: u64 = scrub(&made, &volume, repair)
            .iter()
            .map(Scrubbed::wrong)
            .sum();
        assert!(wrong > made.array.stripes(), "{wrong} rows");
        assert!(data_of(&made, &memory) == left, "{repair:?} wrote");
    }
    wait(volume.mark_failed(1)).unwrap();
    let mut read = vec![0; data.len()];
    wait(volume.read(Lbn(0), &mut read)).unwrap();
    assert!(read == data);
}

/// At every level with redundancy, are sectors that a member cannot read reported, and rewritten
/// from the others on request? At RAID-0, are they reported as lost?
#[test]
fn unreadable_sectors() {
    for level in Level::ALL {
        let mut rng = Rng::new(9);
        let made = setup_of(level, 4, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let (volume, data) = full(&made, &memory, &mut rng);
        let good = data_of(&made, &memory);
        memory.drives.borrow_mut()[2].bad = vec![place(&made, 0, 2, 0), place(&made, 1, 2, 0)];
        for repair in [Repair::NONE, SECTORS] {
            let found = scrub(&made, &volume, repair);
            let kind = match level {
                Level::Raid0 => Fault::Lost,
                _ => Fault::Unreadable,
            };
            let counted: u64 = found.iter().map(|one| one.rows(kind)).sum();
            assert_eq!(counted, 2, "{}", level.name());
            let repaired = repair == SECTORS && level != Level::Raid0;
            let differences = found.iter().flat_map(|one| &one.differences);
            assert!(
                differences
                    .clone()
                    .all(|one| one.members == MemberSet::only(2))
            );
            assert!(differences.clone().all(|one| one.repaired == repaired));
            let left = memory.drives.borrow()[2].bad.len();
            assert_eq!(left, if repaired { 0 } else { 2 }, "{}", level.name());
        }
        if level != Level::Raid0 {
            let mut read = vec![0; data.len()];
            wait(volume.read(Lbn(0), &mut read)).unwrap();
            assert!(read == data && data_of(&made, &memory) == good);
            assert_eq!(volume.repaired(), Sectors(2));
        }
    }
}

/// On a volume that is open for reading only, are a sync and repairs refused, with nothing written,
/// and are faults still reported?
#[test]
fn a_volume_open_for_reading_is_not_written() {
    for level in [Level::Raid1, Level::Raid5] {
        let mut rng = Rng::new(13);
        let made = setup_of(level, 3, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let (volume, _) = full(&made, &memory, &mut rng);
        wait(volume.stop()).unwrap();
        drop(volume);
        flip(&memory, 1, place(&made, 0, 1, 0));
        let before = data_of(&made, &memory);
        let superblock = assembled(&made.array, wait(usable_pairs(&&memory)));
        let volume = Volume::open_to_read(made.array.clone(), &memory, superblock).unwrap();
        assert_eq!(wait(volume.sync(0)).unwrap_err(), VolumeError::ReadOnly);
        for repair in [SECTORS, PARITY] {
            let refused = wait(volume.scrub(0, repair)).unwrap_err();
            assert_eq!(refused, VolumeError::ReadOnly);
        }
        let found = scrub(&made, &volume, Repair::NONE);
        assert!(found.iter().any(|one| !one.differences.is_empty()));
        assert!(data_of(&made, &memory) == before);
    }
}

/// Does a sync of a stripe with a sector that no member can provide make the rest of the stripe
/// consistent, and report the sector?
#[test]
fn a_sync_continues_after_a_lost_sector() {
    for level in [Level::Raid1, Level::Raid5] {
        let mut rng = Rng::new(11);
        let made = setup_of(level, 3, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let (volume, _) = full(&made, &memory, &mut rng);
        let stripes = 0..made.array.stripes();
        let rows = |stripe: u64| made.array.stripe(stripe).unwrap().sectors_on(0).0;
        let Some(stripe) = stripes.into_iter().find(|stripe| rows(*stripe) > 1) else {
            panic!("every stripe has a single row");
        };
        let unreadable = if level == Level::Raid1 { 3 } else { 2 };
        for member in 0..unreadable {
            memory.drives.borrow_mut()[member].bad = vec![place(&made, stripe, member, 0)];
        }
        flip(&memory, 2, place(&made, stripe, 2, 1));
        let synced = wait(volume.sync(stripe));
        assert!(
            matches!(synced, Err(VolumeError::Unreadable(_))),
            "{}: {synced:?}",
            level.name()
        );
        let found = wait(volume.scrub(stripe, Repair::NONE)).unwrap();
        assert_eq!(
            (found.rows(Fault::Lost), found.wrong()),
            (1, 0),
            "{}",
            level.name()
        );
    }
}

/// For 2 to 5 replicas with random damage, is each sector restored to the content that more than
/// half of them have, and left unchanged if there is none?
#[test]
fn majorities() {
    let (mut outvoted, mut tied) = (0, 0);
    for seed in 0..testkit::repeats(60) {
        let mut rng = Rng::new(seed);
        let count = 2 + rng.below(4) as usize;
        let made = setup_of(Level::Raid1, count, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let (volume, _) = full(&made, &memory, &mut rng);
        for _ in 0..8 {
            let stripe = rng.below(made.array.stripes());
            let member = rng.below(count as u64) as usize;
            let rows = made.array.stripe(stripe).unwrap().sectors_on(member).0;
            let sector = place(&made, stripe, member, rng.below(rows));
            let mut drives = memory.drives.borrow_mut();
            drives[member].visible[sector * SECTOR] ^= 1 << rng.below(2);
        }
        let before = data_of(&made, &memory);
        let found = scrub(&made, &volume, SECTORS);
        let after = data_of(&made, &memory);
        let sums = |fault: Fault| found.iter().map(|one| one.rows(fault)).sum::<u64>();
        let (mut expect_outvoted, mut expect_tied) = (0, 0);
        for number in 0..made.array.stripes() {
            let stripe = made.array.stripe(number).unwrap();
            for row in 0..stripe.sectors_on(0).0 {
                let copy = |all: &[Vec<u8>], member: usize| {
                    let first = made.superblock.members[member].data.start.0;
                    let at = (place(&made, number, member, row) as u64 - first) as usize * SECTOR;
                    all[member][at..at + SECTOR].to_vec()
                };
                let old: Vec<Vec<u8>> = (0..count).map(|member| copy(&before, member)).collect();
                let votes = |one: &Vec<u8>| old.iter().filter(|other| *other == one).count();
                let majority = old.iter().find(|one| 2 * votes(one) > count);
                let all_agree = votes(&old[0]) == count;
                expect_outvoted += u64::from(!all_agree && majority.is_some());
                expect_tied += u64::from(majority.is_none());
                for (member, old) in old.iter().enumerate() {
                    let wanted = majority.unwrap_or(old);
                    assert!(
                        copy(&after, member) == *wanted,
                        "seed {seed}, stripe {number}"
                    );
                }
            }
        }
        assert_eq!(
            (sums(Fault::Outvoted), sums(Fault::Tied)),
            (expect_outvoted, expect_tied)
        );
        (outvoted, tied) = (outvoted + expect_outvoted, tied + expect_tied);
    }
    assert!(
        outvoted > 20 && tied > 20,
        "{outvoted} outvoted, {tied} tied"
    );
}

/// Is every repair refused while a member is doubtful, and does this state persist across restarts
/// until the superblocks are repaired?
#[test]
fn no_repair_while_a_member_is_doubtful() {
    let mut rng = Rng::new(10);
    let made = setup_of(Level::Raid5, 3, &mut rng);
    let memory = Memory::new(made.drives.clone(), None);
    let (volume, _) = full(&made, &memory, &mut rng);
    wait(volume.stop()).unwrap();
    drop(volume);
    let second = made.superblock.second(1).0 as usize * SECTOR;
    memory.drives.borrow_mut()[1].visible[second..].fill(0);
    for _ in 0..2 {
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        for repair in [SECTORS, PARITY, preferring(0)] {
            let refused = wait(volume.scrub(0, repair));
            assert_eq!(refused, Err(VolumeError::Doubtful { member: 1 }));
        }
        assert!(wait(volume.scrub(0, Repair::NONE)).is_ok());
        wait(volume.stop()).unwrap();
    }
    let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
    wait(volume.repair_superblocks()).unwrap();
    assert!(wait(volume.scrub(0, PARITY)).is_ok());
    wait(volume.stop()).unwrap();
    drop(volume);
    let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
    assert!(
        wait(volume.superblock())
            .members
            .iter()
            .all(|member| !member.doubtful)
    );
}

/// If a member refuses the parity or the replica that a sync or a repair writes to it, is the
/// member marked failed? Otherwise the stripe would count as synced.
#[test]
fn refused_writes() {
    for (seed, level) in (0..60).zip([Level::Raid1, Level::Raid4, Level::Raid5].iter().cycle()) {
        let mut rng = Rng::new(seed);
        let made = setup_of(*level, 3, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        let last = memory.drives.borrow().len() - 1;
        let stripe = made.array.stripes() - 1;
        let here = made.array.stripe(stripe).unwrap();
        let target = here.chunks().find(|chunk| match level {
            Level::Raid1 => chunk.member == last,
            _ => chunk.holds == ChunkContents::Parity,
        });
        let target = target.unwrap();
        memory.drives.borrow_mut()[target.member].visible[target.lbn.0 as usize * SECTOR] ^= 1;
        memory.drives.borrow_mut()[target.member].refuses = true;
        let is_sync = seed % 2 == 0;
        if is_sync {
            wait(volume.sync(stripe)).unwrap();
        } else {
            let repair = Repair {
                preferred: Some(0),
                ..PARITY
            };
            wait(volume.scrub(stripe, repair)).unwrap();
        }
        let state = wait(volume.superblock()).members[target.member].state;
        assert_eq!(state, MemberState::Failed, "seed {seed}");
    }
}

/// After a member was doubtful, failed, missing, replaced or rebuilt, does the next scrub begin at
/// the first stripe, although an earlier one was stopped later? Would it otherwise resume there?
#[test]
fn a_stopped_scrub_is_not_resumed_after_a_change_of_members() {
    for change in ["none", "doubtful", "failed", "missing", "rebuilt"] {
        let mut rng = Rng::new(14);
        let made = setup_of(Level::Raid1, 3, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let (volume, _) = full(&made, &memory, &mut rng);
        wait(volume.scrub_checkpoint(2, false)).unwrap();
        let lost = match change {
            "doubtful" => made.superblock.second(1).0 as usize * SECTOR..,
            "missing" => 0..,
            _ => usize::MAX..,
        };
        if matches!(change, "failed" | "rebuilt") {
            wait(volume.mark_failed(1)).unwrap();
            assert_eq!(wait(volume.superblock()).scrubbed, 0, "{change}");
            // A scrub of the other members says nothing about this one.
            wait(volume.scrub_checkpoint(2, false)).unwrap();
        }
        if change == "rebuilt" {
            wait(volume.begin_rebuild(1)).unwrap();
            while wait(volume.rebuild_step(8)).unwrap() {}
        }
        wait(volume.stop()).unwrap();
        drop(volume);
        if lost.start < usize::MAX {
            memory.drives.borrow_mut()[1].visible[lost].fill(0);
        }
        // The second time, the members' superblocks record the change.
        for _ in 0..2 {
            let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
            let first = wait(volume.superblock()).scrubbed;
            assert_eq!(first, if change == "none" { 2 } else { 0 }, "{change}");
            if change == "doubtful" {
                wait(volume.scrub_checkpoint(2, false)).unwrap();
                wait(volume.repair_superblocks()).unwrap();
            }
            wait(volume.stop()).unwrap();
        }
    }
}

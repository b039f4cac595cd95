//! Assembly: the choice of the current members, from every state in which superblocks can be left.

use std::cell::RefCell;

use traxtent_layout::raid::{ChunkRule, Level};
use traxtent_units::Rng;
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::superblock::{
    MemberEntry, MemberState, SUPERBLOCK_BYTES, Superblock, SuperblockError,
};
use traxtent_volume::{
    AssemblyError, Repair, SuperblockPair, Volume, VolumeError, WriteHole, assemble,
    contradictions, read_superblocks,
};
use uuid::Uuid;

use super::memory::{Drive, Memory, SECTOR, interleave, wait};
use super::setup::{Setup, assembled, open, setup_of, setup_with_journal, usable_pairs};

/// Returns the superblock of member `index` of a RAID-5 of three members. It marks the members in
/// `failed` as failed.
fn member(index: usize, generation: u64, failed: &[usize]) -> Superblock {
    let entry = |member: usize| MemberEntry {
        id: Uuid::from_u128(member as u128 + 1),
        state: if failed.contains(&member) {
            MemberState::Failed
        } else {
            MemberState::Active
        },
        doubtful: false,
        sectors: Sectors(100_000),
        data: Lbn(2067)..Lbn(99_984),
        map_bytes: 0,
        map_crc: 0,
    };
    Superblock {
        volume: Uuid::from_u128(7),
        index,
        members: (0..3).map(entry).collect(),
        level: Level::Raid5,
        chunks: ChunkRule::Fixed(Sectors(128)),
        granule: 8,
        spares: 0,
        sector_bytes: 512,
        journal: Lbn(16)..Lbn(2067),
        maps: Sectors(0),
        capacity: Sectors(190_000),
        generation,
        epoch: 5,
        clean: true,
        synced: 300,
        scrubbed: 0,
        unrepaired: false,
        lost: Vec::new(),
    }
}

/// Is every contradiction among members named, with the numbers of the devices as given: members
/// of other volumes, old copies, and two copies of one member, also within the other volume? Are
/// missing and unusable members no contradictions?
#[test]
fn every_contradiction_is_named() {
    let foreign = |index| {
        let mut pair = pair(index, 9, 9);
        for superblock in [&mut pair.first, &mut pair.second] {
            superblock.as_mut().unwrap().volume = Uuid::from_u128(8);
        }
        pair
    };
    let blank = SuperblockPair {
        first: Err(SuperblockError::None),
        second: Err(SuperblockError::None),
    };
    let named = |pairs: &[SuperblockPair]| {
        let found = contradictions(pairs);
        found.iter().map(ToString::to_string).collect::<Vec<_>>()
    };
    let all = [
        pair(0, 5, 5),
        blank.clone(),
        foreign(0),
        pair(1, 5, 5),
        pair(2, 3, 3),
        foreign(0),
        pair(1, 5, 5),
    ];
    let [ours, theirs] = [7, 8].map(Uuid::from_u128);
    let belongs = |given| {
        format!("device {given} belongs to volume {theirs}, but device 0 belongs to {ours}")
    };
    assert_eq!(
        named(&all),
        [
            belongs(2),
            belongs(5),
            "device 4 is stale: its generation as member 2 is 3, but the volume's is 5; omit it"
                .to_owned(),
            "devices 3 and 6 are both member 1; name only one of them".to_owned(),
            "devices 2 and 5 are both member 0; name only one of them".to_owned(),
        ]
    );
    assert_eq!(named(&[pair(0, 5, 5), blank]), [""; 0]);
    assert_eq!(named(&[]), [""; 0]);
}

/// Returns both superblocks of a member, with these generations.
fn pair(index: usize, first: u64, second: u64) -> SuperblockPair {
    SuperblockPair {
        first: Ok(member(index, first, &[])),
        second: Ok(member(index, second, &[])),
    }
}

/// Returns a pair whose second superblock is damaged.
fn damaged(index: usize, first: u64) -> SuperblockPair {
    SuperblockPair {
        second: Err(SuperblockError::Damaged),
        ..pair(index, first, 0)
    }
}

/// Are stale, foreign, missing and duplicate members distinguished, and does force help only if
/// enough members remain?
#[test]
fn kinds_of_members() {
    let all = [pair(2, 7, 6), pair(0, 7, 6), pair(1, 6, 6)];
    let assembly = assemble(&all, false).expect("a crash between two superblocks is not a failure");
    assert_eq!(assembly.given, [Some(1), Some(2), Some(0)]);
    assert_eq!(assembly.superblock.generation, 7);
    assert!(assembly.superblock.members.iter().all(|one| !one.doubtful));
    assert_eq!(assemble(&[], true), Err(AssemblyError::Nothing));
    let without_1 = |index| SuperblockPair {
        first: Ok(member(index, 7, &[1])),
        second: Ok(member(index, 7, &[1])),
    };
    // Member 1 also wrote its first superblock, and then refused the second.
    let stale = [without_1(0), pair(1, 7, 6), without_1(2)];
    assert_eq!(
        assemble(&stale, true),
        Err(AssemblyError::Stale {
            given: 1,
            member: 1,
            own: 7,
            newest: 7,
            dropped: true,
        })
    );
    let twice = [all[0].clone(), all[1].clone(), all[0].clone()];
    assert_eq!(
        assemble(&twice, true),
        Err(AssemblyError::Twice {
            given: 2,
            first: 0,
            member: 2
        })
    );
    let mut foreign = all.clone();
    for one in [&mut foreign[1].first, &mut foreign[1].second] {
        one.as_mut().unwrap().volume = Uuid::from_u128(9);
    }
    assert!(matches!(
        assemble(&foreign, true),
        Err(AssemblyError::Foreign { given: 1, .. })
    ));
    let missing = assemble(&all[..2], false);
    assert_eq!(
        missing,
        Err(AssemblyError::Missing {
            members: vec![1],
            failed: vec![],
            enough: true
        })
    );
    let forced = assemble(&all[..2], true).expect("two of three are enough");
    assert_eq!(forced.superblock.members[1].state, MemberState::Failed);
    // One round was abandoned because member 1 refused it, and the next one was interrupted.
    let cut = |index, second| SuperblockPair {
        first: Ok(member(index, 8, &[1])),
        second: Ok(second),
    };
    let left = [cut(0, member(0, 8, &[1])), cut(2, member(2, 6, &[]))];
    let assembly = assemble(&left, false).expect("all remaining members are present");
    assert!(assembly.superblock.members.iter().all(|one| !one.doubtful));
    let few = assemble(&all[..1], true);
    assert_eq!(
        few,
        Err(AssemblyError::Missing {
            members: vec![0, 1],
            failed: vec![],
            enough: false
        })
    );
}

/// Is a member refused as stale, with both generations, exactly if its generation is below that of
/// some second superblock, and is there no decision if the second superblock that would decide is
/// damaged?
#[test]
fn an_old_copy_is_stale() {
    let stale = |given, own, newest| {
        Err(AssemblyError::Stale {
            given,
            member: given,
            own,
            newest,
            dropped: false,
        })
    };
    let three = |pairs: [SuperblockPair; 3]| assemble(&pairs, false).map(|assembly| assembly.given);
    let current = Ok(vec![Some(0), Some(1), Some(2)]);
    assert_eq!(
        three([pair(0, 4, 4), pair(1, 6, 6), pair(2, 6, 6)]),
        stale(0, 4, 6)
    );
    // A copy taken while the volume was served, one generation before the end.
    assert_eq!(
        three([pair(0, 5, 5), pair(1, 6, 6), pair(2, 6, 6)]),
        stale(0, 5, 6)
    );
    // Member 1 has its second superblock of round 7. A second superblock is written only after
    // every member has its first one, but member 0 has none of round 7.
    assert_eq!(
        three([pair(0, 6, 6), pair(1, 7, 7), pair(2, 7, 6)]),
        stale(0, 6, 7)
    );
    assert_eq!(
        three([pair(0, 6, 6), pair(1, 7, 6), pair(2, 7, 6)]),
        current
    );
    assert_eq!(
        three([pair(0, 7, 6), pair(1, 7, 7), pair(2, 7, 6)]),
        current
    );
    let undecided = |given, own, other, newest| {
        Err(AssemblyError::MaybeStale {
            given,
            member: given,
            own,
            other_given: other,
            other,
            newest,
        })
    };
    assert_eq!(
        three([pair(0, 4, 4), damaged(1, 6), damaged(2, 6)]),
        undecided(0, 4, 2, 6)
    );
    assert_eq!(
        three([pair(0, 6, 6), damaged(1, 7), pair(2, 6, 6)]),
        undecided(0, 6, 1, 7)
    );
    // The undamaged second superblocks decide.
    assert_eq!(
        three([pair(0, 4, 4), damaged(1, 6), pair(2, 6, 6)]),
        stale(0, 4, 6)
    );
    assert_eq!(
        three([pair(0, 6, 6), damaged(1, 6), pair(2, 6, 6)]),
        current
    );
    assert_eq!(
        three([pair(0, 7, 6), damaged(1, 7), pair(2, 7, 6)]),
        current
    );
}

/// Are members that were used separately never assembled together, whichever is given first, and is
/// a member refused as stale if the others continued without it in the middle of its round?
#[test]
fn members_that_were_used_apart() {
    let alone = |index, failed: &[usize]| SuperblockPair {
        first: Ok(member(index, 8, failed)),
        second: Ok(member(index, 8, failed)),
    };
    for order in [[0, 1], [1, 0]] {
        let sides = order.map(|index| alone(index, &[1 - index, 2]));
        let apart = assemble(&sides, true);
        assert!(
            matches!(
                apart,
                Err(AssemblyError::Split {
                    generations: [8, 8],
                    ..
                })
            ),
            "{apart:?}"
        );
        // The same holds if the superblock that shows that one side relied on its round is
        // unusable.
        let [mut one, other] = sides;
        one.second = Err(SuperblockError::None);
        let apart = assemble(&[one, other], true);
        assert!(
            matches!(
                apart,
                Err(AssemblyError::Split {
                    generations: [8, 8],
                    ..
                })
            ),
            "{apart:?}"
        );
        // Member 0 was cut off in the middle of a round. The others continued without it, up to
        // that generation or to a lower one.
        for own in [8, 9] {
            let mut pairs = vec![pair(0, own, 7), alone(1, &[0]), alone(2, &[0])];
            pairs.swap(0, order[0]);
            let found = assemble(&pairs, true);
            let given = order[0];
            assert_eq!(
                found,
                Err(AssemblyError::Stale {
                    given,
                    member: 0,
                    own,
                    newest: 8,
                    dropped: true,
                })
            );
        }
    }
}

/// Are members that continued without each other refused as split, whatever their generations, even
/// if one side has replaced the other's member? Is a member refused as stale instead if a single
/// history explains all tables?
#[test]
fn members_that_were_used_apart_to_other_generations() {
    let alone = |index: usize, generation, failed: &[usize], replaced: &[usize]| {
        let mut one = Superblock {
            level: Level::Raid1,
            ..member(index, generation, failed)
        };
        one.members.truncate(2);
        for &replaced in replaced {
            one.members[replaced].id = Uuid::from_u128(99 + index as u128);
        }
        SuperblockPair {
            first: Ok(one.clone()),
            second: Ok(one),
        }
    };
    let split = |a: &SuperblockPair, b: &SuperblockPair| {
        for pairs in [[a, b], [b, a]] {
            let found = assemble(&pairs.map(Clone::clone), true);
            assert!(
                matches!(found, Err(AssemblyError::Split { .. })),
                "{found:?}"
            );
        }
    };
    for (one, other) in [(3, 5), (5, 7), (5, 5), (7, 5)] {
        split(&alone(0, one, &[1], &[]), &alone(1, other, &[0], &[]));
        // Member 0 was replaced on the other side.
        split(&alone(0, one, &[1], &[]), &alone(1, other, &[], &[0]));
    }
    // Member 1 continued although member 0 had declared it failed.
    split(&alone(0, 5, &[1], &[]), &alone(1, 6, &[], &[]));
    // Not split: a member that only missed writes, or that began a round and did not rely on it.
    let begun = SuperblockPair {
        first: alone(0, 4, &[1], &[]).first,
        second: alone(0, 3, &[], &[]).second,
    };
    for own in [alone(0, 3, &[], &[]), alone(0, 4, &[], &[]), begun] {
        let found = assemble(&[own, alone(1, 5, &[0], &[])], true);
        let stale = matches!(
            found,
            Err(AssemblyError::Stale {
                given: 0,
                dropped: true,
                ..
            })
        );
        assert!(stale, "{found:?}");
    }
    // In RAID-1 of three, member 0 failed and was replaced after member 1 had failed.
    let three = |index, failed: &[usize], id| {
        let mut one = Superblock {
            level: Level::Raid1,
            ..member(index, if failed.is_empty() { 3 } else { 9 }, failed)
        };
        one.members[0].id = Uuid::from_u128(id);
        SuperblockPair {
            first: Ok(one.clone()),
            second: Ok(one),
        }
    };
    let found = assemble(
        &[three(0, &[1], 50), three(1, &[], 1), three(2, &[1], 50)],
        true,
    );
    assert!(
        matches!(found, Err(AssemblyError::Stale { given: 1, .. })),
        "{found:?}"
    );
}

/// An event in the life of a volume.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Life {
    /// Members stay unchanged.
    Calm,
    /// A member is declared failed.
    Failed(usize),
    /// A member refuses writes after this many writes and flushes.
    Refuses(usize, u64),
}

/// The members at some moment.
#[derive(Clone)]
struct Moment {
    drives: Vec<Drive>,
    /// The generation of the last round of superblock writes that had ended.
    ended: u64,
}

/// Opens, writes to and stops a volume three times, with `life` in the second. Returns its members
/// after every write and flush.
fn run_life(made: &Setup, life: Life, rng: &mut Rng) -> Vec<Moment> {
    let moments = RefCell::new(Vec::new());
    let mut drives = made.drives.clone();
    let mut ended = 1;
    for session in 0..3 {
        let life = if session == 1 { life } else { Life::Calm };
        let memory = Memory::new(drives, Some(rng.split()));
        let last_round = RefCell::new(ended);
        let task = async {
            let superblock = assembled(&made.array, usable_pairs(&&memory).await);
            let array = made.array.clone();
            let volume = Volume::open(array, &memory, superblock, WriteHole::Closed);
            let volume = volume.await.unwrap();
            let note = || *last_round.borrow_mut() = volume.snapshot().superblock.generation;
            note();
            let data = vec![session as u8 + 1; SECTOR];
            volume.write(Lbn(0), &data).await.unwrap();
            volume.flush().await.unwrap();
            if let Life::Failed(member) = life {
                volume.fail(member).await.unwrap();
                note();
            }
            volume.write(Lbn(1), &data).await.unwrap();
            volume.flush().await.unwrap();
            volume.stop().await.unwrap();
            note();
        };
        let mut last = 0;
        interleave(vec![Box::pin(task)], rng, || {
            let count = memory.count.get();
            if let Life::Refuses(member, after) = life {
                memory.drives.borrow_mut()[member].refuses = count >= after;
            }
            if count != last {
                last = count;
                moments.borrow_mut().push(Moment {
                    drives: memory.drives.borrow().clone(),
                    ended: *last_round.borrow(),
                });
            }
            false
        });
        ended = *last_round.borrow();
        drives = memory.drives.into_inner();
        drives.iter_mut().for_each(|drive| drive.refuses = false);
    }
    moments.into_inner()
}

fn pairs_of(drives: &[Drive]) -> Vec<SuperblockPair> {
    let sectors = |drive: &Drive| Sectors((drive.visible.len() / SECTOR) as u64);
    let devices: Vec<(Sectors, u32)> = drives
        .iter()
        .map(|drive| (sectors(drive), SECTOR as u32))
        .collect();
    let memory = Memory::new(drives.to_vec(), None);
    wait(read_superblocks(&&memory, &devices))
}

/// Returns the members that should be assembled: all that have not failed according to round
/// `ended` or, if no superblock of it is left, the oldest later round.
fn current(pairs: &[SuperblockPair], ended: u64) -> Vec<usize> {
    let both = pairs
        .iter()
        .flat_map(|pair| pair.first.iter().chain(&pair.second));
    let later = both.filter(|superblock| superblock.generation >= ended);
    let table = later.min_by_key(|superblock| superblock.generation);
    let table = table.expect("a superblock of the last round or a later one is left");
    let states = table.members.iter().enumerate();
    states
        .filter(|(_, member)| member.state != MemberState::Failed)
        .map(|(index, _)| index)
        .collect()
}

/// The numbers of states and old copies tested, and of copies refused.
#[derive(Debug, Default)]
struct Tally {
    crashes: u64,
    copies: u64,
    refused: u64,
}

/// Simulates crashes at a moment: in every way if up to ten writes are pending, otherwise in 1,024
/// random ones. Asserts that the current members are assembled, and that a copy of a member from
/// before the last round is refused, with `with_damage` also if any one superblock is damaged.
fn crash(
    moment: &Moment,
    older: &[Vec<SuperblockPair>],
    with_damage: bool,
    rng: &mut Rng,
    tally: &mut Tally,
) {
    let pending: Vec<usize> = moment
        .drives
        .iter()
        .map(|drive| drive.pending.len())
        .collect();
    let all: usize = pending.iter().sum();
    for state in 0..1u64 << all.min(10) {
        let state = if all > 10 { rng.bits() } else { state };
        let mut before = 0;
        let left: Vec<Drive> = moment
            .drives
            .iter()
            .map(|drive| {
                let base = before;
                before += drive.pending.len();
                drive.left(|index| state >> (base + index) & 1 == 1, || false)
            })
            .collect();
        let pairs = pairs_of(&left);
        tally.crashes += 1;
        let mut expected = current(&pairs, moment.ended);
        // The next round may have proceeded so far that it has dropped a member.
        let (members, assembly) = loop {
            let of = |index: &usize| pairs[*index].clone();
            let members: Vec<SuperblockPair> = expected.iter().map(of).collect();
            match assemble(&members, true) {
                Ok(assembly) => break (members, assembly),
                Err(AssemblyError::Stale {
                    given,
                    dropped: true,
                    ..
                }) => drop(expected.remove(given)),
                Err(error) => panic!(
                    "round {} had ended, state {state:#x}: {error}",
                    moment.ended
                ),
            }
        };
        let given = assembly.given.iter().flatten().count();
        let doubtful = assembly.superblock.members.iter().any(|one| one.doubtful);
        assert!(
            given == members.len() && !doubtful,
            "round {} had ended, state {state:#x}: {assembly:?}",
            moment.ended
        );
        let damages = if with_damage { 2 * members.len() } else { 0 };
        // A copy of the only remaining member cannot be compared with anything.
        let older = if members.len() > 1 { older } else { &[] };
        for old in older {
            for position in 0..members.len() {
                let copy = &old[expected[position]];
                let generation = copy.newest().map(|newest| newest.generation);
                // A copy taken since the last round cannot be recognized.
                if generation.is_none_or(|generation| generation >= moment.ended) {
                    continue;
                }
                for damage in 0..=damages {
                    let mut with_copy = members.clone();
                    with_copy[position] = copy.clone();
                    if let Some(damage) = damage.checked_sub(1) {
                        let pair = &mut with_copy[damage / 2];
                        let one = [&mut pair.first, &mut pair.second];
                        *one.into_iter().nth(damage % 2).unwrap() = Err(SuperblockError::Damaged);
                    }
                    let found = assemble(&with_copy, true);
                    tally.copies += 1;
                    tally.refused += u64::from(found.is_err());
                    assert!(
                        found.is_err(),
                        "a copy of member {} from round {generation:?} is believed after round {}, damage {damage}",
                        expected[position],
                        moment.ended
                    );
                }
            }
        }
    }
}

/// After a crash at any time, whichever pending writes are lost, are all current members assembled,
/// for 2 to 5 members? Is every copy of a member that is older than the last round refused if
/// another member remains to compare it with? With 2 or 3 members, even if one superblock of any
/// member is damaged?
#[test]
fn no_old_copy_is_believed_after_any_crash() {
    let mut tally = Tally::default();
    for (level, count) in (2..=5)
        .map(|count| (Level::Raid1, count))
        .chain((3..=5).map(|count| (Level::Raid5, count)))
    {
        for seed in 0..testkit::repeats(4).min(40) {
            let mut rng = Rng::new(seed);
            let made = setup_of(level, count, &mut rng);
            let victim = rng.below(count as u64) as usize;
            let life = match seed % 4 {
                0 => Life::Calm,
                1 => Life::Failed(victim),
                // Often while the volume is opened, in the middle of a round.
                2 => Life::Refuses(victim, rng.below(2 * count as u64)),
                _ => Life::Refuses(victim, rng.below(60)),
            };
            println!("seed {seed}, {}, {count} members, {life:?}", level.name());
            let moments = run_life(&made, life, &mut rng);
            // Copies are taken of the visible state, durable or not, whenever a superblock has
            // changed.
            let mut older: Vec<Vec<SuperblockPair>> = Vec::new();
            for moment in &moments {
                let pairs = pairs_of(&moment.drives);
                if older.last() != Some(&pairs) {
                    older.push(pairs);
                }
            }
            for moment in &moments {
                crash(moment, &older, count <= 3, &mut rng, &mut tally);
            }
        }
    }
    println!("{tally:?}");
    assert!(
        tally.crashes > 10_000 && tally.refused > 100_000,
        "{tally:?}"
    );
}

/// If the others continued by force without a member, is that member refused when it returns, in
/// whichever round it was cut off?
#[test]
fn a_member_that_returns_is_stale() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let made = setup_of(Level::Raid1, 3, &mut rng);
        let moments = run_life(&made, Life::Calm, &mut rng);
        for moment in &moments {
            let kept = rng.bits();
            let mut left: Vec<Drive> = moment
                .drives
                .iter()
                .map(|drive| drive.left(|index| kept >> index & 1 == 1, || false))
                .collect();
            let returning = left[0].clone();
            left[0].gone = true;
            let memory = Memory::new(left, None);
            let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
            wait(volume.write(Lbn(0), &[9; SECTOR])).unwrap();
            // The server is killed: no other round follows.
            drop(volume);
            let mut drives = memory.drives.into_inner();
            drives[0] = returning;
            let found = assemble(&pairs_of(&drives), true);
            assert!(
                matches!(found, Err(AssemblyError::Stale { given: 0, .. })),
                "seed {seed}: {found:?}"
            );
        }
    }
}

/// Is a failure during operation recorded before the request that the member missed completes, so
/// that the member is stale if it returns after the server was killed?
#[test]
fn a_failure_is_recorded_before_the_request_completes() {
    for level in [Level::Raid1, Level::Raid5] {
        let made = setup_of(level, 3, &mut Rng::new(7));
        let memory = Memory::new(made.drives.clone(), None);
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        wait(volume.write(Lbn(0), &[8; SECTOR])).unwrap();
        memory.drives.borrow_mut()[0].gone = true;
        for lbn in 0..volume.capacity().0 {
            wait(volume.write(Lbn(lbn), &[9; SECTOR])).unwrap();
        }
        drop(volume);
        let mut drives = memory.drives.into_inner();
        drives[0].gone = false;
        let found = assemble(&pairs_of(&drives), true);
        assert!(
            matches!(found, Err(AssemblyError::Stale { given: 0, .. })),
            "{level:?}: {found:?}"
        );
    }
}

/// On a device that has grown, is the second superblock found where it was written: from the first
/// one, from its remains, or from the superblocks of the other members?
#[test]
fn the_second_superblock_of_a_member_that_grew() {
    let mut rng = Rng::new(3);
    let made = setup_of(Level::Raid1, 2, &mut rng);
    let grown = |bytes: usize| {
        let mut drives = made.drives.clone();
        drives[0].visible.resize(bytes, 0);
        drives
    };
    let bytes = made.drives[0].visible.len();
    let drives = grown(bytes + 40 * SECTOR);
    let pairs = pairs_of(&drives);
    assert!(pairs[0].first.is_ok() && pairs[0].first == pairs[0].second);
    for destroyed in [0..SECTOR, 0..8, 200..SUPERBLOCK_BYTES, 0..SUPERBLOCK_BYTES] {
        let mut drives = grown(bytes + 40 * SECTOR);
        drives[0].visible[destroyed.clone()].fill(0);
        let pairs = pairs_of(&drives);
        assert!(pairs[0].first.is_err(), "{destroyed:?}");
        let second = pairs[0].second.as_ref();
        assert_eq!(second.map(|second| second.index), Ok(0), "{destroyed:?}");
        let assembly = assemble(&pairs, false).unwrap();
        assert!(assembly.superblock.members[0].doubtful);
        assert!(!assembly.superblock.members[1].doubtful);
        if destroyed.end > SECTOR {
            continue;
        }
        // Without the other members, only the remains of the first superblock can tell where the
        // second one is.
        let alone = pairs_of(&drives[..1]);
        let suffices = destroyed.end <= 128;
        assert_eq!(alone[0].second.is_ok(), suffices, "{destroyed:?}");
    }
}

/// Before the initial sync, is marking a member as failed refused, and is a start without a member
/// refused unless it is forced? Does a forced start keep the written data, and does the next start
/// need no force? Does the refusal say whether the member is missing or has failed?
#[test]
fn a_start_without_a_member_before_the_sync() {
    let mut rng = Rng::new(4);
    let made = setup_of(Level::Raid5, 4, &mut rng);
    let memory = Memory::new(made.drives, None);
    let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
    let data: Vec<u8> = (0..7 * SECTOR)
        .map(|at| at as u8 ^ (at / 500) as u8)
        .collect();
    wait(volume.write(Lbn(0), &data)).unwrap();
    let refused = wait(volume.mark_failed(1)).unwrap_err().to_string();
    assert!(
        refused.contains(
            "cannot be marked as failed before the initial sync is complete; run `sync` first"
        ),
        "{refused}"
    );
    wait(volume.stop()).unwrap();
    memory.drives.borrow_mut()[1].gone = true;
    let mut assembly = assemble(&wait(usable_pairs(&&memory)), true).unwrap();
    let stripes = made.array.stripes();
    let refused = assembly.check_synced(stripes, false);
    assert_eq!(
        refused,
        Err(AssemblyError::Unsynced {
            member: 1,
            failed: false,
            synced: 0,
            stripes
        })
    );
    let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
    let mut read = vec![0; data.len()];
    wait(volume.read(Lbn(0), &mut read)).unwrap();
    assert!(read == data);
    wait(volume.stop()).unwrap();
    let mut again = assemble(&wait(usable_pairs(&&memory)), false).unwrap();
    assert_eq!(again.check_synced(stripes, false), Ok(()));
    // A member that failed.
    let made = setup_of(Level::Raid5, 4, &mut rng);
    let memory = Memory::new(made.drives, None);
    let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
    memory.drives.borrow_mut()[1].refuses = true;
    wait(volume.write(Lbn(0), &vec![1; volume.capacity().0 as usize * SECTOR])).unwrap();
    wait(volume.stop()).unwrap();
    let mut pairs = wait(usable_pairs(&&memory));
    pairs.remove(1);
    let stripes = made.array.stripes();
    let mut assembly = assemble(&pairs, false).unwrap();
    let refused = assembly.check_synced(stripes, false).unwrap_err();
    let says = "member 1 has failed, and the initial sync has completed only 0 of";
    assert!(refused.to_string().starts_with(says), "{refused}");
    assert!(
        refused.to_string().contains("`assemble --force`"),
        "{refused}"
    );
    assert_eq!(assembly.check_synced(stripes, true), Ok(()));
}

/// Does a broken volume keep the content of its journal? The failure of a member was never recorded
/// durably, so the member is accepted after a crash, and needs the writes that it missed.
#[test]
fn a_broken_volume_keeps_its_journal() {
    for seed in 0..20 {
        let mut rng = Rng::new(seed);
        let made = setup_of(Level::Raid5, 4, &mut rng);
        let memory = Memory::new(made.drives.clone(), None);
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        let old = vec![1; volume.capacity().0 as usize * SECTOR];
        wait(volume.write(Lbn(0), &old)).unwrap();
        for stripe in 0..made.array.stripes() {
            wait(volume.sync(stripe)).unwrap();
        }
        wait(volume.sync_checkpoint(made.array.stripes())).unwrap();
        // Members 1 and 2 refuse a write, and member 2 accepts the flush after it.
        let refuse = |member: usize, refuses| memory.drives.borrow_mut()[member].refuses = refuses;
        refuse(1, true);
        refuse(2, true);
        let first = rng.below(volume.capacity().0 / 2);
        let new = vec![2; (volume.capacity().0 / 3) as usize * SECTOR];
        let written = wait(volume.write(Lbn(first), &new));
        assert!(written.is_err(), "seed {seed}");
        refuse(2, false);
        let _ = wait(volume.flush());
        assert!(wait(volume.stop()).is_err(), "seed {seed}");
        drop(volume);
        refuse(1, false);
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        for stripe in 0..made.array.stripes() {
            let found = wait(volume.scrub(stripe, Repair::NONE)).unwrap();
            assert_eq!(found.wrong(), 0, "seed {seed}, stripe {stripe}: {found:?}");
        }
    }
}

/// If both members that take a journal record refuse it, does the write succeed on the third member
/// of a RAID-1? Are a RAID-1 of two members and a RAID-5 then broken?
#[test]
fn a_record_that_both_members_refuse() {
    for (level, members) in [(Level::Raid1, 3), (Level::Raid1, 2), (Level::Raid5, 4)] {
        let made = setup_of(level, members, &mut Rng::new(5));
        let memory = Memory::new(made.drives.clone(), None);
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        for member in [0, 1] {
            memory.drives.borrow_mut()[member].refuses = true;
        }
        let written = wait(volume.write(Lbn(0), &[9; SECTOR]));
        let seen = volume.snapshot();
        let failed = seen.superblock.members.iter();
        let failed = failed.filter(|member| member.state == MemberState::Failed);
        if (level, members) == (Level::Raid1, 3) {
            assert_eq!(written, Ok(()));
            assert_eq!((failed.count(), seen.broken), (2, false));
            let mut back = [0; SECTOR];
            wait(volume.read(Lbn(0), &mut back)).unwrap();
            assert_eq!(back, [9; SECTOR]);
        } else {
            let is_broken = matches!(written, Err(VolumeError::Broken { failed: 2, .. }));
            assert!(is_broken, "{level:?}: {written:?}");
            assert!(seen.broken, "{level:?}");
        }
    }
}

/// If the journal is too small for a stripe, does the error of a write state the journal's size and
/// the smallest size that suffices?
#[test]
fn a_journal_too_small_for_a_stripe() {
    let written = |journal| {
        let made = setup_with_journal(Level::Raid5, 4, journal, &mut Rng::new(3));
        let memory = Memory::new(made.drives, None);
        let volume = open(&made.array, &memory, WriteHole::Closed).unwrap();
        wait(volume.write(Lbn(0), &[9; SECTOR]))
    };
    let small = 20;
    let Err(VolumeError::Journal { journal, needed }) = written(small) else {
        panic!("the journal is too small");
    };
    assert_eq!(journal, Sectors(small));
    assert_eq!(written(needed.0), Ok(()));
    assert!(written(needed.0 - 1).is_err());
}

//! Stripe plans, executed on members that are bytes in memory.

use std::ops::Range;

use proptest::prelude::*;
use traxtent_layout::raid::{
    Array, ChunkContents, ChunkRule, Level, MemberSet, ParityUpdate, StripeHealth, StripePlan,
    StripePlanner, Version, XorStep, member_requests,
};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, Sectors};

use super::raid::{RAID5, any_array, member};

/// An array with data, one byte per sector.
struct Bytes<'a> {
    array: &'a Array,
    members: Vec<Vec<u8>>,
    health: StripeHealth,
    planner: StripePlanner,
}

impl<'a> Bytes<'a> {
    /// Creates members of zeros, or of arbitrary bytes if parity was never made.
    fn new(array: &'a Array, planner: StripePlanner, unsynced: bool, rng: &mut Rng) -> Bytes<'a> {
        let len = |member: usize| array.members()[member].data.end.0 as usize;
        let mut byte = || if unsynced { rng.bits() as u8 } else { 0 };
        Bytes {
            array,
            members: (0..array.members().len())
                .map(|member| (0..len(member)).map(|_| byte()).collect())
                .collect(),
            health: StripeHealth {
                unsynced,
                ..StripeHealth::GOOD
            },
            planner,
        }
    }

    /// Executes a plan on its stripe. `new` gives the new data of each sector of the array. Returns
    /// a function that gives the old data that the plan read or computed.
    fn execute<F: Fn(Lbn) -> u8>(
        &mut self,
        plan: &StripePlan,
        new: F,
    ) -> impl Fn(Lbn) -> Option<u8> + use<F> {
        let stripe = self.array.stripe(plan.stripe).unwrap();
        let chunks: Vec<_> = stripe.chunks().collect();
        let longest = chunks.iter().map(|chunk| chunk.sectors.0).max().unwrap() as usize;
        let mut old = vec![vec![None; longest]; chunks.len()];
        for read in plan.reads.iter().chain(&plan.dummy) {
            assert!(
                !self.health.absent().has(read.member),
                "reads an absent member: {plan:?}"
            );
            assert!(
                read.rows.start < read.rows.end && read.rows.end <= chunks[read.member].sectors.0
            );
            for (row, lbn) in read.rows.clone().zip(read.lbn.0..) {
                old[read.member][row as usize] = Some(self.members[read.member][lbn as usize]);
            }
        }
        let logical: Vec<_> = chunks
            .iter()
            .map(|chunk| match chunk.holds {
                ChunkContents::Data(k) => Some(stripe.logical_of(k)),
                ChunkContents::Parity => None,
            })
            .collect();
        let mut fresh = vec![vec![None; longest]; chunks.len()];
        for (member, logical) in logical.iter().enumerate() {
            for (row, sector) in logical
                .iter()
                .flat_map(|range| range.start.0..range.end.0)
                .enumerate()
            {
                fresh[member][row] = Some(new(Lbn(sector)));
            }
        }
        for XorStep {
            member,
            age,
            rows,
            old: of_old,
            new: of_new,
        } in &plan.sums
        {
            for row in rows.clone() {
                let zero_beyond = |from: usize, byte: Option<u8>| {
                    if row < chunks[from].sectors.0 {
                        byte.expect("every summand was read or given")
                    } else {
                        0
                    }
                };
                let mut sum = 0;
                for from in of_old.iter() {
                    sum ^= zero_beyond(from, old[from][row as usize]);
                }
                for from in of_new.iter() {
                    sum ^= zero_beyond(from, fresh[from][row as usize]);
                }
                match age {
                    Version::Old => old[*member][row as usize] = Some(sum),
                    Version::New => fresh[*member][row as usize] = Some(sum),
                }
            }
        }
        for write in &plan.writes {
            assert!(
                !self.health.failed.has(write.member),
                "writes to a failed member: {plan:?}"
            );
            for (row, lbn) in write.rows.clone().zip(write.lbn.0..) {
                let byte = fresh[write.member][row as usize];
                self.members[write.member][lbn as usize] =
                    byte.expect("every byte written was given or summed");
            }
        }
        move |sector| {
            let at = |range: &Range<Lbn>| (sector.0 - range.start.0) as usize;
            let holders = logical
                .iter()
                .enumerate()
                .filter_map(|(member, range)| Some((member, range.as_ref()?)));
            holders
                .filter(|(_, range)| range.contains(&sector))
                .find_map(|(member, range)| old[member][at(range)])
        }
    }

    /// Writes, and returns the parts of `sectors`, one per stripe, for which there was a plan.
    fn write(&mut self, sectors: Range<Lbn>, new: impl Fn(Lbn) -> u8) -> Vec<Range<Lbn>> {
        let (mut plan, mut written) = (StripePlan::default(), Vec::new());
        for (stripe, part) in self.array.stripes_of(sectors) {
            let planned = self
                .planner
                .write(&stripe, part.clone(), self.health, &mut plan);
            if planned.is_ok() {
                let _ = self.execute(&plan, &new);
                written.push(part);
            }
            assert!(planned.is_ok() || self.may_refuse(), "{planned:?}");
        }
        written
    }

    /// Reads, and returns the bytes, or `None` for stripes for which there was no plan.
    fn read(&mut self, sectors: Range<Lbn>) -> Vec<Option<u8>> {
        let (mut plan, mut bytes) = (StripePlan::default(), Vec::new());
        for (stripe, part) in self.array.stripes_of(sectors) {
            let planned = self
                .planner
                .read(&stripe, part.clone(), self.health, &mut plan);
            if planned.is_err() {
                assert!(self.may_refuse(), "{planned:?}");
                bytes.extend((part.start.0..part.end.0).map(|_| None));
                continue;
            }
            assert!(plan.writes.is_empty());
            let read = self.execute(&plan, |_| 0);
            bytes.extend((part.start.0..part.end.0).map(|sector| Some(read(Lbn(sector)).unwrap())));
        }
        bytes
    }

    /// Returns whether a plan may be refused: more members are absent than the level tolerates, or
    /// some member is unreadable and parity was never made.
    fn may_refuse(&self) -> bool {
        let StripeHealth {
            unreadable,
            unsynced,
            ..
        } = self.health;
        let tolerated = self.array.shape().level.failures_max(self.members.len());
        self.health.absent().count() > tolerated || unsynced && !unreadable.is_empty()
    }

    /// Fails a member and destroys its content.
    fn fail(&mut self, member: usize) {
        self.health.failed = self.health.failed.with(member);
        self.members[member].fill(0xEE);
    }

    fn rebuild(&mut self, member: usize) {
        let (mut plan, array) = (StripePlan::default(), self.array);
        let failed = self.health.failed;
        for number in 0..array.stripes() {
            let stripe = array.stripe(number).unwrap();
            self.planner
                .rebuild(&stripe, member, self.health, &mut plan)
                .unwrap();
            assert!(plan.reads.iter().all(|read| read.member != member));
            self.health.failed = failed.without(member);
            let _ = self.execute(&plan, |_| 0);
            self.health.failed = failed;
        }
        self.health.failed = failed.without(member);
    }
}

/// Returns whether the bytes read equal the expected ones where both are known.
fn agree(read: &[Option<u8>], expected: &[Option<u8>]) -> bool {
    let mut pairs = std::iter::zip(read, expected);
    read.len() == expected.len()
        && pairs.all(|(byte, wanted)| byte.is_none() || wanted.is_none() || byte == wanted)
}

proptest! {
    /// Does an array return the data written last, through writes of any size? Members fail before,
    /// between or after the writes, are unreadable for a while, and are rebuilt. The parity of some
    /// arrays has not been made before.
    #[test]
    fn an_array_keeps_the_data_written_last(
        array in any_array(),
        seed: u64,
        positioning in 0..30_u64,
        dummy_reads: bool,
        unsynced: bool,
    ) {
        let planner = StripePlanner { positioning: Sectors(positioning), dummy_reads };
        let mut rng = Rng::new(seed);
        let members = array.members().len() as u64;
        let mut bytes = Bytes::new(&array, planner, unsynced, &mut rng);
        let capacity = array.capacity().0;
        // Sectors that were never written may hold anything.
        let mut expected = vec![if unsynced { None } else { Some(0) }; capacity as usize];
        let mut stays_whole = array.shape().level == Level::Raid0;
        for turn in 0..40_u8 {
            let start = rng.below(capacity);
            let most = if rng.below(3) == 0 { capacity } else { 20 };
            let end = (start + 1 + rng.below(most)).min(capacity);
            let sectors = Lbn(start)..Lbn(end);
            let new = |sector: Lbn| turn.wrapping_mul(37) ^ (sector.0 * 11) as u8 ^ 0x5A;
            if rng.below(4) == 0 {
                bytes.health.unreadable = MemberSet::only(rng.below(members) as usize);
            }
            if rng.below(3) > 0 {
                for part in bytes.write(sectors, new) {
                    for sector in part.start.0..part.end.0 {
                        expected[sector as usize] = Some(new(Lbn(sector)));
                    }
                }
            } else {
                let read = bytes.read(sectors);
                prop_assert!(agree(&read, &expected[start as usize..end as usize]));
            }
            bytes.health.unreadable = MemberSet::NONE;
            if !stays_whole && rng.below(10) == 0 {
                match bytes.health.failed.first() {
                    Some(member) => bytes.rebuild(member),
                    None => bytes.fail(rng.below(members) as usize),
                }
                // Some arrays with parity lose no further member. RAID-1 always may.
                stays_whole = array.shape().level != Level::Raid1
                    && rng.below(4) == 0
                    && bytes.health.failed.is_empty();
            }
        }
        if let Some(member) = bytes.health.failed.first() {
            bytes.rebuild(member);
        }
        let all = Lbn(0)..Lbn(capacity);
        let read = bytes.read(all.clone());
        prop_assert!(read.iter().all(Option::is_some) && agree(&read, &expected));
        // Parity and replicas are valid, so any one member can be lost.
        if array.shape().level != Level::Raid0 {
            for member in 0..array.members().len() {
                bytes.fail(member);
                let read = bytes.read(all.clone());
                prop_assert!(read.iter().all(Option::is_some) && agree(&read, &expected));
                bytes.rebuild(member);
            }
        }
    }

    /// Does a verification plan restore a damaged replica or parity chunk, and change nothing else?
    #[test]
    fn verifying_restores_replicas_and_parity(array in any_array(), seed: u64, unsynced: bool) {
        let mut rng = Rng::new(seed);
        let mut bytes = Bytes::new(&array, PLANNER, unsynced, &mut rng);
        let capacity = array.capacity().0;
        bytes.write(Lbn(0)..Lbn(capacity), |sector| sector.0 as u8);
        let level = array.shape().level;
        for number in 0..array.stripes() {
            let stripe = array.stripe(number).unwrap();
            let good: Vec<Vec<u8>> = bytes.members.clone();
            let victim = match (level, stripe.parity_member()) {
                (Level::Raid1, _) => 1 + rng.below(array.members().len() as u64 - 1) as usize,
                (_, Some(parity)) => parity,
                _ => 0,
            };
            let chunk = stripe.chunk_on(victim);
            if level != Level::Raid0 && chunk.sectors.0 > 0 {
                let at = chunk.lbn.0 + rng.below(chunk.sectors.0);
                bytes.members[victim][at as usize] ^= 1 + rng.below(255) as u8;
            }
            let mut plan = StripePlan::default();
            PLANNER.verify(&stripe, bytes.health, &mut plan);
            prop_assert_eq!(plan.reads.is_empty(), level == Level::Raid0);
            let _ = bytes.execute(&plan, |_| 0);
            prop_assert_eq!(&bytes.members, &good);
        }
    }
}

/// Returns a RAID-5 array of five members, each with ten tracks of 100 sectors.
fn five() -> Array {
    Array::new(RAID5, vec![member(0, &[100; 10], 0..1000); 5]).unwrap()
}

const PLANNER: StripePlanner = StripePlanner {
    positioning: Sectors(100),
    dummy_reads: true,
};

fn plan_write(sectors: Range<u64>, failed: MemberSet) -> StripePlan {
    let (array, mut plan) = (five(), StripePlan::default());
    let stripe = array.stripe(0).unwrap();
    PLANNER
        .write(
            &stripe,
            Lbn(sectors.start)..Lbn(sectors.end),
            StripeHealth::without(failed),
            &mut plan,
        )
        .unwrap();
    plan
}

/// Returns the members and rows of extents.
fn plain(extents: &[traxtent_layout::raid::RowExtent]) -> Vec<(usize, Range<u64>)> {
    extents
        .iter()
        .map(|extent| (extent.member, extent.rows.clone()))
        .collect()
}

/// Is a whole stripe written without reading, a small part of it by read-modify-write, and most of
/// it by reconstruct-write?
#[test]
fn the_cheaper_update_is_taken() {
    assert_eq!(
        ParityUpdate::ALL.map(ParityUpdate::name),
        ["read-modify-write", "reconstruct-write"]
    );
    let whole = plan_write(0..400, MemberSet::NONE);
    assert_eq!((whole.reads.len(), whole.writes.len()), (0, 5));
    // One chunk: it and parity (member 4) are fewer than the three others.
    assert_eq!(
        plain(&plan_write(100..200, MemberSet::NONE).reads),
        [(1, 0..100), (4, 0..100)]
    );
    // Three chunks: only the fourth is read.
    assert_eq!(
        plain(&plan_write(0..300, MemberSet::NONE).reads),
        [(3, 0..100)]
    );
    // Different rows of two chunks: in each row, the chunk and parity are fewer than the three
    // others.
    let two = plan_write(90..110, MemberSet::NONE);
    assert_eq!(
        plain(&two.reads),
        [(0, 90..100), (1, 0..10), (4, 0..10), (4, 90..100)]
    );
    assert_eq!(
        plain(&two.writes),
        [(0, 90..100), (1, 0..10), (4, 0..10), (4, 90..100)]
    );
    // Rows for which all chunks are new need no reading.
    let most = plan_write(10..400, MemberSet::NONE);
    assert_eq!(plain(&most.reads), [(0, 0..10)]);
}

/// Is a failed member neither read nor written, and does the plan use the kind of update that works
/// without it? Is a read refused if the remaining members are not enough for its sectors?
#[test]
fn degraded_plans() {
    // The failed member is written: parity is computed from the others.
    let own = plan_write(0..100, MemberSet::only(0));
    assert_eq!(plain(&own.reads), [(1, 0..100), (2, 0..100), (3, 0..100)]);
    assert_eq!(plain(&own.writes), [(4, 0..100)]);
    // The failed member is not written: the old parity provides its data.
    let other = plan_write(0..300, MemberSet::only(3));
    assert_eq!(
        plain(&other.reads),
        [(0, 0..100), (1, 0..100), (2, 0..100), (4, 0..100)]
    );
    // Parity has failed, so nothing needs to be preserved.
    let parity = plan_write(0..10, MemberSet::only(4));
    assert_eq!(
        (plain(&parity.reads), plain(&parity.writes)),
        (vec![], vec![(0, 0..10)])
    );
    // Two have failed: the data cannot be recovered.
    let (array, mut plan) = (five(), StripePlan::default());
    let two = MemberSet::only(0).with(2);
    let error = PLANNER
        .read(
            &array.stripe(0).unwrap(),
            Lbn(0)..Lbn(10),
            StripeHealth::without(two),
            &mut plan,
        )
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "sector 0: members 0, 2 cannot be read, and the others are not enough to compute it"
    );
    PLANNER
        .read(
            &array.stripe(0).unwrap(),
            Lbn(100)..Lbn(110),
            StripeHealth::without(two),
            &mut plan,
        )
        .unwrap();
    assert_eq!(plain(&plan.reads), [(1, 0..10)]);
}

/// Is parity read too, as a dummy, if a read includes all other chunks of the stripe and no member
/// has failed (paper Q, section 3)? Is it omitted otherwise, or without dummy reads?
#[test]
fn dummy_reads() {
    let (array, mut plan) = (five(), StripePlan::default());
    let stripe = array.stripe(0).unwrap();
    let mut dummy = |planner: StripePlanner, sectors: Range<u64>, failed| {
        planner
            .read(
                &stripe,
                Lbn(sectors.start)..Lbn(sectors.end),
                StripeHealth::without(failed),
                &mut plan,
            )
            .unwrap();
        plan.dummy
            .as_ref()
            .map(|dummy| (dummy.member, dummy.rows.clone()))
    };
    assert_eq!(dummy(PLANNER, 0..400, MemberSet::NONE), Some((4, 0..100)));
    assert_eq!(dummy(PLANNER, 50..301, MemberSet::NONE), Some((4, 0..100)));
    assert_eq!(dummy(PLANNER, 0..300, MemberSet::NONE), None);
    assert_eq!(dummy(PLANNER, 0..400, MemberSet::only(0)), None);
    assert_eq!(dummy(PLANNER, 0..400, MemberSet::only(4)), None);
    let without = StripePlanner {
        dummy_reads: false,
        ..PLANNER
    };
    assert_eq!(dummy(without, 0..400, MemberSet::NONE), None);
}

/// Are extents of consecutive stripes joined if nothing lies between them, up to a size limit, and
/// split at parity that is not read?
#[test]
fn extents_are_joined() {
    let chunks = ChunkRule::Fixed(Sectors(8));
    let array = Array::new(
        traxtent_layout::raid::ArrayShape { chunks, ..RAID5 },
        vec![member(0, &[1000], 0..1000); 3],
    )
    .unwrap();
    let requests = |dummy_reads, most| {
        let planner = StripePlanner {
            dummy_reads,
            ..PLANNER
        };
        let (mut plan, mut extents) = (StripePlan::default(), Vec::new());
        for (stripe, part) in array.stripes_of(Lbn(0)..Lbn(96)) {
            planner
                .read(&stripe, part, StripeHealth::GOOD, &mut plan)
                .unwrap();
            extents.extend(plan.reads.iter().chain(&plan.dummy).cloned());
        }
        let requests = member_requests(&extents, most, Request::read);
        let of_first = requests.into_iter().filter(|(member, _)| *member == 0);
        of_first
            .map(|(_, request)| request.lbn.0..request.end().0)
            .collect::<Vec<_>>()
    };
    // Member 0 has parity in stripes 2 and 5.
    assert_eq!(requests(false, 1000), [0..16, 24..40]);
    assert_eq!(requests(true, 1000), std::slice::from_ref(&(0..48)));
    assert_eq!(requests(true, 20), [0..20, 20..40, 40..48]);
}

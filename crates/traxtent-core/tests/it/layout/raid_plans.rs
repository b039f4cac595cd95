//! Plans, executed on members that are bytes in memory.

use std::ops::Range;

use proptest::prelude::*;
use traxtent_core::layout::raid::{
    Age, Array, Chunks, Holds, Level, Members, Plan, Planner, Sum, Update, joined,
};
use traxtent_core::request::Request;
use traxtent_core::units::{Lbn, Sectors};
use traxtent_core::workload::Rng;

use super::raid::{RAID5, any_array, member};

/// An array with data: a byte a sector.
struct Bytes<'a> {
    array: &'a Array,
    members: Vec<Vec<u8>>,
    failed: Members,
    planner: Planner,
}

impl<'a> Bytes<'a> {
    fn new(array: &'a Array, planner: Planner) -> Bytes<'a> {
        let len = |member: usize| array.members()[member].data.end.0 as usize;
        Bytes {
            array,
            members: (0..array.members().len())
                .map(|member| vec![0; len(member)])
                .collect(),
            failed: Members::NONE,
            planner,
        }
    }

    /// Does what a plan says with a stripe, whose new data are given for each sector of the array; returns the old
    /// ones that it read or summed.
    fn execute<F: Fn(Lbn) -> u8>(
        &mut self,
        plan: &Plan,
        new: F,
    ) -> impl Fn(Lbn) -> Option<u8> + use<F> {
        let stripe = self.array.stripe(plan.stripe).unwrap();
        let chunks: Vec<_> = stripe.chunks().collect();
        let longest = chunks.iter().map(|chunk| chunk.sectors.0).max().unwrap() as usize;
        let mut old = vec![vec![None; longest]; chunks.len()];
        for read in plan.reads.iter().chain(&plan.dummy) {
            assert!(
                !self.failed.has(read.member),
                "reads a failed member: {plan:?}"
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
                Holds::Data(k) => Some(stripe.logical_of(k)),
                Holds::Parity => None,
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
        for Sum {
            member,
            age,
            rows,
            old: of_old,
            new: of_new,
        } in &plan.sums
        {
            for row in rows.clone() {
                let zero_beyond = |from: usize, byte: Option<u8>| match row < chunks[from].sectors.0
                {
                    true => byte.expect("what is summed was read or given"),
                    false => 0,
                };
                let mut sum = 0;
                for from in of_old.iter() {
                    sum ^= zero_beyond(from, old[from][row as usize]);
                }
                for from in of_new.iter() {
                    sum ^= zero_beyond(from, fresh[from][row as usize]);
                }
                match age {
                    Age::Old => old[*member][row as usize] = Some(sum),
                    Age::New => fresh[*member][row as usize] = Some(sum),
                }
            }
        }
        for write in &plan.writes {
            assert!(
                !self.failed.has(write.member),
                "writes to a failed member: {plan:?}"
            );
            for (row, lbn) in write.rows.clone().zip(write.lbn.0..) {
                let byte = fresh[write.member][row as usize];
                self.members[write.member][lbn as usize] =
                    byte.expect("what is written was given or summed");
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

    fn write(&mut self, sectors: Range<Lbn>, new: impl Fn(Lbn) -> u8) {
        let mut plan = Plan::default();
        for (stripe, part) in self.array.stripes_of(sectors) {
            self.planner
                .write(&stripe, part, self.failed, &mut plan)
                .unwrap();
            let _ = self.execute(&plan, &new);
        }
    }

    fn read(&mut self, sectors: Range<Lbn>) -> Vec<u8> {
        let (mut plan, mut bytes) = (Plan::default(), Vec::new());
        for (stripe, part) in self.array.stripes_of(sectors) {
            self.planner
                .read(&stripe, part.clone(), self.failed, &mut plan)
                .unwrap();
            assert!(plan.writes.is_empty());
            let read = self.execute(&plan, |_| 0);
            bytes.extend((part.start.0..part.end.0).map(|sector| read(Lbn(sector)).unwrap()));
        }
        bytes
    }

    /// A member fails: what it had is gone.
    fn fail(&mut self, member: usize) {
        self.failed = self.failed.with(member);
        self.members[member].fill(0xEE);
    }

    fn rebuild(&mut self, member: usize) {
        let (mut plan, array) = (Plan::default(), self.array);
        self.failed = self.failed.without(member);
        for number in 0..array.stripes() {
            let stripe = array.stripe(number).unwrap();
            self.planner
                .rebuild(&stripe, member, self.failed, &mut plan)
                .unwrap();
            assert!(plan.reads.iter().all(|read| read.member != member));
            let _ = self.execute(&plan, |_| 0);
        }
    }
}

proptest! {
    /// Does an array give back what was written last, through writes of any size, whole and with a member failed
    /// before, between or after them, and again after it has been rebuilt?
    #[test]
    fn an_array_is_a_drive(array in any_array(), seed: u64, positioning in 0..30_u64, dummy_reads: bool) {
        let planner = Planner { positioning: Sectors(positioning), dummy_reads };
        let mut rng = Rng::new(seed);
        let mut bytes = Bytes::new(&array, planner);
        let capacity = array.capacity().0;
        let mut expected = vec![0; capacity as usize];
        let mut whole = array.shape().level == Level::Raid0;
        for turn in 0..40_u8 {
            let start = rng.below(capacity);
            let most = if rng.below(3) == 0 { capacity } else { 20 };
            let end = (start + 1 + rng.below(most)).min(capacity);
            let sectors = Lbn(start)..Lbn(end);
            let new = |sector: Lbn| turn.wrapping_mul(37) ^ (sector.0 * 11) as u8 ^ 0x5A;
            if rng.below(3) > 0 {
                bytes.write(sectors, new);
                for sector in start..end {
                    expected[sector as usize] = new(Lbn(sector));
                }
            } else {
                prop_assert_eq!(bytes.read(sectors), &expected[start as usize..end as usize]);
            }
            if !whole && rng.below(10) == 0 {
                match bytes.failed.first() {
                    Some(member) => bytes.rebuild(member),
                    None => bytes.fail(rng.below(array.members().len() as u64) as usize),
                }
                // A mirror can lose more; parity cannot.
                whole = array.shape().level != Level::Raid1 && rng.below(4) == 0 && bytes.failed.is_empty();
            }
        }
        if let Some(member) = bytes.failed.first() {
            bytes.rebuild(member);
        }
        prop_assert_eq!(bytes.read(Lbn(0)..Lbn(capacity)), expected.clone());
        // Parity is right: each member can be lost.
        if array.shape().level != Level::Raid0 {
            for member in 0..array.members().len() {
                bytes.fail(member);
                prop_assert_eq!(bytes.read(Lbn(0)..Lbn(capacity)), expected.clone());
                bytes.rebuild(member);
            }
        }
    }
}

/// Five members of ten tracks of 100 sectors.
fn five() -> Array {
    Array::new(RAID5, vec![member(0, &[100; 10], 0..1000); 5]).unwrap()
}

const PLANNER: Planner = Planner {
    positioning: Sectors(100),
    dummy_reads: true,
};

fn plan_write(sectors: Range<u64>, failed: Members) -> Plan {
    let (array, mut plan) = (five(), Plan::default());
    let stripe = array.stripe(0).unwrap();
    PLANNER
        .write(
            &stripe,
            Lbn(sectors.start)..Lbn(sectors.end),
            failed,
            &mut plan,
        )
        .unwrap();
    plan
}

/// Members and rows of extents.
fn plain(extents: &[traxtent_core::layout::raid::Extent]) -> Vec<(usize, Range<u64>)> {
    extents
        .iter()
        .map(|extent| (extent.member, extent.rows.clone()))
        .collect()
}

/// Is a stripe that is written whole written without reading, a small part of it by modifying, most of it by reconstructing?
#[test]
fn the_cheaper_update_is_taken() {
    assert_eq!(
        Update::ALL.map(Update::name),
        ["read-modify-write", "reconstruct-write"]
    );
    let whole = plan_write(0..400, Members::NONE);
    assert_eq!((whole.reads.len(), whole.writes.len()), (0, 5));
    // A chunk: it and parity (member 4) are fewer than the three others.
    assert_eq!(
        plain(&plan_write(100..200, Members::NONE).reads),
        [(1, 0..100), (4, 0..100)]
    );
    // Three chunks: the fourth alone.
    assert_eq!(
        plain(&plan_write(0..300, Members::NONE).reads),
        [(3, 0..100)]
    );
    // The same rows of two chunks cost as much in either way, but the sum of rows decides for the fewer.
    let two = plan_write(90..110, Members::NONE);
    assert_eq!(
        plain(&two.reads),
        [(0, 90..100), (1, 0..10), (4, 0..10), (4, 90..100)]
    );
    assert_eq!(
        plain(&two.writes),
        [(0, 90..100), (1, 0..10), (4, 0..10), (4, 90..100)]
    );
    // Rows of a stripe that all chunks have new need no reading.
    let most = plan_write(10..400, Members::NONE);
    assert_eq!(plain(&most.reads), [(0, 0..10)]);
}

/// Is a failed member neither read nor written, and is the update taken that does without it?
#[test]
fn degraded_writes() {
    // Written itself: parity from the others.
    let own = plan_write(0..100, Members::only(0));
    assert_eq!(plain(&own.reads), [(1, 0..100), (2, 0..100), (3, 0..100)]);
    assert_eq!(plain(&own.writes), [(4, 0..100)]);
    // Not written: the old parity tells what it has.
    let other = plan_write(0..300, Members::only(3));
    assert_eq!(
        plain(&other.reads),
        [(0, 0..100), (1, 0..100), (2, 0..100), (4, 0..100)]
    );
    // Parity itself: nothing to keep.
    let parity = plan_write(0..10, Members::only(4));
    assert_eq!(
        (plain(&parity.reads), plain(&parity.writes)),
        (vec![], vec![(0, 0..10)])
    );
    // Two: nothing can be promised.
    let (array, mut plan) = (five(), Plan::default());
    let two = Members::only(0).with(2);
    let error = PLANNER
        .read(&array.stripe(0).unwrap(), Lbn(0)..Lbn(10), two, &mut plan)
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "member 0, 2 failed: what they have cannot be told from the others"
    );
    PLANNER
        .read(
            &array.stripe(0).unwrap(),
            Lbn(100)..Lbn(110),
            two,
            &mut plan,
        )
        .unwrap();
    assert_eq!(plain(&plan.reads), [(1, 0..10)]);
}

/// Is parity read along exactly where it alone is left out (paper Q, section 3)?
#[test]
fn dummy_reads() {
    let (array, mut plan) = (five(), Plan::default());
    let stripe = array.stripe(0).unwrap();
    let mut dummy = |planner: Planner, sectors: Range<u64>, failed| {
        planner
            .read(
                &stripe,
                Lbn(sectors.start)..Lbn(sectors.end),
                failed,
                &mut plan,
            )
            .unwrap();
        plan.dummy
            .as_ref()
            .map(|dummy| (dummy.member, dummy.rows.clone()))
    };
    assert_eq!(dummy(PLANNER, 0..400, Members::NONE), Some((4, 0..100)));
    assert_eq!(dummy(PLANNER, 50..301, Members::NONE), Some((4, 0..100)));
    assert_eq!(dummy(PLANNER, 0..300, Members::NONE), None);
    assert_eq!(dummy(PLANNER, 0..400, Members::only(0)), None);
    assert_eq!(dummy(PLANNER, 0..400, Members::only(4)), None);
    let without = Planner {
        dummy_reads: false,
        ..PLANNER
    };
    assert_eq!(dummy(without, 0..400, Members::NONE), None);
}

/// Are extents of consecutive stripes joined where nothing lies between them, up to a size, and cut at parity?
#[test]
fn extents_are_joined() {
    let chunks = Chunks::Fixed(Sectors(8));
    let array = Array::new(
        traxtent_core::layout::raid::Shape { chunks, ..RAID5 },
        vec![member(0, &[1000], 0..1000); 3],
    )
    .unwrap();
    let requests = |dummy_reads, most| {
        let planner = Planner {
            dummy_reads,
            ..PLANNER
        };
        let (mut plan, mut extents) = (Plan::default(), Vec::new());
        for (stripe, part) in array.stripes_of(Lbn(0)..Lbn(96)) {
            planner
                .read(&stripe, part, Members::NONE, &mut plan)
                .unwrap();
            extents.extend(plan.reads.iter().chain(&plan.dummy).cloned());
        }
        let requests = joined(&extents, most, Request::read);
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

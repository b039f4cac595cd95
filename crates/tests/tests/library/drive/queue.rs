//! The choice of the next request, and the time at which the arm starts to move to it.

use traxtent_model::drive::{Drive, Tag};
use traxtent_model::profile::{Preseek, Profile, Scheduler};
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{SimTime, Span};

use super::tiny::{assert_completions, fua, order, read, serve, tiny_with, write};

fn with_scheduler(scheduler: Scheduler) -> Profile {
    tiny_with(|p| p.queue.scheduler = scheduler)
}

/// When may the arm start to move to the next request: after the media, the bus, or the
/// acknowledgement?
#[test]
fn preseek_overlaps_the_next_seek_with_the_end_of_a_request() {
    let p = |preseek| {
        tiny_with(|p| {
            p.queue.preseek = preseek;
            p.bus.read_sector_ms = 0.2;
            p.overheads.read_completion_ms = 0.5;
        })
    };
    // The first request is off the media at 3.0, over the bus at 4.1, and acknowledged at 4.6 ms.
    // One of the other two passes under the head at 4.8 ms, the other at 5.5 ms; both are a seek of
    // 1 ms away.
    let (early, late) = (read(218, 1), read(225, 1));
    for (preseek, early_ms, late_ms) in [
        (Preseek::BeforeCompletion, 5.6, 6.3),
        (Preseek::DuringCompletion, 15.6, 6.3),
        (Preseek::None, 15.6, 16.3),
    ] {
        assert_completions(
            &p(preseek),
            &[(0.0, read(20, 10)), (0.1, early)],
            &[4.6, early_ms],
        );
        assert_completions(
            &p(preseek),
            &[(0.0, read(20, 10)), (0.1, late)],
            &[4.6, late_ms],
        );
    }
}

/// Does a request take part in the choice if it arrives up to `choice_ms` after the access, and
/// only then?
#[test]
fn a_request_that_arrives_in_time_takes_part_in_the_choice() {
    let p = |choice_ms| {
        tiny_with(|p| {
            p.queue.scheduler = Scheduler::Sstf;
            p.queue.preseek = Preseek::BeforeCompletion;
            p.queue.choice_ms = choice_ms;
        })
    };
    // The first request is off the media at 3.0 ms. The second one is far, the third one near.
    let (far, near) = (read(1500, 1), read(225, 1));
    let is_first = |choice_ms, arrival_ms| {
        let requests = [(0.0, read(20, 10)), (0.1, far), (arrival_ms, near)];
        let served = serve(&p(choice_ms), &requests);
        served[2].completed < served[1].completed
    };
    for (choice_ms, arrival_ms, takes_part) in [
        (0.0, 2.9, true),
        (0.0, 3.1, false),
        (0.2, 3.1, true),
        (0.2, 3.3, false),
    ] {
        assert_eq!(
            is_first(choice_ms, arrival_ms),
            takes_part,
            "{choice_ms}, {arrival_ms}"
        );
    }
}

/// Does each policy serve waiting requests in the order of its definition?
#[test]
fn each_policy_has_its_order() {
    let waiting = [read(300, 1), read(900, 1), read(1700, 1), read(750, 1)];
    let orders = [
        (Scheduler::Fcfs, [0, 1, 2, 3]),
        (Scheduler::Sstf, [3, 1, 0, 2]),
        (Scheduler::Look, [1, 2, 3, 0]),
        (Scheduler::CLook, [1, 2, 0, 3]),
    ];
    for policy in Scheduler::plain().filter(|policy| !policy.is_positional()) {
        assert!(
            orders.iter().any(|(known, _)| *known == policy),
            "{policy}: this test states no order for it"
        );
    }
    for (scheduler, expected) in orders {
        assert_eq!(
            order(&with_scheduler(scheduler), read(800, 1), &waiting),
            expected,
            "{scheduler:?}"
        );
    }
}

/// Does LOOK keep its direction even if the last request waited alone?
#[test]
fn look_keeps_its_direction() {
    // The arm moves down from 1700 to 1500 while no other request waits. Of the two requests that
    // arrive meanwhile, the one further down is served first.
    let requests = [
        (0.0, read(1700, 1)),
        (0.0, read(1500, 1)),
        (6.0, read(1600, 1)),
        (6.0, read(300, 1)),
    ];
    let mut done = serve(&with_scheduler(Scheduler::Look), &requests);
    assert!(
        done[0].completed.as_ms() < 6.0 && done[1].completed.as_ms() > 6.0,
        "{done:?}"
    );
    done.sort_by_key(|c| c.completed);
    assert_eq!(
        done.iter().map(|c| c.tag.0).collect::<Vec<_>>(),
        [0, 1, 3, 2]
    );
}

/// Does SPTF take rotation into account if seeks are equal or zero?
#[test]
fn sptf_takes_the_sector_that_passes_first() {
    // After LBN 0, sector 20 of this track passes at 2.0, sector 20 of the other track at 3.0, and
    // sector 50 at 5.0 ms.
    let waiting = [read(50, 1), read(20, 1), read(120, 1)];
    assert_eq!(
        order(&with_scheduler(Scheduler::Sptf), read(0, 1), &waiting),
        [1, 2, 0]
    );
    assert_eq!(
        order(&with_scheduler(Scheduler::Look), read(0, 1), &waiting),
        [1, 0, 2]
    );
}

/// Among random reads all over the drive, does SPTF always take the one whose first sector passes
/// first?
#[test]
fn sptf_equals_an_exhaustive_choice() {
    let p = tiny_with(|p| {
        p.queue.scheduler = Scheduler::Sptf;
        p.cache.enabled = false;
    });
    for seed in 0..40 {
        let mut rng = Rng::new(seed);
        let lbns: Vec<u64> = (0..12)
            .map(|i| 100 * rng.below(20) + 8 * i + rng.below(8))
            .collect();
        let requests: Vec<_> = lbns.iter().map(|&lbn| (0.0, read(lbn, 1))).collect();
        // In hundredths of a millisecond: the end of the positioning to an LBN.
        let reached = |now: u64, from: u64, to: u64| {
            let moving = match (from / 200).abs_diff(to / 200) {
                0 if from / 100 == to / 100 => 0,
                0 => 50,
                cylinders => 50 + 50 * cylinders,
            };
            let edge = 300 * (to / 200) + 100 * (to / 100 % 2) + 10 * (to % 100);
            let landed = now + moving;
            landed + (edge + 10_000 - landed % 1000) % 1000
        };
        let (mut now, mut at) = (0, 0);
        let mut waiting: Vec<usize> = (0..lbns.len()).collect();
        let mut expected_ms = vec![0.0; lbns.len()];
        // The first request finds the arm free.
        let mut next = 0;
        loop {
            let index = waiting.remove(next);
            now = reached(now, at, lbns[index]) + 10 + 1;
            at = lbns[index];
            expected_ms[index] = now as f64 / 100.0;
            let Some((best, _)) = waiting
                .iter()
                .enumerate()
                .min_by_key(|&(_, &index)| reached(now, at, lbns[index]))
            else {
                break;
            };
            next = best;
        }
        assert_completions(&p, &requests, &expected_ms);
    }
}

/// Does SPTF immediately serve a read whose first sector is in the buffer, but not a verify or a
/// read with force unit access, which need the media?
#[test]
fn sptf_prefers_reads_that_the_buffer_serves() {
    let p = with_scheduler(Scheduler::Sptf);
    // Sectors 20 to 29 are in the buffer after 3.01 ms. While the drive waits for sector 60, it
    // receives a request for sector 80, and one for some of those in the buffer.
    let with = |request| {
        [
            (0.0, read(20, 10)),
            (5.0, read(60, 1)),
            (5.5, read(80, 1)),
            (5.6, request),
        ]
    };
    let hit = read(22, 5);
    assert_completions(&p, &with(hit), &[3.01, 6.11, 8.11, 6.16]);
    let verify = Request {
        op: Op::Verify,
        ..hit
    };
    assert_completions(&p, &with(verify), &[3.01, 6.11, 8.11, 12.7]);
    assert_completions(&p, &with(fua(hit)), &[3.01, 6.11, 8.11, 12.71]);
    // The first sectors are enough.
    assert_completions(&p, &with(read(25, 10)), &[3.01, 6.11, 18.11, 13.51]);
}

/// Does aged SPTF serve a far request within bounded time, however many near ones keep arriving?
#[test]
fn aged_sptf_starves_no_request() {
    let far_ms = |scheduler| {
        let mut drive = Drive::new(&with_scheduler(scheduler)).unwrap();
        let mut rng = Rng::new(1);
        let near = |rng: &mut Rng| read(rng.below(200), 1);
        for _ in 0..32 {
            drive.submit(SimTime::ZERO, near(&mut rng)).unwrap();
        }
        let far = drive.submit(SimTime::ZERO, read(1999, 1)).unwrap();
        for _ in 0..20_000 {
            let now = drive.next_wakeup().unwrap();
            while let Some(done) = drive.poll(now) {
                if done.tag == far {
                    return done.response().as_ms();
                }
                drive.submit(now, near(&mut rng)).unwrap();
            }
        }
        f64::INFINITY
    };
    // With a weight of 0.1, another 150 ms of waiting compensates for the longest positioning time,
    // 15 ms. The requests that wait at that time, 32 of at most 11 ms each, may be served first.
    let aged = far_ms(Scheduler::AgedSptf { weight: 0.1 });
    assert!(aged < 150.0 + 32.0 * 11.0 + 15.0, "waited {aged} ms");
    assert!(far_ms(Scheduler::Sptf) > 2.0 * aged);
}

/// Do overlapping requests keep their order under a scheduler that would change it, even if two of
/// them are connected only by a third?
#[test]
fn overlapping_requests_keep_their_order() {
    let waiting = [write(100, 20), write(110, 50), read(150, 20)];
    assert_eq!(
        order(&with_scheduler(Scheduler::Sstf), read(1000, 1), &waiting),
        [0, 1, 2]
    );
    // Reads may be reordered.
    let waiting = [read(100, 20), read(110, 50), read(150, 20)];
    assert_eq!(
        order(&with_scheduler(Scheduler::Sstf), read(1000, 1), &waiting),
        [2, 1, 0]
    );
}

/// Does a read that the buffer could serve immediately still wait for an older write to its
/// sectors?
#[test]
fn a_hit_does_not_overtake_a_write() {
    let p = tiny_with(|p| p.cache.hits_while_busy = true);
    let mut requests = vec![
        (0.0, read(20, 10)),
        (5.0, read(1000, 1)),
        (5.1, read(24, 4)),
    ];
    let without_write = serve(&p, &requests);
    assert!(
        without_write[2].completed < without_write[1].completed,
        "the hit waits for the media: {without_write:?}"
    );
    requests.insert(2, (5.05, write(22, 4)));
    let with_write = serve(&p, &requests);
    assert_eq!(with_write[3].tag, Tag(3));
    assert!(
        with_write[3].completed > with_write[2].completed,
        "{with_write:?}"
    );
}

/// Is a hit served while the arm is busy although other requests wait, unless one of them is a
/// write of its sectors?
#[test]
fn a_hit_waits_only_for_writes_of_its_sectors() {
    let p = tiny_with(|p| p.cache.hits_while_busy = true);
    let hit_after = |waiting| {
        let requests = [
            (0.0, read(20, 10)),
            (5.0, read(1000, 10)),
            (5.1, waiting),
            (5.2, read(22, 4)),
        ];
        serve(&p, &requests)[3].completed
    };
    let at_once = SimTime::from_ms(5.24);
    assert_eq!(hit_after(read(25, 10)), at_once);
    assert_eq!(hit_after(write(1200, 10)), at_once);
    assert_eq!(hit_after(write(26, 10)), at_once);
    assert!(hit_after(write(25, 10)) > at_once);
}

/// Does a hit that is served while the arm is busy have the overheads of any other hit?
#[test]
fn a_hit_while_the_arm_is_busy_has_its_overheads() {
    let p = tiny_with(|p| {
        p.cache.hits_while_busy = true;
        p.overheads.read_hit_after_read_ms = 0.1;
        p.overheads.data_preparation_ms = 0.2;
    });
    let fill = (0.0, read(20, 10));
    let hit = (5.2, read(22, 4));
    let idle = serve(&p, &[fill, hit])[1].response();
    let busy = serve(&p, &[fill, (5.0, read(1000, 10)), hit])[2].response();
    assert_eq!(idle, Span::from_ms(0.1 + 0.2 + 0.04));
    assert_eq!(busy, idle);
}

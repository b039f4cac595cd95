//! A user's own queue scheduler.

use traxtent_model::drive::{Completion, Drive, HeadView, QueuePolicy, Waiting};
use traxtent_model::profile::{Profile, Scheduler, builtin};
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Rng, SimTime};

use super::tiny::{read, tiny};

/// Chooses the request whose first sector comes under the head first, and of several such requests
/// the oldest.
#[derive(Clone, Debug)]
struct OwnSptf;

impl QueuePolicy for OwnSptf {
    fn choose(&mut self, _: SimTime, _: &HeadView, waiting: &Waiting<'_>) -> usize {
        let least = (0..waiting.len()).min_by_key(|&index| waiting.positioning(index));
        least.expect("requests wait")
    }
}

/// Alternates between the oldest and the newest request.
#[derive(Clone, Debug)]
struct BothEnds {
    newest: bool,
}

impl QueuePolicy for BothEnds {
    fn choose(&mut self, _: SimTime, _: &HeadView, waiting: &Waiting<'_>) -> usize {
        self.newest = !self.newest;
        if self.newest { waiting.len() - 1 } else { 0 }
    }
}

/// Returns an index that does not exist.
#[derive(Clone, Debug)]
struct OutOfRange;

impl QueuePolicy for OutOfRange {
    fn choose(&mut self, _: SimTime, _: &HeadView, waiting: &Waiting<'_>) -> usize {
        assert_eq!(waiting.positioning(waiting.len()), None);
        assert_eq!(waiting.get(waiting.len()), None);
        waiting.len()
    }
}

fn with_scheduler(name: &str, scheduler: Scheduler) -> Profile {
    let mut profile = builtin(name).expect("a built-in drive");
    profile.queue.scheduler = scheduler;
    profile.queue.depth = 16;
    profile
}

/// Returns the completions of random reads, writes and verifications, 16 at a time. Half of them
/// are close to each other, so that some overlap.
fn completions(mut drive: Drive, seed: u64, count: u64) -> Vec<Completion> {
    let mut rng = Rng::new(seed);
    let capacity = drive.geometry().capacity().0;
    let mut done = Vec::new();
    let (mut now, mut sent) = (SimTime::ZERO, 0);
    loop {
        while sent < count && sent - (done.len() as u64) < 16 {
            let sectors = 1 + rng.below(64);
            let range = if rng.chance(0.5) { 5_000 } else { capacity };
            let request = Request {
                lbn: Lbn(rng.below(range - sectors)),
                sectors: sectors as u32,
                op: [Op::Read, Op::Read, Op::Write, Op::Verify][rng.below(4) as usize],
                fua: rng.chance(0.1),
            };
            drive.submit(now, request).expect("a valid request");
            sent += 1;
        }
        let Some(wake) = drive.next_wakeup() else {
            return done;
        };
        now = wake;
        while let Some(completion) = drive.poll(now) {
            done.push(completion);
        }
    }
}

/// Does a user's own SPTF policy give the same completions as the built-in SPTF?
#[test]
fn sptf_of_the_user_equals_the_built_in_one() {
    for name in ["atlas10k", "cheetah15k7", "toshiba-x300"] {
        let (sptf, fcfs) = (Scheduler::Sptf, Scheduler::Fcfs);
        let [built_in, other] = [sptf, fcfs]
            .map(|scheduler| Drive::new(&with_scheduler(name, scheduler)).expect("a valid drive"));
        let mut own = other.clone();
        own.set_queue_policy(Some(Box::new(OwnSptf)));
        let mut reset = own.clone();
        reset.set_queue_policy(None);
        for seed in 0..3 {
            let [built_in, other, own, reset] = [&built_in, &other, &own, &reset]
                .map(|drive| completions(drive.clone(), seed, 1000));
            assert_eq!(own, built_in, "{name}, seed {seed}");
            assert_ne!(own, other, "{name}, seed {seed}");
            assert_eq!(reset, other, "{name}, seed {seed}");
        }
    }
}

/// If the policy returns an index that does not exist, does the drive take the oldest request?
#[test]
fn an_index_out_of_range_is_the_oldest_request() {
    let drive = Drive::new(&with_scheduler("atlas10k", Scheduler::Fcfs)).expect("a valid drive");
    let mut own = drive.clone();
    own.set_queue_policy(Some(Box::new(OutOfRange)));
    assert_eq!(completions(own, 7, 1000), completions(drive, 7, 1000));
}

/// Does a clone of a drive have a policy of its own, in the same state, and does a restart keep it?
#[test]
fn a_clone_has_a_policy_of_its_own() {
    let policy = || Some(Box::new(BothEnds { newest: true }) as Box<dyn QueuePolicy>);
    let mut drive = Drive::new(&with_scheduler("atlas10k", Scheduler::Sptf)).expect("a drive");
    let built_in = completions(drive.clone(), 1, 500);
    drive.set_queue_policy(policy());
    let clone = drive.clone();
    let first = completions(drive.clone(), 1, 500);
    assert_ne!(first, built_in);
    assert_eq!(completions(clone, 1, 500), first);
    drive.restart(SimTime::ZERO);
    assert_eq!(completions(drive, 1, 500), first);
}

/// Checks the queue and the head that it sees, and takes the newer request.
#[derive(Clone, Debug)]
struct Checker;

impl QueuePolicy for Checker {
    fn choose(&mut self, now: SimTime, head: &HeadView, waiting: &Waiting<'_>) -> usize {
        // The first request is served at once, so the two that arrived meanwhile wait.
        let lbns: Vec<u64> = waiting
            .iter()
            .map(|waiting| waiting.request.lbn.0)
            .collect();
        assert_eq!(lbns, [900, 300]);
        let submitted: Vec<f64> = waiting.iter().map(|it| it.submitted.as_ms()).collect();
        assert_eq!(submitted, [0.1, 0.2]);
        let tags: Vec<u64> = waiting.iter().map(|waiting| waiting.tag.0).collect();
        assert_eq!(tags, [1, 2]);
        // The access ends at 3.0 ms, the transfer of its last sector 0.01 ms later.
        assert_eq!(now, SimTime::from_ms(3.01));
        assert_eq!((head.position.cylinder.0, head.position.surface.0), (0, 0));
        assert_eq!(head.lbn, Lbn(30));
        assert!((head.angle.as_turns() - 0.301).abs() < 1e-12);
        // The heads land after 2.5 ms and 1 ms. The sectors pass 3 ms and 4 ms into a revolution.
        let positioning = |index| waiting.positioning(index).expect("it waits").as_ms();
        assert_eq!(positioning(0), 9.99);
        assert_eq!(positioning(1), 10.99);
        1
    }
}

/// Does a policy see the waiting requests in order of arrival, the head, and exact times?
#[test]
fn a_policy_sees_the_queue_and_the_head() {
    let mut drive = Drive::new(&tiny()).expect("a valid drive");
    drive.set_queue_policy(Some(Box::new(Checker)));
    for (ms, request) in [
        (0.0, read(20, 10)),
        (0.1, read(900, 1)),
        (0.2, read(300, 1)),
    ] {
        drive
            .submit(SimTime::from_ms(ms), request)
            .expect("a valid request");
    }
    let mut order = Vec::new();
    while let Some(wake) = drive.next_wakeup() {
        order.extend(drive.poll(wake).map(|completion| completion.tag.0));
    }
    assert_eq!(order, [0, 2, 1]);
}

//! The virtual clock and the host's queues.

use traxtent_model::drive::{Completion, Drive};
use traxtent_model::profile::{Profile, Scheduler, builtin};
use traxtent_sim::{Host, simulate};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};
use traxtent_workload::{Arrival, NextStep, RequestSource, TraceError, Urgency};

/// Requests for devices at given times.
struct List {
    requests: Vec<(SimTime, u32, Request)>,
    next: usize,
    completed: Vec<(u64, SimTime)>,
}

impl List {
    fn new(requests: Vec<(SimTime, u32, Request)>) -> List {
        List {
            requests,
            next: 0,
            completed: Vec::new(),
        }
    }

    fn random(seed: u64, count: u64, devices: u64, capacity: u64) -> List {
        let mut rng = Rng::new(seed);
        let mut now = 0;
        let requests = (0..count).map(|_| {
            now += rng.below(12_000_000_000);
            let (lbn, sectors) = (Lbn(rng.below(capacity - 64)), 1 + rng.below(64) as u32);
            let read = rng.chance(0.6);
            let request = if read {
                Request::read(lbn, sectors)
            } else {
                Request::write(lbn, sectors)
            };
            (SimTime(now), rng.below(devices) as u32, request)
        });
        List::new(requests.collect())
    }
}

impl RequestSource for List {
    fn due(&mut self) -> Result<NextStep, TraceError> {
        Ok(self
            .requests
            .get(self.next)
            .map_or(NextStep::Never, |&(at, ..)| NextStep::At(at)))
    }

    fn take(&mut self, now: SimTime) -> Option<Arrival> {
        let (at, device, request) = self.requests[self.next];
        assert_eq!(at, now, "not taken when it was due");
        let tag = self.next as u64;
        self.next += 1;
        Some(Arrival {
            at,
            tag,
            device,
            urgency: Urgency::None,
            measured: None,
            request,
        })
    }

    fn complete(&mut self, tag: u64, at: SimTime) {
        self.completed.push((tag, at));
    }
}

fn profile() -> Profile {
    builtin("atlas10k").unwrap()
}

fn drive() -> Drive {
    Drive::new(&profile()).unwrap()
}

fn run(host: &mut Host, list: &mut List) -> Vec<(u64, Completion)> {
    let mut seen = Vec::new();
    let end = simulate(host, list, |outcome| {
        seen.push((outcome.arrival.tag, outcome.completion));
        true
    });
    assert_eq!(
        end.unwrap(),
        seen.last()
            .map_or(SimTime::ZERO, |(_, done)| done.completed)
    );
    seen
}

/// Does the host add no time: are completions those of the drive alone at the same submission
/// times?
#[test]
fn the_host_adds_nothing_while_the_drive_has_room() {
    let mut list = List::random(1, 500, 1, drive().geometry().capacity().0);
    let mut host = Host::new(vec![
        Drive::new(&profile().with_value("queue.depth", "65536").unwrap()).unwrap(),
    ]);
    let seen = run(&mut host, &mut list);
    let mut alone = host.drives().next().unwrap().clone();
    alone = Drive::with_geometry(alone.profile().clone(), alone.geometry().clone());
    for &(at, _, request) in &list.requests {
        alone.submit(at, request).unwrap();
    }
    let expected: Vec<Completion> = std::iter::from_fn(|| alone.poll(SimTime(u64::MAX))).collect();
    assert_eq!(
        seen.iter().map(|&(_, done)| done).collect::<Vec<_>>(),
        expected
    );
    let seen_times: Vec<(u64, SimTime)> = seen
        .iter()
        .map(|&(tag, done)| (tag, done.completed))
        .collect();
    assert_eq!(
        list.completed, seen_times,
        "the source received other completions"
    );
}

/// Does each of several drives behave as if alone, and are their outcomes in order of time?
#[test]
fn drives_do_not_disturb_each_other() {
    let list = || List::random(2, 600, 3, drive().geometry().capacity().0);
    let mut all = list();
    let together = run(&mut Host::new(vec![drive(), drive(), drive()]), &mut all);
    assert!(together.is_sorted_by_key(|(_, done)| done.completed));
    for device in 0..3 {
        let on_it: Vec<usize> = (0..600).filter(|&i| all.requests[i].1 == device).collect();
        let mut alone = List::new(
            on_it
                .iter()
                .map(|&i| (all.requests[i].0, 0, all.requests[i].2))
                .collect(),
        );
        let alone = run(&mut Host::new(vec![drive()]), &mut alone);
        let expected: Vec<(u64, Completion)> = alone
            .into_iter()
            .map(|(tag, done)| (on_it[tag as usize] as u64, done))
            .collect();
        let found: Vec<(u64, Completion)> = together
            .iter()
            .filter(|(tag, _)| all.requests[*tag as usize].1 == device)
            .copied()
            .collect();
        assert_eq!(found, expected, "device {device}");
    }
}

/// Does the host queue requests that exceed the depth, and submit them in its scheduler's order?
#[test]
fn the_host_orders_requests_beyond_the_depth() {
    let lbns = [9_000_000, 100, 5_000_000, 7_000_000, 3_000_000];
    let requests = || {
        lbns.map(|lbn| (SimTime::ZERO, 0, Request::read(Lbn(lbn), 8)))
            .to_vec()
    };
    let tags = |scheduler| -> Vec<u64> {
        let mut host = Host::new(vec![drive()]).with_queue(0, scheduler, 1);
        run(&mut host, &mut List::new(requests()))
            .into_iter()
            .map(|(tag, _)| tag)
            .collect()
    };
    assert_eq!(tags(Scheduler::Fcfs), [0, 1, 2, 3, 4]);
    assert_eq!(tags(Scheduler::CLook), [0, 1, 4, 2, 3]);
    assert_eq!(tags(Scheduler::Sstf), [0, 3, 2, 4, 1]);
    assert_eq!(tags(Scheduler::Look), [0, 3, 2, 4, 1]);
    // One at a time: each is submitted when the one before it is complete.
    let mut host = Host::new(vec![drive()]).with_queue(0, Scheduler::Fcfs, 1);
    let seen = run(&mut host, &mut List::new(requests()));
    assert!(
        seen.windows(2)
            .all(|pair| pair[1].1.submitted == pair[0].1.completed)
    );
}

/// Does an impossible request end the run with an error that names its number, after the requests
/// before it were served?
#[test]
fn impossible_requests_end_the_run() {
    let mut seen = 0;
    let mut fail = |requests: Vec<(SimTime, u32, Request)>| {
        seen = 0;
        let result = simulate(
            &mut Host::new(vec![drive()]),
            &mut List::new(requests),
            |_| {
                seen += 1;
                true
            },
        );
        (result.unwrap_err().to_string(), seen)
    };
    let good = (SimTime::ZERO, 0, Request::read(Lbn(0), 8));
    let later = SimTime::from_ms(1_000.0);
    let capacity = drive().geometry().capacity().0;
    for (bad, message) in [
        (
            (1, Request::read(Lbn(0), 8)),
            "request 2: device 1 does not exist; there is only device 0".to_owned(),
        ),
        (
            (0, Request::read(Lbn(0), 0)),
            "request 2: read at LBN 0: zero sectors".to_owned(),
        ),
        (
            (0, Request::read(Lbn(u64::MAX), 8)),
            format!(
                "request 2: read of 8 sectors at LBN {}: the drive ends before LBN {capacity}",
                u64::MAX
            ),
        ),
    ] {
        assert_eq!(fail(vec![good, (later, bad.0, bad.1)]), (message, 1));
    }
}

/// Can the sink of outcomes end the run?
#[test]
fn the_sink_may_stop() {
    let mut list = List::random(3, 100, 1, drive().geometry().capacity().0);
    let mut left = 10;
    simulate(&mut Host::new(vec![drive()]), &mut list, |_| {
        left -= 1;
        left > 0
    })
    .unwrap();
    assert_eq!((left, list.completed.len()), (0, 10));
}

//! Does the synthetic workload behave like DiskSim's?
//!
//! The values that are stated as DiskSim's are those that DiskSim 4.0 prints for its example
//! set-ups synthopen, synthclosed and synthmixed, whose generators are repeated here.

use traxtent_units::Rng;
use traxtent_units::{SimTime, Span};
use traxtent_workload::{
    Arrival, Distribution, NextStep, RequestSource, Synthio, SynthioGenerator, SynthioSpec, Urgency,
};

fn generator(device: u32) -> SynthioGenerator {
    let exponential = |mean| Distribution::Exponential { base: 0.0, mean };
    SynthioGenerator {
        devices: vec![device],
        device_sectors: 2_056_008,
        block_sectors: 8,
        sequential: 0.0,
        local: 0.0,
        read: 0.66,
        critical: 0.0,
        limited: 0.0,
        limits: Distribution::Normal {
            mean: 30.0,
            deviation: 100.0,
        },
        general: exponential(25.0),
        sequential_gaps: exponential(0.0),
        local_gaps: exponential(0.0),
        distances: Distribution::Normal {
            mean: 0.0,
            deviation: 40_000.0,
        },
        sizes: exponential(8.0),
    }
}

fn spec(processors: u32, generators: Vec<SynthioGenerator>) -> SynthioSpec {
    let time = SimTime::from_ms(1_000_000.0);
    SynthioSpec {
        count: 10_000,
        time,
        processors,
        system_calls: None,
        generators,
    }
}

fn mixed() -> SynthioSpec {
    let gaps = Distribution::Exponential {
        base: 0.0,
        mean: 50.0,
    };
    let generator = SynthioGenerator {
        sequential: 0.2,
        local: 0.3,
        critical: 0.2,
        limited: 0.3,
        general: gaps.clone(),
        sequential_gaps: gaps.clone(),
        local_gaps: gaps,
        ..generator(0)
    };
    spec(5, vec![generator; 5])
}

/// The result of a run.
#[derive(Default)]
struct Run {
    arrivals: Vec<Arrival>,
    /// The sum of the response times.
    response_ms: f64,
    idle_generators: usize,
}

impl Run {
    fn mean_response_ms(&self) -> f64 {
        self.response_ms / self.arrivals.len() as f64
    }

    fn mean_gap_ms(&self) -> f64 {
        self.arrivals[self.arrivals.len() - 1].at.as_ms() / (self.arrivals.len() - 1) as f64
    }
}

/// Runs the workload against a drive that serves in order and takes a draw of `service` for each
/// request.
fn run(spec: &SynthioSpec, seed: u64, service: &Distribution) -> Run {
    let mut source = Synthio::new(spec, seed).unwrap();
    let mut rng = Rng::new(99);
    let mut queue = std::collections::VecDeque::new();
    let mut free = SimTime::ZERO;
    let mut result = Run::default();
    loop {
        let done = queue
            .front()
            .map(|&(_, done, _): &(u64, SimTime, SimTime)| done);
        match source.due().unwrap() {
            NextStep::At(at) if done.is_none_or(|done| at < done) => {
                if let Some(arrival) = source.take(at) {
                    assert_eq!(
                        (arrival.at, arrival.tag),
                        (at, result.arrivals.len() as u64)
                    );
                    free = free.max(at) + service.sample_time(&mut rng);
                    queue.push_back((arrival.tag, free, at));
                    result.arrivals.push(arrival);
                }
            }
            _ => match queue.pop_front() {
                Some((tag, done, issued)) => {
                    result.response_ms += done.since(issued).as_ms();
                    source.complete(tag, done);
                }
                None => {
                    result.idle_generators = source.idle_generators();
                    return result;
                }
            },
        }
    }
}

/// With one processor, does only the last of three open generators issue requests, at its own rate?
/// With one processor each, do all three issue requests in parallel?
#[test]
fn open_generators() {
    let opened = run(
        &spec(1, vec![generator(0), generator(1), generator(2)]),
        1,
        &Distribution::Constant(9.0),
    );
    assert!(opened.arrivals.iter().all(|arrival| arrival.device == 2));
    // Two requests of the other generators were made and never issued.
    assert_eq!((opened.arrivals.len(), opened.idle_generators), (9998, 2));
    assert!(
        (opened.mean_gap_ms() - 25.0).abs() < 1.0,
        "{}",
        opened.mean_gap_ms()
    );
    // With one processor each, they run in parallel.
    let apart = run(
        &spec(3, vec![generator(0), generator(1), generator(2)]),
        1,
        &Distribution::Constant(2.0),
    );
    for device in 0..3 {
        let share = apart
            .arrivals
            .iter()
            .filter(|arrival| arrival.device == device)
            .count();
        assert!((3100..3570).contains(&share), "device {device}: {share}");
    }
    assert!(
        (apart.mean_gap_ms() - 25.0 / 3.0).abs() < 0.4,
        "{}",
        apart.mean_gap_ms()
    );
}

/// Do five closed generators without think time keep five requests outstanding?
#[test]
fn closed_generators() {
    let zero = Distribution::Exponential {
        base: 0.0,
        mean: 0.0,
    };
    let closed = SynthioGenerator {
        critical: 1.0,
        general: zero,
        ..generator(0)
    };
    for processors in [1, 5] {
        let closed = run(
            &spec(processors, vec![closed.clone(); 5]),
            3,
            &Distribution::Constant(17.56),
        );
        assert!(
            closed
                .arrivals
                .iter()
                .all(|arrival| arrival.urgency == Urgency::Critical)
        );
        // DiskSim: 87.8 ms, five times its mean service time.
        assert!(
            (closed.mean_response_ms() - 87.8).abs() < 0.1,
            "{}",
            closed.mean_response_ms()
        );
    }
}

/// Does the mixed set-up issue requests with its shares, and at DiskSim's rate once all processors
/// but the first are idle?
#[test]
fn mixed_generators() {
    let service = Distribution::Normal {
        mean: 16.0,
        deviation: 5.0,
    };
    let (mut early, mut late) = (0.0, 0.0);
    for seed in 0..20 {
        let mixed = run(&mixed(), seed, &service);
        let share = |urgency| {
            let found = mixed
                .arrivals
                .iter()
                .filter(|arrival| arrival.urgency == urgency)
                .count();
            found as f64 / mixed.arrivals.len() as f64
        };
        assert!(
            (share(Urgency::Critical) - 0.2).abs() < 0.016,
            "{}",
            share(Urgency::Critical)
        );
        assert!(
            (share(Urgency::Limited) - 0.3).abs() < 0.018,
            "{}",
            share(Urgency::Limited)
        );
        let at = |index: usize| mixed.arrivals[index].at.as_ms();
        early += at(10) / 10.0 / 20.0;
        late += (at(9900) - at(5000)) / 4900.0 / 20.0;
        assert!(mixed.mean_response_ms() > 16.0 && mixed.mean_response_ms() < 30.0);
    }
    // Five run in parallel at first. DiskSim's mean gap over a run of this set-up is 48.44 ms with
    // its own seed, and 24.8 to 49.5 ms with seeds 1 to 40, depending on how long the other
    // processors last. One process at a time gives 50 ms.
    assert!(early < 25.0, "{early}");
    assert!((late - 49.7).abs() < 0.7, "{late}");
}

/// Do sequential requests have the specified share, and the size and operation of their
/// predecessor? Are all requests whole blocks within the device, and are their sizes distributed as
/// specified?
#[test]
fn sequential_requests_and_sizes() {
    // Only one process, so that each request follows its own predecessor.
    let single = SynthioSpec {
        generators: vec![mixed().generators[0].clone()],
        ..mixed()
    };
    let alone = run(&single, 4, &Distribution::Constant(10.0)).arrivals;
    let pairs = alone.windows(2);
    let sequential = pairs
        .clone()
        .filter(|pair| pair[0].request.end() == pair[1].request.lbn)
        .count();
    assert!((1840..2160).contains(&sequential), "{sequential}");
    let like = |pair: &&[Arrival]| {
        pair[0].request.sectors == pair[1].request.sectors
            && pair[0].request.op == pair[1].request.op
    };
    let alike = pairs
        .clone()
        .filter(|pair| pair[0].request.end() == pair[1].request.lbn)
        .filter(like)
        .count();
    // A local request may follow its predecessor by chance; then it differs in size or operation.
    assert!(alike + 5 > sequential, "{alike} of {sequential}");
    for arrival in &alone {
        assert_eq!(
            (arrival.request.lbn.0 % 8, arrival.request.sectors % 8),
            (0, 0)
        );
        assert!(arrival.request.sectors > 0 && arrival.request.end().0 < 2_056_008);
    }
    // Sizes: the integer part of an exponential with a mean of 8 sectors, never 0, rounded up to
    // blocks of 8.
    let single_block = alone
        .iter()
        .filter(|arrival| arrival.request.sectors == 8)
        .count() as f64
        / alone.len() as f64;
    // P(1 <= x < 9) / P(x >= 1)
    assert!(
        (single_block - (1.0 - (-1.0f64).exp())).abs() < 0.025,
        "{single_block}"
    );
}

/// Does a limited request block its process only after the limit has expired, and only while it is
/// outstanding?
#[test]
fn limits() {
    // Each request is preceded by 10 ms of computing. Its limit of 10 + 5 ms counts from the
    // beginning of each later inter-arrival time. These last only 10 ms, so it never expires.
    let never = SynthioGenerator {
        limited: 1.0,
        limits: Distribution::Constant(5.0),
        general: Distribution::Constant(10.0),
        ..generator(0)
    };
    let few = |generator| SynthioSpec {
        count: 6,
        ..spec(1, vec![generator])
    };
    let at = |run: Run| {
        run.arrivals
            .iter()
            .map(|arrival| arrival.at.as_ms())
            .collect::<Vec<_>>()
    };
    let slow = Distribution::Constant(1000.0);
    assert_eq!(
        at(run(&few(never.clone()), 1, &slow)),
        [10.0, 20.0, 30.0, 40.0, 50.0, 60.0]
    );
    // The inter-arrival times are 10 ms (random) and 40 ms (sequential). The first request's limit
    // of 10 + 5 ms expires 15 ms into the second one. There the process waits for the first
    // request's completion at 1010 ms, and then computes the other 25 ms.
    let sometimes = SynthioGenerator {
        sequential: 1.0,
        sequential_gaps: Distribution::Constant(40.0),
        ..never
    };
    let found = at(run(&few(sometimes.clone()), 1, &slow));
    assert_eq!(found[..2], [10.0, 1035.0]);
    // The process never waits for a drive that is fast enough.
    let quick = Distribution::Constant(1.0);
    assert_eq!(
        at(run(&few(sometimes), 1, &quick)),
        [10.0, 50.0, 90.0, 130.0, 170.0, 210.0]
    );
}

/// Do system calls add their computing times around critical requests?
#[test]
fn system_calls() {
    let critical = SynthioGenerator {
        critical: 1.0,
        general: Distribution::Constant(10.0),
        ..generator(0)
    };
    let mut calls = SynthioSpec {
        count: 3,
        ..spec(1, vec![critical])
    };
    calls.system_calls = Some((Span::from_ms(1.0), Span::from_ms(2.0)));
    let at = |service| {
        run(&calls, 1, &Distribution::Constant(service))
            .arrivals
            .iter()
            .map(|a| a.at.as_ms())
            .collect::<Vec<_>>()
    };
    // Call 1, compute 10, issue, then the longer of 2 and the service time.
    assert_eq!(at(5.0), [11.0, 27.0, 43.0]);
    assert_eq!(at(1.5), [11.0, 24.0, 37.0]);
}

/// Does the workload end at its time limit? Does the same seed give the same run, and another seed
/// a different one?
#[test]
fn ends_and_repeats() {
    let ended = SynthioSpec {
        time: SimTime::from_ms(5000.0),
        ..spec(1, vec![generator(0)])
    };
    let first = run(&ended, 5, &Distribution::Constant(9.0));
    assert!(
        (130..280).contains(&first.arrivals.len()),
        "{}",
        first.arrivals.len()
    );
    assert_eq!(
        first.arrivals,
        run(&ended, 5, &Distribution::Constant(9.0)).arrivals
    );
    assert_ne!(
        first.arrivals,
        run(&ended, 6, &Distribution::Constant(9.0)).arrivals
    );
}

/// Are invalid set-ups refused with generator, value and bound?
#[test]
fn refusals() {
    let with = |change: fn(&mut SynthioSpec)| {
        let mut spec = mixed();
        change(&mut spec);
        Synthio::new(&spec, 1).map(|_| ()).unwrap_err().to_string()
    };
    for (found, expected) in [
        (
            with(|spec| spec.processors = 0),
            "synthetic workload: number of processors: 0: expected 1 to 4096",
        ),
        (
            with(|spec| spec.generators.clear()),
            "synthetic workload: generators: 0: expected 1 to 65536",
        ),
        (
            with(|spec| spec.generators[3].read = 1.5),
            "synthetic workload: generator 3: probability of read access: 1.5: expected 0 to 1",
        ),
        (
            with(|spec| spec.generators[1].device_sectors = 15),
            "synthetic workload: generator 1: storage capacity per device: 15: expected 16 to 9223372036854775807 sectors",
        ),
        (
            with(|spec| spec.generators[0].devices.clear()),
            "synthetic workload: generator 0: devices: none: expected at least one",
        ),
        // DiskSim draws these values without end.
        (
            with(|spec| spec.generators[0].sizes = Distribution::Constant(0.5)),
            "synthetic workload: generator 0: sizes: Constant(0.5): none of 1000 drawn values is at least 1 sector and below the device's size",
        ),
        (
            with(|spec| spec.generators[0].sizes = Distribution::Constant(1e7)),
            "synthetic workload: generator 0: sizes: Constant(10000000.0): none of 1000 drawn values is at least 1 sector and below the device's size",
        ),
        (
            with(|spec| spec.generators[0].distances = Distribution::Constant(-3e6)),
            "synthetic workload: generator 0: local distances: Constant(-3000000.0): none of 1000 drawn values is below the device's size",
        ),
        (
            with(|spec| spec.generators[0].local_gaps = Distribution::Constant(-1.0)),
            "synthetic workload: generator 0: local inter-arrival times: Constant(-1.0): none of 1000 drawn values is 0 or more",
        ),
    ] {
        assert_eq!(found, expected);
    }
    let message = with(|spec| {
        spec.generators[0].sizes = Distribution::Normal {
            mean: 1.0,
            deviation: f64::NAN,
        }
    });
    assert!(
        message.contains("generator 0: sizes: ")
            && message.ends_with("the deviation must be 0 or more, not NaN"),
        "{message}"
    );
}

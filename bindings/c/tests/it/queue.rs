//! Tests of several outstanding requests, and of errors.

use std::fmt::Write;

use testkit::tool;
use traxtent_model::drive::Drive;
use traxtent_model::profile::builtin;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Lbn, Rng, SimTime, Span};

use crate::program::Program;

/// Drives and seeds: two old drives, and two with physical sectors of 4 KiB, the last of which also
/// has a large cache.
const CASES: &[(&str, u64)] = &[
    ("atlas10k2", 1),
    ("atlas10k2", 2),
    ("hp-c2247", 3),
    ("wd10ears", 4),
    ("generic-20tb", 5),
    ("generic-20tb", 6),
];
const REQUESTS: u64 = 300;
/// The time between two requests is shorter than this. Queues build up, and empty from time to
/// time.
const PAUSE_LIMIT: Span = Span(15_000_000_000);

/// A request, the number of its operation in C, and its time.
struct Arrival {
    at: SimTime,
    op: u32,
    request: Request,
}

/// Returns random reads, writes, writes of zeros and flushes. Some continue the request before
/// them.
fn arrivals(drive: &Drive, seed: u64) -> Vec<Arrival> {
    let (mut rng, mut at) = (Rng::new(seed), SimTime::ZERO);
    let mut next = Lbn(0);
    let capacity = drive.geometry().capacity().0;
    let arrival = |_| {
        at += Span(rng.below(PAUSE_LIMIT.0));
        let sectors = 8 * (1 + rng.below(32) as u32);
        if rng.below(3) > 0 || next.0 + u64::from(sectors) > capacity {
            next = Lbn(rng.below(capacity - u64::from(sectors)) / 8 * 8);
        }
        let lbn = next;
        next = Lbn(lbn.0 + u64::from(sectors));
        let (op, request) = match rng.below(10) {
            0..5 => (1, Request::read(lbn, sectors)),
            5..8 => (2, Request::write(lbn, sectors)),
            8 => (3, Request::flush()),
            _ => (5, Request::write(lbn, sectors)),
        };
        let fua = request.op == Op::Write && rng.below(4) == 0;
        let request = Request { fua, ..request };
        Arrival { at, op, request }
    };
    (0..REQUESTS).map(arrival).collect()
}

/// Returns the completions of a drive, as `tests/c/queue.c` prints them.
fn completions(drive: &mut Drive, arrivals: &[Arrival]) -> String {
    let mut printed = String::new();
    let mut run = |drive: &mut Drive, until: SimTime| {
        while let Some(wake) = drive.next_wakeup().filter(|wake| *wake <= until) {
            while let Some(done) = drive.poll(wake) {
                let (tag, from, to) = (1000 + done.tag.0, done.submitted.0, done.completed.0);
                writeln!(printed, "{tag} {from} {to} 0").unwrap();
            }
        }
    };
    for arrival in arrivals {
        run(drive, arrival.at);
        drive.submit(arrival.at, arrival.request).unwrap();
    }
    run(drive, SimTime(u64::MAX));
    printed
}

/// Do requests that a program in C submits complete at the same picoseconds, in the same order, as
/// those of the drive in Rust?
#[test]
fn completions_equal_those_of_the_drive() {
    let program = Program::compile(&tool!("cc"), "tests/c/queue.c");
    for (name, seed) in CASES {
        let mut drive = Drive::new(&builtin(name).unwrap()).unwrap();
        let arrivals = arrivals(&drive, *seed);
        let mut input = String::new();
        for Arrival { at, op, request } in &arrivals {
            let (lbn, sectors, fua) = (request.lbn.0, request.sectors, u32::from(request.fua));
            writeln!(input, "{} {op} {lbn} {sectors} {fua}", at.0).unwrap();
        }
        let expected = completions(&mut drive, &arrivals);
        let printed = program.run(&[name], &input);
        let different = printed.lines().zip(expected.lines()).find(|(a, b)| a != b);
        assert_eq!(different, None, "{name}, seed {seed}");
        assert_eq!(
            printed.lines().count() as u64,
            REQUESTS,
            "{name}, seed {seed}"
        );
        // A queue that is never deeper than one would not test the order.
        let tags: Vec<&str> = expected.lines().map(|line| &line[..4]).collect();
        assert!(
            !tags.is_sorted(),
            "{name}, seed {seed}: no request overtakes another"
        );
    }
}

/// Does each mistake have a code and a message, does a failed submission have no effect, do faults
/// end outstanding requests with their reasons, and is an outstanding request released with its
/// disk? Do requests fail at the end of time?
#[test]
fn errors_have_codes_and_messages() {
    let program = Program::compile(&tool!("cc"), "tests/c/errors.c");
    let printed = program.run(&[], "");
    let expected = include_str!("../c/errors.txt");
    assert_eq!(printed, expected);
}

//! The examples: are their logs correct, and their outputs deterministic?
// Each example loads the log as a module of its own.
#![allow(dead_code, clippy::duplicate_mod)]

#[path = "../examples/event_loop.rs"]
mod event_loop;
#[path = "../examples/turmoil.rs"]
mod on_turmoil;

use traxtent_units::Span;

/// The length of a run of the event loop.
const RUN: Span = Span(500_000_000_000);

/// Does a log that flushes keep every acknowledged record, whatever a power cut leaves, and does a
/// log that does not flush lose some?
#[test]
fn flushed_records_survive() {
    let mut lost = 0;
    for seed in 0..8 {
        let run = |flushes| event_loop::run("toshiba-x300", flushes, seed, RUN).unwrap();
        assert_eq!(run(true).lost, 0, "seed {seed}");
        lost += run(false).lost;
    }
    assert!(lost > 0);
}

/// Does the server keep every acknowledged transaction through crashes, and does a server that
/// does not flush lose some?
#[test]
fn acknowledged_transactions_survive() {
    let mut lost = 0;
    for seed in 0..4 {
        let (report, missing) = on_turmoil::simulate(seed, true).unwrap();
        assert_eq!(missing, 0, "{report}");
        lost += on_turmoil::simulate(seed, false).unwrap().1;
    }
    assert!(lost > 0);
}

/// Does the same seed give the same output, and a different seed a different one?
#[test]
fn outputs_are_deterministic() {
    let event_loop = |seed| event_loop::run("generic-20tb", true, seed, RUN).unwrap();
    assert_eq!(event_loop(3), event_loop(3));
    assert_ne!(event_loop(3), event_loop(4));
    let turmoil = |seed| on_turmoil::simulate(seed, true).unwrap();
    assert_eq!(turmoil(3), turmoil(3));
    // Each report begins with its seed: `seed 3: `.
    assert_ne!(turmoil(3).0[8..], turmoil(4).0[8..]);
}

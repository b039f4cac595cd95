//! The example programs, compiled and run.

use std::time::{Duration, Instant};

use testkit::tool;

use crate::program::Program;

/// Does the example find all its records after the power cut?
#[test]
fn powercut_runs() {
    let program = Program::compile(&tool!("cc"), "examples/powercut.c");
    let printed = program.run(&[], "");
    assert!(
        printed.starts_with("all there; a flush takes "),
        "{printed}"
    );
}

/// Does the event loop complete all requests, and does it do so in real time?
#[test]
fn epoll_runs() {
    let program = Program::compile(&tool!("cc"), "examples/epoll.c");
    let begun = Instant::now();
    let printed = program.run(&["cheetah15k7", "40"], "");
    assert!(
        printed.starts_with("40 reads, 8 outstanding: "),
        "{printed}"
    );
    // The drive cannot position its heads 40 times in less time.
    assert!(begun.elapsed() > Duration::from_millis(50), "{printed}");
}

//! The examples, and the memory that programs use.

use std::process::Command;
use std::time::{Duration, Instant};

use testkit::tool;

use crate::program::{Program, run};

/// Does the example find its records?
#[test]
fn powercut_runs() {
    let program = Program::compile(&tool!("cc"), "examples/powercut.c");
    let printed = program.run(&[], "");
    assert!(
        printed.starts_with("all there; a flush takes "),
        "{printed}"
    );
}

/// Does the event loop complete all requests, in the real time that they take?
#[test]
fn epoll_runs() {
    let program = Program::compile(&tool!("cc"), "examples/epoll.c");
    let begun = Instant::now();
    let printed = program.run(&["cheetah15k7", "40"], "");
    assert!(
        printed.starts_with("40 reads, 8 outstanding: "),
        "{printed}"
    );
    // The drive cannot position its heads 40 times in less.
    assert!(begun.elapsed() > Duration::from_millis(50), "{printed}");
}

/// Are all accesses to memory valid, and is everything released, also after errors?
#[test]
fn memory_is_valid_and_released() {
    let (cc, valgrind) = (tool!("cc"), tool!("valgrind"));
    let programs: [(&str, &[&str]); 2] = [
        ("tests/c/errors.c", &[]),
        ("examples/epoll.c", &["cheetah15k7", "12"]),
    ];
    for (source, arguments) in programs {
        let program = Program::compile(&cc, source);
        let mut command = Command::new(&valgrind);
        command.args(["--quiet", "--leak-check=full", "--show-leak-kinds=all"]);
        command.args(["--errors-for-leak-kinds=all", "--error-exitcode=9"]);
        run(command.arg(program.path()).args(arguments), "");
    }
}

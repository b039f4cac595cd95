//! The engine: libFuzzer around one target, which the environment variable `FUZZ_TARGET` selects.
//!
//! `cargo xtask fuzz` builds this with the coverage passes of LLVM, which are code generation flags
//! of the stable compiler. With `FUZZ_TARGET=list`, the engine prints the targets and canaries.
#![no_main]

use std::alloc::System;
use std::sync::LazyLock;

use cap::Cap;
use fuzz::{CANARIES, TARGETS, Target};
use libfuzzer_sys::fuzz_target;

/// The maximum memory of the process, and therefore of a target, in bytes.
const MEMORY_BYTES_MAX: usize = 256 << 20;

#[global_allocator]
static ALLOCATOR: Cap<System> = Cap::new(System, MEMORY_BYTES_MAX);

static TARGET: LazyLock<Target> = LazyLock::new(|| {
    let name = std::env::var("FUZZ_TARGET").unwrap_or_default();
    if name == "list" {
        TARGETS
            .iter()
            .for_each(|target| println!("target {}", target.name));
        CANARIES
            .iter()
            .for_each(|target| println!("canary {}", target.name));
        std::process::exit(0);
    }
    fuzz::find(&name).unwrap_or_else(|| {
        eprintln!("FUZZ_TARGET is {name:?}, which is not a target; FUZZ_TARGET=list prints all");
        std::process::exit(2);
    })
});

fuzz_target!(
    init: {
        report_stack_overflow();
        LazyLock::force(&TARGET);
    },
    |input: &[u8]| (TARGET.run)(input)
);

/// Lets the crash handler run on a stack of its own. Without one, an input that exhausts the stack
/// would end the process before it is saved. libFuzzer keeps `SA_ONSTACK` if it is set.
#[expect(unsafe_code, reason = "signal stacks have no safe interface")]
fn report_stack_overflow() {
    let stack = vec![0u8; 1 << 20].leak();
    let description = libc::stack_t {
        ss_sp: stack.as_mut_ptr().cast(),
        ss_flags: 0,
        ss_size: stack.len(),
    };
    // SAFETY: the stack is writable and never freed. All zeros is a valid `sigaction`, the default
    // action; the old values are not requested.
    let refused = unsafe {
        let mut action: libc::sigaction = std::mem::zeroed();
        action.sa_flags = libc::SA_ONSTACK;
        libc::sigaltstack(&description, std::ptr::null_mut())
            | libc::sigaction(libc::SIGSEGV, &action, std::ptr::null_mut())
    };
    assert_eq!(refused, 0, "the system refused a signal stack");
}

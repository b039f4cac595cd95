//! Changes the inputs of the corpora at random, under the ordinary test runner, with no engine.

use std::fs;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::path::Path;

use traxtent_units::Rng;

/// The number of changed inputs for each target.
const RUNS: u64 = 300;
/// The seed of the changes.
const SEED: u64 = 1;
/// The largest number of changes to one input.
const CHANGES_MAX: u64 = 4;
/// The largest number of bytes that one change inserts or removes.
const BYTES_MAX: u64 = 16;
/// Bytes at the limits of numbers, and those that separate words.
const SPECIAL: &[u8] = b"\x00\x01\x7f\x80\xff 0-9,.=\n\"[";

/// Does every target return if stored inputs are changed at a few places?
#[test]
fn changed_inputs() {
    for target in fuzz::TARGETS {
        let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
            .join("corpus")
            .join(target.name);
        let mut paths: Vec<_> = fs::read_dir(&folder)
            .unwrap()
            .map(|entry| entry.unwrap().path())
            .collect();
        paths.sort();
        let inputs: Vec<Vec<u8>> = paths.iter().map(|path| fs::read(path).unwrap()).collect();
        let mut rng = Rng::new(SEED);
        for _ in 0..RUNS * testkit::repeats(1) {
            let mut input = pick(&mut rng, &inputs).clone();
            for _ in 0..=rng.below(CHANGES_MAX) {
                change(&mut rng, &mut input, &inputs);
            }
            let run = catch_unwind(AssertUnwindSafe(|| (target.run)(&input)));
            if let Err(panic) = run {
                eprintln!(
                    "{}, seed {SEED}: b\"{}\"",
                    target.name,
                    input.escape_ascii()
                );
                resume_unwind(panic);
            }
        }
    }
}

fn pick<'a, T>(rng: &mut Rng, all: &'a [T]) -> &'a T {
    &all[rng.below(all.len() as u64) as usize]
}

/// Changes an input at one place. `others` are inputs of which a part may be inserted.
fn change(rng: &mut Rng, input: &mut Vec<u8>, others: &[Vec<u8>]) {
    let at = rng.below(input.len() as u64 + 1) as usize;
    let end = (at + 1 + rng.below(BYTES_MAX) as usize).min(input.len());
    match rng.below(6) {
        0 if at < input.len() => input[at] ^= 1 << rng.below(8),
        1 if at < input.len() => input[at] = *pick(rng, SPECIAL),
        2 => drop(input.drain(at..end)),
        3 => input.truncate(at),
        4 => {
            let part = input[at..end].to_vec();
            input.splice(at..at, part);
        }
        _ => {
            let other = pick(rng, others);
            let from = rng.below(other.len() as u64 + 1) as usize;
            let until = (from + BYTES_MAX as usize).min(other.len());
            input.splice(at..at, other[from..until].iter().copied());
        }
    }
}

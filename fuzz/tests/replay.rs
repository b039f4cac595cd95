//! Replays the corpora under the ordinary test runner, with no engine.

use std::fs;
use std::path::Path;

fn corpus() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/corpus"))
}

/// Does every target return for every stored input and for the empty one, and does every target
/// have inputs?
#[test]
fn corpora_replay() {
    for target in fuzz::TARGETS {
        let folder = corpus().join(target.name);
        let mut inputs: Vec<_> = fs::read_dir(&folder)
            .unwrap_or_else(|error| panic!("{}: {error}", folder.display()))
            .map(|entry| entry.unwrap().path())
            .collect();
        inputs.sort();
        assert!(!inputs.is_empty(), "{} has no input", folder.display());
        for input in inputs {
            eprintln!("{}", input.display());
            (target.run)(&fs::read(input).unwrap());
        }
        (target.run)(b"");
    }
}

/// Does every directory of inputs and every dictionary belong to a target, so that a renamed target
/// leaves none behind?
#[test]
fn corpora_belong_to_targets() {
    for entry in fs::read_dir(corpus()).unwrap() {
        let path = entry.unwrap().path();
        let name = path.file_stem().and_then(|stem| stem.to_str()).unwrap();
        assert!(
            fuzz::TARGETS.iter().any(|target| target.name == name),
            "{} belongs to no target",
            path.display()
        );
    }
}

/// Does the canary's planted panic happen for its input?
#[test]
#[should_panic(expected = "the planted panic")]
fn canary_panics() {
    (fuzz::find("canary-panic").unwrap().run)(b"trax");
}

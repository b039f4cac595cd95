//! Running the command, and properties of all its verbs.

use std::path::Path;
use std::process::{Command, Stdio};

/// The result of a run.
pub(crate) struct Answer {
    pub(crate) status: i32,
    pub(crate) out: String,
    pub(crate) err: String,
}

/// Runs `traxtent` in a directory.
pub(crate) fn traxtent_in(folder: &Path, arguments: &[&str]) -> Answer {
    let output = Command::new(env!("CARGO_BIN_EXE_traxtent"))
        .args(arguments)
        .current_dir(folder)
        .stdin(Stdio::null())
        .output()
        .expect("the command runs");
    Answer {
        status: output.status.code().unwrap_or(-1),
        out: String::from_utf8(output.stdout).expect("the output is UTF-8"),
        err: String::from_utf8(output.stderr).expect("the output is UTF-8"),
    }
}

/// Runs `traxtent`.
pub(crate) fn traxtent(arguments: &[&str]) -> Answer {
    traxtent_in(Path::new("."), arguments)
}

/// Runs `traxtent`, which must succeed, and returns its output.
pub(crate) fn prints(arguments: &[&str]) -> String {
    let answer = traxtent(arguments);
    assert_eq!(
        answer.status,
        0,
        "traxtent {}: {}",
        arguments.join(" "),
        answer.err
    );
    answer.out
}

/// Runs `traxtent`, which must succeed, and returns its output as JSON.
pub(crate) fn json(arguments: &[&str]) -> serde_json::Value {
    serde_json::from_str(&prints(arguments)).expect("the output is JSON")
}

/// Do these verbs have help texts, and are completions and manual pages generated?
#[test]
fn help_completions_and_manual_pages() {
    for verb in [
        "check",
        "demo",
        "drives",
        "fault",
        "map",
        "plan",
        "probe",
        "serve",
        "sim",
        "validate",
        "volume",
        "completions",
    ] {
        assert!(
            prints(&[verb, "--help"]).contains("Usage: traxtent"),
            "{verb}"
        );
    }
    if cfg!(feature = "lab") {
        assert!(prints(&["lab", "--help"]).contains("Usage: traxtent"));
    }
    for shell in ["bash", "zsh", "fish"] {
        assert!(
            prints(&["completions", shell]).contains("validate"),
            "{shell}"
        );
    }
    assert!(prints(&["man"]).contains(".TH traxtent"));
    assert!(prints(&["man", "sim"]).contains("\\-\\-warmup"));
}

/// Does a build without the experiments name the feature that it lacks, whatever the arguments?
#[cfg(not(feature = "lab"))]
#[test]
fn without_the_lab() {
    assert!(!prints(&["--help"]).contains("lab"));
    for arguments in [
        &["lab"][..],
        &["lab", "--help"],
        &["lab", "run", "T2", "--json"],
    ] {
        let answer = traxtent(arguments);
        assert_eq!(answer.status, 2, "{arguments:?}");
        assert!(
            answer.err.contains("rebuild it with the feature `lab`"),
            "{arguments:?}: {}",
            answer.err
        );
    }
}

/// Does a usage error give status 2 and refer to `--help`?
#[test]
fn usage() {
    for arguments in [
        &["simulate"][..],
        &["sim"],
        &["sim", "atlas10k", "random", "--replay", "open"],
        &[],
    ] {
        let answer = traxtent(arguments);
        assert_eq!(answer.status, 2, "{arguments:?}");
        assert!(
            answer.err.contains("--help"),
            "{arguments:?}: {}",
            answer.err
        );
        assert!(answer.out.is_empty());
    }
}

/// Does the command succeed, without a message, if the reader closes the pipe?
#[test]
fn closed_pipe() {
    let mut child = Command::new(env!("CARGO_BIN_EXE_traxtent"))
        .args(["map", "atlas10k"])
        .stdout(Stdio::piped())
        .stderr(Stdio::piped())
        .spawn()
        .expect("the command runs");
    drop(child.stdout.take());
    let output = child.wait_with_output().expect("the command ends");
    assert_eq!(output.status.code(), Some(0));
    assert!(output.stderr.is_empty());
}

//! The machine, the compiler and the commit of a measurement.

use std::fs;

use crate::shell;

/// Returns the lines of [`unseeded_header`], and one with the seed.
pub(crate) fn header(seed: u64) -> String {
    format!("{}\n{:<7} {seed}", unseeded_header(), "seed")
}

/// Returns the processor, the number of cores, the kernel, the compiler and the commit, one per
/// line.
pub(crate) fn unseeded_header() -> String {
    let rustc = shell::output("rustc", ["--version"]).unwrap_or_else(|_| "unknown".to_owned());
    [
        ("cpu", cpu()),
        (
            "cores",
            std::thread::available_parallelism()
                .map_or("unknown".to_owned(), |cores| cores.to_string()),
        ),
        (
            "kernel",
            shell::output("uname", ["-sr"]).unwrap_or_else(|_| "unknown".to_owned()),
        ),
        ("rustc", rustc),
        ("commit", commit()),
    ]
    .map(|(key, value)| format!("{key:<7} {value}"))
    .join("\n")
}

/// Returns the processor and the number of cores, in one line.
pub(crate) fn name() -> String {
    let cores = std::thread::available_parallelism().map_or(0, |cores| cores.get());
    format!("{} ({cores} cores)", cpu())
}

/// Returns the commit that is checked out, with a mark if tracked files differ from it.
pub(crate) fn commit() -> String {
    let git = |arguments: &[&str]| shell::output("git", arguments);
    let Ok(commit) = git(&["rev-parse", "--short=12", "HEAD"]) else {
        return "unknown".to_owned();
    };
    match git(&["status", "--porcelain", "--untracked-files=no"]) {
        Ok(changes) if changes.is_empty() => commit,
        _ => format!("{commit} with changes"),
    }
}

fn cpu() -> String {
    let info = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = info
        .lines()
        .find_map(|line| line.strip_prefix("model name"));
    model
        .map_or("unknown", |line| line.trim_start_matches([' ', '\t', ':']))
        .to_owned()
}

//! Runs the commands of a page in one shell, as a reader would.

use std::env;
use std::fmt::Write as _;
use std::fs;
use std::os::unix::process::CommandExt;
use std::path::Path;
use std::process::{Command, Stdio};

use snapbox::{Assert, IntoData};

use super::page::{Page, Typed};

/// The tested command.
const TRAXTENT: &str = env!("CARGO_BIN_EXE_traxtent");

/// The directory of DiskSim's files in the reference data. Pages find it in `$DISKSIM`.
pub(crate) const DATA: &str = "disksim";

/// The seconds after which the commands of a page are killed, usually and in a soak.
const LIMITS_S: [&str; 2] = ["120", "3600"];

/// Begins a line between the outputs of two commands. No command prints it.
const MARK: &str = "\u{1}end of command ";

/// Runs the commands of a page in an empty folder, and returns each difference from the page, with
/// its line.
pub(crate) fn run(page: &Page, soak: bool) -> Vec<String> {
    let blocks = || page.blocks.iter().filter(|block| block.run.applies(soak));
    let mut script = String::new();
    for block in blocks() {
        script += &block.setup;
        for command in &block.commands {
            writeln!(script, "{}\nprintf '\\n{MARK}%s\\n' \"$?\"", command.text).unwrap();
        }
    }
    if script.is_empty() {
        return Vec::new();
    }
    let output = shell(&script, LIMITS_S[usize::from(soak)]);
    let mark = format!("\n{MARK}");
    let mut results = output.split(&mark);
    // Each part after the first begins with the status of the command before it.
    let mut printed = results.next().unwrap_or_default();
    let mut failures = Vec::new();
    for command in blocks().flat_map(|block| &block.commands) {
        let Some((status, rest)) = results.next().and_then(|part| part.split_once('\n')) else {
            let Typed { line, text, .. } = command;
            failures.push(format!("{line}: `{text}` did not end:\n{printed}"));
            break;
        };
        failures.extend(difference(command, status, printed));
        printed = rest;
    }
    failures
}

/// Runs a script in a new folder, and returns its standard output and standard error, in order.
/// Processes that it leaves behind are killed.
fn shell(script: &str, limit: &str) -> String {
    let folder = tempfile::tempdir().unwrap();
    let (home, work) = (folder.path().join("home"), folder.path().join("work"));
    fs::create_dir(&home).unwrap();
    fs::create_dir(&work).unwrap();
    let printed = folder.path().join("printed");
    let file = fs::File::create(&printed).unwrap();
    let mut paths = vec![Path::new(TRAXTENT).parent().unwrap().to_owned()];
    paths.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    paths.extend(["/usr/sbin", "/sbin"].map(Into::into));
    let mut timeout = Command::new("timeout");
    timeout
        .args(["--kill-after=5", limit, "sh", "-c", script])
        .current_dir(&work)
        .env("HOME", home)
        .env("PATH", env::join_paths(paths).unwrap())
        .env("LC_ALL", "C.UTF-8")
        .env_remove("TRAXTENT_SOAK")
        .stdin(Stdio::null())
        .stdout(file.try_clone().unwrap())
        .stderr(file)
        .process_group(0);
    if let Some(data) = testkit::shared_data(DATA) {
        timeout.env("DISKSIM", data.canonicalize().unwrap());
    }
    let mut child = timeout.spawn().unwrap();
    let group = child.id();
    child.wait().unwrap();
    // `kill` fails if no process is left.
    let _ = Command::new("kill")
        .args(["-KILL", "--", &format!("-{group}")])
        .stderr(Stdio::null())
        .status();
    String::from_utf8_lossy(&fs::read(&printed).unwrap()).into_owned()
}

/// Returns the difference between a command's result and the page.
fn difference(command: &Typed, status: &str, printed: &str) -> Option<String> {
    let Typed { line, text, .. } = command;
    if status != command.status.to_string() {
        let expected = command.status;
        return Some(format!(
            "{line}: `{text}` ends with status {status}, not {expected}:\n{printed}"
        ));
    }
    if command.output.is_empty() {
        return None;
    }
    let expected: Vec<String> = command
        .output
        .iter()
        .map(|line| match line.trim() {
            "…" => "...".to_owned(),
            _ => line.trim_end().replace('…', "[..]"),
        })
        .collect();
    // A slow machine shows progress that the page does not.
    let is_progress = |line: &&str| line.starts_with("traxtent: note: ") && line.ends_with(" left");
    let lines = printed.trim_end().lines().map(str::trim_end);
    let actual: Vec<&str> = lines.filter(|line| !is_progress(line)).collect();
    let result = Assert::new().try_eq(
        None,
        actual.join("\n").into_data(),
        expected.join("\n").into_data(),
    );
    let error = result.err()?;
    Some(format!("{line}: `{text}` prints something else:\n{error}"))
}

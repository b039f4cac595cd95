//! Does the example of faults in the guide for CI work as described?

use std::env;
use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::server::TRAXTENT;

/// Does the script on faults in `docs/guides/ci.md`, run as printed, end with status 0?
#[test]
fn the_faults_of_the_guide_for_ci() {
    testkit::tool!("qemu-io");
    let guide = fs::read_to_string(testkit::workspace().join("docs/guides/ci.md")).unwrap();
    let section = guide.split("## Faults\n").nth(1).unwrap();
    let folder = TempDir::new().unwrap();
    let output = shell(block(section, "sh"), folder.path()).output().unwrap();
    assert!(
        output.status.success(),
        "{}{}",
        String::from_utf8_lossy(&output.stdout),
        String::from_utf8_lossy(&output.stderr)
    );
}

/// Returns the first fenced block in a language.
fn block<'a>(text: &'a str, language: &str) -> &'a str {
    let begin = text.split(&format!("```{language}\n")).nth(1);
    let block = begin.and_then(|rest| rest.split("```").next());
    block.unwrap_or_else(|| panic!("there is no block of {language}"))
}

/// A shell that runs `script` in `folder` and finds the tested command in its path.
fn shell(script: &str, folder: &Path) -> Command {
    let mut paths = vec![Path::new(TRAXTENT).parent().unwrap().to_owned()];
    paths.extend(env::split_paths(&env::var_os("PATH").unwrap_or_default()));
    let mut shell = Command::new("sh");
    shell
        .args(["-c", script])
        .current_dir(folder)
        .env("PATH", env::join_paths(paths).unwrap());
    shell
}

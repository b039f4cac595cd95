//! The README's commands, and the file for pkg-config.

use std::fs;
use std::process::Command;

use testkit::{tool, workspace};

use crate::program::{crate_path, library_folder, run};

/// Returns the blocks of shell in a text.
fn blocks(text: &str) -> Vec<String> {
    text.split("```sh\n")
        .skip(1)
        .filter_map(|rest| Some(rest.split_once("```")?.0.to_owned()))
        .collect()
}

/// Do the commands install the library where pkg-config finds it, and link a program with the
/// shared and with the static library? Does the program with the static library run after the
/// installed files have been removed?
#[test]
fn commands_of_the_readme_work() {
    let (_, _) = (tool!("cc"), tool!("pkg-config"));
    let home = tempfile::tempdir().unwrap();
    fs::copy(
        crate_path("examples/powercut.c"),
        home.path().join("powercut.c"),
    )
    .unwrap();
    let readme = fs::read_to_string(crate_path("README.md")).unwrap();
    let [install, shared, linked_statically] = &blocks(&readme)[..] else {
        panic!("the README must have three blocks of shell: install, and link in two ways");
    };
    let build = "cargo build --release -p traxtent-c\n";
    assert!(install.contains(build));
    // The library has been built for this test.
    let install = install
        .replace(build, "")
        .replace("target/release", &library_folder().display().to_string());
    let shell = |folder, script: &str| {
        let mut shell = Command::new("sh");
        shell.args(["-e", "-c", script]).current_dir(folder);
        shell.env("HOME", home.path());
        run(shell.env("PREFIX", home.path().join(".local")), "")
    };
    shell(workspace(), &install);
    for script in [shared, linked_statically] {
        let printed = shell(home.path(), script);
        assert!(
            printed.starts_with("all there; a flush takes "),
            "{printed}"
        );
    }
    // The program that was linked last does not need the shared library.
    fs::remove_dir_all(home.path().join(".local")).unwrap();
    shell(home.path(), "./powercut");
}

/// Does the file for pkg-config name the library's version?
#[test]
fn versions_agree() {
    let text = fs::read_to_string(crate_path("traxtent.pc")).unwrap();
    let version = text.lines().find_map(|line| line.strip_prefix("Version: "));
    assert_eq!(version, Some(env!("CARGO_PKG_VERSION")));
}

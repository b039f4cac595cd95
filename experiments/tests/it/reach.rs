//! Tests that published numbers are only in this crate, where no measurement can use them.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// The crates that measure.
const MEASURING: [&str; 13] = [
    "traxtent-units",
    "traxtent-model",
    "traxtent-workload",
    "traxtent-disksim",
    "traxtent-map",
    "traxtent-scsi",
    "traxtent-probe",
    "traxtent-layout",
    "traxtent-volume",
    "traxtent-sim",
    "traxtent-io",
    "traxtent-server",
    "traxtent-lab",
];

/// Do the crates that measure have no dependency on this one: direct, transitive or for tests?
#[test]
fn measuring_crates_do_not_depend_on_this_one() {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args([
            "metadata",
            "--format-version",
            "1",
            "--offline",
            "--no-deps",
        ])
        .current_dir(testkit::workspace())
        .output()
        .expect("cargo runs");
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    let metadata: Value = serde_json::from_slice(&output.stdout).unwrap();
    let packages = metadata["packages"].as_array().unwrap();
    // Normal, build and development dependencies.
    let dependencies_of = |name: &str| -> Vec<String> {
        let package = packages.iter().find(|package| package["name"] == name);
        let dependencies = package.map(|package| package["dependencies"].as_array().unwrap());
        let names = dependencies
            .into_iter()
            .flatten()
            .map(|dependency| &dependency["name"]);
        names
            .map(|name| name.as_str().unwrap().to_owned())
            .collect()
    };
    assert!(dependencies_of("traxtent-experiments").contains(&"traxtent-lab".to_owned()));
    let mut reached: Vec<String> = MEASURING.map(str::to_owned).to_vec();
    let mut next = 0;
    while let Some(name) = reached.get(next).cloned() {
        let new: Vec<String> = dependencies_of(&name)
            .into_iter()
            .filter(|name| !reached.contains(name))
            .collect();
        reached.extend(new);
        next += 1;
    }
    assert!(reached.len() > 10, "{reached:?}");
    assert!(
        !reached.contains(&"traxtent-experiments".to_owned()),
        "{reached:?}"
    );
}

/// Do the sources of the measuring crates mention neither claims nor this crate and its files?
#[test]
fn measuring_crates_mention_no_claims() {
    let mut files = Vec::new();
    for package in MEASURING {
        let folder = testkit::workspace().join(format!("crates/{package}/src"));
        collect(&folder, &mut files);
    }
    assert!(files.len() > 100);
    for path in files {
        let text = fs::read_to_string(&path).unwrap();
        for word in [
            "Claim",
            "experiment.toml",
            "experiments/",
            "traxtent_experiments",
        ] {
            assert!(!text.contains(word), "{}: {word}", path.display());
        }
    }
}

fn collect(folder: &Path, files: &mut Vec<std::path::PathBuf>) {
    for entry in fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.is_dir() {
            collect(&path, files);
        } else if path.extension().is_some_and(|ending| ending == "rs") {
            files.push(path);
        }
    }
}

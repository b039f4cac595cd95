//! The drives and the time limit of the table of probes.

use std::sync::Arc;
use std::time::Duration;

use traxtent_lab::probe_table::{Method, TOO_LONG, measure, subjects};
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::builtin;

/// Is every built-in drive listed, and each of them except `instant` with its profile? If there is
/// no directory of DiskSim files, is this the reason given for their absence?
#[test]
fn all_built_in_drives_are_listed() {
    let drives = subjects(None);
    for name in builtin::names() {
        let drive = drives.iter().find(|drive| drive.name == name).unwrap();
        assert_eq!(drive.profile.is_err(), name == "instant", "{name}");
    }
    let absent = drives.last().unwrap().profile.as_ref().unwrap_err();
    assert!(absent.contains("no directory"), "{absent}");
}

/// Does every DiskSim specification give a drive that can be built, with a unique name?
#[test]
fn disksims_drives_are_listed() {
    let folder = testkit::shared_data!("disksim");
    let drives = subjects(Some(&folder));
    let mut names: Vec<&str> = drives.iter().map(|drive| drive.name.as_str()).collect();
    names.sort_unstable();
    assert!(names.windows(2).all(|pair| pair[0] != pair[1]), "{names:?}");
    let theirs = drives
        .iter()
        .filter(|drive| drive.name.starts_with("disksim:"));
    let mut count = 0;
    for drive in theirs {
        let profile = drive
            .profile
            .as_ref()
            .unwrap_or_else(|error| panic!("{}: {error}", drive.name));
        Geometry::build(&profile.geometry)
            .unwrap_or_else(|error| panic!("{}: {error}", drive.name));
        count += 1;
    }
    assert!(count >= 12, "{names:?}");
    for name in ["disksim:maxtor300g", "disksim:wd4tb", "disksim:atlas10k"] {
        assert!(names.contains(&name), "{name} is not among {names:?}");
    }
}

/// Does the table's time limit stop a probe, and is the result then not exact?
#[test]
fn the_time_limit_stops_a_probe() {
    let profile = Arc::new(builtin("atlas10k").unwrap());
    let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
    let walk = Method::ALL
        .into_iter()
        .find(|method| method.name() == "walk")
        .unwrap();
    let stopped = measure(&profile, &geometry, walk, Duration::ZERO, |_| ());
    let failure = stopped.findings.failure.as_deref().unwrap();
    assert!(failure.contains(TOO_LONG), "{failure}");
    assert!(
        !stopped.is_exact() && stopped.covered < 0.5,
        "{}",
        stopped.covered
    );
}

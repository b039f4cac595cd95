//! `traxtent drives`.

use super::command::{json, prints, traxtent};

/// Does the list have every built-in drive once, and is the provenance of all values counted?
#[test]
fn list() {
    let list = json(&["drives", "--json"]);
    let names: Vec<&str> = traxtent_model::profile::builtin::names().collect();
    let listed: Vec<&str> = list
        .as_array()
        .unwrap()
        .iter()
        .map(|d| d["name"].as_str().unwrap())
        .collect();
    assert_eq!(listed, names);
    for drive in list.as_array().unwrap() {
        let figures = drive["figures"].as_object().unwrap();
        let all: u64 = figures.values().map(|count| count.as_u64().unwrap()).sum();
        let profile = traxtent_model::profile::builtin(drive["name"].as_str().unwrap()).unwrap();
        assert_eq!(all, profile.value_paths().len() as u64, "{drive}");
    }
    assert_eq!(prints(&["drives"]).lines().count(), names.len() + 1);
}

/// Does `show` print a profile that parses to the built-in drive?
#[test]
fn show() {
    let text = prints(&["drives", "show", "atlas10k"]);
    let read = traxtent_model::profile::Profile::from_toml(&text).unwrap();
    assert_eq!(Some(read), traxtent_model::profile::builtin("atlas10k"));
    assert_eq!(
        json(&["drives", "show", "atlas10k", "--json"])["profile"]["name"],
        "atlas10k"
    );
}

/// Is the nearest name suggested for a mistyped one?
#[test]
fn suggests() {
    for (typed, meant) in [
        ("atlas10k3", "atlas10k"),
        ("Atlas10K2", "atlas10k2"),
        ("toshiba_x300", "toshiba-x300"),
    ] {
        let answer = traxtent(&["drives", "show", typed]);
        assert_eq!(answer.status, 2);
        assert!(
            answer.err.contains(&format!("did you mean {meant}")),
            "{}",
            answer.err
        );
    }
    assert!(
        traxtent(&["drives", "show", "zzz"])
            .err
            .contains("`traxtent drives`")
    );
}

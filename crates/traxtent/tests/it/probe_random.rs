//! `traxtent probe` on random drives, which the experiments draw.

use std::fs;

use traxtent_lab::blind::{RandomDrive, Trial, random_drive, run_trial};
use traxtent_probe::{Algorithm, Verify};

use super::command::traxtent_in;

/// If a sample of an irregular drive's boundaries leaves some untested, is this reported with the
/// option that tests all, and with exit status 1? Is nothing doubtful if all are tested?
#[test]
fn doubtful_boundaries() {
    let sample = Trial::new(Algorithm::Angle, Verify::Sample);
    let is_doubtful =
        |drive: &RandomDrive| drive.verifies && run_trial(drive, &sample).findings.doubtful > 0;
    let drive = (0..400)
        .map(random_drive)
        .find(is_doubtful)
        .expect("some drive is doubtful");
    let folder = tempfile::tempdir().unwrap();
    fs::write(folder.path().join("a.toml"), drive.profile.to_toml()).unwrap();
    let run = |verify: &str| {
        let options = [
            "probe",
            "a.toml",
            "--algorithm",
            "angle",
            "--tracks-only",
            "--json",
            "--verify",
            verify,
        ];
        traxtent_in(folder.path(), &options)
    };
    let answer = run("sample");
    assert_eq!(answer.status, 1, "seed {}: {}", drive.seed, answer.err);
    assert!(
        answer
            .err
            .contains("boundaries are predicted, not tested; use --verify full to test all"),
        "{}",
        answer.err
    );
    let object: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert!(object["doubtful"].as_u64() > Some(0), "{object}");
    let notes = object["notes"].to_string();
    assert!(notes.contains("boundaries are predicted but not tested, although the tracks of this drive are irregular; --verify full tests all boundaries"), "{notes}");
    let answer = run("full");
    assert_eq!(answer.status, 0, "seed {}: {}", drive.seed, answer.err);
    let object: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
    assert_eq!(object["doubtful"], 0);
}

/// Are all remapped sectors counted, by translation and by timing?
#[test]
fn remapped_sectors_are_counted() {
    let folder = tempfile::tempdir().unwrap();
    let has_moved = |drive: &RandomDrive| drive.verifies && !drive.remapped_lbns().is_empty();
    let drive = (0..100)
        .map(random_drive)
        .find(has_moved)
        .expect("some drive has remapped sectors");
    fs::write(folder.path().join("a.toml"), drive.profile.to_toml()).unwrap();
    for algorithm in ["tree", "angle --verify full"] {
        let options = format!("probe a.toml --tracks-only --json --algorithm {algorithm}");
        let options: Vec<&str> = options.split(' ').collect();
        let answer = traxtent_in(folder.path(), &options);
        assert_eq!(answer.status, 0, "seed {}: {}", drive.seed, answer.err);
        let object: serde_json::Value = serde_json::from_str(&answer.out).unwrap();
        assert_eq!(
            object["moved"],
            drive.remapped_lbns().len(),
            "{algorithm}, seed {}",
            drive.seed
        );
    }
}

//! `traxtent map`.

use std::fs;
use std::io::Read;

use testkit::shared_data;

use super::command::{json, prints, traxtent};

/// Is the list of tracks that of DiskSim's own layout code, to the byte, for every layout there is?
#[test]
fn csv_equals_disksim() {
    let data = shared_data!("disksim");
    for name in [
        "atlas10k", "atlas_III", "barracuda", "cheetah4LP", "cheetah9LP", "hp_c2247a_validate",
        "hp_c2249a", "hp_c3323a_validate", "ibm18es", "maxtor300g",
    ] {
        let folder = if name == "maxtor300g" { data.join(name) } else { data.clone() };
        let model = format!("disksim:{}", folder.join(format!("{name}.model")).display());
        let packed = fs::File::open(data.join(format!("tracks/{name}.csv.gz"))).unwrap();
        let mut expected = String::new();
        flate2::read::GzDecoder::new(packed).read_to_string(&mut expected).unwrap();
        assert!(prints(&["map", &model, "--format", "csv"]) == expected, "{name} differs");
    }
}

/// Do the three forms tell the same tracks?
#[test]
fn forms_agree() {
    let csv = prints(&["map", "hp-c2247", "--format", "csv"]);
    let text = prints(&["map", "hp-c2247"]);
    let tracks = json(&["map", "hp-c2247", "--json"]);
    let tracks = tracks["tracks"].as_array().unwrap();
    assert_eq!(csv.lines().count() - 1, tracks.len());
    assert_eq!(text.lines().count() - 2, tracks.len());
    for (line, track) in csv.lines().skip(1).zip(tracks) {
        let fields = ["first_lbn", "sectors", "cylinder", "head"].map(|key| track[key].to_string());
        assert_eq!(line, fields.join(","));
    }
}

/// Is the track of an LBN found on both sides of a boundary, and an LBN beyond the end refused?
#[test]
fn one_lbn() {
    let track = |lbn: &str| json(&["map", "atlas10k2", "--json", "--lbn", lbn])["track"].clone();
    assert_eq!((track("527"), track("528")), (0.into(), 1.into()));
    let answer = traxtent(&["map", "atlas10k2", "--lbn", "99999999999"]);
    assert_eq!(answer.status, 2);
    assert!(answer.err.contains("atlas10k2 ends at LBN"), "{}", answer.err);
}

/// Is a track map read back, packed or not, without the columns it lacks?
#[test]
fn reads_its_own() {
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("map.csv");
    fs::write(&file, "first_lbn,sectors,cylinder,head\n0,200,0,0\n200,199,0,1\n").unwrap();
    let path = file.to_str().unwrap();
    assert_eq!(prints(&["map", path, "--format", "csv"]), "first_lbn,sectors\n0,200\n200,199\n");
    let track = json(&["map", path, "--json", "--lbn", "398"]);
    assert_eq!((&track["track"], track.get("cylinder")), (&1.into(), None));

    fs::write(&file, "first_lbn,sectors\n0,200\n201,199\n").unwrap();
    let answer = traxtent(&["map", path]);
    assert_eq!(answer.status, 2);
    assert!(answer.err.contains("map.csv:3: first_lbn: 201"), "{}", answer.err);
}

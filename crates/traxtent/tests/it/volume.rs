//! `traxtent volume` on files: its life, and what it refuses.

use std::fs::{self, File};
use std::path::Path;

use tempfile::TempDir;

use crate::command::{Answer, traxtent_in};

fn files(folder: &Path, names: &[&str]) {
    for name in names {
        File::create(folder.join(name))
            .unwrap()
            .set_len(8 << 20)
            .unwrap();
    }
}

fn volume(folder: &Path, line: &str) -> Answer {
    let arguments: Vec<&str> = ["volume"]
        .into_iter()
        .chain(line.split_whitespace())
        .collect();
    traxtent_in(folder, &arguments)
}

fn good(folder: &Path, line: &str) -> serde_json::Value {
    let answer = volume(folder, line);
    assert_eq!(answer.status, 0, "{line}: {}", answer.err);
    serde_json::from_str(&answer.out).unwrap_or_default()
}

/// Is a volume made, scrubbed, broken, repaired and taken apart as its help says?
#[test]
fn a_life() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "d"]);
    let made = good(
        at,
        "create --level raid-5 --chunk 64K --journal 2M --json a b c",
    );
    assert_eq!(made["level"], "raid-5");
    let bytes = made["bytes"].as_u64().unwrap();
    assert!(bytes > 11 << 20 && bytes.is_multiple_of(4096), "{bytes}");
    assert_eq!(good(at, "scrub --json a b c")["wrong_rows"], 0);
    assert_eq!(
        good(at, "status --json c a b")["members"][1]["state"],
        "active"
    );
    good(at, "fail 1 a b c");
    let stale = volume(at, "assemble a b c");
    assert_eq!(stale.status, 2);
    assert!(
        stale.err.contains("/b: stale") || stale.err.contains("b: stale"),
        "{}",
        stale.err
    );
    assert_eq!(volume(at, "status a c").status, 1);
    good(at, "replace 1 --with d a c");
    let done = good(at, "rebuild --json a c d");
    assert_eq!(done["rebuilt"], done["stripes"]);
    assert_eq!(good(at, "scrub --json a c d")["wrong_rows"], 0);
    assert_eq!(good(at, "status --json a c d")["members"][1]["path"], "d");
    // What lies flipped on a member is found, and made right.
    let mut image = fs::read(at.join("a")).unwrap();
    let middle = image.len() / 2;
    image[middle] ^= 1;
    fs::write(at.join("a"), image).unwrap();
    let scrubbed = volume(at, "scrub a c d");
    assert_eq!(scrubbed.status, 1, "{}", scrubbed.out);
    assert_eq!(good(at, "scrub --json a c d")["wrong_rows"], 0);
    assert_eq!(volume(at, "destroy a c d").status, 2);
    good(at, "destroy --force a c d");
    assert_eq!(volume(at, "status a c d").status, 2);
}

/// Is each kind of wrong member refused with its reason, and nothing written then?
#[test]
fn refusals() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    files(at, &["a", "b", "c", "x", "y"]);
    File::create(at.join("small"))
        .unwrap()
        .set_len(1 << 20)
        .unwrap();
    let mut swap = vec![0; 8 << 20];
    swap[4086..4096].copy_from_slice(b"SWAPSPACE2");
    swap[1024] = 1;
    swap[1028..1030].copy_from_slice(&2047u16.to_le_bytes());
    fs::write(at.join("swap"), &swap).unwrap();
    let before = fs::read(at.join("a")).unwrap();
    for (line, says) in [
        ("create --level raid-5 --chunk 64K --journal 2M a b", "2"),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b small",
            "too few",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 64K a b c",
            "journal",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b a",
            "given twice",
        ),
        (
            "create --level raid-5 --chunk 64K --journal 2M a b ./b",
            "given twice",
        ),
        (
            "create --level raid-1 --chunk 64K --journal 2M a swap",
            "swap",
        ),
        ("create --level raid-5 --chunk 1000 a b c", "multiple of 4K"),
        (
            "create --level raid-6 --chunk 64K a b c",
            "raid-0, raid-1, raid-4 or raid-5",
        ),
        ("create --level raid-5 a b c", "--map"),
        (
            "create --level raid-1 --chunk 64K a .",
            "neither a file nor a block device",
        ),
        ("create --level raid-1 --chunk 64K a nothing", "nothing"),
        ("status a", "no superblock"),
    ] {
        let answer = volume(at, line);
        assert!(
            answer.status >= 2 && answer.err.contains(says),
            "{line}: {} {}",
            answer.status,
            answer.err
        );
        assert!(fs::read(at.join("a")).unwrap() == before, "{line} wrote");
    }
    good(at, "create --level raid-1 --chunk 64K --journal 2M a b");
    good(at, "create --level raid-1 --chunk 64K --journal 2M x y");
    for (line, says) in [
        (
            "create --level raid-1 --chunk 64K --journal 2M a c",
            "member 0 of volume",
        ),
        ("assemble a x", "belongs to volume"),
        ("assemble a", "member 1 is missing"),
        ("fail 7 a b", "no member 7"),
        ("replace 1 --with c a b", "has not failed"),
    ] {
        let answer = volume(at, line);
        assert!(
            answer.status >= 2 && answer.err.contains(says),
            "{line}: {} {}",
            answer.status,
            answer.err
        );
    }
    good(
        at,
        "create --level raid-1 --chunk 64K --journal 2M --force a c",
    );
}

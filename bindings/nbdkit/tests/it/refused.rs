//! Is what is wrong with the plugin's keys said, with the key's name?

use std::fs;

use tempfile::TempDir;

use crate::nbdkit::{Server, command, key, small};

/// What nbdkit says when it does not start.
fn refusal(keys: &[String]) -> String {
    // It would serve on its standard input if it took the keys.
    let output = command(keys).arg("--single").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{keys:?} are taken: {said}");
    said
}

/// Unknown keys and drives, values that are none, files and scenarios that do not fit.
#[test]
fn keys() {
    let _ = testkit::tool!("nbdkit");
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let drive = key("drive", small(folder.path(), 512, 512));
    fs::write(path("short.img"), [0; 1000]).unwrap();
    fs::write(
        path("melt"),
        "faults = [{ at = \"1 s\", fault = \"melt\" }]",
    )
    .unwrap();
    let beyond = "faults = [{ at = \"1 s\", fault = \"latent-error\", lbn = 99999999 }]";
    fs::write(path("beyond"), beyond).unwrap();
    for (keys, what) in [
        (vec![], "drive= is missing"),
        (vec![key("drive", "atlas")], "drive=atlas"),
        (
            vec![drive.clone(), key("sped", 2)],
            "\"sped\"; known are drive, file, speed",
        ),
        (vec![drive.clone(), key("speed", "fast")], "speed=fast"),
        (vec![drive.clone(), key("seed", "x")], "seed=x"),
        (
            vec![drive.clone(), key("file", path("short.img"))],
            "1000 bytes, the drive 67108864",
        ),
        (
            vec![drive.clone(), key("file", folder.path().display())],
            "file=",
        ),
        (vec![drive.clone(), key("log", path("no/log"))], "log="),
        (
            vec![drive.clone(), key("scenario", path("none"))],
            "scenario=",
        ),
        (
            vec![drive.clone(), key("scenario", path("melt"))],
            "\"melt\"",
        ),
        (
            vec![drive.clone(), key("scenario", path("beyond"))],
            "the drive ends",
        ),
    ] {
        let said = refusal(&keys);
        assert!(said.contains(what), "{keys:?}: {said}");
    }
}

/// Is a file that one server has open refused to a second?
#[test]
fn second_server() {
    let _ = testkit::tool!("nbdkit");
    let folder = TempDir::new().unwrap();
    let keys = [
        key("drive", small(folder.path(), 512, 512)),
        key("file", folder.path().join("disk.img").display()),
    ];
    let server = Server::start(&keys);
    let said = refusal(&keys);
    assert!(said.contains("another server holds it"), "{said}");
    assert!(server.socket().exists());
}

//! Files read in whole tracks.

use std::fs;
use std::io::Write as _;
use std::process::Command;

use testkit::mount::MountedExt4;
use testkit::tool;

use crate::program::Program;

/// Does the example print the file, with about one request for each track? Does it say why a file,
/// or a map, cannot be used?
#[test]
fn tracks_are_read() {
    let program = Program::compile(&tool!("cc"), "examples/tracks.c");
    let home = tempfile::tempdir().unwrap();
    let mounted = match MountedExt4::new(home.path(), 32, 4096) {
        Ok(mounted) => mounted,
        Err(why) => testkit::skip!("no ext4 can be mounted: {why}"),
    };
    let map = home.path().join("tracks.csv");
    let mut list = fs::File::create(&map).unwrap();
    writeln!(list, "first_lbn,sectors").unwrap();
    for track in 0..128 {
        writeln!(list, "{},512", track * 512).unwrap();
    }
    let path = mounted.folder().join("file");
    let data: Vec<u8> = (0..3_000_000_u32).map(|at| (at / 7) as u8).collect();
    fs::write(&path, &data).unwrap();
    let run = |path: &std::path::Path, map: &std::path::Path| {
        let mut command = Command::new(program.path());
        let output = command.arg(path).arg(map).output().unwrap();
        let errors = String::from_utf8(output.stderr).unwrap();
        (output.status.code(), output.stdout, errors)
    };
    let (status, printed, errors) = run(&path, &map);
    assert_eq!(
        (status, errors.contains(" requests")),
        (Some(0), true),
        "{errors}"
    );
    assert!(printed == data, "other bytes");
    // 3,000,000 bytes are on at least 12 tracks of 256 KiB.
    let requests: u64 = errors.split(' ').next().unwrap().parse().unwrap();
    assert!((12..20).contains(&requests), "{errors}");

    let (status, _, errors) = run(&mounted.folder().join("none"), &map);
    assert_eq!(status, Some(1));
    assert!(errors.contains("none: cannot find its device"), "{errors}");
    let (status, _, errors) = run(&path, &home.path().join("ext4.img"));
    assert_eq!(status, Some(1));
    assert!(
        errors.starts_with(home.path().to_str().unwrap()),
        "{errors}"
    );
}

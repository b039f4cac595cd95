//! Do common programs get their data back, from drives of every sector size?

use std::fs;

use tempfile::TempDir;
use traxtent_units::Rng;

use crate::client::Client;
use crate::server::{Server, argument, option, run, small};

const MIB: usize = 1 << 20;

/// The three kinds of drives: logical and physical sector sizes, in bytes.
const KINDS: [(u32, u32); 3] = [(512, 512), (512, 4096), (4096, 4096)];

/// Are the sector sizes, the capacity and the flags of an export reported to clients?
#[test]
fn properties_of_an_export() {
    let nbdinfo = testkit::tool!("nbdinfo");
    for (logical, physical) in KINDS {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&[argument(small(folder.path(), logical, physical))]);
        let output = run(&nbdinfo, &["--json", &server.uri()]);
        let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
        let export = &json["exports"][0];
        assert_eq!(export["block_size_minimum"], logical);
        assert_eq!(export["block_size_preferred"], physical);
        assert_eq!(export["export-size"], 64 * MIB);
        for yes in ["can_flush", "can_fua", "can_zero", "can_multi_conn"] {
            assert_eq!(export[yes], true, "{yes}");
        }
        // The drive has no mechanics.
        assert_eq!(export["is_rotational"], false);
    }
}

/// Is a drive with mechanics offered as rotating?
#[test]
fn a_drive_with_mechanics_rotates() {
    let nbdinfo = testkit::tool!("nbdinfo");
    let server = Server::start(&["atlas10k2".to_owned()]);
    let output = run(&nbdinfo, &["--json", &server.uri()]);
    let json: serde_json::Value = serde_json::from_slice(&output.stdout).unwrap();
    assert_eq!(json["exports"][0]["is_rotational"], true);
}

/// Does fio read back what it wrote, at random, with several requests outstanding?
#[test]
fn fio_verifies() {
    let fio = testkit::tool!("fio");
    for (logical, physical) in KINDS {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&[argument(small(folder.path(), logical, physical))]);
        let size = format!("--size={}m", testkit::repeats(8).min(64));
        run(
            &fio,
            &[
                "--name=verify",
                "--ioengine=nbd",
                &format!("--uri={}", server.uri()),
                "--rw=randwrite",
                &format!("--bsrange={logical}-65536"),
                &format!("--blockalign={logical}"),
                &size,
                "--iodepth=16",
                "--verify=crc32c",
                "--verify_state_save=0",
                "--verify_fatal=1",
                "--verify_backlog=64",
                "--fsync=100",
                // fio leaves a file there.
                &format!("--aux-path={}", folder.path().display()),
            ],
        );
    }
}

/// Are images copied in both directions by nbdcopy, on several connections, and by qemu-img? Does
/// the drive's file hold the last one?
#[test]
fn copies() {
    let (nbdcopy, qemu_img) = (testkit::tool!("nbdcopy"), testkit::tool!("qemu-img"));
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let mut rng = Rng::new(4);
    let mut image: Vec<u8> = (0..16 * MIB / 8)
        .flat_map(|_| rng.bits().to_le_bytes())
        .collect();
    image[4 * MIB..8 * MIB].fill(0);
    image.resize(64 * MIB, 0);
    fs::write(path("image"), &image).unwrap();
    let data = path("data.img");
    let keys = [
        argument(small(folder.path(), 512, 4096)),
        option("file", &data),
    ];
    let server = Server::start(&keys);
    let uri = server.uri();
    run(&nbdcopy, &["--flush", &path("image"), &uri]);
    run(&nbdcopy, &[&uri, &path("back")]);
    assert!(fs::read(path("back")).unwrap() == image);
    run(
        &qemu_img,
        &["compare", "-f", "raw", "-F", "raw", &path("image"), &uri],
    );
    // Overwrites the data with another program and in another order.
    image.rotate_left(MIB / 2);
    fs::write(path("image"), &image).unwrap();
    run(
        &qemu_img,
        &[
            "convert",
            "-n",
            "-W",
            "-f",
            "raw",
            "-O",
            "raw",
            &path("image"),
            &uri,
        ],
    );
    run(
        &qemu_img,
        &["convert", "-f", "raw", "-O", "raw", &uri, &path("again")],
    );
    assert!(fs::read(path("again")).unwrap() == image);
    drop(server);
    assert!(fs::read(data).unwrap() == image, "the file holds the data");
}

/// Does a sector written at a random place of a drive in memory take little more than one page of
/// the host's memory?
#[test]
fn random_sectors_take_little_more_than_a_page() {
    const WRITES: u64 = 20_000;
    let server = Server::start(&[argument("instant"), option("transport", "off")]);
    let resident = || {
        let status = fs::read_to_string(format!("/proc/{}/status", server.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kib: u64 = line.unwrap().trim_end_matches("kB").trim().parse().unwrap();
        kib << 10
    };
    let mut client = Client::new(&server);
    client.write(0, &[1; 512]).unwrap().unwrap();
    let (before, mut rng) = (resident(), Rng::new(1));
    for _ in 0..WRITES {
        let sector = rng.below((64 << 30) / 512);
        client.write(sector * 512, &[1; 512]).unwrap().unwrap();
    }
    let each = (resident() - before) / WRITES;
    eprintln!("{each} bytes per write");
    assert!(each < 6 << 10, "{each} bytes per write");
}

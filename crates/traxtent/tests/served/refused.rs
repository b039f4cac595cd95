//! Does `serve` refuse invalid arguments and files that are in use? Does a server return the right
//! errors for requests that it cannot serve, and for a full disk?

use std::fs;
use std::path::Path;
use std::process::Command;

use tempfile::TempDir;

use crate::attach::{Loop, Mount};
use crate::client::{Client, EINVAL, ENOSPC};
use crate::receipt;
use crate::server::{Server, TRAXTENT, argument, option, run, small, write};

/// Returns the message of a server that refuses to start.
fn refusal(arguments: &[String]) -> String {
    // If the arguments were accepted, the server would run until `true` ended, and then succeed.
    let output = Command::new(TRAXTENT)
        .arg("serve")
        .args(arguments)
        .args(["--", "true"])
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(
        !output.status.success(),
        "{arguments:?} were accepted: {said}"
    );
    said
}

/// Are a missing drive, unknown options and drives, invalid values, and unsuitable files and
/// scenarios refused?
#[test]
fn arguments() {
    let folder = TempDir::new().unwrap();
    let path = |name: &str| folder.path().join(name).display().to_string();
    let drive = argument(small(folder.path(), 512, 512));
    fs::write(path("short.img"), [0; 1000]).unwrap();
    fs::write(
        path("melt"),
        "faults = [{ at = \"1 s\", fault = \"melt\" }]",
    )
    .unwrap();
    let beyond = "faults = [{ at = \"1 s\", fault = \"latent-error\", lbn = 99999999 }]";
    fs::write(path("beyond"), beyond).unwrap();
    for (keys, what) in [
        (vec![], "<[NAME=]DRIVE>"),
        (vec![argument("atlas")], "\"atlas\""),
        (vec![drive.clone(), option("sped", 2)], "--sped"),
        (vec![drive.clone(), option("speed", "fast")], "--speed"),
        (vec![drive.clone(), option("seed", "x")], "--seed"),
        (
            vec![drive.clone(), option("file", path("short.img"))],
            "1000 bytes are too few; the drive needs 67108864",
        ),
        (
            vec![drive.clone(), option("file", folder.path().display())],
            "data file",
        ),
        (
            vec![drive.clone(), option("log", path("no/log"))],
            "request log",
        ),
        (
            vec![drive.clone(), option("receipt", path("no/receipt"))],
            "receipt ",
        ),
        (
            vec![drive.clone(), option("transport", "slow")],
            "--transport",
        ),
        (
            vec![drive.clone(), option("scenario", path("none"))],
            "none: ",
        ),
        (
            vec![drive.clone(), option("scenario", path("melt"))],
            "\"melt\"",
        ),
        (
            vec![drive.clone(), option("scenario", path("beyond"))],
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
    let folder = TempDir::new().unwrap();
    let keys = [
        argument(small(folder.path(), 512, 512)),
        option("file", folder.path().join("disk.img").display()),
    ];
    let server = Server::start(&keys);
    let said = refusal(&keys);
    assert!(said.contains(": locked by another process"), "{said}");
    assert!(server.socket().exists());
}

/// Do requests that are not whole sectors or end beyond the drive fail with the right error number,
/// does the server continue after each, and is a request of the advertised maximum size accepted?
#[test]
fn requests() {
    const END: u64 = 64 << 20;
    for sector in [512, 4096] {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&[argument(small(folder.path(), sector, 4096))]);
        let mut client = Client::new(&server);
        let size = u64::from(sector);
        let mut read_and_write = |offset: u64, count: usize| {
            let read = client.read(offset, &mut vec![0; count]).unwrap();
            let written = client.write(offset, &vec![0; count]).unwrap();
            (read, written)
        };
        let misaligned = (Err(EINVAL), Err(EINVAL));
        assert_eq!(read_and_write(1, size as usize), misaligned);
        assert_eq!(read_and_write(0, sector as usize - 1), misaligned);
        assert_eq!(read_and_write(size / 2, size as usize / 2), misaligned);
        // A read cannot fail for lack of space.
        let beyond = (Err(EINVAL), Err(ENOSPC));
        assert_eq!(read_and_write(END, size as usize), beyond);
        assert_eq!(read_and_write(END - size, 2 * size as usize), beyond);
        assert_eq!(read_and_write(END - size, size as usize), (Ok(()), Ok(())));
        // The advertised maximum.
        assert_eq!(read_and_write(0, 32 << 20), (Ok(()), Ok(())));
    }
}

/// Is a request above the maximum size refused, and is the next client served?
#[test]
fn oversized() {
    const TOO_MUCH: usize = (64 << 20) + 512;
    let server = Server::start(&[argument("instant")]);
    let response = Client::new(&server).read(0, &mut vec![0; TOO_MUCH]);
    assert!(!matches!(response, Ok(Ok(()))), "{response:?}");
    let response = Client::new(&server).write(0, &vec![0; TOO_MUCH]);
    assert!(!matches!(response, Ok(Ok(()))), "{response:?}");
    Client::new(&server).write(0, &[1; 512]).unwrap().unwrap();
    let mut back = [0; 512];
    Client::new(&server).read(0, &mut back).unwrap().unwrap();
    assert_eq!(back, [1; 512]);
}

/// Does a client get the error for a full disk if the disk below is full? Is its flushed data still
/// there, even after a kill, and do its writes continue once there is room?
#[test]
fn a_full_disk_below() {
    let mount = testkit::tool!("mount");
    let folder = TempDir::new().unwrap();
    let Ok(below) = Mount::memory(&mount, &folder.path().join("below"), "1m") else {
        testkit::skip!("a small file system cannot be mounted here");
    };
    let mut profile = traxtent_model::profile::builtin("atlas10k2").unwrap();
    profile.cache.write_back = traxtent_model::profile::WriteBack::Full;
    let path = folder.path().join("receipt.json");
    let keys = [
        argument(write(folder.path(), &profile)),
        option("file", below.folder().join("disk.img").display()),
        option("speed", 100),
        option("receipt", path.display()),
    ];
    let server = Server::start(&keys);
    let mut client = Client::new(&server);
    let part = |number: u64| vec![number as u8 + 1; 128 << 10];
    let mut store = |number: u64| {
        let written = client.write(number << 20, &part(number)).unwrap();
        written.and_then(|()| client.flush().unwrap())
    };
    let stored = (0..40).take_while(|&number| match store(number) {
        Ok(()) => true,
        Err(error) => {
            assert_eq!(error, ENOSPC);
            false
        }
    });
    let stored = stored.count() as u64;
    assert!(
        (1..9).contains(&stored),
        "{stored} parts of 128 KiB were stored on 1 MiB"
    );
    let check = |client: &mut Client| {
        for number in 0..stored {
            let mut back = vec![0; 128 << 10];
            client.read(number << 20, &mut back).unwrap().unwrap();
            assert!(back == part(number), "part {number}");
        }
    };
    check(&mut client);
    assert!(
        server
            .output()
            .contains("no space left in the storage of the drive's data"),
        "{}",
        server.output()
    );
    // The receipt records the error too, even though it was already reported to the client.
    server.signal("USR1");
    let receipt = receipt::read(&path);
    assert_eq!(receipt["storage_errors"], 1, "{receipt}");
    assert_eq!(receipt["errors"], 1, "{receipt}");
    let error = receipt["storage_error"].as_str().unwrap();
    assert!(error.starts_with("no space left"), "{error}");
    server.kill();
    let server = Server::start(&keys);
    let mut client = Client::new(&server);
    check(&mut client);
    below.resize("16m");
    client.write(stored << 20, &part(stored)).unwrap().unwrap();
    client.flush().unwrap().unwrap();
}

/// If the disk is full when the receipt is written, is this reported in one line, is the receipt
/// printed, and is no partial file left?
#[test]
fn a_receipt_on_a_full_disk() {
    let mount = testkit::tool!("mount");
    let folder = TempDir::new().unwrap();
    let Ok(below) = Mount::memory(&mount, &folder.path().join("below"), "64k") else {
        testkit::skip!("a small file system cannot be mounted here");
    };
    let script = "dd if=/dev/zero of=filler bs=1k 2>/dev/null; true";
    let output = Command::new(TRAXTENT)
        .args(["serve", "instant", "--receipt", "receipt.json"])
        .args(["--", "sh", "-c", script])
        .current_dir(below.folder())
        .output()
        .unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert_eq!(output.status.code(), Some(3), "{said}");
    assert!(said.contains("requests    none"), "{said}");
    let errors = said.lines().filter(|line| !line.contains(": note: "));
    let errors: Vec<&str> = errors.collect();
    assert_eq!(errors.len(), 1, "{said}");
    let error = errors[0];
    assert!(
        error.contains("receipt.json: cannot write it: No space left on device"),
        "{error}"
    );
    let left: Vec<_> = fs::read_dir(below.folder()).unwrap().flatten().collect();
    assert_eq!(left.len(), 1, "{left:?}");
}

/// Are a mounted device, and a file that backs a loop device, refused as the drive's file?
#[test]
fn a_mounted_device() {
    let losetup = testkit::tool!("losetup");
    let (make, mount) = (testkit::tool!("mke2fs"), testkit::tool!("mount"));
    let folder = TempDir::new().unwrap();
    let image = folder.path().join("image");
    fs::File::create(&image).unwrap().set_len(80 << 20).unwrap();
    run(&make, &["-q", "-t", "ext4", "-F", image.to_str().unwrap()]);
    let Some(device) = Loop::attach(&losetup, &image) else {
        testkit::skip!("no loop device is available");
    };
    let mounted = Mount::device(&mount, device.path(), &folder.path().join("mnt"));
    let Ok(mounted) = mounted else {
        testkit::skip!("ext4 cannot be mounted here");
    };
    let drive = argument(small(folder.path(), 512, 512));
    let before = fs::read(&image).unwrap();
    let said = refusal(&[drive.clone(), option("file", device.path().display())]);
    assert!(said.contains("is mounted on"), "{said}");
    drop(mounted);
    let said = refusal(&[drive, option("file", image.display())]);
    assert!(said.contains("backs /dev/loop"), "{said}");
    // Unmounting updates the superblock, so the bytes may differ. The size and e2fsck show that the
    // refused servers did not change the file system.
    assert_eq!(before.len() as u64, fs::metadata(&image).unwrap().len());
    run(
        Path::new("e2fsck"),
        &["-fn", device.path().to_str().unwrap()],
    );
}

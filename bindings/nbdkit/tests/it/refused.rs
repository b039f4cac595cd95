//! Are errors in the plugin's parameters reported with the parameter's name?

use std::fs;
use std::path::Path;

use tempfile::TempDir;

use crate::attach::{Loop, Mount};
use crate::client::{Client, EINVAL, ENOSPC};
use crate::nbdkit::{Server, command, key, run, small, write};

/// Returns nbdkit's output when it refuses to start.
fn refusal(keys: &[String]) -> String {
    // If nbdkit accepted the parameters, it would serve on its standard input.
    let output = command(keys).arg("--single").output().unwrap();
    let said = String::from_utf8(output.stderr).unwrap();
    assert!(!output.status.success(), "{keys:?} are taken: {said}");
    said
}

/// Are unknown parameters and drives, invalid values, and unsuitable files and scenarios refused?
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
            "\"sped\"; the keys are drive, file, speed",
        ),
        (vec![drive.clone(), key("speed", "fast")], "speed=fast"),
        (vec![drive.clone(), key("seed", "x")], "seed=x"),
        (
            vec![drive.clone(), key("file", path("short.img"))],
            "1000 bytes are too few; the drive needs 67108864",
        ),
        (
            vec![drive.clone(), key("file", folder.path().display())],
            "file=",
        ),
        (vec![drive.clone(), key("log", path("no/log"))], "log="),
        (
            vec![drive.clone(), key("receipt", path("no/receipt"))],
            "receipt=",
        ),
        (
            vec![drive.clone(), key("transport", "slow")],
            "transport=slow",
        ),
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
    assert!(said.contains(": locked by another process"), "{said}");
    assert!(server.socket().exists());
}

/// Do requests that are not whole sectors, beyond the end or too large fail with the right number,
/// and does the server continue after each?
#[test]
fn requests() {
    let _ = testkit::tool!("nbdkit");
    const END: u64 = 64 << 20;
    for sector in [512, 4096] {
        let folder = TempDir::new().unwrap();
        let server = Server::start(&[key("drive", small(folder.path(), sector, 4096))]);
        let mut client = Client::new(&server);
        let size = u64::from(sector);
        let mut of = |offset: u64, count: usize| {
            let read = client.read(offset, &mut vec![0; count]).unwrap();
            let written = client.write(offset, &vec![0; count]).unwrap();
            (read, written)
        };
        let misaligned = (Err(EINVAL), Err(EINVAL));
        assert_eq!(of(1, size as usize), misaligned);
        assert_eq!(of(0, sector as usize - 1), misaligned);
        assert_eq!(of(size / 2, size as usize / 2), misaligned);
        // nbdkit itself checks requests beyond the end. A read cannot fail for lack of space.
        let beyond = (Err(EINVAL), Err(ENOSPC));
        assert_eq!(of(END, size as usize), beyond);
        assert_eq!(of(END - size, 2 * size as usize), beyond);
        assert_eq!(of(END - size, size as usize), (Ok(()), Ok(())));
        // The advertised maximum.
        assert_eq!(of(0, 32 << 20), (Ok(()), Ok(())));
    }
}

/// Is a request that nbdkit itself considers too large refused, and is the next client served?
#[test]
fn oversized() {
    let _ = testkit::tool!("nbdkit");
    const TOO_MUCH: usize = (64 << 20) + 512;
    let server = Server::start(&[key("drive", "instant")]);
    let answer = Client::new(&server).read(0, &mut vec![0; TOO_MUCH]);
    assert!(!matches!(answer, Ok(Ok(()))), "{answer:?}");
    let answer = Client::new(&server).write(0, &vec![0; TOO_MUCH]);
    assert!(!matches!(answer, Ok(Ok(()))), "{answer:?}");
    Client::new(&server).write(0, &[1; 512]).unwrap().unwrap();
    let mut back = [0; 512];
    Client::new(&server).read(0, &mut back).unwrap().unwrap();
    assert_eq!(back, [1; 512]);
}

/// Does a client get the error for a full disk if the disk below is full? Are its flushed data
/// still there, even after a kill, and does it continue once there is room?
#[test]
fn a_full_disk_below() {
    let (_, mount) = (testkit::tool!("nbdkit"), testkit::tool!("mount"));
    let folder = TempDir::new().unwrap();
    let Ok(below) = Mount::memory(&mount, &folder.path().join("below"), "1m") else {
        testkit::skip!("a small file system cannot be mounted here");
    };
    let mut profile = traxtent_model::profile::builtin("atlas10k2").unwrap();
    profile.cache.write_back = traxtent_model::profile::WriteBack::Full;
    let keys = [
        key("drive", write(folder.path(), &profile)),
        key("file", below.folder().join("disk.img").display()),
        key("speed", 100),
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
    assert!((1..9).contains(&stored), "{stored} parts of an eighth");
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
    server.kill();
    let server = Server::start(&keys);
    let mut client = Client::new(&server);
    check(&mut client);
    below.resize("16m");
    client.write(stored << 20, &part(stored)).unwrap().unwrap();
    client.flush().unwrap().unwrap();
}

/// Does the plugin, started by hand, refuse a mounted device and the file that backs it?
#[test]
fn a_mounted_device() {
    let (_, losetup) = (testkit::tool!("nbdkit"), testkit::tool!("losetup"));
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
    let drive = key("drive", small(folder.path(), 512, 512));
    let before = fs::read(&image).unwrap();
    let said = refusal(&[drive.clone(), key("file", device.path().display())]);
    assert!(said.contains("is mounted on"), "{said}");
    drop(mounted);
    let said = refusal(&[drive, key("file", image.display())]);
    assert!(said.contains("backs /dev/loop"), "{said}");
    // Unmounting wrote its time and nothing else: the file system is intact.
    assert_eq!(before.len() as u64, fs::metadata(&image).unwrap().len());
    run(
        Path::new("e2fsck"),
        &["-fn", device.path().to_str().unwrap()],
    );
}

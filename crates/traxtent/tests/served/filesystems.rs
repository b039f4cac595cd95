//! Do this kernel's file systems work on served drives and volumes that are attached as loop
//! devices?

use std::fs::{self, File};
use std::io::{Read, Write};
use std::path::Path;
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use traxtent_layout::raid::Level;
use traxtent_server::volume::{MaintenanceKind, VolumeOrder};
use traxtent_units::Rng;
use uuid::Uuid;

use crate::attach::{self, Attached};
use crate::life::ServedVolume;
use crate::pull::{self, PullMode, Pullable};
use crate::server::{Server, TRAXTENT, argument, option, quick_folder, run, sized};
use crate::volume::volume_of;

/// Every file is smaller than this.
const FILE_BYTES_LIMIT: u64 = 3 << 20;

/// Does ext4 work?
#[test]
fn ext4() {
    works("ext4", &["mkfs.ext4", "-q"], &["e2fsck", "-f", "-n"]);
}

/// Does XFS work?
#[test]
fn xfs() {
    works("xfs", &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

/// Does Btrfs, which keeps checksums of all data, work?
#[test]
fn btrfs() {
    let check = ["btrfs", "check", "--check-data-csum"];
    works("btrfs", &["mkfs.btrfs", "-q"], &check);
}

/// Does a server whose file is in use at Ctrl-C continue, and end once the file is closed?
#[test]
fn ctrl_c_waits_for_users_of_the_file() {
    if let Some(why) = attach::missing() {
        testkit::skip!("{why}");
    }
    let folder = TempDir::new().unwrap();
    let fuse = option("fuse", folder.path().display());
    let server = Server::start(&[argument("instant"), fuse]);
    waits_for_users(server, &folder.path().join("disk"));
}

/// If the loop device is open but not mounted at Ctrl-C, does the server continue until the device
/// is closed?
#[test]
fn ctrl_c_waits_for_users_of_the_device() {
    if let Some(why) = attach::missing() {
        testkit::skip!("{why}");
    }
    let folder = TempDir::new().unwrap();
    let mut keys = vec![argument("instant")];
    keys.extend(Attached::options(folder.path()));
    let server = Server::start(&keys);
    let attached = Attached::new(folder.path());
    waits_for_users(server, attached.device());
}

/// Does SIGTERM end the server successfully even if the file is in use, with a line that reports
/// the use?
#[test]
fn sigterm_does_not_wait_for_users() {
    if let Some(why) = attach::missing() {
        testkit::skip!("{why}");
    }
    let folder = TempDir::new().unwrap();
    let fuse = option("fuse", folder.path().display());
    let mut server = Server::start(&[argument("instant"), fuse]);
    let user = File::open(folder.path().join("disk")).unwrap();
    server.signal("TERM");
    server.ends_successfully();
    let said = server.output();
    assert!(said.contains("it is still in use"), "{said}");
    drop(user);
}

/// If a command leaves a file system mounted on the loop device of a drive or a volume, is a file
/// that it has just written stored nevertheless? Is the exit status 3, or that of the command if it
/// failed, and is there one line that names the mount? Is the file stored after SIGTERM, too?
#[test]
fn a_mount_that_a_command_leaves_is_written_back() {
    if let Some(why) = attach::missing() {
        testkit::skip!("{why}");
    }
    for (is_volume, end, status) in [
        (false, "true", 3),
        (true, "true", 3),
        (false, "exit 5", 5),
        (false, "kill -TERM $PPID; sleep 9", 143),
    ] {
        let folder = TempDir::new().unwrap();
        let at = |name: &str| folder.path().join(name).display().to_string();
        let mut words = vec![argument("serve")];
        if is_volume {
            let members = volume_of(folder.path(), Level::Raid5, 1, 24 << 20);
            words.insert(0, argument("volume"));
            words.extend(members.iter().map(|path| path.display().to_string()));
        } else {
            words.push(sized(folder.path(), 512, 4096, 32));
            words.extend([argument("--file"), at("data")]);
        }
        words.extend(Attached::options(folder.path()));
        fs::create_dir(at("mounted")).unwrap();
        let line = format!(
            "mke2fs -q \"$device\" && mount \"$device\" {0} && echo precious > {0}/file && {end}",
            at("mounted")
        );
        let serve = |command: &str| {
            let mut serve = Command::new(TRAXTENT);
            serve.args(&words).args(["--", "sh", "-c", command]);
            serve.output().unwrap()
        };
        let left = serve(&line);
        run(Path::new("umount"), &["--lazy", &at("mounted")]);
        let said = String::from_utf8(left.stderr).unwrap();
        assert_eq!(left.status.code(), Some(status), "{said}");
        let about = said.lines().filter(|line| line.contains("in use"));
        let about: Vec<&str> = about.collect();
        let remedy = format!("run `umount {}`", at("mounted"));
        assert!(about.len() == 1 && about[0].contains(&remedy), "{said}");

        let read = "mount \"$device\" MOUNTED; cat MOUNTED/file; umount MOUNTED";
        let read = serve(&read.replace("MOUNTED", &at("mounted")));
        assert!(read.status.success(), "{read:?}");
        assert_eq!(String::from_utf8(read.stdout).unwrap(), "precious\n");
    }
}

fn waits_for_users(server: Server, path: &Path) {
    let mut user = File::open(path).unwrap();
    server.signal("INT");
    thread::sleep(Duration::from_millis(1500));
    user.read_exact(&mut [0; 512]).expect("it is still served");
    drop(user);
    // A server that still waits for another Ctrl-C is killed, and the test fails.
    let id = server.id().to_string();
    thread::spawn(move || {
        thread::sleep(Duration::from_secs(30));
        let _ = Command::new("kill").args(["-KILL", &id]).status();
    });
    server.wait();
}

/// Creates a file system, writes and replaces files, unmounts and checks it, and reads everything
/// back.
fn works(kind: &str, make: &[&str], check: &[&str]) {
    for name in [make[0], check[0]] {
        let _ = testkit::tool!(name);
    }
    if let Some(why) = attach::missing() {
        testkit::skip!("{why}");
    }
    let folder = TempDir::new().unwrap();
    let drive = argument(sized(folder.path(), 512, 4096, 512));
    let _server = Server::start(&[&[drive][..], &Attached::options(folder.path())].concat());
    let attached = Attached::new(folder.path());
    run_on(make, attached.device());
    let place = folder.path().join("mounted");
    let mounted = match attached.mount(&place) {
        Ok(mounted) => mounted,
        Err(error) if error.contains("unknown filesystem type") => {
            testkit::skip!("this kernel does not support {kind}")
        }
        Err(error) => panic!("{error}"),
    };
    let mut rng = Rng::new(7);
    let contents: Vec<Vec<u8>> = (0..40)
        .map(|_| {
            let bytes = rng.below(FILE_BYTES_LIMIT) >> rng.below(12);
            (0..bytes).map(|_| rng.bits() as u8).collect()
        })
        .collect();
    let path = |number: usize| place.join(format!("{}/{number}", number % 5));
    for (number, content) in contents.iter().enumerate() {
        fs::create_dir_all(path(number).parent().unwrap()).unwrap();
        fs::write(path(number), content).unwrap();
    }
    // Some files are deleted, so that their space is used again.
    for number in (0..contents.len()).step_by(3) {
        fs::remove_file(path(number)).unwrap();
        fs::write(path(number), &contents[number]).unwrap();
    }
    mounted.unmount();
    run_on(check, attached.device());
    let mounted = attached.mount(&place).unwrap();
    for (number, content) in contents.iter().enumerate() {
        assert!(fs::read(path(number)).unwrap() == *content, "file {number}");
    }
    mounted.unmount();
    run_on(check, attached.device());
}

/// Does ext4 work on a volume?
#[test]
fn ext4_on_a_volume() {
    works_on_a_volume("ext4", &["mkfs.ext4", "-q"], &["e2fsck", "-f", "-n"]);
}

/// Does XFS work on a volume?
#[test]
fn xfs_on_a_volume() {
    works_on_a_volume("xfs", &["mkfs.xfs", "-q"], &["xfs_repair", "-n"]);
}

/// Pulls a member, rebuilds it on a spare and kills the server, each while files are written. Does
/// the file system's checker find no errors after each? At the end, are all synced files there, and
/// is a scrub clean?
fn works_on_a_volume(kind: &str, make: &[&str], check: &[&str]) {
    for name in [make[0], check[0]] {
        let _ = testkit::tool!(name);
    }
    if let Some(why) = attach::missing().or_else(pull::missing) {
        testkit::skip!("{why}");
    }
    let folder = quick_folder();
    let at = |name: &str| folder.path().join(name);
    // XFS needs 300 MB.
    const MEMBER_BYTES: u64 = 120 << 20;
    let mut files = volume_of(folder.path(), Level::Raid5, 1 << 35, MEMBER_BYTES);
    let mut pullable = Pullable::new(&files[1]);
    let served = ServedVolume::attached(folder.path(), files.clone(), &[(1, &pullable)]);
    let attached = Attached::new(folder.path());
    run_on(make, attached.device());
    let place = at("mounted");
    let mounted = match attached.mount(&place) {
        Ok(mounted) => mounted,
        Err(error) if error.contains("unknown filesystem type") => {
            testkit::skip!("this kernel does not support {kind}")
        }
        Err(error) => panic!("{error}"),
    };
    let mut synced = Vec::new();
    let mut files_while = |round: u64, happens: &mut dyn FnMut()| {
        write_while(&place, round, &mut synced, happens);
    };
    files_while(0, &mut || {
        thread::sleep(Duration::from_millis(200));
        pullable.pull(PullMode::Gone);
        thread::sleep(Duration::from_millis(300));
    });
    mounted.unmount();
    assert_eq!(served.status().members[1].state, "failed");
    run_on(check, attached.device());

    let mounted = attached.mount(&place).unwrap();
    let spare = at("spare");
    File::create(&spare).unwrap().set_len(MEMBER_BYTES).unwrap();
    files_while(1, &mut || {
        let (with, id) = (spare.clone(), Uuid::from_u128(9));
        let (member, force) = (1, false);
        let asked = VolumeOrder::Replace {
            member,
            with,
            id,
            force,
        };
        served.order(&asked).unwrap();
        served.begin(MaintenanceKind::Rebuild, None);
        assert!(served.ended().done);
    });
    mounted.unmount();
    assert!(served.status().is_whole());
    run_on(check, attached.device());
    files[1] = spare;

    let mounted = attached.mount(&place).unwrap();
    let mut served = Some(served);
    files_while(2, &mut || {
        thread::sleep(Duration::from_millis(300));
        served.take().unwrap().server.kill();
        thread::sleep(Duration::from_millis(100));
    });
    drop((mounted, attached));
    let served = ServedVolume::attached(folder.path(), files, &[]);
    let attached = Attached::new(folder.path());
    // Mounting replays the journal.
    let mounted = attached.mount(&place).unwrap();
    assert!(synced.len() > 10, "{} files", synced.len());
    for (name, content) in &synced {
        assert!(
            fs::read(place.join(name)).unwrap() == *content,
            "file {name}"
        );
    }
    mounted.unmount();
    run_on(check, attached.device());
    drop(attached);
    served.begin(MaintenanceKind::Scrub, None);
    let scrubbed = served.ended();
    assert!(scrubbed.is_clean(), "{scrubbed:?}");
}

/// Writes and syncs files during `happens`, and records the durable ones.
fn write_while(
    place: &Path,
    round: u64,
    synced: &mut Vec<(String, Vec<u8>)>,
    happens: &mut dyn FnMut(),
) {
    let stop = AtomicBool::new(false);
    thread::scope(|scope| {
        let write = || {
            let mut rng = Rng::new(round);
            // Writes fail once the device of the file system is gone.
            for number in 0.. {
                let bytes = rng.below(300 << 10) >> rng.below(8);
                let content: Vec<u8> = (0..bytes).map(|_| rng.bits() as u8).collect();
                let name = format!("{round}-{number}");
                let written = File::create(place.join(&name)).and_then(|mut file| {
                    file.write_all(&content)?;
                    file.sync_all()?;
                    File::open(place)?.sync_all()
                });
                if written.is_err() || stop.load(Ordering::Relaxed) {
                    return (round, written.is_ok());
                }
                synced.push((name, content));
                // Keeps each round from filling the file system.
                thread::sleep(Duration::from_millis(2));
            }
            unreachable!()
        };
        let writer = scope.spawn(write);
        happens();
        stop.store(true, Ordering::Relaxed);
        let (round, is_well) = writer.join().unwrap();
        assert!(
            is_well || round == 2,
            "round {round}: a file cannot be written"
        );
    });
}

/// Runs a command on a device. The command must succeed.
fn run_on(command: &[&str], device: &Path) {
    let program = testkit::tool(command[0]).expect("its presence was checked");
    let device = device.display().to_string();
    let words: Vec<&str> = command[1..].iter().copied().chain([&*device]).collect();
    run(&program, &words);
}

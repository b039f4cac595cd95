//! The files of `traxtent serve`: nothing but its own files is changed, and these only once
//! everything is ready.

use std::fs::{self, File, Permissions};
use std::os::unix::fs::{FileExt, MetadataExt, PermissionsExt, symlink};
use std::path::Path;

use rustix::fs::FlockOperation;
use tempfile::TempDir;

use crate::command::{Answer, traxtent_in};

const PROGRAM: &str = env!("CARGO_BIN_EXE_traxtent");

/// Runs `traxtent serve` with words that have no spaces, while a shell command runs.
fn serve(folder: &Path, line: &str, command: &str) -> Answer {
    let words: Vec<&str> = line.split(' ').collect();
    let command = ["--", "sh", "-c", command];
    traxtent_in(folder, &[&["serve"], &words[..], &command].concat())
}

/// Creates the profile of a drive without delays, and a sparse file for its 32 MiB of data.
fn small_drive(folder: &Path) {
    let mut profile = traxtent_model::profile::builtin("instant").unwrap();
    profile.geometry.cylinders = 32;
    profile.geometry.zones[0].last_cylinder = 31;
    fs::write(folder.join("small.toml"), profile.to_toml()).unwrap();
    let file = File::create(folder.join("data.img")).unwrap();
    file.set_len(32 << 20).unwrap();
}

/// Is data that was acknowledged but not flushed in the file after an orderly end, even if flushes
/// lie, but not after a kill? Does a power cut before the end keep its effect?
#[test]
fn an_orderly_end_writes_the_cache() {
    let _ = testkit::tool!("nbdcopy");
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("data"), [7; 1 << 16]).unwrap();
    let first = |end: &str| {
        let _ = fs::remove_file(at.join("f.img"));
        let script = format!("nbdcopy data \"$uri\" && {end}");
        let answer = serve(at, "toshiba-p300 --file f.img --transport off", &script);
        let mut byte = [0];
        let file = File::open(at.join("f.img")).unwrap();
        file.read_exact_at(&mut byte, 0).unwrap();
        (answer.status, byte[0])
    };
    let fault = format!("{PROGRAM} fault \"$control\"");
    assert_eq!(first("true"), (0, 7));
    let lie = format!("{fault} lying-flush && nbdcopy --flush data \"$uri\"");
    assert_eq!(first(&lie), (0, 7));
    assert_eq!(first("kill -KILL $PPID").1, 0);
    let lost = (1..12).find(|seed| {
        let cut = format!("{fault} power-cut --seed {seed} --for 1h");
        first(&cut).1 == 0
    });
    assert!(
        lost.is_some(),
        "a cut loses the write with one of eleven seeds"
    );
}

/// Can a drive's own name stand before the file of an option, as with several drives?
#[test]
fn the_only_drive_can_be_named() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let answer = serve(at, "a=instant --log a=l.csv --receipt a=r.json", "true");
    assert_eq!(answer.status, 0, "{}", answer.err);
    let mut names: Vec<_> = fs::read_dir(at)
        .unwrap()
        .map(|one| one.unwrap().file_name())
        .collect();
    names.sort();
    assert_eq!(names, ["l.csv", "r.json"]);
}

/// Does a receipt change no other file in its directory, such as one whose name is that of the
/// receipt with a suffix?
#[test]
fn a_receipt_changes_no_other_file() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    fs::write(at.join("precious"), "precious").unwrap();
    symlink("precious", at.join("r.json.new")).unwrap();
    let answer = serve(at, "instant --receipt r.json", "kill -USR1 $PPID");
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert_eq!(fs::read(at.join("precious")).unwrap(), b"precious");
    assert!(at.join("r.json.new").is_symlink());
    assert_eq!(fs::read_dir(at).unwrap().count(), 3);
}

/// Do the log and the receipt of an earlier run stay as they are if the server cannot start? Are
/// they replaced, with their modes, if it can?
#[test]
fn earlier_outputs_outlive_a_failed_start() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    small_drive(at);
    fs::write(at.join("taken"), "").unwrap();
    let line = "./small.toml --receipt r.json --log l.csv";
    assert_eq!(serve(at, line, "true").status, 0);
    let log = fs::read_to_string(at.join("l.csv")).unwrap() + "an older row\n";
    fs::write(at.join("l.csv"), &log).unwrap();
    let outputs = ["l.csv", "r.json"].map(|name| at.join(name));
    for path in &outputs {
        fs::set_permissions(path, Permissions::from_mode(0o600)).unwrap();
    }
    let contents = || outputs.each_ref().map(|path| fs::read(path).unwrap());
    let before = contents();
    let data = File::open(at.join("data.img")).unwrap();
    rustix::fs::flock(&data, FlockOperation::LockExclusive).unwrap();
    for (line, says) in [
        (format!("{line} --socket taken"), "the path exists"),
        (format!("{line} --control taken"), "the path exists"),
        (format!("{line} --fuse none"), "cannot mount there"),
        (
            "a=instant b=./small.toml --receipt a=r.json --log a=l.csv --file b=data.img"
                .to_owned(),
            "locked by another process",
        ),
    ] {
        let answer = serve(at, &line, "true");
        assert_eq!(answer.status, 3, "{line}: {}", answer.err);
        assert!(answer.err.contains(says), "{line}: {}", answer.err);
        assert!(contents() == before, "{line}");
    }
    let answer = serve(at, line, "test ! -e r.json && ! grep older l.csv");
    assert_eq!(answer.status, 0, "{}", answer.err);
    for path in &outputs {
        let mode = fs::metadata(path).unwrap().mode();
        assert_eq!(mode & 0o777, 0o600, "{}", path.display());
    }
}

/// Is a log refused that another server writes, and does it stay complete?
#[test]
fn a_log_has_one_server() {
    let folder = TempDir::new().unwrap();
    let second = format!("{PROGRAM} serve instant --log l.csv -- true 2> said; echo $? >> said");
    let answer = serve(folder.path(), "instant --log l.csv", &second);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let said = fs::read_to_string(folder.path().join("said")).unwrap();
    let path = folder.path().join("l.csv");
    let says = format!(
        "--log {}: locked by another process; name another file\n3\n",
        path.display()
    );
    assert!(said.ends_with(&says), "{said}");
    assert!(fs::read_to_string(path).unwrap().ends_with("status\n"));
}

/// Is a disk image in a format of its own refused as the data file, unless `--force` is given, and
/// any other content accepted?
#[test]
fn images_in_other_formats_are_refused() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    small_drive(at);
    let image = at.join("z.qcow2");
    let mut bytes = vec![0; 32 << 20];
    bytes[..4].copy_from_slice(b"QFI\xfb");
    fs::write(&image, &bytes).unwrap();
    let line = "./small.toml --file z.qcow2";
    let answer = serve(at, line, "true");
    assert_eq!(answer.status, 2, "{}", answer.err);
    let says = format!(
        "traxtent: --file {}: the file holds a disk image in the format qcow2; --force overwrites it\n",
        image.display()
    );
    assert_eq!(answer.err, says);
    assert!(fs::read(&image).unwrap() == bytes);
    for option in ["--force", "--read-only"] {
        let answer = serve(at, &format!("{line} {option}"), "true");
        assert_eq!(answer.status, 0, "{option}: {}", answer.err);
    }
    bytes[..4].fill(0xa5);
    fs::write(&image, &bytes).unwrap();
    let answer = serve(at, line, "true");
    assert_eq!(answer.status, 0, "{}", answer.err);
}

/// Are files kept that have taken the places of the sockets in the meantime?
#[test]
fn only_own_sockets_are_removed() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    let replace = "rm s c && echo mine > s && echo mine > c";
    let answer = serve(at, "instant --socket s --control c", replace);
    assert_eq!(answer.status, 0, "{}", answer.err);
    for name in ["s", "c"] {
        assert_eq!(fs::read(at.join(name)).unwrap(), b"mine\n", "{name}");
        fs::remove_file(at.join(name)).unwrap();
    }
    let answer = serve(at, "instant --socket s --control c", "test -S s -a -S c");
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert_eq!(fs::read_dir(at).unwrap().count(), 0);
}

/// Is the file of a read-only drive only read, also by faults, and can several servers read it? Is
/// a missing file reported, and not created?
#[test]
fn read_only_files() {
    let folder = TempDir::new().unwrap();
    let at = folder.path();
    small_drive(at);
    let answer = serve(at, "./small.toml --read-only --file none.img", "true");
    assert_eq!(answer.status, 3, "{}", answer.err);
    let says = "none.img: it does not exist, and a read-only drive does not create it";
    assert!(answer.err.contains(says), "{}", answer.err);
    assert!(!at.join("none.img").exists());
    let line = "./small.toml --read-only --file data.img";
    let image = at.join("data.img");
    let state = || {
        let meta = fs::metadata(&image).unwrap();
        let changed = (meta.mtime(), meta.mtime_nsec(), meta.blocks());
        (changed, fs::read(&image).unwrap())
    };
    let before = state();
    let faults = format!(
        "{PROGRAM} fault $control latent-error --lbn 8 && \
         {PROGRAM} fault $control grown-defect --lbn 16 && \
         {PROGRAM} fault $control power-cut && \
         {PROGRAM} serve {line} -- true"
    );
    let answer = serve(at, line, &faults);
    assert_eq!(answer.status, 0, "{}", answer.err);
    assert!(state() == before);
    // A server that writes is refused while others read.
    let writer = format!("! {PROGRAM} serve ./small.toml --file data.img -- true");
    let answer = serve(at, line, &writer);
    assert_eq!(answer.status, 0, "{}", answer.err);
    let says = "data.img: locked by another process";
    assert!(answer.err.contains(says), "{}", answer.err);
}

//! Does a journalling file system survive power cuts on a served drive, and not survive them if the
//! drive ignores flushes?
//!
//! The real ext4 of this kernel writes, through FUSE and a loop device. The kernel determines which
//! requests it sends and when, and they differ between runs. A seed here therefore repeats
//! the files, the moment, and the choice of which of the drive's requests are lost, but not the
//! requests.
//!
//! Only an fsync that returned before the cut was ordered counts. Later ones prove nothing: once a
//! device fails, this kernel's ext4 occasionally reports success for a directory's fsync although
//! its transaction was abandoned. This was seen on Linux 6.18, once in about a thousand files on a
//! busy machine. In the one case whose log was read, the drive received the transaction, a flush,
//! and no commit block.

use std::collections::BTreeMap;
use std::fs::{self, File};
use std::io::{self, Write};
use std::os::unix::fs::{FileExt, OpenOptionsExt};
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread;
use std::time::Duration;

use tempfile::TempDir;
use traxtent_model::disk::Fault;
use traxtent_model::profile::{Profile, WriteBack, builtin};
use traxtent_server::control::send_order;
use traxtent_units::Rng;

use crate::attach::{Attached, missing};
use crate::server::{Server, argument, option, quick_folder, run, write};

/// Cuts the power while files are written. Is every fsync'ed file there with its content? Does
/// e2fsck find no errors once the journal has been replayed?
#[test]
fn fsynced_files_survive_power_cuts() {
    if let Some(reason) = missing() {
        testkit::skip!("{reason}");
    }
    let empty = file_system();
    let mut findings = Vec::new();
    let (mut promises, mut volatile) = (0, 0);
    let cuts = testkit::repeats(20).min(200);
    for seed in 0..cuts {
        let outcome = cut(seed, &empty, None);
        promises += outcome.promises;
        volatile += u64::from(outcome.volatile);
        findings.extend(outcome.findings);
    }
    eprintln!("{cuts} cuts, {volatile} with writes to lose, {promises} files looked for");
    assert!(findings.is_empty(), "{}", findings.join("\n"));
    assert!(promises > 5 * cuts, "only {promises} files in {cuts} cuts");
    assert!(
        volatile > cuts / 4,
        "only {volatile} cuts found anything to lose"
    );
}

/// Is a drive that acknowledges flushes without performing them detected? This is the negative
/// control.
#[test]
fn ignored_flushes_are_detected() {
    if let Some(reason) = missing() {
        testkit::skip!("{reason}");
    }
    let empty = file_system();
    let cuts = testkit::repeats(4).min(40);
    let found: Vec<_> = (0..cuts)
        .map(|seed| cut(seed, &empty, Some("lying-flush")).findings)
        .collect();
    let broken = found.iter().filter(|findings| !findings.is_empty()).count();
    let complaints = found.iter().flatten();
    let complaints = complaints.filter(|what| what.contains(" e2fsck: ")).count();
    eprintln!(
        "{cuts} cuts with lying flushes, {broken} detected, with {complaints} complaints of e2fsck"
    );
    assert!(broken > 0, "{cuts} cuts lost nothing");
}

/// The state after a cut.
struct Outcome {
    /// The number of files that were checked, including deleted ones.
    promises: u64,
    /// Whether the drive had acknowledged or begun writes that it could lose.
    volatile: bool,
    findings: Vec<String>,
}

const WRITERS: u64 = 3;
/// The size of the file system. A drive can be larger.
const FILE_SYSTEM_BYTES: u64 = 64 << 20;

/// Writes files on a fresh file system until the power is cut, and checks them afterwards.
fn cut(seed: u64, empty: &[u8], lie: Option<&str>) -> Outcome {
    let mut rng = Rng::new(seed);
    let folder = quick_folder();
    let path = |name: &str| folder.path().join(name);
    let (profile, speed) = drive(seed);
    lay(empty, &path("disk.img"), &profile);
    let keys = [
        argument(write(folder.path(), &profile)),
        option("file", path("disk.img").display()),
        option("speed", speed),
        option("control", path("control").display()),
    ];
    let keys = [&keys[..], &Attached::options(folder.path())].concat();
    let server = Server::start(&keys);
    let command = |line: &str| {
        let fault: Fault = line.parse().unwrap();
        send_order(&path("control"), &fault).unwrap().unwrap()
    };
    if let Some(lie) = lie {
        command(lie);
    }
    let attached = Attached::new(folder.path());
    let mount = attached.mount(&path("mnt")).unwrap();
    let power_is_cut = AtomicBool::new(false);
    let mut writers: Vec<Writer> = (0..WRITERS)
        .map(|number| Writer::new(mount.folder(), seed, number, &power_is_cut))
        .collect();
    let mut scratch = Scratch::new(mount.folder(), seed).unwrap();
    let left = thread::scope(|scope| {
        for writer in &mut writers {
            scope.spawn(|| writer.run_until_power_cut());
        }
        scope.spawn(|| scratch.run_until_power_cut());
        thread::sleep(Duration::from_micros(20_000 + rng.below(100_000)));
        let tearing = if rng.chance(0.5) { "physical" } else { "512" };
        power_is_cut.store(true, Ordering::SeqCst);
        // The power does not return, because nothing that the kernel still holds may reach the
        // drive.
        command(&format!("power-cut,seed={seed},tearing={tearing},for=24 h"))
    });
    drop((mount, attached));
    server.kill();

    let _ = fs::remove_file(path("control"));
    let _server = Server::start(&keys);
    let attached = Attached::new(folder.path());
    let findings = match attached.mount(&path("mnt")) {
        Err(said) => vec![format!("mount: {said}")],
        Ok(mount) => {
            let lost = writers.iter().flat_map(Writer::broken);
            let lost = lost.chain(scratch.broken()).collect();
            mount.unmount();
            lost
        }
    };
    let checked = Command::new("e2fsck")
        .arg("-fn")
        .arg(attached.device())
        .output()
        .unwrap();
    let complaint = (!checked.status.success()).then(|| {
        let said = String::from_utf8_lossy(&checked.stdout).into_owned();
        format!("e2fsck: {}: {said}", checked.status)
    });
    let findings = findings.into_iter().chain(complaint);
    Outcome {
        promises: writers.iter().map(Writer::promised).sum(),
        volatile: !left.contains("of 0 writes"),
        findings: findings
            .map(|what| format!("seed {seed}, {}, {left}: {what}", profile.name))
            .collect(),
    }
}

/// Returns a drive with a volatile cache, and its speed. The seed determines whether the drive has
/// mechanics, and whether its 512-byte sectors are native or emulated.
fn drive(seed: u64) -> (Profile, u32) {
    let (name, speed) = match seed % 2 {
        0 => ("instant", 1),
        _ => ("atlas10k2", 20),
    };
    let mut profile = builtin(name).unwrap();
    profile.cache.write_back = WriteBack::Full;
    profile.cache.enabled = true;
    if seed % 4 < 2 {
        profile.sector.physical_bytes = 4096;
    }
    if name == "instant" {
        profile.cache.segments = 8;
        profile.cache.write_segments = 8;
    }
    (profile, speed)
}

/// Returns the image of an empty ext4 file system with a journal. All inode tables are initialized.
fn file_system() -> Vec<u8> {
    let folder = TempDir::new().unwrap();
    let image = folder.path().join("image");
    File::create(&image)
        .unwrap()
        .set_len(FILE_SYSTEM_BYTES)
        .unwrap();
    let mke2fs = testkit::tool("mke2fs").expect("its presence was checked");
    let eager = "lazy_itable_init=0,lazy_journal_init=0";
    let image = image.display().to_string();
    run(
        &mke2fs,
        &["-q", "-F", "-t", "ext4", "-b", "4096", "-E", eager, &image],
    );
    fs::read(image).unwrap()
}

/// Creates a drive's data from a file system. Zeros become holes, as does the rest of the drive.
fn lay(image: &[u8], path: &Path, profile: &Profile) {
    const CHUNK: usize = 64 << 10;
    let drive = traxtent_model::drive::Drive::new(profile).unwrap();
    let sectors = drive.geometry().capacity().0;
    let file = File::create(path).unwrap();
    file.set_len(sectors * u64::from(profile.sector.logical_bytes))
        .unwrap();
    for (number, chunk) in image.chunks(CHUNK).enumerate() {
        if chunk.iter().any(|byte| *byte != 0) {
            file.write_all_at(chunk, (number * CHUNK) as u64).unwrap();
        }
    }
}

type Content = Vec<u8>;

/// The content that must be found under a name.
#[derive(Debug)]
enum Promise {
    /// One of these contents; `None` is an absent file.
    OneOf(Vec<Option<Content>>),
    /// These bytes, and possibly more.
    Begins(Content),
    /// In every 512 bytes, one content or the other.
    Mixture(Content, Content),
}

impl Promise {
    fn file(content: &Content) -> Promise {
        Promise::OneOf(vec![Some(content.clone())])
    }

    fn is_kept(&self, found: Option<&Content>) -> bool {
        match (self, found) {
            (Promise::OneOf(all), found) => all.iter().any(|one| one.as_ref() == found),
            (Promise::Begins(content), Some(found)) => found.starts_with(content),
            (Promise::Mixture(old, new), Some(found)) => {
                let mut chunks = found.chunks(512).zip(old.chunks(512).zip(new.chunks(512)));
                let one = |(found, (old, new))| found == old || found == new;
                found.len() == old.len() && chunks.all(one)
            }
            (_, None) => false,
        }
    }

    /// Describes the content that was found instead, and the sectors in which it differs.
    fn mismatch(&self, found: Option<&Content>) -> String {
        let Some(found) = found else {
            return "is missing".to_owned();
        };
        let (promised, versions): (_, Vec<&Content>) = match self {
            Promise::OneOf(all) => ("one of", all.iter().flatten().collect()),
            Promise::Begins(content) => ("to begin with", vec![content]),
            Promise::Mixture(old, new) => ("a mixture of", vec![old, new]),
        };
        let differ = |version: &&Content| {
            let chunks = version.chunks(512).zip(found.chunks(512)).enumerate();
            let differ = chunks.filter(|(_, (version, found))| version != found);
            let differ: Vec<_> = differ.map(|(chunk, _)| chunk).collect();
            format!("{} bytes, different in sectors {differ:?}", version.len())
        };
        format!(
            "{} bytes; expected {promised} {:?}",
            found.len(),
            versions.iter().map(differ).collect::<Vec<_>>()
        )
    }
}

/// A writer of files in its own directory, which records the content that must survive.
struct Writer<'a> {
    folder: PathBuf,
    power_is_cut: &'a AtomicBool,
    rng: Rng,
    /// The durable files in the directory, with their contents.
    files: BTreeMap<PathBuf, Content>,
    promises: BTreeMap<PathBuf, Promise>,
    made: u64,
}

impl<'a> Writer<'a> {
    fn new(mount: &Path, seed: u64, number: u64, power_is_cut: &'a AtomicBool) -> Writer<'a> {
        let folder = mount.join(number.to_string());
        fs::create_dir(&folder).unwrap();
        for made in [&folder, mount] {
            File::open(made).and_then(|made| made.sync_all()).unwrap();
        }
        Writer {
            folder,
            power_is_cut,
            rng: Rng::new(seed << 8 | number),
            files: BTreeMap::new(),
            promises: BTreeMap::new(),
            made: 0,
        }
    }

    fn run_until_power_cut(&mut self) {
        while self.step().is_ok() {}
    }

    /// Performs one operation and makes it durable. The content that must be found is recorded
    /// after it and, if it changes an existing file, also before it.
    fn step(&mut self) -> io::Result<()> {
        let pick = self.rng.below(self.files.len().max(1) as u64) as usize;
        let known = self.files.iter().nth(pick);
        let Some((path, old)) = known.map(|(path, old)| (path.clone(), old.clone())) else {
            return self.create();
        };
        match self.rng.below(8) {
            0 => self.delete(path, old),
            1 => self.replace(path, old),
            2 => self.append(path, old),
            3 => self.overwrite(path, old),
            _ => self.create(),
        }
    }

    fn create(&mut self) -> io::Result<()> {
        let (path, content) = (self.name(), self.content());
        let mut file = File::create(&path)?;
        file.write_all(&content)?;
        file.sync_all()?;
        self.sync_folder()?;
        self.keep(path, content);
        Ok(())
    }

    /// Replaces a file as editors do: a new file under another name is renamed to the old file's
    /// name.
    fn replace(&mut self, path: PathBuf, old: Content) -> io::Result<()> {
        let (temporary, new) = (self.name(), self.content());
        let mut file = File::create(&temporary)?;
        file.write_all(&new)?;
        file.sync_all()?;
        let either = vec![Some(old), Some(new.clone())];
        self.promises.insert(path.clone(), Promise::OneOf(either));
        fs::rename(temporary, &path)?;
        self.sync_folder()?;
        self.keep(path, new);
        Ok(())
    }

    fn append(&mut self, path: PathBuf, old: Content) -> io::Result<()> {
        let new = [old.clone(), self.content()].concat();
        let mut file = File::options().append(true).open(&path)?;
        self.promises
            .insert(path.clone(), Promise::Begins(old.clone()));
        file.write_all(&new[old.len()..])?;
        self.before_cut(file.sync_all())?;
        self.keep(path, new);
        Ok(())
    }

    fn overwrite(&mut self, path: PathBuf, old: Content) -> io::Result<()> {
        let new = self.bytes(old.len());
        let file = File::options().write(true).open(&path)?;
        self.promises
            .insert(path.clone(), Promise::Mixture(old, new.clone()));
        file.write_all_at(&new, 0)?;
        self.before_cut(file.sync_data())?;
        self.keep(path, new);
        Ok(())
    }

    fn delete(&mut self, path: PathBuf, old: Content) -> io::Result<()> {
        let either = vec![Some(old), None];
        self.promises.insert(path.clone(), Promise::OneOf(either));
        fs::remove_file(&path)?;
        self.sync_folder()?;
        self.files.remove(&path);
        self.promises.insert(path, Promise::OneOf(vec![None]));
        Ok(())
    }

    fn keep(&mut self, path: PathBuf, content: Content) {
        self.promises.insert(path.clone(), Promise::file(&content));
        self.files.insert(path, content);
    }

    fn sync_folder(&self) -> io::Result<()> {
        self.before_cut(File::open(&self.folder)?.sync_all())
    }

    /// Returns the outcome of an fsync, or an error if the cut may have been ordered before it
    /// ended.
    fn before_cut(&self, synced: io::Result<()>) -> io::Result<()> {
        synced?;
        if self.power_is_cut.load(Ordering::SeqCst) {
            return Err(io::Error::other("the power fails"));
        }
        Ok(())
    }

    fn name(&mut self) -> PathBuf {
        self.made += 1;
        self.folder.join(self.made.to_string())
    }

    fn content(&mut self) -> Content {
        let bytes = 1 + self.rng.below(40_000) as usize;
        self.bytes(bytes)
    }

    fn bytes(&mut self, count: usize) -> Content {
        let mut bytes: Content = (0..count.div_ceil(8))
            .flat_map(|_| self.rng.bits().to_le_bytes())
            .collect();
        bytes.truncate(count);
        bytes
    }

    fn promised(&self) -> u64 {
        self.promises.len() as u64
    }

    /// Describes the promises that were not kept.
    fn broken(&self) -> impl Iterator<Item = String> {
        self.promises.iter().filter_map(|(path, promise)| {
            let found = fs::read(path);
            if let Err(error) = &found
                && error.kind() != io::ErrorKind::NotFound
            {
                return Some(format!("{}: {error}", path.display()));
            }
            let found = found.ok();
            (!promise.is_kept(found.as_ref()))
                .then(|| format!("{}: {}", path.display(), promise.mismatch(found.as_ref())))
        })
    }
}

/// A file that is written repeatedly, bypassing the page cache and without a flush, so that there
/// is data to lose at every cut.
struct Scratch {
    path: PathBuf,
    rng: Rng,
    /// The number of writes so far.
    rounds: u64,
}

/// The size of the scratch file.
const SCRATCH_BYTES: usize = 64 << 10;
/// The size and the alignment of a write to the scratch file.
const PAGE_BYTES: usize = 4096;

impl Scratch {
    fn new(mount: &Path, seed: u64) -> io::Result<Scratch> {
        let path = mount.join("scratch");
        let mut file = File::create(&path)?;
        file.write_all(&[0; SCRATCH_BYTES])?;
        file.sync_all()?;
        File::open(mount)?.sync_all()?;
        Ok(Scratch {
            path,
            rng: Rng::new(seed),
            rounds: 0,
        })
    }

    fn run_until_power_cut(&mut self) {
        let direct = rustix::fs::OFlags::DIRECT.bits().cast_signed();
        let mut options = File::options();
        let file = options.write(true).custom_flags(direct).open(&self.path);
        // Direct writes need a buffer that is aligned to a page.
        let mut room = vec![0; 2 * PAGE_BYTES];
        let start = room.as_ptr().align_offset(PAGE_BYTES);
        let page = &mut room[start..start + PAGE_BYTES];
        while let Ok(file) = &file {
            self.rounds += 1;
            let stamps = self.rounds.to_le_bytes();
            page.chunks_mut(8)
                .for_each(|part| part.copy_from_slice(&stamps));
            let place = self.rng.below((SCRATCH_BYTES / PAGE_BYTES) as u64) * PAGE_BYTES as u64;
            if file.write_all_at(page, place).is_err() {
                return;
            }
            thread::sleep(Duration::from_micros(200));
        }
    }

    /// Returns a message unless every 512 bytes hold the data of one write or the initial zeros.
    fn broken(&self) -> Option<String> {
        let whole = |sector: &[u8]| {
            let stamp = u64::from_le_bytes(sector[..8].try_into().expect("8 bytes"));
            stamp <= self.rounds && sector.chunks(8).all(|part| part == stamp.to_le_bytes())
        };
        match fs::read(&self.path) {
            Ok(all) if all.len() == SCRATCH_BYTES && all.chunks(512).all(whole) => None,
            Ok(_) => Some("the scratch file holds data that was never written".to_owned()),
            Err(error) => Some(format!("the scratch file: {error}")),
        }
    }
}

//! `traxtent volume`: volumes on files and block devices.

use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::time::{Duration, Instant};

use serde_json::{Value, json};
use signal_hook::consts::{SIGINT, SIGTERM};
use traxtent_check::layers::{Content, Unknown, recognize};
use traxtent_check::source::FileSource;
use traxtent_core::layout::raid::{Chunks, Level};
use traxtent_core::volume::superblock::{MemberState, Superblock};
use traxtent_exec::volume::{self, DeviceVolume, Found, Plan, VolumeIoError, find, wait};
use uuid::Uuid;

use crate::failure::{Failure, Result, note};
use crate::output;
use crate::progress::Progress;
use crate::serve::attach::Address;
use crate::serve::nbdkit::{Nbdkit, Order, catch};
use crate::serve::{code_of, set_mode};

/// Keep volumes on files and block devices: striped, mirrored, or with parity that survives crashes
///
/// A volume is named by its members, in any order. Only `serve` offers its data; the other verbs work while nobody serves it.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[command(subcommand)]
    verb: Verb,
}

const EXAMPLES: &str = "Examples:
  truncate -s 1G a b c
  traxtent volume create --level raid-5 --chunk 64K a b c
  traxtent volume serve a b c -- sh -c 'nbdinfo \"$uri\"'
  traxtent volume fail 1 a b c
  traxtent volume assemble --force a c
  traxtent volume replace 1 --with d a c && traxtent volume rebuild a c d";

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Make a volume of files or block devices
    Create(Create),
    /// Put a volume together after a crash, so that it is whole again
    Assemble(Members),
    /// Serve a volume as a network block device
    Serve(Serve),
    /// Say what the members know; writes nothing
    Status(Members),
    /// Declare a member failed
    Fail(OfMember),
    /// Put another device in the place of a failed member
    Replace(Replace),
    /// Compute what a replaced member had
    Rebuild(Work),
    /// Read everything, and make right what disagrees; the first scrub makes a new volume's parity
    Scrub(Work),
    /// Make members of a volume plain devices again
    Destroy(Destroy),
}

#[derive(clap::Args, Debug)]
struct Create {
    /// raid-0, raid-1, raid-4 or raid-5
    #[arg(long, value_parser = level)]
    level: Level,
    /// Bytes of a chunk, such as 64K; without it chunks are tracks
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    chunk: Option<u64>,
    /// A member's track map, once for each member in their order
    #[arg(long = "map", value_name = "FILE")]
    maps: Vec<PathBuf>,
    /// Bytes of each member that the journal has
    #[arg(long, value_name = "BYTES", value_parser = bytes, default_value = "64M")]
    journal: u64,
    /// Overwrite what is on the members: all of it is lost
    #[arg(long)]
    force: bool,
    /// The members: files or block devices
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Print what was made as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Members {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Go on without missing members, for good: they are stale then, and blocks that were being written in a crash may be lost
    #[arg(long)]
    force: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Serve {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Serve on this socket [default: one in a new folder]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Run this with $uri and $socket, and serve no longer
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(clap::Args, Debug)]
struct OfMember {
    /// The member's number
    member: usize,
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct Replace {
    /// The failed member's number
    member: usize,
    /// What takes its place
    #[arg(long, value_name = "DEVICE")]
    with: PathBuf,
    /// Overwrite what is there
    #[arg(long)]
    force: bool,
    /// The other members
    #[arg(required = true)]
    members: Vec<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct Work {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// At most so many bytes a second of each member, such as 50M
    #[arg(long, value_name = "BYTES", value_parser = bytes)]
    rate: Option<u64>,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Destroy {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Do it: the volume's data are lost
    #[arg(long)]
    force: bool,
}

/// A rebuild or a scrub makes durable how far it has come after so long.
const CHECKPOINT: Duration = Duration::from_secs(5);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Create(args) => create(args),
        Verb::Assemble(args) => assemble(args),
        Verb::Serve(args) => serve(args),
        Verb::Status(args) => status(args),
        Verb::Fail(args) => fail(args),
        Verb::Replace(args) => replace(args),
        Verb::Rebuild(args) => rebuild(args),
        Verb::Scrub(args) => scrub(args),
        Verb::Destroy(args) => destroy(args),
    }
}

fn create(args: &Create) -> Result<()> {
    if args
        .chunk
        .is_some_and(|bytes| bytes == 0 || !bytes.is_multiple_of(4096))
    {
        return Err(Failure::input("--chunk: expected a multiple of 4K"));
    }
    if args.chunk.is_none() && args.maps.len() != args.members.len() {
        return Err(Failure::input(format!(
            "{} members and {} track maps: chunks that are tracks need --map for each member, others --chunk",
            args.members.len(),
            args.maps.len()
        )));
    }
    let maps = args
        .maps
        .iter()
        .cloned()
        .map(Some)
        .chain(std::iter::repeat(None));
    let plan = Plan {
        level: args.level,
        chunk_bytes: args.chunk,
        granule_bytes: 4096,
        journal_bytes: args.journal,
        members: args.members.iter().cloned().zip(maps).collect(),
        force: args.force,
    };
    let superblock = volume::create(&plan, Uuid::new_v4, holds).map_err(failure)?;
    let paths: Vec<Option<&Path>> = args
        .members
        .iter()
        .map(|path| Some(path.as_path()))
        .collect();
    show(&superblock, &paths, args.json)
}

fn assemble(args: &Members) -> Result<()> {
    let found = find(&args.members, args.force).map_err(failure)?;
    let paths: Vec<Option<PathBuf>> = found
        .paths()
        .iter()
        .map(|path| path.map(Path::to_owned))
        .collect();
    let volume = found.open().map_err(failure)?;
    wait(volume.stop()).map_err(stopped)?;
    let paths: Vec<Option<&Path>> = paths.iter().map(Option::as_deref).collect();
    show(&wait(volume.superblock()), &paths, args.json)
}

fn status(args: &Members) -> Result<()> {
    // Missing members are part of the answer.
    let found = find(&args.members, true).map_err(failure)?;
    show(&found.superblock, &found.paths(), args.json)?;
    let is_whole = found
        .superblock
        .members
        .iter()
        .all(|member| member.state == MemberState::Active);
    match is_whole && found.superblock.lost.is_empty() {
        true => Ok(()),
        false => Err(Failure::Finding("the volume is not whole".to_owned())),
    }
}

fn serve(args: &Serve) -> Result<()> {
    let folder = tempfile::Builder::new().prefix("traxtent-").tempdir();
    let folder = folder.map_err(|error| Failure::file(&std::env::temp_dir(), &error))?;
    let stopped = catch(&[SIGINT, SIGTERM])?;
    let socket = args
        .socket
        .clone()
        .unwrap_or_else(|| folder.path().join("socket"));
    let address = Address::Socket(
        std::path::absolute(&socket).map_err(|error| Failure::file(&socket, &error))?,
    );
    let mut keys = Vec::new();
    for path in &args.members {
        let absolute = std::path::absolute(path).map_err(|error| Failure::file(path, &error))?;
        let text = absolute.to_str().map(str::to_owned);
        keys.push((
            "volume",
            text.ok_or_else(|| Failure::at(path.display(), "its name is not UTF-8"))?,
        ));
    }
    let order = Order {
        address: &address,
        pidfile: folder.path().join("pid"),
        threads: 16,
        keys,
    };
    let server = Nbdkit::start(&order)?;
    set_mode(&socket, 0o600)?;
    let status = match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest).envs(address.environment());
            Some(server.serve_while(&mut command)?)
        }
        None => {
            note(format!(
                "the volume is served at {}",
                address.environment()[0].1
            ));
            server.serve_until(&stopped)?;
            None
        }
    };
    server.stop()?;
    match status {
        Some(status) if !status.success() => Err(Failure::Status(code_of(status))),
        _ => Ok(()),
    }
}

fn fail(args: &OfMember) -> Result<()> {
    let volume = open(&args.members)?;
    if args.member >= wait(volume.superblock()).members.len() {
        return Err(Failure::input(format!(
            "there is no member {}",
            args.member
        )));
    }
    wait(volume.fail(args.member)).map_err(stopped)?;
    wait(volume.stop()).map_err(stopped)
}

fn replace(args: &Replace) -> Result<()> {
    let found = find(&args.members, false).map_err(failure)?;
    let found = found
        .replace(args.member, &args.with, Uuid::new_v4(), args.force, holds)
        .map_err(failure)?;
    let volume = found.open().map_err(failure)?;
    wait(volume.begin_rebuild(args.member)).map_err(stopped)?;
    wait(volume.stop()).map_err(stopped)
}

fn rebuild(args: &Work) -> Result<()> {
    let volume = open(&args.members)?;
    let interrupted = catch(&[SIGINT, SIGTERM])?;
    let stripes = volume.array().stripes();
    let mut pace = Pace::new("stripes", stripes, volume.rebuilt(), args.rate);
    let mut done = true;
    while wait(volume.rebuild_step()).map_err(stopped)? {
        pace.stripe(&volume, volume.rebuilt().saturating_sub(1))?;
        if pace.is_due() {
            wait(volume.rebuild_checkpoint()).map_err(stopped)?;
        }
        if interrupted.load(std::sync::atomic::Ordering::Relaxed) {
            wait(volume.rebuild_checkpoint()).map_err(stopped)?;
            done = false;
            break;
        }
    }
    let rebuilt = volume.rebuilt();
    wait(volume.stop()).map_err(stopped)?;
    outcome(
        args.json,
        &json!({ "done": done, "stripes": stripes, "rebuilt": rebuilt }),
        done,
    )
}

fn scrub(args: &Work) -> Result<()> {
    let volume = open(&args.members)?;
    let interrupted = catch(&[SIGINT, SIGTERM])?;
    let stripes = volume.array().stripes();
    let superblock = wait(volume.superblock());
    let (first, synced) = (superblock.scrubbed, superblock.synced);
    let mut pace = Pace::new("stripes", stripes, first, args.rate);
    let (mut wrong, mut repaired, mut next) = (0, 0, first);
    while next < stripes && !interrupted.load(std::sync::atomic::Ordering::Relaxed) {
        let scrubbed = wait(volume.scrub(next)).map_err(stopped)?;
        // Before, parity is made, not found wrong.
        wrong += if next < synced { scrubbed.wrong } else { 0 };
        repaired += scrubbed.repaired;
        pace.stripe(&volume, next)?;
        next += 1;
        if pace.is_due() {
            wait(volume.scrub_checkpoint(next)).map_err(stopped)?;
        }
    }
    wait(volume.scrub_checkpoint(next)).map_err(stopped)?;
    wait(volume.stop()).map_err(stopped)?;
    let done = next == stripes;
    let says = json!({
        "done": done, "first": first, "next": next, "stripes": stripes,
        "wrong_rows": wrong, "repaired_chunks": repaired,
    });
    outcome(args.json, &says, done && wrong == 0 && repaired == 0)
}

fn destroy(args: &Destroy) -> Result<()> {
    if !args.force {
        return Err(Failure::input(
            "the volume's data would be lost: say --force",
        ));
    }
    args.members
        .iter()
        .try_for_each(|path| volume::destroy(path).map_err(failure))
}

fn open(members: &[PathBuf]) -> Result<DeviceVolume> {
    find(members, false).and_then(Found::open).map_err(failure)
}

/// Keeps work on stripes below a rate, and tells how far it is.
struct Pace {
    progress: Progress,
    rate: Option<u64>,
    began: Instant,
    checkpoint: Instant,
    bytes: u64,
}

impl Pace {
    fn new(what: &'static str, stripes: u64, done: u64, rate: Option<u64>) -> Pace {
        let progress = Progress::new(what, Some(stripes));
        progress.add(done);
        let now = Instant::now();
        Pace {
            progress,
            rate,
            began: now,
            checkpoint: now,
            bytes: 0,
        }
    }

    fn stripe(&mut self, volume: &DeviceVolume, number: u64) -> Result<()> {
        self.progress.add(1);
        let stripe = volume.array().stripe(number).map_err(Failure::input)?;
        let rows = stripe
            .chunks()
            .map(|chunk| chunk.sectors.0)
            .max()
            .unwrap_or(0);
        self.bytes += rows * volume.sector_bytes() as u64;
        if let Some(rate) = self.rate {
            let due = Duration::from_secs_f64(self.bytes as f64 / rate.max(1) as f64);
            std::thread::sleep(due.saturating_sub(self.began.elapsed()));
        }
        Ok(())
    }

    fn is_due(&mut self) -> bool {
        let is_due = self.checkpoint.elapsed() >= CHECKPOINT;
        if is_due {
            self.checkpoint = Instant::now();
        }
        is_due
    }
}

fn outcome(as_json: bool, says: &Value, is_good: bool) -> Result<()> {
    if as_json {
        output::json(says)?;
    } else {
        let mut out = output::stdout();
        for (key, value) in says.as_object().into_iter().flatten() {
            writeln!(out, "{}: {value}", key.replace('_', " "))?;
        }
        output::finish(out)?;
    }
    match is_good {
        true => Ok(()),
        false => Err(Failure::Finding(
            "not all was well, or not all was done".to_owned(),
        )),
    }
}

fn show(superblock: &Superblock, paths: &[Option<&Path>], as_json: bool) -> Result<()> {
    let stripes = |state: MemberState| match state {
        MemberState::Rebuilding(stripes) => Some(stripes),
        _ => None,
    };
    let name = |state: MemberState| match state {
        MemberState::Active => "active",
        MemberState::Failed => "failed",
        MemberState::Rebuilding(_) => "rebuilding",
    };
    let bytes = superblock.capacity.0 * u64::from(superblock.sector_bytes);
    let rule = Chunks::NAMES
        .get(usize::from(superblock.rule))
        .copied()
        .unwrap_or("unknown");
    if as_json {
        let members = superblock.members.iter().enumerate().map(|(index, member)| {
            json!({
                "member": index,
                "id": member.id.to_string(),
                "path": paths.get(index).copied().flatten().map(|path| path.display().to_string()),
                "state": name(member.state),
                "rebuilt_stripes": stripes(member.state),
            })
        });
        let lost = superblock
            .lost
            .iter()
            .map(|lost| json!({ "first": lost.start, "end": lost.end }));
        return output::json(&json!({
            "volume": superblock.volume.to_string(),
            "level": format!("raid-{}", superblock.level),
            "chunks": rule,
            "chunk_sectors": superblock.chunk,
            "sector_bytes": superblock.sector_bytes,
            "bytes": bytes,
            "generation": superblock.generation,
            "clean": superblock.clean,
            "synced_stripes": superblock.synced,
            "scrub_next": superblock.scrubbed,
            "lost": lost.collect::<Vec<_>>(),
            "members": members.collect::<Vec<_>>(),
        }));
    }
    let mut out = output::stdout();
    writeln!(
        out,
        "volume {}: raid-{}, {rule} chunks, {bytes} bytes",
        superblock.volume, superblock.level
    )?;
    if !superblock.clean {
        writeln!(
            out,
            "  was not stopped in order; the next start recovers it"
        )?;
    }
    for (index, member) in superblock.members.iter().enumerate() {
        let path = paths.get(index).copied().flatten();
        let path = path.map_or("not here".to_owned(), |path| path.display().to_string());
        write!(out, "  member {index}: {}, {path}", name(member.state))?;
        match stripes(member.state) {
            Some(stripes) => writeln!(out, ", {stripes} stripes done")?,
            None => writeln!(out)?,
        }
    }
    for lost in &superblock.lost {
        writeln!(out, "  lost: sectors {} to {}", lost.start, lost.end)?;
    }
    output::finish(out)
}

/// What a device holds, if anything is recognized.
fn holds(path: &Path) -> Option<String> {
    let source = FileSource::open(path).ok()?;
    let what = match recognize(&source, 512) {
        Content::Table(_) => "a partition table",
        Content::MdMember(_) => "a member of an md array",
        Content::PhysicalVolume(..) => "a physical volume of LVM",
        Content::Luks(_) => "LUKS",
        Content::Zfs(_) => "a member of a ZFS pool",
        Content::Xfs(_) => "XFS",
        Content::Btrfs(_) => "Btrfs",
        Content::Ext(_) => "an ext file system",
        Content::Swap(_) => "swap space",
        Content::Unknown(Unknown::Named(name)) => return Some(name),
        Content::Unknown(Unknown::Damaged(why)) => {
            return Some(format!("something damaged: {why}"));
        }
        _ => return None,
    };
    Some(what.to_owned())
}

fn failure(error: VolumeIoError) -> Failure {
    match error {
        VolumeIoError::Device { .. } | VolumeIoError::InUse(_) => Failure::Io(error.to_string()),
        other => Failure::input(other),
    }
}

fn stopped(error: impl std::fmt::Display) -> Failure {
    Failure::Io(error.to_string())
}

fn level(text: &str) -> std::result::Result<Level, String> {
    Level::ALL
        .into_iter()
        .find(|level| level.name() == text)
        .ok_or_else(|| "expected raid-0, raid-1, raid-4 or raid-5".to_owned())
}

fn bytes(text: &str) -> std::result::Result<u64, String> {
    let (digits, shift) = match text.char_indices().last() {
        Some((at, 'K' | 'k')) => (&text[..at], 10),
        Some((at, 'M' | 'm')) => (&text[..at], 20),
        Some((at, 'G' | 'g')) => (&text[..at], 30),
        _ => (text, 0),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(1 << shift))
        .ok_or_else(|| "expected bytes, such as 65536, 64K, 64M".to_owned())
}

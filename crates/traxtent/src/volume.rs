//! `traxtent volume`: volumes on files and block devices.

mod maps;
mod show;

use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::block_on;
use traxtent_io::device::Interrupt;
use traxtent_io::device::guard::{Refusal, volume_on};
use traxtent_layout::raid::Level;
use traxtent_map::{MapFile, MapSource};
use traxtent_probe::Identity;
use traxtent_server::control::send_order;
use traxtent_server::copies::{ReplicaVolumeServer, holds_replica_volume};
use traxtent_server::service::{BlockService, Export};
use traxtent_server::volume::{
    self, Found, MEMBER_TIMEOUT, MEMBER_TIMEOUTS, MaintenanceKind, MaintenanceTask, Repairs,
    SYNC_RATE, VolumeIoError, VolumeOrder as Asked, VolumePlan, VolumeServer, VolumeStatus, find,
};
use traxtent_units::byte_size::{BYTE_SIZE_HELP, parse_byte_size};
use traxtent_volume::VolumeError;
use traxtent_volume::superblock::SuperblockError;
use uuid::Uuid;

use self::maps::{verify_known, verify_new};
use self::show::{outcome, show};
use crate::content::recognized_content;
use crate::copies;
use crate::failure::{Failure, Result, note, warn};
use crate::output;
use crate::progress::Progress;
use crate::serve::attach::{self, Served};
use crate::serve::front_ends::FrontEndArgs;
use crate::serve::guardian::guarded;
use crate::serve::session::{Session, Signals, exit_with};

/// Manage striped, mirrored and parity volumes on files and block devices
///
/// A volume is named by its members, in any order. While it is served, the members are locked. In
/// that case, pass the control socket instead of the members to status, fail, replace, rebuild,
/// sync, scrub and repair-superblocks.
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
  traxtent volume replace 1 --with d a c && traxtent volume rebuild a c d
  traxtent volume serve --control orders a c d &
  traxtent volume scrub --rate 50M orders
  traxtent volume scrub --repair --from 0 a b";

#[derive(clap::Subcommand, Debug)]
enum Verb {
    /// Create a volume on files or block devices
    Create(Create),
    /// Assemble a volume after a crash, and recover it
    Assemble(Assemble),
    /// Serve a volume as a network block device
    Serve(Serve),
    /// Show the volume's status from the members' superblocks or from the server, without writing
    Status(Status),
    /// Declare a member failed
    Fail(MemberArgs),
    /// Replace a failed member with another device
    Replace(Replace),
    /// Rebuild the content of a replaced member
    Rebuild(WorkArgs),
    /// Compute the parity or the replicas of a new volume whose members are not known to be zero
    Sync(WorkArgs),
    /// Read and compare everything, and report differences; nothing is changed without --repair
    Scrub(Scrub),
    /// Rewrite missing and damaged superblocks, and trust their members again
    RepairSuperblocks(RepairSuperblocks),
    /// Print the boundaries of the volume's chunks as a track map, for `check` and `plan stack`
    Map(Map),
    /// Turn members of a volume into plain devices again
    Destroy(Destroy),
    /// Keep replicas of blocks around their tracks on one device; reads take the one that passes
    /// first
    Copies(copies::Args),
}

#[derive(clap::Args, Debug)]
#[command(after_help = BYTE_SIZE_HELP)]
struct Create {
    /// raid-0, raid-1, raid-4 or raid-5
    #[arg(long, value_parser = level)]
    level: Level,
    /// The size of a chunk in bytes, such as 64K; without it, chunks are tracks
    #[arg(long, value_name = "BYTES", value_parser = parse_byte_size)]
    chunk: Option<u64>,
    /// A member's track map; once for each member, in the same order
    #[arg(long = "map", value_name = "FILE")]
    maps: Vec<PathBuf>,
    /// The size of the journal on each member in bytes, such as 64M
    #[arg(long, value_name = "BYTES", value_parser = parse_byte_size, default_value = "64M")]
    journal: u64,
    /// Overwrite the content of the members, which is lost
    #[arg(long)]
    force: bool,
    /// Do not test a sample of the track maps on members that can be timed
    #[arg(long)]
    trust_map: bool,
    /// The members: files or block devices
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Print the new volume as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Assemble {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Do not test a sample of the track maps on members that can be timed
    #[arg(long)]
    trust_map: bool,
    /// Continue without the missing members permanently; they become stale, and blocks that were
    /// being written during a crash may be lost
    #[arg(long)]
    force: bool,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Status {
    /// The members, or the control socket
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Map {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(after_help = BYTE_SIZE_HELP)]
struct Serve {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Create the control socket here [default: in a new directory]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// The time after which a member that does not respond is failed, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = member_timeout)]
    member_timeout: Option<u64>,
    /// The rate of the initial sync during operation in bytes per second for each member, such as
    /// 50M and at least 64K, or off [default: 32M]
    #[arg(long, value_name = "RATE", value_parser = sync_rate)]
    sync_rate: Option<SyncRate>,
    /// Do not test a sample of the track maps on members that can be timed
    #[arg(long)]
    trust_map: bool,
    #[command(flatten)]
    front_ends: FrontEndArgs,
    /// Refuse writes
    #[arg(long)]
    read_only: bool,
    /// Run this command with $uri, $socket or $port, and $control, and stop serving when it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

#[derive(clap::Args, Debug)]
struct MemberArgs {
    /// The member's number
    member: usize,
    /// The members, or the control socket
    #[arg(required = true)]
    members: Vec<PathBuf>,
}

#[derive(clap::Args, Debug)]
struct Replace {
    /// The failed member's number
    member: usize,
    /// The device that replaces the member
    #[arg(long, value_name = "DEVICE")]
    with: PathBuf,
    /// Overwrite existing content of the device
    #[arg(long)]
    force: bool,
    /// The other members, or the control socket
    #[arg(required = true)]
    members: Vec<PathBuf>,
}

#[derive(clap::Args, Debug)]
#[command(after_help = BYTE_SIZE_HELP)]
struct WorkArgs {
    /// The members, or the control socket
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// The maximum rate in bytes per second for each member, such as 50M; at least 64K
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    rate: Option<u64>,
    /// Let a server continue in the background; `status` shows the progress
    #[arg(long)]
    no_wait: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    json: bool,
}

/// The repairs that `--repair` permits.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum RepairScope {
    /// Rewrite sectors that cannot be read from the other members, and replicas that a majority
    /// disagrees with
    Sectors,
    /// The same, and recompute mismatched parity from the data, right or wrong
    Parity,
}

#[derive(clap::Args, Debug)]
struct Scrub {
    #[command(flatten)]
    work: WorkArgs,
    /// Repair what is certain: sectors that cannot be read, and replicas that a majority disagrees
    /// with; =parity also recomputes parity
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "sectors")]
    repair: Option<RepairScope>,
    /// The member whose replica is correct if replicas differ without a majority
    #[arg(long, value_name = "MEMBER", requires = "repair")]
    from: Option<usize>,
}

#[derive(clap::Args, Debug)]
struct RepairSuperblocks {
    /// The members, or the control socket
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    json: bool,
}

#[derive(clap::Args, Debug)]
struct Destroy {
    /// The members
    #[arg(required = true)]
    members: Vec<PathBuf>,
    /// Confirm the loss of the volume's data
    #[arg(long)]
    force: bool,
}

/// The maximum number of requests per client that are carried out at a time.
const OUTSTANDING: usize = 16;

/// The interval at which a server's progress is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    match &args.verb {
        Verb::Create(args) => create(args),
        Verb::Assemble(args) => assemble(args),
        Verb::Serve(args) => guarded(args.front_ends.named_socket(), |folder| serve(args, folder)),
        Verb::Status(args) => status(args),
        Verb::Fail(args) => fail(args),
        Verb::Replace(args) => replace(args),
        Verb::Rebuild(args) => work(args, MaintenanceKind::Rebuild, Repairs::default()),
        Verb::Sync(args) => work(args, MaintenanceKind::Sync, Repairs::default()),
        Verb::Scrub(args) => scrub(args),
        Verb::RepairSuperblocks(args) => repair_superblocks(args),
        Verb::Map(args) => map(args),
        Verb::Destroy(args) => destroy(args),
        Verb::Copies(args) => copies::run(args),
    }
}

fn create(args: &Create) -> Result<()> {
    if args
        .chunk
        .is_some_and(|bytes| bytes == 0 || !bytes.is_multiple_of(4096))
    {
        return Err(Failure::input(
            "--chunk: expected a multiple of 4K, such as 64K (65536 bytes; 64KB is 64000)",
        ));
    }
    if args.chunk.is_none() && args.maps.len() != args.members.len() {
        return Err(Failure::input(format!(
            "{} members, but {} track maps; give --map once for each member, or a chunk size with --chunk",
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
    if !args.trust_map {
        verify_new(args)?;
    }
    let plan = VolumePlan {
        level: args.level,
        chunk_bytes: args.chunk,
        granule_bytes: 4096,
        journal_bytes: args.journal,
        members: args.members.iter().cloned().zip(maps).collect(),
        force: args.force,
    };
    let made = volume::create(&plan, Uuid::new_v4, recognized_content).map_err(failure)?;
    show(&made, args.json)
}

fn assemble(args: &Assemble) -> Result<()> {
    let found = found(&args.members, args.force)?;
    if !args.trust_map {
        verify_known(&found);
    }
    let volume = found.open().map_err(failure)?;
    note_recovery(&volume);
    block_on(volume.stop()).map_err(stopped)?;
    show(&VolumeStatus::of(&volume), args.json)
}

fn status(args: &Status) -> Result<()> {
    let status = match control_of(&args.members) {
        Some(socket) => ask(socket, &Asked::Status)?,
        None => volume::inspect(&args.members).map_err(|error| explained(error, &args.members))?,
    };
    show(&status, args.json)?;
    if status.is_whole() {
        Ok(())
    } else {
        Err(Failure::Finding(
            "the volume is degraded or damaged; see above".to_owned(),
        ))
    }
}

fn map(args: &Map) -> Result<()> {
    let found = volume::find_with_suspects(&args.members, true, true);
    let found = found.map_err(|error| explained(error, &args.members))?;
    let superblock = &found.superblock;
    let identity = Identity {
        product: format!("volume {}", superblock.volume),
        capacity: superblock.capacity,
        logical_bytes: superblock.sector_bytes,
        // A chunk is a multiple of this size.
        physical_bytes: superblock.sector_bytes * superblock.granule,
        ..Identity::default()
    };
    let mut out = output::stdout();
    MapFile::new(identity, MapSource::Model, found.chunk_map()).write(&mut out)?;
    output::finish(out)
}

/// Returns the control socket if one is given instead of members.
fn control_of(members: &[PathBuf]) -> Option<&Path> {
    use std::os::unix::fs::FileTypeExt;
    let [only] = members else { return None };
    let kind = std::fs::metadata(only).ok()?.file_type();
    kind.is_socket().then_some(only)
}

/// Sends an order to a server, and returns the status from its response.
fn ask(socket: &Path, asked: &Asked) -> Result<VolumeStatus> {
    let line = serde_json::to_string(asked).map_err(Failure::input)?;
    let answer = send_order(socket, &line).map_err(|error| match error.kind() {
        ErrorKind::NotFound | ErrorKind::ConnectionRefused | ErrorKind::UnexpectedEof => {
            Failure::Io(format!(
                "{}: no server responds; it may have ended",
                socket.display()
            ))
        }
        _ => Failure::file(socket, &error),
    })?;
    let answer = answer.map_err(Failure::input)?;
    serde_json::from_str(&answer).map_err(|error| Failure::at(socket.display(), error))
}

fn serve(args: &Serve, folder: &Path) -> Result<()> {
    let signals = Signals::catch()?;
    let (service, control) = if has_copies(&args.members) {
        (open_replicas(args)?, None)
    } else {
        let control = args.control.clone();
        let control = control.unwrap_or_else(|| folder.join("control"));
        let control =
            std::path::absolute(&control).map_err(|error| Failure::file(&control, &error))?;
        (open_volume(args, &control)?, Some(control))
    };
    let export = Export {
        name: "volume".to_owned(),
        description: "a volume".to_owned(),
        service,
        read_only: args.read_only,
    };
    let session = Session::start(vec![export], &args.front_ends, OUTSTANDING, folder, signals)?;
    let control = control.map(|path| path.display().to_string());
    let members: Vec<String> = args
        .members
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let summary = format!("volume: data is in {}", members.join(", "));
    let served = Served::volume(summary, control.clone(), &session.exports()[0]);
    attach::print(&[served], &session, !args.command.is_empty())?;
    let variables: Vec<(String, String)> = control
        .into_iter()
        .map(|path| ("control".to_owned(), path))
        .collect();
    let (status, stopped) = session.run(&args.command, &variables)?;
    stopped?;
    exit_with(status)
}

fn open_replicas(args: &Serve) -> Result<Arc<dyn BlockService>> {
    for (is_given, why) in [
        (
            args.control.is_some(),
            "--control: a volume with replicas takes no orders",
        ),
        (
            args.sync_rate.is_some(),
            "--sync-rate: a volume with replicas needs no sync",
        ),
        (
            args.member_timeout.is_some(),
            "--member-timeout: a volume with replicas has only one member",
        ),
    ] {
        if is_given {
            return Err(Failure::input(why));
        }
    }
    let opened = ReplicaVolumeServer::open(&args.members[0]);
    Ok(Arc::new(
        opened.map_err(|error| Failure::Io(error.to_string()))?,
    ))
}

fn open_volume(args: &Serve, control: &Path) -> Result<Arc<dyn BlockService>> {
    // This reports problems in more detail than the server does.
    let timeout = args
        .member_timeout
        .map_or(MEMBER_TIMEOUT, Duration::from_secs);
    if args.read_only
        && let Some(server) = open_to_read(args, control, timeout)?
    {
        return Ok(Arc::new(server));
    }
    let found = volume::find_within(&args.members, false, timeout);
    let found = found.map_err(|error| explained(error, &args.members))?;
    warn_of(&found.status());
    let left = found.status().unsynced();
    if left > 0 {
        let how = match args.sync_rate {
            Some(SyncRate::Off) => "run `sync` with the control socket",
            _ => "the sync continues while the volume is served",
        };
        note(format!("{left} stripes are not synced yet; {how}"));
    }
    if !args.trust_map {
        verify_known(&found);
    }
    drop(found);
    let opened = VolumeServer::open_within(&args.members, Some(control), timeout);
    let mut server = opened.map_err(|error| Failure::Io(error.to_string()))?;
    note_recovery(server.volume());
    server.set_sync_rate(match args.sync_rate {
        None => Some(SYNC_RATE),
        Some(SyncRate::Off) => None,
        Some(SyncRate::Bytes(rate)) => Some(rate),
    });
    Ok(Arc::new(server))
}

/// Opens the volume without writing to its members. Returns `None` if it has to be recovered first.
fn open_to_read(args: &Serve, control: &Path, timeout: Duration) -> Result<Option<VolumeServer>> {
    let found = volume::find_to_read(&args.members, timeout);
    let found = found.map_err(|error| explained(error, &args.members))?;
    let status = found.status();
    if !status.clean {
        note("the volume was not stopped cleanly; its recovery writes to the members");
        return Ok(None);
    }
    warn_of(&status);
    if !args.trust_map {
        verify_known(&found);
    }
    drop(found);
    let opened = VolumeServer::open_to_read(&args.members, Some(control), timeout);
    opened.map(Some).map_err(failure)
}

/// Notes that the volume was recovered when it was opened.
fn note_recovery(volume: &volume::DeviceVolume) {
    if let Some(records) = volume.recovered() {
        note(format!(
            "the volume was not stopped cleanly; it is recovered; writes replayed from the journal: {records}"
        ));
    }
}

/// Warns about failed members and lost data of a volume to be served.
fn warn_of(status: &VolumeStatus) {
    for member in &status.members {
        let number = member.member;
        match member.state.as_str() {
            "failed" if member.path.is_none() => warn(format!(
                "member {number} is missing or has failed; its content is computed from the others"
            )),
            "failed" => warn(format!(
                "member {number} has failed; replace and rebuild it"
            )),
            "rebuilding" => warn(format!("member {number} is not rebuilt yet")),
            _ => {}
        }
    }
    for lost in &status.lost {
        warn(format!("sectors {} to {} are lost", lost.first, lost.end));
    }
}

/// Finds the volume on members, without writing.
fn found(members: &[PathBuf], force: bool) -> Result<Found> {
    find(members, force).map_err(|error| explained(error, members))
}

fn explained(error: VolumeIoError, members: &[PathBuf]) -> Failure {
    match members {
        [path] if has_copies(members) => {
            let why = "holds a volume with replicas; use `volume serve` or `volume copies`";
            Failure::at(path.display(), why)
        }
        _ => match &error {
            VolumeIoError::Superblock {
                path,
                error: SuperblockError::None,
            } => match recognized_content(path) {
                Some(what) => Failure::at(
                    path.display(),
                    format!("is not a member of a volume; it holds {what}"),
                ),
                None => Failure::at(path.display(), "is not a member of a volume; it is blank"),
            },
            _ => failure(error),
        },
    }
}

/// Returns whether the only device holds a volume with replicas. Read errors are reported later by
/// the caller that needs the device.
fn has_copies(members: &[PathBuf]) -> bool {
    matches!(members, [path] if holds_replica_volume(path).unwrap_or(false))
}

fn absolute(path: &Path) -> Result<String> {
    let absolute = std::path::absolute(path).map_err(|error| Failure::file(path, &error))?;
    let text = absolute.to_str().map(str::to_owned);
    text.ok_or_else(|| Failure::at(path.display(), "its name is not UTF-8"))
}

fn fail(args: &MemberArgs) -> Result<()> {
    let member = args.member;
    if let Some(socket) = control_of(&args.members) {
        let status = ask(socket, &Asked::Fail { member })?;
        show(&status, false)?;
        return match status.unfinished {
            None => Ok(()),
            Some(unfinished) => Err(Failure::Finding(format!(
                "{unfinished}; `volume status` shows when it has ended"
            ))),
        };
    }
    let volume = match find(&args.members, false) {
        Err(VolumeIoError::Volume(VolumeError::Doubtful { member: doubtful }))
            if doubtful == member =>
        {
            // Not even recovery can trust this member.
            volume::find_without(&args.members, member).map_err(failure)?
        }
        found => found.map_err(|error| explained(error, &args.members))?,
    };
    let volume = volume.open().map_err(failure)?;
    let failed = block_on(volume.mark_failed(member));
    let stop = block_on(volume.stop()).map_err(stopped);
    failed.map_err(|error| failure(error.into()))?;
    stop?;
    show(&VolumeStatus::of(&volume), false)
}

fn replace(args: &Replace) -> Result<()> {
    let (member, force, id) = (args.member, args.force, Uuid::new_v4());
    if let Some(socket) = control_of(&args.members) {
        let with = absolute(&args.with)?.into();
        let what = || volume_on(&args.with).or_else(|| recognized_content(&args.with));
        if !force && let Some(what) = what() {
            let path = args.with.clone();
            return Err(failure(VolumeIoError::Holds { path, what }));
        }
        let asked = Asked::Replace {
            member,
            with,
            id,
            force,
        };
        return show(&ask(socket, &asked)?, false);
    }
    let found = found(&args.members, false)?;
    let substitute = found
        .check_substitute(member, &args.with, force, recognized_content)
        .map_err(failure)?;
    let volume = found.open().map_err(failure)?;
    let replaced = volume::replace(&volume, substitute, id);
    let stop = block_on(volume.stop()).map_err(stopped);
    replaced.map_err(failure)?;
    stop?;
    show(&VolumeStatus::of(&volume), false)
}

fn scrub(args: &Scrub) -> Result<()> {
    let repairs = Repairs {
        sectors: args.repair.is_some(),
        parity: args.repair == Some(RepairScope::Parity),
        from: args.from,
    };
    work(&args.work, MaintenanceKind::Scrub, repairs)
}

fn repair_superblocks(args: &RepairSuperblocks) -> Result<()> {
    if let Some(socket) = control_of(&args.members) {
        return show(&ask(socket, &Asked::RepairSuperblocks)?, args.json);
    }
    let found = volume::find_with_suspects(&args.members, false, true);
    let found = found.map_err(|error| explained(error, &args.members))?;
    let volume = found.open().map_err(failure)?;
    let repaired = block_on(volume.repair_superblocks());
    let stop = block_on(volume.stop()).map_err(stopped);
    repaired.map_err(|error| failure(error.into()))?;
    stop?;
    show(&VolumeStatus::of(&volume), args.json)
}

/// Runs a rebuild, a sync or a scrub, on a server or in this process.
fn work(args: &WorkArgs, work: MaintenanceKind, repair: Repairs) -> Result<()> {
    let interrupt = Interrupt::catch().map_err(|error| Failure::Io(format!("signals: {error}")))?;
    let (rate, mut bar) = (args.rate, None);
    let mut report = |progress: &volume::MaintenanceProgress| {
        let first = progress.first;
        let begin = || {
            (
                Progress::resume("stripes", first, Some(progress.stripes)),
                first,
            )
        };
        let (bar, shown) = bar.get_or_insert_with(begin);
        bar.add(progress.next - *shown);
        *shown = progress.next;
    };
    let progress = if let Some(socket) = control_of(&args.members) {
        let mut asked = Asked::Begin { work, rate, repair };
        loop {
            let status = ask(socket, &asked)?;
            if args.no_wait {
                return show(&status, args.json);
            }
            let progress = status
                .work
                .ok_or_else(|| Failure::at(socket.display(), "the server reports no progress"))?;
            report(&progress);
            if !progress.under_way {
                break progress;
            }
            asked = if interrupt.raised() {
                Asked::Pause
            } else {
                Asked::Status
            };
            std::thread::sleep(POLL_INTERVAL);
        }
    } else {
        if args.no_wait {
            return Err(Failure::input(
                "--no-wait: only a server can continue in the background; give its control socket",
            ));
        }
        let volume = opened_for(&args.members, work, repair)?;
        let done = volume::maintain(
            &volume,
            MaintenanceTask { work, repair, rate },
            interrupt.flag(),
            report,
        );
        let stop = block_on(volume.stop()).map_err(stopped);
        let done = done.map_err(failure)?;
        stop?;
        done
    };
    drop(bar);
    outcome(args.json, &progress, interrupt.signal())
}

/// Opens the volume for maintenance in this process. A scrub without repairs also accepts members
/// that cannot be written.
fn opened_for(
    members: &[PathBuf],
    work: MaintenanceKind,
    repair: Repairs,
) -> Result<volume::DeviceVolume> {
    let found = match work {
        MaintenanceKind::Scrub => volume::find_with_suspects(members, false, false),
        MaintenanceKind::Sync | MaintenanceKind::Rebuild => find(members, false),
    };
    let only_reads = work == MaintenanceKind::Scrub && repair == Repairs::default();
    let opened = match found {
        Err(error) if only_reads && is_unwritable(&error) => {
            note("a member cannot be written; if the scrub is interrupted, it cannot be resumed");
            volume::find_to_read(members, MEMBER_TIMEOUT).and_then(Found::open_to_read)
        }
        found => found.and_then(Found::open),
    };
    opened.map_err(|error| explained(error, members))
}

/// Returns whether the error is that a member cannot be opened for writing.
fn is_unwritable(error: &VolumeIoError) -> bool {
    let VolumeIoError::Guarded(Refusal::System { error, .. }) = error else {
        return false;
    };
    matches!(
        error.kind(),
        ErrorKind::ReadOnlyFilesystem | ErrorKind::PermissionDenied
    )
}

fn destroy(args: &Destroy) -> Result<()> {
    volume::destroy(&args.members, args.force).map_err(failure)
}

fn failure(error: VolumeIoError) -> Failure {
    match error {
        VolumeIoError::Guarded(Refusal::Kind(_)) => Failure::input(error),
        VolumeIoError::Device { .. } | VolumeIoError::Guarded(_) | VolumeIoError::Thread(_) => {
            Failure::Io(error.to_string())
        }
        VolumeIoError::Volume(error)
            if !matches!(
                error,
                VolumeError::Member { .. }
                    | VolumeError::Journal { .. }
                    | VolumeError::Doubtful { .. }
            ) =>
        {
            stopped(error)
        }
        other => Failure::input(other),
    }
}

fn stopped(error: impl std::fmt::Display) -> Failure {
    Failure::Io(error.to_string())
}

fn level(text: &str) -> std::result::Result<Level, String> {
    // Other programs spell raid-5 as raid5, RAID5 or 5.
    let number = text.to_ascii_lowercase();
    let number = number.strip_prefix("raid").unwrap_or(&number);
    let number = number.strip_prefix('-').unwrap_or(number);
    Level::ALL
        .into_iter()
        .find(|level| level.name().strip_prefix("raid-") == Some(number))
        .ok_or_else(|| "expected raid-0, raid-1, raid-4 or raid-5".to_owned())
}

fn member_timeout(text: &str) -> std::result::Result<u64, String> {
    let seconds = text.parse().ok();
    seconds
        .filter(|seconds| MEMBER_TIMEOUTS.contains(seconds))
        .ok_or_else(|| {
            let (least, most) = (MEMBER_TIMEOUTS.start(), MEMBER_TIMEOUTS.end());
            format!("expected whole seconds from {least} to {most}")
        })
}

/// The rate of the initial sync of a served volume.
#[derive(Clone, Copy, Debug)]
enum SyncRate {
    Off,
    /// Bytes per second for each member.
    Bytes(u64),
}

fn sync_rate(text: &str) -> std::result::Result<SyncRate, String> {
    match text {
        "off" => Ok(SyncRate::Off),
        text => rate(text).map(SyncRate::Bytes),
    }
}

fn rate(text: &str) -> std::result::Result<u64, String> {
    match parse_byte_size(text).map_err(|error| error.to_string())? {
        rate if rate < volume::RATE_MIN => Err(format!(
            "{rate} bytes per second; expected at least 64K, such as 50M"
        )),
        rate => Ok(rate),
    }
}

//! `traxtent volume`: volumes on files and block devices.

mod args;
mod maps;
mod serve;
mod show;

use std::io::{ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::time::Duration;

use futures_lite::future::block_on;
use traxtent_io::device::Interrupt;
use traxtent_io::device::guard::Refusal;
use traxtent_layout::raid::Level;
use traxtent_map::{MapFile, MapSource};
use traxtent_probe::Identity;
use traxtent_server::control::send_order;
use traxtent_server::copies::holds_replica_volume;
use traxtent_server::volume::{
    self, Found, MEMBER_TIMEOUT, MaintenanceKind, MaintenanceTask, Repairs, VolumeIoError,
    VolumeOrder as Asked, VolumePlan, VolumeStatus, find,
};
use traxtent_units::Count;
use traxtent_volume::VolumeError;
use traxtent_volume::superblock::SuperblockError;
use uuid::Uuid;

pub(crate) use self::args::Args;
use self::args::{
    Assemble, Create, Destroy, Map, MemberArgs, RepairScope, RepairSuperblocks, Replace, Scrub,
    Status, Verb, WorkArgs,
};
use self::maps::{verify_known, verify_new};
use self::serve::serve;
use self::show::{outcome, show};
use crate::copies;
use crate::failure::{Failure, Result, note};
use crate::output;
use crate::progress::Progress;
use crate::serve::guardian::guarded;
use traxtent_check::content::{content_beside_volume, recognized_content};

/// The interval at which a server's progress is polled.
const POLL_INTERVAL: Duration = Duration::from_millis(200);

/// The size of the chunks of a RAID-1 without track maps: the one in the examples.
const MIRROR_CHUNK_BYTES: u64 = 64 << 10;

/// The default size of the journal on each member.
const JOURNAL_BYTES: u64 = 64 << 20;

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
    let chunk = chunk_bytes(args);
    if chunk.is_some_and(|bytes| bytes == 0 || !bytes.is_multiple_of(4096)) {
        return Err(Failure::input(
            "--chunk: expected a multiple of 4K, such as 64K (65536 bytes; 64KB is 64000)",
        ));
    }
    if args.level == Level::Raid0 && args.journal.is_some() {
        return Err(Failure::input("--journal: raid-0 has no journal"));
    }
    let (maps, members) = (args.maps.len(), args.members.len());
    if args.chunk.is_some() && maps > 0 {
        return Err(Failure::input(
            "--map: with --chunk, chunks are not tracks, and the volume keeps no track maps; omit one of the two",
        ));
    }
    let counts = || {
        let (maps, members) = (maps as u64, members as u64);
        format!(
            "{}, but {}",
            Count(members, "member"),
            Count(maps, "track map")
        )
    };
    if chunk.is_none() && maps == 0 {
        return Err(Failure::input(format!(
            "{} needs the size of a chunk, such as --chunk 64K; or give --map once for each member, so that chunks are tracks",
            args.level.name()
        )));
    }
    if chunk.is_none() && maps != members {
        return Err(Failure::input(format!(
            "{}; give --map once for each member, or a chunk size with --chunk",
            counts()
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
        chunk_bytes: chunk,
        granule_bytes: 4096,
        journal_bytes: args.journal.unwrap_or(JOURNAL_BYTES),
        members: args.members.iter().cloned().zip(maps).collect(),
        force: args.force,
    };
    let made = volume::create(&plan, Uuid::new_v4, recognized_content).map_err(failure)?;
    show(&made, args.json)
}

/// Returns the size of a chunk; `None` if chunks are tracks. A mirror needs neither `--chunk` nor
/// maps, because every member holds all data, in the same order whatever the size of its chunks.
fn chunk_bytes(args: &Create) -> Option<u64> {
    let is_plain_mirror = args.level == Level::Raid1 && args.maps.is_empty();
    args.chunk.or(is_plain_mirror.then_some(MIRROR_CHUNK_BYTES))
}

fn assemble(args: &Assemble) -> Result<()> {
    refuse_control(&args.members)?;
    let found = found(&args.members, args.force)?;
    if !args.trust_map {
        verify_known(&found);
    }
    let volume = opened(found)?;
    block_on(volume.stop()).map_err(io_failure)?;
    show(&VolumeStatus::of(&volume), args.json)
}

fn status(args: &Status) -> Result<()> {
    let mut status = match control_of(&args.members) {
        Some(socket) => ask(socket, &Asked::Status)?,
        None => volume::inspect(&args.members).map_err(|error| explained(error, &args.members))?,
    };
    for one in &mut status.unusable {
        if one.problem == SuperblockError::None.to_string()
            && let Some(what) = held_by(&one.path)
        {
            one.problem.push_str(&format!("; it holds {what}"));
        }
    }
    show(&status, args.json)?;
    if status.is_whole() {
        return Ok(());
    }
    let problem = match status.members_are_whole() {
        true => "not all of these devices are members of the volume; see above",
        false => "the volume is degraded or damaged; see above",
    };
    Err(Failure::Finding(problem.to_owned()))
}

fn map(args: &Map) -> Result<()> {
    refuse_control(&args.members)?;
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
    MapFile::new(identity, MapSource::Volume, found.chunk_map()).write(&mut out)?;
    output::finish(out)
}

/// Returns the control socket if one is given instead of members.
fn control_of(members: &[PathBuf]) -> Option<&Path> {
    use std::os::unix::fs::FileTypeExt;
    let [only] = members else { return None };
    let kind = std::fs::metadata(only).ok()?.file_type();
    kind.is_socket().then_some(only)
}

/// Refuses a control socket that is given instead of members.
fn refuse_control(members: &[PathBuf]) -> Result<()> {
    match control_of(members) {
        None => Ok(()),
        Some(socket) => Err(Failure::at(
            socket.display(),
            "is a control socket; this command needs the members, so stop the server first",
        )),
    }
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

/// Opens a volume, and prints a note if it was recovered.
fn opened(found: Found) -> Result<volume::DeviceVolume> {
    let volume = found.open().map_err(failure)?;
    note_recovery(&volume);
    Ok(volume)
}

/// Prints a note if the volume was recovered when it was opened.
fn note_recovery(volume: &volume::DeviceVolume) {
    if let Some(records) = volume.recovered() {
        note(format!(
            "the volume was not stopped cleanly and has been recovered; writes replayed from the journal: {records}"
        ));
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
            } => {
                let is =
                    held_by(path).map_or("is blank".to_owned(), |what| format!("holds {what}"));
                Failure::at(
                    path.display(),
                    format!("is not a member of a volume; it {is}"),
                )
            }
            _ => failure(error),
        },
    }
}

/// Returns what a device that is not a member holds; `None` if it is blank.
fn held_by(path: &Path) -> Option<String> {
    match holds_replica_volume(path) {
        Ok(true) => Some("a volume with replicas, which is always on one device".to_owned()),
        _ => recognized_content(path),
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
        show(&status, args.json)?;
        return match status.unfinished {
            None => Ok(()),
            Some(unfinished) => Err(Failure::Finding(format!(
                "{unfinished}; `volume status` shows when it has ended"
            ))),
        };
    }
    let found = match find(&args.members, false) {
        Err(VolumeIoError::Volume(VolumeError::Doubtful { member: doubtful }))
            if doubtful == member =>
        {
            // Not even recovery can trust this member.
            volume::find_without(&args.members, member).map_err(failure)?
        }
        found => found.map_err(|error| explained(error, &args.members))?,
    };
    // Opening the volume writes its superblocks.
    found.check_fail(member).map_err(failure)?;
    let volume = opened(found)?;
    let failed = block_on(volume.mark_failed(member));
    let stop = block_on(volume.stop()).map_err(io_failure);
    failed.map_err(|error| failure(error.into()))?;
    stop?;
    show(&VolumeStatus::of(&volume), args.json)
}

fn replace(args: &Replace) -> Result<()> {
    let (member, force, id) = (args.member, args.force, Uuid::new_v4());
    if let Some(socket) = control_of(&args.members) {
        let with = absolute(&args.with)?.into();
        // The server recognizes members of volumes, and knows whether they split from its volume.
        if !force && let Some(what) = recognized_content(&args.with) {
            let path = args.with.clone();
            return Err(failure(VolumeIoError::Holds { path, what }));
        }
        let asked = Asked::Replace {
            member,
            with,
            id,
            force,
        };
        let status = ask(socket, &asked)?;
        show(&status, args.json)?;
        return match status.members.get(member) {
            Some(new) if new.state == "failed" => Err(Failure::Finding(format!(
                "member {member} has failed again; see above"
            ))),
            _ => Ok(()),
        };
    }
    let found = found(&args.members, false)?;
    let substitute = found
        .check_substitute(member, &args.with, force, recognized_content)
        .map_err(failure)?;
    let volume = opened(found)?;
    let replaced = volume::replace(&volume, substitute, id);
    let stop = block_on(volume.stop()).map_err(io_failure);
    replaced.map_err(failure)?;
    stop?;
    show(&VolumeStatus::of(&volume), args.json)
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
        if args.force {
            return Err(Failure::input(
                "--force: a served volume has no doubtful members; omit the option",
            ));
        }
        return show(&ask(socket, &Asked::RepairSuperblocks)?, args.json);
    }
    let found = volume::find_with_suspects(&args.members, false, true);
    let found = found.map_err(|error| explained(error, &args.members))?;
    if !args.force {
        found.check_reuse(content_beside_volume).map_err(failure)?;
    }
    let volume = opened(found)?;
    let repaired = block_on(volume.repair_superblocks());
    let stop = block_on(volume.stop()).map_err(io_failure);
    repaired.map_err(|error| failure(error.into()))?;
    stop?;
    show(&VolumeStatus::of(&volume), args.json)
}

/// Runs a rebuild, a sync or a scrub, on a server or in this process.
fn work(args: &WorkArgs, work: MaintenanceKind, repair: Repairs) -> Result<()> {
    let interrupt = Interrupt::catch()
        .map_err(|error| Failure::Io(format!("cannot catch signals: {error}")))?;
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
        let follows = rate.is_none() && !args.no_wait && is_running(socket, work)?;
        let mut asked = if follows {
            note(format!(
                "a {} is already running; this command follows it",
                work.name()
            ));
            Asked::Status
        } else {
            Asked::Begin { work, rate, repair }
        };
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
            asked = if interrupt.raised() && follows {
                let line = format!("interrupted; the {} continues", work.name());
                return Err(match interrupt.signal() {
                    Some(signal) => Failure::Interrupted(line, signal),
                    None => Failure::Finding(line),
                });
            } else if interrupt.raised() {
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
        let task = MaintenanceTask { work, repair, rate };
        let volume = opened_for(&args.members, task)?;
        let done = volume::maintain(&volume, task, interrupt.flag(), report);
        let stop = block_on(volume.stop()).map_err(io_failure);
        let done = done.map_err(failure)?;
        stop?;
        done
    };
    drop(bar);
    outcome(args.json, &progress, interrupt.signal())
}

/// Returns whether the server is running a rebuild or a sync of the requested kind. A scrub that is
/// running may repair other things than the one requested, so it does not count.
fn is_running(socket: &Path, work: MaintenanceKind) -> Result<bool> {
    if work == MaintenanceKind::Scrub {
        return Ok(false);
    }
    let progress = ask(socket, &Asked::Status)?.work;
    Ok(progress.is_some_and(|progress| progress.under_way && progress.work == work))
}

/// Opens the volume for maintenance in this process. A scrub without repairs also accepts members
/// that are doubtful or cannot be written. It then writes nothing.
fn opened_for(members: &[PathBuf], task: MaintenanceTask) -> Result<volume::DeviceVolume> {
    let only_reads = task.work == MaintenanceKind::Scrub && task.repair == Repairs::default();
    let found = if only_reads {
        volume::find_with_suspects(members, false, false)
    } else {
        find(members, false)
    };
    let note_unwritten = |why| {
        note(format!(
            "{why}, so nothing is written; if the scrub is interrupted, it cannot be resumed"
        ));
    };
    // A volume that was not stopped cleanly is recovered when it is opened, which writes.
    let found = found.and_then(|found| found.check_task(task).map(|()| found));
    let opened = match found {
        Err(error) if only_reads && is_unwritable(&error) => {
            note_unwritten("a member cannot be written");
            volume::find_to_read(members, MEMBER_TIMEOUT).and_then(Found::open_to_read)
        }
        Ok(found) if found.check_doubts().is_err() => {
            note_unwritten("a member is doubtful");
            note(
                "if differences are found, `fail` the doubtful member, which `volume status` names, and rebuild it",
            );
            found.open_to_read()
        }
        found => found.and_then(Found::open),
    };
    let volume = opened.map_err(|error| explained(error, members))?;
    note_recovery(&volume);
    Ok(volume)
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
    refuse_control(&args.members)?;
    let destroyed = volume::destroy(&args.members, args.force, content_beside_volume);
    let destroyed = destroyed.map_err(|error| explained(error, &args.members))?;
    let mut out = output::stdout();
    for (path, was) in args.members.iter().zip(destroyed) {
        let (member, path) = (was.index, path.display());
        writeln!(
            out,
            "{path}: is no longer member {member} of volume {}",
            was.volume
        )?;
    }
    output::finish(out)?;
    note(copies::REMAINING_DATA);
    Ok(())
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
                    | VolumeError::NeedsRecovery
            ) =>
        {
            io_failure(error)
        }
        other => Failure::input(other),
    }
}

fn io_failure(error: impl std::fmt::Display) -> Failure {
    Failure::Io(error.to_string())
}

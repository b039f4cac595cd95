//! `traxtent volume serve`: opens a volume with its warnings, and serves it until it is stopped.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use traxtent_server::copies::ReplicaVolumeServer;
use traxtent_server::service::{BlockService, Export};
use traxtent_server::volume::{self, MEMBER_TIMEOUT, SYNC_RATE, VolumeServer, VolumeStatus};

use super::args::{Serve, SyncRate};
use super::maps::verify_known;
use super::{explained, failure, has_copies, note_recovery, refuse_control};
use crate::failure::{Failure, Result, note, warn};
use crate::output;
use crate::serve::attach::{self, Served};
use crate::serve::session::{Session, Signals, check_command, end_with};
use traxtent_check::content::content_beside_volume;

/// The maximum number of requests per client that are carried out at a time.
const OUTSTANDING_MAX: usize = 16;

/// Serves the volume until it is stopped.
pub(super) fn serve(args: &Serve, folder: &Path) -> Result<()> {
    check_command(&args.command)?;
    refuse_control(&args.members)?;
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
    let session = Session::start(
        vec![export],
        &args.front_ends,
        OUTSTANDING_MAX,
        folder,
        signals,
    )?;
    let control = control.map(|path| path.display().to_string());
    let members: Vec<String> = args
        .members
        .iter()
        .map(|path| path.display().to_string())
        .collect();
    let summary = format!("volume: data is in {}", members.join(", "));
    let served = Served::volume(summary, control.clone(), &session.exports()[0]);
    if args.command.is_empty() {
        attach::print(&[served], &session, output::stdout())?;
    } else {
        attach::print_summaries(&[served], &session);
    }
    let variables: Vec<(String, String)> = control
        .into_iter()
        .map(|path| ("control".to_owned(), path))
        .collect();
    let (status, stopped) = session.run(&args.command, &variables)?;
    end_with(status, stopped)
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
        (
            args.trust_map,
            "--trust-map: the track map of a volume with replicas is not tested",
        ),
        (
            args.read_only,
            "--read-only: serving a volume with replicas completes the replicas, which writes to the device",
        ),
    ] {
        if is_given {
            return Err(Failure::input(why));
        }
    }
    let opened = ReplicaVolumeServer::open(&args.members[0], content_beside_volume);
    Ok(Arc::new(
        opened.map_err(|error| Failure::Io(error.to_string()))?,
    ))
}

fn open_volume(args: &Serve, control: &Path) -> Result<Arc<dyn BlockService>> {
    let timeout = args
        .member_timeout
        .map_or(MEMBER_TIMEOUT, Duration::from_secs);
    if args.read_only {
        return Ok(Arc::new(open_to_read(args, control, timeout)?));
    }
    // Finding the volume first reports problems in more detail than the server does.
    let found = volume::find_within(&args.members, false, timeout);
    let found = found.map_err(|error| explained(error, &args.members))?;
    let status = found.status();
    warn_of(&status);
    let left = status.unsynced();
    if left > 0 {
        let how = match args.sync_rate {
            _ if status.members.iter().any(|one| one.state != "active") => {
                "the sync continues when the volume is served again with all members active"
            }
            Some(SyncRate::Off) => "run `sync` with the control socket",
            _ => "the sync continues while the volume is served",
        };
        let are = match left {
            1 => "1 stripe is".to_owned(),
            left => format!("{left} stripes are"),
        };
        note(format!("{are} not synced yet; {how}"));
    }
    if !args.trust_map {
        verify_known(&found);
    }
    drop(found);
    let opened = VolumeServer::open_within(&absolute_paths(args)?, Some(control), timeout);
    let mut server = opened.map_err(|error| Failure::Io(error.to_string()))?;
    note_recovery(server.volume());
    server.set_sync_rate(match args.sync_rate {
        None => Some(SYNC_RATE),
        Some(SyncRate::Off) => None,
        Some(SyncRate::Bytes(rate)) => Some(rate),
    });
    Ok(Arc::new(server))
}

/// Returns the members' absolute paths. The status of a served volume shows them, and can be
/// requested from any directory.
fn absolute_paths(args: &Serve) -> Result<Vec<PathBuf>> {
    let absolute =
        |path: &PathBuf| std::path::absolute(path).map_err(|error| Failure::file(path, &error));
    args.members.iter().map(absolute).collect()
}

/// Opens the volume without writing to its members, or returns an error if it has to be recovered
/// first.
fn open_to_read(args: &Serve, control: &Path, timeout: Duration) -> Result<VolumeServer> {
    let found = volume::find_to_read(&args.members, timeout);
    let found = found.and_then(|found| found.check_doubts().map(|()| found));
    let found = found.map_err(|error| explained(error, &args.members))?;
    warn_of(&found.status());
    if !args.trust_map {
        verify_known(&found);
    }
    drop(found);
    let opened = VolumeServer::open_to_read(&absolute_paths(args)?, Some(control), timeout);
    opened.map_err(failure)
}

/// Warns about failed or unrebuilt members and lost data of a volume to be served.
fn warn_of(status: &VolumeStatus) {
    for member in &status.members {
        let number = member.member;
        let path = member.path.as_ref();
        let path = path.map_or(String::new(), |path| format!(" (`{}`)", path.display()));
        match member.state.as_str() {
            "failed" if member.path.is_none() => warn(format!(
                "member {number} is missing or has failed; its content is computed from the others"
            )),
            "failed" => warn(format!(
                "member {number}{path} has failed; replace and rebuild it"
            )),
            "rebuilding" => warn(format!(
                "member {number}{path} is not rebuilt yet; `volume rebuild` continues"
            )),
            _ => {}
        }
    }
    for lost in &status.lost {
        warn(lost);
    }
}

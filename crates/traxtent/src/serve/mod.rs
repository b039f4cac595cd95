//! `traxtent serve`: modelled drives as block devices, while a command runs or until stopped.

mod address;
pub(crate) mod attach;
pub(crate) mod doctor;
mod drives;
mod environment;
mod folder;
pub(crate) mod front_ends;
pub(crate) mod guardian;
pub(crate) mod session;

use std::collections::BTreeMap;
use std::io::{BufWriter, ErrorKind, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_io::device::guard::{self, Refusal};
use traxtent_server::serve::{DriveServer, Receipt, ReceiptVerdict, ServeError, Speed};
use traxtent_server::service::{Export, FileRole};
use traxtent_units::Count;

use crate::failure::{Failure, Result, note};
use crate::output;
use crate::parse::csv_file;
use attach::Served;
use drives::ServedDrive;
use front_ends::FrontEndArgs;
use session::{Session, Signals};
use traxtent_check::content::{all_content, image_content};

/// Serve drives as block devices, in the drives' own time
///
/// Clients connect over NBD (fio, qemu, libnbd, the kernel). With --fuse, the drive is also a file,
/// and with --device a block device of this machine. With --ublk, it is a block device that shows
/// all of the drive's properties. Without COMMAND, the drive is served until interrupted by Ctrl-C.
/// With COMMAND, it is served while COMMAND runs, with $uri, $socket or $port, $control, and for
/// other front ends $disk, $device and $ublk in its environment. The receipt reports how closely
/// the run followed the model.
///
/// With several drives, each is an export under its name, and an option that takes a file names the
/// drive: NAME=FILE.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    /// The drives: built-in drives' names (see `traxtent drives`), profiles (my.toml), or DiskSim
    /// parameters (disksim:FILE, or disksim:FILE#DISK); each optionally as NAME=DRIVE
    #[arg(required = true, value_name = "[NAME=]DRIVE")]
    drives: Vec<String>,
    /// The file with the drive's data, created if it does not exist; without it, data is kept in
    /// memory
    #[arg(long, value_name = "FILE")]
    file: Vec<PathBuf>,
    /// Overwrite the content of the block device that --file names, or a disk image in a format of
    /// its own, such as qcow2
    #[arg(long, requires = "file")]
    force: bool,
    #[command(flatten)]
    front_ends: FrontEndArgs,
    /// Refuse writes; the file of --file must exist, and is only read
    #[arg(long)]
    read_only: bool,
    /// Change a parameter of every drive
    #[arg(long, value_name = "KEY=VALUE")]
    set: Vec<String>,
    /// The speed of the drive's time relative to real time
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: Speed,
    /// The seed from which power cuts that specify none draw theirs [default: the scenario's, or 1]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// A file of faults with their times
    #[arg(long, value_name = "FILE")]
    scenario: Vec<PathBuf>,
    /// Whether to subtract from each request the time that it spends in the clients' sockets, as
    /// measured at the start
    #[arg(long, value_name = "HOW", default_value = "measured", value_parser = ["measured", "off"])]
    transport: String,
    /// Write one row per request to this CSV file; compressed if it ends in .gz or .zst
    #[arg(long, value_name = "FILE", value_parser = csv_file)]
    log: Vec<PathBuf>,
    /// Write the receipt to this file, at the end and on SIGUSR1
    #[arg(long, value_name = "FILE")]
    receipt: Vec<PathBuf>,
    /// Exit with status 4 if the run is not trustworthy according to a receipt, no request was
    /// completed, or the storage below a drive failed; if COMMAND fails, exit with its status
    #[arg(long)]
    require_trustworthy: bool,
    /// Exit with status 4 if a fault of a scenario failed, or did not occur because the run ended
    /// first; if COMMAND fails, exit with its status
    #[arg(long, requires = "scenario")]
    require_faults: bool,
    /// Create the control socket for `traxtent fault` here [default: in a new directory]
    #[arg(long, value_name = "PATH")]
    control: Vec<PathBuf>,
    /// Print the receipt as JSON; without COMMAND, the addresses are then printed on standard error
    #[arg(long)]
    json: bool,
    /// Run this command, and stop serving when it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    session::check_command(&args.command)?;
    if let Some(socket) = args.front_ends.named_socket() {
        check_directory(socket)?;
    }
    let signals = Signals::catch()?;
    let folder = folder::private_folder()?;
    let drives = drives::read(args, folder.path())?;
    for path in drives
        .iter()
        .filter_map(|drive| drive.settings.file.as_deref())
    {
        if !args.force && !args.read_only {
            check_contents(path)?;
        }
    }
    let files = drives
        .iter()
        .flat_map(|drive| [&drive.settings.file, &drive.settings.log]);
    let new: Vec<_> = files.flatten().filter(|path| !path.exists()).collect();
    let started = start(args, &drives, folder.path(), signals);
    if started.is_err() {
        for path in new {
            let _ = std::fs::remove_file(path);
        }
    }
    let (servers, session) = started?;
    let served: Vec<Served> = drives
        .iter()
        .zip(session.exports())
        .map(|(drive, export)| Served::drive(drive, export))
        .collect();
    match (args.command.is_empty(), args.json) {
        (false, _) => attach::print_summaries(&served, &session),
        (true, false) => attach::print(&served, &session, output::stdout())?,
        // Standard output holds nothing but the receipt.
        (true, true) => attach::print(&served, &session, BufWriter::new(std::io::stderr()))?,
    }
    let (status, stopped) = session.run(&args.command, &control_variables(&drives))?;
    let receipts: Vec<(&str, Receipt)> = drives
        .iter()
        .zip(&servers)
        .filter_map(|(drive, server)| Some((drive.name.as_str(), server.receipt()?)))
        .collect();
    let shown = match show_receipts(args, &receipts) {
        // The reader of the receipt does not decide about the run.
        Err(Failure::Closed) => Ok(()),
        shown => shown,
    };
    let ended = match (check_receipts(args, &receipts), stopped.and(shown)) {
        (Err(missing), Err(error)) => {
            error.report();
            Err(missing)
        }
        (required, ended) => required.and(ended),
    };
    session::end_with(status, ended)
}

/// Opens the drives, and starts serving them.
fn start(
    args: &Args,
    drives: &[ServedDrive],
    folder: &Path,
    signals: Signals,
) -> Result<(Vec<Arc<DriveServer>>, Session)> {
    let servers = drives.iter().map(open).collect::<Result<Vec<_>>>()?;
    let exports: Vec<Export> = drives
        .iter()
        .zip(&servers)
        .map(|(drive, server)| Export {
            name: drive.name.clone(),
            description: drive.settings.profile.model.clone(),
            service: Arc::clone(server) as _,
            read_only: args.read_only,
        })
        .collect();
    let outstanding = drives.iter().map(ServedDrive::outstanding).max();
    let outstanding = outstanding.unwrap_or(1);
    let session = Session::start(exports, &args.front_ends, outstanding, folder, signals)?;
    Ok((servers, session))
}

fn open(drive: &ServedDrive) -> Result<Arc<DriveServer>> {
    let opened = DriveServer::open(drive.settings.clone());
    opened.map(Arc::new).map_err(|error| match error {
        ServeError::Scenario { .. } | ServeError::ScenarioMismatch { .. } => Failure::input(error),
        ServeError::Output {
            role: FileRole::Log,
            refusal: refusal @ Refusal::Locked(_),
        } => Failure::Io(format!("--log {refusal}; name another file")),
        other => Failure::Io(other.to_string()),
    })
}

/// Refuses a block device that is in use or holds recognized content, and a disk image in a format
/// of its own. Any other file can contain data from an earlier run.
fn check_contents(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    let is_device = std::fs::metadata(path).is_ok_and(|data| data.file_type().is_block_device());
    let (kind, content) = if is_device {
        guard::check_unused(path).map_err(|error| Failure::Io(format!("--file {error}")))?;
        let content = all_content(path);
        ("device", content)
    } else {
        ("file", image_content(path))
    };
    match content {
        None => Ok(()),
        Some(what) => Err(Failure::input(format!(
            "--file {}: the {kind} holds {what}; --force overwrites it",
            path.display()
        ))),
    }
}

/// Returns the environment variables with the control sockets: `control` for the first drive, and,
/// with several drives, `control_NAME` for each.
fn control_variables(drives: &[ServedDrive]) -> Vec<(String, String)> {
    let path = |drive: &ServedDrive| {
        let path = drive.settings.control.as_deref();
        path.map(|path| path.display().to_string())
    };
    environment::variables(
        "control",
        drives.iter().map(|drive| (&*drive.name, path(drive))),
    )
}

fn show_receipts(args: &Args, receipts: &[(&str, Receipt)]) -> Result<()> {
    if args.json {
        return match receipts {
            [(_, receipt)] => output::json(receipt),
            several => output::json(&several.iter().cloned().collect::<BTreeMap<_, _>>()),
        };
    }
    let mut lines = Vec::new();
    for (name, receipt) in receipts {
        if receipts.len() > 1 {
            lines.push(format!("{name}:"));
        }
        lines.extend(receipt.lines());
    }
    if args.command.is_empty() {
        let mut out = output::stdout();
        for line in lines {
            writeln!(out, "{line}")?;
        }
        output::finish(out)
    } else {
        // Standard output belongs to the command.
        lines.into_iter().for_each(note);
        Ok(())
    }
}

/// Returns an error that names all drives whose receipt lacks what was required: a trustworthy run
/// with requests, or the faults of its scenario. A drive whose requests take no time needs only
/// requests.
fn check_receipts(args: &Args, receipts: &[(&str, Receipt)]) -> Result<()> {
    let mut lines = Vec::new();
    for (name, receipt) in receipts {
        let verdict = match receipt.verdict {
            ReceiptVerdict::NotTrustworthy => Some("the run is not trustworthy"),
            ReceiptVerdict::NothingToJudge if receipt.requests == 0 => {
                Some("there is nothing to judge")
            }
            _ => None,
        };
        if let Some(verdict) = verdict.filter(|_| args.require_trustworthy) {
            // The receipt, as text, has named the many reasons that there may be.
            let is_named = !args.json && receipt.verdict == ReceiptVerdict::NotTrustworthy;
            lines.push(if is_named {
                format!("{name}: {verdict}; its receipt above names the reasons")
            } else {
                format!("{name}: {verdict}: {}", receipt.reasons.join("; "))
            });
        }
        if let Some(error) = receipt
            .storage_error
            .as_ref()
            .filter(|_| args.require_trustworthy)
        {
            let failed = Count(receipt.storage_errors, "request");
            lines.push(format!(
                "{name}: {failed} failed in the storage below the drive: {error}"
            ));
        }
        let mut missed = receipt.failed_faults.iter().chain(&receipt.pending_faults);
        if let Some(first) = missed.next().filter(|_| args.require_faults) {
            lines.push(format!("{name}: a fault did not occur, or failed: {first}"));
        }
    }
    if lines.is_empty() {
        return Ok(());
    }
    Err(Failure::NotTrustworthy(lines.join("\n")))
}

/// Returns an error if a path's directory does not exist.
fn check_directory(path: &Path) -> Result<()> {
    let directory = path.parent().unwrap_or(Path::new("."));
    if directory.as_os_str().is_empty() || directory.is_dir() {
        return Ok(());
    }
    Err(Failure::cannot_create(path, &ErrorKind::NotFound.into()))
}

fn speed(text: &str) -> std::result::Result<Speed, &'static str> {
    text.parse()
}

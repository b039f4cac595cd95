//! `traxtent serve`: a modelled drive as a block device, while a command runs or until stopped.

pub(crate) mod attach;
pub(crate) mod nbdkit;
mod tools;

use std::io::{ErrorKind, Write};
use std::net::IpAddr;
use std::path::{Path, PathBuf};
use std::process::{Command, ExitStatus};
use std::time::Duration;

use signal_hook::consts::{SIGINT, SIGTERM};
use tempfile::TempDir;
use traxtent_io::device::guard;
use traxtent_model::disk::{Disk, MemoryMedia, Scenario};
use traxtent_model::drive::Drive;
use traxtent_model::profile::Profile;
use traxtent_server::serve::{Receipt, Speed};

use crate::content::recognized_content;
use crate::failure::{Failure, Result, note};
use crate::input;
use crate::output;
use crate::target::{Machine, Target};
use attach::Address;
use nbdkit::{Nbdkit, ServerConfig};

/// Serve a drive as a network block device, in the drive's own time
///
/// nbdkit handles the clients: fio, qemu, nbdfuse, the kernel. Without COMMAND, the drive is served
/// until interrupted by Ctrl-C. With COMMAND, it is served while COMMAND runs, with $uri, $socket
/// or $port, and $control in its environment. The receipt reports how closely the run followed the
/// model.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[arg(help = crate::target::TARGET_HELP)]
    drive: String,
    /// The file with the drive's data, created if it does not exist; without it, data is kept in
    /// memory
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Overwrite the content of the block device that --file names
    #[arg(long, requires = "file")]
    force: bool,
    /// Serve on this port of the loopback address, instead of a socket
    #[arg(long, value_name = "NUMBER", conflicts_with = "socket")]
    port: Option<u16>,
    /// Serve on this socket [default: one in a new directory]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Serve on this address instead of loopback; anyone who can reach it can read and write the
    /// drive
    #[arg(long, value_name = "ADDRESS", requires = "port")]
    listen: Option<IpAddr>,
    /// The socket's mode in octal digits, to let other users connect [default: 600]
    #[arg(long, value_name = "MODE", value_parser = mode, conflicts_with = "port")]
    socket_mode: Option<u32>,
    /// The speed of the drive's time relative to real time
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: Speed,
    /// The seed of random faults [default: the scenario's, or 1]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// A file of faults with their times
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// Whether to subtract the time of the clients' sockets, as measured at the start, from each
    /// request
    #[arg(long, value_name = "HOW", default_value = "measured", value_parser = ["measured", "off"])]
    transport: String,
    /// Write one row per request to this CSV file; compressed if it ends in .gz or .zst
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the receipt to this file, at the end and when nbdkit receives SIGUSR1
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Create the control socket for `traxtent fault` here [default: in a new directory]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Print the receipt as JSON
    #[arg(long)]
    json: bool,
    /// Run this command, and stop serving when it ends
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "Examples:
  traxtent serve atlas10k2
  traxtent serve atlas10k2 --file disk.img --log requests.csv.zst
  traxtent serve cheetah15k7 -- sh -c 'fio --name=t --ioengine=nbd --uri=\"$uri\" --rw=randread --size=64m'";

/// The maximum size of a scenario in bytes.
const SCENARIO_BYTES: u64 = 16 << 20;

/// The poll interval.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// Runs the command.
pub(crate) fn run(args: &Args) -> Result<()> {
    let folder = output::private_folder()?;
    if let Some(path) = args.file.as_deref().filter(|_| !args.force) {
        check_contents(path)?;
    }
    let stopped = nbdkit::catch(&[SIGINT, SIGTERM])?;
    let profile = profile_of(&args.drive)?;
    if let Some(path) = &args.scenario {
        check_scenario(path, &profile)?;
    }
    let address = Address::of(args, folder.path());
    if let Address::Socket(path) = &address
        && !path.parent().is_some_and(Path::is_dir)
    {
        return Err(Failure::cannot_create(path, &ErrorKind::NotFound.into()));
    }
    let receipt = args
        .receipt
        .clone()
        .unwrap_or_else(|| folder.path().join("receipt.json"));
    let order = ServerConfig {
        address: &address,
        pidfile: folder.path().join("pid"),
        threads: profile.queue.depth.max(16),
        keys: keys(args, &profile, &folder, &receipt)?,
    };
    let server = Nbdkit::start(&order)?;
    if let Address::Socket(path) = &address {
        // Other users could not connect earlier, because nbdkit creates the socket without write
        // permission for them.
        set_mode(path, args.socket_mode.unwrap_or(0o600))?;
    }
    attach::print_address(args, &profile, &address, &order.keys)?;
    let status = match args.command.split_first() {
        Some((program, rest)) => {
            let mut command = Command::new(program);
            command.args(rest).envs(address.environment());
            command.env("control", order.key("control"));
            Some(server.serve_while(&mut command, &stopped)?)
        }
        None => {
            server.serve_until(&stopped)?;
            None
        }
    };
    server.stop()?;
    show_receipt(args, &receipt)?;
    match status {
        Some(status) if !status.success() => Err(Failure::Status(code_of(status))),
        _ => Ok(()),
    }
}

/// Refuses a block device with any content. A file may contain data from an earlier run.
fn check_contents(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    if !std::fs::metadata(path).is_ok_and(|data| data.file_type().is_block_device()) {
        return Ok(());
    }
    guard::check_unused(path).map_err(|error| Failure::Io(format!("--file {error}")))?;
    match guard::volume_on(path).or_else(|| recognized_content(path)) {
        None => Ok(()),
        Some(what) => Err(Failure::input(format!(
            "--file {}: the device holds {what}; --force overwrites it",
            path.display()
        ))),
    }
}

/// Checks that a scenario's faults are valid and fit the drive.
fn check_scenario(path: &Path, profile: &Profile) -> Result<()> {
    let text = input::text(path, SCENARIO_BYTES)?;
    let scenario =
        Scenario::from_toml(&text).map_err(|error| Failure::at(path.display(), error))?;
    let drive = Drive::new(profile).map_err(|error| Failure::at(&profile.name, error))?;
    Disk::with_media(drive, MemoryMedia::new())
        .schedule_faults(&scenario)
        .map_err(|error| Failure::at(path.display(), error))
}

/// Returns the plugin's parameters.
fn keys(
    args: &Args,
    profile: &Profile,
    folder: &TempDir,
    receipt: &Path,
) -> Result<Vec<(&'static str, String)>> {
    let drive = match Target::parse(&args.drive)? {
        Target::Builtin(name) => name.to_owned(),
        // The plugin only reads profiles.
        Target::File(_) | Target::DiskSim(..) => {
            let path = folder.path().join("profile.toml");
            output::write(&path, profile.to_toml().as_bytes())?;
            path.display().to_string()
        }
    };
    let absolute = |path: &Path| {
        let absolute = std::path::absolute(path).map_err(|error| Failure::file(path, &error))?;
        let text = absolute.to_str().map(str::to_owned);
        text.ok_or_else(|| Failure::at(path.display(), "its name is not UTF-8"))
    };
    let mut keys = vec![
        ("drive", drive),
        ("speed", args.speed.to_string()),
        ("transport", args.transport.clone()),
    ];
    let control = args
        .control
        .clone()
        .unwrap_or_else(|| folder.path().join("control"));
    for (key, path) in [
        ("file", args.file.as_deref()),
        ("scenario", args.scenario.as_deref()),
        ("log", args.log.as_deref()),
        ("receipt", Some(receipt)),
        ("control", Some(control.as_path())),
    ] {
        if let Some(path) = path {
            keys.push((key, absolute(path)?));
        }
    }
    if let Some(seed) = args.seed {
        keys.push(("seed", seed.to_string()));
    }
    Ok(keys)
}

fn profile_of(drive: &str) -> Result<Profile> {
    let drive = Machine::load(drive)?.only_drive()?;
    Ok(Profile::clone(&drive.profile))
}

pub(crate) fn set_mode(path: &Path, mode: u32) -> Result<()> {
    use std::os::unix::fs::PermissionsExt;
    let permissions = std::fs::Permissions::from_mode(mode);
    std::fs::set_permissions(path, permissions).map_err(|error| Failure::file(path, &error))
}

fn show_receipt(args: &Args, path: &Path) -> Result<()> {
    let text = input::text(path, 1 << 20)?;
    let receipt: Receipt =
        serde_json::from_str(&text).map_err(|error| Failure::at(path.display(), error))?;
    if args.json {
        return output::json(&receipt);
    }
    if args.command.is_empty() {
        let mut out = output::stdout();
        for line in receipt.lines() {
            writeln!(out, "{line}")?;
        }
        output::finish(out)
    } else {
        // Standard output belongs to the command.
        receipt.lines().into_iter().for_each(note);
        Ok(())
    }
}

/// Returns the exit status as shells report it.
pub(crate) fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(3)
}

fn mode(text: &str) -> std::result::Result<u32, String> {
    u32::from_str_radix(text, 8)
        .ok()
        .filter(|mode| *mode <= 0o777)
        .ok_or_else(|| "expected three octal digits, such as 660".to_owned())
}

fn speed(text: &str) -> std::result::Result<Speed, &'static str> {
    text.parse()
}

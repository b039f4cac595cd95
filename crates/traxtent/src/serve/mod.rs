//! `traxtent serve`: a modelled drive as a block device, for as long as a command runs or until stopped.

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
use traxtent_core::disk::{Disk, Memory, Scenario};
use traxtent_core::drive::Drive;
use traxtent_core::profile::Profile;
use traxtent_exec::device::guard;
use traxtent_exec::serve::{Receipt, Speed};

use crate::failure::{Failure, Result, note};
use crate::input;
use crate::output;
use crate::target::{Machine, Target};
use crate::volume::holds;
use attach::Address;
use nbdkit::{Nbdkit, Order};

/// Serve a drive as a network block device, in the drive's own time
///
/// nbdkit speaks to the clients: fio, qemu, nbdfuse, the kernel. Without COMMAND the drive is served until
/// this is stopped (Ctrl-C); with it, for as long as COMMAND runs, which finds $uri, $socket or $port, and
/// $control in its environment. The receipt says how true to the model the run was.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment, after_help = EXAMPLES)]
pub(crate) struct Args {
    #[arg(help = crate::target::TARGET_HELP)]
    drive: String,
    /// The file with the drive's data, made if there is none; without it they are in memory
    #[arg(long, value_name = "FILE")]
    file: Option<PathBuf>,
    /// Overwrite what is on the block device that --file names
    #[arg(long, requires = "file")]
    force: bool,
    /// Serve on this port of the loopback address, instead of a socket
    #[arg(long, value_name = "NUMBER", conflicts_with = "socket")]
    port: Option<u16>,
    /// Serve on this socket [default: one in a new folder]
    #[arg(long, value_name = "PATH")]
    socket: Option<PathBuf>,
    /// Serve on this address instead of the loopback one: whoever reaches it can read and write the drive
    #[arg(long, value_name = "ADDRESS", requires = "port")]
    listen: Option<IpAddr>,
    /// Let others than you use the socket, by its mode in octal digits [default: 600]
    #[arg(long, value_name = "MODE", value_parser = mode, conflicts_with = "port")]
    socket_mode: Option<u32>,
    /// Let the drive's time pass so many times as fast as real
    #[arg(long, value_name = "FACTOR", default_value = "1", value_parser = speed)]
    speed: Speed,
    /// Seed of what is random in faults [default: the scenario's, or 1]
    #[arg(long, value_name = "NUMBER")]
    seed: Option<u64>,
    /// Faults and their times
    #[arg(long, value_name = "FILE")]
    scenario: Option<PathBuf>,
    /// What clients' sockets take: taken off each request as measured at the start, or not
    #[arg(long, value_name = "HOW", default_value = "measured", value_parser = ["measured", "off"])]
    transport: String,
    /// Write a row a request to this CSV file; packed if it ends in .gz or .zst
    #[arg(long, value_name = "FILE")]
    log: Option<PathBuf>,
    /// Write the receipt to this file, at the end and on SIGUSR1 to nbdkit
    #[arg(long, value_name = "FILE")]
    receipt: Option<PathBuf>,
    /// Make the control socket here, for `traxtent fault` [default: in a new folder]
    #[arg(long, value_name = "PATH")]
    control: Option<PathBuf>,
    /// Print the receipt as JSON
    #[arg(long)]
    json: bool,
    /// Run this, and serve no longer
    #[arg(last = true, value_name = "COMMAND")]
    command: Vec<String>,
}

const EXAMPLES: &str = "Examples:
  traxtent serve atlas10k2
  traxtent serve atlas10k2 --file disk.img --log requests.csv.zst
  traxtent serve cheetah15k7 -- sh -c 'fio --name=t --ioengine=nbd --uri=\"$uri\" --rw=randread --size=64m'";

/// A scenario is no longer than this.
const SCENARIO_BYTES: u64 = 16 << 20;

/// How often what is waited for is looked at.
const LOOK: Duration = Duration::from_millis(10);

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
        return Err(Failure::unmade(path, &ErrorKind::NotFound.into()));
    }
    let receipt = args
        .receipt
        .clone()
        .unwrap_or_else(|| folder.path().join("receipt.json"));
    let order = Order {
        address: &address,
        pidfile: folder.path().join("pid"),
        threads: profile.queue.depth.max(16),
        keys: keys(args, &profile, &folder, &receipt)?,
    };
    let server = Nbdkit::start(&order)?;
    if let Address::Socket(path) = &address {
        // Until here nobody else may connect either: nbdkit makes it without their right to write.
        set_mode(path, args.socket_mode.unwrap_or(0o600))?;
    }
    attach::introduce(args, &profile, &address, &order.keys)?;
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

/// Refuses a block device that holds anything; a file may hold what was served from it before.
fn check_contents(path: &Path) -> Result<()> {
    use std::os::unix::fs::FileTypeExt;
    if !std::fs::metadata(path).is_ok_and(|data| data.file_type().is_block_device()) {
        return Ok(());
    }
    guard::check_unused(path).map_err(|error| Failure::Io(format!("--file {error}")))?;
    match guard::volume_on(path).or_else(|| holds(path)) {
        None => Ok(()),
        Some(what) => Err(Failure::input(format!(
            "--file {}: the device holds {what}; --force overwrites it",
            path.display()
        ))),
    }
}

/// Fails unless a scenario's faults are some and fit the drive.
fn check_scenario(path: &Path, profile: &Profile) -> Result<()> {
    let text = input::text(path, SCENARIO_BYTES)?;
    let scenario =
        Scenario::from_toml(&text).map_err(|error| Failure::at(path.display(), error))?;
    let drive = Drive::new(profile).map_err(|error| Failure::at(&profile.name, error))?;
    Disk::with_media(drive, Memory::new())
        .play(&scenario)
        .map_err(|error| Failure::at(path.display(), error))
}

/// What the plugin is told.
fn keys(
    args: &Args,
    profile: &Profile,
    folder: &TempDir,
    receipt: &Path,
) -> Result<Vec<(&'static str, String)>> {
    let drive = match Target::parse(&args.drive)? {
        Target::Builtin(name) => name.to_owned(),
        // The plugin reads profiles alone.
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
        // Standard output is the command's.
        receipt.lines().into_iter().for_each(note);
        Ok(())
    }
}

/// As shells report it.
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

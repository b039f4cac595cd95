//! The addresses of served exports, and the commands that attach them.

use std::io::Write;

use traxtent_model::profile::Profile;
use traxtent_server::serve::memory_limit;

use super::address::Address;
use super::drives::ServedDrive;
use super::front_ends::FrontEnds;
use super::session::Session;
use super::{Args, doctor};
use crate::failure::{Result, note};
use crate::output;

/// Prints the served drives, their addresses, and the commands that attach them.
pub(super) fn print_drives(args: &Args, drives: &[ServedDrive], session: &Session) -> Result<()> {
    let front_ends = session.front_ends();
    if !args.command.is_empty() {
        drives.iter().map(summary).for_each(note);
        front_ends.warning().into_iter().for_each(note);
        return Ok(());
    }
    let mut out = output::stdout();
    for (index, (drive, export)) in drives.iter().zip(session.exports()).enumerate() {
        let profile = &drive.settings.profile;
        let sector = profile.sector;
        let name = if index == 0 { "" } else { &drive.name };
        let uri = front_ends.address().uri(name);
        writeln!(out, "{}", summary(drive))?;
        writeln!(
            out,
            "drive       {}, {} sectors of {} bytes ({} physical)",
            profile.model,
            export.service.bytes() / u64::from(sector.logical_bytes),
            sector.logical_bytes,
            sector.physical_bytes
        )?;
        writeln!(out, "uri         {uri}")?;
        if let Some(control) = &drive.settings.control {
            writeln!(out, "control     {}", control.display())?;
        }
        for (what, paths) in [
            ("file", front_ends.files()),
            ("device", front_ends.loop_devices()),
            ("ublk", front_ends.block_devices()),
        ] {
            if let Some(Some(path)) = paths.get(index) {
                writeln!(out, "{what:<11} {}", path.display())?;
            }
        }
        for (name, line) in attach_commands(front_ends.address(), name, &uri, profile) {
            writeln!(out, "{name:<11} {line}")?;
        }
    }
    writeln!(out, "also        {}", others(front_ends))?;
    if let Some(warning) = front_ends.warning() {
        writeln!(out, "warning     {warning}")?;
    }
    writeln!(out, "stop        Ctrl-C")?;
    output::finish(out)
}

/// Returns the front ends that this machine has and that were not asked for.
fn others(front_ends: &FrontEnds) -> String {
    let used = [
        ("--fuse", !front_ends.files().is_empty()),
        (
            "--fuse --device",
            front_ends.loop_devices().iter().any(Option::is_some),
        ),
        ("--ublk", !front_ends.block_devices().is_empty()),
    ];
    let is_unused = |name: &str| used.contains(&(name, false));
    let found: Vec<String> = doctor::front_ends()
        .into_iter()
        .filter(|one| one.missing.is_none() && is_unused(one.name))
        .map(|one| {
            format!(
                "{} ({})",
                one.name.replace("--fuse", "--fuse DIR"),
                one.what
            )
        })
        .collect();
    let more = "`traxtent doctor` says what others need";
    match &found[..] {
        [] => more.to_owned(),
        found => format!("{}; {more}", found.join(", ")),
    }
}

/// Prints a served volume's addresses, and the commands that attach it.
pub(crate) fn print_volume(session: &Session, control: Option<&str>) -> Result<()> {
    let front_ends = session.front_ends();
    let uri = front_ends.address().uri("");
    note(format!("the volume is served at {uri}"));
    if let Some(control) = control {
        note(format!("the control socket is {control}"));
    }
    for (what, paths) in [
        ("the file", front_ends.files()),
        ("the loop device", front_ends.loop_devices()),
        ("the ublk device", front_ends.block_devices()),
    ] {
        for path in paths.into_iter().flatten() {
            note(format!("{what} is {}", path.display()));
        }
    }
    front_ends.warning().into_iter().for_each(note);
    Ok(())
}

fn summary(drive: &ServedDrive) -> String {
    let data = match &drive.settings.file {
        Some(path) => format!("data is in {}", path.display()),
        None => match memory_limit() {
            Some(limit) => format!(
                "data is in memory, at most {} MB, and will be lost when the server stops",
                limit / 1_000_000
            ),
            None => "data is in memory, and will be lost when the server stops".to_owned(),
        },
    };
    format!("{}: {data}", drive.name)
}

/// Returns the commands that attach a drive on this machine. The drive is the default export if
/// `export` is empty. docs/serve.md describes how each of them presents the drive's sectors.
fn attach_commands(
    address: &Address,
    export: &str,
    uri: &str,
    profile: &Profile,
) -> Vec<(&'static str, String)> {
    let sector = profile.sector;
    let server_options = match address {
        Address::Socket(path) => format!("server.type=unix,server.path={}", path.display()),
        Address::Port(ip, port) => {
            format!("server.type=inet,server.host={ip},server.port={port}")
        }
    };
    let client_address = match address {
        Address::Socket(path) => format!("-unix {}", path.display()),
        Address::Port(ip, port) => format!("{ip} {port}"),
    };
    let (qemu_export, client_export) = match export {
        "" => (String::new(), String::new()),
        name => (format!("export={name},"), format!(" -N {name}")),
    };
    let commands = [
        (
            "fio",
            doctor::find("fio").is_some(),
            format!(
                "fio --name=t --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=4 --time_based --runtime=10"
            ),
        ),
        (
            "qemu",
            doctor::find("qemu-system-x86_64").is_some(),
            format!(
                "qemu-system-x86_64 … -blockdev driver=nbd,node-name=d,{qemu_export}{server_options} \
                 -device virtio-scsi-pci \
                 -device scsi-hd,drive=d,logical_block_size={},physical_block_size={},rotation_rate={:.0}",
                sector.logical_bytes,
                sector.physical_bytes,
                profile
                    .mechanics
                    .as_ref()
                    .map_or(0.0, |mechanics| mechanics.rpm),
            ),
        ),
        (
            "kernel",
            doctor::kernel_client().is_none(),
            format!(
                "nbd-client -b {}{client_export} {client_address} /dev/nbd0",
                sector.logical_bytes
            ),
        ),
    ];
    commands
        .into_iter()
        .filter(|(_, is_here, _)| *is_here)
        .map(|(name, _, line)| (name, line))
        .collect()
}

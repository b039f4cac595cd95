//! The address of a served drive, and the commands that attach it.

use std::io::Write;
use std::net::IpAddr;
use std::path::{Path, PathBuf};

use traxtent_model::geometry::Geometry;
use traxtent_model::profile::Profile;

use super::Args;
use traxtent_server::serve::memory_limit;

use crate::failure::{Failure, Result, note};
use crate::output;

/// The address of a served drive.
#[derive(Clone, Debug)]
pub(crate) enum Address {
    Socket(PathBuf),
    Port(IpAddr, u16),
}

impl Address {
    pub(crate) fn of(args: &Args, folder: &Path) -> Address {
        match (args.port, &args.socket) {
            (Some(port), _) => {
                Address::Port(args.listen.unwrap_or(IpAddr::from([127, 0, 0, 1])), port)
            }
            (None, Some(path)) => {
                Address::Socket(std::path::absolute(path).unwrap_or_else(|_| path.clone()))
            }
            (None, None) => Address::Socket(folder.join("socket")),
        }
    }

    /// Returns the URI for NBD clients.
    fn uri(&self) -> String {
        match self {
            Address::Socket(path) => {
                format!(
                    "nbd+unix:///?socket={}",
                    escaped(&path.display().to_string())
                )
            }
            Address::Port(IpAddr::V6(ip), port) => format!("nbd://[{ip}]:{port}/"),
            Address::Port(ip, port) => format!("nbd://{ip}:{port}/"),
        }
    }

    /// Returns the environment variables for a command.
    pub(crate) fn environment(&self) -> Vec<(&'static str, String)> {
        let mut variables = vec![("uri", self.uri())];
        match self {
            Address::Socket(path) => variables.push(("socket", path.display().to_string())),
            Address::Port(_, port) => variables.push(("port", port.to_string())),
        }
        variables
    }
}

/// Percent-encodes characters that are not allowed in the query of a URI.
fn escaped(path: &str) -> String {
    let plain = |byte: u8| byte.is_ascii_alphanumeric() || b"/._-~".contains(&byte);
    let escape = |byte: u8| {
        if plain(byte) {
            char::from(byte).to_string()
        } else {
            format!("%{byte:02X}")
        }
    };
    path.bytes().map(escape).collect()
}

/// Prints the served drive, its address, and the commands that attach it.
pub(crate) fn print_address(
    args: &Args,
    profile: &Profile,
    address: &Address,
    keys: &[(&'static str, String)],
) -> Result<()> {
    let data = match &args.file {
        Some(path) => format!("data is in {}", path.display()),
        None => match memory_limit() {
            Some(limit) => format!(
                "data is in memory, at most {} MB, and will be lost when the server stops",
                limit / 1_000_000
            ),
            None => "data is in memory, and will be lost when the server stops".to_owned(),
        },
    };
    let exposure = match (args.listen, args.socket_mode) {
        (Some(ip), _) if !ip.is_loopback() => Some(format!(
            "anyone who can reach {ip} can read and write the drive"
        )),
        (_, Some(mode)) if mode & 0o077 != 0 => Some(format!(
            "the socket's mode is {mode:o}: other users can read and write the drive"
        )),
        _ => None,
    };
    let summary = format!("{}: {data}", args.drive);
    if !args.command.is_empty() {
        note(summary);
        exposure.into_iter().for_each(note);
        return Ok(());
    }
    let capacity = Geometry::build(&profile.geometry)
        .map_err(|error| Failure::at(&args.drive, error))?
        .capacity();
    let sector = profile.sector;
    let mut out = output::stdout();
    writeln!(out, "{summary}")?;
    writeln!(
        out,
        "drive       {}, {} sectors of {} bytes ({} physical)",
        profile.model, capacity.0, sector.logical_bytes, sector.physical_bytes
    )?;
    writeln!(out, "uri         {}", address.uri())?;
    if let Some((_, control)) = keys.iter().find(|(key, _)| *key == "control") {
        writeln!(out, "control     {control}")?;
    }
    if let Some(exposure) = exposure {
        writeln!(out, "warning     {exposure}")?;
    }
    for (name, line) in attach_commands(address, profile) {
        writeln!(out, "{name:<11} {line}")?;
    }
    writeln!(out, "stop        Ctrl-C")?;
    output::finish(out)
}

/// Returns commands that attach the drive. docs/serve.md describes how each of them presents the
/// drive's sectors.
fn attach_commands(address: &Address, profile: &Profile) -> Vec<(&'static str, String)> {
    let uri = address.uri();
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
    vec![
        (
            "fio",
            format!(
                "fio --name=t --ioengine=nbd --uri='{uri}' --rw=randread --bs=4k --iodepth=4 --time_based --runtime=10"
            ),
        ),
        (
            "qemu",
            format!(
                "qemu-system-x86_64 … -blockdev driver=nbd,node-name=d,{server_options} -device virtio-scsi-pci \
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
            "loop",
            format!(
                "touch d && nbdfuse d '{uri}' & losetup --find --show --direct-io=on --sector-size {} d",
                sector.logical_bytes
            ),
        ),
        (
            "kernel",
            format!(
                "nbd-client -b {} {client_address} /dev/nbd0",
                sector.logical_bytes
            ),
        ),
    ]
}

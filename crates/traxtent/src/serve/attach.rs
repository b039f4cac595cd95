//! The addresses of served exports, and the commands that attach them.

use std::io::Write;

use traxtent_model::profile::Profile;
use traxtent_server::service::Export;

use super::address::Address;
use super::doctor;
use super::drives::ServedDrive;
use super::front_ends::FrontEnds;
use super::session::Session;
use crate::failure::{Result, note};
use crate::output;

/// The description of a served drive or volume in the table of addresses.
pub(crate) struct Served {
    /// A line on the location of the drive's data, or on the volume's members.
    summary: String,
    /// `drive` or `volume`, and its description.
    what: (&'static str, String),
    /// The path of its control socket.
    control: Option<String>,
    sectors: SectorSizes,
    /// The rotation rate to report to guests; 0 if it is unknown.
    rpm: f64,
}

/// The sizes of sectors in bytes.
#[derive(Clone, Copy)]
struct SectorSizes {
    logical: u32,
    physical: u32,
}

impl Served {
    /// Describes a drive.
    pub(super) fn drive(drive: &ServedDrive, export: &Export) -> Served {
        let Profile {
            model,
            sector,
            mechanics,
            ..
        } = &drive.settings.profile;
        let sectors = SectorSizes {
            logical: sector.logical_bytes,
            physical: sector.physical_bytes,
        };
        let control = drive.settings.control.as_deref();
        Served {
            summary: summary(drive),
            what: ("drive", format!("{model}, {}", sectors.of(export))),
            control: control.map(|path| path.display().to_string()),
            sectors,
            rpm: mechanics.as_ref().map_or(0.0, |mechanics| mechanics.rpm),
        }
    }

    /// Describes a volume.
    pub(crate) fn volume(summary: String, control: Option<String>, export: &Export) -> Served {
        let sizes = export.service.block_sizes();
        let sectors = SectorSizes {
            logical: sizes.minimum,
            physical: sizes.preferred,
        };
        Served {
            summary,
            what: ("volume", sectors.of(export)),
            control,
            sectors,
            rpm: 0.0,
        }
    }
}

impl SectorSizes {
    /// Returns the size of an export in sectors.
    fn of(self, export: &Export) -> String {
        let SectorSizes { logical, physical } = self;
        format!(
            "{} sectors of {logical} bytes ({physical} physical)",
            export.service.bytes() / u64::from(logical)
        )
    }
}

/// Prints the summaries, and a warning, if any, as notes. This suffices if the server runs a
/// command, which has the addresses in its environment.
pub(crate) fn print_summaries(served: &[Served], session: &Session) {
    served.iter().map(|one| &one.summary).for_each(note);
    session.front_ends().warning().into_iter().for_each(note);
}

/// Prints the exports, their addresses, and the commands that attach them.
pub(crate) fn print(served: &[Served], session: &Session, mut out: impl Write) -> Result<()> {
    let front_ends = session.front_ends();
    for (index, (one, export)) in served.iter().zip(session.exports()).enumerate() {
        // The first export is the default one.
        let name = if index == 0 { "" } else { &export.name };
        let uri = front_ends.address().uri(name);
        writeln!(out, "{}", one.summary)?;
        let (what, description) = &one.what;
        writeln!(out, "{what:<11} {description}")?;
        writeln!(out, "uri         {uri}")?;
        if let Some(control) = &one.control {
            writeln!(out, "control     {control}")?;
        }
        for (what, paths) in [
            ("disk", front_ends.files()),
            ("device", front_ends.loop_devices()),
            ("ublk", front_ends.block_devices()),
        ] {
            if let Some(Some(path)) = paths.get(index) {
                writeln!(out, "{what:<11} {}", path.display())?;
            }
        }
        for (name, line) in attach_commands(front_ends.address(), name, &uri, one) {
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

/// Returns the front ends that work on this machine and were not requested.
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
    let more = "`traxtent doctor` shows what others need";
    match &found[..] {
        [] => more.to_owned(),
        found => format!("{}; {more}", found.join(", ")),
    }
}

fn summary(drive: &ServedDrive) -> String {
    let data = match &drive.settings.file {
        Some(path) => format!("data is in {}", path.display()),
        None => match drive.settings.memory_bytes_max {
            Some(limit) => format!(
                "data is in memory, at most {} MB, and will be lost when the server stops",
                limit / 1_000_000
            ),
            None => "data is in memory, and will be lost when the server stops".to_owned(),
        },
    };
    format!("{}: {data}", drive.name)
}

/// Returns the commands that attach an export on this machine. An empty `export` means the default
/// export. docs/guides/serve.md describes how each command presents the sectors.
fn attach_commands(
    address: &Address,
    export: &str,
    uri: &str,
    served: &Served,
) -> Vec<(&'static str, String)> {
    let SectorSizes { logical, physical } = served.sectors;
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
                 -device scsi-hd,drive=d,logical_block_size={logical},physical_block_size={physical},rotation_rate={:.0}",
                served.rpm,
            ),
        ),
        (
            "kernel",
            doctor::kernel_client().is_none(),
            format!("nbd-client -b {logical}{client_export} {client_address} /dev/nbd0"),
        ),
    ];
    commands
        .into_iter()
        .filter(|(_, is_here, _)| *is_here)
        .map(|(name, _, line)| (name, line))
        .collect()
}

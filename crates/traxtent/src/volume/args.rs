//! The arguments of `traxtent volume`, and the parsers of their values.

use std::path::PathBuf;

use traxtent_layout::raid::Level;
use traxtent_server::volume::{MEMBER_TIMEOUTS, RATE_MIN};
use traxtent_units::byte_size::{BYTE_SIZE_HELP, parse_byte_size};

use crate::copies;
use crate::serve::front_ends::FrontEndArgs;

/// Manage striped, mirrored and parity volumes on files and block devices
///
/// A volume is named by its members, in any order. While it is served, the members are locked. In
/// that case, pass the control socket instead of the members to status, fail, replace, rebuild,
/// sync, scrub and repair-superblocks.
#[derive(clap::Args, Debug)]
#[command(verbatim_doc_comment)]
pub(crate) struct Args {
    #[command(subcommand)]
    pub(super) verb: Verb,
}

#[derive(clap::Subcommand, Debug)]
pub(super) enum Verb {
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
    /// Remove the superblocks that make devices members of a volume; other content is kept
    Destroy(Destroy),
    /// Keep replicas of blocks around their tracks on one device; reads take the one that passes
    /// first
    Copies(copies::Args),
}

#[derive(clap::Args, Debug)]
#[command(after_help = BYTE_SIZE_HELP)]
pub(super) struct Create {
    /// raid-0, raid-1, raid-4 or raid-5
    #[arg(long, value_parser = level)]
    pub(super) level: Level,
    /// The size of a chunk in bytes, such as 64K; without it, chunks are the tracks of --map, or
    /// 64K for raid-1 without --map
    #[arg(long, value_name = "BYTES", value_parser = parse_byte_size)]
    pub(super) chunk: Option<u64>,
    /// A member's track map; once for each member, in the same order; required without --chunk,
    /// except for raid-1, and refused with it
    #[arg(long = "map", value_name = "FILE")]
    pub(super) maps: Vec<PathBuf>,
    /// The size of the journal on each member in bytes; raid-0 has none [default: 64M]
    #[arg(long, value_name = "BYTES", value_parser = parse_byte_size)]
    pub(super) journal: Option<u64>,
    /// Overwrite the content of the members, which is lost
    #[arg(long)]
    pub(super) force: bool,
    /// Do not test a sample of the track maps on members that can be timed
    #[arg(long)]
    pub(super) trust_map: bool,
    /// The members: files or block devices
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Print the new volume as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct Assemble {
    /// The members
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Do not test a sample of the track maps on members that can be timed
    #[arg(long)]
    pub(super) trust_map: bool,
    /// Continue without the missing members permanently; they become stale, and blocks that were
    /// being written during a crash may be lost
    #[arg(long)]
    pub(super) force: bool,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct Status {
    /// The members, or the control socket
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct Map {
    /// The members
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
}

/// The rate of the initial sync of a served volume.
#[derive(Clone, Copy, Debug)]
pub(super) enum SyncRate {
    Off,
    /// Bytes per second for each member.
    Bytes(u64),
}

#[derive(clap::Args, Debug)]
#[command(after_help = BYTE_SIZE_HELP)]
pub(super) struct Serve {
    /// The members
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Create the control socket here [default: in a new directory]
    #[arg(long, value_name = "PATH")]
    pub(super) control: Option<PathBuf>,
    /// The time after which a member that does not respond is failed, in seconds [default: 30]
    #[arg(long, value_name = "SECONDS", value_parser = member_timeout)]
    pub(super) member_timeout: Option<u64>,
    /// The rate of the initial sync during operation in bytes per second for each member, such as
    /// 50M and at least 64K, or off [default: 32M]
    #[arg(long, value_name = "RATE", value_parser = sync_rate, conflicts_with = "read_only")]
    pub(super) sync_rate: Option<SyncRate>,
    /// Do not test a sample of the track maps on members that can be timed
    #[arg(long)]
    pub(super) trust_map: bool,
    #[command(flatten)]
    pub(super) front_ends: FrontEndArgs,
    /// Refuse writes
    #[arg(long)]
    pub(super) read_only: bool,
    /// Run this command, and stop serving when it ends. Its environment has $uri, $socket or $port,
    /// and $control, and also $disk, $device and $ublk if they exist
    #[arg(last = true, value_name = "COMMAND")]
    pub(super) command: Vec<String>,
}

#[derive(clap::Args, Debug)]
pub(super) struct MemberArgs {
    /// The member's number
    pub(super) member: usize,
    /// The members, or the control socket
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Print the new status as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct Replace {
    /// The failed member's number
    pub(super) member: usize,
    /// The device that replaces the member
    #[arg(long, value_name = "DEVICE")]
    pub(super) with: PathBuf,
    /// Overwrite existing content of the device
    #[arg(long)]
    pub(super) force: bool,
    /// The other members, or the control socket
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Print the new status as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args, Debug)]
#[command(after_help = BYTE_SIZE_HELP)]
pub(super) struct WorkArgs {
    /// The members, or the control socket
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// The maximum rate in bytes per second for each member, such as 50M; at least 64K
    #[arg(long, value_name = "BYTES", value_parser = rate)]
    pub(super) rate: Option<u64>,
    /// Let a server continue in the background; `status` shows the progress
    #[arg(long)]
    pub(super) no_wait: bool,
    /// Print the outcome as JSON
    #[arg(long)]
    pub(super) json: bool,
}

/// The repairs that `--repair` permits.
#[derive(clap::ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum RepairScope {
    /// Rewrite unreadable sectors with data from the other members, and replicas that a majority
    /// disagrees with
    Sectors,
    /// The same, and recompute mismatched parity from the data, right or wrong
    Parity,
}

#[derive(clap::Args, Debug)]
pub(super) struct Scrub {
    #[command(flatten)]
    pub(super) work: WorkArgs,
    /// Repair what is certain: unreadable sectors, and replicas that a majority disagrees with;
    /// =parity also recomputes parity
    #[arg(long, value_name = "WHAT", num_args = 0..=1, require_equals = true, default_missing_value = "sectors")]
    pub(super) repair: Option<RepairScope>,
    /// The member whose replica is correct if replicas differ without a majority
    #[arg(long, value_name = "MEMBER", requires = "repair")]
    pub(super) from: Option<usize>,
}

#[derive(clap::Args, Debug)]
pub(super) struct RepairSuperblocks {
    /// The members, or the control socket
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Overwrite other content, such as a file system, in the places of superblocks
    #[arg(long)]
    pub(super) force: bool,
    /// Print as JSON
    #[arg(long)]
    pub(super) json: bool,
}

#[derive(clap::Args, Debug)]
pub(super) struct Destroy {
    /// The members
    #[arg(required = true)]
    pub(super) members: Vec<PathBuf>,
    /// Confirm the loss of the volume's data; required
    #[arg(long)]
    pub(super) force: bool,
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

fn sync_rate(text: &str) -> std::result::Result<SyncRate, String> {
    match text {
        "off" => Ok(SyncRate::Off),
        text => rate(text).map(SyncRate::Bytes),
    }
}

fn rate(text: &str) -> std::result::Result<u64, String> {
    match parse_byte_size(text).map_err(|error| error.to_string())? {
        rate if rate < RATE_MIN => Err(format!(
            "{rate} bytes per second; expected at least 64K, such as 50M"
        )),
        rate => Ok(rate),
    }
}

//! The fuzz targets, in one list, and the canaries that prove that the fuzzer finds bugs.
//!
//! A target is a function of bytes that must return for every input: no panic, no unbounded memory,
//! no endless loop, no unbounded recursion. To add one, write the function, add a line to
//! [`TARGETS`], and put a few small inputs by hand into `corpus/NAME/`. Words of the format may go
//! into `corpus/NAME.dict`, one quoted word per line.
//!
//! `cargo xtask fuzz` searches for inputs, guided by coverage; `cargo test` replays the corpora,
//! and inputs that are changed at random.

mod canary;
mod targets;

/// A function under test, with its name.
#[derive(Clone, Copy, Debug)]
pub struct Target {
    /// The name on the command line and of the directory in `corpus/`.
    pub name: &'static str,
    /// The function, which must return for every input.
    pub run: fn(&[u8]),
}

const fn target(name: &'static str, run: fn(&[u8])) -> Target {
    Target { name, run }
}

/// All fuzz targets.
pub const TARGETS: &[Target] = &[
    target("units", targets::units),
    target("profile", targets::drive::profile),
    target("override", targets::drive::override_figure),
    target("geometry", targets::drive::geometry),
    target("disksim-params", targets::disksim::params),
    target("disksim-layout", targets::disksim::layout),
    target("seek-file", targets::disksim::seek_file),
    target("trace", targets::workload::trace),
    target("trace-detect", targets::workload::trace_detect),
    target("trace-columns", targets::workload::trace_columns),
    target("workload", targets::workload::line),
    target("workload-toml", targets::workload::table),
    target("map-file", targets::trackmap::file),
    target("track-list", targets::trackmap::csv),
    target("log-structure", targets::log::structure),
    target("log-image", targets::log::image),
    target("tpl-header", targets::tpl::header),
    target("tpl-table", targets::tpl::table),
    target("volume-superblock", targets::volume::superblock),
    target("volume-record", targets::volume::record),
    target("volume-copies", targets::volume::copies),
    target("volume-order", targets::volume::order),
    target("nbd-handshake", targets::nbd::handshake),
    target("nbd-request", targets::nbd::request),
    target("fault", targets::disk::fault),
    target("scenario", targets::disk::scenario),
    target("experiment", targets::experiments::text),
    target("claim-names", targets::experiments::names),
    target("scsi-command", targets::scsi::command),
    target("scsi-sense", targets::scsi::sense),
    target("scsi-inquiry", targets::scsi::inquiry),
    target("scsi-vital", targets::scsi::vital),
    target("scsi-capacity", targets::scsi::capacity),
    target("scsi-translate", targets::scsi::translate),
    target("scsi-defects", targets::scsi::defects),
    target("scsi-mode", targets::scsi::mode),
    target("scsi-device", targets::scsi::device),
    target("scsi-host", targets::scsi::host),
    target("check-tables", targets::check::partition_tables),
    target("check-ext", targets::check::ext),
    target("check-xfs", targets::check::xfs),
    target("check-btrfs", targets::check::btrfs),
    target("check-swap", targets::check::swap),
    target("check-luks", targets::check::luks),
    target("check-lvm", targets::check::lvm),
    target("check-lvm-text", targets::check::lvm_text),
    target("check-md", targets::check::md),
    target("check-zfs", targets::check::zfs),
    target("check-stack", targets::check::stack),
    target("check-files", targets::check::files),
    target("check-want", targets::check::want),
    target("check-archive", targets::check::archive),
    target("arguments", targets::arguments),
];

/// Targets with a planted bug, one for each kind of bug. A run in which the fuzzer does not find
/// them has failed.
pub const CANARIES: &[Target] = &[
    target("canary-panic", canary::panics),
    target("canary-memory", canary::fills_memory),
    target("canary-hang", canary::hangs),
    target("canary-stack", canary::exhausts_stack),
];

/// Returns the target or canary called `name`.
pub fn find(name: &str) -> Option<Target> {
    TARGETS
        .iter()
        .chain(CANARIES)
        .find(|target| target.name == name)
        .copied()
}

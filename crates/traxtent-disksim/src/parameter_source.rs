//! The DiskSim parameter from which a value of a profile was read.
//!
//! [`Profile::check`](traxtent_model::profile::Profile::check) checks all values against their
//! bounds. If it rejects an imported profile, the error refers to the user's own file: its name,
//! the line, the parameter and its value.

use super::params::{Block, Node, ParamError, Value};
use super::required::SEPARATE_WRITE_SEGMENT;
use super::scheduling::{QueueOwner, origin_of_replacement};
use traxtent_model::profile::{Profile, ProfileError, Provenance};

/// The block that contains a parameter.
#[derive(Clone, Copy)]
enum Within {
    /// The drive's own block.
    Drive,
    /// The block with the layout and the mechanics.
    Model,
    /// The block of the mechanics.
    Mechanics,
    /// The block of the drive's scheduler.
    Scheduler,
    /// The block of the bus to which the drive is connected.
    Bus,
}

use Within::{Bus, Drive, Mechanics, Model, Scheduler};

/// The parameter for each value of a profile, by the value's path or its beginning. The first
/// matching entry whose parameter is in the file applies; for the bus times, the one with the
/// greatest value.
#[rustfmt::skip]
const PARAMETERS: &[(&str, Within, &str)] = &[
    ("mechanics.rpm", Mechanics, "Rotation speed (in rpms)"),
    ("mechanics.head_switch_ms", Mechanics, "Head switch time"),
    ("mechanics.write_settle_ms", Mechanics, "Add. write settling delay"),
    ("mechanics.seek.curve", Mechanics, "Seek type"),
    ("mechanics.seek.ms", Mechanics, "Constant seek time"),
    ("mechanics.seek.single_ms", Mechanics, "Single cylinder seek time"),
    ("mechanics.seek.average_ms", Mechanics, "Average seek time"),
    ("mechanics.seek.full_ms", Mechanics, "Full strobe seek time"),
    ("mechanics.seek", Mechanics, "Full seek curve"),
    ("mechanics.seek", Mechanics, "HPL seek equation values"),
    ("overheads.read_hit_after_read_ms", Drive, "Read hit over. after read"),
    ("overheads.read_hit_after_write_ms", Drive, "Read hit over. after write"),
    ("overheads.read_miss_after_read_ms", Drive, "Read miss over. after read"),
    ("overheads.read_miss_after_write_ms", Drive, "Read miss over. after write"),
    ("overheads.write_hit_after_read_ms", Drive, "Write hit over. after read"),
    ("overheads.write_hit_after_write_ms", Drive, "Write hit over. after write"),
    ("overheads.write_miss_after_read_ms", Drive, "Write miss over. after read"),
    ("overheads.write_miss_after_write_ms", Drive, "Write miss over. after write"),
    ("overheads.read_completion_ms", Drive, "Read completion overhead"),
    ("overheads.write_completion_ms", Drive, "Write completion overhead"),
    ("overheads.data_preparation_ms", Drive, "Data preparation overhead"),
    ("overheads.first_reselect_ms", Drive, "First reselect overhead"),
    ("overheads.other_reselect_ms", Drive, "Other reselect overhead"),
    ("overheads.read_disconnect_after_read_ms", Drive, "Read disconnect afterread"),
    ("overheads.read_disconnect_after_write_ms", Drive, "Read disconnect afterwrite"),
    ("overheads.write_disconnect_ms", Drive, "Write disconnect overhead"),
    ("overheads.minimum_write_seek_ms", Drive, "Minimum seek delay"),
    ("overheads.per_request_ms", Drive, "Per-request overhead time"),
    ("overheads.extra_write_disconnect.command_ms", Drive, "Extradisc command overhead"),
    ("overheads.extra_write_disconnect.disconnect_ms", Drive, "Extradisc disconnect overhead"),
    ("overheads.extra_write_disconnect.off_bus_ms", Drive, "Extradisc inter-disconnect delay"),
    ("overheads.extra_write_disconnect.second_disconnect_ms", Drive, "Extradisc 2nd disconnect overhead"),
    ("overheads.extra_write_disconnect.seek_delay_ms", Drive, "Extradisc seek delta"),
    ("access.zero_latency_read", Drive, "Immediate buffer read"),
    ("access.zero_latency_write", Drive, "Immediate buffer write"),
    ("access.read_on_arrival", Drive, "Read any free blocks"),
    ("queue.scheduler.aged-sptf.weight", Scheduler, "Timeout time/weight"),
    ("queue.scheduler.weight", Scheduler, "Timeout time/weight"),
    ("queue.scheduler", Scheduler, "Scheduling policy"),
    ("queue.depth", Drive, "Max queue length"),
    ("queue.preseek", Drive, "Preseeking level"),
    ("cache.enabled", Drive, "Enable caching in buffer"),
    ("cache.segments", Drive, "Number of buffer segments"),
    ("cache.write_segments", Drive, "Maximum number of write segments"),
    ("cache.segment_sectors", Drive, "Segment size (in blks)"),
    ("cache.dedicated_write_segment", Drive, SEPARATE_WRITE_SEGMENT),
    ("cache.write_back", Drive, "Fast write level"),
    ("cache.combine_writes", Drive, "Combine seq writes"),
    ("cache.read_hits_on_written", Drive, "Allow read hits on write data"),
    ("cache.hits_while_busy", Drive, "Allow sneaky full read hits"),
    ("cache.writes_while_busy", Drive, "Allow write prebuffering"),
    ("cache.almost_hits", Drive, "Allow almost read hits"),
    ("cache.drop_delivered", Drive, "Read-ahead over requested"),
    ("cache.read_watermark", Drive, "High (read) water mark"),
    ("cache.write_watermark", Drive, "Low (write) water mark"),
    ("cache.watermark_of_request", Drive, "Set watermark by reqsize"),
    ("cache.read_ahead.until", Drive, "Buffer continuous read"),
    ("cache.read_ahead.min_sectors", Drive, "Minimum read-ahead (blks)"),
    ("cache.read_ahead.max_sectors", Drive, "Maximum read-ahead (blks)"),
    ("cache.read_ahead.max_from_request_start", Drive, "Read-ahead over requested"),
    ("cache.read_ahead.on_idle_hit", Drive, "Read-ahead on idle hit"),
    ("cache.read_ahead.stop_in_sector", Drive, "Stop prefetch in sector"),
    ("cache.read_ahead.stop_on_write_hit", Drive, "Write hit stop prefetch"),
    ("bus.read_sector_ms", Bus, "Read block transfer time"),
    ("bus.read_sector_ms", Drive, "Bulk sector transfer time"),
    ("bus.write_sector_ms", Bus, "Write block transfer time"),
    ("bus.write_sector_ms", Drive, "Bulk sector transfer time"),
    ("bus.hold.during_read", Drive, "Hold bus entire read xfer"),
    ("bus.hold.during_write", Drive, "Hold bus entire write xfer"),
    ("bus.hold.always", Drive, "Never disconnect"),
    ("geometry.surfaces", Model, "Number of data surfaces"),
    ("geometry.cylinders", Model, "Number of cylinders"),
    ("geometry.capacity_sectors", Model, "Block count"),
    ("geometry", Model, "Layout Model"),
];

/// Returns the path in a profile of the value, or of the table with the values, for a parameter of
/// a drive in DiskSim. `None` if there is no such parameter.
pub fn profile_key(parameter: &str) -> Option<&'static str> {
    let mut known = PARAMETERS.iter();
    let (path, ..) = known.find(|(_, _, name)| name.eq_ignore_ascii_case(parameter))?;
    Some(path)
}

/// Returns the origin of each value of `profile`, which was made from `drive` and the bus to which
/// it is connected.
pub(super) fn origins(drive: &Block, bus: Option<&Block>, profile: &Profile) -> Provenance {
    let replaced =
        inner(drive, "Scheduler").and_then(|queue| origin_of_replacement(queue, QueueOwner::Disk));
    let origin = |mut path: String| {
        let origin = match parameter(drive, bus, &path) {
            Some(_) if path.starts_with("queue.scheduler") && replaced.is_some() => {
                "queue.scheduler".clone_into(&mut path);
                replaced.clone().unwrap_or_default()
            }
            Some((SEPARATE_WRITE_SEGMENT, node)) if node.value.show() != "0" => {
                let value = node.value.show();
                format!(
                    "assumed: DiskSim, {}:{}, \"{SEPARATE_WRITE_SEGMENT}\" = {value} is not applied",
                    node.file, node.line
                )
            }
            Some((name, node)) => {
                let value = shown(drive, name, &node.value);
                format!(
                    "measured: DiskSim, {}:{}, \"{name}\" = {value}",
                    node.file, node.line
                )
            }
            None => format!("assumed: not from the parameters of {}", drive.file),
        };
        (path, origin)
    };
    Provenance(profile.value_paths().into_iter().map(origin).collect())
}

/// Returns a parameter's value as text. For a layout, this is its type and its map file, if any.
pub(super) fn shown(drive: &Block, name: &str, value: &Value) -> String {
    match value {
        Value::Block(layout) if name == "Layout Model" => match layout.get_str("Layout Map File") {
            Ok(Some(file)) => format!("{} with {}", layout.kind, drive.path(file)),
            _ => layout.kind.clone(),
        },
        Value::List(items) => {
            let items: Vec<String> = items.iter().map(|item| item.value.show()).collect();
            format!("[{}]", items.join(", "))
        }
        other => other.show(),
    }
}

/// Converts an error in the profile made from `drive` to an error that refers to the parameter in
/// the file, or to the block if no parameter is known for it. `drive` is a `disksim_disk` or
/// `dm_disk` block.
pub(super) fn error_at_parameter(drive: &Block, error: &ProfileError) -> ParamError {
    if let ProfileError::Geometry(problem) = error
        && let Some(layout) = model(drive).and_then(|model| model.get("Layout Model"))
    {
        return layout.error(format!("Layout Model: {problem}"));
    }
    let ProfileError::OutOfBounds { key, value, bound } = error else {
        return drive.error(error.to_string());
    };
    let Some((name, node)) = parameter(drive, None, key) else {
        return drive.error(error.to_string());
    };
    // An element of a list has a line of its own.
    let same = |node: &&Node| node.value.show() == *value;
    if let Value::List(values) = &node.value {
        let node = values.iter().find(same).unwrap_or(node);
        return node.error(format!("{name}: {value}: must be {bound}"));
    }
    let own = node.value.show();
    node.error(if own == *value {
        format!("{name} = {own}: must be {bound}")
    } else {
        format!("{name} = {own} results in {value}: must be {bound}")
    })
}

/// Returns the name and the node of the parameter from which the value at `path` was read; `None`
/// if the file has no such parameter.
fn parameter<'a>(
    drive: &'a Block,
    bus: Option<&'a Block>,
    path: &str,
) -> Option<(&'static str, &'a Node)> {
    let mechanics = model(drive).and_then(|model| inner(model, "Mechanical Model"));
    let node = |within, name| match within {
        Drive => drive.get(name),
        Model => model(drive)?.get(name),
        Bus => bus?.get(name),
        Mechanics => mechanics?.get(name),
        Scheduler => inner(drive, "Scheduler")?.get(name),
    };
    // Only `hplplus10` curves have a parameter of their own for the first seek times.
    let first_ten = "First ten seek times";
    let seek_type = mechanics.and_then(|block| block.get_str("Seek type").ok()?);
    if path == "mechanics.seek.first_ms" && seek_type == Some("hplplus10") {
        return Some((first_ten, node(Mechanics, first_ten)?));
    }
    let mut found = PARAMETERS
        .iter()
        .filter(|(known, ..)| path.starts_with(known))
        .filter_map(|&(_, within, name)| Some((name, node(within, name)?)));
    let first = found.next()?;
    if !path.starts_with("bus.") {
        return Some(first);
    }
    // The time of a sector is the greater of two parameters.
    let time = |node: &Node| node.f64().unwrap_or(0.0);
    let greater = found.find(|(_, node)| time(node) > time(first.1));
    Some(greater.unwrap_or(first))
}

/// Returns the block with the layout and the mechanics.
fn model(drive: &Block) -> Option<&Block> {
    match drive.kind.as_str() {
        "dm_disk" => Some(drive),
        _ => inner(drive, "Model"),
    }
}

fn inner<'a>(block: &'a Block, key: &str) -> Option<&'a Block> {
    block.get(key)?.block().ok().map(|inner| &**inner)
}

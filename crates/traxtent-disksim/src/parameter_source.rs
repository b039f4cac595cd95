//! The DiskSim parameter from which a value of a profile was read.
//!
//! [`Profile::check`](traxtent_model::profile::Profile::check) has the bounds of all values. If it
//! refuses an imported drive, the error refers to the user's own file: its name, the line, the
//! parameter and its value.

use super::params::{Block, Node, ParamError, Value};
use traxtent_model::profile::ProfileError;

/// The place of a parameter, relative to the drive's block.
#[derive(Clone, Copy)]
enum Within {
    Drive,
    Mechanics,
    Scheduler,
}

use Within::{Drive, Mechanics, Scheduler};

/// Values of a profile, or the beginnings of their paths, and the parameters for them. The first
/// entry that matches and is in the file applies.
const PARAMETERS: &[(&str, Within, &str)] = &[
    ("mechanics.rpm", Mechanics, "Rotation speed (in rpms)"),
    ("mechanics.head_switch_ms", Mechanics, "Head switch time"),
    (
        "mechanics.write_settle_ms",
        Mechanics,
        "Add. write settling delay",
    ),
    ("mechanics.seek.ms", Mechanics, "Constant seek time"),
    (
        "mechanics.seek.single_ms",
        Mechanics,
        "Single cylinder seek time",
    ),
    ("mechanics.seek.average_ms", Mechanics, "Average seek time"),
    ("mechanics.seek.full_ms", Mechanics, "Full strobe seek time"),
    ("mechanics.seek", Mechanics, "Full seek curve"),
    ("mechanics.seek", Mechanics, "HPL seek equation values"),
    ("queue.scheduler.weight", Scheduler, "Timeout time/weight"),
    ("queue.depth", Drive, "Max queue length"),
    ("cache.segments", Drive, "Number of buffer segments"),
    ("cache.segment_sectors", Drive, "Segment size (in blks)"),
    ("cache.read_watermark", Drive, "High (read) water mark"),
    ("cache.write_watermark", Drive, "Low (write) water mark"),
    (
        "cache.read_ahead.min_sectors",
        Drive,
        "Minimum read-ahead (blks)",
    ),
    (
        "cache.read_ahead.max_sectors",
        Drive,
        "Maximum read-ahead (blks)",
    ),
];

/// Converts an error of the profile that was made from `drive`, a `disksim_disk` or `dm_disk`
/// block, to an error in the file.
pub(super) fn error_at_parameter(drive: &Block, error: &ProfileError) -> ParamError {
    if let ProfileError::Geometry(problem) = error
        && let Some(layout) = model(drive).and_then(|model| model.get("Layout Model"))
    {
        return layout.error(format!("Layout Model: {problem}"));
    }
    let ProfileError::OutOfBounds { key, value, bound } = error else {
        return drive.error(error.to_string());
    };
    let Some((name, node)) = parameter(drive, key) else {
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
        format!("{name} = {own} makes {value}: must be {bound}")
    })
}

/// Returns the parameter for a value, by name, and the parameter's value.
fn parameter<'a>(drive: &'a Block, figure: &str) -> Option<(&'static str, &'a Node)> {
    let mechanics = model(drive).and_then(|model| inner(model, "Mechanical Model"));
    let node = |within, name| match within {
        Drive => drive.get(name),
        Mechanics => mechanics?.get(name),
        Scheduler => inner(drive, "Scheduler")?.get(name),
    };
    // The number of first seek times depends on the type of the curve.
    let ten = "First ten seek times";
    let plus_ten = mechanics.and_then(|block| block.get_str("Seek type").ok()?);
    if figure == "mechanics.seek.first_ms" && plus_ten == Some("hplplus10") {
        return Some((ten, node(Mechanics, ten)?));
    }
    PARAMETERS
        .iter()
        .filter(|(known, ..)| figure.starts_with(known))
        .find_map(|&(_, within, name)| Some((name, node(within, name)?)))
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

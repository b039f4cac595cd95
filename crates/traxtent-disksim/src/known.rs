//! Parameters that DiskSim has in the blocks of a drive, and warnings about those that were not
//! read.
//!
//! Source: `src/modules/*.modspec` and `diskmodel/modules/*.modspec` in DiskSim 4.0.

use super::params::Unused;
use super::required::DISK_REQUIRED;
use traxtent_model::profile::nearest_name;

/// All parameters of a `disksim_ioqueue` block.
const QUEUE: &[&str] = &[
    "Scheduling policy",
    "Cylinder mapping strategy",
    "Write initiation delay",
    "Read initiation delay",
    "Sequential stream scheme",
    "Maximum concat size",
    "Overlapping request scheme",
    "Sequential stream diff maximum",
    "Scheduling timeout scheme",
    "Timeout time/weight",
    "Timeout scheduling",
    "Scheduling priority scheme",
    "Priority scheduling",
];

/// All parameters of a `dm_mech_g1` block.
const MECHANICS: &[&str] = &[
    "Access time type",
    "Constant access time",
    "Seek type",
    "Average seek time",
    "Constant seek time",
    "Single cylinder seek time",
    "Full strobe seek time",
    "Full seek curve",
    "Add. write settling delay",
    "Head switch time",
    "Rotation speed (in rpms)",
    "Percent error in rpms",
    "First ten seek times",
    "HPL seek equation values",
];

/// All parameters of a `dm_layout_g1` block.
const LAYOUT_G1: &[&str] = &[
    "LBN-to-PBN mapping scheme",
    "Sparing scheme used",
    "Rangesize for sparing",
    "Skew units",
    "Zones",
];

/// All parameters of a `dm_layout_g1_zone` block.
const ZONE_G1: &[&str] = &[
    "First cylinder number",
    "Last cylinder number",
    "Blocks per track",
    "Offset of first block",
    "Skew units",
    "Empty space at zone front",
    "Skew for track switch",
    "Skew for cylinder switch",
    "Number of spares",
    "slips",
    "defects",
];

/// Returns the warning about a parameter of a drive that was not read.
pub(super) fn warning_of_unused(unused: &Unused) -> String {
    if unused.block == "disksim_disk" {
        // Every parameter that DiskSim has in this block is read, so this is none of them.
        return no_parameter(unused, DISK_REQUIRED.iter().map(|(key, _)| *key));
    }
    warning_of_unknown(unused).unwrap_or_else(|| {
        let Unused {
            key, file, line, ..
        } = unused;
        format!("{file}:{line}: \"{key}\" is not modelled")
    })
}

/// Returns the warning about a parameter that DiskSim does not have in a scheduler, mechanics or
/// layout g1. Returns `None` if DiskSim has it, and for other kinds of blocks.
pub(super) fn warning_of_unknown(unused: &Unused) -> Option<String> {
    let known = match unused.block.as_str() {
        "disksim_ioqueue" => QUEUE,
        "dm_mech_g1" => MECHANICS,
        "dm_layout_g1" => LAYOUT_G1,
        "dm_layout_g1_zone" => ZONE_G1,
        _ => return None,
    };
    let is_known = known.contains(&unused.key.as_str());
    (!is_known).then(|| no_parameter(unused, known.iter().copied()))
}

/// Returns the warning about a parameter that DiskSim does not have in a block, with the nearest of
/// the `known` ones.
pub(super) fn no_parameter(unused: &Unused, known: impl Iterator<Item = &'static str>) -> String {
    let Unused {
        block,
        key,
        file,
        line,
    } = unused;
    let hint = nearest_name(key, known).map(|known| format!("; did you mean \"{known}\"?"));
    format!(
        "{file}:{line}: \"{key}\" is not a parameter of {block}; it is ignored{}",
        hint.unwrap_or_default()
    )
}

//! Parameters that DiskSim requires (`src/modules/*.modspec` and `diskmodel/modules/*.modspec` in
//! DiskSim 4.0), and the values used here if a file omits them.

use super::params::{Block, Value};
use traxtent_units::Count;

/// A required parameter and the value that is used if it is missing.
pub(super) type Required = (&'static str, &'static str);

/// The required parameters of a `disksim_disk` block that affect a simulation in DiskSim.
pub(super) const DISK_REQUIRED: &[Required] = &[
    ("Scheduler", "FCFS"),
    ("Max queue length", "1"),
    ("Bulk sector transfer time", "0"),
    ("Segment size (in blks)", "1"),
    ("Number of buffer segments", "1"),
    ("Per-request overhead time", "0"),
    ("Time scale for overheads", "1"),
    ("Hold bus entire read xfer", "0"),
    ("Hold bus entire write xfer", "0"),
    ("Allow almost read hits", "0"),
    ("Allow sneaky full read hits", "0"),
    ("Allow sneaky partial read hits", "0"),
    ("Allow sneaky intermediate read hits", "0"),
    ("Allow read hits on write data", "0"),
    ("Allow write prebuffering", "0"),
    ("Preseeking level", "0"),
    ("Never disconnect", "0"),
    ("Maximum number of write segments", "1"),
    (SEPARATE_WRITE_SEGMENT, "0"),
    ("Low (write) water mark", "0"),
    ("High (read) water mark", "0"),
    ("Set watermark by reqsize", "1"),
    ("Enable caching in buffer", "0"),
    ("Buffer continuous read", "0"),
    ("Minimum read-ahead (blks)", "0"),
    ("Maximum read-ahead (blks)", "0"),
    ("Read-ahead over requested", "0"),
    ("Read-ahead on idle hit", "0"),
    ("Read any free blocks", "0"),
    ("Fast write level", "0"),
    ("Combine seq writes", "0"),
    ("Stop prefetch in sector", "0"),
    ("Disconnect write if seek", "0"),
    ("Write hit stop prefetch", "1"),
    ("Read directly to buffer", "1"),
    ("Immed transfer partial hit", "1"),
    ("Read hit over. after read", "0"),
    ("Read hit over. after write", "0"),
    ("Read miss over. after read", "0"),
    ("Read miss over. after write", "0"),
    ("Write hit over. after read", "0"),
    ("Write hit over. after write", "0"),
    ("Write miss over. after read", "0"),
    ("Write miss over. after write", "0"),
    ("Read completion overhead", "0"),
    ("Write completion overhead", "0"),
    ("Data preparation overhead", "0"),
    ("First reselect overhead", "0"),
    ("Other reselect overhead", "0"),
    ("Read disconnect afterread", "0"),
    ("Read disconnect afterwrite", "0"),
    ("Write disconnect overhead", "0"),
    ("Extra write disconnect", "0"),
    ("Minimum seek delay", "0"),
    ("Immediate buffer read", "0"),
    ("Immediate buffer write", "0"),
];

/// The parameter that reserves a segment for writes. It is read but not applied.
pub(super) const SEPARATE_WRITE_SEGMENT: &str = "Use separate write segment";

/// The required parameters of a `disksim_bus` block that affect a simulation in DiskSim.
pub(super) const BUS_REQUIRED: &[Required] = &[
    ("Arbitration time", "0"),
    ("Read block transfer time", "0"),
    ("Write block transfer time", "0"),
];

/// The parameter of a `disksim_iodriver` block that lets disks queue requests.
pub(super) const QUEUEING: &str = "Use queueing in subsystem";

/// The required parameters of a `disksim_iodriver` block that affect a simulation in DiskSim.
pub(super) const DRIVER_REQUIRED: &[Required] = &[(QUEUEING, "0"), ("Scheduler", "FCFS")];

/// The required parameter of a `disksim_pf` block that affects a synthetic workload in DiskSim and
/// has no neutral value.
pub(super) const PROCESSES_REQUIRED: &[Required] = &[("Number of processors", "1")];

/// The required parameters of a `disksim_synthio` block that affect a simulation in DiskSim. The
/// import refuses a block without the others.
pub(super) const SYNTHIO_REQUIRED: &[Required] = &[
    ("System call/return with each request", "0"),
    ("Think time from call to request", "0"),
    ("Think time from request to return", "0"),
];

/// The required parameters of a `disksim_ioqueue` block that affect a simulation in DiskSim. The
/// others refine policies and schemes that are not modelled.
pub(super) const QUEUE_REQUIRED: &[Required] = &[
    ("Scheduling policy", "1"),
    ("Write initiation delay", "0"),
    ("Read initiation delay", "0"),
    ("Sequential stream scheme", "0"),
    ("Overlapping request scheme", "0"),
    ("Scheduling timeout scheme", "0"),
    ("Timeout time/weight", "0"),
    ("Scheduling priority scheme", "0"),
];

/// The required parameters of a `dm_mech_g1` block. The import refuses a block without the type of
/// its seeks or its rotation speed.
pub(super) const MECHANICS_REQUIRED: &[Required] = &[
    ("Access time type", "trackSwitchPlusRotation"),
    ("Add. write settling delay", "0"),
    ("Head switch time", "0"),
    ("Percent error in rpms", "0"),
];

/// The required parameters of a `dm_layout_g1` block. The import refuses a block without the
/// others.
const LAYOUT_G1_REQUIRED: &[Required] = &[("Rangesize for sparing", "1")];

/// The required parameters of a `dm_layout_g1_zone` block. The import refuses a block without the
/// others.
const ZONE_G1_REQUIRED: &[Required] = &[
    ("Offset of first block", "0"),
    ("Empty space at zone front", "0"),
    ("Number of spares", "0"),
    ("slips", "[ ]"),
    ("defects", "[ ]"),
];

/// The parameters of a `dm_layout_g1_zone` block that DiskSim does not require, although few drives
/// have no skew.
const ZONE_G1_SKEWS: &[Required] = &[
    ("Skew for track switch", "0"),
    ("Skew for cylinder switch", "0"),
];

const REQUIRES: &str = "parameters that DiskSim requires; the values in parentheses are used";
const MAY_LACK: &str =
    "parameters that DiskSim does not require; the values in parentheses are used";

/// Adds a single warning that names the required parameters that a block lacks, if any.
pub(super) fn warn_of_missing(block: &Block, required: &[Required], warnings: &mut Vec<String>) {
    let missing = missing(block, required);
    if !missing.is_empty() {
        warnings.push(warning(block, REQUIRES, &missing));
    }
}

/// Adds warnings about the parameters that a layout and its zones lack, if it is a layout g1. Zones
/// that lack the same parameters have one warning, at the first of them.
pub(super) fn warn_of_missing_in_layout(layout: &Block, warnings: &mut Vec<String>) {
    if layout.kind != "dm_layout_g1" {
        return;
    }
    warn_of_missing(layout, LAYOUT_G1_REQUIRED, warnings);
    let mut params = layout.params();
    let Some((_, zones)) = params.find(|(key, _)| *key == "Zones") else {
        return;
    };
    let zones = zones.list().unwrap_or_default().iter();
    let zones = zones.filter_map(|node| match &node.value {
        Value::Block(zone) => Some(zone),
        _ => None,
    });
    // The warnings, each with the number of zones after the first that it concerns.
    let mut of_zones: Vec<(&Block, &str, String, usize)> = Vec::new();
    for zone in zones {
        for (relation, keys) in [(REQUIRES, ZONE_G1_REQUIRED), (MAY_LACK, ZONE_G1_SKEWS)] {
            let missing = missing(zone, keys);
            let same =
                |one: &&mut (&Block, &str, String, usize)| one.1 == relation && one.2 == missing;
            match of_zones.iter_mut().find(same) {
                _ if missing.is_empty() => {}
                Some((_, _, _, more)) => *more += 1,
                None => of_zones.push((zone, relation, missing, 0)),
            }
        }
    }
    for (zone, relation, missing, more) in of_zones {
        let more = match more {
            0 => String::new(),
            more => format!("; also in {}", Count(more, "later zone")),
        };
        warnings.push(format!("{}{more}", warning(zone, relation, &missing)));
    }
}

/// Returns the parameters that a block lacks, each with the value that is used, or an empty text.
fn missing(block: &Block, keys: &[Required]) -> String {
    let missing: Vec<String> = keys
        .iter()
        .filter(|(key, _)| block.params().all(|(known, _)| known != *key))
        .map(|(key, value)| format!("\"{key}\" ({value})"))
        .collect();
    missing.join(", ")
}

fn warning(block: &Block, relation: &str, missing: &str) -> String {
    let Block {
        file, line, kind, ..
    } = block;
    format!("{file}:{line}: {kind} lacks {relation}: {missing}")
}

#[cfg(test)]
mod tests {
    use super::super::load_system;
    use super::*;

    const ZONES: usize = 3;

    fn lines(required: &[Required]) -> String {
        let lines = required
            .iter()
            .map(|(key, value)| format!("{key} = {value},\n"));
        lines.collect()
    }

    /// A system that lacks nothing, with a parameter per line.
    fn complete() -> String {
        let drive: Vec<Required> = DISK_REQUIRED
            .iter()
            .filter(|(key, _)| *key != "Scheduler")
            .copied()
            .collect();
        let (drive, queue) = (lines(&drive), lines(QUEUE_REQUIRED));
        let mechanics = lines(MECHANICS_REQUIRED);
        let zone = lines(ZONE_G1_REQUIRED) + &lines(ZONE_G1_SKEWS);
        let zones: Vec<String> = (0..ZONES)
            .map(|number| {
                format!(
                    "dm_layout_g1_zone {{\n{zone}First cylinder number = {number},
                    Last cylinder number = {number}, Blocks per track = 9 }}"
                )
            })
            .collect();
        let range = lines(LAYOUT_G1_REQUIRED);
        format!(
            "disksim_iodriver V {{ Use queueing in subsystem = 1,
            Scheduler = disksim_ioqueue {{\n{queue} }} }}
            disksim_disk D {{\n{drive}
            Scheduler = disksim_ioqueue {{\n{queue} }},
            Model = dm_disk {{ Number of data surfaces = 1, Number of cylinders = {ZONES},
            Block count = {},
            Layout Model = dm_layout_g1 {{\n{range} LBN-to-PBN mapping scheme = 0,
            Sparing scheme used = 0, Zones = [ {} ] }},
            Mechanical Model = dm_mech_g1 {{\n{mechanics} Seek type = constant,
            Constant seek time = 1, Rotation speed (in rpms) = 5400 }} }} }}",
            ZONES * 9,
            zones.join(",")
        )
    }

    fn load(text: &str) -> crate::System {
        load_system("f", text.as_bytes(), None, &|_| Err(String::new())).unwrap()
    }

    /// Is each parameter of a scheduler, of the mechanics and of a layout reported if it is
    /// missing, with the value that is used? Is that value used?
    #[test]
    fn missing_parameters_of_inner_blocks_are_reported() {
        let before = load(&complete());
        assert_eq!(before.warnings, [""; 0]);
        let also = format!("; also in {} later zones", ZONES - 1);
        for (kind, keys, relation, blocks) in [
            ("disksim_ioqueue", QUEUE_REQUIRED, REQUIRES, 2),
            ("dm_mech_g1", MECHANICS_REQUIRED, REQUIRES, 1),
            ("dm_layout_g1", LAYOUT_G1_REQUIRED, REQUIRES, 1),
            ("dm_layout_g1_zone", ZONE_G1_REQUIRED, REQUIRES, 1),
            ("dm_layout_g1_zone", ZONE_G1_SKEWS, MAY_LACK, 1),
        ] {
            for (key, value) in keys {
                let after = load(&complete().replace(&format!("{key} = {value},\n"), "\n"));
                let also = if kind == "dm_layout_g1_zone" {
                    &also
                } else {
                    ""
                };
                let says = format!(": {kind} lacks {relation}: \"{key}\" ({value}){also}");
                let mut warnings = after.warnings.iter();
                assert!(
                    warnings.all(|one| one.ends_with(&says)),
                    "{:?}",
                    after.warnings
                );
                assert_eq!(after.warnings.len(), blocks, "{key}");
                let mut profile = after.disks[0].profile.clone();
                profile.provenance = before.disks[0].profile.provenance.clone();
                assert_eq!(profile, before.disks[0].profile, "{key}");
                assert_eq!(after.host_scheduler, before.host_scheduler);
            }
        }
    }

    /// Is a misspelt parameter of these blocks reported with the correct spelling?
    #[test]
    fn misspelt_parameters_of_inner_blocks_are_corrected() {
        for (kind, key, misspelt) in [
            ("disksim_ioqueue", "Scheduling policy", "Scheduling polcy"),
            ("dm_mech_g1", "Head switch time", "Head swich time"),
            (
                "dm_layout_g1",
                "Rangesize for sparing",
                "Rangesize of sparing",
            ),
            (
                "dm_layout_g1_zone",
                "Skew for track switch",
                "Skew for trak switch",
            ),
        ] {
            let text = complete().replace(&format!("{key} ="), &format!("{misspelt} ="));
            let system = load(&text);
            let says = format!(
                "\"{misspelt}\" is not a parameter of {kind}; it is ignored; did you mean \"{key}\"?"
            );
            // A misspelt parameter of every block of the kind is reported, at its line.
            let blocks = text.matches(&format!("{kind} {{")).count();
            let reports = system.warnings.iter().filter(|one| one.ends_with(&says));
            assert_eq!(reports.count(), blocks, "{:?}", system.warnings);
        }
    }
}

//! Parameters of a system outside its disks that change nothing here: warnings about those that
//! would change something in DiskSim.

use super::known::{no_parameter, warning_of_unknown};
use super::params::{Block, Document};

/// A parameter of a block outside the disks.
struct SystemParameter {
    /// The kind of the block.
    block: &'static str,
    key: &'static str,
    /// If the parameter is not modelled: the value with which DiskSim behaves like the model, and
    /// the model's behaviour.
    not_modelled: Option<(f64, &'static str)>,
}

/// A parameter that gives no warning: it is applied, or it changes no response times in DiskSim
/// either, except for the order of arbitration on a bus that disks share.
const fn harmless(block: &'static str, key: &'static str) -> SystemParameter {
    SystemParameter {
        block,
        key,
        not_modelled: None,
    }
}

const fn not_modelled(
    block: &'static str,
    key: &'static str,
    neutral: f64,
    instead: &'static str,
) -> SystemParameter {
    SystemParameter {
        block,
        key,
        not_modelled: Some((neutral, instead)),
    }
}

const GLOBAL: &str = "disksim_global";
const BUS: &str = "disksim_bus";
const CONTROLLER: &str = "disksim_ctlr";
const DRIVER: &str = "disksim_iodriver";
const PROCESSES: &str = "disksim_pf";
const TRACES: &str = "disksim_iosim";
const WORKLOAD: &str = "disksim_synthio";
const GENERATOR: &str = "disksim_synthgen";
const ORGANIZATION: &str = "disksim_logorg";
const SYNCHRONISED: &str = "disksim_syncset";

/// All parameters of a generator, which DiskSim requires (`src/modules/synthgen.modspec` in DiskSim
/// 4.0).
pub(super) const GENERATOR_KEYS: &[&str] = &[
    "Storage capacity per device",
    "devices",
    "Blocking factor",
    "Probability of sequential access",
    "Probability of local access",
    "Probability of read access",
    "Probability of time-critical request",
    "Probability of time-limited request",
    "Time-limited think times",
    "General inter-arrival times",
    "Sequential inter-arrival times",
    "Local inter-arrival times",
    "Local distances",
    "Sizes",
];

/// The parameters of these kinds of blocks (`src/modules/*.modspec` in DiskSim 4.0).
const PARAMETERS: &[SystemParameter] = &[
    harmless(GLOBAL, "Init Seed"),
    harmless(GLOBAL, "Real Seed"),
    not_modelled(GLOBAL, "Init Seed with time", 0.0, SAME_SEED),
    not_modelled(GLOBAL, "Real Seed with time", 0.0, SAME_SEED),
    harmless(GLOBAL, "Stat definition file"),
    harmless(GLOBAL, "Output file for trace of I/O requests simulated"),
    harmless(GLOBAL, "Detailed execution trace"),
    not_modelled(GLOBAL, "Statistic warm-up time", 0.0, WARM_UP),
    not_modelled(GLOBAL, "Statistic warm-up IOs", 0.0, WARM_UP),
    harmless(BUS, "type"),
    harmless(BUS, "Arbitration type"),
    not_modelled(BUS, "Arbitration time", 0.0, "arbitration takes no time"),
    harmless(BUS, "Read block transfer time"),
    harmless(BUS, "Write block transfer time"),
    harmless(BUS, "Print stats"),
    not_modelled(CONTROLLER, "type", 1.0, "controllers have no cache"),
    not_modelled(CONTROLLER, "Scale for delays", 0.0, CONTROLLER_TIME),
    not_modelled(
        CONTROLLER,
        "Bulk sector transfer time",
        0.0,
        CONTROLLER_TIME,
    ),
    harmless(CONTROLLER, "Maximum queue length"),
    // Only a controller with a cache reads these; it is reported by its type.
    harmless(CONTROLLER, "Scheduler"),
    harmless(CONTROLLER, "Cache"),
    harmless(CONTROLLER, "Max per-disk pending count"),
    harmless(CONTROLLER, "Print stats"),
    harmless(DRIVER, "type"),
    not_modelled(
        DRIVER,
        "Constant access time",
        0.0,
        "accesses take the time of the disks",
    ),
    harmless(DRIVER, "Scheduler"),
    harmless(DRIVER, "Use queueing in subsystem"),
    harmless(PROCESSES, "Number of processors"),
    not_modelled(
        PROCESSES,
        "Process-Flow Time Scale",
        1.0,
        "the times of processes are not scaled",
    ),
    harmless(WORKLOAD, "Number of I/O requests to generate"),
    harmless(WORKLOAD, "Maximum time of trace generated"),
    harmless(WORKLOAD, "System call/return with each request"),
    // They are read only if there are system calls; otherwise they change nothing.
    harmless(WORKLOAD, "Think time from call to request"),
    harmless(WORKLOAD, "Think time from request to return"),
    harmless(WORKLOAD, "Generators"),
    harmless(TRACES, "I/O Mappings"),
    not_modelled(
        TRACES,
        "I/O Trace Time Scale",
        1.0,
        "the times of traces are not scaled (--speed S divides them by S)",
    ),
    harmless(ORGANIZATION, "Addressing mode"),
    harmless(ORGANIZATION, "Distribution scheme"),
    harmless(ORGANIZATION, "Redundancy scheme"),
    harmless(ORGANIZATION, "Components"),
    harmless(ORGANIZATION, "devices"),
    harmless(ORGANIZATION, "Stripe unit"),
    harmless(ORGANIZATION, "Synch writes for safety"),
    // Organizations that keep copies are refused.
    harmless(ORGANIZATION, "Number of copies"),
    harmless(ORGANIZATION, "Copy choice on read"),
    // At 0.5, DiskSim chooses the update with the fewest reads.
    not_modelled(
        ORGANIZATION,
        RMW_POINT,
        0.5,
        "parity is updated with the fewest reads",
    ),
    harmless(ORGANIZATION, "Parity stripe unit"),
    harmless(ORGANIZATION, "Parity rotation type"),
    harmless(ORGANIZATION, "Time stamp interval"),
    harmless(ORGANIZATION, "Time stamp start time"),
    harmless(ORGANIZATION, "Time stamp stop time"),
    harmless(ORGANIZATION, "Time stamp file name"),
    // All spindles begin at the same angle, in DiskSim too.
    harmless(SYNCHRONISED, "type"),
    harmless(SYNCHRONISED, "devices"),
];

/// The key of the share of an array's disks below which a write reads the old data and parity.
pub(super) const RMW_POINT: &str = "RMW vs. reconstruct";

const WARM_UP: &str = "all requests are counted (--warmup N excludes the first N)";
const SAME_SEED: &str = "the seed does not depend on the time (--seed sets it)";
const CONTROLLER_TIME: &str = "controllers take no time";

/// Adds warnings about the parameters of all blocks outside the disks that have an effect in
/// DiskSim but not here, and about unknown ones. To be called when everything else has been read.
/// Without `is_whole`, only one disk is loaded, and the parameters of the synthetic workload and of
/// organizations are excluded.
pub(super) fn warn_of_ignored(document: &Document, is_whole: bool, warnings: &mut Vec<String>) {
    for block in document.blocks() {
        let known = PARAMETERS.iter().any(|one| one.block == block.kind);
        let is_of_whole = matches!(block.kind.as_str(), WORKLOAD | PROCESSES | ORGANIZATION);
        if known && (is_whole || !is_of_whole) {
            warn_of_block(block, warnings);
        }
    }
}

fn warn_of_block(block: &Block, warnings: &mut Vec<String>) {
    for unused in block.unused() {
        if let Some(warning) = warning_of_unknown(&unused) {
            warnings.push(warning);
            continue;
        }
        let place = format!("{}:{}", unused.file, unused.line);
        let key = &unused.key;
        let of_kind = || PARAMETERS.iter().filter(|one| one.block == unused.block);
        match of_kind().find(|one| one.key == *key) {
            Some(SystemParameter {
                not_modelled: Some((neutral, instead)),
                ..
            }) => {
                if block.number(key) != Some(*neutral) {
                    warnings.push(format!("{place}: \"{key}\" is not modelled: {instead}"));
                }
            }
            Some(_) => {}
            None if unused.block == GENERATOR => {
                warnings.push(no_parameter(&unused, GENERATOR_KEYS.iter().copied()));
            }
            None if of_kind().next().is_some() => {
                warnings.push(no_parameter(&unused, of_kind().map(|one| one.key)));
            }
            None => warnings.push(format!(
                "{place}: \"{key}\" of {} is not modelled",
                unused.block
            )),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn warnings(text: &str) -> Vec<String> {
        let document = Document::parse("f", text.as_bytes(), &|_| Err(String::new())).unwrap();
        let mut warnings = Vec::new();
        warn_of_ignored(&document, true, &mut warnings);
        warnings
    }

    /// Is each parameter that is not modelled reported with its line, unless it has the value at
    /// which it changes nothing?
    #[test]
    fn parameters_with_an_effect_are_reported() {
        for parameter in PARAMETERS {
            let SystemParameter { block, key, .. } = parameter;
            let of = |value: f64| warnings(&format!("{block} B {{\n{key} = {value} }}"));
            match parameter.not_modelled {
                Some((neutral, instead)) => {
                    assert_eq!(of(neutral), [""; 0]);
                    let says = format!("f:2: \"{key}\" is not modelled: {instead}");
                    assert_eq!(of(neutral + 0.5), [says]);
                }
                None => assert_eq!(of(5.0), [""; 0]),
            }
        }
    }

    /// Is an unknown parameter reported, with the known one that is most similar?
    #[test]
    fn unknown_parameters_are_reported() {
        assert_eq!(
            warnings("disksim_bus B { Arbitraton time = 5 }"),
            [
                "f:1: \"Arbitraton time\" is not a parameter of disksim_bus; it is ignored; did you mean \"Arbitration time\"?"
            ]
        );
    }
}

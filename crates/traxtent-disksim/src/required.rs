//! Parameters that DiskSim requires (`src/modules/*.modspec` in DiskSim 4.0), and the values
//! used here if a file omits them.

use super::params::Block;

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

/// Adds a single warning that names the required parameters that a block lacks, if any.
pub(super) fn warn_of_missing(block: &Block, required: &[Required], warnings: &mut Vec<String>) {
    let missing: Vec<String> = required
        .iter()
        .filter(|(key, _)| block.params().all(|(known, _)| known != *key))
        .map(|(key, value)| format!("\"{key}\" ({value})"))
        .collect();
    if !missing.is_empty() {
        warnings.push(format!(
            "{}:{}: {} lacks parameters that DiskSim requires; the values in parentheses are used: {}",
            block.file,
            block.line,
            block.kind,
            missing.join(", ")
        ));
    }
}

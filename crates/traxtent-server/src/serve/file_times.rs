//! The time that the data file of a served drive takes.

use serde::{Deserialize, Serialize};

/// The share of the lateness above which a late run's receipt names the data file as a cause.
const FILE_SHARE: f64 = 0.5;

/// The time that the data file took, in real microseconds.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileTimes {
    /// The reads.
    pub reads: FileOperations,
    /// The writes, including holes and zeros.
    pub writes: FileOperations,
    /// The calls of fdatasync.
    pub syncs: FileOperations,
    /// The share of the lateness of all requests that the file accounts for.
    pub lateness_share: f64,
}

/// The operations of one kind on the data file.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct FileOperations {
    /// Their number.
    pub count: u64,
    /// The sum of their durations.
    pub total_us: f64,
    /// The longest duration.
    pub max_us: f64,
}

impl FileTimes {
    pub(super) fn remark(self) -> Option<String> {
        (self.lateness_share > FILE_SHARE).then(|| {
            let ms = |operations: FileOperations| operations.max_us / 1000.0;
            format!(
                "the data file accounts for {:.0} % of the lateness: its longest read took {:.1} ms, write {:.1} ms, fdatasync {:.1} ms",
                100.0 * self.lateness_share,
                ms(self.reads),
                ms(self.writes),
                ms(self.syncs)
            )
        })
    }
}

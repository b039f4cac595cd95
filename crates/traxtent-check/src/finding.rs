//! Findings, and the list of rules that report them.

use serde::{Deserialize, Serialize};

use crate::cost::WorkCost;
use crate::stack::LayerId;

/// The severity of a finding.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// For information; nothing has to be changed.
    Info,
    /// Something costs time, or a value is wrong or misleading.
    Warning,
    /// Requests regularly cross physical sectors or stripes, or data is at risk or cannot be
    /// reached.
    Fault,
}

impl Severity {
    /// Returns all severities, in ascending order.
    pub fn all() -> [Severity; 3] {
        [Severity::Info, Severity::Warning, Severity::Fault]
    }

    /// Returns the name of the severity on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Severity::Info => "info",
            Severity::Warning => "warning",
            Severity::Fault => "fault",
        }
    }
}

impl std::str::FromStr for Severity {
    type Err = UnknownSeverity;

    fn from_str(text: &str) -> Result<Severity, UnknownSeverity> {
        let mut all = Severity::all().into_iter();
        all.find(|severity| severity.name() == text)
            .ok_or_else(|| UnknownSeverity(text.to_owned()))
    }
}

/// The error for a name that no severity has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown severity {0:?}; use info, warning or fault")]
pub struct UnknownSeverity(String);

/// A problem that a rule has found in a layer.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    /// The rule; its [`Rule::id`] is stable.
    pub rule: Rule,
    /// The severity.
    pub severity: Severity,
    /// The layer that has to be changed.
    pub layer: LayerId,
    /// One sentence that describes the problem, its place and the bound that is violated.
    pub what: String,
    /// The misaligned address, for findings about alignment.
    pub off: Option<Misalignment>,
    /// The share of blocks or extents that is affected, for findings about them.
    pub share: Option<AffectedShare>,
}

impl Finding {
    /// Returns a finding with the rule's usual severity, without an address or a share.
    pub fn new(rule: Rule, layer: LayerId, what: String) -> Finding {
        Finding {
            rule,
            severity: rule.severity(),
            layer,
            what,
            off: None,
            share: None,
        }
    }

    /// Returns the same finding with this severity instead of the rule's usual one.
    #[must_use]
    pub fn with_severity(self, severity: Severity) -> Finding {
        Finding { severity, ..self }
    }

    /// Returns the same finding with a misaligned address.
    #[must_use]
    pub fn with_misalignment(self, off: Misalignment) -> Finding {
        Finding {
            off: Some(off),
            ..self
        }
    }

    /// Returns the same finding with a share of blocks or extents.
    #[must_use]
    pub fn with_share(self, share: AffectedShare) -> Finding {
        Finding {
            share: Some(share),
            ..self
        }
    }
}

/// The part of a set of blocks or extents that is affected.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct AffectedShare {
    /// The number of affected blocks or extents.
    pub crossing: u64,
    /// The total number of blocks or extents.
    pub of: u64,
    /// The mean size of a block or an extent in bytes.
    pub bytes: u64,
    /// Blocks or extents.
    #[serde(skip)]
    pub parts: AffectedParts,
}

/// The parts that a share counts.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum AffectedParts {
    /// Blocks of a file system.
    Blocks,
    /// Blocks of a file system that already excludes others from use.
    BlocksInUse,
    /// Extents of a file.
    Extents,
}

/// A misaligned address, and the grid that it should lie on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Misalignment {
    /// The layer that has the grid: a disk, an array or a logical volume.
    pub grid: LayerId,
    /// The address in that layer, in bytes.
    pub at: u64,
    /// The spacing of the grid in bytes.
    pub every: u64,
    /// The distance of the address from the previous grid line in bytes, less than `every`.
    pub by: u64,
}

/// The commands that fix a finding, with a note.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Fix {
    /// The effect of the commands, including their effect on data, or advice.
    pub note: String,
    /// The commands, in the order in which to run them; empty if there is only advice.
    pub commands: Vec<String>,
}

/// The cost of a finding, by the drive model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct FindingCost {
    /// The profile that was simulated.
    pub profile: String,
    /// Whether the profile is a typical one, because the drive in question is not known.
    pub typical: bool,
    /// The cost for each kind of work.
    pub items: Vec<WorkCost>,
}

macro_rules! rules {
    ($($name:ident $id:literal $severity:ident $summary:literal,)+) => {
        /// The rules, in one list.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[non_exhaustive]
        pub enum Rule {
            $(#[doc = $summary] $name,)+
        }

        impl Rule {
            /// Returns every rule.
            pub fn all() -> &'static [Rule] {
                &[$(Rule::$name,)+]
            }

            /// Returns the rule's name, which does not change between versions.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$name => $id,)+ }
            }

            /// Returns the usual severity of the rule's findings.
            pub fn severity(self) -> Severity {
                match self { $(Rule::$name => Severity::$severity,)+ }
            }

            /// Returns a sentence that describes the problem.
            pub fn summary(self) -> &'static str {
                match self { $(Rule::$name => $summary,)+ }
            }
        }
    };
}

rules! {
    PartitionStart "partition-start" Fault "A partition does not begin at a physical sector of the drive.",
    PartitionEnd "partition-end" Info "A partition does not end with a physical sector of the drive.",
    PartitionChunk "partition-chunk" Fault "A partition does not begin at a chunk of the array below it.",
    PartitionStripe "partition-stripe" Fault "A partition does not begin at a full stripe of the array below it.",
    PartitionErase "partition-erase" Warning "A partition does not begin at an erase block of the drive.",
    PartitionOverlap "partition-overlap" Fault "Two partitions share sectors, or one reaches beyond the drive.",
    TableDamaged "table-damaged" Fault "A partition table contradicts itself: a wrong checksum or length, copies that differ, or a circular chain.",
    TableRemnant "table-remnant" Fault "The first sector protects a GPT that is not there, so the kernel reads no partitions.",
    Remnant "remnant" Warning "A signature of an earlier use of a drive is left beside its present content.",
    TableSectorSize "table-sector-size" Fault "A GPT was written for a sector size other than the drive's.",
    DataStart "data-start" Fault "The data of an md member, a physical volume, a LUKS or a ZFS device does not begin at a physical sector.",
    DataChunk "data-chunk" Fault "The data of a layer does not begin at a chunk of the array below it.",
    DataStripe "data-stripe" Fault "The data of a layer does not begin at a full stripe of the array below it.",
    DataErase "data-erase" Warning "The data of a layer does not begin at an erase block of the drive.",
    ChunkSize "chunk-size" Fault "The chunk of an array, or the extent or chunk of a volume, is not a multiple of the physical sector.",
    LuksSector "luks-sector" Warning "LUKS encrypts in sectors smaller than the physical sector.",
    LuksEnd "luks-end" Fault "The length of a LUKS device is not a multiple of its sector size, so it cannot be opened.",
    FsBlock "fs-block" Fault "A file system's block is smaller than the physical sector.",
    FsStart "fs-start" Fault "A file system does not begin at a physical sector.",
    BeyondEnd "beyond-end" Fault "A layer is longer than the space that it lies in.",
    DriveSize "drive-size" Fault "An image is longer than its drive.",
    ExtStride "ext-stride" Warning "The stride or stripe width of ext2, 3 or 4 does not match the array below.",
    XfsUnit "xfs-unit" Warning "The stripe unit or width of XFS does not match the array below.",
    XfsLogUnit "xfs-log-unit" Warning "The unit of XFS log writes is larger than 256 KiB, or not a multiple of the physical sector.",
    XfsSector "xfs-sector" Warning "The sector of XFS is smaller than the physical sector of the drive.",
    ZfsAshift "zfs-ashift" Fault "The ashift of a ZFS pool sets blocks smaller than the physical sector.",
    SwapPage "swap-page" Fault "The pages of a swap space are smaller than the physical sector.",
    HintOptimal "hint-optimal" Warning "The optimal I/O size that a device reports is impossible.",
    HintMinimum "hint-minimum" Warning "The minimum I/O size that a device reports contradicts its physical sector.",
    HintPhysical "hint-physical" Warning "A drive reports a physical sector size that differs from the one known for its model, or from the measured one; or a loop device cannot report that of the drive below it.",
    HintBridge "hint-bridge" Warning "A USB bridge may translate sectors, so the sizes that it reports may not be the drive's.",
    HintDiscard "hint-discard" Info "The discard granularity that a device reports cannot be its erase block.",
    AlignmentOffset "alignment-offset" Warning "LBN 0 of a drive does not begin a physical sector, or no alignment of a device fits all layers below it.",
    MixedSectors "mixed-sectors" Fault "The drives below an array, a logical volume or a thin pool have sectors of different sizes.",
    ArrayIncomplete "array-incomplete" Info "Members of an array are missing, so they are not checked.",
    OlderMetadata "older-metadata" Info "The metadata of a member of an array or a volume group is older than that of the others, or the member is a second copy.",
    TrackCrossing "track-crossing" Info "File-system blocks or extents of files cross track boundaries.",
    Shingled "shingled" Info "The drive is shingled: it later rewrites data that was not written sequentially.",
    SolidState "solid-state" Info "The drive has no tracks; only its erase blocks matter.",
    UnknownContent "unknown-content" Info "The content is not known, so its alignment is not checked.",
    Damaged "damaged" Fault "A header contradicts the format that it names.",
    Unreadable "unreadable" Fault "A layer cannot be read.",
}

impl Rule {
    /// Returns whether a finding of the rule means that writes may destroy data.
    pub fn is_damage(self) -> bool {
        matches!(
            self,
            Rule::PartitionOverlap | Rule::TableSectorSize | Rule::BeyondEnd | Rule::Damaged
        )
    }
}

impl Serialize for Rule {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(self.id())
    }
}

impl std::str::FromStr for Rule {
    type Err = UnknownRule;

    fn from_str(text: &str) -> Result<Rule, UnknownRule> {
        let mut all = Rule::all().iter().copied();
        all.find(|rule| rule.id() == text)
            .ok_or_else(|| UnknownRule(text.to_owned()))
    }
}

/// The error for a name that no rule has.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("unknown finding {0:?}; docs/reference/check.md lists all findings")]
pub struct UnknownRule(String);

//! What is wrong: findings, and the list of rules that make them.

use serde::{Deserialize, Serialize};

use crate::price::Cost;
use crate::stack::LayerId;

/// How bad a finding is.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Severity {
    /// Worth knowing; nothing is wrong.
    Info,
    /// It costs something, or a hint is wrong, or somebody may be misled.
    Warning,
    /// Requests cross physical sectors or stripes all the time, or data cannot be reached.
    Fault,
}

impl Severity {
    /// From harmless to bad.
    pub fn all() -> [Severity; 3] {
        [Severity::Info, Severity::Warning, Severity::Fault]
    }

    /// Its name on the command line.
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

/// There is no severity of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0:?} is no severity: info, warning or fault")]
pub struct UnknownSeverity(String);

/// Something that a rule has to say of a layer.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Finding {
    /// Which rule; its [`Rule::id`] is stable.
    pub rule: Rule,
    /// How bad.
    pub severity: Severity,
    /// The layer that is to be changed.
    pub layer: LayerId,
    /// What is wrong, where, against which bound: one sentence.
    pub what: String,
    /// The address that is off its grid, where it is that kind of finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub off: Option<Off>,
    /// What to type.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub mend: Option<Mend>,
    /// How many of its blocks, or of a file's extents, where it is that kind of finding.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub share: Option<Share>,
    /// What it costs.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub price: Option<Price>,
    /// Why that is not told.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub unpriced: Option<String>,
}

/// So many of the pieces of something.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Serialize)]
pub struct Share {
    /// How many it holds for.
    pub crossing: u64,
    /// Of how many.
    pub of: u64,
    /// Bytes of one, in the mean.
    pub bytes: u64,
}

/// An address, and the grid that it is off.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
pub struct Off {
    /// The layer whose grid it is: a disk, an array.
    pub grid: LayerId,
    /// The address there, in bytes.
    pub at: u64,
    /// Bytes from one line of the grid to the next.
    pub every: u64,
    /// How many bytes the address is behind the line before it; 0 to `every`.
    pub by: u64,
}

/// Commands that mend a finding.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Mend {
    /// What they do, and what they do to data.
    pub note: String,
    /// In the order of typing.
    pub commands: Vec<String>,
}

/// What a finding costs, by the drive model.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Price {
    /// The profile it was simulated on, and whether that is the drive at hand.
    pub profile: String,
    /// Whether the profile is a typical one, because the drive at hand is not known.
    pub typical: bool,
    /// What each kind of work costs.
    pub items: Vec<Cost>,
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
            /// Every rule.
            pub fn all() -> &'static [Rule] {
                &[$(Rule::$name,)+]
            }

            /// Its name, which does not change from version to version.
            pub fn id(self) -> &'static str {
                match self { $(Rule::$name => $id,)+ }
            }

            /// How bad its findings usually are.
            pub fn severity(self) -> Severity {
                match self { $(Rule::$name => Severity::$severity,)+ }
            }

            /// What it finds, in a sentence.
            pub fn summary(self) -> &'static str {
                match self { $(Rule::$name => $summary,)+ }
            }
        }
    };
}

rules! {
    PartitionStart "partition-start" Fault "A partition begins off the physical sectors of the drive.",
    PartitionEnd "partition-end" Info "A partition ends off the physical sectors of the drive.",
    PartitionChunk "partition-chunk" Fault "A partition begins off the chunks of the array below it.",
    PartitionStripe "partition-stripe" Fault "A partition begins off the full stripes of the array below it.",
    PartitionErase "partition-erase" Warning "A partition begins off the erase blocks of the drive.",
    PartitionOverlap "partition-overlap" Fault "Two partitions share sectors, or one reaches beyond the drive.",
    TableDamaged "table-damaged" Fault "A partition table contradicts itself: a checksum, a length, a chain that goes round in circles.",
    TableSectorSize "table-sector-size" Fault "A GPT was written for another sector size than the drive has.",
    DataStart "data-start" Fault "The data of an md member, a physical volume or a LUKS device begin off the physical sectors.",
    DataChunk "data-chunk" Fault "The data of a layer begin off the chunks of the array below it.",
    DataStripe "data-stripe" Fault "The data of a layer begin off the full stripes of the array below it.",
    DataErase "data-erase" Warning "The data of a layer begin off the erase blocks of the drive.",
    ChunkSize "chunk-size" Fault "The chunk of an array, or the extent or chunk of a volume, is no multiple of the physical sector.",
    LuksSector "luks-sector" Warning "LUKS encrypts sectors smaller than the physical sector.",
    LuksEnd "luks-end" Fault "A LUKS device does not end on a sector of its own size, so it cannot be opened.",
    FsBlock "fs-block" Fault "A file system's block is smaller than the physical sector.",
    FsStart "fs-start" Fault "A file system begins off the physical sectors.",
    BeyondEnd "beyond-end" Fault "A layer says that it is longer than where it lies.",
    DriveSize "drive-size" Fault "An image is longer than the drive that it is for.",
    ExtStride "ext-stride" Warning "The stride or stripe width of ext2, 3 or 4 does not match the array below.",
    XfsUnit "xfs-unit" Warning "The stripe unit or width of XFS does not match the array below.",
    XfsLogUnit "xfs-log-unit" Warning "The log of XFS is written in units that do not suit the drive or array below.",
    XfsSector "xfs-sector" Warning "The sector of XFS is smaller than the physical sector of the drive.",
    ZfsAshift "zfs-ashift" Fault "The ashift of a ZFS pool is below the physical sector.",
    SwapPage "swap-page" Fault "Swap space is used in pages that are smaller than the physical sector.",
    HintOptimal "hint-optimal" Warning "The optimal I/O size that a device states cannot be true.",
    HintMinimum "hint-minimum" Warning "The minimum I/O size that a device states contradicts its physical sector.",
    HintPhysical "hint-physical" Warning "A drive states physical sectors of another size than its model is known for, or its times tell.",
    HintBridge "hint-bridge" Warning "A USB bridge may translate sectors, so what it states need not be the drive's.",
    HintDiscard "hint-discard" Info "The discard granularity that a device states cannot be its erase block.",
    AlignmentOffset "alignment-offset" Warning "LBN 0 of the drive does not begin a physical sector.",
    MixedSectors "mixed-sectors" Fault "The members of an array or volume group have sectors of different sizes.",
    TrackCrossing "track-crossing" Info "File-system blocks or extents of files cross track boundaries.",
    Shingled "shingled" Info "The drive is shingled: writes that are not sequential are rewritten later.",
    SolidState "solid-state" Info "The drive has no tracks; erase blocks are what counts.",
    UnknownContent "unknown-content" Info "What lies here is not known, so its alignment is not either.",
    Damaged "damaged" Fault "A header says what it is, and contradicts its format.",
    Unreadable "unreadable" Fault "A layer cannot be read.",
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

/// There is no rule of that name.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("there is no finding called {0:?}; docs/check.md lists them")]
pub struct UnknownRule(String);

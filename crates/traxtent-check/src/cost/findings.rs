//! The cost of each finding, or the reason why it has none.

use std::collections::BTreeMap;

use traxtent_model::profile::{Profile, ProfileError};

use super::array::{self, ArrayShape};
use super::{block_costs, crossing, sector_costs, typical};
use crate::finding::{AffectedShare, Finding, FindingCost, Misalignment, Rule};
use crate::layers::{Disk, RaidLevel};
use crate::rules::physical_below;
use crate::stack::{Kind, LayerId, Stack};

/// The simulation that determines a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trial {
    /// Blocks that begin this many logical sectors after the start of a physical sector, on a drive
    /// with these sector sizes.
    OffSector(u32, SectorSizes),
    /// Blocks of this many bytes, on a drive with these sector sizes.
    Blocks(u64, SectorSizes),
    /// Blocks that begin this many bytes after the start of a stripe.
    OffStripes(u64, ArrayShape),
    /// A share of blocks that span two tracks.
    Across(AffectedShare),
}

/// The reasons why a finding has no cost.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum NoCostError {
    /// A partition ends within a physical sector.
    #[error("only writes to the last sectors are affected")]
    LastSectors,
    /// Data is at risk or out of reach.
    #[error("the problem affects data, not time")]
    DataNotTime,
    /// The layer could not be read.
    #[error("the content is not examined")]
    NotExamined,
    /// The layer was not recognized.
    #[error("the content is not known")]
    UnknownContent,
    /// The model has no flash memory.
    #[error("flash is not modelled")]
    Flash,
    /// The model has no shingled tracks.
    #[error("shingled recording is not modelled")]
    Shingled,
    /// Some chunks or extents of an array or a volume are misaligned.
    #[error(
        "only some chunks begin within a physical sector, and it is not known which of them are used"
    )]
    SomeChunks,
    /// LUKS encrypts small sectors.
    #[error("the drive receives the file system's blocks; small sectors cost only processor time")]
    ProcessorTime,
    /// The file system has wrong stripe parameters.
    #[error("the cost depends on the file system's placement of files, which is not modelled")]
    FilePlacement,
    /// The log unit or the sector size of XFS is unsuitable.
    #[error("the cost depends on how often the workload writes the log")]
    LogWrites,
    /// A device reports a wrong or misleading value.
    #[error("a hint itself costs nothing; layers that follow it have findings of their own")]
    Hint,
    /// The members of an array have sectors of different sizes.
    #[error("the cost depends on the layers above the members")]
    MixedSectors,
    /// No simulation fits the finding.
    #[error("the model does not cover this case")]
    NotCovered,
    /// The offset from a physical sector has more than 32 bits.
    #[error("the offset is too large for the model")]
    LargeOffset,
    /// The RAID level is not modelled.
    #[error("{} is not modelled", .0.name())]
    Level(RaidLevel),
    /// The drive is an array, and its chunk or full stripe is not stated.
    #[error(
        "the number of drives behind the controller is not known; specify --chunk and --stripe"
    )]
    DrivesUnknown,
    /// The array's chunk and full stripe are not known, or contradict each other.
    #[error("the number of chunks in a stripe is not known")]
    ChunksUnknown,
    /// The array does not fit the model.
    #[error(
        "its chunks or the offset are not whole sectors of the model, or it has too many members"
    )]
    ArrayShape,
    /// Blocks or extents do not fit the model.
    #[error(
        "a block or extent is too short for a whole physical sector on each side of a boundary, or too long for one request"
    )]
    ShortBlock,
    /// The profile's sector sizes differ from those of the drive in question.
    #[error(
        "{profile} has sectors of {}/{} bytes, but this drive has {}/{}",
        own.logical_bytes, own.physical_bytes, drive.logical_bytes, drive.physical_bytes
    )]
    OtherSectors {
        /// The profile that would be simulated.
        profile: String,
        /// Its sector sizes.
        own: SectorSizes,
        /// The sector sizes of the drive in question.
        drive: SectorSizes,
    },
    /// The profile cannot be simulated.
    #[error("{profile}: {error}")]
    Profile {
        /// The profile.
        profile: String,
        /// The reason.
        error: ProfileError,
    },
}

/// The logical and the physical sector size of a drive in bytes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct SectorSizes {
    /// The size of a logical sector.
    pub logical_bytes: u64,
    /// The size of a physical sector.
    pub physical_bytes: u64,
}

/// A cost, or the reason why there is none.
pub type CostResult = Result<FindingCost, NoCostError>;

/// The costs of findings on one drive. Each simulation runs once.
#[derive(Debug)]
pub struct FindingCosts<'a> {
    profile: Option<&'a Profile>,
    known: BTreeMap<Trial, CostResult>,
}

impl<'a> FindingCosts<'a> {
    /// Uses the profile of the drive in question if it is known, otherwise a [`typical`] one.
    pub fn for_profile(profile: Option<&'a Profile>) -> FindingCosts<'a> {
        FindingCosts {
            profile,
            known: BTreeMap::new(),
        }
    }

    /// Returns the cost of a finding, or the reason why the model gives none.
    pub fn cost_of(&mut self, finding: &Finding, stack: &Stack) -> CostResult {
        let trial = trial(finding, stack)?;
        let profile = self.profile;
        let known = self.known.entry(trial);
        known.or_insert_with(|| simulate(profile, trial)).clone()
    }
}

/// Returns the simulation for a finding.
fn trial(finding: &Finding, stack: &Stack) -> Result<Trial, NoCostError> {
    if let Some(why) = reason_without_cost(finding.rule) {
        return Err(why);
    }
    if let Some(share) = finding.share {
        return Ok(Trial::Across(share));
    }
    if let Some(off) = finding.off {
        return off_grid(off, stack);
    }
    let kind = &stack.layer(finding.layer).kind;
    let block = match (finding.rule, kind) {
        (Rule::FsBlock, Kind::Ext(ext)) => Some(ext.block_bytes),
        (Rule::FsBlock, Kind::Xfs(xfs)) => Some(xfs.block_bytes),
        (Rule::FsBlock, Kind::Btrfs(btrfs)) => Some(btrfs.sector_bytes),
        (Rule::SwapPage, Kind::Swap(swap)) => Some(swap.page_bytes),
        (Rule::ZfsAshift, Kind::Zfs(zfs)) => zfs.ashift.map(|ashift| 1 << ashift),
        _ => None,
    };
    let disk = || match &stack.layer(physical_below(stack, finding.layer)?.0).kind {
        Kind::Disk(disk) => Some(disk),
        _ => None,
    };
    match (block, disk()) {
        (Some(block), Some(disk)) => Ok(Trial::Blocks(block, sectors(disk)?)),
        _ => Err(NoCostError::NotCovered),
    }
}

/// Returns the reason why findings of a rule never have a cost.
fn reason_without_cost(rule: Rule) -> Option<NoCostError> {
    Some(match rule {
        Rule::PartitionEnd => NoCostError::LastSectors,
        Rule::LuksEnd
        | Rule::PartitionOverlap
        | Rule::TableDamaged
        | Rule::TableRemnant
        | Rule::Remnant
        | Rule::TableSectorSize
        | Rule::BeyondEnd
        | Rule::DriveSize
        | Rule::Damaged => NoCostError::DataNotTime,
        Rule::Unreadable => NoCostError::NotExamined,
        Rule::UnknownContent => NoCostError::UnknownContent,
        Rule::PartitionErase | Rule::DataErase | Rule::SolidState => NoCostError::Flash,
        Rule::Shingled => NoCostError::Shingled,
        Rule::ChunkSize => NoCostError::SomeChunks,
        Rule::LuksSector => NoCostError::ProcessorTime,
        Rule::ExtStride | Rule::XfsUnit => NoCostError::FilePlacement,
        Rule::XfsLogUnit | Rule::XfsSector => NoCostError::LogWrites,
        Rule::HintOptimal
        | Rule::HintMinimum
        | Rule::HintPhysical
        | Rule::HintBridge
        | Rule::HintDiscard
        | Rule::AlignmentOffset => NoCostError::Hint,
        Rule::MixedSectors => NoCostError::MixedSectors,
        _ => return None,
    })
}

/// Returns the sector sizes of a drive, or an error if it is flash.
fn sectors(disk: &Disk) -> Result<SectorSizes, NoCostError> {
    if disk.medium.is_flash() {
        return Err(NoCostError::Flash);
    }
    Ok(SectorSizes {
        logical_bytes: disk.logical_bytes,
        physical_bytes: disk.physical_bytes,
    })
}

fn off_grid(off: Misalignment, stack: &Stack) -> Result<Trial, NoCostError> {
    if let Kind::Disk(disk) = &stack.layer(off.grid).kind {
        let sectors = sectors(disk)?;
        if off.every == disk.physical_bytes {
            let offset = u32::try_from(off.by / disk.logical_bytes);
            let offset = offset.map_err(|_| NoCostError::LargeOffset)?;
            return Ok(Trial::OffSector(offset, sectors));
        }
    }
    shape(off.grid, stack).map(|shape| Trial::OffStripes(off.by, shape))
}

/// Returns the distribution of data over an array's members. An array behind a controller is
/// assumed to be RAID 5.
fn shape(array: LayerId, stack: &Stack) -> Result<ArrayShape, NoCostError> {
    let (chunk_bytes, stripe_bytes, parity, copies) = match &stack.layer(array).kind {
        Kind::Array(array) => {
            let (parity, copies) = match array.level {
                RaidLevel::Raid4 | RaidLevel::Raid5 => (1, 1),
                RaidLevel::Raid6 => (2, 1),
                RaidLevel::Raid10 => (0, 2),
                RaidLevel::Raid0 => (0, 1),
                level => return Err(NoCostError::Level(level)),
            };
            (array.chunk_bytes, array.stripe_bytes, parity, copies)
        }
        Kind::LogicalVolume(volume) => {
            let is = |name: &str| volume.segment.starts_with(name);
            let (parity, copies) = if is("raid4") || is("raid5") {
                (1, 1)
            } else if is("raid6") {
                (2, 1)
            } else if is("raid10") {
                (0, 2)
            } else {
                (0, 1)
            };
            (volume.chunk_bytes, volume.stripe_bytes, parity, copies)
        }
        Kind::Disk(disk) => match (disk.chunk_bytes, disk.stripe_bytes) {
            (Some(chunk), Some(stripe)) => (chunk, stripe, 1, 1),
            _ => return Err(NoCostError::DrivesUnknown),
        },
        _ => return Err(NoCostError::NotCovered),
    };
    let data = stripe_bytes.checked_div(chunk_bytes).unwrap_or(0);
    if data == 0 {
        return Err(NoCostError::ChunksUnknown);
    }
    Ok(ArrayShape {
        data,
        parity,
        copies,
        chunk_bytes,
    })
}

fn simulate(profile: Option<&Profile>, trial: Trial) -> CostResult {
    let default = typical();
    let on = profile.unwrap_or(&default);
    let own = SectorSizes {
        logical_bytes: u64::from(on.sector.logical_bytes),
        physical_bytes: u64::from(on.sector.physical_bytes),
    };
    let check_sectors = |drive| {
        if drive == own {
            return Ok(());
        }
        let profile = on.name.clone();
        Err(NoCostError::OtherSectors {
            profile,
            own,
            drive,
        })
    };
    let failed = |error| NoCostError::Profile {
        profile: on.name.clone(),
        error,
    };
    let items = match trial {
        Trial::OffSector(offset, sectors) => {
            check_sectors(sectors)?;
            sector_costs(on, offset).map_err(failed)?
        }
        Trial::Blocks(block, sectors) => {
            check_sectors(sectors)?;
            block_costs(on, block).map_err(failed)?
        }
        Trial::OffStripes(offset, shape) => array::array_costs(on, shape, offset)
            .map_err(failed)?
            .ok_or(NoCostError::ArrayShape)?,
        Trial::Across(share) => crossing::crossing_costs(on, share)
            .map_err(failed)?
            .ok_or(NoCostError::ShortBlock)?,
    };
    Ok(FindingCost {
        profile: on.name.clone(),
        typical: profile.is_none(),
        items,
    })
}

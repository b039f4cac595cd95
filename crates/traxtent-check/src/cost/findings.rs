//! The cost of each finding, and the reasons why others have none.

use std::collections::BTreeMap;

use traxtent_model::profile::{Profile, ProfileError};

use super::array::{self, ArrayShape};
use super::{WorkCost, block_costs, crossing, sector_costs, typical};
use crate::finding::{AffectedShare, Finding, FindingCost, Misalignment, Rule};
use crate::layers::{Disk, RaidLevel};
use crate::rules::physical_below;
use crate::stack::{Kind, LayerId, Stack};

/// The simulation that determines a cost.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Trial {
    /// Blocks that begin the given number of logical sectors after a physical one, on a drive with
    /// these logical and physical sector sizes.
    OffSector(u32, (u64, u64)),
    /// Blocks of the given number of bytes on such a drive.
    Blocks(u64, (u64, u64)),
    /// Blocks that begin the given number of bytes after a stripe.
    OffStripes(u64, ArrayShape),
    /// A share of blocks that span two tracks.
    Across(AffectedShare),
}

/// A cost, or the reason why there is none.
pub(crate) type CostResult = Result<FindingCost, String>;

/// The costs of findings on one drive. Each simulation runs once.
#[derive(Debug)]
pub struct FindingCosts<'a> {
    profile: Option<&'a Profile>,
    known: BTreeMap<Trial, CostResult>,
}

impl<'a> FindingCosts<'a> {
    /// Simulates on the drive in question if its profile is known, else on a [`typical`] one.
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
fn trial(finding: &Finding, stack: &Stack) -> Result<Trial, String> {
    if let Some(why) = reason_without_cost(finding.rule) {
        return Err(why.to_owned());
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
        _ => Err("the model does not cover this case".to_owned()),
    }
}

/// Returns the reason why findings of a rule never have a cost.
fn reason_without_cost(rule: Rule) -> Option<&'static str> {
    Some(match rule {
        Rule::PartitionEnd => "only writes to the last sectors are affected",
        Rule::LuksEnd
        | Rule::PartitionOverlap
        | Rule::TableDamaged
        | Rule::TableSectorSize
        | Rule::BeyondEnd
        | Rule::DriveSize
        | Rule::Damaged
        | Rule::Unreadable => "the problem affects data, not time",
        Rule::UnknownContent => "the content is not known",
        Rule::PartitionErase | Rule::DataErase | Rule::SolidState => "flash is not modelled",
        Rule::Shingled => "shingled recording is not modelled",
        Rule::ChunkSize => {
            "only some chunks begin within a physical sector, and it is not known which of them are used"
        }
        Rule::LuksSector => {
            "the drive receives the file system's blocks; small sectors cost only processor time"
        }
        Rule::ExtStride | Rule::XfsUnit => {
            "the cost depends on the file system's placement of files, which is not modelled"
        }
        Rule::XfsLogUnit | Rule::XfsSector => {
            "the cost depends on how often the workload writes the log"
        }
        Rule::HintOptimal
        | Rule::HintMinimum
        | Rule::HintPhysical
        | Rule::HintBridge
        | Rule::HintDiscard
        | Rule::AlignmentOffset => {
            "a hint itself costs nothing; layers that follow it have findings of their own"
        }
        Rule::MixedSectors => "the cost depends on the layers above the members",
        _ => return None,
    })
}

/// Returns the logical and physical sector sizes of a rotating disk.
fn sectors(disk: &Disk) -> Result<(u64, u64), String> {
    if disk.medium.is_flash() {
        return Err("flash is not modelled".to_owned());
    }
    Ok((disk.logical_bytes, disk.physical_bytes))
}

fn off_grid(off: Misalignment, stack: &Stack) -> Result<Trial, String> {
    if let Kind::Disk(disk) = &stack.layer(off.grid).kind {
        let sectors = sectors(disk)?;
        if off.every == disk.physical_bytes {
            let behind = u32::try_from(off.by / disk.logical_bytes);
            let behind = behind.map_err(|_| "the offset is too large for the model".to_owned())?;
            return Ok(Trial::OffSector(behind, sectors));
        }
    }
    shape(off.grid, stack).map(|shape| Trial::OffStripes(off.by, shape))
}

/// Returns the distribution of data over an array's members. An array behind a controller is
/// assumed to be RAID 5.
fn shape(array: LayerId, stack: &Stack) -> Result<ArrayShape, String> {
    let (chunk_bytes, stripe_bytes, parity, copies) = match &stack.layer(array).kind {
        Kind::Array(array) => {
            let (parity, copies) = match array.level {
                RaidLevel::Raid4 | RaidLevel::Raid5 => (1, 1),
                RaidLevel::Raid6 => (2, 1),
                RaidLevel::Raid10 => (0, 2),
                RaidLevel::Raid0 => (0, 1),
                level => return Err(format!("{} is not modelled", level.name())),
            };
            (array.chunk_bytes, array.stripe_bytes, parity, copies)
        }
        Kind::LogicalVolume(volume) => {
            let is = |name: &str| volume.segment.starts_with(name);
            let (parity, copies) = match () {
                () if is("raid4") || is("raid5") => (1, 1),
                () if is("raid6") => (2, 1),
                () if is("raid10") => (0, 2),
                () => (0, 1),
            };
            (volume.chunk_bytes, volume.stripe_bytes, parity, copies)
        }
        Kind::Disk(disk) => match (disk.chunk_bytes, disk.stripe_bytes) {
            (Some(chunk), Some(stripe)) => (chunk, stripe, 1, 1),
            _ => {
                return Err(
                    "the number of drives behind the controller is not known; state --chunk and --stripe"
                        .to_owned(),
                );
            }
        },
        _ => return Err("the model does not cover this case".to_owned()),
    };
    let data = stripe_bytes.checked_div(chunk_bytes).unwrap_or(0);
    if data == 0 {
        return Err("the number of chunks in a stripe is not known".to_owned());
    }
    Ok(ArrayShape {
        data,
        parity,
        copies,
        chunk_bytes,
    })
}

fn simulate(profile: Option<&Profile>, trial: Trial) -> CostResult {
    let usual = typical();
    let on = profile.unwrap_or(&usual);
    let own = (
        u64::from(on.sector.logical_bytes),
        u64::from(on.sector.physical_bytes),
    );
    let same = |(logical, physical)| match (logical, physical) == own {
        true => Ok(()),
        false => Err(format!(
            "{} has sectors of {}/{} bytes, but this drive has {logical}/{physical}",
            on.name, own.0, own.1
        )),
    };
    let failed = |error: ProfileError| format!("{}: {error}", on.name);
    let or = |items: Result<Option<Vec<WorkCost>>, ProfileError>, why: &str| {
        items.map_err(failed)?.ok_or_else(|| why.to_owned())
    };
    let items = match trial {
        Trial::OffSector(behind, sectors) => {
            same(sectors)?;
            sector_costs(on, behind).map_err(failed)?
        }
        Trial::Blocks(block, sectors) => {
            same(sectors)?;
            block_costs(on, block).map_err(failed)?
        }
        Trial::OffStripes(behind, shape) => or(
            array::array_costs(on, shape, behind),
            "its chunks are not whole sectors of the model, or it has too many members",
        )?,
        Trial::Across(share) => or(
            crossing::crossing_costs(on, share),
            "a block or extent is too short for a whole physical sector on each side of a boundary",
        )?,
    };
    Ok(FindingCost {
        profile: on.name.clone(),
        typical: profile.is_none(),
        items,
    })
}

//! Making, finding and opening volumes with replicas.

use std::ops::Range;
use std::sync::Arc;

use uuid::Uuid;

use super::superblock::{
    Attachment, ReplicatedSuperblock, SUPERBLOCK_BYTES, decode_survey, encode_survey,
};
use super::{CopiesError, DEVICE, MemberClock, ReplicatedVolume};
use crate::superblock::SuperblockError;
use crate::{MemberIo, Op};
use traxtent_layout::tpl::{
    Config, DeviceStep, HeadTracker, PartitionBounds, Survey, Tpl, TplError,
};
use traxtent_map::{MapFile, TrackMap};
use traxtent_units::{Lbn, Sectors};

/// The parameters of a new volume with replicas.
#[derive(Clone, Debug)]
pub struct NewVolume {
    /// The volume's unique ID.
    pub volume: Uuid,
    /// The ID that distinguishes the layout from others that were on the device.
    pub layout: u64,
    /// The number of sectors on the device.
    pub sectors: Sectors,
    /// The size of a sector in bytes.
    pub sector_bytes: u32,
    /// The size of a page of the table in bytes. The device must write a page atomically.
    pub page_bytes: u32,
    /// The size of a block in bytes.
    pub block_bytes: u32,
    /// The smallest and largest number of replicas.
    pub bounds: PartitionBounds,
    /// The number of regions of the device, which are filled one after another.
    pub regions: u16,
    /// The device's track map.
    pub map: MapFile,
    /// The angles at which the tracks begin, and the positioning times.
    pub survey: Option<Survey>,
}

/// The data to be written for a new volume.
#[derive(Clone, Debug)]
pub struct PreparedVolume {
    /// The superblock.
    pub superblock: ReplicatedSuperblock,
    /// The empty layout.
    pub layout: Tpl,
    steps: Vec<DeviceStep>,
    attachments: Vec<u8>,
}

impl NewVolume {
    /// Prepares the data to be written.
    ///
    /// # Errors
    /// Returns an error if a value is out of bounds, if the track map or the survey is too large,
    /// or if the device is too small.
    pub fn make(&self) -> Result<PreparedVolume, CopiesError> {
        let mut attachments = self.map.to_text().into_bytes();
        let too_large = CopiesError::Device("store a track map or survey of 4 GiB or more");
        let map = Attachment::of(&attachments).ok_or(too_large.clone())?;
        let survey = self.survey.as_ref().map(encode_survey).unwrap_or_default();
        let superblock = ReplicatedSuperblock {
            volume: self.volume,
            sector_bytes: self.sector_bytes,
            sectors: self.sectors,
            layout: self.layout,
            map,
            survey: Attachment::of(&survey).ok_or(too_large)?,
        };
        attachments.extend(survey);
        let bytes = superblock.attachments().0 * u64::from(self.sector_bytes);
        attachments.resize(bytes as usize, 0);
        let invalid = |name, value: u32, expected| {
            CopiesError::from(TplError::InvalidValue {
                name,
                value: value.into(),
                expected,
            })
        };
        if !self.block_bytes.is_multiple_of(self.sector_bytes) {
            let expected = "a whole number of sectors";
            return Err(invalid(
                "the size of a block in bytes",
                self.block_bytes,
                expected,
            ));
        }
        let config = Config {
            id: self.layout,
            sector_bytes: self.sector_bytes,
            page_sectors: self.page_bytes.div_ceil(self.sector_bytes),
            block_sectors: self.block_bytes / self.sector_bytes,
            bounds: self.bounds,
            regions: self.regions,
        };
        let map = Arc::new(self.map.tracks.clone());
        let range = range(&superblock, &map);
        let (layout, steps) = Tpl::format(map, range, &config)?;
        Ok(PreparedVolume {
            superblock,
            layout,
            steps,
            attachments,
        })
    }
}

impl PreparedVolume {
    /// Writes the volume. The first two writes erase any earlier superblocks at the positions of
    /// the new ones, which are written last.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    pub async fn write<M: MemberIo>(&self, members: &M) -> Result<(), CopiesError> {
        let block = self.superblock.encode_sectors();
        let zeros = vec![0; block.len()];
        let places = self.superblock.places();
        for (at, _) in places {
            one(members, Op::write(DEVICE, at, &zeros)).await?;
        }
        one(members, Op::flush(DEVICE)).await?;
        for step in &self.steps {
            match step {
                DeviceStep::Table { lbn, bytes } => {
                    one(members, Op::write(DEVICE, *lbn, bytes)).await?;
                }
                DeviceStep::Flush => one(members, Op::flush(DEVICE)).await?,
                DeviceStep::Zeros { .. } | DeviceStep::Copy { .. } => {
                    unreachable!("an empty layout has no data")
                }
            }
        }
        for (_, at) in places {
            one(members, Op::write(DEVICE, at, &self.attachments)).await?;
        }
        one(members, Op::flush(DEVICE)).await?;
        for (at, _) in places {
            one(members, Op::write(DEVICE, at, &block)).await?;
            one(members, Op::flush(DEVICE)).await?;
        }
        Ok(())
    }
}

/// A volume that was found. Nothing has been written yet.
#[derive(Clone, Debug)]
pub struct FoundVolume {
    /// The volume's superblock.
    pub superblock: ReplicatedSuperblock,
    /// The device's track map.
    pub map: Arc<TrackMap>,
    /// The survey, if there is one.
    pub survey: Option<Survey>,
    /// The volume's layout.
    pub layout: Tpl,
    attachments: Vec<u8>,
    /// The first LBN of each superblock that is damaged, or whose attachments are, with that of its
    /// attachments.
    damaged: Vec<(Lbn, Lbn)>,
    /// The steps that rewrite copies of the table that are out of date or damaged.
    repairs: Vec<DeviceStep>,
}

impl FoundVolume {
    /// Returns the number of steps that repair the table before the volume is used.
    pub fn repairs(&self) -> usize {
        self.repairs.len()
    }

    /// Returns whether both superblocks are intact, with the track maps and surveys beside them.
    pub fn has_both_superblocks(&self) -> bool {
        self.damaged.is_empty()
    }

    /// Rewrites a superblock that is damaged, or whose track map or survey is, from the other one.
    ///
    /// # Errors
    /// Returns an error if the device fails. The volume can be used nevertheless.
    pub async fn repair_superblocks<M: MemberIo>(&self, members: &M) -> Result<(), CopiesError> {
        for (at, attachments_at) in &self.damaged {
            one(
                members,
                Op::write(DEVICE, *attachments_at, &self.attachments),
            )
            .await?;
            one(members, Op::flush(DEVICE)).await?;
            let superblock = self.superblock.encode_sectors();
            one(members, Op::write(DEVICE, *at, &superblock)).await?;
            one(members, Op::flush(DEVICE)).await?;
        }
        Ok(())
    }
}

/// Finds the superblock of a volume on a device.
///
/// # Errors
/// Returns an error if neither position has a usable superblock. The error is that of the first
/// position, unless it has no superblock. Also returns an error if the superblock states another
/// number of sectors, or another sector size.
pub async fn find_superblock<M: MemberIo>(
    members: &M,
    sectors: Sectors,
    sector_bytes: u32,
) -> Result<ReplicatedSuperblock, CopiesError> {
    let own = ReplicatedSuperblock::superblock_sectors(sector_bytes.max(1));
    let mut first = None;
    let last = sectors.0.checked_sub(own.0).map(Lbn);
    // A device smaller than a superblock has none.
    for at in last.map(|last| [Lbn(0), last]).into_iter().flatten() {
        let mut bytes = members.buffer(SUPERBLOCK_BYTES.max(sector_bytes as usize));
        let read = one(members, Op::read(DEVICE, at, &mut bytes)).await;
        let found = match read {
            Ok(()) => ReplicatedSuperblock::decode(&bytes),
            Err(_) => Err(SuperblockError::Unreadable),
        };
        match found {
            Ok(found) if (found.sectors, found.sector_bytes) != (sectors, sector_bytes) => {
                return Err(CopiesError::Size {
                    found: sectors,
                    sector_bytes,
                    expected: found.sectors,
                    expected_bytes: found.sector_bytes,
                });
            }
            Ok(found) => return Ok(found),
            Err(error) => {
                // Damage takes precedence over absence.
                if first.is_none() || first == Some(SuperblockError::None) {
                    first = Some(error);
                }
            }
        }
    }
    Err(first.unwrap_or(SuperblockError::None).into())
}

/// Finds the volume on a device. Nothing is written.
///
/// # Errors
/// Returns an error in the same cases as [`find_superblock`], if both copies of a part of the
/// volume are damaged, if its map is not the one with which it was made, or if the layout on the
/// device belongs to another volume.
pub async fn find<M: MemberIo>(
    members: &M,
    sectors: Sectors,
    sector_bytes: u32,
) -> Result<FoundVolume, CopiesError> {
    let superblock = find_superblock(members, sectors, sector_bytes).await?;
    let bytes = superblock.attachments().0 as usize * sector_bytes as usize;
    let (mut map, mut survey, mut damaged) = (None, None, Vec::new());
    for place in superblock.places() {
        let mut own = members.buffer(SUPERBLOCK_BYTES.max(sector_bytes as usize));
        let read = one(members, Op::read(DEVICE, place.0, &mut own)).await;
        let is_intact =
            read.is_ok() && ReplicatedSuperblock::decode(&own).is_ok_and(|it| it == superblock);
        let mut attachments = members.buffer(bytes);
        let read = one(members, Op::read(DEVICE, place.1, &mut attachments)).await;
        let found = match read {
            Ok(()) => superblock.take(&attachments),
            Err(_) => (None, None),
        };
        if !is_intact || found.0.is_none() || found.1.is_none() {
            damaged.push(place);
        }
        map = map.or_else(|| found.0.map(<[u8]>::to_vec));
        survey = survey.or_else(|| found.1.map(<[u8]>::to_vec));
    }
    let map_bytes = map.ok_or(CopiesError::Damaged("track map"))?;
    let survey_bytes = survey.ok_or(CopiesError::Damaged("survey"))?;
    let map = MapFile::read(&map_bytes).map_err(|_| CopiesError::Damaged("track map"))?;
    let map = Arc::new(map.tracks);
    let survey = match superblock.survey.bytes == 0 {
        true => None,
        false => {
            Some(decode_survey(&survey_bytes, map.len()).ok_or(CopiesError::Damaged("survey"))?)
        }
    };
    let mut attachments = [map_bytes, survey_bytes].concat();
    attachments.resize(bytes, 0);
    let range = range(&superblock, &map);
    let mut known = Known::default();
    let opened = loop {
        known.missed.clear();
        let opened = Tpl::open(
            Arc::clone(&map),
            range.clone(),
            sector_bytes,
            &mut |lbn, sectors| known.read(lbn, sectors),
        );
        let Some(&(lbn, sectors)) = known.missed.first() else {
            break opened.map_err(|error| match error {
                TplError::Format { problem, .. } => CopiesError::Table(problem),
                other => other.into(),
            })?;
        };
        let mut bytes = vec![0; sectors.0 as usize * sector_bytes as usize];
        let read = one(members, Op::read(DEVICE, lbn, &mut bytes)).await;
        known
            .read
            .push((lbn, sectors, read.is_ok().then_some(bytes)));
    };
    if opened.tpl.header().id != superblock.layout {
        return Err(CopiesError::Layout(TplError::Format {
            what: "the header of a track partition layout",
            problem: "it belongs to another volume",
        }));
    }
    Ok(FoundVolume {
        superblock,
        map,
        survey,
        layout: opened.tpl,
        attachments,
        damaged,
        repairs: opened.repairs,
    })
}

/// Returns the LBNs available to a layout.
fn range(superblock: &ReplicatedSuperblock, map: &TrackMap) -> Range<Lbn> {
    let inside = superblock.layout_range();
    inside.start.max(map.first())..inside.end.min(map.end())
}

/// The ranges of sectors read so far, and those that a call of [`Tpl::open`] lacked. The call is
/// repeated after each read, until no range is missing.
#[derive(Default)]
struct Known {
    /// Each range with its contents; `None` if it cannot be read.
    read: Vec<(Lbn, Sectors, Option<Vec<u8>>)>,
    missed: Vec<(Lbn, Sectors)>,
}

impl Known {
    fn read(&mut self, lbn: Lbn, sectors: Sectors) -> Option<Vec<u8>> {
        let known = self
            .read
            .iter()
            .find(|one| (one.0, one.1) == (lbn, sectors));
        match known {
            Some((_, _, bytes)) => bytes.clone(),
            None => {
                self.missed.push((lbn, sectors));
                None
            }
        }
    }
}

impl<M: MemberClock> ReplicatedVolume<M> {
    /// Opens a volume that was found on this device. Copies of the table are repaired first.
    ///
    /// # Errors
    /// Returns an error if the device fails.
    pub async fn open(members: M, found: FoundVolume) -> Result<ReplicatedVolume<M>, CopiesError> {
        for step in &found.repairs {
            match step {
                DeviceStep::Table { lbn, bytes } => {
                    one(&members, Op::write(DEVICE, *lbn, bytes)).await?;
                }
                _ => one(&members, Op::flush(DEVICE)).await?,
            }
        }
        let head = found
            .survey
            .map(|survey| HeadTracker::new(found.map, survey));
        Ok(ReplicatedVolume::new(members, found.layout, head))
    }
}

async fn one<M: MemberIo>(members: &M, op: Op<'_>) -> Result<(), CopiesError> {
    let mut ops = [op];
    members.run(&mut ops).await;
    Ok(ops[0].outcome?)
}

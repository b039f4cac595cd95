//! The superblocks and attachments of a volume with replicas, at the beginning and the end of its
//! device. docs/reference/volume-format.md specifies them.
//!
//! A superblock is written once. The *attachments* follow the first superblock and precede the
//! second one. They are the text of the track map, and the survey if there is one.

use uuid::Uuid;
use zerocopy::little_endian::{U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::superblock::SuperblockError;
use traxtent_layout::tpl::{PositioningCurve, Survey};
use traxtent_units::{Lbn, Sectors, SimTime};

/// The size of a superblock in bytes.
pub const SUPERBLOCK_BYTES: usize = 4096;

const VERSION: u32 = 1;
const MAGIC: [u8; 8] = *b"traxtcpy";
/// The offset of the first byte that the superblock's checksum covers.
const COVERED: usize = 12;
/// The upper bound on the number of sectors of a device.
const SECTORS_MAX: u64 = 1 << 62;
/// The upper bound on the number of distances in a survey. Real surveys have fewer.
const DISTANCES_MAX: usize = 1 << 16;

/// The description of a volume with replicas, stored on its device.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ReplicatedSuperblock {
    /// The volume's ID.
    pub volume: Uuid,
    /// The size of a logical sector in bytes.
    pub sector_bytes: u32,
    /// The number of sectors on the device.
    pub sectors: Sectors,
    /// The ID of the volume's layout.
    pub layout: u64,
    /// The size and the checksum of the track map's text.
    pub map: Attachment,
    /// The size and the checksum of the survey. The size is 0 if there is none.
    pub survey: Attachment,
}

/// The size and the checksum of an attachment.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Attachment {
    /// The number of bytes.
    pub bytes: u32,
    /// The CRC-32 of the bytes.
    pub crc: u32,
}

impl Attachment {
    /// Describes these bytes. Returns `None` if they are 4 GiB or more: too many for an attachment.
    pub fn of(bytes: &[u8]) -> Option<Attachment> {
        Some(Attachment {
            bytes: u32::try_from(bytes.len()).ok()?,
            crc: crc32fast::hash(bytes),
        })
    }

    /// Returns the attachment, if these bytes begin with it.
    pub fn take(self, bytes: &[u8]) -> Option<&[u8]> {
        let bytes = bytes.get(..self.bytes as usize)?;
        (crc32fast::hash(bytes) == self.crc).then_some(bytes)
    }
}

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Bytes {
    magic: [u8; 8],
    crc: U32,
    version: U32,
    volume: [u8; 16],
    sector_bytes: U32,
    map_bytes: U32,
    map_crc: U32,
    survey_bytes: U32,
    survey_crc: U32,
    reserved: U32,
    sectors: U64,
    layout: U64,
}

/// Returns the number of sectors that hold `bytes` bytes, padded to a multiple of 4096 bytes.
fn padded_sectors(bytes: u64, sector_bytes: u32) -> Sectors {
    let bytes = bytes.next_multiple_of(SUPERBLOCK_BYTES as u64);
    Sectors(bytes.div_ceil(sector_bytes.into()))
}

impl ReplicatedSuperblock {
    /// Returns the number of sectors of a superblock.
    pub fn superblock_sectors(sector_bytes: u32) -> Sectors {
        padded_sectors(SUPERBLOCK_BYTES as u64, sector_bytes)
    }

    /// Returns the number of sectors of one copy of the attachments.
    pub fn attachments(&self) -> Sectors {
        let bytes = u64::from(self.map.bytes) + u64::from(self.survey.bytes);
        padded_sectors(bytes, self.sector_bytes)
    }

    /// Returns the first LBN of each superblock, with that of its attachments.
    pub fn places(&self) -> [(Lbn, Lbn); 2] {
        let own = ReplicatedSuperblock::superblock_sectors(self.sector_bytes);
        let second = Lbn(self.sectors.0) - own;
        [(Lbn(0), Lbn(own.0)), (second, second - self.attachments())]
    }

    /// Returns the LBNs that remain for the layout.
    pub fn layout_range(&self) -> std::ops::Range<Lbn> {
        let around =
            ReplicatedSuperblock::superblock_sectors(self.sector_bytes).0 + self.attachments().0;
        Lbn(around)..Lbn(self.sectors.0.saturating_sub(around).max(around))
    }

    /// Returns the bytes of the superblock.
    pub fn encode(&self) -> Vec<u8> {
        let own = Bytes {
            magic: MAGIC,
            crc: 0.into(),
            version: VERSION.into(),
            volume: self.volume.into_bytes(),
            sector_bytes: self.sector_bytes.into(),
            map_bytes: self.map.bytes.into(),
            map_crc: self.map.crc.into(),
            survey_bytes: self.survey.bytes.into(),
            survey_crc: self.survey.crc.into(),
            reserved: 0.into(),
            sectors: self.sectors.0.into(),
            layout: self.layout.into(),
        };
        let mut bytes = own.as_bytes().to_vec();
        bytes.resize(SUPERBLOCK_BYTES, 0);
        reseal(&mut bytes);
        bytes
    }

    /// Returns the bytes of the superblock, padded to whole sectors.
    pub fn encode_sectors(&self) -> Vec<u8> {
        let sectors = ReplicatedSuperblock::superblock_sectors(self.sector_bytes);
        let mut bytes = self.encode();
        bytes.resize(sectors.0 as usize * self.sector_bytes as usize, 0);
        bytes
    }

    /// Returns the map and the survey in a copy of the attachments, each if it is intact. The
    /// survey is empty if the volume has none.
    pub fn take<'a>(&self, attachments: &'a [u8]) -> (Option<&'a [u8]>, Option<&'a [u8]>) {
        let after_map = attachments.get(self.map.bytes as usize..);
        let survey = after_map.and_then(|bytes| self.survey.take(bytes));
        (self.map.take(attachments), survey)
    }

    /// Reads a superblock.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a superblock, have another version, are damaged, or
    /// hold impossible values.
    pub fn decode(bytes: &[u8]) -> Result<ReplicatedSuperblock, SuperblockError> {
        use SuperblockError::Impossible;
        let bytes = bytes.get(..SUPERBLOCK_BYTES).ok_or(SuperblockError::None)?;
        let (own, _) = Bytes::read_from_prefix(bytes).map_err(|_| SuperblockError::None)?;
        if own.magic != MAGIC {
            return Err(SuperblockError::None);
        }
        if crc32fast::hash(&bytes[COVERED..]) != own.crc.get() {
            return Err(SuperblockError::Damaged);
        }
        if own.version.get() != VERSION {
            return Err(SuperblockError::Version(own.version.get()));
        }
        let sector_bytes = own.sector_bytes.get();
        if !sector_bytes.is_power_of_two() || !(512..=4096).contains(&sector_bytes) {
            return Err(Impossible("its sector size"));
        }
        let found = ReplicatedSuperblock {
            volume: Uuid::from_bytes(own.volume),
            sector_bytes,
            sectors: Sectors(own.sectors.get()),
            layout: own.layout.get(),
            map: Attachment {
                bytes: own.map_bytes.get(),
                crc: own.map_crc.get(),
            },
            survey: Attachment {
                bytes: own.survey_bytes.get(),
                crc: own.survey_crc.get(),
            },
        };
        let around =
            ReplicatedSuperblock::superblock_sectors(sector_bytes).0 + found.attachments().0;
        if own.reserved.get() != 0 || found.sectors.0 > SECTORS_MAX || found.sectors.0 <= 2 * around
        {
            return Err(Impossible("its areas"));
        }
        Ok(found)
    }
}

/// Recomputes the checksum. Public for tests of invalid superblocks that have a valid checksum.
pub fn reseal(bytes: &mut [u8]) {
    if let Some(covered) = bytes.get(COVERED..SUPERBLOCK_BYTES) {
        let crc = crc32fast::hash(covered);
        bytes[8..COVERED].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Returns the bytes of a survey. The phase is omitted, because it does not stay valid for long.
pub fn encode_survey(survey: &Survey) -> Vec<u8> {
    let points = survey.reach.points();
    let mut bytes = Vec::with_capacity(28 + 16 * points.len() + 2 * survey.angles.len());
    bytes.extend((survey.first_track as u64).to_le_bytes());
    bytes.extend(survey.period.to_le_bytes());
    bytes.extend((survey.angles.len() as u64).to_le_bytes());
    bytes.extend((points.len() as u32).to_le_bytes());
    for (distance, turns) in points {
        bytes.extend((*distance as u64).to_le_bytes());
        bytes.extend(turns.to_le_bytes());
    }
    for angle in &survey.angles {
        bytes.extend(angle.to_le_bytes());
    }
    bytes
}

/// Reads a survey from its bytes. Returns `None` if they are not a valid survey for a map of
/// `tracks` tracks.
pub fn decode_survey(bytes: &[u8], tracks: usize) -> Option<Survey> {
    let mut rest = bytes;
    let mut eight = || -> Option<[u8; 8]> {
        let (first, others) = rest.split_first_chunk()?;
        rest = others;
        Some(*first)
    };
    let first_track = usize::try_from(u64::from_le_bytes(eight()?)).ok()?;
    let period = f64::from_le_bytes(eight()?);
    let angles = usize::try_from(u64::from_le_bytes(eight()?)).ok()?;
    let (count, mut rest) = rest.split_first_chunk()?;
    let count = u32::from_le_bytes(*count) as usize;
    let fits = first_track.checked_add(angles)? <= tracks && (1..=DISTANCES_MAX).contains(&count);
    // The period is between a microsecond and a minute.
    if !fits || !(1e6..6e13).contains(&period) || rest.len() != 16 * count + 2 * angles {
        return None;
    }
    let mut points: Vec<(usize, f64)> = Vec::with_capacity(count);
    for _ in 0..count {
        let (point, others) = rest.split_first_chunk::<16>()?;
        rest = others;
        let (distance, turns) = point.split_at(8);
        let distance = usize::try_from(u64::from_le_bytes(distance.try_into().ok()?)).ok()?;
        let turns = f64::from_le_bytes(turns.try_into().ok()?);
        let ascends = points.last().is_none_or(|(before, _)| *before < distance);
        if !ascends || !(0.0..1000.0).contains(&turns) {
            return None;
        }
        points.push((distance, turns));
    }
    let angles = rest.chunks_exact(2);
    Some(Survey {
        first_track,
        angles: angles
            .map(|two| u16::from_le_bytes([two[0], two[1]]))
            .collect(),
        reach: PositioningCurve::new(points),
        period,
        phase: (SimTime::ZERO, 0.0),
    })
}

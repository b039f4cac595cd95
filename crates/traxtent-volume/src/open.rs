//! Making and opening volumes.

use uuid::Uuid;

use super::recovery::note_lost;
use super::superblock::{
    MEMBERS_MAX, MemberEntry, MemberState, Superblock, maps_sectors, superblock_sectors,
};
use super::{MemberIo, Op, Ops, Volume, VolumeError, WriteHole, encoded, failures};
use traxtent_layout::raid::{Array, ChunkRule, Level};
use traxtent_units::{Lbn, Sectors};

/// The parameters of a new volume.
#[derive(Clone, Debug)]
pub struct NewVolume {
    /// The volume's ID.
    pub volume: Uuid,
    /// The RAID level.
    pub level: Level,
    /// The rule for chunks.
    pub chunks: ChunkRule,
    /// The granularity of chunks, in sectors.
    pub granule: u32,
    /// The number of spare tracks on each member.
    pub spares: u32,
    /// The size of a logical sector in bytes.
    pub sector_bytes: u32,
    /// The size of the journal on each member.
    pub journal: Sectors,
    /// The members: ID, number of sectors, and text of the track map.
    pub members: Vec<(Uuid, Sectors, Vec<u8>)>,
}

impl NewVolume {
    /// Returns the initial superblock. The caller has to set its capacity. Returns `None` if a
    /// member is too small, or if there are no members or more than [`MEMBERS_MAX`].
    pub fn superblock(&self) -> Option<Superblock> {
        let maps: u64 = self
            .members
            .iter()
            .map(|(_, _, map)| map.len() as u64)
            .sum();
        let maps = maps_sectors(maps, self.sector_bytes);
        let front = superblock_sectors(self.sector_bytes) + maps;
        let journal = Lbn(front.0)..Lbn(front.0) + self.journal;
        let entry = |(id, sectors, map): &(Uuid, Sectors, Vec<u8>)| {
            let end = sectors.0.checked_sub(front.0)?;
            (journal.end.0 < end).then_some(MemberEntry {
                id: *id,
                state: MemberState::Active,
                doubtful: false,
                sectors: *sectors,
                data: journal.end..Lbn(end),
                map_bytes: map.len() as u32,
                map_crc: crc32fast::hash(map),
            })
        };
        let fits = (1..=MEMBERS_MAX).contains(&self.members.len());
        Some(Superblock {
            volume: self.volume,
            index: 0,
            members: self
                .members
                .iter()
                .map(entry)
                .collect::<Option<_>>()
                .filter(|_| fits)?,
            level: self.level,
            chunks: self.chunks,
            granule: self.granule,
            spares: self.spares,
            sector_bytes: self.sector_bytes,
            journal,
            maps,
            capacity: Sectors(0),
            generation: 1,
            epoch: 1,
            clean: true,
            synced: 0,
            scrubbed: 0,
            unrepaired: false,
            lost: Vec::new(),
        })
    }

    /// Writes the track maps and superblocks that turn the drives into members.
    ///
    /// # Errors
    /// Returns an error that names the first member that fails.
    pub async fn write(
        &self,
        superblock: &Superblock,
        members: &impl MemberIo,
    ) -> Result<(), VolumeError> {
        let sector = superblock.sector_bytes as usize;
        let mut maps: Vec<u8> = self
            .members
            .iter()
            .flat_map(|(_, _, map)| map.iter().copied())
            .collect();
        maps.resize(superblock.maps.0 as usize * sector, 0);
        let all = 0..superblock.members.len();
        let blocks: Vec<Vec<u8>> = all
            .clone()
            .map(|index| encoded(superblock, index))
            .collect();
        let front = Lbn(superblock_sectors(superblock.sector_bytes).0);
        let second = |index| superblock.second(index);
        let mut steps: [Ops<'_>; 3] = Default::default();
        for index in all.clone() {
            if !maps.is_empty() {
                steps[0].push(Op::write(index, front, &maps));
                steps[0].push(Op::write(index, second(index) - superblock.maps, &maps));
            }
            steps[1].push(Op::write(index, Lbn(0), &blocks[index]));
            steps[2].push(Op::write(index, second(index), &blocks[index]));
        }
        for mut ops in steps {
            members.run(&mut ops).await;
            let mut flushes: Ops<'_> = all.clone().map(Op::flush).collect();
            members.run(&mut flushes).await;
            if let Some(&member) = failures(&ops).iter().chain(&failures(&flushes)).next() {
                let problem = "cannot be written";
                return Err(VolumeError::Member { member, problem });
            }
        }
        Ok(())
    }
}

impl<M: MemberIo> Volume<M> {
    /// Opens a volume whose members have been assembled, and restores consistency after a crash.
    ///
    /// # Errors
    /// Returns an error if a member fails or has no space during recovery, if a journal record is
    /// invalid, if more data is lost than can be recorded, or if too many members fail. The members
    /// are then as recoverable as before.
    pub async fn open(
        array: Array,
        members: M,
        superblock: Superblock,
        hole: WriteHole,
    ) -> Result<Self, VolumeError> {
        let mut volume = Volume::new(array, members, superblock, hole);
        let mut recovered = None;
        {
            let mut state = volume.gate.write().await;
            if volume.journals() && !state.superblock.clean {
                let (records, lost) = volume.replay(&state).await?;
                recovered = Some(records);
                note_lost(&mut state.superblock, lost)?;
            }
            state.superblock.epoch += 1;
            state.superblock.clean = false;
            volume.persist(&mut state).await?;
        }
        volume.recovered = recovered;
        Ok(volume)
    }

    /// Opens a volume without writing to its members. Writes fail, and the failure of a member is
    /// only recorded in memory.
    ///
    /// # Errors
    /// Returns [`VolumeError::NeedsRecovery`] if the volume was not stopped cleanly.
    pub fn open_to_read(
        array: Array,
        members: M,
        superblock: Superblock,
    ) -> Result<Self, VolumeError> {
        if !superblock.clean {
            return Err(VolumeError::NeedsRecovery);
        }
        let mut volume = Volume::new(array, members, superblock, WriteHole::Closed);
        volume.gate.get_mut().read_only = true;
        volume.is_read_only = true;
        Ok(volume)
    }

    /// Returns whether the volume is open for reading only, without waiting.
    pub fn is_read_only(&self) -> bool {
        self.is_read_only
    }
}

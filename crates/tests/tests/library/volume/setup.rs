//! Tiny volumes, drawn from a seed.

use std::sync::Arc;

use traxtent_layout::raid::{Array, ArrayShape, ChunkRule, Level, Member};
use traxtent_map::TrackMap;
use traxtent_units::Rng;
use traxtent_units::Sectors;
use traxtent_volume::superblock::Superblock;
use traxtent_volume::{
    AssemblyError, NewVolume, SuperblockPair, Volume, VolumeError, WriteHole, assemble,
    read_superblocks,
};
use uuid::Uuid;

use super::memory::{Drive, Memory, SECTOR, wait};

/// A volume's layout, and the initial state of its drives.
pub(super) struct Setup {
    pub(super) array: Array,
    pub(super) superblock: Superblock,
    pub(super) drives: Vec<Drive>,
}

/// Returns a volume with a random number of members: at least two and at least as many as the level
/// needs, and at most two more.
pub(super) fn setup(level: Level, rng: &mut Rng) -> Setup {
    let count = level.members_least().max(2) + rng.below(3) as usize;
    setup_of(level, count, rng)
}

/// Returns a volume with `count` members.
pub(super) fn setup_of(level: Level, count: usize, rng: &mut Rng) -> Setup {
    let journal = 150 + rng.below(60);
    setup_with_journal(level, count, journal, rng)
}

/// Returns a volume with `count` members and a journal of `journal` sectors.
pub(super) fn setup_with_journal(level: Level, count: usize, journal: u64, rng: &mut Rng) -> Setup {
    let fixed = rng.chance(0.5);
    let chunk = 1 + rng.below(6);
    let chunks = if fixed {
        ChunkRule::Fixed(Sectors(chunk))
    } else {
        ChunkRule::Tracks
    };
    let format = |sectors: &[u64]| NewVolume {
        volume: Uuid::from_u128(u128::from(journal) << 64 | 7),
        level,
        chunks,
        granule: 1,
        spares: 0,
        sector_bytes: SECTOR as u32,
        journal: Sectors(journal),
        members: sectors
            .iter()
            .enumerate()
            .map(|(index, sectors)| {
                (
                    Uuid::from_u128(index as u128 + 1),
                    Sectors(*sectors),
                    Vec::new(),
                )
            })
            .collect(),
    };
    let sectors: Vec<u64> = (0..count)
        .map(|_| journal + 32 + 24 + rng.below(8))
        .collect();
    let mut superblock = format(&sectors)
        .superblock()
        .expect("they are large enough");
    let members = superblock.members.iter().map(|entry| {
        let mut csv = "first_lbn,sectors\n".to_owned();
        // One track up to the data area, then short ones, so that a few sectors make several
        // tracks.
        csv += &format!("0,{}\n", entry.data.start);
        let mut next = entry.data.start.0;
        while next < entry.sectors.0 {
            let size = (3 + rng.below(4)).min(entry.sectors.0 - next);
            csv += &format!("{next},{size}\n");
            next += size;
        }
        Member {
            map: Arc::new(TrackMap::read_csv(csv.as_bytes()).expect("a map")),
            data: entry.data.clone(),
        }
    });
    let shape = ArrayShape {
        level,
        chunks,
        granule: 1,
        spares: 0,
    };
    let array = Array::new(shape, members.collect()).expect("an array");
    superblock.capacity = array.capacity();
    let drives = sectors
        .iter()
        .map(|sectors| Drive::new(*sectors, rng))
        .collect();
    let memory = Memory::new(drives, None);
    wait(format(&sectors).write(&superblock, &&memory)).expect("the members are written");
    Setup {
        array,
        superblock,
        drives: memory.drives.into_inner(),
    }
}

/// Returns the pairs of superblocks of those drives on which at least one of the two is usable.
pub(super) async fn usable_pairs(memory: &&Memory) -> Vec<SuperblockPair> {
    let device = |drive: &Drive| {
        let sectors = drive.visible.len() / SECTOR;
        (Sectors(sectors as u64), SECTOR as u32)
    };
    let devices: Vec<_> = memory.drives.borrow().iter().map(device).collect();
    let mut found = read_superblocks(memory, &devices).await;
    found.retain(|pair| pair.newest().is_some());
    found
}

/// Assembles the members found, except stale ones, by force.
pub(super) fn assembled(array: &Array, mut found: Vec<SuperblockPair>) -> Superblock {
    loop {
        match assemble(&found, true) {
            Ok(mut assembly) => {
                assembly
                    .check_synced(array.stripes(), true)
                    .expect("it is forced");
                return assembly.superblock;
            }
            Err(AssemblyError::Stale { given, .. }) => drop(found.remove(given)),
            Err(error) => panic!("{error}"),
        }
    }
}

/// Assembles the members found and recovers the volume.
pub(super) fn open<'a>(
    array: &Array,
    memory: &'a Memory,
    hole: WriteHole,
) -> Result<Volume<&'a Memory>, VolumeError> {
    let superblock = assembled(array, wait(usable_pairs(&memory)));
    wait(Volume::open(array.clone(), memory, superblock, hole))
}

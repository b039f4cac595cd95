//! The superblocks at the beginning and the end of each member. The exact format is in
//! docs/reference/volume-format.md.

use std::ops::Range;

use uuid::Uuid;
use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use traxtent_layout::raid::{ChunkRule, Level};
use traxtent_units::{Lbn, Sectors};

/// The size of a superblock in bytes.
pub const SUPERBLOCK_BYTES: usize = 8192;

/// The largest number of members of a volume.
pub const MEMBERS_MAX: usize = 32;

/// The format version that is written and read.
pub const VERSION: u32 = 1;

const MAGIC: [u8; 8] = *b"traxtvol";
/// The offset of the first byte that the superblock's checksum covers.
const COVERED: usize = 12;
/// The upper bound on counters, and on numbers of sectors and stripes. No drive can reach it in its
/// lifetime, so they do not overflow.
const COUNTER_MAX: u64 = 1 << 62;

/// The description of a member and its volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Superblock {
    /// The volume's ID.
    pub volume: Uuid,
    /// The member's index.
    pub index: usize,
    /// All members.
    pub members: Vec<MemberEntry>,
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
    /// The LBNs of the journal, the same on every member.
    pub journal: Range<Lbn>,
    /// The number of sectors of the track maps, which follow the first superblock and precede the
    /// second.
    pub maps: Sectors,
    /// The capacity available to users.
    pub capacity: Sectors,
    /// A counter, increased by every round of writing superblocks. The highest generation in any
    /// *second* superblock is trusted: all first superblocks of its round are durable.
    pub generation: u64,
    /// A counter, increased whenever the volume is opened for writing. Journal records of another
    /// epoch are void.
    pub epoch: u64,
    /// Whether the volume was stopped cleanly.
    pub clean: bool,
    /// The number of stripes, from the first one, for which the initial sync is complete. Their
    /// parity and replicas are consistent with the data.
    pub synced: u64,
    /// The stripe at which the next scrub begins. The last scrub found no difference before it. It
    /// is 0 unless all members are active and none is doubtful: a scrub that is to decide about a
    /// member reads everything.
    pub scrubbed: u64,
    /// Whether a scrub found differences that it did not repair. A complete scrub that finds none
    /// clears this.
    pub unrepaired: bool,
    /// The ranges of the volume's LBNs whose data is lost, ascending.
    pub lost: Vec<Range<u64>>,
}

/// An entry in the table of members.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct MemberEntry {
    /// The member's ID.
    pub id: Uuid,
    /// The member's state.
    pub state: MemberState,
    /// Whether one of its superblocks was missing, damaged or too old, and its data has not been
    /// confirmed as good since. Until then, scrubs repair no data: a truncated member may have lost
    /// more than its superblock.
    pub doubtful: bool,
    /// The number of sectors of the member.
    pub sectors: Sectors,
    /// The sectors that hold chunks.
    pub data: Range<Lbn>,
    /// The size of its track map in bytes; 0 if there is none.
    pub map_bytes: u32,
    /// The CRC-32 of its track map.
    pub map_crc: u32,
}

/// The state of a member.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemberState {
    /// All its stripes are valid.
    Active,
    /// None of its stripes is valid.
    Failed,
    /// The stripes below this one are valid.
    Rebuilding(u64),
}

/// The reason why bytes are not a usable superblock.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum SuperblockError {
    /// There is no superblock.
    #[error("there is no superblock of a volume")]
    None,
    /// An unknown version.
    #[error("unsupported superblock version {0}; expected {VERSION}")]
    Version(u32),
    /// A wrong checksum.
    #[error("damaged superblock: its checksum is wrong")]
    Damaged,
    /// Impossible values.
    #[error("invalid superblock: {0}")]
    Impossible(&'static str),
    /// A superblock of another device, or of this device before it changed.
    #[error("the superblock belongs to another device: this one {0}")]
    Elsewhere(&'static str),
    /// A read error at the superblock's position.
    #[error("the superblock cannot be read")]
    Unreadable,
    /// A second superblock of another volume or member than the first one.
    #[error("the second superblock belongs to a different volume or member than the first")]
    Mismatched,
}

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct Head {
    magic: [u8; 8],
    crc: U32,
    version: U32,
    volume: [u8; 16],
    index: U16,
    members: U16,
    level: u8,
    rule: u8,
    clean: u8,
    unrepaired: u8,
    sector_bytes: U32,
    chunk: U32,
    granule: U32,
    spares: U32,
    journal_first: U64,
    journal_end: U64,
    maps: U64,
    capacity: U64,
    generation: U64,
    epoch: U64,
    synced: U64,
    scrubbed: U64,
    lost: U64,
}

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct EntryBytes {
    id: [u8; 16],
    state: U64,
    progress: U64,
    sectors: U64,
    data_first: U64,
    data_end: U64,
    map_bytes: U32,
    map_crc: U32,
}

#[derive(Clone, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct LostBytes {
    first: U64,
    end: U64,
}

/// The bit of a member's state that marks it as [doubtful](MemberEntry::doubtful).
const DOUBTFUL: u64 = 1 << 8;

/// Returns the level's number in a superblock.
fn level_number(level: Level) -> u8 {
    match level {
        Level::Raid0 => 0,
        Level::Raid1 => 1,
        Level::Raid4 => 4,
        Level::Raid5 => 5,
    }
}

fn level_of(number: u8) -> Option<Level> {
    Level::ALL
        .into_iter()
        .find(|level| level_number(*level) == number)
}

/// Returns the numbers that encode the rule for chunks in a superblock: the rule, and the number of
/// sectors for chunks of a fixed size.
///
/// # Panics
/// Panics if a chunk has 2^32 sectors or more.
fn chunks_numbers(chunks: ChunkRule) -> (u8, u32) {
    match chunks {
        ChunkRule::Fixed(sectors) => (0, u32::try_from(sectors.0).expect("chunks are smaller")),
        ChunkRule::Tracks => (1, 0),
        ChunkRule::LargestTrack => (2, 0),
        ChunkRule::SmallestTrack => (3, 0),
    }
}

fn chunks_of(rule: u8, sectors: u32) -> Option<ChunkRule> {
    match (rule, sectors) {
        (0, 1..) => Some(ChunkRule::Fixed(Sectors(sectors.into()))),
        (1, 0) => Some(ChunkRule::Tracks),
        (2, 0) => Some(ChunkRule::LargestTrack),
        (3, 0) => Some(ChunkRule::SmallestTrack),
        _ => None,
    }
}

/// Returns the number of lost ranges that a superblock can hold.
pub fn lost_max(members: usize) -> usize {
    (SUPERBLOCK_BYTES - size_of::<Head>() - members * size_of::<EntryBytes>())
        / size_of::<LostBytes>()
}

/// Returns the number of sectors of a superblock.
pub fn superblock_sectors(sector_bytes: u32) -> Sectors {
    Sectors((SUPERBLOCK_BYTES as u64).div_ceil(sector_bytes.into()))
}

/// Returns the number of sectors for track maps of `bytes` bytes, padded to keep the data after
/// them at a multiple of 4096 bytes.
pub fn maps_sectors(bytes: u64, sector_bytes: u32) -> Sectors {
    let bytes = bytes.next_multiple_of(4096);
    Sectors(bytes.div_ceil(sector_bytes.into()))
}

impl Superblock {
    /// Returns the first LBN of a member's second superblock.
    pub fn second(&self, member: usize) -> Lbn {
        let sectors = superblock_sectors(self.sector_bytes);
        Lbn(self.members[member].sectors.0) - sectors
    }

    /// Lets the next scrub begin at stripe 0 unless all members are active and none is doubtful.
    pub(crate) fn check_scrubbed(&mut self) {
        let is_trusted =
            |member: &MemberEntry| member.state == MemberState::Active && !member.doubtful;
        if !self.members.iter().all(is_trusted) {
            self.scrubbed = 0;
        }
    }

    /// Returns the [`SUPERBLOCK_BYTES`] bytes of the superblock.
    ///
    /// # Panics
    /// Panics if there are more members or lost ranges than it can hold, or if a chunk has 2^32
    /// sectors or more.
    pub fn encode(&self) -> Vec<u8> {
        assert!(
            self.members.len() <= MEMBERS_MAX && self.lost.len() <= lost_max(self.members.len())
        );
        let (rule, chunk) = chunks_numbers(self.chunks);
        let head = Head {
            magic: MAGIC,
            crc: 0.into(),
            version: VERSION.into(),
            volume: self.volume.into_bytes(),
            index: (self.index as u16).into(),
            members: (self.members.len() as u16).into(),
            level: level_number(self.level),
            rule,
            clean: self.clean.into(),
            unrepaired: self.unrepaired.into(),
            sector_bytes: self.sector_bytes.into(),
            chunk: chunk.into(),
            granule: self.granule.into(),
            spares: self.spares.into(),
            journal_first: self.journal.start.0.into(),
            journal_end: self.journal.end.0.into(),
            maps: self.maps.0.into(),
            capacity: self.capacity.0.into(),
            generation: self.generation.into(),
            epoch: self.epoch.into(),
            synced: self.synced.into(),
            scrubbed: self.scrubbed.into(),
            lost: (self.lost.len() as u64).into(),
        };
        let mut bytes = head.as_bytes().to_vec();
        for member in &self.members {
            let (state, progress) = match member.state {
                MemberState::Active => (0, 0),
                MemberState::Failed => (1, 0),
                MemberState::Rebuilding(stripe) => (2, stripe),
            };
            let entry = EntryBytes {
                id: member.id.into_bytes(),
                state: (state | if member.doubtful { DOUBTFUL } else { 0 }).into(),
                progress: progress.into(),
                sectors: member.sectors.0.into(),
                data_first: member.data.start.0.into(),
                data_end: member.data.end.0.into(),
                map_bytes: member.map_bytes.into(),
                map_crc: member.map_crc.into(),
            };
            bytes.extend(entry.as_bytes());
        }
        for lost in &self.lost {
            let lost = LostBytes {
                first: lost.start.into(),
                end: lost.end.into(),
            };
            bytes.extend(lost.as_bytes());
        }
        bytes.resize(SUPERBLOCK_BYTES, 0);
        reseal(&mut bytes);
        bytes
    }

    /// Reads a superblock.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a superblock, have another version, are damaged, or
    /// hold impossible values.
    pub fn decode(bytes: &[u8]) -> Result<Superblock, SuperblockError> {
        use SuperblockError::Impossible;
        let (head, rest) = verified_head(bytes)?;
        let count = usize::from(head.members.get());
        if !(1..=MEMBERS_MAX).contains(&count) || head.index.get() >= head.members.get() {
            return Err(Impossible("its number of members or its own index"));
        }
        if head.clean > 1 || head.unrepaired > 1 {
            return Err(Impossible("its flags"));
        }
        let level = level_of(head.level).ok_or(Impossible("its level"))?;
        let chunks = chunks_of(head.rule, head.chunk.get());
        let chunks = chunks.ok_or(Impossible("its rule for chunks"))?;
        check_numbers(&head)?;
        let (entries, rest) = rest.split_at(count * size_of::<EntryBytes>());
        let entries = entries.chunks_exact(size_of::<EntryBytes>());
        let members: Option<Vec<MemberEntry>> = entries.map(entry).collect();
        let members = members.ok_or(Impossible("a member's state"))?;
        let journal = Lbn(head.journal_first.get())..Lbn(head.journal_end.get());
        check_areas(&head, &journal, &members)?;
        let lost = lost_ranges(&head, rest)?;
        Ok(Superblock {
            volume: Uuid::from_bytes(head.volume),
            index: head.index.get().into(),
            members,
            level,
            chunks,
            granule: head.granule.get(),
            spares: head.spares.get(),
            sector_bytes: head.sector_bytes.get(),
            journal,
            maps: Sectors(head.maps.get()),
            capacity: Sectors(head.capacity.get()),
            generation: head.generation.get(),
            epoch: head.epoch.get(),
            clean: head.clean == 1,
            synced: head.synced.get(),
            scrubbed: head.scrubbed.get(),
            unrepaired: head.unrepaired == 1,
            lost,
        })
    }
}

/// Recomputes the checksum. Public for tests of invalid superblocks that have a valid checksum.
pub fn reseal(bytes: &mut [u8]) {
    if let Some(covered) = bytes.get(COVERED..SUPERBLOCK_BYTES) {
        let crc = crc32fast::hash(covered);
        bytes[8..COVERED].copy_from_slice(&crc.to_le_bytes());
    }
}

/// Checks the format and the checksum of a superblock. Returns its head and the bytes after it.
fn verified_head(bytes: &[u8]) -> Result<(Head, &[u8]), SuperblockError> {
    let bytes = bytes.get(..SUPERBLOCK_BYTES).ok_or(SuperblockError::None)?;
    let (head, rest) = Head::read_from_prefix(bytes).map_err(|_| SuperblockError::None)?;
    if head.magic != MAGIC {
        return Err(SuperblockError::None);
    }
    if crc32fast::hash(&bytes[COVERED..]) != head.crc.get() {
        return Err(SuperblockError::Damaged);
    }
    if head.version.get() != VERSION {
        return Err(SuperblockError::Version(head.version.get()));
    }
    Ok((head, rest))
}

/// Checks the sector size, the granule and the counters of a head.
fn check_numbers(head: &Head) -> Result<(), SuperblockError> {
    let sector_bytes = head.sector_bytes.get();
    if !sector_bytes.is_power_of_two() || !(512..=SUPERBLOCK_BYTES as u32).contains(&sector_bytes) {
        return Err(SuperblockError::Impossible("its sector size"));
    }
    let counters = [
        &head.generation,
        &head.epoch,
        &head.synced,
        &head.scrubbed,
        &head.capacity,
    ];
    if counters.iter().any(|counter| counter.get() > COUNTER_MAX) || head.granule.get() == 0 {
        return Err(SuperblockError::Impossible("a counter or its granule"));
    }
    Ok(())
}

/// Checks that superblocks, maps, journal and data do not overlap on any member.
fn check_areas(
    head: &Head,
    journal: &Range<Lbn>,
    members: &[MemberEntry],
) -> Result<(), SuperblockError> {
    use SuperblockError::Impossible;
    let (sector_bytes, maps) = (head.sector_bytes.get(), head.maps.get());
    let around = superblock_sectors(sector_bytes).0.checked_add(maps);
    let around = around.filter(|around| *around < COUNTER_MAX);
    let around = around.ok_or(Impossible("the size of its track maps"))?;
    let map_bytes: u64 = members
        .iter()
        .map(|member| u64::from(member.map_bytes))
        .sum();
    if journal.start.0 != around
        || journal.end < journal.start
        || map_bytes.div_ceil(sector_bytes.into()) > maps
    {
        return Err(Impossible("its areas"));
    }
    for member in members {
        let sectors = member.sectors.0;
        let sound = sectors <= COUNTER_MAX
            && member.data.start >= journal.end
            && member.data.end >= member.data.start
            && sectors
                .checked_sub(around)
                .is_some_and(|end| member.data.end.0 <= end);
        if !sound {
            return Err(Impossible("a member's areas"));
        }
    }
    Ok(())
}

/// Returns the lost ranges, after checking that they ascend and are within the volume. `bytes` are
/// the bytes after the members.
fn lost_ranges(head: &Head, bytes: &[u8]) -> Result<Vec<Range<u64>>, SuperblockError> {
    use SuperblockError::Impossible;
    if head.lost.get() > lost_max(head.members.get().into()) as u64 {
        return Err(Impossible("its number of lost ranges"));
    }
    let lost = bytes.chunks_exact(size_of::<LostBytes>());
    let lost: Vec<Range<u64>> = lost
        .take(head.lost.get() as usize)
        .map(lost_range)
        .collect();
    let ends = [0].into_iter().chain(lost.iter().map(|lost| lost.end));
    let ascending = ends
        .zip(&lost)
        .all(|(end, next)| end <= next.start && next.start < next.end);
    if !ascending
        || lost
            .last()
            .is_some_and(|last| last.end > head.capacity.get())
    {
        return Err(Impossible("its lost ranges"));
    }
    Ok(lost)
}

fn entry(bytes: &[u8]) -> Option<MemberEntry> {
    let entry = EntryBytes::read_from_bytes(bytes).ok()?;
    let doubtful = entry.state.get() & DOUBTFUL != 0;
    let state = match (entry.state.get() & !DOUBTFUL, entry.progress.get()) {
        (0, 0) => MemberState::Active,
        (1, 0) => MemberState::Failed,
        (2, stripe) => MemberState::Rebuilding(stripe),
        _ => return None,
    };
    Some(MemberEntry {
        id: Uuid::from_bytes(entry.id),
        state,
        doubtful,
        sectors: Sectors(entry.sectors.get()),
        data: Lbn(entry.data_first.get())..Lbn(entry.data_end.get()),
        map_bytes: entry.map_bytes.get(),
        map_crc: entry.map_crc.get(),
    })
}

/// Returns member sizes found in the bytes of a damaged superblock, as candidates for the position
/// of a second one. They need not be correct: the superblock read there has its own checksum.
pub(super) fn sizes_in(bytes: &[u8]) -> impl Iterator<Item = Sectors> {
    let entries = bytes.get(size_of::<Head>()..).unwrap_or(&[]);
    let entries = entries.chunks_exact(size_of::<EntryBytes>());
    let entries = entries.take(MEMBERS_MAX).filter_map(entry);
    entries
        .map(|entry| entry.sectors)
        .filter(|sectors| (1..=COUNTER_MAX).contains(&sectors.0))
}

fn lost_range(bytes: &[u8]) -> Range<u64> {
    let lost = LostBytes::read_from_bytes(bytes).unwrap_or_else(|_| unreachable!());
    lost.first.get()..lost.end.get()
}

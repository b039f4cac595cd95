//! The on-device format of the table.
//!
//! All numbers are little-endian. Checksums are CRC-32 as in Ethernet and zip. There are two copies
//! of the table, each beginning at a track boundary: a header, then the pages. The header takes as
//! many sectors as a page.
//!
//! | header: byte | bytes | |
//! |---|---|---|
//! | 0 | 8 | `traxttpl` |
//! | 8 | 4 | CRC-32 of bytes 12 to 79 |
//! | 12 | 4 | version: 1 |
//! | 16 | 8 | ID of the layout |
//! | 24 | 8 | LBN of the header's first copy |
//! | 32 | 8 | first LBN after the layout |
//! | 40 | 8 | tracks in the map |
//! | 48 | 4 | CRC-32 of the map's first LBN and tracks |
//! | 52 | 4 | bytes per sector |
//! | 56 | 4 | sectors per page |
//! | 60 | 4 | sectors per block |
//! | 64 | 2 | smallest number of partitions |
//! | 66 | 2 | number of regions |
//! | 68 | 4 | largest number of partitions |
//! | 72 | 8 | number of data tracks |
//!
//! | page: byte | bytes | |
//! |---|---|---|
//! | 0 | 4 | `tplp` |
//! | 4 | 4 | CRC-32 of the rest of the page |
//! | 8 | 8 | ID of the layout |
//! | 16 | 8 | generation: one more with each change |
//! | 24 | 4 | number of the page |
//! | 28 | 4 | 1 if replicas may differ, else 0 |
//! | 32 | 2 per track | state of the track (see below) |
//!
//! Bits 0 to 2 of a track's state are the exponent of its number of partitions; bits 3 to 8 are the
//! layers in use. Zeros follow the last track.

use zerocopy::little_endian::{U16, U32, U64};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use super::count::{PartitionBounds, PartitionCount};
use super::error::TplError;
use super::table::{Page, TrackState};
use traxtent_map::TrackMap;
use traxtent_units::Lbn;

const VERSION: u32 = 1;
const HEADER: [u8; 8] = *b"traxttpl";
const PAGE: [u8; 4] = *b"tplp";

/// The size of a header in bytes.
pub const HEADER_BYTES: usize = size_of::<HeaderBytes>();

/// The size in bytes of a page's head, which comes before its tracks.
const PAGE_HEAD_BYTES: usize = size_of::<PageHead>();

/// The largest size of a page in bytes.
const PAGE_BYTES_MAX: u64 = 1 << 16;

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct HeaderBytes {
    magic: [u8; 8],
    crc: U32,
    version: U32,
    id: U64,
    first: U64,
    end: U64,
    map_tracks: U64,
    map_hash: U32,
    sector_bytes: U32,
    page_sectors: U32,
    block_sectors: U32,
    least: U16,
    regions: U16,
    most: U32,
    data_tracks: U64,
}

#[derive(Clone, Copy, FromBytes, IntoBytes, Immutable, KnownLayout, Unaligned)]
#[repr(C)]
struct PageHead {
    magic: [u8; 4],
    crc: U32,
    id: U64,
    generation: U64,
    number: U32,
    open: U32,
}

/// The description of a layout, written once.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Header {
    /// The ID that distinguishes the layout from others that were on the device.
    pub id: u64,
    /// The layout's first LBN.
    pub first: Lbn,
    /// The first LBN after the layout.
    pub end: Lbn,
    /// The number of tracks in the map with which it was made.
    pub map_tracks: u64,
    /// The hash of that map: [`hash`].
    pub map_hash: u32,
    /// The size of a sector in bytes.
    pub sector_bytes: u32,
    /// The number of sectors per page of the table. A page is the unit that the device writes
    /// atomically.
    pub page_sectors: u32,
    /// The number of sectors per block.
    pub block_sectors: u32,
    /// The smallest and largest number of partitions.
    pub bounds: PartitionBounds,
    /// The number of regions, which are filled one after another.
    pub regions: u16,
    /// The number of data tracks.
    pub data_tracks: u64,
}

/// Returns a hash of the boundaries: the CRC-32 of the map's first LBN and its runs. It does not
/// depend on how the map is stored.
pub fn hash(map: &TrackMap) -> u32 {
    let mut hasher = crc32fast::Hasher::new();
    hasher.update(&map.first().0.to_le_bytes());
    let mut run = (0_u32, 0_u64);
    let mut add = |(size, times): (u32, u64)| {
        hasher.update(&size.to_le_bytes());
        hasher.update(&times.to_le_bytes());
    };
    for (size, times) in map.runs() {
        if size == run.0 {
            run.1 += u64::from(times);
        } else {
            add(std::mem::replace(&mut run, (size, times.into())));
        }
    }
    add(run);
    hasher.finalize()
}

impl Header {
    /// Returns the size of a page in bytes.
    pub fn page_bytes(&self) -> usize {
        self.page_sectors as usize * self.sector_bytes as usize
    }

    /// Returns the number of tracks per page.
    pub fn tracks_of_page(&self) -> usize {
        (self.page_bytes() - PAGE_HEAD_BYTES) / size_of::<u16>()
    }

    /// Returns the number of pages.
    pub fn pages(&self) -> u64 {
        self.data_tracks.div_ceil(self.tracks_of_page() as u64)
    }

    /// Checks that the values are possible.
    pub(super) fn check(&self) -> Result<(), TplError> {
        let invalid = |name, value, expected| TplError::InvalidValue {
            name,
            value,
            expected,
        };
        let bytes = u64::from(self.sector_bytes) * u64::from(self.page_sectors);
        if bytes < 2 * HEADER_BYTES as u64 || bytes > PAGE_BYTES_MAX || !bytes.is_multiple_of(2) {
            return Err(invalid(
                "the page size in bytes",
                bytes,
                "an even number from 160 to 65536",
            ));
        }
        if self.regions == 0 {
            return Err(invalid("the number of regions", 0, "1 or more"));
        }
        if self.block_sectors == 0 {
            return Err(invalid("the size of a block", 0, "1 sector or more"));
        }
        if self.data_tracks == 0 || self.data_tracks > self.map_tracks {
            let expected = "at least 1, and no more than the map has";
            return Err(invalid(
                "the number of data tracks",
                self.data_tracks,
                expected,
            ));
        }
        Ok(())
    }

    /// Returns the header's bytes, padded to a page.
    pub fn encode(&self) -> Vec<u8> {
        let head = HeaderBytes {
            magic: HEADER,
            crc: 0.into(),
            version: VERSION.into(),
            id: self.id.into(),
            first: self.first.0.into(),
            end: self.end.0.into(),
            map_tracks: self.map_tracks.into(),
            map_hash: self.map_hash.into(),
            sector_bytes: self.sector_bytes.into(),
            page_sectors: self.page_sectors.into(),
            block_sectors: self.block_sectors.into(),
            least: (self.bounds.least().get() as u16).into(),
            regions: self.regions.into(),
            most: self.bounds.most().get().into(),
            data_tracks: self.data_tracks.into(),
        };
        let mut bytes = head.as_bytes().to_vec();
        bytes.resize(self.page_bytes(), 0);
        reseal(&mut bytes);
        bytes
    }

    /// Reads a header.
    ///
    /// # Errors
    /// Returns an error if the bytes are not a header, are damaged, or hold impossible values.
    pub fn decode(bytes: &[u8]) -> Result<Header, TplError> {
        Header::read(bytes).map_err(|problem| TplError::Format {
            what: "the header of a track partition layout",
            problem,
        })
    }

    fn read(bytes: &[u8]) -> Result<Header, &'static str> {
        let (head, _) = HeaderBytes::read_from_prefix(bytes).map_err(|_| "it is truncated")?;
        if head.magic != HEADER {
            return Err("its magic number is missing");
        }
        if crc32fast::hash(&bytes[12..HEADER_BYTES]) != head.crc.get() {
            return Err("its checksum is wrong");
        }
        if head.version.get() != VERSION {
            return Err("unknown version");
        }
        let bounds = || {
            let least = PartitionCount::new(head.least.get().into()).ok()?;
            PartitionBounds::new(least, PartitionCount::new(head.most.get()).ok()?).ok()
        };
        let header = Header {
            id: head.id.get(),
            first: Lbn(head.first.get()),
            end: Lbn(head.end.get()),
            map_tracks: head.map_tracks.get(),
            map_hash: head.map_hash.get(),
            sector_bytes: head.sector_bytes.get(),
            page_sectors: head.page_sectors.get(),
            block_sectors: head.block_sectors.get(),
            bounds: bounds().ok_or("its bounds on partitions are impossible")?,
            regions: head.regions.get(),
            data_tracks: head.data_tracks.get(),
        };
        header
            .check()
            .map_err(|_| "one of its values is impossible")?;
        Ok(header)
    }
}

/// Returns the bytes of a page.
pub(super) fn encode(header: &Header, number: u32, page: &Page) -> Vec<u8> {
    let head = PageHead {
        magic: PAGE,
        crc: 0.into(),
        id: header.id.into(),
        generation: page.generation.into(),
        number: number.into(),
        open: u32::from(page.open).into(),
    };
    let mut bytes = head.as_bytes().to_vec();
    for index in 0..tracks(header, number) {
        bytes.extend(page.get(index).to_le_bytes());
    }
    bytes.resize(header.page_bytes(), 0);
    reseal(&mut bytes);
    bytes
}

/// Reads a page from its bytes.
pub(super) fn decode(header: &Header, number: u32, bytes: &[u8]) -> Result<Page, &'static str> {
    let bytes = bytes.get(..header.page_bytes()).ok_or("it is truncated")?;
    let (head, rest) = PageHead::read_from_prefix(bytes).map_err(|_| "it is truncated")?;
    if head.magic != PAGE {
        return Err("its magic number is missing");
    }
    if crc32fast::hash(&bytes[8..]) != head.crc.get() {
        return Err("its checksum is wrong");
    }
    if head.id.get() != header.id {
        return Err("it belongs to another layout");
    }
    if head.number.get() != number {
        return Err("it is another page");
    }
    // The generation cannot reach this bound within a device's life.
    if head.generation.get() >> 62 != 0 || head.open.get() > 1 {
        return Err("one of its values is impossible");
    }
    let states = rest.chunks_exact(2).take(tracks(header, number));
    let states: Vec<u16> = states
        .map(|two| u16::from_le_bytes([two[0], two[1]]))
        .collect();
    if states
        .iter()
        .any(|state| TrackState::decode(*state, header.bounds).is_none())
    {
        return Err("the state of a track is impossible");
    }
    Ok(Page::new(
        head.generation.get(),
        head.open.get() == 1,
        &states,
    ))
}

/// Returns the number of tracks in a page. The last page has the remaining ones.
pub(super) fn tracks(header: &Header, number: u32) -> usize {
    let each = header.tracks_of_page();
    let before = u64::from(number) * each as u64;
    (header.data_tracks - before).min(each as u64) as usize
}

/// Recomputes a structure's checksum. It is public for tests in which damaged structures must pass
/// the checksum.
pub fn reseal(bytes: &mut [u8]) {
    let crc_at = |bytes: &mut [u8], at: usize, crc: u32| {
        bytes[at..at + 4].copy_from_slice(&crc.to_le_bytes());
    };
    if bytes.starts_with(&HEADER) && bytes.len() >= HEADER_BYTES {
        let crc = crc32fast::hash(&bytes[12..HEADER_BYTES]);
        crc_at(bytes, 8, crc);
    } else if bytes.starts_with(&PAGE) && bytes.len() >= PAGE_HEAD_BYTES {
        let crc = crc32fast::hash(&bytes[8..]);
        crc_at(bytes, 4, crc);
    }
}

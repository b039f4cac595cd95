//! The mode pages of the model drive: format, geometry and caching. Only the caching page can be
//! changed.

use super::command::{ModeSense, ModeWidth, PageValues};
use super::mode::{
    ALL_PAGES, BlockDescriptor, CACHING_PAGE, CachingPage, FORMAT_PAGE, FormatPage, GEOMETRY_PAGE,
    GeometryPage, ModeData, pages,
};
use traxtent_model::drive::{Caching, Drive};

/// The current, saved and default values of the caching page.
#[derive(Clone, Debug)]
pub(super) struct ModePages {
    current: CachingPage,
    saved: CachingPage,
    default: CachingPage,
}

/// The error for invalid MODE SELECT data.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct BadParameters {
    /// The byte of the data with the invalid value, counted from 0. `None` if the data ends too
    /// early.
    pub(super) byte: Option<u16>,
}

/// The read-ahead threshold that includes reads of any length.
const ALWAYS: u16 = u16::MAX;

/// The parts of the caching page that a host can change.
const CHANGEABLE: CachingPage = CachingPage {
    write_cache: true,
    read_cache_disabled: true,
    read_ahead_disabled: true,
    prefetch_up_to: u16::MAX,
    maximum_prefetch: 0,
    segments: 0,
};

impl ModePages {
    pub(super) fn new(drive: &Drive) -> ModePages {
        let cache = &drive.profile().cache;
        let Caching {
            read,
            read_ahead,
            write_back,
        } = drive.caching();
        let default = CachingPage {
            write_cache: write_back,
            read_cache_disabled: !read,
            read_ahead_disabled: !read_ahead,
            prefetch_up_to: ALWAYS,
            maximum_prefetch: u16::try_from(cache.segment_sectors).unwrap_or(u16::MAX),
            segments: u8::try_from(cache.segments).unwrap_or(u8::MAX),
        };
        ModePages {
            current: default,
            saved: default,
            default,
        }
    }

    /// Returns the caching that applies to a read of `sectors` sectors.
    pub(super) fn caching(&self, sectors: u32) -> Caching {
        let page = &self.current;
        // A threshold of 0 disables read-ahead for all reads.
        let prefetches = page.prefetch_up_to > 0 && sectors <= page.prefetch_up_to.into();
        let prefetches = prefetches || page.prefetch_up_to == ALWAYS;
        Caching {
            read: !page.read_cache_disabled,
            read_ahead: !page.read_ahead_disabled && prefetches,
            write_back: page.write_cache,
        }
    }

    /// Returns the response to MODE SENSE, if the drive has the page.
    pub(super) fn sense(&self, drive: &Drive, sense: &ModeSense) -> Option<Vec<u8>> {
        if !matches!(sense.subpage, 0x00 | 0xff) {
            return None;
        }
        let codes: &[u8] = match sense.page {
            ALL_PAGES => &[FORMAT_PAGE, GEOMETRY_PAGE, CACHING_PAGE],
            FORMAT_PAGE => &[FORMAT_PAGE],
            GEOMETRY_PAGE => &[GEOMETRY_PAGE],
            CACHING_PAGE => &[CACHING_PAGE],
            _ => return None,
        };
        let pages: Vec<u8> = codes
            .iter()
            .flat_map(|&code| self.page(drive, code, sense.values))
            .collect();
        let data = ModeData {
            write_protected: false,
            dpo_fua: true,
            blocks: (!sense.no_block_descriptor).then(|| descriptor(drive)),
            pages: &pages,
        };
        Some(data.encode_sense(sense.width))
    }

    fn page(&self, drive: &Drive, code: u8, values: PageValues) -> Vec<u8> {
        let changeable = values == PageValues::Changeable;
        match code {
            FORMAT_PAGE if changeable => FormatPage::default().encode(),
            FORMAT_PAGE => format_page(drive).encode(),
            GEOMETRY_PAGE if changeable => GeometryPage::default().encode(),
            GEOMETRY_PAGE => geometry_page(drive).encode(),
            _ => match values {
                PageValues::Current => self.current,
                PageValues::Changeable => CHANGEABLE,
                PageValues::Default => self.default,
                PageValues::Saved => self.saved,
            }
            .encode(),
        }
    }

    /// Applies either all pages of a MODE SELECT or none.
    pub(super) fn select(
        &mut self,
        drive: &Drive,
        width: ModeWidth,
        bytes: &[u8],
        save: bool,
    ) -> Result<(), BadParameters> {
        let data = ModeData::decode(width, bytes).map_err(|_| BadParameters { byte: None })?;
        let mut at = bytes.len() - data.pages.len();
        let bad = |byte: usize| BadParameters {
            byte: Some(u16::try_from(byte).unwrap_or(u16::MAX)),
        };
        if let Some(blocks) = data.blocks {
            let ours = BlockDescriptor {
                long: blocks.long,
                ..descriptor(drive)
            };
            let same = blocks.sectors == 0 || blocks.sectors == ours.sectors;
            if !same || blocks.bytes != ours.bytes {
                let head = if width == ModeWidth::Six { 4 } else { 8 };
                return Err(bad(head));
            }
        }
        let mut current = self.current;
        for page in pages(data.pages) {
            let ours = self.page(drive, page.code, PageValues::Current);
            let known = [FORMAT_PAGE, GEOMETRY_PAGE, CACHING_PAGE].contains(&page.code);
            if !known || page.subpage != 0 {
                return Err(bad(at));
            }
            if page.bytes.len() != ours.len() {
                return Err(bad(at + 1));
            }
            let mask = self.page(drive, page.code, PageValues::Changeable);
            let fixed = (2..ours.len()).find(|&i| (page.bytes[i] ^ ours[i]) & !mask[i] != 0);
            if let Some(i) = fixed {
                return Err(bad(at + i));
            }
            if page.code == CACHING_PAGE {
                current = CachingPage::decode(page.bytes);
            }
            at += page.bytes.len();
        }
        if at != bytes.len() {
            return Err(BadParameters { byte: None });
        }
        self.current = current;
        if save {
            self.saved = current;
        }
        Ok(())
    }
}

fn descriptor(drive: &Drive) -> BlockDescriptor {
    let sectors = drive.geometry().capacity().0;
    BlockDescriptor {
        sectors: sectors.min(u32::MAX.into()),
        bytes: drive.profile().sector.logical_bytes,
        long: false,
    }
}

/// Returns the format page. It describes the tracks of the first zone, in logical sectors.
fn format_page(drive: &Drive) -> FormatPage {
    let outer = drive
        .geometry()
        .zones()
        .first()
        .map_or(0, |zone| zone.slots);
    FormatPage {
        sectors_per_track: u16::try_from(outer).unwrap_or(u16::MAX),
        bytes_per_sector: drive.profile().sector.logical_bytes as u16,
        interleave: 1,
        ..FormatPage::default()
    }
}

fn geometry_page(drive: &Drive) -> GeometryPage {
    let geometry = drive.geometry();
    let mechanics = drive.profile().mechanics.as_ref();
    GeometryPage {
        cylinders: geometry.cylinders(),
        heads: u8::try_from(geometry.surfaces()).unwrap_or(u8::MAX),
        rpm: mechanics.map_or(0, |m| m.rpm.round() as u16),
    }
}

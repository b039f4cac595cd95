//! The positions of a layout's parts on its device, and opening a layout.

use std::collections::{BTreeMap, BTreeSet};
use std::ops::Range;
use std::sync::Arc;

use super::error::TplError;
use super::format::{self, HEADER_BYTES, Header};
use super::plan::DeviceStep;
use super::shape::ReplicaMap;
use super::{Config, Tpl};
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};

/// The positions of a layout's parts.
#[derive(Clone, Debug)]
pub(super) struct LayoutPositions {
    /// The first LBN of each copy of the table.
    pub(super) areas: [Lbn; 2],
    /// The positions in the map of the data tracks.
    pub(super) data: Range<usize>,
    end: Lbn,
}

impl LayoutPositions {
    /// Places a layout on the whole tracks within a range of LBNs: the table, its second copy at
    /// the beginning of the next free track, and the data from the next free track on.
    pub(super) fn new(
        map: &TrackMap,
        range: Range<Lbn>,
        config: &Config,
    ) -> Result<LayoutPositions, TplError> {
        let Range { start, end } = range;
        let no_room = TplError::NoRoom { start, end };
        // If the range begins within a track, the layout begins with the next one.
        let at_or_after = |lbn: Lbn| match map.track_of(lbn) {
            Some(track) if track.first_lbn == lbn => Some(track.index),
            Some(track) => Some(track.index + 1),
            None => (lbn == map.end()).then_some(map.len()),
        };
        let first = at_or_after(start).ok_or_else(|| no_room.clone())?;
        let end_track = map.track_of(end).map(|track| track.index);
        let end_track = end_track.or((end == map.end()).then_some(map.len()));
        let end_track = end_track.ok_or_else(|| no_room.clone())?;
        let tracks = end_track.saturating_sub(first);
        let page_bytes = config.page_sectors as usize * config.sector_bytes as usize;
        if page_bytes < 2 * HEADER_BYTES {
            return Err(TplError::InvalidValue {
                name: "the page size in bytes",
                value: page_bytes as u64,
                expected: "an even number from 160 to 65536",
            });
        }
        let pages = Header {
            data_tracks: tracks as u64,
            ..LayoutPositions::blank(config)
        }
        .pages();
        let sectors = Sectors((1 + pages) * u64::from(config.page_sectors));
        let area = |track: usize| -> Option<(Lbn, usize)> {
            let at = map.track(track)?.first_lbn;
            let next = at_or_after(at + sectors)?;
            (next < end_track).then_some((at, next))
        };
        let areas = area(first).and_then(|(a, next)| Some(([a, area(next)?.0], area(next)?.1)));
        let (areas, data) = areas.ok_or(no_room)?;
        Ok(LayoutPositions {
            areas,
            data: data..end_track,
            end: map
                .track(end_track)
                .map_or(map.end(), |track| track.first_lbn),
        })
    }

    /// Returns the header of a layout placed here.
    pub(super) fn header(&self, map: &TrackMap, config: &Config) -> Header {
        Header {
            first: self.areas[0],
            end: self.end,
            map_tracks: map.len() as u64,
            map_hash: format::hash(map),
            data_tracks: self.data.len() as u64,
            ..LayoutPositions::blank(config)
        }
    }

    fn blank(config: &Config) -> Header {
        Header {
            id: config.id,
            first: Lbn(0),
            end: Lbn(0),
            map_tracks: 0,
            map_hash: 0,
            sector_bytes: config.sector_bytes,
            page_sectors: config.page_sectors,
            block_sectors: config.block_sectors,
            bounds: config.bounds,
            regions: config.regions,
            data_tracks: 0,
        }
    }
}

/// A layout that was opened.
#[derive(Clone, Debug)]
pub struct Opened {
    /// The layout.
    pub tpl: Tpl,
    /// The steps to carry out, in order, before the layout is used. They rewrite copies of the
    /// table that are out of date or damaged.
    pub repairs: Vec<DeviceStep>,
}

/// Reads sectors, or returns `None` if they cannot be read.
type Read<'a> = dyn FnMut(Lbn, Sectors) -> Option<Vec<u8>> + 'a;

impl Tpl {
    /// Opens the layout that begins with the first whole track of a range.
    ///
    /// # Errors
    /// Returns an error if the map does not cover the beginning of the range or has changed, if
    /// there is no intact header or its values do not match the map, or if both copies of a page of
    /// the table are unusable.
    pub fn open(
        map: impl Into<Arc<TrackMap>>,
        range: Range<Lbn>,
        sector_bytes: u32,
        read: &mut Read<'_>,
    ) -> Result<Opened, TplError> {
        let map = map.into();
        let (header, first_is_whole) = find_header(&map, &range, sector_bytes, read)?;
        let hash = format::hash(&map);
        if (header.map_tracks, header.map_hash) != (map.len() as u64, hash) {
            return Err(TplError::OtherMap {
                theirs_tracks: header.map_tracks,
                theirs: header.map_hash,
                ours_tracks: map.len() as u64,
                ours: hash,
            });
        }
        let config = Config {
            id: header.id,
            sector_bytes: header.sector_bytes,
            page_sectors: header.page_sectors,
            block_sectors: header.block_sectors,
            bounds: header.bounds,
            regions: header.regions,
        };
        let place = LayoutPositions::new(&map, header.first..header.end, &config)?;
        if place.header(&map, &config) != header {
            return Err(wrong("its values do not match its map"));
        }
        let shape = ReplicaMap::new(
            map,
            place.data,
            header.block_sectors,
            header.bounds,
            header.regions,
        )?;
        let mut tpl = Tpl {
            header,
            shape,
            areas: place.areas,
            pages: Vec::new(),
            stale: BTreeMap::new(),
            unsynced: BTreeMap::new(),
            filled: BTreeSet::new(),
            busy: None,
        };
        let mut repairs = Vec::new();
        tpl.load(&mut repairs, read)?;
        for copy in 0..2 {
            let whole = if copy == 0 {
                first_is_whole
            } else {
                let sectors = Sectors(header.page_sectors.into());
                let bytes = read(tpl.areas[1], sectors);
                bytes.is_some_and(|bytes| Header::decode(&bytes) == Ok(header))
            };
            if !whole {
                repairs.push(DeviceStep::Table {
                    lbn: tpl.areas[copy],
                    bytes: header.encode(),
                });
            }
        }
        if !repairs.is_empty() {
            repairs.push(DeviceStep::Flush);
        }
        Ok(Opened { tpl, repairs })
    }

    /// Loads the pages of the table from its two copies. Adds the steps that rewrite copies of
    /// pages that are out of date or damaged.
    fn load(&mut self, repairs: &mut Vec<DeviceStep>, read: &mut Read<'_>) -> Result<(), TplError> {
        let header = self.header;
        let pages = header.pages() as u32;
        let page_sectors = u64::from(header.page_sectors);
        let page_bytes = header.page_bytes();
        let mut area = |copy: usize| {
            let first = self.page_lbn(copy, 0);
            read(first, Sectors(u64::from(pages) * page_sectors)).or_else(|| {
                // Read page by page; a page that cannot be read counts as zeros.
                let mut bytes = Vec::new();
                for number in 0..pages {
                    let page = read(self.page_lbn(copy, number), Sectors(page_sectors));
                    bytes.extend(page.unwrap_or_default());
                    bytes.resize(page_bytes * (number as usize + 1), 0);
                }
                Some(bytes)
            })
        };
        let copies = [area(0), area(1)].map(Option::unwrap_or_default);
        for number in 0..pages {
            let from = page_bytes * number as usize;
            let page = |copy: usize| {
                let bytes = copies[copy].get(from..).unwrap_or_default();
                format::decode(&header, number, bytes)
            };
            let (page, outdated) = match (page(0), page(1)) {
                // The first copy is written first.
                (Ok(first), Ok(second)) if first == second => (first, None),
                (Ok(first), Ok(second)) if first.generation < second.generation => {
                    (second, Some(0))
                }
                (Ok(first), _) => (first, Some(1)),
                (Err(_), Ok(second)) => (second, Some(0)),
                (Err(first), Err(second)) => {
                    return Err(TplError::PageLost {
                        page: number,
                        first,
                        second,
                    });
                }
            };
            if let Some(copy) = outdated {
                repairs.push(self.table_step(copy, number, &page));
            }
            if page.open {
                let tracks = format::tracks(&header, number);
                self.unsynced.insert(number, vec![true; tracks]);
            }
            self.pages.push(page);
        }
        Ok(())
    }
}

/// Finds a header. Returns the first copy if it is intact, or else the second, and whether it is
/// the first.
fn find_header(
    map: &TrackMap,
    range: &Range<Lbn>,
    sector_bytes: u32,
    read: &mut Read<'_>,
) -> Result<(Header, bool), TplError> {
    let sectors = Sectors((HEADER_BYTES as u64).div_ceil(u64::from(sector_bytes.max(1))));
    let first = map.track_of(range.start);
    let first =
        first.ok_or_else(|| wrong("the map does not cover the range in which it is sought"))?;
    let first = first.index + usize::from(first.first_lbn < range.start);
    let mut problem = wrong("it cannot be read");
    for index in first..map.len() {
        let Some(track) = map.track(index).filter(|track| track.end() <= range.end) else {
            break;
        };
        // The second copy follows after as many tracks as the first one takes.
        let bytes = read(track.first_lbn, sectors);
        let found = bytes.map(|bytes| Header::decode(&bytes));
        let begins = map.track(first).map(|track| track.first_lbn);
        match found {
            Some(Ok(header)) if Some(header.first) == begins => {
                return Ok((header, index == first));
            }
            Some(Err(error)) if index == first => problem = error,
            _ => {}
        }
        if index - first >= TABLE_TRACKS_MAX {
            break;
        }
    }
    Err(problem)
}

/// The second copy of the header is searched for on this many tracks after the first one's. With
/// two bytes per track, a copy of the table for ten million tracks has about 20 MB, which is 200
/// tracks of 100 KB.
const TABLE_TRACKS_MAX: usize = 1024;

fn wrong(problem: &'static str) -> TplError {
    TplError::Format {
        what: "the header of a track partition layout",
        problem,
    }
}

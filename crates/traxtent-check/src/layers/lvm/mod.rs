//! Physical volumes of LVM2: a label, the positions of data and metadata, and the volume group as
//! text.
//!
//! Sources: lib/format_text/layout.h and lib/label/label.h of LVM2; the manual pages of lvm2 for
//! the terms. Checksums are not verified; the consistency of the text is checked instead.

mod group;
mod text;

pub use group::{Area, Group, Physical, Segment, Volume};

use super::error::{LayerError, Parsed, contradiction};
use super::fields::{Fields, header};
use crate::layers::PhysicalVolume;
use crate::source::Source;

const SECTOR_BYTES: u64 = 512;
/// The number of sectors at the start, one of which holds the label.
const LABEL_SECTORS: u64 = 4;
/// The maximum number of metadata areas or of data areas: LVM writes one or two of each.
const AREAS_MAX: usize = 15;
/// The maximum length of a text.
const TEXT_BYTES_MAX: u64 = 16 << 20;
/// The flag of a metadata area that LVM ignores.
const IGNORED: u32 = 1;
/// The offset of the ring buffer in a metadata area, after a sector of pointers.
const RING_AT: u64 = SECTOR_BYTES;

/// Parses the label, and the volume group if there is one.
///
/// # Errors
/// Returns an error if the bytes cannot be read, or if they are inconsistent.
pub fn parse(source: &dyn Source) -> Parsed<(PhysicalVolume, Option<Group>)> {
    for sector in 0..LABEL_SECTORS {
        let Some(label) = header(source, sector * SECTOR_BYTES, 512)? else {
            break;
        };
        let fields = Fields(&label);
        let is_label = label.starts_with(b"LABELONE") && label[24..32] == *b"LVM2 001";
        if is_label && fields.le64(8) == sector {
            return volume(source, &label).map(Some);
        }
    }
    Ok(None)
}

fn wrong(problem: impl Into<String>) -> LayerError {
    contradiction("LVM2", problem)
}

fn volume(
    source: &dyn Source,
    label: &[u8],
) -> Result<(PhysicalVolume, Option<Group>), LayerError> {
    let at = Fields(label).le32(20) as usize;
    let Some(pv) = label.get(at..).filter(|pv| at >= 32 && pv.len() >= 40) else {
        return Err(wrong(format!(
            "its label states an invalid offset of the volume: byte {at} of its sector"
        )));
    };
    let id = Fields(pv).word(0, 32);
    let (data, rest) = areas(&pv[40..])?;
    let (metadata, _) = areas(rest)?;
    let mut physical = PhysicalVolume {
        uuid: group::dashed(&id),
        group: None,
        data_start: data.first().map_or(0, |(start, _)| *start),
        extent_bytes: 0,
        sequence: 0,
        group_sequence: 0,
    };
    let mut latest: Option<Group> = None;
    for (start, bytes) in metadata {
        if let Some(text) = metadata_text(source, start, bytes)? {
            let group = Group::parse(&text)?;
            if latest
                .as_ref()
                .is_none_or(|latest| latest.sequence < group.sequence)
            {
                latest = Some(group);
            }
        }
    }
    if let Some(group) = &latest {
        let own = group.physical.iter().find(|own| own.uuid == physical.uuid);
        let own =
            own.ok_or_else(|| wrong(format!("group {} does not list this volume", group.name)))?;
        physical.sequence = group.sequence;
        physical.join(group, own);
    }
    Ok((physical, latest))
}

impl PhysicalVolume {
    /// Adds the facts that the metadata of its group states; `own` is its entry there.
    pub(crate) fn join(&mut self, group: &Group, own: &Physical) {
        self.group = Some(group.name.clone());
        self.data_start = own.data_start;
        self.extent_bytes = group.extent_bytes;
        self.group_sequence = group.sequence;
    }
}

/// The first byte and the length of each area.
type Areas = Vec<(u64, u64)>;

/// Parses a list of areas that ends with a pair of zeros, and returns it with the bytes after it.
fn areas(mut bytes: &[u8]) -> Result<(Areas, &[u8]), LayerError> {
    let mut areas = Vec::new();
    while areas.len() <= AREAS_MAX && bytes.len() >= 16 {
        let (pair, rest) = bytes.split_at(16);
        bytes = rest;
        let fields = Fields(pair);
        match (fields.le64(0), fields.le64(8)) {
            (0, 0) => return Ok((areas, bytes)),
            area => areas.push(area),
        }
    }
    Err(wrong("its list of areas has no end"))
}

/// Returns the text in a metadata area, if there is any. LVM does not update areas that are flagged
/// as ignored (`pvchange --metadataignore y`), so their text may be old.
fn metadata_text(source: &dyn Source, start: u64, bytes: u64) -> Parsed<String> {
    let Some(sector) = header(source, start, 512)? else {
        return Err(wrong(format!(
            "its metadata would be at byte {start}, which cannot be read"
        )));
    };
    if sector[4..20] != *b" LVM2 x[5A%r0N*>" {
        return Err(wrong(format!("there is no metadata area at byte {start}")));
    }
    let fields = Fields(&sector);
    let (offset, count) = (fields.le64(40), fields.le64(48));
    if count == 0 || fields.le32(60) & IGNORED != 0 {
        return Ok(None);
    }
    if count > TEXT_BYTES_MAX || offset < RING_AT || offset >= bytes || count > bytes - RING_AT {
        return Err(wrong(format!(
            "its text of {count} bytes at offset {offset} does not fit an area of {bytes} bytes"
        )));
    }
    let before_wrap = count.min(bytes - offset);
    let at = |offset: u64| {
        start
            .checked_add(offset)
            .ok_or_else(|| wrong(format!("a metadata area at byte {start} ends beyond 2^64")))
    };
    let mut text = source.read(at(offset)?, before_wrap as usize)?;
    text.extend(source.read(at(RING_AT)?, (count - before_wrap) as usize)?);
    let text = String::from_utf8(text).map_err(|_| wrong("its text is not UTF-8"))?;
    Ok(Some(text.trim_end_matches('\0').to_owned()))
}

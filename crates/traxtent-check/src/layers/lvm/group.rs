//! A volume group as its metadata describes it: physical volumes, logical volumes, and the places
//! of each segment.

use super::super::error::LayerError;
use super::text::{self, Value};
use super::{SECTOR_BYTES, wrong};

/// A volume group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The name.
    pub name: String,
    /// The UUID.
    pub uuid: String,
    /// The version of the metadata, which increases with every change.
    pub sequence: u64,
    /// The size of an extent in bytes.
    pub extent_bytes: u64,
    /// The physical volumes.
    pub physical: Vec<Physical>,
    /// The logical volumes, including hidden ones.
    pub volumes: Vec<Volume>,
}

/// A physical volume as its group describes it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Physical {
    /// The name in the text: `pv0`.
    pub name: String,
    /// The UUID.
    pub uuid: String,
    /// The offset of the first extent in bytes.
    pub data_start: u64,
}

/// A logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// The name.
    pub name: String,
    /// The UUID.
    pub uuid: String,
    /// Whether users see it; parts of other volumes are hidden.
    pub visible: bool,
    /// The segments, one after another.
    pub segments: Vec<Segment>,
}

/// A range of a logical volume with a uniform layout.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The type as LVM writes it: `striped`, `raid5`, `thin-pool`.
    pub kind: String,
    /// The number of extents.
    pub extents: u64,
    /// The size of a chunk in bytes for stripes and pools, else 0.
    pub chunk_bytes: u64,
    /// The places of its parts.
    pub areas: Vec<Area>,
}

/// The place of a part of a segment.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Area {
    /// Extents of a physical volume.
    Physical {
        /// The UUID of the volume.
        uuid: String,
        /// The first extent.
        extent: u64,
    },
    /// Extents of another logical volume.
    Logical {
        /// The name of the volume.
        name: String,
        /// The first extent.
        extent: u64,
    },
}

impl Group {
    /// Parses the text of a group.
    ///
    /// # Errors
    /// Returns an error if something is missing or inconsistent.
    pub fn parse(metadata: &str) -> Result<Group, LayerError> {
        let root = text::parse(metadata)?;
        let mut sections = root.entries().iter();
        let (name, group) = sections
            .find(|(_, value)| value.get("physical_volumes").is_some())
            .ok_or_else(|| wrong("its text has no volume group"))?;
        let extent_bytes = number(group, "extent_size")?
            .checked_mul(SECTOR_BYTES)
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| wrong("its extent size is zero or too large"))?;
        let sections = |key| group.get(key).map_or(&[][..], Value::entries);
        let physical = sections("physical_volumes")
            .iter()
            .map(|(name, value)| {
                Ok(Physical {
                    name: name.clone(),
                    uuid: word(value, "id")?,
                    data_start: number(value, "pe_start")?.saturating_mul(SECTOR_BYTES),
                })
            })
            .collect::<Result<Vec<_>, LayerError>>()?;
        let volumes = sections("logical_volumes")
            .iter()
            .map(|(name, value)| volume(name, value, &physical))
            .collect::<Result<_, _>>()?;
        Ok(Group {
            name: name.clone(),
            uuid: word(group, "id")?,
            sequence: number(group, "seqno")?,
            extent_bytes,
            physical,
            volumes,
        })
    }
}

fn number(section: &Value, key: &str) -> Result<u64, LayerError> {
    let number = section.number(key);
    number.ok_or_else(|| wrong(format!("its text lacks the number {key}")))
}

fn word(section: &Value, key: &str) -> Result<String, LayerError> {
    let word = section.text(key).map(str::to_owned);
    word.ok_or_else(|| wrong(format!("its text lacks the word {key}")))
}

fn volume(name: &str, value: &Value, physical: &[Physical]) -> Result<Volume, LayerError> {
    let visible = Value::Text("VISIBLE".to_owned());
    let mut segments = Vec::new();
    for (_, segment) in value
        .entries()
        .iter()
        .filter(|(_, value)| value.get("extent_count").is_some())
    {
        segments.push((
            number(segment, "start_extent")?,
            self::segment(segment, physical)?,
        ));
    }
    segments.sort_by_key(|(start, _)| *start);
    Ok(Volume {
        name: name.to_owned(),
        uuid: word(value, "id")?,
        visible: value.list("status").contains(&visible),
        segments: segments.into_iter().map(|(_, segment)| segment).collect(),
    })
}

fn segment(value: &Value, physical: &[Physical]) -> Result<Segment, LayerError> {
    let chunk = ["stripe_size", "chunk_size"]
        .iter()
        .find_map(|key| value.number(key));
    let mut areas = Vec::new();
    // Stripes and mirrors list pairs of a place and its first extent.
    for key in ["stripes", "mirrors"] {
        for pair in value.list(key).chunks_exact(2) {
            let (Value::Text(name), Value::Number(extent)) = (&pair[0], &pair[1]) else {
                return Err(wrong(format!(
                    "its text has {pair:?} where a place should be"
                )));
            };
            areas.push(area(name, *extent, physical));
        }
    }
    // RAID lists pairs of a metadata volume and a data volume.
    for pair in value.list("raids").chunks_exact(2) {
        if let Value::Text(name) = &pair[1] {
            areas.push(area(name, 0, physical));
        }
    }
    for key in ["pool", "thin_pool", "origin", "cache_pool"] {
        areas.extend(value.text(key).map(|name| area(name, 0, physical)));
    }
    Ok(Segment {
        kind: word(value, "type")?,
        extents: number(value, "extent_count")?,
        chunk_bytes: chunk.unwrap_or(0).saturating_mul(SECTOR_BYTES),
        areas,
    })
}

fn area(name: &str, extent: u64, physical: &[Physical]) -> Area {
    match physical.iter().find(|volume| volume.name == name) {
        Some(volume) => Area::Physical {
            uuid: volume.uuid.clone(),
            extent,
        },
        None => Area::Logical {
            name: name.to_owned(),
            extent,
        },
    }
}

/// Formats a UUID as in the text: 6-4-4-4-4-4-6 letters.
pub(super) fn dashed(id: &str) -> String {
    let mut text = String::new();
    for (index, letter) in id.chars().enumerate() {
        if matches!(index, 6 | 10 | 14 | 18 | 22 | 26) {
            text.push('-');
        }
        text.push(letter);
    }
    text
}

//! A volume group as its metadata tell it: physical volumes, logical ones, and what each segment lies on.

use super::super::error::LayerError;
use super::text::{self, Value};
use super::{SECTOR, wrong};

/// A volume group.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Bytes of an extent.
    pub extent_bytes: u64,
    /// Its physical volumes.
    pub physical: Vec<Physical>,
    /// Its logical volumes, hidden ones too.
    pub volumes: Vec<Volume>,
}

/// A physical volume as its group knows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Physical {
    /// Its name in the text: `pv0`.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Where its first extent begins, in bytes.
    pub data_start: u64,
}

/// A logical volume.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Volume {
    /// Its name.
    pub name: String,
    /// Its UUID.
    pub uuid: String,
    /// Whether it is for use, not a part of another.
    pub visible: bool,
    /// Its segments, one behind another.
    pub segments: Vec<Segment>,
}

/// A range of a logical volume that is laid out in one way.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Segment {
    /// The type as LVM writes it: `striped`, `raid5`, `thin-pool`.
    pub kind: String,
    /// How many extents.
    pub extents: u64,
    /// Bytes of a chunk, of stripes and pools; else 0.
    pub chunk_bytes: u64,
    /// Where it lies.
    pub areas: Vec<Area>,
}

/// Where a part of a segment lies.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Area {
    /// On a physical volume, from an extent on.
    Physical {
        /// Its UUID.
        uuid: String,
        /// The first extent.
        extent: u64,
    },
    /// On another logical volume, from an extent on.
    Logical {
        /// Its name.
        name: String,
        /// The first extent.
        extent: u64,
    },
}

impl Group {
    /// Reads the text of a group.
    ///
    /// # Errors
    /// If something is missing, or does not fit together.
    pub fn parse(metadata: &str) -> Result<Group, LayerError> {
        let root = text::parse(metadata)?;
        let mut sections = root.entries().iter();
        let (name, group) = sections
            .find(|(_, value)| value.get("physical_volumes").is_some())
            .ok_or_else(|| wrong("its text has no volume group"))?;
        let extent_bytes = number(group, "extent_size")?
            .checked_mul(SECTOR)
            .filter(|&bytes| bytes > 0)
            .ok_or_else(|| wrong("its extents would have no length, or too great a one"))?;
        let sections = |key| group.get(key).map_or(&[][..], Value::entries);
        let physical = sections("physical_volumes")
            .iter()
            .map(|(name, value)| {
                Ok(Physical {
                    name: name.clone(),
                    uuid: word(value, "id")?,
                    data_start: number(value, "pe_start")?.saturating_mul(SECTOR),
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
    // Stripes and mirrors name a place and its first extent in turn.
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
    // RAID names the volumes of metadata and of data in turn.
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
        chunk_bytes: chunk.unwrap_or(0).saturating_mul(SECTOR),
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

/// A UUID as the text writes it: 6-4-4-4-4-4-6 letters.
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

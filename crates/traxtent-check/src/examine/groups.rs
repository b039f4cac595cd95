//! Volume groups: the places of logical volumes on physical ones, from the metadata.

use std::cmp::Reverse;
use std::collections::BTreeMap;
use std::rc::Rc;

use super::{Bytes, DEPTH_MAX, Examiner, GroupParts, LAYERS_MAX};
use crate::layers::lvm::{Area, Group, Segment, Volume};
use crate::layers::{LogicalVolume, RaidLevel, ThinPool, Unknown};
use crate::source::{JoinedSource, Source};
use crate::stack::{ByteRange, Kind, Layer, LayerId, Spread};
use crate::stripes::Stripes;

/// The layer and the bytes of each volume of a group. `None` while the volume is being added.
type Built = BTreeMap<String, Option<(LayerId, Bytes)>>;

/// The places, the spread and the bytes of a layer before it is added.
struct VolumeLayout {
    on: Vec<ByteRange>,
    spread: Spread,
    bytes: Bytes,
}

impl Examiner<'_> {
    /// Returns a group with its physical volumes, and enters the facts of its metadata in their
    /// layers.
    pub(super) fn group_parts(&mut self, group: Group, depth: usize) -> GroupParts {
        let mut volumes = BTreeMap::new();
        for found in &self.physical {
            if let Kind::PhysicalVolume(volume) = &mut self.stack.layers[found.layer.0].kind
                && found.group.as_ref() == Some(&group.uuid)
            {
                volume.group_sequence = group.sequence;
            }
        }
        for own in &group.physical {
            // Of several copies, the one with the latest metadata counts, then one without any.
            let copies = self.physical.iter().filter(|found| found.uuid == own.uuid);
            let Some(found) = copies.min_by_key(|found| {
                let is_old = found.sequence != group.sequence;
                (
                    is_old && found.sequence > 0,
                    is_old,
                    Reverse(found.sequence),
                )
            }) else {
                continue;
            };
            if let Kind::PhysicalVolume(volume) = &mut self.stack.layers[found.layer.0].kind {
                volume.join(&group, own);
            }
            volumes.insert(own.uuid.clone(), (found.layer, Rc::clone(&found.source)));
        }
        GroupParts {
            group,
            depth,
            volumes,
        }
    }

    pub(super) fn volumes(&mut self, on: GroupParts) {
        let mut built = Built::new();
        for volume in &on.group.volumes {
            self.volume(&on, volume, &mut built, 0);
        }
        for volume in on.group.volumes.iter().filter(|volume| volume.visible) {
            let is_pool = volume
                .segments
                .iter()
                .any(|segment| segment.kind == "thin-pool");
            if let Some(Some((layer, bytes))) = built.remove(&volume.name)
                && !is_pool
            {
                self.examine_layer(layer, bytes, on.depth + 1);
            }
        }
    }

    /// Adds a volume after the volumes that it lies on.
    fn volume(&mut self, on: &GroupParts, volume: &Volume, built: &mut Built, depth: usize) {
        let is_too_much = depth > DEPTH_MAX || self.stack.layers.len() > LAYERS_MAX;
        if is_too_much || built.contains_key(&volume.name) {
            return;
        }
        // A volume that is being added is already in the map, which ends circular references.
        built.insert(volume.name.clone(), None);
        for area in volume.segments.iter().flat_map(|segment| &segment.areas) {
            if let Area::Logical { name, .. } = area
                && let Some(below) = on.group.volumes.iter().find(|volume| volume.name == *name)
            {
                self.volume(on, below, built, depth + 1);
            }
        }
        let layout = lay_out(on, volume, built);
        let extents = volume.segments.iter().map(|segment| segment.extents);
        let stated = extents
            .fold(0u64, u64::saturating_add)
            .saturating_mul(on.group.extent_bytes);
        let device = self.mapped(on, volume);
        let bytes = match &device {
            Some((name, _)) => self
                .nodes
                .expect("the device was found on the machine")
                .open(name),
            None => layout.bytes,
        };
        let layer = Layer {
            name: format!("{}/{}", on.group.name, volume.name),
            node: device.as_ref().and_then(|(name, _)| self.node(name)),
            bytes: stated,
            on: layout.on,
            spread: layout.spread,
            limits: device.map(|(_, device)| device.limits),
            kind: kind(&on.group.name, volume),
        };
        let layer = self.push(layer);
        built.insert(volume.name.clone(), Some((layer, bytes)));
    }

    fn mapped(&self, on: &GroupParts, volume: &Volume) -> Option<(String, crate::sysfs::Device)> {
        let plain = |uuid: &str| uuid.replace('-', "");
        let uuid = format!("LVM-{}{}", plain(&on.group.uuid), plain(&volume.uuid));
        let (name, device) = self.nodes?.machine.mapped(&uuid)?;
        Some((name.to_owned(), device.clone()))
    }
}

fn kind(group: &str, volume: &Volume) -> Kind {
    let Some(first) = volume.segments.first() else {
        return Kind::LogicalVolume(LogicalVolume {
            group: group.to_owned(),
            segment: "empty".to_owned(),
            chunk_bytes: 0,
            stripe_bytes: 0,
        });
    };
    if first.kind == "thin-pool" {
        return Kind::ThinPool(ThinPool {
            group: group.to_owned(),
            chunk_bytes: first.chunk_bytes,
        });
    }
    let striped = data_chunks(first) > 1;
    let chunk_bytes = if striped { first.chunk_bytes } else { 0 };
    Kind::LogicalVolume(LogicalVolume {
        group: group.to_owned(),
        segment: if first.kind == "striped" && !striped {
            "linear"
        } else {
            &first.kind
        }
        .to_owned(),
        chunk_bytes,
        stripe_bytes: chunk_bytes.saturating_mul(data_chunks(first)),
    })
}

/// Returns the number of data chunks in a stripe of a segment; 0 if it has no stripes.
fn data_chunks(segment: &Segment) -> u64 {
    let areas = segment.areas.len() as u64;
    let kind = segment.kind.as_str();
    match kind {
        "striped" | "raid0" | "raid0_meta" => areas,
        "raid10" | "raid10_near" => areas / 2,
        _ if kind.starts_with("raid4") || kind.starts_with("raid5") => areas.saturating_sub(1),
        _ if kind.starts_with("raid6") => areas.saturating_sub(2),
        _ => 0,
    }
}

fn lay_out(on: &GroupParts, volume: &Volume, built: &Built) -> VolumeLayout {
    let unavailable = |reason: &str| VolumeLayout {
        on: Vec::new(),
        spread: Spread::Scattered,
        bytes: Err(Unknown::Elsewhere(reason.to_owned())),
    };
    let [segments @ .., last] = volume.segments.as_slice() else {
        return unavailable("it has no segments");
    };
    let is_linear = |segment: &Segment| segment.kind == "striped" && segment.areas.len() == 1;
    if segments.iter().all(is_linear) && is_linear(last) {
        return joined(on, volume, built);
    }
    let places: Option<Vec<ByteRange>> = last
        .areas
        .iter()
        .map(|area| place(on, area, last, built))
        .collect();
    let Some(places) = places else {
        return unavailable("it lies on a volume that is not available");
    };
    let alone = segments.is_empty();
    let chunks = data_chunks(last);
    let (spread, bytes) = match last.kind.as_str() {
        "raid1" | "mirror" if alone => (Spread::Mirrored, first_of(last, built)),
        "thin-pool" if alone => (Spread::Joined, Err(closed("thin-pool"))),
        _ if alone && chunks > 0 && last.chunk_bytes > 0 => {
            let bytes = match last.kind.as_str() {
                "striped" => striped(on, last, &places),
                kind => Err(closed(kind)),
            };
            let spread = Spread::Striped {
                chunk_bytes: last.chunk_bytes,
                data_chunks: u32::try_from(chunks).unwrap_or(u32::MAX),
            };
            (spread, bytes)
        }
        kind => (Spread::Scattered, Err(closed(kind))),
    };
    VolumeLayout {
        on: places,
        spread,
        bytes,
    }
}

fn closed(kind: &str) -> Unknown {
    let reason =
        format!("a volume of type {kind} can be examined only if the kernel has opened it");
    Unknown::Elsewhere(reason)
}

/// Returns the bytes of a striped segment on physical volumes.
fn striped(on: &GroupParts, segment: &Segment, places: &[ByteRange]) -> Bytes {
    let member = |(area, place): (&Area, &ByteRange)| match area {
        Area::Physical { uuid, .. } => {
            let (_, source) = on.volumes.get(uuid)?;
            Some((Rc::clone(source), place.start))
        }
        Area::Logical { .. } => None,
    };
    Ok(Rc::new(Stripes {
        level: RaidLevel::Raid0,
        layout: 0,
        chunk_bytes: segment.chunk_bytes,
        bytes: segment.extents.saturating_mul(on.group.extent_bytes),
        members: segment.areas.iter().zip(places).map(member).collect(),
    }))
}

fn first_of(segment: &Segment, built: &Built) -> Bytes {
    match segment.areas.first() {
        Some(Area::Logical { name, .. }) => match built.get(name) {
            Some(Some((_, bytes))) => bytes.clone(),
            _ => Err(Unknown::Elsewhere(
                "its mirrors are not available".to_owned(),
            )),
        },
        _ => Err(Unknown::Elsewhere(
            "its mirrors are not available".to_owned(),
        )),
    }
}

/// Returns the layout of a volume of linear segments, joined in order.
fn joined(on: &GroupParts, volume: &Volume, built: &Built) -> VolumeLayout {
    let mut places = Vec::new();
    let mut pieces = JoinedSource::new();
    let mut is_complete = true;
    for segment in &volume.segments {
        let area = &segment.areas[0];
        let bytes = segment.extents.saturating_mul(on.group.extent_bytes);
        let Some(place) = place(on, area, segment, built) else {
            is_complete = false;
            pieces = pieces.with(None, 0, bytes);
            continue;
        };
        let source = match area {
            Area::Physical { uuid, .. } => {
                on.volumes.get(uuid).map(|(_, source)| Rc::clone(source))
            }
            Area::Logical { name, .. } => match built.get(name) {
                Some(Some((_, Ok(source)))) => Some(Rc::clone(source)),
                _ => None,
            },
        };
        places.push(place);
        pieces = pieces.with(source, place.start, bytes);
    }
    let bytes: Rc<dyn Source> = Rc::new(pieces);
    VolumeLayout {
        on: places,
        // If a piece is missing, the places of the bytes after it are wrong.
        spread: if is_complete {
            Spread::Joined
        } else {
            Spread::Scattered
        },
        bytes: Ok(bytes),
    }
}

fn place(on: &GroupParts, area: &Area, segment: &Segment, built: &Built) -> Option<ByteRange> {
    let parts = data_chunks(segment).max(1);
    let bytes = (segment.extents / parts).saturating_mul(on.group.extent_bytes);
    match area {
        Area::Physical { uuid, extent } => {
            let own = on.group.physical.iter().find(|own| own.uuid == *uuid)?;
            let start = own
                .data_start
                .checked_add(extent.checked_mul(on.group.extent_bytes)?)?;
            let (layer, _) = on.volumes.get(uuid)?;
            Some(ByteRange {
                layer: *layer,
                start,
                bytes,
            })
        }
        Area::Logical { name, extent } => {
            let Some(Some((layer, _))) = built.get(name) else {
                return None;
            };
            Some(ByteRange {
                layer: *layer,
                start: extent.checked_mul(on.group.extent_bytes)?,
                bytes,
            })
        }
    }
}

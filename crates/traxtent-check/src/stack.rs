//! The layers that were found, and the position of each on the layers below it.
//!
//! A [`Stack`] is a list in which a layer comes after every layer that it lies on, which rules out
//! cycles. An array or a volume may lie on several layers at once.

use serde::{Deserialize, Serialize};

use crate::layers::{
    self, Array, Btrfs, Disk, Ext, LogicalVolume, Luks, MappedDevice, MdMember, Partition,
    PhysicalVolume, Swap, Table, ThinPool, Unknown, Xfs, Zfs,
};

/// The reasons why a stack that was read from a file is invalid.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// A layer lies on one that does not come before it.
    #[error("layer {layer} lies on layer {on}, which does not come before it")]
    Order {
        /// The position of the layer.
        layer: usize,
        /// The position of the layer that it lies on.
        on: usize,
    },
    /// A layer lies on a number of layers that its kind does not allow.
    #[error("layer {layer}: a {what} cannot lie on {count} layers")]
    PlaceCount {
        /// The position of the layer.
        layer: usize,
        /// The number of layers that it lies on.
        count: usize,
        /// The kind of layer.
        what: &'static str,
    },
    /// A size is out of bounds.
    #[error("layer {layer}: {what} of {value} is out of bounds; {low} to {high} are allowed")]
    Size {
        /// The position of the layer.
        layer: usize,
        /// The name of the size.
        what: &'static str,
        /// The value of the size.
        value: u64,
        /// The lower bound.
        low: u64,
        /// The upper bound.
        high: u64,
    },
}

/// The position of a layer in its [`Stack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LayerId(pub usize);

/// All layers that were found.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The layers. Each lies only on layers before it.
    pub layers: Vec<Layer>,
}

/// One layer of a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// A name for the user: `sda`, `disk.img`, `partition 2`, `md0`, `ext4`.
    pub name: String,
    /// The block device of the layer, if there is one: `/dev/sda2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// The length of the layer in bytes.
    pub bytes: u64,
    /// The places that the layer lies on. Empty for a disk, and for a volume if they are not known.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<ByteRange>,
    /// The distribution of the layer's addresses over its places.
    #[serde(default)]
    pub spread: Spread,
    /// The kernel's limits for the block device of the layer.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// The kind of layer, with the data of that kind.
    #[serde(flatten)]
    pub kind: Kind,
}

/// A range of bytes of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct ByteRange {
    /// The layer that holds the range.
    pub layer: LayerId,
    /// The first byte of the range.
    pub start: u64,
    /// The length of the range in bytes.
    pub bytes: u64,
}

/// The distribution of a layer's addresses over its places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Spread {
    /// One place after another.
    #[default]
    Joined,
    /// Every place holds all of the data.
    Mirrored,
    /// Chunks that are distributed over the places in rotation.
    Striped {
        /// The size of a chunk in bytes.
        chunk_bytes: u64,
        /// The number of data chunks in a stripe.
        data_chunks: u32,
    },
    /// The rule is unknown, as in a thin volume.
    Scattered,
}

/// The kernel's limits for a block device, from `/sys/class/block/NAME/queue` and its parent
/// directory.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// `logical_block_size`.
    pub logical_bytes: Option<u64>,
    /// `physical_block_size`.
    pub physical_bytes: Option<u64>,
    /// `minimum_io_size`.
    pub io_min_bytes: Option<u64>,
    /// `optimal_io_size`; 0 means not reported.
    pub io_opt_bytes: Option<u64>,
    /// `alignment_offset`: the distance to the first aligned byte; -1 if the kernel cannot compute
    /// it.
    pub alignment_offset: Option<i64>,
    /// `discard_granularity`.
    pub discard_bytes: Option<u64>,
    /// `rotational`.
    pub rotational: Option<bool>,
    /// `zoned`: none, host-aware or host-managed.
    pub zoned: Option<String>,
}

/// The kind of a layer.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// A drive, or an image of one.
    Disk(Disk),
    /// A partition table; its addresses are those of the layer below.
    Table(Table),
    /// An entry of a partition table.
    Partition(Partition),
    /// A member of an md array; its addresses are those of the layer below.
    MdMember(MdMember),
    /// An md array.
    Array(Array),
    /// A physical volume of LVM2; its addresses are those of the layer below.
    PhysicalVolume(PhysicalVolume),
    /// A logical volume of LVM2.
    LogicalVolume(LogicalVolume),
    /// A pool of LVM2 from which thin volumes take chunks.
    ThinPool(ThinPool),
    /// A LUKS header; its addresses are those of the layer below.
    Luks(Luks),
    /// A block device that the kernel has made from others by device mapper: `dm-3`.
    Opened(MappedDevice),
    /// ext2, ext3 or ext4.
    Ext(Ext),
    /// XFS.
    Xfs(Xfs),
    /// Btrfs.
    Btrfs(Btrfs),
    /// A member of a ZFS pool.
    Zfs(Zfs),
    /// Swap space.
    Swap(Swap),
    /// Content that is not checked.
    Unknown(Unknown),
}

impl Stack {
    /// Returns the layer at a position.
    ///
    /// # Panics
    /// Panics if `id` belongs to another stack and is out of range.
    pub fn layer(&self, id: LayerId) -> &Layer {
        &self.layers[id.0]
    }

    /// Returns all layers with their positions. Each comes after the layers that it lies on.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (LayerId, &Layer)> {
        self.layers
            .iter()
            .enumerate()
            .map(|(index, layer)| (LayerId(index), layer))
    }

    /// Returns the drive that holds a layer in one piece, and the layer's first byte on it; `None`
    /// if the layer does not lie in one piece.
    pub fn in_one_piece(&self, id: LayerId) -> Option<(LayerId, u64)> {
        let (mut at, mut start) = (id, 0u64);
        loop {
            let layer = self.layer(at);
            match (layer.on.as_slice(), layer.spread) {
                ([], _) => {
                    let is_drive = matches!(layer.kind, Kind::Disk(_));
                    return is_drive.then_some((at, start));
                }
                ([place], Spread::Joined | Spread::Mirrored) => {
                    start = start.checked_add(place.start)?;
                    at = place.layer;
                }
                _ => return None,
            }
        }
    }

    /// Returns the name of a layer for use in a sentence: `the ext4 in partition 2`.
    pub fn title(&self, id: LayerId) -> String {
        let layer = self.layer(id);
        match (&layer.kind, layer.on.as_slice()) {
            (
                Kind::Disk(_)
                | Kind::Partition(_)
                | Kind::Array(_)
                | Kind::LogicalVolume(_)
                | Kind::ThinPool(_)
                | Kind::Opened(_),
                _,
            ) => layer.name.clone(),
            (kind, [place]) => {
                let content = match kind {
                    Kind::Unknown(unknown) => unknown.noun_phrase(),
                    _ => Some(format!("the {}", layer.name)),
                };
                let content = content.unwrap_or_else(|| "zeros".to_owned());
                format!("{content} in {}", self.layer(place.layer).name)
            }
            _ => layer.name.clone(),
        }
    }

    /// Checks the invariants that all other code relies on. Every layer comes after the layers that
    /// it lies on, and lies on as many as its kind allows. No size that serves as a divisor is zero
    /// or too large.
    ///
    /// # Errors
    /// Returns an error for the first layer that violates an invariant.
    pub fn check(&self) -> Result<(), StackError> {
        for (LayerId(layer), found) in self.iter() {
            if let Some(place) = found.on.iter().find(|place| place.layer.0 >= layer) {
                let on = place.layer.0;
                return Err(StackError::Order { layer, on });
            }
            let count = found.on.len();
            let refused = |what| Err(StackError::PlaceCount { layer, count, what });
            match (&found.kind, count) {
                (Kind::Disk(_), 1..) => return refused("disk"),
                (Kind::Disk(_) | Kind::LogicalVolume(_) | Kind::ThinPool(_), _) => {}
                (Kind::Table(_) | Kind::Partition(_), 2..) => return refused("table or partition"),
                (_, 0) => return refused("layer above drives"),
                _ => {}
            }
            for (what, value, low) in found.kind.sizes() {
                let high = layers::SIZE_MAX;
                if !(low..=high).contains(&value) {
                    return Err(StackError::Size {
                        layer,
                        what,
                        value,
                        low,
                        high,
                    });
                }
            }
        }
        Ok(())
    }

    /// Returns the layers that lie directly on `id`.
    pub fn above(&self, id: LayerId) -> impl Iterator<Item = (LayerId, &Layer)> {
        self.iter()
            .filter(move |(_, layer)| layer.on.iter().any(|place| place.layer == id))
    }

    /// Returns a stack of the wanted layers, of all layers above them, and of all layers below any
    /// of those.
    #[must_use]
    pub fn connected(&self, is_wanted: impl Fn(&Layer) -> bool) -> Stack {
        let mut keep: Vec<bool> = self.layers.iter().map(is_wanted).collect();
        // Layers come after the layers that they lie on, so walking forward is walking upward.
        for (id, layer) in self.iter() {
            keep[id.0] |= layer.on.iter().any(|place| keep[place.layer.0]);
        }
        for (id, layer) in self.iter().rev() {
            if keep[id.0] {
                layer.on.iter().for_each(|place| keep[place.layer.0] = true);
            }
        }
        let mut renumbered = vec![LayerId(0); self.layers.len()];
        let mut layers = Vec::new();
        for (id, layer) in self.iter().filter(|(id, _)| keep[id.0]) {
            renumbered[id.0] = LayerId(layers.len());
            let mut layer = layer.clone();
            layer
                .on
                .iter_mut()
                .for_each(|place| place.layer = renumbered[place.layer.0]);
            layers.push(layer);
        }
        Stack { layers }
    }

    /// Returns the possible positions of byte `offset` of a layer, one layer down.
    ///
    /// For a striped layer this is one address on every member; the byte lies at one of them.
    pub fn below(&self, id: LayerId, offset: u64) -> Vec<(LayerId, u64)> {
        let layer = self.layer(id);
        let at =
            |place: &ByteRange, offset: u64| Some((place.layer, place.start.checked_add(offset)?));
        match layer.spread {
            Spread::Joined => {
                let mut left = offset;
                for place in &layer.on {
                    if left < place.bytes {
                        return at(place, left).into_iter().collect();
                    }
                    left -= place.bytes;
                }
                Vec::new()
            }
            Spread::Mirrored => layer
                .on
                .iter()
                .filter_map(|place| at(place, offset))
                .collect(),
            Spread::Striped {
                chunk_bytes,
                data_chunks,
            } if chunk_bytes > 0 && data_chunks > 0 => {
                let row = offset / chunk_bytes / u64::from(data_chunks);
                let inside = row * chunk_bytes + offset % chunk_bytes;
                layer
                    .on
                    .iter()
                    .filter_map(|place| at(place, inside))
                    .collect()
            }
            Spread::Striped { .. } | Spread::Scattered => Vec::new(),
        }
    }
}

impl Kind {
    /// Returns the sizes that serve as divisors or factors, each with its lower bound.
    fn sizes(&self) -> Vec<(&'static str, u64, u64)> {
        match self {
            Kind::Disk(disk) => vec![
                ("logical sector", disk.logical_bytes, 1),
                ("physical sector", disk.physical_bytes, 1),
            ],
            Kind::Table(table) => vec![("sector", table.sector_bytes, 1)],
            Kind::Luks(luks) => vec![("sector", luks.sector_bytes, 1)],
            Kind::Ext(ext) => vec![("block", ext.block_bytes, 1)],
            Kind::Xfs(xfs) => vec![
                ("block", xfs.block_bytes, 1),
                ("sector", xfs.sector_bytes, 1),
            ],
            Kind::Btrfs(btrfs) => vec![("sector", btrfs.sector_bytes, 1)],
            Kind::Swap(swap) => vec![("page", swap.page_bytes, 1)],
            Kind::Zfs(zfs) => zfs
                .ashift
                .map(|shift| ("smallest write", 1u64.checked_shl(shift).unwrap_or(0), 1))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::layers::LogicalVolume;

    /// Is a volume whose places are unknown not taken for a drive?
    #[test]
    fn volumes_without_places_are_not_drives() {
        let volume = Layer {
            name: "group/volume".to_owned(),
            node: None,
            bytes: 1 << 20,
            on: Vec::new(),
            spread: Spread::Scattered,
            limits: None,
            kind: Kind::LogicalVolume(LogicalVolume {
                group: "group".to_owned(),
                segment: "cache".to_owned(),
                chunk_bytes: 0,
                stripe_bytes: 0,
            }),
        };
        let stack = Stack {
            layers: vec![volume],
        };
        assert_eq!(stack.in_one_piece(LayerId(0)), None);
    }
}

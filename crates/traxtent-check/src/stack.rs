//! The layers that were found, and where each lies on those below.
//!
//! A [`Stack`] is a list in which a layer stands behind every layer that it lies on, so that nothing goes round in
//! circles. Disks come first; an array or a volume lies on several layers at once.

use serde::{Deserialize, Serialize};

use crate::layers::{
    self, Array, Btrfs, Disk, Ext, LogicalVolume, Luks, MdMember, Opened, Partition,
    PhysicalVolume, Swap, Table, ThinPool, Unknown, Xfs, Zfs,
};

/// A stack that was read from a file and cannot be one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[non_exhaustive]
pub enum StackError {
    /// A layer lies on one that is not before it.
    #[error("layer {layer} lies on layer {on}, which is not before it")]
    Order {
        /// Its position.
        layer: usize,
        /// That of the other.
        on: usize,
    },
    /// A layer that is no drive lies on nothing, or a drive on something.
    #[error("layer {layer} lies on {count} others, and is a {what}")]
    Places {
        /// Its position.
        layer: usize,
        /// How many it lies on.
        count: usize,
        /// What it is.
        what: &'static str,
    },
    /// A size out of its bounds.
    #[error("layer {layer} has a {what} of {value}; {low} to {high} are possible")]
    Size {
        /// Its position.
        layer: usize,
        /// Which size.
        what: &'static str,
        /// The size.
        value: u64,
        /// The least.
        low: u64,
        /// The greatest.
        high: u64,
    },
}

/// The position of a layer in its [`Stack`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct LayerId(pub usize);

/// Everything that was found, from the disks upward.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Stack {
    /// The layers; each lies on layers before it only.
    pub layers: Vec<Layer>,
}

/// One layer of a stack.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Layer {
    /// What a person calls it: `sda`, `disk.img`, `partition 2`, `md0`, `ext4`.
    pub name: String,
    /// The block device that shows it, where there is one: `/dev/sda2`.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub node: Option<String>,
    /// Its own length.
    pub bytes: u64,
    /// Where it lies. Empty for a disk.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub on: Vec<Place>,
    /// How its addresses are spread over where it lies.
    #[serde(default)]
    pub spread: Spread,
    /// What the kernel says of the block device that shows it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub limits: Option<Limits>,
    /// What it is.
    #[serde(flatten)]
    pub kind: Kind,
}

/// A range of bytes of a layer.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Place {
    /// Of which layer.
    pub layer: LayerId,
    /// Its first byte.
    pub start: u64,
    /// How many bytes.
    pub bytes: u64,
}

/// How the addresses of a layer are spread over its places.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Spread {
    /// One place behind another.
    #[default]
    Joined,
    /// Every place holds everything.
    Mirrored,
    /// A chunk in each place in turn.
    Striped {
        /// Bytes of a chunk.
        chunk_bytes: u64,
        /// Chunks of data in a row.
        data_chunks: u32,
    },
    /// Not by a rule that is known, as in a thin volume.
    Scattered,
}

/// What the kernel says of a block device: `/sys/class/block/NAME/queue` and beside it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Limits {
    /// `logical_block_size`.
    pub logical_bytes: Option<u64>,
    /// `physical_block_size`.
    pub physical_bytes: Option<u64>,
    /// `minimum_io_size`.
    pub io_min_bytes: Option<u64>,
    /// `optimal_io_size`; 0 says nothing.
    pub io_opt_bytes: Option<u64>,
    /// `alignment_offset`: from here to the first aligned byte; -1 where the kernel gives up.
    pub alignment_offset: Option<i64>,
    /// `discard_granularity`.
    pub discard_bytes: Option<u64>,
    /// `rotational`.
    pub rotational: Option<bool>,
    /// `zoned`: none, host-aware or host-managed.
    pub zoned: Option<String>,
}

/// What a layer is.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(tag = "kind", rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Kind {
    /// A drive, or an image taken for one.
    Disk(Disk),
    /// A partition table; its addresses are those of what it lies on.
    Table(Table),
    /// An entry of a partition table.
    Partition(Partition),
    /// A member of an md array; its addresses are those of what it lies on.
    MdMember(MdMember),
    /// An md array.
    Array(Array),
    /// A physical volume of LVM2; its addresses are those of what it lies on.
    PhysicalVolume(PhysicalVolume),
    /// A logical volume of LVM2.
    LogicalVolume(LogicalVolume),
    /// A pool of LVM2 that thin volumes take chunks from.
    ThinPool(ThinPool),
    /// A LUKS header; its addresses are those of what it lies on.
    Luks(Luks),
    /// A block device that the kernel has made of others, by device mapper: `dm-3`.
    Opened(Opened),
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
    /// Something that is not checked.
    Unknown(Unknown),
}

impl Stack {
    /// The layer at a position.
    ///
    /// # Panics
    /// If it is of another stack.
    pub fn layer(&self, id: LayerId) -> &Layer {
        &self.layers[id.0]
    }

    /// All layers with their positions, from the disks upward.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (LayerId, &Layer)> {
        self.layers
            .iter()
            .enumerate()
            .map(|(index, layer)| (LayerId(index), layer))
    }

    /// The drive that a layer lies on in one piece, and its first byte there.
    pub fn in_one_piece(&self, id: LayerId) -> Option<(LayerId, u64)> {
        let (mut at, mut start) = (id, 0u64);
        loop {
            let layer = self.layer(at);
            match (layer.on.as_slice(), layer.spread) {
                ([], _) => return Some((at, start)),
                ([place], Spread::Joined | Spread::Mirrored) => {
                    start = start.checked_add(place.start)?;
                    at = place.layer;
                }
                _ => return None,
            }
        }
    }

    /// What to call a layer in a sentence: `ext4 in partition 2`.
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
            (_, [place]) => format!("the {} in {}", layer.name, self.layer(place.layer).name),
            _ => layer.name.clone(),
        }
    }

    /// Checks what everything else relies on: layers stand behind what they lie on, and nothing is divided by zero.
    ///
    /// # Errors
    /// The first layer that cannot be.
    pub fn check(&self) -> Result<(), StackError> {
        for (LayerId(layer), found) in self.iter() {
            if let Some(place) = found.on.iter().find(|place| place.layer.0 >= layer) {
                let on = place.layer.0;
                return Err(StackError::Order { layer, on });
            }
            let count = found.on.len();
            let places = |what| Err(StackError::Places { layer, count, what });
            match (&found.kind, count) {
                (Kind::Disk(_), 1..) => return places("disk"),
                (Kind::Disk(_) | Kind::LogicalVolume(_) | Kind::ThinPool(_), _) => {}
                (Kind::Table(_) | Kind::Partition(_), 2..) => return places("table or partition"),
                (_, 0) => return places("layer of something else"),
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

    /// The layers that lie on `id` directly.
    pub fn above(&self, id: LayerId) -> impl Iterator<Item = (LayerId, &Layer)> {
        self.iter()
            .filter(move |(_, layer)| layer.on.iter().any(|place| place.layer == id))
    }

    /// The layers that are wanted, all that lie on them, and all that those lie on.
    #[must_use]
    pub fn around(&self, is_wanted: impl Fn(&Layer) -> bool) -> Stack {
        let mut keep: Vec<bool> = self.layers.iter().map(is_wanted).collect();
        // Layers stand behind what they lie on: upward is forward.
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

    /// Where byte `offset` of a layer may lie, one layer down.
    ///
    /// Of a striped layer, one address on every member: the byte lies at one of them.
    pub fn below(&self, id: LayerId, offset: u64) -> Vec<(LayerId, u64)> {
        let layer = self.layer(id);
        let at = |place: &Place, offset: u64| Some((place.layer, place.start.checked_add(offset)?));
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
    /// Sizes with their least, where something is divided or multiplied by them.
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
                .map(|shift| ("least write", 1u64.checked_shl(shift).unwrap_or(0), 1))
                .into_iter()
                .collect(),
            _ => Vec::new(),
        }
    }
}

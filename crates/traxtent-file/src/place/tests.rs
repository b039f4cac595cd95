//! Tests of the place of bytes on drives against tables that are written byte by byte.

use testkit::repeats;
use traxtent_check::layers::Array;
use traxtent_check::stack::ByteRange;
use traxtent_check::{Layer, LayerId};
use traxtent_units::Rng;

use super::*;

/// A stack that grows, and the place of every byte of its layers on drives.
#[derive(Default)]
pub(crate) struct StackBuilder {
    stack: Stack,
    places: Vec<Vec<(LayerId, u64)>>,
}

impl StackBuilder {
    fn push(&mut self, on: Vec<ByteRange>, spread: Spread, kind: Kind, bytes: u64) -> LayerId {
        let id = LayerId(self.stack.layers.len());
        self.stack.layers.push(Layer {
            name: format!("layer {}", id.0),
            node: Some(format!("/dev/layer{}", id.0)),
            bytes,
            on,
            spread,
            limits: None,
            kind,
        });
        id
    }

    /// Adds a drive.
    pub(crate) fn drive(&mut self, bytes: u64) -> LayerId {
        let id = self.push(Vec::new(), Spread::Joined, other(), bytes);
        self.places
            .push((0..bytes).map(|byte| (id, byte)).collect());
        id
    }

    /// Adds a layer that joins ranges of other layers.
    pub(crate) fn joined(&mut self, on: Vec<ByteRange>) -> LayerId {
        let table: Vec<_> = on.iter().flat_map(|place| self.table(place)).collect();
        let id = self.push(on, Spread::Joined, other(), table.len() as u64);
        self.places.push(table);
        id
    }

    fn mirror(&mut self, on: Vec<ByteRange>) -> LayerId {
        let table = self.table(&on[0]);
        let id = self.push(on, Spread::Mirrored, other(), table.len() as u64);
        self.places.push(table);
        id
    }

    /// Adds a RAID-0 array, which takes a chunk of each range in turn.
    pub(crate) fn raid0(&mut self, on: Vec<ByteRange>, chunk_bytes: u64) -> LayerId {
        let tables: Vec<_> = on.iter().map(|place| self.table(place)).collect();
        let mut table = Vec::new();
        for row in 0..on[0].bytes / chunk_bytes {
            for member in &tables {
                let chunk = row * chunk_bytes..(row + 1) * chunk_bytes;
                table.extend(chunk.map(|byte| member[byte as usize]));
            }
        }
        let kind = array(RaidLevel::Raid0, chunk_bytes, on.len() as u32);
        let spread = Spread::Striped {
            chunk_bytes,
            data_chunks: on.len() as u32,
        };
        let id = self.push(on, spread, kind, table.len() as u64);
        self.places.push(table);
        id
    }

    fn table(&self, place: &ByteRange) -> Vec<(LayerId, u64)> {
        let bytes = place.start as usize..(place.start + place.bytes) as usize;
        self.places[place.layer.0][bytes].to_vec()
    }

    /// Returns the range of all bytes of a layer.
    pub(crate) fn all_of(&self, layer: LayerId) -> ByteRange {
        ByteRange {
            layer,
            start: 0,
            bytes: self.stack.layer(layer).bytes,
        }
    }

    /// Returns the place of every byte of a layer.
    pub(crate) fn places(&self, layer: LayerId) -> &[(LayerId, u64)] {
        &self.places[layer.0]
    }

    /// Returns the file system that is the topmost layer.
    pub(crate) fn file_system(&self, block_bytes: u64) -> FileSystem {
        FileSystem {
            device: "/dev/top".into(),
            name: "ext4".to_owned(),
            block_bytes,
            layer: LayerId(self.stack.layers.len() - 1),
            stack: self.stack.clone(),
            loop_offsets: BTreeMap::new(),
        }
    }

    /// Adds a random layer on random existing layers or on parts of them.
    fn any_layer(&mut self, rng: &mut Rng) {
        let count = 1 + rng.below(3);
        let mut on = Vec::new();
        for _ in 0..count {
            let layer = LayerId(rng.below(self.stack.layers.len() as u64) as usize);
            let bytes = self.stack.layer(layer).bytes;
            let start = rng.below(bytes.div_ceil(2));
            let bytes = 1 + rng.below(bytes - start);
            on.push(ByteRange {
                layer,
                start,
                bytes,
            });
        }
        let least = on.iter().map(|place| place.bytes).min().unwrap_or(0);
        match rng.below(3) {
            0 => self.joined(on),
            kind => {
                on.iter_mut().for_each(|place| place.bytes = least);
                match kind {
                    1 => self.mirror(on),
                    _ => self.raid0(on, 1 + rng.below(least.min(12))),
                }
            }
        };
    }
}

/// Returns a kind of layer that says nothing about the place of its data.
fn other() -> Kind {
    Kind::Unknown(Unknown::Damaged(String::new()))
}

fn array(level: RaidLevel, chunk_bytes: u64, members: u32) -> Kind {
    Kind::Array(Array {
        level,
        layout: 0,
        chunk_bytes,
        stripe_bytes: chunk_bytes * u64::from(members),
        members,
        uuid: String::new(),
    })
}

/// Is every byte of a range where the table has it, on any stack of partitions, linear arrays,
/// mirrors and RAID-0? Are pieces that follow each other joined? Is each drive of the file system
/// named once?
#[test]
fn bytes_are_where_the_stack_puts_them() {
    for seed in 0..repeats(2000) {
        let mut rng = Rng::new(seed);
        let mut builder = StackBuilder::default();
        for _ in 0..=rng.below(3) {
            let bytes = 30 + rng.below(200);
            builder.drive(bytes);
        }
        for _ in 0..=rng.below(5) {
            builder.any_layer(&mut rng);
        }
        let mut system = builder.file_system(1);
        let table = builder.places(system.layer);
        if table.is_empty() {
            continue;
        }
        let shift = rng.below(3) * 100;
        let file = String::new();
        let offset = LoopOffset { file, bytes: shift };
        system.loop_offsets.insert(LayerId(0), offset);
        let start = rng.below(table.len() as u64);
        let end = start + rng.below(table.len() as u64 - start + 1);
        let pieces = system.on_drives(start..end).unwrap();
        let found = pieces.iter().flat_map(|piece| {
            let shift = if piece.drive == LayerId(0) { shift } else { 0 };
            let bytes = piece.bytes.clone();
            bytes.map(move |byte| (piece.drive, byte - shift))
        });
        let expected = &table[start as usize..end as usize];
        assert_eq!(found.collect::<Vec<_>>(), expected, "seed {seed}");
        for pair in pieces.windows(2) {
            let is_one = pair[0].drive == pair[1].drive && pair[0].bytes.end == pair[1].bytes.start;
            assert!(!is_one, "seed {seed}: {pair:?}");
        }
        if let Some((drive, start)) = system.in_one_piece() {
            let shift = system.offset_of(drive);
            let all = (start - shift..).take(table.len());
            assert_eq!(all.map(|byte| (drive, byte)).collect::<Vec<_>>(), table);
        }
        // Every drive that holds a byte of the file system is named, once.
        let drives: Vec<LayerId> = system.drives().into_iter().map(|(id, _)| id).collect();
        assert!(
            drives.is_sorted_by(|one, next| one < next)
                && table.iter().all(|(id, _)| drives.contains(id))
        );
    }
}

/// Are devices refused if they spread data by a rule that is not supported: thin volumes, parity,
/// stripes of an unknown kind, or RAID-0 with members of different sizes, which md divides into
/// zones?
#[test]
fn other_rules_are_refused() {
    let striped = Spread::Striped {
        chunk_bytes: 8,
        data_chunks: 2,
    };
    let cases = [
        (Spread::Scattered, other(), [64, 64, 64]),
        (striped, array(RaidLevel::Raid5, 8, 3), [64, 64, 64]),
        (striped, other(), [64, 64, 64]),
        (striped, array(RaidLevel::Raid0, 8, 3), [64, 32, 96]),
    ];
    for (spread, kind, sizes) in cases {
        let mut builder = StackBuilder::default();
        let drive = builder.drive(96);
        let place = |bytes| ByteRange {
            layer: drive,
            start: 0,
            bytes,
        };
        builder.push(sizes.map(place).to_vec(), spread, kind, 128);
        let error = builder.file_system(1).on_drives(0..16).unwrap_err();
        let text = error.to_string();
        assert!(text.contains("by a rule that is not supported"), "{text}");
    }
}

//! The places of blocks and their replicas: arithmetic over a track map.
//!
//! A track of `B` whole blocks in `m` partitions holds `B / m` different blocks (rounded down).
//! Replica `k` of block `j`, both counted from 0, begins at block `k B / m + j` of the track (the
//! quotient rounded down). This spaces replicas evenly around the track, to within a block. Blocks
//! begin with the first sector of their track and never span two tracks. Sectors that do not fill a
//! block are not used.
//!
//! The tracks are divided into *regions* with equal numbers of tracks (the last may have fewer),
//! and blocks are numbered region after region. Within a region, they are numbered in *layers*. The
//! first layer has the blocks that the tracks hold with the most partitions, track after track.
//! Each further layer has the blocks that they hold in addition with half as many partitions. A
//! device that is filled in ascending order of blocks therefore keeps as many replicas as the free
//! space of its last region allows, and does not spread a small amount of data over its whole
//! stroke. If there are several layers, the last has half of each track's blocks. Within a layer, a
//! track's last block is followed by the next track's first; their replicas pass one skew apart.

use std::ops::Range;
use std::sync::Arc;

use super::count::{PartitionBounds, PartitionCount};
use super::error::TplError;
use traxtent_map::{MappedTrack, TrackMap};
use traxtent_units::{Lbn, Sectors};

/// The number of tracks per mark. A mark records how many blocks come before it.
const STRIDE: usize = 128;

/// The largest number of layers.
pub(super) const LAYERS_MAX: usize = 6;

/// Numbers of blocks by layer.
type Layers = [u64; LAYERS_MAX];

/// The data stored for every [`STRIDE`]th track.
#[derive(Clone, Copy, Debug)]
struct StrideEntry {
    /// For each layer, the number of blocks on the tracks before.
    before: Layers,
    /// Whether all tracks up to the next mark have the same size.
    even: bool,
}

/// The home of a block: its track, and its index there.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct BlockHome {
    /// The position of the track in the map.
    pub track: usize,
    /// The index of the block within a partition, from 0.
    pub index: u32,
}

/// The mapping between blocks and the tracks' partitions.
#[derive(Clone, Debug)]
pub struct ReplicaMap {
    map: Arc<TrackMap>,
    tracks: Range<usize>,
    block_sectors: u32,
    bounds: PartitionBounds,
    marks: Vec<StrideEntry>,
    /// For each region, the index of its first track within `tracks`, and the number of blocks on
    /// the tracks before it, by layer. The last element is the end of the tracks.
    regions: Vec<(usize, Layers)>,
}

impl ReplicaMap {
    /// Creates the mapping for the tracks at these positions of a map, divided into `regions`
    /// regions.
    ///
    /// # Errors
    /// Returns an error if there is no such track, if a block has no sectors, if there are no
    /// regions, or if no track has a block for each partition of the largest count.
    pub fn new(
        map: impl Into<Arc<TrackMap>>,
        tracks: Range<usize>,
        block_sectors: u32,
        bounds: PartitionBounds,
        regions: u16,
    ) -> Result<ReplicaMap, TplError> {
        let map = map.into();
        if regions == 0 {
            return Err(TplError::InvalidValue {
                name: "the number of regions",
                value: 0,
                expected: "1 or more",
            });
        }
        if block_sectors == 0 {
            return Err(TplError::InvalidValue {
                name: "the size of a block",
                value: 0,
                expected: "1 sector or more",
            });
        }
        let mut shape = ReplicaMap {
            tracks: tracks.start..tracks.end.min(map.len()),
            map,
            block_sectors,
            bounds,
            marks: Vec::new(),
            regions: Vec::new(),
        };
        let mut total = Layers::default();
        let each = shape.tracks.len().div_ceil(regions.into()).max(1);
        let (mut largest, mut size) = (0, Sectors(0));
        let map = Arc::clone(&shape.map);
        let all = map.tracks().skip(shape.tracks.start);
        for (position, track) in all.take(shape.tracks.len()).enumerate() {
            if position % each == 0 {
                shape.regions.push((position, total));
            }
            if position % STRIDE == 0 {
                shape.marks.push(StrideEntry {
                    before: total,
                    even: true,
                });
                size = track.sectors;
            }
            let mark = shape.marks.last_mut().expect("the first track has one");
            mark.even &= track.sectors == size;
            let blocks = shape.blocks_on(&track);
            largest = largest.max(blocks);
            for (layer, total) in total.iter_mut().enumerate().take(bounds.layers()) {
                *total += len(&shape.indices(blocks, layer));
            }
        }
        shape.regions.push((shape.tracks.len(), total));
        let at = |index: usize| map.track(index).map_or(map.end(), |track| track.first_lbn);
        if largest < bounds.most().get() {
            return Err(TplError::DoesNotFit {
                most: bounds.most().get(),
                start: at(tracks.start),
                end: at(tracks.end),
                blocks: largest.into(),
            });
        }
        Ok(shape)
    }

    /// Returns the track map of the drive.
    pub fn map(&self) -> &Arc<TrackMap> {
        &self.map
    }

    /// Returns the positions in the map of the tracks that hold blocks.
    pub fn tracks(&self) -> Range<usize> {
        self.tracks.clone()
    }

    /// Returns the number of sectors per block.
    pub fn block_sectors(&self) -> u32 {
        self.block_sectors
    }

    /// Returns the smallest and largest number of partitions of a track.
    pub fn bounds(&self) -> PartitionBounds {
        self.bounds
    }

    /// Returns the total number of blocks: those that the tracks hold with the fewest partitions.
    pub fn blocks(&self) -> u64 {
        self.total().iter().sum()
    }

    /// Returns the total number of blocks by layer.
    fn total(&self) -> Layers {
        self.regions
            .last()
            .map_or(Layers::default(), |(_, total)| *total)
    }

    /// Returns the number of blocks that the tracks hold with `count` partitions each.
    pub fn blocks_with(&self, count: PartitionCount) -> u64 {
        let layers =
            (0..self.bounds.layers()).filter(|layer| self.bounds.count_of(*layer) >= count);
        layers.map(|layer| self.total()[layer]).sum()
    }

    /// Returns the memory in bytes that the mapping takes, without the map.
    pub fn memory(&self) -> usize {
        self.marks.capacity() * size_of::<StrideEntry>()
            + self.regions.capacity() * size_of::<(usize, Layers)>()
    }

    /// Returns the home of a block; `None` after the last.
    pub fn home(&self, block: u64) -> Option<BlockHome> {
        let (layer, within) = self.layer(block)?;
        let later = self
            .marks
            .partition_point(|mark| mark.before[layer] <= within);
        let mark = &self.marks[later - 1];
        let mut before = mark.before[layer];
        let mut track = self.tracks.start + (later - 1) * STRIDE;
        if mark.even {
            // Nearly all tracks are skipped in one step.
            let skipped = (within - before) / len(&self.layer_on(track, layer));
            track += skipped as usize;
            before += skipped * len(&self.layer_on(track, layer));
        }
        loop {
            let indices = self.layer_on(track, layer);
            if within - before < len(&indices) {
                return Some(BlockHome {
                    track,
                    index: indices.start + (within - before) as u32,
                });
            }
            before += len(&indices);
            track += 1;
        }
    }

    /// Returns the block with this home; `None` if there is none.
    pub fn block(&self, home: BlockHome) -> Option<u64> {
        if !self.tracks.contains(&home.track) {
            return None;
        }
        let layer = self.layer_of(home)?;
        let position = home.track - self.tracks.start;
        let from = position - position % STRIDE;
        let later = self
            .regions
            .partition_point(|(first, _)| *first <= position);
        let (start, end) = (self.regions[later - 1].1, self.regions[later].1);
        let layers = (0..layer).map(|layer| end[layer] - start[layer]);
        let earlier = start.iter().sum::<u64>() + layers.sum::<u64>() - start[layer];
        let tracks = self.tracks.start + from..home.track;
        let between: u64 = tracks.map(|track| len(&self.layer_on(track, layer))).sum();
        let first = self.layer_on(home.track, layer).start;
        let before = self.marks[from / STRIDE].before[layer] + between;
        Some(earlier + before + u64::from(home.index - first))
    }

    /// Returns the layer of a block; `None` if its track has no such block.
    pub fn layer_of(&self, home: BlockHome) -> Option<usize> {
        let blocks = self.blocks_of(home.track);
        (0..self.bounds.layers()).find(|layer| self.indices(blocks, *layer).contains(&home.index))
    }

    /// Returns the indexes of a track's blocks that belong to a layer.
    pub fn layer_on(&self, track: usize, layer: usize) -> Range<u32> {
        self.indices(self.blocks_of(track), layer)
    }

    /// Returns the number of different blocks that a track with `count` partitions holds.
    pub fn share(&self, track: usize, count: PartitionCount) -> u32 {
        self.blocks_of(track) / count.get()
    }

    /// Returns the first LBN of a replica of a block, on a track with `count` partitions. Replicas
    /// are numbered from 0; `index` of `home` must be below [`ReplicaMap::share`].
    pub fn replica_lbn(&self, home: BlockHome, count: PartitionCount, replica: u32) -> Lbn {
        let track = self.track(home.track);
        self.replica_on(&track, home.index, count, replica)
    }

    /// Returns the first LBNs of the replicas of a block, in ascending order.
    pub fn replica_lbns(
        &self,
        home: BlockHome,
        count: PartitionCount,
    ) -> impl ExactSizeIterator<Item = Lbn> + use<'_> {
        let track = self.track(home.track);
        (0..count.get() as usize)
            .map(move |replica| self.replica_on(&track, home.index, count, replica as u32))
    }

    /// Returns the number of sectors in `blocks` blocks.
    pub fn sectors(&self, blocks: u32) -> Sectors {
        Sectors(u64::from(blocks) * u64::from(self.block_sectors))
    }

    fn replica_on(
        &self,
        track: &MappedTrack,
        index: u32,
        count: PartitionCount,
        replica: u32,
    ) -> Lbn {
        let blocks = self.blocks_on(track);
        let from = (u64::from(replica) * u64::from(blocks)) >> count.exponent();
        track.first_lbn + Sectors((from + u64::from(index)) * u64::from(self.block_sectors))
    }

    fn track(&self, track: usize) -> MappedTrack {
        self.map.track(track).expect("the track is in the map")
    }

    fn blocks_of(&self, track: usize) -> u32 {
        self.blocks_on(&self.track(track))
    }

    fn blocks_on(&self, track: &MappedTrack) -> u32 {
        (track.sectors.0 / u64::from(self.block_sectors)) as u32
    }

    /// Returns the indexes of the blocks in a layer, on a track of `blocks` blocks.
    fn indices(&self, blocks: u32, layer: usize) -> Range<u32> {
        let share = |layer| blocks / self.bounds.count_of(layer).get();
        let first = if layer == 0 { 0 } else { share(layer - 1) };
        first..share(layer)
    }

    /// Returns the layer of a block, and the number of the layer's blocks before it.
    fn layer(&self, block: u64) -> Option<(usize, u64)> {
        let blocks = |layers: &Layers| layers.iter().sum::<u64>();
        let later = self
            .regions
            .partition_point(|(_, before)| blocks(before) <= block);
        let (_, start) = self.regions.get(later.checked_sub(1)?)?;
        let (_, end) = self.regions.get(later)?;
        let mut within = block - blocks(start);
        for layer in 0..self.bounds.layers() {
            let size = end[layer] - start[layer];
            if within < size {
                return Some((layer, start[layer] + within));
            }
            within -= size;
        }
        None
    }
}

/// Returns the length of a range.
pub(super) fn len(range: &Range<u32>) -> u64 {
    u64::from(range.end - range.start)
}

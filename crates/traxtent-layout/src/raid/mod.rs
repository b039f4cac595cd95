//! Arrays of drives, with chunks that are tracks (paper Q, section 3) or have a fixed size: the
//! mapping from the array's sectors to the members' sectors.
//!
//! An [`Array`] consists of a [`Level`], a [`ChunkRule`] and [`Member`]s. It divides its own
//! sectors into stripes. A [`Stripe`] has one chunk per member, one of which may be parity. Nothing
//! is stored per stripe: consecutive stripes with the same sizes form a run, and all positions
//! within a run are computed.
//!
//! **Unequal tracks.** Drives of one model differ in their numbers of sectors per track (paper Q,
//! Table 2). With [`ChunkRule::Tracks`], the n-th stripe therefore takes the n-th track of each
//! member by size. A stripe's data chunks are no longer than its parity track: a longer track
//! leaves its end empty. A shorter one counts as zero beyond its end. In RAID-5, parity moves to
//! another member with each stripe, whatever the sizes. This is the left-symmetric rotation, the
//! default of Linux's md. [`Array::usage`] returns the data, parity and unused sectors of each
//! member; figures are in docs/results/raid.md.
//!
//! A [`StripePlanner`] turns a request into [`StripePlan`]s, one per stripe. They can be carried
//! out on simulated drives, or with data.
//!
//! The order of tracks and the rotation are part of a volume's on-disk format: they must not
//! change.

mod error;
mod members;
mod order;
mod plan;
mod stripe;
mod usage;

use std::collections::BTreeMap;
use std::ops::Range;
use std::sync::Arc;

pub use error::RaidError;
pub use members::MemberSet;
pub use order::DEFECTS_MAX;
pub use plan::{
    ParityUpdate, RowExtent, StripeHealth, StripePlan, StripePlanner, Version, XorStep,
    member_requests,
};
pub use stripe::{Chunk, ChunkContents, Location, Stripe};
pub use usage::MemberUsage;

use order::Order;
use traxtent_map::TrackMap;
use traxtent_units::{Lbn, Sectors};

/// The largest number of members in an array.
pub const MEMBERS_MAX: usize = 32;

/// The largest number of runs of stripes in an array.
pub const RUNS_MAX: usize = 1 << 22;

/// The RAID level: the redundancy across members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Level {
    /// Each sector is stored once.
    Raid0,
    /// Each sector is stored on every member.
    Raid1,
    /// Each sector is stored once; in each stripe, the last member has a chunk of parity.
    Raid4,
    /// Each sector is stored once; each stripe has a chunk of parity, which rotates among members.
    Raid5,
}

impl Level {
    /// All levels.
    pub const ALL: [Level; 4] = [Level::Raid0, Level::Raid1, Level::Raid4, Level::Raid5];

    /// The level's name in options.
    pub fn name(self) -> &'static str {
        match self {
            Level::Raid0 => "raid-0",
            Level::Raid1 => "raid-1",
            Level::Raid4 => "raid-4",
            Level::Raid5 => "raid-5",
        }
    }

    /// Returns the smallest number of members.
    pub fn members_least(self) -> usize {
        match self {
            Level::Raid0 => 1,
            Level::Raid1 => 2,
            Level::Raid4 | Level::Raid5 => 3,
        }
    }

    /// Checks that an array of this level can have `members` members.
    ///
    /// # Errors
    /// Returns an error if they are too few or too many.
    pub fn check_members(self, members: usize) -> Result<(), RaidError> {
        let (least, most) = (self.members_least(), MEMBERS_MAX);
        if (least..=most).contains(&members) {
            return Ok(());
        }
        Err(RaidError::Members {
            level: self.name(),
            members,
            least,
            most,
        })
    }

    /// Returns how many members can fail without loss of data.
    pub fn failures_max(self, members: usize) -> usize {
        match self {
            Level::Raid0 => 0,
            Level::Raid1 => members - 1,
            Level::Raid4 | Level::Raid5 => 1,
        }
    }
}

/// The rule for chunks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ChunkRule {
    /// A fixed number of sectors, regardless of tracks: the conventional array. Remaining sectors
    /// form a last stripe of smaller chunks.
    Fixed(Sectors),
    /// A track, in stripes of tracks of similar size.
    Tracks,
    /// A fixed number of sectors: the size of the largest track of all members, rounded up to the
    /// granule. Chunks follow one another, and most begin within a track: paper Q's first
    /// alternative.
    LargestTrack,
    /// A track. Each stripe has the n-th track of each member by LBN, and uses as many sectors of
    /// each as the smallest of them has: paper Q's second alternative.
    SmallestTrack,
}

impl ChunkRule {
    /// The names of the rules in options.
    pub const NAMES: [&str; 4] = ["fixed", "tracks", "largest-track", "smallest-track"];

    /// The rule's name in options.
    pub fn name(self) -> &'static str {
        match self {
            ChunkRule::Fixed(_) => "fixed",
            ChunkRule::Tracks => "tracks",
            ChunkRule::LargestTrack => "largest-track",
            ChunkRule::SmallestTrack => "smallest-track",
        }
    }

    /// Returns whether no chunk crosses a boundary between tracks.
    pub fn is_aligned(self) -> bool {
        matches!(self, ChunkRule::Tracks | ChunkRule::SmallestTrack)
    }
}

/// A drive of an array.
#[derive(Clone, Debug)]
pub struct Member {
    /// The track map of the drive.
    pub map: Arc<TrackMap>,
    /// The LBNs that can hold chunks.
    pub data: Range<Lbn>,
}

/// The parameters of an array, apart from its members.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ArrayShape {
    /// The RAID level.
    pub level: Level,
    /// The rule for chunks.
    pub chunks: ChunkRule,
    /// The number of sectors that every chunk is a multiple of; the rest of a track stays empty. It
    /// is one, or the size of a block or of a physical sector.
    pub granule: u32,
    /// The number of spare tracks per member: the first in the order of use. They hold no chunk
    /// until [`Array::relocate`] puts one there.
    pub spares: u32,
}

/// Several drives combined into one. See [the module](self).
#[derive(Clone, Debug)]
pub struct Array {
    shape: ArrayShape,
    members: Vec<Member>,
    places: Vec<ChunkPositions>,
    runs: Vec<StripeRun>,
    /// For each run, the capacity of each member's chunk in sectors.
    sizes: Vec<u32>,
    stripes: u64,
    capacity: Sectors,
    /// The chunks on spare tracks: member and stripe, with the number of the spare track.
    relocated: BTreeMap<(usize, u64), u32>,
}

/// The positions of a member's chunks.
#[derive(Clone, Debug)]
enum ChunkPositions {
    /// One after another, starting at an LBN.
    Even(Lbn),
    /// On tracks, after the spare ones.
    Tracks(Order),
}

/// Consecutive stripes whose chunks have the same sizes.
#[derive(Clone, Copy, Debug)]
struct StripeRun {
    /// The first stripe.
    stripe: u64,
    /// The first sector of the array in that stripe.
    sector: u64,
}

impl Array {
    /// Combines members into an array.
    ///
    /// # Errors
    /// Returns an error if the level does not support this number of members, if a map does not
    /// cover its member's data, if a member is too small for a chunk in addition to its spare
    /// tracks, if the granule is 0, if a chunk is empty, not a multiple of the granule or too
    /// large, if there are spare tracks but chunks are not tracks, or if the array would have more
    /// than [`RUNS_MAX`] runs of stripes.
    pub fn new(shape: ArrayShape, members: Vec<Member>) -> Result<Array, RaidError> {
        shape.level.check_members(members.len())?;
        if shape.granule == 0 {
            return Err(RaidError::Granule);
        }
        for (number, member) in members.iter().enumerate() {
            let Range { start, end } = member.data;
            let (map_start, map_end) = (member.map.first(), member.map.end());
            if start > end || start < map_start || end > map_end {
                return Err(RaidError::NotCovered {
                    member: number,
                    start,
                    end,
                    map_start,
                    map_end,
                });
            }
        }
        let mut array = Array {
            shape,
            places: Vec::with_capacity(members.len()),
            members,
            runs: Vec::new(),
            sizes: Vec::new(),
            stripes: 0,
            capacity: Sectors(0),
            relocated: BTreeMap::new(),
        };
        match shape.chunks {
            ChunkRule::Fixed(chunk) => array.fill_evenly(chunk)?,
            ChunkRule::LargestTrack => array.fill_evenly(array.largest_track())?,
            ChunkRule::Tracks | ChunkRule::SmallestTrack => array.fill_with_tracks()?,
        }
        Ok(array)
    }

    /// Returns the parameters of the array.
    pub fn shape(&self) -> ArrayShape {
        self.shape
    }

    /// Returns the drives of the array.
    pub fn members(&self) -> &[Member] {
        &self.members
    }

    /// Returns the number of sectors available to users of the array.
    pub fn capacity(&self) -> Sectors {
        self.capacity
    }

    /// Returns the number of stripes.
    pub fn stripes(&self) -> u64 {
        self.stripes
    }

    /// Returns a stripe.
    ///
    /// # Errors
    /// Returns an error if no stripe has this number.
    pub fn stripe(&self, number: u64) -> Result<Stripe<'_>, RaidError> {
        if number >= self.stripes {
            return Err(RaidError::Beyond {
                what: "stripe",
                number,
                count: self.stripes,
            });
        }
        let run = self.runs.partition_point(|run| run.stripe <= number) - 1;
        Ok(self.stripe_in(run, number))
    }

    /// Returns the location of a sector of the array. `None` if it is after the last.
    pub fn locate(&self, sector: Lbn) -> Option<Location<'_>> {
        if sector.0 >= self.capacity.0 {
            return None;
        }
        let index = self.runs.partition_point(|run| run.sector <= sector.0) - 1;
        let run = &self.runs[index];
        let mut rest = sector.0 - run.sector;
        let cycle = self.cycle(index, run.stripe);
        let turns = rest / cycle.whole();
        rest -= turns * cycle.whole();
        let mut number = run.stripe + turns * cycle.len();
        while rest >= cycle.capacity(number) {
            rest -= cycle.capacity(number);
            number += 1;
        }
        Some(self.stripe_in(index, number).locate(Sectors(rest)))
    }

    /// Moves a chunk to a spare track, because its own track is bad.
    ///
    /// # Errors
    /// Returns an error if there is no such stripe, member or spare track, or if the spare track
    /// already holds a chunk.
    pub fn relocate(&mut self, member: usize, stripe: u64, spare: u32) -> Result<(), RaidError> {
        let spares = self.shape.spares;
        for (what, number, count) in [
            ("member", member as u64, self.members.len() as u64),
            ("stripe", stripe, self.stripes),
            ("spare track", spare.into(), spares.into()),
        ] {
            if number >= count {
                return Err(RaidError::Beyond {
                    what,
                    number,
                    count,
                });
            }
        }
        let of_member = self.relocated.range((member, 0)..=(member, u64::MAX));
        let mut others = of_member.filter(|((_, other), _)| *other != stripe);
        if others.any(|(_, used)| *used == spare) {
            return Err(RaidError::SpareInUse { member, spare });
        }
        self.relocated.insert((member, stripe), spare);
        Ok(())
    }

    /// Returns the first LBN of a member's chunk of a stripe.
    fn lbn(&self, member: usize, stripe: u64) -> Lbn {
        match &self.places[member] {
            ChunkPositions::Even(first) => *first + Sectors(stripe * u64::from(self.sizes[member])),
            ChunkPositions::Tracks(order) => match self.relocated.get(&(member, stripe)) {
                Some(spare) => order.lbn(u64::from(*spare)),
                None => order.lbn(u64::from(self.shape.spares) + stripe),
            },
        }
    }

    fn stripe_in(&self, index: usize, number: u64) -> Stripe<'_> {
        let run = &self.runs[index];
        let cycle = self.cycle(index, run.stripe);
        let offset = number - run.stripe;
        let turns = offset / cycle.len();
        let mut first = run.sector + turns * cycle.whole();
        for before in number - offset % cycle.len()..number {
            first += cycle.capacity(before);
        }
        Stripe::new(self, number, Lbn(first), cycle.sizes)
    }

    /// Returns the cycle of stripes after which a run repeats.
    fn cycle(&self, run: usize, first: u64) -> Cycle<'_> {
        let members = self.members.len();
        Cycle {
            level: self.shape.level,
            first,
            sizes: &self.sizes[run * members..(run + 1) * members],
        }
    }

    fn largest_track(&self) -> Sectors {
        let largest = self.members.iter().flat_map(|member| member.map.runs());
        let largest = largest.map(|(size, _)| size).max().unwrap_or(0);
        Sectors(u64::from(largest.next_multiple_of(self.shape.granule)))
    }

    fn no_room(&self, member: usize) -> RaidError {
        let Range { start, end } = self.members[member].data;
        RaidError::NoRoom {
            member,
            start,
            end,
            spares: self.shape.spares,
        }
    }

    fn fill_evenly(&mut self, chunk: Sectors) -> Result<(), RaidError> {
        let granule = self.shape.granule;
        if self.shape.spares > 0 {
            return Err(RaidError::NoSpares(self.shape.spares));
        }
        let size = match u32::try_from(chunk.0) {
            Ok(size) if size > 0 && size.is_multiple_of(granule) => size,
            _ => return Err(RaidError::Chunk { chunk, granule }),
        };
        let mut least = u64::MAX;
        for (number, member) in self.members.iter().enumerate() {
            let sectors = member.data.end.0 - member.data.start.0;
            if sectors < chunk.0 {
                return Err(self.no_room(number));
            }
            least = least.min(sectors);
            self.places.push(ChunkPositions::Even(member.data.start));
        }
        let members = self.members.len();
        self.add_run(&vec![size; members], least / chunk.0)?;
        // The remaining sectors form a stripe of smaller chunks.
        let rest = (least % chunk.0) as u32 / granule * granule;
        if rest > 0 {
            self.add_run(&vec![rest; members], 1)?;
        }
        Ok(())
    }

    fn fill_with_tracks(&mut self) -> Result<(), RaidError> {
        let granule = self.shape.granule;
        let order = match self.shape.chunks {
            ChunkRule::SmallestTrack => Order::by_lbn,
            _ => Order::by_size,
        };
        let orders: Vec<Order> = self
            .members
            .iter()
            .map(|member| order(&member.map, &member.data, granule))
            .collect();
        let spares = u64::from(self.shape.spares);
        if let Some(number) = orders.iter().position(|order| order.len() <= spares) {
            return Err(self.no_room(number));
        }
        let mut sizes: Vec<_> = orders
            .iter()
            .map(|order| order.sizes_from(spares))
            .collect();
        let mut left = vec![(0, 0); sizes.len()];
        'all: loop {
            for (left, sizes) in left.iter_mut().zip(&mut sizes) {
                if left.1 == 0 {
                    let Some(next) = sizes.next() else {
                        break 'all;
                    };
                    *left = next;
                }
            }
            let times = left.iter().map(|(_, times)| *times).min().unwrap_or(0);
            let mut chunks: Vec<u32> = left
                .iter()
                .map(|(size, _)| size / granule * granule)
                .collect();
            if self.shape.chunks == ChunkRule::SmallestTrack {
                let least = chunks.iter().copied().min().unwrap_or(0);
                chunks.fill(least);
            }
            self.add_run(&chunks, times)?;
            for (_, left) in &mut left {
                *left -= times;
            }
        }
        drop(sizes);
        self.places = orders.into_iter().map(ChunkPositions::Tracks).collect();
        Ok(())
    }

    fn add_run(&mut self, sizes: &[u32], stripes: u64) -> Result<(), RaidError> {
        if !self.sizes.ends_with(sizes) {
            if self.runs.len() == RUNS_MAX {
                return Err(RaidError::TooIrregular(RUNS_MAX));
            }
            self.runs.push(StripeRun {
                stripe: self.stripes,
                sector: self.capacity.0,
            });
            self.sizes.extend_from_slice(sizes);
        }
        let cycle = Cycle {
            level: self.shape.level,
            first: self.stripes,
            sizes,
        };
        let (turns, rest) = (stripes / cycle.len(), stripes % cycle.len());
        let mut sectors = turns * cycle.whole();
        for number in self.stripes..self.stripes + rest {
            sectors += cycle.capacity(number);
        }
        self.capacity += Sectors(sectors);
        self.stripes += stripes;
        Ok(())
    }
}

/// A cycle: as many stripes as parity has positions, starting at a stripe of a run.
#[derive(Clone, Copy, Debug)]
struct Cycle<'a> {
    level: Level,
    first: u64,
    sizes: &'a [u32],
}

impl Cycle<'_> {
    fn len(self) -> u64 {
        match self.level {
            Level::Raid0 | Level::Raid1 | Level::Raid4 => 1,
            Level::Raid5 => self.sizes.len() as u64,
        }
    }

    /// Returns the number of the array's sectors in the whole cycle.
    fn whole(self) -> u64 {
        let numbers = self.first..self.first + self.len();
        numbers.map(|number| self.capacity(number)).sum()
    }

    /// Returns the number of the array's sectors in a stripe.
    fn capacity(self, number: u64) -> u64 {
        let data = 0..stripe::data_chunks(self.level, self.sizes.len());
        data.map(|k| stripe::data_sectors(self.level, self.sizes, number, k))
            .sum()
    }
}

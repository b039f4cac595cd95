//! The cost of misalignment to the chunks or stripes of an array, by models of its members.
//!
//! In an array with parity, a write of less than a stripe first reads the data from which parity
//! is computed: the data that it replaces and the old parity, or all data that it does not replace,
//! whichever is less (Linux, drivers/md/raid5.c, `handle_stripe_dirtying`). All members have the
//! same profile, and no two spindles are synchronized. Requests are random and come one at a time.
//! This is the most expensive case: md's stripe cache and controllers with memory merge sequential
//! writes, which then cost less than given here.

use std::ops::Range;
use std::sync::Arc;

use serde::Serialize;
use traxtent_model::drive::Drive;
use traxtent_model::geometry::Geometry;
use traxtent_model::profile::{Profile, ProfileError};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime, Span};

use super::{SPREAD_BYTES, Work, WorkCost};

/// The kinds of work that depend on chunks and stripes.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum ArrayLoad {
    /// Random writes of a stripe's length.
    StripeWrites,
    /// Random writes of a chunk's length.
    ChunkWrites,
    /// Random reads of a chunk's length.
    ChunkReads,
}

impl ArrayLoad {
    const ALL: [ArrayLoad; 3] = [
        ArrayLoad::StripeWrites,
        ArrayLoad::ChunkWrites,
        ArrayLoad::ChunkReads,
    ];

    pub(super) fn name(self) -> &'static str {
        match self {
            ArrayLoad::StripeWrites => "writes of a stripe",
            ArrayLoad::ChunkWrites => "writes of a chunk",
            ArrayLoad::ChunkReads => "reads of a chunk",
        }
    }
}

/// The distribution of data over the members of an array.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct ArrayShape {
    /// Data chunks in a stripe.
    pub data: u64,
    /// Parity chunks in a stripe.
    pub parity: u64,
    /// The number of copies of each chunk.
    pub copies: u64,
    /// The size of a chunk in bytes.
    pub chunk_bytes: u64,
}

/// The number of uncounted requests, which fill the members' buffers.
const WARM_UP_REQUESTS: usize = 60;
/// The number of counted requests.
const COUNTED_REQUESTS: usize = 240;
/// The maximum number of modelled members.
const MEMBERS_MAX: u64 = 64;

/// Returns the cost of each kind of work on an array whose content begins `offset` bytes after the
/// start of a stripe.
///
/// Returns `None` if the chunk or `offset` is not a multiple of the profile's logical sector, if
/// the chunk is empty, or if there are no members or too many.
///
/// # Errors
/// Returns an error if a value of the profile is out of bounds.
pub fn array_costs(
    profile: &Profile,
    shape: ArrayShape,
    offset: u64,
) -> Result<Option<Vec<WorkCost>>, ProfileError> {
    let sector = u64::from(profile.sector.logical_bytes);
    let fits = shape.chunk_bytes.is_multiple_of(sector) && offset.is_multiple_of(sector);
    if !fits || shape.chunk_bytes < sector || !(1..=MEMBERS_MAX).contains(&shape.members()) {
        return Ok(None);
    }
    profile.check()?;
    let geometry = Geometry::build(&profile.geometry)
        .map_err(|error| ProfileError::Geometry(error.to_string()))?;
    let drive = Drive::with_geometry(Arc::new(profile.clone()), Arc::new(geometry));
    let of =
        |load, offset| ModelledArray::new(&drive, shape, sector).ms_each(load, offset / sector);
    let cost = |load| WorkCost {
        load: Work::Array(load),
        aligned_ms: of(load, 0),
        actual_ms: of(load, offset),
    };
    Ok(Some(ArrayLoad::ALL.map(cost).to_vec()))
}

impl ArrayShape {
    fn members(&self) -> u64 {
        (self.data + self.parity).saturating_mul(self.copies)
    }
}

/// A chunk of a stripe, and a range of its sectors.
type Piece = (u64, Range<u64>);

/// A member and a request for it.
type Part = (usize, Request);

/// The parts of a request: the reads that must come first, then the other operations.
type RequestPlan = (Vec<Part>, Vec<Part>);

struct ModelledArray {
    shape: ArrayShape,
    /// The number of sectors in a chunk.
    chunk: u64,
    /// The number of stripes over which the work is spread.
    stripes: u64,
    /// The members, each with the amount by which its clock is ahead.
    members: Vec<(Drive, Span)>,
}

impl ModelledArray {
    fn new(drive: &Drive, shape: ArrayShape, sector: u64) -> ModelledArray {
        let chunk = shape.chunk_bytes / sector;
        let turn = drive.profile().revolution_ms();
        let mut rng = Rng::new(3);
        let mut member = |_| (drive.clone(), Span::from_ms(turn * rng.fraction()));
        ModelledArray {
            shape,
            chunk,
            stripes: ((SPREAD_BYTES / sector).min(drive.geometry().capacity().0 / 2) / chunk)
                .max(4),
            members: (0..shape.members()).map(&mut member).collect(),
        }
    }

    /// Returns the mean time of the counted requests in milliseconds.
    fn ms_each(mut self, load: ArrayLoad, offset: u64) -> f64 {
        let mut rng = Rng::new(1);
        let stripe = self.shape.data * self.chunk;
        let (mut now, mut begun) = (SimTime::ZERO, SimTime::ZERO);
        for number in 0..WARM_UP_REQUESTS + COUNTED_REQUESTS {
            if number == WARM_UP_REQUESTS {
                begun = now;
            }
            let start = rng.below(self.stripes - 2) * stripe + offset;
            let chunk = start + rng.below(self.shape.data) * self.chunk;
            let (first, others) = match load {
                ArrayLoad::StripeWrites => self.write(start..start + stripe),
                ArrayLoad::ChunkWrites => self.write(chunk..chunk + self.chunk),
                ArrayLoad::ChunkReads => (Vec::new(), self.read(chunk..chunk + self.chunk)),
            };
            now = self.serve(now, &first);
            now = self.serve(now, &others);
        }
        now.since(begun).as_ms() / COUNTED_REQUESTS as f64
    }

    /// Sends all parts at once and returns the time at which all of them are complete.
    fn serve(&mut self, now: SimTime, parts: &[Part]) -> SimTime {
        let mut longest = Span::ZERO;
        for (index, (drive, ahead)) in self.members.iter_mut().enumerate() {
            let at = now + *ahead;
            let mut outstanding = 0;
            for (_, request) in parts.iter().filter(|(member, _)| *member == index) {
                drive
                    .submit(at, *request)
                    .expect("the request is on the drive");
                outstanding += 1;
            }
            while outstanding > 0 {
                let wake = drive.next_wakeup().expect("a request is outstanding");
                while let Some(completion) = drive.poll(wake) {
                    longest = longest.max(completion.completed.since(at));
                    outstanding -= 1;
                }
            }
        }
        now + longest
    }

    /// Splits a range of the array's sectors by stripe. Each piece is a data chunk and the range of
    /// its sectors.
    fn split_by_stripe(&self, range: Range<u64>) -> Vec<(u64, Vec<Piece>)> {
        let mut rows: Vec<(u64, Vec<Piece>)> = Vec::new();
        let mut at = range.start;
        while at < range.end {
            let (chunk, within) = (at / self.chunk, at % self.chunk);
            let end = (within + range.end - at).min(self.chunk);
            let (row, data) = (chunk / self.shape.data, chunk % self.shape.data);
            match rows.last_mut() {
                Some((last, pieces)) if *last == row => pieces.push((data, within..end)),
                _ => rows.push((row, vec![(data, within..end)])),
            }
            at += end - within;
        }
        rows
    }

    /// Returns the first member that holds a chunk of a stripe. Parity chunks are numbered after
    /// the data chunks.
    fn member(&self, row: u64, chunk: u64) -> usize {
        let width = self.shape.data + self.shape.parity;
        let turned = match self.shape.parity {
            0 => chunk,
            // Parity moves down by one member in each stripe, and the data chunks follow it.
            parity => (width - 1 - row % width + parity + chunk) % width,
        };
        (turned * self.shape.copies) as usize
    }

    fn place(&self, row: u64, within: &Range<u64>) -> (Lbn, u32) {
        let start = row * self.chunk + within.start;
        (Lbn(start), (within.end - within.start) as u32)
    }

    fn read(&self, range: Range<u64>) -> Vec<Part> {
        let mut parts = Vec::new();
        for (row, pieces) in self.split_by_stripe(range) {
            for (data, within) in pieces {
                let (lbn, sectors) = self.place(row, &within);
                parts.push((self.member(row, data), Request::read(lbn, sectors)));
            }
        }
        parts
    }

    fn write(&self, range: Range<u64>) -> RequestPlan {
        let (mut before, mut writes) = (Vec::new(), Vec::new());
        let ArrayShape {
            data,
            parity,
            copies,
            ..
        } = self.shape;
        for (row, mut pieces) in self.split_by_stripe(range) {
            let covered: u64 = pieces
                .iter()
                .map(|(_, within)| within.end - within.start)
                .sum();
            let start = pieces.iter().map(|(_, within)| within.start).min();
            let end = pieces.iter().map(|(_, within)| within.end).max();
            let union = start.unwrap_or(0)..end.unwrap_or(0);
            let parities: Vec<_> = (data..data + parity)
                .map(|chunk| (chunk, union.clone()))
                .collect();
            if parity > 0 && covered < data * self.chunk {
                let replaced = covered + parity * (union.end - union.start);
                let left = self.uncovered(&pieces, &union);
                let others: u64 = left
                    .iter()
                    .map(|(_, within)| within.end - within.start)
                    .sum();
                let reads = if replaced < others {
                    [pieces.as_slice(), &parities].concat()
                } else {
                    left
                };
                for (chunk, within) in reads {
                    let (lbn, sectors) = self.place(row, &within);
                    before.push((self.member(row, chunk), Request::read(lbn, sectors)));
                }
            }
            pieces.extend(parities);
            for (chunk, within) in pieces {
                let (lbn, sectors) = self.place(row, &within);
                let first = self.member(row, chunk);
                let all = first..first + copies as usize;
                writes.extend(all.map(|member| (member, Request::write(lbn, sectors))));
            }
        }
        (before, writes)
    }

    /// Returns the parts of `union`, in every data chunk, that no piece covers.
    fn uncovered(&self, pieces: &[Piece], union: &Range<u64>) -> Vec<Piece> {
        let mut left = Vec::new();
        for chunk in 0..self.shape.data {
            let piece = pieces.iter().find(|(data, _)| *data == chunk);
            let within = piece.map_or(union.start..union.start, |(_, within)| within.clone());
            for rest in [union.start..within.start, within.end..union.end] {
                if !rest.is_empty() {
                    left.push((chunk, rest));
                }
            }
        }
        left
    }
}

#[cfg(test)]
mod tests {
    use super::super::typical;
    use super::*;

    const RAID5: ArrayShape = ArrayShape {
        data: 3,
        parity: 1,
        copies: 1,
        chunk_bytes: 64 << 10,
    };

    fn array(shape: ArrayShape) -> ModelledArray {
        ModelledArray::new(&Drive::new(&typical()).unwrap(), shape, 512)
    }

    /// Is a whole stripe written without a read, and part of one with the fewest sectors read, as
    /// in raid5.c?
    #[test]
    fn reads_before_writes() {
        let array = array(RAID5);
        let sectors = |parts: &[Part]| -> u32 { parts.iter().map(|part| part.1.sectors).sum() };
        let cases = [
            (0..384, (0, 512)),
            // A block of 4 KiB: its old data and parity take as many sectors as the two other
            // blocks, so the other blocks are read.
            (0..8, (16, 16)),
            // Two chunks: the third one takes fewer sectors to read than both and the parity.
            (0..256, (128, 384)),
            // A stripe's length, one chunk later: two chunks of one stripe, and one of the next.
            (128..512, (128 + 256, 384 + 256)),
        ];
        for (range, expected) in cases {
            let (before, writes) = array.write(range.clone());
            assert_eq!((sectors(&before), sectors(&writes)), expected, "{range:?}");
        }
    }

    /// Are the chunks of every stripe on different members?
    #[test]
    fn members_differ() {
        let shapes = [(3, 1, 1), (4, 2, 1), (2, 0, 2), (3, 0, 1)];
        for (data, parity, copies) in shapes {
            let array = array(ArrayShape {
                data,
                parity,
                copies,
                ..RAID5
            });
            for row in 0..20 {
                let mut members: Vec<_> =
                    (0..data + parity).map(|c| array.member(row, c)).collect();
                members.sort_unstable();
                let all = (0..data + parity).map(|chunk| (chunk * copies) as usize);
                assert_eq!(members, all.collect::<Vec<_>>(), "stripe {row}");
            }
        }
    }

    /// Is the cost zero at the start of a stripe? Two chunks later, is it high for writes of a
    /// stripe and low for work on a chunk? Do reads that span two chunks cost more? Is the cost
    /// `None` for cases that cannot be modelled?
    #[test]
    fn misaligned_stripe_writes_cost_most() {
        let of = |shape, offset| array_costs(&typical(), shape, offset).unwrap();
        for cost in of(RAID5, 0).unwrap() {
            assert_eq!(cost.extra_ms(), 0.0);
        }
        let [stripes, chunks, reads] = of(RAID5, 128 << 10).unwrap()[..] else {
            panic!("three kinds of work")
        };
        println!("{stripes:?} {chunks:?} {reads:?}");
        assert!(stripes.percent() > 50.0, "{stripes:?}");
        // This offset is aligned to the chunks, though not to the stripes.
        assert!(chunks.percent().abs() < 15.0 && reads.percent().abs() < 5.0);
        let [_, _, reads] = of(RAID5, 4096).unwrap()[..] else {
            panic!("three kinds of work")
        };
        assert!(reads.percent() > 10.0, "{reads:?}");
        let wide = ArrayShape { data: 100, ..RAID5 };
        assert!(of(wide, 4096).is_none() && of(RAID5, 100).is_none());
    }
}

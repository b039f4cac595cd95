//! Properties of a device, inferred from its response times instead of its reports: the physical
//! sector and the erase block from writes, the chunk of an array from reads.
//!
//! - **Physical sector.** If a write covers one partially, the drive reads it first and waits one
//!   revolution. Writes of a physical sector's size are therefore fast at only one shift. They go
//!   to a range whose data may be lost, and use force unit access.
//! - **Chunk.** On an array without parity, two members serve a read that crosses from one chunk to
//!   the next, and it takes as long as the slower one. Reads that cross multiples of the chunk are
//!   therefore slower on average than those that cross the middle of a chunk, and no larger size
//!   shows a difference. On flash memory that maps whole erase blocks (cards, sticks), reads show
//!   the same difference at the erase block (A. Bergmann, flashbench, "-a").
//! - **Erase block.** If a write covers one partially, such flash copies the rest of it. Writes of
//!   its size are therefore faster if they begin at a block than if they begin within one, by more
//!   than at any other size. They also go to the range whose data may be lost.
//!
//! Means are compared in units of standard errors; a difference counts if it is at least
//! [`CERTAIN_SIGMAS`]. If the times are not conclusive, no figure is given. The limits:
//! - Flash that maps every page separately (solid-state drives) has no position at which writes are
//!   slower, so its erase block does not show. The same holds for an erase block whose size is not
//!   among those of [`ERASE_BLOCK_BYTES`].
//! - Array controllers with caches of their own, and arrays with parity, are not covered.
//! - Finding the physical sector by reads needs a track map (`traxtent probe`).

use std::fmt;
use std::ops::Range;

use serde::Serialize;
use traxtent_probe::{Identity, Target, TargetError};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::stats::Moments;
use traxtent_units::{Lbn, Span};

use crate::layers::SizeSource;
use crate::stack::{Kind, Limits, Stack};

/// The number of standard errors that makes a difference certain, even among dozens of comparisons.
pub const CERTAIN_SIGMAS: f64 = 6.0;

/// The grids that can be measured.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub enum MeasuredGrid {
    /// The unit that a drive writes as a whole.
    PhysicalSector,
    /// The unit that an array puts on one member.
    Chunk,
    /// The unit that flash memory erases at once.
    EraseBlock,
}

impl MeasuredGrid {
    /// Returns every grid in the order of measurement: those that need only reads first.
    pub fn all() -> [MeasuredGrid; 3] {
        [
            MeasuredGrid::Chunk,
            MeasuredGrid::PhysicalSector,
            MeasuredGrid::EraseBlock,
        ]
    }

    /// Returns the name of the grid on the command line.
    pub fn name(self) -> &'static str {
        match self {
            MeasuredGrid::PhysicalSector => "physical-sector",
            MeasuredGrid::Chunk => "chunk",
            MeasuredGrid::EraseBlock => "erase-block",
        }
    }

    /// Returns whether the measurement needs a range to write to.
    pub fn writes(self) -> bool {
        !matches!(self, MeasuredGrid::Chunk)
    }

    /// Returns the spacing of the grid that the kernel reports, in bytes.
    pub fn claimed(self, limits: &Limits) -> Option<u64> {
        let bytes = match self {
            MeasuredGrid::PhysicalSector => limits.physical_bytes,
            MeasuredGrid::Chunk => limits.io_min_bytes,
            MeasuredGrid::EraseBlock => limits.discard_bytes,
        };
        bytes.filter(|&bytes| bytes > 0)
    }

    /// Returns the number of requests that the measurement usually needs on this device, and the
    /// maximum number. It needs fewer if it finds the grid early.
    pub fn requests(self, identity: &Identity) -> (u64, u64) {
        let logical = u64::from(identity.logical_bytes.max(1));
        match self {
            MeasuredGrid::Chunk => {
                let sizes = chunk_sizes(logical).filter(|size| {
                    let places = chunk_places(identity.capacity.0, logical, *size);
                    places > CHUNK_PLACES_MIN
                });
                let sizes = sizes.count() as u64;
                let all = 2 * READS as u64 * sizes;
                (all / PARTS as u64, all)
            }
            MeasuredGrid::PhysicalSector => {
                let shifts: u64 = sector_sizes(identity.logical_bytes).map(u64::from).sum();
                let all = WRITES_PER_SHIFT as u64 * shifts;
                (all, all)
            }
            MeasuredGrid::EraseBlock => {
                let all = 2 * (ERASE_WRITES as u64 + 1) * erase_block_sizes().count() as u64;
                (all, all)
            }
        }
    }

    /// Measures the grid.
    ///
    /// # Errors
    /// Returns an error if the grid needs a range to write to and there is none. See also
    /// [`physical_sector`], [`chunk`] and [`erase_block`].
    pub fn measure(
        self,
        target: &mut dyn Target,
        scratch: Option<Range<Lbn>>,
        seed: u64,
    ) -> Result<GridMeasurement, TargetError> {
        let range = || scratch.ok_or_else(|| refused("a range to write to is needed".to_owned()));
        match self {
            MeasuredGrid::Chunk => chunk(target, seed),
            MeasuredGrid::PhysicalSector => physical_sector(target, range()?, seed),
            MeasuredGrid::EraseBlock => erase_block(target, range()?, seed),
        }
    }
}

/// The result of a measurement.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct GridMeasurement {
    /// The grid that was measured.
    pub grid: MeasuredGrid,
    /// The spacing of the grid in bytes; `None` if the times are not conclusive.
    pub bytes: Option<u64>,
    /// The first LBN on the grid.
    #[serde(rename = "first_lbn", serialize_with = "number")]
    pub first: Lbn,
    /// The support for the result, in standard errors.
    pub sigmas: f64,
    /// The number of requests that were sent.
    pub requests: u64,
    /// The reason for the result.
    pub why: MeasurementReason,
}

macro_rules! reasons {
    ($($name:ident $clause:literal,)+) => {
        /// The reason for the result of a measurement. Its `Display` form is a clause.
        #[derive(Clone, Copy, Debug, PartialEq, Eq)]
        #[non_exhaustive]
        pub enum MeasurementReason {
            $(#[doc = concat!($clause, ".")] $name,)+
        }

        impl fmt::Display for MeasurementReason {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(match self { $(MeasurementReason::$name => $clause,)+ })
            }
        }
    };
}

reasons! {
    OneFastShift "only writes at one shift are fast",
    WritesAlike "writes are alike at every shift",
    WritesTooFast "writes complete before they can have reached the media",
    WritesVary "write times vary too much for a conclusion",
    NoSectorPattern "writes do not differ in the way that physical sectors cause",
    ReadsWait "reads across its multiples wait for two members",
    ReadsAlike "reads across multiples are not slower at any size",
    FastAtBlocks "writes that begin with one are faster than those that begin within one, by more than at any other size",
    NotFastAtBlocks "writes that begin with a block are not faster at any block size: the drive maps smaller units, or hides the effect",
}

impl Serialize for MeasurementReason {
    fn serialize<S: serde::Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(self)
    }
}

impl GridMeasurement {
    /// Creates a result without a conclusion, before the first request.
    fn unknown(grid: MeasuredGrid, why: MeasurementReason) -> GridMeasurement {
        GridMeasurement {
            grid,
            bytes: None,
            first: Lbn(0),
            sigmas: 0.0,
            requests: 0,
            why,
        }
    }
}

/// The size of the largest physical sectors of any known disk, in bytes.
const SECTOR_BYTES_MAX: u32 = 4096;
/// The smallest ratio between two mean times that differ by one revolution. A write takes at most
/// about three revolutions, so one more adds at least about a third.
const REVOLUTION_RATIO: f64 = 1.25;
/// The number of standard errors that one revolution must amount to before writes may be judged
/// alike.
const ALIKE_SIGMAS: f64 = 4.0;
/// The number of writes at each shift for each size.
const WRITES_PER_SHIFT: usize = 200;
/// The shortest mean time that a disk needs to write to its media at a random angle.
const MEDIA_MIN_MS: f64 = 1.0;
/// The number of reads of each kind at each size.
const READS: usize = 900;
/// The number of reads from which the time of a measurement is estimated.
const ESTIMATE_READS: usize = 32;
/// A chunk size is tried only if reads can be spread among more chunks than this.
const CHUNK_PLACES_MIN: u64 = 2;
/// The number of parts into which the reads are divided. After each part, the reads at this size
/// end if more would not be useful.
const PARTS: usize = 4;
/// The range of the reads in bytes: large enough that buffers hold little of it, and small enough
/// that seeks differ little.
const SPREAD_BYTES: u64 = 16 << 30;
/// The chunk sizes that are considered: the powers of two in this range.
const CHUNK_BYTES: Range<u64> = 4 << 10..(16 << 20) + 1;
/// The erase block sizes that are considered: the powers of two in this range, and one and a half
/// times each of them.
pub const ERASE_BLOCK_BYTES: Range<u64> = 64 << 10..(16 << 20) + 1;
/// The number of counted writes of each kind at each erase block size.
const ERASE_WRITES: usize = 16;

fn number<S: serde::Serializer>(lbn: &Lbn, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.serialize_u64(lbn.0)
}

fn refused(why: String) -> TargetError {
    TargetError::Refused(why)
}

/// Returns the mean time of a read at a random place, from a few reads, for an estimate of the time
/// that measurements take.
///
/// # Errors
/// Returns an error if the target does not respond.
pub fn read_time(target: &mut dyn Target, seed: u64) -> Result<Span, TargetError> {
    let identity = target.identity();
    let logical = u64::from(identity.logical_bytes.max(1));
    let lbns = identity.capacity.0.min(SPREAD_BYTES / logical).max(1);
    let mut rng = Rng::new(seed);
    let mut times = Moments::default();
    for _ in 0..ESTIMATE_READS {
        let read = Request::read(Lbn(rng.below(lbns)), 1);
        times.push(target.request(read)?.response().as_ms());
    }
    Ok(Span::from_ms(times.mean()))
}

/// Finds the physical sector by writing to `scratch`, whose data is lost.
///
/// # Errors
/// Returns an error if the target does not respond or refuses writes, or if the range is too small.
pub fn physical_sector(
    target: &mut dyn Target,
    scratch: Range<Lbn>,
    seed: u64,
) -> Result<GridMeasurement, TargetError> {
    let logical = target.identity().logical_bytes;
    let most = (SECTOR_BYTES_MAX / logical.max(1)).max(1);
    let places = scratch.end.0.saturating_sub(scratch.start.0) / u64::from(most);
    if places < 16 {
        let why = format!(
            "scratch range of {places} x {SECTOR_BYTES_MAX} bytes is too small: 16 are needed"
        );
        return Err(refused(why));
    }
    let mut rng = Rng::new(seed);
    let mut measured = GridMeasurement::unknown(
        MeasuredGrid::PhysicalSector,
        MeasurementReason::NoSectorPattern,
    );
    let mut all = Moments::default();
    let mut unclear = false;
    for size in sector_sizes(logical) {
        let mut by_shift = vec![Moments::default(); size as usize];
        // The shifts take turns, so temporary disturbances of the machine affect all of them alike.
        for _ in 0..WRITES_PER_SHIFT {
            for (shift, times) in (0..).zip(&mut by_shift) {
                // Places begin at the first multiple of the largest size in the range. The last
                // ones are not used, so every shifted write stays within the range.
                let place = scratch.start.0.next_multiple_of(u64::from(most))
                    + rng.below(places - 2) * u64::from(most);
                let write = Request {
                    fua: true,
                    ..Request::write(Lbn(place + shift), size)
                };
                times.push(target.request(write)?.response().as_ms());
                measured.requests += 1;
            }
        }
        for times in &by_shift {
            all.push(times.mean());
            // Writes are not judged alike if an additional revolution would have gone unnoticed.
            let error = times.deviation() / (times.count().max(1) as f64).sqrt();
            unclear |= error * ALIKE_SIGMAS > (REVOLUTION_RATIO - 1.0) * times.mean();
        }
        let (shift, sigmas) = quickest(&by_shift);
        if sigmas >= CERTAIN_SIGMAS {
            return Ok(GridMeasurement {
                bytes: Some(u64::from(size * logical)),
                first: Lbn(u64::from(shift)),
                sigmas,
                why: MeasurementReason::OneFastShift,
                ..measured
            });
        }
    }
    Ok(match all.mean() {
        mean if mean < MEDIA_MIN_MS => GridMeasurement {
            why: MeasurementReason::WritesTooFast,
            ..measured
        },
        _ if unclear => GridMeasurement {
            why: MeasurementReason::WritesVary,
            ..measured
        },
        _ if all.deviation() < 0.2 * all.mean() => GridMeasurement {
            bytes: Some(u64::from(logical)),
            sigmas: CERTAIN_SIGMAS,
            why: MeasurementReason::WritesAlike,
            ..measured
        },
        _ => measured,
    })
}

/// Returns the shift with the smallest mean, and the number of standard errors by which all others
/// are slower. The number is 0 if one of the others is not slower by a factor of
/// [`REVOLUTION_RATIO`].
fn quickest(by_shift: &[Moments]) -> (u32, f64) {
    let mean = |index: &usize| by_shift[*index].mean();
    let best = (0..by_shift.len()).min_by(|a, b| mean(a).total_cmp(&mean(b)));
    let best = best.unwrap_or(0);
    let others = (0..by_shift.len()).filter(|index| *index != best);
    let least = others.map(|other| {
        if mean(&other) > REVOLUTION_RATIO * mean(&best) {
            standard_errors_apart(&by_shift[other], &by_shift[best])
        } else {
            0.0
        }
    });
    (best as u32, least.fold(f64::INFINITY, f64::min))
}

/// Returns the number of standard errors by which the mean of `a` exceeds that of `b`.
fn standard_errors_apart(a: &Moments, b: &Moments) -> f64 {
    let error = |m: &Moments| m.deviation().powi(2) / m.count().max(1) as f64;
    let both = (error(a) + error(b)).sqrt();
    (a.mean() - b.mean()) / both.max(1e-6)
}

/// Finds the chunk of an array by reads of two sectors at random places.
///
/// # Errors
/// Returns an error if the target does not respond.
pub fn chunk(target: &mut dyn Target, seed: u64) -> Result<GridMeasurement, TargetError> {
    let identity = target.identity();
    let (capacity, logical) = (
        identity.capacity.0,
        u64::from(identity.logical_bytes.max(1)),
    );
    let mut rng = Rng::new(seed);
    let mut measured = GridMeasurement::unknown(MeasuredGrid::Chunk, MeasurementReason::ReadsAlike);
    for size in chunk_sizes(logical) {
        let sectors = size / logical;
        let (mut across, mut halves) = (Moments::default(), Moments::default());
        let places = chunk_places(capacity, logical, size);
        let mut sigmas = 0.0;
        let parts = if places > CHUNK_PLACES_MIN { PARTS } else { 0 };
        for part in 1..=parts {
            for _ in 0..READS / PARTS {
                for (times, before) in [(&mut across, 1), (&mut halves, 1 + sectors / 2)] {
                    let line = (1 + rng.below(places - 1)) * sectors;
                    let read = Request::read(Lbn(line - before), 2);
                    times.push(target.request(read)?.response().as_ms());
                    measured.requests += 1;
                }
            }
            sigmas = standard_errors_apart(&across, &halves);
            // A difference of `CERTAIN_SIGMAS` over all reads amounts to half of that after a
            // quarter of them.
            if sigmas >= CERTAIN_SIGMAS || part == 1 && sigmas < 1.0 {
                break;
            }
        }
        if sigmas >= CERTAIN_SIGMAS {
            return Ok(GridMeasurement {
                bytes: Some(size),
                sigmas,
                why: MeasurementReason::ReadsWait,
                ..measured
            });
        }
        measured.sigmas = measured.sigmas.max(sigmas);
    }
    Ok(measured)
}

/// Returns the chunk sizes to try in bytes, the largest first.
fn chunk_sizes(logical: u64) -> impl Iterator<Item = u64> {
    let halved = |size: &u64| Some(size / 2);
    let least = CHUNK_BYTES.start.max(4 * logical);
    std::iter::successors(Some(CHUNK_BYTES.end - 1), halved).take_while(move |size| *size >= least)
}

/// Returns the number of chunks of a size among which reads are spread.
fn chunk_places(capacity: u64, logical: u64, size: u64) -> u64 {
    capacity.min(SPREAD_BYTES / logical) / (size / logical)
}

/// Returns the sizes of physical sectors to try, in logical sectors.
fn sector_sizes(logical: u32) -> impl Iterator<Item = u32> {
    let most = (SECTOR_BYTES_MAX / logical.max(1)).max(1);
    (1..=most.ilog2()).map(|power| 1 << power)
}

/// Returns the sizes of erase blocks to try in bytes.
fn erase_block_sizes() -> impl Iterator<Item = u64> {
    let doubled = |size: &u64| Some(2 * size).filter(|size| ERASE_BLOCK_BYTES.contains(size));
    let powers = std::iter::successors(Some(ERASE_BLOCK_BYTES.start), doubled);
    powers.flat_map(|size| [size, size + size / 2])
}

/// Finds the erase block of flash memory by writing to `scratch`, whose data is lost. At most 2.7
/// GiB are written.
///
/// # Errors
/// Returns an error if the target does not respond or refuses writes, or if the range is too small.
pub fn erase_block(
    target: &mut dyn Target,
    scratch: Range<Lbn>,
    seed: u64,
) -> Result<GridMeasurement, TargetError> {
    let logical = u64::from(target.identity().logical_bytes.max(1));
    let room = scratch.end.0.saturating_sub(scratch.start.0) * logical;
    if room < 16 * ERASE_BLOCK_BYTES.start {
        let why = format!(
            "scratch range of {room} bytes is too small: {} are needed",
            16 * ERASE_BLOCK_BYTES.start
        );
        return Err(refused(why));
    }
    let mut rng = Rng::new(seed);
    let mut measured =
        GridMeasurement::unknown(MeasuredGrid::EraseBlock, MeasurementReason::NotFastAtBlocks);
    let mut gain_most = 0.0;
    for size in erase_block_sizes() {
        let sectors = size / logical;
        let first = scratch.start.0.next_multiple_of(sectors);
        let places = scratch.end.0.saturating_sub(first) / sectors;
        if places < 8 {
            break;
        }
        let (mut with, mut amid) = (Moments::default(), Moments::default());
        // The first write of each kind is not counted, because it meets the state that the previous
        // size left.
        for round in 0..=ERASE_WRITES {
            for (times, shift) in [(&mut with, 0), (&mut amid, sectors / 2)] {
                let place = first + rng.below(places - 1) * sectors + shift;
                let write = Request {
                    fua: true,
                    ..Request::write(Lbn(place), sectors as u32)
                };
                let taken = target.request(write)?.response().as_ms();
                measured.requests += 1;
                if round > 0 {
                    times.push(taken);
                }
            }
        }
        let (sigmas, gain) = (
            standard_errors_apart(&amid, &with),
            amid.mean() / with.mean(),
        );
        if sigmas >= CERTAIN_SIGMAS && gain > gain_most {
            gain_most = gain;
            measured = GridMeasurement {
                bytes: Some(size),
                sigmas,
                why: MeasurementReason::FastAtBlocks,
                ..measured
            };
        } else if measured.bytes.is_none() {
            measured.sigmas = measured.sigmas.max(sigmas);
        }
    }
    Ok(measured)
}

/// Applies measured values to a drive of a stack, except where a value has been stated.
pub fn apply_measured(stack: &mut Stack, node: &str, measured: &[GridMeasurement]) {
    for layer in &mut stack.layers {
        let Kind::Disk(disk) = &mut layer.kind else {
            continue;
        };
        if layer.node.as_deref() != Some(node) {
            continue;
        }
        for found in measured {
            let Some(bytes) = found.bytes else { continue };
            match found.grid {
                MeasuredGrid::PhysicalSector if disk.physical_by != SizeSource::Stated => {
                    disk.physical_bytes = bytes;
                    disk.physical_by = SizeSource::Measured;
                    disk.first_aligned_byte = found.first.0 * disk.logical_bytes;
                }
                // On flash, the grid that reads show is the erase block.
                MeasuredGrid::Chunk if disk.medium.is_flash() => {
                    disk.erase_bytes = disk.erase_bytes.or(Some(bytes));
                }
                MeasuredGrid::Chunk => disk.chunk_bytes = disk.chunk_bytes.or(Some(bytes)),
                MeasuredGrid::EraseBlock => disk.erase_bytes = disk.erase_bytes.or(Some(bytes)),
                MeasuredGrid::PhysicalSector => {}
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Arc;

    use traxtent_model::geometry::Geometry;
    use traxtent_model::profile::{Profile, builtin};
    use traxtent_probe::Timing;
    use traxtent_sim::{Noise, SimTarget};
    use traxtent_units::request::Op;
    use traxtent_units::{Sectors, SimTime, Span};

    use super::*;

    fn drive(profile: &Profile, seed: u64) -> SimTarget {
        let geometry = Arc::new(Geometry::build(&profile.geometry).unwrap());
        SimTarget::new(Arc::new(profile.clone()), geometry).with_noise(Noise::TYPICAL, seed)
    }

    fn sector(profile: &Profile, seed: u64) -> GridMeasurement {
        let scratch = Lbn(1_000_003)..Lbn(3_000_000);
        let measured = physical_sector(&mut drive(profile, seed), scratch, seed).unwrap();
        println!("{}: {measured:?}", profile.name);
        measured
    }

    /// Are physical sectors of 4,096 bytes found, with the right first LBN, whatever the drive
    /// reports?
    #[test]
    fn large_sectors() {
        for seed in 0..3 {
            for name in ["wd10ears", "dt01aca300"] {
                let found = sector(&builtin(name).unwrap(), seed);
                assert_eq!((found.bytes, found.first), (Some(4096), Lbn(0)));
            }
            let found = sector(&builtin("wd10ears-jumper").unwrap(), seed);
            assert_eq!((found.bytes, found.first), (Some(4096), Lbn(7)));
        }
    }

    /// Is a drive with small sectors distinguished from one whose times show nothing?
    #[test]
    fn small_sectors_and_undecided_ones() {
        let native = sector(&builtin("atlas10k2").unwrap(), 1);
        assert_eq!(native.bytes, Some(512));
        let silent = sector(&builtin("instant").unwrap(), 1);
        assert_eq!(
            (silent.bytes, silent.why),
            (None, MeasurementReason::WritesTooFast)
        );
    }

    /// Is a range that is too small refused with the required size?
    #[test]
    fn too_small() {
        let mut target = drive(&builtin("wd10ears").unwrap(), 1);
        let error = physical_sector(&mut target, Lbn(0)..Lbn(100), 1).unwrap_err();
        assert!(error.to_string().contains("16 are needed"), "{error}");
    }

    /// Two drives that hold alternate chunks.
    struct Striped {
        members: [SimTarget; 2],
        chunk: u64,
        identity: Identity,
    }

    impl Target for Striped {
        fn identity(&self) -> &Identity {
            &self.identity
        }
        fn now(&self) -> SimTime {
            self.members[0].now().max(self.members[1].now())
        }
        fn wait_until(&mut self, at: SimTime) {
            self.members
                .iter_mut()
                .for_each(|member| member.wait_until(at));
        }
        fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
            let sent = self.now();
            self.wait_until(sent);
            let mut completed = sent;
            let mut lbn = request.lbn.0;
            while lbn < request.end().0 {
                let (chunk, within) = (lbn / self.chunk, lbn % self.chunk);
                let sectors = (request.end().0 - lbn).min(self.chunk - within);
                let own = Request {
                    lbn: Lbn(chunk / 2 * self.chunk + within),
                    sectors: sectors as u32,
                    ..request
                };
                let member = &mut self.members[(chunk % 2) as usize];
                completed = completed.max(member.request(own)?.completed);
                lbn += sectors;
            }
            Ok(Timing { sent, completed })
        }
    }

    /// Is the chunk of an array found, and no chunk on a single drive?
    #[test]
    fn chunks() {
        let profile = builtin("dt01aca300").unwrap();
        for kib in [16, 64, 512] {
            // The spindles must not be synchronized.
            let mut other = profile.clone();
            other.mechanics.as_mut().unwrap().rpm -= 5.0;
            let members = [drive(&profile, 1), drive(&other, 2)];
            let identity = Identity {
                capacity: Sectors(2 * members[0].identity().capacity.0),
                ..members[0].identity().clone()
            };
            let mut array = Striped {
                members,
                chunk: 2 * kib,
                identity,
            };
            let found = chunk(&mut array, 1).unwrap();
            println!("{kib} KiB: {found:?}");
            assert_eq!(found.bytes, Some(kib << 10));
        }
        let found = chunk(&mut drive(&profile, 1), 1).unwrap();
        println!("{found:?}");
        assert_eq!(found.bytes, None);
    }

    /// Does a measurement need as many requests as announced?
    #[test]
    fn requests_are_as_announced() {
        let profile = builtin("dt01aca300").unwrap();
        let mut single = drive(&profile, 1);
        let (usual, most) = MeasuredGrid::Chunk.requests(single.identity());
        assert_eq!((usual, most), (5850, 23_400));
        let needed = chunk(&mut single, 1).unwrap().requests;
        assert!((usual..=most).contains(&needed), "{needed}");
        assert!(needed < 2 * usual, "{needed}");

        let (usual, most) = MeasuredGrid::PhysicalSector.requests(single.identity());
        assert_eq!((usual, most), (2800, 2800));
        assert_eq!(sector(&profile, 1).requests, most);

        let mut flash = Flash::new(Some(128 << 10), 1);
        let (_, most) = MeasuredGrid::EraseBlock.requests(flash.identity());
        let needed = erase_block(&mut flash, Lbn(0)..Lbn(32 << 20), 1)
            .unwrap()
            .requests;
        assert_eq!(needed, most);
    }

    /// Flash memory that maps whole erase blocks, or every page separately.
    struct Flash {
        erase: Option<u64>,
        now: SimTime,
        identity: Identity,
        noise: Rng,
    }

    impl Flash {
        /// The number of bytes that it programs in a millisecond.
        const BYTES_PER_MS: f64 = 20.0 * 1024.0;

        fn new(erase: Option<u64>, seed: u64) -> Flash {
            Flash {
                erase,
                now: SimTime::ZERO,
                identity: Identity {
                    capacity: Sectors(64 << 21),
                    logical_bytes: 512,
                    ..Identity::default()
                },
                noise: Rng::new(seed),
            }
        }

        /// Returns the milliseconds for a write: the rest of each block is copied, and each block
        /// takes 2 ms to erase.
        fn write_ms(&mut self, bytes: Range<u64>) -> f64 {
            let own = (bytes.end - bytes.start) as f64 / Flash::BYTES_PER_MS;
            let Some(erase) = self.erase else {
                // Garbage collection delays a write now and then.
                return own + if self.noise.chance(0.05) { 40.0 } else { 0.0 };
            };
            let blocks = bytes.start / erase..bytes.end.div_ceil(erase);
            let touched = (blocks.end - blocks.start) * erase;
            let copied = touched - (bytes.end - bytes.start);
            own + copied as f64 / Flash::BYTES_PER_MS + 2.0 * (blocks.end - blocks.start) as f64
        }

        /// Returns the milliseconds for a read, which accesses every block separately.
        fn read_ms(&self, bytes: Range<u64>) -> f64 {
            let erase = self.erase.unwrap_or(4096);
            0.3 * (bytes.end.div_ceil(erase) - bytes.start / erase) as f64
        }
    }

    impl Target for Flash {
        fn identity(&self) -> &Identity {
            &self.identity
        }
        fn now(&self) -> SimTime {
            self.now
        }
        fn wait_until(&mut self, at: SimTime) {
            self.now = self.now.max(at);
        }
        fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
            let sent = self.now;
            let bytes = request.lbn.0 * 512..request.end().0 * 512;
            let ms = match request.op {
                Op::Write => self.write_ms(bytes),
                _ => self.read_ms(bytes),
            };
            self.now += Span::from_ms(ms * (1.0 + 0.1 * self.noise.fraction()));
            let completed = self.now;
            Ok(Timing { sent, completed })
        }
    }

    /// Is the erase block of simple flash found by writes and, if it is a power of two, by reads?
    /// Is none found if every page is mapped separately? Is a range that is too small refused?
    #[test]
    fn erase_blocks() {
        let scratch = Lbn(1001)..Lbn(1 << 20);
        for (seed, kib) in [128, 512, 1536, 3 << 10, 4 << 10].into_iter().enumerate() {
            let mut flash = Flash::new(Some(kib << 10), seed as u64);
            let found = erase_block(&mut flash, scratch.clone(), 1).unwrap();
            println!("{kib} KiB: {found:?}");
            assert_eq!(found.bytes, Some(kib << 10));
            if kib.is_power_of_two() {
                assert_eq!(chunk(&mut flash, 1).unwrap().bytes, Some(kib << 10));
            }
        }
        for seed in 0..10 {
            let mut pages = Flash::new(None, seed);
            let found = erase_block(&mut pages, scratch.clone(), seed).unwrap();
            assert_eq!(found.bytes, None, "{found:?}");
        }
        let small = erase_block(&mut Flash::new(None, 1), Lbn(0)..Lbn(1000), 1);
        assert!(
            small
                .unwrap_err()
                .to_string()
                .contains("bytes is too small")
        );
    }
}

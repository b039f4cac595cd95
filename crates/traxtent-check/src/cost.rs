//! The cost of misalignment, by the model of a drive: milliseconds per request, aligned and
//! misaligned.
//!
//! Each [`Load`] runs twice on the modelled drive: once with every block at the start of a physical
//! sector, and once with every block shifted by a given number of logical sectors. The mean times
//! per request, after the buffer has filled, are compared. No device is read or written. The same
//! profile, load and offset give the same cost.
//!
//! [`block_costs`] compares blocks of different sizes instead. [`mod@array`] adds the effects of
//! arrays, and [`crossing`] those of track boundaries.
//! [`FindingCosts`] holds the cost of each finding, or the reason why it has none. Left out:
//! everything on the host but its turnaround.

pub mod array;
pub mod crossing;
mod findings;

use serde::Serialize;
use traxtent_model::drive::Drive;
use traxtent_model::profile::{Profile, ProfileError, builtin};
use traxtent_units::Rng;
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime, Span};
use traxtent_workload::Distribution;

pub use array::ArrayLoad;
pub use crossing::CrossingLoad;
pub use findings::{CostResult, FindingCosts, NoCostError, SectorSizes};

/// The kinds of work on one drive whose cost is simulated.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Load {
    /// Random writes of 4 KiB, one at a time.
    SmallWrites,
    /// Files of 8 KiB made durable one by one: the data and 16 KiB of journal, each after the
    /// previous ones in LBN order, then a flush.
    SmallFiles,
    /// Writes of 512 KiB, one at a time, in sequential runs that begin at random blocks.
    LargeWrites,
    /// Random reads of 4 KiB, one at a time.
    Reads,
}

/// The kinds of work whose cost is simulated: on a drive, on an array, or across tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Work {
    /// Work on one drive, misaligned to its physical sectors.
    Drive(Load),
    /// Work on an array, misaligned to its chunks or stripes.
    Array(ArrayLoad),
    /// Work on blocks or extents that span two tracks.
    Crossing(CrossingLoad),
}

impl Work {
    /// Returns the name for the user.
    pub fn name(self) -> &'static str {
        match self {
            Work::Drive(load) => load.name(),
            Work::Array(load) => load.name(),
            Work::Crossing(load) => load.name(),
        }
    }
}

/// The cost of one kind of work.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct WorkCost {
    /// The kind of work.
    #[serde(rename = "work")]
    pub load: Work,
    /// Milliseconds per request, or per file, without the problem that the finding reports.
    pub aligned_ms: f64,
    /// Milliseconds per request, or per file, with that problem.
    pub actual_ms: f64,
}

impl Load {
    /// All kinds, in the order of reports.
    pub const ALL: [Load; 4] = [
        Load::SmallWrites,
        Load::SmallFiles,
        Load::LargeWrites,
        Load::Reads,
    ];

    /// Returns the name for the user.
    pub fn name(self) -> &'static str {
        match self {
            Load::SmallWrites => "small random writes",
            Load::SmallFiles => "small files",
            Load::LargeWrites => "large writes",
            Load::Reads => "reads",
        }
    }

    /// Returns the number of requests in one counted unit of work.
    fn requests_each(self) -> usize {
        match self {
            Load::SmallFiles => 3,
            _ => 1,
        }
    }
}

impl WorkCost {
    /// Returns the milliseconds that the problem adds.
    pub fn extra_ms(&self) -> f64 {
        self.actual_ms - self.aligned_ms
    }

    /// Returns the added time in percent of the aligned time.
    pub fn percent(&self) -> f64 {
        100.0 * self.extra_ms() / self.aligned_ms
    }
}

/// Returns the profile for the cost of a finding if the drive is not known: a 3 TB drive of 2015,
/// the modern drive with the most measured figures.
///
/// # Panics
/// Never: the profile is built in.
pub fn typical() -> Profile {
    builtin("toshiba-p300").expect("it is built in")
}

/// The number of 4 KiB blocks in a large write.
const LARGE_BLOCKS: u64 = 128;
/// The number of large writes in a sequential run. A run begins at a random block, because places
/// relative to tracks must not depend on the offset: on the WD10EARS, every fifth large write from
/// LBN 0 would end exactly with a track, and the next one would begin too late for the skew.
const LARGE_RUN: u64 = 250;
/// The mean turnaround of a host that sends one request at a time, in milliseconds. Assumed.
const TURNAROUND_MS: f64 = 0.1;
/// The number of units of work before counting begins, which fill the drive's buffer.
const WARM_UP_UNITS: usize = 200;
/// The number of units of work that are counted.
const COUNTED_UNITS: usize = 2000;
/// The range over which work is spread, in bytes from the start of the drive. On a small drive, it
/// is half of the drive instead.
const SPREAD_BYTES: u64 = 16 << 30;

/// Returns the cost of a kind of work on a drive whose blocks begin `offset` logical sectors after
/// the start of a physical sector.
///
/// # Errors
/// Returns an error if a value of the profile is out of bounds.
pub fn work_cost(profile: &Profile, load: Load, offset: u32) -> Result<WorkCost, ProfileError> {
    let drive = Drive::new(profile)?;
    let each = |offset| ms_each(drive.clone(), load, offset);
    Ok(WorkCost {
        load: Work::Drive(load),
        aligned_ms: each(0),
        actual_ms: each(offset),
    })
}

/// Returns the cost of every [`Load`] on a drive whose blocks begin `offset` logical sectors after
/// the start of a physical sector.
///
/// # Errors
/// See [`work_cost`].
pub fn sector_costs(profile: &Profile, offset: u32) -> Result<Vec<WorkCost>, ProfileError> {
    let of = |load| work_cost(profile, load, offset);
    Load::ALL.into_iter().map(of).collect()
}

/// Returns the costs of small writes and of reads if the blocks of a file system are smaller than
/// physical sectors.
///
/// # Errors
/// See [`work_cost`].
pub fn block_costs(profile: &Profile, block_bytes: u64) -> Result<Vec<WorkCost>, ProfileError> {
    let drive = Drive::new(profile)?;
    let sector = profile.sector;
    let logical = u64::from(sector.logical_bytes);
    let first = u64::from(sector.lowest_aligned_lbn);
    let each = |bytes: u64, op: fn(Lbn, u32) -> Request| {
        let mut rng = Rng::new(1);
        let sectors = (bytes / logical).max(1);
        let blocks = (SPREAD_BYTES / logical).min(drive.geometry().capacity().0 / 2) / sectors;
        let next = move || op(Lbn(first + rng.below(blocks) * sectors), sectors as u32);
        ms_of_requests(drive.clone(), 1, next)
    };
    let physical = u64::from(sector.physical_bytes);
    let cost = |load, op| WorkCost {
        load: Work::Drive(load),
        aligned_ms: each(physical, op),
        actual_ms: each(block_bytes, op),
    };
    Ok(vec![
        cost(Load::SmallWrites, Request::write),
        cost(Load::Reads, Request::read),
    ])
}

/// Returns the mean milliseconds per unit of work.
fn ms_each(drive: Drive, load: Load, offset: u32) -> f64 {
    let mut requests = Requests::new(&drive, load, offset);
    ms_of_requests(drive, load.requests_each(), move || requests.next())
}

/// Returns the mean milliseconds per unit of `each` requests, which are sent one at a time.
fn ms_of_requests(mut drive: Drive, each: usize, mut next: impl FnMut() -> Request) -> f64 {
    // The turnaround varies: with a fixed one, requests would synchronize with the rotation.
    let pauses = Distribution::Exponential {
        base: 0.0,
        mean: TURNAROUND_MS,
    };
    let mut rng = Rng::new(2);
    let (mut now, mut sent, mut completed) = (SimTime::ZERO, 0, 0);
    let mut begun = now;
    while completed < (WARM_UP_UNITS + COUNTED_UNITS) * each {
        if sent == completed {
            drive
                .submit(now, next())
                .expect("the request is on the drive");
            sent += 1;
        }
        now = drive.next_wakeup().expect("a request is outstanding");
        while drive.poll(now).is_some() {
            completed += 1;
            if completed == WARM_UP_UNITS * each {
                begun = now;
            }
        }
        now += pauses.sample_time(&mut rng);
    }
    let spent: Span = now.since(begun);
    spent.as_ms() / COUNTED_UNITS as f64
}

/// The requests of a load.
struct Requests {
    load: Load,
    rng: Rng,
    /// The LBN of the first block.
    first: u64,
    /// The number of sectors in 4 KiB.
    block: u64,
    /// The number of blocks over which work is spread.
    blocks: u64,
    /// The first block of the current run of large writes.
    run: u64,
    number: u64,
}

impl Requests {
    fn new(drive: &Drive, load: Load, offset: u32) -> Requests {
        let sector = drive.profile().sector;
        let bytes = u64::from(sector.logical_bytes);
        let block = (4096 / bytes).max(1);
        let capacity = drive.geometry().capacity().0;
        Requests {
            load,
            rng: Rng::new(1),
            first: u64::from(sector.lowest_aligned_lbn) + u64::from(offset),
            block,
            blocks: (SPREAD_BYTES / bytes).min(capacity / 2) / block,
            run: 0,
            number: 0,
        }
    }

    fn next(&mut self) -> Request {
        let number = self.number;
        self.number += 1;
        match self.load {
            Load::SmallWrites => {
                let block = self.rng.below(self.blocks);
                Request::write(self.lbn(block), self.block as u32)
            }
            Load::Reads => {
                let block = self.rng.below(self.blocks);
                Request::read(self.lbn(block), self.block as u32)
            }
            Load::LargeWrites => {
                let blocks = LARGE_BLOCKS.min(self.blocks);
                let starts = self.blocks - blocks + 1;
                let within = number % LARGE_RUN;
                if within == 0 {
                    self.run = self.rng.below(starts);
                }
                let block = (self.run + within * blocks) % starts;
                Request::write(self.lbn(block), (blocks * self.block) as u32)
            }
            Load::SmallFiles => self.file(number),
        }
    }

    /// Returns one of a file's three requests. The journal has the first half of the blocks, the
    /// data the second.
    fn file(&self, number: u64) -> Request {
        let (file, half) = (number / 3, self.blocks / 2);
        match number % 3 {
            0 => Request::write(
                self.lbn(half + 2 * file % (half - 1)),
                2 * self.block as u32,
            ),
            1 => Request::write(self.lbn(4 * file % (half - 3)), 4 * self.block as u32),
            _ => Request::flush(),
        }
    }

    fn lbn(&self, block: u64) -> Lbn {
        Lbn(self.first + block * self.block)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Is the cost zero if nothing is misaligned, and small on a drive whose logical sectors are
    /// its physical ones?
    #[test]
    fn aligned_work_costs_nothing() {
        let native = builtin("atlas10k2").unwrap();
        for cost in sector_costs(&typical(), 0).unwrap() {
            assert_eq!(cost.extra_ms(), 0.0, "{cost:?}");
        }
        for cost in sector_costs(&native, 3).unwrap() {
            assert!(cost.percent().abs() < 5.0, "{cost:?}");
        }
    }

    /// Does a misaligned small write cost about one revolution, between reading and writing
    /// physical sectors, if no cache hides it?
    #[test]
    fn a_revolution() {
        let profile = typical().with_value("cache.write_back", "none").unwrap();
        let cost = work_cost(&profile, Load::SmallWrites, 2).unwrap();
        let revolutions = cost.extra_ms() / profile.revolution_ms();
        assert!((0.9..1.1).contains(&revolutions), "{cost:?}");
    }

    /// Do large writes take as long at an offset of whole physical sectors as at none, so that a
    /// cost is due to physical sectors alone and not to other places relative to tracks? Do
    /// misaligned large writes cost little?
    #[test]
    fn places_relative_to_tracks_cost_nothing() {
        for name in ["wd10ears", "st2000l003", "dt01aca300"] {
            let profile = builtin(name).unwrap();
            for offset in [8, 16] {
                let cost = work_cost(&profile, Load::LargeWrites, offset).unwrap();
                assert!(cost.percent().abs() < 1.0, "{name}, {offset}: {cost:?}");
            }
            let cost = work_cost(&profile, Load::LargeWrites, 2).unwrap();
            assert!((-1.0..15.0).contains(&cost.percent()), "{name}: {cost:?}");
        }
    }

    /// Do misaligned small writes and small files cost much more than large writes and reads, and
    /// is the shifted numbering of a drive with a jumper taken into account?
    #[test]
    fn small_writes_cost_most() {
        let of = |name: &str, offset| sector_costs(&builtin(name).unwrap(), offset).unwrap();
        let shifted = of("wd10ears-jumper", 0);
        assert!(shifted.iter().all(|cost| cost.extra_ms() == 0.0));
        for name in ["wd10ears", "st2000l003", "dt01aca300"] {
            let [small, files, large, reads] = of(name, 2)[..] else {
                panic!("four loads")
            };
            // A physical sector that two large writes share is written once, from the buffer.
            assert!(
                small.percent() > 100.0 && large.percent().abs() < 15.0,
                "{small:?} {large:?}"
            );
            assert!(
                files.percent() > 20.0 && reads.percent().abs() < 2.0,
                "{files:?} {reads:?}"
            );
        }
    }
}

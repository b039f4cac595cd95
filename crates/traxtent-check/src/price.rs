//! What it costs to lie off a boundary, by the model of a drive: milliseconds a request, aligned and not.
//!
//! Each [`Load`] is asked of the modelled drive twice, once with every block where it should be and once so many
//! sectors behind, and what is compared is the time that a request takes once the buffer is full. Nothing is read
//! or written; the same profile, load and offset give the same price.
//!
//! What arrays add is in [`mod@array`], what boundaries of tracks do in [`crossing`]; [`Prices`] says which finding has which
//! price, or why none. Left out: all of the host but a pause.

pub mod array;
pub mod crossing;
mod findings;

use std::sync::Arc;

use serde::Serialize;
use traxtent_core::drive::Drive;
use traxtent_core::geometry::Geometry;
use traxtent_core::profile::{Profile, ProfileError, builtin};
use traxtent_core::request::Request;
use traxtent_core::units::{Lbn, Sectors, SimTime, Span};
use traxtent_core::workload::{Distribution, Rng};

pub use array::ArrayLoad;
pub use crossing::CrossingLoad;
pub use findings::Prices;

/// Kinds of work that have a price.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
#[non_exhaustive]
pub enum Load {
    /// 4 KiB written at random, one after another.
    SmallWrites,
    /// Files of 8 KiB made durable one by one: data and a journal's 16 KiB, each behind those before, and a flush.
    SmallFiles,
    /// 512 KiB written behind another, one after another.
    LargeWrites,
    /// 4 KiB read at random, one after another.
    Reads,
    /// Whole tracks read at random, two at a time. The boundary is that of the track.
    TrackReads,
}

/// What has a price: work of a drive, of an array, or of tracks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum Work {
    /// Of one drive, off its physical sectors.
    Drive(Load),
    /// Of an array, off its chunks or stripes.
    Array(ArrayLoad),
    /// Of what spans two tracks.
    Crossing(CrossingLoad),
}

impl Work {
    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Work::Drive(load) => load.name(),
            Work::Array(load) => load.name(),
            Work::Crossing(load) => load.name(),
        }
    }
}

/// What a kind of work costs.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct Cost {
    /// Which.
    #[serde(rename = "work")]
    pub load: Work,
    /// Milliseconds a request, or a file, where blocks lie at boundaries.
    pub aligned_ms: f64,
    /// Milliseconds where they lie behind them.
    pub actual_ms: f64,
}

impl Load {
    /// All kinds, in the order of reports.
    pub const ALL: [Load; 5] = [
        Load::SmallWrites,
        Load::SmallFiles,
        Load::LargeWrites,
        Load::Reads,
        Load::TrackReads,
    ];
    /// Those that physical sectors have a part in.
    pub const OF_SECTORS: [Load; 4] = [
        Load::SmallWrites,
        Load::SmallFiles,
        Load::LargeWrites,
        Load::Reads,
    ];

    /// What a person calls it.
    pub fn name(self) -> &'static str {
        match self {
            Load::SmallWrites => "small random writes",
            Load::SmallFiles => "small files",
            Load::LargeWrites => "large writes",
            Load::Reads => "reads",
            Load::TrackReads => "reads of tracks",
        }
    }

    /// Requests that are outstanding at a time.
    pub fn depth(self) -> usize {
        match self {
            Load::TrackReads => 2,
            _ => 1,
        }
    }

    /// Requests that make up what is counted.
    fn requests_each(self) -> usize {
        match self {
            Load::SmallFiles => 3,
            _ => 1,
        }
    }
}

impl Cost {
    /// Milliseconds that misalignment adds.
    pub fn extra_ms(&self) -> f64 {
        self.actual_ms - self.aligned_ms
    }

    /// The same in percent of what it would take.
    pub fn percent(&self) -> f64 {
        100.0 * self.extra_ms() / self.aligned_ms
    }
}

/// The drive to price a finding on where nobody knows the one at hand: 3 TB, of 2015, the modern drive of which most
/// figures were measured.
///
/// # Panics
/// Never: it is built in.
pub fn typical() -> Profile {
    builtin("toshiba-p300").expect("it is built in")
}

/// Blocks of 4 KiB in a large write.
const LARGE_BLOCKS: u64 = 128;
/// What a host that has one request at a time takes in the mean from an answer to its next request. Assumed.
const PAUSE_MS: f64 = 0.1;
/// Requests that are let go by first, so that the drive's buffer is as full as it will be.
const WARM: usize = 200;
/// What is then counted.
const COUNTED: usize = 2000;
/// Work is spread over so many bytes from the drive's first on, or half of a smaller drive.
const SPREAD: u64 = 16 << 30;

/// What a kind of work costs on a drive whose blocks begin `behind` logical sectors behind a boundary.
///
/// # Errors
/// If the profile is out of its bounds.
pub fn price(profile: &Profile, load: Load, behind: u32) -> Result<Cost, ProfileError> {
    let drive = Drive::new(profile)?;
    let each = |behind| ms_each(drive.clone(), load, behind);
    Ok(Cost {
        load: Work::Drive(load),
        aligned_ms: each(0),
        actual_ms: each(behind),
    })
}

/// What every kind of work in which physical sectors have a part costs.
///
/// # Errors
/// As of [`price`].
pub fn prices(profile: &Profile, behind: u32) -> Result<Vec<Cost>, ProfileError> {
    let of = |load| price(profile, load, behind);
    Load::OF_SECTORS.into_iter().map(of).collect()
}

/// What every kind of work costs where blocks of a file system are smaller than physical sectors.
///
/// # Errors
/// As of [`price`].
pub fn prices_of_blocks(profile: &Profile, block_bytes: u64) -> Result<Vec<Cost>, ProfileError> {
    let drive = Drive::new(profile)?;
    let sector = profile.sector;
    let logical = u64::from(sector.logical_bytes);
    let first = u64::from(sector.lowest_aligned_lbn);
    let each = |bytes: u64, op: fn(Lbn, u32) -> Request| {
        let mut rng = Rng::new(1);
        let sectors = (bytes / logical).max(1);
        let blocks = (SPREAD / logical).min(drive.geometry().capacity().0 / 2) / sectors;
        let next = move || op(Lbn(first + rng.below(blocks) * sectors), sectors as u32);
        ms_of_requests(drive.clone(), 1, 1, next)
    };
    let physical = u64::from(sector.physical_bytes);
    let cost = |load, op| Cost {
        load: Work::Drive(load),
        aligned_ms: each(physical, op),
        actual_ms: each(block_bytes, op),
    };
    Ok(vec![
        cost(Load::SmallWrites, Request::write),
        cost(Load::Reads, Request::read),
    ])
}

/// The mean of what is counted.
fn ms_each(drive: Drive, load: Load, behind: u32) -> f64 {
    let mut requests = Requests::new(&drive, load, behind);
    ms_of_requests(drive, load.requests_each(), load.depth(), move || {
        requests.next()
    })
}

/// The mean of so many requests each, of which so many are outstanding at a time.
fn ms_of_requests(
    mut drive: Drive,
    each: usize,
    depth: usize,
    mut next: impl FnMut() -> Request,
) -> f64 {
    // A host is no clockwork: with a fixed pause, requests fall into step with the platters.
    let pauses = Distribution::Exponential {
        base: 0.0,
        mean: PAUSE_MS,
    };
    let mut rng = Rng::new(2);
    let (mut now, mut sent, mut answered) = (SimTime::ZERO, 0, 0);
    let mut begun = now;
    while answered < (WARM + COUNTED) * each {
        while sent < answered + depth {
            drive.submit(now, next()).expect("it is on the drive");
            sent += 1;
        }
        now = drive.next_wakeup().expect("a request is outstanding");
        while drive.poll(now).is_some() {
            answered += 1;
            if answered == WARM * each {
                begun = now;
            }
        }
        if depth == 1 {
            now += pauses.sample_time(&mut rng);
        }
    }
    let spent: Span = now.since(begun);
    spent.as_ms() / COUNTED as f64
}

/// A load's requests.
struct Requests {
    load: Load,
    rng: Rng,
    geometry: Arc<Geometry>,
    /// Where the first block begins.
    first: u64,
    /// How far that is behind a boundary.
    behind: Sectors,
    /// Sectors of 4 KiB.
    block: u64,
    /// Blocks that work is spread over.
    blocks: u64,
    number: u64,
}

impl Requests {
    fn new(drive: &Drive, load: Load, behind: u32) -> Requests {
        let sector = drive.profile().sector;
        let bytes = u64::from(sector.logical_bytes);
        let block = (4096 / bytes).max(1);
        let capacity = drive.geometry().capacity().0;
        Requests {
            load,
            rng: Rng::new(1),
            geometry: Arc::clone(drive.geometry()),
            first: u64::from(sector.lowest_aligned_lbn) + u64::from(behind),
            behind: Sectors(u64::from(behind)),
            block,
            blocks: (SPREAD / bytes).min(capacity / 2) / block,
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
                let block = number * blocks % (self.blocks - blocks + 1);
                Request::write(self.lbn(block), (blocks * self.block) as u32)
            }
            Load::SmallFiles => self.file(number),
            Load::TrackReads => {
                let block = self.rng.below(self.blocks);
                let somewhere = self.lbn(block);
                let track = self.geometry.track_of(somewhere);
                let (first, sectors) =
                    track.map_or((somewhere, 1), |track| (track.first_lbn, track.sectors));
                Request::read(first + self.behind, sectors)
            }
        }
    }

    /// A part of a file: the journal has the first half of the blocks, data the second.
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

    /// Is a price of nothing asked where nothing is misaligned, or where logical sectors are physical ones?
    #[test]
    fn nothing_costs_nothing() {
        let native = builtin("atlas10k2").unwrap();
        for price in prices(&typical(), 0).unwrap() {
            assert_eq!(price.extra_ms(), 0.0, "{price:?}");
        }
        for price in prices(&native, 3).unwrap() {
            assert!(price.percent().abs() < 5.0, "{price:?}");
        }
    }

    /// Does a small write amid physical sectors cost about the revolution that lies between reading and writing them,
    /// where nothing hides it?
    #[test]
    fn a_revolution() {
        let profile = typical().with("cache.write_back", "none").unwrap();
        let price = price(&profile, Load::SmallWrites, 2).unwrap();
        let revolutions = price.extra_ms() / profile.revolution_ms();
        assert!((0.9..1.1).contains(&revolutions), "{price:?}");
    }

    /// Are writes the dearer ones, and is the jumper's drive aligned where the numbering is shifted?
    #[test]
    fn order_and_jumper() {
        let of = |name: &str, behind| prices(&builtin(name).unwrap(), behind).unwrap();
        let shifted = of("wd10ears-jumper", 0);
        assert!(shifted.iter().all(|price| price.extra_ms() == 0.0));
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

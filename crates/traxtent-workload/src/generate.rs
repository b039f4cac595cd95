//! The requests of a synthetic workload: operations, sizes and addresses, without times.
//!
//! Every request draws its random numbers in a fixed order: operation, force unit access, access
//! pattern (sequential, local, random), then address and size. The order is part of the workload
//! grammar. The same specification, seed and drive give the same requests in every version that
//! reads this grammar, and on every machine.
//!
//! If a random or local request does not fit the region, its address and size are redrawn together,
//! as in DiskSim. Large requests are therefore slightly rarer near the end of a small region. A
//! sequential request redraws only its size. After 1,000 rejected draws, or if no other draw can
//! fit, the first range in the region that fits is used.

use std::ops::Range;

use super::distribution::Distribution;
use super::quantity::LengthUnit;
use super::spec::{
    RequestSizes, StartAlignment, WorkloadError, WorkloadKind, WorkloadProblem, WorkloadRegion,
    WorkloadSpec,
};
use traxtent_model::geometry::Geometry;
use traxtent_units::Rng;
use traxtent_units::request::{Op, Request};
use traxtent_units::{Count, Lbn, Sectors};

/// The properties of a drive that a workload needs: its capacity, tracks and zones.
pub trait TrackSource {
    /// Returns the first LBN of the track that holds `lbn`, and the first LBN after the track.
    ///
    /// Called only with LBNs below [`TrackSource::capacity`].
    fn track_bounds(&self, lbn: Lbn) -> (Lbn, Lbn);

    /// The number of LBNs of the drive.
    fn capacity(&self) -> Sectors;

    /// Returns the first LBN of a zone and the first LBN after it, or `None` after the last zone.
    /// Zones are counted from 0 in LBN order.
    fn zone_bounds(&self, zone: u32) -> Option<(Lbn, Lbn)> {
        let _ = zone;
        None
    }
}

/// A device of which only the capacity is known. It counts as one track, and has no zones.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct CapacityOnly(pub Sectors);

impl TrackSource for CapacityOnly {
    fn track_bounds(&self, _: Lbn) -> (Lbn, Lbn) {
        (Lbn(0), Lbn(self.0.0))
    }

    fn capacity(&self) -> Sectors {
        self.0
    }
}

impl TrackSource for Geometry {
    fn track_bounds(&self, lbn: Lbn) -> (Lbn, Lbn) {
        let track = self.track_of(lbn).expect("the LBN is below the capacity");
        (track.first_lbn, track.end_lbn())
    }

    fn capacity(&self) -> Sectors {
        Geometry::capacity(self)
    }

    fn zone_bounds(&self, zone: u32) -> Option<(Lbn, Lbn)> {
        let zone = self.zones().get(zone as usize)?;
        Some((zone.first_lbn, zone.end_lbn))
    }
}

/// The number of rejected draws after which the first range that fits is used.
const REJECTED_DRAWS_MAX: u32 = 1000;

/// An endless iterator over the requests of a workload.
#[derive(Clone)]
pub struct RequestGenerator<'a> {
    tracks: &'a dyn TrackSource,
    rng: Rng,
    read: f64,
    fua: f64,
    sequential: f64,
    local: f64,
    distance: Distribution,
    sizes: Sizes,
    starts: Starts,
    /// True if sequential requests start where the last one ended, regardless of `starts`.
    runs_on: bool,
    region: Range<u64>,
    /// The start and end of the last request.
    last: Range<u64>,
}

#[derive(Clone)]
enum Sizes {
    Fixed(u64),
    Track,
    Drawn { values: Distribution, round: u64 },
}

impl Sizes {
    /// Draws a size in sectors, which may be 0; 0 if the size is that of a track.
    fn draw(&self, rng: &mut Rng) -> u64 {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Track => 0,
            Sizes::Drawn { values, round } => {
                let size = u64::try_from(values.sample_integer(rng)).unwrap_or(0);
                size.div_ceil(*round).saturating_mul(*round)
            }
        }
    }

    /// The smallest size that can be drawn, in sectors; 1 if the size is that of a track.
    fn min_size(&self) -> u64 {
        match self {
            Sizes::Fixed(size) => *size,
            Sizes::Track => 1,
            Sizes::Drawn { values, round } => {
                let least = match values {
                    Distribution::Uniform { low, .. } => libm::floor(*low),
                    _ => libm::round(values.lower_bound()),
                }
                .max(1.0);
                (least as u64).div_ceil(*round).saturating_mul(*round)
            }
        }
    }
}

#[derive(Clone, Copy)]
enum Starts {
    /// Multiples of `step` plus `offset`. For a fixed size, `first` and `count` give the starts
    /// that fit.
    Every {
        step: u64,
        offset: u64,
        first: u64,
        count: u64,
    },
    /// The first LBN of each track plus `offset`.
    Track { offset: u64 },
}

impl<'a> RequestGenerator<'a> {
    /// Creates a generator of the requests of `spec` on a drive, with random numbers from `rng`.
    ///
    /// # Errors
    /// Returns an error if the specification contradicts itself, if the drive has no LBNs or more
    /// than 2^63 - 1, or if the specification does not fit the drive: a region beyond its end, a
    /// zone that it does not have, a length that is not a multiple of its sectors, or sizes that
    /// fit nowhere.
    pub fn new(
        spec: &WorkloadSpec,
        sector_bytes: u32,
        tracks: &'a dyn TrackSource,
        rng: Rng,
    ) -> Result<Self, WorkloadError> {
        spec.check()?;
        let region = region(spec, tracks)?;
        let round = to_sectors("round", spec.size_multiple, sector_bytes)?;
        let offset = to_sectors("offset", spec.offset, sector_bytes)?;
        let sizes = match &spec.size {
            RequestSizes::Track => Sizes::Track,
            RequestSizes::Drawn(length) => {
                let values = length.in_sectors(sector_bytes);
                if let Distribution::Constant(size) = values {
                    let whole = size >= 1.0 && size == libm::floor(size);
                    let size = (size as u64).div_ceil(round).saturating_mul(round);
                    let fits = size <= u64::from(u32::MAX) && size <= region.end - region.start;
                    if !whole || !fits {
                        let longest = (region.end - region.start).min(u64::from(u32::MAX));
                        let expected = format!(
                            "expected a whole number of sectors of {sector_bytes} bytes, from 1 to {longest}"
                        );
                        return Err(value_error("size", length, expected));
                    }
                    Sizes::Fixed(size)
                } else {
                    let longest = (region.end - region.start).min(u64::from(u32::MAX));
                    if values.lower_bound() > longest as f64 || round > longest {
                        return Err(value_error(
                            "size",
                            length,
                            format!("expected sizes from 1 to {longest} sectors"),
                        ));
                    }
                    let sizes = Sizes::Drawn { values, round };
                    let mut trial = Rng::new(0);
                    let mut draws = (0..REJECTED_DRAWS_MAX).map(|_| sizes.draw(&mut trial));
                    if !draws.any(|size| (1..=longest).contains(&size)) {
                        return Err(value_error(
                            "size",
                            length,
                            format!(
                                "expected sizes from 1 to {longest} sectors, but none of {REJECTED_DRAWS_MAX} drawn sizes is"
                            ),
                        ));
                    }
                    sizes
                }
            }
        };
        let starts = match spec.align {
            StartAlignment::Track => Starts::Track { offset },
            StartAlignment::None => every(1, 0, &sizes, &region),
            StartAlignment::Size => {
                let step = match spec.kind {
                    WorkloadKind::Sequential => 1,
                    WorkloadKind::Random | WorkloadKind::Mixed => sizes.min_size(),
                };
                every(step, 0, &sizes, &region)
            }
            StartAlignment::Every(unit, length) => every(
                to_sectors("align", (unit, length), sector_bytes)?,
                offset,
                &sizes,
                &region,
            ),
        };
        let distance = spec
            .distance
            .as_ref()
            .map(|length| length.in_sectors(sector_bytes));
        let mut generator = RequestGenerator {
            tracks,
            rng,
            read: spec.read,
            fua: spec.fua,
            sequential: spec.sequential,
            local: spec.local,
            distance: distance.unwrap_or(Distribution::Constant(0.0)),
            sizes,
            starts,
            runs_on: spec.align == StartAlignment::Size,
            last: region.start..region.start,
            region,
        };
        if generator.first_fit().is_none() {
            let hint = match spec.align {
                StartAlignment::Size => "; with align=none, requests can start at any LBN",
                _ => "",
            };
            let reason = format!(
                "no aligned request fits the {} from {}{hint}",
                Count(generator.region.end - generator.region.start, "LBN"),
                generator.region.start
            );
            return Err(WorkloadProblem::Conflict {
                key: "size",
                reason,
            }
            .into());
        }
        if spec.kind == WorkloadKind::Mixed {
            // A sequential or local first request follows a random request that is not issued.
            generator.last = generator.random();
        }
        Ok(generator)
    }

    /// The range of LBNs used.
    pub fn region(&self) -> Range<Lbn> {
        Lbn(self.region.start)..Lbn(self.region.end)
    }

    fn random(&mut self) -> Range<u64> {
        if let (
            Sizes::Fixed(size),
            Starts::Every {
                step, first, count, ..
            },
        ) = (&self.sizes, self.starts)
        {
            let start = first + step * self.rng.below(count);
            return start..start + size;
        }
        let length = self.region.end - self.region.start;
        for _ in 0..REJECTED_DRAWS_MAX {
            let near = self.region.start + self.rng.below(length);
            if let Some(place) = self.draw_at(near) {
                return place;
            }
        }
        self.fallback()
    }

    fn near_last(&mut self) -> Range<u64> {
        for _ in 0..REJECTED_DRAWS_MAX {
            let near = self
                .last
                .start
                .checked_add_signed(self.distance.sample_integer(&mut self.rng));
            // The size is drawn even if the address is already out of range. Address and size are
            // rejected together.
            let near = near.unwrap_or(u64::MAX);
            if let Some(place) = self.draw_at(near) {
                return place;
            }
        }
        self.fallback()
    }

    fn sequential(&mut self) -> Range<u64> {
        let next = if self.runs_on {
            self.last.end
        } else {
            self.start_from(self.last.end)
        };
        for _ in 0..REJECTED_DRAWS_MAX {
            let size = self.draw_size(next);
            if let Some(place) = self.fit(next, size) {
                return place;
            }
            // A second attempt can fit only if the size is drawn.
            if !matches!(self.sizes, Sizes::Drawn { .. }) {
                break;
            }
            if next >= self.region.end {
                break;
            }
        }
        self.fallback()
    }

    /// Returns a request that starts at the permitted LBN for `near`, or `None` if it leaves the
    /// region.
    fn draw_at(&mut self, near: u64) -> Option<Range<u64>> {
        let size = self.draw_size(near);
        let start = self.start_for(near)?;
        self.fit(start, size)
    }

    fn fit(&self, start: u64, size: u64) -> Option<Range<u64>> {
        let end = start.checked_add(size)?;
        let fits = size > 0
            && size <= u64::from(u32::MAX)
            && start >= self.region.start
            && end <= self.region.end;
        fits.then_some(start..end)
    }

    fn draw_size(&mut self, near: u64) -> u64 {
        match &self.sizes {
            Sizes::Track if near < self.tracks.capacity().0 => {
                let (start, end) = self.tracks.track_bounds(Lbn(near));
                end.0 - start.0
            }
            sizes => sizes.draw(&mut self.rng),
        }
    }

    /// Returns the last multiple of the step, or start of a track, at or before `near`, plus the
    /// offset.
    fn start_for(&self, near: u64) -> Option<u64> {
        match self.starts {
            Starts::Every { step, offset, .. } => (near / step * step).checked_add(offset),
            Starts::Track { offset } if near < self.tracks.capacity().0 => {
                Some(self.tracks.track_bounds(Lbn(near)).0.0 + offset)
            }
            Starts::Track { .. } => None,
        }
    }

    /// Returns the first permitted start at or after `lbn`.
    fn start_from(&self, lbn: u64) -> u64 {
        match self.starts {
            Starts::Every { step, offset, .. } => {
                let rest = lbn.saturating_sub(offset);
                rest.div_ceil(step)
                    .saturating_mul(step)
                    .saturating_add(offset)
            }
            Starts::Track { offset } => {
                let lbn = lbn.saturating_sub(offset);
                if lbn >= self.tracks.capacity().0 {
                    return u64::MAX;
                }
                let (start, end) = self.tracks.track_bounds(Lbn(lbn));
                if start.0 == lbn {
                    lbn + offset
                } else {
                    end.0 + offset
                }
            }
        }
    }

    /// Returns the LBNs of the first request that fits the region. If sizes are drawn, its size is
    /// the number of sectors of which they are multiples.
    fn first_fit(&self) -> Option<Range<u64>> {
        let mut start = self.start_from(self.region.start);
        // Two tracks are enough: the one that the region cuts, and the next.
        for _ in 0..2 {
            let size = match &self.sizes {
                Sizes::Fixed(size) => *size,
                Sizes::Track if start < self.tracks.capacity().0 => {
                    let (from, end) = self.tracks.track_bounds(Lbn(start));
                    end.0 - from.0
                }
                Sizes::Track => return None,
                Sizes::Drawn { round, .. } => *round,
            };
            if let Some(place) = self.fit(start, size) {
                return Some(place);
            }
            start = self.start_from(start.checked_add(1)?);
        }
        None
    }

    fn fallback(&self) -> Range<u64> {
        self.first_fit()
            .expect("the constructor refuses a region that no request fits")
    }
}

impl Iterator for RequestGenerator<'_> {
    type Item = Request;

    #[inline]
    fn next(&mut self) -> Option<Request> {
        let op = if self.rng.chance(self.read) {
            Op::Read
        } else {
            Op::Write
        };
        let fua = self.fua > 0.0 && self.rng.chance(self.fua) && op == Op::Write;
        let way = if self.sequential + self.local > 0.0 {
            self.rng.fraction()
        } else {
            1.0
        };
        let place = if way < self.sequential {
            self.sequential()
        } else if way < self.sequential + self.local {
            self.near_last()
        } else {
            self.random()
        };
        self.last = place.clone();
        Some(Request {
            op,
            lbn: Lbn(place.start),
            sectors: (place.end - place.start) as u32,
            fua,
        })
    }
}

fn region(spec: &WorkloadSpec, tracks: &dyn TrackSource) -> Result<Range<u64>, WorkloadError> {
    let capacity = tracks.capacity().0;
    if capacity == 0 || capacity > i64::MAX as u64 {
        return Err(WorkloadProblem::Conflict {
            key: "lbns",
            reason: format!(
                "the drive has {capacity} LBNs; a workload needs 1 to 9223372036854775807"
            ),
        }
        .into());
    }
    match &spec.region {
        WorkloadRegion::Whole => Ok(0..capacity),
        WorkloadRegion::Lbns(range) if range.end.0 <= capacity && !range.is_empty() => {
            Ok(range.start.0..range.end.0)
        }
        WorkloadRegion::Lbns(range) => Err(value_error(
            "lbns",
            format!("{}..{}", range.start, range.end),
            format!("the LBNs are 0..{capacity}"),
        )),
        WorkloadRegion::Zone(zone) => match tracks.zone_bounds(*zone) {
            Some((start, end)) if start < end && end.0 <= capacity => Ok(start.0..end.0),
            _ => Err(value_error(
                "zone",
                zone,
                "the drive has no such zone".to_owned(),
            )),
        },
    }
}

/// Returns the starts at multiples of `step` plus `offset`, and counts those that fit a fixed size.
fn every(step: u64, offset: u64, sizes: &Sizes, region: &Range<u64>) -> Starts {
    let first = region.start.saturating_sub(offset).div_ceil(step) * step + offset;
    let count = match sizes {
        Sizes::Fixed(size) if first + size <= region.end => (region.end - size - first) / step + 1,
        _ => 0,
    };
    Starts::Every {
        step,
        offset,
        first,
        count,
    }
}

fn to_sectors(
    key: &'static str,
    (unit, length): (LengthUnit, u64),
    sector_bytes: u32,
) -> Result<u64, WorkloadError> {
    match unit {
        LengthUnit::Sectors => Ok(length),
        LengthUnit::Bytes if length % u64::from(sector_bytes) == 0 => {
            Ok(length / u64::from(sector_bytes))
        }
        LengthUnit::Bytes => {
            let expected =
                format!("expected a multiple of the drive's sector of {sector_bytes} bytes");
            Err(value_error(key, format!("{length}B"), expected))
        }
    }
}

fn value_error(key: &str, value: impl ToString, expected: String) -> WorkloadError {
    WorkloadProblem::Value {
        key: key.to_owned(),
        value: value.to_string(),
        expected,
    }
    .into()
}

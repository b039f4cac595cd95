//! What DiskSim's layout g1 does with lists of slips and defects, in the terms of a
//! [`ZoneSpec`](crate::geometry::ZoneSpec).
//!
//! A slip list means "these sectors are bad". DiskSim goes through it in the order given and moves
//! an LBN on by one for each entry that its place so far has reached. For an ascending list that
//! skips exactly the listed sectors. For any other, and where slips run on from cylinder to
//! cylinder past spares, it skips others. Positions here count physical sectors from the front of
//! the zone, or tracks under scheme 1.

use std::collections::{BTreeMap, BTreeSet};

use super::g1::Band;

/// A list that does not ascend takes quadratic time, so it may not be longer.
const UNORDERED_MAX: usize = 10_000;
/// Slips that run on over short cylinders are looked at in each of them; this often at most, and
/// defects less often, as each look takes longer.
const SLIP_LOOKS_MAX: u64 = 1 << 29;
const DEFECT_LOOKS_MAX: u64 = 1 << 24;

/// How a zone's LBNs are laid out.
pub(super) struct Mapping {
    scheme: u8,
    /// Positions of a region of the sparing scheme, spares included.
    region: u64,
    /// LBNs of a region.
    per_region: u64,
    /// Positions of the zone.
    total: u64,
    /// LBNs of the zone.
    lbns: u64,
    /// Skipped positions, ascending.
    slips: Vec<u64>,
    short: bool,
}

impl Mapping {
    pub(super) fn new(scheme: u8, range: u64, band: &Band) -> Result<Mapping, String> {
        let per_cylinder = band.surfaces * band.slots;
        let tracks = band.cylinders * band.surfaces;
        let sectors = tracks * band.slots;
        let (region, total) = match scheme {
            1 => (tracks, tracks),
            2 | 4..=7 => (per_cylinder, sectors),
            3 => (band.slots, sectors),
            8 => (per_cylinder * range, sectors),
            _ => (sectors, sectors),
        };
        let whole_regions = total / region;
        let lost = match scheme {
            0 => 0,
            1 => band.spares * band.slots,
            7 => band.slips.len() as u64,
            4 | 6 | 10 => band.spares * whole_regions + band.slips.len() as u64,
            _ => band.spares * whole_regions,
        };
        if scheme == 7 && band.spares > 0 {
            return Err(format!(
                "Number of spares: {} under scheme 7, for which DiskSim maps LBNs beyond the zone",
                band.spares
            ));
        }
        if scheme != 0 && band.spares >= region {
            return Err(format!(
                "Number of spares: {} of a region of {region}",
                band.spares
            ));
        }
        let lbns = sectors.checked_sub(lost + band.reserved).ok_or_else(|| {
            format!(
                "{lost} spare and slipped and {} empty blocks exceed the zone's {sectors}",
                band.reserved
            )
        })?;
        let spares = if scheme == 0 { 0 } else { band.spares };
        let per_region = region - spares;
        let mut map = Mapping {
            scheme,
            region,
            per_region,
            total,
            lbns,
            slips: Vec::new(),
            short: false,
        };
        if scheme == 0 {
            return Ok(map);
        }
        let ascending = band.slips.windows(2).all(|pair| pair[0] < pair[1]);
        if !ascending && band.slips.len() > UNORDERED_MAX {
            return Err(format!(
                "{} slips that do not ascend; at most {UNORDERED_MAX} may",
                band.slips.len()
            ));
        }
        let cylinders_reached = band.slips.len() as u64 / region + 2;
        if matches!(scheme, 4 | 6)
            && band.defects.len() as u64 * cylinders_reached > DEFECT_LOOKS_MAX
        {
            return Err(format!(
                "{} defects among {} slips, with {region} blocks a cylinder: too many to follow",
                band.defects.len(),
                band.slips.len()
            ));
        }
        map.slips = match scheme {
            4 | 6 | 7 => map.running_on(&band.slips, ascending)?,
            _ => map.by_region(&band.slips, ascending),
        };
        // Slips among the spares count against the zone, too.
        let inside = |at: &&u64| scheme != 10 || **at < per_region;
        map.short = matches!(scheme, 4 | 6 | 7 | 10)
            && map.slips.iter().filter(inside).count() < band.slips.len();
        Ok(map)
    }

    /// LBNs of the zone.
    pub(super) fn lbns(&self) -> u64 {
        self.lbns
    }

    /// Whether DiskSim counts slips that take nothing from the zone.
    pub(super) fn zone_is_short(&self) -> bool {
        self.short
    }

    /// Spare sectors of a region, or spare tracks.
    pub(super) fn spares(&self) -> u64 {
        self.region - self.per_region
    }

    /// The skipped positions, ascending.
    pub(super) fn slips(&self) -> &[u64] {
        &self.slips
    }

    /// Slips that count within their region only.
    fn by_region(&self, slips: &[u64], ascending: bool) -> Vec<u64> {
        let mut out: Vec<u64> = slips.to_vec();
        if !ascending {
            let mut regions: BTreeMap<u64, Vec<u64>> = BTreeMap::new();
            for slip in slips {
                regions
                    .entry(slip / self.region)
                    .or_default()
                    .push(slip % self.region);
            }
            out.clear();
            for (number, list) in regions {
                let mut skips = Skips::default();
                list.iter().for_each(|&at| skips.add(at));
                let inside = skips.list.into_iter().filter(|&at| at < self.region);
                out.extend(inside.map(|at| number * self.region + at));
            }
        }
        out.retain(|&at| at < self.total);
        out
    }

    /// Slips that push all later LBNs of the zone.
    ///
    /// DiskSim finds the cylinder an LBN would be in without slips, counts all slips of earlier
    /// cylinders, and then those that its distance from that cylinder's front reaches.
    fn running_on(&self, slips: &[u64], ascending: bool) -> Result<Vec<u64>, String> {
        let mut sorted = slips.to_vec();
        sorted.sort_unstable();
        if slips.is_empty() || (ascending && self.per_region == self.region) {
            sorted.retain(|&at| at < self.total);
            return Ok(sorted);
        }
        let mut looks = 0;
        let mut out = Vec::new();
        let (mut number, mut next) = (0, 0);
        while number * self.region < self.total {
            let front = number * self.region;
            let reach = self.per_region + slips.len() as u64;
            let earlier = sorted.partition_point(|&at| at < front);
            let near = sorted.partition_point(|&at| at <= front + reach);
            if earlier == near && next == number * self.per_region + earlier as u64 {
                // Nothing happens before the region from which the next slip is in reach.
                let Some(slip) = sorted.get(earlier) else {
                    break;
                };
                let to = slip.saturating_sub(reach).div_ceil(self.region);
                number = to.max(number + 1);
                next = number * self.per_region + earlier as u64;
                continue;
            }
            let mut skips = Skips {
                base: earlier as u64,
                ..Skips::default()
            };
            if ascending {
                sorted[earlier..near]
                    .iter()
                    .for_each(|&at| skips.add(at - front));
                looks += (near - earlier) as u64;
            } else if earlier < near {
                skips.base = 0;
                for &at in slips.iter().filter(|&&at| at <= front + reach) {
                    if at < front {
                        skips.shift()
                    } else {
                        skips.add(at - front)
                    }
                }
                looks += (slips.len() * (skips.list.len() + 1)) as u64;
            }
            if looks > SLIP_LOOKS_MAX {
                return Err(format!(
                    "{} slips, with {} blocks a cylinder: too many to follow",
                    slips.len(),
                    self.region
                ));
            }
            // From LBNs counted without spares to positions.
            let mut place = |q: u64| {
                let at = q / self.per_region * self.region + q % self.per_region;
                if at < self.total {
                    out.push(at);
                }
            };
            let start = number * self.per_region;
            (next..start + skips.base).for_each(&mut place);
            let mut end = skips.base + self.per_region;
            for at in skips.list {
                if at < end {
                    place(start + at);
                    end += 1;
                }
            }
            next = start + end;
            number += 1;
        }
        Ok(out)
    }

    /// Where bad sectors turn the tracks behind them: from which track on, by how many sectors.
    ///
    /// Schemes 2 to 6 begin a later cylinder (under scheme 3 a later track) one sector later for
    /// each slip before it. Under scheme 3 the code counts by head, which on a cylinder that runs
    /// backward is not the order of its tracks.
    pub(super) fn turns(&self, band: &Band, backward: impl Fn(u64) -> bool) -> Vec<(u64, i32)> {
        let mut turns: BTreeMap<u64, i32> = BTreeMap::new();
        if !(2..=6).contains(&self.scheme) {
            return Vec::new();
        }
        for slip in &band.slips {
            let track = slip / band.slots;
            let (cylinder, head) = (track / band.surfaces, track % band.surfaces);
            let (front, next) = (cylinder * band.surfaces, (cylinder + 1) * band.surfaces);
            if self.scheme != 3 {
                *turns.entry(next).or_default() += 1;
            } else if backward(cylinder) {
                *turns.entry(front).or_default() += 1;
                *turns.entry(next - 1 - head).or_default() -= 1;
                *turns.entry(next).or_default() += 1;
            } else {
                *turns.entry(track + 1).or_default() += 1;
            }
        }
        let tracks = band.cylinders * band.surfaces;
        turns
            .into_iter()
            .filter(|&(track, by)| track < tracks && by != 0)
            .collect()
    }

    /// How LBNs are moved: from position to position, or from track to track.
    pub(super) fn remaps(&self, band: &Band) -> Vec<(u64, u64)> {
        if self.scheme == 0 {
            return Vec::new();
        }
        let ends = self.ends(&band.defects);
        let mut out = BTreeMap::new();
        for &(from, to) in &band.defects {
            let to = match self.scheme {
                3 => ends[&from],
                8 => from / self.region * self.region + to % self.region,
                _ => to,
            };
            if from != to {
                for at in self.positions_compared(from) {
                    out.entry(at).or_insert(to);
                }
            }
        }
        out.into_iter().collect()
    }

    /// Where each defect ends under scheme 3, which goes on through the list from where it has
    /// come to: from the last entry to the first, the end of what lies behind is known.
    fn ends(&self, defects: &[(u64, u64)]) -> BTreeMap<u64, u64> {
        let mut ends = BTreeMap::new();
        if self.scheme == 3 {
            for &(bad, to) in defects.iter().rev() {
                let end = ends.get(&to).copied().unwrap_or(to);
                ends.insert(bad, end);
            }
        }
        ends
    }

    /// The positions of the LBNs that DiskSim compares with an entry of its defect list.
    ///
    /// Under schemes 4 and 6 it compares before it steps over the spares of a cylinder.
    fn positions_compared(&self, defect: u64) -> Vec<u64> {
        if !matches!(self.scheme, 4 | 6) {
            return if defect < self.total {
                vec![defect]
            } else {
                Vec::new()
            };
        }
        let mut out = Vec::new();
        let own = defect / self.region;
        for number in (0..=own).rev() {
            let distance = defect - number * self.region;
            if distance >= self.per_region + self.slips.len() as u64 {
                break;
            }
            let q = number * self.per_region + distance;
            let at = q / self.per_region * self.region + q % self.per_region;
            let before = self.slips.partition_point(|&slip| slip < at);
            let is_slip = self.slips.get(before) == Some(&at);
            if !is_slip && at < self.total && (q - before as u64) / self.per_region == number {
                out.push(at);
            }
        }
        out
    }

    /// LBNs that DiskSim puts on a place of another: under schemes 2 and 5 those that slips have
    /// pushed into the spares of their cylinder come out at the front of the next cylinder.
    pub(super) fn collisions(&self, band: &Band) -> Vec<(u64, u64)> {
        if !matches!(self.scheme, 2 | 5) {
            return Vec::new();
        }
        let moved: BTreeSet<u64> = self.remaps(band).into_iter().map(|pair| pair.0).collect();
        let mut out = Vec::new();
        let mut i = 0;
        while i < self.slips.len() {
            let number = self.slips[i] / self.region;
            let front = number * self.region;
            let end = i + self.slips[i..].partition_point(|&at| at < front + self.region);
            let own = &self.slips[i..end];
            let pushed = own.partition_point(|&at| at < front + self.per_region) as u64;
            let mut lbn = (number + 1) * self.per_region - pushed;
            for at in front + self.per_region..front + self.region {
                if lbn == (number + 1) * self.per_region {
                    break;
                }
                if own.binary_search(&at).is_ok() {
                    continue;
                }
                let distance = at - front;
                let (cylinders, rest) = (distance / self.per_region, distance % self.per_region);
                if !moved.contains(&at)
                    && let Some(lbn) = lbn.checked_sub(band.reserved)
                {
                    out.push((lbn, (number + cylinders) * self.region + rest));
                }
                lbn += 1;
            }
            i = end;
        }
        out
    }
}

/// The positions skipped when slips are taken one after the other.
#[derive(Default)]
struct Skips {
    /// All positions below this one are skipped.
    base: u64,
    /// So are these, ascending.
    list: Vec<u64>,
}

impl Skips {
    /// Whatever is at `at` or behind moves on by one.
    fn add(&mut self, at: u64) {
        if at < self.base {
            return self.shift();
        }
        let behind = self.list.partition_point(|&skip| skip < at);
        for skip in &mut self.list[behind..] {
            *skip += 1;
        }
        self.list.insert(behind, at);
    }

    /// Everything moves on by one.
    fn shift(&mut self) {
        self.base += 1;
        for skip in &mut self.list {
            *skip += 1;
        }
    }
}

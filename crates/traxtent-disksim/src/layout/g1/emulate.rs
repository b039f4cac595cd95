//! The effect of slip and defect lists in DiskSim's layout g1, expressed as a
//! [`ZoneSpec`](traxtent_model::geometry::ZoneSpec).
//!
//! A slip list means "these sectors are bad". DiskSim processes it in the order given, and moves an
//! LBN by one for each entry that the LBN's place so far has reached. With an ascending list, this
//! skips exactly the listed sectors. With any other list, and where slips continue from cylinder to
//! cylinder across spares, it skips other sectors. Positions here count physical sectors from the
//! front of the zone, or tracks under scheme 1.

use std::collections::{BTreeMap, BTreeSet};

use super::DiskSimZone;

/// The maximum length of a list that is not in ascending order. Processing one takes quadratic
/// time.
const UNORDERED_MAX: usize = 10_000;
/// The maximum number of checks of slips. A slip whose effect extends over several short cylinders
/// is checked in each of them.
const SLIP_CHECKS_MAX: u64 = 1 << 29;
/// The maximum number of checks of defects. It is lower than that for slips, because a check takes
/// longer.
const DEFECT_CHECKS_MAX: u64 = 1 << 24;

/// The layout of a zone's LBNs.
pub(super) struct Mapping {
    scheme: u8,
    /// Positions per region of the sparing scheme, including spares.
    region: u64,
    /// LBNs per region.
    per_region: u64,
    /// Positions in the zone.
    total: u64,
    /// LBNs in the zone.
    lbns: u64,
    /// Skipped positions, ascending.
    slips: Vec<u64>,
    short: bool,
}

impl Mapping {
    pub(super) fn new(scheme: u8, range: u64, band: &DiskSimZone) -> Result<Mapping, String> {
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
                "Number of spares: {}; must be less than the size of a region, {region}",
                band.spares
            ));
        }
        let lbns = sectors.checked_sub(lost + band.reserved).ok_or_else(|| {
            format!(
                "{lost} spare or slipped blocks and {} empty blocks exceed the zone's {sectors} blocks",
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
                "{} slips that are not in ascending order; at most {UNORDERED_MAX} are supported",
                band.slips.len()
            ));
        }
        let cylinders_reached = band.slips.len() as u64 / region + 2;
        if matches!(scheme, 4 | 6)
            && band.defects.len() as u64 * cylinders_reached > DEFECT_CHECKS_MAX
        {
            return Err(format!(
                "{} defects and {} slips, with {region} blocks per cylinder: too many to process",
                band.defects.len(),
                band.slips.len()
            ));
        }
        map.slips = match scheme {
            4 | 6 | 7 => map.slips_to_zone_end(&band.slips, ascending)?,
            _ => map.by_region(&band.slips, ascending),
        };
        // DiskSim also subtracts slips among the spares from the zone's LBN count.
        let inside = |at: &&u64| scheme != 10 || **at < per_region;
        map.short = matches!(scheme, 4 | 6 | 7 | 10)
            && map.slips.iter().filter(inside).count() < band.slips.len();
        Ok(map)
    }

    /// The number of LBNs in the zone.
    pub(super) fn lbns(&self) -> u64 {
        self.lbns
    }

    /// Returns whether a position, as in a list of slips, is in the zone.
    pub(super) fn holds(&self, position: u64) -> bool {
        position < self.total
    }

    /// Returns whether DiskSim reduces the zone's LBN count by slips that skip none of its sectors.
    pub(super) fn zone_is_short(&self) -> bool {
        self.short
    }

    /// The number of spare sectors, or spare tracks, per region.
    pub(super) fn spares(&self) -> u64 {
        self.region - self.per_region
    }

    /// The skipped positions, ascending.
    pub(super) fn slips(&self) -> &[u64] {
        &self.slips
    }

    /// Returns the positions skipped by slips that have an effect within their region only.
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

    /// Returns the positions skipped by slips that move all later LBNs of the zone.
    ///
    /// DiskSim determines the cylinder that would hold an LBN if there were no slips. It counts all
    /// slips of earlier cylinders, then those within the LBN's distance from the front of that
    /// cylinder.
    fn slips_to_zone_end(&self, slips: &[u64], ascending: bool) -> Result<Vec<u64>, String> {
        let mut sorted = slips.to_vec();
        sorted.sort_unstable();
        if slips.is_empty() || (ascending && self.per_region == self.region) {
            sorted.retain(|&at| at < self.total);
            return Ok(sorted);
        }
        let mut checks = 0;
        let mut out = Vec::new();
        let (mut number, mut next) = (0, 0);
        while number * self.region < self.total {
            let front = number * self.region;
            let reach = self.per_region + slips.len() as u64;
            let earlier = sorted.partition_point(|&at| at < front);
            let near = sorted.partition_point(|&at| at <= front + reach);
            if earlier == near && next == number * self.per_region + earlier as u64 {
                // Slips have no effect before the first region that reaches the next slip.
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
                checks += (near - earlier) as u64;
            } else if earlier < near {
                skips.base = 0;
                for &at in slips.iter().filter(|&&at| at <= front + reach) {
                    if at < front {
                        skips.shift()
                    } else {
                        skips.add(at - front)
                    }
                }
                checks += (slips.len() * (skips.list.len() + 1)) as u64;
            }
            if checks > SLIP_CHECKS_MAX {
                return Err(format!(
                    "{} slips, with {} blocks per cylinder: too many to process",
                    slips.len(),
                    self.region
                ));
            }
            // Converts LBNs counted without spares to positions.
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

    /// Returns the changes of skew that slips cause, as pairs of the first track affected and the
    /// number of sectors.
    ///
    /// Under schemes 2 to 6, a later cylinder (under scheme 3, a later track) begins one sector
    /// later for each slip before it. Under scheme 3, DiskSim's code counts by head, which is not
    /// the order of tracks on a cylinder that runs backward.
    pub(super) fn turns(
        &self,
        band: &DiskSimZone,
        backward: impl Fn(u64) -> bool,
    ) -> Vec<(u64, i32)> {
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

    /// Returns the moves of LBNs, from position to position or from track to track.
    pub(super) fn remaps(&self, band: &DiskSimZone) -> Vec<(u64, u64)> {
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

    /// Returns the final position of each defect under scheme 3. A replacement that is itself
    /// defective is replaced again by a later entry of the list. The list is processed from its
    /// last entry to its first, because an entry depends on those after it.
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

    /// Returns the positions of the LBNs that DiskSim compares with an entry of its defect list.
    ///
    /// Under schemes 4 and 6, it compares before it skips the spares of a cylinder.
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

    /// Returns the LBNs that DiskSim places at the position of another LBN, each with that
    /// position. Under schemes 2 and 5, LBNs that slips have moved into the spares of their
    /// cylinder are placed at the front of the next cylinder.
    pub(super) fn collisions(&self, band: &DiskSimZone) -> Vec<(u64, u64)> {
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

/// The positions that are skipped when slips are processed one after the other.
#[derive(Default)]
struct Skips {
    /// All positions below this one are skipped.
    base: u64,
    /// More skipped positions, ascending.
    list: Vec<u64>,
}

impl Skips {
    /// Adds a slip. Everything at `at` or after it moves by one.
    fn add(&mut self, at: u64) {
        if at < self.base {
            return self.shift();
        }
        let position = self.list.partition_point(|&skip| skip < at);
        for skip in &mut self.list[position..] {
            *skip += 1;
        }
        self.list.insert(position, at);
    }

    /// Moves everything by one.
    fn shift(&mut self) {
        self.base += 1;
        for skip in &mut self.list {
            *skip += 1;
        }
    }
}

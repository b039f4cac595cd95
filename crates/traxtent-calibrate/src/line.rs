//! The time of a buffer hit: a straight line over the number of sectors, found in measured times.

use traxtent_sim::agreement::HIT_MARGIN_MS;

/// The width of the band in which hits lie, in milliseconds.
const BAND_MS: f64 = 0.2;

/// The minimum share of the requests that must lie in the band for them to be hits. Accesses to the
/// media are spread over a revolution, of which the band is a thirtieth at 10,000 rpm.
const SHARE_LEAST: f64 = 0.06;

/// The largest share of the requests that may be faster than hits.
const FASTER_MOST: f64 = 0.03;

/// The minimum number of requests among which a line is searched for.
const LINE_REQUESTS_LEAST: usize = 100;

/// The longest time of a sector on the bus that is considered, in milliseconds. For 512 bytes, it
/// corresponds to 1 MB/s.
const SECTOR_MOST_MS: f64 = 0.5;

/// A measured request: whether it follows a read, its sectors, and its time in milliseconds.
pub(crate) type Timed = (bool, u32, f64);

/// The time of a hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HitLine {
    /// The time without that on the bus: after a write, and after a read.
    fixed_ms: [f64; 2],
    /// The time of a sector on the bus.
    pub(crate) sector_ms: f64,
    /// The standard deviation of `sector_ms`.
    pub(crate) sector_deviation_ms: f64,
}

impl HitLine {
    /// Finds the line along which a band contains the most requests. Returns `None` if no line
    /// stands out.
    pub(crate) fn of(requests: &[Timed]) -> Option<HitLine> {
        if requests.len() < LINE_REQUESTS_LEAST {
            return None;
        }
        let best = |from: f64, to: f64, step: f64| {
            let steps = ((to - from) / step).round() as usize;
            let slopes = (0..=steps).map(|index| from + step * index as f64);
            slopes
                .max_by_key(|slope| densest_band(requests, *slope).0)
                .unwrap_or(from)
        };
        let coarse = best(0.0, SECTOR_MOST_MS, 0.002);
        let slope = best((coarse - 0.002).max(0.0), coarse + 0.002, 0.0002);
        let line = HitLine::along(requests, slope);
        let inside = requests.iter().filter(|one| line.has_in_band(one)).count();
        let is_common = inside as f64 >= SHARE_LEAST * requests.len() as f64;
        (is_common && line.is_fastest(requests)).then_some(line)
    }

    /// Whether at most the share [`FASTER_MOST`] of the requests is clearly faster than a hit.
    fn is_fastest(&self, requests: &[Timed]) -> bool {
        let is_faster = |&&(follows_read, sectors, ms): &&Timed| {
            ms < self.at(follows_read, sectors) - HIT_MARGIN_MS
        };
        let faster = requests.iter().filter(is_faster).count();
        faster as f64 <= FASTER_MOST * requests.len() as f64
    }

    /// Fits the line near a slope. Hits that follow a read and hits that follow a write can take
    /// different times. If the hits of one group do not stand out, it gets the time of all hits,
    /// because its densest band may consist of accesses to the media.
    fn along(requests: &[Timed], slope: f64) -> HitLine {
        let level = |low: f64| HitLine {
            fixed_ms: [low + BAND_MS / 2.0; 2],
            sector_ms: slope,
            sector_deviation_ms: 0.0,
        };
        let mut line = level(densest_band(requests, slope).1);
        for (follows_read, fixed) in [false, true].into_iter().zip(&mut line.fixed_ms) {
            let of = requests.iter().filter(|one| one.0 == follows_read);
            let of: Vec<Timed> = of.copied().collect();
            let (count, low) = densest_band(&of, slope);
            let is_common = count as f64 >= SHARE_LEAST * of.len() as f64;
            let own = level(low);
            if of.len() >= LINE_REQUESTS_LEAST && is_common && own.is_fastest(&of) {
                *fixed = own.fixed_ms[0];
            }
        }
        // Least squares with a common slope, on the requests in the band.
        let (mut spread, mut product) = (0.0, 0.0);
        let mut means = [(0.0, 0.0); 2];
        let inside: Vec<Timed> = requests
            .iter()
            .filter(|one| line.has_in_band(one))
            .copied()
            .collect();
        for group in [false, true] {
            let of = inside.iter().filter(|one| one.0 == group);
            let of: Vec<(f64, f64)> = of.map(|one| (f64::from(one.1), one.2)).collect();
            let count = of.len().max(1) as f64;
            let mean_x = of.iter().map(|(x, _)| x).sum::<f64>() / count;
            let mean_y = of.iter().map(|(_, y)| y).sum::<f64>() / count;
            spread += of.iter().map(|(x, _)| (x - mean_x).powi(2)).sum::<f64>();
            product += of
                .iter()
                .map(|(x, y)| (x - mean_x) * (y - mean_y))
                .sum::<f64>();
            means[usize::from(group)] = (mean_x, mean_y);
        }
        if spread > 0.0 {
            line.sector_ms = (product / spread).max(0.0);
        }
        for (fixed, (mean_x, mean_y)) in line.fixed_ms.iter_mut().zip(means) {
            if mean_y > 0.0 {
                *fixed = mean_y - line.sector_ms * mean_x;
            }
        }
        let square = |one: &Timed| (one.2 - line.at(one.0, one.1)).powi(2);
        let variance = inside.iter().map(square).sum::<f64>() / inside.len().max(1) as f64;
        line.sector_deviation_ms = (variance / spread.max(1.0)).sqrt();
        line
    }

    fn has_in_band(&self, &(follows_read, sectors, ms): &Timed) -> bool {
        (ms - self.at(follows_read, sectors)).abs() <= BAND_MS / 2.0
    }

    /// The time of a hit in milliseconds.
    pub(crate) fn at(&self, follows_read: bool, sectors: u32) -> f64 {
        self.fixed_ms[usize::from(follows_read)] + self.sector_ms * f64::from(sectors)
    }
}

/// Returns the largest number of requests in a band along a line of this slope, and the lower
/// bound of the band at zero sectors.
fn densest_band(requests: &[Timed], slope: f64) -> (usize, f64) {
    let mut rests: Vec<f64> = requests
        .iter()
        .map(|&(_, sectors, ms)| ms - slope * f64::from(sectors))
        .collect();
    rests.sort_unstable_by(f64::total_cmp);
    let (mut first, mut most) = (0, (0, 0.0));
    for (last, &rest) in rests.iter().enumerate() {
        while rests[first] < rest - BAND_MS {
            first += 1;
        }
        if last + 1 - first > most.0 {
            most = (last + 1 - first, rests[first]);
        }
    }
    most
}

#[cfg(test)]
mod tests {
    use super::{HitLine, Timed};
    use traxtent_units::Rng;

    fn misses(rng: &mut Rng, count: usize) -> Vec<Timed> {
        (0..count)
            .map(|_| {
                let sectors = 1 + rng.below(64) as u32;
                let ms = 2.0 + 12.0 * rng.fraction() + 0.1 * f64::from(sectors);
                (rng.chance(0.5), sectors, ms)
            })
            .collect()
    }

    /// Is the line of hits found among twice as many accesses to the media, if hits after a write
    /// take 0.6 ms longer?
    #[test]
    fn hits_stand_out() {
        let mut rng = Rng::new(1);
        let mut requests = misses(&mut rng, 2000);
        for _ in 0..1000 {
            let sectors = 1 + rng.below(64) as u32;
            let follows_read = rng.chance(0.7);
            let fixed = if follows_read { 0.3 } else { 0.9 };
            let ms = fixed + 0.1 * f64::from(sectors) + 0.05 * rng.fraction();
            requests.push((follows_read, sectors, ms));
        }
        let line = HitLine::of(&requests).unwrap();
        assert!((line.at(true, 0) - 0.325).abs() < 0.01, "{line:?}");
        assert!((line.at(false, 0) - 0.925).abs() < 0.01, "{line:?}");
        assert!((line.sector_ms - 0.1).abs() < 0.001, "{line:?}");
        assert!(line.sector_deviation_ms < 0.001, "{line:?}");
    }

    /// Is the line found, also for requests after a write, if hardly any of those is a hit, and
    /// their densest band consists of accesses to the media?
    #[test]
    fn hits_stand_out_after_reads_alone() {
        let mut rng = Rng::new(1);
        let sizes = [8, 8, 8, 16, 64, 128];
        let mut requests = Vec::new();
        for index in 0..2000 {
            let sectors = sizes[rng.below(6) as usize];
            let follows_read = index % 3 != 0;
            let is_hit = rng.chance(if follows_read { 0.3 } else { 0.02 });
            // A fifth of the accesses to the media take almost the same time.
            let media = match rng.chance(0.2) {
                true => 5.9,
                false => 2.0 + 8.0 * rng.fraction(),
            };
            let fixed = if is_hit { 0.235 } else { media };
            let ms = fixed + 0.005 * f64::from(sectors) + 0.05 * rng.fraction();
            requests.push((follows_read, sectors, ms));
        }
        let line = HitLine::of(&requests).unwrap();
        for follows_read in [false, true] {
            assert!((line.at(follows_read, 0) - 0.26).abs() < 0.01, "{line:?}");
        }
        assert!((line.sector_ms - 0.005).abs() < 0.0005, "{line:?}");
    }

    /// Is no line found if there are no hits?
    #[test]
    fn misses_have_no_line() {
        for seed in 0..20 {
            let requests = misses(&mut Rng::new(seed), 2000);
            assert_eq!(HitLine::of(&requests), None, "seed {seed}");
        }
    }
}

//! The time of a buffer hit: a straight line over the number of sectors, found in measured times.

/// The width of the band in which hits lie, in milliseconds.
const BAND_MS: f64 = 0.2;

/// The least share of the requests that lie in the band if they are hits. Accesses to the media
/// are spread over a revolution, of which the band is a thirtieth or less.
const SHARE_LEAST: f64 = 0.06;

/// The largest share of the requests that are faster than hits.
const FASTER_MOST: f64 = 0.03;

/// The least number of requests in which a line is searched.
const REQUESTS_LEAST: usize = 100;

/// The largest time of a sector on the bus that is searched, in milliseconds: 1 MB/s.
const SECTOR_MOST_MS: f64 = 0.5;

/// The time of a hit.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HitLine {
    pub(crate) fixed_ms: f64,
    pub(crate) sector_ms: f64,
    /// The standard deviation of `sector_ms`.
    pub(crate) sector_deviation_ms: f64,
}

impl HitLine {
    /// Finds the line along which a band contains most of the requests, given as sizes in sectors
    /// and measured times in milliseconds. Returns `None` if no line stands out.
    pub(crate) fn of(requests: &[(u32, f64)]) -> Option<HitLine> {
        if requests.len() < REQUESTS_LEAST {
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
        let (_, low) = densest_band(requests, slope);
        let inside: Vec<(f64, f64)> = requests
            .iter()
            .map(|&(sectors, ms)| (f64::from(sectors), ms))
            .filter(|(sectors, ms)| (low..=low + BAND_MS).contains(&(ms - slope * sectors)))
            .collect();
        let line = HitLine::through(&inside);
        let is_faster = |&&(sectors, ms): &&(u32, f64)| ms < line.at(sectors) - BAND_MS;
        let share = |count: usize| count as f64 / requests.len() as f64;
        let faster = share(requests.iter().filter(is_faster).count());
        (share(inside.len()) >= SHARE_LEAST && faster <= FASTER_MOST).then_some(line)
    }

    /// Fits a line by least squares.
    fn through(points: &[(f64, f64)]) -> HitLine {
        let count = points.len() as f64;
        let mean_x = points.iter().map(|(x, _)| x).sum::<f64>() / count;
        let mean_y = points.iter().map(|(_, y)| y).sum::<f64>() / count;
        let spread: f64 = points.iter().map(|(x, _)| (x - mean_x).powi(2)).sum();
        let product: f64 = points
            .iter()
            .map(|(x, y)| (x - mean_x) * (y - mean_y))
            .sum();
        let slope = if spread > 0.0 { product / spread } else { 0.0 };
        let slope = slope.max(0.0);
        let fixed = mean_y - slope * mean_x;
        let square: f64 = points
            .iter()
            .map(|(x, y)| (y - fixed - slope * x).powi(2))
            .sum();
        HitLine {
            fixed_ms: fixed,
            sector_ms: slope,
            sector_deviation_ms: (square / count / spread.max(1.0)).sqrt(),
        }
    }

    /// The time of a hit in milliseconds.
    pub(crate) fn at(&self, sectors: u32) -> f64 {
        self.fixed_ms + self.sector_ms * f64::from(sectors)
    }
}

/// Returns the largest number of requests in a band along a line of this slope, and the lower
/// bound of the band at zero sectors.
fn densest_band(requests: &[(u32, f64)], slope: f64) -> (usize, f64) {
    let mut rests: Vec<f64> = requests
        .iter()
        .map(|&(sectors, ms)| ms - slope * f64::from(sectors))
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
    use super::HitLine;
    use traxtent_units::Rng;

    fn misses(rng: &mut Rng, count: usize) -> Vec<(u32, f64)> {
        (0..count)
            .map(|_| {
                let sectors = 1 + rng.below(64) as u32;
                (
                    sectors,
                    2.0 + 12.0 * rng.fraction() + 0.03 * f64::from(sectors),
                )
            })
            .collect()
    }

    /// Is the line of hits found among twice as many accesses to the media?
    #[test]
    fn hits_stand_out() {
        let mut rng = Rng::new(1);
        let mut requests = misses(&mut rng, 2000);
        for _ in 0..1000 {
            let sectors = 1 + rng.below(64) as u32;
            let ms = 0.3 + 0.1 * f64::from(sectors) + 0.05 * rng.fraction();
            requests.push((sectors, ms));
        }
        let line = HitLine::of(&requests).unwrap();
        assert!((line.fixed_ms - 0.325).abs() < 0.01, "{line:?}");
        assert!((line.sector_ms - 0.1).abs() < 0.001, "{line:?}");
        assert!(line.sector_deviation_ms < 0.001, "{line:?}");
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

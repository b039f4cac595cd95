//! Deciding whether the completions of a sector follow a spindle, and measuring its revolution.
//!
//! Any two completions of one sector are a whole number of revolutions apart, however long the host
//! waits in between. So the revolution is the longest time of which all these differences are
//! multiples. A cache or a solid-state drive instead responds a constant time after the request.
//! Random waits between the requests reveal that.
//!
//! If a long time must pass between two completions, the waits must vary over a wide range too,
//! about a quarter of that time. The differences between the gaps then determine the number of
//! turns in the longer spans.

use traxtent_units::turns::wrap;

use traxtent_units::stats::ascending;

/// The shortest and the longest plausible revolution of a disk, in milliseconds: 20,000 and 2,000
/// RPM.
pub(super) const REVOLUTION_MS: (f64, f64) = (3.0, 30.0);

/// The largest distance from a whole number of revolutions at which a completion counts as on time,
/// in revolutions.
const TOLERANCE: f64 = 0.04;

/// The share of completions that must be on time. The host receives some of them late.
const ENOUGH: f64 = 0.75;

/// The same while the revolution is fitted to spans that are much longer than those before: its
/// error counts once for each of their turns.
const WIDE_TOLERANCE: f64 = 0.25;

/// The share of the largest number of multiples that the longest revolution must reach. Twice a
/// revolution reaches only half of it. A fraction of it reaches all, and late completions that are
/// multiples of the fraction by chance.
const NEARLY_MOST: f64 = 0.75;

/// The share of spans that must be multiples of the guess. A wrong guess has few.
const MULTIPLES_MIN: f64 = 0.4;

/// The spindle that a sequence of completions follows.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Spindle {
    /// The time of one revolution.
    pub(super) revolution_ms: f64,
    /// The share of completions that came a whole number of revolutions after the previous one.
    pub(super) on_time: f64,
}

impl Spindle {
    /// Returns the spindle that the completions of one sector follow, if there is one. The times
    /// are in milliseconds and ascending.
    pub(super) fn of_completions(completions: &[f64]) -> Option<Spindle> {
        let gaps: Vec<f64> = completions.windows(2).map(|w| w[1] - w[0]).collect();
        // Differences between gaps stay short even if the gaps are long, so a rough guess of the
        // revolution counts their turns without error.
        let short = ascending(differences(&gaps).filter(|d| *d >= REVOLUTION_MS.0 / 2.0));
        let guess = guess(&short)?;
        let all = ascending(short.into_iter().chain(differences(completions)));
        // If by chance most differences are an even number of revolutions, the guess is too long.
        [1.0, 2.0, 3.0].into_iter().find_map(|divisor| {
            let revolution_ms = refine(guess / divisor, &all);
            let on_time = on_time(&gaps, revolution_ms);
            let in_range = (REVOLUTION_MS.0..=REVOLUTION_MS.1).contains(&revolution_ms);
            (in_range && on_time >= ENOUGH).then_some(Spindle {
                revolution_ms,
                on_time,
            })
        })
    }
}

/// Returns the distance of a span from the nearest whole number of revolutions, in revolutions.
pub(super) fn distance_from_revolution(span_ms: f64, revolution_ms: f64) -> f64 {
    wrap(span_ms / revolution_ms)
}

fn differences(values: &[f64]) -> impl Iterator<Item = f64> {
    let pairs = values.iter().enumerate();
    pairs.flat_map(|(i, a)| values[..i].iter().map(move |b| (a - b).abs()))
}

fn on_time(spans: &[f64], revolution_ms: f64) -> f64 {
    let is = |span: &&f64| {
        **span > 0.0 && distance_from_revolution(**span, revolution_ms).abs() <= TOLERANCE
    };
    spans.iter().filter(is).count() as f64 / spans.len() as f64
}

/// Returns the longest revolution of which the spans are multiples, to a part in a thousand; `None`
/// if there are too few spans or multiples. The spans are in ascending order.
fn guess(spans: &[f64]) -> Option<f64> {
    /// The ratio of two successive candidates.
    const CANDIDATE_RATIO: f64 = 1.0005;
    /// The smallest number of spans from which the revolution is guessed.
    const SPANS_MIN: usize = 10;
    let spans = &spans[..spans.partition_point(|span| *span < 3.0 * REVOLUTION_MS.1)];
    if spans.len() < SPANS_MIN {
        return None;
    }
    let slowest = std::iter::successors(Some(REVOLUTION_MS.1), |ms| Some(ms / CANDIDATE_RATIO));
    let candidates: Vec<(f64, f64)> = slowest
        .take_while(|ms| *ms >= REVOLUTION_MS.0 * (1.0 - TOLERANCE))
        .map(|ms| (ms, multiples(spans, ms)))
        .collect();
    // Late completions spoil many differences, but equally many for halves and thirds of a
    // revolution. Twice a revolution has only half of the multiples.
    let most = candidates.iter().fold(0.0, |most: f64, c| most.max(c.1));
    let (longest, share) = *candidates.iter().find(|c| c.1 >= NEARLY_MOST * most)?;
    if share < MULTIPLES_MIN {
        return None;
    }
    // The longest candidate is at the edge of the tolerance. The best one is near it.
    let near = std::iter::successors(Some(longest), |ms| Some(ms / CANDIDATE_RATIO));
    near.take_while(|ms| *ms >= longest * (1.0 - 2.0 * TOLERANCE))
        .map(|ms| (ms, misfit(spans, ms)))
        .min_by(|a, b| a.1.total_cmp(&b.1))
        .map(|(ms, _)| ms)
}

/// Returns the share of spans that are one or more whole revolutions.
fn multiples(spans: &[f64], revolution_ms: f64) -> f64 {
    let is = |span: &&f64| {
        **span >= 0.5 * revolution_ms
            && distance_from_revolution(**span, revolution_ms).abs() <= TOLERANCE
    };
    spans.iter().filter(is).count() as f64 / spans.len() as f64
}

fn misfit(spans: &[f64], revolution_ms: f64) -> f64 {
    let off = |span: &f64| {
        distance_from_revolution(*span, revolution_ms)
            .abs()
            .min(TOLERANCE)
    };
    spans.iter().map(off).sum()
}

/// Fits a revolution to increasingly long spans, doubling the range each time to avoid miscounting
/// turns. The spans are in ascending order.
fn refine(guess: f64, spans: &[f64]) -> f64 {
    let mut revolution = guess;
    let mut range = 4.0 * guess;
    let longest = spans.last().copied().unwrap_or(0.0);
    loop {
        let within = &spans[..spans.partition_point(|span| *span <= range)];
        for tolerance in [WIDE_TOLERANCE, TOLERANCE] {
            revolution = fit(revolution, within, tolerance);
        }
        if range >= longest {
            return revolution;
        }
        range *= 2.0;
    }
}

/// Returns the revolution that fits those spans best that are whole numbers of revolutions within
/// a tolerance; `revolution` itself if none is.
fn fit(revolution: f64, spans: &[f64], tolerance: f64) -> f64 {
    let (mut products, mut squares) = (0.0, 0.0);
    for span in spans {
        let turns = libm::round(span / revolution);
        if turns > 0.0 && distance_from_revolution(*span, revolution).abs() <= tolerance {
            products += span * turns;
            squares += turns * turns;
        }
    }
    if squares > 0.0 {
        products / squares
    } else {
        revolution
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use traxtent_units::Rng;
    use traxtent_workload::Distribution;

    /// Returns completions of one sector: random waits, then the next pass, with 30 microseconds of
    /// noise and one late completion in a hundred.
    fn completions(revolution_ms: f64, least_wait_ms: f64, seed: u64) -> Vec<f64> {
        let mut rng = Rng::new(seed);
        let noise = Distribution::Normal {
            mean: 0.0,
            deviation: 0.030,
        };
        let mut now = 0.0;
        let once = |_| {
            let ready: f64 = now + least_wait_ms + (40.0 + least_wait_ms / 4.0) * rng.fraction();
            now = (ready / revolution_ms).ceil() * revolution_ms;
            let late = if rng.chance(0.01) {
                5.0 + 45.0 * rng.fraction()
            } else {
                0.0
            };
            now + late + noise.sample(&mut rng)
        };
        (0..41).map(once).collect()
    }

    /// Is the revolution, not a multiple or a fraction of it, found to a part in ten thousand at
    /// speeds from 3,600 to 15,000 RPM, even if seconds pass between completions? Is none found
    /// only if almost a quarter of the completions, or more, did not follow the previous one on
    /// time?
    #[test]
    fn revolutions_are_found() {
        for seed in 0..testkit::repeats(20) {
            for rpm in [3600.0, 5400.0, 5900.0, 7200.0, 10_025.0, 15_000.0] {
                for least_wait_ms in [0.0, 300.0, 4000.0] {
                    let truth = 60_000.0 / rpm;
                    let times = completions(truth, least_wait_ms, seed);
                    let what = format!("{rpm} RPM, {least_wait_ms} ms, seed {seed}");
                    let Some(spindle) = Spindle::of_completions(&times) else {
                        let gaps: Vec<f64> = times.windows(2).map(|w| w[1] - w[0]).collect();
                        let share = on_time(&gaps, truth);
                        assert!(share < ENOUGH + 0.05, "{what}: {share} are on time");
                        continue;
                    };
                    let error = (spindle.revolution_ms / truth - 1.0).abs();
                    assert!(error < 1e-4, "{what}: {spindle:?}");
                }
            }
        }
    }

    /// Is a device that responds a constant time after the request never taken for a spindle?
    #[test]
    fn constant_times_are_no_spindle() {
        for seed in 0..testkit::repeats(50) {
            let mut rng = Rng::new(seed);
            for response_ms in [0.0, 0.1, 1.0, 6.0, 8.333] {
                let mut now = 0.0;
                let once = |_| {
                    now += 40.0 * rng.fraction() + response_ms;
                    now
                };
                let times: Vec<f64> = (0..41).map(once).collect();
                assert_eq!(
                    Spindle::of_completions(&times),
                    None,
                    "{response_ms} ms, seed {seed}"
                );
            }
        }
    }
}

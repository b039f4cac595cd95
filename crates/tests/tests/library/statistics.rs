//! Do the statistics agree with direct computation and with DiskSim's measure?

use proptest::prelude::*;
use traxtent_units::Rng;
use traxtent_units::Span;
use traxtent_units::stats::{
    ComponentMeans, ConfidenceInterval, ConfidenceLevel, Moments, QUANTILE_ERROR, Quantiles,
    SAMPLES_EXACT, demerit, demerit_binned,
};
use traxtent_workload::Distribution;

fn times(count: usize, seed: u64) -> Vec<Span> {
    let mut rng = Rng::new(seed);
    let slow = Distribution::Exponential {
        base: 0.5,
        mean: 9.0,
    };
    (0..count).map(|_| slow.sample_time(&mut rng)).collect()
}

/// Are quantiles exact for small samples, and within their stated error for large ones?
#[test]
fn quantiles_are_within_their_stated_error() {
    for count in [1, 2, 9, 1000, SAMPLES_EXACT, SAMPLES_EXACT + 1, 300_000] {
        let mut sorted = times(count, 5);
        let mut quantiles = Quantiles::default();
        sorted.iter().for_each(|&time| quantiles.push(time));
        sorted.sort_unstable();
        assert_eq!(quantiles.is_exact(), count <= SAMPLES_EXACT);
        assert_eq!(quantiles.count(), count as u64);
        for share in [0.0, 0.001, 0.25, 0.5, 0.9, 0.99, 0.999, 1.0] {
            let rank = ((share * count as f64).ceil() as usize).clamp(1, count);
            let (truth, found) = (
                sorted[rank - 1].0 as f64,
                quantiles.at(share).unwrap().0 as f64,
            );
            let allowed = if quantiles.is_exact() || rank == 1 || rank == count {
                0.0
            } else {
                QUANTILE_ERROR * truth + 1.0
            };
            assert!(
                (found - truth).abs() <= allowed,
                "{count} at {share}: {found}, not {truth}"
            );
        }
        assert_eq!(
            quantiles.histogram(7).iter().map(|bin| bin.1).sum::<u64>(),
            count as u64
        );
    }
    assert_eq!(Quantiles::default().at(0.5), None);
}

/// Does merging two samples give the result of a single stream, whichever of them is larger?
#[test]
fn merging_equals_a_single_stream() {
    for (a, b) in [
        (10, 20),
        (10, 40_000),
        (40_000, 10),
        (40_000, 30_000),
        (0, 5),
        (5, 0),
    ] {
        let (left, right) = (times(a, 1), times(b, 2));
        let mut whole = (Quantiles::default(), Moments::default());
        let mut parts = [whole.clone(), whole.clone()];
        for (part, values) in parts.iter_mut().zip([&left, &right]) {
            for &time in values {
                part.0.push(time);
                part.1.push(time.as_ms());
                whole.0.push(time);
                whole.1.push(time.as_ms());
            }
        }
        let [mut first, second] = parts;
        first.0.merge(&second.0);
        first.1.merge(&second.1);
        assert_eq!(first.0.steps(), whole.0.steps(), "{a} and {b}");
        assert_eq!(first.1.count(), whole.1.count());
        assert!(
            (first.1.mean() - whole.1.mean()).abs() < 1e-9
                && (first.1.deviation() - whole.1.deviation()).abs() < 1e-9
        );
    }
}

/// Are the steps of a distribution those of the sorted times? For large samples, are they within
/// the stated error, and are the first and the last one exact?
#[test]
fn steps_of_the_distribution() {
    for count in [1, 2, 1000, SAMPLES_EXACT, SAMPLES_EXACT + 1, 40_000] {
        let mut sorted = times(count, 4);
        let mut quantiles = Quantiles::default();
        sorted.iter().for_each(|&time| quantiles.push(time));
        sorted.sort_unstable();
        let steps = quantiles.steps();
        let exact: Vec<(Span, u64)> = (1..=count as u64)
            .filter(|&rank| sorted.get(rank as usize) != Some(&sorted[rank as usize - 1]))
            .map(|rank| (sorted[rank as usize - 1], rank))
            .collect();
        if quantiles.is_exact() {
            assert_eq!(steps, exact);
            continue;
        }
        assert_eq!(steps.first().unwrap().0, sorted[0]);
        assert_eq!(*steps.last().unwrap(), (sorted[count - 1], count as u64));
        for (time, upto) in steps {
            let truth = sorted[upto as usize - 1].0 as f64;
            let off = (time.0 as f64 - truth).abs();
            let allowed = QUANTILE_ERROR * truth + 1.0;
            assert!(off <= allowed, "{upto} of {count}: {time:?}, not {truth}");
        }
    }
}

/// Does a shift of every time by d give the demerit d, whatever the order of the times, and an
/// equal sample a demerit of 0? May the samples differ in size?
#[test]
fn demerit_of_known_distances() {
    let measured: Vec<f64> = times(10_000, 3).iter().map(|time| time.as_ms()).collect();
    let mut shifted: Vec<f64> = measured.iter().rev().map(|time| time + 0.25).collect();
    assert!((demerit(&mut shifted, &mut measured.clone()).unwrap() - 0.25).abs() < 1e-12);
    assert_eq!(
        demerit(&mut measured.clone(), &mut measured.clone()),
        Some(0.0)
    );
    // Distances 1 and 3: the root of the mean of 1 and 9.
    assert_eq!(demerit(&mut [1.0, 5.0], &mut [2.0, 2.0]), Some(5f64.sqrt()));
    assert_eq!(demerit(&mut [], &mut [1.0]), None);
    // Samples of unequal size: every second time of an even grid is distributed like the whole
    // grid.
    let mut grid: Vec<f64> = (0..10_000).map(f64::from).collect();
    let mut half: Vec<f64> = (0..5_000)
        .map(|index| 2.0 * f64::from(index) + 0.5)
        .collect();
    assert!(demerit(&mut grid, &mut half).unwrap() < 0.02);
    let mut half: Vec<f64> = half.iter().map(|time| time + 100.0).collect();
    assert!((demerit(&mut grid, &mut half).unwrap() - 100.0).abs() < 0.02);
}

/// Does DiskSim's binned measure agree with the exact one to 0.002 ms?
#[test]
fn binned_demerit_is_near() {
    let mut measured: Vec<f64> = times(10_000, 3).iter().map(|time| time.as_ms()).collect();
    let mut rng = Rng::new(9);
    let noise = Distribution::Normal {
        mean: 0.1,
        deviation: 0.6,
    };
    let mut simulated: Vec<f64> = measured
        .iter()
        .map(|time| (time + noise.sample(&mut rng)).max(0.1))
        .collect();
    let binned = demerit_binned(&simulated, &measured).unwrap();
    let exact = demerit(&mut simulated, &mut measured).unwrap();
    assert!(
        (binned - exact).abs() < 0.002 && exact > 0.1,
        "{binned} {exact}"
    );
    assert_eq!(demerit_binned(&[], &measured), None);
}

/// Does the interval equal the textbook's? Five values, t = 2.7764 (95 %) or 2.1318 (90 %).
#[test]
fn confidence_intervals() {
    let figures = [9.8, 10.2, 10.4, 9.9, 10.0];
    let deviation = 0.058f64.sqrt();
    for (confidence, t) in [
        (ConfidenceLevel::P95, 2.7764),
        (ConfidenceLevel::P90, 2.1318),
    ] {
        let interval = ConfidenceInterval::of(&figures, confidence).unwrap();
        assert!((interval.mean - 10.06).abs() < 1e-12);
        assert!(
            (interval.half_width.unwrap() - t * deviation / 5f64.sqrt()).abs() < 1e-9,
            "{interval:?}"
        );
    }
    assert_eq!(
        ConfidenceInterval::of(&[1.0], ConfidenceLevel::P95)
            .unwrap()
            .half_width,
        None
    );
    assert_eq!(ConfidenceInterval::of(&[], ConfidenceLevel::P95), None);
}

/// Do the means of the components add up to the mean of the total?
#[test]
fn components_add_up() {
    let mut components = ComponentMeans::<3>::default();
    let mut whole = ComponentMeans::<1>::default();
    for (&a, &b) in times(1000, 1).iter().zip(&times(1000, 2)) {
        components.push(&[a, b, Span(7)]);
        whole.push(&[a + b + Span(7)]);
    }
    assert!((components.means_ms().iter().sum::<f64>() - whole.means_ms()[0]).abs() < 1e-12);
    assert_eq!(ComponentMeans::<2>::default().means_ms(), [0.0, 0.0]);
}

proptest! {
    /// Do streaming moments agree with the two-pass formulas?
    #[test]
    fn moments_agree(values in prop::collection::vec(-1e6..1e6f64, 2..300)) {
        let mut moments = Moments::default();
        values.iter().for_each(|&value| moments.push(value));
        let mean = values.iter().sum::<f64>() / values.len() as f64;
        let variance = values.iter().map(|value| (value - mean).powi(2)).sum::<f64>() / (values.len() - 1) as f64;
        prop_assert!((moments.mean() - mean).abs() < 1e-6);
        prop_assert!((moments.variance() - variance).abs() <= 1e-9 * variance + 1e-6);
        prop_assert_eq!(moments.max(), values.iter().copied().reduce(f64::max));
    }

    /// Is the demerit symmetric?
    #[test]
    fn demerit_is_symmetric(a in prop::collection::vec(0.0..50.0f64, 1..60), b in prop::collection::vec(0.0..50.0f64, 1..60)) {
        let one = demerit(&mut a.clone(), &mut b.clone()).unwrap();
        let other = demerit(&mut b.clone(), &mut a.clone()).unwrap();
        prop_assert_eq!(one, other);
    }
}

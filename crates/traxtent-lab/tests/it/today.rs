//! The papers' questions for present-day drives.

use traxtent_lab::today::{DRIVES, Question, with_zero_latency};
use traxtent_lab::{Bench, LabError};
use traxtent_model::profile::builtin;

/// Returns every built-in drive that has mechanics and a bus at least as fast as its media. (With a
/// slow bus and delivery in order, a track that is read from its middle is delivered later, so
/// alignment can have a cost there.)
fn benches() -> impl Iterator<Item = Bench> {
    let benches = builtin::names().map(|name| Bench::new(name, 1).unwrap());
    let benches = benches.filter(|bench| bench.profile.mechanics.is_some());
    benches.filter(|bench| {
        let bus_ms = bench.profile.bus.read_sector_ms * f64::from(bench.track_sectors());
        bus_ms <= bench.profile.revolution_ms()
    })
}

/// Is an aligned read of a track at least as efficient as an unaligned one, with and without
/// zero-latency access, on every built-in drive whose bus is not the bottleneck, and with several
/// seeds?
#[test]
fn aligned_is_at_least_as_efficient() {
    let seeds = testkit::repeats(2);
    let mut answers = 0;
    for bench in benches() {
        for (seed, zero_latency) in (0..seeds).flat_map(|seed| [(seed, true), (seed, false)]) {
            let bench = Bench {
                seed,
                ..with_zero_latency(&bench, zero_latency).unwrap()
            };
            let answer = Question::Efficiency.measure(&bench).unwrap();
            assert!(
                answer.aligned >= answer.unaligned,
                "{}, seed {seed}, zero latency {zero_latency}: {answer:?}",
                bench.profile.name
            );
            answers += 1;
        }
    }
    assert!(answers >= 2 * seeds * DRIVES.len() as u64);
}

/// Is the benefit of alignment larger with zero-latency access than without it, on every drive of
/// the experiment, for each of paper T's questions except the fixed-size read? (Without it,
/// alignment saves a head switch; with it, also the rotational latency.)
#[test]
fn zero_latency_access_increases_the_benefit() -> Result<(), LabError> {
    let of_paper_t = Question::ALL
        .into_iter()
        .filter(|question| question.claim().starts_with('T') && *question != Question::PaperSize);
    for name in DRIVES {
        let bench = Bench::new(name, 1)?.quick(true);
        for question in of_paper_t.clone() {
            let benefit = |zero_latency| -> Result<f64, LabError> {
                let answer = question.measure(&with_zero_latency(&bench, zero_latency)?)?;
                // Alignment reduces times and sizes, and increases the other values.
                let is_reduced = matches!(
                    question,
                    Question::OneReq | Question::TwoReq | Question::EqualSize
                );
                let change = answer.change();
                Ok(if is_reduced { -change } else { change })
            };
            let (with, without) = (benefit(true)?, benefit(false)?);
            assert!(
                with > without,
                "{name} {}: {with} {without}",
                question.name()
            );
        }
    }
    Ok(())
}

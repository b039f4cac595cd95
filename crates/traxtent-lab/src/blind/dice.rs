//! The random choices of the generator.

use std::ops::Range;

use traxtent_units::Rng;

/// Seeded random choices, the same on every machine.
#[derive(Debug)]
pub(super) struct SeededRng(Rng);

impl SeededRng {
    pub(super) fn new(seed: u64) -> SeededRng {
        SeededRng(Rng::new(seed))
    }

    /// Draws an integer from a range that is not empty.
    pub(super) fn pick(&mut self, range: Range<u64>) -> u64 {
        range.start + self.0.below(range.end - range.start)
    }

    /// Draws a 32-bit integer from a range that is not empty.
    pub(super) fn pick32(&mut self, range: Range<u32>) -> u32 {
        self.pick(range.start.into()..range.end.into()) as u32
    }

    /// Draws a number from `least` to `most`, rounded to a thousandth to stay readable as text.
    pub(super) fn between(&mut self, least: f64, most: f64) -> f64 {
        let value = least + (most - least) * self.0.fraction();
        (value * 1000.0).round() / 1000.0
    }

    pub(super) fn chance(&mut self, probability: f64) -> bool {
        self.0.chance(probability)
    }

    pub(super) fn of<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.pick(0..list.len() as u64) as usize].clone()
    }

    /// Draws a number from one of several ranges, each range with equal probability.
    pub(super) fn of_ranges(&mut self, ranges: &[Range<u64>]) -> u64 {
        let range = self.of(ranges);
        self.pick(range)
    }

    pub(super) fn shuffle<T>(&mut self, list: &mut [T]) {
        for i in (1..list.len()).rev() {
            list.swap(i, self.pick(0..i as u64 + 1) as usize);
        }
    }
}

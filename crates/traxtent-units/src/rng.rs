//! Random numbers: a fixed algorithm, seeded, with the same results on every machine.
//!
//! The generator is xoshiro256++ (Blackman and Vigna, "Scrambled linear pseudorandom number
//! generators", 2021), seeded through SplitMix64. Whole numbers come from a 64 by 64 bit product
//! (Lemire, "Fast random integer generation in an interval", 2019), fractions from the top 53 bits.
//! Neither needs a logarithm or a root, so the mathematics library of a platform does not affect
//! results.

use rand_core::{Rng as _, SeedableRng};
use rand_xoshiro::Xoshiro256PlusPlus;

/// A seeded source of random numbers.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Rng(Xoshiro256PlusPlus);

impl Rng {
    /// Creates the sequence for `seed`.
    pub fn new(seed: u64) -> Rng {
        Rng(Xoshiro256PlusPlus::seed_from_u64(seed))
    }

    /// Splits off a sequence that does not overlap this one for 2^128 numbers.
    ///
    /// Workloads draw addresses and arrival times from two such sequences, so that a change to one
    /// does not affect the other.
    pub fn split(&mut self) -> Rng {
        let split = self.clone();
        self.0.jump();
        split
    }

    /// Returns the next 64 bits.
    #[inline]
    pub fn bits(&mut self) -> u64 {
        self.0.next_u64()
    }

    /// Returns a whole number in [0, `bound`), each with equal probability.
    ///
    /// # Panics
    /// Panics if `bound` is zero.
    #[inline]
    pub fn below(&mut self, bound: u64) -> u64 {
        assert!(bound > 0, "nothing lies below zero");
        loop {
            let product = u128::from(self.bits()) * u128::from(bound);
            let low = product as u64;
            // Products whose low half is this small are over-represented. There are 2^64 mod bound
            // of them.
            if low >= bound || low >= bound.wrapping_neg() % bound {
                return (product >> 64) as u64;
            }
        }
    }

    /// Returns a fraction in [0, 1), in steps of 2^-53.
    #[inline]
    pub fn fraction(&mut self) -> f64 {
        (self.bits() >> 11) as f64 * (1.0 / 9_007_199_254_740_992.0)
    }

    /// Returns true with the given probability. A number is drawn for every probability, so that
    /// changing the probability does not affect later draws.
    #[inline]
    pub fn chance(&mut self, probability: f64) -> bool {
        self.fraction() < probability
    }
}

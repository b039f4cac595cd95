//! Mean and standard deviation of a stream of values.

use crate::Span;

/// Count, mean, variance, minimum and maximum of a stream of values (Welford's update, Chan's
/// merge).
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Moments {
    count: u64,
    mean: f64,
    /// The sum of squared differences from the mean.
    squares: f64,
    least: f64,
    greatest: f64,
}

impl Default for Moments {
    fn default() -> Moments {
        Moments {
            count: 0,
            mean: 0.0,
            squares: 0.0,
            least: f64::INFINITY,
            greatest: f64::NEG_INFINITY,
        }
    }
}

impl Moments {
    /// Adds a value.
    #[inline]
    pub fn push(&mut self, value: f64) {
        self.count += 1;
        let deviation = value - self.mean;
        self.mean += deviation / self.count as f64;
        self.squares += deviation * (value - self.mean);
        self.least = self.least.min(value);
        self.greatest = self.greatest.max(value);
    }

    /// Adds all values of another stream.
    pub fn merge(&mut self, other: &Moments) {
        if other.count == 0 {
            return;
        }
        let (a, b) = (self.count as f64, other.count as f64);
        let mean_difference = other.mean - self.mean;
        self.count += other.count;
        self.mean += mean_difference * b / (a + b);
        self.squares += other.squares + mean_difference * mean_difference * a * b / (a + b);
        self.least = self.least.min(other.least);
        self.greatest = self.greatest.max(other.greatest);
    }

    /// The number of values added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean; 0 if no value was added.
    pub fn mean(&self) -> f64 {
        self.mean
    }

    /// The unbiased estimate of the variance; 0 for fewer than two values.
    pub fn variance(&self) -> f64 {
        if self.count < 2 {
            0.0
        } else {
            self.squares / (self.count - 1) as f64
        }
    }

    /// The standard deviation: the square root of the variance.
    pub fn deviation(&self) -> f64 {
        libm::sqrt(self.variance())
    }

    /// The smallest value, or `None` if no value was added.
    pub fn min(&self) -> Option<f64> {
        (self.count > 0).then_some(self.least)
    }

    /// The largest value, or `None` if no value was added.
    pub fn max(&self) -> Option<f64> {
        (self.count > 0).then_some(self.greatest)
    }
}

/// The exact mean of each of `N` components of a time. Picoseconds are summed as integers, so the
/// means of the components add up to the mean of the whole.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct ComponentMeans<const N: usize> {
    count: u64,
    sums: [u128; N],
}

impl<const N: usize> Default for ComponentMeans<N> {
    fn default() -> Self {
        ComponentMeans {
            count: 0,
            sums: [0; N],
        }
    }
}

impl<const N: usize> ComponentMeans<N> {
    /// Adds the components of one time.
    #[inline]
    pub fn push(&mut self, components: &[Span; N]) {
        self.count += 1;
        for (sum, component) in self.sums.iter_mut().zip(components) {
            *sum += u128::from(component.0);
        }
    }

    /// Adds everything that `other` has accumulated.
    pub fn merge(&mut self, other: &ComponentMeans<N>) {
        self.count += other.count;
        for (sum, other_sum) in self.sums.iter_mut().zip(other.sums) {
            *sum += other_sum;
        }
    }

    /// The number of times added.
    pub fn count(&self) -> u64 {
        self.count
    }

    /// The mean of each component in milliseconds; zeros if nothing was added.
    pub fn means_ms(&self) -> [f64; N] {
        let count = self.count.max(1) as f64;
        self.sums.map(|sum| sum as f64 / 1e9 / count)
    }
}

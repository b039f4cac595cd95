//! Percentiles of a stream of times in bounded memory.

use hdrhistogram::Histogram;

use crate::Span;

/// The number of times that are kept individually. Up to this number, quantiles are exact.
pub const SAMPLES_EXACT: usize = 16_384;

/// The maximum relative error of a quantile beyond [`SAMPLES_EXACT`] times. Times are then counted
/// in classes no wider than 2^-10 of their value, and the middle of the class is reported.
pub const QUANTILE_ERROR: f64 = 1.0 / 2048.0;

/// The longest time in the classes, in picoseconds: 2^62 (53 days). Longer times count as this.
const LONGEST_PS: u64 = 1 << 62;

/// The distribution of a stream of times. It takes at most about 440 KB, regardless of the number
/// of times.
#[derive(Clone, Debug)]
pub struct Quantiles {
    kept: Vec<u64>,
    sorted: bool,
    classes: Option<Box<Histogram<u64>>>,
    least: u64,
    greatest: u64,
}

impl Default for Quantiles {
    fn default() -> Quantiles {
        Quantiles {
            kept: Vec::new(),
            sorted: true,
            classes: None,
            least: u64::MAX,
            greatest: 0,
        }
    }
}

impl Quantiles {
    /// Adds a time.
    #[inline]
    pub fn push(&mut self, time: Span) {
        self.least = self.least.min(time.0);
        self.greatest = self.greatest.max(time.0);
        match &mut self.classes {
            Some(classes) => classes.saturating_record(time.0.min(LONGEST_PS)),
            None => {
                self.kept.push(time.0);
                self.sorted = false;
                if self.kept.len() > SAMPLES_EXACT {
                    self.spill();
                }
            }
        }
    }

    /// Adds all times of another stream.
    pub fn merge(&mut self, other: &Quantiles) {
        if let Some(theirs) = &other.classes {
            self.spill();
            if let Some(classes) = &mut self.classes {
                classes.add(&**theirs).expect("both have the same bounds");
            }
            self.least = self.least.min(other.least);
            self.greatest = self.greatest.max(other.greatest);
        } else {
            other.kept.iter().for_each(|&time| self.push(Span(time)));
        }
    }

    /// The number of times added.
    pub fn count(&self) -> u64 {
        self.classes
            .as_ref()
            .map_or(self.kept.len() as u64, |classes| classes.len())
    }

    /// Returns whether [`Quantiles::at`] is exact rather than within [`QUANTILE_ERROR`].
    pub fn is_exact(&self) -> bool {
        self.classes.is_none()
    }

    /// Returns the smallest of the times such that at least the given share of them do not exceed
    /// it (the nearest rank): 0.5 for the median, 0 for the minimum, 1 for the maximum. Returns
    /// `None` if there are no times. The minimum and maximum are always exact.
    pub fn at(&mut self, share: f64) -> Option<Span> {
        let count = self.count();
        if count == 0 {
            return None;
        }
        let rank = (libm::ceil(share * count as f64) as u64).clamp(1, count);
        Some(Span(match &self.classes {
            _ if rank == 1 => self.least,
            _ if rank == count => self.greatest,
            None => {
                if !self.sorted {
                    self.kept.sort_unstable();
                    self.sorted = true;
                }
                self.kept[rank as usize - 1]
            }
            Some(classes) => {
                let middle = classes.median_equivalent(value_at_rank(classes, rank));
                middle.clamp(self.least, self.greatest)
            }
        }))
    }

    /// Returns the whole cumulative distribution: the times that occur, in ascending order, each
    /// with the number of times that do not exceed it. Beyond [`SAMPLES_EXACT`] times, a step
    /// represents a class, at its middle. The minimum and maximum are always exact.
    pub fn steps(&mut self) -> Vec<(Span, u64)> {
        let mut steps: Vec<(Span, u64)> = Vec::new();
        let mut seen = 0;
        let (least, greatest) = (self.least, self.greatest);
        let mut add = |time: u64, count: u64| {
            seen += count;
            match steps.last_mut() {
                Some(last) if last.0.0 == time => last.1 = seen,
                _ => steps.push((Span(time), seen)),
            }
        };
        match &self.classes {
            None => {
                self.kept.sort_unstable();
                self.sorted = true;
                self.kept.iter().for_each(|&time| add(time, 1));
            }
            Some(classes) => {
                for class in classes.iter_recorded() {
                    let middle = classes.median_equivalent(class.value_iterated_to());
                    let count = class.count_since_last_iteration();
                    add(middle.clamp(least, greatest), count);
                }
                with_ends(&mut steps, least, greatest);
            }
        }
        steps
    }

    /// Divides the range from 0 to the maximum into `bins` equal bins, and returns the start of
    /// each bin with its number of times. Beyond [`SAMPLES_EXACT`] times, a time within
    /// [`QUANTILE_ERROR`] of the start of a bin may be counted in the neighbouring bin.
    pub fn histogram(&self, bins: usize) -> Vec<(Span, u64)> {
        let bins = bins.max(1) as u64;
        let width = self.greatest / bins + 1;
        let mut counts: Vec<(Span, u64)> = (0..bins)
            .map(|bin| (Span(bin.saturating_mul(width)), 0))
            .collect();
        let mut add =
            |time: u64, count: u64| counts[(time.min(self.greatest) / width) as usize].1 += count;
        match &self.classes {
            None => self.kept.iter().for_each(|&time| add(time, 1)),
            Some(classes) => classes.iter_recorded().for_each(|class| {
                add(
                    classes.median_equivalent(class.value_iterated_to()),
                    class.count_since_last_iteration(),
                )
            }),
        }
        counts
    }

    /// Moves the times that are kept individually into classes.
    fn spill(&mut self) {
        if self.classes.is_none() {
            let mut classes =
                Histogram::new_with_bounds(1, LONGEST_PS, 3).expect("the bounds are in order");
            self.kept
                .iter()
                .for_each(|&time| classes.saturating_record(time.min(LONGEST_PS)));
            self.kept = Vec::new();
            self.classes = Some(Box::new(classes));
        }
    }
}

/// Moves one time of the first and of the last class to the minimum and the maximum.
fn with_ends(steps: &mut Vec<(Span, u64)>, least: u64, greatest: u64) {
    match steps.first_mut() {
        Some(first) if first.1 == 1 => first.0 = Span(least),
        Some(first) if first.0.0 > least => steps.insert(0, (Span(least), 1)),
        _ => {}
    }
    let before = steps.iter().rev().nth(1).map_or(0, |step| step.1);
    match steps.last_mut() {
        Some(last) if last.1 == before + 1 => last.0 = Span(greatest),
        Some(last) if last.0.0 < greatest => {
            let count = last.1;
            last.1 -= 1;
            steps.push((Span(greatest), count));
        }
        _ => {}
    }
}

/// Returns a value of the class that holds the given rank. The histogram's own search takes a
/// share, which may be rounded to the neighbouring rank.
fn value_at_rank(classes: &Histogram<u64>, rank: u64) -> u64 {
    let mut seen = 0;
    for class in classes.iter_recorded() {
        seen += class.count_since_last_iteration();
        if seen >= rank {
            return class.value_iterated_to();
        }
    }
    LONGEST_PS
}

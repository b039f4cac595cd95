//! A sequence of numbers, stored as its repetitions.
//!
//! Track sizes repeat in nested ways: along a zone, from surface to surface, and from one turn of a
//! serpentine to the next. A [`RunPattern`] detects this as numbers are appended. Equal numbers
//! form a run, and a tail that repeats the terms before it is folded into a group. Each number
//! costs a bounded number of comparisons. Irregular data costs 16 bytes per run.

/// The longest tail, in terms, that is compared with the terms before it.
const TAIL_TERMS_MAX: usize = 64;

/// The number of terms per mark. A mark records the position of the first of these terms.
const MARK_TERMS: usize = 64;

/// The maximum nesting depth of groups. Each level at least doubles the count of numbers, and a map
/// has at most 2^28 tracks, so folding never reaches this depth.
pub const DEPTH_MAX: usize = 32;

/// A sequence of numbers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct RunPattern {
    terms: Vec<Term>,
    /// For every [`MARK_TERMS`] terms: the extent of the numbers before the first of these terms.
    marks: Vec<Extent>,
    extent: Extent,
}

/// A part of a sequence.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Term {
    /// One number, repeated.
    Run {
        /// The number.
        number: u32,
        /// The number of times that it occurs in succession.
        times: u32,
    },
    /// A group of terms, repeated.
    Group(Box<Group>),
}

/// Terms that repeat.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Group {
    /// The number of passes.
    pub times: u32,
    /// The extent of one pass.
    extent: Extent,
    /// The terms of one pass.
    pub terms: Vec<Term>,
}

/// A count of numbers, and their sum.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Extent {
    /// The count of numbers.
    pub count: u64,
    /// Their sum.
    pub sum: u64,
}

/// The quantity that gives a position in a sequence.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Measure {
    /// The count of the numbers before the position.
    Count,
    /// The sum of the numbers before the position.
    Sum,
}

impl Extent {
    fn add(&mut self, other: Extent, times: u64) {
        self.count += other.count * times;
        self.sum += other.sum * times;
    }

    fn by(self, measure: Measure) -> u64 {
        match measure {
            Measure::Count => self.count,
            Measure::Sum => self.sum,
        }
    }
}

impl Term {
    /// The count and the sum of the numbers in this term.
    fn extent(&self) -> Extent {
        let (one, times) = match self {
            Term::Run { number, times } => {
                let sum = u64::from(*number);
                (Extent { count: 1, sum }, *times)
            }
            Term::Group(group) => (group.extent, group.times),
        };
        let mut all = Extent::default();
        all.add(one, u64::from(times));
        all
    }
}

impl Group {
    /// Creates a group of `terms` repeated `times` times. Returns `None` if it would contain more
    /// than `most` numbers.
    pub fn new(terms: Vec<Term>, times: u32, most: u64) -> Option<Group> {
        let mut extent = Extent::default();
        for term in &terms {
            extent.add(term.extent(), 1);
            if extent.count > most {
                return None;
            }
        }
        (extent.count * u64::from(times) <= most).then_some(Group {
            times,
            extent,
            terms,
        })
    }
}

impl RunPattern {
    /// The count and the sum of the numbers.
    pub fn extent(&self) -> Extent {
        self.extent
    }

    /// The terms, in order.
    pub fn terms(&self) -> &[Term] {
        &self.terms
    }

    /// Appends a number `times` times.
    pub fn push(&mut self, number: u32, times: u32) {
        let new = Term::Run { number, times };
        match self.terms.last_mut() {
            Some(Term::Run {
                number: last,
                times: count,
            }) if *last == number => {
                self.extent.add(new.extent(), 1);
                *count += times;
            }
            _ => {
                self.fold();
                self.append(new);
            }
        }
    }

    /// Appends a term without folding.
    pub fn append(&mut self, term: Term) {
        if self.terms.len().is_multiple_of(MARK_TERMS) {
            self.marks.push(self.extent);
        }
        self.extent.add(term.extent(), 1);
        self.terms.push(term);
    }

    /// Appends a term without folding. Returns `None` if the sequence would then have more than
    /// `most` numbers.
    pub fn append_checked(&mut self, term: Term, most: u64) -> Option<()> {
        let fits = self.extent.count + term.extent().count <= most;
        fits.then(|| self.append(term))
    }

    /// Folds the tail for as long as it repeats the terms before it. The last run must be complete.
    pub fn fold(&mut self) {
        while let Some(length) = self.repeated_tail() {
            let tail = self.terms.split_off(self.terms.len() - length);
            match self.terms.last_mut() {
                Some(Term::Group(group)) if group.terms == tail => group.times += 1,
                _ => {
                    self.terms.truncate(self.terms.len() - length);
                    let group = Group::new(tail, 2, u64::MAX).expect("no bound is given");
                    self.terms.push(Term::Group(Box::new(group)));
                }
            }
            self.marks.truncate(self.terms.len().div_ceil(MARK_TERMS));
        }
    }

    /// The length, in terms, of the shortest tail that equals the terms before it, or one pass of
    /// the group before it.
    fn repeated_tail(&self) -> Option<usize> {
        let terms = &self.terms[..];
        let last = terms.last()?;
        (1..=TAIL_TERMS_MAX.min(terms.len() - 1)).find(|&length| {
            let (before, tail) = terms.split_at(terms.len() - length);
            let again = |earlier: &[Term]| earlier.last() == Some(last) && earlier == tail;
            let group = match &before[before.len() - 1] {
                Term::Group(group) => again(&group.terms),
                Term::Run { .. } => false,
            };
            group || before.len() >= length && again(&before[before.len() - length..])
        })
    }

    /// The runs in order. Consecutive runs may have the same number.
    pub fn runs(&self) -> Runs<'_> {
        Runs {
            levels: vec![Level {
                terms: &self.terms,
                next: 0,
                passes: 1,
            }],
        }
    }

    /// Returns the number that contains position `at`, and the extent of the numbers before it.
    /// Returns `None` if the sequence ends at or before the position.
    pub fn find(&self, at: u64, measure: Measure) -> Option<(Extent, u32)> {
        if at >= self.extent.by(measure) {
            return None;
        }
        let later = self.marks.partition_point(|mark| mark.by(measure) <= at);
        let mut before = self.marks[later - 1];
        let mut terms = &self.terms[(later - 1) * MARK_TERMS..];
        loop {
            let (first, rest) = terms.split_first().expect("the position is before the end");
            let extent = first.extent();
            let into = at - before.by(measure);
            if into >= extent.by(measure) {
                before.add(extent, 1);
                terms = rest;
                continue;
            }
            match first {
                Term::Run { number, times: _ } => {
                    let one = Extent {
                        count: 1,
                        sum: u64::from(*number),
                    };
                    before.add(one, into / one.by(measure));
                    return Some((before, *number));
                }
                Term::Group(group) => {
                    before.add(group.extent, into / group.extent.by(measure));
                    terms = &group.terms;
                }
            }
        }
    }
}

/// The runs of a sequence: each a number and how many times it repeats.
#[derive(Clone, Debug)]
pub struct Runs<'a> {
    levels: Vec<Level<'a>>,
}

#[derive(Clone, Copy, Debug)]
struct Level<'a> {
    terms: &'a [Term],
    next: usize,
    /// The number of passes left, including the current one.
    passes: u32,
}

impl Iterator for Runs<'_> {
    type Item = (u32, u32);

    fn next(&mut self) -> Option<(u32, u32)> {
        loop {
            let level = self.levels.last_mut()?;
            match level.terms.get(level.next) {
                Some(Term::Run { number, times }) => {
                    level.next += 1;
                    return Some((*number, *times));
                }
                Some(Term::Group(group)) => {
                    level.next += 1;
                    self.levels.push(Level {
                        terms: &group.terms,
                        next: 0,
                        passes: group.times,
                    });
                }
                None if level.passes > 1 => {
                    level.passes -= 1;
                    level.next = 0;
                }
                None => {
                    self.levels.pop();
                }
            }
        }
    }
}

/// The individual numbers of a sequence, in order.
#[derive(Clone, Debug)]
pub struct Numbers<'a> {
    runs: Runs<'a>,
    run: (u32, u32),
}

impl RunPattern {
    /// The numbers in order.
    pub fn numbers(&self) -> Numbers<'_> {
        Numbers {
            runs: self.runs(),
            run: (0, 0),
        }
    }
}

impl Iterator for Numbers<'_> {
    type Item = u32;

    fn next(&mut self) -> Option<u32> {
        while self.run.1 == 0 {
            self.run = self.runs.next()?;
        }
        self.run.1 -= 1;
        Some(self.run.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    fn pattern(numbers: &[u32]) -> RunPattern {
        let mut pattern = RunPattern::default();
        for &number in numbers {
            pattern.push(number, 1);
        }
        pattern.fold();
        pattern
    }

    /// Returns numbers with structure: runs in three levels of repeated groups.
    fn numbers() -> impl Strategy<Value = Vec<u32>> {
        let run = (1..4_u32, 1..4_usize).prop_map(|(number, times)| vec![number; times]);
        let group = |inner: BoxedStrategy<Vec<u32>>| {
            (prop::collection::vec(inner, 1..4), 1..4_usize)
                .prop_map(|(terms, times)| terms.concat().repeat(times))
                .boxed()
        };
        group(group(group(run.boxed())))
    }

    proptest! {
        /// Does a pattern return the numbers that were added, and does each measure find each of
        /// them?
        #[test]
        fn nothing_is_lost(numbers in numbers()) {
            let pattern = pattern(&numbers);
            prop_assert_eq!(pattern.numbers().collect::<Vec<_>>(), numbers.clone());
            let mut before = Extent::default();
            for &number in &numbers {
                let there = Some((before, number));
                prop_assert_eq!(pattern.find(before.count, Measure::Count), there);
                prop_assert_eq!(pattern.find(before.sum, Measure::Sum), there);
                let last = before.sum + u64::from(number) - 1;
                prop_assert_eq!(pattern.find(last, Measure::Sum), there);
                before.add(Extent { count: 1, sum: u64::from(number) }, 1);
            }
            prop_assert_eq!(pattern.extent(), before);
            prop_assert_eq!(pattern.find(before.count, Measure::Count), None);
            prop_assert_eq!(pattern.find(before.sum, Measure::Sum), None);
        }
    }

    /// Are marks correct if terms are folded across a mark, from 1,025 to 1,022 terms?
    #[test]
    fn found_beyond_many_terms() {
        let irregular = (0..1022_u32).map(|k| 1 + k * k % 977);
        let numbers: Vec<u32> = irregular.chain([5, 6, 5, 6, 7].repeat(300)).collect();
        let pattern = pattern(&numbers);
        for (index, &number) in numbers.iter().enumerate() {
            let found = pattern.find(index as u64, Measure::Count);
            assert_eq!(found.map(|found| found.1), Some(number));
        }
        assert!((900..=1023).contains(&pattern.terms().len()));
    }

    /// Do the tracks of a drive with two surfaces, serpentines and zones fit in a few terms?
    #[test]
    fn nested_repetition_folds() {
        let turn = |a: u32, b: u32| [vec![a; 32], vec![b; 32], vec![b; 32], vec![a; 32]].concat();
        let zones: Vec<u32> = (0..10)
            .flat_map(|zone| turn(1144 - 20 * zone, 1092 - 20 * zone).repeat(500))
            .collect();
        assert!(pattern(&zones).terms().len() <= 40);
        // A group within a group.
        let cylinder = [[7, 8].repeat(5), vec![9]].concat();
        let terms = pattern(&cylinder.repeat(100));
        assert_eq!(terms.terms().len(), 1, "{terms:?}");
    }
}

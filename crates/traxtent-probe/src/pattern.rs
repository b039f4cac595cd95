//! The repetition in a drive's layout, and the tracks that it predicts.
//!
//! A layout is two sequences with one element per track: the step of cylinder and surface to the
//! track, and the slots that it uses. Each sequence is stored as runs of equal elements. The
//! prediction finds the earlier place at which the most runs match the latest ones, and repeats the
//! runs after it. This covers cylinders, serpentines of any width and spares at regular intervals
//! of cylinders, because each of these is a repetition of runs.

use std::collections::{BTreeMap, VecDeque};
use std::ops::Range;

use traxtent_model::geometry::TrackAddress;
use traxtent_units::{Cylinder, Surface};

/// The slots of a track from the first to the last in use, including bad ones.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Slots {
    pub(super) first: u32,
    pub(super) count: u32,
}

impl Slots {
    pub(super) fn range(self) -> Range<u32> {
        self.first..self.first.saturating_add(self.count)
    }
}

/// The step from one track to the next.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord)]
pub(super) struct Step {
    cylinders: i64,
    surfaces: i64,
}

/// Returns the step from one track to another.
pub(super) fn step(from: TrackAddress, to: TrackAddress) -> Step {
    Step {
        cylinders: i64::from(to.0.0) - i64::from(from.0.0),
        surfaces: i64::from(to.1.0) - i64::from(from.1.0),
    }
}

/// The largest number of runs that are stored. A repetition can be half as long.
const RUNS_MAX: usize = 512;
/// The largest number of runs compared to measure how well a repetition fits.
const FIT_MAX: usize = 128;

/// A sequence as runs of equal elements.
#[derive(Clone, Debug)]
struct Runs<T> {
    runs: VecDeque<(T, u64)>,
}

impl<T: Copy + PartialEq> Runs<T> {
    fn new() -> Runs<T> {
        let runs = VecDeque::new();
        Runs { runs }
    }

    fn push(&mut self, element: T, count: u64) {
        match self.runs.back_mut() {
            _ if count == 0 => {}
            Some((last, length)) if *last == element => *length += count,
            _ => {
                if self.runs.len() == RUNS_MAX {
                    self.runs.pop_front();
                }
                self.runs.push_back((element, count));
            }
        }
    }

    /// Returns the number of runs after which the sequence repeats, or `None` if it does not
    /// repeat.
    fn repetition(&self) -> Option<usize> {
        let last = self.runs.len().checked_sub(1)?;
        let (element, length) = self.runs[last];
        let fits = |lag: usize| -> usize {
            let (same, whole) = self.runs[last - lag];
            if same != element || whole < length {
                return 0;
            }
            let pairs = (lag + 1..=last).take(FIT_MAX);
            pairs
                .take_while(|back| self.runs[last - back] == self.runs[last + lag - back])
                .count()
        };
        let (fit, lag) = (1..=self.runs.len() / 2)
            .map(|lag| (fits(lag), usize::MAX - lag))
            .max()?;
        (fit > 0).then_some(usize::MAX - lag)
    }

    /// Returns the runs that follow if the sequence repeats after `lag` runs. The iterator is
    /// endless.
    fn predicted_runs(&self, lag: usize) -> impl Iterator<Item = (T, u64)> {
        let last = self.runs.len() - 1;
        let begun = self.runs[last].1;
        let first = last - lag;
        let rest = (self.runs[first].0, self.runs[first].1 - begun);
        // The latest run grows until it is as long as the run that it repeats.
        let cycle = (1..).map(move |k| self.runs[first + k % lag]);
        std::iter::once(rest).chain(cycle).filter(|run| run.1 > 0)
    }
}

/// A track, found or predicted: its address and its slots.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct PatternTrack {
    pub(super) home: TrackAddress,
    pub(super) slots: Slots,
}

/// The pattern of the tracks found so far.
#[derive(Clone, Debug)]
pub(super) struct Pattern {
    last: Option<TrackAddress>,
    steps: Runs<Step>,
    slots: Runs<Slots>,
    /// The slots most recently used on each surface.
    by_surface: BTreeMap<Surface, Slots>,
    /// The score that selects what predicts a track's slots: the last track on its surface if the
    /// score is positive; otherwise the repetition, or the previous track if there is none. It is
    /// updated where the slots change.
    surface_score: i32,
}

impl Pattern {
    pub(super) fn new() -> Pattern {
        Pattern {
            last: None,
            steps: Runs::new(),
            slots: Runs::new(),
            by_surface: BTreeMap::new(),
            surface_score: 0,
        }
    }

    /// Adds the next track.
    pub(super) fn push(&mut self, track: PatternTrack) {
        let (_, surface) = track.home;
        if let Some(last) = self.last {
            self.steps.push(step(last, track.home), 1);
        }
        self.last = Some(track.home);
        if self
            .slots
            .runs
            .back()
            .is_some_and(|run| run.0 != track.slots)
            && let Some(previous) = self.by_surface.get(&surface)
        {
            let change = if *previous == track.slots { 1 } else { -1 };
            self.surface_score = (self.surface_score + change).clamp(-2, 6);
        }
        self.slots.push(track.slots, 1);
        self.by_surface.insert(surface, track.slots);
    }

    /// Returns the slots that the last track on this surface used.
    pub(super) fn slots_of(&self, surface: Surface) -> Option<Slots> {
        self.by_surface.get(&surface).copied()
    }

    /// Returns the predicted next tracks, up to the first whose address would be invalid.
    pub(super) fn ahead(&self) -> impl Iterator<Item = PatternTrack> {
        let mut at = self.last;
        let mut steps = self.steps_ahead();
        let mut slots = self.slots_ahead();
        std::iter::from_fn(move || {
            let (cylinder, surface) = at?;
            let step = steps.next()?;
            let cylinder = i64::from(cylinder.0) + step.cylinders;
            let surface = i64::from(surface.0) + step.surfaces;
            let home = (
                Cylinder(u32::try_from(cylinder).ok()?),
                Surface(u16::try_from(surface).ok()?),
            );
            at = Some(home);
            let slots = slots.as_mut().and_then(Iterator::next);
            let slots = slots.or_else(|| self.without_repetition(home.1))?;
            Some(PatternTrack { home, slots })
        })
    }

    fn steps_ahead(&self) -> Box<dyn Iterator<Item = Step> + '_> {
        match (self.steps.repetition(), self.steps.runs.back()) {
            (Some(lag), _) => Box::new(one_by_one(self.steps.predicted_runs(lag))),
            (None, Some(&(step, _))) => Box::new(std::iter::repeat(step)),
            (None, None) => Box::new(std::iter::empty()),
        }
    }

    fn slots_ahead(&self) -> Option<impl Iterator<Item = Slots>> {
        if self.surface_score > 0 {
            return None;
        }
        let lag = self.slots.repetition()?;
        Some(one_by_one(self.slots.predicted_runs(lag)))
    }

    fn without_repetition(&self, surface: Surface) -> Option<Slots> {
        let previous = self.by_surface.get(&surface);
        let last = self.slots.runs.back().map(|run| run.0);
        match previous {
            Some(previous) if self.surface_score > 0 => Some(*previous),
            _ => last,
        }
    }
}

fn one_by_one<T: Copy>(runs: impl Iterator<Item = (T, u64)>) -> impl Iterator<Item = T> {
    runs.flat_map(|(element, count)| std::iter::repeat_n(element, count as usize))
}

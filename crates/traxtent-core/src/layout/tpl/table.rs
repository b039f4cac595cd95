//! The table of tracks: how many partitions each has, and which of its layers are in use.
//!
//! In memory, tracks stand in pages as they do on the device; a page of tracks that are all alike is one entry.

use super::count::{Bounds, Count};

/// What is kept of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackState {
    /// Its partitions.
    pub count: Count,
    /// The layers that hold data: bit 0 is the first.
    pub used: u8,
}

impl TrackState {
    /// An empty track: the most partitions.
    pub fn empty(bounds: Bounds) -> TrackState {
        TrackState {
            count: bounds.most(),
            used: 0,
        }
    }

    /// Whether the layer holds data.
    pub fn holds(self, layer: usize) -> bool {
        self.used >> layer & 1 == 1
    }

    /// The most partitions that leave its data their place.
    pub fn allowed(self, bounds: Bounds) -> Count {
        match self.used.checked_ilog2() {
            Some(layer) => bounds.count_of(layer as usize),
            None => bounds.most(),
        }
    }

    /// Two bytes: the exponent of the count in bits 0 to 2, the layers in bits 3 to 8.
    pub(super) fn encode(self) -> u16 {
        u16::from(self.count.exponent()) | u16::from(self.used) << 3
    }

    /// What two bytes say, if that can be.
    pub(super) fn decode(bits: u16, bounds: Bounds) -> Option<TrackState> {
        let count = Count::of_exponent((bits & 7) as u8)?;
        let used = u8::try_from(bits >> 3).ok()?;
        if used >> bounds.layers() != 0 {
            return None;
        }
        let state = TrackState { count, used };
        (bounds.least()..=state.allowed(bounds))
            .contains(&count)
            .then_some(state)
    }
}

/// The tracks of a page.
#[derive(Clone, Debug, PartialEq, Eq)]
enum States {
    Alike(u16),
    Each(Box<[u16]>),
}

/// A page of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// One more with each change.
    pub(super) generation: u64,
    /// Whether copies of its tracks may differ: then a crash leaves only the first of each that can be believed.
    pub(super) open: bool,
    states: States,
}

impl Page {
    /// Of so many tracks that are all empty.
    pub(super) fn empty(bounds: Bounds) -> Page {
        Page {
            generation: 0,
            open: false,
            states: States::Alike(TrackState::empty(bounds).encode()),
        }
    }

    /// Of states as they are written.
    pub(super) fn new(generation: u64, open: bool, states: &[u16]) -> Page {
        let states = match states {
            [first, rest @ ..] if rest.iter().all(|state| state == first) => States::Alike(*first),
            states => States::Each(states.into()),
        };
        Page {
            generation,
            open,
            states,
        }
    }

    /// The state of one of its tracks, as it is written.
    pub(super) fn get(&self, index: usize) -> u16 {
        match &self.states {
            States::Alike(state) => *state,
            States::Each(states) => states[index],
        }
    }

    /// Changes the state of one of its `tracks` tracks.
    pub(super) fn set(&mut self, index: usize, state: TrackState, tracks: usize) {
        let state = state.encode();
        if self.get(index) == state {
            return;
        }
        let mut states: Vec<u16> = (0..tracks).map(|track| self.get(track)).collect();
        states[index] = state;
        *self = Page::new(self.generation, self.open, &states);
    }

    /// Bytes beside the page itself.
    pub(super) fn memory(&self) -> usize {
        match &self.states {
            States::Alike(_) => 0,
            States::Each(states) => size_of_val(&**states),
        }
    }
}

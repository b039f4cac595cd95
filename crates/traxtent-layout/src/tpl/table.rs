//! The table of tracks: how many partitions each has, and which of its layers are in use.
//!
//! In memory, tracks are grouped in pages as on the device. A page whose tracks all have the same
//! state is stored as one entry.

use super::count::{PartitionBounds, PartitionCount};

/// The table's state of a track.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TrackState {
    /// The track's number of partitions.
    pub count: PartitionCount,
    /// The layers that hold data: bit 0 is the first.
    pub used: u8,
}

impl TrackState {
    /// Returns the state of an empty track, which has the most partitions.
    pub fn empty(bounds: PartitionBounds) -> TrackState {
        TrackState {
            count: bounds.most(),
            used: 0,
        }
    }

    /// Returns whether the layer holds data.
    pub fn holds(self, layer: usize) -> bool {
        self.used >> layer & 1 == 1
    }

    /// Returns the largest number of partitions that leaves space for the track's data.
    pub fn allowed(self, bounds: PartitionBounds) -> PartitionCount {
        match self.used.checked_ilog2() {
            Some(layer) => bounds.count_of(layer as usize),
            None => bounds.most(),
        }
    }

    /// Encodes the state in two bytes: the exponent of the count in bits 0 to 2, the layers in bits
    /// 3 to 8.
    pub(super) fn encode(self) -> u16 {
        u16::from(self.count.exponent()) | u16::from(self.used) << 3
    }

    /// Decodes a state from two bytes; `None` if it is impossible.
    pub(super) fn decode(bits: u16, bounds: PartitionBounds) -> Option<TrackState> {
        let count = PartitionCount::of_exponent((bits & 7) as u8)?;
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

/// The encoded states of a page's tracks.
#[derive(Clone, Debug, PartialEq, Eq)]
enum States {
    Alike(u16),
    Each(Box<[u16]>),
}

/// A page of the table.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(super) struct Page {
    /// The generation, which increases by one with each change.
    pub(super) generation: u64,
    /// Whether replicas on its tracks may differ. If so, only the first replica of each block is
    /// trusted after a crash.
    pub(super) open: bool,
    states: States,
}

impl Page {
    /// Creates a page whose tracks are all empty.
    pub(super) fn empty(bounds: PartitionBounds) -> Page {
        Page {
            generation: 0,
            open: false,
            states: States::Alike(TrackState::empty(bounds).encode()),
        }
    }

    /// Creates a page from encoded states.
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

    /// Returns the encoded state of one of the page's tracks.
    pub(super) fn get(&self, index: usize) -> u16 {
        match &self.states {
            States::Alike(state) => *state,
            States::Each(states) => states[index],
        }
    }

    /// Changes the state of one of the page's `tracks` tracks.
    pub(super) fn set(&mut self, index: usize, state: TrackState, tracks: usize) {
        let state = state.encode();
        if self.get(index) == state {
            return;
        }
        let mut states: Vec<u16> = (0..tracks).map(|track| self.get(track)).collect();
        states[index] = state;
        *self = Page::new(self.generation, self.open, &states);
    }

    /// Returns the heap memory of the page in bytes.
    pub(super) fn memory(&self) -> usize {
        match &self.states {
            States::Alike(_) => 0,
            States::Each(states) => size_of_val(&**states),
        }
    }
}

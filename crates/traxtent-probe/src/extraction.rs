//! The results of a search for tracks: the tracks themselves, the other results, and errors.

use std::ops::ControlFlow;

use super::target::TargetError;
use traxtent_map::Found;
use traxtent_units::Lbn;

/// Receives tracks in ascending order without gaps. Decides whether the search continues.
pub type TrackSink<'a> = dyn FnMut(Found) -> ControlFlow<()> + 'a;

/// The results of a search other than its tracks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// LBNs that could not be read or translated. The search continued around them.
    pub unreadable: Vec<Lbn>,
    /// LBNs remapped off their track, according to the drive's list of grown defects.
    pub remapped: Vec<Lbn>,
    /// Whether the drive has such a list, and translates its places. Otherwise `remapped` is empty:
    /// the search encounters only a few remapped LBNs, and does not list them.
    pub remapped_complete: bool,
    /// The number of untested boundaries that were predicted where tracks are irregular. Some of
    /// them may be wrong. Only [`Algorithm::Angle`](traxtent_map::Algorithm::Angle) with
    /// [`Verify::Sample`](traxtent_map::Verify::Sample) leaves any.
    pub untested_irregular: u64,
    /// The first LBN of each group that was classified as remapped by timing alone, without
    /// confirmation by the drive's list of grown defects. Each group may be a track. Only
    /// [`Algorithm::Angle`](traxtent_map::Algorithm::Angle) finds any.
    pub unconfirmed_remapped: Vec<Lbn>,
    /// Notes for the reader, one line each.
    pub notes: Vec<String>,
}

impl Extraction {
    /// The number of boundaries that may be wrong.
    pub fn doubtful(&self) -> u64 {
        self.untested_irregular + self.unconfirmed_remapped.len() as u64
    }
}

/// The reason why a probe ends early. The tracks that were certain by then have already been passed
/// to the sink.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The drive did not carry out a request.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The drive responds, but not like a rotating disk.
    #[error("not a rotating disk: {0}")]
    NotRotating(String),
    /// The drive's responses contradict each other or do not fit any layout of tracks.
    #[error("LBN {lbn}: {problem}")]
    Inconsistent {
        /// The LBN at which the problem occurred.
        lbn: Lbn,
        /// The inconsistency.
        problem: String,
    },
    /// The sink ended the search.
    #[error("stopped")]
    Stopped,
}

//! The algorithms that find track boundaries, by name.

use std::ops::ControlFlow;

use super::angle;
use super::clock::Clock;
use super::dixtrac::dixtrac;
use super::elsewhere::kept_elsewhere;
use super::jump::jump;
use super::scan;
use super::target::{Target, TargetError};
use super::track_end::Search;
use super::tree::tree;
use super::walk::walk;
use crate::units::{Lbn, Sectors};

/// An algorithm that finds track boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Timed reads: binary search for the end of each track, verification of tracks of equal
    /// length, and a hundred places in turn so that no cache helps (paper T, section 4.1.1).
    Scan,
    /// Timed reads: sector angles, predictions, and a search only where a prediction fails.
    Angle,
    /// Translations without further knowledge of drives: about two per track (paper T, section
    /// 4.1.2).
    Walk,
    /// Translations of each expected boundary and the LBN before it, and LBN by LBN where the
    /// expectation fails (paper Q, section 2.3).
    Jump,
    /// Translations guided by the defect lists: DIXtrac's five steps (paper T, section 4.1.2).
    Dixtrac,
    /// Translations only where the pattern of zones, surfaces and serpentines may change.
    Tree,
}

impl Algorithm {
    /// All algorithms.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Scan,
        Algorithm::Angle,
        Algorithm::Walk,
        Algorithm::Jump,
        Algorithm::Dixtrac,
        Algorithm::Tree,
    ];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Algorithm::Scan => "scan",
            Algorithm::Angle => "angle",
            Algorithm::Walk => "walk",
            Algorithm::Jump => "jump",
            Algorithm::Dixtrac => "dixtrac",
            Algorithm::Tree => "tree",
        }
    }

    /// Returns the algorithm with this name.
    pub fn by_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Returns whether the algorithm uses translations. Otherwise it uses timed reads.
    pub fn translates(self) -> bool {
        !matches!(self, Algorithm::Scan | Algorithm::Angle)
    }
}

/// How many of the boundaries that a timing algorithm predicts are tested by separate reads.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Only those that the search itself needs to test.
    None,
    /// At least one boundary within every run of tracks as long as a cylinder.
    #[default]
    Sample,
    /// Every boundary.
    Full,
}

impl Verify {
    /// All variants.
    pub const ALL: [Verify; 3] = [Verify::None, Verify::Sample, Verify::Full];

    /// The name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Verify::None => "none",
            Verify::Sample => "sample",
            Verify::Full => "full",
        }
    }
}

/// The part of a drive to probe, as a half-open range.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first LBN.
    pub first: Lbn,
    /// The first LBN after the region.
    pub end: Lbn,
    /// Whether a track is known to begin at `first`, as one does at LBN 0. Otherwise the search
    /// starts at the first track that begins in the region.
    pub aligned: bool,
}

impl Region {
    /// A whole drive.
    pub fn whole(capacity: Sectors) -> Region {
        Region {
            first: Lbn(0),
            end: Lbn(capacity.0),
            aligned: true,
        }
    }
}

/// How a boundary was confirmed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confirm {
    /// By a pattern that held on both sides of it. Not tested itself.
    Predicted,
    /// By a read or translation inside the run of tracks that it belongs to.
    Sampled,
    /// By a test of the boundary itself, on both sides.
    Tested,
}

impl Confirm {
    /// All variants, the least certain first.
    pub const ALL: [Confirm; 3] = [Confirm::Predicted, Confirm::Sampled, Confirm::Tested];

    /// The name of the variant.
    pub fn name(self) -> &'static str {
        match self {
            Confirm::Predicted => "predicted",
            Confirm::Sampled => "sampled",
            Confirm::Tested => "tested",
        }
    }
}

/// A track that has been found.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Found {
    /// Its lowest LBN.
    pub first_lbn: Lbn,
    /// The number of LBNs.
    pub sectors: u32,
    /// How its end was confirmed.
    pub confirm: Confirm,
}

/// Receives tracks in ascending order without gaps. May end the search.
pub type Sink<'a> = dyn FnMut(Found) -> ControlFlow<()> + 'a;

/// The results of a search apart from its tracks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// LBNs that could not be read or translated. The search continued around them.
    pub unreadable: Vec<Lbn>,
    /// LBNs found to be remapped off their track.
    pub moved: Vec<Lbn>,
    /// Whether `moved` is complete, according to the drive's list of grown defects. Otherwise it
    /// holds only those that the search came across, which are few.
    pub moved_known: bool,
    /// The number of untested boundaries that were predicted where tracks are irregular. Some of
    /// them may be wrong. Only [`Algorithm::Angle`] with [`Verify::Sample`] leaves any.
    pub doubtful: u64,
    /// Notes for the reader, one line each.
    pub notes: Vec<String>,
}

/// The note for drives on which no list gives the remapped LBNs.
const MOVED_UNKNOWN: &str = "sectors kept elsewhere are not counted: the drive does not translate addresses or lists no defects";

/// The reason why a search ends early. The tracks found so far have already been passed to the
/// sink.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The drive failed.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The drive responds, but not like a rotating disk.
    #[error("not a rotating disk: {0}")]
    NotRotating(String),
    /// The drive's responses do not fit any track.
    #[error("LBN {lbn}: {problem}")]
    Baffled {
        /// The LBN at which the problem occurred.
        lbn: Lbn,
        /// The inconsistency.
        problem: String,
    },
    /// The sink ended the search.
    #[error("stopped")]
    Stopped,
}

/// Finds the tracks of a region. Only [`Algorithm::Angle`] uses `verify`.
///
/// # Errors
/// Returns an error if the drive does not respond, or not as the algorithm requires; see
/// [`ProbeError`].
pub fn extract(
    algorithm: Algorithm,
    target: &mut dyn Target,
    region: Region,
    verify: Verify,
    sink: &mut Sink<'_>,
) -> Result<Extraction, ProbeError> {
    Prober::start(algorithm, target)?.extract(region, verify, sink)
}

/// A drive that is searched region by region. For a timing algorithm, the way to time the drive is
/// determined once.
pub struct Prober<'a> {
    algorithm: Algorithm,
    drive: Ready<'a>,
}

/// A drive prepared for an algorithm.
enum Ready<'a> {
    Translating(&'a mut dyn Target),
    Timed(Box<Clock<'a>>),
}

impl<'a> Prober<'a> {
    /// Prepares the drive. For a timing algorithm, this qualifies a way to time it.
    ///
    /// # Errors
    /// Returns an error if no way of timing works, or if the drive fails.
    pub fn start(algorithm: Algorithm, target: &'a mut dyn Target) -> Result<Self, ProbeError> {
        let drive = match algorithm.translates() {
            true => Ready::Translating(target),
            false => Ready::Timed(Box::new(Clock::start(target)?)),
        };
        Ok(Prober { algorithm, drive })
    }

    /// Finds the tracks that begin in a region, each to its end. Only [`Algorithm::Angle`] uses
    /// `verify`.
    ///
    /// # Errors
    /// Returns an error if the drive does not respond, or not as the algorithm requires; see
    /// [`ProbeError`].
    pub fn extract(
        &mut self,
        region: Region,
        verify: Verify,
        sink: &mut Sink<'_>,
    ) -> Result<Extraction, ProbeError> {
        if let Ready::Timed(clock) = &mut self.drive {
            clock.begin();
        }
        let mut found = match (&mut self.drive, self.algorithm) {
            (Ready::Translating(target), Algorithm::Walk) => {
                walk(*target, region, Search::Binary, sink)
            }
            (Ready::Translating(target), Algorithm::Jump) => jump(*target, region, sink),
            (Ready::Translating(target), Algorithm::Dixtrac) => dixtrac(*target, region, sink),
            (Ready::Translating(target), Algorithm::Tree) => tree(*target, region, sink),
            (Ready::Timed(clock), Algorithm::Scan) => scan::scan(clock, region, sink),
            (Ready::Timed(clock), Algorithm::Angle) => angle::search(clock, region, verify, sink),
            _ => unreachable!("{} has been made ready otherwise", self.algorithm.name()),
        }?;
        let target: &mut dyn Target = match &mut self.drive {
            Ready::Translating(target) => *target,
            Ready::Timed(clock) => &mut *clock.target,
        };
        match kept_elsewhere(target, region)? {
            Some(moved) => (found.moved, found.moved_known) = (moved, true),
            None => found.notes.push(MOVED_UNKNOWN.to_owned()),
        }
        Ok(found)
    }
}

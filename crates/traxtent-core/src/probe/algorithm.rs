//! The ways to find track boundaries, by name.

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

/// A way to find track boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Timed reads: binary search for the end of each track, verification of equal tracks, a
    /// hundred places in turn so that no cache helps (paper T, section 4.1.1).
    Scan,
    /// Timed reads: angles of sectors, predictions, and a search only where one fails.
    Angle,
    /// Translations without expertise: two or so a track (paper T, section 4.1.2).
    Walk,
    /// Translations of each expected boundary and the LBN before it; LBN by LBN where it fails
    /// (paper Q, section 2.3).
    Jump,
    /// Translations guided by the defect lists: DIXtrac's five steps (paper T, section 4.1.2).
    Dixtrac,
    /// Translations only where the pattern of zones, surfaces and serpentines can surprise.
    Tree,
}

impl Algorithm {
    /// All of them.
    pub const ALL: [Algorithm; 6] = [
        Algorithm::Scan,
        Algorithm::Angle,
        Algorithm::Walk,
        Algorithm::Jump,
        Algorithm::Dixtrac,
        Algorithm::Tree,
    ];

    /// Its name on the command line.
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

    /// The one of that name.
    pub fn by_name(name: &str) -> Option<Algorithm> {
        Algorithm::ALL.into_iter().find(|one| one.name() == name)
    }

    /// Whether it asks for translations; else it times reads.
    pub fn translates(self) -> bool {
        !matches!(self, Algorithm::Scan | Algorithm::Angle)
    }
}

/// How much of what timing predicts is tested by reads of its own.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Nothing beyond what the search itself needs.
    None,
    /// At least once inside every run of the size of a cylinder.
    #[default]
    Sample,
    /// Every boundary.
    Full,
}

impl Verify {
    /// All of them.
    pub const ALL: [Verify; 3] = [Verify::None, Verify::Sample, Verify::Full];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Verify::None => "none",
            Verify::Sample => "sample",
            Verify::Full => "full",
        }
    }
}

/// The part of a drive to probe. Half-open.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Region {
    /// The first LBN.
    pub first: Lbn,
    /// The LBN behind the last.
    pub end: Lbn,
    /// Whether `first` is known to begin a track, as LBN 0 does; else the search begins with the
    /// first track that begins in the region.
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

/// How a boundary is known.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Confirm {
    /// It follows from a pattern that held on both sides of it.
    Predicted,
    /// It lies in a run that a read or translation inside it has confirmed.
    Sampled,
    /// It has itself been tested on both sides.
    Tested,
}

impl Confirm {
    /// All of them, the least sure first.
    pub const ALL: [Confirm; 3] = [Confirm::Predicted, Confirm::Sampled, Confirm::Tested];

    /// Its name.
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
    /// How many LBNs.
    pub sectors: u32,
    /// How its end is known.
    pub confirm: Confirm,
}

/// Receives tracks in ascending order without gaps, and may end the search.
pub type Sink<'a> = dyn FnMut(Found) -> ControlFlow<()> + 'a;

/// What a search leaves behind besides its tracks.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Extraction {
    /// LBNs that could not be read or translated; the search went on around them.
    pub unreadable: Vec<Lbn>,
    /// LBNs found to be kept elsewhere than on their track.
    pub moved: Vec<Lbn>,
    /// Whether `moved` has all of them, by the drive's list of grown defects. Otherwise it has those
    /// that the search met, which are few.
    pub moved_known: bool,
    /// How many boundaries are predicted where tracks are irregular, and have not been tested: some
    /// may be wrong. Only [`Algorithm::Angle`] with [`Verify::Sample`] leaves any.
    pub doubtful: u64,
    /// What the reader should know, a line each.
    pub notes: Vec<String>,
}

/// The note where no list says which LBNs are kept elsewhere.
const MOVED_UNKNOWN: &str = "sectors kept elsewhere are not counted: the drive does not translate addresses or lists no defects";

/// Why a search ends early; what it found before has been handed over.
#[derive(Clone, Debug, PartialEq, thiserror::Error)]
#[non_exhaustive]
pub enum ProbeError {
    /// The drive.
    #[error(transparent)]
    Target(#[from] TargetError),
    /// The drive answers, but not as a rotating disk does.
    #[error("not a rotating disk: {0}")]
    NotRotating(String),
    /// The drive's answers fit no track.
    #[error("LBN {lbn}: {problem}")]
    Baffled {
        /// Where.
        lbn: Lbn,
        /// What does not fit.
        problem: String,
    },
    /// The sink ended it.
    #[error("stopped")]
    Stopped,
}

/// Finds the tracks of a region. `verify` matters to [`Algorithm::Angle`] only.
///
/// # Errors
/// Where the drive does not answer, or not as the algorithm needs; see [`ProbeError`].
pub fn extract(
    algorithm: Algorithm,
    target: &mut dyn Target,
    region: Region,
    verify: Verify,
    sink: &mut Sink<'_>,
) -> Result<Extraction, ProbeError> {
    Prober::start(algorithm, target)?.extract(region, verify, sink)
}

/// A drive to be searched region by region. Where an algorithm times reads, how that can be done is
/// found out once.
pub struct Prober<'a> {
    algorithm: Algorithm,
    drive: Ready<'a>,
}

/// A drive as an algorithm needs it.
enum Ready<'a> {
    Translating(&'a mut dyn Target),
    Timed(Box<Clock<'a>>),
}

impl<'a> Prober<'a> {
    /// Prepares the drive: qualifies a way to time it, where the algorithm times reads.
    ///
    /// # Errors
    /// Where no way of timing works, or the drive fails.
    pub fn start(algorithm: Algorithm, target: &'a mut dyn Target) -> Result<Self, ProbeError> {
        let drive = match algorithm.translates() {
            true => Ready::Translating(target),
            false => Ready::Timed(Box::new(Clock::start(target)?)),
        };
        Ok(Prober { algorithm, drive })
    }

    /// Finds the tracks that begin in a region, each whole. `verify` matters to
    /// [`Algorithm::Angle`] only.
    ///
    /// # Errors
    /// Where the drive does not answer, or not as the algorithm needs; see [`ProbeError`].
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

//! The origin of a track map: the drive, the algorithm, and how each track was confirmed.

use traxtent_units::{Lbn, Sectors};

/// A drive's description of itself. A text that the drive does not report is empty.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Identity {
    /// The manufacturer.
    pub vendor: String,
    /// The model.
    pub product: String,
    /// The serial number.
    pub serial: String,
    /// The number of LBNs.
    pub capacity: Sectors,
    /// Bytes per logical sector.
    pub logical_bytes: u32,
    /// Bytes per physical sector, as the drive reports it.
    pub physical_bytes: u32,
}

/// An algorithm that finds track boundaries.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Algorithm {
    /// Timed reads: a test whether each track is as long as the previous one, and a binary search
    /// for its end if not. Reads alternate between up to a hundred places of the drive, so that
    /// they do not hit its cache (paper T, section 4.1.1).
    Scan,
    /// Timed reads: sector angles, predictions, and a search only where a prediction fails.
    Angle,
    /// Translations without knowledge of zones, surfaces and spares: about two per track (paper T,
    /// section 4.1.2).
    Walk,
    /// Translations of each expected boundary and of the LBN before it; LBN by LBN where the
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
        Algorithm::ALL
            .into_iter()
            .find(|algorithm| algorithm.name() == name)
    }

    /// Returns whether the algorithm uses translations. Otherwise it uses timed reads.
    pub fn translates(self) -> bool {
        !matches!(self, Algorithm::Scan | Algorithm::Angle)
    }
}

/// The selection of predicted boundaries that [`Algorithm::Angle`] tests by separate reads. Other
/// algorithms ignore it.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Verify {
    /// Only boundaries that the search itself needs to test.
    None,
    /// At least one boundary in every run of tracks as long as a cylinder, and every boundary while
    /// tracks are irregular.
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
    /// Whether a track is known to begin at `first`, as at LBN 0. If not, the search starts at the
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

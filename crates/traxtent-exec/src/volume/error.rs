//! Why a volume on real members cannot be made, opened or used.

use std::io;
use std::path::PathBuf;

use traxtent_core::layout::raid::RaidError;
use traxtent_core::trackmap::TrackMapError;
use traxtent_core::units::Sectors;
use traxtent_core::volume::superblock::SuperblockError;
use traxtent_core::volume::{AssemblyError, VolumeError};

use super::JOURNAL_BYTES_MAX;
use crate::device::guard::Refusal;

/// Why a volume on real members cannot be made, opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeIoError {
    /// What the system says of a member.
    #[error("{}: cannot {what} it: {error}", path.display())]
    Device {
        /// Which.
        path: PathBuf,
        /// What was tried.
        what: &'static str,
        /// Its words.
        error: io::Error,
    },
    /// A device that has not returned what it was asked for as a member.
    #[error(
        "{}: {outstanding} earlier requests to it have not returned; try again when they have, or take another device",
        path.display()
    )]
    Outstanding {
        /// The device.
        path: PathBuf,
        /// The number of requests.
        outstanding: usize,
    },
    /// Something that must not be written to.
    #[error("{0}{hint}", hint = hint(.0))]
    Guarded(#[from] Refusal),
    /// A device given twice.
    #[error("{}: given twice", .0.display())]
    Twice(PathBuf),
    /// Members of different sectors.
    #[error("{}: its sectors have {bytes} bytes, those of the first {first}", path.display())]
    SectorSize {
        /// Which.
        path: PathBuf,
        /// Its sectors.
        bytes: u32,
        /// Those of the first.
        first: u32,
    },
    /// A member without room.
    #[error("{}: {sectors} are too few: {why} {needed}", path.display())]
    TooSmall {
        /// Which.
        path: PathBuf,
        /// What it has.
        sectors: Sectors,
        /// What needs how many.
        why: &'static str,
        /// How many that are.
        needed: Sectors,
    },
    /// A journal that recovery would read for too long.
    #[error(
        "a journal of {0} bytes: at most {JOURNAL_BYTES_MAX} (1G), which recovery reads in some ten seconds"
    )]
    JournalSize(u64),
    /// A chunk that has too many sectors.
    #[error(
        "a chunk of {bytes} bytes: at most {} sectors of {sector_bytes} bytes",
        u32::MAX
    )]
    ChunkSize {
        /// The chunk.
        bytes: u64,
        /// A sector.
        sector_bytes: u32,
    },
    /// Something is there already.
    #[error("{}: it holds {what}; it is left alone unless forced", path.display())]
    Holds {
        /// Which.
        path: PathBuf,
        /// What.
        what: String,
    },
    /// A track map that cannot be used.
    #[error("{}: its track map: {error}", path.display())]
    Map {
        /// Of which member.
        path: PathBuf,
        /// What is wrong.
        error: Box<TrackMapError>,
    },
    /// A track map of another drive, or a damaged one.
    #[error("the track map of member {member} {problem}")]
    MapMisfit {
        /// Of which.
        member: usize,
        /// Why.
        problem: &'static str,
    },
    /// An order that makes no sense of this volume, or not now.
    #[error("{0}")]
    Order(String),
    /// A thread that the system does not give.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// No superblock.
    #[error("{}: {error}", path.display())]
    Superblock {
        /// On which.
        path: PathBuf,
        /// What is there instead.
        error: SuperblockError,
    },
    /// Members that do not belong together.
    #[error("{0}")]
    Assembly(String),
    /// A layout that cannot be.
    #[error(transparent)]
    Raid(#[from] RaidError),
    /// What the volume says.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl VolumeIoError {
    /// An assembly that failed, with paths in place of numbers.
    pub(super) fn assembly(error: &AssemblyError, paths: &[PathBuf]) -> VolumeIoError {
        let path = |given: usize| paths[given].display();
        VolumeIoError::Assembly(match error {
            AssemblyError::Foreign {
                given,
                theirs,
                ours,
            } => {
                format!(
                    "{}: it belongs to volume {theirs}, {} to {ours}",
                    path(*given),
                    path(0)
                )
            }
            AssemblyError::Twice {
                given,
                first,
                member,
            } => {
                format!(
                    "{} and {}: both are member {member}",
                    path(*first),
                    path(*given)
                )
            }
            AssemblyError::Unusable { given, error } => format!("{}: {error}", path(*given)),
            AssemblyError::Stale {
                given,
                member,
                own,
                newest,
                dropped: true,
            } => format!(
                "{}: stale: it was member {member} up to generation {own}, and the volume went on to {newest} without it; leave it out, and `replace` and `rebuild` the member",
                path(*given)
            ),
            AssemblyError::Stale {
                given,
                member,
                own,
                newest,
                dropped: false,
            } => format!(
                "{}: stale: an old copy of member {member}, of generation {own}, and the volume has {newest}; leave it out, or name the current one",
                path(*given)
            ),
            AssemblyError::Undecided {
                given,
                member,
                own,
                other_given,
                other,
                newest,
            } => format!(
                "{}: perhaps stale: member {member} has generation {own} there, and member {other} ({}) has {newest} without a usable second superblock, which would tell; name only current members, with `assemble --force`",
                path(*given),
                path(*other_given)
            ),
            AssemblyError::Diverged {
                first,
                given,
                generation,
            } => format!(
                "{} and {}: used apart from each other up to generation {generation}; name only the members of one side, with `assemble --force`",
                path(*first),
                path(*given)
            ),
            other => other.to_string(),
        })
    }
}

/// What to do with a member that another process has.
fn hint(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Locked(_) => "; a volume that is served takes orders at its control socket",
        _ => "",
    }
}

//! The errors of volumes on real members.

use std::io;
use std::path::PathBuf;

use traxtent_layout::raid::RaidError;
use traxtent_map::TrackMapError;
use traxtent_volume::superblock::SuperblockError;
use traxtent_volume::{Assembly, AssemblyError, SuperblockPair, VolumeError, assemble};

use super::JOURNAL_BYTES_MAX;
use crate::control::ControlError;
use traxtent_io::device::guard::Refusal;

/// The reason why a volume on real members cannot be created, opened or used.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum VolumeIoError {
    /// The system refused an operation on a member.
    #[error("{}: cannot {what} it: {error}", path.display())]
    Device {
        /// The path.
        path: PathBuf,
        /// The operation.
        what: &'static str,
        /// The system's error.
        error: io::Error,
    },
    /// A control socket that cannot be created.
    #[error(transparent)]
    Control(#[from] ControlError),
    /// A device with outstanding operations from earlier use as a member.
    #[error(
        "{}: {outstanding} earlier requests to it have not returned; try again later, or use another device",
        path.display()
    )]
    Outstanding {
        /// The device.
        path: PathBuf,
        /// The number of operations.
        outstanding: usize,
    },
    /// A path that is in use or is not suitable.
    #[error("{0}{hint}", hint = hint(.0))]
    Guarded(#[from] Refusal),
    /// A device that was given twice, possibly under another name or as another loop device.
    #[error("{}: given twice, or shares its storage with another member", .0.display())]
    Twice(PathBuf),
    /// Members with different sector sizes.
    #[error("{}: sectors of {bytes} bytes do not match the first member's sectors of {first} bytes", path.display())]
    SectorSize {
        /// The path.
        path: PathBuf,
        /// The size of its sectors in bytes.
        bytes: u32,
        /// The sector size of the first member.
        first: u32,
    },
    /// A member that is too small.
    #[error("{}: {bytes} bytes are too few; {why} {needed}", path.display())]
    TooSmall {
        /// The path.
        path: PathBuf,
        /// The size of the member in bytes.
        bytes: u64,
        /// The reason for the required size.
        why: &'static str,
        /// The required size in bytes.
        needed: u64,
    },
    /// A journal that recovery would take too long to read.
    #[error(
        "a journal of {0} bytes: expected at most {JOURNAL_BYTES_MAX} (1G), which recovery reads in about ten seconds"
    )]
    JournalSize(u64),
    /// A chunk with too many sectors.
    #[error(
        "a chunk of {bytes} bytes: expected at most {} sectors of {sector_bytes} bytes",
        u32::MAX
    )]
    ChunkSize {
        /// The size of the chunk in bytes.
        bytes: u64,
        /// The size of a sector in bytes.
        sector_bytes: u32,
    },
    /// A device that already has content.
    #[error("{}: the device holds {what}; use --force to overwrite it", path.display())]
    Holds {
        /// The path.
        path: PathBuf,
        /// A description of its content.
        what: String,
    },
    /// A doubtful member whose device has other content.
    #[error(
        "{}: a superblock of member {member} is missing or damaged, and the device holds {what}; if the device has been reused, omit it, otherwise use --force",
        path.display()
    )]
    Reused {
        /// The path.
        path: PathBuf,
        /// The member.
        member: usize,
        /// A description of its content.
        what: String,
    },
    /// A member of a volume whose chunks are tracks, without a track map.
    #[error(
        "{}: no track map is given; give each member one (--map), or use chunks of a fixed size (--chunk)",
        .0.display()
    )]
    NoMap(PathBuf),
    /// A track map that cannot be used.
    #[error("{}: invalid track map: {error}", path.display())]
    Map {
        /// The path of the member.
        path: PathBuf,
        /// The problem.
        error: Box<TrackMapError>,
    },
    /// A track map that belongs to another drive, or that is damaged.
    #[error("the track map of member {member} {problem}")]
    MapMisfit {
        /// The member.
        member: usize,
        /// The problem.
        problem: &'static str,
    },
    /// An order that this volume cannot carry out in its current state.
    #[error("{0}")]
    Order(String),
    /// The system cannot start a thread.
    #[error("cannot start a thread: {0}")]
    Thread(io::Error),
    /// A device without a valid superblock.
    #[error("{}: {error}", path.display())]
    Superblock {
        /// The path.
        path: PathBuf,
        /// The problem.
        error: SuperblockError,
    },
    /// Members that cannot be assembled.
    #[error("{0}")]
    Assembly(String),
    /// An invalid layout.
    #[error(transparent)]
    Raid(#[from] RaidError),
    /// The volume reported an error.
    #[error(transparent)]
    Volume(#[from] VolumeError),
}

impl VolumeIoError {
    /// Describes why devices with these superblocks cannot be assembled. If one is stale, the
    /// advice to omit it is given only if the others can be assembled without it.
    pub(super) fn refused(
        error: &AssemblyError,
        found: &[SuperblockPair],
        paths: &[PathBuf],
    ) -> VolumeIoError {
        match (error, without_stale(found)) {
            (
                AssemblyError::Stale { given, .. },
                Err(missing @ AssemblyError::Missing { enough: false, .. }),
            ) => VolumeIoError::Assembly(format!(
                "{}: {}; its older data cannot be used; {missing}",
                paths[*given].display(),
                staleness(error)
            )),
            _ => VolumeIoError::assembly(error, paths),
        }
    }

    /// Describes a failed assembly with the devices' paths instead of their numbers.
    pub(super) fn assembly(error: &AssemblyError, paths: &[PathBuf]) -> VolumeIoError {
        let path = |given: usize| paths[given].display();
        VolumeIoError::Assembly(match error {
            AssemblyError::Foreign {
                given,
                theirs,
                ours,
            } => {
                format!(
                    "{}: belongs to volume {theirs}, but {} belongs to {ours}",
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
            AssemblyError::Stale { given, dropped, .. } => {
                let advice = if *dropped {
                    "omit it, then `replace` and `rebuild` the member; if this device is used for that, it is overwritten"
                } else {
                    "omit it, or name the current one"
                };
                format!("{}: {}; {advice}", path(*given), staleness(error))
            }
            AssemblyError::MaybeStale {
                given,
                member,
                own,
                other_given,
                other,
                newest,
            } => format!(
                "{}: possibly stale: member {member} has generation {own}, but member {other} ({}) has {newest} and no usable second superblock to confirm it; name only current members, with `assemble --force`",
                path(*given),
                path(*other_given)
            ),
            AssemblyError::Split {
                first,
                given,
                generations: [ours, theirs],
            } => format!(
                "{} and {}: split: each continued without the other (generations {ours} and {theirs}), and may have writes that the other lacks; name only the members of one side, with `assemble --force`; before you `replace` a member of the other side, copy the data that only that side has: it will be lost",
                path(*first),
                path(*given)
            ),
            other => other.to_string(),
        })
    }
}

/// Describes how a device is stale; empty for other errors.
fn staleness(error: &AssemblyError) -> String {
    match error {
        AssemblyError::Stale {
            member,
            own,
            newest,
            dropped: true,
            ..
        } => format!(
            "stale: it was member {member} up to generation {own}, and the volume continued to {newest} without it"
        ),
        AssemblyError::Stale {
            member,
            own,
            newest,
            dropped: false,
            ..
        } => format!(
            "stale: an old copy of member {member} with generation {own}; the volume has {newest}"
        ),
        _ => String::new(),
    }
}

/// Assembles the devices that are not stale.
fn without_stale(found: &[SuperblockPair]) -> Result<Assembly, AssemblyError> {
    let mut left = found.to_vec();
    loop {
        match assemble(&left, true) {
            Err(AssemblyError::Stale { given, .. }) => left.remove(given),
            other => return other,
        };
    }
}

/// Returns advice if another process has locked the device, or the user may not open it.
fn hint(refusal: &Refusal) -> &'static str {
    match refusal {
        Refusal::Locked(_) => {
            "; if the volume is being served, use its control socket, or stop the server first"
        }
        Refusal::System { error, .. } if error.kind() == io::ErrorKind::PermissionDenied => {
            "; use sudo, or run as a user with access to it"
        }
        Refusal::System { error, .. } if error.kind() == io::ErrorKind::ReadOnlyFilesystem => {
            "; `volume serve --read-only` and `volume scrub` do not write"
        }
        _ => "",
    }
}

#[cfg(test)]
mod tests {
    use traxtent_layout::raid::Level;

    use super::super::{VolumePlan, create};

    /// Returns the error of creating a volume on new files, which must fail.
    fn refused(level: Level, members: usize, chunk_bytes: Option<u64>) -> String {
        let folder = tempfile::tempdir().expect("there is a temporary directory");
        let member = |number: usize| {
            let path = folder.path().join(number.to_string());
            let file = std::fs::File::create(&path).expect("it can be written to");
            file.set_len(1 << 20).expect("files may be sparse");
            (path, None)
        };
        let plan = VolumePlan {
            level,
            chunk_bytes,
            granule_bytes: 4096,
            journal_bytes: 0,
            members: (0..members).map(member).collect(),
            force: false,
        };
        let made = create(&plan, || uuid::Uuid::from_u128(1), |_| None);
        made.expect_err("it cannot be created").to_string()
    }

    /// Does the error report the missing map, rather than content on the device?
    #[test]
    fn a_missing_map_is_reported() {
        let error = refused(Level::Raid0, 2, None);
        assert!(error.contains("/0: no track map is given; "), "{error}");
        assert!(!error.contains("--force"), "{error}");
    }

    /// Do the errors of too many and too few members state the number and its limits?
    #[test]
    fn wrong_numbers_of_members_are_reported() {
        assert_eq!(
            refused(Level::Raid0, 33, Some(65_536)),
            "raid-0 cannot have 33 members; it needs 1 to 32"
        );
        assert_eq!(
            refused(Level::Raid5, 2, Some(65_536)),
            "raid-5 cannot have 2 members; it needs 3 to 32"
        );
    }
}

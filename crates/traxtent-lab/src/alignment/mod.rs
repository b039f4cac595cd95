//! What a partition costs that begins amid a physical sector: file systems of the running kernel on emulated drives
//! of 4 KB physical and 512 B logical sectors (R. W. Smith, Linux on 4 KB sector disks).
//!
//! Six phases on a partition at sector 34 and on one at sector 40, each from mounting to unmounting; the ratio of
//! the times that the drive takes. A kernel's requests are recorded on the drive while its time passes fast
//! ([`Session`]), and then take their time on the virtual clock ([`Stream`]), so that neither the machine's load nor the
//! processor's speed is measured.
//!
//! Left out: JFS and ReiserFS, which few kernels have today; the host's own time; the paper's kernels, for which
//! the running one stands.

mod replay;
mod session;
mod tree;

use std::path::Path;

pub use replay::Stream;
pub use session::{FileSystem, Phase, Session, missing};
pub use tree::write_tarball;

use crate::bench::{Bench, LabError};

/// The first sector of the partition that is aligned, and of the one that is not.
pub const ALIGNED: u64 = 40;
/// See [`ALIGNED`].
pub const UNALIGNED: u64 = 34;

/// Seconds that a drive takes for the phases.
#[derive(Clone, Debug)]
pub struct Times {
    /// The file system.
    pub kind: FileSystem,
    /// On an aligned partition.
    pub aligned: Vec<f64>,
    /// On an unaligned one.
    pub unaligned: Vec<f64>,
}

impl Times {
    /// Unaligned over aligned, phase by phase.
    pub fn ratios(&self) -> Vec<f64> {
        let pairs = self.unaligned.iter().zip(&self.aligned);
        pairs
            .map(|(unaligned, aligned)| unaligned / aligned)
            .collect()
    }
}

/// Takes a file system through the phases twice, aligned and not, on the drive of a bench, with a tarball of so many
/// MiB. Recordings are kept in `folder` and taken from there.
///
/// # Errors
/// As of [`Session::streams`].
pub fn times(
    bench: &Bench,
    kind: FileSystem,
    mib: u64,
    traxtent: &Path,
    folder: &Path,
) -> Result<Times, LabError> {
    let seconds = |first_sector| {
        let session = Session {
            drive: bench.profile.name.clone(),
            kind,
            first_sector,
            mib,
            seed: bench.seed,
        };
        session.seconds(traxtent, folder, bench)
    };
    Ok(Times {
        kind,
        aligned: seconds(ALIGNED)?,
        unaligned: seconds(UNALIGNED)?,
    })
}

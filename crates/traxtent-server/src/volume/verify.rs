//! Verification that members' track maps still match their disks, by translation or timing.

use std::path::Path;

use rustix::fs::FileType;
use traxtent_map::TrackMap;
use traxtent_probe::{CheckSample, MovedBoundary, ProbeError, Target};
use traxtent_units::Rng;

use traxtent_io::device;

/// The size of the sample of a map. On a disk without address translation, testing it takes about
/// ten seconds if the disk supports VERIFY, and a minute or more if reads must replace the contents
/// of the cache.
const SAMPLE: CheckSample = CheckSample {
    translated: 200,
    runs: 4,
    tracks: 16,
};

/// FUSE_SUPER_MAGIC of linux/magic.h. It marks files that a program such as nbdfuse provides. These
/// can be served drives.
const FUSE: rustix::fs::FsWord = 0x6573_5546;

/// The result of comparing a map with its drive.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum MapVerdict {
    /// The sampled boundaries match the map.
    Holds {
        /// The number of boundaries tested.
        tested: u64,
        /// The method: translation or timing.
        by: &'static str,
    },
    /// A boundary does not match the map.
    Moved(MovedBoundary),
    /// The map could not be checked, for the given reason.
    Unknown(String),
}

/// Checks a sample of a map's boundaries on a device, or on a file that a program such as nbdfuse
/// provides. `progress` receives the number of boundaries checked so far and the total. Nothing is
/// written.
pub fn verify_map(
    path: &Path,
    map: &TrackMap,
    seed: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> MapVerdict {
    let is_file = rustix::fs::stat(path)
        .is_ok_and(|stat| FileType::from_raw_mode(stat.st_mode) == FileType::RegularFile);
    let is_of_a_program = || rustix::fs::statfs(path).is_ok_and(|fs| fs.f_type == FUSE);
    if is_file && !is_of_a_program() {
        return MapVerdict::Unknown("a file has no tracks to measure".to_owned());
    }
    match device::open(path) {
        Ok(mut target) => verify_on(&mut target, map, seed, progress),
        Err(error) => MapVerdict::Unknown(error.to_string()),
    }
}

/// Checks a sample of a map's boundaries on a target, and then switches the target's caching on.
pub fn verify_on(
    target: &mut dyn Target,
    map: &TrackMap,
    seed: u64,
    progress: &mut dyn FnMut(u64, u64),
) -> MapVerdict {
    let capacity = target.identity().capacity.0;
    if map.end().0 > capacity {
        return MapVerdict::Moved(MovedBoundary {
            lbn: map.end(),
            says: format!("the drive ends before LBN {capacity}"),
        });
    }
    let checked = traxtent_probe::check_map(target, map, SAMPLE, &mut Rng::new(seed), progress);
    // An error does not affect the verdict: the drive does not support the setting, or is gone.
    let _ = target.switch_caching(true);
    match checked {
        Ok(checked) => match checked.moved {
            Some(moved) => MapVerdict::Moved(moved),
            None => MapVerdict::Holds {
                tested: checked.tested,
                by: checked.by,
            },
        },
        Err(ProbeError::NotRotating(_)) => {
            MapVerdict::Unknown("its timing is not that of a rotating disk".to_owned())
        }
        Err(error) => MapVerdict::Unknown(error.to_string()),
    }
}

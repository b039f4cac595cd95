//! Inspection of a volume that is not served: its status, from the superblocks of its devices.
//!
//! Stale and unusable devices are reported rather than refused.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_io::device::guard::{Access, Refusal};
use traxtent_volume::{AssemblyError, SuperblockPair, assemble, contradictions};

use super::error::VolumeIoError;
use super::files::{Device, MEMBER_TIMEOUT};
use super::find::{in_place, laid_out, open_once, superblocks_of};
use super::status::{StaleMember, UnusableDevice, VolumeStatus};

/// Returns the status that the devices' superblocks describe, for inspection only. It includes
/// missing and stale members, and unusable devices.
///
/// # Errors
/// Returns an error if a device is locked by another process or given twice, if no device is
/// usable, if the usable devices do not form one volume, or if too few members are current. The
/// last two errors state what the superblocks of each device say. If the devices contradict each
/// other, the error has a line for each contradiction.
pub fn inspect(paths: &[PathBuf]) -> Result<VolumeStatus, VolumeIoError> {
    let Inspected {
        mut paths,
        mut devices,
        mut pairs,
        unusable,
    } = Inspected::read(paths)?;
    let known: Vec<String> = paths.iter().zip(&pairs).map(known).collect();
    let contradictions = contradictions(&pairs);
    // Stale members alone leave one volume.
    let is_stale = |error: &AssemblyError| matches!(error, AssemblyError::Stale { .. });
    if !contradictions.iter().all(is_stale) {
        let describe = |error| VolumeIoError::assembly(error, &paths).to_string();
        let mut lines: Vec<String> = contradictions.iter().map(describe).collect();
        lines.push("the superblocks of the members:".to_owned());
        lines.extend(known.iter().map(|known| format!("  {known}")));
        let unusable = unusable.iter();
        lines.extend(unusable.map(|one| format!("  {}: {}", one.path.display(), one.problem)));
        return Err(VolumeIoError::Assembly(lines.join("\n")));
    }
    let mut stale = Vec::new();
    let assembly = loop {
        match assemble(&pairs, true) {
            Ok(assembly) => break assembly,
            Err(AssemblyError::Stale {
                given,
                member,
                own,
                newest,
                dropped,
            }) => {
                stale.push(StaleMember {
                    path: paths.remove(given),
                    member,
                    generation: own,
                    volume_generation: newest,
                    dropped,
                });
                pairs.remove(given);
                devices.remove(given);
            }
            Err(error @ AssemblyError::Missing { enough: false, .. }) => {
                let old = stale.iter().map(|one| {
                    format!(
                        "{} is stale: the volume has generation {}, so its data is too old to be used",
                        one.path.display(),
                        one.volume_generation
                    )
                });
                let unusable = unusable.iter();
                let problems =
                    unusable.map(|one| format!("{}: {}", one.path.display(), one.problem));
                let lines: Vec<String> = known.into_iter().chain(old).chain(problems).collect();
                return Err(VolumeIoError::Assembly(format!(
                    "{error}:\n  {}",
                    lines.join("\n  ")
                )));
            }
            Err(error) => return Err(VolumeIoError::assembly(&error, &paths)),
        }
    };
    let devices = in_place(&assembly, devices);
    let (array, devices) = laid_out(&assembly.superblock, devices)?;
    let mut status = VolumeStatus::known(&assembly.superblock, &array, &devices);
    // A member that was not given may be whole, so it has the state that the others record.
    for (member, state) in &assembly.missing {
        status.members[*member].set_state(*state);
    }
    for (member, given) in assembly.given.iter().enumerate() {
        if let Some(given) = given {
            status.members[member].set_superblocks(&pairs[*given]);
        }
    }
    status.stale = stale;
    status.unusable = unusable;
    Ok(status)
}

/// Describes the volume of a device from its superblocks alone.
fn known((path, pair): (&PathBuf, &SuperblockPair)) -> String {
    let path = path.display();
    let Some(own) = pair.newest() else {
        return format!("{path}: no superblock is usable");
    };
    format!(
        "{path} is member {} of {} of volume {}, {}, {} bytes, generation {}, {}",
        own.index,
        own.members.len(),
        own.volume,
        own.level.name(),
        own.capacity.0 * u64::from(own.sector_bytes),
        own.generation,
        if own.clean {
            "stopped cleanly"
        } else {
            "not stopped cleanly"
        }
    )
}

/// The devices of an inspected volume.
#[derive(Default)]
struct Inspected {
    paths: Vec<PathBuf>,
    devices: Vec<Option<Arc<Device>>>,
    pairs: Vec<SuperblockPair>,
    unusable: Vec<UnusableDevice>,
}

impl Inspected {
    /// Reads the superblocks of devices. Unusable devices are only reported if others are usable.
    fn read(paths: &[PathBuf]) -> Result<Inspected, VolumeIoError> {
        let mut found = Inspected::default();
        let mut opened = Vec::new();
        let mut first_error = None;
        let mut report = |unusable: &mut Vec<UnusableDevice>, path: &Path, error: VolumeIoError| {
            let text = error.to_string();
            let prefix = format!("{}: ", path.display());
            unusable.push(UnusableDevice {
                path: path.to_owned(),
                problem: text.strip_prefix(&prefix).unwrap_or(&text).to_owned(),
            });
            first_error.get_or_insert(error);
        };
        let mut candidates = Vec::new();
        for path in paths {
            match open_once(path, &opened, Access::Read, MEMBER_TIMEOUT) {
                Ok(device) => {
                    opened.push(device);
                    candidates.push(path);
                }
                // The volume is being served, or the arguments are wrong.
                Err(
                    error @ (VolumeIoError::Guarded(Refusal::Locked(_)) | VolumeIoError::Twice(_)),
                ) => {
                    return Err(error);
                }
                Err(error) => report(&mut found.unusable, path, error),
            }
        }
        let (devices, pairs) = superblocks_of(opened, MEMBER_TIMEOUT);
        let devices = devices.take_all().into_iter();
        for ((path, device), pair) in candidates.into_iter().zip(devices).zip(pairs) {
            match pair.usable() {
                Ok(_) => {
                    found.paths.push(path.clone());
                    found.devices.push(device);
                    found.pairs.push(pair);
                }
                Err(error) => {
                    let at = path.clone();
                    let error = VolumeIoError::Superblock { path: at, error };
                    report(&mut found.unusable, path, error);
                }
            }
        }
        match first_error {
            Some(error) if found.pairs.is_empty() => Err(error),
            _ => Ok(found),
        }
    }
}

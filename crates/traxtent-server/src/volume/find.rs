//! Finding the volume to which devices belong, and assembling its members.

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::Duration;

use futures_lite::future::block_on;
use traxtent_io::device::guard::Access;
use traxtent_layout::raid::{Array, ArrayShape, Member};
use traxtent_map::{MapBuilder, MapFile, TrackMap};
use traxtent_probe::{Confirm, Found as FoundTrack};
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::superblock::{MemberEntry, MemberState, Superblock, superblock_sectors};
use traxtent_volume::{
    Assembly, AssemblyError, MemberIo, Op, SuperblockPair, Volume, VolumeError, WriteHole,
    assemble, read_superblocks,
};

use super::error::VolumeIoError;
use super::files::{Device, Devices, MEMBER_TIMEOUT, storage_at};
use super::maintenance::{MaintenanceTask, check_state};
use super::status::VolumeStatus;
use super::{DeviceVolume, Recognizer, Substitute, substitute, within};

/// A volume that has been found but not opened. Nothing has been written to its members.
#[derive(Debug)]
pub struct Found {
    /// The superblock that the members agree on.
    pub superblock: Superblock,
    array: Array,
    devices: Devices,
}

/// Finds the volume to which devices belong. With `force`, members can be missing, even if the
/// parity from which their data is computed was never synced.
///
/// # Errors
/// Returns an error if a device cannot be used, if the devices do not form a volume, or if a member
/// that has not failed is doubtful.
pub fn find(paths: &[PathBuf], force: bool) -> Result<Found, VolumeIoError> {
    find_within(paths, force, MEMBER_TIMEOUT)
}

/// Finds the volume as [`find`] does, and accepts doubtful members. This is for inspection, and for
/// callers that know that the members' data is good. A volume with doubtful members that needs
/// recovery is refused unless `recover` is set, because recovery trusts all members.
///
/// # Errors
/// Returns the same errors as [`find`], but the one for doubtful members only in that case.
pub fn find_with_suspects(
    paths: &[PathBuf],
    force: bool,
    recover: bool,
) -> Result<Found, VolumeIoError> {
    let found = assembled(paths, force, MEMBER_TIMEOUT)?;
    if !recover && !found.superblock.clean {
        found.check_doubts()?;
    }
    Ok(found)
}

/// Finds the volume as [`find`] does, but leaves one member out permanently.
///
/// # Errors
/// Returns the same errors as [`find`].
pub fn find_without(paths: &[PathBuf], member: usize) -> Result<Found, VolumeIoError> {
    let path = {
        let found = assembled(paths, false, MEMBER_TIMEOUT)?;
        let device = found.devices.device(member);
        device.map(|device| device.path().to_owned())
    };
    let others = paths.iter().filter(|other| Some(*other) != path.as_ref());
    let others: Vec<PathBuf> = others.cloned().collect();
    find(&others, true)
}

/// Finds the volume to which devices belong, with another member time-out.
///
/// # Errors
/// Returns the same errors as [`find`].
pub fn find_within(
    paths: &[PathBuf],
    force: bool,
    timeout: Duration,
) -> Result<Found, VolumeIoError> {
    let found = assembled(paths, force, timeout)?;
    found.check_doubts()?;
    Ok(found)
}

/// Assembles members, including doubtful ones.
fn assembled(paths: &[PathBuf], force: bool, timeout: Duration) -> Result<Found, VolumeIoError> {
    let (devices, pairs) = open_devices(paths, Access::Write, timeout)?;
    let refused = |error: AssemblyError| VolumeIoError::refused(&error, &pairs, paths);
    let (mut assembly, missing) = match assemble(&pairs, force) {
        Ok(assembly) => (assembly, None),
        // Other problems of the assembly are reported first.
        Err(missing @ AssemblyError::Missing { enough: true, .. }) => {
            (assemble(&pairs, true).map_err(refused)?, Some(missing))
        }
        Err(error) => return Err(refused(error)),
    };
    let devices = in_place(&assembly, devices.take_all());
    devices.set_timeout(timeout);
    let (array, devices) = laid_out(&assembly.superblock, devices)?;
    assembly
        .check_synced(array.stripes(), force)
        .map_err(refused)?;
    if let Some(missing) = missing {
        return Err(refused(missing));
    }
    Ok(Found {
        superblock: assembly.superblock,
        array,
        devices,
    })
}

/// Finds the volume as [`find_within`] does, for reading only. Members can be missing if the others
/// hold all data, and can be doubtful ([`Found::check_doubts`]).
///
/// # Errors
/// Returns the errors of [`find`], except the one for doubtful members.
pub fn find_to_read(paths: &[PathBuf], timeout: Duration) -> Result<Found, VolumeIoError> {
    let (devices, pairs) = open_devices(paths, Access::Read, timeout)?;
    let refused = |error: AssemblyError| VolumeIoError::refused(&error, &pairs, paths);
    let mut assembly = assemble(&pairs, true).map_err(refused)?;
    let devices = in_place(&assembly, devices.take_all());
    devices.set_timeout(timeout);
    let (array, devices) = laid_out(&assembly.superblock, devices)?;
    // Parity that was never computed cannot replace a member.
    assembly
        .check_synced(array.stripes(), false)
        .map_err(refused)?;
    Ok(Found {
        superblock: assembly.superblock,
        array,
        devices,
    })
}

/// Returns the devices in the order of the members.
pub(super) fn in_place(assembly: &Assembly, mut devices: Vec<Option<Arc<Device>>>) -> Devices {
    let given = assembly.given.iter();
    let device = |given: &Option<usize>| given.and_then(|given| devices[given].take());
    Devices::of(given.map(device).collect())
}

/// Returns the array that the superblock and the members' maps describe.
pub(super) fn laid_out(
    superblock: &Superblock,
    devices: Devices,
) -> Result<(Array, Devices), VolumeIoError> {
    let maps = read_maps(superblock, &devices)?;
    let array = array_of(superblock, &maps)?;
    if array.capacity() != superblock.capacity {
        return Err(VolumeIoError::MapMisfit {
            member: 0,
            problem: "does not match the capacity in the superblock",
        });
    }
    Ok((array, devices))
}

impl Found {
    /// Returns the members that are doubtful and have not failed.
    fn doubtful(&self) -> impl Iterator<Item = usize> {
        let is_doubtful =
            |member: &MemberEntry| member.doubtful && member.state != MemberState::Failed;
        let members = self.superblock.members.iter().enumerate();
        members.filter_map(move |(member, entry)| is_doubtful(entry).then_some(member))
    }

    /// Returns an error if a member that has not failed is doubtful. Its data may have been
    /// lost along with its superblock, and writes to the volume would rely on it.
    ///
    /// # Errors
    /// Returns [`VolumeError::Doubtful`] for the first such member.
    pub fn check_doubts(&self) -> Result<(), VolumeIoError> {
        match self.doubtful().next() {
            Some(member) => Err(VolumeError::Doubtful { member }.into()),
            None => Ok(()),
        }
    }

    /// Refuses a volume with a doubtful member whose device has been reused: `holds` recognizes
    /// other content, which writing the superblocks could destroy.
    ///
    /// # Errors
    /// Returns [`VolumeIoError::Reused`] for the first such member, or an error if its device does
    /// not respond.
    pub fn check_reuse(&self, holds: Recognizer) -> Result<(), VolumeIoError> {
        for member in self.doubtful() {
            let Some(device) = self.devices.device(member) else {
                continue;
            };
            let path = device.path().to_owned();
            if let Some(what) = within(&path, self.devices.timeout(), holds)? {
                return Err(VolumeIoError::Reused { path, member, what });
            }
        }
        Ok(())
    }

    /// Checks, before the volume is opened, that it permits a task.
    ///
    /// # Errors
    /// Returns [`VolumeIoError::Order`] with the reason if it does not.
    pub fn check_task(&self, task: MaintenanceTask) -> Result<(), VolumeIoError> {
        check_state(&self.superblock, &self.array, task)
    }

    /// Checks, before the volume is opened, that a member can be marked as failed.
    ///
    /// # Errors
    /// Returns the errors of [`Superblock::check_fail`].
    pub fn check_fail(&self, member: usize) -> Result<(), VolumeIoError> {
        Ok(self.superblock.check_fail(member, self.array.stripes())?)
    }

    /// Returns the status that the members' superblocks describe.
    pub fn status(&self) -> VolumeStatus {
        VolumeStatus::known(&self.superblock, &self.array, &self.devices)
    }

    /// Opens the volume, and recovers it if it was not stopped cleanly.
    ///
    /// # Errors
    /// Returns the errors of [`Volume::open`].
    pub fn open(self) -> Result<DeviceVolume, VolumeIoError> {
        self.open_on(|devices| devices, WriteHole::Closed)
    }

    /// Opens the volume without writing to its members.
    ///
    /// # Errors
    /// Returns [`VolumeError::NeedsRecovery`] if the volume was not stopped cleanly.
    pub fn open_to_read(self) -> Result<DeviceVolume, VolumeIoError> {
        Ok(Volume::open_to_read(
            self.array,
            self.devices,
            self.superblock,
        )?)
    }

    /// Opens the volume on a layer that wraps the devices, with the write hole closed or open. This
    /// is for measurements.
    ///
    /// # Errors
    /// Returns the errors of [`Volume::open`].
    pub fn open_on<M: MemberIo>(
        self,
        members: impl FnOnce(Devices) -> M,
        hole: WriteHole,
    ) -> Result<Volume<M>, VolumeIoError> {
        let members = members(self.devices);
        Ok(block_on(Volume::open(
            self.array,
            members,
            self.superblock,
            hole,
        ))?)
    }

    /// Returns the paths and the track maps of the present members that have a track map.
    pub fn maps(&self) -> Vec<(PathBuf, Arc<TrackMap>)> {
        let members = self.array.members().iter().enumerate();
        members
            .filter(|(member, _)| self.superblock.members[*member].map_bytes > 0)
            .filter_map(|(member, entry)| {
                let device = self.devices.device(member)?;
                Some((device.path().to_owned(), Arc::clone(&entry.map)))
            })
            .collect()
    }

    /// Returns the boundaries of the volume's chunks as a track map.
    pub fn chunk_map(&self) -> TrackMap {
        self.array.chunk_map()
    }

    /// Checks without writing whether a device can replace a failed member.
    ///
    /// # Errors
    /// Returns an error if the member has not failed, or if the device cannot replace it.
    pub fn check_substitute(
        &self,
        member: usize,
        path: &Path,
        force: bool,
        holds: Recognizer,
    ) -> Result<Substitute, VolumeIoError> {
        substitute(&self.superblock, &self.devices, member, path, force, holds)
    }
}

/// Opens the members' devices, and returns them in the order of their paths, with the superblocks
/// of each.
pub(super) fn open_devices(
    paths: &[PathBuf],
    access: Access,
    timeout: Duration,
) -> Result<(Devices, Vec<SuperblockPair>), VolumeIoError> {
    let mut devices = Vec::new();
    for path in paths {
        let device = open_once(path, &devices, access, timeout)?;
        devices.push(device);
    }
    let (devices, pairs) = superblocks_of(devices, timeout);
    for (path, pair) in std::iter::zip(paths, &pairs) {
        pair.usable().map_err(|error| VolumeIoError::Superblock {
            path: path.clone(),
            error,
        })?;
    }
    Ok((devices, pairs))
}

pub(super) fn superblocks_of(
    devices: Vec<Device>,
    timeout: Duration,
) -> (Devices, Vec<SuperblockPair>) {
    let sizes: Vec<_> = devices
        .iter()
        .map(|device| (device.sectors(), device.sector_bytes()))
        .collect();
    let devices = Devices::new(devices.into_iter().map(Some).collect());
    devices.set_timeout(timeout);
    let pairs = block_on(read_superblocks(&devices, &sizes));
    (devices, pairs)
}

pub(super) fn open_once(
    path: &Path,
    others: &[Device],
    access: Access,
    timeout: Duration,
) -> Result<Device, VolumeIoError> {
    // A second lock of the same file would fail as if another process held it.
    let storage = storage_at(path, timeout)?;
    if others.iter().any(|other| other.is_on(&storage)) {
        Err(VolumeIoError::Twice(path.to_owned()))
    } else {
        Device::open_within(path, access, timeout)
    }
}

/// Returns the layout that the superblock and the maps describe.
pub(super) fn array_of(superblock: &Superblock, maps: &[Vec<u8>]) -> Result<Array, VolumeIoError> {
    let mut members = Vec::new();
    for (member, (entry, text)) in superblock.members.iter().zip(maps).enumerate() {
        let misfit = |problem| VolumeIoError::MapMisfit { member, problem };
        let map = if text.is_empty() {
            equal_tracks(entry.sectors).ok_or_else(|| misfit("would have no tracks"))?
        } else {
            MapFile::read(&text[..])
                .map_err(|_| misfit("is damaged"))?
                .tracks
        };
        if map.first() > entry.data.start || map.end() > Lbn(entry.sectors.0) {
            return Err(misfit("does not fit: its LBNs differ from the member's"));
        }
        members.push(Member {
            data: entry.data.start..entry.data.end.min(map.end()),
            map: Arc::new(map),
        });
    }
    let shape = ArrayShape {
        level: superblock.level,
        chunks: superblock.chunks,
        granule: superblock.granule,
        spares: superblock.spares,
    };
    Ok(Array::new(shape, members)?)
}

/// Returns a map of equal tracks, for a member whose real tracks do not matter.
fn equal_tracks(sectors: Sectors) -> Option<TrackMap> {
    const TRACK_SECTORS: u64 = 1 << 20;
    let mut map = MapBuilder::default();
    for first in (0..sectors.0).step_by(TRACK_SECTORS as usize) {
        let track = FoundTrack {
            first_lbn: Lbn(first),
            sectors: TRACK_SECTORS.min(sectors.0 - first) as u32,
            confirm: Confirm::Predicted,
        };
        map.push(track).ok()?;
    }
    map.finish().map(|(map, _)| map)
}

/// Returns the maps of all members, each from its first undamaged copy on any member.
pub(super) fn read_maps(
    superblock: &Superblock,
    devices: &Devices,
) -> Result<Vec<Vec<u8>>, VolumeIoError> {
    let bytes = superblock.maps.0 as usize * superblock.sector_bytes as usize;
    let front = Lbn(superblock_sectors(superblock.sector_bytes).0);
    let mut buffer = vec![0; bytes];
    let mut maps: Vec<Option<Vec<u8>>> = vec![None; superblock.members.len()];
    for member in 0..superblock.members.len() {
        if devices.device(member).is_none() {
            continue;
        }
        for at in [front, superblock.second(member) - superblock.maps] {
            let mut ops = [Op::read(member, at, &mut buffer)];
            block_on(devices.run(&mut ops));
            if ops[0].outcome.is_err() {
                continue;
            }
            let mut rest = &buffer[..];
            for (entry, known) in superblock.members.iter().zip(&mut maps) {
                let (map, later) = rest.split_at(entry.map_bytes as usize);
                rest = later;
                if known.is_none() && crc32fast::hash(map) == entry.map_crc {
                    *known = Some(map.to_vec());
                }
            }
            if maps.iter().all(Option::is_some) {
                return Ok(maps.into_iter().flatten().collect());
            }
        }
    }
    Err(VolumeIoError::MapMisfit {
        member: maps.iter().position(Option::is_none).unwrap_or(0),
        problem: "is damaged on every member",
    })
}

//! Volumes on files and block devices: creation, assembly and serving.
//!
//! [`traxtent_volume`] makes all decisions. This module adds the members' files and devices, and
//! the threads that wait for them. A request is carried out on the thread that issues it; io_uring
//! accesses the members in parallel. [`VolumeServer`] also accepts orders ([`VolumeOrder`]) from a
//! control socket.

mod buffers;
mod error;
mod files;
mod find;
mod inspect;
mod maintenance;
mod server;
mod space;
mod status;
mod verify;

use futures_lite::future::block_on;
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use traxtent_layout::raid::{Array, ChunkRule, Level};
use traxtent_map::{MapFile, TrackMapError};
use traxtent_units::{Lbn, Sectors};
use traxtent_volume::superblock::{
    MemberState, SUPERBLOCK_BYTES, Superblock, SuperblockError, maps_sectors, superblock_sectors,
};
use traxtent_volume::{MemberIo, NewVolume, Op, SuperblockPair, Volume, VolumeError};

use crate::fuse::is_served_here;
use traxtent_io::device::guard::{Access, content_on};

pub use error::VolumeIoError;
pub use files::{AlignedBuffer, Device, Devices, MEMBER_TIMEOUT, MEMBER_TIMEOUTS};
use files::{no_answer, storage_at, with_timeout};
pub use find::{Found, find, find_to_read, find_with_suspects, find_within, find_without};
use find::{array_of, open_devices, open_once, read_maps, superblocks_of};
pub use inspect::inspect;
pub use maintenance::{
    DifferenceReport, MaintenanceKind, MaintenanceProgress, MaintenanceTask, RATE_MIN, Repairs,
    maintain,
};
pub use server::{LINGERING_MESSAGE, ORDER_LOG, SYNC_RATE, VolumeOrder, VolumeServer};
pub use status::{LostRange, MemberStatus, StaleMember, UnusableDevice, VolumeStatus};
pub use verify::{MapVerdict, verify_map, verify_on};

/// The approximate number of bytes of a member that are rebuilt at once.
const REBUILD_BYTES: u64 = 1 << 20;

/// The time for which the threads rebuild before the caller checks whether to continue. At the end
/// of each period, members are idle until all threads have finished.
const REBUILD_PERIOD: Duration = Duration::from_secs(1);

/// The maximum journal size of a new volume. Recovery reads the journals of all members in
/// parallel, in about ten seconds at 100 MB/s.
pub const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// The number of rebuild threads. All do the same work; at any time about two of them read from the
/// other members, one computes, and one writes to the member.
const REBUILD_THREADS: usize = 4;

/// An open volume on devices.
pub type DeviceVolume = Volume<Devices>;

/// A function that returns a description of the content of a device, if it has any. Superblocks and
/// data of this project's volumes do not count, but other content beside them does.
pub type Recognizer = fn(&Path) -> Option<String>;

/// The parameters of a new volume.
#[derive(Clone, Debug)]
pub struct VolumePlan {
    /// The RAID level.
    pub level: Level,
    /// The size of a chunk in bytes; `None` means that chunks are tracks.
    pub chunk_bytes: Option<u64>,
    /// Chunk sizes are multiples of this number of bytes.
    pub granule_bytes: u32,
    /// The size of the journal on each member in bytes.
    pub journal_bytes: u64,
    /// The members, with their track maps if chunks are tracks.
    pub members: Vec<(PathBuf, Option<PathBuf>)>,
    /// Whether existing content of the members may be overwritten.
    pub force: bool,
}

/// Creates a volume, and returns its status. Nothing is written before all checks have passed.
/// `holds` recognizes existing content on a device.
///
/// # Errors
/// Returns an error if a member or the plan is unsuitable, or if writing fails.
pub fn create(
    plan: &VolumePlan,
    mut ids: impl FnMut() -> uuid::Uuid,
    holds: Recognizer,
) -> Result<VolumeStatus, VolumeIoError> {
    if plan.journal_bytes > JOURNAL_BYTES_MAX {
        return Err(VolumeIoError::JournalSize(plan.journal_bytes));
    }
    let (devices, maps) = open_members(plan)?;
    let format = format_of(plan, &devices, &maps, &mut ids)?;
    check_room(&format, &devices, &maps)?;
    plan.level.check_members(devices.len())?;
    let superblock = format.superblock();
    let mut superblock = superblock.expect("the number and the sizes of the members are checked");
    let array = array_of(&superblock, &maps)?;
    superblock.capacity = array.capacity();
    check_journal(&array, &superblock)?;
    let are_zero = std::iter::zip(&devices, &superblock.members)
        .all(|(device, member)| device.is_zero(member.data.clone(), MEMBER_TIMEOUT));
    if are_zero || plan.level == Level::Raid0 {
        // The parity and the replicas of zeros are zeros.
        superblock.synced = array.stripes();
    }
    let paths: Vec<PathBuf> = devices
        .iter()
        .map(|device| device.path().to_owned())
        .collect();
    let devices = Devices::new(devices.into_iter().map(Some).collect());
    if !plan.force {
        for path in &paths {
            if let Some(what) = content_of(path, holds, MEMBER_TIMEOUT)? {
                let path = path.clone();
                return Err(VolumeIoError::Holds { path, what });
            }
        }
    }
    block_on(format.write(&superblock, &devices)).map_err(|error| unwritten(error, &devices))?;
    let mut status = VolumeStatus::known(&superblock, &array, &devices);
    status.count_unused(&array);
    Ok(status)
}

/// Opens the devices of a new volume, and reads their track maps as text.
fn open_members(plan: &VolumePlan) -> Result<(Vec<Device>, Vec<Vec<u8>>), VolumeIoError> {
    let mut devices = Vec::new();
    let mut maps = Vec::new();
    for (path, map) in &plan.members {
        let device = open_once(path, &devices, Access::Write, MEMBER_TIMEOUT)?;
        let first: &Device = devices.first().unwrap_or(&device);
        if device.sector_bytes() != first.sector_bytes() {
            return Err(VolumeIoError::SectorSize {
                path: path.clone(),
                bytes: device.sector_bytes(),
                first: first.sector_bytes(),
            });
        }
        maps.push(map_text(path, map.as_deref(), plan.chunk_bytes.is_none())?);
        devices.push(device);
    }
    Ok((devices, maps))
}

/// Converts a plan to a [`NewVolume`]: assigns UUIDs, and converts bytes to sectors of the devices.
fn format_of(
    plan: &VolumePlan,
    devices: &[Device],
    maps: &[Vec<u8>],
    ids: &mut impl FnMut() -> uuid::Uuid,
) -> Result<NewVolume, VolumeIoError> {
    let sector_bytes = devices.first().map_or(512, Device::sector_bytes);
    let chunks = match plan.chunk_bytes {
        Some(bytes) => {
            let sectors = bytes / u64::from(sector_bytes);
            if u32::try_from(sectors).is_err() {
                return Err(VolumeIoError::ChunkSize {
                    bytes,
                    sector_bytes,
                });
            }
            ChunkRule::Fixed(Sectors(sectors))
        }
        None => ChunkRule::Tracks,
    };
    Ok(NewVolume {
        volume: ids(),
        level: plan.level,
        chunks,
        granule: (plan.granule_bytes / sector_bytes).max(1),
        spares: 0,
        sector_bytes,
        journal: Sectors(match plan.level {
            Level::Raid0 => 0,
            Level::Raid1 | Level::Raid4 | Level::Raid5 => {
                plan.journal_bytes / u64::from(sector_bytes)
            }
        }),
        members: devices
            .iter()
            .zip(maps)
            .map(|(device, map)| (ids(), device.sectors(), map.clone()))
            .collect(),
    })
}

/// Checks that every device has room for superblocks, maps, journal and a sector of data.
fn check_room(
    format: &NewVolume,
    devices: &[Device],
    maps: &[Vec<u8>],
) -> Result<(), VolumeIoError> {
    let map_bytes = maps.iter().map(|map| map.len() as u64).sum();
    let maps_sectors = maps_sectors(map_bytes, format.sector_bytes).0;
    let around = superblock_sectors(format.sector_bytes).0 + maps_sectors;
    let needed = 2 * around + format.journal.0 + 1;
    match devices.iter().find(|device| device.sectors().0 < needed) {
        None => Ok(()),
        Some(device) => Err(VolumeIoError::TooSmall {
            path: device.path().to_owned(),
            bytes: device.sectors().0 * u64::from(format.sector_bytes),
            why: "superblocks, maps, the journal (--journal) and data need at least",
            needed: needed * u64::from(format.sector_bytes),
        }),
    }
}

/// A device that can replace a failed member.
#[derive(Debug)]
pub struct Substitute {
    member: usize,
    device: Arc<Device>,
}

fn substitute(
    superblock: &Superblock,
    devices: &Devices,
    member: usize,
    path: &Path,
    force: bool,
    holds: Recognizer,
) -> Result<Substitute, VolumeIoError> {
    superblock.check_replace(member)?;
    let entry = &superblock.members[member];
    // The failed device is released, because the new device can be the same.
    devices.set_device(member, None);
    let returned = |outstanding| match outstanding {
        0 => Ok(()),
        outstanding => Err(VolumeIoError::Outstanding {
            path: path.to_owned(),
            outstanding,
        }),
    };
    // The path is compared first, because a device that does not respond cannot be identified.
    returned(devices.outstanding(|device| device.path() == path))?;
    let storage = storage_at(path, devices.timeout())?;
    if is_served_here(&storage) {
        return Err(VolumeIoError::Order(format!(
            "{}: is served by this process, so it cannot be a member of its volume",
            path.display()
        )));
    }
    returned(devices.outstanding(|device| device.is_on(&storage)))?;
    let others = 0..superblock.members.len();
    let mut others = others.filter_map(|other| devices.device(other));
    if others.any(|other| other.is_on(&storage)) {
        return Err(VolumeIoError::Twice(path.to_owned()));
    }
    let device = Device::open_within(path, Access::Write, devices.timeout())?;
    let sector_bytes = superblock.sector_bytes;
    if device.sector_bytes() != sector_bytes {
        return Err(VolumeIoError::SectorSize {
            path: path.to_owned(),
            bytes: device.sector_bytes(),
            first: sector_bytes,
        });
    }
    if device.sectors() < entry.sectors {
        return Err(VolumeIoError::TooSmall {
            path: path.to_owned(),
            bytes: device.sectors().0 * u64::from(sector_bytes),
            why: "the replaced member had",
            needed: entry.sectors.0 * u64::from(sector_bytes),
        });
    }
    let (opened, pairs) = superblocks_of(vec![device], devices.timeout());
    if !force {
        check_split(superblock, path, &pairs[0])?;
        if let Some(what) = content_of(path, holds, devices.timeout())? {
            let path = path.to_owned();
            return Err(VolumeIoError::Holds { path, what });
        }
    }
    let device = opened.take_all().into_iter().flatten().next();
    let device = device.expect("the device was just opened");
    Ok(Substitute { member, device })
}

/// Refuses a device whose superblocks show that it continued without at least one of the volume's
/// active members.
fn check_split(
    superblock: &Superblock,
    path: &Path,
    pair: &SuperblockPair,
) -> Result<(), VolumeIoError> {
    let entries = superblock.members.iter().enumerate();
    let mut active = entries.filter(|(_, entry)| entry.state == MemberState::Active);
    let is_split = active.any(|(index, _)| {
        let ours = Superblock {
            index,
            ..superblock.clone()
        };
        let ours = SuperblockPair {
            first: Ok(ours.clone()),
            second: Ok(ours),
        };
        ours.is_split_from(pair)
    });
    if !is_split {
        return Ok(());
    }
    let path = path.display();
    Err(VolumeIoError::Order(format!(
        "{path}: it was split from this volume, continued without the other members, and may hold writes that they lack; serve it alone and copy its data first, or discard the data with --force"
    )))
}

/// Replaces a failed member with a device, gives it the UUID `id`, and begins its rebuild.
///
/// # Errors
/// Returns an error if the member has not failed, or if the device cannot be written.
pub fn replace(
    volume: &DeviceVolume,
    substitute: Substitute,
    id: uuid::Uuid,
) -> Result<(), VolumeIoError> {
    let Substitute { member, device } = substitute;
    let superblock = block_on(volume.superblock());
    let devices = volume.members();
    let mut bytes = read_maps(&superblock, devices)?.concat();
    bytes.resize(
        superblock.maps.0 as usize * superblock.sector_bytes as usize,
        0,
    );
    block_on(volume.replace_member(member, id))?;
    devices.set_device(member, Some(device));
    if !bytes.is_empty() {
        let front = Lbn(superblock_sectors(superblock.sector_bytes).0);
        let back = superblock.second(member) - superblock.maps;
        let mut ops = [
            Op::write(member, front, &bytes),
            Op::write(member, back, &bytes),
        ];
        block_on(devices.run(&mut ops));
        if ops.iter().any(|op| op.outcome.is_err()) {
            let problem = "cannot be written";
            let error = unwritten(VolumeError::Member { member, problem }, devices);
            devices.set_device(member, None);
            return Err(error);
        }
    }
    Ok(block_on(volume.begin_rebuild(member))?)
}

/// Replaces a member's write error with the error that the operating system reported for its
/// device, if there is one.
fn unwritten(error: VolumeError, devices: &Devices) -> VolumeIoError {
    let device = match error {
        VolumeError::Member { member, .. } => devices.device(member),
        _ => None,
    };
    match device.and_then(|device| Some((device.path().to_owned(), device.last_error()?))) {
        Some((path, error)) => VolumeIoError::Device {
            path,
            what: "write",
            error,
        },
        None => error.into(),
    }
}

/// Rebuilds the current rebuild target for a second. Returns false if no stripes are left, or if no
/// member is being rebuilt. Several threads work at once: while one writes to the target, another
/// reads from the other members.
///
/// # Errors
/// Returns the first error of [`Volume::rebuild_step`], in the order of the threads.
pub fn rebuild_for_a_second<M: MemberIo + Sync>(volume: &Volume<M>) -> Result<bool, VolumeError>
where
    M::Buffer: Send,
{
    let array = volume.array();
    let offered = array.capacity().0 * volume.sector_bytes() as u64;
    let of_a_member = offered / array.members().len() as u64 / array.stripes().max(1);
    let stripes = (REBUILD_BYTES / of_a_member.max(1)).max(1);
    let begun = Instant::now();
    let steps = || -> Result<bool, VolumeError> {
        while begun.elapsed() < REBUILD_PERIOD {
            if !block_on(volume.rebuild_step(stripes))? {
                return Ok(false);
            }
        }
        Ok(true)
    };
    thread::scope(|scope| {
        let others: SmallVec<[_; REBUILD_THREADS]> =
            (1..REBUILD_THREADS).map(|_| scope.spawn(steps)).collect();
        let own = steps();
        let others = others
            .into_iter()
            .map(|other| other.join().expect("it does not panic"));
        others.fold(own, |all, one| {
            let (all, one) = (all?, one?);
            Ok(all && one)
        })
    })
}

/// Removes the superblocks that identify devices as members. Nothing is written before all devices
/// have been checked. A device can have been reused: other content is kept in the place of a
/// superblock that is missing, and also of one that is damaged if `holds` recognizes this content.
///
/// Returns the superblock that each device had.
///
/// # Errors
/// Returns an error if a device is not a member, if the devices belong to several volumes, if
/// `force` is not set, or if a write fails.
pub fn destroy(
    paths: &[PathBuf],
    force: bool,
    holds: Recognizer,
) -> Result<Vec<Superblock>, VolumeIoError> {
    let (devices, pairs) = open_devices(paths, Access::Write, MEMBER_TIMEOUT)?;
    let newest = |pair: &SuperblockPair| pair.newest().expect("the devices are checked").clone();
    let superblocks: Vec<Superblock> = pairs.iter().map(newest).collect();
    let volume = superblocks[0].volume;
    if let Some(other) = superblocks.iter().position(|one| one.volume != volume) {
        return Err(VolumeIoError::Order(format!(
            "{} belongs to volume {}, but {} belongs to volume {volume}; destroy one volume at a time",
            paths[other].display(),
            superblocks[other].volume,
            paths[0].display(),
        )));
    }
    if !force {
        let lost = "the volume's data would be lost; confirm with --force";
        return Err(VolumeIoError::Order(lost.to_owned()));
    }
    for (number, superblock) in superblocks.iter().enumerate() {
        let (path, pair) = (&paths[number], &pairs[number]);
        let other = within(path, MEMBER_TIMEOUT, holds)?;
        let is_own = |found: &Result<Superblock, SuperblockError>| match found {
            Ok(_) => true,
            Err(SuperblockError::None) => false,
            Err(_) => other.is_none(),
        };
        let zeros = vec![0; SUPERBLOCK_BYTES.max(superblock.sector_bytes as usize)];
        let second = superblock.second(superblock.index);
        let places = [(Lbn(0), &pair.first), (second, &pair.second)].into_iter();
        let own = places.filter(|(_, found)| is_own(found));
        let mut ops: SmallVec<[_; 2]> = own.map(|(at, _)| Op::write(number, at, &zeros)).collect();
        block_on(devices.run(&mut ops));
        let mut flush = [Op::flush(number)];
        block_on(devices.run(&mut flush));
        if ops.iter().chain(&flush).any(|op| op.outcome.is_err()) {
            let (member, problem) = (number, "cannot be written");
            return Err(unwritten(VolumeError::Member { member, problem }, &devices));
        }
        if let Some(what) = other {
            tracing::warn!("{}: {what} on the device is kept", path.display());
        }
    }
    Ok(superblocks)
}

/// Returns a description of a device's content, including volumes, within the time-out.
fn content_of(
    path: &Path,
    holds: Recognizer,
    timeout: Duration,
) -> Result<Option<String>, VolumeIoError> {
    within(path, timeout, move |path| content_on(path, holds))
}

/// Examines a device within the time-out.
fn within<T: Send + 'static>(
    path: &Path,
    timeout: Duration,
    examine: impl FnOnce(&Path) -> T + Send + 'static,
) -> Result<T, VolumeIoError> {
    let own = path.to_owned();
    let found = with_timeout(timeout, move || examine(&own));
    found.ok_or_else(|| VolumeIoError::Device {
        path: path.to_owned(),
        what: "read",
        error: no_answer(timeout),
    })
}

/// Returns the text of a member's track map; empty if chunks are not tracks.
fn map_text(path: &Path, map: Option<&Path>, tracks: bool) -> Result<Vec<u8>, VolumeIoError> {
    let failed = |error| VolumeIoError::Map {
        path: path.to_owned(),
        error: Box::new(error),
    };
    match (map, tracks) {
        (_, false) => Ok(Vec::new()),
        (None, _) => Err(VolumeIoError::NoMap(path.to_owned())),
        (Some(map), _) => {
            let unreadable = |error| VolumeIoError::Device {
                path: map.to_owned(),
                what: "read",
                error,
            };
            let file = std::fs::File::open(map).map_err(unreadable)?;
            let file = MapFile::read_from(file).map_err(|error| match error {
                TrackMapError::Io { error, .. } => unreadable(error),
                error => failed(error),
            })?;
            Ok(file.to_text().into_bytes())
        }
    }
}

fn check_journal(array: &Array, superblock: &Superblock) -> Result<(), VolumeIoError> {
    // A record takes at most a quarter of the journal, and must hold a stripe. In RAID-1, a record
    // only identifies the stripe.
    let stripe = match superblock.level {
        Level::Raid0 => return Ok(()),
        Level::Raid1 => Sectors(0),
        Level::Raid4 | Level::Raid5 => array.stripe_sectors_max(),
    };
    let needed = 4 * (stripe.0 + 8) + 8;
    let journal = superblock.journal.end.0 - superblock.journal.start.0;
    if journal >= needed {
        Ok(())
    } else {
        Err(VolumeError::Journal {
            journal: Sectors(journal),
            needed: Sectors(needed),
        }
        .into())
    }
}

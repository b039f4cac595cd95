//! Volumes on files and block devices: made, put together, served.
//!
//! What is written is decided in [`traxtent_core::volume`]; here are its members, and the threads that wait for
//! them. A request is carried out by the thread that brings it, and members work side by side (io_uring).
//! [`VolumeServer`] takes orders beside.

mod buffers;
mod care;
mod error;
mod files;
mod lanes;
mod quit;
mod server;
mod space;
mod status;
mod uring;
mod verify;
mod wait;
mod watch;

use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use smallvec::SmallVec;
use traxtent_core::layout::raid::{Array, Chunks, Level, Member, Shape};
use traxtent_core::probe::{Confirm, Found as FoundTrack};
use traxtent_core::trackmap::{MapBuilder, MapFile, TrackMap};
use traxtent_core::units::{Lbn, Sectors};
use traxtent_core::volume::superblock::{
    MemberEntry, MemberState, SUPERBLOCK_BYTES, Superblock, maps_sectors, superblock_sectors,
};
use traxtent_core::volume::{
    Assembly, AssemblyError, Format, Members, Op, SuperblockPair, Volume, VolumeError, WriteHole,
    choose, survey,
};

use crate::device::guard::volume_on;

pub use care::{DifferenceReport, LEAST_RATE, MaintenanceTask, Progress, Repairs, Work, care};
pub use error::VolumeIoError;
use files::Identity;
pub use files::{Aligned, Device, Devices};
pub use quit::LINGERS;
pub use server::{Order, SYNC_RATE, VolumeServer};
pub use status::{LostRange, MemberStatus, StaleMember, Status};
pub use verify::{Verdict, verify_map, verify_on};
pub use wait::wait;
pub use watch::{MEMBER_TIMEOUT, MEMBER_TIMEOUTS};

/// About so much of a member is rebuilt at once.
const REBUILD_BYTES: u64 = 1 << 20;

/// So long threads do that, before it is asked whether to go on. Each time the members idle until all are there again.
const REBUILD_SPELL: Duration = Duration::from_secs(1);

/// The largest journal of a new volume: recovery reads it on all members at once, in some ten seconds at 100 MB/s.
pub const JOURNAL_BYTES_MAX: u64 = 1 << 30;

/// Two read from the others, one sums, one writes to the member.
const REBUILD_THREADS: usize = 4;

/// A volume on devices that is open.
pub type DeviceVolume = Volume<Devices>;

/// What a volume is to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// How members hold what belongs together.
    pub level: Level,
    /// Bytes of a chunk; without it chunks are tracks.
    pub chunk_bytes: Option<u64>,
    /// Chunks are multiples of so many bytes.
    pub granule_bytes: u32,
    /// Bytes of the journal on each member.
    pub journal_bytes: u64,
    /// The members, and their track maps if chunks are tracks.
    pub members: Vec<(PathBuf, Option<PathBuf>)>,
    /// Whether what is on the members may be overwritten.
    pub force: bool,
}

/// Makes a volume, and says what it is. Nothing is written before all has been checked. `holds` says what is on a device already.
///
/// # Errors
/// The first member that cannot be one, and why; what happens while it is written.
pub fn create(
    plan: &Plan,
    mut ids: impl FnMut() -> uuid::Uuid,
    holds: impl Fn(&Path) -> Option<String>,
) -> Result<Status, VolumeIoError> {
    if plan.journal_bytes > JOURNAL_BYTES_MAX {
        return Err(VolumeIoError::JournalSize(plan.journal_bytes));
    }
    let mut devices = Vec::new();
    let mut maps = Vec::new();
    for (path, map) in &plan.members {
        let device = open_once(path, &devices)?;
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
    let sector_bytes = devices.first().map_or(512, Device::sector_bytes);
    let chunks = match plan.chunk_bytes {
        Some(bytes) => Chunks::Fixed(Sectors(bytes / u64::from(sector_bytes))),
        None => Chunks::Tracks,
    };
    if let Chunks::Fixed(sectors) = chunks
        && u32::try_from(sectors.0).is_err()
    {
        let bytes = plan.chunk_bytes.unwrap_or(0);
        return Err(VolumeIoError::ChunkSize {
            bytes,
            sector_bytes,
        });
    }
    let granule = (plan.granule_bytes / sector_bytes).max(1);
    let format = Format {
        volume: ids(),
        level: plan.level,
        chunks,
        granule,
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
            .zip(&maps)
            .map(|(device, map)| (ids(), device.sectors(), map.clone()))
            .collect(),
    };
    let map_bytes = maps.iter().map(|map| map.len() as u64).sum();
    let maps_sectors = maps_sectors(map_bytes, sector_bytes).0;
    let around = superblock_sectors(sector_bytes).0 + maps_sectors;
    for device in &devices {
        let needed = 2 * around + format.journal.0 + 1;
        if device.sectors().0 < needed {
            return Err(VolumeIoError::TooSmall {
                path: device.path().to_owned(),
                sectors: device.sectors(),
                why: "superblocks, maps and journal alone take",
                needed: Sectors(needed),
            });
        }
    }
    let Some(mut superblock) = format.superblock() else {
        // Only their number is left.
        let no_members = Array::new(
            Shape {
                level: plan.level,
                chunks,
                granule: 1,
                spares: 0,
            },
            Vec::new(),
        );
        return Err(no_members
            .map(|_| VolumeError::Stopped.into())
            .unwrap_or_else(Into::into));
    };
    let array = array_of(&superblock, &maps)?;
    superblock.capacity = array.capacity();
    check_journal(&array, &superblock)?;
    let are_zero = std::iter::zip(&devices, &superblock.members)
        .all(|(device, member)| device.is_zero(member.data.clone()));
    if are_zero || plan.level == Level::Raid0 {
        // Zeros have zeros for parity and copies.
        superblock.synced = array.stripes();
    }
    let paths: Vec<PathBuf> = devices
        .iter()
        .map(|device| device.path().to_owned())
        .collect();
    let devices = Devices::new(devices.into_iter().map(Some).collect());
    if !plan.force {
        for path in &paths {
            if let Some(what) = volume_on(path).or_else(|| holds(path)) {
                let path = path.clone();
                return Err(VolumeIoError::Holds { path, what });
            }
        }
    }
    wait(format.write(&superblock, &devices)).map_err(|error| unwritten(error, &devices))?;
    Ok(Status::known(&superblock, &array, &devices))
}

/// Members that have been found and belong together, before anything is written.
#[derive(Debug)]
pub struct Found {
    /// What they agree on.
    pub superblock: Superblock,
    array: Array,
    devices: Devices,
}

/// Finds out how devices belong together. With `force`, members may be missing, and parity that was never made is taken
/// as it stands where it has to make up for them.
///
/// # Errors
/// Why they do not.
pub fn find(paths: &[PathBuf], force: bool) -> Result<Found, VolumeIoError> {
    find_within(paths, force, MEMBER_TIMEOUT)
}

/// Finds out how devices belong together as [`find`] does, doubtful members included: for looks alone, and for who says that their
/// data are good. A volume that has to be recovered is refused unless `recover` is set, since recovery believes all members.
///
/// # Errors
/// As for [`find`].
pub fn find_doubtful(
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

/// Finds out how devices belong together as [`find`] does, without one of the members, which is to be left out for good.
///
/// # Errors
/// As for [`find`].
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

/// Finds out how devices belong together, with another member time-out.
///
/// # Errors
/// As for [`find`].
pub(crate) fn find_within(
    paths: &[PathBuf],
    force: bool,
    timeout: Duration,
) -> Result<Found, VolumeIoError> {
    let found = assembled(paths, force, timeout)?;
    found.check_doubts()?;
    Ok(found)
}

/// Puts members together, doubtful ones included.
fn assembled(paths: &[PathBuf], force: bool, timeout: Duration) -> Result<Found, VolumeIoError> {
    let (devices, pairs) = surveyed(paths, timeout)?;
    let refused = |error: AssemblyError| VolumeIoError::assembly(&error, paths);
    let (mut assembly, missing) = match choose(&pairs, force) {
        Ok(assembly) => (assembly, None),
        // There may be more to say of it.
        Err(missing @ AssemblyError::Missing { enough: true, .. }) => {
            (choose(&pairs, true).map_err(refused)?, Some(missing))
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

/// Tells what devices say of themselves as members, for a look alone: missing, stale and damaged ones are part of the answer.
///
/// # Errors
/// If they do not belong together at all, or too few are current.
pub fn inspect(paths: &[PathBuf]) -> Result<Status, VolumeIoError> {
    let (devices, mut pairs) = surveyed(paths, MEMBER_TIMEOUT)?;
    let mut devices = devices.take_all();
    let mut paths = paths.to_vec();
    let mut stale = Vec::new();
    let assembly = loop {
        match choose(&pairs, true) {
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
            Err(error) => return Err(VolumeIoError::assembly(&error, &paths)),
        }
    };
    let devices = in_place(&assembly, devices);
    let (array, devices) = laid_out(&assembly.superblock, devices)?;
    let mut status = Status::known(&assembly.superblock, &array, &devices);
    for (member, given) in assembly.given.iter().enumerate() {
        if let Some(given) = given {
            status.members[member].set_superblocks(&pairs[*given]);
        }
    }
    status.stale = stale;
    Ok(status)
}

/// The devices in the order of the members that they are.
fn in_place(assembly: &Assembly, mut devices: Vec<Option<Arc<Device>>>) -> Devices {
    let given = assembly.given.iter();
    let device = |given: &Option<usize>| given.and_then(|given| devices[given].take());
    Devices::of(given.map(device).collect())
}

/// The array that the members form.
fn laid_out(superblock: &Superblock, devices: Devices) -> Result<(Array, Devices), VolumeIoError> {
    let maps = read_maps(superblock, &devices)?;
    let array = array_of(superblock, &maps)?;
    if array.capacity() != superblock.capacity {
        return Err(VolumeIoError::MapMisfit {
            member: 0,
            problem: "gives another capacity than the superblock",
        });
    }
    Ok((array, devices))
}

impl Found {
    /// Refuses members whose superblocks were missing or damaged: what they hold may be gone as well, and whatever is written
    /// to the volume would take it for data.
    fn check_doubts(&self) -> Result<(), VolumeIoError> {
        let mut members = self.superblock.members.iter();
        let is_doubtful =
            |member: &MemberEntry| member.doubtful && member.state != MemberState::Failed;
        match members.position(is_doubtful) {
            Some(member) => Err(VolumeError::Doubtful { member }.into()),
            None => Ok(()),
        }
    }

    /// What the members say.
    pub fn status(&self) -> Status {
        Status::known(&self.superblock, &self.array, &self.devices)
    }

    /// Opens the volume: what a crash left is made whole.
    ///
    /// # Errors
    /// Of [`Volume::open`].
    pub fn open(self) -> Result<DeviceVolume, VolumeIoError> {
        self.open_on(|devices| devices, WriteHole::Closed)
    }

    /// Opens the volume on something between it and the devices, with the write hole closed or open: for measurements.
    ///
    /// # Errors
    /// Of [`Volume::open`].
    pub fn open_on<M: Members>(
        self,
        members: impl FnOnce(Devices) -> M,
        hole: WriteHole,
    ) -> Result<Volume<M>, VolumeIoError> {
        let members = members(self.devices);
        Ok(wait(Volume::open(
            self.array,
            members,
            self.superblock,
            hole,
        ))?)
    }

    /// The members that chunks of tracks lie on, and the maps by which they do.
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

    /// Where the volume's chunks begin, as tracks of a drive.
    pub fn chunk_map(&self) -> TrackMap {
        self.array.chunk_map()
    }

    /// Looks at a device that is to take the place of a failed member; writes nothing.
    ///
    /// # Errors
    /// If no such member has failed, or the device cannot take its place.
    pub fn substitute(
        &self,
        member: usize,
        path: &Path,
        force: bool,
        holds: impl Fn(&Path) -> Option<String>,
    ) -> Result<Substitute, VolumeIoError> {
        substitute(&self.superblock, &self.devices, member, path, force, holds)
    }
}

/// A device that can take the place of a failed member.
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
    holds: impl Fn(&Path) -> Option<String>,
) -> Result<Substitute, VolumeIoError> {
    let Some(entry) = superblock.members.get(member) else {
        let problem = "does not exist";
        return Err(VolumeError::Member { member, problem }.into());
    };
    if entry.state != MemberState::Failed {
        let problem = "has not failed";
        return Err(VolumeError::Member { member, problem }.into());
    }
    // What has failed is let go: it may be what takes its own place.
    devices.put(member, None);
    let returned = |outstanding| match outstanding {
        0 => Ok(()),
        outstanding => Err(VolumeIoError::Outstanding {
            path: path.to_owned(),
            outstanding,
        }),
    };
    // By its name first: a device that does not answer does not even tell what it is.
    returned(devices.outstanding(|device| device.path() == path))?;
    let identity = Identity::at(path, devices.timeout())?;
    returned(devices.outstanding(|device| device.identity() == identity))?;
    let others = 0..superblock.members.len();
    let mut others = others.filter_map(|other| devices.device(other));
    if others.any(|other| other.identity() == identity) {
        return Err(VolumeIoError::Twice(path.to_owned()));
    }
    let device = Device::open_within(path, devices.timeout())?;
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
            sectors: device.sectors(),
            why: "the member before it had",
            needed: entry.sectors,
        });
    }
    if !force && let Some(what) = volume_on(path).or_else(|| holds(path)) {
        let path = path.to_owned();
        return Err(VolumeIoError::Holds { path, what });
    }
    Ok(Substitute {
        member,
        device: Arc::new(device),
    })
}

/// Puts a device, known as `id` from then on, in the place of a failed member, and begins to rebuild it.
///
/// # Errors
/// If the member has not failed, or the device cannot be written.
pub fn replace(
    volume: &DeviceVolume,
    substitute: Substitute,
    id: uuid::Uuid,
) -> Result<(), VolumeIoError> {
    let Substitute { member, device } = substitute;
    let superblock = wait(volume.superblock());
    let devices = volume.members();
    let mut bytes = read_maps(&superblock, devices)?.concat();
    bytes.resize(
        superblock.maps.0 as usize * superblock.sector_bytes as usize,
        0,
    );
    wait(volume.take_place(member, id))?;
    devices.put(member, Some(device));
    if !bytes.is_empty() {
        let front = Lbn(superblock_sectors(superblock.sector_bytes).0);
        let back = superblock.second(member) - superblock.maps;
        let mut ops = [
            Op::write(member, front, &bytes),
            Op::write(member, back, &bytes),
        ];
        wait(devices.run(&mut ops));
        if ops.iter().any(|op| op.outcome.is_err()) {
            let problem = "cannot be written";
            let error = unwritten(VolumeError::Member { member, problem }, devices);
            devices.put(member, None);
            return Err(error);
        }
    }
    Ok(wait(volume.begin_rebuild(member))?)
}

/// What the system said, where a member cannot be written.
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

/// Rebuilds the member that is being rebuilt, for a second; false if there are none left, or no such member. Threads take turns:
/// while one writes to it, another reads from the others.
///
/// # Errors
/// Of [`Volume::rebuild_step`].
pub fn rebuild_some<M: Members + Sync>(volume: &Volume<M>) -> Result<bool, VolumeError>
where
    M::Buffer: Send,
{
    let array = volume.array();
    let offered = array.capacity().0 * volume.sector_bytes() as u64;
    let of_a_member = offered / array.members().len() as u64 / array.stripes().max(1);
    let stripes = (REBUILD_BYTES / of_a_member.max(1)).max(1);
    let begun = Instant::now();
    let steps = || -> Result<bool, VolumeError> {
        while begun.elapsed() < REBUILD_SPELL {
            if !wait(volume.rebuild_step(stripes))? {
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
        others.fold(own, |all, one| Ok(all? && one?))
    })
}

/// Removes what makes devices members. Nothing is written before all have been looked at.
///
/// # Errors
/// If one is none, if it is not `force`d, or if one cannot be written.
pub fn destroy(paths: &[PathBuf], force: bool) -> Result<(), VolumeIoError> {
    let (devices, pairs) = surveyed(paths, MEMBER_TIMEOUT)?;
    let superblocks = pairs.iter().filter_map(SuperblockPair::newest);
    if !force {
        let lost = "the volume's data would be lost: it is left alone unless forced";
        return Err(VolumeIoError::Order(lost.to_owned()));
    }
    for (number, superblock) in superblocks.enumerate() {
        let zeros = vec![0; SUPERBLOCK_BYTES.max(superblock.sector_bytes as usize)];
        let second = superblock.second(superblock.index);
        let mut ops = [Lbn(0), second].map(|at| Op::write(number, at, &zeros));
        wait(devices.run(&mut ops));
        let mut flush = [Op::flush(number)];
        wait(devices.run(&mut flush));
        if ops.iter().chain(&flush).any(|op| op.outcome.is_err()) {
            let (member, problem) = (number, "cannot be written");
            return Err(unwritten(VolumeError::Member { member, problem }, &devices));
        }
    }
    Ok(())
}

/// Devices that are members, in the order of their paths, and the superblocks of each.
fn surveyed(
    paths: &[PathBuf],
    timeout: Duration,
) -> Result<(Devices, Vec<SuperblockPair>), VolumeIoError> {
    let mut devices = Vec::new();
    for path in paths {
        let device = open_once(path, &devices)?;
        devices.push(device);
    }
    let sizes: Vec<_> = devices
        .iter()
        .map(|device| (device.sectors(), device.sector_bytes()))
        .collect();
    let devices = Devices::new(devices.into_iter().map(Some).collect());
    devices.set_timeout(timeout);
    let pairs = wait(survey(&devices, &sizes));
    for (path, pair) in std::iter::zip(paths, &pairs) {
        pair.usable().map_err(|error| VolumeIoError::Superblock {
            path: path.clone(),
            error,
        })?;
    }
    Ok((devices, pairs))
}

fn open_once(path: &Path, others: &[Device]) -> Result<Device, VolumeIoError> {
    // A second lock of the same file would say that another process has it.
    match others.iter().any(|other| other.is_at(path)) {
        true => Err(VolumeIoError::Twice(path.to_owned())),
        false => Device::open(path),
    }
}

/// The text of the map that a member is to have; nothing where chunks know no tracks.
fn map_text(path: &Path, map: Option<&Path>, tracks: bool) -> Result<Vec<u8>, VolumeIoError> {
    let failed = |error| VolumeIoError::Map {
        path: path.to_owned(),
        error: Box::new(error),
    };
    match (map, tracks) {
        (_, false) => Ok(Vec::new()),
        (None, _) => Err(VolumeIoError::Holds {
            path: path.to_owned(),
            what: "tracks that nobody named: give its track map".to_owned(),
        }),
        (Some(map), _) => {
            let bytes = std::fs::read(map).map_err(|error| VolumeIoError::Device {
                path: map.to_owned(),
                what: "read",
                error,
            })?;
            let file = MapFile::read(&bytes).map_err(failed)?;
            Ok(file.to_text().into_bytes())
        }
    }
}

/// The layout that superblock and maps describe.
fn array_of(superblock: &Superblock, maps: &[Vec<u8>]) -> Result<Array, VolumeIoError> {
    let mut members = Vec::new();
    for (member, (entry, text)) in superblock.members.iter().zip(maps).enumerate() {
        let misfit = |problem| VolumeIoError::MapMisfit { member, problem };
        let map = match text.is_empty() {
            true => one_track_each(entry.sectors).ok_or_else(|| misfit("would have no tracks"))?,
            false => {
                MapFile::read(&text[..])
                    .map_err(|_| misfit("is damaged"))?
                    .tracks
            }
        };
        if map.first() > entry.data.start || map.end() > Lbn(entry.sectors.0) {
            return Err(misfit("does not fit: it has other LBNs than the member"));
        }
        members.push(Member {
            data: entry.data.start..entry.data.end.min(map.end()),
            map: Arc::new(map),
        });
    }
    let shape = Shape {
        level: superblock.level,
        chunks: superblock.chunks,
        granule: superblock.granule,
        spares: superblock.spares,
    };
    Ok(Array::new(shape, members)?)
}

/// A map for a member whose tracks do not matter: any tracks do.
fn one_track_each(sectors: Sectors) -> Option<TrackMap> {
    const SIZE: u64 = 1 << 20;
    let mut map = MapBuilder::default();
    for first in (0..sectors.0).step_by(SIZE as usize) {
        let track = FoundTrack {
            first_lbn: Lbn(first),
            sectors: SIZE.min(sectors.0 - first) as u32,
            confirm: Confirm::Predicted,
        };
        map.push(track).ok()?;
    }
    map.finish().map(|(map, _)| map)
}

fn check_journal(array: &Array, superblock: &Superblock) -> Result<(), VolumeIoError> {
    // A record takes a fourth of the journal at most, and holds a stripe; that of mirrors only names it.
    let stripe = match superblock.level {
        Level::Raid0 => return Ok(()),
        Level::Raid1 => Sectors(0),
        Level::Raid4 | Level::Raid5 => array.stripe_sectors_max(),
    };
    let needed = 4 * (stripe.0 + 8) + 8;
    let journal = superblock.journal.end.0 - superblock.journal.start.0;
    match journal >= needed {
        true => Ok(()),
        false => Err(VolumeError::Journal {
            journal: Sectors(journal),
            needed: Sectors(needed),
        }
        .into()),
    }
}

/// The maps of all members, from the first member that has them whole.
fn read_maps(superblock: &Superblock, devices: &Devices) -> Result<Vec<Vec<u8>>, VolumeIoError> {
    let bytes = superblock.maps.0 as usize * superblock.sector_bytes as usize;
    let front = Lbn(superblock_sectors(superblock.sector_bytes).0);
    let mut buffer = vec![0; bytes];
    let mut damaged = 0;
    for member in 0..superblock.members.len() {
        if devices.device(member).is_none() {
            continue;
        }
        for at in [front, superblock.second(member) - superblock.maps] {
            let mut ops = [Op::read(member, at, &mut buffer)];
            wait(devices.run(&mut ops));
            if ops[0].outcome.is_err() {
                continue;
            }
            let mut rest = &buffer[..];
            let mut maps = Vec::new();
            for entry in &superblock.members {
                let (map, later) = rest.split_at(entry.map_bytes as usize);
                rest = later;
                if crc32fast::hash(map) == entry.map_crc {
                    maps.push(map.to_vec());
                }
            }
            if maps.len() == superblock.members.len() {
                return Ok(maps);
            }
            damaged = maps.len();
        }
    }
    Err(VolumeIoError::MapMisfit {
        member: damaged,
        problem: "is damaged on every member",
    })
}

//! Volumes on files and block devices: made, put together, served.
//!
//! What is written is decided in [`traxtent_core::volume`]; here are its members, and the threads that wait for
//! them. A request is carried out by the thread that brings it.
//!
//! Left out: io_uring; giving orders to a volume while it is served.

mod error;
mod files;
mod wait;

use std::path::{Path, PathBuf};
use std::sync::Arc;

use traxtent_core::layout::raid::{Array, Chunks, Level, Member, Shape};
use traxtent_core::trackmap::{MapFile, TrackMap};
use traxtent_core::units::{Lbn, Sectors};
use traxtent_core::volume::superblock::{
    MemberState, SUPERBLOCK_BYTES, Superblock, SuperblockError, maps_sectors, superblock_sectors,
};
use traxtent_core::volume::{
    Assembly, Format, Members, Op, Volume, VolumeError, WriteHole, choose, survey,
};

pub use error::VolumeIoError;
pub use files::{Aligned, Device, Devices};
pub use wait::wait;

use crate::serve::BlockSizes;

/// What one request may have at most, in bytes.
const REQUEST_MAX: u32 = 32 << 20;

/// What is written at once where zeros are.
const ZEROS: usize = 1 << 20;

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

/// Makes a volume. Nothing is written before all has been checked. `holds` says what is on a device already.
///
/// # Errors
/// The first member that cannot be one, and why; what happens while it is written.
pub fn create(
    plan: &Plan,
    mut ids: impl FnMut() -> uuid::Uuid,
    holds: impl Fn(&Path) -> Option<String>,
) -> Result<Superblock, VolumeIoError> {
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
    let granule = (plan.granule_bytes / sector_bytes).max(1);
    let format = Format {
        volume: ids(),
        level: level_number(plan.level),
        rule: rule_number(chunks),
        chunk: match chunks {
            Chunks::Fixed(sectors) => u32::try_from(sectors.0).unwrap_or(u32::MAX),
            _ => 0,
        },
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
    let paths: Vec<PathBuf> = devices
        .iter()
        .map(|device| device.path().to_owned())
        .collect();
    let devices = Devices::new(devices.into_iter().map(Some).collect());
    if !plan.force {
        for (member, path) in paths.iter().enumerate() {
            let sectors = devices.device(member).map_or(Sectors(0), Device::sectors);
            let what = match wait(survey(&devices, member, sectors, sector_bytes)) {
                Err(SuperblockError::None) => holds(path),
                Ok(other) => Some(format!("member {} of volume {}", other.index, other.volume)),
                Err(other) => Some(other.to_string()),
            };
            if let Some(what) = what {
                let path = path.clone();
                return Err(VolumeIoError::Holds { path, what });
            }
        }
    }
    wait(format.write(&superblock, &devices))?;
    Ok(superblock)
}

/// Members that have been found and belong together, before anything is written.
#[derive(Debug)]
pub struct Found {
    /// What they agree on.
    pub superblock: Superblock,
    array: Array,
    devices: Devices,
    maps: Vec<Vec<u8>>,
}

/// Finds out how devices belong together. With `force`, members may be missing.
///
/// # Errors
/// Why they do not.
pub fn find(paths: &[PathBuf], force: bool) -> Result<Found, VolumeIoError> {
    let mut devices = Vec::new();
    for path in paths {
        let device = open_once(path, &devices)?;
        devices.push(device);
    }
    let devices = Devices::new(devices.into_iter().map(Some).collect());
    let mut superblocks = Vec::new();
    for (number, path) in paths.iter().enumerate() {
        let device = devices.device(number).expect("it was opened");
        let found = wait(survey(
            &devices,
            number,
            device.sectors(),
            device.sector_bytes(),
        ));
        superblocks.push(found.map_err(|error| VolumeIoError::Superblock {
            path: path.clone(),
            error,
        })?);
    }
    let assembly =
        choose(&superblocks, force).map_err(|error| VolumeIoError::assembly(&error, paths))?;
    let Assembly { superblock, given } = assembly;
    let mut devices = devices.into_inner();
    let devices = Devices::new(
        given
            .iter()
            .map(|given| given.and_then(|given| devices[given].take()))
            .collect(),
    );
    let maps = read_maps(&superblock, &devices)?;
    let array = array_of(&superblock, &maps)?;
    if array.capacity() != superblock.capacity {
        return Err(VolumeIoError::MapMisfit {
            member: 0,
            problem: "gives another capacity than the superblock",
        });
    }
    Ok(Found {
        superblock,
        array,
        devices,
        maps,
    })
}

impl Found {
    /// The paths of the members, in their order.
    pub fn paths(&self) -> Vec<Option<&Path>> {
        (0..self.superblock.members.len())
            .map(|member| self.devices.device(member).map(Device::path))
            .collect()
    }

    /// Opens the volume: what a crash left is made whole.
    ///
    /// # Errors
    /// Of [`Volume::open`].
    pub fn open(self) -> Result<DeviceVolume, VolumeIoError> {
        Ok(wait(Volume::open(
            self.array,
            self.devices,
            self.superblock,
            WriteHole::Closed,
        ))?)
    }

    /// Puts a device in the place of a failed member, which is then to be rebuilt.
    ///
    /// # Errors
    /// If no such member has failed, or the device cannot take its place.
    pub fn replace(
        mut self,
        member: usize,
        path: &Path,
        id: uuid::Uuid,
        force: bool,
        holds: impl Fn(&Path) -> Option<String>,
    ) -> Result<Found, VolumeIoError> {
        let entry = self.superblock.members.get(member);
        if entry.is_none_or(|entry| entry.state != MemberState::Failed) {
            let problem = "has not failed";
            return Err(VolumeError::Member { member, problem }.into());
        }
        if self.paths().contains(&Some(path)) {
            return Err(VolumeIoError::Twice(path.to_owned()));
        }
        let device = Device::open(path)?;
        let sector_bytes = self.superblock.sector_bytes;
        if device.sector_bytes() != sector_bytes {
            return Err(VolumeIoError::SectorSize {
                path: path.to_owned(),
                bytes: device.sector_bytes(),
                first: sector_bytes,
            });
        }
        let needed = self.superblock.members[member].sectors;
        if device.sectors() < needed {
            return Err(VolumeIoError::TooSmall {
                path: path.to_owned(),
                sectors: device.sectors(),
                needed,
            });
        }
        let alone = Devices::new(vec![Some(device)]);
        let sectors = alone.device(0).map_or(Sectors(0), Device::sectors);
        let what = match wait(survey(&alone, 0, sectors, sector_bytes)) {
            Err(SuperblockError::None) => holds(path),
            Ok(other) => Some(format!("member {} of volume {}", other.index, other.volume)),
            Err(other) => Some(other.to_string()),
        };
        if let Some(what) = what.filter(|_| !force) {
            let path = path.to_owned();
            return Err(VolumeIoError::Holds { path, what });
        }
        let mut bytes = self.maps.concat();
        bytes.resize(self.superblock.maps.0 as usize * sector_bytes as usize, 0);
        if !bytes.is_empty() {
            let front = Lbn(superblock_sectors(sector_bytes).0);
            let back = self.superblock.second(member) - self.superblock.maps;
            let mut ops = [Op::write(0, front, &bytes), Op::write(0, back, &bytes)];
            wait(alone.run(&mut ops));
            if ops.iter().any(|op| op.outcome.is_err()) {
                let problem = "cannot be written";
                return Err(VolumeError::Member { member, problem }.into());
            }
        }
        self.superblock.members[member].id = id;
        let mut devices = self.devices.into_inner();
        devices[member] = alone.into_inner().pop().flatten();
        self.devices = Devices::new(devices);
        Ok(self)
    }
}

/// Removes what makes a device a member.
///
/// # Errors
/// If it is none, or cannot be written.
pub fn destroy(path: &Path) -> Result<(), VolumeIoError> {
    let device = Device::open(path)?;
    let (sectors, sector_bytes) = (device.sectors(), device.sector_bytes());
    let devices = Devices::new(vec![Some(device)]);
    let superblock = wait(survey(&devices, 0, sectors, sector_bytes)).map_err(|error| {
        VolumeIoError::Superblock {
            path: path.to_owned(),
            error,
        }
    })?;
    let zeros = vec![0; SUPERBLOCK_BYTES.max(sector_bytes as usize)];
    let second = superblock.second(superblock.index);
    let mut ops = [Op::write(0, Lbn(0), &zeros), Op::write(0, second, &zeros)];
    wait(devices.run(&mut ops));
    let mut flush = [Op::flush(0)];
    wait(devices.run(&mut flush));
    match ops.iter().chain(&flush).all(|op| op.outcome.is_ok()) {
        true => Ok(()),
        false => Err(VolumeError::Member {
            member: superblock.index,
            problem: "cannot be written",
        }
        .into()),
    }
}

/// A volume as a server calls it: bytes at offsets, from any thread.
#[derive(Debug)]
pub struct VolumeServer {
    volume: DeviceVolume,
}

impl VolumeServer {
    /// Puts the members together and opens the volume.
    ///
    /// # Errors
    /// Of [`find`] and [`Found::open`].
    pub fn open(paths: &[PathBuf], force: bool) -> Result<VolumeServer, VolumeIoError> {
        let volume = find(paths, force)?.open()?;
        Ok(VolumeServer { volume })
    }

    /// How large it is.
    pub fn bytes(&self) -> u64 {
        self.volume.capacity().0 * self.volume.sector_bytes() as u64
    }

    /// The sizes that a client should know.
    pub fn block_sizes(&self) -> BlockSizes {
        let sector = self.volume.sector_bytes() as u32;
        BlockSizes {
            minimum: sector,
            preferred: sector.max(4096),
            maximum: REQUEST_MAX,
        }
    }

    /// Reads from byte `offset` on.
    ///
    /// # Errors
    /// Of [`Volume::read`].
    pub fn read(&self, buffer: &mut [u8], offset: u64) -> Result<(), VolumeError> {
        wait(self.volume.read(self.at(offset)?, buffer))
    }

    /// Writes from byte `offset` on; with `fua` it is durable when this returns.
    ///
    /// # Errors
    /// Of [`Volume::write`].
    pub fn write(&self, bytes: &[u8], offset: u64, fua: bool) -> Result<(), VolumeError> {
        let at = self.at(offset)?;
        wait(async {
            self.volume.write(at, bytes).await?;
            if fua {
                self.volume.flush().await
            } else {
                Ok(())
            }
        })
    }

    /// Makes `count` bytes from `offset` on zero.
    ///
    /// # Errors
    /// Of [`Volume::write`].
    pub fn zero(&self, offset: u64, count: u64, fua: bool) -> Result<(), VolumeError> {
        let zeros = vec![0; ZEROS.min(count as usize)];
        let mut done = 0;
        while done < count {
            let now = (count - done).min(zeros.len() as u64);
            self.write(&zeros[..now as usize], offset + done, false)?;
            done += now;
        }
        if fua { self.flush() } else { Ok(()) }
    }

    /// Makes all durable that was written before.
    ///
    /// # Errors
    /// Of [`Volume::flush`].
    pub fn flush(&self) -> Result<(), VolumeError> {
        wait(self.volume.flush())
    }

    /// Stops in order.
    ///
    /// # Errors
    /// Of [`Volume::stop`].
    pub fn stop(&self) -> Result<(), VolumeError> {
        wait(self.volume.stop())
    }

    fn at(&self, offset: u64) -> Result<Lbn, VolumeError> {
        let sector_bytes = self.volume.sector_bytes();
        match offset.is_multiple_of(sector_bytes as u64) {
            true => Ok(Lbn(offset / sector_bytes as u64)),
            false => Err(VolumeError::Length {
                bytes: offset as usize,
                sector_bytes,
            }),
        }
    }
}

fn open_once(path: &Path, others: &[Device]) -> Result<Device, VolumeIoError> {
    // A second lock of the same file would say that another process has it.
    let same = |other: &Device| {
        let (one, two) = (
            std::fs::canonicalize(path),
            std::fs::canonicalize(other.path()),
        );
        matches!((one, two), (Ok(one), Ok(two)) if one == two)
    };
    match others.iter().any(same) {
        true => Err(VolumeIoError::Twice(path.to_owned())),
        false => Device::open(path),
    }
}

fn level_number(level: Level) -> u8 {
    match level {
        Level::Raid0 => 0,
        Level::Raid1 => 1,
        Level::Raid4 => 4,
        Level::Raid5 => 5,
    }
}

fn rule_number(chunks: Chunks) -> u8 {
    let name = chunks.name();
    Chunks::NAMES
        .iter()
        .position(|other| *other == name)
        .unwrap_or(0) as u8
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
    let level = match superblock.level {
        0 => Level::Raid0,
        1 => Level::Raid1,
        4 => Level::Raid4,
        _ => Level::Raid5,
    };
    let chunks = match superblock.rule {
        0 => Chunks::Fixed(Sectors(superblock.chunk.into())),
        1 => Chunks::Tracks,
        2 => Chunks::LargestTrack,
        _ => Chunks::SmallestTrack,
    };
    let mut members = Vec::new();
    for (member, (entry, text)) in superblock.members.iter().zip(maps).enumerate() {
        let misfit = |problem| VolumeIoError::MapMisfit { member, problem };
        let map = match text.is_empty() {
            true => one_track_each(entry.sectors)?,
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
        level,
        chunks,
        granule: superblock.granule,
        spares: superblock.spares,
    };
    Ok(Array::new(shape, members)?)
}

/// A map for a member whose tracks do not matter: any tracks do.
fn one_track_each(sectors: Sectors) -> Result<TrackMap, VolumeIoError> {
    const SIZE: u64 = 1 << 20;
    let mut text = "first_lbn,sectors\n".to_owned();
    let mut next = 0;
    while next < sectors.0 {
        let size = SIZE.min(sectors.0 - next);
        text += &format!("{next},{size}\n");
        next += size;
    }
    let path = PathBuf::from("the whole member");
    TrackMap::read_csv(text.as_bytes()).map_err(|error| VolumeIoError::Map {
        path,
        error: Box::new(error),
    })
}

fn check_journal(array: &Array, superblock: &Superblock) -> Result<(), VolumeIoError> {
    if superblock.level == 0 {
        return Ok(());
    }
    let largest = array.stripes().min(1);
    let stripe = array.stripe(largest.saturating_sub(1))?;
    let sectors: u64 = stripe.chunks().map(|chunk| chunk.sectors.0).sum();
    let needed = 4 * (sectors + 8) + 8;
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

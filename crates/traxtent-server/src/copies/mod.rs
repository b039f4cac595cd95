//! Volumes with replicas around the track on a file or block device: creation, discovery,
//! serving and destruction.
//!
//! [`traxtent_volume::copies`] decides what is written. This module supplies the device, a clock,
//! and the thread that works while the volume is idle. Each request is carried out by the thread
//! that issues it.

mod server;

use std::fs::File;
use std::io;
use std::ops::Range;
use std::os::unix::fs::FileTypeExt;
use std::path::{Path, PathBuf};
use std::time::Instant;

use traxtent_layout::tpl::{PartitionBounds, REGIONS};
use traxtent_map::{Identity, MapFile, ResumeMismatch, TrackMapError};
use traxtent_probe::{ProbeError, Target, survey};
use traxtent_units::{Lbn, Sectors, SimTime, system_message};
use traxtent_volume::copies::superblock::ReplicatedSuperblock;
use traxtent_volume::copies::{
    CopiesError, FoundVolume, MemberClock, NewVolume, PreparedVolume, ReplicatedVolume,
    find as find_volume, find_superblock,
};
use traxtent_volume::superblock::SuperblockError;
use traxtent_volume::{Failed, MemberIo, NoSpace, Op};

pub use server::ReplicaVolumeServer;

use crate::volume::{AlignedBuffer, Device, Devices, VolumeIoError};
use futures_lite::future::block_on;
use traxtent_io::device::guard::{Refusal, content_on};
use traxtent_io::device::{BlockTarget, DeviceError};

/// An open volume with replicas on a device.
pub type DeviceReplicaVolume = ReplicatedVolume<TimedDevice>;

/// The reason why a volume with replicas cannot be created or opened on a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum ReplicaVolumeIoError {
    /// The device failed, or cannot be used.
    #[error("{}", device_problem(.0))]
    Device(#[from] VolumeIoError),
    /// The device cannot be opened as a [`BlockTarget`].
    #[error(transparent)]
    Target(#[from] DeviceError),
    /// The track map is invalid.
    #[error("{}: {error}", path.display())]
    Map {
        /// The path of the map file.
        path: PathBuf,
        /// The problem with the map.
        error: Box<TrackMapError>,
    },
    /// The map file cannot be read.
    #[error("{}: {}", path.display(), system_message(error))]
    MapFile {
        /// The path of the map file.
        path: PathBuf,
        /// The system's error.
        error: io::Error,
    },
    /// There is no such map file.
    #[error(
        "{}: there is no such map file; `traxtent probe DEVICE --tracks-only --map FILE` makes one",
        path.display()
    )]
    NoMapFile {
        /// The path of the map file.
        path: PathBuf,
    },
    /// The map contradicts the identity of the block device.
    #[error("{}: is not the map of {}: {problem}", path.display(), device.display())]
    WrongMap {
        /// The path of the map file.
        path: PathBuf,
        /// The device.
        device: PathBuf,
        /// The difference.
        problem: Box<ResumeMismatch>,
    },
    /// The map belongs to a drive of another size.
    #[error("{}: the map is of a drive with {theirs}, but {} has {ours}", path.display(), device.display())]
    OtherDrive {
        /// The path of the map file.
        path: PathBuf,
        /// The device.
        device: PathBuf,
        /// The number of sectors in the map.
        theirs: Sectors,
        /// The number of sectors of the device.
        ours: Sectors,
    },
    /// The survey failed.
    #[error("{}: cannot survey the device: {error}", path.display())]
    Survey {
        /// The device.
        path: PathBuf,
        /// The reason.
        error: Box<ProbeError>,
    },
    /// The device already holds data.
    #[error("{}: the device holds {what}; use --force to overwrite it", path.display())]
    Holds {
        /// The device.
        path: PathBuf,
        /// A description of its content.
        what: String,
    },
    /// A device without a usable first superblock, but with other content.
    #[error(
        "{}: the first superblock of its volume is missing or damaged, and the device holds {what}; if the device has been reused, `volume copies destroy` removes the second superblock and keeps that content",
        path.display()
    )]
    Reused {
        /// The device.
        path: PathBuf,
        /// A description of its content.
        what: String,
    },
    /// The volume reported an error.
    #[error("{}: {error}", path.display())]
    Copies {
        /// The device.
        path: PathBuf,
        /// The volume's error.
        error: Box<CopiesError>,
    },
}

/// Describes a problem with the device. A volume with replicas has no control socket.
fn device_problem(error: &VolumeIoError) -> String {
    match error {
        VolumeIoError::Guarded(refusal @ Refusal::Locked(_)) => {
            format!("{refusal}; if its volume is being served, stop the server first")
        }
        _ => error.to_string(),
    }
}

/// The parameters of a new volume with replicas.
#[derive(Clone, Debug)]
pub struct ReplicaVolumePlan {
    /// The file or block device.
    pub device: PathBuf,
    /// The path of its track map.
    pub map: PathBuf,
    /// The minimum and maximum number of replicas.
    pub bounds: PartitionBounds,
    /// The size of a block in bytes.
    pub block_bytes: u32,
    /// The number of times that a survey reads each track; 0 for no survey.
    pub readings: u32,
    /// Whether existing content of the device may be overwritten.
    pub force: bool,
}

/// Creates a volume. Nothing is written before all checks have passed and the device has been
/// surveyed. `holds` returns a description of the device's existing content. `progress` receives
/// the number of tracks surveyed so far and the total.
///
/// # Errors
/// Returns an error if the device or the map cannot be used, if the device holds data that may not
/// be overwritten, if the volume cannot be created as planned, or if the survey or a write fails.
pub fn create(
    plan: &ReplicaVolumePlan,
    volume: uuid::Uuid,
    holds: impl Fn(&Path) -> Option<String>,
    mut progress: impl FnMut(usize, usize),
) -> Result<PreparedVolume, ReplicaVolumeIoError> {
    let path = &plan.device;
    let copies = |error| ReplicaVolumeIoError::Copies {
        path: path.clone(),
        error: Box::new(error),
    };
    let map = read_map(&plan.map)?;
    let mut target = BlockTarget::open(path)?;
    let identity = target.identity().clone();
    check_map(plan, &map, &identity)?;
    let (sectors, sector_bytes) = (identity.capacity, identity.logical_bytes);
    let device = TimedDevice::open(path)?;
    if !plan.force
        && let Some(what) = content_on(path, holds)
    {
        let path = path.clone();
        return Err(ReplicaVolumeIoError::Holds { path, what });
    }
    let mut new = NewVolume {
        volume,
        layout: volume.as_u64_pair().0,
        sectors,
        sector_bytes,
        page_bytes: identity.physical_bytes.max(sector_bytes),
        block_bytes: plan.block_bytes,
        bounds: plan.bounds,
        regions: REGIONS,
        map,
        survey: None,
    };
    // The plan is checked first, because the survey takes long.
    let made = new.make().map_err(copies)?;
    if plan.readings > 0 {
        let tracks = new.map.tracks.len();
        let blocks = plan.block_bytes / sector_bytes;
        let done = survey(
            &mut target,
            &new.map.tracks,
            0..tracks,
            plan.readings,
            blocks,
            &mut |track| progress(track, tracks),
        );
        new.survey = Some(done.map_err(|error| ReplicaVolumeIoError::Survey {
            path: path.clone(),
            error: Box::new(error),
        })?);
    }
    let made = match new.survey {
        Some(_) => new.make().map_err(copies)?,
        None => made,
    };
    block_on(made.write(&device)).map_err(copies)?;
    Ok(made)
}

/// Reads the map file of a new volume.
fn read_map(path: &Path) -> Result<MapFile, ReplicaVolumeIoError> {
    let path = path.to_owned();
    let file = match File::open(&path) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            return Err(ReplicaVolumeIoError::NoMapFile { path });
        }
        Err(error) => return Err(ReplicaVolumeIoError::MapFile { path, error }),
    };
    MapFile::read_from(file).map_err(|error| match error {
        TrackMapError::Io { error, .. } => ReplicaVolumeIoError::MapFile { path, error },
        error => ReplicaVolumeIoError::Map {
            path,
            error: Box::new(error),
        },
    })
}

/// Checks that the map of a new volume is the map of its device. A file has no identity, so only
/// the size is compared.
fn check_map(
    plan: &ReplicaVolumePlan,
    map: &MapFile,
    identity: &Identity,
) -> Result<(), ReplicaVolumeIoError> {
    let path = &plan.device;
    if map.identity.capacity != identity.capacity {
        return Err(ReplicaVolumeIoError::OtherDrive {
            path: plan.map.clone(),
            device: path.clone(),
            theirs: map.identity.capacity,
            ours: identity.capacity,
        });
    }
    if !std::fs::metadata(path).is_ok_and(|meta| meta.file_type().is_block_device()) {
        return Ok(());
    }
    // A probe has identified a SCSI drive by its answer to INQUIRY.
    let opened = traxtent_io::device::open(path).ok();
    let identity = opened.as_ref().map_or(identity, |device| device.identity());
    let checked = map.check_device(identity);
    checked.map_err(|problem| ReplicaVolumeIoError::WrongMap {
        path: plan.map.clone(),
        device: path.clone(),
        problem: Box::new(problem),
    })
}

/// Returns whether a device holds a superblock of a volume with replicas, valid or not. A place for
/// one that cannot be read counts as well.
///
/// # Errors
/// Returns an error if the device cannot be opened.
pub fn holds_replica_volume(path: &Path) -> Result<bool, ReplicaVolumeIoError> {
    let device = TimedDevice::open(path)?;
    let (sectors, sector_bytes) = device.size();
    let found = block_on(find_superblock(&device, sectors, sector_bytes));
    Ok(!matches!(
        found,
        Err(CopiesError::Superblock(SuperblockError::None))
    ))
}

/// Finds the volume on a device, without writing.
///
/// # Errors
/// Returns an error if the device cannot be used, or holds no usable volume.
pub fn find(path: &Path) -> Result<(TimedDevice, FoundVolume), ReplicaVolumeIoError> {
    let device = TimedDevice::open(path)?;
    let (sectors, sector_bytes) = device.size();
    let found = block_on(find_volume(&device, sectors, sector_bytes));
    let found = found.map_err(|error| ReplicaVolumeIoError::Copies {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    Ok((device, found))
}

/// Removes the superblocks that identify a volume with replicas. The device can have been reused:
/// other content is kept in the place of a superblock that is missing, and also of one that is
/// damaged if `holds` recognizes this content. Returns the superblock that the device had.
///
/// # Errors
/// Returns an error if the device cannot be used, or if it holds no such volume.
pub fn destroy(
    path: &Path,
    holds: impl Fn(&Path) -> Option<String>,
) -> Result<ReplicatedSuperblock, ReplicaVolumeIoError> {
    let device = TimedDevice::open(path)?;
    let (sectors, sector_bytes) = device.size();
    let failed = |error| ReplicaVolumeIoError::Copies {
        path: path.to_owned(),
        error: Box::new(error),
    };
    let superblock = block_on(find_superblock(&device, sectors, sector_bytes)).map_err(failed)?;
    let other = holds(path);
    let zeros = vec![0; device.superblock_bytes()];
    for (at, _) in superblock.places() {
        let is_own = match device.superblock(at) {
            Ok(_) => true,
            Err(SuperblockError::None) => false,
            Err(_) => other.is_none(),
        };
        if is_own {
            let written = device.one(Op::write(0, at, &zeros));
            written.map_err(|error| failed(error.into()))?;
        }
    }
    let flushed = device.one(Op::flush(0));
    flushed.map_err(|error| failed(error.into()))?;
    if let Some(what) = other {
        tracing::warn!("{}: {what} on the device is kept", path.display());
    }
    Ok(superblock)
}

/// A file or block device with the machine's clock.
#[derive(Debug)]
pub struct TimedDevice {
    devices: Devices,
    size: (Sectors, u32),
    begun: Instant,
}

impl TimedDevice {
    /// Opens the device for exclusive use by this process.
    ///
    /// # Errors
    /// Returns the errors of [`Device::open`].
    pub fn open(path: &Path) -> Result<TimedDevice, VolumeIoError> {
        let device = Device::open(path)?;
        Ok(TimedDevice {
            size: (device.sectors(), device.sector_bytes()),
            devices: Devices::new(vec![Some(device)]),
            begun: Instant::now(),
        })
    }

    /// Returns the number of sectors and the bytes per sector.
    pub fn size(&self) -> (Sectors, u32) {
        self.size
    }

    fn superblock_bytes(&self) -> usize {
        let (_, sector_bytes) = self.size;
        ReplicatedSuperblock::superblock_sectors(sector_bytes).0 as usize * sector_bytes as usize
    }

    /// Reads the superblock at a position.
    fn superblock(&self, at: Lbn) -> Result<ReplicatedSuperblock, SuperblockError> {
        let mut bytes = vec![0; self.superblock_bytes()];
        let read = self.one(Op::read(0, at, &mut bytes));
        read.map_err(|_| SuperblockError::Unreadable)?;
        ReplicatedSuperblock::decode(&bytes)
    }

    /// Carries out one operation.
    fn one(&self, op: Op<'_>) -> Result<(), Failed> {
        let mut ops = [op];
        block_on(self.run(&mut ops));
        let [op] = ops;
        op.outcome
    }
}

impl MemberIo for TimedDevice {
    type Buffer = AlignedBuffer;

    fn buffer(&self, bytes: usize) -> AlignedBuffer {
        self.devices.buffer(bytes)
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        self.devices.run(ops).await;
    }

    fn reserve(&self, member: usize, sectors: Range<Lbn>) -> Result<(), NoSpace> {
        self.devices.reserve(member, sectors)
    }
}

impl MemberClock for TimedDevice {
    fn now(&self) -> SimTime {
        SimTime(self.begun.elapsed().as_nanos() as u64 * 1000)
    }
}

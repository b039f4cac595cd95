//! Volumes with copies around the track, on a file or block device: made, found, served.
//!
//! What is written is decided in [`traxtent_core::volume::copies`]; here are its device with a clock, and the thread that works
//! while nobody waits. A request is carried out by the thread that brings it.

mod server;

use std::io;
use std::ops::Range;
use std::path::{Path, PathBuf};
use std::time::Instant;

use traxtent_core::layout::tpl::{Bounds, REGIONS};
use traxtent_core::probe::{ProbeError, Target, survey};
use traxtent_core::trackmap::{MapFile, TrackMapError};
use traxtent_core::units::{Lbn, Sectors, SimTime};
use traxtent_core::volume::copies::superblock::Superblock;
use traxtent_core::volume::copies::{
    Clocked, Copies, CopiesError, Found, Made, NewVolume, find as find_volume, find_superblock,
};
use traxtent_core::volume::superblock::SuperblockError;
use traxtent_core::volume::{Members, NoSpace, Op};

pub use server::CopiesServer;

use crate::device::guard::volume_on;
use crate::device::{BlockTarget, DeviceError};
use crate::volume::{Aligned, Device, Devices, VolumeIoError, wait};

/// A volume with copies on a device, open.
pub type DeviceCopies = Copies<TimedDevice>;

/// Why a volume with copies cannot be made or opened on a device.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum CopiesIoError {
    /// The device.
    #[error(transparent)]
    Device(#[from] VolumeIoError),
    /// The device, as a probe opens it.
    #[error(transparent)]
    Target(#[from] DeviceError),
    /// Its track map.
    #[error("{}: {error}", path.display())]
    Map {
        /// The map's file.
        path: PathBuf,
        /// What is wrong with it.
        error: Box<TrackMapError>,
    },
    /// A map's file that cannot be read.
    #[error("{}: {error}", path.display())]
    MapFile {
        /// Which.
        path: PathBuf,
        /// What the system says.
        error: io::Error,
    },
    /// The map of another drive.
    #[error("{}: the map of a drive of {theirs}, and {} has {ours}", path.display(), device.display())]
    OtherDrive {
        /// The map's file.
        path: PathBuf,
        /// The device.
        device: PathBuf,
        /// Sectors of the map's drive.
        theirs: Sectors,
        /// Sectors of the device.
        ours: Sectors,
    },
    /// The survey.
    #[error("{}: it cannot be surveyed: {error}", path.display())]
    Survey {
        /// The device.
        path: PathBuf,
        /// Why not.
        error: Box<ProbeError>,
    },
    /// Something is there already.
    #[error("{}: it holds {what}; it is left alone unless forced", path.display())]
    Holds {
        /// The device.
        path: PathBuf,
        /// What.
        what: String,
    },
    /// What the volume says.
    #[error("{}: {error}", path.display())]
    Copies {
        /// The device.
        path: PathBuf,
        /// Its words.
        error: Box<CopiesError>,
    },
}

/// What a volume with copies is to be.
#[derive(Clone, Debug)]
pub struct Plan {
    /// The file or block device.
    pub device: PathBuf,
    /// Its track map.
    pub map: PathBuf,
    /// The fewest and the most copies.
    pub bounds: Bounds,
    /// Bytes of a block.
    pub block_bytes: u32,
    /// How often a survey reads each track; 0 for none.
    pub readings: u32,
    /// Whether what is on the device may be overwritten.
    pub force: bool,
}

/// Makes a volume. Nothing is written before all has been checked, and the device surveyed. `holds` says what is on it already,
/// `progress` is told how many tracks of how many have been surveyed.
///
/// # Errors
/// What stands against it, or what happens while it is written.
pub fn create(
    plan: &Plan,
    volume: uuid::Uuid,
    holds: impl Fn(&Path) -> Option<String>,
    mut progress: impl FnMut(usize, usize),
) -> Result<Made, CopiesIoError> {
    let path = &plan.device;
    let copies = |error| CopiesIoError::Copies {
        path: path.clone(),
        error: Box::new(error),
    };
    let bytes = std::fs::read(&plan.map).map_err(|error| CopiesIoError::MapFile {
        path: plan.map.clone(),
        error,
    })?;
    let map = MapFile::read(&bytes).map_err(|error| CopiesIoError::Map {
        path: plan.map.clone(),
        error: Box::new(error),
    })?;
    let mut target = BlockTarget::open(path)?;
    let identity = target.identity().clone();
    if map.identity.capacity != identity.capacity {
        return Err(CopiesIoError::OtherDrive {
            path: plan.map.clone(),
            device: path.clone(),
            theirs: map.identity.capacity,
            ours: identity.capacity,
        });
    }
    let (sectors, sector_bytes) = (identity.capacity, identity.logical_bytes);
    let device = TimedDevice::open(path)?;
    if !plan.force
        && let Some(what) = volume_on(path).or_else(|| holds(path))
    {
        let path = path.clone();
        return Err(CopiesIoError::Holds { path, what });
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
    // What cannot be is said before the survey, which takes long.
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
        new.survey = Some(done.map_err(|error| CopiesIoError::Survey {
            path: path.clone(),
            error: Box::new(error),
        })?);
    }
    let made = match new.survey {
        Some(_) => new.make().map_err(copies)?,
        None => made,
    };
    wait(made.write(&device)).map_err(copies)?;
    Ok(made)
}

/// Whether a device says that it holds a volume with copies.
///
/// # Errors
/// If the device cannot be used.
pub fn is_one(path: &Path) -> Result<bool, CopiesIoError> {
    let device = TimedDevice::open(path)?;
    let (sectors, sector_bytes) = device.size();
    let found = wait(find_superblock(&device, sectors, sector_bytes));
    Ok(!matches!(
        found,
        Err(CopiesError::Superblock(SuperblockError::None))
    ))
}

/// Finds the volume on a device; nothing is written.
///
/// # Errors
/// If the device cannot be used, or holds none.
pub fn find(path: &Path) -> Result<(TimedDevice, Found), CopiesIoError> {
    let device = TimedDevice::open(path)?;
    let (sectors, sector_bytes) = device.size();
    let found = wait(find_volume(&device, sectors, sector_bytes));
    let found = found.map_err(|error| CopiesIoError::Copies {
        path: path.to_owned(),
        error: Box::new(error),
    })?;
    Ok((device, found))
}

/// Removes what makes a device a volume with copies.
///
/// # Errors
/// If it is none, or cannot be written.
pub fn destroy(path: &Path) -> Result<(), CopiesIoError> {
    let device = TimedDevice::open(path)?;
    let (sectors, sector_bytes) = device.size();
    let failed = |error| CopiesIoError::Copies {
        path: path.to_owned(),
        error: Box::new(error),
    };
    let superblock = wait(find_superblock(&device, sectors, sector_bytes)).map_err(failed)?;
    let own = Superblock::own(sector_bytes).0 as usize * sector_bytes as usize;
    let zeros = vec![0; own];
    let [(first, _), (second, _)] = superblock.places();
    for op in [
        Op::write(0, first, &zeros),
        Op::write(0, second, &zeros),
        Op::flush(0),
    ] {
        let mut ops = [op];
        wait(device.run(&mut ops));
        ops[0].outcome.map_err(|error| failed(error.into()))?;
    }
    Ok(())
}

/// A file or block device with the machine's clock.
#[derive(Debug)]
pub struct TimedDevice {
    devices: Devices,
    size: (Sectors, u32),
    begun: Instant,
}

impl TimedDevice {
    /// Opens it for this process alone.
    ///
    /// # Errors
    /// Of [`Device::open`].
    pub fn open(path: &Path) -> Result<TimedDevice, VolumeIoError> {
        let device = Device::open(path)?;
        Ok(TimedDevice {
            size: (device.sectors(), device.sector_bytes()),
            devices: Devices::new(vec![Some(device)]),
            begun: Instant::now(),
        })
    }

    /// How many sectors it has, and the bytes of each.
    pub fn size(&self) -> (Sectors, u32) {
        self.size
    }
}

impl Members for TimedDevice {
    type Buffer = Aligned;

    fn buffer(&self, bytes: usize) -> Aligned {
        self.devices.buffer(bytes)
    }

    async fn run(&self, ops: &mut [Op<'_>]) {
        self.devices.run(ops).await;
    }

    fn reserve(&self, member: usize, sectors: Range<Lbn>) -> Result<(), NoSpace> {
        self.devices.reserve(member, sectors)
    }
}

impl Clocked for TimedDevice {
    fn now(&self) -> SimTime {
        SimTime(self.begun.elapsed().as_nanos() as u64 * 1000)
    }
}

//! Real devices as a probe's targets.
//!
//! [`open`] uses the best available access to a path: SCSI commands through SG_IO ([`SgTransport`])
//! for a generic node or a disk, otherwise direct reads ([`BlockTarget`]) of a block device or
//! image file. Nothing here writes before [`BlockTarget::allow_writes`], which permits a range, or
//! [`ScsiTarget::allow_writes`], which permits the whole drive. [`guard`] refuses paths that must
//! not be written to; [`in_use()`] describes the user of a device.

mod block;
mod clock;
mod error;
pub mod guard;
mod in_use;
mod interrupt;
pub mod mounts;
mod sg;
mod storage;
mod sysfs;
mod write_back;

use std::path::Path;

pub use block::BlockTarget;
pub use error::DeviceError;
pub use in_use::in_use;
pub use interrupt::{Interrupt, is_ignored};
pub use sg::SgTransport;
pub use storage::Storage;
pub use write_back::write_back;

use traxtent_model::geometry::Place;
use traxtent_probe::ScsiTarget;
use traxtent_probe::{Defects, Identity, Target, TargetError, Timing};
use traxtent_units::request::Request;
use traxtent_units::{Lbn, SimTime};

/// A device that has been opened for a probe.
#[derive(Debug)]
pub enum Device {
    /// A device that accepts SCSI commands.
    Scsi(Box<ScsiTarget<SgTransport>>),
    /// A block device or image file, accessed without SCSI commands.
    Block(Box<BlockTarget>),
}

/// Opens a SCSI generic node, block device or image file as the target of a probe.
///
/// # Errors
/// Returns an error if the path does not exist, cannot be opened, or names neither a SCSI generic
/// node, a block device nor a file. Also returns an error if the device is shorter than one sector,
/// or is a SCSI drive that is gone, or that neither identifies itself nor can be read as a block
/// device.
pub fn open(path: &Path) -> Result<Device, DeviceError> {
    let transport = match SgTransport::open(path) {
        Err(DeviceError::NoScsi { .. }) => {
            return Ok(Device::Block(Box::new(BlockTarget::open(path)?)));
        }
        transport => transport?,
    };
    let problem = match ScsiTarget::open(transport) {
        Ok(target) => return Ok(Device::Scsi(Box::new(target))),
        Err(problem) => problem,
    };
    // A disk that does not identify itself through SCSI may still be readable.
    match BlockTarget::open(path) {
        Ok(mut target) if !matches!(problem, TargetError::Gone(_)) => {
            target
                .notes
                .push(format!("SCSI commands cannot be used: {problem}"));
            Ok(Device::Block(Box::new(target)))
        }
        _ => Err(DeviceError::Drive {
            path: path.to_owned(),
            problem,
        }),
    }
}

impl Device {
    /// Returns notes for the reader of a report, one per line.
    pub fn notes(&self) -> &[String] {
        match self {
            Device::Scsi(_) => &[],
            Device::Block(target) => target.notes(),
        }
    }

    fn target(&self) -> &dyn Target {
        match self {
            Device::Scsi(target) => &**target,
            Device::Block(target) => &**target,
        }
    }

    fn target_mut(&mut self) -> &mut dyn Target {
        match self {
            Device::Scsi(target) => &mut **target,
            Device::Block(target) => &mut **target,
        }
    }
}

impl Target for Device {
    fn identity(&self) -> &Identity {
        self.target().identity()
    }
    fn now(&self) -> SimTime {
        self.target().now()
    }
    fn wait_until(&mut self, at: SimTime) {
        self.target_mut().wait_until(at);
    }
    fn request(&mut self, request: Request) -> Result<Timing, TargetError> {
        self.target_mut().request(request)
    }
    fn translate(&mut self, lbn: Lbn) -> Result<Place, TargetError> {
        self.target_mut().translate(lbn)
    }
    fn translate_back(&mut self, place: Place) -> Result<Option<Lbn>, TargetError> {
        self.target_mut().translate_back(place)
    }
    fn defects(&mut self) -> Result<Defects, TargetError> {
        self.target_mut().defects()
    }
    fn switch_caching(&mut self, on: bool) -> Result<(), TargetError> {
        self.target_mut().switch_caching(on)
    }
}

//! SCSI commands and responses as bytes.
#![forbid(unsafe_code)]

mod address;
mod capacity;
mod cdb;
mod command;
mod defects;
pub mod diagnostic;
mod faults;
pub mod inquiry;
pub mod mode;
mod modes;
mod sense;
mod server;
mod transport;
mod wire;

pub use address::{Address, AddressFormat, Inexpressible, WHOLE_TRACK};
pub use capacity::{Capacity, TOO_LARGE};
pub use command::{
    BlockOp, Blocks, Command, Compare, DefectWidth, ModeSense, ModeWidth, PageValues,
    ReadDefectData, Width,
};
pub use defects::DefectList;
pub use faults::{Compliance, Faults};
pub use sense::{AdditionalSense, FieldPointer, Sense, SenseFormat, SenseKey};
pub use server::{CommandFailure, CommandResponse, DeviceServer, Payload};
pub use transport::{DataTransfer, Reply, Status, Transport, TransportError};
pub use wire::ScsiError;

//! SCSI by command bytes: what a host sends, what a drive answers.

mod address;
mod capacity;
mod cdb;
mod defects;
pub mod diagnostic;
pub mod inquiry;
pub mod mode;
mod modes;
mod sense;
mod server;
mod transport;
mod wire;

pub use address::{Address, Format, Inexpressible, WHOLE_TRACK};
pub use capacity::{Capacity, TOO_LARGE};
pub use cdb::{
    BlockOp, Blocks, Command, Compare, DefectWidth, ModeSense, ModeWidth, PageValues,
    ReadDefectData, Width,
};
pub use defects::DefectList;
pub use sense::{AdditionalSense, FieldPointer, Sense, SenseFormat, SenseKey};
pub use server::{Answer, DeviceServer, Payload};
pub use transport::{Data, Reply, Status, Transport, TransportError};
pub use wire::ScsiError;

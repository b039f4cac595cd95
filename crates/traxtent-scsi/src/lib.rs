//! SCSI commands and responses as bytes, and a device server for modelled disks.
//!
//! - [`Command`] encodes and decodes commands. [`Sense`], [`Capacity`], [`DefectList`] and
//!   [`inquiry`] do the same for responses, [`mode`] and [`diagnostic`] also for the data that a
//!   host sends.
//! - [`DeviceServer`] executes commands on a modelled drive. [`Faults`] makes it fail, refuse or
//!   ignore them.
//! - [`Transport`] is a connection to a modelled or real drive.
//!
//! # Invariants
//! Decoding never panics, whatever the bytes. A value that its format can express is the same after
//! encoding and decoding. The server has no clock: the time at which a command arrives is an
//! argument.
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

pub use address::{Address, AddressFormat, NotRepresentable, WHOLE_TRACK};
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

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Reader for the files of DiskSim 4.0: its parameter language, disk layouts and seek curves.
//!
//! [`load_system`] reads a whole file: a system, a drive, or a layout with mechanics.
//! [`disk_geometry`] reads the layout of a drive and [`parse_seeks`] a seek curve. [`Document`] is
//! the parameter language itself.
//!
//! Source: the DiskSim 4.0 reference manual and the behaviour of its code.
//! docs/internals/differences-from-disksim.md lists the differences from DiskSim.
//!
//! # Invariants
//! Nothing here opens a file; the caller supplies the text of each file to which another one refers
//! ([`Sources`]). Parameters that this project does not model are reported as unused, for a
//! warning. An error names the file and the line.
#![forbid(unsafe_code)]

mod drive;
mod ignored;
mod known;
mod layout;
mod names;
mod parameter_source;
mod params;
mod required;
mod scheduling;
mod seek;
mod synthio;
mod synthio_places;
mod system;

pub use layout::{ImportedLayout, disk_geometry};
pub use parameter_source::profile_key;
pub use params::{Block, Document, Entry, Node, ParamError, Sources, Unused, Value};
pub use scheduling::scheduler_hint;
pub use seek::{SeekPoint, parse_seeks};
pub use system::{DeviceMap, System, SystemArray, SystemDisk, load_system};

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Reader for the files of DiskSim 4.0: its parameter language, disk layouts and seek curves.
//!
//! Source: the DiskSim 4.0 reference manual and the behaviour of its code. Nothing here opens a
//! file; the caller supplies the text of files that others refer to. Parameters that this project
//! does not model are reported as unused, for a warning.
#![forbid(unsafe_code)]

mod drive;
mod emulate;
mod g1;
mod g2;
mod g4;
mod layout;
mod lexer;
mod parameter_source;
mod params;
mod seek;
mod system;

pub use layout::{ImportedLayout, disk_geometry};
pub use params::{Block, Document, Entry, Node, ParamError, Sources, Unused, Value};
pub use seek::{SeekPoint, parse_seeks};
pub use system::{DeviceMap, System, SystemArray, SystemDisk, load_system};

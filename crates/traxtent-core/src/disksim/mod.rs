//! Reads DiskSim 4.0's files: its parameter language, its disk layouts, its seek curves.
//!
//! Source: the DiskSim 4.0 reference manual and the behaviour of its code. Nothing here opens a
//! file: a caller supplies the text of files that others name. What a file says and this project
//! does not model stays visible as unused parameters, for a warning.

mod blame;
mod drive;
mod emulate;
mod g1;
mod g2;
mod g4;
mod layout;
mod lexer;
mod params;
mod seek;
mod system;

pub use layout::{Imported, disk_geometry};
pub use params::{Block, Document, Entry, Node, ParamError, Sources, Unused, Value};
pub use seek::{SeekPoint, parse_seeks};
pub use system::{DeviceMap, System, SystemArray, SystemDisk, load_system};

//! Tables for and from other Python packages, through the Arrow PyCapsule interface.
//!
//! Exports do not copy buffers: an exported structure holds a reference to the batch that it shows.
//! Imports copy the values. The interface consists of three structures in C, and this package needs
//! three types of columns. `docs/internals/decisions.md` has the reason for not using the `arrow`
//! crates.
//!
//! Source: <https://arrow.apache.org/docs/format/CDataInterface/PyCapsuleInterface.html>.

mod export;
mod ffi;
mod import;
mod table;

pub(crate) use export::{array_capsules, stream_capsule};
pub(crate) use import::{ImportError, TableStream, Values, whole_numbers};
pub(crate) use table::{
    Batch, Column, ColumnKind, Field, OptionalValues, Presence, TextColumn, Word,
};

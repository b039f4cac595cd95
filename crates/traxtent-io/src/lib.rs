//! Real devices and files: timed direct reads of block devices, SCSI commands through the kernel,
//! and compressed files.
//!
//! [`device::open`] opens a path as the target of a probe. [`device::guard`] checks paths before
//! they are written to. [`CompressedWriter`] compresses output.
//!
//! # Invariants
//! Data is written only within ranges that the caller has released, and never to a path that is in
//! use; a generic SCSI node is opened for writing, because it passes every command only then. The
//! only hand-written `unsafe` is around the SG_IO call.

pub mod device;
pub mod packed;

pub use packed::CompressedWriter;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

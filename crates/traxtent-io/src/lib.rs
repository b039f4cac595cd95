//! Real devices and files: timed direct reads of block devices, SCSI commands through the kernel,
//! the exchange of blocks on ext4, and compressed files.
//!
//! [`device::open`] opens a path as the target of a probe. [`device::guard`] checks paths before
//! they are written to. [`ext4`] exchanges blocks between files. [`CompressedWriter`] compresses
//! output.
//!
//! # Invariants
//! Data is written only within ranges that the caller has released, and never to a path that is in
//! use; a generic SCSI node is opened for writing, because it passes every command only then. The
//! only hand-written `unsafe` is around the calls of SG_IO and of ext4.

pub mod device;
pub mod ext4;
pub mod packed;

pub use packed::CompressedWriter;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

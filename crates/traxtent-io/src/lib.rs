//! Real devices and files: timed direct reads of block devices, SCSI commands through the kernel,
//! the exchange of blocks on ext4, the chunk tree of Btrfs, and files for output.
//!
//! [`device::open`] opens a path as the target of a probe. [`device::guard`] checks paths before
//! they are written to. [`ext4`] exchanges blocks between files, and lists free space.
//! [`btrfs`] reads the chunk tree. [`AtomicFile`] replaces a file by a complete one, and
//! [`CompressedWriter`] compresses output.
//!
//! # Invariants
//! - [`BlockTarget`](device::BlockTarget) writes only within a range that the caller has allowed,
//!   and holds the device against other users from then on.
//! - A SCSI target writes wherever the caller requests, once allowed. The caller must first call
//!   [`device::guard::check_unused`].
//! - A SCSI generic node is opened for writing if that is permitted, even if it is only read. The
//!   kernel passes all commands to it only then.
//! - The only hand-written `unsafe` is around the ioctls for SCSI commands, of loop devices, of
//!   ext4 and of Btrfs.

mod atomic_file;
pub mod btrfs;
pub mod device;
pub mod ext4;
pub mod packed;

pub use atomic_file::AtomicFile;
pub use packed::CompressedWriter;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

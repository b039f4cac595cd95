//! Real devices and files: timed direct reads of block devices, SCSI commands through the kernel,
//! and packed files.

pub mod device;
pub mod packed;

pub use packed::CompressedWriter;

//! Tests of the executors.

mod devices;
mod guest;
mod host;
mod method;
mod scsi;
mod validate;

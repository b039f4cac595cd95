//! Tests of the executors.

mod devices;
mod guest;
mod host;
mod method;
mod scsi;
mod drives;
mod host;
mod translate;
mod validate;

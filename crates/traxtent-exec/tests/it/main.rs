//! Tests of the executors.

mod devices;
mod drives;
mod guest;
mod character;
mod host;
mod method;
mod scsi;
mod translate;
mod validate;

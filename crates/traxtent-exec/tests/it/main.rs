//! Tests of the executors.

mod host;
mod method;
mod scsi;
mod validate;

//! Tests over several crates, in simulated or real time.

mod characterization;
mod cuts;
mod devices;
mod disturbed;
mod drives;
mod fuse;
mod guest;
mod host;
mod method;
mod physical;
mod regions;
mod scan;
mod scsi;
mod serve;
mod translate;
mod ublk;
mod validate;
mod verify;
mod video;
mod volume;

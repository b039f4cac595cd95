//! Modelled disks and volumes, served in real time.
//!
//! [`serve`] runs a modelled drive in real time, for programs that use a disk. [`volume`] runs
//! volumes on real members, and [`copies`] runs volumes with replicas around the track. Each
//! implements [`service::BlockService`], the one interface for the front ends: [`nbd`] serves
//! clients of the network block device, [`fuse`] shows a file and a loop device on it, and [`ublk`]
//! makes a block device of this machine. [`control`] is the socket that takes orders while one is
//! served.
//!
//! # Invariants
//! The models and volumes decide; this crate adds clocks, threads and files. A drive's response is
//! delivered no earlier than the model completes the request, and the receipt states how much
//! later. The only hand-written `unsafe` is around io_uring, the memory that the kernel shares, and
//! the calls for loop devices.

pub mod control;
pub mod copies;
pub mod fuse;
pub mod nbd;
pub mod remaining_time;
pub mod serve;
pub mod service;
pub mod ublk;
pub mod volume;
mod workers;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

//! Modelled disks and volumes, served in real time.
//!
//! [`serve`] runs a modelled drive in real time, for programs that use a disk. [`volume`] runs
//! volumes on real members, and [`copies`] runs volumes with replicas around the track. Each
//! implements [`service::BlockService`], the common interface for the front ends: [`nbd`] serves
//! NBD clients, [`fuse`] provides a file and a loop device on it, and [`ublk`] provides a block
//! device on this machine. [`control`] is the socket that receives orders while a drive or a volume
//! is served.
//!
//! # Invariants
//! All decisions are made by the models and volumes; this crate adds clocks, threads and files. A
//! drive's response is delivered no earlier than the model completes the request, and the receipt
//! states how much later. The only hand-written `unsafe` is around io_uring, memory shared with the
//! kernel, the calls for loop devices, and the sockets that a volume shuts down when its process
//! ends.

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

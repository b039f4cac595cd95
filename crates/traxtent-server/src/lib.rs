//! Modelled disks and volumes, served in real time.
//!
//! [`serve`] runs a modelled drive in real time, for programs that use a disk. [`volume`] runs
//! volumes on real members, and [`copies`] runs volumes with replicas around the track. [`export`]
//! is the one interface to all three, for the protocols in front of them.
//!
//! # Invariants
//! The models and volumes decide; this crate adds clocks, threads and files. A drive's response is
//! delivered no earlier than the model completes the request, and the receipt states how much
//! later. The only hand-written `unsafe` is around io_uring.

pub mod copies;
pub mod export;
pub mod serve;
pub mod volume;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

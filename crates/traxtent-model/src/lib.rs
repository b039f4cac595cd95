//! A timing model of hard disk drives, with their data and faults.
//!
//! [`drive::Drive`] is a state machine without I/O. Time is an argument: `submit` takes a request,
//! `next_wakeup` returns the next time at which something happens, and `poll` returns completions
//! up to a given time. [`disk::Disk`] adds data, a volatile write cache, power cuts and faults.
//! [`profile::builtin()`] returns built-in profiles, most of them of real drives.
//!
//! # Invariants
//! Nothing in this crate reads a clock, a file or unseeded randomness, and nothing starts a thread.
//! The same inputs give the same outputs on every machine.
#![forbid(unsafe_code)]

pub mod disk;
pub mod drive;
pub mod geometry;
pub mod mechanics;
pub mod profile;

#[cfg(doctest)]
#[doc = include_str!("../README.md")]
struct Readme;

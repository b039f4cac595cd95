//! Tests of the plugin in nbdkit, with the programs that people use.

mod abi;
mod client;
mod data;
mod filesystems;
mod guest;
mod kill;
mod mechanics;
mod nbdkit;
mod receipt;
mod refused;

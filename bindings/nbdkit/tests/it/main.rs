//! Tests of the plugin in nbdkit, with the programs that people use.

mod abi;
mod attach;
mod client;
mod data;
mod day;
mod ext4;
mod filesystems;
mod guest;
mod kill;
mod mechanics;
mod nbdkit;
mod price;
mod receipt;
mod refused;
mod volume;

//! Tests of the plugin in nbdkit, driven by common NBD clients and storage tools.

mod abi;
mod attach;
mod client;
mod control;
mod copies;
mod cost;
mod data;
mod day;
mod ext4;
mod filesystems;
mod guest;
mod hang;
mod kill;
mod life;
mod mechanics;
mod nbdkit;
mod pull;
mod receipt;
mod refused;
mod volume;

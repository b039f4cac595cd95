//! Tests of the plugin in nbdkit, with the programs that people use.

mod abi;
mod data;
mod kill;
mod nbdkit;
mod receipt;
mod refused;

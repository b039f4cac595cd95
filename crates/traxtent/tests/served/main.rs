//! Tests of served drives and volumes, driven by common NBD clients and storage tools.

mod attach;
mod client;
mod control;
mod copies;
mod cost;
mod data;
mod day;
mod documented;
mod ext4;
mod filesystems;
mod guest;
mod hang;
mod ill_behaved;
mod kill;
mod life;
mod mechanics;
mod nbd;
mod pull;
mod receipt;
mod refused;
mod server;
mod volume;

//! Exports as network block devices, for any NBD client: fio, qemu, libnbd, the kernel.
//!
//! [`protocol`] is the protocol without I/O. [`Listener`] is a socket, and [`NbdServer`] has the
//! threads that serve its clients. TLS is left out. nbdkit with its `nbd` plugin can be placed in
//! front of this server to add TLS and nbdkit's filters.

mod connection;
mod listener;
mod offer;
pub mod protocol;
mod server;
mod socket;
mod threads;

pub use listener::Listener;
pub use server::{CLIENTS_MAX, NbdServer};

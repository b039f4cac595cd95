//! Exports as network block devices, for any NBD client: fio, qemu, libnbd, the kernel.
//!
//! [`protocol`] is the protocol without I/O. [`Listener`] is a socket, and [`NbdServer`] has the
//! threads that serve its clients. TLS is left out: nbdkit's own `nbd` plugin adds it, and nbdkit's
//! filters, in front of this server.

mod connection;
mod listener;
mod offer;
pub mod protocol;
mod server;
mod socket;
mod threads;

pub use listener::Listener;
pub use server::{CLIENTS_MAX, NbdServer};

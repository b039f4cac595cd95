//! Listening sockets.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::path::Path;

use super::socket::Socket;
use crate::control::{ListeningSocket, remove_stale_socket};

/// A socket on which clients connect. The file of a Unix socket is removed when this is dropped.
#[derive(Debug)]
pub struct Listener(Family);

#[derive(Debug)]
enum Family {
    Unix(ListeningSocket),
    Tcp(TcpListener),
}

impl Listener {
    /// Listens on a Unix socket that is created at `path` with the given mode. A socket that a
    /// killed server left there is replaced.
    ///
    /// # Errors
    /// Returns an error if the path exists, or if no socket can be created there.
    pub fn unix(path: &Path, mode: u32) -> io::Result<Listener> {
        remove_stale_socket(path)?;
        Ok(Listener(Family::Unix(ListeningSocket::open(path, mode)?)))
    }

    /// Listens on a TCP port. Port 0 means any free port; see [`Listener::port`].
    ///
    /// # Errors
    /// Returns an error if the port is in use or reserved for root, or if the address is not one of
    /// this machine.
    pub fn tcp(address: IpAddr, port: u16) -> io::Result<Listener> {
        let listener = TcpListener::bind(SocketAddr::new(address, port))?;
        Ok(Listener(Family::Tcp(listener)))
    }

    /// Returns the TCP port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match &self.0 {
            Family::Unix(_) => None,
            Family::Tcp(listener) => Some(listener.local_addr().ok()?.port()),
        }
    }

    /// Waits for a client.
    pub(super) fn accept(&self) -> io::Result<Socket> {
        match &self.0 {
            Family::Unix(socket) => Ok(Socket::Unix(socket.listener.accept()?.0)),
            Family::Tcp(listener) => {
                let stream = listener.accept()?.0;
                // Replies are written whole, so waiting for more would only delay them.
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }

    /// Makes current and future calls of [`Listener::accept`] fail.
    pub(super) fn close(&self) {
        let socket = match &self.0 {
            Family::Unix(socket) => socket.listener.as_fd(),
            Family::Tcp(listener) => listener.as_fd(),
        };
        let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
    }
}

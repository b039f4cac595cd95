//! Listening sockets.

use std::io;
use std::net::{IpAddr, SocketAddr, TcpListener};
use std::os::fd::AsFd;
use std::os::unix::net::UnixListener;
use std::path::{Path, PathBuf};

use super::socket::Socket;
use crate::control::{listen, remove_stale_socket};

/// A socket on which clients connect.
#[derive(Debug)]
pub struct Listener {
    socket: ListeningSocket,
    /// The file of a Unix socket, which is removed when this is dropped.
    path: Option<PathBuf>,
}

#[derive(Debug)]
enum ListeningSocket {
    Unix(UnixListener),
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
        Ok(Listener {
            socket: ListeningSocket::Unix(listen(path, mode)?),
            path: Some(path.to_owned()),
        })
    }

    /// Listens on a TCP port. Port 0 means any free port; see [`Listener::port`].
    ///
    /// # Errors
    /// Returns an error if the port is in use or reserved for root, or if the address is not one of
    /// this machine.
    pub fn tcp(address: IpAddr, port: u16) -> io::Result<Listener> {
        Ok(Listener {
            socket: ListeningSocket::Tcp(TcpListener::bind(SocketAddr::new(address, port))?),
            path: None,
        })
    }

    /// Returns the TCP port; `None` for a Unix socket.
    pub fn port(&self) -> Option<u16> {
        match &self.socket {
            ListeningSocket::Unix(_) => None,
            ListeningSocket::Tcp(listener) => Some(listener.local_addr().ok()?.port()),
        }
    }

    /// Waits for a client.
    pub(super) fn accept(&self) -> io::Result<Socket> {
        match &self.socket {
            ListeningSocket::Unix(listener) => Ok(Socket::Unix(listener.accept()?.0)),
            ListeningSocket::Tcp(listener) => {
                let stream = listener.accept()?.0;
                // Replies are written whole, so waiting for more would only delay them.
                stream.set_nodelay(true)?;
                Ok(Socket::Tcp(stream))
            }
        }
    }

    /// Makes current and future calls of [`Listener::accept`] fail.
    pub(super) fn close(&self) {
        let socket = match &self.socket {
            ListeningSocket::Unix(listener) => listener.as_fd(),
            ListeningSocket::Tcp(listener) => listener.as_fd(),
        };
        let _ = rustix::net::shutdown(socket, rustix::net::Shutdown::Both);
    }
}

impl Drop for Listener {
    fn drop(&mut self) {
        if let Some(path) = &self.path {
            let _ = std::fs::remove_file(path);
        }
    }
}

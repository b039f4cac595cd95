//! A connected socket of either family, which several threads read and write.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::unix::net::UnixStream;
use std::time::Duration;

#[derive(Debug)]
pub(super) enum Socket {
    Unix(UnixStream),
    Tcp(TcpStream),
}

impl Socket {
    pub(super) fn shutdown(&self, how: Shutdown) {
        // An error means that the client has closed the connection.
        let _ = match self {
            Socket::Unix(stream) => stream.shutdown(how),
            Socket::Tcp(stream) => stream.shutdown(how),
        };
    }

    /// Sets the maximum time that a read waits.
    pub(super) fn set_read_timeout(&self, time: Option<Duration>) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => stream.set_read_timeout(time),
            Socket::Tcp(stream) => stream.set_read_timeout(time),
        }
    }

    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).write_all(bytes),
            Socket::Tcp(stream) => (&mut &*stream).write_all(bytes),
        }
    }
}

impl Read for &Socket {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).read(into),
            Socket::Tcp(stream) => (&mut &*stream).read(into),
        }
    }
}

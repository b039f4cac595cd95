//! A connected socket of either family, which several threads read and write.

use std::io::{self, Read, Write};
use std::net::{Shutdown, TcpStream};
use std::os::fd::{AsFd, BorrowedFd};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use rustix::event::{PollFd, PollFlags, Timespec, poll};

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

    /// Returns whether a read would not wait.
    pub(super) fn is_readable(&self) -> bool {
        let mut wanted = [PollFd::new(self, PollFlags::IN)];
        let at_once = Timespec::default();
        poll(&mut wanted, Some(&at_once)).is_ok_and(|ready| ready > 0)
    }

    /// Appends exactly `count` bytes to `data`. The memory is not filled with zeros first.
    pub(super) fn read_onto(&self, data: &mut Vec<u8>, count: usize) -> io::Result<()> {
        data.reserve_exact(count);
        let read = match self {
            Socket::Unix(stream) => stream.take(count as u64).read_to_end(data)?,
            Socket::Tcp(stream) => stream.take(count as u64).read_to_end(data)?,
        };
        if read == count {
            Ok(())
        } else {
            Err(io::ErrorKind::UnexpectedEof.into())
        }
    }

    pub(super) fn write_all(&self, bytes: &[u8]) -> io::Result<()> {
        match self {
            Socket::Unix(stream) => (&mut &*stream).write_all(bytes),
            Socket::Tcp(stream) => (&mut &*stream).write_all(bytes),
        }
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        match self {
            Socket::Unix(stream) => stream.as_fd(),
            Socket::Tcp(stream) => stream.as_fd(),
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

//! The control socket, which receives orders while a drive or a volume is served.
//!
//! Each line is an order; for a drive it is a fault, such as `power-cut,seed=7`. The reply is a
//! line that begins with `ok` or `error`. The socket has mode 0600 from the start, so only its
//! owner can connect. Each client has its own thread, so a slow client does not delay the others.

use std::error::Error;
use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::{FileTypeExt, MetadataExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::io::Errno;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};

use crate::service::ServiceError;

/// A server that carries out orders.
pub(crate) trait OrderHandler: Send + Sync + 'static {
    /// Carries out an order. The reply, or the error's message, must be a single line.
    fn carry_out(self: &Arc<Self>, line: &str) -> Result<String, Box<dyn Error>>;
}

/// The error for a control socket that cannot be created.
#[derive(Debug, thiserror::Error)]
#[error("control socket {}: cannot create it: {error}", path.display())]
pub struct ControlError {
    /// The path of the socket.
    pub path: PathBuf,
    /// The system's error.
    pub error: io::Error,
}

/// A listening control socket.
#[derive(Debug)]
pub(crate) struct Control {
    socket: ListeningSocket,
}

/// A listening socket, whose file is removed when this is dropped. Another file that has taken its
/// place is kept.
#[derive(Debug)]
pub(crate) struct ListeningSocket {
    pub(crate) listener: UnixListener,
    path: PathBuf,
    /// The device and inode of the socket's file. They are not reused while the socket is open.
    identity: (u64, u64),
}

/// The maximum length of an order in bytes, including the newline.
const LINE_BYTES_MAX: u64 = 16 << 10;
/// The time limit for a client to send an order, from its first byte, and to accept each reply.
const LINE_TIMEOUT: Duration = Duration::from_secs(10);
/// The maximum number of simultaneous clients.
const CLIENTS_MAX: usize = 16;
/// The number of clients that may wait to be accepted.
const BACKLOG: i32 = 128;
/// The pause after a client could not be accepted. Without it, the loop would be busy until there
/// is a free file descriptor.
const ACCEPT_PAUSE: Duration = Duration::from_millis(100);
/// The time for which [`send_order`] waits for a reply. Orders to a volume wait for its members to
/// flush.
const REPLY_TIMEOUT: Duration = Duration::from_secs(60);

impl Control {
    pub(crate) fn open(path: &Path) -> Result<Control, ControlError> {
        let failed = |error| ControlError {
            path: path.to_owned(),
            error,
        };
        remove_stale_socket(path).map_err(failed)?;
        let socket = ListeningSocket::open(path, 0o600).map_err(|error| match error.kind() {
            // The system's message for this error mentions an address, which would be misleading
            // for a file.
            io::ErrorKind::AddrInUse => failed(io::Error::other(
                "the path exists; remove it if nothing uses it, or name another with --control",
            )),
            _ => failed(error),
        })?;
        Ok(Control { socket })
    }

    /// Starts a thread that accepts clients. Each client's orders are received in another thread.
    pub(crate) fn start<T: OrderHandler>(&self, handler: &Arc<T>) -> io::Result<()> {
        let listener = self.socket.listener.try_clone()?;
        // The thread waits for clients forever, and must not keep the server alive.
        let handler = Arc::downgrade(handler);
        let clients = Arc::new(AtomicUsize::new(0));
        let accept_clients = move || {
            accept_all(listener.incoming(), |client| {
                accept_client(client, &clients, &handler);
            });
        };
        let thread = thread::Builder::new().name("control".to_owned());
        thread.spawn(accept_clients).map(drop)
    }
}

/// Passes each client to `accept`, until the socket has been shut down. Clients that cannot be
/// accepted, for example because the process has no free file descriptor, are logged and skipped.
fn accept_all(
    clients: impl Iterator<Item = io::Result<UnixStream>>,
    mut accept: impl FnMut(UnixStream),
) {
    for client in clients {
        match client {
            Ok(client) => accept(client),
            // A server that ends has shut the socket down: see `accept(2)`, EINVAL.
            Err(error) if error.kind() == io::ErrorKind::InvalidInput => return,
            Err(error) => {
                tracing::warn!("a client of the control socket cannot be accepted: {error}");
                thread::sleep(ACCEPT_PAUSE);
            }
        }
    }
}

impl ListeningSocket {
    /// Creates a listening socket whose file has the given mode. Before that mode is set, only the
    /// owner has access, whatever the umask: on Linux, the file gets the mode that the socket has
    /// when it is bound.
    pub(crate) fn open(path: &Path, mode: u32) -> io::Result<ListeningSocket> {
        let socket: OwnedFd = rustix::net::socket_with(
            AddressFamily::UNIX,
            SocketType::STREAM,
            SocketFlags::CLOEXEC,
            None,
        )?;
        rustix::fs::fchmod(&socket, Mode::from_raw_mode(mode & 0o600))?;
        let address = SocketAddrUnix::new(path).map_err(|errno| match errno {
            Errno::NAMETOOLONG => io::Error::other(
                "the path of a socket has at most 107 bytes; name a shorter one, or set TMPDIR to a shorter path",
            ),
            other => other.into(),
        })?;
        rustix::net::bind(&socket, &address)?;
        let socket = ListeningSocket {
            listener: UnixListener::from(socket),
            path: path.to_owned(),
            identity: identity(path)?,
        };
        if mode & !0o600 != 0 {
            rustix::fs::chmod(path, Mode::from_raw_mode(mode))?;
        }
        rustix::net::listen(&socket.listener, BACKLOG)?;
        Ok(socket)
    }
}

impl Drop for ListeningSocket {
    fn drop(&mut self) {
        if identity(&self.path).is_ok_and(|found| found == self.identity) {
            let _ = std::fs::remove_file(&self.path);
        }
    }
}

/// Returns the device and inode of a file.
fn identity(path: &Path) -> io::Result<(u64, u64)> {
    let meta = std::fs::symlink_metadata(path)?;
    Ok((meta.dev(), meta.ino()))
}

/// Starts a thread for a client, unless there are too many clients.
fn accept_client<T: OrderHandler>(
    client: UnixStream,
    clients: &Arc<AtomicUsize>,
    handler: &Weak<T>,
) {
    let slot = ClientSlot(Arc::clone(clients));
    let refuse = |client: &UnixStream, why: &str| {
        let _ = client.set_write_timeout(Some(LINE_TIMEOUT));
        let mut client = client;
        let _ = writeln!(client, "error: {why}");
    };
    if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
        let why = format!("at most {CLIENTS_MAX} clients are served at a time; try again later");
        refuse(&client, &why);
        return;
    }
    let handler = Weak::clone(handler);
    let Ok(own) = client.try_clone() else { return };
    let run = move || {
        let _slot = slot;
        // An error means that the client disconnected, or accepts no replies. It is ignored.
        let _ = serve(&own, &handler);
    };
    let thread = thread::Builder::new().name("orders".to_owned());
    if let Err(error) = thread.spawn(run) {
        refuse(&client, &format!("cannot start a thread: {error}"));
    }
}

/// A client's share of the limit on simultaneous clients.
struct ClientSlot(Arc<AtomicUsize>);

impl Drop for ClientSlot {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client's input, with a time limit for each line.
struct TimedReader<'a> {
    client: &'a UnixStream,
    /// The end of the time limit. Between lines there is none: it begins with the first byte.
    until: Option<Instant>,
}

impl Read for TimedReader<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self
            .until
            .map(|until| until.saturating_duration_since(Instant::now()));
        if left.is_some_and(|left| left.is_zero()) {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.client.set_read_timeout(left)?;
        let read = (&mut &*self.client).read(into);
        self.until
            .get_or_insert_with(|| Instant::now() + LINE_TIMEOUT);
        match read {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::ErrorKind::TimedOut.into())
            }
            done => done,
        }
    }
}

/// Removes a socket that refuses connections, such as one left by a killed server. Any other file
/// is kept.
///
/// # Errors
/// Returns an error if the socket cannot be removed.
pub fn remove_stale_socket(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|one| one.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    if is_socket && UnixStream::connect(path).is_err_and(refused) {
        std::fs::remove_file(path)
    } else {
        Ok(())
    }
}

fn serve<T: OrderHandler>(client: &UnixStream, handler: &Weak<T>) -> io::Result<()> {
    client.set_write_timeout(Some(LINE_TIMEOUT))?;
    let until = None;
    // The buffer is larger than a line, so that a client that sends too much receives an error
    // before it is disconnected.
    let mut input =
        BufReader::with_capacity(2 * LINE_BYTES_MAX as usize, TimedReader { client, until });
    let mut line = Vec::new();
    loop {
        line.clear();
        let has_begun = !input.buffer().is_empty();
        input.get_mut().until = has_begun.then(|| Instant::now() + LINE_TIMEOUT);
        match (&mut input)
            .take(LINE_BYTES_MAX)
            .read_until(b'\n', &mut line)
        {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut && !line.is_empty() => {
                let seconds = LINE_TIMEOUT.as_secs();
                return writeln!(
                    &*client,
                    "error: an order must be complete within {seconds} s; nothing was done"
                );
            }
            Err(error) => return Err(error),
        }
        if !line.ends_with(b"\n") {
            // An incomplete line is not carried out, because its last value may be truncated.
            let bound = LINE_BYTES_MAX;
            return writeln!(
                &*client,
                "error: an order must be one line of at most {bound} bytes"
            );
        }
        // Invalid UTF-8 is not a valid order, and is rejected as such.
        let line = String::from_utf8_lossy(&line);
        let done = match handler.upgrade() {
            Some(handler) => handler.carry_out(line.trim()),
            None => Err(ServiceError::Stopped.into()),
        };
        let reply = match done {
            Ok(reply) => format!("ok: {reply}\n"),
            Err(error) => format!("error: {error}\n"),
        };
        (&*client).write_all(reply.as_bytes())?;
    }
}

/// Sends a one-line order to a control socket and returns the server's reply. The inner `Err` is
/// the server's reason for not carrying out the order.
///
/// # Errors
/// Returns an error if no server listens there, if no reply arrives, or if the reply begins with
/// neither `ok` nor `error`.
pub fn send_order(
    socket: &Path,
    line: &(impl fmt::Display + ?Sized),
) -> io::Result<Result<String, String>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(REPLY_TIMEOUT))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut reply = String::new();
    if BufReader::new(stream).read_line(&mut reply)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match reply.trim_end().split_once(": ") {
        Some(("ok", done)) => Ok(Ok(done.to_owned())),
        Some(("error", why)) => Ok(Err(why.to_owned())),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "not the control socket of a drive or a volume",
        )),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Are clients still accepted after one could not be?
    #[test]
    fn an_error_does_not_end_accepting() {
        let (one, other) = UnixStream::pair().unwrap();
        let clients = [Ok(one), Err(io::ErrorKind::Other.into()), Ok(other)];
        let mut accepted = 0;
        accept_all(clients.into_iter(), |_| accepted += 1);
        assert_eq!(accepted, 2);
    }

    /// Does accepting end when the server has shut the socket down?
    #[test]
    fn a_shutdown_ends_accepting() {
        let folder = tempfile::tempdir().unwrap();
        let socket = ListeningSocket::open(&folder.path().join("socket"), 0o600).unwrap();
        rustix::net::shutdown(&socket.listener, rustix::net::Shutdown::Both).unwrap();
        let mut errors = 0;
        let clients = socket.listener.incoming().take(2);
        accept_all(clients.inspect(|_| errors += 1), |_| unreachable!());
        assert_eq!(errors, 1);
    }

    /// Is the file of a socket removed at the end, but not another file that has taken its place?
    #[test]
    fn only_the_own_file_is_removed() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("socket");
        drop(ListeningSocket::open(&path, 0o600).unwrap());
        assert!(!path.exists());
        let socket = ListeningSocket::open(&path, 0o600).unwrap();
        std::fs::remove_file(&path).unwrap();
        std::fs::write(&path, "another").unwrap();
        drop(socket);
        assert_eq!(std::fs::read(&path).unwrap(), b"another");
    }
}

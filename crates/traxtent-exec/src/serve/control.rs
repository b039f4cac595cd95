//! The control socket: orders while a drive or a volume is served.
//!
//! A line is an order, of a drive a fault, `power-cut,seed=7`; the answer is a line that begins with `ok` or `error`. The
//! socket is the user's alone (mode 0600) from the moment it exists. Each client has a thread of its own, so a slow one
//! holds up nobody else.

use std::fmt;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::fd::OwnedFd;
use std::os::unix::fs::FileTypeExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::{Duration, Instant};

use rustix::fs::Mode;
use rustix::net::{AddressFamily, SocketAddrUnix, SocketFlags, SocketType};
use traxtent_core::disk::Fault;

use super::error::ServeError;
use super::keys::Key;
use super::paced::Paced;

/// What takes orders.
pub(crate) trait Orders: Send + Sync + 'static {
    /// Carries out an order; what it says fits a line.
    fn carry_out(self: &Arc<Self>, line: &str) -> Result<String, ServeError>;
}

/// A socket that exists as long as this.
#[derive(Debug)]
pub(crate) struct Control {
    path: PathBuf,
    listener: UnixListener,
}

/// No order takes a longer line.
const LINE_MAX: u64 = 16 << 10;
/// The time that a client has for a whole line, and for taking each answer.
const PATIENCE: Duration = Duration::from_secs(10);
/// The number of clients at a time.
const CLIENTS_MAX: usize = 16;
/// The number of clients that may wait to be accepted, as in the standard library.
const BACKLOG: i32 = 128;
/// No answer takes longer: what is ordered of a volume waits for flushes of its members.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

impl Control {
    pub(crate) fn open(path: &Path) -> Result<Control, ServeError> {
        let failed = |error| ServeError::file(Key::Control, path, "make", error);
        clear_left(path).map_err(failed)?;
        let listener = listen(path).map_err(|error| match error.kind() {
            // In the system's words an address is in use, which a file is not.
            io::ErrorKind::AddrInUse => failed(io::Error::other("something is there already")),
            _ => failed(error),
        })?;
        Ok(Control {
            path: path.to_owned(),
            listener,
        })
    }

    /// Takes orders from now on, of several clients at a time.
    pub(crate) fn start<T: Orders>(&self, to: &Arc<T>) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        // The thread waits for clients for good; it must not keep what is served that long.
        let to = Arc::downgrade(to);
        let clients = Arc::new(AtomicUsize::new(0));
        let take_orders = move || {
            for client in listener.incoming().map_while(Result::ok) {
                admit(client, &clients, &to);
            }
        };
        let thread = thread::Builder::new().name("control".to_owned());
        thread.spawn(take_orders).map(drop)
    }
}

/// A socket that nobody but its user can ever connect to, whatever the umask is: Linux gives the file the mode that the socket
/// has when it is bound.
fn listen(path: &Path) -> io::Result<UnixListener> {
    let socket: OwnedFd = rustix::net::socket_with(
        AddressFamily::UNIX,
        SocketType::STREAM,
        SocketFlags::CLOEXEC,
        None,
    )?;
    rustix::fs::fchmod(&socket, Mode::RUSR | Mode::WUSR)?;
    rustix::net::bind(&socket, &SocketAddrUnix::new(path)?)?;
    rustix::net::listen(&socket, BACKLOG)?;
    Ok(UnixListener::from(socket))
}

/// Gives a client a thread, unless too many have one.
fn admit<T: Orders>(client: UnixStream, clients: &Arc<AtomicUsize>, to: &Weak<T>) {
    let place = Place(Arc::clone(clients));
    let refuse = |client: &UnixStream, why: &str| {
        let _ = client.set_write_timeout(Some(PATIENCE));
        let mut client = client;
        let _ = writeln!(client, "error: {why}");
    };
    if clients.fetch_add(1, Ordering::Relaxed) >= CLIENTS_MAX {
        let why = format!("{CLIENTS_MAX} clients are served at a time; try again later");
        refuse(&client, &why);
        return;
    }
    let to = Weak::clone(to);
    let Ok(own) = client.try_clone() else { return };
    let run = move || {
        let _place = place;
        // A client that goes away in the middle has had its say.
        let _ = serve(&own, &to);
    };
    let thread = thread::Builder::new().name("orders".to_owned());
    if let Err(error) = thread.spawn(run) {
        refuse(&client, &format!("cannot start a thread: {error}"));
    }
}

/// A client's place among those that are served.
struct Place(Arc<AtomicUsize>);

impl Drop for Place {
    fn drop(&mut self) {
        self.0.fetch_sub(1, Ordering::Relaxed);
    }
}

/// A client's bytes, until a line takes too long.
struct Patient<'a> {
    client: &'a UnixStream,
    until: Instant,
}

impl Read for Patient<'_> {
    fn read(&mut self, into: &mut [u8]) -> io::Result<usize> {
        let left = self.until.saturating_duration_since(Instant::now());
        if left.is_zero() {
            return Err(io::ErrorKind::TimedOut.into());
        }
        self.client.set_read_timeout(Some(left))?;
        match (&mut &*self.client).read(into) {
            Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                Err(io::ErrorKind::TimedOut.into())
            }
            done => done,
        }
    }
}

impl Drop for Control {
    fn drop(&mut self) {
        let _ = std::fs::remove_file(&self.path);
    }
}

/// Removes a socket that a server left behind which was killed: nobody answers there any more. Anything else stays.
///
/// # Errors
/// If it cannot be removed.
pub fn clear_left(path: &Path) -> io::Result<()> {
    let is_socket = std::fs::symlink_metadata(path).is_ok_and(|one| one.file_type().is_socket());
    let refused = |error: io::Error| error.kind() == io::ErrorKind::ConnectionRefused;
    match is_socket && UnixStream::connect(path).is_err_and(refused) {
        true => std::fs::remove_file(path),
        false => Ok(()),
    }
}

fn serve<T: Orders>(client: &UnixStream, to: &Weak<T>) -> io::Result<()> {
    client.set_write_timeout(Some(PATIENCE))?;
    let until = Instant::now() + PATIENCE;
    // Room for more than a line: who sends too much is told so, and not cut off.
    let mut input = BufReader::with_capacity(2 * LINE_MAX as usize, Patient { client, until });
    let mut line = Vec::new();
    loop {
        line.clear();
        input.get_mut().until = Instant::now() + PATIENCE;
        match (&mut input).take(LINE_MAX).read_until(b'\n', &mut line) {
            Ok(0) => return Ok(()),
            Ok(_) => {}
            Err(error) if error.kind() == io::ErrorKind::TimedOut && !line.is_empty() => {
                let seconds = PATIENCE.as_secs();
                return writeln!(
                    &*client,
                    "error: an order's line takes at most {seconds} s; nothing was done"
                );
            }
            Err(error) => return Err(error),
        }
        if !line.ends_with(b"\n") {
            // Of a half line nothing is carried out: the seed may be cut off.
            let bound = LINE_MAX;
            return writeln!(
                &*client,
                "error: an order takes one line of at most {bound} bytes"
            );
        }
        // What is no text is no order either, and is answered as such.
        let line = String::from_utf8_lossy(&line);
        let done = match to.upgrade() {
            Some(to) => to.carry_out(line.trim()),
            None => Err(ServeError::Stopped),
        };
        let answer = match done {
            Ok(answer) => format!("ok: {answer}\n"),
            Err(error) => format!("error: {error}\n"),
        };
        (&*client).write_all(answer.as_bytes())?;
    }
}

impl Orders for Paced {
    fn carry_out(self: &Arc<Paced>, line: &str) -> Result<String, ServeError> {
        let fault: Fault = line.parse()?;
        let cut = self.inject(fault)?;
        Ok(cut.map_or_else(|| fault.to_string(), |cut| format!("power-cut, {cut}")))
    }
}

/// Gives an order, a line, at a control socket; gives the server's answer.
///
/// # Errors
/// If nobody listens there, or the answer does not come.
pub fn order(
    socket: &Path,
    line: &(impl fmt::Display + ?Sized),
) -> io::Result<Result<String, String>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(ANSWER_PATIENCE))?;
    stream.write_all(format!("{line}\n").as_bytes())?;
    let mut answer = String::new();
    if BufReader::new(stream).read_line(&mut answer)? == 0 {
        return Err(io::ErrorKind::UnexpectedEof.into());
    }
    match answer.trim_end().split_once(": ") {
        Some(("ok", done)) => Ok(Ok(done.to_owned())),
        Some(("error", why)) => Ok(Err(why.to_owned())),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "what listens there serves no drive and no volume",
        )),
    }
}

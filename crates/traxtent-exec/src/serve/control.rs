//! The control socket: orders while a drive or a volume is served.
//!
//! A line is an order, of a drive a fault, `power-cut,seed=7`; the answer is a line that begins with `ok` or `error`. The
//! socket is the user's alone (mode 0600).

use std::fmt;
use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{FileTypeExt, PermissionsExt};
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

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
/// Who orders nothing for so long is dropped.
const PATIENCE: Duration = Duration::from_secs(10);
/// No answer takes longer: what is ordered of a volume waits for flushes of its members.
const ANSWER_PATIENCE: Duration = Duration::from_secs(60);

impl Control {
    pub(crate) fn open(path: &Path) -> Result<Control, ServeError> {
        let failed = |error| ServeError::file(Key::Control, path, "make", error);
        clear_left(path).map_err(failed)?;
        let listener = UnixListener::bind(path).map_err(|error| match error.kind() {
            // In the system's words an address is in use, which a file is not.
            io::ErrorKind::AddrInUse => failed(io::Error::other("something is there already")),
            _ => failed(error),
        })?;
        let control = Control {
            path: path.to_owned(),
            listener,
        };
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(control)
    }

    /// Takes orders from now on, one client after another.
    pub(crate) fn start<T: Orders>(&self, to: &Arc<T>) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        // The thread waits for clients for good; it must not keep what is served that long.
        let to = Arc::downgrade(to);
        let take_orders = move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client that goes away in the middle has had its say.
                let _ = serve(&client, &to);
            }
        };
        let thread = thread::Builder::new().name("control".to_owned());
        thread.spawn(take_orders).map(drop)
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
    client.set_read_timeout(Some(PATIENCE))?;
    // Room for more than a line: who sends too much is told so, and not cut off.
    let mut input = BufReader::with_capacity(2 * LINE_MAX as usize, client);
    let mut line = Vec::new();
    loop {
        line.clear();
        if (&mut input).take(LINE_MAX).read_until(b'\n', &mut line)? == 0 {
            return Ok(());
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

//! The control socket: orders for faults while a drive is served.
//!
//! A line is a fault, `power-cut,seed=7`; the answer is a line that begins with `ok` or `error`. The socket
//! is the user's alone (mode 0600).

use std::fs::Permissions;
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::net::{UnixListener, UnixStream};
use std::path::{Path, PathBuf};
use std::sync::{Arc, Weak};
use std::thread;
use std::time::Duration;

use traxtent_core::disk::Fault;

use super::error::ServeError;
use super::keys::Key;
use super::paced::Paced;

/// A socket that exists as long as this.
#[derive(Debug)]
pub(super) struct Control {
    path: PathBuf,
    listener: UnixListener,
}

/// No fault takes a longer line.
const LINE_MAX: u64 = 4096;
/// Who orders nothing for so long is dropped.
const PATIENCE: Duration = Duration::from_secs(10);

impl Control {
    pub(super) fn open(path: &Path) -> Result<Control, ServeError> {
        let failed = |error| ServeError::file(Key::Control, path, "make", error);
        let listener = UnixListener::bind(path).map_err(failed)?;
        let control = Control {
            path: path.to_owned(),
            listener,
        };
        std::fs::set_permissions(path, Permissions::from_mode(0o600)).map_err(failed)?;
        Ok(control)
    }

    /// Takes orders from now on, one client after another.
    pub(super) fn start(&self, paced: &Arc<Paced>) -> io::Result<()> {
        let listener = self.listener.try_clone()?;
        // The thread waits for clients for good; it must not keep the drive that long.
        let paced = Arc::downgrade(paced);
        let take_orders = move || {
            for client in listener.incoming().map_while(Result::ok) {
                // A client that goes away in the middle has had its say.
                let _ = serve(&client, &paced);
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

fn serve(client: &UnixStream, paced: &Weak<Paced>) -> io::Result<()> {
    client.set_read_timeout(Some(PATIENCE))?;
    let mut input = BufReader::new(client);
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
                "error: a fault takes one line of at most {bound} bytes"
            );
        }
        // What is no text is no fault either, and is answered as such.
        let answer = match carry_out(String::from_utf8_lossy(&line).trim(), paced) {
            Ok(answer) => format!("ok: {answer}\n"),
            Err(error) => format!("error: {error}\n"),
        };
        (&*client).write_all(answer.as_bytes())?;
    }
}

fn carry_out(line: &str, paced: &Weak<Paced>) -> Result<String, ServeError> {
    let fault: Fault = line.parse()?;
    let paced = paced.upgrade().ok_or(ServeError::Stopped)?;
    let cut = paced.inject(fault)?;
    Ok(cut.map_or_else(|| fault.to_string(), |cut| format!("power-cut, {cut}")))
}

/// Orders a fault at a control socket; gives the server's answer.
///
/// # Errors
/// If nobody listens there, or the answer does not come.
pub fn order(socket: &Path, fault: &Fault) -> io::Result<Result<String, String>> {
    let mut stream = UnixStream::connect(socket)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    stream.write_all(format!("{fault}\n").as_bytes())?;
    let mut answer = String::new();
    BufReader::new(stream).read_line(&mut answer)?;
    match answer.trim_end().split_once(": ") {
        Some(("ok", done)) => Ok(Ok(done.to_owned())),
        Some(("error", why)) => Ok(Err(why.to_owned())),
        _ => Err(io::Error::new(
            io::ErrorKind::InvalidData,
            "what listens there is no served drive",
        )),
    }
}

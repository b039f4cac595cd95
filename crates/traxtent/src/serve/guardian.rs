//! A guardian process for a server that can hang in the kernel.
//!
//! A request to a member that hangs keeps its thread in the kernel, and with it the process, even
//! after the process has been killed. The user's shell should not wait for that. The command
//! therefore runs itself as a child process. The guardian ends once the child has ended, or has
//! shut down its sockets because it no longer serves. One of these sockets is connected to the
//! guardian. The guardian also owns the directory of the sockets, and removes the sockets that the
//! child leaves behind.

use std::env;
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::Path;
use std::process::{Child, ExitStatus};
use std::sync::mpsc::{self, Sender};
use std::thread;
use std::time::Duration;

use rustix::io::FdFlags;
use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use signal_hook::iterator::Signals;

use traxtent_io::device::is_ignored;
use traxtent_server::control::remove_stale_socket;

use super::folder::private_folder;
use super::session::{GUARDIAN_VARIABLE, exit_with};
use crate::failure::{Failure, Result};
use crate::invocation;

/// The time within which the child should exit after it has shut down its sockets. The kernel needs
/// seconds to free a large file that has been deleted.
const LINGERING: Duration = Duration::from_secs(3);

/// An event of the child.
enum Event {
    Exited(std::io::Result<ExitStatus>),
    /// The child has shut down its sockets.
    Silent,
}

/// Runs a server in a child process. In the child, this function calls `serve` with a directory for
/// its sockets. `socket` is the socket that the user has named, if any.
pub(crate) fn guarded(
    socket: Option<&Path>,
    serve: impl FnOnce(&Path) -> Result<()>,
) -> Result<()> {
    let Ok(variable) = env::var(GUARDIAN_VARIABLE) else {
        let folder = private_folder()?;
        let ended = guard(folder.path());
        // A socket that refuses connections no longer has a server.
        let _ = socket.map(remove_stale_socket);
        return ended;
    };
    let (guardian, folder) = variable.split_once(' ').unwrap_or((&variable, "."));
    follow(guardian)?;
    serve(Path::new(folder))
}

/// Arranges for this process to end when its guardian ends.
fn follow(guardian: &str) -> Result<()> {
    let tied = rustix::process::set_parent_process_death_signal(Some(Signal::TERM));
    tied.map_err(|errno| Failure::Io(format!("the server cannot be tied to its parent: {errno}")))?;
    let parent = rustix::process::getppid().map_or(0, |pid| pid.as_raw_nonzero().get());
    if guardian == parent.to_string() {
        Ok(())
    } else {
        Err(Failure::Io("the server's parent has ended".to_owned()))
    }
}

fn guard(folder: &Path) -> Result<()> {
    let failed = |error: std::io::Error| Failure::Io(format!("cannot start the server: {error}"));
    // Signals are caught before there is a child that would miss them.
    let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
    let signals = [SIGINT, SIGTERM, SIGQUIT, SIGUSR1];
    let mut signals = Signals::new(signals.into_iter().chain(hangup)).map_err(failed)?;
    let (own, childs) = UnixStream::pair().map_err(failed)?;
    rustix::io::fcntl_setfd(&childs, FdFlags::empty()).map_err(|errno| failed(errno.into()))?;
    let child = invocation::again()
        .map_err(failed)?
        .env(
            GUARDIAN_VARIABLE,
            format!("{} {}", std::process::id(), folder.display()),
        )
        .spawn()
        .map_err(failed)?;
    drop(childs);
    let id = child.id();
    thread::spawn(move || {
        for signal in signals.forever() {
            pass_on(id, signal);
        }
    });
    let (sender, events) = mpsc::channel();
    watch(child, own, sender);
    let status = match events.recv().expect("a thread reports the child's end") {
        Event::Exited(status) => status,
        Event::Silent => match events.recv_timeout(LINGERING) {
            Ok(Event::Exited(status)) => status,
            _ => {
                return Err(Failure::Io(format!(
                    "the server (process {id}) has stopped serving, but the kernel keeps it until \
                     the member responds, or until the space of a deleted member is free"
                )));
            }
        },
    };
    exit_with(Some(status.map_err(failed)?))
}

/// Sends an event when the child ends, and one when its socket is shut down.
fn watch(mut child: Child, mut socket: UnixStream, sender: Sender<Event>) {
    let exited = sender.clone();
    // The receiver is gone once the guardian has decided.
    thread::spawn(move || exited.send(Event::Exited(child.wait())));
    thread::spawn(move || {
        // Nothing is ever sent.
        let _ = socket.read(&mut [0]);
        let _ = sender.send(Event::Silent);
    });
}

fn pass_on(id: u32, signal: i32) {
    let pid = i32::try_from(id).ok().and_then(Pid::from_raw);
    if let (Some(pid), Some(signal)) = (pid, Signal::from_named_raw(signal)) {
        // The child has possibly ended already.
        let _ = rustix::process::kill_process(pid, signal);
    }
}

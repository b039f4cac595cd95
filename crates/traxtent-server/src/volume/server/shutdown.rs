//! The shutdown of a server whose members do not respond.
//!
//! A volume is stopped cleanly by writing its superblocks. A member that does not respond would
//! delay this by the member time-out. The server does not wait that long: it ends as in a crash,
//! from which the volume can recover.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use rustix::net::Shutdown;

use super::VolumeServer;
use crate::volume::files::{UnresponsiveMember, with_timeout};

/// The message, after a device's path, that the server has ended but its process remains.
pub const LINGERING_MESSAGE: &str =
    "requests to it have not returned; the server's process remains until the kernel returns them";

/// The time after which a shutdown no longer waits for a member that has not responded for the same
/// time.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1500);

/// The poll interval during shutdown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time limit for the final message, which blocks if nobody reads it.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(100);

/// The exit status of a server that has ended as in a crash.
const EXIT_STATUS: i32 = 3;

impl VolumeServer {
    /// Limits the duration of a shutdown. This does not return, so call it in a separate thread
    /// when the shutdown begins. If requests wait for a member that does not respond, the process
    /// ends without stopping the volume cleanly. The next start recovers the volume.
    pub fn end_in_time(&self) {
        let begun = Instant::now();
        loop {
            thread::sleep(POLL_INTERVAL);
            if begun.elapsed() >= SHUTDOWN_TIMEOUT
                && let Some(silent) = self.volume().members().waited_for(SHUTDOWN_TIMEOUT)
            {
                self.end(&silent);
            }
        }
    }

    fn end(&self, silent: &UnresponsiveMember) -> ! {
        let UnresponsiveMember {
            member,
            path,
            seconds,
        } = silent;
        let path = path.display();
        let message = format!(
            "member {member} has not responded for {seconds:.1} s: the volume is not stopped cleanly; the next \
             start recovers it; {path}: {LINGERING_MESSAGE}"
        );
        let log = move || tracing::error!("{message}");
        let _ = with_timeout(MESSAGE_TIMEOUT, log);
        self.close_control();
        close_sockets();
        signal_hook::low_level::exit(EXIT_STATUS)
    }
}

/// Closes all connections and listening sockets, because the kernel could keep the process and its
/// sockets alive. Standard streams that are sockets are left open.
pub(super) fn close_sockets() {
    let Ok(entries) = std::fs::read_dir("/proc/self/fd") else {
        return;
    };
    let target = |number: &str| std::fs::read_link(Path::new("/proc/self/fd").join(number)).ok();
    let given = ["0", "1", "2"].map(target);
    for entry in entries.flatten() {
        let name = entry.file_name();
        let name = name.to_string_lossy();
        let Some(what) = target(&name) else { continue };
        let is_socket = what.to_string_lossy().starts_with("socket:");
        if is_socket
            && !given.contains(&Some(what))
            && let Ok(number) = name.parse()
        {
            shut_down(number);
        }
    }
}

#[allow(unsafe_code)]
fn shut_down(number: i32) {
    // SAFETY: the process is ending. If the number no longer refers to a socket, the call fails.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    let _ = rustix::net::shutdown(socket, Shutdown::Both);
}

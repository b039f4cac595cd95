//! The shutdown of a server whose members do not respond.
//!
//! A volume is stopped cleanly by writing its superblocks. A member that does not respond delays
//! this by the member time-out. Shutdown does not wait that long; the server ends as in a crash,
//! which volumes survive.

use std::path::Path;
use std::thread;
use std::time::{Duration, Instant};

use rustix::fd::BorrowedFd;
use rustix::net::Shutdown;

use super::VolumeServer;
use crate::volume::files::{UnresponsiveMember, with_timeout};

/// The message, after a device's path, of a server that has ended while its process remains.
pub const LINGERING_MESSAGE: &str =
    "requests to it have not returned; the server's process remains until the kernel returns them";

/// The time that members have for an orderly shutdown, and the silence after which a member is not
/// waited for.
const SHUTDOWN_TIMEOUT: Duration = Duration::from_millis(1500);

/// The poll interval during shutdown.
const POLL_INTERVAL: Duration = Duration::from_millis(50);

/// The time limit for the final message, which may have no reader.
const MESSAGE_TIMEOUT: Duration = Duration::from_millis(100);

/// The exit status of a server that has ended as in a crash.
const EXIT_STATUS: i32 = 3;

impl VolumeServer {
    /// Limits the duration of a shutdown; call it once the server has been told to end. If requests
    /// wait for a member that does not respond, the process ends without stopping the volume. The
    /// members keep their state, and the next start recovers the volume.
    pub fn end_in_time(&self) {
        let told = Instant::now();
        loop {
            thread::sleep(POLL_INTERVAL);
            if told.elapsed() >= SHUTDOWN_TIMEOUT
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
        let words = format!(
            "member {member} has not responded for {seconds:.1} s: the volume is not stopped cleanly; the next \
             start recovers it; {path}: {LINGERING_MESSAGE}"
        );
        let say = move || tracing::error!("{words}");
        let _ = with_timeout(MESSAGE_TIMEOUT, say);
        self.close_control();
        close_sockets();
        signal_hook::low_level::exit(EXIT_STATUS)
    }
}

/// Closes all connections and listening sockets, because the kernel may keep the process alive, and
/// with it its sockets. Sockets that the process received as its standard streams are left open.
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
    // SAFETY: the process is ending. Whatever file the number refers to by now, it is a socket or
    // the call fails.
    let socket = unsafe { BorrowedFd::borrow_raw(number) };
    let _ = rustix::net::shutdown(socket, Shutdown::Both);
}

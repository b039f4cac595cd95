//! Setup and submission of io_uring, for both commands and requests.

use std::io;

use io_uring::Submitter;

use super::error::UblkError;

/// Submits a ring's entries, and waits for completions. Returns early, with fewer completions, if a
/// signal arrives or the kernel is short of memory.
pub(super) fn submit_and_wait(submitter: &Submitter<'_>, completions: usize) {
    if let Err(error) = submitter.submit_and_wait(completions)
        && !is_transient(&error)
    {
        // The kernel may use the memory of outstanding operations for an unknown time.
        tracing::error!("io_uring_enter: {error}");
        std::process::abort();
    }
}

fn is_transient(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
    )
}

/// Returns the error of a ring that cannot be set up.
pub(super) fn error(error: io::Error) -> UblkError {
    match error.kind() {
        io::ErrorKind::PermissionDenied | io::ErrorKind::Unsupported => {
            UblkError::IoUringDisabled { error }
        }
        _ => UblkError::IoUring(error),
    }
}

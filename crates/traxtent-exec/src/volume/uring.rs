//! Operations that the kernel carries out side by side, by its io_uring.

use std::cell::RefCell;
use std::io;

use io_uring::IoUring;
use io_uring::squeue::Entry;

/// So many are under way at once; more wait for their turn.
const ENTRIES: u32 = 64;

thread_local! {
    /// A thread's own ring, with the process that made it; none where the kernel refuses. Nothing is under way between two calls.
    static RING: RefCell<(u32, Option<IoUring>)> = const { RefCell::new((0, None)) };
}

/// Carries out operations, and tells each one's `user_data` and result (see `io_uring_enter(2)`) as it ends. False where the
/// kernel refuses: then nothing was done.
///
/// # Safety
/// The files and the memory of the entries must be there until this returns, and the memory be nobody else's.
#[allow(unsafe_code)]
pub(super) unsafe fn carry_out(
    mut entries: impl ExactSizeIterator<Item = Entry>,
    mut ended: impl FnMut(u64, i32),
) -> bool {
    RING.with_borrow_mut(|own| {
        let process = std::process::id();
        if own.0 != process {
            // Not the one before a fork: it is the parent's too.
            *own = (process, IoUring::new(ENTRIES).ok());
        }
        let Some(ring) = &mut own.1 else { return false };
        let mut under_way = 0;
        while entries.len() + under_way > 0 {
            let room = ENTRIES as usize - under_way;
            for entry in entries.by_ref().take(room) {
                // SAFETY: what it points to is there until it has ended, as the caller promises and this waits for.
                unsafe { ring.submission().push(&entry) }.expect("there is room");
                under_way += 1;
            }
            if let Err(error) = ring.submit_and_wait(under_way)
                && !is_passing(&error)
            {
                // The kernel may have the caller's memory, and there is no telling until when.
                eprintln!("traxtent: io_uring_enter: {error}");
                std::process::abort();
            }
            for completion in ring.completion() {
                ended(completion.user_data(), completion.result());
                under_way -= 1;
            }
        }
        true
    })
}

/// Whether the same call will do later.
fn is_passing(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::Interrupted | io::ErrorKind::WouldBlock | io::ErrorKind::ResourceBusy
    )
}

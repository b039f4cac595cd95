//! The directories of servers' sockets.
//!
//! A server removes its directory when it ends. A killed server leaves its directory behind, with
//! sockets that refuse connections; a later server removes it. Only directories of the same user
//! are considered. A directory that contains anything but sockets is kept.

use std::fs::{self, DirEntry, Permissions};
use std::os::unix::fs::{FileTypeExt, MetadataExt, PermissionsExt};
use std::path::Path;
use std::time::Duration;

use tempfile::TempDir;
use traxtent_server::control::remove_stale_socket;

use crate::failure::{Failure, Result};

/// The beginning of the names of servers' directories. It is more specific than the program's name,
/// because a user can name a directory of another kind after the program.
const PREFIX: &str = "traxtent-serve-";

/// The mode of a server's directory: only its owner can enter it.
const MODE: u32 = 0o700;

/// The minimum age of a directory that is removed. A starting server creates its directory first,
/// and its sockets later.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// Creates a directory for sockets that only its owner can enter, whatever the umask. Before that,
/// removes the directories of killed servers.
pub(super) fn private_folder() -> Result<TempDir> {
    let parent = std::env::temp_dir();
    remove_abandoned(&parent);
    let mut folder = tempfile::Builder::new();
    folder.prefix(PREFIX);
    folder.permissions(Permissions::from_mode(MODE));
    folder
        .tempdir_in(&parent)
        .map_err(|error| Failure::file(&parent, &error))
}

/// Removes the directories of killed servers. Errors are ignored: a directory that cannot be
/// removed stays.
fn remove_abandoned(parent: &Path) {
    let entries = fs::read_dir(parent).into_iter().flatten().flatten();
    for entry in entries.filter(is_own) {
        let path = entry.path();
        let inside: Vec<DirEntry> = fs::read_dir(&path)
            .into_iter()
            .flatten()
            .flatten()
            .collect();
        let is_socket = |entry: &DirEntry| entry.file_type().is_ok_and(|kind| kind.is_socket());
        if inside.iter().all(is_socket) {
            for socket in inside {
                let _ = remove_stale_socket(&socket.path());
            }
            // This fails if a socket is left because a server listens on it.
            let _ = fs::remove_dir(&path);
        }
    }
}

/// Returns whether an entry is a directory that [`private_folder`] created for this user more than
/// [`START_TIMEOUT`] ago.
fn is_own(entry: &DirEntry) -> bool {
    let has_prefix = entry.file_name().to_string_lossy().starts_with(PREFIX);
    has_prefix
        && entry.metadata().is_ok_and(|found| {
            let age = found.modified().ok().and_then(|at| at.elapsed().ok());
            found.is_dir()
                && found.uid() == rustix::process::geteuid().as_raw()
                && found.mode() & 0o777 == MODE
                && age.is_some_and(|age| age > START_TIMEOUT)
        })
}

#[cfg(test)]
mod tests {
    use std::fs::File;
    use std::os::unix::net::UnixListener;
    use std::path::PathBuf;
    use std::time::SystemTime;

    use super::*;

    /// Creates a directory like that of a server that started long ago.
    fn old_folder(parent: &Path, name: &str, fill: impl FnOnce(&Path)) -> PathBuf {
        let path = parent.join(format!("{PREFIX}{name}"));
        fs::create_dir(&path).unwrap();
        fs::set_permissions(&path, Permissions::from_mode(MODE)).unwrap();
        fill(&path);
        let long_ago = SystemTime::now() - 2 * START_TIMEOUT;
        File::open(&path).unwrap().set_modified(long_ago).unwrap();
        path
    }

    /// Are the directories of killed servers removed? Are those of running and starting servers
    /// kept, and those with other files or names?
    #[test]
    fn abandoned_folders() {
        let parent = tempfile::tempdir().unwrap();
        let parent = parent.path();
        let killed = old_folder(parent, "killed", |path| {
            drop(UnixListener::bind(path.join("socket")).unwrap());
            drop(UnixListener::bind(path.join("a.control")).unwrap());
        });
        let empty = old_folder(parent, "empty", |_| ());
        let mut listening = None;
        let running = old_folder(parent, "running", |path| {
            listening = Some(UnixListener::bind(path.join("socket")).unwrap());
        });
        let foreign = old_folder(parent, "foreign", |path| {
            drop(UnixListener::bind(path.join("socket")).unwrap());
            fs::write(path.join("notes"), "mine").unwrap();
        });
        let starting = parent.join(format!("{PREFIX}starting"));
        fs::create_dir(&starting).unwrap();
        fs::set_permissions(&starting, Permissions::from_mode(MODE)).unwrap();
        let users = parent.join("traxtent-mine");
        fs::rename(old_folder(parent, "mine", |_| ()), &users).unwrap();
        remove_abandoned(parent);
        assert!(users.exists());
        assert!(!killed.exists() && !empty.exists());
        assert!(
            running.join("socket").exists(),
            "removed a running server's socket"
        );
        assert!(foreign.join("socket").exists() && foreign.join("notes").exists());
        assert!(starting.exists());
    }
}

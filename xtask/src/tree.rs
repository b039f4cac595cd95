//! A copy of the tracked files, in which code can be changed without touching the working tree.

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};

use crate::shell;

/// Creates the directory `tree` below `home`, next to a link to the reference data. Returns its
/// path.
pub(crate) fn prepare(home: &Path) -> Result<PathBuf> {
    let tree = home.join("tree");
    fs::create_dir_all(&tree)?;
    // The link may be there from an earlier run.
    let _ = std::os::unix::fs::symlink(shell::root().join("../shared"), home.join("shared"));
    Ok(tree)
}

/// Makes a directory contain exactly the tracked files as they are in the working tree. Files that
/// are the same are not touched, so that builds of them stay valid.
pub(crate) fn copy(tree: &Path) -> Result<()> {
    let root = shell::root();
    let root_text = root.to_str().context("the root's name is not UTF-8")?;
    let list = shell::output("git", ["-C", root_text, "ls-files"])?;
    let tracked: BTreeSet<&Path> = list.lines().map(Path::new).collect();
    for path in &tracked {
        let (from, to) = (root.join(path), tree.join(path));
        if let Ok(link) = fs::read_link(&from) {
            if fs::read_link(&to).ok().as_ref() != Some(&link) {
                fs::create_dir_all(to.parent().context("it is below the root")?)?;
                std::os::unix::fs::symlink(link, &to)?;
            }
            continue;
        }
        let Ok(bytes) = fs::read(&from) else {
            // The file was deleted, and the deletion is not committed yet.
            continue;
        };
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        fs::create_dir_all(to.parent().context("it is below the root")?)?;
        fs::copy(&from, &to).with_context(|| to.display().to_string())?;
        // Cargo builds the file again only if its time is later than that of the previous build.
        fs::File::options()
            .write(true)
            .open(&to)?
            .set_modified(std::time::SystemTime::now())?;
    }
    remove_others(tree, tree, &tracked)
}

/// Removes the files below `folder` that are not tracked.
fn remove_others(tree: &Path, folder: &Path, tracked: &BTreeSet<&Path>) -> Result<()> {
    for entry in fs::read_dir(folder)? {
        let path = entry?.path();
        if path.is_dir() && !path.is_symlink() {
            remove_others(tree, &path, tracked)?;
        } else if !tracked.contains(path.strip_prefix(tree)?) {
            fs::remove_file(&path)?;
        }
    }
    Ok(())
}

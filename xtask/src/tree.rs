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
    // A file may have been deleted without a commit of the deletion.
    let is_there = |path: &&Path| root.join(path).symlink_metadata().is_ok();
    let tracked = list.lines().map(Path::new).filter(is_there).collect();
    copy_files(root, tree, &tracked)
}

/// Makes `tree` contain exactly these files of `root`.
fn copy_files(root: &Path, tree: &Path, tracked: &BTreeSet<&Path>) -> Result<()> {
    for path in tracked {
        let (from, to) = (root.join(path), tree.join(path));
        let link = fs::read_link(&from).ok();
        if fs::read_link(&to).ok() != link {
            // One of the two is a link, or both are, to different files.
            let _ = fs::remove_file(&to);
        } else if link.is_some() {
            continue;
        }
        fs::create_dir_all(to.parent().context("it is below the root")?)?;
        if let Some(link) = link {
            std::os::unix::fs::symlink(link, &to)?;
            continue;
        }
        let bytes = fs::read(&from).with_context(|| from.display().to_string())?;
        if fs::read(&to).is_ok_and(|there| there == bytes) {
            continue;
        }
        fs::copy(&from, &to).with_context(|| to.display().to_string())?;
        // Cargo builds the file again only if its time is later than that of the previous build.
        fs::File::options()
            .write(true)
            .open(&to)?
            .set_modified(std::time::SystemTime::now())?;
    }
    remove_others(tree, tree, tracked)
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

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a copy follow changed and deleted files, files replaced by links, and links replaced by
    /// other links or by files?
    #[test]
    fn a_copy_follows_its_files() {
        let folder = std::env::temp_dir().join(format!("traxtent-copy-{}", std::process::id()));
        let (root, tree) = (folder.join("root"), folder.join("tree"));
        fs::create_dir_all(root.join("below")).unwrap();
        fs::create_dir(&tree).unwrap();
        let link = |to: &str, name: &str| {
            let _ = fs::remove_file(root.join(name));
            std::os::unix::fs::symlink(to, root.join(name)).unwrap();
        };
        let copy = |names: &[&'static str]| {
            let tracked = names.iter().map(Path::new).collect();
            copy_files(&root, &tree, &tracked).unwrap();
        };
        for name in ["a", "b", "below/c"] {
            fs::write(root.join(name), name).unwrap();
        }
        link("a", "link");
        copy(&["a", "b", "below/c", "link"]);
        fs::write(root.join("a"), "changed").unwrap();
        link("below/c", "link");
        link("link", "b");
        copy(&["a", "b", "link"]);
        assert_eq!(fs::read(tree.join("a")).unwrap(), b"changed");
        assert_eq!(
            fs::read_link(tree.join("link")).unwrap(),
            Path::new("below/c")
        );
        assert_eq!(fs::read_link(tree.join("b")).unwrap(), Path::new("link"));
        assert!(!tree.join("below/c").exists());
        // A link becomes a file again, and what it pointed to stays.
        fs::remove_file(root.join("link")).unwrap();
        fs::write(root.join("link"), "file").unwrap();
        copy(&["a", "link"]);
        assert_eq!(fs::read(tree.join("link")).unwrap(), b"file");
        assert!(fs::read_link(tree.join("link")).is_err());
        fs::remove_dir_all(folder).unwrap();
    }
}

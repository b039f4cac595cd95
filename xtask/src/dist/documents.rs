//! The documents in the packages. Links in [`FILES`] to files that the packages do not contain are
//! removed.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

use super::{copy_folder, put};
use crate::shell;

/// The files of the project that are shipped with the command.
const FILES: &[&str] = &[
    "README.md",
    "CHANGELOG.md",
    "CONTRIBUTING.md",
    "LICENSE-MIT",
    "LICENSE-APACHE",
    "bindings/c/README.md",
    "bindings/c/include/traxtent.h",
];
/// The directories that are shipped: the book, and the examples of the C library.
const FOLDERS: &[&str] = &["docs", "bindings/c/examples"];

/// Copies the documents to `folder`.
pub(super) fn lay_out(folder: &Path) -> Result<()> {
    for name in FOLDERS {
        copy_folder(&shell::root().join(name), &folder.join(name))?;
    }
    for name in FILES {
        put(&shell::root().join(name), &folder.join(name), 0o644)?;
    }
    for name in FILES.iter().filter(|name| name.ends_with(".md")) {
        let page = folder.join(name);
        let text = fs::read_to_string(&page).with_context(|| page.display().to_string())?;
        let beside = page.parent().unwrap_or(folder);
        let text = without_dead_links(&text, |link| beside.join(link).exists());
        fs::write(&page, text)?;
    }
    Ok(())
}

/// Replaces each link to a file that does not exist with its text.
fn without_dead_links(text: &str, exists: impl Fn(&str) -> bool) -> String {
    let (mut written, mut rest) = (String::new(), text);
    while let Some((before, after)) = rest.split_once("](") {
        let (Some(label), Some(end)) = (before.rfind('['), after.find(')')) else {
            written.push_str(before);
            written.push_str("](");
            rest = after;
            continue;
        };
        let target = &after[..end];
        let file = target.split('#').next().unwrap_or_default();
        if file.is_empty() || target.contains(':') || exists(file) {
            written.push_str(before);
            written.push_str("](");
            rest = after;
        } else {
            written.push_str(&before[..label]);
            written.push_str(&before[label + 1..]);
            rest = &after[end + 1..];
        }
    }
    written + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does every link in the pages of [`FILES`] lead to a file that is shipped too, and does the
    /// README still link to the book and to the C library?
    #[test]
    fn links_lead_to_shipped_files() {
        let folder = shell::target_dir().join("documents-of-the-packages");
        lay_out(&folder).unwrap();
        for name in FILES.iter().filter(|name| name.ends_with(".md")) {
            let page = folder.join(name);
            let text = fs::read_to_string(&page).unwrap();
            for link in text.split("](").skip(1) {
                let target = link.split([')', '#']).next().unwrap();
                let is_local = !target.is_empty() && !target.contains(':');
                let leads = page.parent().unwrap().join(target).exists();
                assert!(!is_local || leads, "{name}: {target}");
            }
        }
        let readme = fs::read_to_string(folder.join("README.md")).unwrap();
        assert!(readme.contains("](docs/start/install.md)"));
        assert!(readme.contains("[C](bindings/c)"));
        assert!(readme.contains("the libraries in Rust (of a checkout), [C]"));
        fs::remove_dir_all(&folder).unwrap();
    }

    /// Are links of other kinds, and brackets that are not links, kept?
    #[test]
    fn other_text_is_kept() {
        let text = "a [b](c.md) [d](gone.md#e), [f](#g), [h](https://i), x[1](y";
        let kept = "a [b](c.md) d, [f](#g), [h](https://i), x[1](y";
        assert_eq!(without_dead_links(text, |link| link == "c.md"), kept);
    }
}

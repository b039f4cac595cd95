//! nbdkit and the plugin: where they are.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};

/// The plugin as cargo builds it.
const BUILT: &str = "libtraxtent_nbdkit.so";
/// The plugin as it is installed.
const INSTALLED: &str = "nbdkit-traxtent-plugin.so";

/// Where nbdkit is.
pub(super) fn nbdkit() -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join("nbdkit"))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            Failure::Io(
                "nbdkit is not installed: it is in the package nbdkit (apt install nbdkit, dnf install nbdkit)"
                    .to_owned(),
            )
        })
}

/// Where the plugin is: beside this program, where cargo builds it, or among nbdkit's own.
pub(super) fn plugin(nbdkit: &Path) -> Result<PathBuf> {
    let program = env::current_exe().unwrap_or_default();
    let beside = program.parent().unwrap_or(Path::new("."));
    let own = plugin_folder(nbdkit);
    let places = [
        Some(beside.join(INSTALLED)),
        Some(beside.join(BUILT)),
        Some(beside.join("deps").join(BUILT)),
        own.map(|folder| folder.join(INSTALLED)),
    ];
    let found = places.iter().flatten().find(|file| file.is_file()).cloned();
    found.ok_or_else(|| {
        let tried: Vec<String> = places
            .iter()
            .flatten()
            .map(|place| place.display().to_string())
            .collect();
        Failure::Io(format!(
            "the plugin for nbdkit is in none of {}: `cargo build --package traxtent-nbdkit` makes it",
            tried.join(", ")
        ))
    })
}

/// The folder of nbdkit's own plugins.
fn plugin_folder(nbdkit: &Path) -> Option<PathBuf> {
    configured(nbdkit, "plugindir=")
}

/// Whether nbdkit has a filter.
pub(super) fn has_filter(nbdkit: &Path, name: &str) -> bool {
    let folder = configured(nbdkit, "filterdir=");
    folder.is_some_and(|folder| folder.join(format!("nbdkit-{name}-filter.so")).is_file())
}

/// A folder that nbdkit was built to look in.
fn configured(nbdkit: &Path, key: &str) -> Option<PathBuf> {
    let output = Command::new(nbdkit).arg("--dump-config").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let folder = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(folder.into())
}

//! The locations of nbdkit and the plugin.

use std::env;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::failure::{Failure, Result};

/// The plugin's file name when built by cargo.
const BUILT: &str = "libtraxtent_nbdkit.so";
/// The plugin's file name when installed.
const INSTALLED: &str = "nbdkit-traxtent-plugin.so";

/// Returns the path of nbdkit.
pub(super) fn nbdkit() -> Result<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path)
        .map(|folder| folder.join("nbdkit"))
        .find(|file| file.is_file())
        .ok_or_else(|| {
            Failure::Io(
                "nbdkit is not installed; install the package nbdkit (apt install nbdkit, dnf install nbdkit)"
                    .to_owned(),
            )
        })
}

/// Returns the path of the plugin: next to this program, in cargo's output directory, or among
/// nbdkit's own plugins.
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
            "the nbdkit plugin is in none of {}; build it with `cargo build --package traxtent-nbdkit`",
            tried.join(", ")
        ))
    })
}

/// Returns the directory of nbdkit's own plugins.
fn plugin_folder(nbdkit: &Path) -> Option<PathBuf> {
    configured(nbdkit, "plugindir=")
}

/// Returns whether nbdkit has a filter.
pub(super) fn has_filter(nbdkit: &Path, name: &str) -> bool {
    let folder = configured(nbdkit, "filterdir=");
    folder.is_some_and(|folder| folder.join(format!("nbdkit-{name}-filter.so")).is_file())
}

/// Returns a directory from nbdkit's build configuration.
fn configured(nbdkit: &Path, key: &str) -> Option<PathBuf> {
    let output = Command::new(nbdkit).arg("--dump-config").output().ok()?;
    let text = String::from_utf8(output.stdout).ok()?;
    let folder = text.lines().find_map(|line| line.strip_prefix(key))?;
    Some(folder.into())
}

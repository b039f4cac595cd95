//! The man pages and shell completions, made from the command's own definition.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap_complete::{Shell, generate_to};

/// Writes `man/*.1` and `completions/*` for bash, zsh and fish into `folder`.
pub(crate) fn write(folder: &Path) -> Result<ExitCode> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    clap_mangen::generate_to(traxtent::command(), &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut traxtent::command(), "traxtent", &completions)?;
    }
    Ok(ExitCode::SUCCESS)
}

//! The man pages and shell completions, made from the command's own definition.

use std::fs;
use std::path::Path;
use std::process::ExitCode;

use anyhow::Result;
use clap::Command;
use clap_complete::{Shell, generate_to};

/// Writes `man/*.1` and `completions/*` for bash, zsh and fish into `folder`.
pub(crate) fn write(folder: &Path) -> Result<ExitCode> {
    let (man, completions) = (folder.join("man"), folder.join("completions"));
    fs::create_dir_all(&man)?;
    fs::create_dir_all(&completions)?;
    let mut command = traxtent::command().disable_help_subcommand(true);
    command.build();
    write_man_pages(&command, &man)?;
    for shell in [Shell::Bash, Shell::Zsh, Shell::Fish] {
        generate_to(shell, &mut traxtent::command(), "traxtent", &completions)?;
    }
    Ok(ExitCode::SUCCESS)
}

/// Writes the manual page of a command, and those of its subcommands that are not hidden.
fn write_man_pages(command: &Command, folder: &Path) -> Result<()> {
    for verb in command.get_subcommands().filter(|verb| !verb.is_hide_set()) {
        write_man_pages(verb, folder)?;
    }
    let name = command.get_display_name().unwrap_or(command.get_name());
    fs::write(
        folder.join(format!("{name}.1")),
        traxtent::man_page(command)?,
    )?;
    Ok(())
}

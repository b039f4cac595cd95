//! The definition of the `traxtent` command, from which its man pages and shell completions are made.

/// The command line of `traxtent`.
pub fn command() -> clap::Command {
    clap::Command::new("traxtent")
        .version(env!("CARGO_PKG_VERSION"))
        .about(env!("CARGO_PKG_DESCRIPTION"))
}

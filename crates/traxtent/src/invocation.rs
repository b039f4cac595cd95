//! How this command was started, so that it can start itself again.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::sync::OnceLock;

/// The program and arguments of the command in this process.
static CURRENT: OnceLock<Invocation> = OnceLock::new();

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program, and the arguments that come before those of the command: an interpreter needs
    /// the name of a script. Empty stands for this process's own executable.
    pub program: Vec<OsString>,
    /// The arguments of the command, without its name.
    pub arguments: Vec<OsString>,
}

impl Invocation {
    /// Returns the invocation of a process that is this command.
    pub fn of_process() -> Invocation {
        Invocation {
            program: Vec::new(),
            arguments: env::args_os().skip(1).collect(),
        }
    }

    /// Keeps the invocation for [`again`].
    pub(crate) fn keep(self) {
        // A process that runs the command twice keeps the first invocation.
        let _ = CURRENT.set(self);
    }
}

/// Returns a command that starts this one again with the same arguments.
pub(crate) fn again() -> io::Result<Command> {
    let current = CURRENT.get_or_init(Invocation::of_process);
    let mut command = match current.program.split_first() {
        Some((program, first)) => {
            let mut command = Command::new(program);
            command.args(first);
            command
        }
        None => Command::new(env::current_exe()?),
    };
    command.args(&current.arguments);
    Ok(command)
}

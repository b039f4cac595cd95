//! How this command was started, so that it can start itself again.

use std::env;
use std::ffi::OsString;
use std::io;
use std::process::Command;
use std::sync::{Mutex, MutexGuard};

/// The program and arguments of this process's latest command.
static CURRENT: Mutex<Option<Invocation>> = Mutex::new(None);

/// A program and its arguments.
#[derive(Clone, Debug)]
pub struct Invocation {
    /// The program, and any arguments before those of the command, such as the script that an
    /// interpreter runs. If empty, this process's own executable is the program.
    pub program: Vec<OsString>,
    /// The arguments of the command, without its name.
    pub arguments: Vec<OsString>,
}

impl Invocation {
    /// Returns the invocation of this process, whose executable must be the command itself.
    pub fn of_process() -> Invocation {
        Invocation {
            program: Vec::new(),
            arguments: env::args_os().skip(1).collect(),
        }
    }

    /// Keeps the invocation for [`current`] and [`again`].
    pub(crate) fn keep(self) {
        *held() = Some(self);
    }
}

fn held() -> MutexGuard<'static, Option<Invocation>> {
    CURRENT.lock().expect("no holder of the lock panics")
}

/// Returns the invocation of the running command.
pub(crate) fn current() -> Invocation {
    held().get_or_insert_with(Invocation::of_process).clone()
}

/// Returns a command that starts this one again with the same arguments.
pub(crate) fn again() -> io::Result<Command> {
    let current = current();
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

#[cfg(test)]
mod tests {
    use super::*;

    /// If a process runs the command twice, as a Python program can, does the second command start
    /// itself again, and not the first?
    #[test]
    fn the_last_command_is_started_again() {
        for word in ["first", "second"] {
            let program = vec!["interpreter".into(), "script".into()];
            let arguments = vec![word.into()];
            Invocation { program, arguments }.keep();
            let command = again().expect("the program is named");
            assert_eq!(command.get_program(), "interpreter");
            assert_eq!(command.get_args().collect::<Vec<_>>(), ["script", word]);
            assert_eq!(current().arguments, [word]);
        }
    }
}

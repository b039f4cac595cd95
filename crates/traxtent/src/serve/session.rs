//! A session that serves exports while a command runs, or until a signal.

use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::Arc;
use std::thread;
use std::time::{Duration, Instant};

use rustix::process::{Pid, Signal};
use signal_hook::consts::{SIGCHLD, SIGHUP, SIGINT, SIGQUIT, SIGTERM, SIGUSR1};
use traxtent_io::device::{is_ignored, write_back};
use traxtent_server::fuse::FuseError;
use traxtent_server::service::Export;
use traxtent_units::system_message;

use super::front_ends::{FrontEndArgs, FrontEnds};
use crate::failure::{Failure, Result, note, warn};

/// The environment variable that tells the server of a volume the guardian's process ID and the
/// directory for its sockets.
pub(super) const GUARDIAN_VARIABLE: &str = "TRAXTENT_GUARDIAN";

/// The time between the signal that asks a command to end and the one that kills it.
const GRACE: Duration = Duration::from_secs(5);

/// The time to wait for a killed command. The kernel can delay the end of a command that waits for
/// a drive.
const REAP_TIMEOUT: Duration = Duration::from_millis(200);

/// The poll interval while waiting for a command to end.
const POLL_INTERVAL: Duration = Duration::from_millis(10);

/// The pause between attempts to unmount files that are in use.
const UNMOUNT_INTERVAL: Duration = Duration::from_millis(200);

/// The signals that a server receives. They are caught before the server creates anything that
/// it has to remove at the end.
pub(crate) struct Signals(signal_hook::iterator::Signals);

impl Signals {
    pub(crate) fn catch() -> Result<Signals> {
        let signals = [SIGINT, SIGTERM, SIGQUIT, SIGUSR1, SIGCHLD];
        // A server under `nohup` outlives its terminal.
        let hangup = (!is_ignored(SIGHUP)).then_some(SIGHUP);
        let caught = signal_hook::iterator::Signals::new(signals.into_iter().chain(hangup));
        caught
            .map(Signals)
            .map_err(|error| Failure::Io(format!("cannot catch signals: {error}")))
    }
}

/// Exports, with the front ends that serve them.
pub(crate) struct Session {
    exports: Vec<Export>,
    front_ends: FrontEnds,
    signals: Signals,
}

impl Session {
    /// Starts the services and the front ends. Older outputs are replaced only after the clients'
    /// socket listens. Each client has up to `outstanding` requests carried out at a time. Sockets
    /// that are not named are created in `folder`.
    pub(crate) fn start(
        exports: Vec<Export>,
        args: &FrontEndArgs,
        outstanding: usize,
        folder: &Path,
        signals: Signals,
    ) -> Result<Session> {
        // A panic in a serving thread is a bug. A server that continued after it could return wrong
        // data.
        let report = std::panic::take_hook();
        std::panic::set_hook(Box::new(move |panic| {
            report(panic);
            std::process::abort();
        }));
        let begin = || {
            let listener = args.listen(folder)?;
            args.check(&exports)?;
            start(&exports)?;
            args.start(&exports, listener, outstanding)
        };
        let front_ends = begin();
        if front_ends.is_err() {
            // The first error is the one to report.
            let _ = stop(&exports);
        }
        let front_ends = front_ends?;
        Ok(Session {
            exports,
            front_ends,
            signals,
        })
    }

    /// Returns the front ends.
    pub(crate) fn front_ends(&self) -> &FrontEnds {
        &self.front_ends
    }

    /// Returns the exports.
    pub(crate) fn exports(&self) -> &[Export] {
        &self.exports
    }

    /// Serves while the command runs or, without a command, until a signal, and then stops
    /// everything. Returns the command's status, and the result of stopping.
    ///
    /// # Errors
    /// Returns an error if the command cannot be run or killed.
    pub(crate) fn run(
        mut self,
        command: &[String],
        variables: &[(String, String)],
    ) -> Result<(Option<ExitStatus>, Result<()>)> {
        let ended = match command.split_first() {
            None => {
                self.wait_for_end();
                Ok(None)
            }
            Some((program, arguments)) => {
                let mut command = Command::new(program);
                command.args(arguments);
                command.envs(self.front_ends.variables(&self.exports));
                command.envs(variables.iter().cloned());
                command.env_remove(GUARDIAN_VARIABLE);
                let ended = self.run_command(&mut command).map(Some);
                self.wait_for_openers();
                self.write_back();
                ended
            }
        };
        let stopped = self.stop(!command.is_empty());
        Ok((ended?, stopped))
    }

    /// Waits for a signal that ends the session; after Ctrl-C, also until files and loop devices
    /// are no longer in use. Writes receipts when requested by SIGUSR1.
    fn wait_for_end(&mut self) {
        for signal in self.signals.0.forever() {
            match signal {
                SIGUSR1 => write_receipts(&self.exports),
                SIGCHLD => {}
                SIGINT => return self.wait_for_users(),
                _ => {
                    limit_shutdown(&self.exports);
                    return self.write_back();
                }
            }
        }
    }

    /// Releases files and loop devices. If some are in use, waits until the kernel has written back
    /// the data that it has cached for the loop devices, such as that of file systems on them, or
    /// for another signal that ends the session.
    fn write_back(&mut self) {
        if self.front_ends.unmount().is_ok() {
            return;
        }
        let devices = self.front_ends.all_loop_devices();
        let work = move || {
            for device in devices {
                if let Err(error) = write_back(&device) {
                    let reason = system_message(&error);
                    warn(format!(
                        "{}: data cannot be written back: {reason}",
                        device.display()
                    ));
                }
            }
        };
        let name = "write back".to_owned();
        let Ok(thread) = thread::Builder::new().name(name).spawn(work) else {
            warn("cannot start a thread that writes back the kernel's cached data");
            return;
        };
        while !thread.is_finished() && !self.ends_at_once() {
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Waits until files and loop devices are no longer in use, or for another signal that ends the
    /// session.
    fn wait_for_users(&mut self) {
        let Err(error) = self.front_ends.unmount() else {
            return;
        };
        warn(error);
        note(
            "serving continues until files and loop devices are no longer in use; another Ctrl-C stops at once",
        );
        while !self.ends_at_once() {
            thread::sleep(UNMOUNT_INTERVAL);
            if self.front_ends.unmount().is_ok() {
                return;
            }
        }
    }

    /// Waits at most [`GRACE`] for programs that have a loop device open which is not mounted, or
    /// for a signal that ends the session. System services examine a device that a command has just
    /// written.
    fn wait_for_openers(&mut self) {
        let begun = Instant::now();
        while let Err(FuseError::LoopInUse { mounted_at, .. }) = self.front_ends.unmount() {
            if !mounted_at.is_empty() || begun.elapsed() > GRACE || self.ends_at_once() {
                return;
            }
            thread::sleep(UNMOUNT_INTERVAL);
        }
    }

    /// Handles the signals since the last call. Returns whether one ends the session.
    fn ends_at_once(&mut self) -> bool {
        let mut ends = false;
        for signal in self.signals.0.pending() {
            match signal {
                SIGUSR1 => write_receipts(&self.exports),
                SIGCHLD => {}
                _ => ends = true,
            }
        }
        ends
    }

    /// Runs a command. After a signal that ends the session, the command is terminated, and killed
    /// after [`GRACE`]. After Ctrl-C, which a terminal also sends to the command, it first has this
    /// time to end by itself.
    fn run_command(&mut self, command: &mut Command) -> Result<ExitStatus> {
        let program = PathBuf::from(command.get_program());
        let failed = |error: std::io::Error| Failure::file(&program, &error);
        let mut child = command
            .spawn()
            .map_err(|error| cannot_run(&program, &error))?;
        let mut is_interrupted = false;
        for signal in self.signals.0.forever() {
            match signal {
                SIGUSR1 => write_receipts(&self.exports),
                SIGCHLD => {
                    if let Some(status) = child.try_wait().map_err(failed)? {
                        return Ok(status);
                    }
                }
                signal => {
                    is_interrupted = signal == SIGINT;
                    break;
                }
            }
        }
        if is_interrupted && let Some(status) = self.wait_for_interrupted(&mut child) {
            return Ok(status);
        }
        limit_shutdown(&self.exports);
        end(child, &program)
    }

    /// Waits until an interrupted command has ended; `None` if it has not after [`GRACE`], or after
    /// another signal that ends the session.
    fn wait_for_interrupted(&mut self, child: &mut Child) -> Option<ExitStatus> {
        let begun = Instant::now();
        while begun.elapsed() < GRACE {
            if let Some(status) = wait_for(child, POLL_INTERVAL) {
                return Some(status);
            }
            if self.ends_at_once() {
                return None;
            }
        }
        None
    }

    /// Stops the front ends, then the services.
    fn stop(mut self, has_run_command: bool) -> Result<()> {
        limit_shutdown(&self.exports);
        let front_ends = self.front_ends.stop(has_run_command);
        let services = stop(&self.exports);
        front_ends.and(services)
    }
}

/// Returns the error for a command that cannot be started.
fn cannot_run(program: &Path, error: &std::io::Error) -> Failure {
    let hint = match program.to_str() {
        Some(text) if text.contains(' ') => "; for a line of a shell, use -- sh -c 'LINE'",
        _ => "",
    };
    Failure::Io(format!(
        "cannot run the command {}: {}{hint}",
        program.display(),
        system_message(error)
    ))
}

/// Terminates a command, and kills it if it does not end within [`GRACE`].
fn end(mut child: Child, program: &Path) -> Result<ExitStatus> {
    terminate(&child);
    if let Some(status) = wait_for(&mut child, GRACE) {
        return Ok(status);
    }
    let _ = child.kill();
    wait_for(&mut child, REAP_TIMEOUT)
        .ok_or_else(|| Failure::Io(format!("{}: cannot be killed", program.display())))
}

fn wait_for(child: &mut Child, time: Duration) -> Option<ExitStatus> {
    let begun = Instant::now();
    loop {
        if let Ok(Some(status)) = child.try_wait() {
            return Some(status);
        }
        if begun.elapsed() >= time {
            return None;
        }
        thread::sleep(POLL_INTERVAL);
    }
}

fn terminate(child: &Child) {
    let id = i32::try_from(child.id()).ok();
    if let Some(pid) = id.and_then(Pid::from_raw) {
        // The process has possibly ended in the meantime.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

fn write_receipts(exports: &[Export]) {
    for export in exports {
        if let Err(error) = export.service.write_receipt() {
            warn(error);
        }
    }
}

/// Limits the time by which requests to unresponsive hardware can delay the end.
fn limit_shutdown(exports: &[Export]) {
    for export in exports {
        let service = Arc::clone(&export.service);
        let thread = thread::Builder::new().name("end".to_owned());
        // Without a thread, stopping can take longer.
        let _ = thread.spawn(move || service.limit_shutdown());
    }
}

/// Starts all services. If one cannot be started, those before it are stopped.
fn start(exports: &[Export]) -> Result<()> {
    for (index, export) in exports.iter().enumerate() {
        if let Err(error) = export.service.start() {
            // The first error is the one to report.
            let _ = stop(&exports[..index]);
            return Err(Failure::Io(error.to_string()));
        }
    }
    Ok(())
}

/// Stops all services, and returns their errors, one in each line.
fn stop(exports: &[Export]) -> Result<()> {
    let stopped = exports.iter().map(|export| export.service.stop());
    let errors: Vec<String> = stopped
        .filter_map(|result| Some(result.err()?.to_string()))
        .collect();
    if errors.is_empty() {
        return Ok(());
    }
    Err(Failure::Io(errors.join("\n")))
}

/// Refuses `--` without a command after it, such as an empty variable: the server would run until a
/// signal instead.
pub(crate) fn check_command(command: &[String]) -> Result<()> {
    if command.is_empty() && std::env::args_os().any(|argument| argument == "--") {
        return Err(Failure::input(
            "--: no command follows; omit it to serve until Ctrl-C",
        ));
    }
    Ok(())
}

/// Returns the failure of the command that was run, if it failed, and otherwise the result of what
/// came after it. If both failed, the latter is printed.
pub(crate) fn end_with(status: Option<ExitStatus>, after: Result<()>) -> Result<()> {
    let failed = exit_with(status);
    if failed.is_ok() {
        return after;
    }
    if let Err(error) = after {
        error.report();
    }
    failed
}

/// Returns the failure that gives this command the exit status of the one that it ran.
pub(crate) fn exit_with(status: Option<ExitStatus>) -> Result<()> {
    match status {
        Some(status) if !status.success() => Err(Failure::Status(code_of(status))),
        _ => Ok(()),
    }
}

/// Returns the exit status as shells report it.
pub(super) fn code_of(status: ExitStatus) -> u8 {
    use std::os::unix::process::ExitStatusExt;
    let code = status
        .code()
        .or_else(|| status.signal().map(|signal| 128 + signal));
    code.and_then(|code| u8::try_from(code).ok()).unwrap_or(3)
}

#[cfg(test)]
mod tests {
    use std::io;
    use std::sync::Arc;
    use std::sync::atomic::{AtomicBool, Ordering};

    use traxtent_server::service::{BlockService, BlockSizes, Export, ServiceError};

    use super::start;

    /// A service that cannot be stopped cleanly, and that starts only if `starts`.
    #[derive(Debug)]
    struct Faulty {
        starts: bool,
        was_stopped: AtomicBool,
    }

    impl BlockService for Faulty {
        fn start(&self) -> Result<(), ServiceError> {
            if self.starts {
                Ok(())
            } else {
                Err(ServiceError::Thread(io::ErrorKind::WouldBlock.into()))
            }
        }
        fn stop(&self) -> Result<(), ServiceError> {
            self.was_stopped.store(true, Ordering::Relaxed);
            Err(ServiceError::ClockEnded)
        }
        fn bytes(&self) -> u64 {
            4096
        }
        fn block_sizes(&self) -> BlockSizes {
            unreachable!("no client connects")
        }
        fn read(&self, _: &mut [u8], _: u64) -> Result<(), ServiceError> {
            unreachable!("no client connects")
        }
        fn write(&self, _: Vec<u8>, _: u64, _: bool) -> Result<(), ServiceError> {
            unreachable!("no client connects")
        }
        fn zero(&self, _: u64, _: u64, _: bool) -> Result<(), ServiceError> {
            unreachable!("no client connects")
        }
        fn trim(&self, _: u64, _: u64, _: bool) -> Result<(), ServiceError> {
            unreachable!("no client connects")
        }
        fn flush(&self) -> Result<(), ServiceError> {
            unreachable!("no client connects")
        }
    }

    /// If a service cannot be started, and the one before it cannot be stopped, is the error that
    /// of the start? Is only the service stopped that was started?
    #[test]
    fn the_first_error_is_reported() {
        let services = [true, false, true].map(|starts| {
            Arc::new(Faulty {
                starts,
                was_stopped: AtomicBool::new(false),
            })
        });
        let exports = services.each_ref().map(|service| Export {
            name: "faulty".to_owned(),
            description: "a service that fails".to_owned(),
            service: Arc::<Faulty>::clone(service),
            read_only: false,
        });
        let failure = start(&exports).unwrap_err();
        let line = failure.line().unwrap_or_default();
        assert!(line.starts_with("cannot start a thread: "), "{line}");
        let stopped = services.each_ref();
        let stopped = stopped.map(|service| service.was_stopped.load(Ordering::Relaxed));
        assert_eq!(stopped, [true, false, false]);
    }
}

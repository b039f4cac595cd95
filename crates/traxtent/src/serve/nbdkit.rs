//! nbdkit as a child process.

use std::cell::RefCell;
use std::io::{BufRead, BufReader};
use std::path::PathBuf;
use std::process::{Child, Command, ExitStatus, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, JoinHandle};
use std::time::{Duration, Instant};

use parking_lot::Mutex;
use rustix::process::{Pid, Signal};
use traxtent_server::control::remove_stale_socket;
use traxtent_server::volume::LINGERING_MESSAGE;

use super::attach::Address;
use super::{POLL_INTERVAL, tools};
use crate::failure::{Failure, Result, warn};

/// The time that a server's process has to exit after it has reported that the kernel may keep it.
const LINGERING: Duration = Duration::from_millis(200);
/// The maximum number of threads of all connections together. nbdkit starts the threads of each
/// connection when it is opened. If the host cannot start more threads, the whole server ends.
/// Small machines can start about 30,000.
const THREADS_MAX: u32 = 8192;

/// The configuration of a server.
pub(crate) struct ServerConfig<'a> {
    pub(crate) address: &'a Address,
    /// nbdkit writes this file when it is ready.
    pub(crate) pidfile: PathBuf,
    /// The number of requests per connection that are processed at once.
    pub(crate) threads: u32,
    /// The plugin's parameters.
    pub(crate) keys: Vec<(&'static str, String)>,
}

impl ServerConfig<'_> {
    pub(crate) fn key(&self, name: &str) -> &str {
        let found = self.keys.iter().find(|(key, _)| *key == name);
        found.map_or("", |(_, value)| value)
    }
}

/// A running nbdkit. It never outlives this process, because of `--exit-with-parent`.
pub(crate) struct Nbdkit {
    child: RefCell<Child>,
    /// The thread that relays nbdkit's messages.
    stderr_reader: RefCell<Option<JoinHandle<()>>>,
    messages: Arc<NbdkitMessages>,
    /// The socket, which nbdkit creates and does not remove.
    socket: Option<PathBuf>,
}

/// The messages from before nbdkit was ready. Later ones are relayed.
#[derive(Default)]
struct NbdkitMessages {
    ready: AtomicBool,
    /// The time at which nbdkit reported that it has stopped serving, but that the kernel may keep
    /// its process.
    lingers: Mutex<Option<Instant>>,
    lines: Mutex<Vec<String>>,
}

impl Nbdkit {
    /// Starts nbdkit, and waits until it accepts clients.
    pub(crate) fn start(config: &ServerConfig<'_>) -> Result<Nbdkit> {
        let program = tools::nbdkit()?;
        let plugin = tools::plugin(&program)?;
        let mut command = Command::new(&program);
        command.args(["--foreground", "--exit-with-parent"]);
        command.args(["--threads", &config.threads.to_string()]);
        command.arg("--pidfile").arg(&config.pidfile);
        let clients = (THREADS_MAX / config.threads.max(1)).max(1);
        let has_limit = tools::has_filter(&program, "limit");
        if has_limit {
            command.arg("--filter=limit");
        } else {
            warn("nbdkit has no filter `limit`, so the number of clients is not bounded");
        }
        match config.address {
            Address::Socket(path) => {
                remove_stale_socket(path).map_err(|error| Failure::file(path, &error))?;
                command.arg("--unix").arg(path)
            }
            Address::Port(ip, port) => {
                command.args(["--ipaddr", &ip.to_string(), "--port", &port.to_string()])
            }
        };
        command.arg(&plugin);
        command.args(
            config
                .keys
                .iter()
                .map(|(key, value)| format!("{key}={value}")),
        );
        if has_limit {
            command.arg(format!("limit={clients}"));
        }
        command.stdin(Stdio::null()).stderr(Stdio::piped());
        let mut child = command
            .spawn()
            .map_err(|error| Failure::file(&program, &error))?;
        let messages = Arc::new(NbdkitMessages::default());
        let stderr_reader = child.stderr.take().map(|stderr| {
            let messages = Arc::clone(&messages);
            thread::spawn(move || messages.listen(BufReader::new(stderr)))
        });
        let mut server = Nbdkit {
            child: RefCell::new(child),
            stderr_reader: RefCell::new(stderr_reader),
            messages,
            socket: None,
        };
        while !config.pidfile.exists() {
            if server.ended()?.is_some() {
                return Err(server.final_message());
            }
            thread::sleep(POLL_INTERVAL);
        }
        server.messages.ready();
        // The socket is recorded only now: if nbdkit could not create it, it belongs to another
        // process.
        if let Address::Socket(path) = config.address {
            server.socket = Some(path.clone());
        }
        Ok(server)
    }

    /// Serves while a command runs; returns the command's status. A signal stops both.
    pub(crate) fn serve_while(
        &self,
        command: &mut Command,
        stopped: &AtomicBool,
    ) -> Result<ExitStatus> {
        let program = PathBuf::from(command.get_program());
        let mut running = command
            .spawn()
            .map_err(|error| Failure::file(&program, &error))?;
        let mut is_stopping = false;
        loop {
            if stopped.load(Ordering::Relaxed) && !is_stopping {
                // If the signal came from a terminal, both have already received it.
                is_stopping = true;
                terminate(&running);
                self.terminate();
            }
            let status = running
                .try_wait()
                .map_err(|error| Failure::file(&program, &error))?;
            if let Some(status) = status {
                return Ok(status);
            }
            // A command whose drive is gone may hang forever.
            let ended = self.ended();
            if !matches!(ended, Ok(None)) {
                let _ = running.kill();
                reap(running);
                ended?;
                return Err(self.final_message());
            }
            thread::sleep(POLL_INTERVAL);
        }
    }

    /// Serves until `stopped` is set.
    pub(crate) fn serve_until(&self, stopped: &AtomicBool) -> Result<()> {
        while !stopped.load(Ordering::Relaxed) {
            // nbdkit also received the signal if it came from a terminal.
            match self.ended()? {
                Some(status) if status.success() => return Ok(()),
                Some(_) => return Err(self.final_message()),
                None => thread::sleep(POLL_INTERVAL),
            }
        }
        Ok(())
    }

    /// Stops nbdkit, and waits for its final messages.
    pub(crate) fn stop(&self) -> Result<()> {
        if self.ended()?.is_none() {
            self.terminate();
        }
        let status = loop {
            match self.ended()? {
                Some(status) => break status,
                None => thread::sleep(POLL_INTERVAL),
            }
        };
        if let Some(stderr_reader) = self.stderr_reader.take() {
            stderr_reader.join().expect("it does not panic");
        }
        if status.success() {
            Ok(())
        } else {
            Err(Failure::Io(format!("nbdkit ended with {status}")))
        }
    }

    fn terminate(&self) {
        terminate(&self.child.borrow());
    }

    /// Returns nbdkit's status if it has ended. Returns an error if the kernel keeps its process.
    fn ended(&self) -> Result<Option<ExitStatus>> {
        let status = self.child.borrow_mut().try_wait().map_err(wait_error)?;
        if status.is_none() && self.messages.lingers() {
            let id = self.child.borrow().id();
            return Err(Failure::Io(format!(
                "nbdkit (process {id}) has stopped serving, but the kernel keeps it until the member responds"
            )));
        }
        Ok(status)
    }

    /// Returns nbdkit's first message, which states why it ended.
    fn final_message(&self) -> Failure {
        if let Some(stderr_reader) = self.stderr_reader.take() {
            stderr_reader.join().expect("it does not panic");
        }
        let lines = self.messages.lines.lock();
        Failure::Io(match lines.first() {
            Some(line) => line.clone(),
            None => "nbdkit has ended".to_owned(),
        })
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        if matches!(self.ended(), Ok(None)) {
            self.terminate();
        }
        while matches!(self.ended(), Ok(None)) {
            thread::sleep(POLL_INTERVAL);
        }
        if let Some(socket) = &self.socket {
            let _ = std::fs::remove_file(socket);
        }
    }
}

impl NbdkitMessages {
    /// Relays nbdkit's lines until it ends, and stores those from before it is ready.
    fn listen(&self, stderr: impl BufRead) {
        for line in stderr.lines().map_while(std::io::Result::ok) {
            if line.ends_with(LINGERING_MESSAGE) {
                *self.lingers.lock() = Some(Instant::now());
            }
            let line = line.strip_prefix("nbdkit: ").unwrap_or(&line);
            let line = line.strip_prefix("error: ").unwrap_or(line);
            let line = line.strip_prefix("traxtent: ").unwrap_or(line);
            if self.ready.load(Ordering::Relaxed) {
                warn(line);
            } else {
                let mut lines = self.lines.lock();
                lines.push(line.to_owned());
            }
        }
    }

    /// Returns whether enough time has passed since nbdkit reported that the kernel may keep its
    /// process.
    fn lingers(&self) -> bool {
        let said = *self.lingers.lock();
        said.is_some_and(|said| said.elapsed() > LINGERING)
    }

    fn ready(&self) {
        self.ready.store(true, Ordering::Relaxed);
        let mut lines = self.lines.lock();
        lines.drain(..).for_each(warn);
    }
}

/// Catches signals, and records them in a flag.
pub(crate) fn catch(signals: &[i32]) -> Result<Arc<AtomicBool>> {
    let caught = Arc::new(AtomicBool::new(false));
    for &signal in signals {
        signal_hook::flag::register(signal, Arc::clone(&caught))
            .map_err(|error| Failure::Io(format!("signal {signal}: {error}")))?;
    }
    Ok(caught)
}

fn terminate(child: &Child) {
    let id = i32::try_from(child.id()).ok();
    if let Some(pid) = id.and_then(Pid::from_raw) {
        // The process may have ended in the meantime.
        let _ = rustix::process::kill_process(pid, Signal::TERM);
    }
}

/// Waits for a killed command to exit. Gives up if the kernel keeps it, because it waits for the
/// drive that is no longer served.
fn reap(mut killed: Child) {
    let started = Instant::now();
    while matches!(killed.try_wait(), Ok(None)) && started.elapsed() < LINGERING {
        thread::sleep(POLL_INTERVAL);
    }
}

fn wait_error(error: std::io::Error) -> Failure {
    Failure::Io(format!("nbdkit: {error}"))
}

//! Servers and the client of benchmarks: served drives and volumes, nbdkit's plugins for
//! comparison, and fio.

use std::fs::{self, File};
use std::io::Read;
use std::os::unix::net::UnixStream;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use anyhow::{Context, Result, bail, ensure};

use crate::{packages, shell};

/// The time within which a server must greet its clients.
const START_TIMEOUT: Duration = Duration::from_secs(60);

/// The built command, and a working directory.
pub(super) struct Bench {
    pub(super) folder: PathBuf,
    /// The release binary of the command.
    pub(super) traxtent: PathBuf,
    seed: u64,
}

/// A server to start, with its arguments.
pub(super) enum Served {
    /// `traxtent serve`
    Drive(Vec<String>),
    /// `traxtent volume serve`
    Volume(Vec<String>),
    /// nbdkit with one of its own plugins, for comparison
    Nbdkit(Vec<String>),
}

/// A load for fio.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pattern: &'a str,
    block: &'a str,
    depth: u32,
}

impl<'a> Load<'a> {
    /// Creates a load from fio's names for a pattern and a block size, and the queue depth.
    pub(super) fn new(pattern: &'a str, block: &'a str, depth: u32) -> Load<'a> {
        Load {
            pattern,
            block,
            depth,
        }
    }
}

impl Bench {
    /// Builds the command and makes a new directory. If one of the programs is missing, prints a
    /// message and returns `None`.
    pub(super) fn build(folder: &str, seed: u64, programs: &[&str]) -> Result<Option<Bench>> {
        packages::install(packages::FOR_SERVE);
        for program in programs {
            if shell::program(program).is_none() {
                println!("skipped: {program} is not installed");
                return Ok(None);
            }
        }
        let mut build = shell::cargo();
        build.args(["build", "--release", "--package", "traxtent"]);
        shell::run(&mut build)?;
        let folder = shell::target_dir().join(folder);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        Ok(Some(Bench {
            folder,
            traxtent: shell::target_dir().join("release/traxtent"),
            seed,
        }))
    }

    /// Starts a server, and waits until it greets its clients.
    pub(super) fn serve(&self, what: &Served) -> Result<Server> {
        let socket = self.folder.join("socket");
        if socket.exists() {
            fs::remove_file(&socket)?;
        }
        let mut command = match what {
            Served::Drive(arguments) => self.traxtent(&["serve"], arguments, &socket),
            Served::Volume(arguments) => self.traxtent(&["volume", "serve"], arguments, &socket),
            Served::Nbdkit(arguments) => nbdkit(arguments, &socket),
        };
        let messages = self.folder.join("messages");
        let child = command
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(File::create(&messages)?)
            .spawn()?;
        let id = child.id();
        let mut server = Server { child, id, socket };
        let started = Instant::now();
        while !greets(&server.socket) {
            if server.child.try_wait()?.is_some() || started.elapsed() > START_TIMEOUT {
                bail!(
                    "the server is not ready: {}",
                    fs::read_to_string(&messages)?
                );
            }
            thread::sleep(Duration::from_millis(10));
        }
        if matches!(what, Served::Volume(_)) {
            let children = fs::read_to_string(format!("/proc/{id}/task/{id}/children"))?;
            server.id = children
                .trim()
                .parse()
                .context("the command does not have exactly one child")?;
        }
        Ok(server)
    }

    fn traxtent(&self, verb: &[&str], arguments: &[String], socket: &Path) -> Command {
        let mut command = Command::new(&self.traxtent);
        command
            .args(verb)
            .args(arguments)
            .arg("--socket")
            .arg(socket);
        command
    }

    /// Returns the requests per second that fio completes.
    pub(super) fn fio(&self, server: &Server, load: Load<'_>, more: &[&str]) -> Result<f64> {
        let mut fio = Command::new("fio");
        fio.args([
            "--name=load",
            "--ioengine=nbd",
            "--output-format=json",
            "--norandommap",
        ]);
        fio.arg(format!(
            "--uri=nbd+unix:///?socket={}",
            server.socket.display()
        ));
        fio.arg(format!("--rw={}", load.pattern))
            .arg(format!("--bs={}", load.block));
        fio.arg(format!("--iodepth={}", load.depth)).args(more);
        fio.arg(format!("--randseed={}", self.seed))
            .current_dir(&self.folder);
        let printed = shell::stdout_of(&mut fio)?;
        // fio may print a message before the JSON.
        let json = printed.find('{').map_or("", |start| &printed[start..]);
        let report: serde_json::Value = serde_json::from_str(json).context("fio's report")?;
        let job = &report["jobs"][0];
        let way = if load.pattern.contains("read") {
            "read"
        } else {
            "write"
        };
        job[way]["iops"]
            .as_f64()
            .context("fio's report has no rate")
    }
}

fn nbdkit(arguments: &[String], socket: &Path) -> Command {
    let mut nbdkit = Command::new("nbdkit");
    nbdkit.args(["--foreground", "--exit-with-parent", "--threads", "64"]);
    nbdkit.arg("--unix").arg(socket).args(arguments);
    nbdkit
}

/// Returns whether a server greets its clients on a socket.
fn greets(socket: &Path) -> bool {
    UnixStream::connect(socket).is_ok_and(|mut client| client.read_exact(&mut [0; 18]).is_ok())
}

/// A running server.
pub(super) struct Server {
    child: Child,
    /// The serving process. For a volume, it is a child of the command.
    id: u32,
    socket: PathBuf,
}

impl Server {
    /// Ends the server with a signal, so that it writes its final output.
    pub(super) fn stop(mut self) -> Result<()> {
        shell::stdout_of(Command::new("kill").arg(self.child.id().to_string()))?;
        let status = self.child.wait()?;
        ensure!(status.success(), "the server has failed: {status}");
        Ok(())
    }

    /// Returns the processor time used so far, in seconds.
    pub(super) fn processor_seconds(&self) -> Result<f64> {
        let path = Path::new("/proc").join(self.id.to_string());
        let text = fs::read_to_string(path.join("stat"))?;
        // The name, in parentheses, may contain any characters.
        let rest = text.rsplit(')').next().unwrap_or_default();
        let ticks = rest.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        let ticks_per_s: f64 = shell::output("getconf", ["CLK_TCK"])?.parse()?;
        Ok(ticks / ticks_per_s)
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

/// Returns the upper median.
pub(super) fn median(rates: impl IntoIterator<Item = f64>) -> f64 {
    let mut rates: Vec<f64> = rates.into_iter().collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

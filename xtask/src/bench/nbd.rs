//! nbdkit and fio for benchmarks.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::thread;
use std::time::Duration;

use anyhow::{Context, Result, ensure};

use crate::{packages, shell};

/// The built plugin, and a working directory.
pub(super) struct Server {
    pub(super) folder: PathBuf,
    pub(super) plugin: PathBuf,
    seed: u64,
}

/// A load for fio.
#[derive(Clone, Copy)]
pub(super) struct Load<'a> {
    pattern: &'a str,
    block: &'a str,
    depth: u32,
}

impl<'a> Load<'a> {
    /// Creates a load from fio's names of a pattern and of a size, and the queue depth.
    pub(super) fn new(pattern: &'a str, block: &'a str, depth: u32) -> Load<'a> {
        Load {
            pattern,
            block,
            depth,
        }
    }
}

impl Server {
    /// Builds the plugin and makes a new directory. If a program is missing, prints that and
    /// returns `None`.
    pub(super) fn build(folder: &str, seed: u64) -> Result<Option<Server>> {
        packages::install(packages::FOR_SERVE);
        for program in ["nbdkit", "fio"] {
            if shell::program(program).is_none() {
                println!("skipped: {program} is not installed");
                return Ok(None);
            }
        }
        let mut build = shell::cargo();
        build.args(["build", "--release", "--package", "traxtent-nbdkit"]);
        shell::run(&mut build)?;
        let folder = shell::target_dir().join(folder);
        if folder.exists() {
            fs::remove_dir_all(&folder)?;
        }
        fs::create_dir_all(&folder)?;
        let plugin = shell::target_dir().join("release/libtraxtent_nbdkit.so");
        Ok(Some(Server {
            folder,
            plugin,
            seed,
        }))
    }

    /// Starts nbdkit with a plugin and its parameters.
    pub(super) fn serve(&self, plugin: &[String]) -> Result<Nbdkit> {
        let socket = self.folder.join("socket");
        let pidfile = self.folder.join("pid");
        for file in [&socket, &pidfile] {
            if file.exists() {
                fs::remove_file(file)?;
            }
        }
        let mut nbdkit = Command::new("nbdkit");
        nbdkit.args(["--foreground", "--exit-with-parent", "--threads", "64"]);
        nbdkit
            .arg("--unix")
            .arg(&socket)
            .arg("--pidfile")
            .arg(&pidfile);
        let child = nbdkit.args(plugin).stdin(Stdio::null()).spawn()?;
        let mut server = Nbdkit { child, socket };
        while !pidfile.exists() {
            ensure!(
                server.child.try_wait()?.is_none(),
                "nbdkit exited before it was ready"
            );
            thread::sleep(Duration::from_millis(10));
        }
        Ok(server)
    }

    /// Returns the requests per second that fio completes.
    pub(super) fn fio(&self, nbdkit: &Nbdkit, load: Load<'_>, more: &[&str]) -> Result<f64> {
        let mut fio = Command::new("fio");
        fio.args([
            "--name=load",
            "--ioengine=nbd",
            "--output-format=json",
            "--norandommap",
        ]);
        fio.arg(format!(
            "--uri=nbd+unix:///?socket={}",
            nbdkit.socket.display()
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

/// A running nbdkit.
pub(super) struct Nbdkit {
    child: Child,
    pub(super) socket: PathBuf,
}

impl Nbdkit {
    /// Ends nbdkit with a signal, so that it writes its final output.
    pub(super) fn stop(mut self) -> Result<()> {
        shell::stdout_of(Command::new("kill").arg(self.child.id().to_string()))?;
        self.child.wait()?;
        Ok(())
    }

    /// Returns the processor time used so far, in seconds.
    pub(super) fn processor_seconds(&self) -> Result<f64> {
        let path = Path::new("/proc").join(self.child.id().to_string());
        let text = fs::read_to_string(path.join("stat"))?;
        // The name, in parentheses, may contain any characters.
        let rest = text.rsplit(')').next().unwrap_or_default();
        let ticks = rest.split_whitespace().skip(11).take(2);
        let ticks: f64 = ticks.filter_map(|ticks| ticks.parse::<f64>().ok()).sum();
        let a_second: f64 = shell::output("getconf", ["CLK_TCK"])?.parse()?;
        Ok(ticks / a_second)
    }
}

impl Drop for Nbdkit {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub(super) fn median(rates: impl IntoIterator<Item = f64>) -> f64 {
    let mut rates: Vec<f64> = rates.into_iter().collect();
    rates.sort_by(f64::total_cmp);
    rates[rates.len() / 2]
}

//! The machine's load from other processes, as `/proc` reports it. Unavailable figures are 0.

use serde::{Deserialize, Serialize};

/// The state of the machine during a run.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct MachineLoad {
    /// The number of processors available to this process.
    pub cpus: usize,
    /// The share of all processors' time that other processes used, including the server's clients.
    pub others_share: f64,
    /// The share of processor time that a hypervisor took.
    pub stolen_share: f64,
    /// The time before the end of a wait at which it stops sleeping and spins, in microseconds. It
    /// follows the recent lateness of sleeps, and is at most 1000.
    pub spin_us: f64,
}

/// The counters at one instant, usually the start of a run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Load {
    all: Counters,
    /// The ticks of this process.
    own: u64,
}

/// The ticks of all processors since boot.
#[derive(Clone, Copy, Debug, Default)]
struct Counters {
    total: u64,
    busy: u64,
    stolen: u64,
}

impl Load {
    pub(super) fn now() -> Load {
        Load {
            all: Counters::read().unwrap_or_default(),
            own: own_ticks().unwrap_or_default(),
        }
    }

    /// Returns the shares of processor time since the start. The other fields are not set.
    pub(super) fn since_start(&self) -> MachineLoad {
        let now = Load::now();
        let since = |now: u64, start: u64| now.saturating_sub(start) as f64;
        let total = since(now.all.total, self.all.total).max(1.0);
        let others = since(now.all.busy, self.all.busy) - since(now.own, self.own);
        MachineLoad {
            others_share: (others / total).max(0.0),
            stolen_share: since(now.all.stolen, self.all.stolen) / total,
            ..MachineLoad::default()
        }
    }
}

impl Counters {
    /// Reads the first line of `/proc/stat`: user, nice, system, idle, iowait, irq, softirq, steal.
    fn read() -> Option<Counters> {
        let stat = std::fs::read_to_string("/proc/stat").ok()?;
        let line = stat.lines().next()?.strip_prefix("cpu ")?;
        let ticks = line.split_ascii_whitespace().map(str::parse::<u64>);
        let ticks: Vec<u64> = ticks.collect::<Result<_, _>>().ok()?;
        let [user, nice, system, idle, iowait, irq, softirq, stolen, ..] = ticks[..] else {
            return None;
        };
        let busy = user + nice + system + irq + softirq;
        Some(Counters {
            total: busy + idle + iowait + stolen,
            busy,
            stolen,
        })
    }
}

/// Returns this process's ticks in user and system mode, which are fields 14 and 15 of
/// `/proc/self/stat`. Field 2 is the program's name in parentheses, which may contain blanks.
fn own_ticks() -> Option<u64> {
    let stat = std::fs::read_to_string("/proc/self/stat").ok()?;
    let (_, after_name) = stat.rsplit_once(')')?;
    let mut fields = after_name.split_ascii_whitespace().skip(11);
    let mut next = || fields.next()?.parse::<u64>().ok();
    Some(next()? + next()?)
}

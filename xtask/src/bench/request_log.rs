//! The request log that a served drive writes, read by the names of its columns.

use std::fs;
use std::path::Path;

use anyhow::{Context, Result};

/// A logged request. Times are in milliseconds of the drive's clock.
pub(super) struct Logged {
    pub(super) is_read: bool,
    pub(super) lbn: u64,
    /// The size in sectors of 512 bytes.
    pub(super) sectors: u64,
    pub(super) issued_ms: f64,
    pub(super) submitted_ms: f64,
    pub(super) completed_ms: f64,
    /// The time of the arm: seek and settling.
    pub(super) arm_ms: f64,
    pub(super) head_switch_ms: f64,
    pub(super) rotation_ms: f64,
    pub(super) transfer_ms: f64,
}

impl Logged {
    pub(super) fn bytes(&self) -> u64 {
        self.sectors * 512
    }
}

/// Reads a request log.
pub(super) fn read(log: &Path) -> Result<Vec<Logged>> {
    let text = fs::read_to_string(log)?;
    let mut lines = text.lines();
    let names: Vec<&str> = lines.next().unwrap_or_default().split(',').collect();
    lines
        .map(|line| logged(&names, line))
        .collect::<Option<Vec<Logged>>>()
        .with_context(|| format!("{} is not a request log", log.display()))
}

/// Returns the request of a line, or `None` if a column is missing or not a number.
fn logged(names: &[&str], line: &str) -> Option<Logged> {
    let cells: Vec<&str> = line.split(',').collect();
    let text = |name: &str| {
        let column = names.iter().position(|column| *column == name)?;
        cells.get(column).copied()
    };
    let number = |name: &str| -> Option<f64> { text(name)?.parse().ok() };
    Some(Logged {
        is_read: text("op")? == "read",
        lbn: text("lbn")?.parse().ok()?,
        sectors: text("sectors")?.parse().ok()?,
        issued_ms: number("issued_ms")?,
        submitted_ms: number("submitted_ms")?,
        completed_ms: number("completed_ms")?,
        arm_ms: number("seek_ms")? + number("settle_ms")?,
        head_switch_ms: number("head_switch_ms")?,
        rotation_ms: number("rotation_ms")?,
        transfer_ms: number("transfer_ms")?,
    })
}

/// Returns the largest number of requests that were outstanding at the same time.
pub(super) fn outstanding_max(requests: &[Logged]) -> usize {
    let mut steps: Vec<(f64, i64)> = Vec::new();
    for request in requests {
        steps.push((request.issued_ms, 1));
        steps.push((request.completed_ms, -1));
    }
    // If a request ends when another begins, the end counts first.
    steps.sort_by(|a, b| a.0.total_cmp(&b.0).then(a.1.cmp(&b.1)));
    let (mut now, mut most) = (0_i64, 0);
    for (_, step) in steps {
        now += step;
        most = most.max(now);
    }
    most as usize
}

//! The figures of a job's requests, and their tables.

use std::fmt::Write;

use anyhow::{Context, Result};

use super::super::request_log::Logged;
use super::Run;
use super::jobs::Group;

/// The size of the file system's blocks, in sectors.
const BLOCK_SECTORS: u64 = 8;

/// The tracks of a drive.
pub(super) struct Tracks {
    /// The first sectors, ascending.
    first: Vec<u64>,
    /// The number of sectors of the drive.
    pub(super) end: u64,
}

impl Tracks {
    /// Reads the output of `traxtent map DRIVE --format csv`.
    pub(super) fn parse(csv: &str) -> Result<Tracks> {
        let rows = csv.lines().skip(1).map(|line| {
            let mut cells = line.split(',').map(str::parse::<u64>);
            Some((cells.next()?.ok()?, cells.next()?.ok()?))
        });
        let rows: Option<Vec<(u64, u64)>> = rows.collect();
        let rows = rows.context("the map is not a list of tracks")?;
        let (first, sectors) = *rows.last().context("the map has no track")?;
        Ok(Tracks {
            first: rows.iter().map(|row| row.0).collect(),
            end: first + sectors,
        })
    }

    /// The size of the first track in bytes.
    pub(super) fn first_bytes(&self) -> u64 {
        512 * self.first.get(1).copied().unwrap_or(self.end)
    }

    /// The number of boundaries inside a request.
    fn crossed(&self, request: &Logged) -> usize {
        let tracks_until = |lbn: u64| self.first.partition_point(|first| *first <= lbn);
        tracks_until(request.lbn + request.sectors - 1) - tracks_until(request.lbn)
    }

    /// Whether a request holds all blocks that its track holds, and nothing of another track. (The
    /// file system's blocks begin at multiples of their size, because its partition does.)
    fn is_whole(&self, request: &Logged) -> bool {
        let after = self.first.partition_point(|first| *first <= request.lbn);
        let end = self.first.get(after).copied().unwrap_or(self.end);
        let first_block = self.first[after - 1].next_multiple_of(BLOCK_SECTORS);
        let blocks_end = end - end % BLOCK_SECTORS;
        let request_end = request.lbn + request.sectors;
        request.lbn <= first_block && (blocks_end..=end).contains(&request_end)
    }
}

/// The figures of the reads of one run.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Figures {
    requests: f64,
    kib_per_request: f64,
    boundaries_per_request: f64,
    whole_share: f64,
    outstanding: f64,
    response_ms: f64,
    /// The milliseconds per MiB of the arm, rotational latency, head switches and transfer.
    head_ms_per_mib: [f64; 4],
}

impl Figures {
    pub(super) fn of(requests: &[Logged], tracks: &Tracks) -> Figures {
        let reads: Vec<&Logged> = requests.iter().filter(|one| one.is_read).collect();
        let count = (reads.len() as f64).max(1.0);
        let sum = |of: &dyn Fn(&Logged) -> f64| reads.iter().map(|read| of(read)).sum::<f64>();
        let mean = |of: &dyn Fn(&Logged) -> f64| sum(of) / count;
        let bytes = sum(&|read| read.bytes() as f64).max(1.0);
        let whole = sum(&|read| match tracks.is_whole(read) {
            true => read.bytes() as f64,
            false => 0.0,
        });
        let response = |read: &Logged| read.completed_ms - read.issued_ms;
        let begin = reads
            .iter()
            .map(|read| read.issued_ms)
            .fold(f64::MAX, f64::min);
        let end = reads
            .iter()
            .map(|read| read.completed_ms)
            .fold(begin, f64::max);
        Figures {
            requests: reads.len() as f64,
            kib_per_request: bytes / 1024.0 / count,
            boundaries_per_request: mean(&|read| tracks.crossed(read) as f64),
            whole_share: whole / bytes,
            outstanding: sum(&response) / (end - begin).max(1e-9),
            response_ms: mean(&response),
            head_ms_per_mib: [
                sum(&|read| read.arm_ms),
                sum(&|read| read.rotation_ms),
                sum(&|read| read.head_switch_ms),
                sum(&|read| read.transfer_ms),
            ]
            .map(|ms| ms / (bytes / 1_048_576.0)),
        }
    }
}

/// Returns the tables of a group, in Markdown: one of times and requests, one of what the heads
/// spend their time on.
pub(super) fn table(group: &Group, runs: &[Vec<Run>]) -> String {
    let mut text = format!(
        "\n{}:\n\n| | seconds, all runs | mean | change | requests | KiB per request | boundaries \
         crossed per request | bytes in requests of whole tracks | outstanding | response time |\n\
         |---|---|---|---|---|---|---|---|---|---|\n",
        group.name
    );
    let mean = |runs: &[Run], of: &dyn Fn(&Run) -> f64| {
        runs.iter().map(of).sum::<f64>() / runs.len() as f64
    };
    let base = mean(&runs[0], &|run| run.seconds);
    for (index, (job, runs)) in group.jobs.iter().zip(runs).enumerate() {
        let all: Vec<String> = runs
            .iter()
            .map(|run| format!("{:.2}", run.seconds))
            .collect();
        let seconds = mean(runs, &|run| run.seconds);
        let change = match index {
            0 => String::new(),
            _ => format!("{:+.1} %", 100.0 * (seconds / base - 1.0)),
        };
        let _ = writeln!(
            text,
            "| {} | {} | {seconds:.2} | {change} | {:.0} | {:.0} | {:.2} | {:.0} % | {:.1} | {:.1} ms |",
            job.label,
            all.join(", "),
            mean(runs, &|run| run.figures.requests),
            mean(runs, &|run| run.figures.kib_per_request),
            mean(runs, &|run| run.figures.boundaries_per_request),
            100.0 * mean(runs, &|run| run.figures.whole_share),
            mean(runs, &|run| run.figures.outstanding),
            mean(runs, &|run| run.figures.response_ms),
        );
    }
    text.push_str(
        "\n| milliseconds per MiB | seek and settle | rotational latency | head switch | transfer |\n\
         |---|---|---|---|---|\n",
    );
    for (job, runs) in group.jobs.iter().zip(runs) {
        let parts = [0, 1, 2, 3].map(|part| {
            let ms = mean(runs, &|run| run.figures.head_ms_per_mib[part]);
            format!("{ms:.1}")
        });
        let _ = writeln!(text, "| {} | {} |", job.label, parts.join(" | "));
    }
    text.push('\n');
    text
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Does a request count as a whole track exactly if it holds all of the track's blocks and
    /// nothing else? Does each boundary inside a request count?
    #[test]
    fn whole_tracks_hold_all_blocks() {
        // The second track has the LBNs 334 to 667. Its blocks are those from 336 to 663.
        let tracks = Tracks::parse("first_lbn,sectors,cylinder,head\n0,334,0,0\n334,334,0,1\n")
            .expect("it is a map");
        assert_eq!(tracks.end, 668);
        let request = |lbn: u64, end: u64| Logged {
            is_read: true,
            lbn,
            sectors: end - lbn,
            issued_ms: 0.0,
            submitted_ms: 0.0,
            completed_ms: 1.0,
            arm_ms: 0.0,
            head_switch_ms: 0.0,
            rotation_ms: 0.0,
            transfer_ms: 0.0,
        };
        for (lbn, end) in [(334, 668), (336, 664), (334, 664), (336, 668)] {
            assert!(tracks.is_whole(&request(lbn, end)), "{lbn} to {end}");
        }
        for (lbn, end) in [(337, 668), (336, 663), (328, 664), (0, 668)] {
            assert!(!tracks.is_whole(&request(lbn, end)), "{lbn} to {end}");
        }
        assert_eq!(tracks.crossed(&request(0, 334)), 0);
        assert_eq!(tracks.crossed(&request(333, 335)), 1);
    }
}

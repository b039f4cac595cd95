//! Volumes and their maintenance, as lines of text or JSON.

use std::io::Write;
use std::time::Duration;

use traxtent_server::remaining_time::time_left;
use traxtent_server::volume::{
    self, DifferenceReport, MaintenanceKind, MemberStatus, VolumeStatus,
};

use crate::failure::{Failure, Result};
use crate::output;

/// Prints the outcome of a rebuild, a sync or a scrub, and returns the failure for the exit status.
/// `signal` is the signal that interrupted the work, if any.
pub(super) fn outcome(
    as_json: bool,
    progress: &volume::MaintenanceProgress,
    signal: Option<i32>,
) -> Result<()> {
    if as_json {
        output::json(progress)?;
    } else {
        let mut out = output::stdout();
        writeln!(out, "{}", described(progress))?;
        for difference in &progress.differences {
            writeln!(out, "  {}", difference_line(difference))?;
        }
        let listed: u64 = progress.differences.iter().map(|one| one.rows).sum();
        let all = progress.wrong_rows + progress.unreadable_rows + progress.lost_rows;
        if all > listed {
            writeln!(out, "  and {} more rows", all - listed)?;
        }
        for line in undecided_lines(&progress.differences) {
            writeln!(out, "  {line}")?;
        }
        output::finish(out)?;
    }
    match (&progress.error, progress.is_clean()) {
        (Some(error), _) => Err(Failure::Io(error.clone())),
        (None, true) => Ok(()),
        (None, false) if progress.done => Err(Failure::Finding(
            "problems were found; see the counts above".to_owned(),
        )),
        (None, false) => {
            let line = "interrupted; run it again to resume".to_owned();
            Err(match signal {
                Some(signal) => Failure::Interrupted(line, signal),
                None => Failure::Finding(line),
            })
        }
    }
}

/// Returns a one-line description of progress.
fn described(progress: &volume::MaintenanceProgress) -> String {
    let is_rebuild = progress.work == MaintenanceKind::Rebuild;
    if is_rebuild && progress.done && progress.first == progress.stripes {
        return "rebuild: nothing to rebuild; all members are active".to_owned();
    }
    let mut line = format!(
        "{}: {} of {} stripes ({:.1} %)",
        progress.work.name(),
        progress.next,
        progress.stripes,
        100.0 * progress.share
    );
    if let Some(speed) = progress.bytes_per_second.filter(|_| progress.under_way) {
        line += &format!(", {:.1} MB/s per member", speed / 1e6);
    }
    if let Some(left) = progress.seconds_left.filter(|_| progress.under_way) {
        let left = Duration::try_from_secs_f64(left).unwrap_or_default();
        line += &format!(", {}", time_left(left));
    }
    for (count, what) in [
        (progress.synced_sectors, "sectors written"),
        (progress.wrong_rows, "rows that disagree"),
        (progress.unreadable_rows, "rows with an unreadable sector"),
        (progress.lost_rows, "rows lost"),
        (progress.repaired_rows, "rows repaired"),
    ] {
        if count > 0 {
            line += &format!("; {what}: {count}");
        }
    }
    if let Some(error) = &progress.error {
        line += &format!("; stopped: {error}");
    } else if !progress.under_way && !progress.done {
        line += "; stopped";
    }
    line
}

/// Explains why some differences are not repaired, and which data each way to repair them keeps.
fn undecided_lines(differences: &[DifferenceReport]) -> Vec<&'static str> {
    let has = |fault: &str| {
        let mut left = differences.iter().filter(|one| !one.repaired);
        left.any(|one| one.fault == fault)
    };
    let mut lines = Vec::new();
    if has("parity") {
        lines.extend([
            "where data and parity differ, --repair changes nothing, because any of the stripe's members may be wrong:",
            "  --repair=parity keeps the data as it is, right or wrong, and recomputes the parity; wrong data can then no longer be detected",
            "  if you know the wrong member: `fail`, `replace` and `rebuild` keep the others, and compute its content from them",
        ]);
    }
    if has("tied") {
        lines.extend([
            "where replicas differ without a majority, --repair changes nothing, because any of them may be wrong:",
            "  --repair --from MEMBER keeps that member's replica, and overwrites the others",
        ]);
    }
    lines
}

/// Returns a one-line description of a difference found by a scrub.
fn difference_line(difference: &DifferenceReport) -> String {
    let numbers: Vec<String> = difference.members.iter().map(usize::to_string).collect();
    let members = match numbers.len() {
        1 => format!("member {}", numbers[0]),
        _ => format!("members {}", numbers.join(", ")),
    };
    let sectors = match difference.rows {
        1 => format!("LBN {}", difference.lbn),
        rows => format!("LBN {} and the {} after it", difference.lbn, rows - 1),
    };
    let what = match difference.fault.as_str() {
        "unreadable" => format!("{members} cannot be read"),
        "lost" => format!("{members} cannot be read, or computed from the others"),
        "outvoted" => format!("{members} differs from the majority"),
        "tied" => format!("replicas on {members} differ without a majority"),
        _ => format!(
            "data and parity differ (parity is on {members}; the wrong member is not known)"
        ),
    };
    let repaired = if difference.repaired {
        "; repaired"
    } else {
        ""
    };
    format!("stripe {}, {sectors}: {what}{repaired}", difference.stripe)
}

pub(super) fn show(status: &VolumeStatus, as_json: bool) -> Result<()> {
    if as_json {
        return output::json(status);
    }
    let mut out = output::stdout();
    writeln!(
        out,
        "volume {}: {}, {} chunks, {} bytes",
        status.volume, status.level, status.chunks, status.bytes
    )?;
    if !status.served {
        let how = if status.clean {
            "stopped cleanly"
        } else {
            "was not stopped cleanly; the next start recovers it"
        };
        writeln!(out, "  {how}")?;
    }
    if status.broken {
        writeln!(out, "  read-only; only undamaged data can be read")?;
    }
    match status.unsynced() {
        0 => {}
        left => writeln!(
            out,
            "  {left} of {} stripes are not synced; run `volume sync`, or serve the volume",
            status.stripes
        )?,
    }
    for member in &status.members {
        let path = member.path.as_ref();
        let path = path.map_or("missing".to_owned(), |path| path.display().to_string());
        write!(out, "  member {}: {}, {path}", member.member, member.state)?;
        if let Some(stripes) = member.rebuilt_stripes {
            write!(out, ", {stripes} of {} stripes done", status.stripes)?;
        }
        if let Some(error) = &member.error {
            write!(out, ", {error}")?;
        }
        if let Some(seconds) = member.waiting_seconds {
            write!(out, ", has not responded for {seconds} s")?;
        }
        writeln!(out)?;
        for line in superblock_lines(member) {
            writeln!(out, "    {line}")?;
        }
    }
    for stale in &status.stale {
        let what = if stale.dropped {
            "dropped by the other members"
        } else {
            "an old copy"
        };
        writeln!(
            out,
            "  stale: {}: member {}, {what}: generation {}, the volume's is {}; omit it",
            stale.path.display(),
            stale.member,
            stale.generation,
            stale.volume_generation
        )?;
    }
    for unusable in &status.unusable {
        let path = unusable.path.display();
        writeln!(out, "  unusable: {path}: {}", unusable.problem)?;
    }
    for lost in &status.lost {
        writeln!(out, "  lost: sectors {} to {}", lost.first, lost.end)?;
    }
    if let Some(work) = &status.work {
        writeln!(out, "  {}", described(work))?;
    }
    if let Some(unfinished) = &status.unfinished {
        writeln!(out, "  {unfinished}")?;
    }
    output::finish(out)
}

/// Returns lines on the problems with a member's superblocks, and on the remedy.
fn superblock_lines(member: &MemberStatus) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(both) = &member.superblocks {
        for (name, one) in ["first", "second"].iter().zip(both) {
            if !one.starts_with("generation") {
                lines.push(format!("{name} superblock: {one}"));
            }
        }
    }
    if member.doubtful && member.state != "failed" {
        lines.push(
            "a superblock was missing or damaged; run `scrub`; if the data is good, run `repair-superblocks`, otherwise `fail` and rebuild the member"
                .to_owned(),
        );
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{described, difference_line, undecided_lines};

    /// Does a line state a speed and a remaining time only once they are known?
    #[test]
    fn speed_and_remaining_time() {
        let line = |speed: Option<f64>, left: Option<f64>| {
            let progress = json!({
                "work": "scrub", "under_way": true, "done": false, "first": 0, "next": 1,
                "stripes": 4, "share": 0.25, "rate": 65536, "bytes_per_second": speed,
                "seconds": 16.0, "seconds_left": left, "error": null,
            });
            described(&serde_json::from_value(progress).unwrap())
        };
        assert_eq!(line(None, None), "scrub: 1 of 4 stripes (25.0 %)");
        assert_eq!(
            line(Some(65536.0), Some(0.3)),
            "scrub: 1 of 4 stripes (25.0 %), 0.1 MB/s per member, less than a second left"
        );
    }

    /// Unless a difference is repaired, does a scrub report that the wrong member is unknown, and
    /// which data each repair keeps?
    #[test]
    fn undecided_differences_are_explained() {
        let found = |fault: &str, repaired: bool| {
            serde_json::from_value(json!({
                "stripe": 1, "lbn": 8, "rows": 1, "fault": fault, "members": [2],
                "repaired": repaired,
            }))
            .unwrap()
        };
        let line = difference_line(&found("parity", false));
        assert!(line.contains("data and parity differ"), "{line}");
        assert!(line.contains("the wrong member is not known"), "{line}");
        let lines = undecided_lines(&[found("parity", false)]).concat();
        assert!(lines.contains("--repair=parity keeps the data"), "{lines}");
        assert!(lines.contains("`rebuild` keep the others"), "{lines}");
        let lines = undecided_lines(&[found("tied", false)]).concat();
        assert!(
            lines.contains("--from MEMBER keeps that member's"),
            "{lines}"
        );
        assert!(undecided_lines(&[found("parity", true)]).is_empty());
    }
}

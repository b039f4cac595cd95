//! Volumes and their maintenance, as lines of text or JSON.

use std::io::Write;
use std::time::Duration;

use traxtent_server::remaining_time::time_left;
use traxtent_server::volume::{
    self, DifferenceReport, MaintenanceKind, MemberStatus, VolumeStatus,
};
use traxtent_units::Count;

use crate::failure::{Failure, Result};
use crate::output;
use traxtent_check::content::content_beside_volume;

/// The smallest unused space of a member that is reported, in bytes. Even members of equal size
/// have some space after their last stripe.
const UNUSED_BYTES_MIN: u64 = 1 << 20;

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
        let summary = scrub_summary(progress);
        if summary.is_none() || progress.faulty_rows() > 0 {
            writeln!(out, "{}", described(progress))?;
        }
        for difference in &progress.differences {
            writeln!(out, "  {}", difference_line(difference))?;
        }
        let listed: u64 = progress.differences.iter().map(|one| one.rows).sum();
        let all = progress.faulty_rows();
        if all > listed {
            writeln!(out, "  and {}", Count(all - listed, "more row"))?;
        }
        for line in undecided_lines(&progress.differences) {
            writeln!(out, "  {line}")?;
        }
        if let Some(summary) = summary {
            writeln!(out, "{summary}")?;
        }
        output::finish(out)?;
    }
    match (&progress.error, progress.is_clean()) {
        (Some(error), _) => Err(Failure::Io(error.clone())),
        (None, true) => Ok(()),
        (None, false) if progress.done => Err(Failure::Finding(finding(progress))),
        (None, false) => {
            let line = "interrupted; run the command again to resume".to_owned();
            Err(match signal {
                Some(signal) => Failure::Interrupted(line, signal),
                None => Failure::Finding(line),
            })
        }
    }
}

/// Formats a number of rows with differences.
fn rows_with_differences(rows: u64) -> String {
    match rows {
        1 => "1 row with a difference".to_owned(),
        rows => format!("{rows} rows with differences"),
    }
}

/// Returns the outcome of a complete scrub in one line; `None` for other work.
fn scrub_summary(progress: &volume::MaintenanceProgress) -> Option<String> {
    if progress.work != MaintenanceKind::Scrub || !progress.done {
        return None;
    }
    let mut line = format!(
        "scrub: {} read",
        Count(progress.stripes - progress.first, "stripe")
    );
    if progress.first > 0 {
        line += &format!(" (resumed at stripe {})", progress.first);
    }
    match progress.faulty_rows() {
        0 => line += ", no differences",
        rows => {
            let (rows, repaired) = (rows_with_differences(rows), progress.repaired_rows);
            line += &format!(", {rows}, {repaired} repaired");
        }
    }
    Some(line)
}

/// Returns the message of a complete scrub or sync that found faults.
fn finding(progress: &volume::MaintenanceProgress) -> String {
    if progress.work != MaintenanceKind::Scrub {
        return "problems were found; see the counts above".to_owned();
    }
    let rows = progress.faulty_rows();
    let what = rows_with_differences(rows);
    match progress.repaired_rows {
        0 => format!(
            "the scrub found {what}; none is repaired{}",
            repair_hint(progress)
        ),
        repaired if repaired == rows => format!("the scrub found and repaired {what}"),
        repaired => format!("the scrub found {what}; {repaired} of them are repaired"),
    }
}

/// Returns the advice to repair rows whose correct content is known, if a scrub found any.
fn repair_hint(progress: &volume::MaintenanceProgress) -> &'static str {
    let is_known = |one: &DifferenceReport| matches!(one.fault.as_str(), "unreadable" | "outvoted");
    let known = progress.differences.iter().filter(|one| is_known(one));
    let known: u64 = known.map(|one| one.rows).sum();
    // Only the first differences are listed, but all are counted.
    match known.max(progress.unreadable_rows) {
        0 => "",
        rows if rows == progress.faulty_rows() => "; `scrub --repair` repairs them",
        _ => "; `scrub --repair` repairs those whose correct content is known",
    }
}

/// Returns a one-line description of progress.
fn described(progress: &volume::MaintenanceProgress) -> String {
    let is_rebuild = progress.work == MaintenanceKind::Rebuild;
    if is_rebuild && progress.done && progress.first == progress.stripes {
        return "rebuild: nothing to rebuild; all members are active".to_owned();
    }
    if progress.work == MaintenanceKind::Sync && progress.done && progress.first == progress.stripes
    {
        return "sync: nothing to sync; all stripes are synced".to_owned();
    }
    let mut line = format!(
        "{}: {} of {} ({:.1} %)",
        progress.work.name(),
        progress.next,
        Count(progress.stripes, "stripe"),
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
            "  to find the wrong member, leave out one member at a time with `volume serve --read-only`, which writes nothing, and look at the data",
            "  once you know it: `fail`, `replace` and `rebuild` keep the others, and compute its content from them; `fail` cannot be undone",
        ]);
    }
    if has("tied") {
        lines.extend([
            "where replicas differ without a majority, --repair changes nothing, because any of them may be wrong:",
            "  to find the right one, leave out one member at a time with `volume serve --read-only`, which writes nothing, and look at the data",
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
        "outvoted" => match numbers.len() {
            1 => format!("{members} differs from the majority"),
            _ => format!("{members} differ from the majority"),
        },
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
        "volume {}: {}, {}, {}",
        status.volume,
        status.level,
        chunks(status),
        size(status.bytes)
    )?;
    for line in space_lines(status) {
        writeln!(out, "  {line}")?;
    }
    if !status.served {
        let how = if status.clean {
            "stopped cleanly"
        } else {
            "was not stopped cleanly; the next start recovers it"
        };
        writeln!(out, "  {how}")?;
    }
    if status.broken {
        writeln!(
            out,
            "  read-only; only undamaged data can be read: copy it before the server stops"
        )?;
    }
    let failed_early = failed_before_sync(status);
    match status.unsynced() {
        0 => {}
        _ if failed_early.is_some() => {}
        left => writeln!(
            out,
            "  {left} of {} {} not synced{}",
            Count(status.stripes, "stripe"),
            if left == 1 { "is" } else { "are" },
            if status.served {
                ""
            } else {
                "; run `volume sync`, or serve the volume"
            }
        )?,
    }
    let is_degraded = status.members.iter().any(|one| one.state == "failed");
    for member in &status.members {
        let path = member.path.as_ref();
        // Nothing is known of the device of a member that was not given.
        let absent = match member.state.as_str() {
            "failed" => "not in use",
            _ => "not among these devices",
        };
        let path = path.map_or(absent.to_owned(), |path| path.display().to_string());
        write!(out, "  member {}: {}, {path}", member.member, member.state)?;
        if let Some(stripes) = member.rebuilt_stripes {
            let all = Count(status.stripes, "stripe");
            write!(out, ", {stripes} of {all} done")?;
        }
        write!(out, "{}", error_part(member))?;
        if let Some(seconds) = member.waiting_seconds {
            write!(out, ", has not responded for {seconds} s")?;
        }
        writeln!(out)?;
        for line in superblock_lines(member, is_degraded) {
            writeln!(out, "    {line}")?;
        }
    }
    let is_absent = |one: &MemberStatus| one.path.is_none() && one.state != "failed";
    if !status.served && status.members.iter().any(is_absent) {
        // A member of another level cannot continue alone.
        if status.level == "raid-1" {
            writeln!(
                out,
                "  these are the last states that these devices know; the other members may have continued without them, and these devices are then stale"
            )?;
        }
        writeln!(
            out,
            "  incomplete: name every member; if one is dead, `volume assemble --force` with the others starts the volume without it"
        )?;
    }
    if let Some(member) = failed_early {
        writeln!(
            out,
            "  degraded: member {member} failed before the initial sync was complete; `volume assemble --force` keeps the data that was written; then `replace` and `rebuild` the member"
        )?;
    } else if is_degraded && !status.broken && status.level != "raid-0" {
        writeln!(
            out,
            "  degraded: `volume replace MEMBER --with DEVICE` and `volume rebuild` restore the redundancy"
        )?;
    }
    let is_rebuilding = |work: &volume::MaintenanceProgress| {
        work.under_way && work.work == MaintenanceKind::Rebuild
    };
    let mut rebuilding = status.members.iter();
    if rebuilding.any(|one| one.state == "rebuilding")
        && !status.broken
        && !status.work.as_ref().is_some_and(is_rebuilding)
    {
        writeln!(out, "  degraded: `volume rebuild` restores the redundancy")?;
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
        writeln!(out, "  {lost}")?;
    }
    if let Some(work) = &status.work {
        let clean = scrub_summary(work).filter(|_| work.is_clean());
        writeln!(out, "  {}", clean.unwrap_or_else(|| described(work)))?;
    }
    if let Some(line) = stopped_scrub(status) {
        writeln!(out, "  {line}")?;
    }
    if status.unrepaired {
        writeln!(
            out,
            "  scrub: the last one found differences that are not repaired; `volume scrub` lists them"
        )?;
    }
    if let Some(unfinished) = &status.unfinished {
        writeln!(out, "  {unfinished}")?;
    }
    output::finish(out)
}

/// Returns the failed member without which a volume that is not served does not start, because
/// parity is not yet initialized.
fn failed_before_sync(status: &VolumeStatus) -> Option<usize> {
    let has_parity = matches!(status.level.as_str(), "raid-4" | "raid-5");
    if status.served || !has_parity || status.unsynced() == 0 {
        return None;
    }
    status.members.iter().position(|one| one.state == "failed")
}

/// Describes a scrub that was stopped; `None` if there is none, or if a scrub is running.
fn stopped_scrub(status: &VolumeStatus) -> Option<String> {
    let is_scrub = |work: &volume::MaintenanceProgress| work.work == MaintenanceKind::Scrub;
    let is_running = status
        .work
        .as_ref()
        .is_some_and(|work| work.under_way && is_scrub(work));
    (status.scrub_next > 0 && !is_running).then(|| {
        format!(
            "scrub: stopped; the next one resumes at stripe {} of {}",
            status.scrub_next, status.stripes
        )
    })
}

/// Returns the part of a member's line on its errors, which begins with a comma; empty if there are
/// none.
fn error_part(member: &MemberStatus) -> String {
    let error = member.error.as_ref();
    let error = error.map_or(String::new(), |error| format!(", {error}"));
    match (member.errors, member.last_error_seconds) {
        (1, Some(seconds)) => format!("{error} (1 error, {} ago)", age(seconds)),
        (errors @ 2.., Some(seconds)) => {
            format!("{error} ({errors} errors, the last {} ago)", age(seconds))
        }
        _ => error,
    }
}

/// Returns an age in the largest unit of which at least two have passed.
fn age(seconds: u64) -> String {
    let units = [(86_400, "days"), (3600, "h"), (60, "min")];
    let unit = units.into_iter().find(|(unit, _)| seconds >= 2 * unit);
    let (unit, name) = unit.unwrap_or((1, "s"));
    format!("{} {name}", seconds / unit)
}

/// Describes the size of chunks.
fn chunks(status: &VolumeStatus) -> String {
    match (status.chunk_sectors, status.chunks.as_str()) {
        (0, "tracks") => "chunks of one track".to_owned(),
        (0, other) => format!("{other} chunks"),
        (sectors, _) => format!(
            "chunks of {}",
            size(sectors * u64::from(status.sector_bytes))
        ),
    }
}

/// Returns a size in the largest unit that it reaches, with at most one decimal.
fn size(bytes: u64) -> String {
    let units = [
        (1u64 << 40, "TiB"),
        (1 << 30, "GiB"),
        (1 << 20, "MiB"),
        (1 << 10, "KiB"),
    ];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) if bytes.is_multiple_of(unit) => format!("{} {name}", bytes / unit),
        Some((unit, name)) => format!("{:.1} {name}", bytes as f64 / unit as f64),
        None => format!("{bytes} B"),
    }
}

/// Returns lines on the journal and on unused space of members, if the volume has just been
/// created.
fn space_lines(status: &VolumeStatus) -> Vec<String> {
    let mut lines = Vec::new();
    let unused = |member: &MemberStatus| member.unused_bytes.unwrap_or(0);
    if status.members.iter().all(|one| one.unused_bytes.is_none()) {
        return lines;
    }
    let smallest = status.members.iter().map(|one| one.bytes).min();
    if status.journal_bytes > 0 {
        let share = status.journal_bytes as f64 / smallest.unwrap_or(0).max(1) as f64;
        lines.push(format!(
            "journal: {} of each member ({:.1} % of the smallest)",
            size(status.journal_bytes),
            100.0 * share
        ));
    }
    let members = status.members.iter();
    let members = members.filter(|one| unused(one) >= UNUSED_BYTES_MIN);
    let members: Vec<String> = members
        .map(|one| {
            let path = one.path.as_ref();
            let path = path.map_or(String::new(), |path| format!(" ({})", path.display()));
            format!("{} of member {}{path}", size(unused(one)), one.member)
        })
        .collect();
    if !members.is_empty() {
        lines.push(format!("not used: {}", members.join(", ")));
    }
    lines
}

/// Returns lines on the problems with a member's superblocks, and on the remedy. In a degraded
/// volume, `scrub` has nothing to compare the member's data with, and the member is needed.
fn superblock_lines(member: &MemberStatus, is_degraded: bool) -> Vec<String> {
    let mut lines = Vec::new();
    if let Some(both) = &member.superblocks {
        for (name, one) in ["first", "second"].iter().zip(both) {
            if !one.starts_with("generation") {
                lines.push(format!("{name} superblock: {one}"));
            }
        }
    }
    if member.doubtful && member.state != "failed" {
        let other = member.path.as_deref().and_then(content_beside_volume);
        lines.push(match other {
            Some(what) => format!(
                "a superblock was missing or damaged, and the device holds {what}; if the device has been reused, omit it: `repair-superblocks` and `rebuild` overwrite that content"
            ),
            None if is_degraded => "a superblock was missing or damaged, and while other members are missing, nothing can confirm the data; if this is the right device, run `repair-superblocks`, then `rebuild` the missing members".to_owned(),
            None => "a superblock was missing or damaged; run `scrub`; if the data is good, run `repair-superblocks`, otherwise `fail` and rebuild the member".to_owned(),
        });
    }
    lines
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::{described, difference_line, error_part, finding, scrub_summary, undecided_lines};

    /// Does a member's line tell old errors from new ones, by their number and the age of the last?
    #[test]
    fn errors_of_members() {
        let part = |error: Option<&str>, errors: u64, seconds: Option<u64>| {
            let member = json!({
                "member": 0, "id": "x", "path": "/dev/loop0", "state": "active",
                "rebuilt_stripes": null, "error": error, "errors": errors,
                "last_error_seconds": seconds,
            });
            error_part(&serde_json::from_value(member).unwrap())
        };
        let eio = "Input/output error";
        assert_eq!(part(None, 0, None), "");
        assert_eq!(
            part(Some("the file has become shorter"), 0, None),
            ", the file has become shorter"
        );
        assert_eq!(
            part(Some(eio), 1, Some(119)),
            format!(", {eio} (1 error, 119 s ago)")
        );
        for (seconds, age) in [
            (120, "2 min"),
            (7199, "119 min"),
            (7200, "2 h"),
            (172_800, "2 days"),
        ] {
            let says = format!(", {eio} (64 errors, the last {age} ago)");
            assert_eq!(part(Some(eio), 64, Some(seconds)), says);
        }
    }

    /// Is `--repair` named if it would change something, and only then?
    #[test]
    fn repair_is_named() {
        let message = |faults: &[(&str, u64)]| {
            let rows = |these: &[&str]| -> u64 {
                let these = faults.iter().filter(|(fault, _)| these.contains(fault));
                these.map(|(_, rows)| rows).sum()
            };
            let differences: Vec<_> = faults
                .iter()
                .map(|(fault, rows)| {
                    json!({"stripe": 0, "lbn": 0, "rows": rows, "fault": fault, "members": [0],
                        "repaired": false})
                })
                .collect();
            let progress = json!({
                "work": "scrub", "under_way": false, "done": true, "first": 0, "next": 9,
                "stripes": 9, "share": 1.0, "rate": null, "bytes_per_second": null,
                "seconds": 1.0, "seconds_left": null, "error": null, "differences": differences,
                "wrong_rows": rows(&["outvoted", "tied", "parity"]),
                "unreadable_rows": rows(&["unreadable"]), "lost_rows": rows(&["lost"]),
            });
            finding(&serde_json::from_value(progress).unwrap())
        };
        let all = "the scrub found 64 rows with differences; none is repaired; `scrub --repair` repairs them";
        assert_eq!(message(&[("unreadable", 64)]), all);
        assert_eq!(message(&[("unreadable", 60), ("outvoted", 4)]), all);
        let some = "; `scrub --repair` repairs those whose correct content is known";
        assert!(message(&[("outvoted", 1), ("parity", 1)]).ends_with(some));
        for fault in ["parity", "tied", "lost"] {
            assert!(
                message(&[(fault, 2)]).ends_with("; none is repaired"),
                "{fault}"
            );
        }
    }

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

    /// Are sizes written with at most one decimal?
    #[test]
    fn sizes() {
        let text = [0, 512, 65536, 3 << 19, 12_345_344, 5 << 40].map(super::size);
        assert_eq!(
            text,
            ["0 B", "512 B", "64 KiB", "1.5 MiB", "11.8 MiB", "5 TiB"]
        );
    }

    /// Does a complete scrub state its outcome in words, and an incomplete one nothing?
    #[test]
    fn outcome_of_a_scrub() {
        let scrub = |done: bool, first: u64, wrong: u64, repaired: u64| {
            serde_json::from_value(json!({
                "work": "scrub", "under_way": false, "done": done, "first": first, "next": 15360,
                "stripes": 15360, "share": 1.0, "rate": null, "bytes_per_second": null,
                "seconds": 1.0, "seconds_left": null, "wrong_rows": wrong,
                "repaired_rows": repaired, "error": null,
            }))
            .unwrap()
        };
        let summary = |done, first, wrong, repaired| {
            scrub_summary(&scrub(done, first, wrong, repaired)).unwrap_or_default()
        };
        assert_eq!(
            summary(true, 0, 0, 0),
            "scrub: 15360 stripes read, no differences"
        );
        assert_eq!(
            summary(true, 360, 1, 0),
            "scrub: 15000 stripes read (resumed at stripe 360), 1 row with a difference, 0 repaired"
        );
        assert_eq!(
            summary(true, 0, 3, 2),
            "scrub: 15360 stripes read, 3 rows with differences, 2 repaired"
        );
        assert_eq!(summary(false, 0, 0, 0), "");
        for (repaired, says) in [
            (
                0,
                "the scrub found 3 rows with differences; none is repaired",
            ),
            (
                2,
                "the scrub found 3 rows with differences; 2 of them are repaired",
            ),
            (3, "the scrub found and repaired 3 rows with differences"),
        ] {
            assert_eq!(finding(&scrub(true, 0, 3, repaired)), says);
        }
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

//! `traxtent file allocate` and `traxtent file realign`.

use std::collections::BTreeSet;
use std::fs::{self, File};
use std::io::{self, Write};
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};
use traxtent_file::{
    FileExtent, Outcome, RealignOptions, RealignReport, Summary, extra_obstacle, file_extents,
    forecast, obstacle, space_obstacle, summarize,
};
use traxtent_io::device::Interrupt;
use traxtent_io::ext4::free_ranges;
use traxtent_units::Count;

use super::show::{json_of, percent};
use super::subject::{FileSystems, failure, files_below};
use super::{AllocateArgs, MoveArgs, RealignArgs};
use crate::drives::bytes;
use crate::failure::{Failure, Result, note};
use crate::output;
use crate::probe::verify_map;
use crate::progress::Progress;

/// Runs `traxtent file allocate`.
pub(super) fn allocate(args: &AllocateArgs) -> Result<()> {
    if args.size == 0 {
        return Err(Failure::input("--size: expected at least 1 byte"));
    }
    let mut systems = FileSystems::new(&args.moving.map.maps)?;
    let folder = match args.file.parent() {
        Some(folder) if folder != Path::new("") => folder.to_owned(),
        _ => PathBuf::from("."),
    };
    let stop = catch()?;
    check_map(&args.moving, &mut systems, &folder, &mut BTreeSet::new())?;
    let (system, partition) = systems.partition(&folder)?;
    let progress = Progress::new("bytes moved", None);
    let report = traxtent_file::allocate(
        &args.file,
        args.size,
        system,
        &partition,
        &options(&args.moving),
        &mut |moved, _| watch(&progress, &stop, moved),
    )
    .map_err(failure)?;
    drop(progress);
    let Some(report) = report else {
        let line = format!("{}: not created: stopped", args.file.display());
        return Err(interrupted(line, &stop));
    };
    let summary = measure(&args.file, &mut systems)?;
    if args.moving.json {
        let mut row = json_of(&args.file.display().to_string(), &summary);
        row["moved_bytes"] = json!(report.moved_bytes);
        row["extra_bytes"] = json!(report.extra_bytes);
        row["ended_early"] = json!(report.ended_early);
        return output::json(&row);
    }
    let mut out = output::stdout();
    writeln!(
        out,
        "{}: {} allocated, {} on whole tracks, in {}",
        args.file.display(),
        bytes(summary.bytes),
        percent(summary.whole_bytes, summary.bytes),
        Count(summary.pieces, "piece")
    )?;
    output::finish(out)?;
    if let Some(why) = &report.ended_early {
        note(format!(
            "{}: the rest is not on whole tracks: {why}",
            args.file.display()
        ));
    }
    Ok(())
}

/// Runs `traxtent file realign`.
pub(super) fn realign(args: &RealignArgs) -> Result<()> {
    let mut systems = FileSystems::new(&args.moving.map.maps)?;
    let files = files_below(&args.paths)?;
    let stop = catch()?;
    if !args.dry_run {
        let mut tested = BTreeSet::new();
        for file in &files {
            // A file may have been removed in the meantime.
            if file.path.exists() {
                match check_map(&args.moving, &mut systems, &file.path, &mut tested) {
                    Err(_) if file.is_gone() => {}
                    checked => checked?,
                }
            }
        }
    }
    let mut rows = Vec::new();
    let (mut unmoved, mut gone) = (0, 0);
    for file in &files {
        let result = match realign_file(&file.path, args, &mut systems, &stop) {
            Err(_) if file.is_gone() => None,
            Ok(result) if result.left_alone.is_some() && file.is_gone() => None,
            result => Some(result?),
        };
        let Some(result) = result else {
            gone += 1;
            continue;
        };
        unmoved += u32::from(!result.is_complete());
        if args.moving.json {
            rows.push(result.json());
        } else {
            let mut out = output::stdout();
            writeln!(out, "{}", result.line(args.dry_run))?;
            output::finish(out)?;
        }
        if stop.raised() {
            break;
        }
    }
    if args.moving.json {
        output::json(&rows)?;
    }
    if stop.raised() {
        let line = "stopped; run the command again to continue".to_owned();
        return Err(interrupted(line, &stop));
    }
    match unmoved {
        0 => Ok(()),
        count => Err(Failure::Finding(format!(
            "{count} of {} could not be moved, or only in part",
            Count(files.len() - gone, "file")
        ))),
    }
}

/// The result for one file.
struct FileResult {
    name: String,
    before: Option<Summary>,
    after: Option<Summary>,
    report: RealignReport,
    /// The reason why the file was left alone; `None` if it was not.
    left_alone: Option<String>,
}

impl FileResult {
    fn left_alone(path: &Path, why: &str) -> FileResult {
        FileResult {
            name: path.display().to_string(),
            before: None,
            after: None,
            report: RealignReport::default(),
            left_alone: Some(why.to_owned()),
        }
    }

    fn is_complete(&self) -> bool {
        self.left_alone.is_none() && self.report.ended_early.is_none()
    }

    fn line(&self, is_forecast: bool) -> String {
        let name = &self.name;
        if let Some(why) = &self.left_alone {
            return format!("{name}: left alone: {why}");
        }
        let share = |summary: &Option<Summary>| match summary {
            Some(summary) => percent(summary.whole_bytes, summary.bytes),
            None => "-".to_owned(),
        };
        let pieces = |summary: &Option<Summary>| summary.as_ref().map_or(0, |found| found.pieces);
        if self.report.moved_bytes == 0 {
            return format!("{name}: {} on whole tracks, not moved", share(&self.before));
        }
        let moved = if is_forecast {
            format!("{} would move", bytes(self.report.moved_bytes))
        } else {
            format!(
                "{} moved, {} of temporary space",
                bytes(self.report.moved_bytes),
                bytes(self.report.extra_bytes)
            )
        };
        let why = match &self.report.ended_early {
            Some(why) => format!("; ended early: {why}"),
            None => String::new(),
        };
        format!(
            "{name}: {} -> {} on whole tracks, {} -> {} pieces; {moved}{why}",
            share(&self.before),
            share(&self.after),
            pieces(&self.before),
            pieces(&self.after)
        )
    }

    fn json(&self) -> Value {
        let summary = |found: &Option<Summary>| {
            found.as_ref().map(|found| {
                let mut row = json_of(&self.name, found);
                if let Some(row) = row.as_object_mut() {
                    row.shift_remove("file");
                }
                row
            })
        };
        json!({
            "file": self.name,
            "before": summary(&self.before),
            "after": summary(&self.after),
            "moved_bytes": self.report.moved_bytes,
            "extra_bytes": self.report.extra_bytes,
            "left_alone": self.left_alone,
            "ended_early": self.report.ended_early,
        })
    }
}

/// Moves a file, or with `--dry-run` predicts the result.
fn realign_file(
    path: &Path,
    args: &RealignArgs,
    systems: &mut FileSystems,
    stop: &Interrupt,
) -> Result<FileResult> {
    match unsuitable(path)? {
        Some(why) => Ok(FileResult::left_alone(path, why)),
        None if args.dry_run => predict(path, args, systems),
        None => move_file(path, args, systems, stop),
    }
}

/// Returns the reason why a path is not opened, if any. Opening a pipe would wait for its writer.
fn unsuitable(path: &Path) -> Result<Option<&'static str>> {
    match fs::metadata(path) {
        Ok(meta) if meta.is_file() => Ok(None),
        Ok(_) => Ok(Some("it is not a regular file")),
        Err(error) if error.kind() == io::ErrorKind::NotFound => {
            Ok(Some("it has been removed in the meantime"))
        }
        Err(error) => Err(Failure::file(path, &error)),
    }
}

fn move_file(
    path: &Path,
    args: &RealignArgs,
    systems: &mut FileSystems,
    stop: &Interrupt,
) -> Result<FileResult> {
    let before = match measure_movable(path, systems)? {
        Ok(before) => before,
        Err(why) => return Ok(FileResult::left_alone(path, &why)),
    };
    let (system, partition) = systems.partition(path)?;
    let progress = Progress::new("bytes moved", Some(before.bytes));
    let outcome = traxtent_file::realign(
        path,
        system,
        &partition,
        &options(&args.moving),
        &mut |moved, _| watch(&progress, stop, moved),
    )
    .map_err(failure)?;
    drop(progress);
    let (report, left_alone) = match outcome {
        Outcome::Moved(report) => (report, None),
        Outcome::Aligned => (RealignReport::default(), None),
        Outcome::LeftAlone(why) => (RealignReport::default(), Some(why)),
    };
    let after = match report.moved_bytes {
        0 => before.clone(),
        _ => measure(path, systems)?,
    };
    Ok(FileResult {
        name: path.display().to_string(),
        before: Some(before),
        after: Some(after),
        report,
        left_alone,
    })
}

/// Returns the best possible result of a realignment.
fn predict(path: &Path, args: &RealignArgs, systems: &mut FileSystems) -> Result<FileResult> {
    let fail = |error| Failure::file(path, &error);
    let before = match measure_movable(path, systems)? {
        Ok(before) => before,
        Err(why) => return Ok(FileResult::left_alone(path, &why)),
    };
    systems.warn_of_other_drives(path)?;
    let file = File::open(path).map_err(fail)?;
    let extents = file_extents(&file).map_err(fail)?;
    let (system, partition) = systems.partition(path)?;
    if let Some(why) = obstacle(path, system).map_err(failure)? {
        return Ok(FileResult::left_alone(path, &why));
    }
    let free = free_ranges(&file).map_err(fail)?;
    let planned = forecast(&extents, &partition, system.block_bytes, &free);
    let (wanted, block) = (planned.wanted_bytes, system.block_bytes);
    if let Some(why) = extra_obstacle(wanted, &partition, block, &options(&args.moving)) {
        return Ok(FileResult::left_alone(path, &why));
    }
    if wanted > 0
        && let Some(why) = space_obstacle(path, system).map_err(failure)?
    {
        return Ok(FileResult::left_alone(path, &why));
    }
    let after = summary_of(&planned.extents, path, systems)?;
    Ok(FileResult {
        name: path.display().to_string(),
        before: Some(before),
        after: Some(after),
        report: RealignReport {
            moved_bytes: planned.moved_bytes,
            ..RealignReport::default()
        },
        left_alone: None,
    })
}

/// Measures a file. If that is not possible, returns the reason why the file could not be moved
/// anyway, if there is one, such as its file system.
fn measure_movable(
    path: &Path,
    systems: &mut FileSystems,
) -> Result<std::result::Result<Summary, String>> {
    let error = match measure(path, systems) {
        Ok(summary) => return Ok(Ok(summary)),
        Err(error) => error,
    };
    let why = systems
        .of(path)
        .ok()
        .and_then(|(system, _)| obstacle(path, system).ok().flatten());
    why.map(Err).ok_or(error)
}

fn measure(path: &Path, systems: &mut FileSystems) -> Result<Summary> {
    let fail = |error| Failure::file(path, &error);
    let file = File::open(path).map_err(fail)?;
    let extents = file_extents(&file).map_err(fail)?;
    summary_of(&extents, path, systems)
}

fn summary_of(extents: &[FileExtent], path: &Path, systems: &mut FileSystems) -> Result<Summary> {
    let (system, drives) = systems.of(path)?;
    summarize(extents, system, drives).map_err(failure)
}

/// Tests a sample of the map's boundaries on the drive that holds a path, and adds the drive to
/// `tested`. Does nothing if the drive is there already. If the map is trusted, only warns if it
/// contradicts the drive's identity.
fn check_map(
    args: &MoveArgs,
    systems: &mut FileSystems,
    path: &Path,
    tested: &mut BTreeSet<PathBuf>,
) -> Result<()> {
    let (node, map) = systems.drive(path)?;
    if args.trust_map {
        return systems.warn_of_other_drives(path);
    }
    if !tested.insert(node.clone()) {
        return Ok(());
    }
    verify_map(&node, &map.name, &map.file, map.is_model)
}

fn options(args: &MoveArgs) -> RealignOptions {
    RealignOptions {
        extra_bytes_max: args.extra,
    }
}

fn watch(progress: &Progress, stop: &Interrupt, moved: u64) -> ControlFlow<()> {
    progress.add(moved);
    if stop.raised() {
        ControlFlow::Break(())
    } else {
        ControlFlow::Continue(())
    }
}

fn catch() -> Result<Interrupt> {
    Interrupt::catch().map_err(|error| Failure::Io(format!("cannot catch signals: {error}")))
}

fn interrupted(message: String, stop: &Interrupt) -> Failure {
    match stop.signal() {
        Some(signal) => Failure::Interrupted(message, signal),
        None => Failure::Io(message),
    }
}

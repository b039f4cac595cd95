//! Stores the rows as CSV and writes them as tables of a page.

use std::fmt;
use std::fs;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result};
use serde::{Deserialize, Serialize};
use traxtent_lab::probe_table::{Method, Subject, TOO_LONG, TableMeasurement};
use traxtent_model::geometry::Geometry;
use traxtent_probe::Confirm;

/// The lines of the page between which the tables are written.
const MARKS: [&str; 2] = ["<!-- tables: begin -->", "<!-- tables: end -->"];

/// The result of a method on a drive.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub(crate) struct Row {
    pub(crate) drive: String,
    pub(crate) method: String,
    /// The number of tracks that the drive has.
    pub(crate) tracks: u64,
    pub(crate) reads: u64,
    pub(crate) translations: u64,
    pub(crate) drive_time_s: f64,
    pub(crate) host_cpu_s: f64,
    /// `exact`, `wrong`, `failed`, `stopped`, or `left out`.
    pub(crate) result: String,
    /// The number of boundaries that were not found.
    pub(crate) missing: u64,
    /// The number of LBNs that were found but are not boundaries.
    pub(crate) additional: u64,
    /// The shares of the tracks found, by how their ends are confirmed.
    pub(crate) tested: f64,
    pub(crate) sampled: f64,
    pub(crate) predicted: f64,
    pub(crate) note: String,
    pub(crate) seed: u64,
    pub(crate) commit: String,
    pub(crate) machine: String,
}

impl Row {
    /// The heading of the printed rows.
    pub(crate) const HEAD: &str = "drive                    method             tracks      reads  \
        translations   drive time    host CPU  result";

    pub(crate) fn new(
        drive: &Subject,
        method: Method,
        geometry: &Geometry,
        measured: &TableMeasurement,
        bound_s: u64,
    ) -> Row {
        let findings = &measured.findings;
        let found: u64 = findings.confirmed.values().sum();
        let share = |confirm| {
            let count = *findings.confirmed.get(&confirm).unwrap_or(&0);
            count as f64 / found.max(1) as f64
        };
        let failure = findings.failure.as_deref();
        let stopped = failure.is_some_and(|failure| failure.contains(TOO_LONG));
        let result = match failure {
            _ if measured.is_exact() => "exact",
            _ if stopped => "stopped",
            Some(_) => "failed",
            None => "wrong",
        };
        let covered = measured.covered * 100.0;
        let note = match failure {
            _ if stopped => {
                format!("{bound_s} s of processor time covered {covered:.1} % of the drive")
            }
            Some(failure) => failure.to_owned(),
            None => String::new(),
        };
        Row {
            drive: drive.name.clone(),
            method: method.name(),
            tracks: geometry.track_count(),
            reads: findings.counts.requests,
            translations: findings.counts.translations,
            drive_time_s: thousandths(findings.drive_time.as_ms() / 1000.0),
            host_cpu_s: thousandths(findings.host_time.as_secs_f64()),
            result: result.to_owned(),
            missing: measured.differences.missing.len() as u64,
            additional: measured.differences.additional.len() as u64,
            tested: share(Confirm::Tested),
            sampled: share(Confirm::Sampled),
            predicted: share(Confirm::Predicted),
            note,
            ..Row::default()
        }
    }

    /// Returns the outcome as text.
    fn outcome(&self) -> String {
        match self.result.as_str() {
            "wrong" => format!(
                "**wrong**: {} missing, {} additional, {} found",
                self.missing,
                self.additional,
                percent(1.0 - self.missing as f64 / (self.tracks - 1).max(1) as f64)
            ),
            "exact" => "exact".to_owned(),
            other => format!("{other}: {}", self.note),
        }
    }
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "{:<24} {:<14} {:>10} {:>10} {:>13} {:>12} {:>8.2} s  {}",
            self.drive,
            self.method,
            self.tracks,
            self.reads,
            self.translations,
            duration(self.drive_time_s),
            self.host_cpu_s,
            self.outcome()
        )
    }
}

/// All rows, saved to disk after each change.
pub(crate) struct Table {
    csv: PathBuf,
    page: PathBuf,
    rows: Vec<Row>,
    /// The names of all drives, in the order of the rows.
    drives: Vec<String>,
}

impl Table {
    /// Reads the rows from a file. A missing file has no rows.
    pub(crate) fn open(csv: &Path, page: &Path, drives: Vec<String>) -> Result<Table> {
        let mut rows = Vec::new();
        if csv.exists() {
            let context = || csv.display().to_string();
            for row in csv::Reader::from_path(csv)
                .with_context(context)?
                .deserialize()
            {
                rows.push(row.with_context(context)?);
            }
        }
        Ok(Table {
            csv: csv.to_owned(),
            page: page.to_owned(),
            rows,
            drives,
        })
    }

    /// Replaces or adds the row of a drive and method. The drive is then no longer left out.
    pub(crate) fn put(&mut self, row: Row) -> Result<()> {
        self.rows
            .retain(|old| old.drive != row.drive || old.result != "left out");
        let same = |old: &Row| old.drive == row.drive && old.method == row.method;
        match self.rows.iter().position(same) {
            Some(index) => self.rows[index] = row,
            None => self.rows.push(row),
        }
        self.save()
    }

    /// Replaces the rows of a drive with the reason why it is left out.
    pub(crate) fn leave_out(&mut self, drive: &str, reason: &str) -> Result<()> {
        self.rows.retain(|old| old.drive != drive);
        self.rows.push(Row {
            drive: drive.to_owned(),
            result: "left out".to_owned(),
            note: reason.to_owned(),
            ..Row::default()
        });
        self.save()
    }

    fn save(&mut self) -> Result<()> {
        let place = |row: &Row| {
            let drive = self.drives.iter().position(|name| *name == row.drive);
            let method = Method::ALL.iter().position(|m| m.name() == row.method);
            (drive.unwrap_or(usize::MAX), method)
        };
        self.rows.sort_by_key(place);
        let mut writer = csv::Writer::from_path(&self.csv)?;
        for row in &self.rows {
            writer.serialize(row)?;
        }
        writer.flush()?;
        let context = || self.page.display().to_string();
        let page = fs::read_to_string(&self.page).with_context(context)?;
        let [begin, end] = MARKS.map(|mark| page.find(mark));
        let (Some(begin), Some(end)) = (begin, end) else {
            anyhow::bail!(
                "{}: the lines {MARKS:?} are missing; add them where the tables belong",
                self.page.display()
            );
        };
        let (before, after) = (&page[..begin + MARKS[0].len()], &page[end..]);
        fs::write(&self.page, format!("{before}\n{}{after}", self.markdown())).with_context(context)
    }

    /// Formats a table of drive times, one of requests per track, and the exceptions.
    fn markdown(&self) -> String {
        let time = |row: &Row| duration(row.drive_time_s);
        let per_track = |row: &Row| {
            let count = row.reads.max(row.translations);
            format!("{:.3}", count as f64 / row.tracks.max(1) as f64)
        };
        format!(
            "\n## Drive time\n\n{}\n## Requests per track\n\n{}\n## Results\n\n{}\n",
            self.by_method(time),
            self.by_method(per_track),
            self.results()
        )
    }

    /// Formats a table with a line per drive and a column per method.
    fn by_method(&self, cell: impl Fn(&Row) -> String) -> String {
        let names = Method::ALL.map(Method::name);
        let mut out = format!("| drive | tracks | {} |\n|---|--:", names.join(" | "));
        out += &"|--:".repeat(names.len());
        out += "|\n";
        let measured = |row: &&Row| row.result != "left out";
        let measured: Vec<&Row> = self.rows.iter().filter(measured).collect();
        for rows in measured.chunk_by(|a, b| a.drive == b.drive) {
            out += &format!("| {} | {} |", rows[0].drive, rows[0].tracks);
            for name in &names {
                let text = match rows.iter().find(|row| row.method == *name) {
                    Some(row) if row.result == "exact" => cell(row),
                    Some(row) => row.result.clone(),
                    None => String::new(),
                };
                out += &format!(" {text} |");
            }
            out += "\n";
        }
        out
    }

    /// States how many results are exact. Lists those that are not, the drives that are left out,
    /// and those without a row.
    fn results(&self) -> String {
        let (left_out, measured): (Vec<&Row>, Vec<&Row>) =
            self.rows.iter().partition(|row| row.result == "left out");
        let other = measured.iter().filter(|row| row.result != "exact");
        let mut out = format!(
            "{} of {} results are exact.\n",
            measured.len() - other.clone().count(),
            measured.len()
        );
        for row in other {
            out += &format!("\n- `{}`, `{}`: {}\n", row.drive, row.method, row.outcome());
        }
        for row in left_out {
            out += &format!("\nLeft out: `{}`, because {}.\n", row.drive, row.note);
        }
        let has_a_row = |drive: &String| self.rows.iter().any(|row| row.drive == *drive);
        let missing: Vec<String> = self
            .drives
            .iter()
            .filter(|drive| !has_a_row(drive))
            .map(|drive| format!("`{drive}`"))
            .collect();
        if !missing.is_empty() {
            out += &format!("\nNot measured yet: {}.\n", missing.join(", "));
        }
        out
    }
}

/// Formats a share as a percentage. Only a share of exactly 1 is written as 100 %.
fn percent(share: f64) -> String {
    if share < 1.0 {
        format!("{:.2} %", (share * 100.0).min(99.99))
    } else {
        "100 %".to_owned()
    }
}

fn thousandths(value: f64) -> f64 {
    (value * 1000.0).round() / 1000.0
}

/// Formats a time in a readable unit.
fn duration(seconds: f64) -> String {
    match seconds {
        s if s < 120.0 => format!("{s:.1} s"),
        s if s < 7_200.0 => format!("{:.1} min", s / 60.0),
        s => format!("{:.1} h", s / 3_600.0),
    }
}

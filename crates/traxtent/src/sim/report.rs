//! The results on standard output, as text or JSON.

use std::io::Write;

use serde_json::Value;
use traxtent_run::{Case, DRIVE_RESPONSE, Figures, PARTIAL_WRITES, ReportHead, format_figure};

use crate::failure::Result;
use crate::output;
use crate::table::{Side, Table};

/// The results of all cases.
pub(crate) struct Report<'a> {
    pub(crate) cases: &'a [Case],
    /// Whether several cases were asked for, even if only one could be simulated.
    pub(crate) is_sweep: bool,
    /// For each case, the keys with which its writes cover whole physical sectors; `None` if none
    /// are needed or known.
    pub(crate) remedies: &'a [Option<String>],
    /// The figures of each case.
    pub(crate) figures: &'a [Figures],
}

impl Report<'_> {
    /// Prints an object for one case, or a list of objects for a sweep.
    pub(crate) fn print_json(&self) -> Result<()> {
        if !self.is_sweep {
            return output::json(&self.json(&self.cases[0], 0));
        }
        let rows = self.cases.iter().enumerate();
        let rows: Value = rows.map(|(index, case)| self.json(case, index)).collect();
        output::json(&rows)
    }

    /// Prints the figures of one case, or a table with a row for each of a sweep.
    pub(crate) fn print(&self) -> Result<()> {
        let mut out = output::stdout();
        self.write_head(&mut out)?;
        if self.is_sweep {
            writeln!(out)?;
            self.table().write(&mut out)?;
            self.write_partial_writes(&mut out)?;
            return output::finish(out);
        }
        self.figures[0].write(&mut out)?;
        if let Some(keys) = &self.remedies[0] {
            writeln!(
                out,
                "  the drive must read the rest of such a sector first; {keys} avoids this"
            )?;
        }
        self.write_devices(&mut out)?;
        output::finish(out)
    }

    /// Writes a table with a row for each device of a run of several.
    fn write_devices(&self, out: &mut impl Write) -> Result<()> {
        let names = ReportHead::of(&self.cases[0]).devices;
        if names.is_empty() {
            return Ok(());
        }
        let labels = [("device", Side::Right), ("name", Side::Left)];
        let figures = TITLES.map(|title| (title, Side::Right));
        let mut table = Table::new(labels.into_iter().chain(figures));
        for (number, (name, figures)) in names.iter().zip(self.figures[0].devices()).enumerate() {
            let labels = [number.to_string(), name.clone()];
            table.row(labels.into_iter().chain(cells(figures)));
        }
        writeln!(out)?;
        table.write(out)?;
        Ok(())
    }

    /// Returns whether a sweep has writes that cover a physical sector only in part.
    fn has_partial_writes(&self) -> bool {
        let count = |figures: &Figures| figures.get(None, PARTIAL_WRITES).0;
        self.figures.iter().any(|figures| count(figures) > 0.0)
    }

    /// Returns whether a case of a sweep has arrays.
    fn has_arrays(&self) -> bool {
        let mut figures = self.figures.iter();
        figures.any(|figures| figures.has(None, DRIVE_RESPONSE))
    }

    /// Explains the column of partial writes, if there is one, with the keys that avoid them.
    fn write_partial_writes(&self, out: &mut impl Write) -> Result<()> {
        if !self.has_partial_writes() {
            return Ok(());
        }
        writeln!(
            out,
            "\npartial writes of physical sectors: the drive must read the rest of such a sector first"
        )?;
        let mut remedies: Vec<&str> = self.remedies.iter().flatten().map(String::as_str).collect();
        remedies.sort_unstable();
        remedies.dedup();
        match remedies[..] {
            [] => {}
            [keys] => writeln!(out, "  {keys} avoids this")?,
            // Each case can need other keys.
            [..] => {
                for (case, keys) in self.cases.iter().zip(self.remedies) {
                    if let Some(keys) = keys {
                        writeln!(out, "  {}: {keys} avoids this", case.name())?;
                    }
                }
            }
        }
        Ok(())
    }

    fn json(&self, case: &Case, index: usize) -> Value {
        let remedy = self.remedies[index].as_deref();
        ReportHead::of(case).json(&self.figures[index], remedy)
    }

    fn write_head(&self, out: &mut impl Write) -> Result<()> {
        let first = &self.cases[0];
        let run = &first.runs[0];
        let target = &run.machine.target;
        match &run.machine.drives[..] {
            _ if first.drive.is_some() => {}
            [drive] => writeln!(out, "drive       {target} ({})", drive.profile.model)?,
            drives => writeln!(out, "drives      {} of {target}", drives.len())?,
        }
        // In a sweep over drives, each can have its own workload in its DiskSim parameters.
        let workload = run.workload.describe();
        let same =
            |case: &Case| case.set != first.set || case.runs[0].workload.describe() == workload;
        if self.cases.iter().all(same) {
            writeln!(out, "workload    {}", workload_of(self.cases))?;
        }
        match &first.runs[..] {
            _ if !run.workload.is_seeded() => {}
            [only] if self.cases.iter().all(|case| case.runs[0].seed == only.seed) => {
                writeln!(out, "seed        {}", only.seed)?;
            }
            [_] => {}
            [from, .., to] if self.cases.iter().all(|case| case.runs[0].seed == from.seed) => {
                writeln!(
                    out,
                    "seeds       {} to {}: means ± half of their 95 % intervals",
                    from.seed, to.seed
                )?;
            }
            seeds @ [_, ..] => writeln!(
                out,
                "seeds       {} of each row: means ± half of their 95 % intervals",
                seeds.len()
            )?,
            [] => unreachable!("a case has a run"),
        }
        Ok(())
    }

    /// Returns a table with a row for each case.
    fn table(&self) -> Table {
        let labels = self.cases[0].labels().map(|(key, _)| {
            let side = if key == "drive" {
                Side::Left
            } else {
                Side::Right
            };
            (key, side)
        });
        let (arrays, partial) = (self.has_arrays(), self.has_partial_writes());
        let titles = TITLES
            .into_iter()
            .chain(arrays.then_some("drives' mean ms"))
            .chain(partial.then_some("partial writes"));
        let figures = titles.map(|title| (title, Side::Right));
        let mut table = Table::new(labels.chain(figures));
        for (case, figures) in self.cases.iter().zip(self.figures) {
            let labels = case.labels().map(|(_, value)| value.to_owned());
            // A row without arrays has no requests of arrays to drives.
            let drives = match figures.has(None, DRIVE_RESPONSE) {
                true => format_figure(figures.get(None, DRIVE_RESPONSE), 3),
                false => String::new(),
            };
            let drives = arrays.then_some(drives);
            let writes = partial.then(|| format_figure(figures.get(None, PARTIAL_WRITES), 0));
            table.row(labels.chain(cells(figures)).chain(drives).chain(writes));
        }
        table
    }
}

/// The titles of the columns of figures in a table.
const TITLES: [&str; 8] = [
    "requests",
    "requests/s",
    "MB/s",
    "mean ms",
    "deviation",
    "50 %",
    "99 %",
    "max",
];

/// Returns the figures for the columns of a table.
fn cells(figures: &Figures) -> [String; TITLES.len()] {
    let response = |key| format_figure(figures.get(Some("response_ms"), key), 3);
    let plain = |key, decimals| format_figure(figures.get(None, key), decimals);
    [
        plain("requests", 0),
        plain("requests_per_s", 2),
        plain("mb_per_s", 3),
        response("mean"),
        response("deviation"),
        response("p50"),
        response("p99"),
        response("max"),
    ]
}

/// Describes the workload of all cases. `…` stands for a value that differs between them.
pub(super) fn workload_of(cases: &[Case]) -> String {
    let first = &cases[0];
    let differs = |key: &str, value: &str| {
        let other = |(of, other): &(String, String)| of == key && other != value;
        cases.iter().any(|case| case.set.iter().any(other))
    };
    let swept: Vec<&str> = first
        .set
        .iter()
        .filter(|(key, value)| differs(key, value))
        .filter_map(|(key, _)| key.strip_prefix("workload."))
        .collect();
    let description = first.runs[0].workload.describe();
    let shown = description
        .split(',')
        .map(|part| match part.split_once('=') {
            Some((key, _)) if swept.contains(&key.trim_start()) => format!("{key}=…"),
            _ => part.to_owned(),
        });
    shown.collect::<Vec<_>>().join(",")
}
